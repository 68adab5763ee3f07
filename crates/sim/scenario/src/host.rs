//! Section `[host]`.

use headstart_types::{as_text, keys, read_keys, KeyError, Nanos};
use toml::{Table, Value};

use super::{Arrival, DeviceKeys, Placement, WorkloadKeys};

keys! {
    /// Section `[host]`: processor time that is charged to the process.
    #[derive(Copy, PartialEq, Eq)]
    pub struct HostKeys {
        /// Time per device request. Default: that of the device's class; zero with open arrivals and with `placement =
        /// "ffs"`.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub driver_overhead: Nanos = Nanos::ZERO,
        /// Time per reference, to find and return the block.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub hit_time: Nanos = Nanos::ZERO,
        /// Time per request.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub system_call: Nanos = Nanos::ZERO,
        /// Time per KiB returned.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub copy_per_kib: Nanos = Nanos::ZERO,
    }
}

impl HostKeys {
    /// Whether returning a block takes time, so that the size of the requested part matters.
    #[must_use]
    pub fn pays_for_blocks(&self) -> bool {
        self.hit_time > Nanos::ZERO || self.copy_per_kib > Nanos::ZERO
    }
}

/// The default of `driver_overhead`: that of the device's class. Open arrivals take no processor time, and a file
/// system (`placement = "ffs"`) has its own costs, `system_call` and `copy_per_kib`, as in its model.
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
    read_keys(table)
}
