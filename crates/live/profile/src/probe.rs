//! What a measurement asks of a device: timed reads, and pauses. There is no way to write.

use headstart_types::Nanos;

use super::Error;

/// One read: `sector..sector + sectors`, in sectors of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// First sector; a multiple of [`ALIGNMENT`].
    pub sector: u64,
    /// How many; a multiple of [`ALIGNMENT`], at least that.
    pub sectors: u32,
}

/// Every read begins and ends at a multiple of so many sectors, 4 KiB: the largest block that disks have.
pub const ALIGNMENT: u32 = 8;

/// From when to when a read took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// It was issued.
    pub from: Nanos,
    /// It was done.
    pub to: Nanos,
}

impl Span {
    /// How long it took.
    #[must_use]
    pub fn took(self) -> Nanos {
        self.to - self.from
    }
}

/// A device that can be read, and a clock that runs while it is. [`super::SimulatedProbe`] is a simulated drive in virtual
/// time, [`super::DirectProbe`] a real one.
pub trait Probe {
    /// Whether each read is a request to an object store or a web server.
    fn is_object_store(&self) -> bool {
        false
    }

    /// Prepares the calling thread, which makes all reads one at a time.
    fn begin(&mut self) {}

    /// Its size in sectors.
    fn sectors(&self) -> u64;

    /// Time since some instant.
    fn now(&self) -> Nanos;

    /// Lets `time` pass.
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
