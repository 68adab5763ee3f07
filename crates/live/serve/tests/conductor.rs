//! The conductor on a virtual clock: the simulator's counts, a model of the contents, faults, and stuck requests.

mod common;

use std::os::unix::fs::FileExt;

use common::{data, numbered, Shared, World, PAGE};
use headstart_serve::spill::Spill;
use headstart_serve::work::{Answer, Op};
use headstart_sim::{simulate, Scenario, Source};
use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Counts of a level that the simulator and the server share.
const COUNTS: [&str; 11] = [
    "references",
    "hits_ready",
    "hits_unready",
    "misses",
    "fetches",
    "demand_fetches",
    "prefetches",
    "prefetches_used",
    "prefetches_late",
    "evictions",
    "pollution",
];

/// Sends the same requests through the simulator and through the conductor, one after another with a constant fetch
/// time.
fn compare_with_simulator(blocks: u32, policy: &str, requests: &[(u64, u32)]) {
    let level = &format!("blocks = {blocks}\npolicy = {{{policy}}}");
    let trace = std::env::temp_dir().join(format!("headstart-serve-{}.csv", std::process::id()));
    let scenario = trace.with_extension("toml");
    let lines: String =
        requests.iter().map(|(first, count)| format!("{},{}\n", first * PAGE, u64::from(*count) * PAGE)).collect();
    std::fs::write(&trace, format!("offset,size\n{lines}")).expect("a temporary file");
    let pages = requests.iter().map(|(first, count)| first + u64::from(*count)).max().expect("there are requests");
    let text = format!(
        "[workload]\ntrace = {trace:?}\nformat = \"csv\"\nblock_size = \"4KiB\"\ncompute = \"5ms\"\nissue = \"whole\"\n\
         [cache]\nblocks = {blocks}\n[device]\nmodel = {{name = \"uniform\", fetch_time = \"1us\"}}\n[policy]\n{}\n",
        policy.replace(", ", "\n"),
    );
    std::fs::write(&scenario, &text).expect("a temporary file");
    let read = Scenario::read(&Source::File(scenario.clone()), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let report = simulate(&read, &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"));
    std::fs::remove_file(&trace).expect("it is there");
    std::fs::remove_file(&scenario).expect("it is there");
    let simulated = serde_json::to_value(&report).expect("a report is JSON");

    // The simulated device has no end.
    let mut world = World::new(level, numbered(pages + 1_000, 0));
    world.takes = |_| Nanos(1_000);
    for (id, (first, count)) in (0..).zip(requests) {
        let answer = world.read(id, first * PAGE, count * PAGE as u32);
        let from = (first * PAGE) as usize;
        assert_eq!(data(&answer), &world.memory().bytes[from..from + *count as usize * PAGE as usize], "request {id}");
        world.now += Nanos::from_millis(5);
        while world.under_way.first_key_value().is_some_and(|((at, _), _)| *at < world.now) {
            let now = world.now;
            world.step();
            world.now = now;
        }
    }
    let frames = world.conductor.setting().frames;
    let live = headstart_assemble::level_report(world.conductor.counts(), "server", frames, PAGE);
    let live = serde_json::to_value(&live).expect("a report is JSON");
    let of = |counts: &serde_json::Value| COUNTS.map(|name| (name, counts[name].clone()));
    assert_eq!(of(&live), of(&simulated["levels"][0]), "{level}");
}

/// Streams with seeks between them, and repeated pages.
fn requests(seed: u64) -> Vec<(u64, u32)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    for _ in 0..40 {
        let (mut at, count) = (random.random_range(0..2_000), random.random_range(1..=8));
        for _ in 0..random.random_range(1..20) {
            all.push((at, count));
            at += u64::from(count);
        }
    }
    all.push((4_000, 1));
    all
}

#[test]
fn one_client_at_a_time_gets_the_simulators_counts() {
    for (seed, policy) in ["demand", "linux", "ra", "amp", "sarc", "obl", "linux-2.6"].into_iter().enumerate() {
        compare_with_simulator(256, &format!("name = {policy:?}"), &requests(seed as u64));
    }
    compare_with_simulator(64, "name = \"ra\", replacement = \"arc\"", &requests(9));
}

#[test]
fn requests_larger_than_the_cache_and_caches_without_frames() {
    let bytes = numbered(300, 123);
    for level in [
        "blocks = 0",
        "blocks = 1",
        "blocks = 7\npolicy = \"linux\"",
        "blocks = 7\npolicy = \"ra\"\ncoordinator = \"pfc\"",
    ] {
        let mut world = World::new(level, bytes.clone());
        for (id, (offset, length)) in (0..).zip([(0, bytes.len()), (4095, 2), (299 * 4096 + 5, 4200), (17, 200 * 4096)])
        {
            let answer = world.read(id, offset as u64, length as u32);
            assert!(data(&answer) == bytes[offset..offset + length], "{level}: {offset} {length}");
        }
        while world.step() {}
        assert!(world.conductor.is_idle());
    }
}

/// More pages than keep their numbers, in overlapping requests, with a much smaller cache: pages wait for frames long
/// after another request has had them, and their numbers are reused.
#[test]
fn large_requests_that_overlap_get_the_pages_that_they_ask_for() {
    const PAGES: u64 = 24_000;
    for level in ["blocks = 64\npolicy = \"linux\"", "blocks = 64\npolicy = \"linux\"\ncoordinator = \"demote\""] {
        let mut world = World::new(level, vec![0; (PAGES * PAGE) as usize]);
        for (page, bytes) in (0u64..).zip(world.memory().bytes.chunks_mut(PAGE as usize)) {
            bytes[..8].copy_from_slice(&page.to_le_bytes());
        }
        world.takes = |first| Nanos(1_000 + first * 7_919 % 90_000);
        let ranges =
            (0..24).map(|id| (id, id * 4_700 % 18_000, 3_000 + id % 5 * 700)).collect::<Vec<(u64, u64, u64)>>();
        let mut asked = ranges.iter();
        loop {
            // Four at a time; some are reads, some only bring pages into the cache.
            while world.conductor.open_requests() < 4 {
                let Some((id, first, count)) = asked.next() else { break };
                let op = if id % 3 == 0 { Op::Cache } else { Op::Read };
                world.ask(*id, first * PAGE, (count * PAGE) as u32, op);
                world.instant();
            }
            if !world.step() {
                break;
            }
            for (id, answer) in std::mem::take(&mut world.answers) {
                let (_, first, count) = ranges[id as usize];
                let Answer::Data(bytes) = answer else { continue };
                let pages = bytes.slices(0).map(|page| u64::from_le_bytes(page[..8].try_into().expect("eight bytes")));
                assert!(pages.eq(first..first + count), "{level}: request {id} brings other pages");
                world.conductor.reuse(bytes);
            }
        }
        assert!(asked.next().is_none());
        world.conductor.check().unwrap_or_else(|broken| panic!("{level}: {broken}"));
        world.conductor.check_idle().unwrap_or_else(|broken| panic!("{level}: {broken}"));
    }
}

/// A coordinator adds pages to a request; those without a frame wait for one although no client waits for them.
#[test]
fn a_page_that_a_coordinator_adds_keeps_its_number_until_it_is_fetched() {
    let level = "blocks = 30\npolicy = \"linux\"\nreplacement = \"arc\"\ncoordinator = \"pfc\"";
    let bytes = numbered(84, 0);
    for numbers in 20..50 {
        let mut world = World::new(level, bytes.clone());
        world.conductor.number_at_most(numbers);
        world.takes = |first| Nanos(1_000 + first * 7_919 % 90_000);
        for (id, (first, count)) in (0..).zip([(0, 2), (1, 18), (54, 4), (30, 12)]) {
            world.ask(id, first * PAGE, count * PAGE as u32, Op::Read);
            world.instant();
        }
        while world.step() {
            world.conductor.check().unwrap_or_else(|broken| panic!("{numbers} numbers: {broken}"));
        }
        for (id, first, count) in [(0, 0, 2), (1, 1, 18), (2, 54, 4), (3, 30, 12)] {
            let (from, to) = (first * PAGE as usize, (first + count) * PAGE as usize);
            assert!(data(&world.answers[&id]) == bytes[from..to], "{numbers} numbers: request {id}");
        }
    }
}

#[test]
fn a_bad_page_fails_those_who_want_it_and_no_others() {
    let bytes = numbered(64, 0);
    let mut world = World::new("blocks = 32\npolicy = {name = \"ra\", degree = 8}", bytes.clone());
    world.memory().bad = vec![13];
    // Its prefetch fails: no client gets an error.
    for page in 8..13u64 {
        let answer = world.read(page, page * PAGE, PAGE as u32);
        assert_eq!(data(&answer), &bytes[(page * PAGE) as usize..][..PAGE as usize]);
    }
    assert_eq!(world.read(100, 13 * PAGE, 512), Answer::Failed(headstart_nbd::Errno::Io));
    assert_eq!(world.read(101, 10 * PAGE, 8 * PAGE as u32), Answer::Failed(headstart_nbd::Errno::Io));
    let answer = world.read(102, 14 * PAGE, PAGE as u32);
    assert_eq!(
        data(&answer),
        &bytes[14 * PAGE as usize..][..PAGE as usize],
        "its neighbours are read again by themselves"
    );
    // After the repair, the failure has no further effect.
    world.memory().bad.clear();
    let answer = world.read(103, 13 * PAGE, PAGE as u32);
    assert_eq!(data(&answer), &bytes[13 * PAGE as usize..][..PAGE as usize]);
    while world.step() {}
    assert!(world.conductor.is_idle());
}

#[test]
fn one_read_that_is_stuck_delays_no_other() {
    let bytes = numbered(200, 0);
    let mut world = World::new("blocks = 64\npolicy = \"linux\"", bytes.clone());
    world.takes = |page| if page == 150 { Nanos::from_millis(60_000) } else { Nanos::from_millis(1) };
    world.ask(1_000, 150 * PAGE, 100, Op::Read);
    world.instant();
    for page in 0..100u64 {
        let answer = world.read(page, page * PAGE, PAGE as u32);
        assert_eq!(data(&answer)[..8], bytes[(page * PAGE) as usize..][..8]);
    }
    assert!(world.now < Nanos::from_millis(1_000) && !world.answers.contains_key(&1_000), "{}", world.now);
    // A write to another page is answered; a write to the stuck page waits.
    world.ask(1_001, 160 * PAGE, 4, Op::Write { data: b"soon".to_vec(), fua: true });
    world.ask(1_002, 150 * PAGE, 4, Op::Write { data: b"late".to_vec(), fua: true });
    world.instant();
    while !world.answers.contains_key(&1_000) {
        assert!(world.step());
        assert!(world.now < Nanos::from_millis(1_000) || world.answers.contains_key(&1_001));
    }
    let answer = world.answers.remove(&1_000).expect("it has come");
    assert_eq!(data(&answer)[..4], bytes[150 * PAGE as usize..][..4]);
    while world.step() {}
    assert_eq!(world.answers.remove(&1_002), Some(Answer::Done));
    let answer = world.read(1_003, 150 * PAGE, 4);
    assert_eq!((&data(&answer)[..], &world.memory().bytes[150 * PAGE as usize..][..4]), (&b"late"[..], &b"late"[..]));
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_nothing_lost_is_read() {
    let bytes = numbered(64, 0);
    let mut world = World::new("blocks = 32\npolicy = \"demand\"", bytes.clone());
    let failed = Some(Answer::Failed(headstart_nbd::Errno::Io));
    let write = |fua| Op::Write { data: b"new!".to_vec(), fua };
    let first = |world: &mut World, id, page: u64| data(&world.read(id, page * PAGE, 4));
    first(&mut world, 0, 3);
    world.ask(1, 3 * PAGE, 4, write(false));
    world.instant();
    while world.step() {}
    assert_eq!((world.answers.remove(&1), first(&mut world, 2, 3)), (Some(Answer::Done), b"new!".to_vec()));
    // Two syncs at once: the storage reports its error only to the first. A read is in flight, and a change waits for
    // it.
    world.memory().left = Some(bytes.clone());
    world.takes = |number| Nanos::from_millis(if number == 5 { 3 } else { 1 });
    world.ask(5, 5 * PAGE, 4, Op::Read);
    world.instant();
    for (id, page, op) in [(3, 0, Op::Flush), (4, 0, Op::Flush), (6, 5, write(false))] {
        world.ask(id, page * PAGE, if page == 0 { 0 } else { 4 }, op);
    }
    world.instant();
    while world.step() {}
    assert_eq!([3, 4, 6].map(|id| world.answers.remove(&id)), [failed.as_ref(); 3].map(|answer| answer.map(same)));
    assert_eq!(world.answers.remove(&5).map(|answer| data(&answer)), Some(bytes[5 * PAGE as usize..][..4].to_vec()));
    assert_eq!(first(&mut world, 7, 3), &bytes[3 * PAGE as usize..][..4], "it is read anew");
    for (id, op) in [(8, Op::Flush), (9, write(true)), (10, write(false)), (11, Op::Trim { fua: false })] {
        world.ask(id, 9 * PAGE, 4, op);
        world.instant();
        assert_eq!(world.answers.remove(&id), failed.as_ref().map(same));
    }
    let unstable = world.conductor.unstable().expect("a sync has failed");
    assert_eq!((unstable.unflushed.unflushed_writes, unstable.reason.as_str()), (1, "not synced"));
    assert!(world.conductor.is_idle() && world.memory().bytes == bytes);
}

fn same(answer: &Answer) -> Answer {
    match answer {
        Answer::Failed(errno) => Answer::Failed(*errno),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_page_comes_from_the_backing_once_and_then_from_the_level_below() {
    let path = std::env::temp_dir().join(format!("headstart-serve-below-{}", std::process::id()));
    let spill = Spill::open(&format!("{}:1MiB", path.display()), PAGE, None, false).expect("a temporary file");
    let file = std::fs::File::options().write(true).open(&path).expect("it is there");
    std::fs::remove_file(&path).expect("it is there");
    let shared = Shared::default();
    shared.lock().bytes = numbered(40, 0);
    let mut world = World::before("blocks = 8\npolicy = \"demand\"", shared, Some(spill), None);
    for id in 0..120 {
        let page = id % 40;
        let expected = (page * PAGE) as usize..((page + 1) * PAGE) as usize;
        let answer = world.read(id, page * PAGE, PAGE as u32);
        assert!(data(&answer) == world.memory().bytes[expected], "page {page}");
    }
    while world.step() {}
    world.conductor.check_idle().expect("nothing is lost");
    let totals = world.conductor.statistics().totals.clone();
    assert_eq!((totals.backing_demand_reads, totals.backing_read_bytes), (40, 40 * PAGE));
    // A page that is evicted again is still in the file.
    let report = world.conductor.spill_report().expect("there is a spill file");
    assert_eq!((report.totals.stored_pages, report.totals.missed_pages, report.level.counts.hits_ready), (40, 40, 80));
    // Page 5, in the sixth slot, is damaged: of a read of eight pages, it alone comes from the backing.
    file.write_all_at(b"damage", 12_288 + 5 * PAGE).expect("it can be written");
    let answer = world.read(120, 3 * PAGE, 8 * PAGE as u32);
    assert!(data(&answer) == world.memory().bytes[3 * PAGE as usize..11 * PAGE as usize]);
    let report = world.conductor.spill_report().expect("there is a spill file");
    let reads = world.conductor.statistics().totals.backing_demand_reads;
    assert_eq!((report.totals.corrupt_pages, reads), (1, 41));
}
