//! The thread of a process: it meets the others, reads, waits, takes on prefetch actions meanwhile, and computes.

use headstart_engine::parallel::Draws;
use headstart_types::{Block, Nanos, Position};

use super::disks::holds;
use super::files::{Idle, Next};
use super::testbed::Testbed;
use crate::Clock;

/// The run has been stopped.
struct Stopped;

/// A process and what its thread needs.
pub(super) struct Process<'a, C> {
    testbed: &'a Testbed<'a, C>,
    number: u32,
    worker: usize,
    think: Draws,
    /// What it has thought last.
    thought: Nanos,
}

impl<'a, C: Clock> Process<'a, C> {
    /// The process of this number.
    pub fn new(testbed: &'a Testbed<'a, C>, number: u32, think: Draws) -> Self {
        Self { testbed, number, worker: testbed.worker(number), think, thought: Nanos::ZERO }
    }

    /// Runs until everything of its string is taken, or the run has been stopped.
    pub fn run(mut self) {
        // Ended early, it has nothing to tell: whoever stops the run knows why.
        let _ = self.read_all();
    }

    fn read_all(&mut self) -> Result<(), Stopped> {
        loop {
            let since = self.now();
            match self.testbed.act(|files, now| files.next(now, self.number)) {
                Next::Done => return Ok(()),
                Next::Wait => {
                    // If it was the last, those that it has released go on in their order, and it among them.
                    self.park(Some(since))?;
                    self.wait()?;
                }
                Next::Read(position, free_at) => self.read(since, position, free_at)?,
            }
        }
    }

    /// Reads the reference at `position`, begun at `since`, having held the shared structures until `held_until`.
    fn read(&mut self, since: Nanos, position: Position, held_until: Nanos) -> Result<(), Stopped> {
        self.sleep_until(held_until)?;
        if !self.testbed.act(|files, now| files.read(now, self.number, position, self.thought)) {
            self.wait()?;
        }
        let cost = self.testbed.read_cost;
        if cost > Nanos::ZERO {
            self.sleep_until(self.now() + cost)?;
        }
        let (block, data) = self.testbed.act(|files, now| {
            let data = files.take_data(now, self.number, since);
            (files.block(position), data)
        });
        self.check(block, &data);
        self.compute()
    }

    /// The block that was asked for is the one that came.
    fn check(&self, block: Block, data: &[u8]) {
        assert!(holds(data, block), "process {} has asked for {block:?} and got another block", self.number);
    }

    fn compute(&mut self) -> Result<(), Stopped> {
        self.thought = (self.think)();
        let since = self.now();
        // What has been read may have made room for a prefetch.
        self.offer();
        self.sleep_until(since + self.thought)?;
        let time = self.now() - since;
        self.testbed.act(|files, _| files.computed(self.number, time));
        Ok(())
    }

    /// Waits until what it waits for is there and its processor is at no action.
    fn wait(&self) -> Result<(), Stopped> {
        let mut may_act = true;
        loop {
            match self.testbed.act(|files, now| files.look(now, self.number)) {
                Idle::Over => return Ok(()),
                Idle::Acts(until) => self.park(Some(until))?,
                Idle::ActionEnded => self.offer(),
                Idle::Nothing if may_act => {
                    self.offer();
                    may_act = false;
                }
                Idle::Nothing => self.park(None)?,
            }
        }
    }

    /// Idle processors, this one or others, may have something to do now.
    fn offer(&self) {
        self.testbed.offer(self.worker);
    }

    fn now(&self) -> Nanos {
        self.testbed.clock.now()
    }

    fn sleep_until(&self, until: Nanos) -> Result<(), Stopped> {
        while self.now() < until {
            self.park(Some(until))?;
        }
        Ok(())
    }

    fn park(&self, until: Option<Nanos>) -> Result<(), Stopped> {
        if self.testbed.is_stopped() {
            return Err(Stopped);
        }
        self.testbed.clock.park(self.worker, until);
        if self.testbed.is_stopped() {
            return Err(Stopped);
        }
        Ok(())
    }
}
