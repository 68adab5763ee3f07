//! `linux-2.6.10` and `linux-2.6.16` against second implementations that follow the kernel: wrapping numbers, values
//! that mean "off" or "none", every page processed by itself, sets of blocks for the cache. Blocks arrive late and are
//! evicted at random.

use std::collections::{BTreeMap, BTreeSet};

use headstart_policy::readahead::{Asked, Cached, Found, ReadAhead, Run};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::named;

const MAX: u64 = 32;
const MIN: u64 = 4;
const OFF: u64 = u64::MAX;
const BLOCKS: u64 = 700;

/// Blocks by file; whether each has arrived.
#[derive(Default)]
struct Pages(BTreeMap<(u32, u64), bool>);

impl Cached for Pages {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.0.contains_key(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.0.get(&(file, index)) == Some(&true)
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        Some(BLOCKS)
    }

    fn frames(&self) -> u32 {
        10_000
    }
}

/// A queue with this limit of requests; 0: unlimited.
#[derive(Default)]
struct Queue {
    size: usize,
    first_blocks: BTreeSet<(u32, u64)>,
    full: bool,
}

impl Queue {
    fn is_full(&mut self, pages: &Pages) -> bool {
        if self.size == 0 {
            return false;
        }
        self.first_blocks.retain(|(file, index)| !pages.is_resident(*file, *index));
        let (eighth, sixteenth) = (self.size / 8, self.size / 16);
        let (on, off) = ((self.size - eighth + 1).min(self.size), (self.size - eighth - sixteenth).max(2) - 1);
        let limit = if self.full { off } else { on };
        self.full = self.first_blocks.len() >= limit;
        self.full
    }
}

/// What one page of a request may see and do.
struct View<'a> {
    file: u32,
    pages: &'a Pages,
    queue: &'a mut Queue,
    /// Blocks that this request's windows read, and the first block of each window that reads any.
    reads: BTreeSet<u64>,
    begins: BTreeSet<u64>,
}

impl View<'_> {
    fn has(&self, index: u64) -> bool {
        self.pages.is_cached(self.file, index) || self.reads.contains(&index)
    }

    fn read(&mut self, start: u64, size: u64) -> usize {
        let new: Vec<u64> = (start..start + size).filter(|index| *index < BLOCKS && !self.has(*index)).collect();
        self.begins.extend(new.first());
        self.reads.extend(&new);
        new.len()
    }
}

trait Kernel: Default {
    const NAME: &'static str;
    fn request(&mut self, first: u64, count: u64, view: &mut View<'_>);
}

#[derive(Default)]
struct Naive10 {
    opened: bool,
    window: (u64, u64),
    /// 0: none; so is a window that begins at 0.
    ahead: (u64, u64),
    next: u64,
    previous: u64,
    hits: u64,
    average: u64,
}

impl Naive10 {
    fn expected(&self) -> u64 {
        self.average.max((self.hits + self.average).div_ceil(2))
    }

    fn nothing_read(&mut self, before: u64) {
        if before > 1 {
            self.next = before - 1;
            if self.ahead.1 > 0 {
                self.ahead.1 = self.next;
            }
        } else {
            (self.next, self.window.1) = (OFF, 0);
        }
    }

    fn turn(&mut self, page: u64, view: &mut View<'_>) {
        let (before, first) = (self.next, self.next == 0);
        if self.next == OFF || page == self.previous && !first {
            return;
        }
        self.previous = page;
        let (start, end) = (self.window.0, self.window.0.wrapping_add(self.window.1));
        if first {
            (self.next, self.hits) = (MAX / 2, 1);
        } else {
            let near = page >= start && page <= end;
            self.next = if near { self.next.wrapping_add(2) } else { self.next.wrapping_sub(2) };
            if near {
                self.hits = (self.hits + 1).min(2 * MAX + 1);
            } else {
                self.average = (self.average + u64::from(self.average < self.hits) + self.hits) / 2;
                self.hits = 1;
            }
            // Large numbers are negative ones.
            if self.next == 0 || self.next > OFF / 2 {
                (self.next, self.window.1) = (OFF, 0);
                return;
            }
            self.next = self.next.min(MAX);
            if page >= start && page < end {
                if self.ahead.0 == 0 && self.expected() > MAX {
                    self.ahead = (end, self.next);
                    if view.queue.is_full(view.pages) || view.read(end, self.next) == 0 {
                        self.nothing_read(before);
                    }
                }
                return;
            }
            if self.ahead.0 == page && page > 0 {
                self.window = std::mem::take(&mut self.ahead);
                return;
            }
            self.next = self.expected().min(MAX);
        }
        (self.window, self.ahead) = ((page, self.next), (0, 0));
        let nothing = view.queue.is_full(view.pages) || view.read(page, self.next) == 0;
        if nothing && !first {
            self.nothing_read(before);
        }
    }

    fn absent(&mut self, page: u64) {
        if self.next != OFF {
            self.next = self.next.wrapping_sub(3);
            if self.next < MIN {
                self.next = MIN;
            }
            return;
        }
        let in_order = page == self.previous.wrapping_add(1);
        self.window.1 = if in_order { self.window.1 + 1 } else { self.window.1.saturating_sub(1) };
        self.previous = page;
        if in_order && self.window.1 >= MAX {
            // Windows before the start of the file wrap there; no page is in them.
            (self.window, self.ahead) = ((page.wrapping_sub(MAX), MAX), (0, 0));
            (self.next, self.average) = (MAX, MAX / 2);
        }
    }
}

impl Kernel for Naive10 {
    const NAME: &'static str = "linux-2.6.10";

    fn request(&mut self, first: u64, count: u64, view: &mut View<'_>) {
        if first == 0 || !self.opened {
            *self = Self { opened: true, average: MAX / 2, ..Self::default() };
        }
        for page in first..first + count {
            self.turn(page, view);
            if !view.has(page) {
                self.absent(page);
            }
        }
    }
}

struct Naive16 {
    window: (u64, u64),
    ahead: (u64, u64),
    /// One after it is the page that goes on; at first that is page 0.
    previous: u64,
    cached: u64,
    missed: bool,
    quiet: bool,
}

impl Default for Naive16 {
    fn default() -> Self {
        Self { window: (0, 0), ahead: (0, 0), previous: OFF, cached: 0, missed: false, quiet: false }
    }
}

impl Naive16 {
    fn off(&mut self) {
        *self = Self { previous: self.previous, cached: self.cached, ..Self::default() };
    }

    fn read(&mut self, (start, size): (u64, u64), waits: bool, view: &mut View<'_>) -> bool {
        if !waits && view.queue.is_full(view.pages) {
            return false;
        }
        self.cached = if view.read(start, size) == 0 { self.cached + size } else { 0 };
        if self.cached >= 256 {
            self.off();
            self.quiet = true;
        }
        !self.quiet
    }

    fn look_ahead(&mut self, forced: bool, view: &mut View<'_>) -> bool {
        let size = match (self.missed, self.window.1) {
            (true, size) => MIN.max(size.saturating_sub(2)),
            (false, 1) => 4,
            (false, size) => (2 * size).min(MAX),
        };
        self.missed = false;
        self.ahead = (self.window.0 + self.window.1, size);
        let done = self.read(self.ahead, forced || self.previous >= self.ahead.0, view);
        if !done && !forced {
            self.ahead = (0, 0);
        }
        done
    }

    /// Returns where it must be called again.
    fn ask(&mut self, mut page: u64, mut count: u64, view: &mut View<'_>) -> u64 {
        if page == self.previous {
            count -= 1;
            page += u64::from(count > 0);
        }
        let goes_on = page == self.previous.wrapping_add(1);
        self.previous = page;
        if count == 0 || self.quiet {
            return page + 1;
        }
        let pages = count.min(MAX);
        self.previous = page + pages - 1;
        if !goes_on {
            self.off();
            self.read((page, pages), true, view);
        } else if self.window.1 == 0 {
            self.window = (page, if pages > 8 { 32 } else { 8 });
            if self.read(self.window, true, view) && count >= MAX {
                self.look_ahead(true, view);
            }
        } else {
            let has_ahead = self.ahead.0 > 0 || self.look_ahead(false, view);
            if has_ahead && self.previous >= self.ahead.0 {
                self.window = self.ahead;
                self.look_ahead(false, view);
            }
        }
        self.previous + 1
    }
}

impl Kernel for Naive16 {
    const NAME: &'static str = "linux-2.6.16";

    fn request(&mut self, first: u64, count: u64, view: &mut View<'_>) {
        if first == 0 {
            *self = Self::default();
        }
        let mut next = first;
        for page in first..first + count {
            if page == next {
                next = self.ask(page, first + count - page, view);
            }
            if !view.has(page) {
                (self.missed, self.quiet, self.cached) = (true, false, 0);
            }
        }
    }
}

/// Where a request begins: a little after the last of its file, or anywhere.
#[derive(Debug, Clone)]
enum Step {
    On {
        file: u32,
        skip: u64,
        count: u32,
    },
    To {
        file: u32,
        first: u64,
        count: u32,
    },
    /// All blocks in flight arrive.
    Come,
    /// Blocks are evicted.
    Leave {
        first: u64,
        count: u64,
    },
}

fn steps(leave: u32) -> impl Strategy<Value = Vec<Step>> {
    let skip = || prop_oneof![8 => Just(0u64), 1 => 0u64..6];
    let count = || prop_oneof![4 => 1u32..6, 2 => 6u32..40, 1 => 40u32..100];
    let step = prop_oneof![
        12 => (0u32..3, skip(), count()).prop_map(|(file, skip, count)| Step::On { file, skip, count }),
        3 => (0u32..3, 0u64..600, 1u32..5).prop_map(|(file, first, count)| Step::To { file, first, count }),
        3 => Just(Step::Come),
        leave => (0u64..600, 1u64..200).prop_map(|(first, count)| Step::Leave { first, count }),
    ];
    prop::collection::vec(step, 1..120)
}

/// One request to the read-ahead; returns the uncached blocks that it reads.
fn real(policy: &mut dyn ReadAhead, pages: &Pages, asked: &Asked) -> BTreeSet<u64> {
    let found = |index| match pages.0.get(&(asked.file, index)) {
        None => Found::Absent,
        Some(true) => Found::Ready,
        Some(false) => Found::Unready,
    };
    let found: Vec<Found> = (asked.first..asked.end()).map(found).collect();
    let mut runs: Vec<Run> = Vec::new();
    policy.asked(Nanos::ZERO, asked, &found, pages, &mut runs);
    runs.iter().flat_map(|run| run.first..run.end()).filter(|index| !pages.is_cached(asked.file, *index)).collect()
}

fn same<K: Kernel>(steps: Vec<Step>, queue: usize) -> Result<(), TestCaseError> {
    let mut policy = named(K::NAME, &format!("read_ahead = \"128KiB\"\nnr_requests = {queue}"));
    let mut kernels: BTreeMap<u32, K> = BTreeMap::new();
    let mut queue = Queue { size: queue, ..Queue::default() };
    let (mut pages, mut ends) = (Pages::default(), BTreeMap::<u32, u64>::new());
    for step in steps {
        let (file, first, count) = match step {
            Step::Come => {
                pages.0.values_mut().for_each(|here| *here = true);
                continue;
            }
            Step::Leave { first, count } => {
                pages.0.retain(|(_, index), _| !(first..first + count).contains(index));
                continue;
            }
            Step::On { file, skip, count } => (file, ends.get(&file).copied().unwrap_or(0) + skip, count),
            Step::To { file, first, count } => (file, first, count),
        };
        if first >= BLOCKS {
            ends.remove(&file);
            continue;
        }
        let count = u64::from(count).min(BLOCKS - first);
        ends.insert(file, first + count);
        let asked = Asked { file, first, count: count as u32, client: 0, ends_inside: false };
        let found = real(&mut *policy, &pages, &asked);
        let (reads, begins) = (BTreeSet::new(), BTreeSet::new());
        let mut view = View { file, pages: &pages, queue: &mut queue, reads, begins };
        kernels.entry(file).or_default().request(first, count, &mut view);
        let (reads, mut begins) = (view.reads, view.begins);
        prop_assert_eq!(&found, &reads, "{} {:?}", K::NAME, asked);
        let absent = |index: &u64| !pages.is_cached(file, *index) && !reads.contains(index);
        let demanded: Vec<u64> = (first..first + count).filter(absent).collect();
        begins.extend(demanded.first());
        queue.first_blocks.extend(begins.iter().map(|index| (file, *index)));
        for index in demanded.into_iter().chain(reads) {
            pages.0.insert((file, index), false);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn linux_2_6_10_is_its_naive_model(steps in steps(2)) {
        same::<Naive10>(steps, 0)?;
    }

    #[test]
    fn linux_2_6_16_is_its_naive_model(steps in steps(2)) {
        same::<Naive16>(steps, 0)?;
    }

    // Without evictions: an evicted block that is read again is the one thing that the two count differently.
    #[test]
    fn both_are_with_a_queue_that_fills(steps in steps(0), queue in 1usize..20) {
        same::<Naive10>(steps.clone(), queue)?;
        same::<Naive16>(steps, queue)?;
    }
}
