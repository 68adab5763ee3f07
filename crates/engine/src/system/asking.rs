//! Step (3) for one process: it meets the others, asks, waits, writes, and goes on.

use headstart_policy::readahead::Asked;
use headstart_policy::Space;
use headstart_types::{Block, Nanos};

use super::{Awaited, Client, Cursor, Phase, Reads, Supply, System};
use crate::devices::Devices;
use crate::journal::Happening;
use crate::level::{Ask, Looked};
use crate::stack::Stack;

/// References whose blocks are looked at together before the first of them; a power of two.
const WARM: usize = 64;

impl<R> Client<R> {
    /// Whether its level is to look at what comes next.
    #[inline(always)]
    pub(super) fn warms(&self) -> bool {
        matches!(&self.reads, Reads::Own(cursor) if cursor.at % WARM == 0)
    }

    /// Has its level look at what comes next, once in a while.
    #[inline(always)]
    fn warm<D: Devices<S>, S: Space>(&self, stack: &mut Stack<D, S>) {
        if let (true, Reads::Own(Cursor { chunk, at, .. })) = (self.warms(), &self.reads) {
            let next = *at..(at + WARM).min(chunk.blocks.len());
            stack.tiers[self.tier].level.warm(&chunk.blocks[next], &stack.space);
        }
    }

    /// Asks its level for what comes next, under the name `id`, after `compute`.
    #[inline(always)]
    pub(super) fn request<D: Devices<S>, S: Space>(
        &self,
        now: Nanos,
        stack: &mut Stack<D, S>,
        (id, asked, compute): (u64, Asked, Nanos),
    ) -> Looked {
        let (blocks, write, position) = (self.blocks(asked.count), self.writes(), self.position());
        let ask = Ask { id, asked, blocks, write, quiet: false, position, compute };
        let (level, space, mut down) = stack.at(self.tier);
        level.request(now, &ask, space.as_space(), &mut down)
    }
}

impl<D: Devices<S>, S: Space + Send, R: Supply<S>> System<D, S, R> {
    /// A level has given `issued` orders.
    #[inline(always)]
    pub(super) fn follow<const ALONE: bool>(&mut self, now: Nanos, tier: usize, issued: u32) {
        self.charge::<ALONE>(now, tier, issued);
        if !ALONE {
            self.stack.settle(now);
        }
        self.stack.devices.start(now);
    }

    /// Step (3) for one process. What cannot be so of one that is `ALONE` is not asked.
    #[inline(always)]
    pub(super) fn act<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Result<(), R::Error> {
        self.stack.acts_for(Some(index as u32));
        if !ALONE && self.manner.open {
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

    /// Asks for what comes next.
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

    /// From now on the process waits.
    pub(super) fn wait(&mut self, now: Nanos, index: usize, what: Awaited) {
        let client = &mut self.clients[index];
        client.process.wait(now, what, client.charged_before);
        self.rests(now, index, what);
    }

    /// Asks for a request, or for a block of it.
    #[inline(always)]
    fn ask<const ALONE: bool>(&mut self, now: Nanos, index: usize) -> Looked {
        let client = &mut self.clients[index];
        let (tier, asks) = (client.tier, client.asks);
        let asked = if asks {
            client.asked(&self.stack.space, self.manner.whole, index as u32)
        } else {
            client.warm(&mut self.stack);
            // The level looks at the block only.
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

    /// Notes what a process has looked up.
    #[cold]
    pub(super) fn note_reference(&mut self, now: Nanos, index: usize, looked: &Looked) {
        let client = &self.clients[index];
        let (process, blocks) = (index as u32, client.blocks(looked.blocks()).to_vec());
        self.note(Happening::Referenced { process, at: now, blocks, outcome: looked.outcome() });
    }

    /// A process takes what it has waited for.
    #[inline]
    fn take<const ALONE: bool>(&mut self, now: Nanos, index: usize) {
        let Client { tier, asks, .. } = self.clients[index];
        if !asks {
            let (level, space, mut down) = self.stack.at(tier);
            let issued = level.take(now, space.as_space(), &mut down);
            self.follow::<ALONE>(now, tier, issued);
        }
    }

    /// What was asked for is there: it is written, if it is a write, or served.
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
        if self.manner.write_delay.is_some() {
            return self.served::<false>(now, index);
        }
        self.writers.wait(index as u64, tier, &blocks);
        self.wait(now, index, Awaited::Write);
        Ok(())
    }

    /// Blocks are written, of which so many bytes each; `None`: all.
    pub(super) fn write(&mut self, now: Nanos, tier: usize, blocks: &[(Block, Option<u32>)]) {
        let delay = self.manner.write_delay;
        let (level, space, mut down) = self.stack.at(tier);
        let issued = level.write(now, blocks, delay, space.as_space(), &mut down);
        self.follow::<false>(now, tier, issued);
    }

    /// The process pays, thinks and goes on.
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
