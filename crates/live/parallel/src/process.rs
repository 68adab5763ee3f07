//! The thread of a process: it sleeps until the machine has something for it to do, lets the machine do it, and checks
//! what was read.

use headstart_policy::BlockMap;
use headstart_types::Nanos;

use super::disks::holds;
use super::testbed::Testbed;
use headstart_host::Clock;

pub(super) struct Process<'a, C, S> {
    testbed: &'a Testbed<'a, C, S>,
    number: u32,
    worker: usize,
}

impl<'a, C: Clock, S: BlockMap + Send> Process<'a, C, S> {
    pub fn new(testbed: &'a Testbed<'a, C, S>, number: u32) -> Self {
        Self { testbed, number, worker: testbed.worker(number) }
    }

    /// Runs until the whole string has been read and processed, or the run is stopped.
    pub fn run(self) {
        while !self.testbed.is_stopped() {
            let (due, done_at) = self.testbed.look(|machine| (machine.due(self.number), machine.done_at(self.number)));
            let now = self.testbed.clock.now();
            match (done_at, due) {
                (Some(end), _) if end <= now => return,
                (Some(end), None) => self.sleep(Some(end)),
                (_, Some(at)) if at <= now => {
                    self.testbed.act(self.worker, |machine| machine.comes(self.number));
                    self.check();
                }
                (_, due) => self.sleep(due),
            }
        }
    }

    fn sleep(&self, until: Option<Nanos>) {
        self.testbed.clock.park(self.worker, until);
        self.check();
    }

    /// Checks that the block read is the one requested.
    fn check(&self) {
        if let Some((block, data)) = self.testbed.look(|machine| machine.take_got(self.number)) {
            assert!(holds(&data, block), "process {} has asked for {block:?} and got another block", self.number);
        }
    }
}
