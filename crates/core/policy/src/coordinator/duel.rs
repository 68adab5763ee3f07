//! Duel: the lower level's read-ahead competes with plain demand fetching, and the faster one serves.
//!
//! A request can be served in two ways. *Native*: as without a coordinator. *Quiet*: the level's replacement sees the
//! request but its read-ahead does not; a request too long to be stored bypasses the level. A hash of the region that a
//! block lies in decides: one region in [`PARTS`] is always native, one tries the quiet way, the others follow the
//! winner. For each native request the response time is measured and the quiet response time is estimated: a directory
//! of names with the size of the cache, which prefetches never enter, tells which blocks would have been missing, and
//! past quiet requests with as many missing blocks tell what that costs. Each client has its own duel. All start
//! native.
//!
//! Sources: dividing by region is the set dueling of M. K. Qureshi, A. Jaleel, Y. N. Patt, S. C. Steely and J. Emer,
//! "Adaptive Insertion Policies for High Performance Caching", ISCA 2007, section 5. That the upper level makes the
//! lower one's read-ahead superfluous, and that blocks useless to a lower level should bypass it, is from zhang-pfc.
//! The estimate from a directory and the bounded trials are ours.
//!
//! The cost of trials is bounded: one is made only while the measured excess of earlier trials over the mean native
//! response time is at most 1 / [`TRIAL_BUDGET`] of all response times. A native request behaves exactly as without a
//! coordinator. The estimate ignores the load that a read-ahead puts on other requests, because trials queue behind it
//! too; [`HANDICAP_PERCENT`] stands for that load. Its value and those of [`SHARE`], [`WINDOW`], [`SAMPLES`], [`PARTS`]
//! and [`REGION_BLOCKS`] were found by scanning a few values of each on the cases of zhang-pfc and on the several
//! clients of the study `levels`.
//!
//! Cost: constant per block of a request. Memory: about 60 bytes for each frame of the level, for each of [`ENDS`] ends
//! of requests and for each request in flight; 400 bytes per client.
//!
//! Not for a level that gets fewer than a few hundred requests: it decides too late. Not for workloads that change
//! faster than its window.

use headstart_types::seed::mix;
use headstart_types::{KeyTable, Nanos};

use super::{Coordinator, CoordinatorRow, Plan};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached};

/// Number of groups of regions: one is always native, one tries the quiet way, the others follow the winner.
pub const PARTS: u64 = 16;
/// Blocks per region, enough for a read-ahead to find its streams within one.
pub const REGION_BLOCKS: u64 = 64;
/// The quiet way does not store requests longer than 1 / `SHARE` of the level's frames.
pub const SHARE: u32 = 8;
/// The quiet way serves while its estimated response times, reduced by this percentage, are below the native ones.
pub const HANDICAP_PERCENT: u128 = 10;
/// Requests needed of each way before a decision.
pub const SAMPLES: u64 = 32;
/// Number of a client's answers after which its statistics are halved.
pub const WINDOW: u32 = 4096;
/// Trials may have cost at most 1 / `TRIAL_BUDGET` of all response times: half of the percent that this coordinator may
/// lose.
pub const TRIAL_BUDGET: i128 = 200;
/// Number of request ends that are remembered, to recognise requests that continue an earlier one. Our choice.
pub const ENDS: usize = 4096;
/// A mean covers about this many answers. Our choice.
const MEAN_OVER: u64 = 256;
/// A mean of fewer answers is not used.
const MEAN_LEAST: u64 = 2;
/// Classes of missing blocks: 1, 2 or 3, 4 to 7, and so on.
const SIZES: usize = 8;
/// Number of requests in flight that are tracked; the answers of older ones are ignored.
const UNDER_WAY: usize = 4096;
/// Number of clients with a duel; the one idle longest is forgotten first.
const CLIENTS: usize = 1024;

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "duel",
    summary: "the lower level's read-ahead serves only while it answers sooner than demand fetching would",
    source: "ours; set dueling of Qureshi et al., ISCA 2007",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |_, context| Ok(Box::new(Duel::new(context.frames))),
};

/// One duel per client.
#[derive(Debug)]
pub struct Duel {
    /// Longest request that the quiet way stores, in blocks.
    longest: u32,
    /// Names of what the level would hold without read-ahead.
    directory: Recent<(u32, u64), ()>,
    /// Where earlier requests ended.
    ends: Recent<(u32, u64), ()>,
    under_way: Recent<(u32, u64, u32, u32), Request>,
    sides: Recent<u32, Sides>,
}

/// A request in flight.
#[derive(Debug, Clone, Copy, Default)]
struct Request {
    quiet: bool,
    /// Whether it begins where an earlier one ended.
    continues: bool,
    /// Blocks that are not resident.
    missing: u32,
    /// Blocks that would not be resident without read-ahead.
    missing_quietly: u32,
}

/// Statistics of both ways for one client.
#[derive(Debug, Default)]
struct Sides {
    quiet_serves: bool,
    /// Response times of quiet requests, by whether they continue an earlier one and by the class of their missing
    /// blocks.
    quiet: [[Mean; SIZES]; 2],
    quiet_count: u64,
    /// Native requests that have an estimate: their number, their response times, and the estimates for the quiet way.
    native_count: u64,
    native_ns: u128,
    estimated_ns: u128,
    /// Answers since the last halving.
    answers: u32,
    /// Sum of all response times.
    total_ns: i128,
    /// How much trials have exceeded the native mean. Never negative: savings do not pay for later trials.
    excess_ns: i128,
}

/// A mean that halves its history when it is full.
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

/// The size class of `blocks`, at least 1.
fn class(blocks: u32) -> usize {
    (blocks.max(1).ilog2() as usize).min(SIZES - 1)
}

/// The part that a block's region belongs to.
fn part(file: u32, index: u64) -> u64 {
    mix(mix(u64::from(file)) ^ (index / REGION_BLOCKS)) % PARTS
}

impl Duel {
    /// A coordinator above a level of `frames` frames.
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

    /// Whether requests of `client` are served without read-ahead, except those of the always-native part.
    #[must_use]
    pub fn quiet_serves(&self, client: u32) -> bool {
        self.sides.peek(client).is_some_and(|sides| sides.quiet_serves)
    }

    /// Collects what is known about a request before it is served, and enters it into the directory.
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

    /// The estimated response time of the quiet way in nanoseconds; `None` while too little is known.
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
