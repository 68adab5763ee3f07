//! Section `[host]`.

use headstart_types::{typed_keys, KeyError, Nanos};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Arrival, DeviceKeys, Placement, WorkloadKeys};
use crate::limits::COST_MAX;

/// Section `[host]`: processor time, charged to the process. Every command takes its defaults from [`read`].
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

/// The default of `driver_overhead`: that of the device's class. Arrivals by the clock take no processor time, and a
/// file system (`placement = "ffs"`) has costs of its own, `system_call` and `copy_per_kib`, as its model does.
fn driver_overhead(workload: &WorkloadKeys, device: &DeviceKeys) -> Nanos {
    let files = matches!(workload.placement, Some(Placement::Ffs(_)));
    match workload.arrival {
        Arrival::Closed if !files => headstart_device::driver_cost(&device.model).overhead,
        _ => Nanos::ZERO,
    }
}

/// Reads the section.
pub fn read(mut table: Table, workload: &WorkloadKeys, device: &DeviceKeys) -> Result<HostKeys, KeyError> {
    let default = || Value::String(driver_overhead(workload, device).to_string());
    table.entry("driver_overhead").or_insert_with(default);
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
