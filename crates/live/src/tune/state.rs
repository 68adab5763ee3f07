//! What was found before anything was written, in a file: whoever comes next can take it back.
//!
//! The file is JSON, one entry a device. It is replaced as a whole (a new file, synced, renamed), so that a reader finds
//! the old one or the new one. An entry is written before the number that it speaks of, and removed after that has been
//! taken back: killed at any point, what is needed stands there. Writers take turns by a lock on the file's folder, which
//! leaves nothing behind.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use headstart_types::system_says;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::{Device, Error, Kind, Process, Roots};

/// Who changes the file has it for an instant; whoever has it for ten seconds may be anybody.
const TRIES: u32 = if cfg!(test) { 10 } else { 500 };
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Where the state is, unless one says otherwise.
pub const DEFAULT_STATE: &str = "/var/lib/headstart/tune.json";
/// Version of the file.
const SCHEMA: u32 = 1;
const ALLOWED: &str = "a file that headstart tune has written, in a folder that can be written";

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
    /// The boot: another one has other numbers, and none of ours.
    pub boot_id: String,
    /// What was found.
    pub old_kb: u64,
    /// What may stand there by us: the one that stood there and the latest, of which one is there whenever we are killed.
    pub ours_kb: Vec<u64>,
    /// Who watches, and takes it back when he ends.
    pub watcher: Option<Process>,
}

impl Entry {
    pub fn new(device: &Device, roots: &Roots, old_kb: u64, watcher: Option<Process>) -> Self {
        Self {
            backing: device.backing_name(),
            path: device.path.to_string_lossy().into_owned(),
            name: device.label(),
            identity: device.identity.clone(),
            size_bytes: device.size_bytes,
            sequence: device.sequence,
            boot_id: roots.boot_id(),
            old_kb,
            ours_kb: Vec::new(),
            watcher,
        }
    }

    /// `kb` is about to be written where `stands` does: one of the two is there from now on.
    pub fn writes(&mut self, stands: u64, kb: u64) {
        self.ours_kb.retain(|each| *each == stands && *each != kb);
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

    /// Whether what it found counts for the device, where `now` stands; or that is found anew.
    pub fn goes_on(&self, device: &Device, now: u64) -> bool {
        let known = now == self.old_kb || self.ours_kb.contains(&now);
        match device.kind {
            Kind::Loop => known || self.is_of(device),
            // The same thing may have been mounted anew, with a number that is not ours.
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
    let problem = |problem: String| Error::path(path, problem, ALLOWED);
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| problem(system_says(&error)))?,
    };
    let broken = |error: serde_json::Error| {
        let allowed = "a file that headstart tune has written; without it what was found before is not known: \
                       move it away, and set the read-ahead by hand";
        Error::path(path, format!("is damaged: {error}"), allowed)
    };
    // Another version may have other fields: its number comes first.
    let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema != u64::from(SCHEMA) => {
            Err(Error::path(path, format!("has schema {schema}"), format!("schema {SCHEMA}, of this version")))
        }
        _ => Ok(serde_json::from_value::<Stored>(value).map_err(broken)?.entries),
    }
}

/// The file, for as long as nobody else writes it.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    entries: Vec<Entry>,
    _folder: Flock<File>,
}

impl State {
    /// Waits some seconds for its turn, and reads. The folder is made if it is not there.
    ///
    /// # Errors
    /// It cannot be read or written, is damaged, or somebody keeps it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let problem = |error: &io::Error| Error::path(path, system_says(error), ALLOWED);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::create_dir_all(folder).map_err(|error| problem(&error))?;
        let mut file = File::open(folder).map_err(|error| problem(&error))?;
        for _ in 0..TRIES {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(Self { path: path.to_owned(), entries: read(path)?, _folder: locked }),
                Err((file, Errno::EWOULDBLOCK)) => file,
                Err((_, errno)) => return Err(problem(&errno.into())),
            };
            sleep(BETWEEN_TRIES);
        }
        Err(Error::path(folder, "is locked by another process", "one at a time: wait, or end it"))
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
        replace(&self.path, &text, true).map_err(problem)
    }
}

/// Puts a file with `text` in the place of what is there, at once; if `synced`, so that a loss of power does not lose it.
///
/// # Errors
/// As the system says; then the old one is as it was.
pub(super) fn replace(path: &Path, text: &str, synced: bool) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Of one that was killed. And nobody's link is followed: we are root, and the folder may be anybody's.
    let _ = fs::remove_file(&new);
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        if synced {
            file.sync_all()?;
        }
        fs::rename(&new, path)?;
        match path.parent().filter(|folder| synced && !folder.as_os_str().is_empty()) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::testing::Machine;
    use super::*;

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
        let mut state = State::open(&path).expect("it can be made");
        for (backing, kb) in [("7:1", 128), ("7:0", 256), ("7:1", 512)] {
            state.put(entry(backing, kb)).expect("there is room");
        }
        drop(state);
        assert_eq!(read(&path).expect("ours"), [entry("7:0", 256), entry("7:1", 512)]);
        let mut state = State::open(&path).expect("it is there");
        state.retain(|each| each.old_kb == 512).expect("there is room");
        assert_eq!(state.entries(), [entry("7:1", 512)]);
        // What one that was killed has begun is in nobody's way, and a link not followed.
        let victim = machine.path("victim");
        machine.link("var/lib/tune.json.new", "victim");
        state.put(entry("7:3", 64)).expect("there is room");
        assert!(!victim.exists());
        let names: Vec<_> = fs::read_dir(machine.path("var/lib")).expect("a folder").collect();
        assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    }

    #[test]
    fn who_keeps_the_folder_is_waited_for_and_not_for_ever() {
        let machine = Machine::new();
        let path = machine.path("lib/tune.json");
        let state = State::open(&path).expect("nobody has it");
        let text = State::open(&path).expect_err("somebody has it").to_string();
        let folder = machine.path("lib").display().to_string();
        assert_eq!(text, format!("{folder}: is locked by another process; allowed: one at a time: wait, or end it"));
        let waiting = std::thread::spawn(move || State::open(&path).map(|_| ()));
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
        // What was found, or somebody else has set, is not ours.
        entry.writes(128, 384);
        assert_eq!(entry.ours_kb, [384]);
    }

    #[test]
    fn another_s_file_is_left_alone() {
        let machine = Machine::new();
        let path = machine.path("tune.json");
        for (text, problem) in [
            ("", "is damaged: EOF"),
            ("{\"schema\":1,\"entries\":[{\"backing\":\"7:0\"", "is damaged: EOF"),
            ("{\"schema\":1}", "is damaged: missing field `entries`"),
            ("{\"entries\":[]}", "is damaged: missing field `schema`"),
            ("[]", "is damaged: "),
            ("{\"schema\":2,\"more\":0}", "has schema 2; allowed: schema 1, of this version"),
            ("{\"schema\":1,\"entries\":[{\"backing\":7}]}", "is damaged: invalid type: integer `7`"),
        ] {
            fs::write(&path, text).expect("there is room");
            let error = State::open(&path).expect_err("refused").to_string();
            let start = format!("{}: {problem}", path.display());
            assert!(error.starts_with(&start) && error.contains("; allowed: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        fs::write(&path, [0xff, 0xfe]).expect("there is room");
        read(&path).expect_err("no text");
        let error = State::open(Path::new("/dev/null/tune.json")).expect_err("no folder").to_string();
        assert!(error.starts_with("/dev/null/tune.json: "), "{error}");
    }
}
