//! Sequential reads of a drive with an arm, one at a time: their rate, and what limits it.
//!
//! The rate is measured on the model. The limit follows from three times of a read: what the media take to pass its
//! sectors, switches included, what the bus takes, and the controller's overhead of a hit. The media pass the next read's
//! sectors while the bus is busy, so the longer of media and of bus with overhead sets the pace. Where the measured
//! time is far above both, the difference is turns that the drive loses between reads.

use crate::{probe, Band, Device, Fcfs, Load, Mechanics, Pattern, SECTOR_BYTES};

/// What is read of a zone, after an eighth of it that is not counted: many times a buffer, in a short time.
const READ_BYTES: u64 = 64 << 20;

/// The part by which a read may take longer than its pace before the rest is called lost turns: guess. The switches of a
/// segment that restarts cost less, one turn a read costs more.
const LOST: f64 = 0.2;

/// What sets the pace of sequential reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The sectors that pass the head.
    Media,
    /// The bus to the host.
    Interface,
    /// The controller.
    Overheads,
    /// Turns between reads: the drive does not read ahead, or not far enough.
    Rotations,
}

impl Limit {
    /// Its name in text.
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

/// How reads of one size in order are served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialRead {
    /// Rate.
    pub bytes_per_second: f64,
    /// What sets it.
    pub limit: Limit,
}

/// Reads `band` of `device`, whose make is `mechanics`, in order and `sectors` at a time.
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
