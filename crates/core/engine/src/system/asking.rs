//! Step (3) for one process: it synchronises, requests, waits, writes, and continues.

use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};

use super::{Awaited, Client, Cursor, Phase, Reads, Supply, System};
use crate::devices::Devices;
use crate::journal::Happening;
use crate::level::{Ask, LookupCounts};
use crate::stack::Stack;

/// Number of references whose data is prefetched into the processor's cache together; a power of two.
const WARM: usize = 64;

impl<R> Client<R> {
    /// Whether its level should prefetch data about the next references.
    #[inline(always)]
    pub(super) fn warms(&self) -> bool {
        matches!(&self.reads, Reads::Own(cursor) if cursor.at % WARM == 0)
    }

    /// Lets its level prefetch data about the next references, once every [`WARM`] of them.
    #[inline(always)]
    fn warm<D: Devices<S>, S: BlockMap>(&self, stack: &mut Stack<D, S>) {
        if let (true, Reads::Own(Cursor { chunk, at, .. })) = (self.warms(), &self.reads) {
            let next = *at..(at + WARM).min(chunk.blocks.len());
            stack.tiers[self.tier].level.warm(&chunk.blocks[next], &stack.space);
        }
    }

    /// Requests the next blocks from its level, with the id `id`, after `compute`.
    #[inline(always)]
    pub(super) fn request<D: Devices<S>, S: BlockMap>(
        &self,
        now: Nanos,
        stack: &mut Stack<D, S>,
        (id, asked, compute): (u64, Asked, Nanos),
    ) -> LookupCounts {
        let (blocks, write, position) = (self.blocks(asked.count), self.writes(), self.position());
        let ask = Ask { id, asked, blocks, write, quiet: false, position, compute };
        let (level, space, mut down) = stack.at(self.tier);
        level.request(now, &ask, space.as_space(), &mut down)
    }
}

impl<D: Devices<S>, S: BlockMap + Send, R: Supply<S>> System<D, S, R> {
    /// Accounts for `issued` driver requests of a level and processes their messages.
    #[inline(always)]
    pub(super) fn follow<const ALONE: bool>(&mut self, now: Nanos, tier: usize, issued: u32) {
        self.charge::<ALONE>(now, tier, issued);
        if !ALONE {
            self.stack.settle(now);
        }
        self.stack.devices.start(now);
    }

    /// Step (3) for one process. With `ALONE`, checks that cannot apply to a single process are skipped.
    #[inline(always)]
    pub(super) fn act<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        self.stack.acts_for(Some(index as u32));
        if !ALONE && self.mode.open {
            return self.arrive(now, index);
        }
        let in_program = !ALONE && self.parallel.is_some();
        if in_program {
            if !self.has_processor(now, index) {
                return Ok(());
            }
            let client = &mut self.clients[index];
            client.charged_before += client.process.acts(now);
        }
        if let Phase::Granted(wait) = self.clients[index].process.phase {
            let client = &mut self.clients[index];
            client.process.end_wait(now, &wait, client.charged_before);
            if !ALONE && self.journals {
                let waited = wait.waited(now, client.charged_before);
                let (process, since, what) = (index as u32, wait.since, wait.what);
                let over = wait.over_at();
                self.note(Happening::Waited { process, since, over, until: now, waited, what });
            }
            if in_program {
                self.resumes(now, index);
            }
            match wait.what {
                Awaited::Others => {}
                Awaited::Write => return self.served::<ALONE>(now, index),
                Awaited::Read(_) => {
                    self.take::<ALONE>(now, index);
                    return self.served_or_written::<ALONE>(now, index);
                }
            }
        }
        if in_program && !self.may_read(now, index)? {
            return Ok(());
        }
        self.read::<ALONE>(now, index)
    }

    /// Requests the next blocks.
    #[inline(always)]
    fn read<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        self.clients[index].process.request_since.get_or_insert(now);
        let looked = self.ask::<ALONE>(now, index);
        if looked.waits() {
            self.wait(now, index, Awaited::Read(looked.outcome()));
            return Ok(());
        }
        self.served_or_written::<ALONE>(now, index)
    }

    /// Makes the process wait.
    pub(super) fn wait(&mut self, now: Nanos, index: usize, what: Awaited) {
        let client = &mut self.clients[index];
        client.process.wait(now, what, client.charged_before);
        self.begin_wait(now, index, what);
    }

    /// Issues a request, or one block of it.
    #[inline(always)]
    fn ask<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> LookupCounts {
        let client = &mut self.clients[index];
        let (tier, takes_requests) = (client.tier, client.takes_requests);
        let asked = if takes_requests {
            client.asked(&self.stack.space, self.mode.whole, index as u32)
        } else {
            client.warm(&mut self.stack);
            // The level only uses the block.
            Asked { file: 0, first: 0, count: 1, client: index as u32, ends_inside: false }
        };
        client.count = asked.count;
        if !ALONE && self.parallel.is_some() {
            self.find_buffers(index, asked.count);
        }
        let client = &mut self.clients[index];
        let looked = client.request(now, &mut self.stack, (index as u64, asked, client.process.last_think));
        client.found.add(&looked);
        self.follow::<ALONE>(now, tier, looked.issued);
        if !ALONE {
            self.count(&looked);
            if self.journals {
                self.note_reference(now, index, &looked);
            }
        }
        looked
    }

    /// Records a lookup of a process in the journal.
    #[cold]
    pub(super) fn note_reference(&mut self, now: Nanos, index: usize, looked: &LookupCounts) {
        let client = &self.clients[index];
        let (process, blocks) = (index as u32, client.blocks(looked.blocks()).to_vec());
        self.note(Happening::Referenced { process, at: now, blocks, outcome: looked.outcome() });
    }

    /// Takes the block that a process has waited for.
    #[inline]
    fn take<const ALONE: bool>(&mut self, now: Nanos, index: usize) {
        let Client { tier, takes_requests, .. } = self.clients[index];
        if !takes_requests {
            let (level, space, mut down) = self.stack.at(tier);
            let issued = level.take(now, space.as_space(), &mut down);
            self.follow::<ALONE>(now, tier, issued);
        }
    }

    /// Handles the arrival of the requested blocks: a write is written, a read is served.
    #[inline(always)]
    fn served_or_written<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        let client = &self.clients[index];
        if !client.writes() {
            return self.served::<ALONE>(now, index);
        }
        self.write_served(now, index)
    }

    #[cold]
    fn write_served(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        let client = &self.clients[index];
        let tier = client.tier;
        let (blocks, parts) = (client.blocks(client.count).to_vec(), client.parts(client.count));
        self.write(now, tier, &parts);
        if self.mode.write_delay.is_some() {
            return self.served::<false>(now, index);
        }
        self.writers.wait(index as u64, tier, &blocks);
        self.wait(now, index, Awaited::Write);
        Ok(())
    }

    /// Writes blocks, each with its number of bytes; `None`: all.
    pub(super) fn write(&mut self, now: Nanos, tier: usize, blocks: &[(Block, Option<u32>)]) {
        let delay = self.mode.write_delay;
        let (level, space, mut down) = self.stack.at(tier);
        let issued = level.write(now, blocks, delay, space.as_space(), &mut down);
        self.follow::<false>(now, tier, issued);
    }

    /// Charges the process, lets it think, and continues.
    #[inline(always)]
    fn served<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        let client = &mut self.clients[index];
        let count = client.count;
        if let Some(response) = client.served(now, count) {
            self.responses.record(response);
        }
        let has_more = client.has_more(&self.stack.space)?;
        if !ALONE {
            self.has_read(index, count);
        }
        if !has_more && (ALONE || !self.meets_others()) {
            self.is_done(now, index);
        }
        Ok(())
    }
}
