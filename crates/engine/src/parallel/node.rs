//! A processor node of a parallel program: how long its process is idle and why, and the prefetch actions that it
//! takes on meanwhile (kotz-ellis, sections 5.1 and 5.3).
//!
//! A process is idle while it waits for its own I/O, for I/O that somebody else has begun, or at a barrier. The
//! *necessary* idle period ends when what it waits for is there, the *actual* one when it computes again. In between may
//! lie the end of an action: an action occupies the processor and runs to its end, and what of it lies beyond the
//! necessary period is its *overrun*.
//!
//! How long a period will be is not known while it lasts. The estimate is the mean necessary length of the process's
//! past periods of the same kind, less what has passed of this one. Whether the original used this estimate is not
//! said: ours.
//!
//! Cost: constant per call.

use headstart_types::Nanos;

/// Why a process is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its read was a miss: it waits for I/O that it has begun itself.
    OwnIo,
    /// Its read was an unready hit: it waits for I/O that was begun elsewhere, by a prefetch or another process.
    OtherIo,
    /// It waits for the other processes.
    Barrier,
}

/// Idle periods of one kind that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// How many.
    pub count: u64,
    /// Sum of the times until they were logically over.
    pub necessary: Nanos,
    /// Sum of the times until the process computed again.
    pub actual: Nanos,
}

/// An idle period under way.
#[derive(Debug, Clone, Copy)]
struct Period {
    kind: Idle,
    since: Nanos,
    /// When it was logically over.
    over_at: Option<Nanos>,
}

/// A processor and its process, as far as idle time goes.
#[derive(Debug, Clone, Default)]
pub struct Node {
    period: Option<Period>,
    /// When the action under way ends.
    acts_until: Option<Nanos>,
    periods: [Periods; 3],
    /// Actions begun.
    pub actions: u64,
    /// Time that they take.
    pub action_time: Nanos,
    /// The part of it that lies beyond necessary idle periods.
    pub overrun: Nanos,
    /// How many of them lie partly there.
    pub overruns: u64,
}

impl Node {
    /// The periods of one kind that have ended.
    #[must_use]
    pub fn periods(&self, kind: Idle) -> Periods {
        self.periods[kind as usize]
    }

    /// The process becomes idle.
    pub fn rests(&mut self, now: Nanos, kind: Idle) {
        debug_assert!(self.period.is_none() && self.acts_until.is_none(), "it was busy");
        self.period = Some(Period { kind, since: now, over_at: None });
    }

    /// What the process waits for is there. Returns when its processor is free of actions, now at the earliest, and the
    /// overrun, which is what lies between.
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

    /// The process computes again.
    pub fn resumes(&mut self, now: Nanos) {
        debug_assert!(self.acts_until.is_none(), "actions run to their ends");
        let Some(Period { kind, since, over_at }) = self.period.take() else { return };
        let periods = &mut self.periods[kind as usize];
        periods.count += 1;
        periods.necessary += over_at.unwrap_or(now) - since;
        periods.actual += now - since;
    }

    /// How much longer the period under way will probably last; `None` before there is history.
    #[must_use]
    pub fn estimate(&self, now: Nanos) -> Option<Nanos> {
        let period = self.period.as_ref()?;
        let past = self.periods(period.kind);
        let mean = Nanos(past.necessary.0.checked_div(past.count)?);
        Some(mean.saturating_sub(now - period.since))
    }

    /// Whether the processor may begin an action: its process is idle with no end in sight, no action is under way, and
    /// the idle time that is left is at least `least`, as far as one can tell.
    #[must_use]
    pub fn may_act(&self, now: Nanos, least: Nanos) -> bool {
        let idle = self.period.as_ref().is_some_and(|period| period.over_at.is_none());
        idle && self.acts_until.is_none() && self.estimate(now).is_none_or(|left| left >= least)
    }

    /// An action of `length` begins. Returns when it ends.
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

    /// When the action under way ends; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn acts_until(&self) -> Option<Nanos> {
        self.acts_until
    }

    /// The action under way has ended. Returns whether the processor is idle still.
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
        node.rests(Nanos(10), Idle::OwnIo);
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
            node.rests(Nanos(start), Idle::OwnIo);
            node.over(Nanos(end));
            node.resumes(Nanos(end));
        }
        node.rests(Nanos(200), Idle::OtherIo);
        assert_eq!(node.estimate(Nanos(205)), None);
        node.over(Nanos(210));
        node.resumes(Nanos(210));
        // Mean of 30 and 10: 20 in all.
        node.rests(Nanos(300), Idle::OwnIo);
        assert_eq!(
            [300, 305, 320, 330].map(|now| node.estimate(Nanos(now))),
            [20, 15, 0, 0].map(|left| Some(Nanos(left)))
        );
        assert!(node.may_act(Nanos(305), Nanos(15)) && !node.may_act(Nanos(305), Nanos(16)));
        assert!(node.may_act(Nanos(330), Nanos::ZERO), "longer than it should have been: no reason to stop");
    }

    proptest! {
        /// Random lives: overrun is what actual periods have more than necessary ones, and never more than the actions.
        #[test]
        fn times_add_up(steps in prop::collection::vec((0u64..40, 0u64..20, 0usize..3), 1..60)) {
            let (mut node, mut now) = (Node::default(), Nanos::ZERO);
            for (length, action, kind) in steps {
                let kind = [Idle::OwnIo, Idle::OtherIo, Idle::Barrier][kind];
                node.rests(now, kind);
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
