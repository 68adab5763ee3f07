//! A generator's keys: defaults filled in, unknown keys refused, values checked against their ranges.

use std::ops::RangeInclusive;

use headstart_types::{Bytes, KeyError, Nanos};
use toml::{Table, Value};

use super::compute::Compute;
use super::generator::GeneratorContext;

/// Blocks and counts of blocks fit in 32 bits everywhere in headstart.
const BLOCKS_MAX: u64 = u32::MAX as u64 - 1;
/// More requests than this would take weeks.
const REQUESTS_MAX: u64 = 1_000_000_000_000;

/// Given keys over defaults.
pub(crate) struct Keys(Table);

impl Keys {
    /// Refuses keys without a default.
    pub(crate) fn new(given: Table, mut defaults: Table) -> Result<Self, KeyError> {
        for (key, value) in given {
            if !defaults.contains_key(&key) {
                return Err(KeyError::unknown_key(&key, defaults.keys().map(String::as_str)));
            }
            defaults.insert(key, value);
        }
        Ok(Self(defaults))
    }

    fn value(&self, key: &str) -> Result<&Value, KeyError> {
        self.0.get(key).ok_or_else(|| KeyError::new(key, "is missing", "a value"))
    }

    /// A whole number in `range`.
    pub(crate) fn count(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, KeyError> {
        let value = self.value(key)?;
        let allowed = || format!("a whole number from {} to {}", range.start(), range.end());
        let number = value.as_integer().ok_or_else(|| KeyError::new(key, not_a(value, "a whole number"), allowed()))?;
        let in_range = u64::try_from(number).ok().filter(|number| range.contains(number));
        in_range.ok_or_else(|| KeyError::new(key, format!("{number} is out of range"), allowed()))
    }

    /// A number from 0 to `most`.
    pub(super) fn number(&self, key: &str, most: f64) -> Result<f64, KeyError> {
        let value = self.value(key)?;
        let allowed = || format!("a number from 0 to {most}");
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let number = number.ok_or_else(|| KeyError::new(key, not_a(value, "a number"), allowed()))?;
        if !(0.0..=most).contains(&number) {
            return Err(KeyError::new(key, format!("{number} is out of range"), allowed()));
        }
        Ok(number)
    }

    /// A size from 1 byte to `most` bytes, written with a unit.
    pub(super) fn bytes(&self, key: &str, most: u64) -> Result<u64, KeyError> {
        self.bytes_within(key, 1..=most)
    }

    /// The same, or none at all ("0B").
    pub(super) fn bytes_or_none(&self, key: &str, most: u64) -> Result<u64, KeyError> {
        self.bytes_within(key, 0..=most)
    }

    fn bytes_within(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, KeyError> {
        let value = self.value(key)?;
        let text = value.as_str().ok_or_else(|| KeyError::new(key, not_a(value, "a text"), Bytes::ALLOWED))?;
        let Bytes(bytes) = text.parse().map_err(|problem: String| KeyError::new(key, problem, Bytes::ALLOWED))?;
        if !range.contains(&bytes) {
            let allowed = format!("a size from {} to {}", Bytes(*range.start()), Bytes(*range.end()));
            return Err(KeyError::new(key, format!("\"{text}\" is out of range"), allowed));
        }
        Ok(bytes)
    }

    /// A time of up to 1000 hours, written with a unit; longer ones would overflow when added up.
    pub(super) fn time(&self, key: &str) -> Result<Nanos, KeyError> {
        const MOST: Nanos = Nanos(1_000 * 3_600_000_000_000);
        let value = self.value(key)?;
        let text = value.as_str().ok_or_else(|| KeyError::new(key, not_a(value, "a text"), Nanos::ALLOWED))?;
        let time: Nanos = text.parse().map_err(|problem: String| KeyError::new(key, problem, Nanos::ALLOWED))?;
        if time > MOST {
            return Err(KeyError::new(key, format!("\"{text}\" is out of range"), "at most 1000h"));
        }
        Ok(time)
    }

    /// The key `compute`.
    pub(super) fn compute(&self) -> Result<Compute, KeyError> {
        let value = self.value("compute")?;
        let text = value.as_str().ok_or_else(|| KeyError::new("compute", not_a(value, "a text"), Compute::ALLOWED))?;
        text.parse().map_err(|problem: String| KeyError::new("compute", problem, Compute::ALLOWED))
    }

    /// The keys `blocks` (at most `blocks_max`) and `request_blocks`, which must fit together and into addresses.
    pub(super) fn space(&self, blocks_max: u64, context: &GeneratorContext) -> Result<Space, KeyError> {
        let blocks = self.count("blocks", 1..=blocks_max.min(BLOCKS_MAX))?;
        let request_blocks = self.count("request_blocks", 1..=blocks)?;
        context.fits(blocks)?;
        Ok(Space { blocks, request_blocks, block_bytes: context.block_bytes })
    }

    /// The key `requests`.
    pub(super) fn requests(&self) -> Result<u64, KeyError> {
        self.count("requests", 1..=REQUESTS_MAX)
    }
}

fn not_a(value: &Value, wanted: &str) -> String {
    format!("{value} is not {wanted}")
}

/// The blocks that a generator's requests lie in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    /// How many there are.
    pub(super) blocks: u64,
    /// Blocks of a request, at most `blocks`.
    pub(super) request_blocks: u64,
    pub(super) block_bytes: u64,
}

impl Space {
    /// How many blocks a request can start at and still lie within the space.
    pub(super) fn starts(&self) -> u64 {
        self.blocks - self.request_blocks + 1
    }
}

/// The defaults that most generators have, after `own` ones.
pub(super) fn defaults(own: impl IntoIterator<Item = (&'static str, Value)>, compute: &str) -> Table {
    let common = [("request_blocks", Value::Integer(1)), ("compute", Value::String(compute.to_owned()))];
    own.into_iter().chain(common).map(|(key, value)| (key.to_owned(), value)).collect()
}
