//! Stops a server in bounded time: completes outstanding requests, then makes everything stable.

use std::io;
use std::time::{Duration, Instant};

use super::Server;
use crate::work::{ClientRequest, Op};

/// How long to wait for outstanding requests.
const DRAIN_MAX: Duration = Duration::from_secs(15);
/// When to give up storage that has not completed its last sync, so that the process ends within 30 s.
const STOP_MAX: Duration = Duration::from_secs(28);

pub(super) struct Stopping {
    since: Instant,
    /// Last sync of each writable export, once started.
    syncs: Option<Vec<(usize, u64)>>,
}

impl Stopping {
    pub(super) fn since(since: Instant) -> Self {
        Self { since, syncs: None }
    }
}

impl Server {
    /// Continues stopping; returns whether it is complete.
    pub(super) fn stops(&mut self, stopping: &mut Stopping, instant: Instant) -> bool {
        let waited = instant - stopping.since;
        if stopping.syncs.is_none() && (self.is_idle() || waited >= DRAIN_MAX) {
            stopping.syncs = Some(self.begin_syncs());
        }
        let Some(syncs) = &stopping.syncs else { return false };
        let is_open = |(export, id): &&(usize, u64)| self.exports[*export].conductor.awaits(*id);
        let open: Vec<(usize, u64)> = syncs.iter().filter(is_open).copied().collect();
        if !open.is_empty() && waited < STOP_MAX {
            return false;
        }
        let reason = format!("the storage has not ended a sync within {} s", STOP_MAX.as_secs());
        for (export, id) in open {
            self.exports[export].conductor.give_up(id, &io::Error::new(io::ErrorKind::TimedOut, reason.clone()));
        }
        true
    }

    fn begin_syncs(&mut self) -> Vec<(usize, u64)> {
        let mut syncs = Vec::new();
        if !self.settings.writable {
            return syncs;
        }
        for (index, served) in self.exports.iter_mut().enumerate() {
            let id = self.next_request;
            self.next_request += 1;
            served.conductor.request(ClientRequest { id, client: u32::MAX, offset: 0, length: 0, op: Op::Flush });
            served.dirty = true;
            syncs.push((index, id));
        }
        syncs
    }
}
