//! The second level: segments in files of a folder on a local disk. They outlive the process, and a machine that stops:
//! each file says of what it is a part and has a checksum, so that one that was half written, or is of an object that
//! has changed since, counts as none.
//!
//! A segment is written to a new file and named once it is whole. Nothing is synced: what is lost is fetched again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use headstart_host::owned::{try_lock, LockedFile};
use headstart_types::{printable, printable_path, system_says, Bytes, KeyError};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

/// What a file begins with.
const MAGIC: &[u8; 8] = b"HSTORE1\n";
const HEAD_BYTES_MAX: usize = 1 << 16;
/// Files are in as many folders.
const FOLDERS: u64 = 256;
const LOCK: &str = "headstart-store.lock";
const FORM: &str = "FOLDER:SIZE, such as /var/tmp/store:20GiB";

/// Identifies the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The source and the key.
    pub source: String,
    pub key: String,
    pub version: String,
    pub start: u64,
    pub end: u64,
    sum: String,
}

/// A segment of an earlier run.
#[derive(Debug, Clone)]
pub struct Found {
    pub number: u64,
    pub version: String,
    pub start: u64,
    pub end: u64,
}

pub struct Spill {
    folder: PathBuf,
    /// Held until the end.
    _lock: LockedFile,
    source: String,
    next: AtomicU64,
}

/// Splits FOLDER:SIZE.
///
/// # Errors
/// It has another form.
pub fn parse(text: &str) -> Result<(&Path, u64), KeyError> {
    let refused = |problem: String| KeyError::new("spill", problem, FORM);
    let (path, size) = text
        .rsplit_once(':')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| refused(format!("\"{}\" has no size", printable(text))))?;
    let Bytes(bytes) = size.parse().map_err(refused)?;
    Ok((path.as_ref(), bytes))
}

impl Spill {
    /// Opens or makes the folder, for segments of `source`. Returns what an earlier run has left there, by key.
    ///
    /// # Errors
    /// The folder cannot be used, is in use, or has other files in it.
    pub fn open(folder: &Path, source: &str) -> Result<(Self, FxHashMap<String, Vec<Found>>), KeyError> {
        let refused =
            |problem: &str, allowed| KeyError::new("spill", format!("{} {problem}", printable_path(folder)), allowed);
        let failed = |error: io::Error| refused(&system_says(&error), FORM);
        match fs::metadata(folder) {
            Ok(found) if !found.is_dir() => return Err(refused("is a file", FORM)),
            Ok(_) if !folder.join(LOCK).exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() => {
                return Err(refused("has files of others in it", "a new or empty folder, or one that --spill made"));
            }
            Ok(_) => {}
            Err(_) => fs::create_dir(folder).map_err(failed)?,
        }
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK));
        let lock = lock.map_err(failed)?;
        let Some(lock) = try_lock(lock).map_err(failed)? else {
            return Err(refused("is in use by another store", "a folder for each store"));
        };
        for number in 0..FOLDERS {
            let made = fs::create_dir(folder.join(format!("{number:02x}")));
            made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
                .map_err(failed)?;
        }
        let mut spill =
            Self { folder: folder.to_owned(), _lock: lock, source: source.to_owned(), next: AtomicU64::new(0) };
        let found = spill.scan().map_err(failed)?;
        Ok((spill, found))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{:02x}", number % FOLDERS)).join(format!("{number:016x}"))
    }

    fn scan(&mut self) -> io::Result<FxHashMap<String, Vec<Found>>> {
        let mut found: FxHashMap<String, Vec<Found>> = FxHashMap::default();
        let mut next = 0;
        for folder in 0..FOLDERS {
            for entry in fs::read_dir(self.folder.join(format!("{folder:02x}")))? {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let Ok(number) = u64::from_str_radix(name, 16) else {
                    // Half written.
                    let _ = fs::remove_file(&path);
                    continue;
                };
                next = next.max(number + 1);
                match File::open(&path).and_then(|mut file| read_head(&mut file)) {
                    Ok(head) if head.source == self.source && head.start < head.end => {
                        let Head { key, version, start, end, .. } = head;
                        found.entry(key).or_default().push(Found { number, version, start, end });
                    }
                    _ => drop(fs::remove_file(&path)),
                }
            }
        }
        self.next = AtomicU64::new(next);
        Ok(found)
    }

    /// A number for a new file.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a segment.
    ///
    /// # Errors
    /// The system fails; nothing is left.
    pub fn store(&self, number: u64, (key, version): (&str, &str), start: u64, bytes: &[u8]) -> io::Result<()> {
        let (source, key, version) = (self.source.clone(), key.to_owned(), version.to_owned());
        let end = start + bytes.len() as u64;
        let head = Head { source, key, version, start, end, sum: sum_of(bytes) };
        let head = serde_json::to_vec(&head)?;
        let path = self.path(number);
        let half = path.with_extension("half");
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
            file.write_all(MAGIC)?;
            file.write_all(&(head.len() as u32).to_le_bytes())?;
            file.write_all(&head)?;
            file.write_all(bytes)?;
            fs::rename(&half, &path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&half)))
    }

    /// Reads a segment of `length` bytes; `None` if it is not there or not what it was.
    #[must_use]
    pub fn load(&self, number: u64, length: u64) -> Option<Vec<u8>> {
        let mut file = File::open(self.path(number)).ok()?;
        let head = read_head(&mut file).ok()?;
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(length + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == length && head.end - head.start == length && head.sum == sum_of(&bytes)).then_some(bytes)
    }

    /// Removes a segment's file.
    pub fn remove(&self, number: u64) {
        let _ = fs::remove_file(self.path(number));
    }
}

fn read_head(file: &mut File) -> io::Result<Head> {
    let mut begin = [0; 12];
    file.read_exact(&mut begin)?;
    let length = u32::from_le_bytes([begin[8], begin[9], begin[10], begin[11]]) as usize;
    if !begin.starts_with(MAGIC) || length > HEAD_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut head = vec![0; length];
    file.read_exact(&mut head)?;
    Ok(serde_json::from_slice(&head)?)
}

fn sum_of(bytes: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytes))
}
