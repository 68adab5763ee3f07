//! Keys of `mithril`.

use headstart_types::{keys, KeyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Version;

/// Which accesses are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Requests that miss.
    #[default]
    Miss,
    /// Blocks that are evicted.
    Evict,
    /// Both.
    MissEvict,
    /// Every request.
    Each,
}

keys! {
    /// Keys of `mithril`.
    pub struct MithrilKeys {
        /// The paper's algorithm, or libCacheSim's.
        pub version: Version = Version::Paper,
        /// Maximum distance in requests between two associated blocks.
        #[schemars(range(min = 1, max = 100))]
        pub lookahead: u32 = 20,
        /// Minimum number of requests for a block to be mined.
        #[schemars(range(min = 1, max = 64))]
        pub min_support: u32 = 2,
        /// Maximum number of requests for a block to be mined. At least `min_support`.
        #[schemars(range(min = 1, max = 64))]
        pub max_support: u32 = 8,
        /// Maximum number of exceptions to an association.
        #[schemars(range(min = 1, max = 100))]
        pub confidence: u32 = 1,
        /// Number of associated blocks remembered per block.
        #[schemars(range(min = 1, max = 100))]
        pub list: u32 = 2,
        /// Which accesses are recorded.
        pub record: Record = Record::Miss,
        /// Number of requests to collect before mining. The mining table has `mining / min_support` rows.
        #[schemars(range(min = 1, max = 1_048_576))]
        pub mining: u32 = 5120,
        /// Number of times that an unused prefetched block is spared from eviction.
        #[schemars(range(max = 99))]
        pub chances: u32 = 1,
        /// A request is sequential if this many blocks directly before it are cached. It is then not recorded, and the
        /// next block is fetched. 0: no request is sequential. Cannot be combined with `record = "evict"`.
        #[schemars(range(max = 1024))]
        pub sequential: u32 = 0,
        /// Memory for the tables, as a share of the cache's size.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub metadata: f64 = 0.1,
        /// Bytes per block, to compute the size that `metadata` is a share of.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1_073_741_824), extend("x-absent" = "the level's"))]
        pub block_bytes: Option<u64> = None,
    }
    impl check = check;
}

fn check(keys: &MithrilKeys) -> Result<(), KeyError> {
    if keys.max_support < keys.min_support {
        let problem = format!("{} is below min_support, {}", keys.max_support, keys.min_support);
        return Err(KeyError::new("max_support", problem, format!("at least {}", keys.min_support)));
    }
    if keys.sequential > 0 && matches!(keys.record, Record::Evict | Record::MissEvict) {
        return Err(KeyError::new(
            "sequential",
            "cannot be used when evicted blocks are recorded",
            "record = \"miss\" or \"each\"",
        ));
    }
    Ok(())
}
