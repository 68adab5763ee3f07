//! The simulated disks under the page cache.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_device::{sectors_of, Finished, Request};
use headstart_emulate::ClockedDrive;
use headstart_engine::{Backend, IoRequest};
use headstart_types::{Block, Nanos};

use crate::list::PAGE_BYTES;

/// Time from the end of a request of a drive with an arm until the host goes on with it, and the same if the request
/// took so long that the processors went to sleep. Measured on the emulated IBM (FUSE, a loop device, a virtual
/// machine): the time between the end of a request and the next one, less the program's think time. After this time,
/// and not at once, a drive's buffer holds the following data. Models without an arm include it in their own times.
const HEARD: Nanos = Nanos(30_000);
const WOKEN: Nanos = Nanos(120_000);
const SLEEPS_AFTER: Nanos = Nanos(1_000_000);

/// A disk.
pub(super) struct Disk {
    pub drive: ClockedDrive,
    /// It has an arm.
    pub arm: bool,
    /// Maximum pages of a request.
    pub pages_max: usize,
}

/// The disks and their requests.
#[derive(Default)]
pub(super) struct Disks {
    disks: Vec<Disk>,
    /// By block: its page on its disk; `None` in a hole.
    pub addresses: Vec<Option<u64>>,
    /// By tag: the blocks of a request in flight.
    under: Vec<Vec<Block>>,
    /// Requests that have ended: when the host goes on with them, and their tags.
    ended: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// Blocks that were ordered and lie in holes.
    pub holes: Vec<Block>,
    /// Number of requests, and of the pages that they bring.
    pub requests: u64,
    pub pages: u64,
}

impl Disks {
    pub fn new(disks: Vec<Disk>, addresses: Vec<Option<u64>>) -> Self {
        Self { disks, addresses, ..Self::default() }
    }

    /// When the next request ends, the host goes on with one, or a scheduler wants to be called.
    pub fn next_event(&self) -> Option<Nanos> {
        let ended = self.ended.peek().map(|Reverse((at, _))| *at);
        self.disks.iter().filter_map(|disk| disk.drive.next_event()).chain(ended).min()
    }

    /// The blocks of the next request that the host goes on with by `now`.
    pub fn ended(&mut self, now: Nanos) -> Option<Vec<Block>> {
        for Disk { drive, arm, .. } in &mut self.disks {
            drive.advance(now, |finished| self.ended.push(heard(*arm, &finished)));
        }
        let Reverse((_, tag)) = *self.ended.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.ended.pop();
        Some(std::mem::take(&mut self.under[tag as usize]))
    }

    fn submit(&mut self, now: Nanos, disk: usize, page: u64, blocks: &[Block]) {
        let tag = self.under.len() as u64;
        let sectors = sectors_of(PAGE_BYTES);
        let request = Request::read(page * sectors, (blocks.len() as u64 * sectors) as u32, tag);
        self.under.push(blocks.to_vec());
        self.requests += 1;
        self.pages += blocks.len() as u64;
        let Disk { drive, arm, .. } = &mut self.disks[disk];
        drive.submit(now, request, |finished| self.ended.push(heard(*arm, &finished)));
    }
}

impl Backend for Disks {
    /// One request for each contiguous place, as far as the disk's largest request allows.
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32 {
        let before = self.requests;
        let disk = order.disk.index();
        let most = self.disks[disk].pages_max;
        let mut blocks = order.blocks;
        while let Some(block) = blocks.first() {
            let Some(first) = self.addresses[block.index()] else {
                self.holes.push(*block);
                blocks = &blocks[1..];
                continue;
            };
            let follows = |(block, page): &(&Block, u64)| self.addresses[block.index()] == Some(*page);
            let (run, rest) = blocks.split_at(blocks.iter().zip(first..).take(most).take_while(follows).count());
            self.submit(now, disk, first, run);
            blocks = rest;
        }
        (self.requests - before) as u32
    }
}

/// When the host goes on with a request that has ended, and its tag.
fn heard(arm: bool, finished: &Finished) -> Reverse<(Nanos, u64)> {
    let after = match arm {
        true if finished.response_time < SLEEPS_AFTER => HEARD,
        true => WOKEN,
        false => Nanos::ZERO,
    };
    Reverse((finished.arrived + finished.response_time + after, finished.request.tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_goes_on_a_while_after_an_arm_by_hand() {
        let after_us = |arm, took_us: u64| {
            let (service_time, response_time) = (Nanos(took_us * 1000), Nanos(took_us * 1000));
            let request = Request::read(0, 8, 7);
            let buffer_hit = took_us < 1000;
            let finished = Finished {
                request,
                arrived: Nanos(5_000),
                service_time,
                response_time,
                buffer_hit,
                announced: Nanos(0),
            };
            let Reverse((at, tag)) = heard(arm, &finished);
            assert_eq!(tag, 7);
            (at - finished.arrived - response_time).0 / 1000
        };
        assert_eq!([170, 999, 1000, 6000].map(|took_us| after_us(true, took_us)), [30, 30, 120, 120]);
        assert_eq!([170, 6000].map(|took_us| after_us(false, took_us)), [0, 0]);
    }
}
