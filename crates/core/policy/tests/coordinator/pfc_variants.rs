//! Effects of each variant of a reading, of each action alone, and of contexts, worked by hand.

use headstart_policy::coordinator::{Actions, Average, Contexts, Coordinator, Pfc, PfcSetting, Share, Start, Update};
use headstart_policy::readahead::Asked;
use headstart_types::Nanos;

use crate::common::{Holds, Lower};

fn published() -> PfcSetting {
    PfcSetting::published(60)
}

#[test]
fn large_at_half_of_the_average() {
    for (large, readmore) in [(1.0, 4), (0.5, 0)] {
        let large = Share::try_new(large).unwrap();
        let mut lower = Lower::new(PfcSetting { large, update: Update::Miss, ..published() });
        lower.ask(0..=3);
        assert_eq!(lower.ask(4..=7), (2, 4));
        lower.full = true;
        lower.cache.insert(8);
        // The average is 12 / 3: 4 is not larger than it, but larger than its half.
        assert_eq!(lower.ask(8..=11), (3, readmore));
    }
}

#[test]
fn the_ahead_test_from_the_next_block() {
    for (ahead, plan) in [(Start::Last, (1, 0)), (Start::Next, (4, 0))] {
        let mut lower = Lower::new(PfcSetting { ahead, ..published() });
        lower.cache.extend(4..=7); // all that is ahead, but not block 3 itself
        assert_eq!(lower.ask(0..=3), plan);
        assert_eq!(lower.lengths(), (u64::from(plan.0), 0));
    }
    // Both end at end_u + req_size.
    let mut lower = Lower::new(PfcSetting { ahead: Start::Next, ..published() });
    lower.cache.extend(4..=6);
    assert_eq!(lower.ask(0..=3), (1, 0));
}

#[test]
fn the_window_from_the_next_block() {
    for (window, again, names) in [(Start::Last, 1, 2), (Start::Next, 0, 1)] {
        let mut lower = Lower::new(PfcSetting { window, ..published() });
        lower.ask(10..=10); // the window: 10 to 11, or 11 alone
        assert_eq!(lower.queued(), (1, names));
        // 10 again: in B, bl = 0. With the window as printed a second read of a block looks like a sequential one.
        assert_eq!(lower.ask(10..=10), (0, again));
        // Either way 11, which was in the window, continues.
        let mut lower = Lower::new(PfcSetting { window, ..published() });
        lower.ask(10..=10);
        assert_eq!(lower.ask(11..=11), (1, 1));
    }
}

#[test]
fn readmore_updated_whatever_the_cache() {
    for (update, readmore) in [(Update::Miss, [0, 0, 1]), (Update::Always, [1, 0, 0])] {
        let mut lower = Lower::new(PfcSetting { update, ..published() });
        lower.ask(0..=0); // R = [0, 1]
        lower.cache.extend([1, 50]);
        let cached_and_in_queue = lower.ask(1..=1).1;
        let mut lower = Lower::new(PfcSetting { update, ..published() });
        lower.ask(0..=0);
        lower.cache.insert(50);
        let cached_only = lower.ask(50..=50).1;
        let mut lower = Lower::new(PfcSetting { update, ..published() });
        lower.ask(0..=0);
        assert_eq!(lower.ask(1..=1).1, 1);
        lower.cache.insert(50);
        let cached_only_after_one = lower.ask(50..=50).1; // stays 1, or is reset
        assert_eq!([cached_and_in_queue, cached_only, cached_only_after_one], readmore);
    }
}

#[test]
fn one_action_alone_leaves_the_other_length_and_queue_empty() {
    for (actions, plans, queued) in [
        (Actions::Both, [(1, 0), (2, 4), (3, 4), (4, 0)], (6, 6)),
        (Actions::Bypass, [(1, 0), (2, 0), (3, 0), (4, 0)], (6, 0)),
        (Actions::Readmore, [(0, 0), (0, 4), (0, 4), (0, 0)], (0, 6)),
    ] {
        // The sequential reader of `pfc_by_hand`.
        let mut lower = Lower::new(PfcSetting { actions, ..published() });
        let mut got = vec![lower.ask(100..=103), lower.ask(104..=107)];
        lower.cache.extend(106..=111);
        got.push(lower.ask(108..=111));
        lower.cache.extend(112..=119);
        got.push(lower.ask(112..=115));
        assert_eq!(got, plans, "{actions:?}");
        assert_eq!(lower.queued(), queued, "{actions:?}");
    }
}

#[test]
fn contexts_have_lengths_averages_and_queues_of_their_own() {
    let ask = |pfc: &mut Pfc, file, client, first, count| {
        let asked = Asked { file, first, count, client, ends_inside: false };
        let plan = pfc.plan(Nanos(0), &asked, &Holds::default(), false);
        ((plan.bypass, plan.readmore), pfc.state(&asked).average)
    };
    for context in [Contexts::File, Contexts::Client] {
        let name = |which: u32| if context == Contexts::File { (which, 7) } else { (7, which) };
        let mut pfc = Pfc::new(PfcSetting { context, contexts: 2, ..published() });
        let mut ask = |which, first, count| ask(&mut pfc, name(which).0, name(which).1, first, count);
        let mean = |blocks, requests| Average { blocks, requests };
        assert_eq!(ask(1, 0, 4), ((1, 0), mean(4, 1)));
        assert_eq!(ask(2, 50, 20), ((1, 0), mean(20, 1))); // above twice the other's average
        assert_eq!(ask(1, 4, 4), ((2, 4), mean(8, 2))); // its window is still there: 20 names did not push it out
        assert_eq!(ask(2, 70, 20), ((2, 20), mean(40, 2)));
        assert_eq!(ask(3, 0, 1), ((1, 0), mean(1, 1))); // a third: the first is forgotten, asked for longest ago
        assert_eq!(ask(2, 110, 20), ((3, 20), mean(60, 3))); // the window, the tail of 109 to 129: 124 to 129
        assert_eq!(ask(1, 8, 4), ((1, 0), mean(4, 1))); // begins anew
        assert_eq!(
            pfc.state(&Asked { file: 9, first: 0, count: 1, client: 9, ends_inside: false }),
            Default::default()
        );
    }
    // In one context the two streams share an average: 20 > 2 * 4 is not taken in.
    let mut pfc = Pfc::new(published());
    ask(&mut pfc, 1, 7, 0, 4);
    assert_eq!(ask(&mut pfc, 2, 7, 50, 20).1, Average { blocks: 4, requests: 1 });
}
