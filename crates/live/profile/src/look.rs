//! First look: whether the place of a read matters, and what the device's buffer answers.
//!
//! *Arm*: reads near the previous one are compared with random reads. With an arm, random reads take clearly longer;
//! without one they take the same time.
//!
//! *Buffer*: each place is read twice. A second read that the buffer answers takes overhead and bus time only, which
//! two sizes separate. After reading `k` other places, the first one is still in the buffer only if it has more than
//! `k` segments; this counts the segments.

use headstart_types::Nanos;

use super::fit::median_error;
use super::lab::{align, median, Lab, Phase};
use super::probe::ALIGNMENT;
use super::Error;

/// Minimum and maximum number of pairs of a near and a far read.
const PAIRS: (usize, usize) = (16, 48);
/// Distance in sectors by which a near read precedes the last one: 64 KiB to 1 MiB.
const NEAR: (u64, u64) = (128, 2048);
/// Minimum ratio of far to near reads for a drive with an arm. Drives show 1.8 and more.
const ARM: f64 = 1.3;
/// A second read comes from the buffer if it takes less than this fraction of a far read.
const BUFFERED: u64 = 4;
/// Number of places that are read twice.
const TWICE: usize = 9;
/// Sectors of the larger second read; the second value is for fast buses.
const LARGER: [u32; 2] = [32, 128];
/// Bus time per sector in nanoseconds below which a bus counts as fast.
const FAST: f64 = 20_000.0;
/// Maximum number of segments that are counted.
const SEGMENTS: usize = 64;

/// Result of the first look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DriveTraits {
    /// Median times of near reads and of far reads.
    pub near: Nanos,
    pub far: Nanos,
    pub buffer: Option<Buffer>,
}

/// The drive's buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    /// Median of a second read of [`ALIGNMENT`] sectors.
    pub hit: Nanos,
    /// Bus time per sector in nanoseconds, and its standard error.
    pub bus_sector_ns: f64,
    pub bus_error_ns: f64,
    /// Number of segments, at most [`SEGMENTS`].
    pub segments: usize,
}

impl DriveTraits {
    pub fn has_arm(&self) -> bool {
        self.far.0 as f64 > ARM * self.near.0 as f64
    }

    /// Overhead of a buffer hit without the bus.
    pub fn hit_overhead_ns(&self) -> Option<f64> {
        let rest = |buffer: Buffer| buffer.hit.0 as f64 - f64::from(ALIGNMENT) * buffer.bus_sector_ns;
        self.buffer.map(|buffer| rest(buffer).max(0.0))
    }

    /// Reads that take no longer may have been buffer hits.
    pub fn hit_below(&self) -> Nanos {
        self.buffer.map_or(Nanos::ZERO, |buffer| Nanos(buffer.hit.0 * 11 / 10 + 20_000))
    }
}

pub(super) fn look(lab: &mut Lab<'_>) -> Result<DriveTraits, Error> {
    lab.begin(Phase::Look);
    let (mut near, mut far) = (Vec::new(), Vec::new());
    while far.len() < PAIRS.0 || (far.len() < PAIRS.1 && lab.has_time()) {
        let place = lab.place(NEAR.1, lab.sectors());
        far.push(lab.read_block(place)?.took());
        let before = lab.place(place - NEAR.1, place - NEAR.0);
        near.push(lab.read_block(before)?.took());
    }
    let (near, far) = (median(&near).unwrap_or_default(), median(&far).unwrap_or_default());
    let mut traits = DriveTraits { near, far, buffer: None };
    if traits.has_arm() {
        traits.buffer = buffer(lab, far)?;
    }
    Ok(traits)
}

fn buffer(lab: &mut Lab<'_>, far: Nanos) -> Result<Option<Buffer>, Error> {
    let (hit, hit_error) = again(lab, ALIGNMENT)?;
    if hit.0 > far.0 / BUFFERED {
        return Ok(None);
    }
    let (mut bus_sector_ns, mut bus_error_ns) = (0.0, 0.0);
    for sectors in LARGER {
        let (larger, error) = again(lab, sectors)?;
        let more = f64::from(sectors - ALIGNMENT);
        bus_sector_ns = larger.saturating_sub(hit).0 as f64 / more;
        bus_error_ns = hit_error.hypot(error) / more;
        if bus_sector_ns > FAST {
            break;
        }
    }
    Ok(Some(Buffer { hit, bus_sector_ns, bus_error_ns, segments: segments(lab, hit)? }))
}

/// Median time of a second read, and its standard error in nanoseconds.
fn again(lab: &mut Lab<'_>, sectors: u32) -> Result<(Nanos, f64), Error> {
    let mut times = Vec::with_capacity(TWICE);
    for _ in 0..TWICE {
        let place = lab.anywhere(sectors);
        lab.read(place, sectors)?;
        times.push(lab.read(place, sectors)?.took());
    }
    let ns: Vec<f64> = times.iter().map(|time| time.0 as f64).collect();
    // Times are whole nanoseconds.
    Ok((median(&times).unwrap_or_default(), median_error(&ns).max(1.0)))
}

/// Minimum number of other places that evict a segment: doubled until they do, then bisected.
fn segments(lab: &mut Lab<'_>, hit: Nanos) -> Result<usize, Error> {
    let mut holds = |others: usize| -> Result<bool, Error> {
        let place = lab.anywhere(ALIGNMENT);
        lab.read_block(place)?;
        for _ in 0..others {
            let other = lab.anywhere(ALIGNMENT);
            lab.read_block(align(other))?;
        }
        Ok(lab.read_block(place)?.took() < hit * 2)
    };
    let (mut held, mut gone) = (0, 1);
    while holds(gone)? {
        held = gone;
        gone *= 2;
        if gone >= SEGMENTS {
            return Ok(SEGMENTS);
        }
    }
    while gone - held > 1 {
        let middle = held.midpoint(gone);
        if holds(middle)? {
            held = middle;
        } else {
            gone = middle;
        }
    }
    Ok(gone)
}
