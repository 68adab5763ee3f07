//! Sizes in whole bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{from_text, parse_scaled, schema};

/// A number of bytes. Written by users with a unit in either case ("8KiB", "10M", "1MB"); serialized as a plain
/// integer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Display takes the first unit that fits, so the short forms come last.
    const UNITS: [(&str, u64); 13] = [
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        // Binary short forms, as in dd, fio and qemu-img.
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
    ];

    /// What a user may write for a size.
    pub const ALLOWED: &'static str =
        "a size with a unit, such as \"8KiB\" or \"10M\" (B; KiB or K, MiB or M, GiB or G, TiB or T; kB, MB, GB, TB)";

    /// Three significant digits, for messages in which the exact number does not matter: "5.90 MiB".
    #[must_use]
    pub fn rounded(self) -> String {
        let (mut size, mut unit) = (self.0 as f64, "B");
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if size < 999.5 || self.0 < 1024 {
                break;
            }
            (size, unit) = (size / 1024.0, larger);
        }
        let decimals = match size {
            _ if unit == "B" => 0,
            ..9.995 => 2,
            ..99.95 => 1,
            _ => 0,
        };
        format!("{size:.decimals$} {unit}")
    }
}

impl fmt::Display for Bytes {
    /// Exact, in the unit that needs the fewest digits; binary units win ties: "8KiB", "18.5GB".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = Self::UNITS.iter().filter(|(_, scale)| scale % 10 == 0 && self.0 >= *scale);
        let decimal = tenths.filter(|(_, scale)| self.0.is_multiple_of(scale / 10)).map(|(unit, scale)| {
            let (whole, tenth) = (self.0 / scale, self.0 % scale / (scale / 10));
            if tenth == 0 {
                format!("{whole}{unit}")
            } else {
                format!("{whole}.{tenth}{unit}")
            }
        });
        let whole = Self::UNITS.iter().filter(|(_, scale)| scale % 10 != 0 && self.0.is_multiple_of(*scale));
        let binary = whole.filter(|(_, scale)| self.0 >= *scale || *scale == 1);
        let binary = binary.map(|(unit, scale)| format!("{}{unit}", self.0 / scale));
        let digits = |text: &String| text.chars().filter(char::is_ascii_digit).count();
        f.write_str(&binary.chain(decimal).min_by_key(digits).unwrap_or_default())
    }
}

impl FromStr for Bytes {
    type Err = String;

    /// # Errors
    /// No unit, an unknown unit, a negative number, not whole bytes, or too large.
    fn from_str(text: &str) -> Result<Self, String> {
        parse_scaled(text, &Self::UNITS).map(Bytes)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, Self::ALLOWED)
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
        for (text, bytes) in [
            ("8KiB", 8192),
            ("10MiB", 10 << 20),
            ("1.5KiB", 1536),
            ("512B", 512),
            ("1MB", 1_000_000),
            ("10M", 10_485_760),
            ("4k", 4096),
            ("1.5G", 1_610_612_736),
            ("2 T", 2_199_023_255_552),
            ("64KB", 64_000),
            ("64kib", 65_536),
            ("3mb", 3_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["8", "8X", "8Ki", "K", "-8KiB", "0.3B", "KiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn rounds_to_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (6_189_056, "5.90 MiB"),
            (1_023_000, "999 KiB"),
            (1_023_900, "0.98 MiB"),
            (36_400_000_000, "33.9 GiB"),
            (5 << 50, "5120 TiB"),
        ] {
            assert_eq!(Bytes(bytes).rounded(), text);
        }
    }

    #[test]
    fn shows_what_users_would_write() {
        for text in ["0B", "1B", "512B", "1536B", "8KiB", "1TiB", "1kB", "152kB", "2GB", "20.4GB", "18.5GB", "4MiB"] {
            assert_eq!(text.parse::<Bytes>().map(|size| size.to_string()), Ok(text.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }
}
