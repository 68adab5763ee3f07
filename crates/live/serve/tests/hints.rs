//! Hints on a virtual clock: what the second boot of an image gains from the trace of the first, and what wrong hints
//! cost.

mod common;

use std::ops::Range;

use common::{numbered, Shared, World, PAGE};
use headstart_hints::{Expected, FollowReport, Prepared};
use headstart_policy::registry::policy;
use headstart_serve::work::Op;
use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

const PAGES: u64 = 32_768;
const LEVEL: &str = "blocks = 2048\npolicy = \"linux\"";

/// The reads of a boot: short runs at random places. Each page is read once, since a guest has its own cache.
fn boot(seed: u64, requests: usize) -> Vec<Range<u64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut read = vec![false; PAGES as usize];
    let mut runs = Vec::new();
    while runs.len() < requests {
        let first = random.random_range(0..PAGES - 8);
        let run = first..first + random.random_range(1..8);
        if run.clone().all(|page| !std::mem::replace(&mut read[page as usize], true)) {
            runs.push(run);
        }
    }
    runs
}

fn hints(pages: &[Range<u64>]) -> Prepared {
    let expected = Expected {
        row: policy("just-in-time").expect("it is registered"),
        keys: Table::new(),
        pages: pages.to_vec(),
        elapsed: Nanos::from_millis(2 * pages.len() as u64),
        page_bytes: PAGE,
        budget_pages: 1_024,
    };
    Prepared::try_new(expected).expect("it works from hints")
}

/// A boot's duration, its reads of the backing, and its hint report.
struct Booted {
    elapsed: Nanos,
    reads: u64,
    bytes: u64,
    hints: Option<FollowReport>,
}

/// Runs a boot: each request comes 2 ms after the previous answer, from storage that takes 25 ms.
fn run(pages: &[Range<u64>], hints: Option<Prepared>) -> Booted {
    let shared = Shared::default();
    shared.lock().bytes = numbered(PAGES, 0);
    let mut world = World::before(LEVEL, shared, None, hints);
    world.takes = |_| Nanos::from_millis(25);
    for (id, run) in (0..).zip(pages) {
        let (from, length) = (run.start * PAGE, (run.end - run.start) * PAGE);
        world.ask(id, from, length as u32, Op::Read);
        world.instant();
        while !world.answers.contains_key(&id) {
            assert!(world.step(), "nothing brings the answer to {id}");
        }
        let answer = world.answers.remove(&id).expect("it is there");
        let expected = from as usize..(from + length) as usize;
        assert!(common::data(&answer) == world.memory().bytes[expected], "request {id}");
        world.pass(Nanos::from_millis(2));
    }
    let totals = world.conductor.statistics().totals.clone();
    let (elapsed, hints) = (world.now, world.conductor.hints());
    while world.step() {}
    assert!(world.conductor.is_idle());
    let reads = totals.backing_demand_reads + totals.backing_prefetch_reads;
    Booted { elapsed, reads, bytes: totals.backing_read_bytes, hints }
}

#[test]
fn the_second_boot_waits_for_next_to_nothing() {
    let pages = boot(1, 600);
    let (first, second) = (run(&pages, None), run(&pages, Some(hints(&pages))));
    let think = Nanos::from_millis(2 * 600);
    let waited = |booted: &Booted| booted.elapsed.0 - think.0;
    assert!(waited(&first) > 8 * waited(&second), "{} {}", first.elapsed, second.elapsed);
    let report = second.hints.expect("it has hints");
    assert_eq!(report.stopped, None);
    assert!(report.used_bytes * 10 > report.prefetched_bytes * 9, "{report:?}");
    assert!(second.reads * 100 <= first.reads * 103, "{} {}", second.reads, first.reads);
}

#[test]
fn nearly_the_same_boot_gains_nearly_as_much() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let hinted = boot(2, 600);
    // A tenth of the requests comes a little earlier or later, and every twentieth is a different one.
    let mut pages = hinted.clone();
    for at in 0..pages.len() - 16 {
        if random.random_range(0..10) == 0 {
            pages.swap(at, at + random.random_range(1..16));
        }
    }
    let others = boot(3, 30);
    for (at, other) in others.into_iter().enumerate() {
        pages[at * 20 + 10] = other;
    }
    let (first, second) = (run(&pages, None), run(&pages, Some(hints(&hinted))));
    let report = second.hints.expect("it has hints");
    assert!(first.elapsed.0 > 2 * second.elapsed.0, "{} {} {report:?}", first.elapsed, second.elapsed);
    assert_eq!(report.stopped, None);
}

/// Checks that wrong hints do not slow down the boot, and cost at most 3 % more reads.
fn costs_little(pages: &[Range<u64>], wrong: &[Range<u64>]) -> FollowReport {
    let (without, with) = (run(pages, None), run(pages, Some(hints(wrong))));
    let report = with.hints.expect("it has hints");
    println!(
        "{} {} reads {} {} bytes {} {} {report:?}",
        without.elapsed, with.elapsed, without.reads, with.reads, without.bytes, with.bytes
    );
    assert!(with.elapsed.0 <= without.elapsed.0 + without.elapsed.0 / 100, "{} {}", with.elapsed, without.elapsed);
    assert!(with.reads * 100 <= without.reads * 103, "{} {}", with.reads, without.reads);
    report
}

#[test]
fn wrong_hints_cost_next_to_nothing() {
    let (pages, others) = (boot(4, 1_500), boot(5, 1_500));
    // Hints of a different image.
    let report = costs_little(&pages, &others);
    assert_eq!(report.stopped.as_deref(), Some("clients do not read what the hints say"), "{report:?}");
    // The same start, then different requests.
    for same in [10, 50, 300] {
        let hinted: Vec<Range<u64>> = pages[..same].iter().chain(&others[same..]).cloned().collect();
        costs_little(&pages, &hinted);
    }
}
