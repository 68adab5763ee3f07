//! The program `headstart-run`: its store, and its handling of faults, each of them real. Tests that need root or a
//! tracefs print a note if it is missing.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread::sleep;
use std::time::Duration;

use gate::{cached_pages, copy_program, soon, Gate};
use headstart_host::Roots;
use headstart_trace::hints::{About, FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording};

#[path = "../../host/tests/common/gate.rs"]
mod gate;

const PROGRAM: &str = env!("CARGO_BIN_EXE_headstart-run");
const PAGE: usize = 4096;

/// Locked for writing to empty the page cache of all, for reading to rely on its content.
static PAGE_CACHE: RwLock<()> = RwLock::new(());

/// A folder on a disk (/tmp may be in memory) with its own store.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("launcher-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("there is room");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of `pages` pages that are not in the page cache.
    fn file(&self, name: &str, pages: usize) -> PathBuf {
        let path = self.path(name);
        let mut file = File::create(&path).expect("there is room");
        (0..pages).for_each(|page| file.write_all(&[page as u8; PAGE]).expect("there is room"));
        file.sync_all().expect("it is on the disk");
        forget(&path);
        path
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(&self.0).env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it starts")
    }

    /// The files of the store whose names end with `end`.
    fn stored(&self, end: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path("cache/headstart/run")).into_iter().flatten().flatten();
        files.map(|each| each.path()).filter(|path| path.to_string_lossy().ends_with(end)).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Evicts a file from the page cache.
fn forget(path: &Path) {
    let file = File::open(path).expect("it is there");
    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("a file");
}

/// Whether commands can be traced on this machine; prints a note if not.
fn can_trace() -> bool {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = kernel.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
    let can = nix::unistd::geteuid().is_root() && is_new && Path::new("/sys/kernel/tracing").is_dir();
    if !can {
        eprintln!("SKIPPED: needs root and Linux 6.12 with tracefs");
    }
    can
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn report(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("a report")).expect("JSON")
}

/// The number of tracefs instances that a process has left.
fn instances_of(process: u32) -> usize {
    let all = fs::read_dir(Roots::of_machine().tracing.join("instances")).into_iter().flatten().flatten();
    all.filter(|each| each.file_name().to_string_lossy().starts_with(&format!("headstart-{process}-"))).count()
}

#[test]
fn the_first_run_is_recorded_and_the_second_one_helped() {
    if !can_trace() {
        return;
    }
    let _cache = PAGE_CACHE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("store");
    // Whether untrusted hints are followed further depends on other activity of disk and processor: hints_run.rs tests
    // that.
    let (proof, data) = (folder.file("proof", 1200), folder.file("data", 600));
    let gate = Gate::new(folder.path("gate"));
    copy_program("/bin/sh", &folder.path("shell"));
    let script = format!("cat '{}' | wc -c; {}; cat '{}' | wc -c", proof.display(), gate.pass(), data.display());
    let words = ["-v", "--trust", "--report", "r.json", "--", "./shell", "-c", &script];
    let start = || folder.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let run = || {
        let running = start();
        let _open = gate.open();
        running.wait_with_output().expect("it ends")
    };
    let first = run();
    assert_eq!((first.status.code(), &*first.stdout), (Some(0), &b"4915200\n2457600\n"[..]), "{}", said(&first));
    assert!(said(&first).contains("recorded for the next run: "), "{}", said(&first));
    assert_eq!((folder.stored(".hints").len(), folder.stored("").len()), (1, 1));
    [&proof, &data].into_iter().for_each(|path| forget(path));
    let second = start();
    // While the command waits, everything that it is going to read comes, however slow the disk is.
    assert!(soon(|| cached_pages(&data) == 600), "{} pages", cached_pages(&data));
    drop(gate.open());
    let second = second.wait_with_output().expect("it ends");
    assert_eq!(second.stdout, first.stdout);
    let found = report(&folder.path("r.json"));
    let number = |key: &str| found[key].as_u64().expect("a number");
    assert_eq!(found["observed"], true);
    assert!(number("used_bytes") >= 600 * PAGE as u64, "{found}");
    assert_eq!(number("prefetched_bytes"), number("used_bytes") + number("wasted_bytes"), "{found}");
    assert!(number("prefetched_bytes") + number("cached_bytes") <= number("hinted_bytes"), "{found}");
    assert!(said(&second).contains("MB prefetched") && folder.stored(".hints").len() == 1, "{}", said(&second));
    // Another program of that name is recorded anew. So is the same one on demand, or if its recording is damaged.
    copy_program("/bin/sh", &folder.path("shell"));
    let _open = File::options().read(true).write(true).open(folder.path("gate")).expect("ours");
    assert!(said(&folder.run(&words)).contains("recorded for the next run: "));
    assert!(said(&folder.run(&[&["--forget"], &words[..]].concat())).contains("recorded for the next run: "));
    let recording = &folder.stored(".hints")[0];
    let whole = fs::read(recording).expect("a recording");
    File::create(recording).and_then(|mut file| file.write_all(&whole[..whole.len() / 2])).expect("there is room");
    let damaged = folder.run(&words);
    assert_eq!(damaged.stdout, first.stdout);
    assert!(said(&damaged).contains("the next run is recorded anew: ") && folder.stored(".hints").is_empty());
}

#[test]
fn cold_runs_begin_with_empty_caches() {
    if !can_trace() {
        return;
    }
    let _cache = PAGE_CACHE.write().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("cold");
    let data = folder.file("data", 600);
    fs::read(&data).expect("it is there");
    let (data, name) = (data.display().to_string(), "r.json");
    let words = ["--cold", "--trust", "--report", name, "--", "sh", "-c", "cat \"$0\" | wc -c", &data];
    let first = folder.run(&words);
    assert_eq!((first.status.code(), &*first.stdout), (Some(0), &b"2457600\n"[..]), "{}", said(&first));
    let recording = Recording::read(&folder.stored(".hints")[0]).expect("a recording");
    assert!(recording.about.cold);
    let file = recording.files.iter().position(|file| file.path.ends_with("data")).expect("its path");
    // All of it came from the device, though it was read just before.
    let reads = recording.references().filter(|read| read.file as usize == file);
    assert!(reads.filter(|read| !read.hit).count() > 0);
    assert_eq!(folder.run(&words).stdout, first.stdout);
    assert!(report(&folder.path(name))["hinted_bytes"].as_u64().is_some_and(|bytes| bytes >= 600 * PAGE as u64));
}

#[test]
fn runs_at_the_same_time_record_once_and_whole() {
    if !can_trace() {
        return;
    }
    let folder = Folder::new("together");
    let gate = Gate::new(folder.path("gate"));
    let script = format!("echo >> started; {}; exit 3", gate.pass());
    let start = || folder.command(&["--", "sh", "-c", &script]).spawn().expect("it starts");
    let running: Vec<Child> = (0..4).map(|_| start()).collect();
    // No recording exists before its command ends: all four look for one before that.
    assert!(soon(|| fs::read(folder.path("started")).is_ok_and(|lines| lines.len() == 4)));
    let _open = gate.open();
    for mut child in running {
        assert_eq!(child.wait().expect("it ends").code(), Some(3));
    }
    let recordings = folder.stored("");
    assert_eq!(recordings.len(), 1, "{recordings:?}");
    assert_eq!(Recording::read(&recordings[0]).expect("it is whole").about.exit_status, 3);
    let rights = folder.path("cache/headstart/run").metadata().expect("it is there").mode();
    assert_eq!(rights & 0o777, 0o700, "no other user's");
}

#[test]
fn a_killed_headstart_leaves_the_command_alone() {
    // A command that cannot be recorded is not started as a child: headstart becomes it.
    if !can_trace() {
        return;
    }
    let folder = Folder::new("killed");
    for moment_ms in [0, 2, 5, 10, 20, 40, 80] {
        for helped in [false, true] {
            let witness = folder.path(&format!("ran-{moment_ms}-{helped}"));
            let script = format!("sleep 0.3; echo done > '{}'", witness.display());
            if helped {
                folder.run(&["--", "sh", "-c", &script]);
                let _ = fs::remove_file(&witness);
            }
            // A command that is left alone replaces headstart.
            let mut running = folder.command(&["--trust", "--", "sh", "-c", &script]).spawn().expect("it starts");
            sleep(Duration::from_millis(moment_ms));
            // Before the command has begun there is nothing to be left alone.
            let children = format!("/proc/{0}/task/{0}/children", running.id());
            let begun = fs::read_to_string(children).is_ok_and(|children| !children.trim().is_empty());
            running.kill().expect("ours");
            running.wait().expect("it ends");
            assert!(!begun || soon(|| witness.exists()), "killed after {moment_ms} ms");
            folder.run(&["-v", "--", "true"]);
            assert!(soon(|| instances_of(running.id()) == 0), "the next start removes what is left");
        }
    }
}

#[test]
fn how_the_command_ends_is_how_this_ends() {
    let folder = Folder::new("ends");
    for words in [&["--"][..], &["-v", "--"]] {
        let run = |script: &str| folder.run(&[words, &["sh", "-c", script]].concat());
        // Recorded, then helped.
        for _ in 0..2 {
            assert_eq!(run("exit 41").status.code(), Some(41));
            assert_eq!(run("kill -KILL $$").status.signal(), Some(9));
            assert_eq!(run("kill -SEGV $$").status.signal(), Some(11));
            assert_eq!(run("exec 0<&- 1>&- 2>&-; exit 5").status.code(), Some(5));
        }
    }
    let missing = folder.run(&["--", "/no/such/program"]);
    assert_eq!((missing.status.code(), said(&missing).lines().count()), (Some(127), 1), "{}", said(&missing));
    assert_eq!(folder.run(&["--", "/tmp"]).status.code(), Some(126));
    let mistake = folder.run(&["--polcy", "x", "true"]);
    assert_eq!(mistake.status.code(), Some(2));
    assert!(said(&mistake).starts_with("headstart run: No such option: --polcy; allowed: --hints, "));
}

#[test]
fn signals_that_are_sent_to_us_are_the_commands() {
    let folder = Folder::new("signals");
    // A shell cannot trap a signal that is ignored from the start, such as SIGHUP below nohup(1).
    let status = fs::read_to_string("/proc/self/status").expect("there is proc");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map_or("0", str::trim);
    let ignored = u64::from_str_radix(ignored, 16).expect("hexadecimal");
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10)] {
        if ignored >> (number - 1) & 1 == 1 {
            eprintln!("SKIPPED: SIG{name} is ignored here");
            continue;
        }
        let script = format!("trap 'exit 5' {name}; echo ready > ready-{name}; while :; do sleep 0.02; done");
        // Recorded, then helped.
        for _ in 0..2 {
            let ready = folder.path(&format!("ready-{name}"));
            let _ = fs::remove_file(&ready);
            let mut running = folder.command(&["--", "sh", "-c", &script]).spawn().expect("it starts");
            assert!(soon(|| ready.metadata().is_ok_and(|found| found.len() > 0)), "{name}");
            let sent = Command::new("kill").args([format!("-{name}"), running.id().to_string()]).status();
            assert!(sent.is_ok_and(|sent| sent.success()));
            assert_eq!(running.wait().expect("it ends").code(), Some(5), "{name}");
        }
    }
}

/// Runs the program through a shell in a mount namespace of its own, after the commands in `before`.
fn in_own_mounts(folder: &Folder, before: &str, words: &str) -> Option<Output> {
    let script = format!("{before} && exec '{PROGRAM}' {words}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(&folder.0).env("XDG_CACHE_HOME", folder.path("cache"));
    let done = command.output().ok().filter(|_| nix::unistd::geteuid().is_root());
    if done.is_none() {
        eprintln!("SKIPPED: needs root and unshare");
    }
    done
}

#[test]
fn without_root_a_tracefs_or_room_the_command_runs_and_one_line_says_why() {
    let folder = Folder::new("without");
    let check = |done: &Output, why: &str| {
        assert_eq!((done.status.code(), &*done.stdout), (Some(7), &b"out\n"[..]), "{why}: {}", said(done));
        assert_eq!(said(done).lines().count(), 1, "{}", said(done));
        assert!(said(done).contains(why) && said(done).contains("; this run is not recorded"), "{why}: {}", said(done));
    };
    let words = "-- sh -c 'echo out; exit 7'";
    // If no tracefs is mounted, the program mounts one for itself, if permitted.
    let may_not =
        format!("umount --all --types tracefs; exec setpriv --bounding-set -sys_admin -- '{PROGRAM}' {words}");
    if let Some(done) = in_own_mounts(&folder, &may_not, "") {
        check(&done, "there is no tracefs");
    }
    // On a machine without tracing, every case reports just that.
    if !can_trace() {
        return;
    }
    fs::create_dir_all(folder.path("cache/headstart/run")).expect("there is room");
    let full =
        "mount -t tmpfs -o size=64k,mode=700 none cache/headstart/run && (cat /dev/zero > cache/headstart/run/x || :) 2>&-";
    if let Some(done) = in_own_mounts(&folder, full, words) {
        check(&done, "no storage space");
    }
    if let Some(done) = in_own_mounts(&folder, "mount -t tmpfs -o ro,mode=700 none cache/headstart/run", words) {
        check(&done, "Read-only file system");
    }
    if let Some(done) = in_own_mounts(&folder, "export XDG_CACHE_HOME=/proc/none", words) {
        check(&done, "/proc/none");
    }
    // The program and its folder, where another user may run it.
    let place = std::env::temp_dir().join(format!("headstart-launcher-{}", std::process::id()));
    fs::create_dir_all(&place).expect("there is room");
    // Only root can give it away, and only root needs to.
    let _ = std::os::unix::fs::chown(&place, Some(65534), Some(65534));
    copy_program(PROGRAM, &place.join("headstart-run"));
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(place.join("headstart-run"));
    command.args(["--", "sh", "-c", "echo out; exit 7"]).env("XDG_CACHE_HOME", place.join("cache")).current_dir("/");
    let is_mounted = fs::exists("/sys/kernel/tracing/instances").is_ok_and(|exists| exists);
    let why = if is_mounted { "without root" } else { "there is no tracefs" };
    match command.output() {
        Ok(done) if nix::unistd::geteuid().is_root() => check(&done, why),
        _ => eprintln!("SKIPPED: needs root and setpriv"),
    }
    fs::remove_dir_all(place).expect("ours");
}

/// A recording in which these files are read from the first page on.
fn recording(files: &[PathBuf], pages: u32) -> Recording {
    let described = |path: &PathBuf| {
        let found = fs::metadata(path).expect("it is there");
        RecordedFile {
            kind: FileKind::Regular,
            path: path.clone(),
            major: nix::sys::stat::major(found.dev()) as u32,
            minor: nix::sys::stat::minor(found.dev()) as u32,
            inode: found.ino(),
            size_bytes: found.len(),
            mtime_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
        }
    };
    let read =
        |file| Read { time_ns: 0, wait_ns: 0, process: 0, file, start: 0, pages, kind: ReadKind::Read, hit: false };
    Recording {
        about: About {
            command: vec!["x".to_owned()],
            folder: "/".to_owned(),
            recorded_at_s: 1,
            elapsed_ns: 1_000_000,
            exit_status: 0,
            kernel: "6.18".to_owned(),
            page_bytes: PAGE as u64,
            cold: true,
            lost_events: 0,
            recordings: 1,
        },
        processes: vec![RecordedProcess { pid: 1, name: "x".to_owned() }],
        files: files.iter().map(described).collect(),
        reads: (0..files.len() as u32).map(read).collect(),
    }
}

#[test]
fn files_that_go_or_shrink_meanwhile_do_no_harm() {
    let folder = Folder::new("meanwhile");
    let files: Vec<PathBuf> = (0..40).map(|at| folder.file(&format!("file{at}"), 300)).collect();
    recording(&files, 300).write(&folder.path("x.hints")).expect("there is room");
    let options = ["--hints", "x.hints", "--trust", "--report", "r.json", "--"];
    let mut running = folder.command(&[&options[..], &["sleep", "0.5"]].concat()).spawn().expect("it starts");
    for (at, file) in files.iter().enumerate() {
        match at % 3 {
            0 => fs::remove_file(file).expect("ours"),
            1 => File::options().write(true).open(file).and_then(|file| file.set_len(PAGE as u64)).expect("ours"),
            _ => {}
        }
    }
    assert_eq!(running.wait().expect("it ends").code(), Some(0));
    let found = report(&folder.path("r.json"));
    let number = |key: &str| found[key].as_u64().expect("a number");
    assert!(number("prefetched_bytes") + number("cached_bytes") <= number("hinted_bytes"), "{found}");
    assert_eq!(number("prefetched_bytes"), number("used_bytes") + number("wasted_bytes"));
}

#[test]
fn a_hundred_thousand_files_are_no_trouble() {
    let folder = Folder::new("many");
    let mut files = Vec::new();
    for at in 0..100 {
        let inner = folder.path(&format!("{at}"));
        fs::create_dir(&inner).expect("there is room");
        // Links would count as one file.
        files.extend((0..1000).map(|at| inner.join(at.to_string())));
    }
    files.iter().for_each(|file| File::create(file).and_then(|file| file.set_len(PAGE as u64)).expect("there is room"));
    recording(&files, 1).write(&folder.path("x.hints")).expect("there is room");
    let options = ["--hints", "x.hints", "--trust", "--report", "r.json", "--"];
    let mut command = folder.command(&[&options[..], &["sleep", "2"]].concat());
    let done = command.stderr(Stdio::piped()).output().expect("it starts");
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let found = report(&folder.path("r.json"));
    assert_eq!((found["hinted_bytes"].as_u64(), found["stale_bytes"].as_u64()), (Some(100_000 * PAGE as u64), Some(0)));
}

#[test]
fn a_measurement_is_three_lines_and_changes_nothing() {
    let folder = Folder::new("measure");
    for (words, why) in [
        (&["--measure", "0", "--", "true"][..], "--measure: \"0\"; allowed: a number of runs from 1 to 10000"),
        (&["--measure", "2", "--openmetrics", "m", "--", "true"], "--openmetrics: cannot be combined with --measure"),
    ] {
        let done = folder.run(words);
        assert_eq!((done.status.code(), said(&done).contains(why)), (Some(2), true), "{}", said(&done));
    }
    if !can_trace() {
        return;
    }
    let _cache = PAGE_CACHE.write().unwrap_or_else(PoisonError::into_inner);
    let done = folder.run(&["--measure", "1", "--report", "r.json", "--", "sh", "-c", "echo out; exit 3"]);
    let lines = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!((done.status.code(), lines.lines().count()), (Some(0), 3), "{lines}{}", said(&done));
    assert!(
        lines.starts_with("plain ") && lines.contains("\nrun ") && lines.contains(": too few runs to tell"),
        "{lines}"
    );
    assert!(said(&done).contains("the command ended with status [3]"), "{}", said(&done));
    let found = report(&folder.path("r.json"));
    let times = |way: &str| found[way]["elapsed_ns"].as_array().map(Vec::len);
    assert_eq!((times("plain"), times("run"), &found["ratio_range"]), (Some(1), Some(1), &serde_json::Value::Null));
    let ratio =
        found["run"]["median_ns"].as_f64().zip(found["plain"]["median_ns"].as_f64()).map(|(run, plain)| run / plain);
    assert!(found["ratio"].as_f64().zip(ratio).is_some_and(|(one, other)| (one - other).abs() < 1e-6), "{found}");
    // The command was recorded first, once.
    assert_eq!(folder.stored(".hints").len(), 1);
}
