//! Forestall: prefetch like aggressive, but only once a stall is foreseen.
//!
//! Source: kimbrel96, section 5.
//!
//! ```text
//! for each free disk: if for some i, i * F' >= distance of its i-th missing block, open a batch
//! fill the open batches as aggressive does
//! then fixed horizon's rule
//! ```
//!
//! F' is a fixed number, or estimated for each disk: F is the mean of its last 100 service times over the mean of
//! the last 100 think times (driver work not counted), and F' = F where the mean service time is below 5 ms,
//! else 4F. Before there is history a service time is 15 ms, and without think times F' is infinite. The rule is
//! checked for missing blocks within `lookahead` references (2K in the paper).
//! Cost: constant per event, and a count over the bits of the look-ahead when [`Trigger`] cannot rule a stall
//! out from its last count.

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use headstart_types::{keys, read_keys, Disk, KeyTable, Nanos, Position};

use super::batch::Batches;
use super::fixed_horizon::{fetch_within, misses_within};
use super::recent::Recent;
use super::trigger::Trigger;
use super::{from_device, BatchSize, Knowledge, References, Round, Strategy, HORIZON};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "forestall",
    summary: "prefetch like aggressive, but only once a stall is foreseen",
    source: "kimbrel96, section 5",
    keys: KeyTable::of::<ForestallKeys>(),
    default_replacement: None,
    family: Family::Hinted(&|keys, context| {
        let keys: ForestallKeys = read_keys(keys)?;
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
        /// F': estimated for each disk as it goes, or a number.
        pub fetch_ratio: FetchRatio = FetchRatio::Dynamic,
        /// Requests to a disk at a time, as in `aggressive`.
        pub batch_size: BatchSize = BatchSize::Table6,
        /// References to look ahead for a stall; `"device"`: the blocks of the cache times F', for a block's typical service time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "twice the blocks of the cache"))]
        pub lookahead: Option<References> = None,
        /// Fixed horizon's rule on top; 0 turns it off, `"device"` is as in `fixed-horizon`.
        pub horizon: References = References::Fixed(HORIZON),
    }
}

/// Assumed service time before there is history (section 2.6: average response time).
const ASSUMED_SERVICE: Nanos = Nanos::from_millis(15);
/// Below it a disk is taken to be read sequentially (section 5).
const SEQUENTIAL_SERVICE: Nanos = Nanos::from_millis(5);
/// Overestimate for other disks (section 5).
const CAUTION: f64 = 4.0;

/// A mean service time, overestimated as the paper has it.
fn cautious_ns(mean_ns: f64) -> f64 {
    let caution = if mean_ns < SEQUENTIAL_SERVICE.0 as f64 { 1.0 } else { CAUTION };
    mean_ns * caution
}

/// Forestall's F'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FetchRatio {
    /// Estimated for each disk as the run goes.
    Dynamic,
    /// This number; 0 and infinity are allowed.
    Static(f64),
}

impl FetchRatio {
    /// What a user may write.
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
    /// By disk: mean service time in nanoseconds times the overestimate; the numerator of F'.
    cautious_service_ns: Vec<f64>,
    services: Vec<Recent>,
    triggers: Vec<Trigger>,
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
        };
        (0..disks).for_each(|disk| forestall.estimate(disk));
        forestall
    }

    fn estimate(&mut self, disk: usize) {
        let mean = self.services[disk].mean_ns().unwrap_or(ASSUMED_SERVICE.0 as f64);
        self.cautious_service_ns[disk] = cautious_ns(mean);
    }

    /// F' of `disk` now.
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
        let mean_compute_ns = self.computes.mean_ns().unwrap_or(0.0);
        // A disk whose first missing block would do harm has nothing to fetch, whatever is foreseen.
        let harmless_before = round.furthest_use();
        for disk in 0..self.triggers.len() {
            if round.knowledge().missing().heads()[disk] < harmless_before && round.is_idle(disk) {
                let ratio = self.ratio(disk, mean_compute_ns);
                if self.triggers[disk].fires(disk, ratio, self.lookahead, round.cursor(), round.knowledge_mut()) {
                    self.batches.open(disk, self.batch_size);
                }
            }
        }
        self.batches.build(round);
        if let Some(horizon) = self.horizon {
            fetch_within(horizon, round);
        }
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, outstanding: &[u32]) -> bool {
        knowledge.may_fetch_on_idle_disk(outstanding)
            || self.horizon.is_some_and(|horizon| misses_within(horizon, knowledge))
    }

    fn computed(&mut self, compute: Nanos) {
        self.computes.push(compute);
    }

    fn fetched(&mut self, disk: Disk, service: Nanos) {
        self.services[disk.index()].push(service);
        self.estimate(disk.index());
    }
}
