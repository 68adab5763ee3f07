//! An amount to read ahead, as a user writes it: in blocks, or in bytes where the real system counts bytes.

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use headstart_types::Bytes;

/// A number of blocks, or a size in bytes that becomes blocks once the block size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A number of blocks.
    Blocks(u64),
    /// A number of bytes.
    Bytes(Bytes),
}

impl Size {
    /// The values that a user may write.
    pub const ALLOWED: &'static str = "a whole number of blocks, or a size with a unit, such as \"128KiB\"";

    /// 1 KiB = 1024 bytes.
    #[must_use]
    pub const fn kib(kib: u64) -> Self {
        Size::Bytes(Bytes(kib << 10))
    }

    /// 1 MiB = 1024 KiB.
    #[must_use]
    pub const fn mib(mib: u64) -> Self {
        Size::kib(mib << 10)
    }

    /// The size in blocks of `block_bytes`, rounded up; at most 2^32 - 1, so that sums of a few do not overflow.
    #[must_use]
    pub fn blocks(self, block_bytes: u64) -> u64 {
        let blocks = match self {
            Size::Blocks(blocks) => blocks,
            Size::Bytes(bytes) => bytes.0.div_ceil(block_bytes.max(1)),
        };
        blocks.min(u64::from(u32::MAX))
    }
}

/// Reads a size that must not be zero: `#[serde(deserialize_with = "super::size::some_blocks")]`.
pub(crate) fn some_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
    match Size::deserialize(deserializer)? {
        Size::Blocks(0) | Size::Bytes(Bytes(0)) => {
            Err(D::Error::invalid_value(Unexpected::Other("0 is out of range"), &"at least one block"))
        }
        size => Ok(size),
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Size::Blocks(blocks) => serializer.serialize_u64(*blocks),
            Size::Bytes(bytes) => serializer.collect_str(bytes),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Size::ALLOWED)
            }

            fn visit_i64<E: Error>(self, blocks: i64) -> Result<Size, E> {
                let negative = |_| E::invalid_value(Unexpected::Other(&format!("{blocks} is negative")), &self);
                u64::try_from(blocks).map(Size::Blocks).map_err(negative)
            }

            fn visit_u64<E: Error>(self, blocks: u64) -> Result<Size, E> {
                Ok(Size::Blocks(blocks))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                let refused = |problem: String| E::invalid_value(Unexpected::Other(&problem), &self);
                text.parse().map(Size::Bytes).map_err(refused)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bytes = Bytes::json_schema(generator);
        json_schema!({"anyOf": [{"type": "integer", "minimum": 0}, bytes]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_whole_blocks() {
        assert_eq!(Size::kib(128).blocks(4096), 32); // 131072 / 4096
        assert_eq!(Size::kib(9).blocks(4096), 3); // 9216 / 4096 = 2.25, begun blocks count whole
        assert_eq!(Size::Blocks(5).blocks(4096), 5);
        assert_eq!(Size::Blocks(u64::MAX).blocks(4096), u64::from(u32::MAX));
    }
}
