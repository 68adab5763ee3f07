//! From a scenario's `[workload]` to chunks of references over densely numbered blocks.
//!
//! [`References`] pulls records from a trace or generator, cuts them into blocks, gives each block a number and a
//! place on a disk on first sight (`Universe`), and works out think times. It streams: memory is one batch and
//! what is kept per distinct block. What must be known before the first reference (sums, counts, file sizes) is
//! found by a first pass over the same records, made only when asked for (`survey`).

mod ahead;
mod cutting;
mod filling;
mod fitting;
mod inline;
mod patterned;
mod reading;
mod records;
mod references;
mod survey;
mod thinking;

pub use ahead::Supplied;
pub use cutting::{Cutter, RecordedThink};
pub use reading::KNOWN_REFERENCES_MAX;
pub use records::{Opened, Records};
pub use references::References;
pub use survey::survey;
pub use thinking::Thinker;

use headstart_device::Device;
use headstart_layout::{Addresses, Disks, Placement, Placing};
use headstart_scenario::{Scenario, Survey};
use headstart_types::{Bytes, KeyError};

/// The rule by which blocks lie on disks like `device`.
///
/// # Errors
/// A key at fault.
pub fn placing(
    scenario: &Scenario,
    placement: Placement,
    addresses: Addresses,
    device: &dyn Device,
    found: &Survey,
) -> Result<Placing, KeyError> {
    let keys = &scenario.device;
    let (array, stripe_unit) = (keys.array, keys.stripe_unit);
    let spread = scenario.spread();
    let disks = Disks { model: &keys.model, device, count: keys.count, spread, array, stripe_unit };
    let block = Bytes(scenario.workload.block_bytes());
    Placing::try_new(block, placement, addresses, &disks, &found.contents, scenario.seed)
}
