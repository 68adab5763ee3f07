//! Show, apply and restore on machines that are folders; each way of being killed, too.

use std::path::{Path, PathBuf};

use headstart_types::Bytes;

use super::state::{self, Entry, State, LARGEST_KB};
use super::tuner::forget_gone;
use super::{Device, Error, Report, Settings, Tuner, Wanted};
use headstart_host::testing::Machine;
use headstart_host::Process;

pub(super) const STATE: &str = "var/lib/headstart/tune.json";

pub(super) fn wanted(kib: u64) -> Wanted {
    Wanted::Depth(Bytes(kib << 10))
}

pub(super) fn settings(machine: &Machine) -> Settings {
    Settings { roots: machine.roots(), device: PathBuf::from("/dev/sda"), state: machine.path(STATE), force: false }
}

pub(super) fn tuner(machine: &Machine) -> Tuner {
    let settings = settings(machine);
    let device = Device::at(&settings.roots, &settings.device, "8:0".parse().expect("a number"), false);
    Tuner { settings, device: device.expect("it is there") }
}

/// A disk with a read-ahead of 128.
pub(super) fn machine() -> Machine {
    let machine = Machine::new();
    machine.disk("sda", "8:0", 71_093_750, 128);
    machine
}

pub(super) fn kb(machine: &Machine) -> String {
    machine.read("sys/class/bdi/8:0/read_ahead_kb")
}

pub(super) fn set(machine: &Machine, kb: u64) {
    machine.write("sys/class/bdi/8:0/read_ahead_kb", &kb.to_string());
}

pub(super) fn entries(machine: &Machine) -> Vec<Entry> {
    state::read(&machine.path(STATE)).expect("ours")
}

/// An entry of the state file, as one that was killed has left it.
pub(super) fn left(machine: &Machine, old_kb: u64, ours_kb: &[u64], watcher: Option<Process>) {
    let tuner = tuner(machine);
    let mut entry = Entry::new(&tuner.device, &machine.roots(), old_kb, watcher).expect("a boot");
    entry.ours_kb = ours_kb.to_vec();
    State::open(&machine.roots(), &machine.path(STATE)).expect("there is room").put(entry).expect("there is room");
}

pub(super) const DEAD: Process = Process { pid: u32::MAX, start_ticks: 1 };

fn error(result: Result<Report, Error>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn a_look_changes_nothing() {
    let machine = machine();
    let keys = toml::Table::new();
    let profile = Wanted::Profile { name: "ibm-36gb-10k".to_owned(), keys };
    let report = tuner(&machine).show(Some(&profile)).expect("it is there");
    assert_eq!((report.found_kb, report.now_kb, report.old_kb), (128, 128, None));
    // Its media are up to 1.5 times as fast as the host on which it was measured let them be.
    let note = "the rate of this profile is that of the bus of the host on which the drive was measured";
    assert!(report.notes.len() == 1 && report.notes[0].starts_with(note), "{:?}", report.notes);
    assert!(report.proposed.is_some_and(|depth| (380..=388).contains(&depth.kb)));
    assert!(!machine.path("var").exists());
}

#[test]
fn the_first_number_that_was_found_comes_back() {
    let machine = machine();
    let tuner = tuner(&machine);
    let report = tuner.apply(&wanted(384)).expect("it can be written");
    assert_eq!((report.found_kb, report.now_kb, report.old_kb), (128, 384, Some(128)));
    assert_eq!(tuner.show(Some(&wanted(384))).expect("it is there").old_kb, Some(128));
    let report = tuner.apply(&wanted(512)).expect("it can be written");
    assert_eq!((report.found_kb, report.now_kb, report.old_kb), (384, 512, Some(128)));
    assert_eq!((kb(&machine), entries(&machine).len()), ("512".to_owned(), 1));
    let report = tuner.restore(false).expect("it can be written");
    assert_eq!((report.found_kb, report.now_kb, report.old_kb), (512, 128, None));
    assert_eq!((kb(&machine), entries(&machine)), ("128".to_owned(), vec![]));
    let again = tuner.restore(false).expect("no mistake");
    assert_eq!((again.now_kb, again.notes), (128, vec!["nothing has been applied to it".to_owned()]));
}

#[test]
fn killed_between_the_state_and_the_number() {
    // Apply: the number is still what was found.
    let machine = machine();
    left(&machine, 128, &[384], None);
    let report = tuner(&machine).restore(false).expect("no mistake");
    assert_eq!((report.now_kb, report.notes), (128, vec!["it was 128 already".to_owned()]));
    assert_eq!(entries(&machine), []);
    left(&machine, 128, &[384], None);
    tuner(&machine).apply(&wanted(400)).expect("it can be written");
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 128);
    // A second apply, and a third: the number is that of the first.
    set(&machine, 384);
    left(&machine, 128, &[384, 512], None);
    tuner(&machine).apply(&wanted(640)).expect("it can be written");
    assert_eq!(entries(&machine)[0].ours_kb, [384, 640]);
    set(&machine, 384);
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 128);
    // Restore: the number is taken back, the entry still there: as the first.
    // Watch: either of its two numbers.
    for now in [384, 400] {
        set(&machine, now);
        left(&machine, 128, &[384, 400], Some(DEAD));
        let report = tuner(&machine).show(Some(&wanted(512))).expect("it is there");
        assert_eq!((report.now_kb, report.notes.len(), kb(&machine)), (now, 1, now.to_string()));
        let report = tuner(&machine).restore(false).expect("it can be written");
        let note =
            format!("process {} watched it and was killed: it was {now}, and is 128 again, as it was found", DEAD.pid);
        assert_eq!((report.now_kb, report.notes), (128, vec![note]));
        assert_eq!(entries(&machine), []);
    }
    // Before it wrote its first number; and another program wrote after its last.
    for (now, end) in [(128, ": it is 128, as it was found"), (256, ": another program has set 256 since, which stays")]
    {
        set(&machine, now);
        left(&machine, 128, &[384], Some(DEAD));
        let notes = tuner(&machine).show(Some(&wanted(512))).expect("it is there").notes;
        assert!(notes[0].ends_with(end), "{notes:?}");
        assert_eq!(tuner(&machine).restore(false).expect("no mistake").now_kb, now);
    }
    // And what comes next starts from what was found.
    set(&machine, 384);
    left(&machine, 128, &[384], Some(DEAD));
    let report = tuner(&machine).apply(&wanted(512)).expect("it can be written");
    assert_eq!((report.found_kb, report.now_kb, report.old_kb, report.notes.len()), (128, 512, Some(128), 1));
    assert_eq!(entries(&machine)[0].watcher, None);
}

#[test]
fn what_another_program_has_set_stays() {
    let machine = machine();
    tuner(&machine).apply(&wanted(384)).expect("it can be written");
    set(&machine, 1024);
    let file = machine.path("sys/class/bdi/8:0/read_ahead_kb");
    let problem = "is 1024, neither ours (384) nor what was found (128): another program has changed it";
    let expected = format!("{}: {problem}; allowed: --force, which writes what was found", file.display());
    assert_eq!(error(tuner(&machine).restore(false)), expected);
    assert_eq!((kb(&machine).as_str(), entries(&machine).len()), ("1024", 1));
    let report = tuner(&machine).apply(&wanted(512)).expect("it can be written");
    assert_eq!(report.notes, ["another program had set 1024 since the last --apply"]);
    set(&machine, 1024);
    assert_eq!(tuner(&machine).restore(true).expect("forced").now_kb, 128);
    // After a watcher that was killed nobody is asked.
    set(&machine, 1024);
    left(&machine, 128, &[384], Some(DEAD));
    let report = tuner(&machine).restore(false).expect("no mistake");
    assert!(report.now_kb == 1024 && report.notes[0].ends_with("another program has set 1024 since, which stays"));
    // The number may be another device's by now.
    left(&machine, 128, &[384], None);
    machine.write("sys/block/sda/wwid", "naa.2");
    let report = tuner(&machine).restore(false).expect("no mistake");
    assert_eq!((report.now_kb, entries(&machine)), (1024, vec![]));
    assert!(report.notes[0].starts_with("another device has its number now"), "{:?}", report.notes);
    // Whose own number is then found anew.
    left(&machine, 128, &[384], None);
    machine.write("sys/block/sda/wwid", "naa.3");
    let report = tuner(&machine).apply(&wanted(512)).expect("it can be written");
    assert_eq!((report.old_kb, report.notes.len()), (Some(1024), 0));
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 1024);
}

#[test]
fn another_boot_has_none_of_ours() {
    let machine = machine();
    left(&machine, 64, &[384], None);
    machine.write("proc/sys/kernel/random/boot_id", "another-boot");
    assert_eq!(tuner(&machine).show(Some(&wanted(384))).expect("it is there").old_kb, None);
    let report = tuner(&machine).restore(false).expect("no mistake");
    assert_eq!(report.notes, ["sda: what was found before the last boot is forgotten, not written"]);
    assert_eq!((kb(&machine).as_str(), entries(&machine)), ("128", vec![]));
    let report = tuner(&machine).apply(&wanted(384)).expect("it can be written");
    assert_eq!((report.old_kb, report.notes), (Some(128), vec![]));
}

#[test]
fn a_device_that_has_gone_is_forgotten() {
    let machine = machine();
    machine.disk("sdb", "8:16", 1000, 128);
    tuner(&machine).apply(&wanted(384)).expect("it can be written");
    std::fs::remove_dir_all(machine.path("sys/class/bdi/8:0")).expect("it is there");
    let gone = Settings { device: machine.path("dev/sda"), ..settings(&machine) };
    let text = forget_gone(&gone).expect_err("it says so").to_string();
    assert!(text.contains("dev/sda: has gone, and its read-ahead with it: what was found is forgotten"), "{text}");
    assert_eq!(entries(&machine), []);
    forget_gone(&gone).expect("nothing is known of it");
    // By another of its names, too.
    machine.write("sys/class/bdi/8:0/read_ahead_kb", "128");
    let link = machine.path("dev/disk/by-id/ata-1");
    let device = Device::at(&machine.roots(), &link, "8:0".parse().expect("a number"), false).expect("it is there");
    Tuner { settings: settings(&machine), device }.apply(&wanted(384)).expect("it can be written");
    std::fs::remove_dir_all(machine.path("sys/class/bdi/8:0")).expect("it is there");
    forget_gone(&Settings { device: link, ..settings(&machine) }).expect_err("it says so");
    assert_eq!(entries(&machine), []);
    // Or by the next who writes the file.
    machine.write("sys/class/bdi/8:0/read_ahead_kb", "128");
    left(&machine, 128, &[384], None);
    std::fs::remove_dir_all(machine.path("sys/class/bdi/8:0")).expect("it is there");
    let settings = Settings { device: PathBuf::from("/dev/sdb"), ..settings(&machine) };
    let device = Device::at(&settings.roots, &settings.device, "8:16".parse().expect("a number"), false);
    let report = Tuner { settings, device: device.expect("it is there") }.restore(false).expect("no mistake");
    assert_eq!(report.notes, ["sda: has gone, and what was found with it"]);
    assert_eq!(entries(&machine), []);
}

#[test]
fn what_could_not_be_restored_is_not_replaced() {
    let machine = machine();
    set(&machine, LARGEST_KB + 1);
    let error = tuner(&machine).apply(&wanted(512)).expect_err("refused").to_string();
    assert!(
        error.ends_with("which could not be restored; allowed: at most 1073741824: set one by hand first"),
        "{error}"
    );
    assert_eq!(kb(&machine), (LARGEST_KB + 1).to_string());
    set(&machine, LARGEST_KB);
    assert_eq!(tuner(&machine).apply(&wanted(512)).expect("it can be written").old_kb, Some(LARGEST_KB));
}

#[test]
fn a_restore_sweeps_what_a_killed_watch_has_left_in_the_traces() {
    let machine = machine();
    let stale = machine.path("tracing/instances/headstart-4000000-1-8.0");
    std::fs::create_dir_all(&stale).expect("there is room");
    tuner(&machine).restore(false).expect("it can be written");
    assert!(!stale.exists());
}

#[test]
fn two_at_once_are_refused() {
    let machine = machine();
    let (one, other) = (tuner(&machine), tuner(&machine));
    let held = one.hold().expect("nobody has it");
    left_by_live(&machine, held);
    let lock = one.hold().map(|held| held.lock).expect("nobody has it");
    let text = error(other.apply(&wanted(384)));
    let expected =
        "/dev/sda: another process is tuning sda; allowed: one at a time: wait, or end it with SIGTERM, which \
                    restores";
    assert_eq!(text, expected);
    assert_eq!((error(other.restore(true)), kb(&machine).as_str()), (expected.to_owned(), "128"));
    drop(lock);
    other.apply(&wanted(384)).expect("nobody has it");
}

/// Gives the state file back, as a watcher does while it watches.
fn left_by_live(machine: &Machine, held: super::tuner::Held) {
    drop(held);
    assert!(!machine.path(STATE).exists(), "nothing is written before there is something to say");
}

#[test]
fn what_is_damaged_stops_everything() {
    let machine = machine();
    machine.write(STATE, "{");
    for result in
        [tuner(&machine).show(Some(&wanted(384))), tuner(&machine).apply(&wanted(384)), tuner(&machine).restore(true)]
    {
        let text = error(result);
        assert!(text.contains("tune.json: is damaged: ") && text.contains("; allowed: "), "{text}");
    }
    assert_eq!((kb(&machine).as_str(), machine.read(STATE).as_str()), ("128", "{"));
}

#[test]
fn a_state_that_cannot_be_written_comes_before_the_number() {
    let machine = machine();
    let settings = Settings { state: Path::new("/proc/tune.json").to_owned(), ..settings(&machine) };
    let text = error(Tuner { settings, ..tuner(&machine) }.apply(&wanted(384)));
    assert!(text.starts_with("/proc/tune.json: ") && text.contains("; allowed: "), "{text}");
    assert_eq!(kb(&machine), "128");
}
