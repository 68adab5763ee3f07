//! The machine with commands that read in the recorded order, in another order, or something else, on fast and slow
//! disks.

use headstart_policy::registry::{policy, POLICIES};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};
use proptest::prelude::*;
use toml::Table;

use super::list::{HintList, HintedFile, HintedRange};
use super::machine::{Machine, Setting};
use super::universe::{HintedSpace, Universe};

/// One file of `pages` pages, the first `metadata` of which belong to a device.
fn universe(metadata: u32, pages: u32) -> Universe {
    let file = |is_device: bool| HintedFile {
        path: "/x".into(),
        identity: (u64::from(!is_device), 7),
        is_device,
        size: None,
        mtime_ns: None,
        came_pages: 0,
    };
    let range = |file, count| HintedRange { file, count, ..HintedRange::default() };
    // Data first in the recording, and a part of it again: each page is numbered once, in the order of need.
    let ranges = vec![range(1, pages - metadata), range(0, metadata), range(1, 1)];
    Universe::new(
        &HintList { files: vec![file(true), file(false)], ranges, ..HintList::default() },
        vec![Disk(0); 2],
        &[],
    )
}

fn machine(name: &str, pages: u32, frames: (u32, u32)) -> Machine {
    let setting = Setting {
        row: policy(name).expect("it is in the registry"),
        keys: Table::new(),
        frames_min: frames.0,
        frames_max: frames.1,
        growth: 4,
        disks: 1,
        service: Nanos(1_000_000),
        transfer: Nanos(50_000),
        concurrency: 1,
        think: Nanos(1_000),
    };
    Machine::try_new(&setting, universe(0, pages)).expect("it works with shared hints")
}

/// The hinted policies that work with shared hints.
fn names() -> Vec<&'static str> {
    let shared = |name: &&str| !["reverse-aggressive", "optimum"].contains(name);
    POLICIES.iter().filter(|row| row.is_hinted()).map(|row| row.name).filter(shared).collect()
}

#[test]
fn each_page_is_numbered_once_in_the_order_of_need() {
    let universe = universe(3, 10);
    assert_eq!(universe.blocks(), 10);
    assert_eq!([0, 6, 7, 9].map(|block| universe.place(Block(block))), [(1, 0), (1, 6), (0, 0), (0, 2)]);
    assert_eq!([6, 7].map(|block| universe.is_metadata(Block(block))), [false, true]);
    assert_eq!(universe.known(0, 2), Some(Block(9)));
    assert_eq!((universe.known(1, 7), universe.file((1, 7)), universe.file((2, 7))), (None, Some(1), None));
}

#[test]
fn frames_that_are_allowed_are_used_though_nothing_has_been() {
    for name in names() {
        let mut machine = machine(name, 1000, (10, 1000));
        let mut orders = Vec::new();
        let mut ordered = 0;
        for at in 1..20 {
            machine.turn(Nanos(at * 10_000_000), &mut orders);
            ordered += orders.len();
            orders.drain(..).for_each(|block| machine.fetched(block, Some(Nanos(5))));
        }
        assert_eq!((ordered, machine.frames(), machine.is_full()), (10, 10, true), "{name}");
        machine.allow(100);
        for at in 20..40 {
            machine.turn(Nanos(at * 10_000_000), &mut orders);
            ordered += orders.len();
            orders.drain(..).for_each(|block| machine.fetched(block, Some(Nanos(5))));
        }
        // At most as far as fixed horizon looks ahead: the command has not begun.
        assert!(machine.frames() == 110 && ordered >= 60, "{name}: {ordered}");
    }
}

#[test]
fn trust_grows_with_use_up_to_the_budget() {
    let mut machine = machine("aggressive", 1000, (10, 60));
    let mut orders = Vec::new();
    machine.turn(Nanos(1), &mut orders);
    assert_eq!(orders, (0..10).map(Block).collect::<Vec<_>>());
    orders.drain(..).for_each(|block| machine.fetched(block, Some(Nanos(5))));
    machine.turn(Nanos(10), &mut orders);
    assert!(orders.is_empty() && machine.is_full(), "nothing has been used");
    machine.observe(Nanos(11), Block(0));
    machine.turn(Nanos(11), &mut orders);
    // One page used: four more frames, and its own.
    assert_eq!((machine.frames(), orders.len()), (14, 5));
    (1..50).for_each(|block| machine.observe(Nanos(12), Block(block)));
    orders.drain(..).for_each(|block| machine.fetched(block, Some(Nanos(5))));
    machine.turn(Nanos(13), &mut orders);
    assert_eq!(machine.frames(), 60);
}

#[test]
fn what_was_there_already_is_no_prefetch() {
    let mut machine = machine("aggressive", 4, (4, 4));
    let mut orders = Vec::new();
    machine.turn(Nanos(1), &mut orders);
    machine.fetched(Block(0), None);
    (1..4).for_each(|block| machine.fetched(Block(block), Some(Nanos(1))));
    machine.turn(Nanos(2), &mut orders);
    (0..3).for_each(|block| machine.observe(Nanos(3), Block(block)));
    let counts = machine.counts();
    assert_eq!((counts.prefetches, counts.prefetches_used, counts.hits_ready), (3, 2, 3));
}

#[test]
fn what_the_command_has_read_itself_in_the_meantime_is_not_used() {
    let mut machine = machine("aggressive", 4, (4, 4));
    let mut orders = Vec::new();
    machine.turn(Nanos(1), &mut orders);
    assert_eq!(orders.len(), 4);
    // The command reaches three pages before the disk does; when the disk looks, it has read two of them itself.
    (0..2).for_each(|block| machine.observe(Nanos(2), Block(block)));
    machine.fetched(Block(2), None);
    machine.observe(Nanos(2), Block(2));
    machine.fetched(Block(1), None);
    assert_eq!((machine.used(), machine.used_late()), (0, 0), "no disk has read any of them yet");
    [0, 3].iter().for_each(|block| machine.fetched(Block(*block), Some(Nanos(1))));
    machine.turn(Nanos(3), &mut orders);
    assert_eq!((machine.used(), machine.used_late()), (1, 1));
    machine.observe(Nanos(4), Block(3));
    assert_eq!((machine.used(), machine.used_late()), (2, 1));
}

#[test]
fn a_block_that_is_assumed_used_and_then_referenced_is_overtaken_once() {
    let mut machine = machine("aggressive", 20, (4, 20));
    (10..20).for_each(|block| machine.assume_used(Nanos(1), Block(block)));
    // The command also reads each of them itself.
    (10..20).chain(0..10).for_each(|block| machine.observe(Nanos(2), Block(block)));
    assert!(machine.is_over() && machine.passed_unused() == 0);
}

#[test]
fn what_has_been_overtaken_is_skipped() {
    let mut machine = machine("fixed-horizon", 2000, (100, 100));
    let mut orders = Vec::new();
    machine.turn(Nanos(1), &mut orders);
    let first = orders.len();
    orders.drain(..).for_each(|block| machine.fetched(block, Some(Nanos(1))));
    // The command starts at page 500.
    (500..1000).for_each(|block| machine.observe(Nanos(2), Block(block)));
    machine.turn(Nanos(3), &mut orders);
    assert_eq!(machine.passed_unused(), first as u64, "all that had been prefetched");
    assert!(orders.iter().any(|block| block.0 >= 1000), "it goes on where the command is: {orders:?}");
    assert!(!machine.is_over());
}

#[test]
fn what_is_ordered_and_overtaken_is_unused_only_if_it_has_been_read() {
    let mut machine = machine("fixed-horizon", 2000, (100, 100));
    let mut orders = Vec::new();
    machine.turn(Nanos(1), &mut orders);
    assert!(orders.len() > 60, "{orders:?}");
    // Of the first pages, some are there already, some come at once, some after the command has passed them, and some
    // never.
    (0..20).for_each(|block| machine.fetched(Block(block), None));
    (20..30).for_each(|block| machine.fetched(Block(block), Some(Nanos(1))));
    (500..1000).for_each(|block| machine.observe(Nanos(2), Block(block)));
    assert_eq!(machine.passed_unused(), 10);
    (30..35).for_each(|block| machine.fetched(Block(block), Some(Nanos(1))));
    assert_eq!(machine.passed_unused(), 15);
    // The command returns.
    [5, 25, 33, 50].iter().for_each(|block| machine.observe(Nanos(3), Block(*block)));
    machine.fetched(Block(50), Some(Nanos(1)));
    assert_eq!(machine.passed_unused(), 13);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_bound_what_is_unused(
        pages in 1u32..600,
        frames in (1u32..50, 1u32..200),
        order in prop::collection::vec((any::<u16>(), 0u8..4), 0..900),
        lag in 0usize..40,
    ) {
        for name in names() {
            let frames = (frames.0.min(frames.1), frames.1);
            let mut machine = machine(name, pages, frames);
            let (mut orders, mut at, mut now) = (Vec::new(), 0, 0);
            let mut ordered = vec![0; pages as usize];
            for (jump, kind) in &order {
                now += 10;
                let before = orders.len();
                machine.turn(Nanos(now), &mut orders);
                orders[before..].iter().for_each(|block| ordered[block.index()] += 1);
                prop_assert!(ordered.iter().all(|times| *times <= 1), "{name}: each page once");
                let done = orders.len().saturating_sub(lag);
                for (index, block) in orders.drain(..done).enumerate() {
                    machine.fetched(block, (index % 7 != 3).then_some(Nanos(3)));
                }
                // Mostly in order, sometimes anywhere, sometimes ahead.
                let block = match kind {
                    0 => u32::from(*jump) % pages,
                    1 => (at + u32::from(*jump) % 300) % pages,
                    _ => at % pages,
                };
                at = block + 1;
                machine.observe(Nanos(now), Block(block));
                let counts = machine.counts();
                let unused = counts.prefetches - counts.prefetches_used;
                // Skipped pages may be evicted; from then on they count as evicted unused.
                prop_assert!(unused <= u64::from(machine.frames()) + counts.evictions, "{name}");
                prop_assert!(machine.frames() <= frames.1.max(frames.0));
                let read = (0..pages).filter(|block| machine.has_read(Block(*block))).count() as u64;
                prop_assert!(machine.used_late() <= machine.used() && machine.used() <= read, "{name}");
            }
        }
    }
}
