//! Batches: how many fetches an aggressive policy gives to a free disk at once.
//!
//! Source: kimbrel96, section 2.7 (why), Table 6 (how many).

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use headstart_types::{Position, NEVER};

use super::{from_device, Round};
use crate::row::Context;

/// Fetches in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSize {
    /// By number of disks: 80, 40, 40, 16, 16, 8, 8 for 1 to 7, then 4 (kimbrel96, Table 6).
    Table6,
    /// A fixed size, at least 1.
    Fixed(u32),
    /// As many as the device can use and the cache can spare.
    Device,
}

impl BatchSize {
    /// The values that a user may write.
    pub const ALLOWED: &'static str = "a whole number from 1, \"table6\" or \"device\"";

    /// The size for the disks of `context`.
    #[must_use]
    pub fn on(self, context: &Context) -> u32 {
        const TABLE_6: [u32; 7] = [80, 40, 40, 16, 16, 8, 8];
        const BEYOND: u32 = 4;
        match self {
            BatchSize::Fixed(size) => size,
            BatchSize::Table6 => TABLE_6.get(context.disks.saturating_sub(1)).copied().unwrap_or(BEYOND),
            BatchSize::Device => from_device::batch(context),
        }
    }
}

impl Serialize for BatchSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            BatchSize::Table6 => serializer.serialize_str("table6"),
            BatchSize::Fixed(size) => serializer.serialize_u32(*size),
            BatchSize::Device => serializer.serialize_str("device"),
        }
    }
}

impl<'de> Deserialize<'de> for BatchSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = BatchSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(BatchSize::ALLOWED)
            }
            fn visit_i64<E: Error>(self, size: i64) -> Result<BatchSize, E> {
                let size_or_none = u32::try_from(size).ok().filter(|size| *size > 0);
                size_or_none.map(BatchSize::Fixed).ok_or_else(|| E::invalid_value(Unexpected::Signed(size), &self))
            }
            fn visit_u64<E: Error>(self, size: u64) -> Result<BatchSize, E> {
                self.visit_i64(i64::try_from(size).unwrap_or(i64::MAX))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<BatchSize, E> {
                let problem = format!("\"{text}\" is not a batch size");
                match text {
                    "table6" => Ok(BatchSize::Table6),
                    "device" => Ok(BatchSize::Device),
                    _ => Err(E::invalid_value(Unexpected::Other(&problem), &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for BatchSize {
    fn schema_name() -> Cow<'static, str> {
        "BatchSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "integer", "minimum": 1, "maximum": u32::MAX}, {"enum": ["table6", "device"]}]})
    }
}

/// Batches under construction.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// The free disks that take part, each with the room left in its batch.
    room: Vec<(usize, u32)>,
}

impl Batches {
    /// Lets `disk` take part in the next [`Self::build`].
    #[inline]
    pub fn open(&mut self, disk: usize, size: u32) {
        self.room.push((disk, size));
    }

    /// Fetches missing blocks of the open disks together, in increasing order of next use. Each replaces the furthest
    /// block, as long as that one is needed later ("do no harm") and its disk's batch has room.
    #[inline]
    pub fn build(&mut self, round: &mut Round<'_>) {
        while let Some((index, position)) = self.next(round) {
            let Some(frame) = round.frame_beyond(position) else { break };
            round.fetch_at(position, frame);
            self.room[index].1 -= 1;
            if self.room[index].1 == 0 {
                self.room.swap_remove(index);
            }
        }
        self.room.clear();
    }

    /// The open disk whose first missing block comes first, and that block's position.
    #[inline]
    fn next(&self, round: &Round<'_>) -> Option<(usize, Position)> {
        let heads = round.knowledge().missing().heads();
        let open = self.room.iter().enumerate().map(|(index, (disk, _))| (index, heads[*disk]));
        open.min_by_key(|(_, position)| *position).filter(|(_, position)| *position != NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_6_by_number_of_disks() {
        let row = crate::registry::replacement("lru").expect("there");
        let context = |disks| Context { disks, ..Context::plain(row, 1, Vec::new(), 0) };
        let sizes: Vec<u32> = [1, 2, 3, 4, 5, 6, 7, 8, 16].map(|disks| BatchSize::Table6.on(&context(disks))).into();
        assert_eq!(sizes, [80, 40, 40, 16, 16, 8, 8, 4, 4]);
        assert_eq!(BatchSize::Fixed(5).on(&context(1)), 5);
    }
}
