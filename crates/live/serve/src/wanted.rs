//! Tracks which requests wait for the bytes of which pages.
//!
//! Cost: constant per page and waiting request, without allocation. Memory: four bytes per block, and the waiting
//! requests.

use headstart_types::Block;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Waiter {
    request: u64,
    /// The previous waiter of the same block.
    before: u32,
}

#[derive(Debug, Default)]
pub struct Wanted {
    /// Last waiter of each block.
    last: Vec<u32>,
    waiters: Vec<Waiter>,
    free: Vec<u32>,
}

impl Wanted {
    pub fn push(&mut self, block: Block, request: u64) {
        if block.index() >= self.last.len() {
            self.last.resize(block.index() + 1, NONE);
        }
        let last = &mut self.last[block.index()];
        let waiter = Waiter { request, before: *last };
        *last = match self.free.pop() {
            Some(slot) => {
                self.waiters[slot as usize] = waiter;
                slot
            }
            None => {
                self.waiters.push(waiter);
                self.waiters.len() as u32 - 1
            }
        };
    }

    /// Whether any request waits for `block`.
    #[must_use]
    pub fn holds(&self, block: Block) -> bool {
        self.last.get(block.index()).is_some_and(|last| *last != NONE)
    }

    /// The requests that wait for `block`, latest first.
    pub fn of(&self, block: Block) -> impl Iterator<Item = u64> + '_ {
        let mut slot = self.last.get(block.index()).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let waiter = self.waiters.get(slot as usize)?;
            slot = waiter.before;
            Some(waiter.request)
        })
    }

    /// Removes the requests that wait for `block` and puts them into `into`, in order of arrival, after clearing it.
    pub fn take(&mut self, block: Block, into: &mut Vec<u64>) {
        into.clear();
        let Some(last) = self.last.get_mut(block.index()) else { return };
        let mut slot = std::mem::replace(last, NONE);
        while slot != NONE {
            let Waiter { request, before } = self.waiters[slot as usize];
            into.push(request);
            self.free.push(slot);
            slot = before;
        }
        into.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_in_their_order() {
        let mut wanted = Wanted::default();
        for (block, request) in [(7, 1), (2, 1), (7, 2), (7, 3)] {
            wanted.push(Block(block), request);
        }
        let mut into = vec![9];
        let mut taken = |wanted: &mut Wanted, block| {
            wanted.take(Block(block), &mut into);
            into.clone()
        };
        assert_eq!((wanted.holds(Block(7)), wanted.holds(Block(3)), wanted.holds(Block(100))), (true, false, false));
        assert_eq!(taken(&mut wanted, 7), [1, 2, 3]);
        assert_eq!((wanted.holds(Block(7)), taken(&mut wanted, 7), taken(&mut wanted, 100)), (false, vec![], vec![]));
        (4..8).for_each(|request| wanted.push(Block(7), request));
        assert_eq!((taken(&mut wanted, 2), taken(&mut wanted, 7)), (vec![1], vec![4, 5, 6, 7]));
        assert_eq!(wanted.waiters.len(), 5, "slots are used again");
    }
}
