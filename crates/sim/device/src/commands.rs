//! A drive's command queue: commands accepted from the host's scheduler and not finished.
//!
//! The drive gives each command its own tag, by which it finds the host's request, or the several requests that the
//! host's scheduler merged. The drive's scheduler may merge commands again.

use headstart_types::Nanos;

use crate::{Device, Next, Queued, Request, Scheduler};

/// What the host's scheduler gave.
#[derive(Debug)]
struct Command {
    queued: Queued,
    /// The requests that the host's scheduler merged into it; empty for a single one.
    parts: Vec<Queued>,
}

/// The drive's own command queue.
pub struct CommandQueue {
    scheduler: Box<dyn Scheduler>,
    depth: usize,
    /// By tag; entries of tags in `free` are stale.
    commands: Vec<Command>,
    free: Vec<usize>,
    sequence: u64,
    /// A scratch list, empty between calls.
    parts: Vec<Queued>,
}

impl CommandQueue {
    /// A queue of `depth` commands (at least 1), including those in service, ordered by `scheduler`.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>, depth: u32) -> Self {
        let depth = depth.max(1) as usize;
        Self { scheduler, depth, commands: Vec::new(), free: Vec::new(), sequence: 0, parts: Vec::new() }
    }

    /// The scheduler that orders the commands.
    pub(crate) fn scheduler(&mut self) -> &mut Box<dyn Scheduler> {
        &mut self.scheduler
    }

    /// See [`Scheduler::merges_up_to`].
    pub(crate) fn merges_up_to(&self) -> u32 {
        self.scheduler.merges_up_to()
    }

    /// See [`Scheduler::idles_at_most`].
    pub(crate) fn idles_at_most(&self) -> Nanos {
        self.scheduler.idles_at_most()
    }

    /// Accepts commands from the host's scheduler while there is room. Returns the instant until which that scheduler
    /// waits, if it does.
    pub(crate) fn fill(&mut self, now: Nanos, device: &dyn Device, host: &mut dyn Scheduler) -> Option<Nanos> {
        while self.commands.len() - self.free.len() < self.depth {
            match host.pop(now, device, &mut self.parts) {
                Next::Serve(queued) | Next::ServeAfter(_, queued) => self.push(now, queued),
                Next::Wait(until) => return Some(until),
                Next::Nothing => return None,
            }
        }
        None
    }

    fn push(&mut self, now: Nanos, queued: Queued) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.commands.push(Command { queued, parts: Vec::new() });
            self.commands.len() - 1
        });
        let command = &mut self.commands[tag];
        command.queued = queued;
        std::mem::swap(&mut command.parts, &mut self.parts);
        let request = Request { tag: tag as u64, ..queued.request };
        self.scheduler.push(Queued { request, arrived: now, sequence: self.sequence });
        self.sequence += 1;
    }

    /// Notifies both schedulers that `whole` was served. On entry `parts` holds the commands merged into it, if any; on
    /// return, the host's requests.
    pub(crate) fn completed(&mut self, now: Nanos, whole: &Queued, parts: &mut Vec<Queued>, host: &mut dyn Scheduler) {
        self.scheduler.completed(now, whole);
        let merged = parts.len();
        let mut complete = |tag: u64, parts: &mut Vec<Queued>| {
            let command = &mut self.commands[tag as usize];
            host.completed(now, &command.queued);
            if command.parts.is_empty() {
                parts.push(command.queued);
            }
            parts.append(&mut command.parts);
            self.free.push(tag as usize);
        };
        for index in 0..merged {
            complete(parts[index].request.tag, parts);
        }
        if merged == 0 {
            complete(whole.request.tag, parts);
        }
        parts.drain(..merged);
    }
}
