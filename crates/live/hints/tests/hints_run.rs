//! Commands run with hints on the machine's own file system. Tests that need root or a tracefs print a note if it is
//! missing.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gate::{cached_pages, soon, Gate};
use headstart_hints::{
    device_number, run, Error, HintList, HintedFile, HintedRange, Report, Settings, Status, PAGE_BYTES,
};
use headstart_host::Roots;
use headstart_policy::registry::policy;
use toml::Table;

#[path = "../../host/tests/common/gate.rs"]
mod gate;

/// Signals of a process go to one command.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A folder with files whose pages are not in the page cache.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        // Not in /tmp, which may be an in-memory file system.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hints-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("there is room");
        Self(path)
    }

    fn file(&self, name: &str, pages: u64) -> PathBuf {
        let path = self.0.join(name);
        let mut file = File::create(&path).expect("there is room");
        (0..pages).for_each(|page| file.write_all(&[page as u8; PAGE_BYTES as usize]).expect("there is room"));
        file.sync_all().expect("it is on the disk");
        forget(&path);
        path
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

fn hinted(path: &Path) -> HintedFile {
    let found = fs::metadata(path).expect("it is there");
    let (major, minor) = (nix::sys::stat::major(found.dev()), nix::sys::stat::minor(found.dev()));
    HintedFile {
        path: path.to_owned(),
        identity: (device_number(major, minor), found.ino()),
        is_device: false,
        size: Some(found.len()),
        mtime_ns: Some(i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())),
        came_pages: 0,
    }
}

fn list(files: &[(&Path, u64, u32)]) -> HintList {
    let range = |(at, (_, first, count)): (usize, &(&Path, u64, u32))| HintedRange {
        file: at as u32,
        first: *first,
        count: *count,
        ..HintedRange::default()
    };
    HintList {
        files: files.iter().map(|(path, _, _)| hinted(path)).collect(),
        ranges: files.iter().enumerate().map(range).collect(),
        elapsed_ns: 0,
        ..HintList::default()
    }
}

fn settings(list: HintList, command: &[&str]) -> Settings {
    Settings {
        command: command.iter().map(OsString::from).collect(),
        list,
        row: policy("aggressive").expect("it is in the registry"),
        keys: Table::new(),
        budget_bytes: 64 << 20,
        trusted: false,
        arm: None,
        roots: Roots::of_machine(),
    }
}

fn tried(settings: Settings) -> Result<(Status, Report), Error> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    run(settings)
}

/// Trusted hints, which are followed at once.
fn trusted(list: HintList, command: &[&str]) -> Settings {
    Settings { trusted: true, ..settings(list, command) }
}

fn ran(settings: Settings) -> (Status, Report) {
    tried(settings).expect("it can be run")
}

/// Whether references to the files of our lists are visible on this machine; prints a note if not.
fn observed(report: &Report) -> bool {
    if !report.observed {
        eprintln!("SKIPPED: the command's reads are not seen here: {:?}", report.notes);
    }
    report.observed && !on_overlay()
}

/// Whether the files of these tests lie on an overlay; prints a note if so.
fn on_overlay() -> bool {
    let found = nix::sys::statfs::statfs(env!("CARGO_TARGET_TMPDIR")).expect("it is there");
    let is_overlay = found.filesystem_type() == nix::sys::statfs::OVERLAYFS_SUPER_MAGIC;
    if is_overlay {
        eprintln!("SKIPPED: on an overlay our lists do not name the devices that the kernel does");
    }
    is_overlay
}

/// Opens the gate once the condition holds, or at the latest after a timeout. Returns whether it held.
fn open_when(gate: Gate, is: impl FnMut() -> bool + Send + 'static) -> JoinHandle<bool> {
    thread::spawn(move || {
        let came = soon(is);
        // The pages are in the page cache, but the message of the read may still be on its way.
        thread::sleep(Duration::from_secs(1));
        drop(gate.open());
        came
    })
}

#[test]
fn what_is_read_later_is_there_and_counted_as_used() {
    let folder = Folder::new("used");
    let (read, unread) = (folder.file("read", 300), folder.file("unread", 20));
    let hints = list(&[(&read, 0, 300), (&unread, 0, 20)]);
    let gate = Gate::new(folder.0.join("gate"));
    let script = format!("{}; cat '{}' > /dev/null; sleep 0.1", gate.pass(), read.display());
    let came = open_when(gate, move || cached_pages(&read) == 300 && cached_pages(&unread) == 20);
    let (status, report) = ran(trusted(hints, &["sh", "-c", &script]));
    assert!(came.join().expect("it looks"), "{report:?}");
    assert_eq!(status, Status::Code(0));
    assert_eq!((report.hinted_bytes, report.stopped.as_deref()), (320 * PAGE_BYTES, None));
    assert_eq!(report.prefetched_bytes + report.cached_bytes, 320 * PAGE_BYTES, "{report:?}");
    assert_eq!(report.prefetched_bytes, report.used_bytes + report.wasted_bytes);
    if observed(&report) {
        assert!(report.used_bytes + report.cached_bytes >= 300 * PAGE_BYTES && report.late_bytes == 0, "{report:?}");
        assert!(report.wasted_bytes <= 20 * PAGE_BYTES, "{report:?}");
    }
}

#[test]
fn how_the_command_ends_is_how_it_ended() {
    let folder = Folder::new("ends");
    let file = folder.file("file", 4);
    let hints = || list(&[(&file, 0, 4)]);
    assert_eq!(ran(settings(hints(), &["sh", "-c", "exit 41"])).0, Status::Code(41));
    assert_eq!(ran(settings(hints(), &["sh", "-c", "kill -KILL $$"])).0, Status::Signal(9));
    assert_eq!(ran(settings(HintList::default(), &["true"])).0, Status::Code(0));
    let error = tried(settings(hints(), &["/no/such/program"])).expect_err("there is none");
    assert!(error.is_missing());
    assert_eq!(error.to_string(), "/no/such/program: No such file or directory; allowed: a program that can be run");
    let witness = folder.0.join("ran");
    let mut other = settings(hints(), &["touch", witness.to_str().expect("plain")]);
    other.row = policy("optimum").expect("it is in the registry");
    assert!(matches!(tried(other), Err(Error::Key(_))), "it plans for one process");
    assert!(!witness.exists());
}

#[test]
fn no_instance_of_tracefs_is_left() {
    let folder = Folder::new("left");
    let file = folder.file("file", 4);
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    run(settings(list(&[(&file, 0, 4)]), &["true"])).expect("it can be run");
    // The kernel removes an instance later, and this process does not wait for it.
    assert!(soon(|| own_instances().is_empty()), "{:?}", own_instances());
}

/// Whether a process uses the tracefs instance that is kept.
fn is_kept_in_use() -> bool {
    let kept = File::open(Roots::of_machine().tracing.join("instances/headstart-run")).ok();
    kept.is_some_and(|kept| nix::fcntl::Flock::lock(kept, nix::fcntl::FlockArg::LockExclusiveNonblock).is_err())
}

/// The tracefs instances of this process, beside the one that is kept.
fn own_instances() -> Vec<OsString> {
    let own = format!("headstart-{}-", std::process::id());
    let instances = fs::read_dir(Roots::of_machine().tracing.join("instances"));
    let names = instances.into_iter().flatten().flatten().map(|each| each.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&own)).collect()
}

#[test]
fn a_command_that_does_something_else_is_not_watched_to_its_end() {
    if !nix::unistd::geteuid().is_root() || !Roots::of_machine().tracing.join("events/filemap").is_dir() {
        return eprintln!("SKIPPED: needs root and a tracefs");
    }
    let folder = Folder::new("other");
    let (hint, name) = (folder.file("hint", 4), |at: u32| folder.0.join(format!("other{at}")));
    // More than the references after which hints of another command are given up.
    (0..300).for_each(|at| drop(folder.file(name(at).file_name().expect("plain").to_str().expect("plain"), 1)));
    let gate = Gate::new(folder.0.join("gate"));
    let script = format!("cat '{}'/other* > /dev/null; {}", folder.0.display(), gate.pass());
    let one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let instances = || own_instances().len() + usize::from(is_kept_in_use());
    assert!(soon(|| instances() == 0), "those of other tests go");
    let seen = std::cell::Cell::new(false);
    let running = thread::spawn({
        let settings = settings(list(&[(&hint, 0, 4)]), &["sh", "-c", &script]);
        move || run(settings).expect("it can be run")
    });
    let gone = soon(|| {
        seen.set(seen.get() || instances() > 0);
        running.is_finished() || (seen.get() && instances() == 0)
    });
    let was_running = !running.is_finished();
    drop(gate.open());
    let (_, report) = running.join().expect("it ends");
    drop(one);
    if report.observed {
        assert!(gone && was_running, "the trace goes while the command waits");
        assert_eq!(report.stopped.as_deref(), Some("the command does not read what the hints say"));
        assert_eq!((report.prefetched_bytes, report.used_bytes), (0, 0));
    }
}

#[test]
fn files_that_have_changed_are_left_alone() {
    let folder = Folder::new("stale");
    let files: Vec<PathBuf> = (0..4).map(|at| folder.file(&format!("file{at}"), 128)).collect();
    let hints = list(&files.iter().map(|file| (file.as_path(), 0, 128)).collect::<Vec<_>>());
    fs::remove_file(&files[0]).expect("ours");
    File::options().write(true).open(&files[1]).and_then(|file| file.set_len(4096)).expect("ours");
    // Another file with this name, of the same size and age.
    let before = fs::metadata(&files[2]).and_then(|found| found.modified()).expect("it is there");
    let other = folder.file("other", 128);
    File::options().write(true).open(&other).and_then(|file| file.set_modified(before)).expect("ours");
    fs::rename(&other, &files[2]).expect("ours");
    let (status, report) = ran(trusted(hints, &["sleep", "2"]));
    assert_eq!(status, Status::Code(0));
    // It stops once it has seen two of the three.
    assert!(report.stale_bytes >= 2 * 128 * PAGE_BYTES, "{report:?}");
    assert!(report.prefetched_bytes <= 128 * PAGE_BYTES, "{report:?}");
    assert_eq!(report.stopped.as_deref(), Some("the hints are stale: their files have changed"));
}

#[test]
fn a_sparse_file_of_100_gib_costs_nothing() {
    let folder = Folder::new("sparse");
    let path = folder.0.join("sparse");
    let file = File::create(&path).and_then(|file| file.set_len(100 << 30).map(|()| file));
    if let Err(problem) = file {
        eprintln!("SKIPPED: no sparse files here: {problem}");
        return;
    }
    let far = ((100u64 << 30) / PAGE_BYTES) - 2000;
    let (_, report) = ran(trusted(list(&[(&path, far, 2000)]), &["sleep", "0.3"]));
    assert_eq!((report.prefetched_bytes, report.stale_bytes), (0, 0), "{report:?}");
}

#[test]
fn trusted_hints_of_an_arm_are_read_before_the_command_starts() {
    let folder = Folder::new("head-start");
    let path = folder.file("file", 1000);
    // The recorded command did nothing but wait for a minute.
    let mut hints = list(&[(&path, 0, 1000)]);
    hints.elapsed_ns = 60_000_000_000;
    hints.ranges[0].wait_ns = hints.elapsed_ns;
    let (status, report) = ran(Settings { arm: Some(true), ..trusted(hints.clone(), &["true"]) });
    assert_eq!(status, Status::Code(0));
    assert!(report.head_start_ns > 0);
    assert_eq!(report.prefetched_bytes + report.cached_bytes, 1000 * PAGE_BYTES, "{report:?}");
    // No head start for a command that thinks for as long as it waits, without an arm, or if hints are not trusted.
    let mut thinks = hints.clone();
    thinks.ranges[0].wait_ns /= 2;
    let others = [
        Settings { arm: Some(true), ..trusted(thinks, &["true"]) },
        Settings { arm: Some(false), ..trusted(hints.clone(), &["true"]) },
        Settings { arm: Some(true), ..settings(hints, &["true"]) },
    ];
    assert!(others.into_iter().all(|other| ran(other).1.head_start_ns == 0));
}

#[test]
fn hints_of_another_command_cost_little() {
    let folder = Folder::new("wrong");
    let wrong = folder.file("wrong", 12_000);
    let mut settings = settings(list(&[(&wrong, 0, 12_000)]), &["sleep", "0.6"]);
    settings.arm = Some(true);
    let (_, report) = ran(settings);
    if observed(&report) {
        assert_eq!(report.prefetched_bytes, 0, "nothing before the command has read what the hints say: {report:?}");
    }
}

#[test]
fn without_a_tracefs_everything_goes_within_the_budget() {
    let folder = Folder::new("blind");
    let file = folder.file("file", 2000);
    let gate = Gate::new(folder.0.join("gate"));
    let mut settings = settings(list(&[(&file, 0, 2000)]), &["sh", "-c", &gate.pass()]);
    settings.roots.tracing = folder.0.join("none");
    settings.budget_bytes = 1000 * PAGE_BYTES;
    let came = open_when(gate, move || cached_pages(&file) >= 1000);
    let (_, report) = ran(settings);
    assert!(came.join().expect("it looks"), "{report:?}");
    assert!(!report.observed && report.notes.len() == 1, "{report:?}");
    assert_eq!((report.prefetched_bytes, report.used_bytes), (1000 * PAGE_BYTES, 0));
}

#[test]
fn signals_sent_to_us_reach_the_command() {
    let folder = Folder::new("signals");
    let file = folder.file("file", 4);
    let own = std::process::id();
    let script = format!("trap 'exit 5' USR1; kill -USR1 {own}; for i in $(seq 6000); do sleep 0.02; done; exit 1");
    assert_eq!(ran(settings(list(&[(&file, 0, 4)]), &["sh", "-c", &script])).0, Status::Code(5));
    // The previous action is restored: the default one ends the process.
    let status = Command::new("sh").args(["-c", "kill -USR1 $$"]).status().expect("there is a shell");
    assert!(!status.success());
}

/// What every recording contains: programs, and their libraries, which are those of this process.
fn programs(names: &[&str]) -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").expect("there is proc");
    let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).filter(|path| path.contains(".so"));
    let found = names.iter().map(|name| format!("/bin/{name}")).chain(libraries.map(str::to_owned));
    let mut found: Vec<PathBuf> = found.filter_map(|path| fs::canonicalize(path).ok()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn hints_that_prove_right_are_followed() {
    if on_overlay() {
        return;
    }
    let folder = Folder::new("proves");
    // Enough to prove the hints right, whatever else the programs read, and wherever that lies.
    let (first, second) = (folder.file("first", 4000), folder.file("second", 600));
    let programs = programs(&["sh", "cat"]);
    let pages = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len().div_ceil(PAGE_BYTES)) as u32;
    let mut files: Vec<(&Path, u64, u32)> = programs.iter().map(|path| (path.as_path(), 0, pages(path))).collect();
    files.extend([(first.as_path(), 0, 4000), (second.as_path(), 0, 600)]);
    let gate = Gate::new(folder.0.join("gate"));
    let (one, pause, other) = (first.display(), gate.pass(), second.display());
    let script = format!("cat '{one}' > /dev/null; {pause}; cat '{other}' > /dev/null");
    let mut settings = settings(list(&files), &["sh", "-c", &script]);
    settings.list.command.clone_from(&settings.command);
    settings.list.folder = std::env::current_dir().expect("there is one");
    let came = open_when(gate, move || cached_pages(&second) == 600);
    let (_, report) = ran(settings);
    let came = came.join().expect("it looks");
    if observed(&report) {
        assert!(came && report.stopped.is_none(), "{report:?}");
        assert!(report.used_bytes >= 600 * PAGE_BYTES, "{report:?}");
    }
}
