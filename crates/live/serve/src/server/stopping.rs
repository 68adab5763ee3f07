//! The end of a server: what clients have asked for is done, then everything is made stable, in bounded time.

use std::io;
use std::time::{Duration, Instant};

use super::Server;
use crate::work::{ClientRequest, Op};

/// How long outstanding requests are waited for.
const DRAIN_MAX: Duration = Duration::from_secs(15);
/// When storage that has not ended its last sync is given up, so that the process ends within 30 s.
const STOP_MAX: Duration = Duration::from_secs(28);

/// A server that is to end.
pub(super) struct Stopping {
    since: Instant,
    /// By export that can be written: its last sync, once that has begun.
    syncs: Option<Vec<(usize, u64)>>,
}

impl Stopping {
    pub(super) fn since(since: Instant) -> Self {
        Self { since, syncs: None }
    }
}

impl Server {
    /// Goes on with the end; whether it has come.
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
        for (index, served) in self.exports.iter_mut().enumerate().filter(|(_, served)| served.writable) {
            let id = self.next_request;
            self.next_request += 1;
            served.conductor.request(ClientRequest { id, client: u32::MAX, offset: 0, length: 0, op: Op::Flush });
            served.dirty = true;
            syncs.push((index, id));
        }
        syncs
    }
}
