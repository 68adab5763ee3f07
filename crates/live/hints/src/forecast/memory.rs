//! The page cache: a level of the engine without bound, over simulated disks. The kernel's read-ahead decides what is
//! read besides what is needed; an open file is identified by thread and file.

use headstart_engine::{Ask, Level};
use headstart_policy::readahead::{Asked, Cached, Found, Linux, ReadAhead, Run};
use headstart_policy::replacement::Lru;
use headstart_policy::{BlockMap, BlockState, RequestPolicy, SeparateReadAhead};
use headstart_types::{Block, Nanos, NEVER};

use super::disks::{Disk, Disks};
use super::places::Places;
use crate::list::HintList;
use crate::universe::Universe;

/// The pages in memory and those on their way.
struct PageCache<'a> {
    level: Level,
    /// The pages that were named so far, as the level's blocks.
    pages: Universe,
    places: &'a Places,
}

impl PageCache<'_> {
    fn state(&self, file: u32, page: u64) -> BlockState {
        self.pages.known(file, page).map_or(BlockState::ABSENT, |block| self.level.state(block))
    }
}

impl Cached for PageCache<'_> {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        !self.state(file, index).is_absent()
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.state(file, index).is_resident()
    }

    fn frames(&self) -> u32 {
        self.level.frames()
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.places.pages_of[file as usize]
    }
}

/// The memory of the simulated machine and what fills it.
pub(super) struct Memory<'a> {
    cache: PageCache<'a>,
    /// By disk: the kernel's read-ahead.
    kernels: Vec<Linux>,
    pub disks: Disks,
}

impl<'a> Memory<'a> {
    /// `cached`: the pages that are there at the start.
    pub fn new(
        places: &'a Places,
        cached: impl Iterator<Item = (u32, u64)>,
        kernels: Vec<Linux>,
        disks: Vec<Disk>,
    ) -> Self {
        let mut pages = Universe::new(&HintList::default(), places.disk_of.clone(), &[]);
        let cached: Vec<Block> = cached.map(|(file, page)| pages.add(file, page)).collect();
        let disk_of: Vec<_> = pages.disks().collect();
        let policy = SeparateReadAhead(Box::new(Lru::new(&cached, cached.len())), None);
        let policy = RequestPolicy::new(Box::new(policy), u32::MAX);
        let level = Level::new(Box::new(policy), u32::MAX, &cached, &disk_of, disks.len());
        // Nothing is evicted, so they are never read.
        let disks = Disks::new(disks, vec![None; cached.len()]);
        Self { cache: PageCache { level, pages, places }, kernels, disks }
    }

    /// Where the pages lie.
    pub fn places(&self) -> &'a Places {
        self.cache.places
    }

    /// Whether it is there or on its way.
    pub fn is_cached(&self, file: u32, page: u64) -> bool {
        self.cache.is_cached(file, page)
    }

    /// The pages of `run` that are neither there nor on their way.
    pub fn absent<'b>(&'b self, run: &'b Run) -> impl Iterator<Item = u64> + 'b {
        (run.first..run.end()).filter(|page| !self.is_cached(run.file, *page))
    }

    /// Whether any of `run` is there.
    pub fn has_any(&self, run: &Run) -> bool {
        (run.first..run.end()).any(|page| self.cache.is_resident(run.file, page))
    }

    fn kernel(&mut self, file: u32) -> (&mut Linux, &PageCache<'a>) {
        (&mut self.kernels[self.cache.places.disk_of[file as usize].index()], &self.cache)
    }

    /// What the kernel reads when `thread` reads `run`: this run and more, ascending.
    pub fn read(&mut self, thread: u32, run: Run) -> Vec<Run> {
        let (linux, cache) = self.kernel(run.file);
        let found = |page| match cache.state(run.file, page) {
            state if state.is_absent() => Found::Absent,
            state if state.is_resident() => Found::Ready,
            _ => Found::Unready,
        };
        let found: Vec<Found> = (run.first..run.end()).map(found).collect();
        let mut runs = vec![run];
        linux.asked(Nanos::ZERO, &asked(run, thread), &found, cache, &mut runs);
        joined(runs)
    }

    /// What the kernel reads when `thread` touches the page `run`, which is mapped.
    pub fn fault(&mut self, thread: u32, run: Run) -> Vec<Run> {
        let (linux, cache) = self.kernel(run.file);
        let mut runs = vec![run];
        linux.fault(&asked(run, thread), cache.places.text_end(run.file, run.first), cache, &mut runs);
        joined(runs)
    }

    /// `thread` has mapped `run` at once.
    pub fn mapped(&mut self, thread: u32, run: &Run) {
        self.kernel(run.file).0.mapped(run.file, thread, run.count);
    }

    /// Reads the absent pages of `runs`.
    pub fn fetch(&mut self, now: Nanos, runs: &[Run]) {
        let blocks = self.blocks(runs);
        self.cache.level.expect(now, &blocks, &self.cache.pages, &mut self.disks);
        self.fill_holes(now);
    }

    /// Reads the absent pages of `runs` and of the `ahead` pages behind the first. Whether `waiter` has to wait for
    /// `runs`; if so, [`Memory::advance`] says when they are there.
    pub fn request(&mut self, now: Nanos, waiter: u64, runs: &[Run], ahead: u32) -> bool {
        let blocks = self.blocks(runs);
        self.blocks(&[Run { first: runs[0].end(), count: ahead, ..runs[0] }]);
        let asked = Asked { count: blocks.len() as u32 + ahead, ..asked(runs[0], 0) };
        let (write, quiet, position, compute) = (false, false, NEVER, Nanos::ZERO);
        let ask = Ask { id: waiter, asked, blocks: &blocks, write, quiet, position, compute };
        let found = self.cache.level.request(now, &ask, &self.cache.pages, &mut self.disks);
        self.fill_holes(now).is_empty() && found.waits()
    }

    /// The blocks of these pages.
    fn blocks(&mut self, runs: &[Run]) -> Vec<Block> {
        let PageCache { pages, places, .. } = &mut self.cache;
        let each = runs.iter().flat_map(|run| (run.first..run.end()).map(|page| (run.file, page)));
        let block = |(file, page)| {
            let block = pages.add(file, page);
            if block.index() == self.disks.addresses.len() {
                self.disks.addresses.push(places.page(file, page));
            }
            block
        };
        each.map(block).collect()
    }

    /// Completes requests up to `now`. Returns who waits no longer.
    pub fn advance(&mut self, now: Nanos) -> Vec<u64> {
        while let Some(blocks) = self.disks.ended(now) {
            self.arrived(now, blocks);
        }
        self.take_done()
    }

    /// Holes are there at once. Returns who waits no longer.
    fn fill_holes(&mut self, now: Nanos) -> Vec<u64> {
        let holes = std::mem::take(&mut self.disks.holes);
        self.arrived(now, holes);
        self.take_done()
    }

    fn arrived(&mut self, now: Nanos, blocks: Vec<Block>) {
        blocks.into_iter().for_each(|block| self.cache.level.arrived(now, block, None, &self.cache.pages));
    }

    fn take_done(&mut self) -> Vec<u64> {
        let mut done = Vec::new();
        self.cache.level.take_done(&mut done);
        done
    }
}

fn asked(run: Run, client: u32) -> Asked {
    Asked { file: run.file, first: run.first, count: run.count, client, ends_inside: false }
}

/// Merges these runs of one file into contiguous ones.
fn joined(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_unstable_by_key(|run| (run.first, run.end()));
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.last_mut().filter(|last| run.first <= last.end()) {
            Some(last) => last.count = (last.end().max(run.end()) - last.first) as u32,
            None => joined.push(run),
        }
    }
    joined
}
