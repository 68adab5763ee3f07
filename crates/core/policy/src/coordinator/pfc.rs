//! PFC: the lower level prefetches less when the upper one seems to have enough, and more when it falls behind.
//!
//! Two lengths are adjusted at each request. `bypass_length` blocks from its start bypass the lower level's policy,
//! which weakens the stream that its read-ahead sees and keeps blocks cached above from being cached twice.
//! `readmore_length` blocks after its end are requested as if they belonged to it. Two queues of block names show when
//! a length was wrong. A block that bypassed the level recently, is requested again and is not cached was bypassed too
//! early. A block in the window after an earlier request that is not cached would have been cached with a longer
//! `readmore_length`. If all blocks that could be requested next are cached already, the whole request bypasses.
//!
//! Source: Z. Zhang, K. Lee, X. Ma and Y. Zhou, "PFC: Transparent Optimization of Existing Prefetching Strategies for
//! Multi-level Storage Systems", ICDCS 2008 (zhang-pfc), section 3, Algorithms 1 and 2; contexts for each file or
//! client are its section 3.2, last paragraph.
//!
//! Readings. The average includes the current request before it is used, unless the request exceeds twice the old
//! average; the first request is always included. `rm_size` is rounded up. `bypass_length` is at least 0 and has no
//! upper bound; the part of it beyond the request has no effect. A block in flight counts as cached; a block beyond the
//! end of its file does not, and the readmore window does not end there. The early return of the ahead test skips the
//! checks of the queues, but not the insertions of Algorithm 1. With one action alone, the other's length stays 0 and
//! its queue stays empty; the two share only the lookup in the cache. Each context has an average, two lengths, and two
//! queues of full size.
//!
//! Where the paper is ambiguous, keys select the reading. `large`: the text calls a request large above half of the
//! average, Algorithm 2 above the average. `ahead` and `window`: both printed ranges begin with the last block of the
//! request; "beyond the requested range" would begin after it. `update`: the text changes `readmore_length` regardless
//! of the cache (`"always"`, the default); Algorithm 2 prints two `if`s and one `endif`, so the change may be limited
//! to requests without a hit (`"miss"`). With `"always"` the reset for a large request has no effect, because the same
//! request sets `readmore_length` again: `large` only matters with `"miss"`.
//!
//! A block that bypasses the level never counts as cached for the level's own policy, whether in flight or not, and a
//! silent hit does not notify that policy: the paper's "without notifying the L2 native caching/prefetching unit".
//! PFC's own lookups count blocks in flight, bypassing or not. What `readmore` adds belongs to the request that the
//! level's policy sees, and is a prefetch: it counts as used when a request from above asks for it.
//!
//! Cost: constant per block of the request and of its window that is looked up in the cache, logarithmic in the runs of
//! names that a request meets in a queue. About 80 bytes for each run of names in a queue, 2 queues per context.
//!
//! Not for request sizes that start small and stay large: no request above twice the first average is ever counted, so
//! all of them stay "large". Not for a level that caches what many clients share: long runs of random requests raise
//! `bypass_length` without limit, and then nothing new is cached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use headstart_types::{keys, KeyError, KeyTable, Nanos};

use super::queue::BlockQueue;
use super::{Average, Coordinator, CoordinatorContext, CoordinatorRow, Plan, Share};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "pfc",
    summary: "lets requests bypass the lower level or makes it read more, guided by two queues of block names",
    source: "zhang-pfc, section 3, Algorithms 1 and 2",
    keys: KeyTable::of::<PfcKeys>(),
    by_position: |keys| keys.get::<PfcKeys>().actions != Actions::Bypass,
    build: |keys, context| Ok(Box::new(Pfc::new(keys.get::<PfcKeys>().setting(context)?))),
};

keys! {
    /// Keys of `pfc`.
    pub struct PfcKeys {
        /// Size of each queue, as a share of the lower level's blocks.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1000.0, "x-allowed" = "a share above 0, at most 1000"))]
        pub queue: f64 = PfcSetting::QUEUE,
        /// The actions that are used.
        pub actions: Actions = Actions::default(),
        /// The scope of a context. Each context has its own lengths, average and queues.
        pub context: Contexts = Contexts::default(),
        /// Maximum number of contexts. The least recently used one is forgotten first.
        #[schemars(range(min = 1))]
        pub contexts: u32 = PfcSetting::CONTEXTS,
        /// A request larger than this multiple of the average size resets `readmore_length` if the level is full.
        #[schemars(range(min = 0.0, max = 1000.0))]
        pub large: f64 = 1.0,
        /// First block of the range of the ahead test.
        pub ahead: Start = Start::default(),
        /// First block of the readmore window.
        pub window: Start = Start::default(),
        /// Which requests set `readmore_length` from the readmore queue.
        pub update: Update = Update::default(),
    }
}

impl PfcKeys {
    fn setting(&self, context: &CoordinatorContext) -> Result<PfcSetting, KeyError> {
        let share = |key: &str, value: f64| {
            let problem = format!("{value} is out of range");
            Share::try_new(value).ok_or_else(|| KeyError::new(key, problem, "a number from 0 to 1000"))
        };
        Ok(PfcSetting {
            queue_blocks: share("queue", self.queue)?.of(context.frames).max(1),
            large: share("large", self.large)?,
            ahead: self.ahead,
            window: self.window,
            update: self.update,
            actions: self.actions,
            context: self.context,
            contexts: self.contexts,
        })
    }
}

/// The actions that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Actions {
    /// Both, as published.
    #[default]
    Both,
    /// Bypass only: `readmore_length` stays 0.
    Bypass,
    /// Readmore only: `bypass_length` stays 0.
    Readmore,
}

/// The scope of a context. Each context has its own lengths, average and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contexts {
    /// The whole level, as published.
    #[default]
    One,
    /// One file.
    File,
    /// One client.
    Client,
}

/// First block of a range that the paper prints as `[end, ...]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The last block of the request, as printed.
    #[default]
    Last,
    /// The block after the request.
    Next,
}

/// Which requests set `readmore_length` from the readmore queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// Requests without a cached block, if Algorithm 2's `endif` closes both of its `if`s.
    Miss,
    /// All requests that reach this step, as in the text.
    #[default]
    Always,
}

/// PFC's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PfcSetting {
    /// Names per queue; 0 means 1.
    pub queue_blocks: u32,
    /// A request larger than this multiple of the average size resets `readmore_length` if the level is full.
    pub large: Share,
    /// First block of the range of the ahead test.
    pub ahead: Start,
    /// First block of the readmore window.
    pub window: Start,
    /// Which requests set `readmore_length`.
    pub update: Update,
    /// Which actions are used.
    pub actions: Actions,
    /// Scope of a context.
    pub context: Contexts,
    /// Maximum number of contexts; the least recently used one is forgotten first. 0 means 1.
    pub contexts: u32,
}

impl PfcSetting {
    /// A queue's share of the level's frames, rounded up (section 3.2).
    pub const QUEUE: f64 = 0.1;
    /// Default number of contexts. Our choice.
    pub const CONTEXTS: u32 = 1024;

    /// Algorithms 1 and 2 as printed, for a level of `frames` frames.
    #[must_use]
    pub fn published(frames: u32) -> Self {
        Self {
            queue_blocks: frames.div_ceil(10),
            large: Share::ONE,
            ahead: Start::default(),
            window: Start::default(),
            update: Update::default(),
            actions: Actions::default(),
            context: Contexts::default(),
            contexts: Self::CONTEXTS,
        }
    }
}

/// The state of a context after the requests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PfcState {
    /// Blocks from the start of a request that bypass the level; may exceed every request.
    pub bypass_length: u64,
    /// Blocks requested beyond the end of a request.
    pub readmore_length: u64,
    /// Mean request size, without the requests that were too large to count.
    pub average: Average,
    /// Names in the bypass queue.
    pub bypass_queue: usize,
    /// Names in the readmore queue.
    pub readmore_queue: usize,
}

/// The PreFetching Coordinator.
#[derive(Debug)]
pub struct Pfc {
    setting: PfcSetting,
    contexts: Recent<u32, Context>,
}

impl Pfc {
    /// A coordinator without history.
    #[must_use]
    pub fn new(setting: PfcSetting) -> Self {
        Self { setting, contexts: Recent::new(setting.contexts as usize) }
    }

    /// The state of the context of `asked`; all zero if there is none (not yet, or no longer).
    #[must_use]
    pub fn state(&self, asked: &Asked) -> PfcState {
        let Some(context) = self.contexts.peek(self.context_of(asked)) else { return PfcState::default() };
        let queues = context.queues.as_ref();
        PfcState {
            bypass_length: context.bypass_length,
            readmore_length: context.readmore_length,
            average: context.average,
            bypass_queue: queues.map_or(0, |queues| queues.bypass.len()),
            readmore_queue: queues.map_or(0, |queues| queues.readmore.len()),
        }
    }

    fn context_of(&self, asked: &Asked) -> u32 {
        match self.setting.context {
            Contexts::One => 0,
            Contexts::File => asked.file,
            Contexts::Client => asked.client,
        }
    }
}

impl Coordinator for Pfc {
    fn plan(&mut self, _: Nanos, asked: &Asked, cached: &dyn Cached, full: bool) -> Plan {
        if asked.count == 0 {
            return Plan::default();
        }
        let context = self.context_of(asked);
        self.contexts.get_or_default(context).process(&Request::of(asked), cached, full, &self.setting)
    }
}

/// `[first, last]` of `file`: start_u and end_u of the algorithms. A request that runs past 2^64 is cut there.
struct Request {
    file: u32,
    first: u64,
    last: u64,
    size: u64,
}

impl Request {
    fn of(asked: &Asked) -> Self {
        let last = asked.first.saturating_add(u64::from(asked.count) - 1);
        Self { file: asked.file, first: asked.first, last, size: last - asked.first + 1 }
    }
}

#[derive(Debug)]
struct Queues {
    bypass: BlockQueue,
    readmore: BlockQueue,
}

#[derive(Debug, Default)]
struct Context {
    average: Average,
    bypass_length: u64,
    readmore_length: u64,
    /// Created at the first request.
    queues: Option<Queues>,
}

impl Context {
    /// Algorithm 1.
    fn process(&mut self, request: &Request, cached: &dyn Cached, full: bool, setting: &PfcSetting) -> Plan {
        self.average.take_in(request.size);
        let rm_size = request.size.max(self.average.rounded_up());
        let mut queues = self.queues.take().unwrap_or_else(|| Queues {
            bypass: BlockQueue::new(setting.queue_blocks),
            readmore: BlockQueue::new(setting.queue_blocks),
        });
        self.set_parameters(request, rm_size, cached, full, setting, &mut queues);
        let bypass = self.bypass_length.min(request.size);
        if bypass > 0 {
            queues.bypass.insert(request.file, request.first..=request.first + (bypass - 1));
        }
        if setting.actions != Actions::Bypass {
            // A window that would begin past 2^64 is empty.
            let begins = request.last.checked_add(self.readmore_length + u64::from(setting.window == Start::Next));
            let ends = request.last.saturating_add(self.readmore_length + rm_size);
            if let Some(begins) = begins {
                queues.readmore.insert(request.file, begins..=ends);
            }
        }
        self.queues = Some(queues);
        let blocks = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
        Plan { bypass: blocks(bypass), readmore: blocks(self.readmore_length), quiet: false }
    }

    /// Algorithm 2; then sets the lengths of unused actions to 0.
    fn set_parameters(
        &mut self,
        request: &Request,
        rm_size: u64,
        cached: &dyn Cached,
        full: bool,
        setting: &PfcSetting,
        queues: &mut Queues,
    ) {
        if full && self.average.is_exceeded_by(request.size, setting.large) {
            self.readmore_length = 0;
        }
        if is_cached_ahead(request, cached, setting.ahead) {
            self.bypass_length = request.size;
            self.readmore_length = 0;
        } else {
            let asked = request.first..=request.last;
            let hit_cache = asked.clone().any(|index| cached.is_cached(request.file, index));
            let hit_bypass = queues.bypass.check(request.file, asked.clone());
            let hit_readmore = queues.readmore.check(request.file, asked);
            if !hit_bypass {
                self.bypass_length = self.bypass_length.saturating_add(1);
            } else if !hit_cache {
                self.bypass_length = self.bypass_length.saturating_sub(1);
            }
            if !hit_cache || setting.update == Update::Always {
                self.readmore_length = if hit_readmore { rm_size } else { 0 };
            }
        }
        match setting.actions {
            Actions::Both => {}
            Actions::Bypass => self.readmore_length = 0,
            Actions::Readmore => self.bypass_length = 0,
        }
    }
}

/// Whether all of `[end_u, end_u + req_size]` is cached; blocks past 2^64 are not.
fn is_cached_ahead(request: &Request, cached: &dyn Cached, start: Start) -> bool {
    let Some(last) = request.last.checked_add(request.size) else { return false };
    let first = request.last + u64::from(start == Start::Next);
    (first..=last).all(|index| cached.is_cached(request.file, index))
}
