//! Keys of `workload.placement = "ffs"`: a Fast File System as created by `newfs`, optionally aged.

use headstart_types::{as_text, as_text_if_any, keys, read_keys, Bytes, KeyError, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

/// When inodes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Opens {
    /// All files were opened before the run: their inodes are in memory, and the arm is at the inode that was read
    /// last.
    Before,
    /// A process reads a file's inode whenever it switches to the file from another one, in a separate read that
    /// belongs to no request.
    Read,
}

keys! {
    /// A file system's parameters.
    ///
    /// Cylinder group, cluster and direct blocks: shriver99, Table 1 and section 2.1. Fragment: an eighth of a block,
    /// the smallest possible. Rotational delay: none, `newfs`'s value for disks with a track buffer. The rest: an empty
    /// file system, files spread over the disk (shriver99, appendix A), opened before the run (same appendix).
    #[derive(Copy, PartialEq)]
    pub struct FfsKeys {
        /// Size of a cylinder group.
        #[serde(serialize_with = "as_text")]
        pub cylinder_group: Bytes = Bytes(16 << 20),
        /// Number of bytes that are allocated contiguously: maxcontig.
        #[serde(serialize_with = "as_text")]
        pub cluster: Bytes = Bytes(64 << 10),
        /// Number of blocks that the inode itself points to.
        #[schemars(range(min = 1))]
        pub direct_blocks: u32 = 12,
        /// Rotation time between one cluster and the next: rotdelay.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "100ms"))]
        pub rotational_delay: Nanos = Nanos::ZERO,
        /// Size of a fragment.
        #[serde(serialize_with = "as_text")]
        pub fragment: Bytes = Bytes(1 << 10),
        /// Share of each cylinder group that other files use.
        #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
        pub full: f64 = 0.0,
        /// Mean size of a run of free blocks, if `full` is above 0.
        #[serde(serialize_with = "as_text")]
        pub free_run: Bytes = Bytes(64 << 10),
        /// Number of consecutive files of the file table that form a directory. The files of a directory are in one
        /// cylinder group.
        #[schemars(range(min = 1))]
        pub directory_files: u32 = 1,
        /// When inodes are read.
        pub opens: Opens = Opens::Before,
        /// Size of the file system. Default: the devices' size.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        pub size: Option<Bytes> = None,
    }
}

/// Maximum number of blocks per group: its bitmap is kept in memory, and no real group had more.
const GROUP_BLOCKS_MAX: u64 = 1 << 20;

impl FfsKeys {
    /// Reads the keys next to `name`, for blocks of `block_bytes`.
    ///
    /// # Errors
    /// The offending key.
    pub fn read(table: Table, block_bytes: u64) -> Result<Self, KeyError> {
        let keys: Self = read_keys(table)?;
        let range = |key: &str, problem: String, allowed: String| Err(KeyError::new(key, problem, allowed));
        let whole_blocks =
            [("cylinder_group", keys.cylinder_group, GROUP_BLOCKS_MAX), ("cluster", keys.cluster, 1 << 16)];
        for (key, Bytes(bytes), most) in whole_blocks {
            if bytes % block_bytes != 0 || !(1..=most).contains(&(bytes / block_bytes)) {
                let allowed = format!("a multiple of the block size, {}, up to {most} blocks", Bytes(block_bytes));
                return range(key, format!("{} is out of range", Bytes(bytes)), allowed);
            }
        }
        let Bytes(fragment) = keys.fragment;
        if fragment == 0 || fragment % 512 != 0 || !block_bytes.is_multiple_of(fragment) || block_bytes / fragment > 8 {
            let allowed = "an eighth, a quarter, a half or the whole of a block, in whole sectors".to_owned();
            return range("fragment", format!("{} is out of range", keys.fragment), allowed);
        }
        if keys.free_run.0 < block_bytes {
            return range("free_run", format!("{} is out of range", keys.free_run), "at least one block".to_owned());
        }
        let groups = keys.groups(keys.size.map_or(u64::MAX, |size| size.0), block_bytes);
        if groups == 0 || super::group_header(&keys, block_bytes) >= keys.group_blocks(block_bytes) {
            let allowed = "a file system of at least one cylinder group, with room for its inodes".to_owned();
            return range(
                if groups == 0 { "size" } else { "cylinder_group" },
                "leaves no block for files".to_owned(),
                allowed,
            );
        }
        Ok(keys)
    }

    /// Blocks per cylinder group.
    #[must_use]
    pub fn group_blocks(&self, block_bytes: u64) -> u64 {
        self.cylinder_group.0 / block_bytes
    }

    /// Whole cylinder groups in a volume of `bytes`.
    #[must_use]
    pub fn groups(&self, bytes: u64, block_bytes: u64) -> u64 {
        bytes / block_bytes / self.group_blocks(block_bytes)
    }
}
