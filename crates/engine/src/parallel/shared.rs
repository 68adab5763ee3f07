//! What processors have in common: structures that one of them at a time may use, and the order in which those that
//! have nothing to do are asked.

use std::collections::BTreeSet;

use headstart_types::Nanos;

/// Structures that each file system operation holds exclusively for a time, first come first served.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contention {
    hold: Nanos,
    free_at: Nanos,
}

impl Contention {
    /// Each operation holds them for `hold`; zero for no contention.
    #[must_use]
    pub const fn new(hold: Nanos) -> Self {
        Self { hold, free_at: Nanos::ZERO }
    }

    /// An operation takes hold of the structures as soon as they are free. Returns what that takes from `now` on,
    /// holding them included.
    #[inline]
    pub fn hold(&mut self, now: Nanos) -> Nanos {
        if self.hold == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.free_at = self.free_at.max(now) + self.hold;
        self.free_at - now
    }
}

/// The processors that could take on an action, in the order in which they became free.
///
/// Cost: logarithmic in their number.
#[derive(Debug, Clone, Default)]
pub struct Free {
    order: BTreeSet<(Nanos, u32)>,
    /// By process: when it became free, if it is.
    since: Vec<Option<Nanos>>,
}

impl Free {
    /// None of `processes` processors is free.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        Self { order: BTreeSet::new(), since: vec![None; processes] }
    }

    /// Since when the processor of `process` is free, or from when on.
    #[inline]
    #[must_use]
    pub fn since(&self, process: u32) -> Option<Nanos> {
        self.since[process as usize]
    }

    /// From `at` on the processor of `process` is free.
    #[inline]
    pub fn add(&mut self, at: Nanos, process: u32) {
        self.remove(process);
        self.since[process as usize] = Some(at);
        self.order.insert((at, process));
    }

    /// The processor of `process` is busy.
    #[inline]
    pub fn remove(&mut self, process: u32) {
        if let Some(at) = self.since[process as usize].take() {
            self.order.remove(&(at, process));
        }
    }

    /// The first processor that is free at `now`, of those after `after` if that is given.
    #[inline]
    #[must_use]
    pub fn next(&self, now: Nanos, after: Option<(Nanos, u32)>) -> Option<(Nanos, u32)> {
        let from = after.map_or((Nanos::ZERO, 0), |(at, process)| (at, process + 1));
        self.order.range(from..).next().copied().filter(|(at, _)| *at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_another() {
        let mut shared = Contention::new(Nanos(3));
        assert_eq!([10, 11, 20].map(|now| shared.hold(Nanos(now))), [3, 5, 3].map(Nanos));
        assert_eq!(Contention::default().hold(Nanos(10)), Nanos::ZERO);
    }

    #[test]
    fn in_the_order_in_which_they_became_free() {
        let mut free = Free::new(3);
        free.add(Nanos(7), 0);
        free.add(Nanos(5), 2);
        free.add(Nanos(5), 1);
        assert_eq!(free.next(Nanos(6), None), Some((Nanos(5), 1)));
        assert_eq!(free.next(Nanos(6), Some((Nanos(5), 1))), Some((Nanos(5), 2)));
        assert_eq!(free.next(Nanos(6), Some((Nanos(5), 2))), None, "the other is free later");
        free.remove(1);
        free.add(Nanos(9), 2);
        assert_eq!((free.next(Nanos(9), None), free.since(2)), (Some((Nanos(7), 0)), Some(Nanos(9))));
    }
}
