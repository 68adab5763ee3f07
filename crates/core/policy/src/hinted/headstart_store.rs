//! headstart store: what this project's cache for objects reads ahead of a reader that disclosed its order.
//!
//! Source: ours; the rules of crates/live/store/src/shelf for one order, in blocks, as they were when the predictions of
//! benches/store were measured. Since then, what is near in the store grows while readers wait, which is not followed here.
//!
//! ```text
//! near: the references of twice the time within which 99 % of requests are answered, as bursts make them
//! while fewer requests are under way than the devices serve at once,
//!       and blocks that were fetched ahead and not used yet take less than half of the frames:
//!     fetch the first missing block, and the missing neighbours that are referenced right behind it, as one request,
//!     if the block is near: in place of the furthest block, if that one is needed later
//!     else: into free frames only
//! a missing block at the cursor is fetched in any case
//! ```
//!
//! What differs from the store: no second request for one that takes long, and blocks in place of ranges, so that a
//! request ends where neighbours end and not where a range does. For stores and other devices that serve many requests at
//! once; where one request delays the next, use `just-in-time`.
//!
//! Cost: a step per request under way for each decision, a logarithm per block. Memory: 4 bytes per block ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::{Block, KeyTable, Nanos, Position, NEVER};

use super::{Knowledge, Round, Strategy};
use crate::row::{Context, Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "headstart-store",
    summary: "fetch what is read in twice a response time, and further ahead into free frames",
    source: "ours; docs/store.md",
    keys: KeyTable::NONE,
    default_replacement: None,
    family: Family::Gathering(&|_, context| Ok(context.hinted(HeadstartStore::new(context)))),
};

/// Response times are learned after as many requests, as in the store.
const ANSWERS: u64 = 64;
/// Buckets of response times per power of two.
const PARTS: u32 = 8;

/// The policy of `headstart store`.
#[derive(Debug)]
pub struct HeadstartStore {
    frames: u32,
    /// Number of references.
    references: Position,
    /// Maximum requests under way.
    requests: usize,
    /// Maximum blocks of a request: what transfers in the time to the first byte.
    request_blocks: u32,
    /// The last block of each request under way, and when the request was issued.
    under_way: Vec<(Block, Nanos)>,
    responses: Responses,
    /// Positions that were fetched ahead and have not been served.
    ahead: BinaryHeap<Reverse<Position>>,
    burst: Burst,
    cursor: Position,
}

/// Response times so far, by their logarithms.
#[derive(Debug)]
struct Responses {
    counts: [u64; 64 * PARTS as usize],
    answers: u64,
    /// Within this time 99 % were answered.
    most: Nanos,
}

impl Responses {
    fn record(&mut self, took: Nanos) {
        let octave = took.0.max(u64::from(PARTS)).ilog2();
        let part = (took.0 >> (octave - PARTS.ilog2())) as u32 % PARTS;
        self.counts[(octave * PARTS + part) as usize] += 1;
        self.answers += 1;
        if self.answers.is_multiple_of(ANSWERS) {
            self.most = self.percentile();
        }
    }

    fn percentile(&self) -> Nanos {
        let mut left = self.answers - self.answers / 100;
        let bucket = self.counts.iter().position(|count| {
            left = left.saturating_sub(*count);
            left == 0
        });
        let (octave, part) = bucket.map_or((0, 0), |bucket| (bucket as u32 / PARTS, bucket as u64 % u64::from(PARTS)));
        // The upper end of the bucket.
        Nanos((u64::from(PARTS) + part + 1) << octave.saturating_sub(PARTS.ilog2()))
    }
}

/// The references of a response time: batches are read at once.
#[derive(Debug, Default)]
struct Burst {
    since: Nanos,
    count: Position,
    /// The most of late.
    most: Position,
}

impl Burst {
    fn served(&mut self, now: Nanos, references: Position, response: Nanos) {
        if now.0 > self.since.0.saturating_add(response.0) {
            self.most = (self.most - self.most / 8).max(self.count);
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(references);
    }
}

impl HeadstartStore {
    fn new(context: &Context) -> Self {
        let request = context.nominal_service.0.div_ceil(context.block_transfer.0.max(1));
        Self {
            frames: context.frames,
            references: context.hints_of_row().blocks.len() as Position,
            requests: (context.concurrency as usize).saturating_mul(context.disks),
            request_blocks: request.clamp(1, u64::from(context.frames.div_ceil(4))) as u32,
            under_way: Vec::new(),
            responses: Responses { counts: [0; 64 * PARTS as usize], answers: 0, most: Nanos::ZERO },
            ahead: BinaryHeap::new(),
            burst: Burst::default(),
            cursor: 0,
        }
    }

    /// Notes what has been served and has arrived since the last decision.
    fn observe(&mut self, now: Nanos, round: &Round<'_>) {
        let cursor = round.cursor();
        if cursor > self.cursor {
            self.burst.served(now, cursor - self.cursor, self.responses.most);
            self.cursor = cursor;
            while self.ahead.peek().is_some_and(|Reverse(position)| *position < cursor) {
                self.ahead.pop();
            }
        }
        let (view, responses) = (round.view(), &mut self.responses);
        self.under_way.retain(|(block, issued)| {
            let is_under_way = view.state(*block).is_in_flight();
            if !is_under_way {
                responses.record(now - *issued);
            }
            is_under_way
        });
    }

    /// The last position for which something may be evicted.
    fn near(&self) -> Position {
        let most = self.burst.most.max(self.burst.count);
        self.cursor.saturating_add(most.saturating_mul(2)).min(NEVER - 1)
    }

    /// Fetches the missing block at `position`, and those behind it that become one request with it.
    fn fetch_run(&mut self, now: Nanos, position: Position, round: &mut Round<'_>) -> bool {
        let near = self.near();
        let (mut at, mut last) = (position, None);
        while at < self.references && at - position < self.request_blocks && round.knowledge().missing().contains(at) {
            let block = round.knowledge().missing().block_at(at);
            if last.is_some_and(|last| !round.view().space.adjoins(last, block)) {
                break;
            }
            let frame = match round.free() {
                0 if at == self.cursor => round.any_frame(),
                0 if at <= near => round.frame_beyond(at),
                0 => None,
                _ => Some(None),
            };
            let Some(frame) = frame else { break };
            round.fetch_at(at, frame);
            self.ahead.push(Reverse(at));
            last = Some(block);
            at += 1;
        }
        self.under_way.extend(last.map(|block| (block, now)));
        last.is_some()
    }
}

impl Strategy for HeadstartStore {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        self.observe(now, round);
        loop {
            let first = round.knowledge().missing().first();
            let is_demanded = first == self.cursor;
            let is_full =
                self.under_way.len() >= self.requests || self.ahead.len() as u64 * 2 >= u64::from(self.frames);
            if first == NEVER || (is_full && !is_demanded) || !self.fetch_run(now, first, round) {
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

    fn gathers(&self) -> bool {
        true
    }

    fn order_max(&self) -> u32 {
        self.request_blocks
    }
}
