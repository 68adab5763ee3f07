//! The first look: does the place of a read matter, and what does the device's buffer answer?
//!
//! *An arm*: reads near the one before are held against reads anywhere. An arm takes several times as long for the latter
//! at the least; a device without one takes the same.
//!
//! *The buffer*: a place is read twice. The second read takes overhead and bus only, if it is answered from the buffer, which
//! two sizes tell apart. Read `k` other places in between, and the first is there again only if the buffer has more than `k`
//! segments: so the segments are counted. A place that is read a second time without regard to that says nothing about the arm.

use headstart_types::Nanos;

use super::fit::median_error;
use super::lab::{align, median, Lab, Phase};
use super::probe::ALIGNMENT;
use super::Error;

/// Pairs of a near and a far read: at least, at most.
const PAIRS: (usize, usize) = (16, 48);
/// A near read is so many sectors before the last one: 64 KiB to 1 MiB.
const NEAR: (u64, u64) = (128, 2048);
/// Far reads take so many times as long as near ones, or there is no arm. Drives: 1.8 and more.
const ARM: f64 = 1.3;
/// A second read is from the buffer if it takes less than such a part of a far one.
const BUFFERED: u64 = 4;
/// Places that are read twice.
const TWICE: usize = 9;
/// Sectors of the larger second read; of a still larger one where the bus is too fast for that.
const LARGER: [u32; 2] = [32, 128];
/// A sector on the bus takes less: too little for the former.
const FAST: f64 = 20_000.0;
/// Segments are counted up to here.
const SEGMENTS: usize = 64;

/// What the first look gave.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DriveTraits {
    /// Median of reads near the one before, of reads anywhere.
    pub near: Nanos,
    pub far: Nanos,
    pub buffer: Option<Buffer>,
}

/// A buffer that answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    /// Median of a second read of [`ALIGNMENT`] sectors.
    pub hit: Nanos,
    /// What a further sector takes, in nanoseconds, and its standard error.
    pub bus_sector_ns: f64,
    pub bus_error_ns: f64,
    /// [`SEGMENTS`] if there are as many or more.
    pub segments: usize,
}

impl DriveTraits {
    pub fn has_arm(&self) -> bool {
        self.far.0 as f64 > ARM * self.near.0 as f64
    }

    /// What a read from the buffer takes beside the bus.
    pub fn hit_overhead_ns(&self) -> Option<f64> {
        let rest = |buffer: Buffer| buffer.hit.0 as f64 - f64::from(ALIGNMENT) * buffer.bus_sector_ns;
        self.buffer.map(|buffer| rest(buffer).max(0.0))
    }

    /// A read that took no longer may have been answered by the buffer.
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

/// The least number of other places that push one out: doubled until they do, then by halves.
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
