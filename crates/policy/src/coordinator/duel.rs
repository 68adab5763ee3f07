//! Duel: the lower level's read-ahead and plain demand fetching compete, and the one that answers sooner serves.
//!
//! A request may be served in two ways. *Native*: as without a coordinator. *Quiet*: the level's read-ahead does not hear of
//! it, its replacement does; a request too long to be stored bypasses the level. Blocks are dealt out by a hash of their
//! region: one region in [`PARTS`] is always native, one tries the quiet way, the others follow the winner. For each native
//! request the answer time is known, and what the quiet way would have taken is estimated: a directory of names of the same
//! size as the cache, which prefetches never enter, says which blocks would have been missing, and the answer times of quiet
//! requests with as many missing blocks say what that costs. Each client has a duel of its own. All begin native.
//!
//! Sources: the dealt-out regions are the set dueling of M. K. Qureshi, A. Jaleel, Y. N. Patt, S. C. Steely and J. Emer,
//! "Adaptive Insertion Policies for High Performance Caching", ISCA 2007, section 5; that the upper level makes the lower
//! one's read-ahead superfluous, and that what a lower level cannot use should bypass it, is zhang-pfc's. The estimate from
//! a directory and the bounded trials are ours.
//!
//! What trials may cost is bounded: one is made only while the excess of earlier ones over the mean native answer, as measured,
//! is at most 1 / [`TRIAL_BUDGET`] of all answer times. A native request is exactly what it is without a coordinator.
//! The estimate leaves out what a read-ahead's load costs the requests of others, since trials wait behind it too;
//! [`HANDICAP_PERCENT`] stands for it. That value, [`SHARE`], [`WINDOW`], [`SAMPLES`], [`PARTS`] and [`REGION_BLOCKS`] were found
//! by scanning a few values each on the cases of zhang-pfc and the several clients of the study `levels`.
//!
//! Cost: constant for each block of a request. Memory: about 60 bytes for each frame of the level, for each of [`ENDS`] ends of
//! requests and for each request under way; 400 bytes a client.
//! Not for a level that gets fewer than some hundred requests: it decides too late. Not against a workload that changes faster
//! than its window.

use headstart_types::{KeyTable, Nanos};

use super::{without_keys, Coordinator, CoordinatorRow, Plan};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached};

/// Regions are dealt out to so many parts: one is always native, one tries the quiet way.
pub const PARTS: u64 = 16;
/// Blocks of a region: long enough that a read-ahead finds its streams within one.
pub const REGION_BLOCKS: u64 = 64;
/// A request of more than this part of the level's frames is not stored by the quiet way: one over this.
pub const SHARE: u32 = 8;
/// The quiet way serves while its estimate is below the native answer times and this many percent of the estimate.
pub const HANDICAP_PERCENT: u128 = 10;
/// Requests of either way before anything is decided.
pub const SAMPLES: u64 = 32;
/// After so many answers of a client what was seen before counts half.
pub const WINDOW: u32 = 4096;
/// Trials may have cost this part of all answer times: one over this. Half of the percent that this coordinator may lose.
pub const TRIAL_BUDGET: i128 = 200;
/// Ends of requests that are remembered, to tell a request that continues one from others. Our choice.
pub const ENDS: usize = 4096;
/// A mean is taken over about so many answers. Our choice.
const MEAN_OVER: u64 = 256;
/// A mean of fewer answers is not used.
const MEAN_LEAST: u64 = 2;
/// Classes of missing blocks: 1, 2 or 3, 4 to 7, and so on.
const SIZES: usize = 8;
/// Requests under way whose answers are awaited; beyond these the oldest's answer teaches nothing.
const UNDER_WAY: usize = 4096;
/// Clients with a duel; the one not heard of for longest begins anew.
const CLIENTS: usize = 1024;

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "duel",
    summary: "the lower level's read-ahead serves only while it answers sooner than demand fetching would",
    source: "ours; set dueling of Qureshi et al., ISCA 2007",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |keys, context| without_keys(keys, Duel::new(context.frames)),
};

/// A duel for each client.
#[derive(Debug)]
pub struct Duel {
    /// Blocks of the longest request that the quiet way stores.
    longest: u32,
    /// What the level would hold without read-ahead.
    directory: Recent<(u32, u64), ()>,
    /// Where requests have ended.
    ends: Recent<(u32, u64), ()>,
    under_way: Recent<(u32, u64, u32, u32), Request>,
    sides: Recent<u32, Sides>,
}

/// A request under way.
#[derive(Debug, Clone, Copy, Default)]
struct Request {
    quiet: bool,
    /// It begins where an earlier one ended.
    continues: bool,
    /// Blocks that are not resident.
    missing: u32,
    /// Blocks that would not be resident without read-ahead.
    missing_quietly: u32,
}

/// What is known of both ways, for one client.
#[derive(Debug, Default)]
struct Sides {
    quiet_serves: bool,
    /// Answer times of quiet requests, by whether they continue and the class of their missing blocks.
    quiet: [[Mean; SIZES]; 2],
    quiet_count: u64,
    /// Of native requests that have an estimate: how many, their answer times, and the estimates of the quiet way.
    native_count: u64,
    native_ns: u128,
    estimated_ns: u128,
    /// Answers since the halving.
    answers: u32,
    /// All answer times.
    total_ns: i128,
    /// By how much trials have exceeded the native mean; what they save is not set against what later ones cost.
    excess_ns: i128,
}

/// A mean that forgets.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum_ns: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, ns: u64) {
        if self.count >= MEAN_OVER {
            self.sum_ns /= 2;
            self.count /= 2;
        }
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.count += 1;
    }
}

/// The class of `blocks`, at least 1.
fn class(blocks: u32) -> usize {
    (blocks.max(1).ilog2() as usize).min(SIZES - 1)
}

/// Which part the region of a block belongs to: Steele, Lea and Flood's SplitMix64 (OOPSLA 2014), twice.
fn part(file: u32, index: u64) -> u64 {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    mix(mix(u64::from(file)) ^ (index / REGION_BLOCKS)) % PARTS
}

impl Duel {
    /// Of a level of `frames` frames.
    #[must_use]
    pub fn new(frames: u32) -> Self {
        Self {
            longest: frames / SHARE,
            directory: Recent::new(frames as usize),
            ends: Recent::new(ENDS),
            under_way: Recent::new(UNDER_WAY),
            sides: Recent::new(CLIENTS),
        }
    }

    /// Whether requests of `client` are served without read-ahead, but for those of the native part.
    #[must_use]
    pub fn quiet_serves(&self, client: u32) -> bool {
        self.sides.peek(client).is_some_and(|sides| sides.quiet_serves)
    }

    /// What is known of a request before it is served; enters it into the directory.
    fn look_up(&mut self, asked: &Asked, cached: &dyn Cached) -> Request {
        let continues = self.ends.remove((asked.file, asked.first)).is_some();
        self.ends.get_or_default((asked.file, asked.end()));
        let mut request = Request { continues, ..Request::default() };
        for index in asked.first..asked.end() {
            request.missing += u32::from(!cached.is_resident(asked.file, index));
            request.missing_quietly += u32::from(self.directory.get((asked.file, index)).is_none());
        }
        if asked.count <= self.longest {
            (asked.first..asked.end()).for_each(|index| {
                self.directory.get_or_default((asked.file, index));
            });
        }
        request
    }
}

impl Coordinator for Duel {
    fn plan(&mut self, _: Nanos, asked: &Asked, cached: &dyn Cached, _: bool) -> Plan {
        if asked.count == 0 {
            return Plan::default();
        }
        let mut request = self.look_up(asked, cached);
        let sides = self.sides.get_or_default(asked.client);
        request.quiet = match part(asked.file, asked.first) {
            0 => false,
            1 => sides.quiet_serves || sides.may_try(),
            _ => sides.quiet_serves,
        };
        *self.under_way.get_or_default((asked.file, asked.first, asked.count, asked.client)) = request;
        if request.quiet && asked.count > self.longest {
            return Plan { bypass: asked.count, ..Plan::default() };
        }
        Plan { quiet: request.quiet, ..Plan::default() }
    }

    fn answered(&mut self, now: Nanos, since: Nanos, asked: &Asked) {
        let key = (asked.file, asked.first, asked.count, asked.client);
        let Some(request) = self.under_way.remove(key) else { return };
        self.sides.get_or_default(asked.client).answered(&request, now.0.saturating_sub(since.0));
    }
}

impl Sides {
    fn may_try(&self) -> bool {
        self.excess_ns * TRIAL_BUDGET <= self.total_ns
    }

    /// What the quiet way would take for a request; `None` where too little is known.
    fn estimate(&self, request: &Request) -> Option<u64> {
        if request.missing_quietly == 0 {
            return Some(0);
        }
        let means = &self.quiet[usize::from(request.continues)];
        let wanted = class(request.missing_quietly);
        let known = (0..SIZES).filter(|size| means[*size].count >= MEAN_LEAST);
        known.min_by_key(|size| size.abs_diff(wanted)).map(|size| means[size].sum_ns / means[size].count)
    }

    fn answered(&mut self, request: &Request, took_ns: u64) {
        self.total_ns += i128::from(took_ns);
        if request.quiet {
            self.quiet_count += 1;
            if request.missing > 0 {
                self.quiet[usize::from(request.continues)][class(request.missing)].add(took_ns);
            }
            if !self.quiet_serves && self.native_count > 0 {
                let mean = (self.native_ns / u128::from(self.native_count)) as i128;
                self.excess_ns = (self.excess_ns + i128::from(took_ns) - mean).max(0);
            }
        } else if let Some(estimate) = self.estimate(request) {
            self.native_count += 1;
            self.native_ns += u128::from(took_ns);
            self.estimated_ns += u128::from(estimate);
            if self.quiet_count >= SAMPLES && self.native_count >= SAMPLES {
                self.quiet_serves = self.estimated_ns * (100 - HANDICAP_PERCENT) < self.native_ns * 100;
            }
        }
        self.answers += 1;
        if self.answers >= WINDOW {
            self.answers = 0;
            self.native_count /= 2;
            self.native_ns /= 2;
            self.estimated_ns /= 2;
        }
    }
}
