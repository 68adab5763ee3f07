//! Sectors of a track by place.
//!
//! Of two reads of one track the second ends a part of a turn before or after the first, whatever was between them: the
//! sectors between the two. So one that lies `back` sectors before the other says how many sectors make a turn. Reading
//! backward, since what lies ahead has been read ahead. Where the end of a track lies between the two, its skew is added: of
//! several pairs the smallest angle counts that some of them agree on.

use super::lab::{align, median, Lab, Phase};
use super::look::DriveTraits;
use super::probe::ALIGNMENT;
use super::rotation::Turn;
use super::Error;

/// Places, evenly spaced.
const PLACES: usize = 32;
/// Of which some are measured even if time is short.
const PLACES_LEAST: usize = 8;
/// Pairs for a first and for the last estimate, and how many times as many are tried.
const PAIRS: (usize, usize) = (5, 15);
const TRIES: usize = 5;
/// Where nothing is known of the track; and the most to try.
const BACK: (u64, u64) = (16, 1 << 16);
/// Two distances say the same within this.
const CHECKED: f64 = 0.1;
/// Zones differ by less from those beside them.
const SHORT: f64 = 0.85;
/// Angles agree within such a part of a turn.
const AGREE: f64 = 0.025;
/// Those that agree are at least such a part of the most that do.
const GROUP: f64 = 0.5;

/// Sectors of a track at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrackAt {
    pub sector: u64,
    pub track_sectors: f64,
}

/// Time of a block's media and bus, where `track_sectors` make a turn: sectors cross the bus as they are read, the slower
/// of the two sets the pace.
pub(super) fn transfer_ns(turn: &Turn, track_sectors: f64, bus_sector_ns: f64) -> f64 {
    let (sectors, media) = (f64::from(ALIGNMENT), turn.ns / track_sectors);
    (sectors * media + bus_sector_ns).max(media + sectors * bus_sector_ns)
}

/// The numbers below `count` in an order in which each beginning covers them evenly.
pub(super) fn spread(count: usize) -> Vec<usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = |index: usize| if bits == 0 { 0 } else { index.reverse_bits() >> (usize::BITS - bits) };
    (0..count.next_power_of_two()).map(reversed).filter(|index| *index < count).collect()
}

/// By sector; at least one.
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
        // A second time where the buffer has answered too often, or two distances have not said the same.
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

/// Without those whose tracks are much shorter or longer than those around them: no pair there has been within a track.
fn plausible(places: &[TrackAt]) -> Vec<TrackAt> {
    let around = |index: usize| {
        let near = &places[index.saturating_sub(2)..(index + 3).min(places.len())];
        median(&near.iter().map(|place| place.track_sectors).collect::<Vec<_>>()).unwrap_or_default()
    };
    let alike = |index: &usize| (SHORT..1.0 / SHORT).contains(&(places[*index].track_sectors / around(*index)));
    (0..places.len()).filter(alike).map(|index| places[index]).collect()
}

/// The measurement of one place.
struct Measure<'a, 'b> {
    lab: &'a mut Lab<'b>,
    traits: &'a DriveTraits,
    turn: &'a Turn,
    window: (u64, u64),
}

impl Measure<'_, '_> {
    /// Sectors of a track; `None` if the buffer answers too often.
    fn track(&mut self, guess: Option<f64>) -> Result<Option<f64>, Error> {
        let mut back = guess.map_or(BACK.0, quarter);
        loop {
            let Some(sectors) = self.estimate(back, PAIRS.0)? else {
                // A drive that keeps what passed before a read has it, unless it lies far enough before.
                back *= 4;
                if guess.is_some() || back > BACK.1.min(self.window.0) {
                    return Ok(None);
                }
                continue;
            };
            let share = back as f64 / sectors;
            // So close together that the times' own unevenness counts: further apart, if there is room.
            if share >= 0.1 || back * 8 > self.window.0 {
                back = quarter(sectors);
                break;
            }
            back = if share > 0.02 { quarter(sectors) } else { back * 4 };
        }
        let Some(sectors) = self.estimate(back, PAIRS.1)? else { return Ok(None) };
        // Whole turns that a pair is apart do not show. Another distance would then say something else.
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

    /// By how much of a turn the second of two reads is before the first; `None` if the buffer has answered one of them.
    fn pair(&mut self, back: u64) -> Result<Option<f64>, Error> {
        let place = self.lab.place(self.window.0.max(back), self.window.1);
        let first = self.lab.read_block(place)?;
        let second = self.lab.read_block(place - back)?;
        let hit_below = self.traits.hit_below();
        if first.took() <= hit_below || second.took() <= hit_below {
            return Ok(None);
        }
        let after = self.turn.angle_ns((second.to - first.to).0 as f64);
        // Next to a whole turn: next to nothing, and late.
        Ok(Some(if after < 0.02 * self.turn.ns { -after } else { self.turn.ns - after }))
    }
}

/// The middle of those of `values` that agree within `range`. Where several groups do, it is the one of the smallest, unless
/// it is much smaller than the largest group.
fn agreed(mut values: Vec<f64>, range: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let alike = |first: usize| values[first..].iter().take_while(|value| **value - values[first] <= range).count();
    let most = (0..values.len()).map(alike).max()?;
    let enough = ((most as f64 * GROUP).ceil() as usize).max(2);
    let lowest = (0..values.len()).find(|first| alike(*first) >= enough)?;
    // From its edge to where it is densest.
    let near = (lowest..values.len()).take_while(|first| values[*first] - values[lowest] <= range);
    let first = near.max_by_key(|first| (alike(*first), std::cmp::Reverse(*first)))?;
    Some(values[first + alike(first) / 2])
}

/// A quarter of a track, whole blocks.
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
        // 600 sectors a turn: 10 us each. 8 of them, and the last one over the bus; or the first one and 8 over the bus.
        assert_eq!(transfer_ns(&turn, 600.0, 1_000.0), 81_000.0);
        assert_eq!(transfer_ns(&turn, 600.0, 100_000.0), 810_000.0);
    }
}
