//! The keys of every read-ahead: what a scenario may write, its defaults, and what is refused.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use toml::Table;

use headstart_types::{KeyError, Nanos};

use super::linux_2_6::Trigger;
use super::obl::When;
use super::ra::{Adaptive, Ra};
use super::{MountpointSetting, ReadAheadContext, SarcSetting, Size, Version, ZfsSetting};

pub fn defaults<K: Default + Serialize + DeserializeOwned>() -> Table {
    Table::try_from(K::default()).expect("keys are plain values")
}

pub fn at_least_one(key: &str, value: u32) -> Result<u32, KeyError> {
    match value {
        0 => Err(KeyError::new(key, "0 is out of range", "a whole number from 1")),
        value => Ok(value),
    }
}

/// Refuses a value above `most`; it is not 0.
pub fn at_most(key: &str, value: u32, most: u32) -> Result<u32, KeyError> {
    if value <= most {
        return Ok(value);
    }
    Err(KeyError::new(key, format!("{value} is out of range"), format!("a whole number from 1 to {most}")))
}

/// As a user would write it.
fn as_text<S: Serializer>(value: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// State is kept for so many files (or open files: file and client) unless a key says otherwise.
const FILES: u32 = 65_536;

#[derive(Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct OblKeys {
    pub when: When,
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaKeys {
    /// P, in blocks; the first P if adaptive.
    pub degree: u32,
    pub adaptive: bool,
    pub period: u32,
    pub high: u32,
    pub low: u32,
    pub max_degree: u32,
}

impl Default for RaKeys {
    fn default() -> Self {
        Self { degree: 4, adaptive: false, period: 16, high: 12, low: 8, max_degree: 64 }
    }
}

impl RaKeys {
    pub fn build(self) -> Result<Ra, KeyError> {
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
pub struct Linux26Keys {
    pub min: Size,
    pub max: Size,
    pub trigger: Trigger,
    pub files: u32,
}

impl Default for Linux26Keys {
    fn default() -> Self {
        Self { min: Size::Blocks(3), max: Size::Blocks(32), trigger: Trigger::default(), files: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SarcKeys {
    /// p.
    pub degree: Size,
    /// g.
    pub trigger: Size,
    pub threshold: u32,
    /// dL as a part of the frames.
    pub bottom: f64,
    pub large_ratio: u32,
}

impl Default for SarcKeys {
    fn default() -> Self {
        Self { degree: Size::Blocks(8), trigger: Size::Blocks(4), threshold: 2, bottom: 0.02, large_ratio: 20 }
    }
}

impl SarcKeys {
    pub fn setting(self, context: &ReadAheadContext) -> Result<SarcSetting, KeyError> {
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
pub struct AmpKeys {
    /// APT, in blocks.
    pub threshold: u32,
    pub max_degree: Size,
}

impl Default for AmpKeys {
    fn default() -> Self {
        Self { threshold: 4, max_degree: Size::Blocks(256) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxKeys {
    /// Of the kernel.
    pub version: Version,
    /// The device's read_ahead_kb.
    pub read_ahead: Size,
    /// The device's max_sectors_kb: a request larger than `read_ahead` is read in pieces of up to this.
    pub max_request: Size,
    pub files: u32,
}

impl Default for LinuxKeys {
    fn default() -> Self {
        Self { version: Version::default(), read_ahead: Size::kib(128), max_request: Size::kib(1280), files: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FfsKeys {
    /// One block, which no unit of bytes says.
    pub first: Size,
    /// A cluster: shriver99, Table 1.
    pub max: Size,
    pub files: u32,
}

impl Default for FfsKeys {
    fn default() -> Self {
        Self { first: Size::Blocks(1), max: Size::kib(64), files: FILES }
    }
}

/// Requests ahead that `stride` predicts at each request: 2^31 of them never end. A guess at more than anyone wants.
pub const STRIDE_DEGREE_MAX: u32 = 65_536;

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StrideKeys {
    /// Requests.
    pub degree: u32,
    pub files: u32,
}

impl Default for StrideKeys {
    fn default() -> Self {
        Self { degree: 4, files: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RocksDbKeys {
    pub initial: Size,
    pub max: Size,
    /// num_file_reads_for_auto_readahead.
    pub reads: u32,
    pub files: u32,
}

impl Default for RocksDbKeys {
    fn default() -> Self {
        Self { initial: Size::kib(8), max: Size::kib(256), reads: 2, files: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ZfsKeys {
    pub min_distance: Size,
    pub max_distance: Size,
    pub max_reorder: Size,
    pub hole_shift: u32,
    pub streams: u32,
    #[serde(serialize_with = "as_text")]
    pub min_reap: Nanos,
    #[serde(serialize_with = "as_text")]
    pub max_reap: Nanos,
    pub files: u32,
}

impl Default for ZfsKeys {
    fn default() -> Self {
        Self {
            min_distance: Size::mib(4),
            max_distance: Size::mib(64),
            max_reorder: Size::mib(16),
            hole_shift: 2,
            streams: 8,
            min_reap: Nanos(1_000_000_000),
            max_reap: Nanos(2_000_000_000),
            files: FILES / 8,
        }
    }
}

impl ZfsKeys {
    pub fn setting(self, context: &ReadAheadContext) -> Result<ZfsSetting, KeyError> {
        let blocks = |key, size: Size| size.some_blocks(key, context.block_bytes);
        let min_distance = blocks("min_distance", self.min_distance)?;
        let max_distance = blocks("max_distance", self.max_distance)?;
        let bytes = |blocks: u64| blocks.saturating_mul(context.block_bytes);
        Ok(ZfsSetting {
            block_bytes: context.block_bytes,
            min_distance: bytes(min_distance),
            max_distance: bytes(max_distance),
            // The ranges of the real one are 16 bits wide.
            max_reorder: (self.max_reorder.blocks(context.block_bytes) + 1).min(u64::from(u16::MAX)),
            hole_shift: self.hole_shift,
            streams: at_least_one("streams", self.streams)? as usize,
            min_reap: self.min_reap,
            max_reap: self.max_reap,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InnoDbKeys {
    /// innodb_read_ahead_threshold.
    pub threshold: u32,
    pub extents: u32,
}

impl Default for InnoDbKeys {
    fn default() -> Self {
        Self { threshold: 56, extents: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresKeys {
    pub io_combine_limit: Size,
    pub effective_io_concurrency: u32,
    pub files: u32,
}

impl Default for PostgresKeys {
    fn default() -> Self {
        Self { io_combine_limit: Size::kib(128), effective_io_concurrency: 16, files: FILES }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MountpointKeys {
    pub initial: Size,
    /// What a window is at least once it has grown.
    pub read_part_size: Size,
    pub max: Size,
    pub multiplier: u32,
    pub max_forward_seek: Size,
    pub max_backward_seek: Size,
    pub files: u32,
}

impl Default for MountpointKeys {
    fn default() -> Self {
        Self {
            initial: Size::kib(1152),
            read_part_size: Size::mib(8),
            max: Size::mib(2048),
            multiplier: 2,
            max_forward_seek: Size::mib(16),
            max_backward_seek: Size::mib(1),
            files: FILES,
        }
    }
}

impl MountpointKeys {
    pub fn setting(self, context: &ReadAheadContext) -> Result<MountpointSetting, KeyError> {
        Ok(MountpointSetting {
            initial: self.initial.some_blocks("initial", context.block_bytes)?,
            part: self.read_part_size.some_blocks("read_part_size", context.block_bytes)?,
            max: self.max.some_blocks("max", context.block_bytes)?,
            multiplier: u64::from(at_least_one("multiplier", self.multiplier)?),
            forward: self.max_forward_seek.blocks(context.block_bytes),
            backward: self.max_backward_seek.blocks(context.block_bytes),
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FsspecKeys {
    pub block_size: Size,
    pub files: u32,
}

impl Default for FsspecKeys {
    fn default() -> Self {
        Self { block_size: Size::mib(5), files: FILES }
    }
}
