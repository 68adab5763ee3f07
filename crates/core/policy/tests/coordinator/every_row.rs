//! Promises of every coordinator, for any requests and any lower level.

use headstart_policy::coordinator::{Coordinator, CoordinatorContext, CoordinatorRow, Plan, SentUp};
use headstart_policy::readahead::Asked;
use headstart_policy::registry::{coordinator, COORDINATORS};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::Holds;

fn build(row: &CoordinatorRow, keys: &str, frames: u32) -> Box<dyn Coordinator> {
    let keys = row.keys.read(keys.parse().expect("keys are TOML"));
    let built = keys.and_then(|keys| (row.build)(&keys, &CoordinatorContext { frames }));
    built.unwrap_or_else(|error| panic!("{}: {error}", row.name))
}

/// A request, the cached range as an offset from its first block and a length, and whether the level is full.
type Step = (Asked, (i64, u64), bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let first = prop_oneof![6 => 0u64..100, 1 => (u64::MAX - 40)..=u64::MAX, 1 => any::<u64>()];
    let count = prop_oneof![1 => Just(0u32), 20 => 1u32..12, 1 => 1u32..5000];
    let asked = (0u32..3, first, count, 0u32..3).prop_map(|(file, first, count, client)| Asked {
        file,
        first,
        count,
        client,
        ends_inside: false,
    });
    prop::collection::vec((asked, (-9i64..20, 0u64..6000), any::<bool>()), 1..100)
}

fn plans(row: &CoordinatorRow, frames: u32, steps: &[Step]) -> Vec<Plan> {
    let mut coordinator = build(row, "", frames);
    let plan = |(number, (asked, (offset, length), full)): (usize, &Step)| {
        let begin = asked.first.saturating_add_signed(*offset);
        let cached = Holds(vec![begin..=begin.saturating_add(*length)]);
        coordinator.plan(Nanos(number as u64), asked, &cached, *full)
    };
    steps.iter().enumerate().map(plan).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn survives_anything_is_deterministic_and_bypasses_no_more_than_is_asked_for(
        frames in prop_oneof![0u32..50, Just(u32::MAX)], steps in steps(),
    ) {
        let largest = steps.iter().map(|(asked, ..)| asked.count).max().unwrap_or(0);
        for row in COORDINATORS.iter().copied() {
            let first = plans(row, frames, &steps);
            prop_assert_eq!(&first, &plans(row, frames, &steps), "{}", row.name);
            for ((asked, ..), plan) in steps.iter().zip(&first) {
                prop_assert!(plan.bypass <= asked.count, "{}: {:?} made it plan {:?}", row.name, asked, plan);
                prop_assert!(plan.readmore <= largest, "{}: {:?} made it plan {:?}", row.name, asked, plan);
                prop_assert!(asked.count > 0 || *plan == Plan::default(), "{}: asked for nothing, {:?}", row.name, plan);
            }
        }
    }
}

#[test]
fn names_are_unique_and_defaults_build() {
    for (number, row) in COORDINATORS.iter().enumerate() {
        assert!(COORDINATORS[..number].iter().all(|other| other.name != row.name), "{} twice", row.name);
        assert!(!row.summary.is_empty() && !row.source.is_empty());
        let defaults = toml::to_string(&row.keys.defaults()).unwrap();
        let (mut said, mut unsaid) = (build(row, &defaults, 50), build(row, "", 50));
        for number in 0..200u64 {
            let asked = Asked {
                file: 0,
                first: number * number % 90,
                count: 1 + (number % 7) as u32,
                client: 0,
                ends_inside: false,
            };
            let cached = Holds(vec![number % 60..=number % 90]);
            let plan = |from: &mut Box<dyn Coordinator>| from.plan(Nanos(number), &asked, &cached, number > 50);
            assert_eq!(plan(&mut said), plan(&mut unsaid), "{}", row.name);
        }
    }
}

#[test]
fn what_becomes_of_what_was_sent_up() {
    let sent_up = |name| build(coordinator(name).unwrap(), "", 10).sent_up();
    assert_eq!(sent_up("none"), SentUp::Keep);
    assert_eq!(sent_up("du"), SentUp::FirstVictims);
    assert_eq!(sent_up("demote"), SentUp::Remove);
    assert_eq!(sent_up("pfc"), SentUp::Keep);
}

#[test]
fn only_pfc_touches_requests() {
    let asked = Asked { file: 0, first: 0, count: 4, client: 0, ends_inside: false };
    for row in COORDINATORS.iter().copied() {
        let plan = build(row, "", 10).plan(Nanos(0), &asked, &Holds::default(), false);
        let bypass = u32::from(row.name == "pfc");
        assert_eq!(plan, Plan { bypass, ..Plan::default() }, "{}", row.name);
    }
}

#[test]
fn keys_are_checked() {
    let refused = |name: &str, keys: &str| {
        let row = coordinator(name).unwrap();
        row.keys.read(keys.parse().unwrap()).err().expect(keys).to_string()
    };
    for row in COORDINATORS.iter().copied() {
        assert!(refused(row.name, "nonsense = 1").contains("nonsense"), "{}", row.name);
    }
    for (keys, words) in [
        ("queue = 0.0", ["queue", "above 0"]),
        ("queue = -0.1", ["queue", "above 0"]),
        ("queue = nan", ["queue", "above 0"]),
        ("large = 1001.0", ["large", "0 to 1000"]),
        ("contexts = 0", ["contexts", "from 1"]),
        ("actions = \"neither\"", ["actions", "readmore"]),
        ("context = \"stream\"", ["context", "client"]),
        ("ahead = \"first\"", ["ahead", "next"]),
        ("update = \"never\"", ["update", "always"]),
    ] {
        let error = refused("pfc", keys);
        assert!(words.iter().all(|word| error.contains(word)), "{keys}: {error}");
    }
    let error = coordinator("pcf").err().expect("there is none").to_string();
    assert!(error.contains("pcf") && COORDINATORS.iter().all(|row| error.contains(row.name)), "{error}");
}

#[test]
fn keys_reach_pfc() {
    let plan = |keys: &str, frames, steps: &[(u64, u32)], cached: std::ops::RangeInclusive<u64>| {
        let mut pfc = build(coordinator("pfc").unwrap(), keys, frames);
        let ask = |(first, count): &(u64, u32)| {
            let asked = Asked { file: 0, first: *first, count: *count, client: 0, ends_inside: false };
            let plan = pfc.plan(Nanos(0), &asked, &Holds(vec![cached.clone()]), true);
            (plan.bypass, plan.readmore)
        };
        *steps.iter().map(ask).collect::<Vec<_>>().last().expect("some")
    };
    let nothing = 1000..=1000;
    let sequential = [(0, 4), (4, 4)];
    assert_eq!(plan("", 60, &sequential, nothing.clone()), (2, 4));
    assert_eq!(plan("actions = \"bypass\"", 60, &sequential, nothing.clone()), (2, 0));
    assert_eq!(plan("actions = \"readmore\"", 60, &sequential, nothing.clone()), (0, 4));
    assert_eq!(plan("ahead = \"last\"", 60, &[(0, 4)], 4..=7), (1, 0));
    assert_eq!(plan("ahead = \"next\"", 60, &[(0, 4)], 4..=7), (4, 0));
    assert_eq!(plan("window = \"next\"", 60, &[(10, 1), (10, 1)], nothing.clone()), (0, 0));
    assert_eq!(plan("", 60, &[(10, 1), (10, 1)], nothing.clone()), (0, 1));
    // Cached (1), in the readmore queue.
    assert_eq!(plan("", 60, &[(0, 1), (1, 1)], 1..=1), (1, 1));
    assert_eq!(plan("update = \"miss\"", 60, &[(0, 1), (1, 1)], 1..=1), (1, 0));
    // 8 is cached, 4 is above half of the average: rl goes from 4 to 0.
    assert_eq!(plan("update = \"miss\"", 60, &[(0, 4), (4, 4), (8, 4)], 8..=8), (3, 4));
    assert_eq!(plan("update = \"miss\"\nlarge = 0.5", 60, &[(0, 4), (4, 4), (8, 4)], 8..=8), (3, 0));
    // A window of 3 to 7: of 5 names a queue of one keeps the last. A tenth of 10 is one, a half is five.
    assert_eq!(plan("", 10, &[(0, 4), (4, 3)], nothing.clone()), (2, 0));
    assert_eq!(plan("queue = 0.5", 10, &[(0, 4), (4, 3)], nothing), (2, 4));
}
