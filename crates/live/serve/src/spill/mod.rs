//! A second level in a local file: pages that leave the level in memory go there, and are read from there instead of the backing.
//!
//! Which pages stay (`directory.rs`) is decided by a level of the engine, as in memory; the file (`format.rs`) has a checksum for each page, which is
//! compared whenever one is read. Another process that finds the file goes on with what it holds, unless the backing has changed.
//!
//! What is in the file is never older than the backing:
//!
//! - A change of the backing first takes its pages out of the file: their entries are zeroed before the change begins, or it fails. A page that
//!   is just being stored is cancelled. The conductor stores none whose change is under way.
//! - After `kill -9` the kernel still has what was written, so that the entries are as they were. A machine that stops may lose an entry's
//!   zeroing and keep the change: a file that was in use where clients may write is forgotten after another start of the machine.
//! - A backing that has changed since (by another program, or by clients before `kill -9`) has another identity, and the file is forgotten.
//!   One that has no identity, a device say, is never known again.
//!
//! Cost: constant for a page, beside the level's; a page is stored by one write of its bytes and one of 32. Memory: some 100 bytes a slot.

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

/// The fewest slots that are worth a file.
const SLOTS_MIN: u64 = 64;
/// As many as a level counts.
const SLOTS_MAX: u64 = 1 << 28;
/// What is kept in memory of a slot, about.
const SLOT_BYTES: u64 = 100;
/// Pages that are being stored: so many at most, and of the slots a quarter, so that there always is a victim.
const STORING_MAX: usize = 64;
/// And so many bytes, or one page.
const STORING_BYTES_MAX: u64 = 16 << 20;

/// What a spill file has been good for, beside what its level counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpillTotals {
    /// Pages that were there at the start.
    pub found_pages: u64,
    /// Pages that were wanted and not there.
    pub missed_pages: u64,
    /// Pages stored.
    pub stored_pages: u64,
    /// Pages whose checksum was wrong: they were read from the backing.
    pub corrupt_pages: u64,
    /// Reads and writes of the file that failed.
    pub failed_requests: u64,
}

/// What has come of a spill file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SpillReport {
    /// Why what the file held was forgotten at the start; null if it was not.
    pub forgotten: Option<&'static str>,
    /// Counts.
    #[serde(flatten)]
    pub totals: SpillTotals,
    /// Counts of the level, in pages.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub level: LevelReport,
}

/// A spill file that is open.
pub struct Spill {
    /// Locked until it is closed.
    file: File,
    header: Header,
    layout: Layout,
    storing_max: usize,
    forgotten: Option<&'static str>,
    directory: Mutex<Directory>,
    /// Held while entries are written, so that the table of the directory and that of the file change in the same order.
    entries: Mutex<()>,
}

/// Whoever writes entries.
type Entries<'a> = MutexGuard<'a, ()>;

fn refused(problem: impl Into<String>, allowed: &str) -> Error {
    KeyError::new("spill", problem, allowed).into()
}

/// FILE and SIZE of `text`.
///
/// # Errors
/// It is of another form.
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
    /// Opens or makes the file of `text`, FILE:SIZE, for a backing of `size_bytes` in pages of `page_bytes`, which `identity` tells from
    /// every other and from itself after a change.
    ///
    /// # Errors
    /// The text, a file that is something else or in use, or what the system says. A file that was made is removed again.
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
        // What was there before is never removed.
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
            // Old entries do not match the new salt; without them nothing is looked at in vain.
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

    /// What is where. Not held over a call of the system: the serving thread waits for it.
    fn lock(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to write entries, before which the directory is not locked.
    fn entries(&self) -> Entries<'_> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any of `pages` is there.
    #[must_use]
    pub fn has_any(&self, mut pages: Range<u64>) -> bool {
        let directory = self.lock();
        pages.any(|page| directory.resident(page).is_some())
    }

    /// Finds a place for a page that leaves the cache; `None` where it has one, or too many others are being stored. To be ended by
    /// [`Spill::store`].
    pub fn begin(&self, page: u64) -> Option<Place> {
        let mut directory = self.lock();
        if directory.storing.len() >= self.storing_max {
            return None;
        }
        directory.begin(page)
    }

    /// Stores the bytes of a page, unless it has changed since. One that cannot be stored is left out.
    pub fn store(&self, place: Place, bytes: &[u8]) {
        let Place { page, block, slot } = place;
        let entry = Entry { page, sum: checksum(&self.header.salt, page, bytes) };
        let written = self.file.write_all_at(bytes, self.layout.slot(slot.into()));
        let entries = self.entries();
        // It is not cancelled meanwhile: that is done between two writes of entries.
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

    /// Fills `buffer` with a page, if it is there.
    pub fn read(&self, page: u64, buffer: &mut [u8]) -> bool {
        let Some((block, slot, sum)) = self.lock().look_up(page) else { return false };
        let read = self.file.read_exact_at(buffer, self.layout.slot(slot.into()));
        if read.is_ok() && checksum(&self.header.salt, page, buffer) == sum {
            return true;
        }
        let entries = self.entries();
        let mut directory = self.lock();
        // Another page may have taken the slot meanwhile: then nothing is wrong with it.
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

    /// Takes `pages` out, which are going to change.
    ///
    /// # Errors
    /// Their entries may still be there: they must not change.
    pub fn forget(&self, pages: Range<u64>) -> io::Result<()> {
        let entries = self.entries();
        let named = self.lock().cancel(pages);
        for (page, slot) in named {
            self.write_entry(&entries, slot, None)?;
            self.lock().took_out(page, slot);
        }
        Ok(())
    }

    /// Takes everything out, for good where the file cannot say so.
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

    /// An orderly end, after everything else: the backing is now what `identity` says.
    ///
    /// # Errors
    /// The file may have to be forgotten.
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

    /// What has come of it so far.
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

/// Why what a file holds is not used.
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
