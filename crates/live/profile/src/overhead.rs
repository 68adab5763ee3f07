//! Overhead of a read: its time without seek, rotation, media and bus.
//!
//! A read that needs no seek and is issued just before its sector passes the head waits for nothing, which leaves
//! overhead and transfer. The arm must already be on the track, although the head reads ahead. So the start of a track
//! is located first, by walking backward until the angle jumps. Then, on successive tracks before it, a block near the
//! start is read and, after a pause, the block before it, so that its sector arrives `ahead` after the request while
//! the head is still on that track. A read that takes at most `ahead` was in time; otherwise it takes a revolution
//! more. The shortest time counts, and the next attempt uses a smaller `ahead`.

use headstart_types::Nanos;

use super::lab::{align, Lab};
use super::look::DriveTraits;
use super::probe::ALIGNMENT;
use super::rotation::Turn;
use super::tracks::{transfer_ns, TrackAt};
use super::Error;

/// Number of places, and of tracks at each.
const PLACES: usize = 6;
const TRACKS: u64 = 12;
/// Steps of the walk over a track.
const STEPS: f64 = 16.0;
/// An angle jumps if it changes by more than this share of a revolution; a skew may be as small as a switch of 0.2 ms.
const LEAP: f64 = 0.02;
/// `ahead` as a share of a revolution at first; later at most this multiple of the last one that was in time.
const AHEAD: (f64, f64) = (0.5, 1.5);

/// Overhead of buffer misses at several places; `None` if the buffer answers all of them.
pub(super) fn overhead(
    lab: &mut Lab<'_>,
    traits: &DriveTraits,
    turn: &Turn,
    places: &[TrackAt],
) -> Result<Vec<f64>, Error> {
    let bus = traits.buffer.map_or(0.0, |buffer| buffer.bus_sector_ns);
    let mut all: Vec<f64> = Vec::with_capacity(PLACES);
    for part in 0..PLACES {
        let place = places[(2 * part + 1) * places.len() / (2 * PLACES)];
        let mut measure = Measure { lab, traits, turn, track: place.track_sectors };
        let step = align((place.track_sectors / STEPS) as u64).max(ALIGNMENT.into());
        let Some(coarse) = measure.start(place.sector, step)? else { continue };
        // Start of the previous track, to the block.
        let Some(before) = (coarse + u64::from(ALIGNMENT)).checked_sub(place.track_sectors as u64) else { continue };
        let Some(start) = measure.start(before, ALIGNMENT.into())? else { continue };
        let transfer = transfer_ns(turn, place.track_sectors, bus);
        let least = all.iter().copied().min_by(f64::total_cmp);
        let ahead = least.map_or(AHEAD.0 * turn.ns, |least| AHEAD.1 * (least + transfer));
        if let Some(found) = measure.least(start, ahead)? {
            all.push((found - transfer).max(0.0));
        }
    }
    Ok(all)
}

struct Measure<'a, 'b> {
    lab: &'a mut Lab<'b>,
    traits: &'a DriveTraits,
    turn: &'a Turn,
    track: f64,
}

impl Measure<'_, '_> {
    /// The first block of a track, or one less than `step` behind it, at `sector` or a little before.
    fn start(&mut self, sector: u64, step: u64) -> Result<Option<u64>, Error> {
        let most = (self.track / step as f64).min(2.0 * STEPS) as u64 + 2;
        let first = align(sector).max(step * most);
        let mut end = self.lab.read_block(first)?.to;
        for walked in 1..=most {
            let next = self.lab.read_block(first - walked * step)?;
            if next.took() <= self.traits.hit_below() {
                return Ok(None);
            }
            let expected = -(step as f64) / self.track * self.turn.ns;
            let off = self.turn.angle_ns((next.to - end).0 as f64 - expected);
            end = next.to;
            if off.min(self.turn.ns - off) > LEAP * self.turn.ns {
                return Ok(Some(first - (walked - 1) * step));
            }
        }
        Ok(None)
    }

    /// Minimum time of reads that were in time, on tracks before the one that starts at `start`.
    fn least(&mut self, start: u64, mut ahead: f64) -> Result<Option<f64>, Error> {
        let mut least: Option<f64> = None;
        for track in 1..=TRACKS {
            let Some(begin) = start.checked_sub((track as f64 * self.track) as u64) else { break };
            // Not before the start, which would be another track.
            let begin = begin.next_multiple_of(u64::from(ALIGNMENT));
            let after = begin + u64::from(ALIGNMENT);
            let first = self.lab.read_block(after)?;
            let apart = f64::from(ALIGNMENT) / self.track * self.turn.ns;
            // Between half and all of what was last in time.
            let given = ahead * (0.5 + self.lab.share_below(0.5));
            self.lab.pause(Nanos((self.turn.ns - apart - given).max(0.0) as u64));
            let second = self.lab.read_block(begin)?;
            let hit_below = self.traits.hit_below();
            if first.took() <= hit_below || second.took() <= hit_below {
                continue;
            }
            let took = second.took().0 as f64;
            if took < 1.2 * given {
                ahead = ahead.min(took);
                least = Some(least.map_or(took, |least: f64| least.min(took)));
            }
        }
        Ok(least)
    }
}
