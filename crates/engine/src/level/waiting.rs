//! Who waits for which block: a list for each block that is waited for, found by the block's number.
//!
//! Cost: constant per waiter. Memory: four bytes a block of the level's universe once anybody waits, and the lists.

use headstart_types::{Block, Nanos, Outcome, Position};

/// A block of a request that is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    /// Slot of the request.
    pub slot: usize,
    pub position: Position,
    pub process: u32,
    pub outcome: Outcome,
    pub compute: Nanos,
    pub since: Nanos,
    /// The request bypassed the policy, which is not told that the block is handed over.
    pub silent: bool,
}

/// Lists of waiters by block.
#[derive(Default)]
pub(super) struct Waiting {
    /// By block: the number of its list plus one, or zero.
    list_of: Vec<u32>,
    lists: Vec<Vec<Waiter>>,
    /// Lists that are nobody's.
    free: Vec<u32>,
}

impl Waiting {
    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.lists.len()
    }

    /// Who waits for `block`, in the order in which they asked.
    #[inline]
    pub fn of(&self, block: Block) -> &[Waiter] {
        match self.list_of.get(block.index()) {
            None | Some(0) => &[],
            Some(list) => &self.lists[*list as usize - 1],
        }
    }

    /// One more waits for `block`.
    pub fn push(&mut self, block: Block, waiter: Waiter) {
        if block.index() >= self.list_of.len() {
            self.list_of.resize((block.index() + 1).next_power_of_two(), 0);
        }
        let list = &mut self.list_of[block.index()];
        if *list == 0 {
            *list = 1 + self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                self.lists.len() as u32 - 1
            });
        }
        self.lists[*list as usize - 1].push(waiter);
    }

    /// Takes those who wait for `block`, if anybody does.
    #[inline]
    pub fn take(&mut self, block: Block) -> Option<Vec<Waiter>> {
        let list = std::mem::take(self.list_of.get_mut(block.index()).filter(|list| **list > 0)?) - 1;
        self.free.push(list);
        Some(std::mem::take(&mut self.lists[list as usize]))
    }

    /// The room of a list that has been taken, for the next one.
    pub fn give_back(&mut self, mut room: Vec<Waiter>) {
        room.clear();
        if let Some(list) = self.free.last() {
            self.lists[*list as usize] = room;
        }
    }
}
