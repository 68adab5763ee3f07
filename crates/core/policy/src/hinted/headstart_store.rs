//! headstart store: what this project's cache for objects reads ahead of a reader that disclosed its order.
//!
//! Source: ours. The rule is the store's own code ([`nearness`](super::nearness)), for one order and in blocks. Missing
//! blocks are fetched in the order of their references, those that are neighbours as one request, while fewer requests are
//! under way than the devices serve at once; a missing block at the cursor in any case.
//!
//! What differs from the store: no second request for one that takes long, and blocks in place of ranges, so that a
//! request ends where neighbours end and not where a range does. An answer's time to the first byte is its disk's time
//! without that for moving its blocks; above another level, where that is unknown, it is all of its time. For stores and
//! other devices that serve many requests at once; where one request delays the next, use `just-in-time`.
//!
//! Cost: a step per request under way for each block that arrives, a logarithm per block. Memory: some bytes per block
//! ahead.

use std::collections::BTreeSet;

use headstart_types::{Block, Disk, KeyTable, Nanos, Position, NEVER};

use super::nearness::{is_full, near_at_first, Answers, Horizon, Pace};
use super::{Frame, Knowledge, Round, Strategy};
use crate::row::{Context, Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "headstart-store",
    summary: "fetch what is read in twice a response time, and further ahead what displaces nothing of use",
    source: "ours; docs/store.md",
    keys: KeyTable::NONE,
    default_replacement: None,
    family: Family::Gathering(&|_, context| Ok(context.hinted(HeadstartStore::new(context)))),
};

/// The policy of `headstart store`.
#[derive(Debug)]
pub struct HeadstartStore {
    frames: u32,
    /// Number of references.
    references: Position,
    /// Maximum requests under way, without those that are waited for.
    requests: usize,
    /// Maximum blocks of a request: what transfers in the time to the first byte.
    request_blocks: u32,
    /// Time to move a block.
    block_transfer: Nanos,
    under_way: Vec<Request>,
    /// Requests so far, and their blocks.
    issued: (u64, u64),
    answers: Answers,
    /// Time within which nearly all answers begin.
    response: Nanos,
    pace: Pace,
    horizon: Horizon,
    /// Positions that were fetched ahead and have not been served.
    ahead: BTreeSet<Position>,
    cursor: Position,
    /// Position after the last one that was requested.
    front: Position,
}

/// A request under way.
#[derive(Debug)]
struct Request {
    last: Block,
    blocks: u64,
    issued: Nanos,
    is_demanded: bool,
}

impl HeadstartStore {
    fn new(context: &Context) -> Self {
        let request = context.nominal_service.0.div_ceil(context.block_transfer.0.max(1));
        Self {
            frames: context.frames,
            references: context.hints_of_row().blocks.len() as Position,
            requests: (context.concurrency as usize).saturating_mul(context.disks),
            request_blocks: request.clamp(1, u64::from(context.frames.div_ceil(4))) as u32,
            block_transfer: context.block_transfer,
            under_way: Vec::new(),
            issued: (0, 0),
            answers: Answers::default(),
            response: Nanos::ZERO,
            pace: Pace::default(),
            horizon: Horizon::default(),
            ahead: BTreeSet::new(),
            cursor: 0,
            front: 0,
        }
    }

    /// A request has been answered, after `took` in all.
    fn answered(&mut self, at: usize, took: u64) {
        let request = self.under_way.swap_remove(at);
        let begins = Nanos(took.saturating_sub(self.block_transfer.0.saturating_mul(request.blocks)));
        self.response = self.answers.begins(begins).unwrap_or(self.response);
    }

    /// Notes what has been served, and what has arrived from where its time is unknown.
    fn observe(&mut self, now: Nanos, round: &Round<'_>) {
        self.cursor = round.cursor();
        self.front = self.front.max(self.cursor);
        while self.ahead.first().is_some_and(|position| *position < self.cursor) {
            self.ahead.pop_first();
        }
        while let Some(at) = self.under_way.iter().position(|each| !round.view().state(each.last).is_in_flight()) {
            self.answered(at, (now - self.under_way[at].issued).0);
        }
    }

    /// Seconds until the reference at `position`, or references where the rate is not known.
    fn distance(&self, position: Position) -> f64 {
        f64::from(position.saturating_sub(self.front)) / self.pace.rate().unwrap_or(1.0)
    }

    /// A frame for the block at `position`.
    fn frame(&mut self, position: Position, is_near: bool, round: &Round<'_>) -> Option<Frame> {
        if round.free() > 0 {
            return Some(None);
        }
        let (victim, next) = round.knowledge().residents().furthest(round.view())?;
        let off = (next != NEVER).then(|| self.distance(next));
        if position != self.cursor && !self.horizon.may_displace(off, self.distance(position), is_near) {
            return None;
        }
        off.filter(|_| is_near).into_iter().for_each(|off| self.horizon.displaced(off));
        self.ahead.remove(&next);
        Some(Some(victim))
    }

    /// Fetches the missing block at `position`, and those behind it that become one request with it.
    fn fetch_run(&mut self, now: Nanos, position: Position, is_near: bool, round: &mut Round<'_>) -> bool {
        let (mut at, mut last) = (position, None);
        while at < self.references && at - position < self.request_blocks && round.knowledge().missing().contains(at) {
            let block = round.knowledge().missing().block_at(at);
            if last.is_some_and(|last| !round.view().space.adjoins(last, block)) {
                break;
            }
            let Some(frame) = self.frame(at, is_near, round) else { break };
            round.fetch_at(at, frame);
            self.ahead.insert(at);
            last = Some(block);
            at += 1;
        }
        let Some(last) = last else { return false };
        let blocks = u64::from(at - position);
        self.issued = (self.issued.0 + 1, self.issued.1 + blocks);
        self.under_way.push(Request { last, blocks, issued: now, is_demanded: position == self.cursor });
        true
    }
}

impl Strategy for HeadstartStore {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        self.observe(now, round);
        // Entries are as long as requests.
        let near =
            self.pace.near(near_at_first(self.requests), self.issued.1 / self.issued.0.max(1), self.frames.into());
        loop {
            let first = round.knowledge().missing().first();
            if first == NEVER {
                return;
            }
            let is_near = u64::from(first.saturating_sub(self.front)) < near;
            let is_full = is_full(self.ahead.len() as u64, self.frames.into());
            let may_come = !is_full || (is_near && self.pace.rate().is_some());
            let prefetches = self.under_way.iter().filter(|request| !request.is_demanded).count();
            if first != self.cursor && (prefetches >= self.requests || !may_come) {
                return;
            }
            if !self.fetch_run(now, first, is_near || first == self.cursor, round) {
                return;
            }
        }
    }

    fn decides_at_once(&self) -> bool {
        true
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, _outstanding: &[u32]) -> bool {
        knowledge.missing().first() != NEVER
    }

    fn read(&mut self, now: Nanos, position: Position, is_late: bool) {
        self.pace.has_read(now, self.response);
        self.pace.was(is_late);
        self.front = position.saturating_add(1);
    }

    fn fetched(&mut self, block: Block, _disk: Disk, service: Nanos) {
        if let Some(at) = self.under_way.iter().position(|request| request.last == block) {
            // Each block has an equal share.
            self.answered(at, service.0.saturating_mul(self.under_way[at].blocks));
        }
    }

    fn gathers(&self) -> bool {
        true
    }

    fn order_max(&self) -> u32 {
        self.request_blocks
    }
}
