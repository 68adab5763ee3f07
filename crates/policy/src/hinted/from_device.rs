//! Numbers of the hinted policies that follow from the device: what a user who has no measurements writes as `"device"`.
//!
//! *Horizon.* A block is needed T_disk ahead of its reference, and a reference takes T_hit + T_driver at the least:
//!
//! ```text
//! H = T_disk / (T_hit + T_driver), rounded up, from 1 to K
//! ```
//!
//! It is TIP2's prefetch horizon (Patterson et al., SOSP 1995, section 4.1), and how kimbrel96 (section 2.6) came to 62: 15 ms over
//! 243 us. Where no processor time is charged it is K: nothing bounds how soon the next reference comes. Think times are
//! left out as they are there: they come in bursts.
//!
//! *Look-ahead.* Forestall's rule asks whether the i-th missing block is at most i F' references away. No more than K
//! blocks can be fetched before the first of them is used, so that no further than K F' anything is to be done about a stall:
//!
//! ```text
//! L = K F',  F' = c T_disk / (T_hit + T_driver + mean think time),  c as in forestall
//! ```
//!
//! *Batch size.* A batch is what a free disk is given at once. A disk that takes the same time for each block gains nothing
//! by choosing: 1. One that serves n at once is kept busy by 2 n, of which half wait while the others are served. An arm goes
//! less far the more it can choose from, so its batch is bounded by what the cache can spare alone. That bound, K / (16 d) for d
//! disks, is the one number of kimbrel96's Table 6 that does not depend on d: 80 of 1280 blocks. Its other entries (40, 40,
//! 16, 16, 8, 8, 4) were found by scanning; K / (16 d) is 40, 26, 20, 16, 13, 11, 10 for 2 to 8 disks.
//!
//! A drive that merges neighbouring requests, or reads ahead of them, makes T_disk of a sequential file shorter than this, and a
//! horizon and a batch larger than they have to be. `just-in-time` measures instead.

use std::borrow::Cow;
use std::fmt;

use headstart_types::{Nanos, Position};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::row::Context;

/// The part of the frames that batches may hold: one over this, which kimbrel96's Table 6 has for one disk.
const BATCHED_SHARE: u32 = 16;

/// A number of references, or what follows from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// So many.
    Fixed(Position),
    /// As the device has it.
    Device,
}

impl References {
    /// What a user may write.
    pub const ALLOWED: &'static str = "a whole number from 0, or \"device\"";

    /// The number: what is given, or what `derive` gives.
    pub(super) fn or_else(self, derive: impl FnOnce() -> Position) -> Position {
        match self {
            References::Fixed(number) => number,
            References::Device => derive(),
        }
    }
}

/// H.
pub(super) fn horizon(context: &Context) -> Position {
    horizon_of(context.hit, context.driver, context.nominal_service, context.frames)
}

/// H of a cache of `frames` frames: the disk's time over what a reference takes at the least.
pub(super) fn horizon_of(hit: Nanos, driver: Nanos, disk: Nanos, frames: u32) -> Position {
    let each = hit.0 + driver.0;
    let horizon = if each == 0 { u64::from(frames) } else { disk.0.div_ceil(each) };
    horizon.clamp(1, u64::from(frames.max(1))) as Position
}

/// L, for a disk whose F' is `cautious_service_ns` over what a reference takes.
pub(super) fn lookahead(context: &Context, cautious_service_ns: f64) -> Position {
    let each = (context.hit + context.driver + context.mean_compute).0;
    if each == 0 {
        return Position::MAX;
    }
    // A cast of what is larger gives the largest.
    (f64::from(context.frames) * cautious_service_ns / each as f64).ceil().max(1.0) as Position
}

/// The batch of one of the context's disks.
pub(super) fn batch(context: &Context) -> u32 {
    let spared = context.frames / BATCHED_SHARE / context.disks.max(1) as u32;
    let useful = match (context.concurrency, context.uniform) {
        (1, true) => 1,
        (1, false) => u32::MAX,
        (at_once, _) => at_once.saturating_mul(2),
    };
    useful.min(spared).max(1)
}

impl Serialize for References {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            References::Fixed(number) => serializer.serialize_u32(*number),
            References::Device => serializer.serialize_str("device"),
        }
    }
}

impl<'de> Deserialize<'de> for References {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = References;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(References::ALLOWED)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<References, E> {
                let wrong = || E::invalid_value(Unexpected::Signed(number), &self);
                Position::try_from(number).map(References::Fixed).map_err(|_| wrong())
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<References, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<References, E> {
                match text {
                    "device" => Ok(References::Device),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for References {
    fn schema_name() -> Cow<'static, str> {
        "References".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "integer", "minimum": 0, "maximum": Position::MAX}, {"const": "device"}]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replacement;

    fn context(frames: u32) -> Context {
        let row = replacement("lru").expect("there");
        Context { nominal_service: Nanos::from_millis(15), ..Context::plain(row, frames, Vec::new(), 0) }
    }

    #[test]
    fn the_horizon_is_what_the_paper_computes() {
        // 15 ms over 243 us is 61.7. Beside 0.5 ms of driver work 15 / 0.743 = 20.2. Without either: all frames.
        let of = |hit: u64, driver: u64| {
            let (hit, driver) = (Nanos(hit * 1000), Nanos(driver * 1000));
            horizon(&Context { hit, driver, ..context(1280) })
        };
        assert_eq!((of(243, 0), of(243, 500), of(0, 0), of(50_000, 0), of(1, 0)), (62, 21, 1280, 1, 1280));
    }

    #[test]
    fn the_look_ahead_is_as_far_as_frames_reach() {
        // K = 100 and 15 ms a block, taken four times as long; 1 ms of thinking and 0.5 ms of driver work a reference: F' = 40.
        let far = Context { mean_compute: Nanos::from_millis(1), driver: Nanos(500_000), ..context(100) };
        assert_eq!(lookahead(&far, 60e6), 4000);
        assert_eq!(lookahead(&Context { mean_compute: Nanos::ZERO, ..context(100) }, 60e6), Position::MAX);
        assert_eq!(lookahead(&Context { mean_compute: Nanos(u64::MAX / 2), ..context(100) }, 60e6), 1);
    }

    #[test]
    fn a_batch_follows_from_how_the_device_serves() {
        let of =
            |concurrency, uniform, disks, frames| batch(&Context { concurrency, uniform, disks, ..context(frames) });
        let by_disks = |disks| of(1, false, disks, 1280);
        assert_eq!([1, 2, 3, 4, 5, 16].map(by_disks), [80, 40, 26, 20, 16, 5]);
        assert_eq!((of(1, true, 1, 1280), of(32, false, 1, 1280), of(32, false, 1, 10_240)), (1, 64, 64));
        assert_eq!((of(64, false, 1, 1280), of(1, false, 4, 16)), (80, 1));
    }
}
