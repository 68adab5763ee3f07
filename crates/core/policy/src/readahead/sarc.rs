//! SARC: sequential prefetching and replacement in one, with a list for sequential blocks and one for the others.
//!
//! Source: B. S. Gill and D. S. Modha, "SARC: Sequential Prefetching in Adaptive Replacement Cache", USENIX 2005,
//! sections II-A to II-C (detection, groups and triggers, what a trigger renews) and III-B to III-D (the two marginal
//! utilities and their comparison), read as text. Figure 4, the algorithm, is an image in the available copy: its
//! adaptation, eviction and initial values are taken from two programs written after it (`SarcMeshCache` and
//! `SarcMesh2Cache`, caches of mesh clusters in Python, public source), which agree with each other in the lines given
//! here and with the text. Also zhang-pfc section 2.2 (fixed degree p and trigger distance g).
//!
//! ```text
//! counter of n:  1 if n - 1 is not cached, else min(threshold, 1 + counter of n - 1); set at n's first reference
//! miss on n:     n to RANDOM; if its counter is the threshold (a sequential miss), n and the p blocks after it to SEQ
//!                instead: with p = 1 it is one block lookahead, as the paper says
//! trigger:       the block g before the end of a prefetched group; its reference moves what is left of the group
//!                to the recent end of SEQ and prefetches the next p blocks
//! evict:         from SEQ if it is longer than desired, else from RANDOM; the older of the two list ends while
//!                either list is shorter than dL
//! adaptation:    ratio = 2 s dL / |SEQ|; s counts the sequential misses since the last hit in RANDOM's bottom
//!                hit in the last dL blocks of RANDOM: adapt = ratio - 1, at least -1, at most 1; s = 0
//!                hit in the last dL blocks of SEQ: adapt = 1 if ratio > large_ratio (20)
//! desired size:  at each eviction adapt / 2 is added to it; where it is not above 0 it becomes |SEQ| instead
//! at first:      s, adapt and the desired size are 0
//! ```
//!
//! The ratio is the marginal utility of SEQ in units of RANDOM's. Its excess over 1 is the speed at which the desired
//! size moves, a fraction of a block at each eviction, until the next hit at a list end. A workload that never hits the
//! end of RANDOM adapts by the hits at the end of SEQ.
//!
//! Differences and readings: a block is the paper's track. A request is processed block by block, so a large one may
//! trigger several groups. The last dL blocks are counted exactly; the programs estimate them by time stamps. If SEQ is
//! empty the ratio is unbounded if s > 0, else 0. The desired size is at most the frames. dL = 2 % of the frames ("a
//! small constant fraction of the cache size"), threshold 2, p = 8 and g = 4 are our settings. A block that a
//! coordinator removes or makes the first victim does not adapt the size. The destage and free-queue threads belong to
//! the host.
//!
//! Cost: constant per block plus p per group; 28 bytes per block of the universe, 16 per listed block, about 80 for
//! each of at most 2 * frames + 1024 blocks that are cached or named. Not for strides or backward scans, which it
//! treats as random, nor where many streams follow a few: a SEQ from which each block is evicted before its hit never
//! grows, as long as RANDOM's end is not hit either.

use headstart_types::{keys, Block, KeyError, KeyTable, Nanos, Outcome, Position};

use super::recent::Recent;
use super::{
    Asked, BuildReadAhead, Cached, Found, Integrated, Needs, ReadAhead, ReadAheadContext, ReadsAhead, Run, Size,
};
use crate::lists::Lists;
use crate::row::{Family, PolicyRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "sarc",
    summary: "groups of fixed size ahead of sequential blocks, whose share of the cache adapts by marginal utility",
    source: "Gill and Modha, USENIX 2005; zhang-pfc, section 2.2",
    keys: KeyTable::of::<SarcKeys>(),
    default_replacement: None,
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: true,
        needs: Needs::Nothing,
        build: BuildReadAhead::WithReplacement(&|keys, context| {
            let setting = keys.get::<SarcKeys>().setting(context)?;
            Ok(Box::new(Sarc::new(context.frames, setting)))
        }),
    }),
};

keys! {
    /// Keys of `sarc`.
    pub struct SarcKeys {
        /// p: number of blocks per group. At least two.
        pub degree: Size = Size::Blocks(8),
        /// g: distance of a group's trigger from the group's end. A reference to the trigger prefetches the next group.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub trigger: Size = Size::Blocks(4),
        /// Number of consecutive blocks that count as sequential.
        #[schemars(range(min = 1))]
        pub threshold: u32 = 2,
        /// dL: length of the old end of each list where hits adapt the lists' sizes, as a share of the frames.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 0.5, "x-allowed" = "a share of the frames, above 0 and at most 0.5"))]
        pub bottom: f64 = 0.02,
        /// Ratio of the marginal utilities above which a hit at the old end of SEQ enlarges SEQ.
        #[schemars(range(min = 1))]
        pub large_ratio: u32 = 20,
    }
}

impl SarcKeys {
    fn setting(&self, context: &ReadAheadContext) -> Result<SarcSetting, KeyError> {
        let degree = self.degree.blocks(context.block_bytes);
        if degree < 2 {
            return Err(KeyError::new("degree", format!("{degree} is out of range"), "at least two blocks"));
        }
        let trigger = self.trigger.blocks(context.block_bytes);
        if trigger >= degree {
            let allowed = format!("less than degree, {degree} blocks");
            return Err(KeyError::new("trigger", format!("{trigger} blocks extend past the group"), allowed));
        }
        let bottom = (self.bottom * f64::from(context.frames)).ceil() as usize;
        let (threshold, large_ratio) = (self.threshold, u64::from(self.large_ratio));
        Ok(SarcSetting { degree, trigger, threshold, bottom: bottom.max(1), large_ratio })
    }
}

/// SEQ without its bottom.
const SEQ: usize = 0;
/// The least recently used dL blocks of SEQ.
const SEQ_BOTTOM: usize = 1;
/// RANDOM without its bottom.
const RANDOM: usize = 2;
/// The least recently used dL blocks of RANDOM.
const RANDOM_BOTTOM: usize = 3;

/// SARC's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SarcSetting {
    /// p: blocks per prefetched group, at least 2.
    pub degree: u64,
    /// g: distance of the trigger from the end of its group, in blocks; at least 1, below `degree`.
    pub trigger: u64,
    /// Counter value at which a block is sequential; at least 1, at which every miss is.
    pub threshold: u32,
    /// dL: number of blocks at the end of each list whose hits are watched, at least 1.
    pub bottom: usize,
    /// A hit at the end of SEQ raises the desired size if SEQ is more than this many times as useful as RANDOM.
    pub large_ratio: u64,
}

/// State of a block that is cached, in flight, or about to be fetched.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Length of the sequential run that ends at this block; 0: not referenced since it was fetched.
    counter: u32,
    sequential: bool,
    /// If the block is a trigger: the end of its group; otherwise 0.
    group_end: u64,
    block: Option<Block>,
}

/// The `sarc` policy.
#[derive(Debug)]
pub struct Sarc {
    setting: SarcSetting,
    frames: usize,
    lists: Lists<4>,
    /// For each block: when it was last put at the recent end of its list.
    stamps: Vec<u64>,
    /// For each block: its file and index.
    places: Vec<(u32, u64)>,
    clock: u64,
    pages: Recent<(u32, u64), Page>,
    /// Desired length of SEQ in blocks; at most `frames`, and below 0 only until the next eviction.
    desired: f64,
    /// Twice the amount that each eviction adds to `desired`, from -1 to 1.
    adapt: f64,
    /// s: sequential misses since the last hit at the end of RANDOM.
    sequential_misses: u64,
}

impl Sarc {
    /// For a cache of `frames` frames.
    #[must_use]
    pub fn new(frames: u32, setting: SarcSetting) -> Self {
        let frames = frames as usize;
        Self {
            setting,
            frames,
            lists: Lists::new(),
            stamps: Vec::new(),
            places: Vec::new(),
            clock: 0,
            // Groups may be named that never arrive; twice the frames leave room for them until they are forgotten.
            pages: Recent::new(2 * frames + 1024),
            desired: 0.0,
            adapt: 0.0,
            sequential_misses: 0,
        }
    }

    /// The desired length of SEQ, in blocks.
    #[must_use]
    pub fn desired(&self) -> f64 {
        self.desired
    }

    /// The lengths of SEQ and RANDOM, in blocks.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        let length = |top, bottom| self.lists.len(top) + self.lists.len(bottom);
        (length(SEQ, SEQ_BOTTOM), length(RANDOM, RANDOM_BOTTOM))
    }

    /// Puts `block` at the recent end of `list`, which is SEQ or RANDOM.
    fn put_last(&mut self, list: usize, block: Block) {
        self.lists.move_to_back(list, block);
        self.clock += 1;
        self.stamps[block.index()] = self.clock;
        self.refill_bottoms();
    }

    /// Keeps the dL oldest blocks of each list in its bottom.
    fn refill_bottoms(&mut self) {
        for (top, bottom) in [(SEQ, SEQ_BOTTOM), (RANDOM, RANDOM_BOTTOM)] {
            while self.lists.len(bottom) < self.setting.bottom {
                let Some(block) = self.lists.front(top) else { break };
                self.lists.move_to_back(bottom, block);
            }
        }
    }

    /// 2 s dL / |SEQ|: the marginal utility of SEQ in units of RANDOM's.
    fn ratio(&self) -> f64 {
        match (self.sequential_misses, self.lengths().0) {
            (0, _) => 0.0,
            (misses, length) => (2 * misses * self.setting.bottom as u64) as f64 / length as f64,
        }
    }

    fn hit_in_bottom_of_random(&mut self) {
        self.adapt = (self.ratio() - 1.0).clamp(-1.0, 1.0);
        self.sequential_misses = 0;
    }

    fn hit_in_bottom_of_seq(&mut self) {
        if self.ratio() > self.setting.large_ratio as f64 {
            self.adapt = 1.0;
        }
    }

    /// Moves the desired size after an eviction.
    fn adapt(&mut self) {
        self.desired = match self.desired > 0.0 {
            true => (self.desired + self.adapt / 2.0).min(self.frames as f64),
            false => self.lengths().0 as f64,
        };
    }

    /// The counter of the block at `index`, derived from the preceding block, which is cached if `follows`.
    fn count(&self, file: u32, index: u64, follows: bool) -> u32 {
        match index.checked_sub(1) {
            Some(before) if follows => {
                let counter = self.pages.peek((file, before)).map_or(0, |page| page.counter);
                (counter + 1).min(self.setting.threshold)
            }
            _ => 1,
        }
    }

    /// Makes the blocks from `first` a group of SEQ, up to the end of the file; returns its end.
    fn group(&mut self, file: u32, first: u64, cached: &dyn Cached) -> u64 {
        let full = first.saturating_add(self.setting.degree);
        let end = full.min(cached.file_blocks(file).unwrap_or(u64::MAX));
        for index in first..end {
            let known = cached.is_cached(file, index);
            let page = self.pages.get_or_default((file, index));
            if !known {
                *page = Page { sequential: true, block: page.block, ..Page::default() };
            }
        }
        if end == full && end > first {
            self.pages.get_or_default((file, end - self.setting.trigger)).group_end = end;
        }
        end
    }

    /// Moves the blocks of SEQ in `first..end` to its recent end.
    fn renew(&mut self, file: u32, first: u64, end: u64) {
        for index in first..end {
            let block = self.pages.peek((file, index)).and_then(|page| page.block);
            if let Some(block) = block.filter(|block| matches!(self.lists.list_of(*block), Some(SEQ | SEQ_BOTTOM))) {
                self.put_last(SEQ, block);
            }
        }
    }

    /// The oldest evictable block of the list that consists of `bottom` and `top`.
    fn oldest(&self, bottom: usize, top: usize, view: &View<'_>) -> Option<Block> {
        self.lists.iter(bottom).chain(self.lists.iter(top)).find(|block| view.state(*block).is_evictable())
    }

    /// Chooses the block to evict.
    fn choose(&self, view: &View<'_>) -> Option<Block> {
        let seq = self.oldest(SEQ_BOTTOM, SEQ, view);
        let random = self.oldest(RANDOM_BOTTOM, RANDOM, view);
        let (Some(from_seq), Some(from_random)) = (seq, random) else { return seq.or(random) };
        let (seq_len, random_len) = self.lengths();
        let prefer_seq = if seq_len.min(random_len) < self.setting.bottom {
            self.stamps[from_seq.index()] < self.stamps[from_random.index()]
        } else {
            seq_len as f64 > self.desired
        };
        Some(if prefer_seq { from_seq } else { from_random })
    }

    fn forget(&mut self, block: Block) {
        self.lists.remove(block);
        self.refill_bottoms();
        self.pages.remove(self.places[block.index()]);
    }
}

impl ReadAhead for Sarc {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let file = asked.file;
        // What this request has put into groups so far. The groups of one request leave no gap.
        let (mut begins, mut planned) = (u64::MAX, 0);
        let mut follows = asked.first.checked_sub(1).is_some_and(|before| cached.is_cached(file, before));
        for (index, found) in (asked.first..asked.end()).zip(found) {
            let hit = found.is_hit() || index < planned;
            let counter = self.count(file, index, follows);
            let page = self.pages.get_or_default((file, index));
            if !hit {
                *page = Page { block: page.block, ..Page::default() };
            }
            if page.counter == 0 {
                page.counter = counter;
            }
            let (counter, group_end) = (page.counter, std::mem::take(&mut page.group_end));
            if !hit && counter == self.setting.threshold {
                self.sequential_misses += 1;
                self.pages.get_or_default((file, index)).sequential = true;
                let ahead = index.saturating_add(1);
                (begins, planned) = (begins.min(ahead), planned.max(self.group(file, ahead, cached)));
            } else if hit && group_end > 0 {
                self.renew(file, index, group_end);
                (begins, planned) = (begins.min(group_end), planned.max(self.group(file, group_end, cached)));
            }
            follows = true;
        }
        let first = begins.max(asked.end());
        if first < planned {
            prefetch.push(Run::between(file, first, planned));
        }
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        self.pages.remove((file, index));
    }

    fn remembered(&self) -> usize {
        self.pages.len()
    }
}

impl Replacement for Sarc {
    fn grow(&mut self, blocks: usize) {
        self.lists.grow(blocks);
        if blocks > self.stamps.len() {
            self.stamps.resize(blocks, 0);
            self.places.resize(blocks, (u32::MAX, u64::MAX));
        }
    }

    fn warm(&self, blocks: &[Block]) {
        self.lists.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let victim = self.choose(view)?;
        self.forget(victim);
        self.adapt();
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        let sequential = self.pages.peek(self.places[block.index()]).is_some_and(|page| page.sequential);
        self.put_last(if sequential { SEQ } else { RANDOM }, block);
    }

    fn referenced(&mut self, _position: Position, block: Block, outcome: Outcome) {
        if outcome == Outcome::Miss {
            return;
        }
        let Some(list) = self.lists.list_of(block) else { return };
        match list {
            SEQ_BOTTOM => self.hit_in_bottom_of_seq(),
            RANDOM_BOTTOM => self.hit_in_bottom_of_random(),
            _ => {}
        }
        self.put_last(if matches!(list, SEQ | SEQ_BOTTOM) { SEQ } else { RANDOM }, block);
    }

    fn removed(&mut self, block: Block) {
        self.forget(block);
    }
}

impl Integrated for Sarc {
    fn placed(&mut self, block: Block, file: u32, index: u64) {
        self.grow(block.index() + 1);
        self.places[block.index()] = (file, index);
        self.pages.get_or_default((file, index)).block = Some(block);
    }
}
