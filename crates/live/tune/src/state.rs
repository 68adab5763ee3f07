//! What was found before anything was written, in a file, so that a later run can restore it.
//!
//! The file is JSON, one entry a device. It is replaced as a whole (a new file, synced, renamed), so that a reader finds
//! the old one or the new one. An entry is written before the number that it speaks of, and removed after that has been
//! taken back: even after a kill at any point the file has what is needed. Writers take turns by a lock ([`super::lock`]).

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use headstart_types::{system_says, KeyError};
use serde::{Deserialize, Serialize};

use headstart_host::owned::{open_file, remove_unfinished, replace, LockedFile};

use super::lock::{private_folder, try_lock};
use super::{Device, Error, Kind};
use headstart_host::{Process, Roots};

/// A writer holds the file for an instant; one that holds it for ten seconds may be any program.
const TRIES: u32 = if cfg!(test) { 10 } else { 500 };
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Where the state is, unless one says otherwise.
pub const DEFAULT_STATE: &str = "/var/lib/headstart/tune.json";
/// Of the file: its content decides what root writes.
const MODE: u32 = 0o600;
/// Of the file: thousands of devices.
const LARGEST_BYTES: u64 = 4 << 20;
/// Version of the file.
const SCHEMA: u32 = 1;
const ALLOWED: &str = "a file that headstart tune has written, in a folder that can be written";

const BACKING: &str = "the name of a backing device, such as 8:0";
/// Of a read-ahead: `blockdev --setra` goes up to 2^31 sectors of 512 bytes. The kernel takes any number of 64 bits, and
/// shows some of them as negative ones.
pub(super) const LARGEST_KB: u64 = 1 << 30;

/// What is known of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The backing device's name, in this boot: what its folder in sysfs is called.
    pub backing: String,
    /// As the device was named then, and its own name.
    pub path: String,
    pub name: String,
    /// Its serial number or the like.
    pub identity: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Its medium.
    pub sequence: Option<u64>,
    /// The boot in which this was written. After another one, none of our numbers is set.
    pub boot_id: String,
    /// What was found.
    pub old_kb: u64,
    /// Numbers of ours that may be set: the one before and the latest. If we are killed, it is one of the two.
    pub ours_kb: Vec<u64>,
    /// The process that watches, and restores the number when it ends.
    pub watcher: Option<Process>,
}

impl Entry {
    /// # Errors
    /// The boot is not known.
    pub fn new(device: &Device, roots: &Roots, old_kb: u64, watcher: Option<Process>) -> Result<Self, Error> {
        Ok(Self {
            backing: device.backing_name(),
            path: device.path.to_string_lossy().into_owned(),
            name: device.label(),
            identity: device.identity.clone(),
            size_bytes: device.size_bytes,
            sequence: device.sequence,
            boot_id: roots.boot_id()?,
            old_kb,
            ours_kb: Vec::new(),
            watcher,
        })
    }

    /// Refuses what no read-ahead can be, and names that lead elsewhere: the file may have been written by others.
    fn check(&self) -> Result<(), KeyError> {
        let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if !is_name(&self.backing) {
            return Err(KeyError::new("backing", format!("is damaged: backing {:?}", self.backing), BACKING));
        }
        let largest = self.ours_kb.iter().copied().fold(self.old_kb, u64::max);
        match largest > LARGEST_KB {
            true => {
                let problem = format!("is damaged: {}: a read-ahead of {largest} KiB", self.name);
                Err(KeyError::new("old_kb", problem, format!("at most {LARGEST_KB} KiB")))
            }
            false => Ok(()),
        }
    }

    /// `kb` is about to be written over `now`: one of the two is there from now on.
    pub fn writes(&mut self, now: u64, kb: u64) {
        self.ours_kb.retain(|each| *each == now && *each != kb);
        self.ours_kb.push(kb);
    }

    /// Whether it speaks of this very device, with the file that a loop device had, and not of another in its place.
    pub fn is_of(&self, device: &Device) -> bool {
        // A disk keeps its number under another medium.
        let same_disk = device.kind == Kind::Disk && self.identity.is_some();
        self.identity == device.identity && (same_disk || self.sequence == device.sequence)
    }

    /// Whether what was found may be written: a loop device keeps its number under another file.
    pub fn is_for(&self, device: &Device) -> bool {
        device.kind == Kind::Loop || self.is_of(device)
    }

    /// Whether what it found counts for the device, where the number is `now`; or is recorded again.
    pub fn goes_on(&self, device: &Device, now: u64) -> bool {
        let known = now == self.old_kb || self.ours_kb.contains(&now);
        match device.kind {
            Kind::Loop => known || self.is_of(device),
            // The same file system may have been mounted again, with a number that is not ours.
            Kind::FileSystem => known && self.is_of(device),
            Kind::Disk | Kind::Stacked => self.is_of(device),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    schema: u32,
    entries: Vec<Entry>,
}

/// The entries of a file; none where there is no file.
///
/// # Errors
/// It cannot be read, or was not written by us.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    match text_of(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::path(path, system_says(&error), ALLOWED)),
        Ok(text) => parse(path, &text),
    }
}

/// The same for a user who need not be allowed to read it: `None` then.
///
/// # Errors
/// As [`read`].
pub(super) fn read_if_allowed(path: &Path) -> Result<Option<Vec<Entry>>, Error> {
    match text_of(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        _ => read(path).map(Some),
    }
}

/// What a file of this user or of root says.
fn text_of(path: &Path) -> io::Result<String> {
    let file = open_file(path, fs::OpenOptions::new().read(true))?;
    let mut text = String::new();
    file.take(LARGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, Error> {
    let broken = |what: &str| {
        let allowed = "a file that headstart tune has written; without it what was found before is not known: \
                       move it away, and set the read-ahead by hand";
        Error::path(path, format!("is damaged: {what}"), allowed)
    };
    // Another version may have other fields: its number comes first.
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| broken(&format!("no JSON from line {} on", error.line())))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema != u64::from(SCHEMA) => {
            Err(Error::path(path, format!("has schema {schema}"), format!("schema {SCHEMA}, of this version")))
        }
        _ => {
            let known = "its keys or their values are not those of this version";
            let entries = serde_json::from_value::<Stored>(value).map_err(|_| broken(known))?.entries;
            entries.iter().try_for_each(Entry::check).map_err(|what| Error::path(path, what.problem, what.allowed))?;
            Ok(entries)
        }
    }
}

/// The file, locked against other writers.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    entries: Vec<Entry>,
    _lock: LockedFile,
}

impl State {
    /// Waits some seconds for its turn, and reads. The folder is made, for its owner alone, if it is not there.
    ///
    /// # Errors
    /// It cannot be read or written, is damaged, or another process keeps it.
    pub fn open(roots: &Roots, path: &Path) -> Result<Self, Error> {
        for _ in 0..TRIES {
            if let Some(state) = Self::try_open(roots, path)? {
                return Ok(state);
            }
            sleep(BETWEEN_TRIES);
        }
        Err(Error::path(&roots.run.join("state.lock"), "is held by another process", "one at a time: wait, or end it"))
    }

    /// The same without waiting: `None` where another process has its turn.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn try_open(roots: &Roots, path: &Path) -> Result<Option<Self>, Error> {
        make_folder_of(path)?;
        let Some(lock) = try_lock(roots, "state")? else { return Ok(None) };
        // With the lock nobody else writes: unfinished files are of a process that was killed.
        remove_unfinished(path);
        Ok(Some(Self { path: path.to_owned(), entries: read(path)?, _lock: lock }))
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn entry(&self, device: &Device) -> Option<&Entry> {
        let backing = device.backing_name();
        self.entries.iter().find(|entry| entry.backing == backing)
    }

    /// Puts an entry in the place of the one of its device.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&mut self, entry: Entry) -> Result<(), Error> {
        self.entries.retain(|each| each.backing != entry.backing);
        self.entries.push(entry);
        self.save()
    }

    /// Keeps those of which it is true; writes if there are others.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) -> Result<(), Error> {
        let before = self.entries.len();
        self.entries.retain(keep);
        match self.entries.len() == before {
            true => Ok(()),
            false => self.save(),
        }
    }

    fn save(&mut self) -> Result<(), Error> {
        self.entries.sort_by(|one, other| one.backing.cmp(&other.backing));
        let stored = Stored { schema: SCHEMA, entries: self.entries.clone() };
        let text = serde_json::to_string_pretty(&stored).expect("texts and numbers");
        let problem = |error: io::Error| Error::path(&self.path, system_says(&error), ALLOWED);
        replace(&self.path, (text + "\n").as_bytes(), MODE, true).map_err(problem)
    }
}

/// Makes the folder of a state file. The usual one is closed to others, even where it was open; one that the user names is
/// left as it is.
fn make_folder_of(path: &Path) -> Result<(), Error> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    if folder.is_dir() && path != Path::new(DEFAULT_STATE) {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(folder);
    fs::create_dir_all(above).map_err(|error| Error::path(path, system_says(&error), ALLOWED))?;
    private_folder(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use headstart_host::testing::Machine;

    fn entry(backing: &str, old_kb: u64) -> Entry {
        Entry {
            backing: backing.to_owned(),
            path: "/dev/loop0".to_owned(),
            name: "loop0".to_owned(),
            identity: Some("/dev/shm/disk.img".to_owned()),
            size_bytes: Some(4096),
            sequence: None,
            boot_id: "this-boot".to_owned(),
            old_kb,
            ours_kb: vec![384],
            watcher: Some(Process { pid: 7, start_ticks: 8 }),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let machine = Machine::new();
        let path = machine.path("var/lib/tune.json");
        assert_eq!(read(&path).expect("no file is no entry"), []);
        let mut state = State::open(&machine.roots(), &path).expect("it can be made");
        for (backing, kb) in [("7:1", 128), ("7:0", 256), ("7:1", 512)] {
            state.put(entry(backing, kb)).expect("there is room");
        }
        drop(state);
        assert_eq!(read(&path).expect("ours"), [entry("7:0", 256), entry("7:1", 512)]);
        let mut state = State::open(&machine.roots(), &path).expect("it is there");
        state.retain(|each| each.old_kb == 512).expect("there is room");
        assert_eq!(state.entries(), [entry("7:1", 512)]);
        // A file of the user's is not touched, whatever its name.
        machine.write("var/lib/tune.json.new", "the user's");
        state.put(entry("7:3", 64)).expect("there is room");
        assert_eq!(machine.read("var/lib/tune.json.new"), "the user's");
        let names: Vec<_> = fs::read_dir(machine.path("var/lib")).expect("a folder").collect();
        assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
        for (path, mode) in [(machine.path("var/lib"), 0o700), (path, 0o600)] {
            assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, mode, "{path:?}");
        }
    }

    #[test]
    fn the_lock_is_waited_for_and_not_for_ever() {
        let machine = Machine::new();
        let path = machine.path("lib/tune.json");
        let state = State::open(&machine.roots(), &path).expect("nobody has it");
        let text = State::open(&machine.roots(), &path).expect_err("another program has it").to_string();
        let lock = machine.path("run/state.lock").display().to_string();
        assert_eq!(text, format!("{lock}: is held by another process; allowed: one at a time: wait, or end it"));
        let roots = machine.roots();
        let waiting = std::thread::spawn(move || State::open(&roots, &path).map(|_| ()));
        drop(state);
        waiting.join().expect("it ends").expect("it has its turn");
    }

    #[test]
    fn what_stands_and_what_is_written_are_ours() {
        let mut entry = entry("7:0", 128);
        entry.writes(384, 400);
        assert_eq!(entry.ours_kb, [384, 400]);
        // Killed before 400 and 404 were there.
        entry.writes(384, 404);
        entry.writes(384, 408);
        assert_eq!(entry.ours_kb, [384, 408]);
        entry.writes(408, 400);
        assert_eq!(entry.ours_kb, [408, 400]);
        entry.writes(400, 400);
        assert_eq!(entry.ours_kb, [400]);
        // What was found, or another program has set, is not ours.
        entry.writes(128, 384);
        assert_eq!(entry.ours_kb, [384]);
    }

    #[test]
    fn another_s_file_is_left_alone() {
        let machine = Machine::new();
        let with = |backing: &str, old_kb: &str, ours_kb: &str| {
            format!(
                "{{\"schema\":1,\"entries\":[{{\"backing\":{backing},\"path\":\"/dev/loop0\",\"name\":\"loop0\",\
                 \"identity\":null,\"size_bytes\":1,\"sequence\":1,\"boot_id\":\"x\",\"old_kb\":{old_kb},\
                 \"ours_kb\":{ours_kb},\"watcher\":null}}]}}"
            )
        };
        let path = machine.path("tune.json");
        for (text, problem) in [
            ("", "is damaged: no JSON from line 1 on"),
            ("{\"schema\":1,\"entries\":[{\"backing\":\"7:0\"", "is damaged: no JSON from line 1 on"),
            ("{\"schema\":1}", "is damaged: its keys or their values"),
            ("{\"entries\":[]}", "is damaged: its keys or their values"),
            ("[]", "is damaged: "),
            ("{\"schema\":2,\"more\":0}", "has schema 2; allowed: schema 1, of this version"),
            ("{\"schema\":1,\"entries\":[{\"backing\":7}]}", "is damaged: its keys or their values"),
            (&with("\"7:0\"", "18446744073709551615", "[]"), "is damaged: loop0: a read-ahead of 18446744073709551615"),
            (
                &with("\"7:0\"", "128", "[18446744073709551612]"),
                "is damaged: loop0: a read-ahead of 1844674407370955161",
            ),
            (&with("\"../x\"", "128", "[]"), "is damaged: backing \"../x\"; allowed: the name of a backing device"),
        ] {
            fs::write(&path, text).expect("there is room");
            let error = State::open(&machine.roots(), &path).expect_err("refused").to_string();
            let start = format!("{}: {problem}", path.display());
            assert!(error.starts_with(&start) && error.contains("; allowed: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        fs::write(&path, [0xff, 0xfe]).expect("there is room");
        read(&path).expect_err("no text");
        let error = State::open(&machine.roots(), Path::new("/dev/null/tune.json")).expect_err("no folder").to_string();
        assert!(error.starts_with("/dev/null: is no folder"), "{error}");
    }
}
