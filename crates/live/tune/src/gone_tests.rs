//! Devices that go while they are watched.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::watch_tests::{kb, machine, machine_with, notes, start, SECOND};
use super::{state, Ended};

#[test]
fn a_device_that_goes() {
    // A loop device is detached: the number stays, and is given back.
    let machine = machine();
    let (mut watch, _) = start(&machine);
    machine.write("sys/block/loop5/size", "0");
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    let status = watch.end(Ended::Gone).expect("no error");
    assert_eq!((kb(&machine), status.now_kb), (128, 128));
    assert_eq!(notes(&status), ["loop5 has gone; the number stays, and is 128 again"]);
    // The kernel has set another number with that.
    machine.write("sys/block/loop5/size", "71093750");
    let (mut watch, _) = start(&machine);
    machine.write("sys/block/loop5/size", "0");
    machine.write("sys/class/bdi/7:5/read_ahead_kb", "2560");
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    let status = watch.end(Ended::Gone).expect("no error");
    assert_eq!(notes(&status), ["loop5 has gone, and another program has set 2560, which stays; 128 was found"]);
    machine.write("sys/class/bdi/7:5/read_ahead_kb", "128");
    // Another file in its place, as soon as a number is to be written.
    machine.write("sys/block/loop5/size", "71093750");
    let (mut watch, _) = start(&machine);
    machine.write("sys/block/loop5/diskseq", "2");
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    watch.end(Ended::Gone).expect("no error");
    assert_eq!(kb(&machine), 128);
    // A disk is pulled.
    let (mut watch, _) = start(&machine);
    std::fs::remove_dir_all(machine.path("sys/class/bdi/7:5")).expect("it is there");
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    let status = watch.end(Ended::Gone).expect("no error");
    assert_eq!(notes(&status), ["loop5 has gone, and its read-ahead with it"]);
    assert_eq!(state::read(&machine.path("tune.json")).expect("ours"), []);
}

#[test]
fn a_disk_that_goes_while_its_number_is_read() {
    let machine = machine();
    let (mut watch, _) = start(&machine);
    let file = machine.path("sys/class/bdi/7:5/read_ahead_kb");
    std::fs::remove_file(&file).expect("it is there");
    mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR).expect("there is room");
    // Who opens it waits for the other.
    let pulled = std::thread::spawn(move || {
        let pipe = std::fs::OpenOptions::new().write(true).open(&file);
        std::fs::remove_dir_all(file.parent().expect("a folder")).expect("it is there");
        drop(pipe);
    });
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    pulled.join().expect("it has gone");
    let status = watch.end(Ended::Gone).expect("no error");
    assert_eq!(notes(&status), ["loop5 has gone, and its read-ahead with it"]);
}

#[test]
fn a_disk_in_the_place_of_another_keeps_its_number() {
    let machine = machine_with("sdb");
    machine.write("sys/block/sdb/wwid", "naa.1");
    let (mut watch, _) = start(&machine);
    let stood = kb(&machine);
    for (file, text) in [("wwid", "naa.2"), ("diskseq", "2")] {
        machine.write(&format!("sys/block/sdb/{file}"), text);
    }
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Gone));
    let status = watch.end(Ended::Gone).expect("no error");
    assert_eq!((kb(&machine), notes(&status)), (stood, vec!["sdb has gone; another device has its number"]));
    assert_eq!(state::read(&machine.path("tune.json")).expect("ours"), []);
}
