//! Section `[cache]`, the first level.

use headstart_types::{as_text_if_any, keys, read_keys, Bytes, KeyError, Nanos};
use toml::{Table, Value};

use super::limits::TIME_MAX;
use super::workload::{WorkloadKeys, Writes};

/// The default name of level `index`.
#[must_use]
pub fn default_name(index: usize) -> String {
    format!("L{}", index + 1)
}

/// Section `[cache]`.
#[derive(Debug, Clone)]
pub struct CacheKeys {
    /// The keys, with all defaults.
    pub section: CacheSection,
    pub size: CacheSize,
    /// Maximum number of consecutively written blocks that are written back together; `None` if each is written back
    /// separately.
    pub write_cluster: Option<u64>,
}

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// In blocks, at least 1.
    Blocks(u32),
    /// As a share of the distinct blocks of the workload, above 0.
    Footprint(f64),
}

impl CacheSize {
    /// Its number of blocks, for a workload with `distinct` distinct blocks.
    #[must_use]
    pub fn frames(self, distinct: usize) -> u32 {
        match self {
            CacheSize::Blocks(blocks) => blocks,
            CacheSize::Footprint(share) => share_of(share, distinct),
        }
    }
}

/// A share of the distinct blocks, at least one.
#[must_use]
pub fn share_of(share: f64, distinct: usize) -> u32 {
    ((distinct as f64 * share).round() as u32).max(1)
}

/// The keys that give a cache's size; exactly one of them is used.
pub const SIZES: [&str; 3] = ["blocks", "size", "footprint"];

keys! {
    /// Section `[cache]`: one level. One of blocks, size and footprint gives its size. Default: 1280 blocks.
    pub struct CacheSection {
        /// Name of the level, in results and for the sizes of levels below.
        pub name: String = default_name(0),
        /// Size in blocks.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocks: Option<i64> = None,
        /// Size in bytes, such as "10MiB".
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        pub(crate) size: Option<Bytes> = None,
        /// Size as a share of the distinct referenced blocks, such as 0.05.
        #[serde(skip_serializing_if = "Option::is_none")]
        footprint: Option<f64> = None,
        /// Labels of the blocks that are resident at the start, least recently used first.
        pub initial: Vec<String> = Vec::new(),
        /// Time after which a dirty block is written to its device. Only with `workload.writes = "back"`.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        #[schemars(extend("x-absent" = "\"30s\" if workload.writes is \"back\""))]
        pub write_delay: Option<Nanos> = None,
        /// Blocks of a file that are written one after another and are contiguous on the disk are written back together
        /// once they reach this size ("64KiB" in 4.4BSD's file system). Only with `workload.writes = "back"`.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        #[schemars(extend("x-absent" = "none: each block is written separately"))]
        write_cluster: Option<Bytes> = None,
    }
}

/// Default size in blocks: 10 MiB in blocks of 8 KiB (kimbrel96, section 3.1).
const DEFAULT_BLOCKS: i64 = 1280;

/// The delay of the update daemon of Unix, and of Linux's `dirty_expire_centisecs`.
const DEFAULT_WRITE_DELAY: &str = "30s";

/// Reads the section.
pub fn read(mut table: Table, workload: &WorkloadKeys) -> Result<CacheKeys, KeyError> {
    let block_bytes = workload.block_bytes();
    if workload.section.writes == Writes::Back {
        table.entry("write_delay").or_insert_with(|| DEFAULT_WRITE_DELAY.into());
    } else if table.contains_key("write_delay") {
        let allowed = "workload.writes = \"back\", or no write_delay";
        return Err(KeyError::new("write_delay", "nothing stays dirty", allowed));
    } else if table.contains_key("write_cluster") {
        let allowed = "workload.writes = \"back\", or no write_cluster";
        return Err(KeyError::new("write_cluster", "nothing stays dirty", allowed));
    }
    let sized: Vec<&str> = SIZES.into_iter().filter(|key| table.contains_key(*key)).collect();
    if let [_, second, ..] = sized[..] {
        return Err(KeyError::new(second, "given beside another size", "one of blocks, size, footprint"));
    }
    if sized.is_empty() {
        table.insert("blocks".into(), Value::Integer(DEFAULT_BLOCKS));
    }
    let section: CacheSection = read_keys(table)?;
    if section.write_delay.is_some_and(|delay| delay > TIME_MAX) {
        return Err(KeyError::new("write_delay", "is too long", "at most 146 years"));
    }
    let write_cluster = section.write_cluster.map(|bytes| bytes.0 / block_bytes);
    if write_cluster == Some(0) {
        let problem = format!("smaller than a block of {}", Bytes(block_bytes));
        return Err(KeyError::new("write_cluster", problem, "at least one block"));
    }
    let blocks = |key: &str, blocks: i128| {
        let allowed = "at least one block, fewer than 4294967295";
        match u32::try_from(blocks) {
            Ok(blocks) if blocks > 0 && blocks < u32::MAX => Ok(CacheSize::Blocks(blocks)),
            _ => Err(KeyError::new(key, format!("a cache of {blocks} blocks"), allowed)),
        }
    };
    let size = match section {
        CacheSection { blocks: Some(count), .. } => blocks("blocks", i128::from(count))?,
        CacheSection { size: Some(size), .. } => blocks("size", i128::from(size.0 / block_bytes))?,
        CacheSection { footprint: Some(share), .. } if share > 0.0 && share.is_finite() => CacheSize::Footprint(share),
        _ => return Err(KeyError::new("footprint", "out of range", "a number above 0")),
    };
    Ok(CacheKeys { section, size, write_cluster })
}
