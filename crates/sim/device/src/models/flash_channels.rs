//! The channels of a solid-state drive: when each is free, and the page in its register.
//!
//! Flash moves a whole page from its cells to a register, from which any part of it can be sent (ONFI 3.0: Read, then
//! Change Read Column; Micron TN-29-19, "NAND Flash 101": Random Data Output). The page stays there until the next
//! operation of the channel. Small reads in order thus read each page once; a read of a page that is still on its way
//! to the register waits for it.

use headstart_types::Nanos;

/// No page.
const NONE: u64 = u64::MAX;

/// Times on a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    pub waited: Nanos,
    pub done: Nanos,
}

impl Passage {
    pub const NONE: Self = Self { waited: Nanos::ZERO, done: Nanos::ZERO };

    /// The one that ends last.
    #[inline]
    pub fn later(self, other: Self) -> Self {
        if other.done > self.done {
            other
        } else {
            self
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Channels {
    /// When each channel becomes free; if its register holds a page, that is when the page is there.
    free: Vec<Nanos>,
    held: Vec<u64>,
}

impl Channels {
    pub fn new(count: usize) -> Self {
        Self { free: vec![Nanos::ZERO; count], held: vec![NONE; count] }
    }

    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// When a channel becomes free.
    #[inline]
    pub fn free(&self, channel: usize) -> Nanos {
        self.free[channel]
    }

    /// Reads `count` pages of a channel, the first and last of which are given, from `ready` on.
    #[inline]
    pub fn read(
        &mut self,
        channel: usize,
        ready: Nanos,
        (first, last): (u64, u64),
        count: u64,
        time: Nanos,
    ) -> Passage {
        let start = ready.max(self.free[channel]);
        let count = count - u64::from(self.held[channel] == first);
        let done = start + time * count;
        if count > 0 {
            self.free[channel] = done;
            self.held[channel] = last;
        }
        Passage { waited: start - ready, done }
    }

    /// Uses a channel for something other than the host's reads, from `from` on; returns when it is done.
    #[inline]
    pub fn occupy(&mut self, channel: usize, from: Nanos, time: Nanos) -> Nanos {
        let free = &mut self.free[channel];
        *free = from.max(*free) + time;
        self.held[channel] = NONE;
        *free
    }

    /// Drops a page from the register of its channel, if it is there: its data is out of date.
    #[inline]
    pub fn forget(&mut self, channel: usize, pages: (u64, u64)) {
        if (pages.0..=pages.1).contains(&self.held[channel]) {
            self.held[channel] = NONE;
        }
    }
}
