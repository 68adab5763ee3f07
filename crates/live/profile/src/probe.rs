//! Interface of a measured device: timed reads and pauses. It has no writes.

use headstart_types::Nanos;

use super::Error;

/// One read: `sector..sector + sectors`, in sectors of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// First sector; a multiple of [`ALIGNMENT`].
    pub sector: u64,
    /// Number of sectors; a positive multiple of [`ALIGNMENT`].
    pub sectors: u32,
}

/// Alignment of reads in sectors: 4 KiB, the largest block size of disks.
pub const ALIGNMENT: u32 = 8;

/// Start and end of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Time of issue.
    pub from: Nanos,
    /// Time of completion.
    pub to: Nanos,
}

impl Span {
    /// Duration.
    #[must_use]
    pub fn took(self) -> Nanos {
        self.to - self.from
    }
}

/// A readable device with a clock: [`super::SimulatedProbe`] in virtual time, [`super::DirectProbe`] in real time.
pub trait Probe {
    /// Whether each read is a request to an object store or a web server.
    fn is_object_store(&self) -> bool {
        false
    }

    /// Prepares the calling thread, which issues all single reads.
    fn begin(&mut self) {}

    /// Size in sectors.
    fn sectors(&self) -> u64;

    /// Time since an arbitrary origin.
    fn now(&self) -> Nanos;

    /// Waits for `time`.
    fn pause(&mut self, time: Nanos);

    /// Reads once. The caller guarantees that the read is aligned and lies within the device.
    ///
    /// # Errors
    /// The device does not answer.
    fn read(&mut self, read: Read) -> Result<Span, Error>;

    /// Reads all, in their order, `depth` of them outstanding at all times; the time of all of them. The caller guarantees
    /// what it does for [`Probe::read`], and that `depth` is at least 1.
    ///
    /// # Errors
    /// The device does not answer.
    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error>;
}
