//! Model of the valid contents of an export. Content is a version of each grain: a change gives its grains a new
//! version, whose bytes differ from all others. Times are counts of events.

use std::collections::BTreeMap;
use std::ops::Range;

use super::storage::GRAIN;

pub const ZEROES: u64 = 0;
/// The initial content.
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
    /// When it was requested and answered.
    started: u64,
    ended: Option<u64>,
    /// When a later version that replaced it was answered.
    superseded: Option<u64>,
    /// A stop of the machine cannot bring it back.
    is_gone: bool,
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It took effect.
    Made,
    /// It may or may not have taken effect.
    Either,
}

/// A change without an answer.
struct Change {
    grains: Range<u64>,
    started: u64,
    fua: bool,
}

pub struct Model {
    grains: Vec<Vec<Entry>>,
    changes: BTreeMap<u64, Change>,
    now: u64,
}

impl Model {
    pub fn new(grains: u64) -> Self {
        Self { grains: vec![vec![entry(FIRST, 0, Some(0))]; grains as usize], changes: BTreeMap::new(), now: 0 }
    }

    /// Counts an event.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn of(&mut self, grains: &Range<u64>) -> &mut [Vec<Entry>] {
        &mut self.grains[grains.start as usize..grains.end as usize]
    }

    /// Change `number` gives grains the version `version`.
    pub fn begins(&mut self, number: u64, grains: Range<u64>, version: u64, fua: bool) {
        let started = self.tick();
        self.of(&grains).iter_mut().for_each(|entries| entries.push(entry(version, started, None)));
        self.changes.insert(number, Change { grains, started, fua });
    }

    /// The change was answered. `oldest` is when the oldest unanswered read began.
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
                // Later versions may have been made after it, however late its answer is.
                entry.is_gone |= fate == Fate::Made && fua && entry.ended.is_some_and(|ended| ended < started);
            }
            entries.retain(|entry| !entry.is_gone || entry.superseded.is_none_or(|at| at > oldest));
        }
    }

    /// Outstanding requests will not be answered.
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

    /// Acknowledged changes may be lost: each grain may have any version that may be stable.
    pub fn loses(&mut self) {
        self.grains.iter_mut().flatten().for_each(|entry| entry.superseded = None);
    }

    /// Whether a read of byte `first` that began at `since` may return `bytes`.
    pub fn may_bring(&self, first: u64, bytes: &[u8], since: u64) -> Result<(), String> {
        self.are(first, bytes, |entry| entry.superseded.is_none_or(|at| at > since))
    }

    /// Whether `bytes` may be the content after a stop of the machine. They are the content from then on.
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
