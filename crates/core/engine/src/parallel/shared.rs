//! What processors share: structures that one of them at a time may use, and the order in which idle processors are
//! offered actions.

use std::collections::BTreeSet;

use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Structures that lookups, and optionally prefetch actions, hold exclusively for a time, in FIFO order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contention {
    hold: Nanos,
    actions_hold: bool,
    free_at: Nanos,
}

impl Contention {
    /// Each lookup holds the structures for `hold`; zero means no contention. `actions_hold`: each prefetch action
    /// holds them too, at its start and in addition to its own time.
    #[must_use]
    pub const fn new(hold: Nanos, actions_hold: bool) -> Self {
        Self { hold, actions_hold, free_at: Nanos::ZERO }
    }

    /// Whether there is no contention.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.hold == Nanos::ZERO
    }

    /// Takes the structures for a lookup as soon as they are free. Returns the time from `now` until they are released.
    #[inline]
    pub fn hold(&mut self, now: Nanos) -> Nanos {
        if self.hold == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.free_at = self.free_at.max(now) + self.hold;
        self.free_at - now
    }

    /// The same for a prefetch action; zero if its time includes all contention.
    #[inline]
    pub fn hold_for_action(&mut self, now: Nanos) -> Nanos {
        if self.actions_hold {
            self.hold(now)
        } else {
            Nanos::ZERO
        }
    }
}

/// Which of several idle processors performs the next prefetch action. If buffers are scarce, this decides for which
/// process blocks are prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleOrder {
    /// The processor with the longest expected idle time.
    #[default]
    Longest,
    /// The processor with the shortest expected idle time.
    Shortest,
    /// The processor with the lowest number.
    Number,
    /// The processor whose process has the fewest reads left before its next barrier.
    Slack,
}

impl IdleOrder {
    /// The sort key of the processor of `process`, which became free at `at` and whose process has `left` reads before
    /// it synchronises. The process number is in the lowest bits, so ties are ordered by it.
    #[inline]
    fn key(self, (at, left): (Nanos, u32), process: u32) -> u128 {
        let (first, second) = match self {
            IdleOrder::Longest => (0, at.0),
            IdleOrder::Shortest => (0, u64::MAX - at.0),
            IdleOrder::Number => (0, 0),
            IdleOrder::Slack => (left, at.0),
        };
        u128::from(first) << 96 | u128::from(second) << 32 | u128::from(process)
    }
}

/// The processors that could perform an action, in the order in which they are offered one.
///
/// Cost: logarithmic in their number; with an order other than [`IdleOrder::Longest`] linear in those among them that
/// become free later.
#[derive(Debug, Clone, Default)]
pub struct Free {
    rule: IdleOrder,
    /// See [`IdleOrder::key`].
    order: BTreeSet<u128>,
    /// For each process: when its processor became free, if it is free, and the reads that its process had left then.
    since: Vec<Option<(Nanos, u32)>>,
}

impl Free {
    /// None of `processes` processors is free initially.
    #[must_use]
    pub fn new(processes: usize, rule: IdleOrder) -> Self {
        Self { rule, order: BTreeSet::new(), since: vec![None; processes] }
    }

    /// The time since when, or from when on, the processor of `process` is free.
    #[inline]
    #[must_use]
    pub fn since(&self, process: u32) -> Option<Nanos> {
        self.since[process as usize].map(|(at, _)| at)
    }

    /// Marks the processor of `process` as free from `at` on. `left`: reads before its process synchronises, 0 if it
    /// waits at the barrier.
    #[inline]
    pub fn add(&mut self, at: Nanos, process: u32, left: u32) {
        self.remove(process);
        self.since[process as usize] = Some((at, left));
        self.order.insert(self.rule.key((at, left), process));
    }

    /// Marks the processor of `process` as busy.
    #[inline]
    pub fn remove(&mut self, process: u32) {
        if let Some(state) = self.since[process as usize].take() {
            self.order.remove(&self.rule.key(state, process));
        }
    }

    /// The first processor that is free at `now`; with `after`, the first one behind that processor, which must still
    /// be free.
    #[inline]
    #[must_use]
    pub fn next(&self, now: Nanos, after: Option<u32>) -> Option<u32> {
        let behind = |process: u32| self.since[process as usize].map(|state| self.rule.key(state, process) + 1);
        let from = after.and_then(behind).unwrap_or(0);
        let is_free = |process: &u32| self.since(*process).is_some_and(|at| at <= now);
        match self.rule {
            // In this order all processors behind one that becomes free later do so, too.
            IdleOrder::Longest => {
                // The very first is found without a search.
                let first = if from == 0 { self.order.first() } else { self.order.range(from..).next() };
                first.map(|key| *key as u32).filter(is_free)
            }
            IdleOrder::Shortest | IdleOrder::Number | IdleOrder::Slack => {
                self.order.range(from..).map(|key| *key as u32).find(is_free)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_another() {
        let mut shared = Contention::new(Nanos(3), false);
        assert_eq!([10, 11, 20].map(|now| shared.hold(Nanos(now))), [3, 5, 3].map(Nanos));
        assert_eq!(shared.hold_for_action(Nanos(20)), Nanos::ZERO, "an action's time includes it");
        let mut by_all = Contention::new(Nanos(3), true);
        assert_eq!([by_all.hold(Nanos(10)), by_all.hold_for_action(Nanos(11))], [3, 5].map(Nanos));
        assert_eq!(Contention::default().hold(Nanos(10)), Nanos::ZERO);
    }

    #[test]
    fn in_the_order_in_which_they_became_free() {
        let mut free = Free::new(3, IdleOrder::Longest);
        free.add(Nanos(7), 0, 0);
        free.add(Nanos(5), 2, 0);
        free.add(Nanos(5), 1, 0);
        assert_eq!(free.next(Nanos(6), None), Some(1));
        assert_eq!(free.next(Nanos(6), Some(1)), Some(2));
        assert_eq!(free.next(Nanos(6), Some(2)), None, "the other is free later");
        free.remove(1);
        free.add(Nanos(9), 2, 0);
        assert_eq!((free.next(Nanos(9), None), free.since(2)), (Some(0), Some(Nanos(9))));
    }

    #[test]
    fn in_other_orders() {
        let asked = |rule| {
            let mut free = Free::new(4, rule);
            [7, 5, 5, 9]
                .into_iter()
                .zip(0..)
                .for_each(|(at, process)| free.add(Nanos(at), process, [3, 0, 1, 0][process as usize]));
            let mut order = vec![];
            while let Some(process) = free.next(Nanos(8), order.last().copied()) {
                order.push(process);
            }
            order
        };
        assert_eq!(asked(IdleOrder::Longest), [1, 2, 0]);
        assert_eq!(asked(IdleOrder::Shortest), [0, 1, 2]);
        assert_eq!(asked(IdleOrder::Number), [0, 1, 2]);
        assert_eq!(asked(IdleOrder::Slack), [1, 2, 0], "1 waits for the others; 0 has most to read");
    }
}
