//! A size, a time or a rate as passed from Python: a number, or text with a unit.

use headstart_types::{Bytes, KeyError, Nanos};
use serde::Deserialize;

/// A number in the kind's own unit, or text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// Bytes, nanoseconds or bytes per second.
    Number(f64),
    /// Such as "64KiB", "7.53ms" or "37.3MB/s".
    Text(String),
}

/// The kind of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Size,
    /// Nanoseconds.
    Time,
    /// Bytes per second.
    Rate,
}

impl Kind {
    /// Larger numbers are errors in units: a petabyte, an hour, a petabyte per second.
    const fn most(self) -> f64 {
        match self {
            Self::Size | Self::Rate => 1e15,
            Self::Time => 3.6e12,
        }
    }

    const fn allowed(self) -> &'static str {
        match self {
            Self::Size => Bytes::ALLOWED,
            Self::Time => Nanos::ALLOWED,
            Self::Rate => "a size per second, such as \"20MB/s\"",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Size => "bytes",
            Self::Time => "ns",
            Self::Rate => "bytes a second",
        }
    }
}

impl Amount {
    /// The number.
    ///
    /// # Errors
    /// At `key`, if the text is not an amount, or it is less than `least` or unreasonably large.
    pub fn at_least(&self, key: &str, kind: Kind, least: f64) -> Result<f64, KeyError> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Text(text) => parse(text, kind).map_err(|problem| KeyError::new(key, problem, kind.allowed()))?,
        };
        if (least..=kind.most()).contains(&number) {
            return Ok(number);
        }
        let (unit, most) = (kind.unit(), kind.most());
        Err(KeyError::new(key, format!("{number} {unit} is out of range"), format!("{least} to {most} {unit}")))
    }
}

fn parse(text: &str, kind: Kind) -> Result<f64, String> {
    match kind {
        Kind::Time => text.parse().map(|time: Nanos| time.0 as f64),
        Kind::Size => text.parse().map(|size: Bytes| size.0 as f64),
        Kind::Rate => text.strip_suffix("/s").unwrap_or(text).parse().map(|size: Bytes| size.0 as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers() {
        let read = |json: &str, kind: Kind| {
            let amount: Amount = serde_json::from_str(json).expect("a number or text");
            amount.at_least("key", kind, 1.0).map_err(|error| error.to_string())
        };
        assert_eq!(read("\"37.3MB/s\"", Kind::Rate), Ok(37.3e6));
        assert_eq!(read("\"7.53ms\"", Kind::Time), Ok(7.53e6));
        assert_eq!(read("\"64KiB\"", Kind::Size), Ok(65_536.0));
        assert_eq!(read("65536", Kind::Size), Ok(65_536.0));
        let refused = read("\"64\"", Kind::Size).expect_err("no unit");
        assert!(refused.starts_with("key: \"64\" has no unit; allowed: a size with a unit"), "{refused}");
        let refused = read("0", Kind::Rate).expect_err("nothing");
        assert_eq!(refused, "key: 0 bytes a second is out of range; allowed: 1 to 1000000000000000 bytes a second");
        let refused = read("\"2h\"", Kind::Time).expect_err("too long");
        assert_eq!(refused, "key: 7200000000000 ns is out of range; allowed: 1 to 3600000000000 ns");
    }
}
