//! Long reads by place: what comes in a second, over switches of heads and cylinders, through the bus.

use headstart_types::Nanos;

use super::lab::{align, Lab, Phase};
use super::look::DriveTraits;
use super::rotation::Turn;
use super::tracks::{spread, TrackAt};
use super::Error;

/// Sizes in sectors: 128 KiB to 1 MiB. Short reads lose time between requests, long ones exceed the read-ahead of some
/// drives; the size with the highest rate is used.
const SECTORS: [u32; 4] = [256, 512, 1024, 2048];
/// Places that are read even if time is short.
const PLACES_LEAST: usize = 4;
/// Minimum number of reads at a place, the first of which is not counted; and maximum number of sectors: 40 MiB.
const READS: u32 = 5;
const MOST: u32 = 81_920;

/// Rate of a long read, as a share of the media rate without switches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    pub share: f64,
    /// Its relative standard error.
    pub error: f64,
}

/// Mean time of a read and its standard error.
#[derive(Debug, Clone, Copy)]
struct Mean {
    ns: f64,
    error_ns: f64,
}

/// Rates at `places`.
pub(super) fn rates(
    lab: &mut Lab<'_>,
    traits: &DriveTraits,
    turn: &Turn,
    places: &[TrackAt],
) -> Result<Vec<Share>, Error> {
    lab.begin(Phase::Rates);
    let sectors = if traits.buffer.is_some() { best_size(lab, places[places.len() / 2].sector)? } else { SECTORS[2] };
    let mut shares: Vec<Option<Share>> = vec![None; places.len()];
    for (done, index) in spread(places.len()).into_iter().enumerate() {
        let left = Nanos(lab.left().0 / (places.len() - done) as u64);
        if done >= PLACES_LEAST && !lab.has_time() {
            break;
        }
        let passing = places[index].track_sectors * 1e9 / turn.ns;
        let read = |lab: &mut Lab<'_>, sectors, time| mean_ns(lab, places[index].sector, sectors, time);
        let (rate, error) = if traits.buffer.is_some() {
            let mean = read(lab, sectors, left)?;
            (f64::from(sectors) * 1e9 / mean.ns, mean.error_ns / mean.ns)
        } else {
            // Each read waits for its first sector, regardless of its size.
            let (less, time) = (sectors / 4, Nanos(left.0 / 2));
            let (long, short) = (read(lab, sectors, time)?, read(lab, less, time)?);
            let ns = (long.ns - short.ns).max(1.0);
            (f64::from(sectors - less) * 1e9 / ns, long.error_ns.hypot(short.error_ns) / ns)
        };
        shares[index] = Some(Share { share: rate / passing, error });
    }
    let nearest = |index: usize| {
        let measured = (0..shares.len()).filter(|other| shares[*other].is_some());
        measured
            .min_by_key(|other| other.abs_diff(index))
            .and_then(|other| shares[other])
            .unwrap_or(Share { share: 1.0, error: 1.0 })
    };
    Ok((0..shares.len()).map(nearest).collect())
}

/// The size with the highest rate.
fn best_size(lab: &mut Lab<'_>, place: u64) -> Result<u32, Error> {
    let time = Nanos(lab.left().0 / 4 / SECTORS.len() as u64);
    let mut best = (0.0, SECTORS[0]);
    for (tried, sectors) in (0..).zip(SECTORS) {
        // Each size at another place, because the buffer may hold what was read before.
        let rate = f64::from(sectors) / mean_ns(lab, place + tried * u64::from(MOST), sectors, time)?.ns;
        if rate > best.0 {
            best = (rate, sectors);
        }
    }
    Ok(best.1)
}

/// Mean time of sequential reads, measured for about `time`.
fn mean_ns(lab: &mut Lab<'_>, place: u64, sectors: u32, time: Nanos) -> Result<Mean, Error> {
    let most = (MOST / sectors).max(READS);
    let room = align(lab.sectors().saturating_sub(u64::from(sectors * most)));
    let mut next = align(place).min(room);
    let first = lab.read(next, sectors)?;
    let (mut last, mut reads) = (first, 1);
    let mut squares = 0.0;
    while reads < READS || (reads < most && last.to - first.from < time) {
        next += u64::from(sectors);
        let read = lab.read(next, sectors)?;
        squares += ((read.to - last.to).0 as f64).powi(2);
        last = read;
        reads += 1;
    }
    let count = f64::from(reads - 1);
    let ns = (last.to - first.to).0 as f64 / count;
    let deviation = (squares / count - ns * ns).max(0.0).sqrt();
    Ok(Mean { ns, error_ns: deviation / count.sqrt() })
}
