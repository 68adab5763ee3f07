//! How long windows are in `linux` and in what shares its streams.

use serde::{Deserialize, Serialize};

/// Of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub enum Version {
    /// Windows as long as they may be.
    #[default]
    #[serde(rename = "6.12")]
    V6_12,
    /// 6.17 and 6.18: windows end where their folios end.
    #[serde(rename = "6.17")]
    V6_17,
}

/// A version as it may be written: on a command line 6.17 is a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(f64),
}

impl TryFrom<Written> for Version {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let text = match written {
            Written::Text(text) => text,
            Written::Number(number) => number.to_string(),
        };
        match text.as_str() {
            "6.12" => Ok(Version::V6_12),
            "6.17" => Ok(Version::V6_17),
            other => Err(format!("\"{other}\" is no version that is modelled; allowed: \"6.12\" or \"6.17\"")),
        }
    }
}

/// How large windows are: the kernel's way, or another one within the same detection of streams.
#[derive(Debug, Clone, Copy)]
pub enum Ramp {
    /// get_init_ra_size and get_next_ra_size.
    Kernel(Version),
    /// Slow start from so many blocks; see `fixed_depth`.
    Slow(u64),
}

impl Ramp {
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
