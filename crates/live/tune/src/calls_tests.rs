//! Whatever call of the system fails, or is the last: the number that was found first comes back.

use std::fs;

use super::tuner_tests::{self, entries, kb, left, set, settings, tuner, wanted, DEAD, STATE};
use super::{Device, Error, Tuner};
use headstart_host::testing::{calls, Machine};

fn tuned(machine: &Machine, work: impl Fn(&Tuner) -> Result<u64, Error>) -> String {
    let mut settings = settings(machine);
    // Beside the state, so that calls on locks fail, too.
    settings.roots.run = machine.path("var/run");
    let device = Device::at(&settings.roots, &settings.device, "8:0".parse().expect("a number"), false);
    let done = device.and_then(|device| work(&Tuner { settings, device }));
    done.map_or_else(|problem| problem.to_string(), |kb| kb.to_string())
}

fn apply(machine: &Machine) -> String {
    tuned(machine, |tuner| Ok(tuner.apply(&wanted(384))?.now_kb))
}

fn restore(machine: &Machine) -> String {
    tuned(machine, |tuner| Ok(tuner.restore(false)?.now_kb))
}

fn machine() -> Machine {
    let machine = tuner_tests::machine();
    fs::create_dir(machine.path("var")).expect("there is room");
    machine
}

fn applied() -> Machine {
    let machine = machine();
    tuner(&machine).apply(&wanted(256)).expect("it can be written");
    machine
}

fn killed_watch() -> Machine {
    let machine = machine();
    left(&machine, 128, &[256], Some(DEAD));
    set(&machine, 256);
    machine
}

fn check(machine: &Machine, outcome: &calls::Outcome, wanted: &str) {
    let said = outcome.said.as_deref().unwrap_or(wanted);
    let is_line = said.contains("; allowed: ") && !said.contains('\n');
    assert!(said == wanted || outcome.call.is_some() && is_line, "{outcome}");
    assert!(["128", "256", "384"].contains(&&*kb(machine)), "{outcome}: {}", kb(machine));
    assert!(outcome.said.as_deref() != Some(wanted) || kb(machine) == wanted, "{outcome}: {}", kb(machine));
    assert!(entries(machine).iter().all(|entry| entry.old_kb == 128), "{outcome}");
    assert_eq!(restore(machine), "128", "{outcome}");
    assert_eq!((kb(machine), entries(machine)), ("128".to_owned(), vec![]), "{outcome}");
    assert_eq!(apply(machine), "384", "{outcome}");
    let folder = machine.path(STATE);
    let names: Vec<_> = fs::read_dir(folder.parent().expect("a folder")).expect("it is there").flatten().collect();
    assert!(names.iter().all(|each| each.path() == folder), "{outcome}: {names:?}");
}

/// In one test: a thread that starts a process holds all locks of this one for an instant.
#[test]
fn at_every_call_that_fails_what_was_found_comes_back() {
    let test = "calls_tests::at_every_call_that_fails_what_was_found_comes_back";
    let work = |machine: &Machine| if machine.path("restores").exists() { restore(machine) } else { apply(machine) };
    let restores = || {
        let machine = applied();
        machine.write("restores", "");
        machine
    };
    let kinds: [(&dyn Fn() -> Machine, &str); 4] =
        [(&machine, "384"), (&applied, "384"), (&restores, "128"), (&killed_watch, "384")];
    for (prepare, wanted) in kinds {
        calls::each(test, "var", work, prepare, |machine, outcome| check(machine, outcome, wanted));
    }
}
