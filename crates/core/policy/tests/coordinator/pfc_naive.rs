//! PFC against its naive second implementation: random requests, random cache contents, every variant.

use std::cell::Cell;

use headstart_policy::coordinator::{Actions, Contexts, Coordinator, Pfc, PfcSetting, Plan, Share, Start, Update};
use headstart_policy::readahead::Asked;
use headstart_types::Nanos;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::common::Holds;
use crate::naive::{Naive, Outcome, Ways, WAYS};

/// A request, and what the lower cache holds at that time.
#[derive(Debug, Clone)]
struct Step {
    file: u32,
    client: u32,
    from: From,
    count: u32,
    /// Cached ranges: begin relative to the request, length.
    cached: Vec<(i64, u64)>,
    full: bool,
    /// Number of repetitions.
    times: usize,
}

#[derive(Debug, Clone, Copy)]
enum From {
    /// Starts this far after the end of the file's last request.
    On(i64),
    At(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let from = prop_oneof![
        4 => Just(From::On(0)),
        2 => (-12i64..12).prop_map(From::On),
        3 => (0u64..40).prop_map(From::At),
        1 => (u64::MAX - 40..=u64::MAX).prop_map(From::At),
        1 => any::<u64>().prop_map(From::At),
    ];
    let count = prop_oneof![6 => 1u32..6, 2 => 1u32..25, 1 => 1u32..120];
    let cached = prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec((-4i64..30, 0u64..8), 1..4),
        1 => (-30i64..4, 0u64..60).prop_map(|range| vec![range]),
    ];
    let times = prop_oneof![8 => Just(1usize), 1 => 2usize..8];
    (0u32..3, 0u32..3, from, count, cached, any::<bool>(), times).prop_map(
        |(file, client, from, count, cached, full, times)| Step { file, client, from, count, cached, full, times },
    )
}

fn setting() -> impl Strategy<Value = (PfcSetting, (i128, i128))> {
    let start = || prop_oneof![Just(Start::Last), Just(Start::Next)];
    let large = prop_oneof![Just((1, 1)), Just((1, 2)), Just((0, 1)), Just((3, 2))];
    let update = prop_oneof![Just(Update::Miss), Just(Update::Always)];
    let actions = prop_oneof![2 => Just(Actions::Both), 1 => Just(Actions::Bypass), 1 => Just(Actions::Readmore)];
    let context = prop_oneof![2 => Just(Contexts::One), 1 => Just(Contexts::File), 1 => Just(Contexts::Client)];
    let queue = prop_oneof![1u32..10, 1u32..60];
    (large, start(), start(), update, actions, context, queue, 1u32..4).prop_map(
        |(large, ahead, window, update, actions, context, queue_blocks, contexts)| {
            let share = Share::try_new(large.0 as f64 / large.1 as f64).expect("in range");
            let setting = PfcSetting { queue_blocks, large: share, ahead, window, update, actions, context, contexts };
            (setting, large)
        },
    )
}

fn outcome(pfc: &mut Pfc, asked: &Asked, cached: &Holds, full: bool) -> Outcome {
    let Plan { bypass, readmore, .. } = pfc.plan(Nanos(0), asked, cached, full);
    let state = pfc.state(asked);
    Outcome {
        plan: (bypass, readmore),
        lengths: (state.bypass_length.into(), state.readmore_length.into()),
        average: (state.average.blocks.into(), state.average.requests as usize),
        queued: (state.bypass_queue, state.readmore_queue),
    }
}

fn compare(setting: PfcSetting, large: (i128, i128), steps: &[Step], ways: &Ways) -> Result<(), TestCaseError> {
    let (mut pfc, mut naive) = (Pfc::new(setting), Naive::new(setting, large));
    let mut ends = [0u64; 3];
    for (number, step) in steps.iter().enumerate() {
        let first = match step.from {
            From::On(gap) => ends[step.file as usize].saturating_add_signed(gap),
            From::At(first) => first,
        };
        let asked = Asked { file: step.file, first, count: step.count, client: step.client, ends_inside: false };
        ends[step.file as usize] = asked.end();
        let range = |(offset, length): &(i64, u64)| {
            let begin = first.saturating_add_signed(*offset);
            begin..=begin.saturating_add(*length)
        };
        let cached = Holds(step.cached.iter().map(range).collect());
        for _ in 0..step.times {
            let got = outcome(&mut pfc, &asked, &cached, step.full);
            prop_assert!(got.plan.0 <= step.count);
            prop_assert!(got.queued.0.max(got.queued.1) <= setting.queue_blocks as usize);
            let wanted = naive.ask(&asked, &cached, step.full, ways);
            prop_assert_eq!(got, wanted, "request {}: {:?}", number, asked);
        }
    }
    Ok(())
}

#[test]
fn agrees_with_the_naive_one_on_every_way_through() {
    let ways: Ways = WAYS.iter().map(|way| (*way, Cell::new(0))).collect();
    let requests = Cell::new(0);
    let config = ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() };
    // Of one size in every other case: then requests are as large as the average, to the block.
    let one_size = prop_oneof![Just(None), (1u32..6).prop_map(Some)];
    let case = (setting(), one_size, prop::collection::vec(step(), 1..160));
    TestRunner::new(config)
        .run(&case, |((setting, large), one_size, mut steps)| {
            steps.iter_mut().for_each(|step| step.count = one_size.unwrap_or(step.count));
            requests.set(requests.get() + steps.iter().map(|step| step.times).sum::<usize>());
            compare(setting, large, &steps, &ways)
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(requests.get() >= 50_000, "only {} requests", requests.get());
    for (way, taken) in &ways {
        assert!(taken.get() >= 500, "{way}: taken {} times in {} requests", taken.get(), requests.get());
    }
}

#[test]
fn the_largest_requests_and_the_last_blocks_are_survived() {
    // Every lookup is short: the first block requested is cached, the next one is not.
    let mut pfc = Pfc::new(PfcSetting::published(20));
    for first in [0, 1, u64::MAX - 1, u64::MAX, u64::MAX - u64::from(u32::MAX), 1 << 63] {
        for (count, full) in [(u32::MAX, true), (1, false), (u32::MAX - 1, true)] {
            let asked = Asked { file: u32::MAX, first, count, client: u32::MAX, ends_inside: false };
            let plan = pfc.plan(Nanos(u64::MAX), &asked, &Holds(vec![first..=first]), full);
            assert!(plan.bypass <= count);
            let state = pfc.state(&asked);
            assert!(state.bypass_queue <= 2 && state.readmore_queue <= 2);
        }
    }
}
