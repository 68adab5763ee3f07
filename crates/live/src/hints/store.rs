//! What earlier runs of commands have read: one recording for each command, in the user's cache folder.
//!
//! A command is the program as it was found, its arguments and the working folder. A recording is written once and whole, its time of
//! change is when it was recorded, its time of access when it was last used. The store is bounded: the recordings that have not been used
//! for longest go. A recording of another user is not used, since it says which files this process opens.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use headstart_trace::hints::Recording;
use headstart_types::system_says;
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

use crate::PathError;

/// Bytes of recordings at most: some thousand commands.
const BYTES_MAX: u64 = 256 << 20;
/// Bytes that have to be free before a run is recorded.
const FREE_MIN: u64 = 1 << 20;
/// After so long a file of an unfinished recording is of no process that still runs.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const ALLOWED: &str = "a folder that can be written, with room; XDG_CACHE_HOME names another";

/// The folder of the user of this process: `headstart/run` in $XDG_CACHE_HOME or ~/.cache; of root without either, in /var/cache.
///
/// # Errors
/// There is no place for it.
pub fn folder() -> Result<PathBuf, PathError> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let of_root = || nix::unistd::geteuid().is_root().then(|| "/var/cache".into());
    let none = || PathError::new("~/.cache".as_ref(), "there is no HOME", "XDG_CACHE_HOME or HOME set to a folder");
    Ok(cache.or_else(of_root).ok_or_else(none)?.join("headstart/run"))
}

/// The place of one command's recording.
#[derive(Debug)]
pub struct Slot {
    /// The recording, if there is one.
    pub path: PathBuf,
    program: PathBuf,
}

/// The right to record a command; one process has it at a time.
#[derive(Debug)]
pub struct Turn {
    _lock: Flock<File>,
    path: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Slot {
    /// That of `command` in this working folder; `None` if there is no such program.
    #[must_use]
    pub fn of(store: &Path, command: &[OsString]) -> Option<Self> {
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
        Some(Self { path: store.join(format!("{plain}-{sum}.hints")), program })
    }

    /// Whether there is a recording that may be used, and the program is not newer than that.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        let (Ok(recording), Ok(program)) = (fs::symlink_metadata(&self.path), fs::metadata(&self.program)) else {
            return false;
        };
        let time = |of: &fs::Metadata| (of.mtime(), of.mtime_nsec());
        recording.is_file()
            && recording.uid() == nix::unistd::geteuid().as_raw()
            && (program.ctime(), program.ctime_nsec()) <= time(&recording)
    }

    /// Says that the recording is used now.
    #[allow(clippy::disallowed_methods)] // When it was used last decides which one is removed, and nothing of a run.
    pub fn touch(&self) {
        let now = FileTimes::new().set_accessed(SystemTime::now());
        let _ = File::open(&self.path).and_then(|file| file.set_times(now));
    }

    /// Removes the recording: the next run records.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Asks for the right to record; `None` if another process has it.
    ///
    /// # Errors
    /// The folder cannot be made or written, or has no room.
    pub fn turn(&self) -> Result<Option<Turn>, PathError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let problem = |error: io::Error| PathError::new(folder, system_says(&error), ALLOWED);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(problem)?;
        let room = nix::sys::statvfs::statvfs(folder).map_err(|error| problem(error.into()))?;
        if room.blocks_available().saturating_mul(room.fragment_size()) < FREE_MIN {
            return Err(problem(io::ErrorKind::StorageFull.into()));
        }
        let path = self.path.with_extension("lock");
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(problem)?;
        Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok().map(|lock| Turn { _lock: lock, path }))
    }

    /// Keeps a recording, and removes those that there is no room for. Returns its bytes.
    ///
    /// # Errors
    /// It cannot be written; then the old one, if there was one, is as it was.
    pub fn keep(&self, recording: &Recording, _turn: &Turn) -> Result<u64, PathError> {
        recording.write(&self.path).map_err(|error| PathError::new(&self.path, error_text(&error), ALLOWED))?;
        bound(self.path.parent().unwrap_or(Path::new("/")), BYTES_MAX);
        Ok(fs::metadata(&self.path).map_or(0, |found| found.len()))
    }
}

/// What is wrong with a recording's file, without its name.
fn error_text(error: &headstart_trace::TraceError) -> String {
    let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    cause.map_or_else(|| error.to_string(), system_says)
}

/// Removes the recordings that were not used for longest, down to `bytes_max`, and what killed processes have left.
#[allow(clippy::disallowed_methods)] // As in `touch`.
fn bound(folder: &Path, bytes_max: u64) {
    let mut recordings = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let path = entry.path();
        if path.extension() == Some(OsStr::new("hints")) {
            recordings.push(((found.atime(), found.atime_nsec()), found.len(), path));
        } else if found.is_file()
            && found.modified().is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > ABANDONED))
        {
            let _ = fs::remove_file(path);
        }
    }
    recordings.sort();
    let mut bytes: u64 = recordings.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, path) in recordings {
        if bytes <= bytes_max {
            break;
        }
        let _ = fs::remove_file(path);
        bytes -= length;
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
    use super::*;
    use crate::tune::testing::Machine;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_has_one_place_and_another_command_another() {
        let store = Path::new("/store");
        let path = |words: &[&str]| Slot::of(store, &command(words)).expect("a program").path;
        assert_eq!(path(&["sh", "-c", "x"]), path(&["sh", "-c", "x"]));
        assert!(path(&["sh"]).to_str().is_some_and(|path| path.starts_with("/store/sh-") && path.ends_with(".hints")));
        let others =
            [path(&["sh", "-c", "x"]), path(&["sh", "-cx"]), path(&["sh", "-c", "x", ""]), path(&["cat", "-c", "x"])];
        assert_eq!(others.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{others:?}");
        assert!(
            Slot::of(store, &command(&["no-such-program"])).is_none() && Slot::of(store, &command(&["/tmp"])).is_none()
        );
    }

    #[test]
    fn one_process_records_and_a_newer_program_is_recorded_again() {
        let machine = Machine::new();
        let program = machine.path("program");
        fs::copy("/bin/sh", &program).expect("there is room");
        let slot = Slot::of(&machine.path("store"), &[program.clone().into()]).expect("a program");
        assert!(!slot.is_recorded());
        let turn = slot.turn().expect("a folder").expect("no other process");
        assert!(slot.turn().expect("a folder").is_none());
        machine.write(&format!("store/{}", slot.path.file_name().expect("a name").to_string_lossy()), "a recording");
        assert!(slot.is_recorded());
        drop(turn);
        assert!(slot.turn().expect("a folder").is_some());
        std::thread::sleep(Duration::from_millis(20));
        fs::copy("/bin/sh", &program).expect("there is room");
        assert!(!slot.is_recorded(), "the program is newer");
    }

    #[test]
    fn the_recordings_used_last_stay() {
        let machine = Machine::new();
        for (at, name) in ["b", "a", "c"].into_iter().enumerate() {
            machine.write(&format!("store/{name}.hints"), &"x".repeat(99));
            let times = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64));
            File::open(machine.path(format!("store/{name}.hints")))
                .and_then(|file| file.set_times(times))
                .expect("ours");
        }
        machine.write("store/.old.tmp", "left");
        let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        let left = File::options().write(true).open(machine.path("store/.old.tmp"));
        left.and_then(|file| file.set_times(old)).expect("ours");
        machine.write("store/a.lock", "young");
        bound(&machine.path("store"), 250);
        let mut names: Vec<_> =
            fs::read_dir(machine.path("store")).expect("a folder").flatten().map(|each| each.file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.hints", "a.lock", "c.hints"]);
    }
}
