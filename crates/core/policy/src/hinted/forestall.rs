//! Forestall: prefetch like aggressive, but only when a stall is predicted.
//!
//! Source: kimbrel96, section 5.
//!
//! ```text
//! for each free disk: if for some i, i * F' >= distance of its i-th missing block, open a batch
//! fill the open batches as aggressive does
//! then fixed horizon's rule
//! ```
//!
//! F' is a fixed number, or estimated for each disk: F is the mean of its last 100 service times over the mean of the
//! last 100 think times (driver work not counted), and F' = F if the mean service time is below 5 ms, else 4F. Without
//! history a service time is taken as 15 ms; without think times F' is infinite. The rule is checked for missing blocks
//! within `lookahead` references (2K in the paper).
//!
//! Cost: constant per event, plus a count over the bits of the look-ahead when [`Trigger`] cannot rule out a stall from
//! its last count.

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use headstart_types::{keys, Block, Disk, KeyTable, Nanos, Position, NEVER};

use super::batch::Batches;
use super::fixed_horizon::{fetch_within, misses_within};
use super::recent::Recent;
use super::trigger::Trigger;
use super::{from_device, BatchSize, Knowledge, References, Round, Strategy, HORIZON};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "forestall",
    summary: "prefetch like aggressive, but only when a stall is predicted",
    source: "kimbrel96, section 5",
    keys: KeyTable::of::<ForestallKeys>(),
    default_replacement: None,
    family: Family::Hinted(&|keys, context| {
        let keys: &ForestallKeys = keys.get();
        let lookahead = match keys.lookahead {
            None => context.frames.saturating_mul(2),
            Some(lookahead) => {
                lookahead.or_else(|| from_device::lookahead(context, cautious_ns(context.nominal_service.0 as f64)))
            }
        };
        let batch_size = keys.batch_size.on(context);
        let horizon = keys.horizon.or_else(|| from_device::horizon(context));
        let strategy = Forestall::new(keys.fetch_ratio, batch_size, lookahead, horizon, context.disks);
        Ok(context.hinted(strategy))
    }),
};

keys! {
    /// Keys of `forestall`.
    pub struct ForestallKeys {
        /// F': a fixed number, or `"dynamic"`, which estimates it for each disk during the run.
        pub fetch_ratio: FetchRatio = FetchRatio::Dynamic,
        /// Maximum number of requests per batch, as in `aggressive`.
        pub batch_size: BatchSize = BatchSize::Table6,
        /// Number of upcoming references to search for a predicted stall. `"device"` is the number of blocks in the
        /// cache times F', computed from a block's typical service time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "twice the blocks of the cache"))]
        pub lookahead: Option<References> = None,
        /// Horizon of `fixed-horizon`, whose rule is applied as well. 0 turns that rule off; `"device"` is as in
        /// `fixed-horizon`.
        pub horizon: References = References::Fixed(HORIZON),
    }
}

/// Service time assumed without history (section 2.6: average response time).
const ASSUMED_SERVICE: Nanos = Nanos::from_millis(15);
/// A disk with a mean service time below this is assumed to be read sequentially (section 5).
const SEQUENTIAL_SERVICE: Nanos = Nanos::from_millis(5);
/// Factor for other disks (section 5).
const CAUTION: f64 = 4.0;

/// A mean service time with the paper's safety factor.
fn cautious_ns(mean_ns: f64) -> f64 {
    let caution = if mean_ns < SEQUENTIAL_SERVICE.0 as f64 { 1.0 } else { CAUTION };
    mean_ns * caution
}

/// Forestall's F'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FetchRatio {
    /// Estimated for each disk during the run.
    Dynamic,
    /// A fixed number; 0 and infinity are allowed.
    Static(f64),
}

impl FetchRatio {
    /// The values that a user may write.
    pub const ALLOWED: &'static str = "\"dynamic\", or a number from 0 (inf included)";
}

impl Serialize for FetchRatio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FetchRatio::Dynamic => serializer.serialize_str("dynamic"),
            FetchRatio::Static(ratio) => serializer.serialize_f64(*ratio),
        }
    }
}

impl<'de> Deserialize<'de> for FetchRatio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = FetchRatio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FetchRatio::ALLOWED)
            }
            fn visit_f64<E: Error>(self, ratio: f64) -> Result<FetchRatio, E> {
                let below = || E::invalid_value(Unexpected::Float(ratio), &self);
                (ratio >= 0.0).then_some(FetchRatio::Static(ratio)).ok_or_else(below)
            }
            fn visit_i64<E: Error>(self, ratio: i64) -> Result<FetchRatio, E> {
                self.visit_f64(ratio as f64)
            }
            fn visit_u64<E: Error>(self, ratio: u64) -> Result<FetchRatio, E> {
                self.visit_f64(ratio as f64)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<FetchRatio, E> {
                match text {
                    "dynamic" => Ok(FetchRatio::Dynamic),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for FetchRatio {
    fn schema_name() -> Cow<'static, str> {
        "FetchRatio".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "number", "minimum": 0}, {"const": "dynamic"}]})
    }
}

/// The forestall policy.
#[derive(Debug)]
pub struct Forestall {
    fetch_ratio: FetchRatio,
    batch_size: u32,
    lookahead: Position,
    /// H of the added rule; `None` turns it off.
    horizon: Option<Position>,
    batches: Batches,
    computes: Recent,
    /// For each disk: mean service time in nanoseconds times the safety factor; the numerator of F'.
    cautious_service_ns: Vec<f64>,
    services: Vec<Recent>,
    triggers: Vec<Trigger>,
    calm: Calm,
}

/// How long the disks need not be examined again, because no stall is predicted on any disk that was idle.
#[derive(Debug, Clone, Copy, Default)]
struct Calm {
    /// Bits of those disks among the first 64. Any other idle disk must be examined.
    idle: u64,
    /// No stall is predicted before the cursor reaches this; zero if one was predicted.
    until: f64,
    /// Mean think time in nanoseconds below which F' is too large for `until` to hold.
    mean_compute_ns: f64,
    /// [`Knowledge::lost`] at that time: a block that becomes missing may trigger a stall.
    lost: u64,
}

/// Relative safety margin: F' is compared through the think time, which is rounded differently.
const ROUNDING: f64 = 1e-9;

/// The idle disks (nothing `outstanding`) as bits; `None` if there are more than 64 disks.
#[inline]
fn idle_disks(outstanding: &[u32]) -> Option<u64> {
    let bits = || outstanding.iter().rev().fold(0, |bits, outstanding| bits << 1 | u64::from(*outstanding == 0));
    (outstanding.len() <= 64).then(bits)
}

impl Calm {
    #[inline]
    fn holds(&self, mean_compute_ns: f64, knowledge: &Knowledge, outstanding: &[u32]) -> bool {
        f64::from(knowledge.residents().cursor()) < self.until
            && knowledge.lost() == self.lost
            && mean_compute_ns >= self.mean_compute_ns
            && idle_disks(outstanding).is_some_and(|idle| idle & !self.idle == 0)
    }
}

impl Forestall {
    /// `lookahead` and `horizon` in references; a horizon of zero turns fixed horizon's rule off.
    #[must_use]
    pub fn new(fetch_ratio: FetchRatio, batch_size: u32, lookahead: Position, horizon: Position, disks: usize) -> Self {
        let mut forestall = Self {
            fetch_ratio,
            batch_size,
            lookahead,
            horizon: (horizon > 0).then_some(horizon),
            batches: Batches::default(),
            computes: Recent::default(),
            cautious_service_ns: vec![0.0; disks],
            services: vec![Recent::default(); disks],
            triggers: vec![Trigger::default(); disks],
            calm: Calm::default(),
        };
        (0..disks).for_each(|disk| forestall.estimate(disk));
        forestall
    }

    fn estimate(&mut self, disk: usize) {
        let mean = self.services[disk].mean_ns().unwrap_or(ASSUMED_SERVICE.0 as f64);
        self.cautious_service_ns[disk] = cautious_ns(mean);
    }

    /// Mean of the recent think times in nanoseconds; zero before the first.
    #[inline]
    fn mean_compute_ns(&self) -> f64 {
        self.computes.mean_ns().unwrap_or(0.0)
    }

    /// Opens batches on the idle disks for which a stall is predicted.
    fn look(&mut self, mean_compute_ns: f64, round: &mut Round<'_>) {
        // A disk whose first missing block would do harm has nothing to fetch, even if a stall is predicted.
        let harmless_before = round.furthest_use();
        let mut calm = Calm { until: f64::INFINITY, lost: round.knowledge().lost(), ..Calm::default() };
        for disk in 0..self.triggers.len() {
            if !round.is_idle(disk) {
                continue;
            }
            calm.idle |= 1 << (disk % 64);
            let head = round.knowledge().missing().heads()[disk];
            if head >= harmless_before {
                // The block may be harmless to fetch at the next check.
                calm.until = if head == NEVER { calm.until } else { 0.0 };
                continue;
            }
            let ratio = self.ratio(disk, mean_compute_ns);
            let trigger = &mut self.triggers[disk];
            if trigger.fires(disk, ratio, self.lookahead, round.cursor(), round.knowledge_mut()) {
                self.batches.open(disk, self.batch_size);
                calm.until = 0.0;
                continue;
            }
            let (until, ratio) = trigger.quiet(self.lookahead);
            calm.until = calm.until.min(until);
            if self.fetch_ratio == FetchRatio::Dynamic {
                let least = self.cautious_service_ns[disk] / ratio * (1.0 + ROUNDING);
                calm.mean_compute_ns = calm.mean_compute_ns.max(least);
            }
        }
        self.calm = calm;
    }

    /// The current F' of `disk`.
    #[inline]
    fn ratio(&self, disk: usize, mean_compute_ns: f64) -> f64 {
        match self.fetch_ratio {
            FetchRatio::Static(ratio) => ratio,
            FetchRatio::Dynamic if mean_compute_ns > 0.0 => self.cautious_service_ns[disk] / mean_compute_ns,
            FetchRatio::Dynamic => f64::INFINITY,
        }
    }
}

impl Strategy for Forestall {
    fn decide(&mut self, _now: Nanos, round: &mut Round<'_>) {
        let mean_compute_ns = self.mean_compute_ns();
        if !self.calm.holds(mean_compute_ns, round.knowledge(), round.view().outstanding) {
            self.look(mean_compute_ns, round);
            self.batches.build(round);
        }
        if let Some(horizon) = self.horizon {
            fetch_within(horizon, round);
        }
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, outstanding: &[u32]) -> bool {
        !self.calm.holds(self.mean_compute_ns(), knowledge, outstanding)
            && knowledge.may_fetch_on_idle_disk(outstanding)
            || self.horizon.is_some_and(|horizon| misses_within(horizon, knowledge))
    }

    fn computed(&mut self, compute: Nanos) {
        self.computes.push(compute);
    }

    fn fetched(&mut self, _block: Block, disk: Disk, service: Nanos) {
        self.services[disk.index()].push(service);
        self.estimate(disk.index());
        // F' has changed.
        self.calm.until = 0.0;
    }
}
