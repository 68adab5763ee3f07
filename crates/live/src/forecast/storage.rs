//! The simulated disks under the page cache: what is absent is requested, in pieces that lie together, and waited for.

use headstart_device::{Drive, Finished, Request, SECTOR_BYTES};
use headstart_types::Nanos;

use super::memory::{PageCache, State};
use super::places::Places;
use super::program::Pages;
use crate::emulate::ClockedDrive;
use crate::hints::list::PAGE_BYTES;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// What waits for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    Thread(u32),
    /// A disk's reader.
    Reader(usize, usize),
}

/// A request under way.
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
    under: Vec<Under>,
    /// Tags of requests that have ended.
    ended: Vec<u64>,
    /// Requests, and pages that they bring.
    pub requests: u64,
    pub pages: u64,
}

impl<'a> Storage<'a> {
    pub fn new(cache: PageCache, places: &'a Places, drives: Vec<Drive>) -> Self {
        let drives = drives.into_iter().map(ClockedDrive::new).collect();
        Self { cache, places, drives, under: Vec::new(), ended: Vec::new(), requests: 0, pages: 0 }
    }

    /// When a request ends next, or a scheduler wants to be asked.
    pub fn next_event(&self) -> Option<Nanos> {
        self.drives.iter().filter_map(ClockedDrive::next_event).min()
    }

    /// Lets what ends up to `now` end; those that waited for it are given to `each`, once for each request.
    pub fn advance(&mut self, now: Nanos, each: &mut dyn FnMut(Waiter)) {
        let ended = &mut self.ended;
        self.drives
            .iter_mut()
            .for_each(|drive| drive.advance(now, |finished: Finished| ended.push(finished.request.tag)));
        for tag in std::mem::take(&mut self.ended) {
            let under = &mut self.under[tag as usize];
            for page in under.pages.first..under.pages.end() {
                self.cache.set(under.pages.file, page, State::Cached);
            }
            std::mem::take(&mut under.waiters).into_iter().for_each(&mut *each);
        }
    }

    /// Requests what is absent of `pages`.
    pub fn fetch(&mut self, now: Nanos, pages: &Pages) {
        let disk = self.places.disk_of[pages.file as usize];
        let most = self.places.disks[disk].request_bytes_max / PAGE_BYTES;
        let mut piece: Option<(u64, Pages)> = None;
        for page in pages.first..pages.end() {
            if self.cache.state(pages.file, page).is_some() {
                continue;
            }
            let Some(at) = self.places.page(pages.file, page) else {
                // Of a hole zeros are made.
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
        let ended = &mut self.ended;
        self.drives[disk].submit(now, request, |finished| ended.push(finished.request.tag));
    }

    /// `waiter` waits for all requests that bring `pages`. Returns how many there are.
    pub fn wait(&mut self, waiter: Waiter, pages: &[Pages]) -> usize {
        let requests: std::collections::BTreeSet<u32> =
            pages.iter().flat_map(|pages| self.cache.coming(pages)).collect();
        requests.iter().for_each(|request| self.under[*request as usize].waiters.push(waiter));
        requests.len()
    }
}
