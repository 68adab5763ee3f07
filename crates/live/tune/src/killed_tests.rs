//! Killed at any point, any number of times: what was found first comes back.

use proptest::prelude::*;

use super::state::{Entry, State};
use super::tuner_tests::{entries, kb, machine, set, tuner, wanted, DEAD, STATE};
use headstart_host::testing::Machine;

/// What one of us does, up to where it is killed.
#[derive(Debug, Clone, Copy)]
enum Step {
    Apply(u64),
    /// With the entry written, and not the number.
    ApplyKilled(u64),
    /// With the number written, and the entry still there.
    RestoreKilled,
    Restore,
    /// A watch that wrote some numbers; the last perhaps into the state only.
    WatchKilled([u64; 3], bool),
}

fn carry_out(machine: &Machine, step: Step) {
    let found = entries(machine).into_iter().find(|entry| entry.backing == "8:0");
    match step {
        Step::Apply(kb) => drop(tuner(machine).apply(&wanted(kb)).expect("it can be written")),
        Step::Restore => drop(tuner(machine).restore(false).expect("it can be written")),
        Step::ApplyKilled(kb) => {
            let tuner = tuner(machine);
            let before = tuner.hold().expect("nobody has it").state.entry(&tuner.device).cloned();
            let now = tuner.device.read_ahead_kb().expect("a number");
            let mut entry =
                before.unwrap_or_else(|| Entry::new(&tuner.device, &machine.roots(), now, None).expect("a boot"));
            entry.writes(now, kb);
            State::open(&machine.roots(), &machine.path(STATE)).expect("ours").put(entry).expect("there is room");
        }
        Step::RestoreKilled => {
            if let Some(entry) = found {
                set(machine, entry.old_kb);
            }
        }
        Step::WatchKilled(numbers, wrote_last) => {
            drop(tuner(machine).restore(false).expect("it can be written"));
            let mut entry = Entry::new(&tuner(machine).device, &machine.roots(), 128, Some(DEAD)).expect("a boot");
            let mut stands = 128;
            for (at, kb) in numbers.into_iter().enumerate() {
                entry.writes(stands, kb);
                if at < 2 || wrote_last {
                    set(machine, kb);
                    stands = kb;
                }
            }
            State::open(&machine.roots(), &machine.path(STATE)).expect("ours").put(entry).expect("there is room");
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kb = || (1u64..250).prop_map(|pages| pages * 64);
    let step = prop_oneof![
        kb().prop_map(Step::Apply),
        kb().prop_map(Step::ApplyKilled),
        Just(Step::RestoreKilled),
        Just(Step::Restore),
        (kb(), kb(), kb(), any::<bool>()).prop_map(|(a, b, c, wrote)| Step::WatchKilled([a, b, c], wrote)),
    ];
    prop::collection::vec(step, 1..8)
}

proptest! {
    // Each step is synced to a disk.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn killed_anywhere_any_number_of_times_nothing_is_lost(steps in steps()) {
        let machine = machine();
        for step in steps {
            carry_out(&machine, step);
        }
        prop_assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 128);
        let (now, left) = (kb(&machine), entries(&machine));
        prop_assert_eq!((now.as_str(), left.len()), ("128", 0));
    }
}
