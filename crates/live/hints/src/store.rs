//! The recordings of earlier runs: one per command, in the user's cache folder.
//!
//! A command is identified by the program found, its arguments and the working folder. A recording is written once,
//! atomically; its modification time is when it was recorded, its access time when it was last used. The store is
//! bounded: the least recently used recordings are removed. A recording of another user is not used, since it
//! determines which files this process opens.

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

use headstart_host::owned::{replace, try_lock, LockedFile, OwnFolder};
use headstart_host::PathError;

/// Maximum bytes of recordings: some thousand commands.
const BYTES_MAX: u64 = 256 << 20;
/// Minimum free bytes to record a run.
const FREE_MIN: u64 = 1 << 20;
/// After this time, a file of an unfinished recording cannot belong to a running process.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const MODE: u32 = 0o600;
const ALLOWED: &str = "a folder that can be written, with room; XDG_CACHE_HOME names another";
const REMOVED: &str = "a recording of `headstart run`: move it away";

/// The place of the recordings.
#[derive(Debug, Clone)]
pub struct Store {
    /// The folder that the user named, and the folders below.
    named: PathBuf,
    below: &'static [&'static str],
}

impl Store {
    /// The store of this process's user: `headstart/run` in $XDG_CACHE_HOME or ~/.cache; for root without either, in
    /// /var/cache.
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
    /// The name of the recording's file.
    name: String,
    program: PathBuf,
}

/// The right to record a command; only one process has it at a time.
#[derive(Debug)]
pub struct Turn {
    folder: OwnFolder,
    _lock: LockedFile,
    lock_path: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock_path);
    }
}

impl Slot {
    /// The slot of `command` in this working folder; `None` if there is no such program.
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

    /// The path, for errors, and the file of the recording, if there is a usable one and the program is not newer.
    ///
    /// # Errors
    /// The folder or the file does not belong to this user alone.
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

    /// Removes the recording, so that the next run records.
    ///
    /// # Errors
    /// The folder or the file does not belong to this user alone, or the file is not a recording.
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

    /// Requests the right to record; `None` if another process has it.
    ///
    /// # Errors
    /// The folder cannot be created or written, does not belong to this user alone, or has no room; or another file is
    /// in the place of the recording.
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
        let lock = try_lock(file).map_err(|error| in_place(&name, error))?;
        // Created only then, as dropping it removes the file.
        Ok(lock.map(|lock| Turn { folder, _lock: lock, lock_path }))
    }

    /// Stores a recording, and removes those that there is no room for. Returns its path and size in bytes.
    ///
    /// # Errors
    /// It cannot be written; an old recording is unchanged then.
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

/// Marks a recording as used now.
#[allow(clippy::disallowed_methods)] // When it was used last decides which one is removed, and nothing of a run.
pub fn touch(recording: &File) {
    let _ = recording.set_times(FileTimes::new().set_accessed(SystemTime::now()));
}

/// Whether a file of this user starts like a recording, or is empty, which a loss of power may cause.
fn may_be_replaced(folder: &OwnFolder, name: impl AsRef<OsStr>) -> io::Result<bool> {
    let file = folder.open_file(name, OpenOptions::new().read(true))?;
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(MAGIC.starts_with(&head))
}

/// The kind of a file, from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Recording,
    /// Belongs to a running or killed process: a lock, or an incomplete recording.
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

/// Removes the least recently used recordings, down to `bytes_max`, and what killed processes have left. Files without
/// both the name and the content of ours stay.
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

/// Finds a program as a shell does.
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
#[path = "store_tests.rs"]
mod tests;
