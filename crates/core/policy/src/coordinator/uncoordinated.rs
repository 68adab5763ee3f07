//! No coordination: nothing bypasses and nothing is added. The base case of zhang-pfc, section 4. No cost.

use headstart_types::{KeyTable, Nanos};

use super::{Coordinator, CoordinatorRow, Plan};
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "none",
    summary: "no coordination between levels",
    source: "the base case of zhang-pfc, section 4",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |_, _| Ok(Box::new(Uncoordinated)),
};

/// The coordinator `none`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncoordinated;

impl Coordinator for Uncoordinated {
    fn plan(&mut self, _: Nanos, _: &Asked, _: &dyn Cached, _: bool) -> Plan {
        Plan::default()
    }
}
