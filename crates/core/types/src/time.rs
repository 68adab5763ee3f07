//! Time in whole nanoseconds. One type serves for instants (since the start of a run) and durations.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::units::{from_text, parse_scaled, schema};

/// Nanoseconds: an instant since the start of the run, or a duration. The range is 584 years.
///
/// Written by users with a unit ("243us", "0.5ms", "99.9s"); serialized as a plain integer of nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run, or a zero duration.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any other time; used for "never".
    pub const MAX: Nanos = Nanos(u64::MAX);
    const UNITS: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];

    /// Rounds a non-negative number of nanoseconds like [`f64::round`], which is a library call on processors whose
    /// baseline has no instruction for it.
    #[inline]
    #[must_use]
    pub fn rounded(ns: f64) -> Self {
        let whole = ns as u64;
        Self(whole.saturating_add(u64::from(ns - whole as f64 >= 0.5)))
    }

    /// What a user may write for a time.
    pub const ALLOWED: &'static str =
        "a time with a unit, such as \"243us\", \"0.5ms\" or \"99.9s\" (ns, us, ms, s, min, h)";

    /// Whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Nanos(us * 1_000)
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Nanos(ms * 1_000_000)
    }

    /// `ms` milliseconds, rounded to the nearest nanosecond. The caller guarantees `ms >= 0`.
    #[must_use]
    pub fn from_millis_f64(ms: f64) -> Self {
        Nanos((ms * 1e6).round() as u64)
    }

    /// The time in seconds, for display and for ratios.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero if that would be negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// The caller guarantees `other <= self`.
    #[inline]
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Nanos) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    #[inline]
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0 * times)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(each: I) -> Nanos {
        each.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// The shortest exact form with a unit: "0s", "243us", "1.5ms".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0 => return f.write_str("0s"),
            ns if ns >= 1_000_000_000 => (1_000_000_000, "s"),
            ns if ns >= 1_000_000 => (1_000_000, "ms"),
            ns if ns >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let width = scale.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        write!(f, "{whole}.{}{unit}", digits.trim_end_matches('0'))
    }
}

impl FromStr for Nanos {
    type Err = String;

    /// # Errors
    /// No unit, an unknown unit, a negative number, finer than a nanosecond, or too large.
    fn from_str(text: &str) -> Result<Self, String> {
        parse_scaled(text, &Self::UNITS).map(Nanos)
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, Self::ALLOWED)
    }
}

impl JsonSchema for Nanos {
    fn schema_name() -> Cow<'static, str> {
        "Nanos".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("time", &Self::UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounds_as_the_library_does() {
        let ends =
            [0.0, 0.49999999999999994, 0.5, 1.5, 2.5, 4503599627370495.5, 9007199254740993.0, 1e300, f64::INFINITY];
        let many = (0..10_000u64).map(|at| at as f64 * 0.3125 + 1e9);
        for ns in ends.into_iter().chain(many) {
            assert_eq!(Nanos::rounded(ns), Nanos(ns.round() as u64), "{ns}");
        }
    }

    #[test]
    fn parses_exactly_what_users_write() {
        for (text, ns) in [
            ("243us", 243_000),
            ("0.5ms", 500_000),
            ("99.9s", 99_900_000_000),
            ("0.1us", 100),
            ("0s", 0),
            ("2min", 120_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "5", "ms", "-1ms", "1.2.3s", "0.1ns", "1 fortnight", "99999999999999999999h", ".s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(ns in any::<u64>()) {
            prop_assert_eq!(Nanos(ns).to_string().parse(), Ok(Nanos(ns)));
        }
    }
}
