//! Just in time: fetch what would arrive too late if fetched later, in requests as large and queues as deep as the
//! device can use, without evicting blocks that are needed sooner.
//!
//! Source: ours. The window within which nothing is evicted is fixed horizon's (kimbrel96, section 2.3; TIP2); fetching
//! only when a stall is predicted is forestall's (section 5). It has no parameters to tune: the counterparts of H, F
//! and batch size follow from the device's profile and from measurements during the run. docs/hints.md tells how it was
//! evaluated.
//!
//! ```text
//! window: as many references as frames can be spared (below)
//! for each disk, its missing blocks within the window: the i-th, due in t, is *due* if
//!     t <= 2 (response + (outstanding + i) * pace)  or it is less than a chunk away
//! if any is due: fetch, in order of use, all that is missing up to a chunk beyond the last that is due,
//!     in place of blocks that are not needed before that; neighbours leave as one request
//! a missing block at the cursor is fetched in any case
//! ```
//!
//! *Pace* is the disk's recent busy time per delivered block. It is measured, so it includes what the profile cannot
//! know: how well the arm's queue is sorted, how many channels work in parallel, that a file is contiguous. A disk that
//! idles looks slow, is given more work, and turns out to be fast. *Response* is the recent time of a request that
//! found its disk idle; for a disk with an arm, of any request. *t* counts think time and driver time.
//!
//! A *chunk* makes a request worth its response time: as many blocks as the disks transfer during one response time.
//! Blocks are fetched by whole chunks: where I/O is the bottleneck every reference makes a block due, and fetching them
//! one by one would leave nothing to merge and nothing to sort.
//!
//! A disk that serves several requests at once is given only enough to stay busy until the next chunk: fetching earlier
//! takes a frame and gains nothing. The arm of a disk that serves one request at a time travels less the more it can
//! choose from, so its queue is bounded by the window alone.
//!
//! The window. While the furthest block is never needed again, its frame costs nothing. If every block is needed again
//! at a known time, a window of w references acts like a cache smaller by w blocks. The distance of the furthest block
//! tells how much that costs: in a loop over N blocks each round fetches N - K with all K frames, and w more with a
//! window of w. So w is kept below a share of the furthest distance beyond K.
//!
//! Where the whole device serves one request at a time, wasted fetches gain nothing while the disk is the bottleneck:
//! the run takes as long as its fetches. A fetch for position p issued now cannot evict the blocks referenced before p.
//! Let u be the latest time at which one of those is needed again, and v the time at which the currently furthest block
//! is needed. Evicting the current block means fetching it u - v references sooner than the other one: a waste of (u -
//! v) / (u - cursor) of a fetch. Waste costs no time while the disk, with (1 + waste) * pace per needed block, is not
//! busy for longer than the processor works per block; and while (1 + waste) * driver is not more than a response: a
//! fetch that waits costs a response, of which the driver's work for the next one hides a part. Up to 2 % is allowed in
//! any case. Several disks gain more by working in parallel than wasted fetches cost.
//!
//! Cost: constant per event and disk, and a scan of the window once per part of a chunk, which the chunk's share of the
//! frames keeps constant per reference.

use headstart_types::{Disk, KeyTable, Nanos, Position, NEVER};

use super::recent::Recent;
use super::{Knowledge, Round, Strategy};
use crate::row::{Context, Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "just-in-time",
    summary: "fetch what would come too late if fetched later, with as much parallelism as the device has",
    source: "ours; kimbrel96, sections 2.3 and 5",
    keys: KeyTable::NONE,
    default_replacement: None,
    family: Family::Gathering(&|_, context| Ok(context.hinted(JustInTime::new(context)))),
};

// Found by scanning a part of the grid of examples/hints_grid.py; none of the optima is sharp.

/// Safety factor on the time by which a block is fetched early: estimates are means, and think times come in bursts.
const CAUTION: f64 = 2.0;
/// Maximum share of the frames that prefetched blocks may take from blocks that are still needed.
const WINDOW: f64 = 0.8;
/// References to look ahead, as a multiple of the frames, while there are frames whose blocks are never needed again.
const FREE_WINDOW: f64 = 1.5;
/// Above this share of free frames, nothing has to be spared.
const PLENTY: f64 = 0.25;
/// Share of the furthest distance beyond K that a window may take: `SPARED` where more requests hide more waiting time,
/// `SPARED_BY_ARM` where the only gain is shorter seeks.
const SPARED: f64 = 0.5;
const SPARED_BY_ARM: f64 = 0.125;
/// Share of wasted fetches that is always allowed where one request is served at a time.
const HARM: f64 = 0.02;
/// References after which the counts are halved.
const HISTORY: u32 = 1024;
/// Queue length from which an arm can sort well: a shorter queue is refilled without waiting for a chunk.
const SORTED: u32 = 64;
/// A disk that serves several requests at once is saturated when its queue takes this many response times.
const SATURATED: f64 = 1.5;
/// Largest and smallest chunk, as shares of the frames.
const CHUNK_MAX: f64 = 1.0 / 16.0;
const CHUNK_MIN: f64 = 1.0 / 64.0;
/// Parts of a chunk: the window is scanned once per part.
const LOOKS: Position = 32;

/// Measurements of one disk.
#[derive(Debug, Clone, Default)]
struct Rate {
    /// When it delivered its last block, or was given work after being idle.
    busy_since: Nanos,
    /// Whether nothing is outstanding.
    is_idle: bool,
    /// Whether the current request found it idle.
    is_first: bool,
    /// Busy time per block.
    per_block: Recent,
    /// Busy time per request.
    per_request: Recent,
    /// Time from a request that found the disk idle to its first block.
    response: Recent,
    /// The cursor when the disk was last given a fetch.
    given_at: Position,
}

/// The just-in-time policy.
#[derive(Debug)]
pub struct JustInTime {
    frames: f64,
    /// Blocks per chunk, at least 1.
    chunk: Position,
    /// Maximum blocks per request.
    request_blocks: u32,
    /// Whether a disk serves one request at a time, in an order that it or its scheduler chooses.
    has_arm: bool,
    /// Whether every fetch takes the same time, regardless of its blocks.
    is_uniform: bool,
    /// Service time assumed without history.
    nominal_ns: f64,
    driver: Nanos,
    /// Think times including driver time.
    references: Recent,
    /// Driver time since the last reference.
    driven: Nanos,
    rates: Vec<Rate>,
    /// For each disk: blocks that it may be given in this round.
    room: Vec<u32>,
    /// The cursor at which the window is scanned again.
    look_at: Position,
    /// Whether the whole device serves one request at a time.
    is_alone: bool,
    /// Recent references, and recent fetches ahead of them.
    served: u32,
    fetches: u32,
    released: Released,
}

/// The latest next use among the blocks of a stretch of references.
#[derive(Debug, Default)]
struct Released {
    /// End of the stretch examined so far.
    end: Position,
    /// The latest use, and the reference that precedes it.
    last: (Position, Position),
}

impl Released {
    /// The latest next use within `stretch`. Each reference is examined once while stretches move forward, and again
    /// when the reference with the latest use drops out.
    fn last_use(&mut self, stretch: std::ops::Range<Position>, next_after: impl Fn(Position) -> Position) -> Position {
        if stretch.end < self.end || self.last.1 < stretch.start {
            *self = Self { end: stretch.start, last: (0, stretch.start) };
        }
        for at in self.end.max(stretch.start)..stretch.end {
            self.last = self.last.max((next_after(at), at));
        }
        self.end = stretch.end;
        self.last.0
    }
}

impl JustInTime {
    fn new(context: &Context) -> Self {
        let (frames, disks) = (f64::from(context.frames), context.disks);
        let nominal_ns = context.nominal_service.0 as f64;
        let request = (nominal_ns / context.block_transfer.0.max(1) as f64).ceil().clamp(1.0, frames.max(1.0));
        let chunk = (request * disks as f64).clamp(frames * CHUNK_MIN, frames * CHUNK_MAX).max(1.0);
        let mut references = Recent::default();
        references.push(context.mean_compute);
        Self {
            frames,
            chunk: chunk as Position,
            request_blocks: request as u32,
            has_arm: context.concurrency == 1,
            is_uniform: context.uniform,
            nominal_ns,
            driver: context.driver,
            references,
            driven: Nanos::ZERO,
            rates: vec![Rate { is_idle: true, ..Rate::default() }; disks],
            room: vec![0; disks],
            look_at: 0,
            is_alone: context.concurrency == 1 && disks == 1,
            served: 0,
            fetches: 0,
            released: Released::default(),
        }
    }

    /// The wasted fetches per needed one that cost no time: as many as the disk can make while the processor works, and
    /// the driver can start while a fetch that had waited would be awaited; at least [`HARM`].
    fn harm_max(&self) -> f64 {
        let rate = &self.rates[0];
        let pace = rate.per_block.mean_ns().unwrap_or(self.nominal_ns).max(1.0);
        let response = rate.response.mean_ns().unwrap_or(self.nominal_ns);
        let think = self.references.mean_ns().unwrap_or(0.0);
        let work = think * f64::from(self.served) / f64::from(self.fetches.max(1));
        HARM.max((work / pace).min(response / self.driver.0.max(1) as f64) - 1.0)
    }

    /// Whether to wait for a better victim than the furthest block, for the block needed at `position`.
    fn waits_for_victim(&mut self, position: Position, round: &Round<'_>) -> bool {
        let (cursor, victim) = (round.cursor(), round.furthest_use());
        if !self.is_alone || victim == NEVER || !round.is_all_disclosed() {
            return false;
        }
        let residents = round.knowledge().residents();
        let better = self.released.last_use(cursor..position, |at| residents.next_after(at));
        let harm = match better {
            NEVER => 1.0,
            better => f64::from(better.saturating_sub(victim)) / f64::from(better.saturating_sub(cursor).max(1)),
        };
        harm > self.harm_max()
    }

    /// How many references ahead blocks may be fetched in place of current ones.
    fn window(&self, round: &Round<'_>) -> Position {
        if f64::from(round.free()) > self.frames * PLENTY {
            return NEVER;
        }
        let window = match round.furthest_use() {
            // An undisclosed block may still be needed.
            NEVER if round.is_all_disclosed() => self.frames * FREE_WINDOW,
            NEVER => self.frames * WINDOW,
            furthest => {
                let beyond = f64::from(furthest.saturating_sub(round.cursor())) - self.frames;
                (beyond * if self.has_arm { SPARED_BY_ARM } else { SPARED }).min(self.frames * WINDOW)
            }
        };
        (window as Position).max(self.chunk)
    }

    /// The last position within `window` at which a missing block of `disk` is due, if any; sets `room` to the number
    /// of blocks that the disk may be given.
    fn due(&mut self, disk: usize, window: Position, looks: bool, round: &Round<'_>) -> Option<Position> {
        self.room[disk] = 0;
        let (cursor, rate) = (round.cursor(), &self.rates[disk]);
        let head = round.knowledge().missing().heads()[disk];
        if head == NEVER || head - cursor > window {
            return None;
        }
        let outstanding = round.view().outstanding[disk];
        let pace = rate.per_block.mean_ns().unwrap_or(self.nominal_ns);
        let response = match self.has_arm {
            true => rate.per_request.mean_ns().unwrap_or(self.nominal_ns),
            false => rate.response.mean_ns().unwrap_or(self.nominal_ns).max(self.nominal_ns),
        };
        let has_enough = match self.has_arm {
            true => outstanding >= SORTED,
            false => outstanding >= 2 * self.chunk && f64::from(outstanding) * pace >= SATURATED * response,
        };
        if has_enough && cursor < rate.given_at.saturating_add(self.chunk) {
            return None;
        }
        let most = match self.has_arm {
            true => u32::MAX,
            false => ((CAUTION * response / pace.max(1.0)) as u32).saturating_add(2 * self.chunk + 1),
        };
        let room = most.saturating_sub(outstanding);
        let due = Due { cursor, chunk: self.chunk, think: self.references.mean_ns().unwrap_or(0.0), response, pace };
        let is_due = |position, index| due.at(position, f64::from(outstanding) + f64::from(index));
        if !looks && !is_due(head, 1) {
            return None;
        }
        let last = last_due(disk, cursor.saturating_add(window), room, round.knowledge(), is_due)?;
        self.room[disk] = room;
        Some(last)
    }

    /// Fetches missing blocks up to `limit` in order of use, as far as each disk has room.
    fn fetch_up_to(&mut self, limit: Position, round: &mut Round<'_>) {
        let (cursor, protected) = (round.cursor(), (self.frames * WINDOW) as Position);
        loop {
            let heads = round.knowledge().missing().heads();
            let open = (0..heads.len()).filter(|disk| self.room[*disk] > 0 && heads[*disk] <= limit);
            let Some(disk) = open.min_by_key(|disk| heads[*disk]) else { return };
            let position = heads[disk];
            // Beyond the protected share, only frames whose blocks are never needed again.
            let beyond = match position - cursor <= protected {
                true => limit.min(cursor.saturating_add(protected)).max(position),
                false => NEVER - 1,
            };
            let Some(frame) = round.frame_beyond(beyond) else { return };
            if frame.is_some() && self.waits_for_victim(position, round) {
                return;
            }
            round.fetch_at(position, frame);
            self.room[disk] -= 1;
            self.rates[disk].given_at = cursor;
            self.fetches += 1;
        }
    }

    /// Marks the disks of the fetches from index `first` on as busy.
    fn note_busy(&mut self, now: Nanos, first: usize, round: &Round<'_>) {
        for disk in round.disks_since(first) {
            let rate = &mut self.rates[disk];
            if std::mem::take(&mut rate.is_idle) {
                rate.is_first = true;
                rate.busy_since = now;
            }
        }
    }
}

/// When a missing block is due.
struct Due {
    cursor: Position,
    chunk: Position,
    think: f64,
    response: f64,
    pace: f64,
}

impl Due {
    /// Whether the block at `position` is due if it is the `index`-th that its disk delivers from now on.
    fn at(&self, position: Position, index: f64) -> bool {
        let ahead = position - self.cursor;
        ahead < self.chunk || f64::from(ahead) * self.think <= CAUTION * (self.response + index * self.pace)
    }
}

/// The last of at most `room` missing blocks of `disk` up to `end` for which `is_due(position, index)` holds. The first
/// words of the set are examined block by block, later ones word by word through their last block.
fn last_due(
    disk: usize,
    end: Position,
    room: u32,
    knowledge: &Knowledge,
    is_due: impl Fn(Position, u32) -> bool,
) -> Option<Position> {
    let missing = knowledge.missing();
    let (slots, set) = missing.tail(disk)?;
    let (mut next, mut index, mut due) = (Some(slots.start), 0, None);
    while let Some(slot) = next.filter(|slot| *slot < slots.end && index < room) {
        let width = (64 - slot % 64).min(slots.end - slot);
        let mut word = set.word(slot as usize / 64) >> (slot % 64);
        word &= u64::MAX >> (64 - width);
        let last = missing.position(slot + 63 - word.leading_zeros());
        if index >= 64 && last <= end && index + word.count_ones() <= room {
            index += word.count_ones();
            due = if is_due(last, index) { Some(last) } else { due };
        } else {
            while word != 0 && index < room {
                let position = missing.position(slot + word.trailing_zeros());
                word &= word - 1;
                if position > end {
                    return due;
                }
                index += 1;
                due = if is_due(position, index) { Some(position) } else { due };
            }
        }
        next = set.next(slot + width);
    }
    due
}

impl Strategy for JustInTime {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        let (cursor, first) = (round.cursor(), round.decided());
        let looks = cursor >= self.look_at;
        if looks {
            self.look_at = cursor.saturating_add((self.chunk / LOOKS).max(1));
        }
        let window = self.window(round);
        let due = (0..self.rates.len()).filter_map(|disk| self.due(disk, window, looks, round)).max();
        if let Some(due) = due {
            let limit = due.saturating_add(self.chunk).min(cursor.saturating_add(window)).min(NEVER - 1);
            self.fetch_up_to(limit, round);
        }
        if round.knowledge().missing().first() == cursor {
            if let Some(frame) = round.any_frame() {
                round.fetch_at(cursor, frame);
            }
        }
        if round.decided() > first {
            let requests = if self.is_uniform { round.decided() - first } else { round.gather(first) };
            self.driven += Nanos(self.driver.0 * requests as u64);
            self.note_busy(now, first, round);
        }
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, _outstanding: &[u32]) -> bool {
        knowledge.missing().first() != NEVER
    }

    fn computed(&mut self, compute: Nanos) {
        self.references.push(compute + std::mem::take(&mut self.driven));
        self.served += 1;
        if self.served == HISTORY {
            (self.served, self.fetches) = (self.served / 2, self.fetches / 2);
        }
    }

    fn arrived(&mut self, now: Nanos, disk: Disk, outstanding: u32) {
        let rate = &mut self.rates[disk.index()];
        let busy = now.saturating_sub(rate.busy_since);
        if std::mem::take(&mut rate.is_first) {
            rate.response.push(busy);
        }
        rate.per_block.push(busy);
        // The blocks of one request arrive together.
        if busy > Nanos::ZERO {
            rate.per_request.push(busy);
        }
        rate.busy_since = now;
        rate.is_idle = outstanding == 0;
    }

    fn gathers(&self) -> bool {
        !self.is_uniform
    }

    fn order_max(&self) -> u32 {
        self.request_blocks
    }
}
