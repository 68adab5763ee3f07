//! A level that a block server puts in front of a backing: built from the keys of a scenario's `[[level]]` as for the
//! simulator.

use headstart_engine::{Link, Tier};
use headstart_policy::readahead::Needs;
use headstart_policy::registry::{BuiltIn, Context};
use headstart_scenario::{read_level, CacheSize, LowerSize};
use headstart_types::{KeyError, Nanos};
use toml::{Table, Value};

use crate::levels::lower_tier;
use crate::ReadAheadEnv;

/// The assumed service time of the storage while a level is built for it.
const SERVICE: Nanos = Nanos::from_millis(1);

/// A level for a server.
pub struct Served {
    /// The level with its coordinator; its prefetches are separate requests by default.
    pub tier: Tier,
    /// The added time of each reply to a client, in addition to the real network; zero by default.
    pub link: Link,
    pub frames: u32,
    /// Its keys with all defaults.
    pub keys: Table,
}

/// The level that `section`, the keys of a `[[level]]`, describes, over a backing with blocks of `block_bytes`.
///
/// # Errors
/// A key that is wrong, or needs information about clients or the backing that is not available.
pub fn served(mut section: Table, block_bytes: u64) -> Result<Served, KeyError> {
    let refused = |key: &str, problem: &str, allowed: &str| KeyError::new(key, format!("{problem} (serve)"), allowed);
    section.entry("separate_prefetch").or_insert(Value::Boolean(true));
    section.entry("name").or_insert("server".into());
    if section.contains_key("clients") {
        return Err(refused("clients", "the clients are real", "no such key"));
    }
    if section.contains_key("servers") || section.contains_key("unit") {
        return Err(refused("servers", "there is only one backing", "no such key"));
    }
    let lower = read_level(section, 1, &[], block_bytes, &BuiltIn)?;
    let mut keys = lower.table();
    keys.remove("clients");
    let LowerSize::Own(CacheSize::Blocks(frames)) = lower.size else {
        return Err(refused("size", "the data that clients will use is not known", "a size in bytes or blocks"));
    };
    if lower.policy.needs() != Needs::Nothing || lower.policy.parallel() {
        let problem = format!("{} needs to know the drive or the program", lower.policy.name());
        return Err(refused("policy.name", &problem, "a read-ahead that only needs the requests"));
    }
    let context = Context {
        nominal_service: SERVICE,
        uniform: false,
        constant_compute: false,
        ..Context::plain(lower.policy.replacement.row, frames.max(1), Vec::new(), 0)
    };
    let env = ReadAheadEnv { block_bytes, drive: None, future: None, initial_places: [].into() };
    Ok(Served { tier: lower_tier(&lower, frames, &context, &env, 1)?, link: lower.link(), frames, keys })
}
