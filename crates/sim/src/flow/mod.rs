//! The event loop of everything that is not one process on one level: levels on top of one another, several of them on
//! one below, requests of many blocks at once, processes side by side, arrivals by the clock.
//!
//! Where both apply it gives what the loop of `run.rs` gives, to the nanosecond (`tests/levels.rs`); that one is kept
//! because most runs are of its kind and it is several times as fast.
//!
//! At one instant, in this order (DESIGN): (1) completions and deliveries upward, and freed disks start their next
//! requests; (2) decisions, level by level; (3) the processes, in order, and arrivals. What goes down a level arrives
//! there at once; what comes up takes the link's time.

mod clients;
mod tiers;

use std::rc::Rc;

use headstart_engine::{Access, Ask, Level};
use headstart_policy::readahead::Asked;
use headstart_types::{Block, Nanos, Outcome};

pub use clients::{Client, NOBODY};
use tiers::{Down, Told};
pub use tiers::{Link, Tier, Tiers};

use crate::process::Phase;
use crate::responses::Responses;
use crate::run::{too_long, OnProgress, Progress, TIME_MAX};
use crate::workload::Places;
use crate::Error;

/// Steps between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// A request that arrived by the clock and is not done.
struct Arrival {
    at: Nanos,
    tier: usize,
    /// Blocks to be written once they are there.
    to_write: Vec<Block>,
    /// Blocks whose writes are waited for.
    writing: Vec<Block>,
}

/// A run of levels and processes.
pub struct Flow {
    /// The levels and the disks.
    pub tiers: Tiers,
    /// The processes.
    pub clients: Vec<Client>,
    /// Response times.
    pub responses: Responses,
    /// Time with no request outstanding; of open arrivals.
    pub idle: Nanos,
    places: Rc<Places>,
    /// A request is asked for as a whole, not block by block.
    whole: bool,
    /// Requests come at their times, whatever has become of those before.
    open: bool,
    /// By level: whether its policy is asked about requests.
    asks: Vec<bool>,
    write_delay: Option<Nanos>,
    /// Of open arrivals: those that are not done, by number.
    outstanding: std::collections::BTreeMap<u64, Arrival>,
    arrivals: u64,
    busy_until: Nanos,
    now: Nanos,
}

/// How requests are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// All blocks of a request together.
    pub whole: bool,
    /// At their times.
    pub open: bool,
    /// How long a written block may stay dirty; `None` writes through.
    pub write_delay: Option<Nanos>,
}

impl Flow {
    /// A run at time zero.
    #[must_use]
    pub fn new(tiers: Tiers, clients: Vec<Client>, places: Rc<Places>, manner: Manner) -> Self {
        let asks = tiers.tiers.iter().map(|tier| tier.level.asks()).collect();
        Self {
            tiers,
            clients,
            responses: Responses::new(),
            idle: Nanos::ZERO,
            places,
            whole: manner.whole,
            open: manner.open,
            asks,
            write_delay: manner.write_delay,
            outstanding: std::collections::BTreeMap::new(),
            arrivals: 0,
            busy_until: Nanos::ZERO,
            now: Nanos::ZERO,
        }
    }

    /// Runs until everybody is done and returns the time at which that was.
    ///
    /// # Errors
    /// The trace is wrong somewhere, or `on_progress` asked to stop.
    ///
    /// # Panics
    /// A policy lets a process wait for a block that nothing will bring: a bug.
    pub fn finish(&mut self, on_progress: OnProgress<'_>) -> Result<Nanos, Error> {
        let mut steps = 0u64;
        self.look_ahead()?;
        while let Some(now) = self.next_instant() {
            if now > TIME_MAX {
                return Err(too_long());
            }
            self.now = now;
            self.step(now)?;
            steps += 1;
            if steps % REPORT_EVERY == 0 && !on_progress(self.progress()) {
                return Err(Error::Stopped);
            }
        }
        let end = self.end();
        while self.tiers.next_event().is_some_and(|at| at <= end) {
            let at = self.tiers.next_event().unwrap_or(end);
            while self.tiers.complete(at).is_some() {}
            self.tiers.storage.start_issued(at);
        }
        Ok(end)
    }

    fn end(&self) -> Nanos {
        let processes = self.clients.iter().map(|client| client.process.free_at).max();
        processes.unwrap_or(Nanos::ZERO).max(self.busy_until)
    }

    fn progress(&self) -> Progress {
        let (mut done, mut total, mut references) = (0, 0, 0);
        for client in &self.clients {
            references += client.references;
            let (part, all) = match &client.cursor.supply {
                Some(supply) => supply.progress(),
                None => (client.cursor.at as u64, client.cursor.chunk.blocks.len() as u64),
            };
            done += part;
            total += all;
        }
        Progress { share: done as f64 / total.max(1) as f64, references }
    }

    /// Marks the processes that have nothing left to ask for.
    fn look_ahead(&mut self) -> Result<(), Error> {
        for client in &mut self.clients {
            if !client.has_more()? {
                client.process.phase = Phase::Done;
            } else if self.open {
                client.process.free_at = client.arrival();
            }
        }
        Ok(())
    }

    /// The next instant at which anything happens; `None` when all is done.
    fn next_instant(&self) -> Option<Nanos> {
        let busy = self.clients.iter().any(|client| client.process.phase != Phase::Done);
        if !busy && self.outstanding.is_empty() {
            return None;
        }
        let due = self.clients.iter().filter_map(|client| client.process.due()).min();
        let next = due.into_iter().chain(self.tiers.next_event()).chain(self.tiers.next_wish(self.now)).min();
        assert!(next.is_some(), "nothing will bring what a process waits for at {}", self.now);
        next
    }

    fn step(&mut self, now: Nanos) -> Result<(), Error> {
        while let Some(told) = self.tiers.complete(now) {
            self.heard(now, told);
        }
        // Who is due now acts now, though driver work of this instant's decisions may keep its processor busy.
        for client in &mut self.clients {
            client.is_due = client.process.due().is_some_and(|due| due <= now);
            client.driver_before = client.process.driver;
        }
        self.decide(now);
        self.hear_all(now);
        for client in 0..self.clients.len() {
            if self.clients[client].is_due {
                self.act(now, client)?;
            }
        }
        self.hear_all(now);
        Ok(())
    }

    /// What the levels have to say without anything having come from below.
    fn hear_all(&mut self, now: Nanos) {
        while let Some(told) = self.tiers.take_told() {
            self.heard(now, told);
        }
    }

    fn heard(&mut self, now: Nanos, told: Told) {
        match told {
            Told::Done(id) if self.open => self.answered(now, id),
            Told::Done(id) => self.clients[id as usize].process.arrived(now, NOBODY, false),
            Told::Arrived(tier, block) => {
                for client in self.clients.iter_mut().filter(|client| client.tier == tier) {
                    client.process.arrived(now, block, false);
                }
            }
            Told::Written(tier, block) if self.open => self.arrival_written(now, tier, block),
            Told::Written(tier, block) => {
                let writes = |client: &&mut Client| client.tier == tier && client.writing.contains(&block);
                if let Some(client) = self.clients.iter_mut().find(writes) {
                    client.written(now, block);
                }
            }
        }
    }

    /// The blocks of a request that arrived by the clock are there: it is written, if it is a write, or done.
    fn answered(&mut self, now: Nanos, id: u64) {
        let Some(arrival) = self.outstanding.get_mut(&id) else { return };
        let (tier, blocks) = (arrival.tier, std::mem::take(&mut arrival.to_write));
        if !blocks.is_empty() {
            self.write(now, tier, &blocks);
            if self.write_delay.is_none() {
                self.outstanding.entry(id).and_modify(|arrival| arrival.writing = blocks);
                return;
            }
        }
        self.arrival_done(now, id);
    }

    /// A block of a request that arrived by the clock is on its disk: the first's that waits for it.
    fn arrival_written(&mut self, now: Nanos, tier: usize, block: Block) {
        let waits = |arrival: &Arrival| arrival.writing.iter().position(|other| *other == block);
        let mut waiting = self.outstanding.iter_mut().filter(|(_, arrival)| arrival.tier == tier);
        let Some((id, at, arrival)) = waiting.find_map(|(id, arrival)| Some((*id, waits(arrival)?, arrival))) else {
            return;
        };
        arrival.writing.swap_remove(at);
        if arrival.writing.is_empty() {
            self.arrival_done(now, id);
        }
    }

    fn arrival_done(&mut self, now: Nanos, id: u64) {
        if let Some(arrival) = self.outstanding.remove(&id) {
            self.responses.record(now - arrival.at);
            self.busy_until = self.busy_until.max(now);
        }
    }

    /// Step (2).
    fn decide(&mut self, now: Nanos) {
        for index in 0..self.tiers.tiers.len() {
            let level = &self.tiers.tiers[index].level;
            let due = level.flush_at().is_some_and(|at| at <= now);
            let woken = level.wake_at().is_some_and(|at| at <= now);
            if !due && !woken && !level.wants_to_decide() {
                continue;
            }
            let at_hand = self.at_hand(index);
            self.tiers.storage.process = self.only_client(index);
            let issued = self.tiers.act(index, |level, down| {
                let flushed = if due { level.flush(now, down) } else { 0 };
                flushed + if woken || level.wants_to_decide() { level.decide(now, at_hand, down) } else { 0 }
            });
            self.charge(now, index, issued);
            self.tiers.settle(now);
        }
        self.tiers.storage.start_issued(now);
    }

    /// The process for which level `index` decides, where there is but one.
    fn only_client(&self, index: usize) -> Option<u32> {
        let mut asking = (0u32..).zip(&self.clients).filter(|(_, client)| client.tier == index);
        let only = asking.next().map(|(client, _)| client).filter(|_| asking.next().is_none());
        only.or_else(|| (self.clients.len() == 1).then_some(0))
    }

    /// The block that a process is about to ask level `index` for, or waits for: a fetch of it is a demand.
    fn at_hand(&self, index: usize) -> Option<Block> {
        if index >= self.tiers.first || self.asks[index] || self.whole {
            return None;
        }
        let client = self.clients.iter().find(|client| client.tier == index)?;
        let process = &client.process;
        let wants = (client.is_due || process.due().is_none()) && !process.is_writing();
        (wants && process.phase != Phase::Done).then(|| client.block())
    }

    /// Driver work is the process's whose level gives the order; of levels that several share, the first's.
    fn charge(&mut self, now: Nanos, index: usize, issued: u32) {
        if issued > 0 && !self.open {
            if let Some(client) = self.clients.iter_mut().find(|client| client.tier == index) {
                client.process.charge_driver(now, issued);
            }
        }
    }

    /// Lets a level act, which says how many orders it has given, and carries that as far as it goes.
    fn ask_level<R>(&mut self, now: Nanos, tier: usize, act: impl FnOnce(&mut Level, &mut Down<'_>) -> (R, u32)) -> R {
        let (result, issued) = self.tiers.act(tier, act);
        self.charge(now, tier, issued);
        self.tiers.settle(now);
        self.tiers.storage.start_issued(now);
        result
    }

    /// Step (3) for one process.
    fn act(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        self.tiers.storage.process = Some(index as u32);
        if self.open {
            return self.arrive(now, index);
        }
        let tier = self.clients[index].tier;
        let driver_before = self.clients[index].driver_before;
        if let Phase::Granted(wait) = self.clients[index].process.phase {
            self.clients[index].process.end_wait(now, &wait, driver_before);
            let Some(outcome) = wait.outcome else { return self.served(now, index) };
            if wait.block != NOBODY {
                self.resume(now, index, (wait.block, outcome, wait.since));
            }
            return self.served_or_written(now, index, driver_before);
        }
        let process = &mut self.clients[index].process;
        process.request_since.get_or_insert(now);
        let waits = if self.asks[tier] || self.whole {
            self.ask(now, index)
        } else {
            self.clients[index].count = 1;
            self.refer(now, index)
        };
        if let Some((block, outcome)) = waits {
            self.clients[index].process.wait(now, block, Some(outcome), driver_before);
            return Ok(());
        }
        self.served_or_written(now, index, driver_before)
    }

    /// Asks for a request, or for a block of it, as a whole. Gives what the process waits for.
    fn ask(&mut self, now: Nanos, index: usize) -> Option<(Block, Outcome)> {
        let client = &mut self.clients[index];
        let asked = client.asked(&self.places, self.whole, index as u32);
        client.count = asked.count;
        let (tier, position, write) = (client.tier, client.process.position, client.writes());
        let ask = Ask { id: index as u64, asked, demanded: asked.count, write, position };
        let done = self.request(now, tier, &ask);
        // Which of its blocks were hits is the level's business.
        (!done).then_some((NOBODY, Outcome::Miss))
    }

    /// Gives a request to a level. Returns whether it is done at once.
    fn request(&mut self, now: Nanos, tier: usize, ask: &Ask) -> bool {
        self.ask_level(now, tier, |level, down| ((), level.request(now, ask, down)));
        let mut done = false;
        let mut others = Vec::new();
        while let Some(told) = self.tiers.take_told() {
            match told {
                Told::Done(id) if id == ask.id => done = true,
                other => others.push(other),
            }
        }
        self.tiers.put_back(others);
        done
    }

    /// One block, of a level whose policy goes block by block. Gives what the process waits for.
    fn refer(&mut self, now: Nanos, index: usize) -> Option<(Block, Outcome)> {
        let client = &self.clients[index];
        let (tier, block, write) = (client.tier, client.block(), client.writes());
        let (position, compute) = (client.process.position, client.process.last_think);
        let access = self.ask_level(now, tier, |level, down| {
            level.meet(block);
            level.reference(now, position, block, write, compute, down)
        });
        match access {
            Access::Served => None,
            Access::Waits(outcome) => Some((block, outcome)),
        }
    }

    fn resume(&mut self, now: Nanos, index: usize, (block, outcome, since): (Block, Outcome, Nanos)) {
        let client = &self.clients[index];
        let (tier, position, compute) = (client.tier, client.process.position, client.process.last_think);
        self.ask_level(now, tier, |level, down| {
            ((), level.resume(now, position, block, outcome, since, compute, down))
        });
    }

    /// What was asked for is there: it is written, if it is a write, or served.
    fn served_or_written(&mut self, now: Nanos, index: usize, driver_before: Nanos) -> Result<(), Error> {
        let client = &self.clients[index];
        if !client.writes() {
            return self.served(now, index);
        }
        let (tier, at, count, delay) = (client.tier, client.cursor.at, client.count as usize, self.write_delay);
        let blocks: Vec<Block> = client.cursor.chunk.blocks[at..at + count].to_vec();
        self.write(now, tier, &blocks);
        if delay.is_some() {
            return self.served(now, index);
        }
        let client = &mut self.clients[index];
        client.writing = blocks;
        client.process.wait(now, NOBODY, None, driver_before);
        Ok(())
    }

    fn write(&mut self, now: Nanos, tier: usize, blocks: &[Block]) {
        let delay = self.write_delay;
        self.ask_level(now, tier, |level, down| {
            blocks.iter().for_each(|block| level.write(now, *block, delay, down));
            ((), if delay.is_none() { blocks.len() as u32 } else { 0 })
        });
    }

    /// The process pays, thinks and goes on.
    fn served(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        let client = &mut self.clients[index];
        let count = client.count;
        if let Some(response) = client.served(now, count) {
            self.responses.record(response);
        }
        if !client.has_more()? {
            client.process.phase = Phase::Done;
        }
        Ok(())
    }

    /// A request arrives by the clock.
    fn arrive(&mut self, now: Nanos, index: usize) -> Result<(), Error> {
        if self.outstanding.is_empty() {
            self.idle += now - self.busy_until;
            self.busy_until = now;
        }
        let client = &self.clients[index];
        let asked: Asked = client.asked(&self.places, true, index as u32);
        let (tier, position, write) = (client.tier, client.process.position, client.writes());
        let id = self.arrivals;
        self.arrivals += 1;
        let at = client.cursor.at;
        let blocks = &client.cursor.chunk.blocks[at..at + asked.count as usize];
        let to_write = if write { blocks.to_vec() } else { Vec::new() };
        self.outstanding.insert(id, Arrival { at: now, tier, to_write, writing: Vec::new() });
        let ask = Ask { id, asked, demanded: asked.count, write, position };
        if self.request(now, tier, &ask) {
            self.answered(now, id);
        }
        let client = &mut self.clients[index];
        client.pass(asked.count);
        if client.has_more()? {
            client.process.free_at = client.arrival();
        } else {
            client.process.phase = Phase::Done;
        }
        Ok(())
    }
}
