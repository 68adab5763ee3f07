//! AMP: every stream has its own degree p and trigger distance g, and both adapt.
//!
//! Source: B. S. Gill and L. A. D. Bathen, "AMP: Adaptive Multi-stream Prefetching in a Shared Cache", FAST 2007,
//! section "AMP Algorithm", read as text. Its Figures 3 and 4 were only available through a program written after them,
//! AMP.c of mimircache (J. Yang, 2016), which agrees except for the differences below. Also zhang-pfc section 2.2. The
//! ideal p is the stream's request rate times the life of a block in the cache, and AMP approaches it from both sides:
//!
//! ```text
//! miss after a cached block:   prefetch p blocks, p as kept with the block before (at first, the size of the request)
//! last block of a set used:    p of the last set of the stream += size of the request
//! unused block evicted:        p -= 1, not below 1; g = min(g - 1, p - 1), not below 0
//! p > APT = 4:                 the block g before the end of a set is its trigger, g = APT / 2 at first; the
//!                              trigger's reference prefetches the next p blocks
//! first block of a set late:   (a reader waits for it, and the set was prefetched ahead, by a trigger) g of the
//!                              stream += 1, and p > g always
//! ```
//!
//! As in the paper, p and g are kept with the last block of each prefetched set, so streams are never counted or
//! searched. Our reading: a g of 0 becomes APT / 2 again at the next set while p > APT. Differences: the paper gives an
//! unused block at the LRU end a second chance and lowers p then; a read-ahead here does not choose victims, so p falls
//! when such a block is evicted, as zhang-pfc describes AMP. A waiting reader is noticed when it requests the block,
//! not when the set arrives. p grows by a set's last block at its first reference only, and to at most `max_degree`. A
//! request is one read: its blocks and what is prefetched with them form one set.
//!
//! Cost: constant per block and per prefetched block; about 90 bytes for each of at most 2 * frames + 1024 blocks. Not
//! for sequences shorter than a few requests: each starts with p of one request.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "amp",
    summary: "a degree and a trigger distance for each stream, grown by use, shrunk by waste",
    source: "Gill and Bathen, FAST 2007",
    keys: KeyTable::of::<AmpKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &AmpKeys = keys.get();
            let max_degree = keys.max_degree.blocks(context.block_bytes);
            Ok(Box::new(Amp::new(context.frames, u64::from(keys.threshold), max_degree)))
        })
    }),
};

keys! {
    /// Keys of `amp`.
    pub struct AmpKeys {
        /// APT: a stream whose p exceeds this has a trigger.
        pub threshold: u32 = 4,
        /// Maximum p.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max_degree: Size = Size::Blocks(256),
    }
}

/// State that AMP keeps per block.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// The last block of the set that this block came with.
    last: u64,
    /// For the last block of a set: the stream's degree, 0 if it has none yet.
    p: u64,
    /// For the last block of a set: the stream's trigger distance, below `p`.
    g: u64,
    /// Whether a reference to this block prefetches the next set.
    trigger: bool,
    /// Whether it is the first block of a set prefetched by a trigger.
    first: bool,
}

/// Adaptive multi-stream prefetching.
#[derive(Debug)]
pub struct Amp {
    threshold: u64,
    max_degree: u64,
    pages: Recent<(u32, u64), Page>,
}

impl Amp {
    /// Prefetches on hits while p exceeds `threshold` (APT), at most `max_degree` blocks at once.
    #[must_use]
    pub fn new(frames: u32, threshold: u64, max_degree: u64) -> Self {
        Self { threshold, max_degree: max_degree.max(1), pages: Recent::new(2 * frames as usize + 1024) }
    }

    /// The block that holds p and g of the stream, found from any block of its last set or the one before.
    fn last_in_sequence(&self, file: u32, last: u64) -> u64 {
        let next = last.checked_add(1).and_then(|next| self.pages.peek((file, next)));
        next.map_or(last, |next| next.last)
    }

    /// Learns from the request about earlier prefetches; returns the end of the set whose trigger it used.
    fn learn(&mut self, asked: &Asked, found: &[Found]) -> Option<u64> {
        let mut triggered = None;
        for (index, found) in (asked.first..asked.end()).zip(found) {
            if !found.is_hit() {
                continue;
            }
            let Some(page) = self.pages.get((asked.file, index)) else { continue };
            let seen = *page;
            (page.trigger, page.first) = (false, false);
            let keeper = (asked.file, self.last_in_sequence(asked.file, seen.last));
            let first_use = matches!(found, Found::ReadyPrefetched | Found::UnreadyPrefetched);
            if let Some(keeper) = self.pages.get(keeper).filter(|keeper| keeper.p > 0) {
                if seen.last == index && first_use {
                    keeper.p = (keeper.p + u64::from(asked.count)).min(self.max_degree);
                }
                if seen.first && *found == Found::UnreadyPrefetched {
                    keeper.g = (keeper.g + 1).min(self.max_degree - 1);
                    keeper.p = keeper.p.max(keeper.g + 1);
                }
            }
            if seen.trigger {
                triggered = Some(seen.last);
            }
        }
        triggered
    }

    /// The block before the first missed one, if it is cached: the stream is then sequential.
    fn sequential_miss(asked: &Asked, found: &[Found], cached: &dyn Cached) -> Option<u64> {
        let missed = found.iter().position(|found| !found.is_hit())? as u64;
        let before = asked.first.checked_add(missed)?.checked_sub(1)?;
        (missed > 0 || cached.is_cached(asked.file, before)).then_some(before)
    }

    /// Records `blocks` as one set that ends at `last`.
    fn read(&mut self, file: u32, blocks: std::ops::Range<u64>, last: u64) {
        for index in blocks {
            *self.pages.get_or_default((file, index)) = Page { last, ..Page::default() };
        }
    }

    /// Prefetches the blocks from `first` with degree `p` and the current trigger distance `g`.
    fn prefetch(&mut self, file: u32, first: u64, (p, g): (u64, u64), cached: &dyn Cached) -> Run {
        let end = first.saturating_add(p).min(cached.file_blocks(file).unwrap_or(u64::MAX));
        if end <= first {
            return Run::between(file, first, first);
        }
        let last = end - 1;
        self.read(file, first..end, last);
        let g = if g == 0 && p > self.threshold { self.threshold / 2 } else { g }.min(self.max_degree - 1);
        let keeper = self.pages.get_or_default((file, last));
        (keeper.p, keeper.g) = (p.max(g + 1), g);
        if p > self.threshold {
            self.pages.get_or_default((file, last.saturating_sub(g).max(first))).trigger = true;
        }
        Run::between(file, first, end)
    }
}

impl ReadAhead for Amp {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let file = asked.file;
        let triggered = self.learn(asked, found);
        let before = triggered.or_else(|| Self::sequential_miss(asked, found, cached));
        let kept = before.and_then(|before| self.pages.peek((file, before))).map_or((0, 0), |page| (page.p, page.g));
        let run = before.map(|before| {
            let (p, g) = if kept.0 > 0 { kept } else { (u64::from(asked.count).min(self.max_degree), kept.1) };
            self.prefetch(file, asked.end().max(before.saturating_add(1)), (p, g), cached)
        });
        let with = run.filter(|run| run.count > 0 && run.first == asked.end());
        if let Some(run) = run.filter(|run| run.count > 0 && triggered.is_some()) {
            self.pages.get_or_default((file, run.first)).first = true;
        }
        let last = with.map_or(asked.end(), |run| run.end()).saturating_sub(1);
        for (index, _) in (asked.first..asked.end()).zip(found).filter(|(_, found)| !found.is_hit()) {
            self.read(file, index..index.saturating_add(1), last);
        }
        prefetch.extend(run.filter(|run| run.count > 0));
    }

    fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        let Some(page) = self.pages.remove((file, index)) else { return };
        if unused {
            let keeper = (file, self.last_in_sequence(file, page.last));
            if let Some(keeper) = self.pages.get(keeper).filter(|keeper| keeper.p > 0) {
                keeper.p = (keeper.p - 1).max(1);
                keeper.g = keeper.g.saturating_sub(1).min(keeper.p - 1);
            }
        }
    }

    fn remembered(&self) -> usize {
        self.pages.len()
    }
}
