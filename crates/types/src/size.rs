//! Sizes in whole bytes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{parse_scaled, schema, FromText};

/// A number of bytes. Written by users with a unit ("8KiB", "10MiB", "1MB"); serialized as a plain integer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    const UNITS: [(&str, u64); 9] = [
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];

    /// What a user may write for a size.
    pub const ALLOWED: &'static str =
        "a size with a unit, such as \"8KiB\" or \"10MiB\" (B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)";
}

impl fmt::Display for Bytes {
    /// Exact, in the largest binary unit that divides it: "8KiB", "1000B".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match units.iter().find(|(_, shift)| self.0 != 0 && self.0.trailing_zeros() >= *shift) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    /// # Errors
    /// What is wrong with the text: no unit, an unknown unit, negative, not whole bytes, too large.
    fn from_str(text: &str) -> Result<Self, String> {
        parse_scaled(text, &Self::UNITS).map(Bytes)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FromText(Self::ALLOWED, PhantomData))
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("size", &Self::UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_exactly_what_users_write() {
        for (text, bytes) in [("8KiB", 8192), ("10MiB", 10 << 20), ("1.5KiB", 1536), ("512B", 512), ("1MB", 1_000_000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["8", "8K", "-8KiB", "0.3B", "KiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }
}
