//! From a scenario's `[workload]` to chunks of references over densely numbered blocks.
//!
//! [`References`] reads records from a trace or generator, divides them into blocks, gives each new block a number and
//! a place on a disk (`Universe`), and computes think times. It streams: memory is one batch and the data per distinct
//! block. What must be known before the first reference (sums, counts, file sizes) is found by a first pass over the
//! same records, made only if needed (`survey`).

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

/// The placing rule for disks like `device`.
///
/// # Errors
/// The offending key.
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
