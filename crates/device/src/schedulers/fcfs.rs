//! First come, first served. Constant cost; never starves anyone; moves the arm most.

use std::collections::VecDeque;

use headstart_types::Nanos;

use super::{Queued, Scheduler};
use crate::Device;

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
    fn pop(&mut self, _now: Nanos, _device: &dyn Device) -> Option<Queued> {
        self.queue.pop_front()
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }
}
