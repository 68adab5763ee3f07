//! Numbers of devices.

use std::fmt;
use std::str::FromStr;

use nix::sys::stat::{major, minor};
use serde::{Serialize, Serializer};

/// A device number, written "7:0".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// What kind of device, 0 for file systems without one.
    pub major: u64,
    /// Which of them.
    pub minor: u64,
}

impl Number {
    /// As the system packs it.
    pub(super) fn of(device: u64) -> Self {
        Self { major: major(device), minor: minor(device) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.trim().split_once(':').map(|(major, minor)| (major.parse(), minor.parse()));
        match numbers {
            Some((Ok(major), Ok(minor))) => Ok(Self { major, minor }),
            _ => Err(format!("\"{text}\" is no device number; allowed: two numbers, such as \"7:0\"")),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_two() {
        assert_eq!("254:16\n".parse(), Ok(Number { major: 254, minor: 16 }));
        for text in ["", "7", "7:", ":0", "7:0:0", "-7:0", "sda"] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
        assert_eq!(Number { major: 7, minor: 0 }.to_string(), "7:0");
    }
}
