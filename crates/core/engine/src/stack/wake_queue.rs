//! Tracks levels with pending work, so that no step scans all levels: levels that have changed since they were last
//! examined, and levels that want to act at a certain time.
//!
//! Cost: constant per changed level, logarithmic in the levels with times.

use std::collections::BTreeSet;

use headstart_types::{IndexSet, Nanos};

use crate::level::Level;

/// The pending work of all levels.
pub struct WakeQueue {
    /// Levels changed since they were asked whether they want to decide.
    undecided: IndexSet,
    /// Levels changed since their finished requests were taken.
    unfinished: IndexSet,
    /// Levels changed since their evicted blocks were taken.
    unemptied: IndexSet,
    /// Levels changed since their times were read.
    stale: IndexSet,
    /// For each level: its times when they were last read.
    times: Vec<(Option<Nanos>, Option<Nanos>)>,
    /// Wake-up times of levels.
    wakes: BTreeSet<(Nanos, u32)>,
    /// Times at which levels must write dirty blocks.
    flushes: BTreeSet<(Nanos, u32)>,
}

impl WakeQueue {
    /// For `levels` levels, all of which count as changed.
    #[must_use]
    pub fn new(levels: usize) -> Self {
        let all = || {
            let mut set = IndexSet::new(levels);
            (0..levels as u32).for_each(|level| {
                set.insert(level);
            });
            set
        };
        Self {
            undecided: all(),
            unfinished: all(),
            unemptied: all(),
            stale: all(),
            times: vec![(None, None); levels],
            wakes: BTreeSet::new(),
            flushes: BTreeSet::new(),
        }
    }

    /// Marks a level as changed.
    #[inline(never)]
    pub fn touch(&mut self, level: usize) {
        let level = level as u32;
        self.undecided.insert(level);
        self.unfinished.insert(level);
        self.unemptied.insert(level);
        self.stale.insert(level);
    }

    /// Reads the times of changed levels; `level_at` returns a level.
    #[inline]
    pub fn look<'a>(&mut self, level_at: impl Fn(usize) -> &'a Level) {
        while let Some(index) = self.stale.first() {
            self.stale.remove(index);
            let level = level_at(index as usize);
            let now = (level.wake_at(), level.flush_at());
            let before = std::mem::replace(&mut self.times[index as usize], now);
            keep(&mut self.wakes, index, before.0, now.0);
            keep(&mut self.flushes, index, before.1, now.1);
        }
    }

    /// The earliest instant at which a level has to flush, or wants to be woken after `now`.
    #[inline]
    #[must_use]
    pub fn next(&self, now: Nanos) -> Option<Nanos> {
        let flush = self.flushes.first().map(|(at, _)| *at);
        if self.wakes.is_empty() {
            return flush;
        }
        let wake = self.wakes.range((Nanos(now.0 + 1), 0)..).next().map(|(at, _)| *at);
        flush.into_iter().chain(wake).min()
    }

    /// Marks levels whose times have come as undecided.
    #[inline]
    pub fn come(&mut self, now: Nanos) {
        for times in [&self.wakes, &self.flushes] {
            for (_, level) in times.range(..=(now, u32::MAX)) {
                self.undecided.insert(*level);
            }
        }
    }

    /// The next level from `from` on that may want to decide.
    #[inline]
    pub fn take_undecided(&mut self, from: usize) -> Option<usize> {
        take(&mut self.undecided, from)
    }

    /// The next level from `from` on that may have finished requests.
    #[inline]
    pub fn take_unfinished(&mut self, from: usize) -> Option<usize> {
        take(&mut self.unfinished, from)
    }

    /// The next level from `from` on that may have evicted blocks.
    #[inline]
    pub fn take_unemptied(&mut self, from: usize) -> Option<usize> {
        take(&mut self.unemptied, from)
    }
}

#[inline]
fn take(set: &mut IndexSet, from: usize) -> Option<usize> {
    let next = set.next(from as u32)?;
    set.remove(next);
    Some(next as usize)
}

#[inline]
fn keep(times: &mut BTreeSet<(Nanos, u32)>, level: u32, before: Option<Nanos>, now: Option<Nanos>) {
    if before != now {
        before.map(|at| times.remove(&(at, level)));
        now.map(|at| times.insert((at, level)));
    }
}
