//! Window sizes for `linux` and for the read-aheads that share its streams.

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

/// The kernel version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Version {
    /// 6.12: windows have their full length and consist of single pages.
    #[serde(rename = "6.12")]
    V6_12,
    /// 6.17 and 6.18: windows end where their folios end.
    #[default]
    #[serde(rename = "6.18")]
    V6_18,
}

impl Version {
    /// The values that a user may write: 6.17 is another name of 6.18.
    const NAMES: [(&str, Version); 3] = [("6.12", Version::V6_12), ("6.17", Version::V6_18), ("6.18", Version::V6_18)];

    /// The modelled version for a kernel release, from the first two numbers of `uname -r`.
    #[must_use]
    pub fn of_release(release: &str) -> Self {
        let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if (major, minor) >= (6, 17) {
            Version::V6_18
        } else {
            Version::V6_12
        }
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Version;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"6.12\", \"6.17\" or \"6.18\"")
            }
            /// On a command line 6.18 is parsed as a number.
            fn visit_f64<E: Error>(self, version: f64) -> Result<Version, E> {
                self.visit_str(&version.to_string())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
                let problem = format!("\"{text}\" is not a modelled version");
                let found = Version::NAMES.iter().find(|(name, _)| *name == text).map(|(_, version)| *version);
                found.ok_or_else(|| E::invalid_value(Unexpected::Other(&problem), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": ["6.12", "6.17", "6.18", 6.12, 6.17, 6.18]})
    }
}

/// How window sizes are chosen: the kernel's way, or another one with the same detection of streams.
#[derive(Debug, Clone, Copy)]
pub enum Ramp {
    /// get_init_ra_size and get_next_ra_size.
    Kernel(Version),
    /// Slow start from this many blocks; see `fixed_depth`.
    Slow(u64),
}

impl Ramp {
    /// Whether windows consist of large folios.
    pub fn is_laid_in_folios(self) -> bool {
        matches!(self, Ramp::Kernel(Version::V6_18))
    }

    /// The first window of a stream, with `request` blocks to read.
    pub fn initial(self, request: u64, max: u64) -> u64 {
        match self {
            Ramp::Kernel(_) => initial_size(request, max),
            Ramp::Slow(first) => first.max(request).min(max),
        }
    }

    /// The window after one of `size` blocks.
    pub fn next(self, size: u64, max: u64) -> u64 {
        match self {
            Ramp::Kernel(_) => next_size(size, max),
            Ramp::Slow(first) if size < first => first.min(max),
            Ramp::Slow(_) => size.saturating_mul(2).min(max),
        }
    }
}

/// The kernel's get_init_ra_size.
fn initial_size(request: u64, max: u64) -> u64 {
    match request.next_power_of_two() {
        size if size <= max / 32 => size * 4,
        size if size <= max / 4 => size * 2,
        _ => max,
    }
}

/// The kernel's get_next_ra_size.
fn next_size(size: u64, max: u64) -> u64 {
    match size {
        size if size < max / 16 => size * 4,
        size if size <= max / 2 => size * 2,
        _ => max,
    }
}
