//! What stands behind an export. A backing works where it is called and may take its time, so only threads of its own call it
//! (`workers.rs`). The thread that serves all clients has a [`Pool`], through which it can reach only what never waits.

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

use crate::work::{Place, Work};

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

impl StartedRead {
    /// Bytes of all buffers.
    fn length(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.len()).sum()
    }
}

/// A read of a file that io_uring can make.
#[derive(Debug)]
pub struct RingRead {
    /// The file, from the same offset on.
    pub file: Arc<File>,
    /// It passes the page cache, which may have it: [`Backing::read_at_once`] is to be tried first.
    pub tries_page_cache: bool,
}

/// Bytes of storage that can be read, and perhaps written, by several threads at a time.
pub trait Backing: Send + Sync {
    /// How many bytes. Never changes.
    fn size_bytes(&self) -> u64;

    /// Reads from `offset` on, filling `buffers` in turn; beyond the end there are zeroes.
    ///
    /// # Errors
    /// Not all of it could be read. The buffers may hold anything then.
    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()>;

    /// Whether [`Backing::read_at_once`] is worth trying. Does not change.
    fn reads_at_once(&self) -> bool {
        false
    }

    /// Reads as [`Backing::read`] does if nothing has to be waited for, nor any lock that is held while something is. Otherwise this is false, and the buffers may hold anything.
    fn read_at_once(&self, _offset: u64, _buffers: &mut [BytesMut]) -> bool {
        false
    }

    /// The file that the same read is one of, where its buffers can be filled through io_uring. One that brings too little, or that is refused, is
    /// done by [`Backing::read`].
    fn ring_read(&self, _offset: u64, _buffers: &[BytesMut]) -> Option<RingRead> {
        None
    }

    /// Whether [`Backing::start_reads`] is to be called.
    fn starts_reads(&self) -> bool {
        false
    }

    /// Starts reads without a thread that waits for each, so that they reach the storage together and in this order, as those of a
    /// plugged queue of the kernel do: a disk merges and orders what it has at the same time. Gives back the reads that a thread has to do.
    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        reads
    }

    /// Writes `data` from `offset` on; with `fua` it is on stable storage when this returns.
    ///
    /// # Errors
    /// Not all of it could be written.
    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()>;

    /// Gives `length` bytes up.
    ///
    /// # Errors
    /// As for a write.
    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()>;

    /// Makes `length` bytes zeroes; with `no_hole` their space stays allocated.
    ///
    /// # Errors
    /// As for a write.
    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> io::Result<()>;

    /// Makes everything that has been written stable.
    ///
    /// # Errors
    /// It may not be.
    fn flush(&self) -> io::Result<()>;

    /// Acknowledged changes may be lost, and nothing of them is left in the cache: neither is there below, when this returns. A backing
    /// that has noticed the loss by itself has failed everything with [`loss`] until now.
    fn renew(&self) {}

    /// What of `length` bytes from `offset` on is allocated: extents that follow one another, at least one, at most
    /// [`headstart_nbd::EXTENTS_MAX`], none empty. They may cover less.
    ///
    /// # Errors
    /// It is not known.
    fn extents(&self, _offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { length, hole: false, zero: false }])
    }

    /// How many reads at a time are worth it.
    fn parallelism(&self) -> u32 {
        32
    }

    /// The longest read that is worth it.
    fn read_bytes_max(&self) -> u64 {
        1 << 20
    }

    /// How far a stream is worth reading ahead of; `None` if that has to be measured.
    fn read_ahead_bytes(&self) -> Option<u64> {
        None
    }

    /// How far the system reads ahead of the device, where there is one.
    fn device_read_ahead_bytes(&self) -> Option<u64> {
        None
    }

    /// Keeps a page that has left the cache, where there is a spill file.
    fn store(&self, _place: Place, _bytes: &[u8]) {}

    /// What tells this storage, with what it holds now, from every other: the same again as long as it has not changed. `None` if it does
    /// not say.
    fn identity(&self) -> Option<String> {
        None
    }

    /// What an emulated device has done; `None` for a real one.
    fn device(&self) -> Option<serde_json::Value> {
        None
    }

    /// Whether a read that fails may still succeed in parts: a disk has bad sectors, a server that is gone has none.
    fn fails_in_parts(&self) -> bool {
        true
    }

    /// Does `work`.
    ///
    /// # Errors
    /// It could not be done.
    fn carry_out(&self, work: &mut Work) -> io::Result<Vec<Extent>> {
        match work {
            Work::Read { offset, buffers, .. } => self.read(*offset, buffers)?,
            Work::Write { offset, data, fua } => self.write(*offset, data, *fua)?,
            Work::Trim { offset, length, fua } => self.trim(*offset, *length, *fua)?,
            Work::Zero { offset, length, no_hole, fua } => self.zero(*offset, *length, *no_hole, *fua)?,
            Work::Flush => self.flush()?,
            Work::Renew => self.renew(),
            Work::Store { place, buffer } => self.store(*place, buffer),
            Work::Extents { offset, length } => return self.extents(*offset, *length),
        }
        Ok(Vec::new())
    }
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

/// See [`Backing::identity`], of a regular file.
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
        return Ok(Box::new(memory.map_err(|error| refused(error.to_string(), "a size within the machine's RAM"))?));
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
