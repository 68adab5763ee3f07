//! The simulated disks under the page cache: absent pages are requested, in contiguous pieces, and waited for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_device::{Drive, Finished, Request, SECTOR_BYTES};
use headstart_types::Nanos;

use super::memory::{PageCache, State};
use super::places::Places;
use super::program::Pages;
use crate::list::PAGE_BYTES;
use headstart_emulate::ClockedDrive;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Time from the end of a request of a drive with an arm until the host goes on with it, and the same if the request
/// took so long that the processors went to sleep. Measured on the emulated IBM (FUSE, a loop device, a virtual
/// machine): the time between the end of a request and the next one, less the program's think time. After this time,
/// and not at once, a drive's buffer holds the following data. Models without an arm include it in their own times.
const HEARD: Nanos = Nanos(30_000);
const WOKEN: Nanos = Nanos(120_000);
const SLEEPS_AFTER: Nanos = Nanos(1_000_000);

/// What waits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Thread(u32),
    /// A disk's reader.
    Reader(usize, usize),
}

/// A request in flight.
#[derive(Debug)]
struct Under {
    pages: Pages,
    waiters: Vec<Waiter>,
}

/// Disks and page cache.
pub(super) struct Storage<'a> {
    pub cache: PageCache,
    places: &'a Places,
    drives: Vec<ClockedDrive>,
    /// By disk: whether it has an arm.
    arms: Vec<bool>,
    under: Vec<Under>,
    /// Requests that have ended: when the host goes on with them, and their tags.
    ended: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// Number of requests, and of the pages that they bring.
    pub requests: u64,
    pub pages: u64,
}

impl<'a> Storage<'a> {
    /// `drives`: each with whether it has an arm.
    pub fn new(cache: PageCache, places: &'a Places, drives: Vec<(Drive, bool)>) -> Self {
        let (drives, arms): (Vec<_>, _) =
            drives.into_iter().map(|(drive, arm)| (ClockedDrive::new(drive), arm)).unzip();
        Self { cache, places, drives, arms, under: Vec::new(), ended: BinaryHeap::new(), requests: 0, pages: 0 }
    }

    /// When the next request ends, the host goes on with one, or a scheduler wants to be called.
    pub fn next_event(&self) -> Option<Nanos> {
        let ended = self.ended.peek().map(|Reverse((at, _))| *at);
        self.drives.iter().filter_map(ClockedDrive::next_event).chain(ended).min()
    }

    /// Completes requests up to `now`; calls `each` for the waiters of what the host goes on with, once per request.
    pub fn advance(&mut self, now: Nanos, each: &mut dyn FnMut(Waiter)) {
        let ended = &mut self.ended;
        for (drive, arm) in self.drives.iter_mut().zip(&self.arms) {
            drive.advance(now, |finished| ended.push(heard(*arm, &finished)));
        }
        while let Some(Reverse((_, tag))) = self.ended.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.ended.pop();
            let under = &mut self.under[tag as usize];
            for page in under.pages.first..under.pages.end() {
                self.cache.set(under.pages.file, page, State::Cached);
            }
            std::mem::take(&mut under.waiters).into_iter().for_each(&mut *each);
        }
    }

    /// Requests the absent ones of `pages`.
    pub fn fetch(&mut self, now: Nanos, pages: &Pages) {
        let disk = self.places.disk_of[pages.file as usize];
        let most = self.places.disks[disk].request_bytes_max / PAGE_BYTES;
        let mut piece: Option<(u64, Pages)> = None;
        for page in pages.first..pages.end() {
            if self.cache.state(pages.file, page).is_some() {
                continue;
            }
            let Some(at) = self.places.page(pages.file, page) else {
                // A hole needs no request.
                self.cache.set(pages.file, page, State::Cached);
                continue;
            };
            match &mut piece {
                Some((first, run))
                    if run.end() == page && *first + u64::from(run.count) == at && u64::from(run.count) < most =>
                {
                    run.count += 1;
                }
                other => {
                    if let Some((first, run)) = other.replace((at, Pages { file: pages.file, first: page, count: 1 })) {
                        self.submit(now, disk, first, run);
                    }
                }
            }
        }
        if let Some((first, run)) = piece {
            self.submit(now, disk, first, run);
        }
    }

    fn submit(&mut self, now: Nanos, disk: usize, at: u64, pages: Pages) {
        let tag = self.under.len() as u64;
        for page in pages.first..pages.end() {
            self.cache.set(pages.file, page, State::Coming(tag as u32));
        }
        self.requests += 1;
        self.pages += u64::from(pages.count);
        let request = Request::read(at * PAGE_SECTORS, pages.count * PAGE_SECTORS as u32, tag);
        self.under.push(Under { pages, waiters: Vec::new() });
        let (ended, arm) = (&mut self.ended, self.arms[disk]);
        self.drives[disk].submit(now, request, |finished| ended.push(heard(arm, &finished)));
    }

    /// Makes `waiter` wait for all requests that bring `pages`. Returns their number.
    pub fn wait(&mut self, waiter: Waiter, pages: &[Pages]) -> usize {
        let requests: std::collections::BTreeSet<u32> =
            pages.iter().flat_map(|pages| self.cache.coming(pages)).collect();
        requests.iter().for_each(|request| self.under[*request as usize].waiters.push(waiter));
        requests.len()
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
            let finished =
                Finished { request, arrived: Nanos(5_000), service_time, response_time, buffer_hit: took_us < 1000 };
            let Reverse((at, tag)) = heard(arm, &finished);
            assert_eq!(tag, 7);
            (at - finished.arrived - response_time).0 / 1000
        };
        assert_eq!([170, 999, 1000, 6000].map(|took_us| after_us(true, took_us)), [30, 30, 120, 120]);
        assert_eq!([170, 6000].map(|took_us| after_us(false, took_us)), [0, 0]);
    }
}
