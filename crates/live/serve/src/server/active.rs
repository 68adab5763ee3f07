//! Connections with work, in the order in which they are served.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

/// Connections with work, in order of arrival.
#[derive(Debug, Default)]
pub struct Active {
    /// Connections that had nothing in flight.
    first: VecDeque<u64>,
    rest: VecDeque<u64>,
    held: FxHashSet<u64>,
}

impl Active {
    pub fn push(&mut self, number: u64) {
        if self.held.insert(number) {
            self.rest.push_back(number);
        }
    }

    pub fn push_first(&mut self, number: u64) {
        if self.held.insert(number) {
            self.first.push_back(number);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Removes the next ones, at most `most`.
    pub fn take(&mut self, most: usize) -> Vec<u64> {
        let first = self.first.len().min(most - self.rest.len().min(most / 2));
        let rest = self.rest.len().min(most - first);
        let taken: Vec<u64> = self.first.drain(..first).chain(self.rest.drain(..rest)).collect();
        for number in &taken {
            self.held.remove(number);
        }
        taken
    }
}
