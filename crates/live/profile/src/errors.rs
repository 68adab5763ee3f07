//! Errors of the measured numbers: half the width of a 95 % confidence interval, assuming independent and normal
//! errors. The formulas are our own.
//!
//! - *Revolution*: see `rotation.rs`.
//! - *Overhead*: the minimum over several places, which is never below the true value; its error is the difference to
//!   the second smallest, or the whole overhead if it could not be separated from the seeks.
//! - *Mean seek*: the standard error at a distance is a revolution divided by the reads plus one, weighted by how often
//!   two random places have that distance. The error of the subtracted overhead is common to all.
//! - *Mean rate*: the spread of the reads at each place, and the unknown position of a zone's border between two places
//!   that differ.
//! - *Competitive depth*: from mean seek, revolution and rate.

use super::lab::WIDTH;
use super::rates::Share;
use super::seeks::SeekPoint;
use super::tracks::TrackAt;

/// Rounding of tracks and skews to whole sectors in the profile: half a sector each.
const SECTORS_ROUNDED: f64 = 1.0;
/// Remaining error, because the places are not spaced evenly.
const RATE_ROUNDED: f64 = 1e-3;
/// Error of a curve that is interpolated between a few dozen distances.
const CURVE_ROUNDED: f64 = 5e-3;

/// Error of the minimum of `found`.
pub(super) fn least_ns(found: &[f64]) -> f64 {
    let mut sorted = found.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted[..] {
        [] => 0.0,
        [only] => only,
        [least, next, ..] => next - least,
    }
}

/// Error of the mean seek over a disk with this many tracks.
pub(super) fn mean_seek_ns(points: &[SeekPoint], tracks: f64, turn_ns: f64, overhead_error_ns: f64) -> f64 {
    let share = |index: usize| points[index].tracks as f64 / tracks;
    let (mut sum, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (index, point) in points.iter().enumerate() {
        let before = if index == 0 { 0.0 } else { share(index - 1) };
        let after = if index + 1 == points.len() { 1.0 } else { share(index + 1) };
        // The distance of two random places is x, as a share of the disk, with density 2 (1 - x).
        let weight = (after - before) / 2.0 * 2.0 * (1.0 - share(index));
        let error = turn_ns / f64::from(point.reads + 1);
        sum += weight;
        mean += weight * point.ns as f64;
        squares += (weight * error).powi(2);
    }
    let sum = sum.max(f64::MIN_POSITIVE);
    WIDTH * squares.sqrt() / sum + overhead_error_ns + CURVE_ROUNDED * mean / sum
}

/// Relative error of the mean rate; `places` are in order and weighted evenly.
pub(super) fn rate_share(places: &[TrackAt], shares: &[Share], sectors: u64) -> f64 {
    let rates: Vec<f64> = places.iter().zip(shares).map(|(place, share)| place.track_sectors * share.share).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let own = rates.iter().zip(shares).map(|(rate, share)| (rate * share.error / rates.len() as f64).powi(2));
    let between = (1..places.len()).map(|next| {
        let apart = (places[next].sector - places[next - 1].sector) as f64 / sectors as f64;
        // Uniformly distributed between the two places.
        ((rates[next] - rates[next - 1]) * apart).powi(2) / 12.0
    });
    let variance: f64 = own.chain(between).sum();
    // Beyond the outermost places rates are extrapolated from the nearest two; the profile takes them as constant.
    let beyond = |one: usize, other: usize, gap: u64| {
        let slope = (rates[one] - rates[other]).abs() / places[one].sector.abs_diff(places[other].sector).max(1) as f64;
        slope * gap as f64 * (gap as f64 / 2.0) / sectors as f64
    };
    let last = places.len().saturating_sub(1);
    let ends = if last == 0 {
        mean
    } else {
        beyond(0, 1, places[0].sector) + beyond(last, last - 1, sectors - places[last].sector)
    };
    let track = places.iter().map(|place| place.track_sectors).sum::<f64>() / places.len().max(1) as f64;
    (WIDTH * variance.sqrt() + ends) / mean.max(f64::MIN_POSITIVE) + SECTORS_ROUNDED / track.max(1.0) + RATE_ROUNDED
}

/// Relative error of the competitive depth.
pub(super) fn depth_share(seek_error_ns: f64, turn_error_ns: f64, switch_ns: f64, rate_share: f64) -> f64 {
    let switch = (seek_error_ns + turn_error_ns / 2.0) / switch_ns.max(1.0);
    (switch * switch + rate_share * rate_share).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!([least_ns(&[]), least_ns(&[7.0]), least_ns(&[9.0, 4.0, 6.5])], [0.0, 7.0, 2.5]);
        // Two places of a disk of 100 sectors, 50 apart, at rates 90 and 110, each off by a tenth: 4.5 and 5.5 of the mean of
        // 100, and 20 x 0.5 / sqrt 12 = 2.887 of where they meet: sqrt (20.25 + 30.25 + 8.33) = 7.67 %, twice; a sector of a track of 100.
        let at = |sector, track_sectors| TrackAt { sector, track_sectors };
        let share = Share { share: 1.0, error: 0.1 };
        // Beyond each it goes on for 25 of 100, at 20 in 50: 1.25 of 100 on average, for both 2.5.
        let found = rate_share(&[at(25, 90.0), at(75, 110.0)], &[share; 2], 100);
        assert!(
            (found - (2.0 * (20.25_f64 + 30.25 + 100.0 / 12.0).sqrt() / 100.0 + 25e-3 + 11e-3)).abs() < 1e-9,
            "{found}"
        );
        // 1 ms of seek and 1 ms of half a turn in 20 ms: a tenth; with a tenth of the rate sqrt 2 of it.
        assert!((depth_share(1e6, 2e6, 20e6, 0.1) - 0.02_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn more_reads_leave_less() {
        let seeks = |reads| -> Vec<SeekPoint> {
            (1..10).map(|part| SeekPoint { tracks: part * 100, ns: part * 1_000_000, reads }).collect()
        };
        let [few, many] = [9, 99].map(|reads| mean_seek_ns(&seeks(reads), 1000.0, 1e7, 0.0));
        assert!(few > 3.0 * many && many > 0.0, "{few} {many}");
        assert_eq!((mean_seek_ns(&seeks(9), 1000.0, 1e7, 5e5) - few).round(), 5e5);
    }
}
