//! Shared by a mechanical drive and its kinds of buffer: the drive's fixed numbers, and the shape of a buffer.

use headstart_types::Nanos;

use super::arm::Arm;
use super::bus::Bus;
use super::overhead::Overheads;

/// The fixed numbers of a drive.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    pub arm: Arm,
    pub overheads: Overheads,
    pub bus: Bus,
    /// Bus time of one sector: read, written.
    pub bus_sector: [Nanos; 2],
    pub nominal_service: Nanos,
}

/// The shape of a drive's buffer, for analytic models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferShape {
    /// See [`Mechanics::segments`].
    pub segments: u32,
    /// Sectors per segment.
    pub sectors: u64,
    pub reads_ahead: bool,
    pub reads_ahead_on_sequence: bool,
    pub reads_during_overhead: bool,
}
