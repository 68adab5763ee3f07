//! Just in time: fetch what would come too late if it were fetched later, in requests as large and queues as deep as the
//! device makes use of, and give up nothing for it that is needed sooner.
//!
//! Source: ours. From fixed horizon it has the window within which nothing is given up (kimbrel96, section 2.3; TIP2), from
//! forestall that a stall must be foreseen (section 5). It has no number to be tuned: what those call H, F and batch size
//! follows from the device's profile and from what is measured as it goes. docs/hints.md tells how it was judged.
//!
//! ```text
//! window: as many references as frames can be spared (below)
//! for each disk, its missing blocks within the window: the i-th, due in t, is *due* if
//!     t <= 2 (response + (outstanding + i) * pace)        or it is less than a chunk away
//! if any is due: fetch, in order of use, all that is missing up to a chunk beyond the last that is due,
//!     in place of blocks that are not needed before that; those that lie together leave as one request
//! a missing block at the cursor is fetched in any case
//! ```
//!
//! *Pace* is how long the disk has been busy for each block that it has delivered lately. It is measured, so it has in it
//! what the profile cannot know: how well the arm's queue is sorted, how many channels are at work, that a file lies in one
//! piece. A disk that idles looks slow, is given more, and turns out to be fast. *Response* is what a request took lately that
//! found its disk idle; of a disk with an arm, what a request takes. *t* counts think time and the driver's work.
//!
//! A *chunk* is what makes a request worth its response time: as many blocks as are transferred while one is waited for, on
//! each disk. Fetching goes on by whole chunks: where I/O is the bottleneck every reference makes a block due, and to fetch
//! them one by one would leave nothing to merge, and nothing to sort.
//!
//! A disk that serves several requests at once is given no more than keep it busy until the next chunk: what is fetched
//! earlier than that takes a frame and gains nothing. The arm of one that serves them one by one goes less far the more it can
//! choose from, so its queue is bounded by the window alone.
//!
//! The window. While the furthest block is not needed again, its frame costs nothing. Where every block is needed again at a
//! known time, a window of w references works like a cache smaller by w blocks. How much that costs is told by how far the
//! furthest block is from being needed: in a loop over N blocks each round brings N - K with all K frames, and w more with a
//! window of w. So w is held below a share of what the furthest distance has over K.
//!
//! Where one request is served at a time in all, blocks that are fetched in vain gain nothing while the disk is the bottleneck:
//! the run takes as long as its fetches. A fetch for position p that is issued now cannot evict the blocks that are referenced
//! before p. Let u be the last time at which one of them is needed again, and v the time at which the furthest block of now is.
//! This victim is fetched again u - v references sooner than the other would be: that is (u - v) / (u - cursor) of a fetch in
//! vain. It is allowed as far as the disk has idle time, and up to 2 % in any case. Several disks gain more by working side by
//! side than such fetches cost.
//!
//! Cost: constant per event and disk, and a walk through the window once in a part of a chunk, which the chunk's share of the
//! frames keeps constant per reference.

use headstart_types::{read_keys, Disk, KeyTable, Nanos, NoKeys, Position, NEVER};

use super::recent::Recent;
use super::{Knowledge, Round, Strategy};
use crate::row::{Context, Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "just-in-time",
    summary: "fetch what would come too late if fetched later, as widely as the device serves in parallel",
    source: "ours; kimbrel96, sections 2.3 and 5",
    keys: KeyTable::NONE,
    default_replacement: None,
    family: Family::Gathering(&|keys, context| {
        read_keys::<NoKeys>(keys)?;
        Ok(context.hinted(JustInTime::new(context)))
    }),
};

// Found by scanning a part of the grid of examples/hints_grid.py; none of them is sharp.

/// How much sooner than it must be a block is fetched: estimates are means, and think times come in bursts.
const CAUTION: f64 = 2.0;
/// The most frames, as a share, that what is fetched ahead may hold in place of blocks that will be needed.
const WINDOW: f64 = 0.8;
/// The references ahead, as a multiple of the frames, where frames are to be had that nobody will need.
const FREE_WINDOW: f64 = 1.5;
/// Free frames, as a share, with which nothing has to be spared.
const PLENTY: f64 = 0.25;
/// The part of the furthest distance beyond K that a window may take: where waiting times are hidden by as many requests as
/// there can be, and where no more is gained than shorter ways of the arm.
const SPARED: f64 = 0.5;
const SPARED_BY_ARM: f64 = 0.125;
/// The least share of fetches that may be made in vain where one request is served at a time.
const HARM: f64 = 0.02;
/// The part of a fetch's time that the driver's work of those in vain may take.
const WORTHWHILE: f64 = 0.25;
/// References after which what was counted counts half.
const HISTORY: u32 = 1024;
/// Blocks from which an arm can choose well: a shorter queue does not wait for a chunk.
const SORTED: u32 = 64;
/// A disk that serves several at once is saturated when its queue takes so many response times.
const SATURATED: f64 = 1.5;
/// The most and the least of a chunk, as shares of the frames.
const CHUNK_MAX: f64 = 1.0 / 16.0;
const CHUNK_MIN: f64 = 1.0 / 64.0;
/// A chunk is divided into so many parts: the window is looked through once in each.
const LOOKS: Position = 32;

/// What is known of one disk.
#[derive(Debug, Clone, Default)]
struct Rate {
    /// When it delivered its last block, or was given something to do since.
    busy_since: Nanos,
    /// Nothing is outstanding.
    is_idle: bool,
    /// What it is doing found it idle.
    is_first: bool,
    /// Time busy for each block.
    per_block: Recent,
    /// The same for each request.
    per_request: Recent,
    /// From a request that found it idle to its first block.
    response: Recent,
    /// The cursor when it was last given something to fetch.
    given_at: Position,
}

/// The just-in-time policy.
#[derive(Debug)]
pub struct JustInTime {
    frames: f64,
    /// Blocks by which it fetches, at least 1.
    chunk: Position,
    /// Blocks of a request at most.
    request_blocks: u32,
    /// A disk serves one request at a time, in an order that it or its scheduler chooses.
    has_arm: bool,
    /// Every fetch takes the same time, however many blocks it has.
    is_uniform: bool,
    /// Until there is history.
    nominal_ns: f64,
    driver: Nanos,
    /// Think times with the driver's work.
    references: Recent,
    /// The driver's work since the last reference.
    driven: Nanos,
    rates: Vec<Rate>,
    /// By disk: blocks that it may be given in this round.
    room: Vec<u32>,
    /// The window is looked through again at this cursor.
    look_at: Position,
    /// One request at a time is served in all.
    is_alone: bool,
    /// References and fetches ahead of them, lately.
    served: u32,
    fetches: u32,
    released: Released,
}

/// When the blocks of a stretch of references are needed again: the last of these uses.
#[derive(Debug, Default)]
struct Released {
    /// The stretch that was looked through ends here.
    end: Position,
    /// The last use, and the reference that it follows.
    last: (Position, Position),
}

impl Released {
    /// Of the references in `stretch`. Each is looked at once as long as stretches move on, and again when the one with the
    /// last use leaves.
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

    /// The share of fetches that may be made in vain: what the disk has time for, as long as their driver's work is little
    /// beside the time that fetches take, and [`HARM`].
    fn harm_max(&self) -> f64 {
        let pace = self.rates[0].per_block.mean_ns().unwrap_or(self.nominal_ns);
        let think = self.references.mean_ns().unwrap_or(0.0).max(1.0);
        let load = f64::from(self.fetches) / f64::from(self.served.max(1)) * pace / think;
        let hidden = WORTHWHILE * pace / self.driver.0.max(1) as f64;
        HARM.max((1.0 - load).min(hidden))
    }

    /// Whether to wait for a better victim than the furthest block, for what is needed at `position`.
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

    /// References ahead that may be fetched in place of what is known now.
    fn window(&self, round: &Round<'_>) -> Position {
        if f64::from(round.free()) > self.frames * PLENTY {
            return NEVER;
        }
        let window = match round.furthest_use() {
            // Of what has not been disclosed nobody knows that it will not be needed.
            NEVER if round.is_all_disclosed() => self.frames * FREE_WINDOW,
            NEVER => self.frames * WINDOW,
            furthest => {
                let beyond = f64::from(furthest.saturating_sub(round.cursor())) - self.frames;
                (beyond * if self.has_arm { SPARED_BY_ARM } else { SPARED }).min(self.frames * WINDOW)
            }
        };
        (window as Position).max(self.chunk)
    }

    /// The last position within `window` at which a missing block of `disk` is due, if any; leaves in `room` how many blocks the
    /// disk may be given.
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

    /// Fetches what is missing up to `limit`, in order of use, as far as each disk has room.
    fn fetch_up_to(&mut self, limit: Position, round: &mut Round<'_>) {
        let (cursor, protected) = (round.cursor(), (self.frames * WINDOW) as Position);
        loop {
            let heads = round.knowledge().missing().heads();
            let open = (0..heads.len()).filter(|disk| self.room[*disk] > 0 && heads[*disk] <= limit);
            let Some(disk) = open.min_by_key(|disk| heads[*disk]) else { return };
            let position = heads[disk];
            // Beyond the share of the frames that may be taken from others, only frames that nobody needs.
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

    /// The disks of the fetches from the one at `first` on have something to do.
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
    /// Whether the block at `position` is, the `index`-th that its disk has to deliver from now on.
    fn at(&self, position: Position, index: f64) -> bool {
        let ahead = position - self.cursor;
        ahead < self.chunk || f64::from(ahead) * self.think <= CAUTION * (self.response + index * self.pace)
    }
}

/// The last of at most `room` missing blocks of `disk` up to `end` for which `is_due(position, index)` holds: block by block
/// through the first word of the set, then word by word, by the last block of each.
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
        // The blocks of one request come together.
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
