//! One export: requests and I/O completions in, replies and I/O out. It has no clock, threads or I/O of its own: the
//! host supplies the time, and a test any time it likes.
//!
//! ```text
//! client --- request ---> pages ---> machine (level, read-ahead, coordinator) ---> orders ---> queue ---> backing
//!    ^                                                                                                       |
//!    +---- reply <--- pages, shared as they arrive <---------------------------- frames filled <-------------+
//! ```
//!
//! - A request gets resident pages at once and the others as they arrive. It shares their bytes with the frames and
//!   keeps them even if a frame is reused before the machine reports the request done. Therefore a request with more
//!   pages than frames needs no special case.
//! - A page that could not be read leaves the cache when the machine sees it arrive. If a read of several pages failed
//!   and may succeed in parts, the pages that clients wait for are read again one by one before any error is returned.
//! - A write goes to the backing unchanged and updates resident pages, but brings none in. `writes.rs` separates it
//!   from reads of the same pages. After a failed write the backing may have either content, so the cache drops the
//!   pages.
//!
//! Cost: constant per page in addition to the machine's. Memory: [`buffers`](crate::buffers), [`pages`](crate::pages),
//! and incomplete replies.

mod arriving;
mod changes;
mod check;
mod hinted;
mod losing;
mod spilling;

use headstart_engine::{Counts, Kind, Level, Tier};
use headstart_hints::{FollowReport, Follower, Prepared};
use headstart_host::mailbox::Request;
use headstart_nbd::Errno;
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};
use rustc_hash::FxHashMap;

use crate::buffers::Buffers;
use crate::change::Change;
use crate::machine::{Machine, SPILL_DISK};
use crate::pages::Pages;
use crate::queue::{Piece, Queue, ReadQueue};
use crate::spill::Spill;
use crate::stability::Stability;
use crate::statistics::Statistics;
use crate::wanted::Wanted;
use crate::work::{Action, Answer, ClientRequest, Completed, Data, Op, Page, Work};
use crate::writes::{PendingChange, Writes};

/// Ids below are pieces of reads; from here on, requests that bypass the cache.
const DIRECT: u64 = 1 << 32;
/// Ids from here on are slots in which pages are stored in a spill file.
const STORES: u64 = 1 << 63;
/// Id of [`Change::Renew`]; no slot has the one of this number.
const RENEWAL: u64 = u64::MAX;

/// Properties of an export.
#[derive(Debug, Clone)]
pub struct Setting {
    pub size_bytes: u64,
    /// A power of two, at least 4096.
    pub page_bytes: u64,
    /// Frames of the tier.
    pub frames: u32,
    /// Maximum number of reads of the backing in flight.
    pub under_way_max: u32,
    /// Maximum bytes of one read of the backing.
    pub read_bytes_max: u64,
    /// Pages of a failed read are read again one by one.
    pub fails_in_parts: bool,
}

/// A request without a reply.
struct Open {
    request: ClientRequest,
    since: Nanos,
    /// Bytes of each page of a read, once they are there.
    reply: Vec<Option<Page>>,
    /// Pages whose bytes are missing.
    pages_missing: u32,
    /// The machine has not reported it done.
    with_machine: bool,
    failed: Option<Errno>,
}

pub struct Conductor<Q = Queue> {
    setting: Setting,
    machine: Machine,
    buffers: Buffers,
    queue: Q,
    writes: Writes,
    open: FxHashMap<u64, Open>,
    /// Requests that wait for the bytes of missing pages.
    wanted: Wanted,
    incoming: Vec<ClientRequest>,
    completed: Vec<Completed>,
    /// Pages that arrive at the next turn but could not be read.
    failed: Vec<Block>,
    /// Requests that a page is handed out to; kept to reuse its memory.
    takers: Vec<u64>,
    statistics: Statistics,
    stability: Stability,
    /// Time of the last detected loss of acknowledged changes.
    lost_at: Option<Nanos>,
    /// Changes may be lost and the backing has not dropped its caches yet: nothing is read from it.
    is_renewing: bool,
    /// The file of the level below the one in memory.
    spill: Option<Spill>,
    /// Pages that arrive in that level at the machine's next turn but could not be stored.
    unstored: Vec<Block>,
    now: Nanos,
}

impl Conductor {
    /// An export served through `tier`, with the level of `spill` below it and that of `hints` above it.
    #[must_use]
    pub fn new(setting: Setting, tier: Tier, spill: Option<Spill>, hints: Option<Prepared>) -> Self {
        let queue = Queue::new(setting.under_way_max);
        Self::with_queue(setting, tier, (spill, hints), queue)
    }
}

impl<Q: ReadQueue> Conductor<Q> {
    /// Like [`Conductor::new`], with the caller's queue.
    #[must_use]
    pub fn with_queue(
        setting: Setting,
        tier: Tier,
        (mut spill, hints): (Option<Spill>, Option<Prepared>),
        queue: Q,
    ) -> Self {
        let slots = spill.as_ref().map_or(0, Spill::slots);
        let hinted = hints.as_ref().map_or(&[][..], Prepared::pages);
        let pages = Pages::new(setting.size_bytes.div_ceil(setting.page_bytes), setting.frames, slots, hinted);
        let below = spill.as_mut().map(|spill| spill.tier(&pages));
        Self {
            machine: Machine::new(tier, below, hints, pages, setting.page_bytes),
            buffers: Buffers::prepared(setting.page_bytes as usize),
            queue,
            writes: Writes::default(),
            open: FxHashMap::default(),
            wanted: Wanted::default(),
            incoming: Vec::new(),
            completed: Vec::new(),
            failed: Vec::new(),
            takers: Vec::new(),
            statistics: Statistics::default(),
            stability: Stability::default(),
            lost_at: None,
            is_renewing: false,
            spill,
            unstored: Vec::new(),
            now: Nanos::ZERO,
            setting,
        }
    }

    #[must_use]
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The numbered pages.
    #[must_use]
    pub fn pages(&self) -> &Pages {
        self.machine.pages()
    }

    /// Limits the number of unneeded pages that stay numbered to `count`.
    pub fn number_at_most(&mut self, count: usize) {
        self.machine.number_at_most(count);
    }

    #[must_use]
    pub fn level(&self) -> &Level {
        self.machine.level()
    }

    /// The level's counters.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.machine.counts()
    }

    /// Report of the hints, if there are any.
    #[must_use]
    pub fn hints(&self) -> Option<FollowReport> {
        self.machine.hints().map(Follower::report)
    }

    /// Statistics in addition to the level's counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let has_work = self.queue.as_ref().lengths() != (0, 0) || self.is_renewing;
        let stores = !self.spill.as_ref().is_none_or(Spill::is_idle);
        self.open.is_empty() && self.incoming.is_empty() && !has_work && !stores
    }

    /// Number of requests without a reply.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.open.len() + self.incoming.len()
    }

    /// Reads of the backing that are queued, and those in flight.
    #[must_use]
    pub fn reads(&self) -> (usize, u32) {
        self.queue.as_ref().lengths()
    }

    /// When to call [`Conductor::instant`] next, even if nothing happens until then.
    #[must_use]
    pub fn next_timer(&mut self) -> Option<Nanos> {
        let hints = self.machine.hints().and_then(Follower::next_look);
        self.machine.next_timer().into_iter().chain(hints).min()
    }

    /// Adds a client's request for the next instant.
    pub fn request(&mut self, request: ClientRequest) {
        self.incoming.push(request);
    }

    /// Adds completed work for the next instant.
    pub fn completed(&mut self, completed: Completed) {
        self.completed.push(completed);
    }

    /// Takes back the pages of an answer.
    pub fn reuse(&mut self, reply: Data) {
        reply.into_pages().into_iter().for_each(|page| self.buffers.give_back(page));
    }

    /// Frees memory that was not needed since the last call; returns whether there was any.
    pub fn shrink(&mut self) -> bool {
        self.buffers.shrink()
    }

    /// Processes everything that is due at `now`. The caller guarantees that `now` does not go backwards.
    pub fn instant(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.now = now;
        let earlier = actions.len();
        for completed in std::mem::take(&mut self.completed) {
            match completed.id {
                ..DIRECT => self.piece_ended(completed, actions),
                DIRECT..STORES => self.direct_ended(completed, actions),
                RENEWAL => self.is_renewing = false,
                _ => self.store_ended(completed),
            }
        }
        self.machine.turn(now);
        std::mem::take(&mut self.failed).into_iter().for_each(|block| self.machine.take_out(block));
        self.take_out_unstored();
        if self.lost_at == Some(now) {
            self.drop_all();
        }
        self.follow(actions);
        for request in std::mem::take(&mut self.incoming) {
            self.admit(request, actions);
        }
        self.read_ahead_by_hints(actions);
        self.start(actions);
        self.statistics.acts(&actions[earlier..]);
        self.machine.pages().forget(|block| self.is_unneeded(block));
        debug_assert_eq!(self.named_in_vain(), None, "a number is free, and something still names it");
    }

    /// Whether nothing refers to `block`: no level, read, buffer or request.
    fn is_unneeded(&self, block: Block) -> bool {
        let Self { machine, queue, buffers, wanted, .. } = self;
        let is_read = queue.as_ref().holds(block) || wanted.holds(block);
        !is_read && machine.is_unknown(block) && buffers.of(block).is_none()
    }

    /// A free block number that something still refers to. Cost: proportional to the free numbers.
    fn named_in_vain(&self) -> Option<Block> {
        self.machine.pages().free().into_iter().find(|block| !self.is_unneeded(*block))
    }

    fn pages_of(&self, offset: u64, length: u64) -> std::ops::Range<u64> {
        offset / self.setting.page_bytes..(offset + length).div_ceil(self.setting.page_bytes)
    }

    fn admit(&mut self, request: ClientRequest, actions: &mut Vec<Action>) {
        let length = u64::from(request.length);
        self.statistics.asked(&request);
        let (id, pages) = (request.id, self.pages_of(request.offset, length));
        let mut open =
            Open { request, since: self.now, reply: Vec::new(), pages_missing: 0, with_machine: false, failed: None };
        if self.unstable().is_some() && !matches!(open.request.op, Op::Read | Op::Cache | Op::Extents) {
            return self.answer(id, self.now, Answer::Failed(Errno::Io), actions);
        }
        match open.request.op {
            Op::Read | Op::Cache => return self.read(open, pages, actions),
            Op::Write { .. } | Op::Trim { .. } | Op::Zero { .. } => {
                self.writes.push(PendingChange { request: id, pages })
            }
            Op::Flush => {
                self.stability.sync_begins(id);
                actions.push(Action::Start(id + DIRECT, Work::Change(Change::Flush, None)));
            }
            Op::Extents => {
                let ClientRequest { offset, length, .. } = open.request;
                actions.push(Action::Start(id + DIRECT, Work::Extents { offset, length }));
            }
        }
        open.pages_missing = 1;
        self.open.insert(id, open);
    }

    fn read(&mut self, mut open: Open, pages: std::ops::Range<u64>, actions: &mut Vec<Action>) {
        if let Some(hints) = self.machine.hints_mut() {
            hints.referenced(self.now, pages.clone());
            self.take_out_unstored();
        }
        let (id, brings) = (open.request.id, matches!(open.request.op, Op::Read));
        let blocks: Vec<Block> = pages.clone().filter_map(|page| self.machine.pages().block(0, page)).collect();
        for block in &blocks {
            let mut bytes = None;
            if self.machine.level().state(*block).is_resident() {
                bytes = Some(self.buffers.of(*block).expect("a resident page has its bytes"));
            } else {
                self.wanted.push(*block, id);
                self.queue.as_mut().promote(*block);
                open.pages_missing += 1;
            }
            if brings {
                open.reply.push(bytes.cloned());
            }
        }
        open.with_machine = true;
        let asked = Asked {
            file: 0,
            first: pages.start,
            count: blocks.len() as u32,
            client: open.request.client,
            ends_inside: false,
        };
        self.open.insert(id, open);
        self.machine.request(self.now, id, asked, &blocks);
        self.follow(actions);
    }

    /// Carries out the machine's decisions.
    fn follow(&mut self, actions: &mut Vec<Action>) {
        let (mut evicted, mut replied, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        self.machine.take(&mut evicted, &mut replied, &mut orders);
        self.spill_evicted(&evicted, &mut orders, actions);
        evicted.iter().for_each(|block| self.drop_if_absent(*block));
        let pages_max = (self.setting.read_bytes_max / self.setting.page_bytes).max(1) as usize;
        for Request { kind, blocks, disk, .. } in orders {
            let (demand, spilled) = (kind == Kind::Demand, disk == SPILL_DISK);
            if let (Some(spill), false) = (&mut self.spill, spilled) {
                spill.totals.missed_pages += blocks.len() as u64;
            }
            for blocks in blocks.chunks(pages_max) {
                let first = self.machine.page(blocks[0]);
                debug_assert!(
                    (first..).zip(blocks).all(|(page, block)| self.machine.pages().known(0, page) == Some(*block)),
                    "an order is for pages that follow one another, by the numbers that they have"
                );
                self.queue.push(Piece { blocks: blocks.to_vec(), first, demand, spilled, since: None });
            }
        }
        for id in replied {
            let Some(open) = self.open.get_mut(&id) else { continue };
            open.with_machine = false;
            if self.machine.removes_sent {
                let ClientRequest { offset, length, .. } = open.request;
                let pages = self.pages_of(offset, length.into());
                let known = self.machine.pages().known_within(pages.start, pages.end);
                known.into_iter().for_each(|block| self.drop_if_absent(block));
            }
            self.reply_if_done(id, actions);
        }
    }

    fn drop_if_absent(&mut self, block: Block) {
        if !self.machine.level().state(block).is_resident() {
            self.buffers.drop_of(block);
        }
    }

    /// Starts the work that may start.
    fn start(&mut self, actions: &mut Vec<Action>) {
        if self.is_renewing {
            return;
        }
        if !self.writes.is_empty() {
            let Self { queue, writes, spill, .. } = self;
            let is_stored = |pages: &_| spill.as_ref().is_some_and(|spill| spill.is_storing(pages));
            for change in writes.start(|pages| queue.reads_any(pages.start, pages.end) || is_stored(pages)) {
                self.change(&change, actions);
            }
            let Self { queue, writes, wanted, .. } = self;
            queue.as_mut().split(|pages| writes.holds(pages), |block| wanted.holds(block));
        }
        loop {
            let Self { queue, writes, .. } = self;
            let is_free = |piece: &Piece| writes.is_empty() || !writes.holds(&(piece.first..piece.end()));
            let Some(index) = queue.start(self.now, is_free) else { break };
            let piece = queue.as_ref().piece(index);
            // Pages may have left the spill file since they were ordered.
            let is_held =
                |spill: &&mut Spill| piece.spilled && (piece.first..piece.end()).all(|page| spill.holds(page));
            if let Some(spill) = self.spill.as_mut().filter(is_held) {
                let pages = (piece.first..).zip(self.buffers.take_run(piece.blocks.len()));
                let places = pages.map(|(page, buffer)| spill.load(page, buffer)).collect();
                actions.push(Action::Start(index.into(), Work::Load(places)));
                continue;
            }
            let (offset, demand) = (piece.first * self.setting.page_bytes, piece.demand);
            let buffers = self.buffers.take_run(piece.blocks.len());
            actions.push(Action::Start(index.into(), Work::Read { offset, buffers, demand }));
        }
    }

    fn reply_if_done(&mut self, id: u64, actions: &mut Vec<Action>) {
        let is_done = self.open.get(&id).is_some_and(|open| open.pages_missing == 0 && !open.with_machine);
        if !is_done {
            return;
        }
        let Some(Open { request, since, reply, failed, .. }) = self.open.remove(&id) else { return };
        if let Some(hints) = self.machine.hints_mut() {
            hints.answered(self.now);
        }
        let skip = (request.offset % self.setting.page_bytes) as usize;
        let data = Data::new(reply.into_iter().flatten().collect(), skip, request.length as usize);
        let answer = match (failed, &request.op) {
            (None, Op::Read) => Answer::Data(data),
            (None, _) => Answer::Done,
            (Some(errno), _) => {
                self.reuse(data);
                Answer::Failed(errno)
            }
        };
        self.answer(id, since, answer, actions);
    }

    fn answer(&mut self, id: u64, since: Nanos, answer: Answer, actions: &mut Vec<Action>) {
        self.statistics.answered(&answer, self.now - since);
        actions.push(Action::Reply(id, answer));
    }
}
