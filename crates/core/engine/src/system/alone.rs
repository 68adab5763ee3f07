//! A single process on one level: its instants without the work for several processes, and a fast path for quiet ones.
//!
//! Between two hits usually nothing else happens. The fast path does what the general path does at an instant at which
//! no device finishes, no level decides and the block is resident: it serves the reference, and the process pays for it
//! and thinks. All other instants take the general path.

use headstart_policy::BlockMap;
use headstart_types::Nanos;

use super::{Phase, Supply, System, TIME_MAX};
use crate::devices::Devices;

/// Maximum number of instants of a single process between two returns to the host.
const ALONE_MAX: u32 = 1 << 4;

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// [`System::step`] for a single process.
    pub(super) fn step_alone(&mut self, mut now: Nanos) -> Result<(), R::Error> {
        let mut event = self.stack.next_event();
        for _ in 0..ALONE_MAX {
            self.now = now;
            let ends = event.is_some_and(|at| at <= now);
            if ends {
                self.complete(now);
            }
            let wants = self.stack.tiers[0].level.wants_to_decide();
            if ends || wants || self.hit_alone(now, event)? == 0 {
                let acts = self.clients[0].process.due().is_some_and(|at| at <= now);
                self.act_all::<true>(now, if acts { &[0] } else { &[] }, wants)?;
            }
            event = self.stack.next_event();
            let next = self.next_after(event);
            if self.is_over() || next > TIME_MAX {
                break;
            }
            now = next;
        }
        Ok(())
    }

    /// Lets a single process make references that are hits, the first at `now`, before the devices' next `event`, and
    /// at most [`ALONE_MAX`] of them. The caller guarantees that the level does not want to decide. Returns the number
    /// of references made.
    ///
    /// # Errors
    /// As for [`System::step`].
    #[inline(always)]
    fn hit_alone(&mut self, mut now: Nanos, event: Option<Nanos>) -> Result<u32, R::Error> {
        let (level, client) = (&mut self.stack.tiers[0].level, &mut self.clients[0]);
        if client.positions.is_some() || client.process.phase != Phase::Thinking || !level.is_quiet() {
            return Ok(0);
        }
        let until = event.unwrap_or(Nanos::MAX).min(TIME_MAX);
        let space: &dyn BlockMap = &self.stack.space;
        let (mut hits, mut decided) = (0, false);
        while client.process.free_at == now && now < until && hits < ALONE_MAX {
            // A reference at which the level prefetches into the processor's cache takes the general path.
            if !client.has_at_hand() || client.warms() || client.writes() {
                break;
            }
            let reference = (client.process.position, client.block());
            let Some(fetches) = level.hit(now, reference, client.process.last_think, space) else { break };
            decided = fetches;
            hits += 1;
            self.now = now;
            client.process.request_since.get_or_insert(now);
            if let Some(response) = client.served(now, 1) {
                self.responses.record(response);
            }
            now = client.process.free_at;
            if decided || level.wants_to_decide() {
                break;
            }
        }
        if hits > 0 {
            self.have_hit(hits, decided)?;
        }
        Ok(hits)
    }

    /// Completes `hits` served hits; `decided`: the policy has decided on fetches at the last one.
    #[inline]
    fn have_hit(&mut self, hits: u32, decided: bool) -> Result<(), R::Error> {
        let client = &mut self.clients[0];
        client.found.hits_ready += u64::from(hits);
        client.count = 1;
        if !client.has_more(&self.stack.space)? {
            self.is_done(self.now, 0);
        }
        if decided {
            let now = self.now;
            self.stack.acts_for(Some(0));
            let (level, space, mut down) = self.stack.at(0);
            let issued = level.issue(now, None, space.as_space(), &mut down);
            self.follow::<true>(now, 0, issued);
        }
        Ok(())
    }
}
