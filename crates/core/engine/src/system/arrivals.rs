//! Open-loop arrivals: requests issued at their timestamps, regardless of outstanding ones.

use std::collections::BTreeMap;

use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::{Phase, Supply, System};
use crate::devices::Devices;

/// An unfinished open-loop request.
struct Arrival {
    at: Nanos,
    tier: usize,
    /// Blocks to be written once they are there, each with its number of bytes; `None`: all.
    to_write: Vec<(Block, Option<u32>)>,
}

/// The open-loop requests of a run.
#[derive(Default)]
pub struct Arrivals {
    /// Unfinished requests, by number.
    outstanding: BTreeMap<u64, Arrival>,
    count: u64,
    /// When the last request finished, or when the first one arrived after all had finished.
    pub busy_until: Nanos,
}

impl Arrivals {
    /// Whether all requests have finished.
    pub fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }
}

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Issues an open-loop request at its timestamp.
    pub(super) fn arrive(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        let arrivals = &mut self.arrivals;
        if arrivals.outstanding.is_empty() {
            self.idle += now - arrivals.busy_until;
            arrivals.busy_until = now;
        }
        let client = &self.clients[index];
        let asked = client.asked(&self.stack.space, true, index as u32);
        let id = arrivals.count;
        arrivals.count += 1;
        let to_write = if client.writes() { client.parts(asked.count) } else { Vec::new() };
        let tier = client.tier;
        arrivals.outstanding.insert(id, Arrival { at: now, tier, to_write });
        let looked = client.request(now, &mut self.stack, (id, asked, Nanos::ZERO));
        self.follow::<false>(now, tier, looked.issued);
        if self.journals {
            self.note_reference(now, index, &looked);
        }
        if !looked.waits() {
            self.answered(now, id);
        }
        let client = &mut self.clients[index];
        client.pass(asked.count);
        if client.has_more(&self.stack.space)? {
            client.process.free_at = client.arrival();
        } else {
            client.process.phase = Phase::Done;
            self.running -= 1;
        }
        Ok(())
    }

    /// Handles the arrival of all blocks of an open-loop request: a write is written, a read is done.
    pub(super) fn answered(&mut self, now: Nanos, id: u64) {
        let Some(arrival) = self.arrivals.outstanding.get_mut(&id) else { return };
        let (tier, blocks) = (arrival.tier, std::mem::take(&mut arrival.to_write));
        if !blocks.is_empty() {
            self.write(now, tier, &blocks);
            if self.mode.write_delay.is_none() {
                let blocks: Vec<Block> = blocks.iter().map(|(block, _)| *block).collect();
                self.writers.wait(id, tier, &blocks);
                return;
            }
        }
        self.arrival_done(now, id);
    }

    pub(super) fn arrival_done(&mut self, now: Nanos, id: u64) {
        if let Some(arrival) = self.arrivals.outstanding.remove(&id) {
            self.responses.record(now - arrival.at);
            self.arrivals.busy_until = self.arrivals.busy_until.max(now);
        }
    }
}
