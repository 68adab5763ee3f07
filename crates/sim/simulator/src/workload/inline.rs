//! References given in the scenario itself: blocks by label, on disks as listed by `device.layout`.

use std::collections::{BTreeMap, BTreeSet};

use headstart_device::{Explicit, Layout, Stripe};
use headstart_layout::Universe;
use headstart_scenario::{DeviceKeys, Input, Scenario};
use headstart_types::{Block, Bytes, Disk, KeyError};

use crate::Error;

/// Labelled references, numbered and placed.
pub struct Inline {
    /// All labelled blocks.
    pub universe: Universe,
    /// The references, in order.
    pub references: Vec<Block>,
    /// The initially resident blocks.
    pub initial: Vec<Block>,
    /// Blocks of the cache.
    pub frames: u32,
}

impl Inline {
    /// The inline references of a scenario, on disks of `capacity` sectors.
    ///
    /// # Errors
    /// The offending key.
    pub fn try_new(scenario: &Scenario, capacity: Option<u64>) -> Result<Self, Error> {
        let Input::References(names) = &scenario.workload.input else { unreachable!("there are no records") };
        if names.is_empty() {
            return Err(KeyError::new("workload.references", "empty", "at least one block name").into());
        }
        if scenario.workload.placement.is_some() {
            let allowed = "device.layout, or no placement";
            return Err(KeyError::new("workload.placement", "inline references have no files", allowed).into());
        }
        if scenario.workload.section.processes.are_several() {
            let allowed = "\"merged\", or a trace with processes";
            return Err(KeyError::new("workload.processes", "inline references have no processes", allowed).into());
        }
        let limit = scenario.workload.section.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let names = &names[..names.len().min(limit)];
        let mut numbers: BTreeMap<&String, u64> = BTreeMap::new();
        let mut order = Vec::new();
        for name in names.iter().chain(&scenario.cache.section.initial) {
            numbers.entry(name).or_insert_with(|| {
                order.push(name);
                order.len() as u64 - 1
            });
        }
        let block = Bytes(scenario.workload.block_bytes());
        let layout = layout(&scenario.device, block, capacity, &numbers).map_err(|error| error.within("device"))?;
        let sectors = headstart_device::sectors_of(block.0).max(1);
        let spread = scenario.spread();
        let mut universe = Universe::default();
        universe.keep_places();
        for (at, name) in order.iter().enumerate() {
            let (server, local) = spread.map_or((0, at as u64), |spread| spread.local(0, at as u64));
            let (disk, sector) = layout.place(local).ok_or_else(|| {
                KeyError::new("device.layout", format!("block \"{name}\" is not listed"), "every block once")
            })?;
            let disk = Disk(disk.0 + server * scenario.device.disks_of_server());
            if capacity.is_some_and(|capacity| sector + sectors > capacity) {
                let problem = format!("block \"{name}\" lies beyond the device");
                return Err(KeyError::new("workload.references", problem, "fewer or smaller blocks").into());
            }
            universe.push_named(disk, sector);
        }
        let number = |name: &String| Block(numbers[name] as u32);
        let references: Vec<Block> = names.iter().map(number).collect();
        let initial: Vec<Block> = scenario.cache.section.initial.iter().map(number).collect();
        let frames = scenario.cache.size.frames(order.len());
        let distinct: BTreeSet<Block> = initial.iter().copied().collect();
        if distinct.len() < initial.len() || initial.len() > frames as usize {
            let allowed = format!("at most {frames} different blocks");
            return Err(KeyError::new("cache.initial", "does not fit the cache", allowed).into());
        }
        Ok(Self { universe, references, initial, frames })
    }
}

/// The places of inline blocks: as listed, or striped in order of their numbers. Listed blocks without references are
/// numbered after `numbers`: they only use space.
fn layout(
    device: &DeviceKeys,
    block: Bytes,
    capacity: Option<u64>,
    numbers: &BTreeMap<&String, u64>,
) -> Result<Layout, KeyError> {
    let Some(lists) = &device.layout else {
        return match device.array.is_independent() {
            true => {
                headstart_device::build_layout(device.array.name, device.count, device.stripe_unit, block, capacity)
            }
            false => Stripe::try_new(1, block, block).map(Layout::Stripe),
        };
    };
    let mut others: BTreeMap<&String, u64> = BTreeMap::new();
    let mut number = |name| {
        let next = (numbers.len() + others.len()) as u64;
        numbers.get(name).copied().unwrap_or_else(|| *others.entry(name).or_insert(next))
    };
    let lists: Vec<Vec<u64>> = lists.iter().map(|list| list.iter().map(&mut number).collect()).collect();
    Explicit::try_new(&lists, block).map(Layout::Explicit)
}
