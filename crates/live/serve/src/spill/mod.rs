//! A second level in a local file: stores pages evicted from memory and reads them from there instead of from the
//! backing.
//!
//! It is a level of the engine below the one in memory, which decides which pages stay; this gives them places in the
//! file (`directory.rs`), and threads read and write them (`file.rs`). The file (`format.rs`) has a checksum for each
//! page, verified on each read. A later process that opens the file continues with its content, unless the backing has
//! changed.
//!
//! The file is never older than the backing:
//!
//! - Before a change of the backing, its pages leave the file: their entries are zeroed first, or the change fails. No
//!   page is stored or read while it changes (`conductor/spilling.rs`).
//! - After `kill -9` the kernel still has all written data, so the entries are intact. If the machine stops, the
//!   zeroing of an entry may be lost while the change survives; therefore a file that was in use with writing clients
//!   is discarded after a reboot.
//! - If the backing has changed since (by another program, or by clients before `kill -9`), its identity differs and
//!   the file is discarded. A backing without an identity, such as a device, never matches.
//!
//! Cost: constant per page in addition to the level's; storing a page takes one write of its bytes and one of 32 bytes.
//! Memory: some 100 bytes per slot.

mod directory;
mod file;
mod format;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use headstart_assemble::{level_report, LevelReport};
use headstart_engine::Counts;
use headstart_host::memory::check_room;
use headstart_host::owned::{open_file, try_lock, LockedFile};
use headstart_types::{printable_path, Bytes, KeyError};
use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Error;
use directory::Directory;
use file::SpillFile;
pub use file::{Place, Zeroing};
use format::{boot, digest, read_table, salt, Header, Layout, State, HEADER_BYTES, MAGIC};

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
    file: Arc<SpillFile>,
    header: Header,
    storing_max: usize,
    forgotten: Option<&'static str>,
    /// The pages found in the file, by slot, until there is a level for them.
    found: Vec<Option<u64>>,
    directory: Directory,
    /// The next server may use the content.
    is_kept: bool,
    pub(crate) totals: SpillTotals,
}

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
    /// Opens or creates the file of `text`, FILE:SIZE, for pages of `page_bytes`. `identity` identifies the backing and
    /// its content.
    ///
    /// # Errors
    /// The text is invalid, the file is in use or is not a spill file, or the system fails. A file that was created is
    /// removed again.
    pub fn open(text: &str, page_bytes: u64, identity: Option<&str>, writable: bool) -> Result<Self, Error> {
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
        let Some(file) = try_lock(file).map_err(Error::io(named()))? else {
            return Err(refused(format!("{} is in use by another server", named()), "a file for each export"));
        };
        let opened = Self::lay_out(file, layout, identity, writable);
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

    fn lay_out(file: LockedFile, layout: Layout, identity: Option<&str>, writable: bool) -> io::Result<Self> {
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
        match fallocate(&*file, FallocateFlags::empty(), 0, layout.file_bytes() as i64) {
            Err(Errno::EOPNOTSUPP) => file.set_len(layout.file_bytes())?,
            other => other?,
        }
        file.sync_all()?;
        let found = match kept {
            Some(_) => read_table(&file, layout)?.into_iter().map(|entry| Some(entry?.page)).collect(),
            None => vec![None; layout.slots as usize],
        };
        let storing_max = (STORING_BYTES_MAX / layout.page_bytes).clamp(1, STORING_MAX as u64) as usize;
        let storing_max = storing_max.min(layout.slots as usize / 4);
        Ok(Self {
            file: Arc::new(SpillFile { file, layout, salt: header.salt }),
            header,
            storing_max,
            forgotten,
            found,
            directory: Directory::default(),
            is_kept: true,
            totals: SpillTotals::default(),
        })
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.file.layout.slots as u32
    }

    /// Closes the file in order, after everything else; `identity` is the backing's current identity.
    ///
    /// # Errors
    /// The next server may have to discard the file.
    pub fn close(&self, identity: Option<&str>) -> io::Result<()> {
        if !self.is_idle() || !self.is_kept {
            return Ok(());
        }
        let file = &self.file.file;
        file.sync_data()?;
        let identity = if self.header.state == State::Writing { digest(identity) } else { self.header.identity };
        let header = Header { state: State::Closed, identity, ..self.header };
        file.write_all_at(&header.to_bytes(), 0)?;
        file.sync_data()
    }

    /// The report so far; `counts`: of its level.
    #[must_use]
    pub fn report(&self, counts: &Counts) -> SpillReport {
        SpillReport {
            forgotten: self.forgotten,
            totals: self.totals.clone(),
            level: level_report(counts, "spill", self.slots(), self.file.layout.page_bytes),
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
