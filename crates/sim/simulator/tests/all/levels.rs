//! Stacked levels: worked out by hand, compared with one level, and at random.

use headstart_policy::readahead::Needs;
use headstart_policy::registry::{read_aheads, PolicyRow, COORDINATORS, REPLACEMENTS};
use headstart_sim::Report;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// References, think time 1 ms, a device of 2 ms, and levels.
fn by_hand(references: &str, levels: &str) -> Report {
    let names: Vec<String> = references.split_whitespace().map(|name| format!("\"{name}\"")).collect();
    common::run(&format!(
        "workload = {{references = [{}], compute = \"1ms\"}}\n{levels}\n\
         [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n",
        names.join(", ")
    ))
}

#[test]
fn a_hit_below_costs_the_link() {
    // A: disk 0-2, link until 3, think until 4. B: 4-6, 7, 8. C in the place of A: 8-10, 11, 12. A again, in the place
    // of B: the level below has it, so the link alone, 13, and think until 14.
    let report = by_hand("A B C A", "[[level]]\nblocks = 2\n[[level]]\nblocks = 4\nlink = {alpha = \"1ms\"}\n");
    assert_eq!(ms(report.elapsed_ns), 14.0);
    let [upper, lower] = &report.levels[..] else { panic!("two levels") };
    assert_eq!((upper.counts.misses, upper.counts.evictions, upper.link_ns), (4, 2, 0));
    assert_eq!((lower.counts.references, lower.counts.hits_ready, lower.counts.misses), (4, 1, 3));
    assert_eq!((ms(lower.link_ns), report.devices[0].requests), (4.0, 3));
    assert_eq!((upper.name.as_str(), lower.name.as_str()), ("L1", "L2"));
}

#[test]
fn a_hit_below_a_free_link_costs_nothing() {
    // A: disk 0-2, think until 3. B: 3-5, think until 6. A again: the level above has one block, the one below has it,
    // at once; think until 7. As wholes or block by block.
    for policies in ["", "policy = {name = \"ra\", degree = 0}\n"] {
        let report = by_hand("A B A", &format!("[[level]]\nblocks = 1\n{policies}[[level]]\nblocks = 4\n"));
        assert_eq!((ms(report.elapsed_ns), report.levels[1].counts.hits_ready), (7.0, 1));
        // Three levels, of which two or only the lowest hold it.
        for middle in [0, 1, 2] {
            let levels =
                format!("[[level]]\nblocks = 1\n{policies}[[level]]\nblocks = {middle}\n[[level]]\nblocks = 4\n");
            assert_eq!(ms(by_hand("A B A", &levels).elapsed_ns), 7.0, "{levels}");
        }
    }
}

#[test]
fn a_link_counts_pages_once_a_request() {
    // Blocks of 8 KiB are two pages: 1 + 2 * 0.5 ms a request. One block each: A 0-2 and 4, B 5-7 and 9, end 10.
    let report =
        by_hand("A B", "[[level]]\nblocks = 2\n[[level]]\nblocks = 4\nlink = {alpha = \"1ms\", beta = \"500us\"}\n");
    assert_eq!((ms(report.elapsed_ns), ms(report.levels[1].link_ns)), (10.0, 4.0));
}

#[test]
fn read_ahead_joins_the_demand() {
    // Inline blocks lie one after another. `ra` of degree 2 above a level without frames: A with B and C is one request
    // of the disk, 0-2. Think until 3; B hits, and D joins the trigger: 3-5 (and E does not exist). Think; C hits at 4;
    // D at 5.
    let levels = "[[level]]\nblocks = 8\npolicy = {name = \"ra\", degree = 2}\n[[level]]\nblocks = 0\n";
    let report = by_hand("A B C D", levels);
    assert_eq!((ms(report.elapsed_ns), report.devices[0].requests), (6.0, 2));
    let counts = &report.levels[0].counts;
    assert_eq!((counts.misses, counts.hits_ready, counts.prefetches, counts.prefetches_used), (1, 3, 3, 3));
    assert_eq!(report.levels[1].prefetching.bypass_blocks, 4);
}

#[test]
fn a_level_may_keep_its_prefetches_apart() {
    // Below, `ra` of degree 2: 0 brings 1 and 2. As one request of the disk the reply waits for all of it; kept apart
    // the demand is one request and the rest another. Behind 10 the file ends.
    let trace = common::Trace::new("apart-below", &[(false, 0), (false, 10)], 1);
    let run = |keys: &str| {
        let levels = format!(
            "[[level]]\nblocks = 1\n[[level]]\nblocks = 8\npolicy = {{name = \"ra\", degree = 2}}\n{keys}\n\
             [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n"
        );
        common::run(&trace.scenario("as-read", &levels)).devices[0].requests
    };
    assert_eq!((run(""), run("separate_prefetch = false"), run("separate_prefetch = true")), (2, 2, 3));
}

#[test]
fn what_was_sent_up_goes_first_under_du() {
    // Below, four frames and one block of read-ahead: 0 brings 1, 10 brings 11. For 20 and 21 LRU gives 0 and 1, DU the
    // two that were sent up, 0 and 10. Then 1 is there under DU alone.
    let trace = common::Trace::new("du", &[(false, 0), (false, 10), (false, 20), (false, 1)], 1);
    let run = |coordinator: &str| {
        let levels = format!(
            "[[level]]\nblocks = 1\n[[level]]\nblocks = 4\npolicy = {{name = \"ra\", degree = 1}}\n\
             coordinator = \"{coordinator}\"\n[device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n"
        );
        let counts = common::run(&trace.scenario("as-read", &levels)).levels[1].counts.clone();
        (counts.hits_ready, counts.misses, counts.prefetches_used)
    };
    assert_eq!((run("none"), run("du")), ((0, 4, 0), (1, 3, 1)));
}

#[test]
fn of_what_was_sent_up_the_last_goes_first_under_du() {
    // Below, three frames. 0, 1 and 2 have been sent up when 3 comes: DU gives it the frame of 2, sent up last, so that
    // 0 is there when it is requested again; LRU gives it that of 0.
    let trace = common::Trace::new("du-order", &[(false, 0), (false, 1), (false, 2), (false, 3), (false, 0)], 1);
    let run = |coordinator: &str| {
        let levels = format!(
            "[[level]]\nblocks = 1\n[[level]]\nblocks = 3\ncoordinator = \"{coordinator}\"\n\
             [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n"
        );
        let counts = common::run(&trace.scenario("as-read", &levels)).levels[1].counts.clone();
        (counts.hits_ready, counts.misses)
    };
    assert_eq!((run("none"), run("du")), ((0, 5), (1, 4)));
}

#[test]
fn random_requests_of_which_a_part_bypasses_are_not_sequential_for_amp() {
    // PFC lets 1, 2 and 3 blocks of the requests bypass, and AMP sees the rest: blocks whose predecessor bypasses, and
    // is not cached. All places are far apart: nothing must be prefetched.
    let trace = common::Trace::new("passing", &[(false, 0), (false, 40), (false, 80)], 4);
    let text = trace.scenario(
        "as-read",
        "[[level]]\nblocks = 4\n[[level]]\nblocks = 40\npolicy = \"amp\"\n\
         coordinator = {name = \"pfc\", actions = \"bypass\"}\n\
         [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n",
    );
    let level = &common::run(&text.replace("\"as-read\"", "\"as-read\", issue = \"whole\"")).levels[1];
    assert_eq!((level.prefetching.bypass_blocks, level.counts.misses, level.counts.prefetches), (6, 12, 0));
}

#[test]
fn demote_keeps_levels_apart() {
    // Six blocks round and round, three frames above, four below. LRU twice over misses always: four are fewer than
    // six. Kept apart, three above and three below are six (the fourth frame below is for the block on its way): from
    // the second round on each is a hit below, taken out as it goes up, and what it evicts above comes down.
    let round: Vec<(bool, u64)> = (0..18).map(|at| (false, at % 6)).collect();
    let trace = common::Trace::new("demote", &round, 1);
    let run = |coordinator: &str| {
        let levels = format!(
            "[[level]]\nblocks = 3\n[[level]]\nblocks = 4\ncoordinator = \"{coordinator}\"\n\
             [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n"
        );
        common::run(&trace.scenario("as-read", &levels)).levels[1].counts.hits_ready
    };
    assert_eq!((run("none"), run("demote")), (0, 12));
}

#[test]
fn without_a_read_ahead_below_a_duel_changes_nothing() {
    // Its pass-through mode then equals the native one, except for requests of more than an eighth of the level, which
    // would bypass it.
    for generator in ["random", "zipf", "sequential", "loop"] {
        let run = |coordinator: &str| {
            let report = common::run(&format!(
                "workload = {{generator = \"{generator}\", compute = \"1ms\", limit = 3000}}\n\
                 [[level]]\nblocks = 20\npolicy = \"ra\"\n\
                 [[level]]\nblocks = 100\nlink = {{alpha = \"1ms\"}}\ncoordinator = \"{coordinator}\"\n\
                 [device]\nmodel = \"hp97560\"\n"
            ));
            let mut value = serde_json::to_value(&report).expect("plain values");
            value.as_object_mut().expect("an object").remove("scenario");
            value.to_string()
        };
        assert_eq!(run("none"), run("duel"), "{generator}");
    }
}

/// The scenario of `common::random_system` with its one level on top of a level without frames.
fn over_nothing(text: &str, link: &str) -> String {
    let mut table = common::table(text);
    let take = |table: &mut toml::Table, key: &str| table.remove(key).expect(key).as_table().expect(key).clone();
    let (mut level, policy) = (take(&mut table, "cache"), take(&mut table, "policy"));
    level.insert("policy".into(), policy.into());
    let lower: toml::Table = format!("blocks = 0\nlink = {link}").parse().expect("TOML");
    table.insert("level".into(), toml::Value::Array(vec![level.into(), lower.into()]));
    table.to_string()
}

#[test]
fn a_level_without_frames_and_a_free_link_changes_nothing() {
    for seed in 0..600 {
        let text = common::random_system(seed);
        // Above the disks such a policy gathers by places on them, above a level by files.
        if common::gathers(&text) {
            continue;
        }
        let one = common::run(&text);
        let two = common::run(&over_nothing(&text, "{}"));
        common::same_but_lower_levels(&one, &two, &text);
    }
}

#[test]
fn a_level_without_frames_costs_its_link() {
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = format!(
            "seed = {seed}\nworkload = {{generator = \"random\", blocks = {}, requests = 200, compute = \"exp:1ms\"}}\n\
             cache = {{blocks = {}}}\npolicy = {{name = \"demand\", replacement = \"{}\"}}\n\
             device = {{model = \"uniform\", fetch_time = \"3ms\"}}\n",
            rng.random_range(1..50),
            rng.random_range(1..30),
            REPLACEMENTS[rng.random_range(0..REPLACEMENTS.len())].name,
        );
        let one = common::run(&text);
        let two = common::run(&over_nothing(&text, "{alpha = \"700us\", beta = \"30us\"}"));
        assert_eq!(two.elapsed_ns, one.elapsed_ns + two.levels[1].link_ns, "{text}");
        assert_eq!(two.levels[1].link_ns, one.counts.fetches * 760_000, "{text}");
    }
}

/// Levels drawn at random: any read-ahead and replacement on each, any coordinator between them.
fn random_levels(rng: &mut ChaCha8Rng) -> String {
    let mut text = String::new();
    let tiers = rng.random_range(1..=3);
    for tier in 0..tiers {
        let rows: Vec<&PolicyRow> = read_aheads().filter(|row| tier == 0 || row.needs() != Needs::Future).collect();
        let policy = rows.get(rng.random_range(0..=rows.len())).map_or("demand", |row| row.name);
        let replacements: Vec<&str> = REPLACEMENTS.iter().filter(|row| !row.hinted).map(|row| row.name).collect();
        let replacement = replacements[rng.random_range(0..replacements.len())];
        let replacement = if policy == "sarc" { String::new() } else { format!("replacement = \"{replacement}\"\n") };
        let least = u32::from(tier == 0);
        text += &format!("[[level]]\nblocks = {}\npolicy = \"{policy}\"\n{replacement}", rng.random_range(least..60));
        if tier > 0 {
            let coordinator = COORDINATORS[rng.random_range(0..COORDINATORS.len())].name;
            let alpha = [0, 500, 6000][rng.random_range(0..3)];
            let beta = [0, 30][rng.random_range(0..2)];
            text +=
                &format!("coordinator = \"{coordinator}\"\nlink = {{alpha = \"{alpha}us\", beta = \"{beta}us\"}}\n");
        }
    }
    text
}

#[test]
fn random_levels_add_up() {
    for seed in 0..1500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let generator = ["sequential", "random", "loop", "zipf"][rng.random_range(0..4)];
        let blocks: u32 = rng.random_range(1..200);
        let length = if generator == "sequential" { "passes = 2" } else { "requests = 200" };
        let issue = ["blocks", "whole"][rng.random_range(0..2)];
        let levels = random_levels(&mut rng);
        let text = format!(
            "seed = {seed}\n[workload]\ngenerator = \"{generator}\"\nblocks = {blocks}\n{length}\nrequest_blocks = {}\n\
             compute = \"exp:2ms\"\nissue = \"{issue}\"\n{levels}\n[device]\nmodel = \"{}\"\ncount = {}\n\
             scheduler = \"{}\"\n",
            rng.random_range(1..=blocks.min(9)),
            ["hp97560", "seagate-cheetah-9lp"][rng.random_range(0..2)],
            rng.random_range(1..4),
            ["cscan", "deadline", "fcfs"][rng.random_range(0..3)],
        );
        let report = common::run(&text);
        adds_up(&report, &text);
        if seed % 25 == 0 {
            let again = serde_json::to_string(&common::run(&text)).expect("plain values");
            assert_eq!(serde_json::to_string(&report).expect("plain values"), again, "the same again\n{text}");
        }
    }
}

fn adds_up(report: &Report, text: &str) {
    for (at, level) in report.levels.iter().enumerate() {
        let (counts, prefetching) = (&level.counts, &level.prefetching);
        assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses, "level {at}\n{text}");
        assert_eq!(counts.fetches, counts.demand_fetches + counts.prefetches, "level {at}\n{text}");
        assert_eq!(counts.prefetches, counts.prefetches_used + counts.prefetches_wasted, "level {at}\n{text}");
        assert!(prefetching.silent_hits <= prefetching.bypass_blocks, "{text}");
        assert!(prefetching.bypass_blocks <= counts.references, "{text}");
        // A prefetch requested from above may still wait for a frame at the end; the process's own requests never do.
        assert!(counts.demand_fetches <= counts.misses, "{text}");
        assert!(at > 0 || counts.misses == counts.demand_fetches, "each miss is fetched once\n{text}");
    }
    for pair in report.levels.windows(2) {
        // Exactly what is fetched above is requested below.
        assert_eq!(pair[1].counts.references, pair[0].counts.fetches, "{text}");
    }
    let lowest = report.levels.last().expect("a level").counts.fetches;
    let read: u64 = report.devices.iter().map(|device| device.blocks).sum();
    assert!(read <= lowest, "nothing is read that was not asked for\n{text}");
    let parts = report.compute_ns + report.stall_ns + report.driver_ns + report.overhead_ns;
    assert_eq!(parts, report.elapsed_ns, "{text}");
}

/// A trace of (time in ms, process, block), reads of one block of 8 KiB.
fn timed(name: &str, records: &[(u64, u32, u64)]) -> common::Trace {
    let rows = records
        .iter()
        .map(|(time, pid, block)| format!("{}.{:03},R,{pid},1,{},8192,0\n", time / 1000, time % 1000, block * 8192));
    common::Trace::of_text(name, &format!("time,op,pid,file,offset,size,dur_us\n{}", rows.collect::<String>()))
}

const UNIFORM: &str = "device = {model = \"uniform\", fetch_time = \"2ms\"}\n";

#[test]
fn arrivals_by_the_clock_wait_for_nobody() {
    // 0 at 0: 0-2. 1 at 1: its disk is busy, 2-4, response 3. 0 again at 5: a hit. 2 at 10: 10-12.
    // Outstanding 0-4 and 10-12: six ms; idle 4-10.
    let trace = timed("open", &[(0, 1, 0), (1, 1, 1), (5, 1, 0), (10, 1, 2)]);
    let path = trace.path();
    let text = format!(
        "workload = {{trace = \"{path}\", arrival = \"open\", placement = \"address\"}}\ncache = {{blocks = 4}}\n\
         policy = \"demand\"\n{UNIFORM}"
    );
    let report = common::run(&text);
    assert_eq!((ms(report.elapsed_ns), ms(report.stall_ns), ms(report.idle_ns)), (12.0, 6.0, 6.0));
    assert_eq!((report.requests, report.counts.hits_ready, report.counts.misses), (4, 1, 3));
    assert_eq!((ms(report.response_ns.mean), ms(report.response_ns.max)), (1.75, 3.0));
    // At half the time between arrivals: 0-2, 2-4 (arrived at 0.5), a hit at 2.5, 5-7.
    let report = common::run(&text.replace("\"open\"", "\"open\", time_scale = 0.5"));
    assert_eq!((ms(report.elapsed_ns), ms(report.idle_ns)), (7.0, 1.0));
}

#[test]
fn processes_of_a_trace_run_side_by_side() {
    // Process 1 reads 0 and 1, process 2 reads 0 and 2; 1 ms of thought after each. Both miss 0 at 0, fetched once: the
    // second joins. At 3 process 1 asks for 1 (3-5), process 2 for 2 (5-7): done at 6 and at 8.
    let trace = timed("pids", &[(0, 1, 0), (1, 2, 0), (2, 1, 1), (3, 2, 2)]);
    let text = format!(
        "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"1ms\", placement = \"address\"}}\n\
         cache = {{blocks = 4}}\npolicy = \"demand\"\n{UNIFORM}",
        trace.path()
    );
    let report = common::run(&text);
    assert_eq!((ms(report.elapsed_ns), report.processes.len(), report.devices[0].requests), (8.0, 2, 3));
    let stalls: Vec<f64> = report.processes.iter().map(|process| ms(process.stall_ns)).collect();
    assert_eq!(stalls, [4.0, 6.0]);
    assert_eq!(ms(report.processes[0].idle_ns), 2.0);

    // A first level each, one below: process 2's miss of 0 joins below.
    let text = format!(
        "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"1ms\", placement = \"address\"}}\n\
         [[level]]\nblocks = 2\n[[level]]\nblocks = 4\nclients = 2\n[device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n",
        trace.path()
    );
    let report = common::run(&text);
    assert_eq!((ms(report.elapsed_ns), report.levels.len(), report.devices[0].requests), (8.0, 3, 3));
    let names: Vec<&str> = report.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["L1.1", "L1.2", "L2"]);
    assert_eq!((report.levels[2].counts.references, report.levels[2].counts.demand_fetches), (4, 3));
}

#[test]
fn requests_as_wholes_are_one_request_below() {
    // Four blocks of one request: block by block 2 ms each; as a whole one request of the disk.
    let trace = common::Trace::new("whole", &[(false, 0)], 4);
    let run = |issue: &str| {
        let rest = format!("cache = {{blocks = 8}}\npolicy = \"demand\"\n{UNIFORM}");
        let text = trace.scenario("as-read", &rest);
        let text = text.replace("writes = \"as-read\"", &format!("writes = \"as-read\", issue = \"{issue}\""));
        let report = common::run(&text);
        (ms(report.elapsed_ns), report.devices[0].requests, report.counts.misses)
    };
    // Think time is 1 ms after each block.
    assert_eq!((run("blocks"), run("whole")), ((12.0, 4, 4), (6.0, 1, 4)));
}

#[test]
fn contradictions_are_refused() {
    let refused = |text: &str, says: &str| {
        let error = common::try_run(common::table(text)).expect_err(says);
        assert!(error.contains(says), "{error:?} should contain {says:?}");
    };
    let lower = |lower: &str| {
        format!("workload = {{references = [\"A\"]}}\n[[level]]\nblocks = 1\n[[level]]\n{lower}\n[device]\nmodel = \"hp97560\"\n")
    };
    refused(
        &lower("blocks = 1\nreplacement = \"min\""),
        "level[1].policy: the future references of a lower level are not known",
    );
    refused(&lower("blocks = 1\npolicy = \"aggressive\""), "level[1].policy");
    refused(&lower("policy = \"ra\""), "level[1].size: is missing");
    refused(&lower("blocks = 1\nlink = {gamma = \"1ms\"}"), "level[1].link.gamma: unknown key");
    refused(&lower("blocks = 1\nname = \"L1\""), "level[1].name");
    refused(&lower("blocks = 1\ncoordinator = \"boss\""), "unknown coordinator \"boss\"");
    refused(
        &lower("blocks = 1\nseparate_prefetch = 1"),
        "level[1].separate_prefetch: 1 is a number; allowed: true or false",
    );
    refused(&lower("blocks = 1\nclients = 3"), "workload.processes: several first levels");
    refused(&lower("size = {level = \"L9\", ratio = 0.5}"), "level[1].size.level: unknown level above \"L9\"");
    let one = |more: &str| format!("workload = {{references = [\"A\"]{more}}}\npolicy = \"forestall\"\n");
    refused(&one(", processes = \"per-pid\""), "workload.processes");
    refused(
        "workload = {references = [\"A\"], arrival = \"open\"}\n",
        "workload.arrival: the workload carries no times",
    );
    refused(
        "workload = {references = [\"A\"]}\npolicy = {name = \"ra\", replacement = \"min\"}\n",
        "policy.replacement",
    );
    refused(
        "workload = {references = [\"A\"]}\npolicy = {name = \"ra\", degrees = 3}\n",
        "policy.degrees: unknown key",
    );
}

#[test]
fn a_scheduler_that_tells_processes_apart_is_told() {
    // Two processes read files far apart, block after block, with 1 ms of think time: waiting for each in turn saves
    // arm movements. A scheduler that cannot distinguish them sees no sequence to wait for.
    let records: Vec<(u64, u32, u64)> =
        (0..400u64).map(|at| (at, (at % 2) as u32 + 1, at / 2 + at % 2 * 100_000)).collect();
    let trace = timed("apart", &records);
    let run = |scheduler: &str| {
        let text = format!(
            "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"1ms\", placement = \"address\"}}\n\
             cache = {{blocks = 64}}\npolicy = \"demand\"\n\
             device = {{model = \"hp97560\", scheduler = \"{scheduler}\"}}\n",
            trace.path()
        );
        common::run(&text).elapsed_ns
    };
    let (told, blind) = (run("anticipatory"), run("anticipatory-blind"));
    assert!(2 * told < blind, "{told} and {blind}");
}

#[test]
fn writes_arrive_by_the_clock_too() {
    // Write 0 at 0: no fetch, on its disk 0-2. Read 0 at 1: a hit, at once. Write 1 at 3: 3-5. Read 2 at 4: 5-7.
    let rows = [(0, "W", 0), (1, "R", 0), (3, "W", 1), (4, "R", 2)]
        .map(|(time, op, block): (u64, &str, u64)| format!("0.00{time},{op},1,1,{},8192,0\n", block * 8192));
    let trace =
        common::Trace::of_text("open-writes", &format!("time,op,pid,file,offset,size,dur_us\n{}", rows.concat()));
    let run = |writes: &str| {
        common::run(&format!(
            "workload = {{trace = \"{}\", arrival = \"open\", placement = \"address\", writes = \"{writes}\"}}\n\
             cache = {{blocks = 4}}\npolicy = \"demand\"\n{UNIFORM}",
            trace.path()
        ))
    };
    // Responses 2, 0, 2 and 3 ms; idle 2-3.
    let through = run("through");
    assert_eq!((ms(through.elapsed_ns), ms(through.idle_ns), ms(through.response_ns.mean)), (7.0, 1.0, 1.75));
    assert_eq!((through.counts.blocks_written, through.counts.write_misses, through.requests), (2, 2, 4));
    // No process waits for a later write: only the read of 2 takes time, 4-6.
    let back = run("back");
    assert_eq!((ms(back.elapsed_ns), ms(back.idle_ns), ms(back.response_ns.mean)), (6.0, 4.0, 0.5));
    assert_eq!((back.counts.blocks_written, back.levels[0].dirty_blocks), (0, 2));
}
