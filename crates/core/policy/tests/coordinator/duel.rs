//! `duel` above a level whose response times are set by the test: it stays native until the quiet way proves faster,
//! withdraws, and never spends more than its budget on trials.

use headstart_policy::coordinator::{Coordinator, Duel, Plan};
use headstart_policy::readahead::Asked;
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::Holds;

const MS: u64 = 1_000_000;

/// A client that requests a new region each time, and a level whose response times depend on the plan.
struct Client {
    duel: Duel,
    now: u64,
    asked: u64,
    total_ns: u64,
    quiet: u64,
}

impl Client {
    fn new(frames: u32) -> Self {
        Self { duel: Duel::new(frames), now: 0, asked: 0, total_ns: 0, quiet: 0 }
    }

    /// One request of `count` blocks, answered after `native_ns` or `quiet_ns`; returns its plan.
    fn ask(&mut self, count: u32, native_ns: u64, quiet_ns: u64) -> Plan {
        let asked = Asked { file: 0, first: self.asked * 64, count, client: 7, ends_inside: false };
        self.asked += 1;
        let since = Nanos(self.now);
        let plan = self.duel.plan(since, &asked, &Holds::default(), true);
        let quiet = plan != Plan::default();
        let took = if quiet { quiet_ns } else { native_ns };
        self.now += took;
        self.total_ns += took;
        self.quiet += u64::from(quiet);
        self.duel.answered(Nanos(self.now), since, &asked);
        plan
    }

    fn serves_quietly(&self) -> bool {
        self.duel.quiet_serves(7)
    }
}

#[test]
fn the_faster_way_serves_and_withdraws_when_it_becomes_the_slower_one() {
    let mut client = Client::new(1000);
    while client.quiet < 32 {
        assert!(!client.serves_quietly(), "decided on {} trials", client.quiet);
        client.ask(4, 10 * MS, 5 * MS);
    }
    // One region in sixteen tries: about 512 requests.
    assert!((256..1024).contains(&client.asked), "{}", client.asked);
    (0..64).for_each(|_| {
        client.ask(4, 10 * MS, 5 * MS);
    });
    assert!(client.serves_quietly());
    let others = Asked { file: 0, first: 0, count: 4, client: 8, ends_inside: false };
    assert!(!client.duel.quiet_serves(others.client), "another client has a duel of its own");
    let before = client.asked;
    while client.serves_quietly() {
        client.ask(4, 10 * MS, 40 * MS);
        assert!(client.asked < before + 4096, "it does not withdraw");
    }
}

#[test]
fn what_is_too_long_to_be_stored_bypasses_and_the_rest_is_stored() {
    let mut client = Client::new(80); // a request of more than an eighth, ten blocks, is too long
    let mut plans = |count| {
        let plans: Vec<Plan> = (0..600).map(|_| client.ask(count, 10 * MS, 5 * MS)).collect();
        plans.into_iter().filter(|plan| *plan != Plan::default()).collect::<Vec<_>>()
    };
    let (short, long) = (plans(10), plans(11));
    assert!(!short.is_empty() && short.iter().all(|plan| *plan == Plan { quiet: true, ..Plan::default() }));
    assert!(!long.is_empty() && long.iter().all(|plan| *plan == Plan { bypass: 11, ..Plan::default() }));
}

#[test]
fn trials_cost_no_more_than_their_budget() {
    let (native, quiet) = (MS, 50 * MS);
    let mut client = Client::new(1000);
    for _ in 0..20_000 {
        client.ask(4, native, quiet);
        // The first two trials have nothing to be compared with, and the last one may exceed what was left.
        let excess = client.quiet * (quiet - native);
        assert!(excess <= client.total_ns / 200 + 3 * quiet, "{} trials after {} requests", client.quiet, client.asked);
    }
    assert!(!client.serves_quietly() && client.quiet > 3);
}

#[test]
fn blocks_that_demand_fetching_would_hold_are_taken_for_hits() {
    // The same 100 blocks repeatedly: without read-ahead they would all be there, so that a native way that keeps
    // missing them loses, though each of its misses is faster than a quiet one.
    let mut duel = Duel::new(1000);
    let (mut now, mut quiet) = (0, 0);
    for number in 0..10_000u64 {
        let asked = Asked { file: (number % 100) as u32, first: 0, count: 1, client: 0, ends_inside: false };
        let plan = duel.plan(Nanos(now), &asked, &Holds::default(), true);
        let took = if plan.quiet { MS + MS / 2 } else { MS };
        quiet += u64::from(plan.quiet);
        duel.answered(Nanos(now + took), Nanos(now), &asked);
        now += took;
    }
    assert!(duel.quiet_serves(0) && quiet > 1000, "{quiet} quiet requests");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_read_ahead_that_always_answers_sooner_is_never_switched_off(
        times in prop::collection::vec((MS..2 * MS, 3 * MS..30 * MS, 1u32..40), 1..3000), frames in 1u32..2000,
    ) {
        let mut client = Client::new(frames);
        for (native, quiet, count) in times {
            client.ask(count, native, quiet);
            prop_assert!(!client.serves_quietly());
        }
    }

    #[test]
    fn answers_that_never_come_change_nothing(requests in prop::collection::vec((0u64..10_000, 1u32..40), 1..500)) {
        let mut duel = Duel::new(100);
        for (first, count) in requests {
            let asked = Asked { file: 0, first, count, client: 0, ends_inside: false };
            duel.plan(Nanos(0), &asked, &Holds::default(), true);
            prop_assert!(!duel.quiet_serves(0));
        }
    }
}
