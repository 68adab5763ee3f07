//! Every read-ahead by name: one row each. Help, docs and the conformance tests iterate the table.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Table;

use headstart_types::{typed_keys, KeyError};

use super::linux_2_6::Trigger;
use super::obl::When;
use super::ra::Adaptive;
use super::{Amp, Integrated, Linux, Linux26, Obl, Ra, ReadAhead, Sarc, SarcSetting, Size};

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
    ReadAheadRow {
        name: "sarc",
        summary: "groups of fixed size ahead of sequential blocks, which share the cache with random ones by utility",
        source: "Gill and Modha, USENIX 2005; zhang-pfc, section 2.2",
        only_ahead: true,
        spares_random: true,
        defaults: defaults::<SarcKeys>,
        build: BuildReadAhead::WithReplacement(|keys, context| {
            let setting = typed_keys::<SarcKeys>(keys)?.setting(context)?;
            Ok(Box::new(Sarc::new(context.frames, setting)))
        }),
    },
    ReadAheadRow {
        name: "amp",
        summary: "a degree and a trigger distance for each stream, grown by use, shrunk by waste",
        source: "Gill and Bathen, FAST 2007",
        only_ahead: true,
        spares_random: true,
        defaults: defaults::<AmpKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: AmpKeys = typed_keys(keys)?;
            let max_degree = keys.max_degree.some_blocks("max_degree", context.block_bytes)?;
            Ok(Box::new(Amp::new(context.frames, u64::from(keys.threshold), max_degree)))
        }),
    },
    ReadAheadRow {
        name: "linux",
        summary: "the kernel's on-demand read-ahead: a window that ramps up, renewed at a marked page",
        source: "Linux 6.12, mm/readahead.c and mm/filemap.c",
        only_ahead: false,
        spares_random: true,
        defaults: defaults::<LinuxKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: LinuxKeys = typed_keys(keys)?;
            let max = keys.read_ahead.some_blocks("read_ahead", context.block_bytes)?;
            let request_max = keys.max_request.blocks(context.block_bytes);
            at_least_one("files", keys.files)?;
            Ok(Box::new(Linux::new(max, request_max, keys.files as usize, context.frames as usize)))
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

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SarcKeys {
    /// p.
    degree: Size,
    /// g.
    trigger: Size,
    threshold: u32,
    /// dL as a part of the frames.
    bottom: f64,
    large_ratio: u32,
}

impl Default for SarcKeys {
    fn default() -> Self {
        Self { degree: Size::Blocks(8), trigger: Size::Blocks(4), threshold: 2, bottom: 0.02, large_ratio: 20 }
    }
}

impl SarcKeys {
    fn setting(self, context: &ReadAheadContext) -> Result<SarcSetting, KeyError> {
        let degree = self.degree.blocks(context.block_bytes);
        if degree < 2 {
            return Err(KeyError::new("degree", format!("{degree} is out of range"), "at least two blocks"));
        }
        let trigger = self.trigger.some_blocks("trigger", context.block_bytes)?;
        if trigger >= degree {
            let allowed = format!("less than degree, {degree} blocks");
            return Err(KeyError::new("trigger", format!("{trigger} blocks reach past the group"), allowed));
        }
        if !(self.bottom > 0.0 && self.bottom <= 0.5) {
            let problem = format!("{} is out of range", self.bottom);
            return Err(KeyError::new("bottom", problem, "a part of the frames, above 0 and at most 0.5"));
        }
        let bottom = (self.bottom * f64::from(context.frames)).ceil() as usize;
        let threshold = at_least_one("threshold", self.threshold)?;
        let large_ratio = u64::from(at_least_one("large_ratio", self.large_ratio)?);
        Ok(SarcSetting { degree, trigger, threshold, bottom: bottom.max(1), large_ratio })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AmpKeys {
    /// APT, in blocks.
    threshold: u32,
    max_degree: Size,
}

impl Default for AmpKeys {
    fn default() -> Self {
        Self { threshold: 4, max_degree: Size::Blocks(256) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LinuxKeys {
    /// The device's read_ahead_kb.
    read_ahead: Size,
    /// The device's max_sectors_kb: a request larger than `read_ahead` is read in pieces of up to this.
    max_request: Size,
    files: u32,
}

impl Default for LinuxKeys {
    fn default() -> Self {
        Self { read_ahead: Size::kib(128), max_request: Size::kib(1280), files: FILES }
    }
}
