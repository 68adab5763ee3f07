//! Sanity checks: repetition is learned, random references are not prefetched for, and memory is bounded.

use headstart_policy::readahead::{Asked, ReadAhead};
use headstart_policy::registry::{policy, POLICIES};

use crate::common::{build, named, Level};

/// Numbers below `bound` that repeat only by chance.
fn random(count: usize, bound: u64) -> Vec<u64> {
    let mut state = 1u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % bound
    };
    (0..count).map(next).collect()
}

/// Misses and prefetches of `blocks` in a cache of `frames`.
fn run(predictor: &mut dyn ReadAhead, frames: usize, blocks: impl IntoIterator<Item = u64>) -> (u64, u64) {
    let mut level = Level::new(frames);
    for block in blocks {
        level.read(predictor, block, 1);
    }
    (level.missed, level.prefetched)
}

#[test]
fn a_repeated_sequence_is_learned() {
    // 2,000 blocks in no order, four times over, in a cache of 500: without prefetching every reference misses.
    let order = random(2000, 1 << 40);
    let passes = |count: usize| std::iter::repeat_n(order.clone(), count).flatten();
    for (name, keys, allowed) in [
        ("last-successor", "", 2100),
        ("stable-successor", "", 4100),
        ("probability-graph", "", 2100),
        ("ppm", "entries = 1000000", 2100),
        ("mithril", "mining = 1000", 6500),
    ] {
        let (missed, prefetched) = run(&mut *named(name, keys), 500, passes(4));
        assert!(missed <= allowed && missed + prefetched >= 8000, "{name}: {missed} missed, {prefetched} prefetched");
    }
    // The others look at distances: a stride, and portions.
    for name in ["leap", "patterns"] {
        let blocks = (0..2000).map(|number| number * if name == "leap" { 7 } else { 1 });
        let (missed, prefetched) = run(&mut *named(name, ""), 500, blocks);
        assert!(missed < 600 && prefetched < 2100, "{name}: {missed} missed, {prefetched} prefetched");
    }
}

#[test]
fn a_random_stream_issues_little() {
    for row in POLICIES.iter().filter(|row| row.is_predictor()) {
        let (missed, prefetched) = run(&mut *build(row, "", 500), 500, random(20_000, 1 << 40));
        assert!(missed >= 19_900 && prefetched <= 100, "{}: {missed} missed, {prefetched} prefetched", row.name);
    }
}

#[test]
fn memory_stays_within_its_key() {
    // The partitions of contexts that never repeat have one node each.
    for (name, keys, part) in
        [("last-successor", "", 2), ("stable-successor", "", 2), ("probability-graph", "", 2), ("ppm", "nodes = 4", 4)]
    {
        for limit in [40usize, 1000] {
            let mut predictor = named(name, &format!("{keys}\nentries = {limit}"));
            let mut level = Level::new(100);
            for block in random(5000, 3000) {
                level.read(&mut *predictor, block, 1);
                assert!(predictor.remembered() <= limit, "{name}: {}", predictor.remembered());
            }
            assert!(predictor.remembered() >= limit / part, "{name}: {}", predictor.remembered());
        }
    }
}

#[test]
fn mithrils_tables_stay_within_their_share() {
    // A tenth of 1,000 blocks of 64 KiB, at 12 bytes and more an entry.
    let mut predictor = build(policy("mithril").unwrap(), "block_bytes = 65536\nrecord = \"each\"", 1000);
    let mut level = Level::new(1000);
    for block in random(100_000, 5000) {
        level.read(&mut *predictor, block, 1);
        assert!(predictor.remembered() < 6_553_600 / 12);
    }
    assert!(predictor.remembered() > 100);
}

#[test]
fn clients_do_not_hide_each_others_successors() {
    let mut predictor = named("last-successor", "");
    let mut level = Level::new(10);
    let mut ask = |client: u32, first: u64| {
        level.ask(&mut *predictor, Asked { file: 0, first, count: 1, client, ends_inside: false })
    };
    for block in 0..5 {
        ask(0, block * 10);
        ask(1, 1000 - block * 10);
    }
    let runs = ask(0, 10);
    assert_eq!(runs.iter().map(|run| run.first).collect::<Vec<_>>(), [20]);
}
