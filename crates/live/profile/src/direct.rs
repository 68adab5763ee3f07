//! A real device, read with `O_DIRECT`, so that the page cache neither answers nor keeps the data. It is opened
//! read-only.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headstart_device::SECTOR_BYTES;
use headstart_types::{system_says, Bytes, Nanos};
use nix::errno::Errno;
use nix::unistd::{lseek, Whence};

use super::{Error, Probe, Read, Span};
use headstart_host::set_realtime_priority;
use headstart_host::{Clock, RealClock};

/// Direct reads need memory aligned to a block of the device.
const PAGE_BYTES: usize = 4096;
/// The last part of a pause is a busy wait, because a sleeping thread wakes up late.
const AWAKE: Duration = Duration::from_micros(200);
const ALLOWED: &str = "a block device, or a regular file, that can be read directly";

/// An open device.
pub struct DirectProbe {
    path: PathBuf,
    file: File,
    sectors: u64,
    clock: RealClock,
    buffer: Aligned,
}

/// Buffer of one read.
struct Aligned {
    bytes: Vec<u8>,
    from: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Self {
        let bytes = vec![0; bytes + PAGE_BYTES];
        let from = bytes.as_ptr().align_offset(PAGE_BYTES);
        Self { bytes, from }
    }

    fn first(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < bytes + PAGE_BYTES {
            *self = Self::new(bytes);
        }
        &mut self.bytes[self.from..self.from + bytes]
    }
}

impl DirectProbe {
    /// Opens `path`, a block device or a regular file.
    ///
    /// # Errors
    /// It is neither, may not be read, does not support direct reads, or has holes.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let refuse = |problem: String| Error::path(path, problem, ALLOWED);
        let metadata = std::fs::metadata(path).map_err(|error| refuse(system_says(&error)))?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(refuse("is neither".to_owned()));
        }
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
        let mut file = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => refuse("refuses direct reads (O_DIRECT)".to_owned()),
            _ => refuse(system_says(&error)),
        })?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(|error| refuse(system_says(&error)))?;
        if kind.is_file() && has_holes(&file, bytes) {
            let allowed = "a file that has been written whole, or a block device";
            return Err(Error::path(path, "has holes, which no device reads", allowed));
        }
        let sectors = bytes / SECTOR_BYTES;
        let clock = RealClock::new(1, 1.0);
        clock.enter(0);
        Ok(Self { path: path.to_owned(), file, sectors, clock, buffer: Aligned::new(PAGE_BYTES) })
    }
}

/// Whether a file has holes; false if the file system cannot tell.
fn has_holes(file: &File, bytes: u64) -> bool {
    matches!(lseek(file, 0, Whence::SeekHole), Ok(hole) if hole.unsigned_abs() < bytes)
}

/// Reads `read` into `buffer`.
fn read_into(file: &File, path: &Path, buffer: &mut Aligned, read: Read) -> Result<(), Error> {
    let offset = read.sector * SECTOR_BYTES;
    let bytes = (u64::from(read.sectors) * SECTOR_BYTES) as usize;
    file.read_exact_at(buffer.first(bytes), offset).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it has become shorter".to_owned(),
            _ if error.raw_os_error() == Some(Errno::EINVAL as i32) => "it refuses direct reads (O_DIRECT)".to_owned(),
            _ => system_says(&error),
        };
        let allowed = "a device that can be read everywhere, directly, and stays where it is";
        Error::path(path, format!("reading {} at byte {offset}: {why}", Bytes(bytes as u64)), allowed)
    })
}

impl Probe for DirectProbe {
    /// Raises the thread's priority where that is permitted; threads that it starts inherit it.
    fn begin(&mut self) {
        set_realtime_priority();
    }

    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn pause(&mut self, time: Nanos) {
        let end = self.now() + time;
        if let Some(asleep) = Duration::from_nanos(time.0).checked_sub(AWAKE) {
            std::thread::sleep(asleep);
        }
        while self.now() < end {
            std::hint::spin_loop();
        }
    }

    fn read(&mut self, read: Read) -> Result<Span, Error> {
        let from = self.now();
        read_into(&self.file, &self.path, &mut self.buffer, read)?;
        Ok(Span { from, to: self.now() })
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        let next = AtomicUsize::new(0);
        let reader = || -> Result<(), Error> {
            let mut buffer = Aligned::new(PAGE_BYTES);
            while let Some(read) = reads.get(next.fetch_add(1, Ordering::Relaxed)) {
                let done = read_into(&self.file, &self.path, &mut buffer, *read);
                if done.is_err() {
                    next.store(reads.len(), Ordering::Relaxed);
                    return done;
                }
            }
            Ok(())
        };
        let from = self.now();
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..depth).map(|_| scope.spawn(reader)).collect();
            let ends = readers
                .into_iter()
                .map(|reader| reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            // Waits for all reads, even after an error.
            ends.collect::<Vec<_>>().into_iter().collect::<Result<(), Error>>()
        })?;
        Ok(self.now() - from)
    }
}
