//! A processor node of a parallel program: how long its process is idle and why, and the prefetch actions that it
//! performs meanwhile (kotz-ellis, sections 5.1 and 5.3).
//!
//! A process is idle while it waits for its own I/O, for I/O started by others, or at a barrier. The *necessary* idle
//! period ends when what it waits for is there, the *actual* one when it computes again. An action may end in between:
//! an action occupies the processor and runs to completion, and the part of it beyond the necessary period is its
//! *overrun*.
//!
//! The length of a period is not known in advance. The estimate is the mean necessary length of the process's past
//! periods of the same kind, minus the elapsed part of this one. The paper does not say whether the original used this
//! estimate; it is our choice.
//!
//! Cost: constant per call.

use headstart_types::Nanos;

/// Why a process is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its read was a miss: it waits for I/O that it started itself.
    OwnIo,
    /// Its read was an unready hit: it waits for I/O started by a prefetch or another process.
    OtherIo,
    /// It waits for the other processes at a barrier.
    Barrier,
}

/// Completed idle periods of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// Number of periods.
    pub count: u64,
    /// Sum of the times until the awaited event.
    pub necessary: Nanos,
    /// Sum of the times until the process computed again.
    pub actual: Nanos,
}

/// An idle period in progress.
#[derive(Debug, Clone, Copy)]
struct Period {
    kind: Idle,
    since: Nanos,
    /// When the awaited event happened; `None` before that.
    over_at: Option<Nanos>,
}

/// The idle time of a processor and its process.
#[derive(Debug, Clone, Default)]
pub struct Node {
    period: Option<Period>,
    /// End of the current action.
    acts_until: Option<Nanos>,
    periods: [Periods; 3],
    /// Number of actions started.
    pub actions: u64,
    /// Total time of these actions.
    pub action_time: Nanos,
    /// The part of it beyond necessary idle periods.
    pub overrun: Nanos,
    /// Number of actions with an overrun.
    pub overruns: u64,
}

impl Node {
    /// The completed periods of one kind.
    #[must_use]
    pub fn periods(&self, kind: Idle) -> Periods {
        self.periods[kind as usize]
    }

    /// Starts an idle period of the process.
    pub fn begin_wait(&mut self, now: Nanos, kind: Idle) {
        debug_assert!(self.period.is_none() && self.acts_until.is_none(), "it was busy");
        self.period = Some(Period { kind, since: now, over_at: None });
    }

    /// Records that the awaited event has happened. Returns when the processor is free of actions (`now` or later), and
    /// the overrun, which is the time until then.
    pub fn over(&mut self, now: Nanos) -> (Nanos, Nanos) {
        let free_at = self.acts_until.map_or(now, |end| end.max(now));
        if let Some(period) = &mut self.period {
            debug_assert!(period.over_at.is_none(), "a period is over once");
            period.over_at = Some(now);
        }
        self.overrun += free_at - now;
        self.overruns += u64::from(free_at > now);
        (free_at, free_at - now)
    }

    /// Ends the idle period: the process computes again.
    pub fn resumes(&mut self, now: Nanos) {
        debug_assert!(self.acts_until.is_none(), "actions run to their ends");
        let Some(Period { kind, since, over_at }) = self.period.take() else { return };
        let periods = &mut self.periods[kind as usize];
        periods.count += 1;
        periods.necessary += over_at.unwrap_or(now) - since;
        periods.actual += now - since;
    }

    /// The estimated rest of the current period; `None` without history.
    #[must_use]
    pub fn estimate(&self, now: Nanos) -> Option<Nanos> {
        let period = self.period.as_ref()?;
        let past = self.periods(period.kind);
        let mean = Nanos(past.necessary.0.checked_div(past.count)?);
        Some(mean.saturating_sub(now - period.since))
    }

    /// Whether the processor may start an action: its process is idle and still waiting, no action is in progress, and
    /// the estimated rest of the idle time, if known, is at least `least`.
    #[must_use]
    pub fn may_act(&self, now: Nanos, least: Nanos) -> bool {
        let idle = self.period.as_ref().is_some_and(|period| period.over_at.is_none());
        idle && self.acts_until.is_none() && self.estimate(now).is_none_or(|left| left >= least)
    }

    /// Starts an action of `length`. Returns its end.
    ///
    /// # Panics
    /// The processor is busy: a bug of the host.
    pub fn begins(&mut self, now: Nanos, length: Nanos) -> Nanos {
        assert!(self.may_act(now, Nanos::ZERO), "an action needs an idle processor");
        self.actions += 1;
        self.action_time += length;
        self.acts_until = Some(now + length);
        now + length
    }

    /// End of the current action; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn acts_until(&self) -> Option<Nanos> {
        self.acts_until
    }

    /// Ends the current action. Returns whether the processor is still idle.
    pub fn ends(&mut self) -> bool {
        self.acts_until = None;
        self.period.as_ref().is_some_and(|period| period.over_at.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_action_that_overruns() {
        let mut node = Node::default();
        // Idle from 10 on; actions 10-16 and 16-26; the block is there at 20: 6 of overrun.
        node.begin_wait(Nanos(10), Idle::OwnIo);
        assert!(node.may_act(Nanos(10), Nanos(99)), "before there is history it may");
        assert_eq!(node.begins(Nanos(10), Nanos(6)), Nanos(16));
        assert!(!node.may_act(Nanos(12), Nanos::ZERO));
        assert!(node.ends());
        node.begins(Nanos(16), Nanos(10));
        assert_eq!(node.over(Nanos(20)), (Nanos(26), Nanos(6)));
        assert!(!node.ends() && !node.may_act(Nanos(26), Nanos::ZERO));
        node.resumes(Nanos(26));
        let own = Periods { count: 1, necessary: Nanos(10), actual: Nanos(16) };
        assert_eq!((node.periods(Idle::OwnIo), node.periods(Idle::Barrier)), (own, Periods::default()));
        assert_eq!((node.actions, node.action_time), (2, Nanos(16)));
        assert_eq!((node.overruns, node.overrun), (1, Nanos(6)));
    }

    #[test]
    fn estimates_come_from_periods_of_the_same_kind() {
        let mut node = Node::default();
        for (start, end) in [(0, 30), (100, 110)] {
            node.begin_wait(Nanos(start), Idle::OwnIo);
            node.over(Nanos(end));
            node.resumes(Nanos(end));
        }
        node.begin_wait(Nanos(200), Idle::OtherIo);
        assert_eq!(node.estimate(Nanos(205)), None);
        node.over(Nanos(210));
        node.resumes(Nanos(210));
        // Mean of 30 and 10: 20 in all.
        node.begin_wait(Nanos(300), Idle::OwnIo);
        assert_eq!(
            [300, 305, 320, 330].map(|now| node.estimate(Nanos(now))),
            [20, 15, 0, 0].map(|left| Some(Nanos(left)))
        );
        assert!(node.may_act(Nanos(305), Nanos(15)) && !node.may_act(Nanos(305), Nanos(16)));
        assert!(node.may_act(Nanos(330), Nanos::ZERO), "longer than it should have been: no reason to stop");
    }

    proptest! {
        /// Random times: overrun is the excess of actual over necessary periods, and never more than the actions.
        #[test]
        fn times_add_up(steps in prop::collection::vec((0u64..40, 0u64..20, 0usize..3), 1..60)) {
            let (mut node, mut now) = (Node::default(), Nanos::ZERO);
            for (length, action, kind) in steps {
                let kind = [Idle::OwnIo, Idle::OtherIo, Idle::Barrier][kind];
                node.begin_wait(now, kind);
                let over = now + Nanos(length);
                let mut at = now;
                // Action after action until the period is over.
                while action > 0 && at < over && node.may_act(at, Nanos::ZERO) {
                    let end = node.begins(at, Nanos(action));
                    if end > over {
                        break;
                    }
                    prop_assert!(node.ends());
                    at = end;
                }
                let (free, overrun) = node.over(over);
                prop_assert!(free == over + overrun && overrun < Nanos(action.max(1)));
                prop_assert!(!node.ends());
                node.resumes(free);
                now = free;
            }
            let all = [Idle::OwnIo, Idle::OtherIo, Idle::Barrier].map(|kind| node.periods(kind));
            let sum = |part: fn(&Periods) -> Nanos| all.iter().map(part).fold(Nanos::ZERO, |sum, part| sum + part);
            prop_assert_eq!(sum(|periods| periods.actual), sum(|periods| periods.necessary) + node.overrun);
            prop_assert!(node.overrun <= node.action_time);
        }
    }
}
