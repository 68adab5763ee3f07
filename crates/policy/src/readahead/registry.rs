//! Every read-ahead by name: one row each. Help, docs and the conformance tests iterate the table.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Table;

use headstart_types::{typed_keys, KeyError};

use super::linux_2_6::Trigger;
use super::obl::When;
use super::ra::Adaptive;
use super::{Integrated, Linux26, Obl, Ra, ReadAhead, Size};

/// What a host tells about the level that a read-ahead is built for.
#[derive(Debug, Clone, Copy)]
pub struct ReadAheadContext {
    /// Bytes of a block, at least 1.
    pub block_bytes: u64,
    /// Frames of the level, at least 1.
    pub frames: u32,
}

/// Makes a policy from its keys.
pub type Make<P> = fn(Table, &ReadAheadContext) -> Result<Box<P>, KeyError>;

/// How a row makes its read-ahead.
pub enum BuildReadAhead {
    /// Beside a replacement that the scenario chooses.
    Apart(Make<dyn ReadAhead>),
    /// With a replacement of its own.
    WithReplacement(Make<dyn Integrated>),
}

/// A read-ahead's row.
pub struct ReadAheadRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it names only blocks after the request that it is told of.
    pub only_ahead: bool,
    /// Whether a first request of one block, away from the start of its file, makes it prefetch nothing.
    pub spares_random: bool,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// Builds it from its keys (without `name` and `replacement`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReadAhead,
}

/// The read-aheads.
pub static READ_AHEADS: &[ReadAheadRow] = &[
    ReadAheadRow {
        name: "obl",
        summary: "one block lookahead: always, on a miss, or tagged",
        source: "Smith, ACM Computing Surveys 14(3), 1982, section 2.1",
        only_ahead: true,
        spares_random: false,
        defaults: defaults::<OblKeys>,
        build: BuildReadAhead::Apart(|keys, _| {
            let keys: OblKeys = typed_keys(keys)?;
            Ok(Box::new(Obl::new(keys.when)))
        }),
    },
    ReadAheadRow {
        name: "ra",
        summary: "the P blocks after each request, P fixed or adaptive",
        source: "zhang-pfc, section 2.2; Dahlgren, Dubois and Stenström, ICPP 1993",
        only_ahead: true,
        spares_random: false,
        defaults: defaults::<RaKeys>,
        build: BuildReadAhead::Apart(|keys, _| Ok(Box::new(typed_keys::<RaKeys>(keys)?.build()?))),
    },
    ReadAheadRow {
        name: "linux-2.6",
        summary: "groups that double from 3 to 32 blocks while a file is read in its window",
        source: "zhang-pfc, section 2.2; Butt, Gniady and Hu, SIGMETRICS 2005",
        only_ahead: true,
        spares_random: false,
        defaults: defaults::<Linux26Keys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: Linux26Keys = typed_keys(keys)?;
            let min = keys.min.some_blocks("min", context.block_bytes)?;
            let max = keys.max.some_blocks("max", context.block_bytes)?;
            at_least_one("files", keys.files)?;
            Ok(Box::new(Linux26::new(min, max, keys.trigger, keys.files as usize)))
        }),
    },
];

/// The row of read-ahead `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn read_ahead(name: &str) -> Result<&'static ReadAheadRow, KeyError> {
    let unknown = || KeyError::unknown("name", "read-ahead", name, READ_AHEADS.iter().map(|row| row.name));
    READ_AHEADS.iter().find(|row| row.name == name).ok_or_else(unknown)
}

fn defaults<K: Default + Serialize + DeserializeOwned>() -> Table {
    Table::try_from(K::default()).expect("keys are plain values")
}

fn at_least_one(key: &str, value: u32) -> Result<u32, KeyError> {
    match value {
        0 => Err(KeyError::new(key, "0 is out of range", "a whole number from 1")),
        value => Ok(value),
    }
}

/// State is kept for so many files (or open files: file and client) unless a key says otherwise.
const FILES: u32 = 65_536;

#[derive(Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct OblKeys {
    when: When,
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RaKeys {
    /// P, in blocks; the first P if adaptive.
    degree: u32,
    adaptive: bool,
    period: u32,
    high: u32,
    low: u32,
    max_degree: u32,
}

impl Default for RaKeys {
    fn default() -> Self {
        Self { degree: 4, adaptive: false, period: 16, high: 12, low: 8, max_degree: 64 }
    }
}

impl RaKeys {
    fn build(self) -> Result<Ra, KeyError> {
        at_least_one("period", self.period)?;
        at_least_one("max_degree", self.max_degree)?;
        if self.low > self.high {
            return Err(KeyError::new("low", format!("{} is above high", self.low), format!("at most {}", self.high)));
        }
        if self.adaptive && self.degree > self.max_degree {
            let allowed = format!("at most max_degree, {}", self.max_degree);
            return Err(KeyError::new("degree", format!("{} is above max_degree", self.degree), allowed));
        }
        let adaptive = Adaptive { period: self.period, high: self.high, low: self.low, max_degree: self.max_degree };
        Ok(Ra::new(self.degree, self.adaptive.then_some(adaptive)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Linux26Keys {
    min: Size,
    max: Size,
    trigger: Trigger,
    files: u32,
}

impl Default for Linux26Keys {
    fn default() -> Self {
        Self { min: Size::Blocks(3), max: Size::Blocks(32), trigger: Trigger::default(), files: FILES }
    }
}
