//! The storage behind an export. A backing does its work on the calling thread and may block; therefore only its own
//! threads call it (`workers.rs`). The thread that serves all clients uses a [`Pool`], which offers only what never
//! blocks.

pub mod conformance;
mod emulated;
mod file;
mod joined;
mod locks;
mod looks;
mod mem;
mod nbd;
pub(crate) mod object;
mod pool;
mod refusal;
mod ringed;
mod unflushed;
mod workers;

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::Extent;

pub use emulated::EmulatedBacking;
pub use file::FileBacking;
pub use mem::MemBacking;
pub use nbd::NbdBacking;
pub use object::ObjectBacking;
pub use pool::{Done, Pool};
pub use refusal::BackingError;
pub use unflushed::{is_loss, loss, Unflushed};

use crate::change::Change;
use crate::settings::Settings;

/// Completion callback of a read, which receives its buffers. Any thread may call it.
pub type ReadEnded = Box<dyn FnOnce(Vec<BytesMut>, io::Result<()>) + Send>;

/// A read for [`Backing::start_reads`].
pub struct StartedRead {
    /// The caller's id.
    pub id: u64,
    pub offset: u64,
    /// Filled in order.
    pub buffers: Vec<BytesMut>,
    /// Called exactly once.
    pub ended: ReadEnded,
}

/// The state of an emulated device, for the report.
pub type DeviceState = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// Properties of a backing. Only `identity` may change.
#[derive(Clone)]
pub struct About {
    pub size_bytes: u64,
    /// Number of concurrent reads beyond which nothing is gained.
    pub parallelism: u32,
    /// Length of a read beyond which nothing is gained.
    pub read_bytes_max: u64,
    /// Useful read-ahead of a stream; `None` if it has to be measured.
    pub read_ahead_bytes: Option<u64>,
    /// The system's read-ahead of the device, if there is one.
    pub device_read_ahead_bytes: Option<u64>,
    /// Whether parts of a failed read may still succeed: true for a disk with bad sectors, false for a lost server.
    pub fails_in_parts: bool,
    /// [`Backing::try_read`] copies bytes on the calling thread.
    pub reads_at_once: bool,
    /// [`Backing::start_reads`] starts reads.
    pub starts_reads: bool,
    /// Identifies this storage and its content: the same as long as nothing has changed. `None`: unknown.
    pub identity: Option<String>,
    /// The state of an emulated device.
    pub device: Option<DeviceState>,
}

impl About {
    /// Storage of `size_bytes` that only supports [`Backing::read`].
    #[must_use]
    pub fn of(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            parallelism: 32,
            read_bytes_max: 1 << 20,
            read_ahead_bytes: None,
            device_read_ahead_bytes: None,
            fails_in_parts: true,
            reads_at_once: false,
            starts_reads: false,
            identity: None,
            device: None,
        }
    }
}

#[derive(Debug)]
pub enum NonBlockingRead {
    /// The buffers are filled.
    Done,
    /// io_uring can fill the buffers from this file at the same offset. After a short or failed read, call
    /// [`Backing::read`].
    Ring(Arc<File>),
    /// The read would block, so a thread has to do it. The content of the buffers is undefined.
    Waits,
}

/// Storage that several threads may read, and possibly write, concurrently. Two methods make a read-only backing;
/// [`conformance`] checks any backing.
pub trait Backing: Send + Sync {
    fn about(&self) -> About;

    /// Fills `buffers` in order with the bytes from `offset` on, and with zeroes beyond the end.
    ///
    /// # Errors
    /// Part of the range could not be read. The content of the buffers is then undefined.
    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()>;

    /// Reads like [`Backing::read`], unless that would wait for storage, or for a lock held by a thread that waits for
    /// storage. `has_ring`: the caller has an io_uring.
    fn try_read(&self, _offset: u64, _buffers: &mut [BytesMut], _has_ring: bool) -> NonBlockingRead {
        NonBlockingRead::Waits
    }

    /// Starts reads without blocking a thread for each. They reach the storage together and in this order, like a
    /// plugged queue of the kernel, so that a disk can merge and reorder them. Returns the reads that a thread has to
    /// do.
    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        reads
    }

    /// Makes a change. After [`Change::Renew`], no cache below may hold data older than the storage's; a backing that
    /// noticed the loss by itself fails every request with [`loss`] until then.
    ///
    /// # Errors
    /// The change is incomplete, or is not known to be stable although it should be. A read-only backing refuses
    /// changes.
    fn change(&self, change: &Change) -> io::Result<()> {
        change.bytes().map_or(Ok(()), |_| Err(io::ErrorKind::PermissionDenied.into()))
    }

    /// Allocation of `length` bytes from `offset` on: adjacent extents, at least one, at most
    /// [`headstart_nbd::EXTENTS_MAX`], none empty. They may cover less.
    ///
    /// # Errors
    /// The allocation is unknown.
    fn extents(&self, _offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { length, hole: false, zero: false }])
    }
}

fn length_of(buffers: &[BytesMut]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).sum()
}

/// Copies `data` into the buffers in order, and zero-fills the rest.
fn scatter(mut data: &[u8], buffers: &mut [BytesMut]) {
    for buffer in buffers {
        let (now, later) = data.split_at(data.len().min(buffer.len()));
        buffer[..now.len()].copy_from_slice(now);
        buffer[now.len()..].fill(0);
        data = later;
    }
}

/// [`About::identity`] of a regular file.
fn file_identity(file: &Metadata) -> Option<String> {
    let changed = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
    file.is_file().then(|| format!("file {} {} {} {changed:?}", file.dev(), file.ino(), file.len()))
}

/// A kind of backing: a row of [`KINDS`], beside the code that opens it.
pub(crate) struct Kind {
    /// How the names begin, each with the form to suggest if such a name is wrong.
    schemes: &'static [(&'static str, &'static str)],
    /// The forms of names, and what they name.
    forms: &'static [(&'static str, &'static str)],
    can_write: bool,
    /// Reads can bypass a page cache of the kernel.
    can_bypass: bool,
    open: fn(&Opening<'_>) -> Result<Box<dyn Backing>, BackingError>,
}

/// All kinds. Files have no scheme.
const KINDS: &[Kind] = &[file::KIND, mem::KIND, emulated::KIND, nbd::KIND, object::KIND];

/// What to open, and how.
pub(crate) struct Opening<'a> {
    name: &'a str,
    /// The name without its scheme.
    rest: &'a str,
    /// The form of names with its scheme.
    form: &'static str,
    settings: &'a Settings,
}

impl Opening<'_> {
    fn refused(&self, problem: impl Into<String>, allowed: impl Into<Cow<'static, str>>) -> BackingError {
        BackingError { backing: self.name.to_owned(), problem: problem.into(), allowed: allowed.into() }
    }
}

/// The forms of a backing's name, and what each names.
pub fn named() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().flat_map(|kind| kind.forms).copied()
}

/// The forms of a backing's name.
fn forms() -> String {
    named().map(|(form, _)| form).collect::<Vec<_>>().join(", ")
}

/// The kind of the backing `name`, its scheme, and the form of such names. Files and unknown schemes have none.
fn scheme(name: &str) -> Option<(&'static Kind, &'static str, &'static str)> {
    KINDS.iter().find_map(|kind| {
        let (scheme, form) = *kind.schemes.iter().find(|(scheme, _)| name.starts_with(scheme))?;
        Some((kind, scheme, form))
    })
}

/// Opens the backing `name` of an export with these settings.
///
/// # Errors
/// It does not exist, or cannot be used in this way.
pub fn open(name: &str, settings: &Settings) -> Result<Box<dyn Backing>, BackingError> {
    let (kind, scheme, form) = scheme(name).unwrap_or((&file::KIND, "", ""));
    let opening = Opening { name, rest: &name[scheme.len()..], form, settings };
    if scheme.is_empty() && name.contains("://") {
        return Err(opening.refused("is no kind of backing", forms()));
    }
    if settings.direct && !kind.can_bypass {
        return Err(opening.refused("has no page cache to bypass (--direct)", "a file or a block device"));
    }
    if settings.writable && !kind.can_write {
        return Err(opening.refused("can only be read", "the same without --writable"));
    }
    (kind.open)(&opening)
}
