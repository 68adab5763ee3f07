//! Numbers with a unit, as users write them ("8KiB", "0.5ms"), parsed exactly.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{json_schema, Schema};
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Parses a `T` from a string; holds the description of what is allowed, for errors.
struct FromText<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for FromText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|problem: String| E::invalid_value(Unexpected::Other(&problem), &self))
    }
}

/// Deserializes a value that is written as text. `allowed` describes valid values for errors.
///
/// # Errors
/// What the type rejects, and the deserializer's own errors.
pub fn from_text<'de, T: FromStr<Err = String>, D: Deserializer<'de>>(
    deserializer: D,
    allowed: &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(FromText(allowed, PhantomData))
}

/// The schema of a number with one of `units`; `unit` is "time" or "size".
pub(crate) fn schema(unit: &str, units: &[(&str, u64)]) -> Schema {
    let either_case = |letter: char| format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
    let names: Vec<String> = units.iter().map(|(name, _)| name.chars().map(either_case).collect()).collect();
    let pattern = format!("^ *([0-9]+\\.?[0-9]*|\\.[0-9]+) *({}) *$", names.join("|"));
    json_schema!({"type": "string", "x-unit": unit, "pattern": pattern})
}

/// Splits `text` into a decimal number and its unit (in either case) and returns number * scale(unit) as a whole
/// number.
///
/// The arithmetic is exact (no binary fractions): "0.1us" is 100 ns, and a result that is not whole is an error.
pub(crate) fn parse_scaled(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    if text.starts_with('-') {
        return Err(format!("\"{text}\" is negative"));
    }
    let scale =
        units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, scale)| *scale).ok_or_else(|| {
            if unit.is_empty() {
                format!("\"{text}\" has no unit")
            } else {
                format!("\"{text}\" has an unknown unit")
            }
        })?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(format!("\"{text}\" is not a number with a unit"));
    }
    let digits: String = [whole, fraction].concat();
    let too_large = || format!("\"{text}\" is too large");
    let value: u128 = digits.parse().map_err(|_| too_large())?;
    let divisor = 10u128.checked_pow(u32::try_from(fraction.len()).map_err(|_| too_large())?).ok_or_else(too_large)?;
    let scaled = value.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    if scaled % divisor != 0 {
        return Err(format!("\"{text}\" is finer than the smallest unit"));
    }
    u64::try_from(scaled / divisor).map_err(|_| too_large())
}
