//! What earlier runs of commands have read: one recording for each command, in the user's cache folder.
//!
//! A command is the program as it was found, its arguments and the working folder. A recording is written once and whole, its time of
//! change is when it was recorded, its time of access when it was last used. The store is bounded: the recordings that have not been used
//! for longest go. A recording of another user is not used, since it says which files this process opens.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use headstart_trace::hints::{Recording, MAGIC};
use headstart_types::system_says;
use sha2::{Digest, Sha256};

use headstart_host::owned::{replace, try_lock, OwnFolder};
use headstart_host::PathError;

/// Bytes of recordings at most: some thousand commands.
const BYTES_MAX: u64 = 256 << 20;
/// Bytes that have to be free before a run is recorded.
const FREE_MIN: u64 = 1 << 20;
/// After so long a file of an unfinished recording is of no process that still runs.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const MODE: u32 = 0o600;
const ALLOWED: &str = "a folder that can be written, with room; XDG_CACHE_HOME names another";
const REMOVED: &str = "a recording of `headstart run`: move it away";

/// Where recordings are.
#[derive(Debug, Clone)]
pub struct Store {
    /// The folder that the user has named, and those in it.
    named: PathBuf,
    below: &'static [&'static str],
}

impl Store {
    /// That of the user of this process: `headstart/run` in $XDG_CACHE_HOME or ~/.cache; of root without either, in /var/cache.
    ///
    /// # Errors
    /// There is no place for it.
    pub fn of_user() -> Result<Self, PathError> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let in_cache = |named| Self { named, below: &["headstart", "run"] };
        let in_home = |named| Self { named, below: &[".cache", "headstart", "run"] };
        let of_root = || nix::unistd::geteuid().is_root().then(|| in_cache("/var/cache".into()));
        let none = || PathError::new("~/.cache".as_ref(), "there is no HOME", "XDG_CACHE_HOME or HOME set to a folder");
        let named = absolute("XDG_CACHE_HOME").map(in_cache).or_else(|| absolute("HOME").map(in_home));
        named.or_else(of_root).ok_or_else(none)
    }

    fn open(&self, make: bool) -> Result<Option<OwnFolder>, PathError> {
        OwnFolder::open(&self.named, self.below, make).map_err(|mut problem| {
            problem.allowed += "; XDG_CACHE_HOME names another folder";
            problem
        })
    }
}

/// The place of one command's recording.
#[derive(Debug)]
pub struct Slot {
    store: Store,
    /// Of the recording's file.
    name: String,
    program: PathBuf,
}

/// The right to record a command; one process has it at a time.
#[derive(Debug)]
pub struct Turn {
    folder: OwnFolder,
    _lock: File,
    lock_path: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock_path);
    }
}

impl Slot {
    /// That of `command` in this working folder; `None` if there is no such program.
    #[must_use]
    pub fn of(store: &Store, command: &[OsString]) -> Option<Self> {
        let here = env::current_dir().unwrap_or_default();
        let program = here.join(found(command.first()?)?);
        let mut sum = Sha256::new();
        for part in
            [program.as_os_str(), here.as_os_str()].into_iter().chain(command[1..].iter().map(OsString::as_os_str))
        {
            sum.update((part.len() as u64).to_le_bytes());
            sum.update(part.as_bytes());
        }
        let sum: String = sum.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let plain: String =
            name.chars().filter(|each| each.is_ascii_alphanumeric() || "._+-".contains(*each)).take(64).collect();
        Some(Self { store: store.clone(), name: format!("{plain}-{sum}.hints"), program })
    }

    /// The recording, if there is one that may be used and the program is not newer than that: its path, for errors, and the file.
    ///
    /// # Errors
    /// The folder or the file is not this user's alone.
    pub fn recorded(&self) -> Result<Option<(PathBuf, File)>, PathError> {
        let Some(folder) = self.store.open(false)? else { return Ok(None) };
        let path = folder.path().join(&self.name);
        let file = match folder.open_file(&self.name, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| PathError::new(&path, system_says(&error), REMOVED))?,
        };
        let time = |of: &fs::Metadata| (of.mtime(), of.mtime_nsec());
        let is_newer = match (file.metadata(), fs::metadata(&self.program)) {
            (Ok(recording), Ok(program)) => (program.ctime(), program.ctime_nsec()) > time(&recording),
            _ => true,
        };
        Ok((!is_newer).then_some((path, file)))
    }

    /// Removes the recording: the next run records.
    ///
    /// # Errors
    /// The folder or the file is not this user's alone, or is no recording.
    pub fn remove(&self) -> Result<(), PathError> {
        let Some(folder) = self.store.open(false)? else { return Ok(()) };
        let path = folder.path().join(&self.name);
        let removed = match may_be_replaced(&folder, &self.name) {
            Ok(true) => fs::remove_file(folder.at(&self.name)),
            Ok(false) => Err(io::Error::other("is no recording")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|error| PathError::new(&path, system_says(&error), REMOVED))
    }

    /// Asks for the right to record; `None` if another process has it.
    ///
    /// # Errors
    /// The folder cannot be made or written, is not this user's alone, or has no room; or what is in the recording's place is none.
    pub fn turn(&self) -> Result<Option<Turn>, PathError> {
        let folder = self.store.open(true)?.expect("it is made");
        let problem = |error: io::Error| PathError::new(folder.path(), system_says(&error), ALLOWED);
        let room = nix::sys::statvfs::statvfs(&folder.at("")).map_err(|error| problem(error.into()))?;
        if room.blocks_available().saturating_mul(room.fragment_size()) < FREE_MIN {
            return Err(problem(io::ErrorKind::StorageFull.into()));
        }
        let in_place =
            |name: &str, error: io::Error| PathError::new(&folder.path().join(name), system_says(&error), REMOVED);
        match may_be_replaced(&folder, &self.name) {
            Ok(true) => {}
            Ok(false) => return Err(in_place(&self.name, io::Error::other("is no recording"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(in_place(&self.name, error)),
        }
        let name = format!("{}.lock", self.name.trim_end_matches(".hints"));
        let mut options = OpenOptions::new();
        let file = folder.open_file(&name, options.write(true).create(true).truncate(false).mode(MODE));
        let file = file.map_err(|error| in_place(&name, error))?;
        let lock_path = folder.at(&name);
        let is_ours = try_lock(&file).map_err(|error| in_place(&name, error))?;
        // Made only then: dropping it removes the file.
        Ok(is_ours.then(|| Turn { folder, _lock: file, lock_path }))
    }

    /// Keeps a recording, and removes those that there is no room for. Returns its path and bytes.
    ///
    /// # Errors
    /// It cannot be written; then the old one, if there was one, is as it was.
    pub fn keep(&self, recording: &Recording, turn: &Turn) -> Result<(PathBuf, u64), PathError> {
        let path = turn.folder.path().join(&self.name);
        let written = recording.encoded().and_then(|bytes| {
            replace(&turn.folder.at(&self.name), &bytes, MODE, true)?;
            Ok(bytes.len() as u64)
        });
        let bytes = written.map_err(|error| PathError::new(&path, system_says(&error), ALLOWED))?;
        bound(&turn.folder, BYTES_MAX);
        Ok((path, bytes))
    }
}

/// Says that a recording is used now.
#[allow(clippy::disallowed_methods)] // When it was used last decides which one is removed, and nothing of a run.
pub fn touch(recording: &File) {
    let _ = recording.set_times(FileTimes::new().set_accessed(SystemTime::now()));
}

/// Whether a file of this user begins as a recording does, or is empty, as a loss of power may leave one.
fn may_be_replaced(folder: &OwnFolder, name: impl AsRef<OsStr>) -> io::Result<bool> {
    let file = folder.open_file(name, OpenOptions::new().read(true))?;
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(MAGIC.starts_with(&head))
}

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Recording,
    /// Of a process that runs, or was killed: a lock, or a recording that is not whole.
    Unfinished,
}

fn kind_of(name: &str) -> Option<Kind> {
    let is_ours = |stem: &str| {
        let sum = stem.rsplit_once('-').map_or("", |(_, sum)| sum);
        sum.len() == 16 && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let unfinished = |name: &str| {
        let (stem, random) = name.strip_prefix('.')?.rsplit_once(".hints.")?;
        (random.len() == 6).then(|| is_ours(stem)).filter(|is_ours| *is_ours)
    };
    match name.strip_suffix(".hints") {
        Some(stem) if is_ours(stem) => Some(Kind::Recording),
        _ if name.strip_suffix(".lock").is_some_and(is_ours) => Some(Kind::Unfinished),
        _ => unfinished(name).map(|_| Kind::Unfinished),
    }
}

/// Removes the recordings that were not used for longest, down to `bytes_max`, and what killed processes have left. What has not both the
/// name and the content of a file of ours stays.
#[allow(clippy::disallowed_methods)] // As in `touch`.
fn bound(folder: &OwnFolder, bytes_max: u64) {
    let mut recordings = Vec::new();
    for entry in fs::read_dir(folder.at("")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(kind) = name.to_str().and_then(kind_of) else { continue };
        let Ok(found) = entry.metadata() else { continue };
        let is_old =
            || found.modified().is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED));
        if kind == Kind::Recording {
            recordings.push(((found.atime(), found.atime_nsec()), found.len(), name));
        } else if is_old() && may_be_replaced(folder, &name).unwrap_or(false) {
            let _ = fs::remove_file(folder.at(&name));
        }
    }
    recordings.sort();
    let mut bytes: u64 = recordings.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, name) in recordings {
        if bytes <= bytes_max {
            break;
        }
        if may_be_replaced(folder, &name).unwrap_or(false) {
            let _ = fs::remove_file(folder.at(&name));
            bytes -= length;
        }
    }
}

/// The program of that name as a shell finds it.
pub(super) fn found(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let found = env::split_paths(&folders).map(|folder| folder.join(name)).find(runs);
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;
    use headstart_host::testing::Machine;

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

    /// A file that was used and changed in that second after 1970.
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
            Slot::of(&store, &command(&["no-such-program"])).is_none()
                && Slot::of(&store, &command(&["/tmp"])).is_none()
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
        // Old: removed with the name and the content of ours alone.
        let stays =
            ["notes.hints", ".notes.tmp", &name(5, "hints"), &name(5, "lock"), &format!(".{}.a", name(6, "hints"))];
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
        // What is no recording is not replaced.
        machine.write(&format!("cache/run/{}", slot.name), "my notes");
        assert!(slot.turn().is_err() && slot.remove().is_err());
        assert_eq!(machine.read(&format!("cache/run/{}", slot.name)), "my notes");
    }
}
