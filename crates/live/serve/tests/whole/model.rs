//! What the bytes of an export may be. Contents are versions of grains: a change of a grain makes it a new version, by which each of its bytes can be
//! told from every other's. Times are counts of what has happened.

use std::collections::BTreeMap;
use std::ops::Range;

use super::storage::GRAIN;

/// Zeroes.
pub const ZEROES: u64 = 0;
/// What is there at first.
pub const FIRST: u64 = 1;

/// The bytes of a grain.
pub fn content(version: u64, grain: u64) -> [u8; GRAIN as usize] {
    if version == ZEROES {
        return [0; GRAIN as usize];
    }
    let mixed = (version << 20 | grain).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    std::array::from_fn(|at| mixed[at % 8] ^ at as u8)
}

/// A version that a grain may have.
#[derive(Debug, Clone)]
struct Entry {
    version: u64,
    /// When it was asked for, and answered.
    started: u64,
    ended: Option<u64>,
    /// When a later version was answered that took its place.
    superseded: Option<u64>,
    /// A stop of the machine does not bring it back.
    is_gone: bool,
}

/// How a change was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Made,
    /// It may be there, as what was before may be.
    Either,
}

/// A change that has not been answered.
struct Change {
    grains: Range<u64>,
    started: u64,
    fua: bool,
}

/// All of it.
pub struct Model {
    grains: Vec<Vec<Entry>>,
    changes: BTreeMap<u64, Change>,
    now: u64,
}

impl Model {
    pub fn new(grains: u64) -> Self {
        Self { grains: vec![vec![entry(FIRST, 0, Some(0))]; grains as usize], changes: BTreeMap::new(), now: 0 }
    }

    /// Something happens.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn of(&mut self, grains: &Range<u64>) -> &mut [Vec<Entry>] {
        &mut self.grains[grains.start as usize..grains.end as usize]
    }

    /// The change of this number makes grains `version`.
    pub fn begins(&mut self, number: u64, grains: Range<u64>, version: u64, fua: bool) {
        let started = self.tick();
        self.of(&grains).iter_mut().for_each(|entries| entries.push(entry(version, started, None)));
        self.changes.insert(number, Change { grains, started, fua });
    }

    /// It was answered. `oldest` is when the oldest read that is not answered began.
    pub fn ends(&mut self, number: u64, fate: Fate, oldest: u64) {
        let now = self.tick();
        let Some(Change { grains, started, fua }) = self.changes.remove(&number) else { return };
        for entries in self.of(&grains) {
            for entry in entries.iter_mut() {
                if entry.started == started {
                    entry.ended = Some(now);
                } else if fate == Fate::Made && entry.ended.is_some_and(|ended| ended < started) {
                    entry.superseded.get_or_insert(now);
                }
                // What has been made since may have been made after it, however late its answer is.
                entry.is_gone |= fate == Fate::Made && fua && entry.ended.is_some_and(|ended| ended < started);
            }
            entries.retain(|entry| !entry.is_gone || entry.superseded.is_none_or(|at| at > oldest));
        }
    }

    /// Nothing that has not been answered will be.
    pub fn gives_up(&mut self) {
        let now = self.tick();
        self.changes.clear();
        self.grains.iter_mut().flatten().for_each(|entry| entry.ended = entry.ended.or(Some(now)));
    }

    /// A flush that began at `started` was answered.
    pub fn flushed(&mut self, started: u64) {
        let entries = self.grains.iter_mut().flatten();
        entries.for_each(|entry| entry.is_gone |= entry.superseded.is_some_and(|at| at < started));
    }

    /// Acknowledged changes may be lost: of each grain, whatever may be stable may be there.
    pub fn loses(&mut self) {
        self.grains.iter_mut().flatten().for_each(|entry| entry.superseded = None);
    }

    /// Whether `bytes` may have come from byte `first` on, by a read that began at `since`.
    pub fn may_bring(&self, first: u64, bytes: &[u8], since: u64) -> Result<(), String> {
        self.are(first, bytes, |entry| entry.superseded.is_none_or(|at| at > since))
    }

    /// Whether `bytes` may be all there is after a stop of the machine. They are what there is from then on.
    pub fn may_be_left(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.are(0, bytes, |entry| !entry.is_gone)?;
        let now = self.tick();
        for ((grain, entries), bytes) in (0..).zip(&mut self.grains).zip(bytes.chunks(GRAIN as usize)) {
            entries.retain(|entry| !entry.is_gone && content(entry.version, grain)[..bytes.len()] == *bytes);
            entries.truncate(1);
            entries.iter_mut().for_each(|entry| (entry.ended, entry.superseded) = (Some(now), None));
        }
        Ok(())
    }

    fn are(&self, first: u64, bytes: &[u8], may: impl Fn(&Entry) -> bool) -> Result<(), String> {
        let (mut at, mut rest) = (first, bytes);
        while !rest.is_empty() {
            let (grain, skip) = (at / GRAIN, (at % GRAIN) as usize);
            let (now, later) = rest.split_at(rest.len().min(GRAIN as usize - skip));
            let entries = &self.grains[grain as usize];
            let is = |entry: &&Entry| content(entry.version, grain)[skip..skip + now.len()] == *now;
            if !entries.iter().filter(|entry| may(entry)).any(|entry| is(&entry)) {
                let was = entries.iter().find(is).map(|entry| entry.version);
                return Err(format!("byte {at} is of version {was:?}, of {entries:?}"));
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }
}

fn entry(version: u64, started: u64, ended: Option<u64>) -> Entry {
    Entry { version, started, ended, superseded: None, is_gone: false }
}
