use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;

use super::*;
use headstart_host::testing::{calls, Machine};
use headstart_trace::hints::About;

fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn store(machine: &Machine) -> Store {
    Store { named: machine.path("cache"), below: &["run"] }
}

fn names(machine: &Machine, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(machine.path(folder)).expect("a folder").flatten();
    let mut names: Vec<_> = entries.map(|each| each.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A file that was used and changed at this second after 1970.
fn put(machine: &Machine, path: &str, text: &str, second: u64) {
    machine.write(path, text);
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    let times = FileTimes::new().set_accessed(at).set_modified(at);
    File::open(machine.path(path)).and_then(|file| file.set_times(times)).expect("ours");
}

#[test]
fn a_command_has_one_place_and_another_command_another() {
    let store = Store { named: "/cache".into(), below: &["run"] };
    let name = |words: &[&str]| Slot::of(&store, &command(words)).expect("a program").name;
    assert_eq!(name(&["sh", "-c", "x"]), name(&["sh", "-c", "x"]));
    assert!(name(&["sh"]).starts_with("sh-") && kind_of(&name(&["sh"])) == Some(Kind::Recording));
    let others =
        [name(&["sh", "-c", "x"]), name(&["sh", "-cx"]), name(&["sh", "-c", "x", ""]), name(&["cat", "-c", "x"])];
    assert_eq!(others.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{others:?}");
    assert!(
        Slot::of(&store, &command(&["no-such-program"])).is_none() && Slot::of(&store, &command(&["/tmp"])).is_none()
    );
}

#[test]
fn one_process_records_and_a_newer_program_is_recorded_again() {
    let machine = Machine::new();
    let program = machine.path("program");
    fs::copy("/bin/sh", &program).expect("there is room");
    let slot = Slot::of(&store(&machine), &[program.clone().into()]).expect("a program");
    let is_recorded = || slot.recorded().expect("ours").is_some();
    assert!(!is_recorded());
    let turn = slot.turn().expect("a folder").expect("no other process");
    assert!(slot.turn().expect("a folder").is_none());
    machine.write(&format!("cache/run/{}", slot.name), "headstart-hints 1 {}");
    assert!(is_recorded());
    drop(turn);
    assert!(slot.turn().expect("a folder").is_some());
    std::thread::sleep(Duration::from_millis(20));
    fs::copy("/bin/sh", &program).expect("there is room");
    assert!(!is_recorded(), "the program is newer");
    slot.remove().expect("a recording");
    assert_eq!(names(&machine, "cache/run"), [""; 0]);
}

#[test]
fn the_recordings_used_last_stay_and_what_is_not_ours() {
    let machine = Machine::new();
    let folder = store(&machine).open(true).expect("ours").expect("made");
    let name = |at: usize, end: &str| format!("x-0123456789abcde{at}.{end}");
    let recording = format!("headstart-hints {}", "x".repeat(83));
    for (at, second) in [(0, 1), (1, 0), (2, 2)] {
        put(&machine, &format!("cache/run/{}", name(at, "hints")), &recording, second);
    }
    // Old files: removed only with the name and the content of ours.
    let stays = ["notes.hints", ".notes.tmp", &name(5, "hints"), &name(5, "lock"), &format!(".{}.a", name(6, "hints"))];
    stays.iter().for_each(|name| put(&machine, &format!("cache/run/{name}"), &"y".repeat(99), 0));
    let old = [name(7, "lock"), format!(".{}.abcdef", name(7, "hints")), format!(".{}.ghijkl", name(7, "hints"))];
    old.iter().zip(["", "headst", &recording]).for_each(|(name, text)| {
        put(&machine, &format!("cache/run/{name}"), "", 0);
        fs::write(machine.path(format!("cache/run/{name}")), text).expect("there is room");
        let past = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        let file = File::options().write(true).open(machine.path(format!("cache/run/{name}")));
        file.and_then(|file| file.set_times(past)).expect("ours");
    });
    machine.write(&format!("cache/run/{}", name(8, "lock")), "");
    bound(&folder, 350);
    let mut left: Vec<String> = stays.iter().map(|name| (*name).to_owned()).collect();
    left.extend([name(0, "hints"), name(2, "hints"), name(8, "lock")]);
    left.sort();
    assert_eq!(names(&machine, "cache/run"), left);
}

#[test]
fn links_and_pipes_in_the_store_are_refused_and_nothing_is_written_or_removed() {
    let machine = Machine::new();
    let slot = Slot::of(&store(&machine), &command(&["sh"])).expect("a program");
    put(&machine, "victim/accounts.db", "data", 0);
    fs::create_dir(machine.path("cache")).expect("there is room");
    symlink(machine.path("victim"), machine.path("cache/run")).expect("ours");
    for refused in [slot.recorded().map(|_| ()), slot.remove(), slot.turn().map(|_| ())] {
        let text = refused.expect_err("a link").to_string();
        assert!(text.contains("/cache/run: is a symbolic link; allowed: "), "{text}");
        assert!(text.ends_with("XDG_CACHE_HOME names another folder"), "{text}");
    }
    assert_eq!(names(&machine, "victim"), ["accounts.db"]);
    fs::remove_file(machine.path("cache/run")).expect("a link");
    drop(slot.turn().expect("ours").expect("no other process"));
    let lock = slot.name.replace(".hints", ".lock");
    for (name, of_turn) in [(&slot.name, "recording"), (&lock, "lock")] {
        let path = machine.path(format!("cache/run/{name}"));
        for (what, said) in [("pipe", "is no regular file"), ("link", "is a symbolic link")] {
            match what {
                "pipe" => nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("there is room"),
                _ => symlink(machine.path("new"), &path).expect("there is room"),
            }
            let text = slot.turn().expect_err(of_turn).to_string();
            assert!(text.contains(&format!("{name}: {said}; allowed: ")), "{text}");
            fs::remove_file(&path).expect("it is there");
        }
    }
    assert!(!machine.path("new").exists());
    // A file that is not a recording is not replaced.
    machine.write(&format!("cache/run/{}", slot.name), "my notes");
    assert!(slot.turn().is_err() && slot.remove().is_err());
    assert_eq!(machine.read(&format!("cache/run/{}", slot.name)), "my notes");
}

const COMMAND: [&str; 3] = ["/bin/sh", "-c", "x"];

/// A recording that its number distinguishes.
fn recording(number: u64) -> Recording {
    let about = About {
        command: COMMAND.map(str::to_owned).to_vec(),
        folder: "/".to_owned(),
        recorded_at_s: 0,
        elapsed_ns: number,
        exit_status: 0,
        kernel: String::new(),
        page_bytes: 4096,
        cold: false,
        lost_events: 0,
        recordings: 1,
    };
    Recording { about, processes: Vec::new(), files: Vec::new(), reads: Vec::new() }
}

fn slot(machine: &Machine) -> Slot {
    Slot::of(&store(machine), &command(&COMMAND)).expect("a program")
}

/// Uses the store as `headstart run` does: reads the recording, or records.
fn read_or_record(machine: &Machine) -> String {
    let slot = slot(machine);
    let done = || -> Result<String, PathError> {
        if let Some((path, file)) = slot.recorded()? {
            touch(&file);
            return Ok(match Recording::read_from(&path, file) {
                Ok(recording) => format!("read {}", recording.about.elapsed_ns),
                Err(_) => slot.remove().map(|()| "forgot".to_owned())?,
            });
        }
        let Some(turn) = slot.turn()? else { return Ok("another records".to_owned()) };
        slot.keep(&recording(2), &turn).map(|_| "kept".to_owned())
    };
    done().unwrap_or_else(|problem| problem.to_string())
}

/// A store with these bytes for the command, as of `at`.
fn with(bytes: &[u8], at: SystemTime) -> Machine {
    let machine = Machine::new();
    store(&machine).open(true).expect("there is room");
    let path = machine.path("cache/run").join(slot(&machine).name);
    fs::write(&path, bytes).expect("there is room");
    File::open(&path).and_then(|file| file.set_times(FileTimes::new().set_modified(at))).expect("ours");
    machine
}

/// Whichever call fails: a recording is either complete or absent, nothing is left for good, and the next run is helped
/// or records.
#[test]
#[allow(clippy::disallowed_methods)] // A recording is older or newer than its program.
fn at_every_call_that_fails_the_store_has_an_old_recording_or_a_new_one() {
    let test = "store::tests::at_every_call_that_fails_the_store_has_an_old_recording_or_a_new_one";
    let old = recording(1).encoded().expect("in memory");
    let now = SystemTime::now();
    let long_ago = SystemTime::UNIX_EPOCH;
    let kinds: [(&[u8], &dyn Fn() -> Machine); 4] = [
        (b"", &Machine::new),
        (&old, &|| with(&old, long_ago)),
        (&old, &|| with(&old, now)),
        (&old[..60], &|| with(&old[..60], now)),
    ];
    for (before, prepare) in kinds {
        calls::each(test, "", read_or_record, prepare, |machine, outcome| {
            let said = outcome.said.as_deref().unwrap_or("kept");
            let is_line = said.contains(": ") && said.contains("; allowed: ") && !said.contains('\n');
            assert!(is_line || ["kept", "forgot", "read 1"].contains(&said), "{outcome}");
            let path = machine.path("cache/run").join(slot(machine).name);
            match fs::read(&path) {
                Err(error) => assert!(error.kind() == io::ErrorKind::NotFound && said != "read 1", "{outcome}"),
                Ok(there) if there == before => assert!(outcome.said.is_none() || said != "kept", "{outcome}"),
                Ok(_) => assert_eq!(Recording::read(&path).expect("it is whole"), recording(2), "{outcome}"),
            }
            // A day later.
            for entry in fs::read_dir(machine.path("cache/run")).into_iter().flatten().flatten() {
                let file = File::open(entry.path()).expect("it is there");
                file.set_times(FileTimes::new().set_modified(long_ago)).expect("ours");
            }
            let next = [read_or_record(machine), read_or_record(machine)];
            assert_eq!(next, ["kept", "read 2"], "{outcome}");
            assert_eq!(names(machine, "cache/run"), [slot(machine).name], "{outcome}");
        });
    }
}
