//! Which levels have something to do: those that have changed since they were last looked at, and those that want to
//! act at a time of their own. Nobody goes over all levels.
//!
//! Cost: constant for a level that changes, logarithmic in the levels that have times.

use std::collections::BTreeSet;

use headstart_types::{IndexSet, Nanos};

use crate::level::Level;

/// What levels wish.
pub struct Wishes {
    /// Changed since they were asked whether they want to decide.
    undecided: IndexSet,
    /// Changed since they were asked for requests that are done.
    unfinished: IndexSet,
    /// Changed since they were asked for what they have evicted.
    unemptied: IndexSet,
    /// Changed since their times were looked at.
    stale: IndexSet,
    /// By level: its times as they were looked at.
    times: Vec<(Option<Nanos>, Option<Nanos>)>,
    /// When levels want to be woken.
    wakes: BTreeSet<(Nanos, u32)>,
    /// When levels have to write what is dirty.
    flushes: BTreeSet<(Nanos, u32)>,
}

impl Wishes {
    /// Of `levels` levels, all of which have changed.
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

    /// Something happens to a level.
    #[inline(never)]
    pub fn touch(&mut self, level: usize) {
        let level = level as u32;
        self.undecided.insert(level);
        self.unfinished.insert(level);
        self.unemptied.insert(level);
        self.stale.insert(level);
    }

    /// Looks at the times of levels that have changed; `level_at` gives a level.
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

    /// The earliest instant at which a level has to flush or, after `now`, wants to be woken.
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

    /// Those whose times have come are to be asked too.
    #[inline]
    pub fn come(&mut self, now: Nanos) {
        for times in [&self.wakes, &self.flushes] {
            for (_, level) in times.range(..=(now, u32::MAX)) {
                self.undecided.insert(*level);
            }
        }
    }

    /// The next level from `from` on that could want to decide.
    #[inline]
    pub fn take_undecided(&mut self, from: usize) -> Option<usize> {
        take(&mut self.undecided, from)
    }

    /// The next level from `from` on that could have requests that are done.
    #[inline]
    pub fn take_unfinished(&mut self, from: usize) -> Option<usize> {
        take(&mut self.unfinished, from)
    }

    /// The next level from `from` on that could have evicted something.
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
