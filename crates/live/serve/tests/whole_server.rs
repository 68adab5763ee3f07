//! The whole-system fuzzer of the server: random clients, levels, coordinators, hints, spill files and faulty backings
//! on a virtual clock. Runs 150 cases, or `HEADSTART_FUZZ_CASES`, from `HEADSTART_FUZZ_SEED` on; a failure prints its
//! seed and a small case. `make fuzz-system` runs for a given time.

mod whole;

use whole::{fault, run, shrunk, Done, Plan, Planted};

/// Number of cases within which each planted fault is found.
const FOUND_WITHIN: u64 = 400;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a whole number")))
}

#[test]
fn whatever_happens_the_server_keeps_its_word() {
    let first = number("HEADSTART_FUZZ_SEED", 0);
    let mut all = Done::default();
    for seed in first..first + number("HEADSTART_FUZZ_CASES", 150) {
        let plan = Plan::drawn(seed);
        let done = std::panic::catch_unwind(|| run(&plan, None)).unwrap_or_else(|_| {
            let small = shrunk(&plan, None);
            let said = fault(&small, None).unwrap_or_default();
            panic!("HEADSTART_FUZZ_SEED={seed} HEADSTART_FUZZ_CASES=1\n{small}{said}");
        });
        all.add(&done);
    }
    println!("{all:?}");
}

#[test]
fn each_planted_fault_is_found_and_shrunk() {
    let wanted = std::env::var("HEADSTART_FUZZ_PLANTED").ok();
    let is_wanted = |planted: &Planted| wanted.as_ref().is_none_or(|name| format!("{planted:?}").contains(name));
    for planted in Planted::ALL.into_iter().filter(is_wanted) {
        let found = (0..FOUND_WITHIN).map(Plan::drawn).find(|plan| fault(plan, Some(planted)).is_some());
        let plan = found.unwrap_or_else(|| panic!("{planted:?} is not found in {FOUND_WITHIN} cases"));
        let small = shrunk(&plan, Some(planted));
        let said = fault(&small, Some(planted)).unwrap_or_else(|| panic!("{planted:?} is lost on the way"));
        println!("{planted:?}, seed {}: {} of {} events: {said}", plan.seed, small.events.len(), plan.events.len());
        assert!(small.events.len() <= plan.events.len());
    }
}
