//! Invariants between any two instants of a run, for all policies, coordinators and devices; fuzzers check them after
//! every step. Cost: proportional to the blocks of all levels.

use headstart_policy::BlockMap;
use headstart_types::Nanos;

use crate::devices::Devices;
use crate::level::holds;
#[cfg(feature = "sabotage")]
use crate::level::Sabotage;
use crate::system::{Supply, System};

/// Number of instants after which everything in flight at the end of a run must have ended: no fuzzed run has more
/// blocks.
const TURNS_MAX: u32 = 1 << 20;

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Checks the invariants after an instant.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        for (at, tier) in self.stack.tiers.iter().enumerate() {
            tier.level.check().map_err(|broken| format!("level {at}: {broken}"))?;
        }
        // Each reference of a process is one lookup, in exactly one first level.
        let of_levels: u64 =
            self.stack.tiers[..self.stack.first].iter().map(|tier| tier.level.counts().references).sum();
        let served = self.references();
        holds(served <= of_levels, || format!("{served} references were answered, {of_levels} were looked up"))
    }

    /// Checks the end of a run, once everything in flight has ended; see [`System::check`].
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check_end(&mut self) -> Result<(), String> {
        // Levels decide as well: a demand that waits for a frame gets one now, after the last arrivals of the run.
        let (mut next, mut turns) = (Some(self.end()), 0u32);
        while let Some(at) = next {
            holds(self.turn(at, &[]).is_ok(), || format!("no reference is read at {at}, and one fails"))?;
            next = self.stack.next_event();
            turns += 1;
            holds(turns < TURNS_MAX, || format!("requests in flight do not end, at {at}"))?;
        }
        self.check()?;
        for (at, tier) in self.stack.tiers.iter().enumerate() {
            tier.level.check_empty().map_err(|broken| format!("level {at}, at the end: {broken}"))?;
        }
        let of_levels: u64 =
            self.stack.tiers[..self.stack.first].iter().map(|tier| tier.level.counts().references).sum();
        let served = self.references();
        holds(served == of_levels, || format!("{served} references were answered, {of_levels} were looked up"))
    }
}

#[cfg(feature = "sabotage")]
impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Plants a fault in the first level, or in its first process, if that is possible now; returns whether it was.
    pub fn plant(&mut self, sabotage: Sabotage) -> bool {
        if sabotage == Sabotage::LosesTime {
            self.clients[0].process.compute += Nanos(1);
            return true;
        }
        self.stack.tiers[0].level.plant(sabotage)
    }
}

/// The last instant that a host has seen. Time never runs backwards.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch(Nanos);

impl Watch {
    /// Records the instant `now`.
    ///
    /// # Errors
    /// `now` is before the last instant.
    pub fn advance(&mut self, now: Nanos) -> Result<(), String> {
        let before = std::mem::replace(&mut self.0, now);
        holds(before <= now, || format!("time runs backwards, from {before} to {now}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_one_way() {
        let mut watch = Watch::default();
        assert!(watch.advance(Nanos(5)).is_ok() && watch.advance(Nanos(5)).is_ok());
        assert_eq!(watch.advance(Nanos(4)).unwrap_err(), "time runs backwards, from 5ns to 4ns");
    }
}
