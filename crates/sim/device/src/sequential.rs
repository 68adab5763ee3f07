//! Sequential reads of a drive with an arm, one at a time: their rate, and the bottleneck.
//!
//! The rate is measured on the model. The bottleneck follows from three times of a read: the media time of its sectors
//! including switches, the bus time, and the controller's overhead of a hit. The media read the next request's sectors
//! while the bus is busy, so the longer of media time and of bus time plus overhead determines the rate. If the
//! measured time is far above both, the difference is revolutions lost between reads.

use crate::{probe, Band, Device, Fcfs, Load, Mechanics, Pattern, SECTOR_BYTES};

/// Amount read in a zone, after an eighth of it that is not counted: many times a buffer, but quick to simulate.
const READ_BYTES: u64 = 64 << 20;

/// Share by which a read may exceed the expected time before the rest counts as lost revolutions: guess. The switches
/// of a segment that restarts cost less, one revolution per read costs more.
const LOST: f64 = 0.2;

/// The bottleneck of sequential reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The media rate.
    Media,
    /// The bus to the host.
    Interface,
    /// The controller.
    Overheads,
    /// Revolutions between reads: the drive does not read ahead, or not far enough.
    Rotations,
}

impl Limit {
    /// Its name for display.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Media => "media",
            Self::Interface => "interface",
            Self::Overheads => "overheads",
            Self::Rotations => "rotations",
        }
    }
}

/// The result for sequential reads of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialRead {
    pub bytes_per_second: f64,
    pub limit: Limit,
}

/// Reads `band` of `device`, whose parameters are `mechanics`, sequentially, `sectors` at a time.
///
/// The caller guarantees that the device is new and has as many sectors.
#[must_use]
pub fn sequential_read(device: &dyn Device, mechanics: &Mechanics, band: &Band, sectors: u32) -> SequentialRead {
    let each = u64::from(sectors) * SECTOR_BYTES;
    let capacity = device.capacity_sectors().unwrap_or(u64::MAX).saturating_sub(band.first);
    let fits = band.sectors.min(capacity) / u64::from(sectors);
    let counted = (READ_BYTES / each).min(fits * 8 / 9).max(1) as u32;
    let pattern = Pattern::Sequential { from: band.first };
    let load = Load { pattern, warm_up: counted / 8, ..Load::sequential(sectors, counted) };
    let bytes_per_second = probe(device.clone_box(), Box::new(Fcfs::default()), &load).bytes_per_second();
    let media = each as f64 * 1e9 / band.bytes_per_second;
    let bus = f64::from(sectors) * mechanics.bus_sector_ns;
    let overhead = mechanics.hit_overhead.0 as f64;
    let pace = media.max(bus + overhead);
    let limit = match each as f64 * 1e9 / bytes_per_second {
        took if took > pace * (1.0 + LOST) => Limit::Rotations,
        _ if media >= bus + overhead => Limit::Media,
        _ if bus >= overhead => Limit::Interface,
        _ => Limit::Overheads,
    };
    SequentialRead { bytes_per_second, limit }
}
