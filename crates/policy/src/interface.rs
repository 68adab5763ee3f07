//! The seam between policies and hosts.
//!
//! Order at one instant, kept by every host (DESIGN): (1) completions, [`Event::Arrived`]; (2) [`Event::Decide`],
//! with the next reference not yet served as the cursor; (3) requests: [`Event::Asked`] when one has been looked up,
//! [`Event::Served`] when a block has been handed to the process.

use headstart_types::{Block, Disk, Nanos, Outcome, Position};

use crate::readahead::{Asked, Found};

/// What the level knows about one block, in a byte.
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

    /// A block on its way that will be handed over and not stored: it holds no frame. For the level's policy it is
    /// absent.
    #[must_use]
    pub fn passing() -> Self {
        BlockState(Self::PASSING)
    }

    /// On its way past the cache, not to be stored.
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

    /// A block in the cache that was there from the start.
    #[must_use]
    pub fn resident() -> Self {
        BlockState(Self::RESIDENT)
    }

    /// The same block once its fetch has ended.
    #[must_use]
    pub fn arrived(self) -> Self {
        BlockState(self.0 & !Self::IN_FLIGHT | Self::RESIDENT)
    }

    /// The same block, waited for by a process (`true`) or not: a pinned block is never a victim.
    #[must_use]
    pub fn pinned(self, pinned: bool) -> Self {
        BlockState(if pinned { self.0 | Self::PINNED } else { self.0 & !Self::PINNED })
    }

    /// The same block once it has been referenced: a prefetch is no longer unused.
    #[must_use]
    pub fn used(self) -> Self {
        BlockState(self.0 & !(Self::UNUSED_PREFETCH | Self::UNSEEN_PREFETCH))
    }

    /// The same block once it has been served past the policy: a prefetch is no longer unused, but the policy has
    /// not seen a reference to it.
    #[must_use]
    pub fn used_silently(self) -> Self {
        BlockState(self.0 & !Self::UNUSED_PREFETCH)
    }

    /// In the cache.
    #[inline]
    #[must_use]
    pub fn is_resident(self) -> bool {
        self.0 & Self::RESIDENT != 0
    }

    /// On its way into the cache.
    #[inline]
    #[must_use]
    pub fn is_in_flight(self) -> bool {
        self.0 & Self::IN_FLIGHT != 0
    }

    /// Neither resident nor on its way into the cache; it may be passing.
    #[inline]
    #[must_use]
    pub fn is_absent(self) -> bool {
        self.0 & (Self::RESIDENT | Self::IN_FLIGHT) == 0
    }

    /// A process waits for it.
    #[inline]
    #[must_use]
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// Prefetched, and not referenced since: what the level counts.
    #[inline]
    #[must_use]
    pub fn is_unused_prefetch(self) -> bool {
        self.0 & Self::UNUSED_PREFETCH != 0
    }

    /// Prefetched, and the policy has seen no reference to it since: what the policy is told. A block that a
    /// coordinator has served past the policy is used, but unseen.
    #[inline]
    #[must_use]
    pub fn is_unseen_prefetch(self) -> bool {
        self.0 & Self::UNSEEN_PREFETCH != 0
    }

    /// May be evicted: resident and not pinned.
    #[inline]
    #[must_use]
    pub fn is_evictable(self) -> bool {
        self.0 & (Self::RESIDENT | Self::PINNED) == Self::RESIDENT
    }
}

/// The level's state as a policy sees it. Borrowed for the length of one call.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Position of the next reference not yet served.
    pub cursor: Position,
    /// Frames that hold no block. Always used before a victim is taken.
    pub free: u32,
    /// State of each block.
    pub blocks: &'a [BlockState],
    /// Requests issued to each disk and not yet ended; a disk with none is free.
    pub outstanding: &'a [u32],
    /// The disk that each block is on.
    pub disk_of: &'a [Disk],
    /// Where blocks lie in their files.
    pub space: &'a dyn Space,
    /// At [`Event::Asked`]: the blocks of the request; at [`Event::Expected`]: those expected. Else empty.
    pub asked: &'a [Block],
    /// At [`Event::Asked`]: how each of them was found. Else empty.
    pub found: &'a [Found],
}

impl View<'_> {
    /// State of `block`; one that has just been numbered is absent.
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
    /// Step (2): the cursor has moved or a fetch has ended since the last such event; decide.
    Decide,
    /// The reference has been served; the cursor is now `position + 1`. The block is resident.
    Served {
        /// The reference.
        position: Position,
        /// Its block.
        block: Block,
        /// How it had been found.
        outcome: Outcome,
        /// The think time between the reference before it and this one, without driver work and stalls.
        compute: Nanos,
        /// Who has got it.
        process: u32,
    },
    /// Step (3): a request has been looked up; [`View::asked`] has its blocks and [`View::found`] how they were found. What
    /// was resident has been served. Its absent blocks are to be fetched, now or at a later [`Event::Decide`];
    /// whatever else is fetched with them is a prefetch. Policies that do not [`ask`](Policy::asks) hear only of single
    /// blocks that are absent.
    Asked {
        /// Where its blocks lie, and who asks. Policies that do not ask look at [`View::asked`] only.
        asked: Asked,
        /// The reference of its first block; the others follow it. At lower levels `NEVER`.
        position: Position,
        /// The blocks are going to be written whole: nothing is read ahead behind them.
        write: bool,
    },
    /// The reference of `block` that was expected at `position` will not come, or comes at another time: hosts that only
    /// watch a process say so where it has gone another way. The block may be resident, absent or in flight.
    Skipped {
        /// The reference.
        position: Position,
        /// Its block.
        block: Block,
    },
    /// Step (3): the host expects requests for the blocks of [`View::asked`], which are absent. A policy that is
    /// [asked](Policy::asks) fetches them ahead in that order, as far as there are frames; others have hints of their own.
    Expected,
    /// Step (3): the processor of `process` has nothing to do and could take on a prefetch action. The answer is one
    /// fetch at most; a policy whose prefetching costs no processor time gives none.
    Idle {
        /// Whose processor.
        process: u32,
    },
    /// Step (1): a fetch has ended; its block is resident.
    Arrived {
        /// The fetched block.
        block: Block,
        /// The disk that it came from.
        disk: Disk,
        /// How long the disk worked on it, without queueing; `None` where it had nothing to do, since the process
        /// writes the whole block.
        service: Option<Nanos>,
    },
}

/// A decision: fetch `block`, into a free frame or in place of a victim.
///
/// The policy guarantees, for each fetch at its turn: `block` is absent; `victim` is evictable; `None` only while
/// frames are free, and a victim only when none is. The level asserts all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// What to fetch.
    pub block: Block,
    /// What to evict at the moment of issue; `None` takes a free frame.
    pub victim: Option<Block>,
}

/// The blocks' places. A block is numbered when it is first named, by a reference or by a read-ahead.
pub trait Space {
    /// The block at `index` of `file`; `None` beyond the end.
    fn block(&self, file: u32, index: u64) -> Option<Block>;

    /// The block at `index` of `file`, if it has been numbered.
    fn known(&self, file: u32, index: u64) -> Option<Block>;

    /// The file that `block` is in, and which of its blocks it is.
    fn place(&self, block: Block) -> (u32, u64);

    /// Blocks of the file, or of the device where there are no files; `None` where that is not known.
    fn file_blocks(&self, file: u32) -> Option<u64>;

    /// The disk of a block.
    fn disk(&self, block: Block) -> Disk;

    /// Blocks numbered so far.
    fn blocks(&self) -> usize;

    /// How many whole blocks of `file`, from `index` on and at most `most`, one request can fetch: those that a file
    /// system has laid one after another. Where there is no file system's layout, all that there are.
    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.file_blocks(file).map_or(most, |blocks| blocks.saturating_sub(index).min(most))
    }

    /// The block that says where the block at `index` of `file` lies, by a file and an index of its own: an indirect
    /// block. `None` where nothing has to be read for that.
    fn mapped_by(&self, _file: u32, _index: u64) -> Option<(u32, u64)> {
        None
    }

    /// First sector of a block on its disk; `None` where that is not known.
    fn sector(&self, _block: Block) -> Option<u64> {
        None
    }

    /// Whether `next` begins where `block` ends: on the same disk or, where that is not known, in the same file.
    fn adjoins(&self, block: Block, next: Block) -> bool {
        let (file, index) = self.place(block);
        self.place(next) == (file, index + 1) && self.disk(next) == self.disk(block)
    }

    /// Brings what [`Space::sector`] reads of a block into the processor's cache.
    fn prefetch(&self, _block: Block) {}
}

/// A space for policies that never look at it: no block has a neighbour.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSpace;

impl Space for NoSpace {
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
    /// Takes in one event and appends what it decides to `fetches`, to be issued at once in that order.
    ///
    /// `view` shows the level before any of these fetches.
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>);

    /// Every block number in later events is below `blocks`. The host calls it before the first event too.
    fn grow(&mut self, blocks: usize);

    /// Brings what the policy keeps about `blocks`, which are soon to be referenced, into the processor's cache. It cannot
    /// change the policy, so nothing may be decided from it.
    fn warm(&self, _blocks: &[Block]) {}

    /// Whether [`Event::Decide`] could come to any decision as things stand, where [`View::outstanding`] is
    /// `outstanding`: the host asks first, and saves itself the event if not.
    fn decides(&self, _outstanding: &[u32]) -> bool {
        true
    }

    /// Whether the policy wants [`Event::Asked`] for each request, whatever was found: then requests may come from several
    /// processes and have several blocks, and fetches that lie one after another are one request to what is below. Others
    /// are told of misses, one by one.
    fn asks(&self) -> bool {
        false
    }

    /// Whether fetches that are decided together leave as one order where each [adjoins](Space::adjoins) the one before it,
    /// though the policy may not be [asked](Policy::asks). Over another level they leave so where they follow one another in
    /// a file. Never changes.
    fn gathers(&self) -> bool {
        false
    }

    /// One request to what is below has so many blocks at most, at least 1; only for policies that are asked or gather.
    /// Never changes.
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether it is worth to tell [`Event::Idle`]: false says that no idle processor (`None`), or not that of this
    /// process, would be given a fetch. Constant time; the answer changes with every event.
    fn could_prefetch(&self, _process: Option<u32>) -> bool {
        false
    }

    /// A coordinator makes the resident `block` the first victim, whatever the policy would choose.
    fn first_victim(&mut self, _block: Block) {}

    /// The resident `block` has been taken out of the cache from outside.
    fn removed(&mut self, _block: Block) {}

    /// The level has been given frames: some are free now, whatever the last decision found.
    fn given_frames(&mut self) {}

    /// A time, later than the last event, at which the policy wants an [`Event::Decide`] though nothing may
    /// happen then. Asked for after each `Asked` and `Decide`.
    fn wake_at(&self) -> Option<Nanos> {
        None
    }
}
