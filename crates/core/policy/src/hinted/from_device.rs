//! Parameters of the hinted policies derived from the device, for users without measurements: the value `"device"`.
//!
//! *Horizon.* A block must be requested T_disk before its reference, and a reference takes at least T_hit + T_driver:
//!
//! ```text
//! H = T_disk / (T_hit + T_driver), rounded up, from 1 to K
//! ```
//!
//! This is TIP2's prefetch horizon (Patterson et al., SOSP 1995, section 4.1), and how kimbrel96 (section 2.6) arrived
//! at 62: 15 ms over 243 us. If no processor time is charged it is K, because the next reference may come at once.
//! Think times are ignored, as in those papers, because they come in bursts.
//!
//! *Look-ahead.* Forestall's rule asks whether the i-th missing block is at most i F' references away. At most K blocks
//! can be fetched before the first of them is used, so a stall further than K F' ahead cannot be acted on yet:
//!
//! ```text
//! L = K F',  F' = c T_disk / (T_hit + T_driver + mean think time),  c as in forestall
//! ```
//!
//! *Batch size.* A batch is what a free disk is given at once. A disk that takes the same time for each block gains
//! nothing from a choice: 1. A disk that serves n requests at once is kept busy by 2 n, of which half wait while the
//! others are served. A disk arm travels less the more requests it can choose from, so its batch is bounded only by
//! what the cache can spare. That bound, K / (16 d) for d disks, is the one number of kimbrel96's Table 6 that does not
//! depend on d: 80 of 1280 blocks. The table's other entries (40, 40, 16, 16, 8, 8, 4) were found by scanning; K / (16
//! d) is 40, 26, 20, 16, 13, 11, 10 for 2 to 8 disks.
//!
//! A drive that merges neighbouring requests or reads ahead makes T_disk of a sequential file shorter than assumed
//! here, so that the horizon and the batch are larger than necessary. `just-in-time` measures instead.

use std::borrow::Cow;
use std::fmt;

use headstart_types::{Nanos, Position};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::row::Context;

/// Batches may hold 1 / `BATCHED_SHARE` of the frames, as for one disk in kimbrel96's Table 6.
const BATCHED_SHARE: u32 = 16;

/// A number of references, or the value derived from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// A fixed number.
    Fixed(Position),
    /// Derived from the device.
    Device,
}

impl References {
    /// The values that a user may write.
    pub const ALLOWED: &'static str = "a whole number from 0, or \"device\"";

    /// The fixed number, or the result of `derive`.
    pub(super) fn or_else(self, derive: impl FnOnce() -> Position) -> Position {
        match self {
            References::Fixed(number) => number,
            References::Device => derive(),
        }
    }
}

/// H for the device of `context`, in references.
pub(super) fn horizon(context: &Context) -> Position {
    horizon_of(context.hit, context.driver, context.nominal_service, context.frames)
}

/// H for a cache of `frames` frames: the disk's time over the minimum time per reference.
pub(super) fn horizon_of(hit: Nanos, driver: Nanos, disk: Nanos, frames: u32) -> Position {
    let each = hit.0 + driver.0;
    let horizon = if each == 0 { u64::from(frames) } else { disk.0.div_ceil(each) };
    horizon.clamp(1, u64::from(frames.max(1))) as Position
}

/// L, for a disk with an F' of `cautious_service_ns` over the time per reference.
pub(super) fn lookahead(context: &Context, cautious_service_ns: f64) -> Position {
    let each = (context.hit + context.driver + context.mean_compute).0;
    if each == 0 {
        return Position::MAX;
    }
    // The cast saturates.
    (f64::from(context.frames) * cautious_service_ns / each as f64).ceil().max(1.0) as Position
}

/// The batch size for one of the context's disks.
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
        // K = 100 and 15 ms a block, taken four times as long; 1 ms of thinking and 0.5 ms of driver work a reference:
        // F' = 40.
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
