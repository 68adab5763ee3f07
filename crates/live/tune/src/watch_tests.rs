//! A watch of a machine that is a folder: events from a list, times from the test.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use headstart_types::{Bytes, Nanos};
use toml::Table;

use super::state;
use super::{Device, Ended, Error, Pace, Settings, Source, Tuner, Wanted, Watch, WatchSettings};
use headstart_host::testing::Machine;
use headstart_host::Process;

pub(super) const SECOND: Nanos = Nanos::from_millis(1_000);

/// Pieces that come at the next look.
#[derive(Debug, Clone, Default)]
pub(super) struct Fake(Rc<RefCell<VecDeque<Result<String, io::ErrorKind>>>>);

impl Source for Fake {
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        while let Some(piece) = self.0.borrow_mut().pop_front() {
            each(piece?.as_bytes());
        }
        Ok(())
    }
}

impl Fake {
    /// The device serves 8 sectors at each of these places.
    fn serves(&self, device: &str, places: impl IntoIterator<Item = u64>) {
        let device = device.replace(':', ",");
        for place in places {
            let line = format!("block_rq_complete: {device} R () {place} + 8 none,0,0 [0]\n");
            self.0.borrow_mut().push_back(Ok(line));
        }
    }
}

/// The notes beside the one on the rate of the drive that the tests use.
pub(super) fn notes(status: &super::report::Status) -> Vec<&str> {
    let is_on_rate = |note: &&str| note.starts_with("the rate of this profile is that of the bus");
    let notes: Vec<&str> = status.notes.iter().map(String::as_str).filter(|note| !is_on_rate(note)).collect();
    assert_eq!(notes.len() + 1, status.notes.len(), "the rate is noted once: {:?}", status.notes);
    notes
}

pub(super) fn machine() -> Machine {
    machine_with("loop5")
}

pub(super) fn machine_with(name: &str) -> Machine {
    let machine = Machine::new();
    machine.disk(name, "7:5", 36_400_000_000 / 512, 128);
    machine.write(&format!("sys/block/{name}/diskseq"), "1");
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    machine.write(&format!("proc/{}/stat", std::process::id()), stat.trim());
    machine
}

fn tuner(machine: &Machine) -> Tuner {
    let (roots, device) = (machine.roots(), PathBuf::from("/dev/loop5"));
    let settings = Settings { roots, device, state: machine.path("tune.json"), force: false };
    let found = Device::at(&settings.roots, &settings.device, "7:5".parse().expect("a number"), false);
    Tuner { settings, device: found.expect("it is there") }
}

fn settings() -> WatchSettings {
    WatchSettings { profile: "ibm-36gb-10k".to_owned(), keys: Table::new(), pace: Pace::default(), openmetrics: None }
}

pub(super) fn start(machine: &Machine) -> (Watch<Fake>, Fake) {
    let fake = Fake::default();
    let watch =
        Watch::with(tuner(machine), settings(), || Ok((fake.clone(), Ok(Fake::default())))).expect("it can be watched");
    (watch, fake)
}

pub(super) fn kb(machine: &Machine) -> u64 {
    machine.read("sys/class/bdi/7:5/read_ahead_kb").parse().expect("a number")
}

#[test]
fn it_follows_the_arm_and_gives_back_what_was_found() {
    let machine = machine();
    let (mut watch, fake) = start(&machine);
    let first = kb(&machine);
    assert!((376..=392).contains(&first), "{first}");
    let entries = state::read(&machine.path("tune.json")).expect("ours");
    assert_eq!((entries[0].old_kb, entries[0].ours_kb.as_slice()), (128, &[first][..]));
    assert!(entries[0].watcher.is_some_and(|watcher| watcher.pid == std::process::id()));
    // Another device's are not ours, and what goes on where the last one ended is no switch.
    fake.serves("7:6", [0, 70_000_000, 0, 70_000_000]);
    fake.serves("7:5", (0..100).map(|request| request * 8));
    assert_eq!(watch.look(SECOND).expect("no error"), None);
    let seen = watch.status().seen;
    assert_eq!((seen.requests, seen.switches, kb(&machine)), (100, 0, first));
    // From one end to the other: longer seeks than the mean, at the mean of the rates.
    fake.serves("7:5", (0..200).map(|request| (request % 2) * 70_000_000));
    assert_eq!(watch.look(SECOND * 2).expect("no error"), None);
    let far = kb(&machine);
    assert!(far > first, "{far} {first}");
    // To and fro between neighbours: almost no seek, half a turn. Not before a second has passed.
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 16));
    assert_eq!(watch.look(SECOND * 2).expect("no error"), None);
    assert_eq!(kb(&machine), far);
    assert_eq!(watch.look(SECOND * 3).expect("no error"), None);
    let near = kb(&machine);
    assert!((100..200).contains(&near), "{near}");
    let entries = state::read(&machine.path("tune.json")).expect("ours");
    assert_eq!(entries[0].ours_kb, [far, near]);
    let status = watch.end(Ended::Stopped).expect("no error");
    assert_eq!((status.now_kb, kb(&machine), status.found_kb), (128, 128, 128));
    assert_eq!((status.lowest_kb, status.highest_kb, status.seen.writes), (Some(near), Some(far), 3));
    assert_eq!((status.ended, notes(&status).len()), (Some(Ended::Stopped), 0));
    assert_eq!(state::read(&machine.path("tune.json")).expect("ours"), []);
}

#[test]
fn whatever_ends_it_gives_back() {
    let machine = machine();
    drop(start(&machine).0);
    assert_eq!(kb(&machine), 128);
    let (mut watch, fake) = start(&machine);
    fake.0.borrow_mut().push_back(Err(io::ErrorKind::Other));
    let error = watch.look(SECOND).expect_err("the source has failed").to_string();
    assert!(error.contains("allowed: a tracefs that stays") && kb(&machine) != 128, "{error}");
    drop(watch);
    assert_eq!((kb(&machine), state::read(&machine.path("tune.json")).expect("ours")), (128, vec![]));
}

#[test]
fn one_that_was_killed_is_put_right_by_the_next() {
    let machine = machine();
    let (watch, _) = start(&machine);
    let stood = kb(&machine);
    let entries = state::read(&machine.path("tune.json")).expect("ours");
    // As if it had never been told: the state and the number are as they were while it watched.
    drop(watch);
    machine.write("sys/class/bdi/7:5/read_ahead_kb", &stood.to_string());
    let put = |watcher: Process| {
        let entry = state::Entry { watcher: Some(watcher), ..entries[0].clone() };
        state::State::open(&machine.roots(), &machine.path("tune.json"))
            .expect("ours")
            .put(entry)
            .expect("there is room");
    };
    let own = entries[0].watcher.expect("this process");
    put(own);
    let lives = Watch::with(tuner(&machine), settings(), || Ok((Fake::default(), Ok(Fake::default()))))
        .map(|_| ())
        .expect_err("it lives");
    assert!(lives.to_string().contains(&format!("process {} is tuning loop5", own.pid)), "{lives}");
    assert_eq!(kb(&machine), stood);
    put(Process { start_ticks: own.start_ticks + 1, ..own });
    let (watch, _) = start(&machine);
    let status = watch.end(Ended::Time).expect("no error");
    assert_eq!((status.found_kb, status.now_kb, notes(&status).len()), (128, 128, 1));
    assert!(notes(&status)[0].ends_with(&format!("it was {stood}, and is 128 again, as it was found")), "{status:?}");
}

#[test]
fn another_programs_number_stays() {
    let machine = machine();
    let (mut watch, fake) = start(&machine);
    machine.write("sys/class/bdi/7:5/read_ahead_kb", "1024");
    // Also where it is seen only when ours is to be written.
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 16));
    assert_eq!(watch.look(SECOND).expect("no error"), Some(Ended::Changed));
    let status = watch.end(Ended::Changed).expect("no error");
    assert_eq!((kb(&machine), status.now_kb), (1024, 1024));
    assert_eq!(notes(&status), ["another program has set 1024, which stays; 128 was found"]);
    assert_eq!(state::read(&machine.path("tune.json")).expect("ours"), []);
    // It may be the one that stood there before ours.
    machine.write("sys/class/bdi/7:5/read_ahead_kb", "128");
    let (mut watch, fake) = start(&machine);
    let first = kb(&machine);
    fake.serves("7:5", (0..200).map(|request| (request % 2) * 70_000_000));
    watch.look(SECOND).expect("no error");
    assert!(kb(&machine) > first);
    machine.write("sys/class/bdi/7:5/read_ahead_kb", &first.to_string());
    assert_eq!(watch.look(SECOND * 2).expect("no error"), Some(Ended::Changed));
    assert_eq!(watch.end(Ended::Changed).expect("no error").now_kb, first);
    assert_eq!(kb(&machine), first);
}

fn refused(tuner: Tuner, settings: WatchSettings) -> String {
    Watch::with(tuner, settings, || Ok((Fake::default(), Ok(Fake::default()))))
        .map(|_| ())
        .expect_err("refused")
        .to_string()
}

#[test]
fn two_of_one_device_are_refused_whatever_their_state_files() {
    let machine = machine();
    let (watch, _) = start(&machine);
    let stood = kb(&machine);
    let other = || {
        let tuner = tuner(&machine);
        Tuner { settings: Settings { state: machine.path("another.json"), ..tuner.settings.clone() }, ..tuner }
    };
    let text = refused(tuner(&machine), settings());
    assert!(
        text.starts_with(&format!("/dev/loop5: process {} is tuning loop5; allowed: ", std::process::id())),
        "{text}"
    );
    let text = refused(other(), settings());
    assert!(text.starts_with("/dev/loop5: another process is tuning loop5; allowed: "), "{text}");
    other().apply(&Wanted::Depth(Bytes(1 << 20))).expect_err("refused");
    assert_eq!(
        (kb(&machine), tuner(&machine).show(Some(&Wanted::Depth(Bytes(1 << 20)))).expect("a look").old_kb),
        (stood, Some(128))
    );
    drop(watch);
}

#[test]
fn what_cannot_be_watched_is_refused_and_nothing_changed() {
    let machine = machine();
    // What is applied.
    tuner(&machine).apply(&Wanted::Depth(Bytes(1 << 20))).expect("it can be written");
    let text = refused(tuner(&machine), settings());
    assert_eq!(
        text,
        "/dev/loop5: was set by --apply, and was 128 before; allowed: headstart tune --restore first, then --watch"
    );
    tuner(&machine).restore(false).expect("it can be written");
    // No traces, no arm, no place for metrics, no requests.
    let no_traces = || Err(Error::path(Path::new("/t"), "none", "some"));
    assert!(Watch::<Fake>::with(tuner(&machine), settings(), no_traces).is_err());
    assert!(Watch::start(tuner(&machine), settings()).is_err_and(|error| error.to_string().contains("no tracefs")));
    let flash = WatchSettings { profile: "nvme".to_owned(), ..settings() };
    assert!(refused(tuner(&machine), flash).starts_with("profile: nothing moves in \"nvme\""));
    let metrics = WatchSettings { openmetrics: Some(machine.path("no/metrics.prom")), ..settings() };
    assert!(refused(tuner(&machine), metrics).contains("no/metrics.prom: No such file"));
    let metrics = WatchSettings { openmetrics: Some(machine.path("tune.json")), ..settings() };
    assert!(refused(tuner(&machine), metrics).contains("tune.json: is the state file too; allowed: a file of its own"));
    std::fs::remove_dir_all(machine.path("sys/block/loop5/mq")).expect("it is there");
    let text = refused(tuner(&machine), settings());
    assert!(text.starts_with("/dev/loop5: loop5 has no requests of its own that could be followed; allowed: --apply"));
    assert_eq!((kb(&machine), state::read(&machine.path("tune.json")).expect("ours")), (128, vec![]));
}

#[test]
fn a_state_that_cannot_be_written_changes_nothing() {
    let machine = machine();
    // It is none yet, and the one that is to take its place has too long a name.
    let state = machine.path("n".repeat(253));
    let tuner = || {
        let tuner = tuner(&machine);
        Tuner { settings: Settings { state: state.clone(), ..tuner.settings.clone() }, ..tuner }
    };
    let watched = Watch::with(tuner(), settings(), || Ok((Fake::default(), Ok(Fake::default())))).map(|_| ());
    let applied = tuner().apply(&Wanted::Depth(Bytes(1 << 20))).map(|_| ());
    for result in [watched, applied] {
        let text = result.expect_err("refused").to_string();
        assert!(text.contains("nnn: File name too long; allowed: "), "{text}");
        assert_eq!(kb(&machine), 128);
    }
    // In the middle: what stands there stays, and is given back, though the file cannot say so.
    let (mut watch, fake) = start(&machine);
    let first = kb(&machine);
    watch.lose_the_state(&state);
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 16));
    watch.look(SECOND).expect_err("refused");
    assert_eq!(kb(&machine), first);
    drop(watch);
    assert_eq!(kb(&machine), 128);
}

#[test]
fn a_state_that_another_process_keeps_is_tried_again_at_the_next_look() {
    let machine = machine();
    let (mut watch, fake) = start(&machine);
    let first = kb(&machine);
    let kept = state::State::open(&machine.roots(), &machine.path("tune.json")).expect("it is there");
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 16));
    assert_eq!((watch.look(SECOND).expect("it goes on"), kb(&machine)), (None, first));
    drop(kept);
    assert_eq!(watch.look(SECOND * 2).expect("no error"), None);
    assert!(kb(&machine) < first);
    // A lock that cannot be had at all is said, once.
    std::fs::rename(machine.path("run"), machine.path("moved")).expect("ours");
    machine.write("run", "");
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 70_000_000));
    for second in [3, 4] {
        assert_eq!(watch.look(SECOND * second).expect("it goes on"), None);
    }
    let status = watch.status();
    let notes = notes(&status);
    assert!(notes.len() == 1 && notes[0].contains("/run: is no folder"), "{notes:?}");
    std::fs::remove_file(machine.path("run")).expect("ours");
    std::fs::rename(machine.path("moved"), machine.path("run")).expect("ours");
    watch.end(Ended::Stopped).expect("no error");
    assert_eq!(kb(&machine), 128);
}

#[test]
fn metrics_are_of_now() {
    let machine = machine();
    let path = machine.path("tune.prom");
    let fake = Fake::default();
    let settings = WatchSettings { openmetrics: Some(path.clone()), ..settings() };
    let mut watch =
        Watch::with(tuner(&machine), settings, || Ok((fake.clone(), Ok(Fake::default())))).expect("it can be watched");
    fake.serves("7:5", [0, 800, 808]);
    watch.look(SECOND).expect("no error");
    let label = "{device=\"loop5\",profile=\"ibm-36gb-10k\"}";
    let text = std::fs::read_to_string(&path).expect("it is there");
    for line in [
        format!("headstart_tune_read_ahead_bytes{label} {}", kb(&machine) * 1024),
        format!("headstart_tune_found_read_ahead_bytes{label} 131072"),
        format!("headstart_tune_requests_total{label} 3"),
        format!("headstart_tune_switches_total{label} 1"),
        format!("headstart_tune_watching{label} 1"),
        format!("headstart_tune_watched_seconds{label} 1"),
    ] {
        assert_eq!(text.lines().filter(|each| **each == line).count(), 1, "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    watch.end(Ended::Stopped).expect("no error");
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert!(text.contains(&format!("headstart_tune_watching{label} 0\n")), "{text}");
    assert!(text.contains(&format!("headstart_tune_read_ahead_bytes{label} 131072\n")), "{text}");
}

/// Random faults, each of which brings `parts` parts of 64 KiB and is served in one request.
fn faults_miss(requests: &Fake, faults: &Fake, from: u64, count: u64, parts: u64) {
    for fault in from..from + count {
        let offset = fault * (1 << 30);
        let mut lines = format!("mm_filemap_fault: dev=7:5 ino=c ofs={offset}\n");
        for part in 0..parts {
            let offset = offset + part * 65_536 - parts / 2 * 65_536;
            lines += &format!("mm_filemap_add_to_page_cache: dev 7:5 ino c pfn=0x1 ofs={offset} order=0\n");
        }
        lines += &format!("mm_filemap_map_pages: dev=7:5 ino=c ofs={offset}-{}\n", offset + 65_535);
        faults.0.borrow_mut().push_back(Ok(lines));
        let (place, sectors) = ((fault % 2) * 24_000_000, parts * 128);
        let line = format!("block_rq_complete: 7,5 RA () {place} + {sectors} none,0,0 [0]\n");
        requests.0.borrow_mut().push_back(Ok(line));
    }
}

#[test]
fn random_faults_lower_the_number_and_streams_raise_it_again() {
    let machine = machine();
    let (requests, faults) = (Fake::default(), Fake::default());
    let sources = || Ok((requests.clone(), Ok(faults.clone())));
    let mut watch = Watch::with(tuner(&machine), settings(), sources).expect("it can be watched");
    let first = kb(&machine);
    faults_miss(&requests, &faults, 1, 30, 6);
    assert_eq!(watch.look(SECOND).expect("no error"), None);
    let seen = watch.status().seen;
    assert_eq!((kb(&machine), seen.low_for_faults, seen.read_arounds), (128, true, 30), "{first} before");
    assert_eq!((seen.around_bytes, seen.around_used_bytes), (150 * 65_536, 0));
    // The watch's own number is the depth that stands below the competitive one, which is as it was.
    assert!(seen.bytes > 300e3, "{seen:?}");
    // Streams at both places, 64 MiB at each.
    for request in 0..128 {
        let place = (request % 2) * 24_000_000 + 2_048 * (request / 2);
        let line = format!("block_rq_complete: 7,5 RA () {place} + 2048 none,0,0 [0]\n");
        requests.0.borrow_mut().push_back(Ok(line));
    }
    assert_eq!(watch.look(SECOND * 2).expect("no error"), None);
    assert!(kb(&machine) >= 340 && !watch.status().seen.low_for_faults, "{}", kb(&machine));
    // Where faults' events are missing nothing is concluded from what is left; where they fail it goes on without.
    faults_miss(&requests, &faults, 100, 60, 6);
    faults.0.borrow_mut().push_back(Ok("CPU:1 [LOST 212 EVENTS]\n".to_owned()));
    assert_eq!(watch.look(SECOND * 3).expect("no error"), None);
    assert!(kb(&machine) >= 340 && watch.status().seen.lost_faults == 212, "{}", kb(&machine));
    faults.0.borrow_mut().push_back(Err(io::ErrorKind::Other));
    (4..6).for_each(|second| assert_eq!(watch.look(SECOND * second).expect("it goes on"), None));
    let status = watch.status();
    let notes = notes(&status);
    assert!(notes.len() == 1 && notes[0].starts_with("faults of mapped files are no longer seen: "), "{notes:?}");
}

#[test]
fn without_events_of_faults_it_says_so_once() {
    let machine = machine();
    let fake = Fake::default();
    let missing = || Err(Error::path(Path::new("/tracing"), "there is no mm_filemap_fault", "Linux 6.12"));
    let mut watch = Watch::with(tuner(&machine), settings(), || Ok((fake.clone(), missing()))).expect("without");
    fake.serves("7:5", (0..400).map(|request| (request % 2) * 16));
    (1..4).for_each(|second| assert_eq!(watch.look(SECOND * second).expect("no error"), None));
    let note =
        "faults of mapped files are not taken into account: /tracing: there is no mm_filemap_fault; allowed: Linux";
    let status = watch.status();
    assert!(notes(&status).len() == 1 && notes(&status)[0].starts_with(note), "{:?}", status.notes);
    assert!(kb(&machine) < 200 && !status.seen.low_for_faults);
}
