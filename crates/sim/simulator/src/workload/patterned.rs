//! The references of a parallel program: the strings of an access pattern, numbered and placed.

use std::collections::{BTreeMap, BTreeSet};

use headstart_device::Device;
use headstart_layout::{Addresses, Placement, Places, Placing, Universe};
use headstart_scenario::{Scenario, Survey};
use headstart_trace::patterns::{self, PatternContext};
use headstart_types::{Block, Meetings, Program};

use crate::Error;

/// A program that reads by a pattern.
pub struct Patterned {
    pub places: Places,
    pub program: Program,
    /// Number of distinct blocks if needed; else zero.
    pub distinct: usize,
}

impl Patterned {
    /// From `[process]` of a scenario, on disks like `disk`.
    ///
    /// # Errors
    /// The offending key.
    pub fn try_new(scenario: &Scenario, disk: &dyn Device) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let pattern = scenario.process.as_ref().and_then(|process| process.pattern.as_ref());
        let pattern = pattern.expect("a workload without input has a pattern");
        let context = PatternContext { processes: pattern.count, seed: scenario.seed };
        let strings = patterns::pattern(pattern.name)?.strings(pattern.keys.clone(), &context);
        let strings = strings.map_err(|error| error.within("process.pattern"))?;
        let mut found = Survey { references: strings.blocks.len() as u64, ..Survey::default() };
        if matches!(keys.addresses, Addresses::Compact { .. }) || scenario.has_footprints() {
            let blocks: BTreeSet<u32> = strings.blocks.iter().copied().collect();
            found.contents.blocks = blocks.into_iter().map(|at| (0, at.into())).collect();
        }
        // A pattern's file is as large as its keys say: if it does not fit, they are wrong.
        let addresses = if keys.addresses == Addresses::Auto { Addresses::Error } else { keys.addresses };
        let placing = super::placing(scenario, Placement::Address, addresses, disk, &found)?;
        let sizes = BTreeMap::from([(0, u64::from(strings.file_blocks))]);
        let places = Places::new(Universe::default(), Some(placing), sizes);
        if scenario.needs_places() {
            places.keep_places();
        }
        let number = |universe: &mut Universe, placing: &Placing| {
            strings.blocks.iter().map(|at| universe.number(0, u64::from(*at), placing)).collect()
        };
        let blocks: Vec<Block> = places.number(number)?;
        let shared = strings.string_ends.len() < strings.string_of.len();
        let meetings = |keys| headstart_assemble::meetings(keys, shared, pattern.count);
        let meetings = scenario.process.as_ref().map_or(Meetings::AtEnd, meetings);
        let program = Program {
            blocks: blocks.into(),
            string_ends: strings.string_ends.into(),
            portion_ends: strings.portion_ends.into(),
            string_of: strings.string_of.into(),
            regular: strings.regular,
            meetings,
        };
        Ok(Self { places, program, distinct: found.contents.blocks.len() })
    }
}
