//! Hints for a host that does its own reads, such as a block server: the host reports which pages its clients
//! reference, and receives the pages to read ahead.
//!
//! All decisions are those for a command (`conductor.rs`: when hints are confirmed, how fast they are followed, when to
//! stop), on the pages of one file without an inode. The watched level is the first one of the host's own machine, above
//! the levels that its clients request from; the host does the reading. A read here is a run of consecutive pages; the
//! host may split it in any way, and reports each page when it arrives.
//!
//! Cost: constant per page, plus the policy's. Memory: some 100 bytes per hinted page, with those of the host's machine.

use std::ops::Range;
use std::time::Duration;

use headstart_engine::{NoSupply, System, Tier};
use headstart_host::mailbox::Mailbox;
use headstart_policy::registry::PolicyRow;
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk as DiskNumber, KeyError, Nanos};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use super::conductor::{Conductor, Plan, Trust};
use super::disk::{Done, Why};
use super::guard::ALL_CACHED;
use super::list::{HintList, HintedFile, HintedRange, PAGE_BYTES};
use super::machine::{Machine, Setting};
use super::queue::Work;
use super::report::Report;
use super::trace::{By, Seen};
use super::universe::{HintedSpace, Universe};
use super::waiting::Waiting;

/// Pages prefetched and not yet used before any has been used: the cost of hints that turn wrong at once. A guess.
const FRAMES_MIN: u32 = 256;
/// Additional pages for each page used.
const GROWTH: u32 = 8;
/// Polling interval while reads wait for hints to be confirmed or to prove right again.
const LOOK_EVERY: Nanos = Nanos(10_000_000);
/// The only file.
const FILE: (u64, u64) = (0, 0);

/// The requests that a host expects.
#[derive(Clone)]
pub struct Expected {
    /// The policy.
    pub row: &'static PolicyRow,
    /// Its keys.
    pub keys: Table,
    /// Pages, in order of reference; a page may recur.
    pub pages: Vec<Range<u64>>,
    /// How long the recorded requests took; zero if unknown.
    pub elapsed: Nanos,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Maximum pages prefetched and not yet used.
    pub budget_pages: u64,
}

/// Prefetch statistics. Sizes are in whole pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FollowReport {
    /// The policy.
    pub policy: &'static str,
    /// Bytes that the hints name, each page counted once.
    #[schemars(extend("x-metric" = "gauge"))]
    pub hinted_bytes: u64,
    /// Maximum of prefetched but unused data.
    #[schemars(extend("x-metric" = "gauge"))]
    pub budget_bytes: u64,
    /// Prefetched bytes.
    pub prefetched_bytes: u64,
    /// The part of `prefetched_bytes` that clients have read.
    pub used_bytes: u64,
    /// The part of `used_bytes` that clients requested before the prefetch was complete.
    pub late_bytes: u64,
    /// The part of `prefetched_bytes` that clients have not read.
    #[schemars(extend("x-metric" = "gauge"))]
    pub wasted_bytes: u64,
    /// The part of `hinted_bytes` that needed no prefetch, because it was cached or already being read.
    pub cached_bytes: u64,
    /// Why prefetching stopped early. Null if it did not.
    pub stopped: Option<String>,
}

/// A read that was handed to the host.
struct Reading {
    since: Nanos,
    missing: u32,
    read: Vec<Block>,
    unneeded: Vec<Block>,
}

/// The recording of a command that reads `pages` of the only file.
fn list(pages: Vec<Range<u64>>) -> HintList {
    let file =
        HintedFile { path: "".into(), identity: FILE, is_device: false, size: None, mtime_ns: None, came_pages: 0 };
    let range =
        |Range { start, end }| HintedRange { first: start, count: (end - start) as u32, ..HintedRange::default() };
    HintList { files: vec![file], ranges: pages.into_iter().map(range).collect(), ..HintList::default() }
}

/// Hints that a policy can follow, for a machine that is not built yet.
pub struct Prepared {
    row: &'static PolicyRow,
    setting: Setting,
    tier: Tier,
    pages: Vec<u64>,
    page_bytes: u64,
    hinted_pages: u64,
    budget_pages: u64,
}

impl Prepared {
    /// The level of `expected`.
    ///
    /// # Errors
    /// The policy does not work from hints, or one of its keys is wrong.
    pub fn try_new(expected: Expected) -> Result<Self, KeyError> {
        let Expected { row, keys, pages, elapsed, page_bytes, budget_pages } = expected;
        let list = HintList { elapsed_ns: elapsed.0, ..list(pages) };
        let plan = Plan { row, keys, budget_bytes: budget_pages.saturating_mul(PAGE_BYTES), trust: Trust::SameCommand };
        let mut setting = plan.setting(&list, 1, false)?;
        setting.frames_min = FRAMES_MIN.min(setting.frames_max);
        setting.growth = GROWTH;
        let universe = Universe::new(&list, vec![DiskNumber(0)], &[]);
        let pages: Vec<u64> = (0..universe.hinted() as u32).map(|block| universe.place(Block(block)).1).collect();
        let tier = setting.tier(&vec![DiskNumber(0); pages.len()])?;
        Ok(Self { row, setting, tier, pages, page_bytes, hinted_pages: list.pages(), budget_pages })
    }

    /// The hinted pages, each once, in the order of need: they are the first blocks of the machine's space.
    #[must_use]
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }

    /// The state before the first reference; `system` makes a machine with the given level as its first.
    #[must_use]
    pub fn follow<S: HintedSpace>(self, system: impl FnOnce(Tier) -> System<Mailbox, S, NoSupply>) -> Follower<S> {
        let Self { row, setting, tier, page_bytes, hinted_pages, budget_pages, .. } = self;
        let machine = Machine::over(system(tier), &setting);
        let reads = Waiting::new(&[false], vec![false], false);
        let budget_bytes = budget_pages.saturating_mul(PAGE_BYTES);
        Follower {
            conductor: Conductor::new(machine, reads, budget_bytes, Trust::SameCommand),
            row,
            page_bytes,
            hinted_pages,
            budget_pages,
            reading_of: FxHashMap::default(),
            readings: FxHashMap::default(),
            next_reading: 0,
            looked: Nanos::ZERO,
        }
    }
}

/// Follows the clients through their hints, in a machine whose first level is the watched one.
pub struct Follower<S> {
    conductor: Conductor<Waiting, S>,
    row: &'static PolicyRow,
    page_bytes: u64,
    hinted_pages: u64,
    budget_pages: u64,
    /// By page that the host must read: the read that it belongs to.
    reading_of: FxHashMap<u64, (u64, Block)>,
    readings: FxHashMap<u64, Reading>,
    next_reading: u64,
    looked: Nanos,
}

impl<S: HintedSpace> Follower<S> {
    /// The machine.
    #[must_use]
    pub fn system(&self) -> &System<Mailbox, S, NoSupply> {
        &self.conductor.machine.system
    }

    /// The machine, for the requests of clients.
    pub fn system_mut(&mut self) -> &mut System<Mailbox, S, NoSupply> {
        &mut self.conductor.machine.system
    }

    /// A client references `pages`, which must not be empty.
    pub fn referenced(&mut self, now: Nanos, pages: Range<u64>) {
        let seen = Seen { file: FILE, first: pages.start, last: pages.end - 1, by: By::Use };
        self.conductor.referenced(now, seen);
    }

    /// A client has received pages that it referenced: the time from here to its next reference is its own.
    pub fn answered(&mut self, now: Nanos) {
        self.conductor.machine.answered(now);
    }

    /// Appends the pages to read ahead from now on, one run per read. For each page the host then calls
    /// [`Follower::arrived`] or [`Follower::unneeded`].
    pub fn act(&mut self, now: Nanos, runs: &mut Vec<Range<u64>>) {
        self.looked = now;
        if self.conductor.stopped.is_none() {
            self.conductor.act(now);
        }
        while let Some(work) = self.conductor.queues.choose(0) {
            match work {
                Work::Place(file, blocks) => {
                    self.conductor.queues.queues[0].place(file, blocks, Some);
                }
                Work::Read(piece, _) => {
                    let number = self.next_reading;
                    self.next_reading += 1;
                    for placed in &piece.pages {
                        self.reading_of.insert(placed.page, (number, placed.block));
                    }
                    let missing = piece.pages.len() as u32;
                    let reading = Reading { since: now, missing, read: Vec::new(), unneeded: Vec::new() };
                    self.readings.insert(number, reading);
                    runs.push(piece.first()..piece.first() + u64::from(missing));
                }
            }
        }
    }

    /// When [`Follower::act`] is due even if nothing happens.
    #[must_use]
    pub fn next_look(&self) -> Option<Nanos> {
        let waits = !self.conductor.queues.stopped && !self.conductor.queues.queues[0].is_empty();
        waits.then(|| self.looked + LOOK_EVERY)
    }

    /// A page has been read, or could not be read. Pages that were not to be read ahead are ignored.
    pub fn arrived(&mut self, now: Nanos, page: u64) {
        self.ended(now, page, true);
    }

    /// A page need not be read: the host has it already, or has no room for it.
    pub fn unneeded(&mut self, now: Nanos, page: u64) {
        self.ended(now, page, false);
    }

    fn ended(&mut self, now: Nanos, page: u64, read: bool) {
        let Some((number, block)) = self.reading_of.remove(&page) else { return };
        let Some(reading) = self.readings.get_mut(&number) else { return };
        reading.missing -= 1;
        if read { &mut reading.read } else { &mut reading.unneeded }.push(block);
        if reading.missing > 0 {
            return;
        }
        let Some(Reading { since, read, unneeded, .. }) = self.readings.remove(&number) else { return };
        self.conductor.queues.queues[0].read(false);
        if !unneeded.is_empty() {
            self.conductor.heard(now, Done::Unneeded(unneeded, Why::Cached));
        }
        if !read.is_empty() {
            self.conductor.heard(now, Done::Read(read, Duration::from_nanos((now - since).0), 0));
        }
    }

    /// Why prefetching has stopped, if it has.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        let why = self.conductor.stopped?;
        let why = if why == ALL_CACHED { "there is nothing to prefetch: the pages are in the cache" } else { why };
        Some(why.replace("the command does", "clients do"))
    }

    /// The statistics so far.
    #[must_use]
    pub fn report(&self) -> FollowReport {
        let mut counted = Report::new(self.row.name);
        self.conductor.fill(&mut counted);
        let bytes = |bytes: u64| bytes / PAGE_BYTES * self.page_bytes;
        FollowReport {
            policy: self.row.name,
            hinted_bytes: self.hinted_pages * self.page_bytes,
            budget_bytes: self.budget_pages * self.page_bytes,
            prefetched_bytes: bytes(counted.prefetched_bytes),
            used_bytes: bytes(counted.used_bytes),
            late_bytes: bytes(counted.late_bytes),
            wasted_bytes: bytes(counted.wasted_bytes),
            cached_bytes: bytes(counted.cached_bytes),
            stopped: self.stopped(),
        }
    }
}

#[cfg(test)]
mod tests {
    use headstart_engine::Stack;
    use headstart_policy::registry::policy;

    use super::super::machine::MODE;
    use super::*;

    fn follower(pages: &[Range<u64>]) -> Follower<Universe> {
        let expected = Expected {
            row: policy("just-in-time").expect("it is registered"),
            keys: Table::new(),
            pages: pages.to_vec(),
            elapsed: Nanos::from_millis(1_000),
            page_bytes: 4096,
            budget_pages: 1024,
        };
        let space = Universe::new(&list(pages.to_vec()), vec![DiskNumber(0)], &[]);
        Prepared::try_new(expected).expect("it works from hints").follow(|tier| {
            let mailbox = Mailbox::of_levels(Some(0), None);
            let Ok(system) = System::try_new(Stack::new(vec![tier], 1, mailbox, space, 4096), Vec::new(), MODE, None);
            system
        })
    }

    #[test]
    fn pages_are_named_once_when_hints_are_confirmed_and_never_those_already_read() {
        let hints: Vec<Range<u64>> = (0..100).map(|at| at * 7..at * 7 + 2).collect();
        let mut follower = follower(&hints);
        let (mut runs, mut now) = (Vec::new(), Nanos(0));
        for at in 0..8u64 {
            now = Nanos::from_millis(at + 1);
            follower.act(now, &mut runs);
            assert_eq!(runs, [], "after {at} references");
            follower.referenced(now, at * 7..at * 7 + 2);
        }
        let mut named = std::collections::BTreeSet::new();
        for at in 8..100u64 {
            now += Nanos::from_millis(5);
            follower.act(now, &mut runs);
            for page in runs.drain(..).flatten() {
                assert!(page >= at * 7 && page % 7 < 2 && named.insert(page), "{page}");
                follower.arrived(now + Nanos::from_millis(1), page);
            }
            follower.referenced(now + Nanos::from_millis(2), at * 7..at * 7 + 2);
        }
        let (report, read) = (follower.report(), named.len() as u64 * 4096);
        assert!(named.len() > 170, "{}", named.len());
        let bytes = (report.hinted_bytes, report.prefetched_bytes, report.used_bytes, report.stopped);
        assert_eq!(bytes, (200 * 4096, read, read, None));
    }

    #[test]
    fn references_that_no_hint_names_stop_it() {
        let mut follower = follower(std::slice::from_ref(&(0..1_000)));
        let mut runs = Vec::new();
        for at in 0..1_024u64 {
            follower.referenced(Nanos(at + 1), 5_000 + at..5_001 + at);
            follower.act(Nanos(at + 1), &mut runs);
        }
        assert_eq!((runs.len(), follower.report().prefetched_bytes), (0, 0));
        assert_eq!(follower.stopped().as_deref(), Some("clients do not read what the hints say"));
    }
}
