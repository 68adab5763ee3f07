//! Time of a revolution.
//!
//! A sector that is read from the media always ends at the same angle, so the times between such ends are whole
//! revolutions, whatever the arm did. Many places are read in several rounds, in random order, so that the number of
//! revolutions between two reads of a place varies; there are more places than the buffer has segments, so that it
//! answers none. Of all periods that fit, the longest is the revolution, because its half and its third fit too.

use std::f64::consts::TAU;

use headstart_types::Nanos;

use super::lab::{Lab, Phase, WIDTH};
use super::look::DriveTraits;
use super::probe::ALIGNMENT;
use super::Error;

/// Revolutions per second: 2,400 to 30,000 rpm.
const FREQUENCIES: (f64, f64) = (40.0, 500.0);
/// Minimum number of rounds.
const ROUNDS: usize = 5;
/// Minimum number of places.
const PLACES: usize = 24;
/// Minimum fit: the mean cosine of the differences is 1 for whole revolutions and about 0 otherwise.
const FITS: f64 = 0.6;
/// A longer period is chosen if its fit is at least this share of the best.
const NEARLY: f64 = 0.8;

/// Relative rounding error, because a profile has whole revolutions per minute.
const TURN_ROUNDED: f64 = 1e-4;

/// A measured revolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    pub ns: f64,
    /// How well it fits, 0 to 1.
    pub fit: f64,
    /// Its error in nanoseconds.
    pub error_ns: f64,
}

impl Turn {
    /// The remainder of `time` modulo whole revolutions.
    pub fn angle_ns(&self, time: f64) -> f64 {
        time.rem_euclid(self.ns)
    }
}

/// Returns `None` if the times are not periodic.
pub(super) fn rotation(lab: &mut Lab<'_>, traits: &DriveTraits) -> Result<Option<Turn>, Error> {
    lab.begin(Phase::Rotation);
    let segments = traits.buffer.map_or(1, |buffer| buffer.segments);
    let half = (segments + 4).max(PLACES / 2);
    let places: Vec<u64> = (0..2 * half).map(|_| lab.anywhere(ALIGNMENT)).collect();
    let mut last: Vec<Option<Nanos>> = vec![None; places.len()];
    let mut turns = Vec::new();
    let mut order: Vec<usize> = (0..places.len()).collect();
    let mut rounds = 0;
    while rounds < ROUNDS || lab.has_time() {
        // Each half by itself: the other half is always read between two reads of a place.
        let (first, second) = order.split_at_mut(half);
        lab.shuffle(first);
        lab.shuffle(second);
        for &index in &order {
            let span = lab.read_block(places[index])?;
            let end = (span.took() > traits.hit_below()).then_some(span.to);
            if let (Some(before), Some(end)) = (last[index], end) {
                turns.push((end - before).0 as f64 / 1e9);
            }
            last[index] = end;
        }
        rounds += 1;
    }
    Ok(period(&turns))
}

/// The period of which all of `seconds` are multiples.
fn period(seconds: &[f64]) -> Option<Turn> {
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    if seconds.len() < PLACES {
        return None;
    }
    let fit =
        |frequency: f64| seconds.iter().map(|time| (TAU * frequency * time).cos()).sum::<f64>() / seconds.len() as f64;
    // Fine enough that no period falls between two steps.
    let step = 0.05 / longest;
    let count = ((FREQUENCIES.1 - FREQUENCIES.0) / step) as usize;
    let fits: Vec<f64> = (0..=count).map(|index| fit(FREQUENCIES.0 + index as f64 * step)).collect();
    let best = fits.iter().copied().fold(0.0, f64::max);
    if best < FITS {
        return None;
    }
    let first = fits.iter().position(|each| *each > NEARLY * best)?;
    // From the foot of the maximum to its top.
    let top = (first..count).find(|index| fits[index + 1] <= fits[*index]).unwrap_or(count);
    let (mut frequency, mut step) = (FREQUENCIES.0 + top as f64 * step, step);
    for _ in 0..6 {
        let near = (-10..=10).map(|index| frequency + f64::from(index) * step / 5.0);
        frequency = near.max_by(|a, b| fit(*a).total_cmp(&fit(*b))).unwrap_or(frequency);
        step /= 5.0;
    }
    let ns = 1e9 / frequency;
    let times: Vec<f64> = seconds.iter().map(|time| time * 1e9).collect();
    Some(Turn { ns, fit: fit(frequency), error_ns: error_ns(ns, &times) })
}

/// Error of a revolution of `turn_ns`: least squares of the times between reads of one place over their numbers of
/// whole revolutions.
fn error_ns(turn_ns: f64, times_ns: &[f64]) -> f64 {
    let turns = |time: &f64| (time / turn_ns).round();
    let (mut squares, mut residues) = (0.0, 0.0);
    for time in times_ns {
        let count = turns(time);
        squares += count * count;
        residues += (time - count * turn_ns).powi(2);
    }
    let deviation = (residues / times_ns.len().max(2) as f64).sqrt();
    WIDTH * deviation / squares.max(1.0).sqrt() + TURN_ROUNDED * turn_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_by_hand() {
        // 3 and 4 turns of 10, off by 3 and -4: deviation 5 / sqrt 2, over 5 (3, 4, 5): 2 x 0.7071, and a ten-thousandth.
        assert!((error_ns(10.0, &[33.0, 36.0]) - (2.0 * 0.5_f64.sqrt() + 1e-3)).abs() < 1e-9);
    }

    /// Differences of `turns` turns of 6 ms, each `off` late.
    fn multiples(turns: &[u64], off: impl Fn(usize) -> f64) -> Vec<f64> {
        turns.iter().enumerate().map(|(index, count)| *count as f64 * 6e-3 + off(index)).collect()
    }

    const COUNTS: [u64; 30] = [
        40, 57, 61, 38, 44, 73, 50, 59, 47, 66, 41, 53, 70, 62, 39, 58, 45, 67, 51, 43, 71, 56, 48, 63, 37, 69, 54, 46,
        60, 52,
    ];

    #[test]
    fn the_longest_turn_that_fits() {
        let exact = period(&multiples(&COUNTS, |_| 0.0)).expect("they are multiples");
        assert!((exact.ns - 6e6).abs() < 10.0 && exact.fit > 0.9999, "{exact:?}");
        // Late by up to 90 us, as a sawtooth.
        let late = period(&multiples(&COUNTS, |index| (index % 4) as f64 * 30e-6)).expect("nearly multiples");
        assert!((late.ns - 6e6).abs() < 3_000.0, "{late:?}");
    }

    #[test]
    fn what_does_not_repeat_has_no_turn() {
        // The golden section of a revolution more each time.
        assert_eq!(period(&multiples(&COUNTS, |index| (index as f64 * 0.618_034 * 6e-3) % 6e-3)), None);
        assert_eq!(period(&multiples(&COUNTS[..5], |_| 0.0)), None, "too few to tell");
    }
}
