//! First come, first served. Constant cost; no starvation; moves the arm most.

use std::collections::VecDeque;

use headstart_types::{KeyTable, Nanos};

use super::{without_keys, Next, Promise, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "fcfs",
    summary: "first come, first served",
    keys: KeyTable::NONE,
    build: |keys| without_keys(keys, Fcfs::default()),
};

/// The queue in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Fcfs {
    queue: VecDeque<Queued>,
}

impl Scheduler for Fcfs {
    #[inline]
    fn push(&mut self, queued: Queued) {
        self.queue.push_back(queued);
    }

    #[inline]
    fn pop(&mut self, _now: Nanos, _device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        self.queue.pop_front().map_or(Next::Nothing, Next::Serve)
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }

    fn promise(&self, _request: &Request) -> Promise {
        Promise::Overtaken { after: Nanos::ZERO, each: 1, more: 0 }
    }
}
