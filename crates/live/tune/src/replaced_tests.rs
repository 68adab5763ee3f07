//! Devices in one another's place: whose number is it?

use std::path::Path;

use super::tuner_tests::{entries, kb, left, machine, set, settings, tuner, wanted, DEAD};
use super::{Device, Tuner};
use headstart_host::testing::Machine;

#[test]
fn another_disk_s_number_stays_even_if_it_is_one_of_ours() {
    let machine = machine();
    machine.write("sys/block/sda/diskseq", "1");
    let replace = |wwid: &str, watcher| {
        machine.write("sys/block/sda/wwid", "naa.1");
        set(&machine, 384);
        left(&machine, 128, &[384], watcher);
        machine.write("sys/block/sda/wwid", wwid);
        machine.write("sys/block/sda/diskseq", "2");
    };
    for (watcher, force) in [(None, false), (None, true), (Some(DEAD), false)] {
        replace("naa.2", watcher);
        assert_eq!(tuner(&machine).show(Some(&wanted(512))).expect("it is there").old_kb, None);
        let report = tuner(&machine).restore(force).expect("no mistake");
        assert_eq!((report.now_kb, kb(&machine).as_str(), entries(&machine)), (384, "384", vec![]));
        assert!(report.notes[0].ends_with("another device has its number now: what was found is forgotten"));
    }
    replace("naa.2", None);
    assert_eq!(tuner(&machine).apply(&wanted(512)).expect("it can be written").old_kb, Some(384));
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 384);
    // The same disk with another medium keeps its number.
    replace("naa.1", None);
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 128);
}

#[test]
fn a_loop_device_s_number_outlives_its_file() {
    let machine = Machine::new();
    machine.disk("loop3", "8:0", 1000, 1024);
    for force in [false, true] {
        machine.write("sys/block/loop3/loop/backing_file", "/a");
        left(&machine, 128, &[1024], None);
        machine.write("sys/block/loop3/loop/backing_file", "/b");
        assert_eq!(tuner(&machine).apply(&wanted(512)).expect("it can be written").old_kb, Some(128));
        assert_eq!(tuner(&machine).restore(force).expect("it can be written").now_kb, 128);
        set(&machine, 1024);
    }
}

/// One of the file system of that number.
fn on_file_system(machine: &Machine, number: &str) -> Tuner {
    let device = Device::at(&machine.roots(), Path::new("/mnt"), number.parse().expect("a number"), true);
    Tuner { settings: settings(machine), device: device.expect("it is there") }
}

#[test]
fn a_driver_s_number_and_its_disk_s_are_two() {
    let machine = machine();
    machine.write("sys/class/bdi/8:0-fuseblk/read_ahead_kb", "64");
    let mount = || on_file_system(&machine, "8:0");
    mount().apply(&wanted(384)).expect("it can be written");
    tuner(&machine).apply(&wanted(512)).expect("it can be written");
    let olds: Vec<(String, u64)> = entries(&machine).into_iter().map(|entry| (entry.backing, entry.old_kb)).collect();
    assert_eq!(olds, [("8:0".to_owned(), 128), ("8:0-fuseblk".to_owned(), 64)]);
    assert_eq!(tuner(&machine).restore(false).expect("it can be written").now_kb, 128);
    assert_eq!(mount().show(Some(&wanted(384))).expect("it is there").old_kb, Some(64));
    assert_eq!(mount().restore(false).expect("it can be written").now_kb, 64);
    assert_eq!((kb(&machine).as_str(), entries(&machine)), ("128", vec![]));
}

#[test]
fn what_is_mounted_next_has_the_number_of_the_last() {
    let machine = machine();
    let mount = |source: &str, kb: u64| {
        machine.write("sys/class/bdi/0:45/read_ahead_kb", &kb.to_string());
        machine.write("proc/self/mountinfo", &format!("30 1 0:45 / /mnt rw - fuse.a {source} rw"));
    };
    let tuner = || on_file_system(&machine, "0:45");
    for (source, stands) in [("two", 4096), ("two", 1024), ("one", 4096)] {
        mount("one", 128);
        tuner().apply(&wanted(1024)).expect("it can be written");
        mount(source, stands);
        assert_eq!(tuner().apply(&wanted(512)).expect("it can be written").old_kb, Some(stands));
        assert_eq!(tuner().restore(false).expect("it can be written").now_kb, stands);
    }
    mount("one", 128);
    tuner().apply(&wanted(1024)).expect("it can be written");
    mount("two", 1024);
    let report = tuner().restore(false).expect("no mistake");
    assert_eq!((report.now_kb, report.notes.len(), entries(&machine)), (1024, 1, vec![]));
}
