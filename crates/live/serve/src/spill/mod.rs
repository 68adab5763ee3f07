//! A second level in a local file: stores pages evicted from memory and reads them from there instead of from the
//! backing.
//!
//! A level of the engine decides which pages stay (`directory.rs`), as in memory. The file (`format.rs`) has a checksum
//! for each page, verified on each read. A later process that opens the file continues with its content, unless the
//! backing has changed.
//!
//! The file is never older than the backing:
//!
//! - Before a change of the backing, its pages leave the file: their entries are zeroed first, or the change fails. A
//!   page being stored is cancelled. The conductor stores no page while it is changing.
//! - After `kill -9` the kernel still has all written data, so the entries are intact. If the machine stops, the
//!   zeroing of an entry may be lost while the change survives; therefore a file that was in use with writing clients
//!   is discarded after a reboot.
//! - If the backing has changed since (by another program, or by clients before `kill -9`), its identity differs and
//!   the file is discarded. A backing without an identity, such as a device, never matches.
//!
//! Cost: constant per page in addition to the level's; storing a page takes one write of its bytes and one of 32 bytes.
//! Memory: some 100 bytes per slot.

mod directory;
mod format;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headstart_assemble::{level_report, LevelReport};
use headstart_host::memory::check_room;
use headstart_host::owned::{open_file, try_lock};
use headstart_types::{printable_path, Bytes, KeyError};
use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::work::Place;
use directory::Directory;
use format::{
    boot, checksum, digest, read_table, salt, Entry, Header, Layout, State, ENTRY_BYTES, HEADER_BYTES, MAGIC,
};

/// Fewer slots are not worth a file.
const SLOTS_MIN: u64 = 64;
/// Maximum number of blocks of a level.
const SLOTS_MAX: u64 = 1 << 28;
/// Approximate memory per slot.
const SLOT_BYTES: u64 = 100;
/// Maximum number of pages being stored; also at most a quarter of the slots, so that there is always a victim.
const STORING_MAX: usize = 64;
/// Maximum bytes of them, but at least one page.
const STORING_BYTES_MAX: u64 = 16 << 20;

/// Counts of a spill file in addition to its level's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpillTotals {
    /// Pages found in the file at the start.
    pub found_pages: u64,
    /// Lookups of pages that the file did not hold.
    pub missed_pages: u64,
    /// Pages stored in the file.
    pub stored_pages: u64,
    /// Pages with a wrong checksum, which were read from the backing instead.
    pub corrupt_pages: u64,
    /// Reads and writes of the file that failed.
    pub failed_requests: u64,
}

/// Report of a spill file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SpillReport {
    /// Why the file's contents were discarded at the start. Null if they were kept.
    pub forgotten: Option<&'static str>,
    /// Counts.
    #[serde(flatten)]
    pub totals: SpillTotals,
    /// Counts of the level, in pages.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub level: LevelReport,
}

/// An open spill file.
pub struct Spill {
    /// Locked until it is closed.
    file: File,
    header: Header,
    layout: Layout,
    storing_max: usize,
    forgotten: Option<&'static str>,
    directory: Mutex<Directory>,
    /// Held while entries are written, so that the table in memory and that of the file change in the same order.
    entries: Mutex<()>,
}

/// Proof of holding [`Spill::entries`].
type Entries<'a> = MutexGuard<'a, ()>;

fn refused(problem: impl Into<String>, allowed: &str) -> Error {
    KeyError::new("spill", problem, allowed).into()
}

/// Splits `text` into FILE and SIZE.
///
/// # Errors
/// It has another form.
pub fn parse(text: &str) -> Result<(&Path, u64), Error> {
    let form = "FILE:SIZE, such as /var/tmp/disk.spill:20GiB";
    let (path, size) = text
        .rsplit_once(':')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| refused(format!("\"{}\" has no size", headstart_types::printable(text)), form))?;
    let Bytes(bytes) = size.parse().map_err(|problem: String| refused(problem, form))?;
    Ok((path.as_ref(), bytes))
}

impl Spill {
    /// Opens or creates the file of `text`, FILE:SIZE, for a backing of `size_bytes` in pages of `page_bytes`.
    /// `identity` identifies the backing and its content.
    ///
    /// # Errors
    /// The text is invalid, the file is in use or is not a spill file, or the system fails. A file that was created is
    /// removed again.
    pub fn open(
        text: &str,
        (size_bytes, page_bytes): (u64, u64),
        identity: Option<&str>,
        writable: bool,
    ) -> Result<Self, Error> {
        let (path, file_bytes) = parse(text)?;
        let layout = Layout::of(file_bytes, page_bytes);
        if !(SLOTS_MIN..=SLOTS_MAX).contains(&layout.slots) {
            let problem = format!("{} has room for {} pages of {}", text, layout.slots, Bytes(page_bytes));
            return Err(refused(problem, &format!("{SLOTS_MIN} to {SLOTS_MAX} pages")));
        }
        check_room("spill", "the list of what is in it", layout.slots * SLOT_BYTES)?;
        let named = || printable_path(path);
        let open =
            |is_new: bool| open_file(path, OpenOptions::new().read(true).write(true).create_new(is_new).mode(0o600));
        // An existing file is never removed.
        let (opened, is_new) = match open(true) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false), false),
            opened => (opened, true),
        };
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::Other => {
                refused(format!("{} {error}", named()), "a new file, or one that --spill made, of this user alone")
            }
            _ => Error::io(named())(error),
        })?;
        if !try_lock(&file).map_err(Error::io(named()))? {
            return Err(refused(format!("{} is in use by another server", named()), "a file for each export"));
        }
        let opened = Self::lay_out(file, layout, size_bytes, identity, writable);
        opened.map_err(|error| {
            if is_new {
                let _ = std::fs::remove_file(path);
            }
            match error.kind() {
                io::ErrorKind::InvalidData => {
                    refused(format!("{} is no spill file", named()), "a new file, or one that --spill made")
                }
                _ => Error::io(named())(error),
            }
        })
    }

    fn lay_out(
        file: File,
        layout: Layout,
        size_bytes: u64,
        identity: Option<&str>,
        writable: bool,
    ) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut head = vec![0; HEADER_BYTES.min(length) as usize];
        file.read_exact_at(&mut head, 0)?;
        if length > 0 && !head.starts_with(&MAGIC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let before = Header::from_bytes(&head);
        let state = if writable { State::Writing } else { State::Reading };
        let mut header = Header {
            page_bytes: layout.page_bytes,
            slots: layout.slots,
            salt: [0; 16],
            identity: digest(identity),
            boot: boot(),
            state,
        };
        let forgotten = match &before {
            None if length == 0 => None,
            None => Some("its header is damaged"),
            Some(before) => {
                why_forgotten(before, &header).or((length < layout.file_bytes()).then_some("it is too short"))
            }
        };
        let kept = before.filter(|_| forgotten.is_none());
        header.salt = kept.map_or_else(salt, |before| Ok(before.salt))?;
        if kept.is_none() {
            // Old entries do not match the new salt; truncating avoids useless lookups.
            file.set_len(0)?;
        }
        file.write_all_at(&header.to_bytes(), 0)?;
        match fallocate(&file, FallocateFlags::empty(), 0, layout.file_bytes() as i64) {
            Err(Errno::EOPNOTSUPP) => file.set_len(layout.file_bytes())?,
            other => other?,
        }
        file.sync_all()?;
        let table = match kept {
            Some(_) => read_table(&file, layout)?,
            None => vec![None; layout.slots as usize],
        };
        let storing_max = (STORING_BYTES_MAX / layout.page_bytes).clamp(1, STORING_MAX as u64) as usize;
        let storing_max = storing_max.min(layout.slots as usize / 4);
        let directory = Directory::new(table, size_bytes.div_ceil(layout.page_bytes), layout.page_bytes);
        Ok(Self {
            file,
            header,
            layout,
            storing_max,
            forgotten,
            directory: Mutex::new(directory),
            entries: Mutex::new(()),
        })
    }

    /// Locks the directory. Never held during a system call, since the serving thread waits for it.
    fn lock(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the writing of entries. Must be taken before the directory's lock.
    fn entries(&self) -> Entries<'_> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any of `pages` is in the file.
    #[must_use]
    pub fn has_any(&self, mut pages: Range<u64>) -> bool {
        let directory = self.lock();
        pages.any(|page| directory.resident(page).is_some())
    }

    /// Finds a place for an evicted page; `None` if it has one or too many pages are being stored. [`Spill::store`]
    /// must follow.
    pub fn begin(&self, page: u64) -> Option<Place> {
        let mut directory = self.lock();
        if directory.storing.len() >= self.storing_max {
            return None;
        }
        directory.begin(page)
    }

    /// Stores the bytes of a page unless it has changed since. A page that cannot be stored is dropped.
    pub fn store(&self, place: Place, bytes: &[u8]) {
        let Place { page, block, slot } = place;
        let entry = Entry { page, sum: checksum(&self.header.salt, page, bytes) };
        let written = self.file.write_all_at(bytes, self.layout.slot(slot.into()));
        let entries = self.entries();
        // It cannot be cancelled in the meantime, since that also takes the lock of the entries.
        let is_current = !self.lock().cancelled.contains(&block);
        let entry = is_current.then_some(entry);
        let stored = written.and_then(|()| self.write_entry(&entries, slot, entry));
        let mut directory = self.lock();
        directory.storing.remove(&block);
        directory.cancelled.remove(&block);
        match &stored {
            Ok(()) => directory.wrote(slot, entry),
            Err(_) => drop(directory.stale.insert(slot)),
        }
        directory.totals.failed_requests += u64::from(stored.is_err());
        directory.totals.stored_pages += u64::from(stored.is_ok() && is_current);
        directory.arrived(block);
        if stored.is_err() || !is_current {
            directory.drop_block(block);
        }
    }

    /// Reads a page into `buffer`, if it is in the file.
    pub fn read(&self, page: u64, buffer: &mut [u8]) -> bool {
        let Some((block, slot, sum)) = self.lock().look_up(page) else { return false };
        let read = self.file.read_exact_at(buffer, self.layout.slot(slot.into()));
        if read.is_ok() && checksum(&self.header.salt, page, buffer) == sum {
            return true;
        }
        let entries = self.entries();
        let mut directory = self.lock();
        // If another page has taken the slot in the meantime, nothing is wrong.
        let is_same = directory.resident(page) == Some((block, slot))
            && directory.table[slot as usize].is_some_and(|entry| entry.sum == sum);
        if is_same {
            directory.totals.failed_requests += u64::from(read.is_err());
            directory.totals.corrupt_pages += u64::from(read.is_ok());
            drop(directory);
            let zeroed = self.write_entry(&entries, slot, None);
            let mut directory = self.lock();
            match zeroed {
                Ok(()) => directory.took_out(page, slot),
                Err(_) => {
                    directory.stale.insert(slot);
                    directory.leave(page, slot);
                }
            }
        }
        false
    }

    /// Removes `pages`, which are about to change.
    ///
    /// # Errors
    /// The entries may still be there: the pages must not change.
    pub fn forget(&self, pages: Range<u64>) -> io::Result<()> {
        let entries = self.entries();
        let named = self.lock().cancel(pages);
        for (page, slot) in named {
            self.write_entry(&entries, slot, None)?;
            self.lock().took_out(page, slot);
        }
        Ok(())
    }

    /// Removes everything; the next server discards the file even if zeroing the table fails.
    pub fn forget_all(&self) {
        let _entries = self.entries();
        self.lock().clear();
        let zeroes = vec![0; (self.layout.slots * ENTRY_BYTES) as usize];
        let zeroed = self.file.write_all_at(&zeroes, self.layout.entry(0));
        self.lock().totals.failed_requests += u64::from(zeroed.is_err());
    }

    fn write_entry(&self, _: &Entries<'_>, slot: u32, entry: Option<Entry>) -> io::Result<()> {
        self.file.write_all_at(&Entry::to_bytes(entry), self.layout.entry(slot.into()))
    }

    /// Closes the file in order, after everything else; `identity` is the backing's current identity.
    ///
    /// # Errors
    /// The next server may have to discard the file.
    pub fn close(&self, identity: Option<&str>) -> io::Result<()> {
        let directory = self.lock();
        if !directory.storing.is_empty() || !directory.is_kept {
            return Ok(());
        }
        drop(directory);
        self.file.sync_data()?;
        let identity = if self.header.state == State::Writing { digest(identity) } else { self.header.identity };
        let header = Header { state: State::Closed, identity, ..self.header };
        self.file.write_all_at(&header.to_bytes(), 0)?;
        self.file.sync_data()
    }

    /// The report so far.
    #[must_use]
    pub fn report(&self) -> SpillReport {
        let directory = self.lock();
        SpillReport {
            forgotten: self.forgotten,
            totals: directory.totals.clone(),
            level: level_report(directory.level.counts(), "spill", self.layout.slots as u32, self.layout.page_bytes),
        }
    }
}

/// Why the content of a file is not used.
fn why_forgotten(before: &Header, now: &Header) -> Option<&'static str> {
    let is_same_boot = before.boot == now.boot && before.boot != [0; 16];
    if (before.page_bytes, before.slots) != (now.page_bytes, now.slots) {
        Some("its pages or its size were others")
    } else if now.identity == digest(None) {
        Some("the backing does not say whether it has changed")
    } else if before.identity != now.identity {
        Some("the backing has changed, or was another one")
    } else if before.state == State::Writing && !is_same_boot {
        Some("the machine stopped while clients could write")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
