//! What stands behind an export. A backing works where it is called and may take its time, so only threads of its own call it
//! (`workers.rs`). The thread that serves all clients has a [`Pool`], through which it can reach only what never waits.

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
mod spilled;
mod unflushed;
mod workers;

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::Extent;
use headstart_types::{system_says, Bytes};

pub use emulated::EmulatedBacking;
pub use file::FileBacking;
pub use mem::MemBacking;
pub use nbd::NbdBacking;
pub use object::ObjectBacking;
pub use pool::{Done, Pool};
pub use refusal::BackingError;
pub use spilled::SpilledBacking;
pub use unflushed::{is_loss, loss, Unflushed};

use crate::work::Change;

/// Callback at the end of a read, which gets its buffers. Any thread may call it.
pub type ReadEnded = Box<dyn FnOnce(Vec<BytesMut>, io::Result<()>) + Send>;

/// A read for [`Backing::start_reads`].
pub struct StartedRead {
    /// The caller's name for it.
    pub id: u64,
    /// First byte.
    pub offset: u64,
    /// Filled in turn.
    pub buffers: Vec<BytesMut>,
    /// Called once.
    pub ended: ReadEnded,
}

/// The state of an emulated device, for the report.
pub type DeviceState = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What a backing is. Only `identity` changes.
#[derive(Clone)]
pub struct About {
    /// How many bytes.
    pub size_bytes: u64,
    /// How many reads at a time are worth it.
    pub parallelism: u32,
    /// The longest read that is worth it.
    pub read_bytes_max: u64,
    /// How far a stream is worth reading ahead of; `None` if that has to be measured.
    pub read_ahead_bytes: Option<u64>,
    /// How far the system reads ahead of the device, where there is one.
    pub device_read_ahead_bytes: Option<u64>,
    /// Whether a read that fails may still succeed in parts: a disk has bad sectors, a server that is gone has none.
    pub fails_in_parts: bool,
    /// [`Backing::read_at_once`] copies bytes on the thread that calls it.
    pub reads_at_once: bool,
    /// [`Backing::start_reads`] starts reads.
    pub starts_reads: bool,
    /// Tells this storage, with what it holds now, from every other: the same again as long as it has not changed. `None`: unknown.
    pub identity: Option<String>,
    /// The state of an emulated device.
    pub device: Option<DeviceState>,
}

impl About {
    /// Storage of `size_bytes` with no other way to read than [`Backing::read`].
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

/// The result of a read that must not wait.
#[derive(Debug)]
pub enum AtOnce {
    /// The buffers are filled.
    Done,
    /// io_uring can fill them from this file, from the same offset on. What it fills in part or not at all is for [`Backing::read`].
    Ring(Arc<File>),
    /// A thread has to wait for it. The buffers may hold anything.
    Waits,
}

/// Bytes of storage that can be read, and perhaps written, by several threads at a time. Two methods make a read-only backing;
/// [`conformance`] checks any.
pub trait Backing: Send + Sync {
    /// What it is.
    fn about(&self) -> About;

    /// Reads from `offset` on, filling `buffers` in turn; beyond the end there are zeroes.
    ///
    /// # Errors
    /// Not all of it could be read. The buffers may hold anything then.
    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()>;

    /// Reads as [`Backing::read`] does, unless that waits for storage, or for a lock that is held while something waits for storage.
    /// `has_ring`: the caller has an io_uring.
    fn read_at_once(&self, _offset: u64, _buffers: &mut [BytesMut], _has_ring: bool) -> AtOnce {
        AtOnce::Waits
    }

    /// Starts reads without a thread that waits for each, so that they reach the storage together and in this order, as those of a
    /// plugged queue of the kernel do: a disk merges and orders what it has at the same time. Gives back the reads that a thread has to do.
    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        reads
    }

    /// Makes a change. After [`Change::Renew`] nothing is left below that may be older than what the storage has; a backing that has
    /// noticed the loss by itself has failed everything with [`loss`] until then.
    ///
    /// # Errors
    /// Not all of it could be made, or is known to be stable where it should be. A backing that cannot be written refuses changes.
    fn change(&self, change: &Change) -> io::Result<()> {
        change.bytes().map_or(Ok(()), |_| Err(io::ErrorKind::PermissionDenied.into()))
    }

    /// What of `length` bytes from `offset` on is allocated: extents that follow one another, at least one, at most
    /// [`headstart_nbd::EXTENTS_MAX`], none empty. They may cover less.
    ///
    /// # Errors
    /// It is not known.
    fn extents(&self, _offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { length, hole: false, zero: false }])
    }
}

/// Bytes of all buffers.
fn length_of(buffers: &[BytesMut]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).sum()
}

/// Copies `data` into the buffers, one after another, and zeroes what is behind its end.
fn scatter(mut data: &[u8], buffers: &mut [BytesMut]) {
    for buffer in buffers {
        let (now, later) = data.split_at(data.len().min(buffer.len()));
        buffer[..now.len()].copy_from_slice(now);
        buffer[now.len()..].fill(0);
        data = later;
    }
}

/// See [`About::identity`], of a regular file.
fn file_identity(file: &Metadata) -> Option<String> {
    let changed = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
    file.is_file().then(|| format!("file {} {} {} {changed:?}", file.dev(), file.ino(), file.len()))
}

/// What the names of emulated disks begin with.
const EMULATE: &str = "emulate:";

/// The forms of a backing's name.
pub const FORMS: &str = "a file, a block device, mem:SIZE, emulate:PROFILE[,SCHEDULER]:IMAGE, nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH, \
                         nbds: over TLS, https://HOST/PATH, s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY";

/// Opens the backing of this name. `direct`: reads of a file or a device pass the kernel's page cache. `locked`: other programs that lock
/// files as QEMU does are kept from it.
///
/// # Errors
/// There is none, or it cannot be used so.
pub fn open(name: &str, writable: bool, direct: bool, locked: bool) -> Result<Box<dyn Backing>, BackingError> {
    let refused = |problem: String, allowed| BackingError { backing: name.to_owned(), problem, allowed };
    let is_file = !name.starts_with("mem:") && !name.starts_with(EMULATE) && !name.contains("://");
    if direct && !is_file {
        return Err(refused("has no page cache to pass by (--direct)".to_owned(), "a file or a block device"));
    }
    if let Some(size) = name.strip_prefix("mem:") {
        let size: Bytes = size.parse().map_err(|error| refused(error, "mem:SIZE, such as mem:1GiB"))?;
        let memory = MemBacking::try_new(size.0);
        return Ok(Box::new(memory.map_err(|error| refused(system_says(&error), "a smaller one"))?));
    }
    if let Some(disk) = name.strip_prefix(EMULATE) {
        if writable {
            return Err(refused("can only be read".to_owned(), "the same without --writable"));
        }
        let form = "emulate:PROFILE[,SCHEDULER]:IMAGE, with names of `headstart list devices` and `list schedulers`";
        return Ok(Box::new(EmulatedBacking::open(disk).map_err(|error| refused(error.to_string(), form))?));
    }
    if ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"].iter().any(|scheme| name.starts_with(scheme)) {
        let uri = name.parse().map_err(|error| refused(format!("{error}"), "nbd://HOST[:PORT]/EXPORT"))?;
        let connected = NbdBacking::connect(uri, writable);
        let wanted = if writable { "a server whose export can be written" } else { "a server that can be reached" };
        return Ok(Box::new(connected.map_err(|error| refused(system_says(&error), wanted))?));
    }
    if let Some(form) = object::form(name) {
        if writable {
            return Err(refused("can only be read".to_owned(), "the same without --writable"));
        }
        let opened = ObjectBacking::open(name, &object::patience());
        return Ok(Box::new(opened.map_err(|problem| refused(problem, form))?));
    }
    if name.contains("://") {
        return Err(refused("is no kind of backing".to_owned(), FORMS));
    }
    let opened = FileBacking::open(name.as_ref(), writable, direct, locked);
    let wanted = match (writable, direct) {
        (true, _) => "a file or a block device that can be written",
        (false, true) => "a file or a block device that can be read without the page cache (O_DIRECT)",
        (false, false) => FORMS,
    };
    Ok(Box::new(opened.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => refused(error.to_string(), "a backing of its own, or --no-lock"),
        _ => refused(system_says(&error), wanted),
    })?))
}
