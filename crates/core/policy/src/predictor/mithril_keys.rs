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
        /// Number of requests after which a block is mined.
        #[schemars(range(min = 1, max = 64))]
        pub min_support: u32 = 2,
        /// Number of requests after which a block is too frequent to be mined; at least `min_support`.
        #[schemars(range(min = 1, max = 64))]
        pub max_support: u32 = 8,
        /// Number of exceptions that an association may have.
        #[schemars(range(min = 1, max = 100))]
        pub confidence: u32 = 1,
        /// Number of associated blocks remembered per block.
        #[schemars(range(min = 1, max = 100))]
        pub list: u32 = 2,
        /// Which accesses are recorded.
        pub record: Record = Record::Miss,
        /// Requests that wait for mining; divided by `min_support`, the rows of the mining table.
        #[schemars(range(min = 1, max = 1_048_576))]
        pub mining: u32 = 5120,
        /// How many times a prefetched block is spared when it is about to be evicted unused.
        #[schemars(range(max = 99))]
        pub chances: u32 = 1,
        /// Number of preceding consecutive blocks that must be cached for a request to count as sequential: it is then
        /// not recorded, and the next block is fetched. 0: no request counts as sequential. Not with `record =
        /// "evict"`.
        #[schemars(range(max = 1024))]
        pub sequential: u32 = 0,
        /// Memory of the tables, as a share of the cache's size.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub metadata: f64 = 0.1,
        /// Bytes per block, for `metadata`.
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
