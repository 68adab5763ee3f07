//! Sectors per track by place.
//!
//! Of two reads on one track, the second ends a fraction of a revolution before or after the first, whatever happened
//! between them. If it lies a known number of sectors before the first, that fraction gives the sectors per revolution.
//! It reads backward, because the drive reads ahead. If a track's end lies between the two, its skew is added;
//! therefore, of several pairs, the smallest angle on which some agree is used.

use super::lab::{align, median, Lab, Phase};
use super::look::DriveTraits;
use super::probe::ALIGNMENT;
use super::rotation::Turn;
use super::Error;

/// Number of evenly spaced places.
const PLACES: usize = 32;
/// Number of places that are measured even if time is short.
const PLACES_LEAST: usize = 8;
/// Pairs for the first and for the last estimate, and how many times as many are tried.
const PAIRS: (usize, usize) = (5, 15);
const TRIES: usize = 5;
/// Distance in sectors if nothing is known of the track, and the maximum distance.
const BACK: (u64, u64) = (16, 1 << 16);
/// Two distances agree within this relative difference.
const CHECKED: f64 = 0.1;
/// Neighbouring zones differ by less than this ratio.
const SHORT: f64 = 0.85;
/// Angles agree within this share of a revolution.
const AGREE: f64 = 0.025;
/// A group of agreeing angles has at least this share of the largest group's size.
const GROUP: f64 = 0.5;

/// Sectors per track at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrackAt {
    pub sector: u64,
    pub track_sectors: f64,
}

/// Media and bus time of a block: sectors cross the bus while they are read, so the slower of the two determines the
/// time.
pub(super) fn transfer_ns(turn: &Turn, track_sectors: f64, bus_sector_ns: f64) -> f64 {
    let (sectors, media) = (f64::from(ALIGNMENT), turn.ns / track_sectors);
    (sectors * media + bus_sector_ns).max(media + sectors * bus_sector_ns)
}

/// The numbers below `count`, ordered such that each prefix covers them evenly.
pub(super) fn spread(count: usize) -> Vec<usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = |index: usize| if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) };
    (0..count.next_power_of_two()).map(reversed).filter(|index| *index < count).collect()
}

/// Track lengths by sector; at least one.
pub(super) fn tracks(lab: &mut Lab<'_>, traits: &DriveTraits, turn: &Turn) -> Result<Option<Vec<TrackAt>>, Error> {
    lab.begin(Phase::Tracks);
    let part = lab.sectors() / PLACES as u64;
    let mut places: Vec<TrackAt> = Vec::new();
    for (done, index) in spread(PLACES).into_iter().enumerate() {
        if done >= PLACES_LEAST && !lab.has_time() {
            break;
        }
        let window = (part * index as u64 + part * 7 / 16, part * index as u64 + part * 9 / 16);
        let guess = places.iter().min_by_key(|place| place.sector.abs_diff(window.0)).map(|place| place.track_sectors);
        // Repeats if the buffer answered too often or two distances disagree.
        for _ in 0..2 {
            let mut measure = Measure { lab, traits, turn, window };
            if let Some(track_sectors) = measure.track(guess)? {
                places.push(TrackAt { sector: window.0.midpoint(window.1), track_sectors });
                break;
            }
        }
    }
    places.sort_by_key(|place| place.sector);
    let places = plausible(&places);
    Ok((!places.is_empty()).then_some(places))
}

/// Removes places whose tracks are much shorter or longer than their neighbours': there, no pair lay within a track.
fn plausible(places: &[TrackAt]) -> Vec<TrackAt> {
    let around = |index: usize| {
        let near = &places[index.saturating_sub(2)..(index + 3).min(places.len())];
        median(&near.iter().map(|place| place.track_sectors).collect::<Vec<_>>()).unwrap_or_default()
    };
    let alike = |index: &usize| (SHORT..1.0 / SHORT).contains(&(places[*index].track_sectors / around(*index)));
    (0..places.len()).filter(alike).map(|index| places[index]).collect()
}

/// Measurement of one place.
struct Measure<'a, 'b> {
    lab: &'a mut Lab<'b>,
    traits: &'a DriveTraits,
    turn: &'a Turn,
    window: (u64, u64),
}

impl Measure<'_, '_> {
    /// Sectors per track; `None` if the buffer answers too often.
    fn track(&mut self, guess: Option<f64>) -> Result<Option<f64>, Error> {
        let mut back = guess.map_or(BACK.0, quarter);
        loop {
            let Some(sectors) = self.estimate(back, PAIRS.0)? else {
                // A drive that keeps what passed the head before a read holds it, unless it lies far enough before.
                back *= 4;
                if guess.is_some() || back > BACK.1.min(self.window.0) {
                    return Ok(None);
                }
                continue;
            };
            let share = back as f64 / sectors;
            // Too close together: the unevenness of the times dominates. Use a larger distance if there is room.
            if share >= 0.1 || back * 8 > self.window.0 {
                back = quarter(sectors);
                break;
            }
            back = if share > 0.02 { quarter(sectors) } else { back * 4 };
        }
        let Some(sectors) = self.estimate(back, PAIRS.1)? else { return Ok(None) };
        // Whole revolutions between a pair are invisible; another distance would then give another result.
        let other = back + align(back / 3).max(ALIGNMENT.into());
        let agrees = |check: &f64| (check / sectors - 1.0).abs() < CHECKED;
        Ok(self.estimate(other, PAIRS.0)?.filter(agrees).map(|_| sectors))
    }

    fn estimate(&mut self, back: u64, count: usize) -> Result<Option<f64>, Error> {
        let mut before: Vec<f64> = Vec::with_capacity(count);
        for _ in 0..TRIES * count {
            before.extend(self.pair(back)?);
            if before.len() == count {
                break;
            }
        }
        let agreed = (before.len() > count / 2).then(|| agreed(before, AGREE * self.turn.ns)).flatten();
        Ok(agreed.filter(|ns| *ns > 0.0).map(|ns| back as f64 * self.turn.ns / ns))
    }

    /// Share of a revolution by which the second of two reads precedes the first; `None` if one was a buffer hit.
    fn pair(&mut self, back: u64) -> Result<Option<f64>, Error> {
        let place = self.lab.place(self.window.0.max(back), self.window.1);
        let first = self.lab.read_block(place)?;
        let second = self.lab.read_block(place - back)?;
        let hit_below = self.traits.hit_below();
        if first.took() <= hit_below || second.took() <= hit_below {
            return Ok(None);
        }
        let after = self.turn.angle_ns((second.to - first.to).0 as f64);
        // Just below a whole revolution: nearly zero, and late.
        Ok(Some(if after < 0.02 * self.turn.ns { -after } else { self.turn.ns - after }))
    }
}

/// The median of those of `values` that agree within `range`. If several groups agree, the smallest values win, unless
/// their group is much smaller than the largest.
fn agreed(mut values: Vec<f64>, range: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let alike = |first: usize| values[first..].iter().take_while(|value| **value - values[first] <= range).count();
    let most = (0..values.len()).map(alike).max()?;
    let enough = ((most as f64 * GROUP).ceil() as usize).max(2);
    let lowest = (0..values.len()).find(|first| alike(*first) >= enough)?;
    // From the edge of the group to its densest part.
    let near = (lowest..values.len()).take_while(|first| values[*first] - values[lowest] <= range);
    let first = near.max_by_key(|first| (alike(*first), std::cmp::Reverse(*first)))?;
    Some(values[first + alike(first) / 2])
}

/// A quarter of a track, in whole blocks.
fn quarter(track_sectors: f64) -> u64 {
    align((track_sectors / 4.0) as u64).max(ALIGNMENT.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_is_spread_evenly() {
        assert_eq!(spread(8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(spread(5), [0, 4, 2, 1, 3]);
        assert_eq!(spread(1), [0]);
    }

    #[test]
    fn the_smallest_that_agree_count() {
        assert_eq!(agreed(vec![9.0, 1.0, 5.1, 5.0, 9.1, 9.2, 5.2], 0.3), Some(5.1));
        assert_eq!(agreed(vec![5.3, 5.0, 5.1, 5.2, 9.0, 4.9, 9.1, 1.0], 0.3), Some(5.1));
        assert_eq!(agreed(vec![1.0, 2.0], 0.3), None);
    }

    #[test]
    fn the_slower_of_media_and_bus_sets_the_pace() {
        let turn = Turn { ns: 6e6, fit: 1.0, error_ns: 0.0 };
        // 600 sectors per revolution: 10 us each. 8 of them and the last one over the bus, or the first one and 8 over
        // the bus.
        assert_eq!(transfer_ns(&turn, 600.0, 1_000.0), 81_000.0);
        assert_eq!(transfer_ns(&turn, 600.0, 100_000.0), 810_000.0);
    }
}
