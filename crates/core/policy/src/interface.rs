//! The interface between policies and hosts.
//!
//! Order at one instant, kept by every host (DESIGN): (1) completions, [`Event::Arrived`]; (2) [`Event::Decide`], with
//! the next unserved reference as the cursor; (3) requests: [`Event::Asked`] when one has been looked up,
//! [`Event::Served`] when a block has been delivered to the process.

use headstart_types::{Block, Disk, Nanos, Outcome, Position};

use crate::readahead::{Asked, Found};

/// The level's state of one block, in a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockState(u8);

impl BlockState {
    /// Neither resident nor in flight.
    pub const ABSENT: BlockState = BlockState(0);
    const RESIDENT: u8 = 1;
    const IN_FLIGHT: u8 = 2;
    const PINNED: u8 = 4;
    const UNUSED_PREFETCH: u8 = 8;
    const PASSING: u8 = 16;
    const UNSEEN_PREFETCH: u8 = 32;
    const FRESH: u8 = 64;

    /// A block in flight that will be delivered without being stored: it holds no frame. For the level's policy it is
    /// absent.
    #[must_use]
    pub fn passing() -> Self {
        BlockState(Self::PASSING)
    }

    /// Whether it is in flight past the cache, not to be stored.
    #[inline]
    #[must_use]
    pub fn is_passing(self) -> bool {
        self.0 & Self::PASSING != 0
    }

    /// A block whose fetch has been issued and has not ended. It holds a frame and cannot be a victim.
    #[must_use]
    pub fn in_flight(prefetch: bool) -> Self {
        BlockState(Self::IN_FLIGHT | if prefetch { Self::UNUSED_PREFETCH | Self::UNSEEN_PREFETCH } else { 0 })
    }

    /// A block that is in the cache from the start.
    #[must_use]
    pub fn resident() -> Self {
        BlockState(Self::RESIDENT)
    }

    /// The same block once its fetch has ended.
    #[must_use]
    pub fn arrived(self) -> Self {
        BlockState(self.0 & !Self::IN_FLIGHT | Self::RESIDENT)
    }

    /// The same block with (`true`) or without a process that waits for it: a pinned block is never a victim.
    #[must_use]
    pub fn pinned(self, pinned: bool) -> Self {
        BlockState(if pinned { self.0 | Self::PINNED } else { self.0 & !Self::PINNED })
    }

    /// The same block marked (`true`) or not as one whose fetch was issued at the last instant with fetches.
    #[must_use]
    pub fn fresh(self, fresh: bool) -> Self {
        BlockState(if fresh { self.0 | Self::FRESH } else { self.0 & !Self::FRESH })
    }

    /// Whether it is so marked.
    #[inline]
    #[must_use]
    pub fn is_fresh(self) -> bool {
        self.0 & Self::FRESH != 0
    }

    /// The same block once it has been referenced: a prefetch is no longer unused.
    #[must_use]
    pub fn used(self) -> Self {
        BlockState(self.0 & !(Self::UNUSED_PREFETCH | Self::UNSEEN_PREFETCH))
    }

    /// The same block once it has been served bypassing the policy: a prefetch is no longer unused, but the policy has
    /// not seen a reference to it.
    #[must_use]
    pub fn used_silently(self) -> Self {
        BlockState(self.0 & !Self::UNUSED_PREFETCH)
    }

    /// Whether it is in the cache.
    #[inline]
    #[must_use]
    pub fn is_resident(self) -> bool {
        self.0 & Self::RESIDENT != 0
    }

    /// Whether it is in flight into the cache.
    #[inline]
    #[must_use]
    pub fn is_in_flight(self) -> bool {
        self.0 & Self::IN_FLIGHT != 0
    }

    /// Whether it is neither resident nor in flight into the cache; it may be passing.
    #[inline]
    #[must_use]
    pub fn is_absent(self) -> bool {
        self.0 & (Self::RESIDENT | Self::IN_FLIGHT) == 0
    }

    /// Whether a process waits for it.
    #[inline]
    #[must_use]
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Whether it was prefetched and not referenced since, as the level counts it.
    #[inline]
    #[must_use]
    pub fn is_unused_prefetch(self) -> bool {
        self.0 & Self::UNUSED_PREFETCH != 0
    }

    /// Whether it was prefetched and the policy has seen no reference to it since. A block served bypassing the policy
    /// is used, but unseen.
    #[inline]
    #[must_use]
    pub fn is_unseen_prefetch(self) -> bool {
        self.0 & Self::UNSEEN_PREFETCH != 0
    }

    /// Whether it may be evicted: resident and not pinned.
    #[inline]
    #[must_use]
    pub fn is_evictable(self) -> bool {
        self.0 & (Self::RESIDENT | Self::PINNED) == Self::RESIDENT
    }
}

/// The level's state as a policy sees it. Borrowed for the length of one call.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Position of the next reference that has not been served.
    pub cursor: Position,
    /// Frames that hold no block. Always used before a victim is taken.
    pub free: u32,
    /// State of each block, indexed by block number.
    pub blocks: &'a [BlockState],
    /// For each disk: requests issued and not yet ended; a disk with none is free.
    pub outstanding: &'a [u32],
    /// The disk that each block is on.
    pub disk_of: &'a [Disk],
    /// The places of blocks in their files.
    pub space: &'a dyn BlockMap,
    /// At [`Event::Asked`]: the blocks of the request; at [`Event::Expected`]: the expected blocks. Otherwise empty.
    pub asked: &'a [Block],
    /// At [`Event::Asked`]: how each block was found. Otherwise empty.
    pub found: &'a [Found],
}

impl View<'_> {
    /// State of `block`; a newly numbered block is absent.
    #[inline]
    #[must_use]
    pub fn state(&self, block: Block) -> BlockState {
        self.blocks.get(block.index()).copied().unwrap_or(BlockState::ABSENT)
    }

    /// Whether nothing is outstanding on `disk`.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, disk: usize) -> bool {
        self.outstanding[disk] == 0
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Step (2): decide. The cursor has moved or a fetch has ended since the last such event.
    Decide,
    /// The reference has been served; the cursor is now `position + 1`. The block is resident.
    Served {
        /// Position of the reference.
        position: Position,
        /// Its block.
        block: Block,
        /// How it was found.
        outcome: Outcome,
        /// The think time between the preceding reference and this one, without driver work and stalls.
        compute: Nanos,
        /// The process that it was delivered to.
        process: u32,
    },
    /// Step (3): a request has been looked up; [`View::asked`] has its blocks and [`View::found`] how they were found.
    /// Resident blocks have been served. The absent ones must be fetched, now or at a later [`Event::Decide`]; any
    /// other fetch decided here is a prefetch. Policies that do not [`ask`](Policy::takes_requests) get this event only for
    /// single blocks that are absent.
    Asked {
        /// The place of its blocks, and the requesting client. Policies that do not ask use [`View::asked`] only.
        asked: Asked,
        /// Position of its first block; the others follow it. `NEVER` at lower levels.
        position: Position,
        /// Whether the blocks will be overwritten as a whole; nothing is read ahead behind writes.
        write: bool,
    },
    /// The reference of `block` expected at `position` will not happen, or happens at another time. Hosts that only
    /// observe a process report it when the process deviates. The block may be resident, absent or in flight.
    Skipped {
        /// Position of the reference.
        position: Position,
        /// Its block.
        block: Block,
    },
    /// Step (3): the host expects requests for the blocks of [`View::asked`], which are absent. A policy that
    /// [asks](Policy::takes_requests) prefetches them in that order as far as there are frames; other policies have their own
    /// hints.
    Expected,
    /// Step (3): the processor of `process` is idle and could start a prefetch. The policy answers with at most one
    /// fetch; a policy whose prefetching costs no processor time answers with none.
    Idle {
        /// The process whose processor is idle.
        process: u32,
    },
    /// Step (1): a fetch has ended; its block is resident.
    Arrived {
        /// The fetched block.
        block: Block,
        /// The disk that it came from.
        disk: Disk,
        /// Time that the disk worked on it, without queueing; `None` if it was not read because the process overwrites
        /// the whole block.
        service: Option<Nanos>,
    },
}

/// A decision: fetch `block`, into a free frame or in place of a victim.
///
/// The policy guarantees for each fetch, in order: `block` is absent; `victim` is evictable; `victim` is `None` exactly
/// while frames are free. The level asserts all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// The block to fetch.
    pub block: Block,
    /// The block to evict when the fetch is issued; `None` takes a free frame.
    pub victim: Option<Block>,
}

/// The places of blocks. A block is numbered when a reference or a read-ahead first names it.
pub trait BlockMap {
    /// The block at `index` of `file`; `None` beyond the end.
    fn block(&self, file: u32, index: u64) -> Option<Block>;

    /// The block at `index` of `file` if it has been numbered, without numbering it.
    fn known(&self, file: u32, index: u64) -> Option<Block>;

    /// The file of `block`, and its index in that file.
    fn place(&self, block: Block) -> (u32, u64);

    /// Number of blocks of the file, or of the device if there are no files; `None` if unknown.
    fn file_blocks(&self, file: u32) -> Option<u64>;

    /// The disk of a block.
    fn disk(&self, block: Block) -> Disk;

    /// Number of blocks numbered so far.
    fn blocks(&self) -> usize;

    /// How many whole blocks of `file` from `index` on, at most `most`, one request can fetch, because the file system
    /// has placed them contiguously. Without a file system's layout, all blocks up to the end of the file.
    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.file_blocks(file).map_or(most, |blocks| blocks.saturating_sub(index).min(most))
    }

    /// The indirect block that holds the address of the block at `index` of `file`, as a file and an index. `None` if
    /// no block needs to be read for that.
    fn mapped_by(&self, _file: u32, _index: u64) -> Option<(u32, u64)> {
        None
    }

    /// First sector of a block on its disk; `None` if unknown.
    fn sector(&self, _block: Block) -> Option<u64> {
        None
    }

    /// Whether `next` begins where `block` ends: on the same disk or, if places on disk are unknown, in the same file.
    fn adjoins(&self, block: Block, next: Block) -> bool {
        let (file, index) = self.place(block);
        self.place(next) == (file, index + 1) && self.disk(next) == self.disk(block)
    }

    /// Prefetches the data that [`BlockMap::sector`] reads for a block into the processor's cache.
    fn prefetch(&self, _block: Block) {}
}

/// A space for policies that do not use places: no block has a neighbour.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSpace;

impl BlockMap for NoSpace {
    fn block(&self, _file: u32, _index: u64) -> Option<Block> {
        None
    }

    fn known(&self, _file: u32, _index: u64) -> Option<Block> {
        None
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, u64::from(block.0))
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        None
    }

    fn disk(&self, _block: Block) -> Disk {
        Disk(0)
    }

    fn blocks(&self) -> usize {
        0
    }
}

/// A policy for one level.
pub trait Policy: Send {
    /// Processes one event and appends the decided fetches to `fetches`; the host issues them at once, in that order.
    ///
    /// `view` shows the level before any of these fetches.
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>);

    /// Announces that block numbers in later events are below `blocks`. Also called before the first event.
    fn grow(&mut self, blocks: usize);

    /// Prefetches the policy's data about `blocks`, which will soon be referenced, into the processor's cache. It takes
    /// `&self`, so no decision can depend on it.
    fn warm(&self, _blocks: &[Block]) {}

    /// Whether [`Event::Decide`] could lead to any decision now, where [`View::outstanding`] is `outstanding`. The host
    /// skips the event if not.
    fn decides(&self, _outstanding: &[u32]) -> bool {
        true
    }

    /// Whether the policy wants [`Event::Asked`] for each request, including full hits. Requests may then come from
    /// several processes and have several blocks, and contiguous fetches form one request to the level or device below.
    /// Other policies get single misses only.
    fn takes_requests(&self) -> bool {
        false
    }

    /// Whether fetches decided together leave as one request where each [adjoins](BlockMap::adjoins) the one before it,
    /// even if the policy does not [ask](Policy::takes_requests). Above another level they are combined where they are
    /// consecutive in a file. Never changes.
    fn gathers(&self) -> bool {
        false
    }

    /// Maximum number of blocks of one request to the level or device below, at least 1; only for policies that ask or
    /// gather. Never changes.
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether [`Event::Idle`] may lead to a fetch. False means that no idle processor (`None`), or not the one of this
    /// process, would be given a fetch. Constant time; the answer may change with every event.
    fn could_prefetch(&self, _process: Option<u32>) -> bool {
        false
    }

    /// A coordinator marks the resident `block` as the first victim, overriding the policy's choice.
    fn first_victim(&mut self, _block: Block) {}

    /// The resident `block` has been removed from the cache by another component.
    fn removed(&mut self, _block: Block) {}

    /// Whether a later decision may fetch `block` because it is missing now: its number must not be given to another block.
    fn retries(&self, _block: Block) -> bool {
        false
    }

    /// The level has been given frames: some are free now, even if the last decision found none.
    fn given_frames(&mut self) {}

    /// A time later than the last event at which the policy wants an [`Event::Decide`] even if nothing else happens
    /// then. Queried after each `Asked` and `Decide`.
    fn wake_at(&self) -> Option<Nanos> {
        None
    }
}
