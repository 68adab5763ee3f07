//! Section `[host]`.

use headstart_types::{typed_keys, KeyError, Nanos};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::limits::COST_MAX;

/// Section `[host]`: processor time, charged to the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostKeys {
    /// For each device request.
    pub driver_overhead: Nanos,
    /// For each reference, to find and hand over the block.
    pub hit_time: Nanos,
    /// For each request.
    pub system_call: Nanos,
    /// For each KiB handed over.
    pub copy_per_kib: Nanos,
}

impl HostKeys {
    /// Whether handing over a block takes time, so that it matters how much of it is asked for.
    #[must_use]
    pub fn pays_for_blocks(&self) -> bool {
        self.hit_time > Nanos::ZERO || self.copy_per_kib > Nanos::ZERO
    }
}

/// Reads the section.
pub fn read(table: Table) -> Result<HostKeys, KeyError> {
    let host: HostKeys = typed_keys(table)?;
    match rows(&host).into_iter().find(|(_, cost)| *cost > COST_MAX) {
        Some((key, cost)) => Err(KeyError::new(key, format!("{cost} is too long"), "a time of at most 1h")),
        None => Ok(host),
    }
}

fn rows(host: &HostKeys) -> [(&'static str, Nanos); 4] {
    [
        ("driver_overhead", host.driver_overhead),
        ("hit_time", host.hit_time),
        ("system_call", host.system_call),
        ("copy_per_kib", host.copy_per_kib),
    ]
}

/// It with all defaults, as a table.
pub fn table(host: &HostKeys) -> Table {
    rows(host).into_iter().map(|(key, time)| (key.to_owned(), Value::String(time.to_string()))).collect()
}
