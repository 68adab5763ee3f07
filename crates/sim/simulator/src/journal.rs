//! The events of a run, and the disks' journal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_engine::{From, Kind};
use headstart_types::{Block, Disk, Nanos};
use serde::Serialize;

/// An event. Times are nanoseconds since the start, `start..end`; blocks are numbered in the order in which they first
/// appear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process has referenced blocks, with `outcome`.
    Reference { start_ns: u64, process: u32, blocks: Vec<u32>, outcome: &'static str },
    /// A process has waited, for `time_ns` without doing driver work. The data was ready at `ready_ns`.
    Wait { start_ns: u64, ready_ns: u64, end_ns: u64, time_ns: u64, process: u32, outcome: &'static str },
    /// A processor has performed a prefetch action, which may end after the run.
    Action { start_ns: u64, end_ns: u64, process: u32, blocks: Vec<u32> },
    /// A process has waited for the structures shared by look-ups, and held them.
    Hold { start_ns: u64, end_ns: u64, process: u32 },
    /// A disk has served a request, which was issued at `issued_ns`.
    Service {
        start_ns: u64,
        end_ns: u64,
        issued_ns: u64,
        disk: u32,
        level: u32,
        process: Option<u32>,
        kind: &'static str,
        blocks: Vec<u32>,
        sector: u64,
        sectors: u32,
    },
    /// A disk was serving a request when the run ended.
    Unfinished { start_ns: u64, end_ns: u64, disk: u32 },
    /// Blocks have been transferred up the link above `level`.
    Link { start_ns: u64, end_ns: u64, level: u32, count: u32 },
    /// A level has evicted blocks.
    Eviction { start_ns: u64, blocks: Vec<u32> },
}

impl Event {
    /// When it began.
    #[must_use]
    pub fn start(&self) -> u64 {
        match self {
            Self::Reference { start_ns, .. }
            | Self::Wait { start_ns, .. }
            | Self::Action { start_ns, .. }
            | Self::Hold { start_ns, .. }
            | Self::Service { start_ns, .. }
            | Self::Unfinished { start_ns, .. }
            | Self::Link { start_ns, .. }
            | Self::Eviction { start_ns, .. } => *start_ns,
        }
    }
}

/// A request of a disk that has not ended.
struct Open {
    from: From,
    kind: Kind,
    blocks: Vec<Block>,
}

/// The journal of the disks.
#[derive(Default)]
pub struct DiskJournal {
    /// By disk, sector and tag, in order of arrival.
    open: BTreeMap<(u32, u64, u64), VecDeque<Open>>,
    /// Requests in service: disk, end, start.
    serving: BTreeSet<(u32, Nanos, Nanos)>,
    pub events: Vec<Event>,
}

impl DiskJournal {
    /// A request was queued.
    #[cold]
    pub fn queued(&mut self, from: From, disk: Disk, (sector, tag): (u64, u64), kind: Kind, blocks: &[Block]) {
        let open = Open { from, kind, blocks: blocks.to_vec() };
        self.open.entry((disk.0, sector, tag)).or_default().push_back(open);
    }

    /// A disk serves from `start` on, and says that it ends at `end`.
    #[cold]
    pub fn started(&mut self, disk: u32, start: Nanos, end: Nanos) {
        self.serving.insert((disk, end, start));
    }

    /// The request with that tag for `sectors` from `sector` has ended, `service` after its start; `announced` is the
    /// end that its disk had said.
    #[cold]
    pub fn finished(
        &mut self,
        (now, service, announced): (Nanos, Nanos, Nanos),
        disk: u32,
        (sector, sectors): (u64, u32),
        tag: u64,
        arrived: Nanos,
    ) {
        let start = now - service;
        self.serving.remove(&(disk, announced, start));
        let key = (disk, sector, tag);
        let Some(waiting) = self.open.get_mut(&key) else { return };
        let Some(Open { from, kind, blocks }) = waiting.pop_front() else { return };
        if waiting.is_empty() {
            self.open.remove(&key);
        }
        self.events.push(Event::Service {
            start_ns: start.0,
            end_ns: now.0,
            issued_ns: arrived.0,
            disk,
            level: from.level,
            process: from.process,
            kind: match kind {
                Kind::Demand => "demand",
                Kind::Prefetch => "prefetch",
                Kind::Allocate | Kind::Write => "write",
            },
            blocks: numbers(&blocks),
            sector,
            sectors,
        });
    }

    /// Truncates requests still in service at the `end` of the run.
    pub fn cut(&mut self, end: Nanos) {
        for (disk, _, start) in std::mem::take(&mut self.serving) {
            if start < end {
                self.events.push(Event::Unfinished { start_ns: start.0, end_ns: end.0, disk });
            }
        }
    }
}

/// Block numbers as in events.
#[must_use]
pub fn numbers(blocks: &[Block]) -> Vec<u32> {
    blocks.iter().map(|block| block.0).collect()
}
