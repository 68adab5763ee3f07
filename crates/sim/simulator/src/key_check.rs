//! Finds wrong keys before a trace is read, by building the device and the policy of every level once.
//!
//! Only a policy's constructor knows its keys. Here it gets an empty workload and the facts of some drive, so that only
//! its keys can be wrong: whether it fits the device and the trace is checked when they are known.

use std::sync::Arc;

use headstart_assemble::{policy, ReadAheadEnv};
use headstart_device::build_device;
use headstart_policy::coordinator::registry::coordinator;
use headstart_policy::coordinator::CoordinatorContext;
use headstart_policy::readahead::Needs;
use headstart_policy::registry::Context;
use headstart_policy::{Disclosure, Hints};
use headstart_scenario::{CacheSegments, CacheSize, DeviceKeys, LowerSize, PolicyKeys, Scenario};
use headstart_types::{KeyError, Meetings, Nanos, Program};
use toml::Table;

use crate::storage::Storage;
use crate::Error;

/// Maximum number of disks built for the check: all are alike.
const DISKS_MAX: u32 = 4;

/// Blocks of a cache whose size depends on the trace: large enough for every policy's keys.
const FRAMES: u32 = 1 << 14;

/// Finds wrong keys and values of the device and of the policies. The trace is not read.
///
/// # Errors
/// The offending key.
pub fn check_keys(scenario: &Scenario) -> Result<(), Error> {
    keys_are_right(scenario).map_err(|error| scenario.as_written(error))
}

fn keys_are_right(scenario: &Scenario) -> Result<(), Error> {
    let count = match scenario.device.array.is_independent() {
        true => scenario.device.count.min(DISKS_MAX),
        false => scenario.device.count,
    };
    let device = DeviceKeys { count, ..scenario.device.clone() };
    let mut storage = Storage::try_new(&device, scenario.workload.block_bytes(), scenario.seed)?;
    match scenario.device.cache_segments {
        Some(CacheSegments::Count(segments)) => storage.divide_buffers(segments)?,
        Some(CacheSegments::OpenFiles) => storage.follow_open_files()?,
        Some(CacheSegments::Streams) | None => {}
    }
    let frames = match scenario.cache.size {
        CacheSize::Blocks(blocks) => blocks,
        CacheSize::Footprint(_) => FRAMES,
    };
    policy_is_right(scenario, &scenario.policy, frames, scenario.needs_places())
        .map_err(|error| error.within("policy"))?;
    for (at, lower) in scenario.lower.iter().enumerate() {
        let within = |error: KeyError| error.within(&format!("level[{}]", at + 1));
        let frames = match &lower.size {
            LowerSize::Own(CacheSize::Blocks(blocks)) => (*blocks).max(1),
            _ => FRAMES,
        };
        let right = policy_is_right(scenario, &lower.policy, frames, true);
        right.map_err(|error| within(error.within("policy")))?;
        let (name, keys) = &lower.coordinator;
        let made = (coordinator(name)?.build)(keys.clone(), &CoordinatorContext { frames });
        made.map_err(|error| within(error.within("coordinator")))?;
    }
    Ok(())
}

/// Builds the policy with everything that it could need.
fn policy_is_right(scenario: &Scenario, keys: &PolicyKeys, frames: u32, asking: bool) -> Result<(), KeyError> {
    let program = Program {
        blocks: Arc::new([]),
        string_ends: Arc::new([0]),
        portion_ends: Arc::new([0]),
        string_of: Arc::new([0]),
        regular: true,
        meetings: Meetings::AtEnd,
    };
    let context = Context {
        frames,
        initial: Vec::new(),
        disks: scenario.device.disks() as usize,
        disk_of: Arc::new([]),
        replacement: keys.replacement,
        replacement_keys: keys.replacement_keys.clone(),
        hints: Some(Arc::new(Hints { blocks: Arc::new([]), disclosure: Disclosure::All })),
        program: Some(Arc::new(program)),
        disclosed_by: Arc::new([]),
        whole: false,
        nominal_service: Nanos(1_000_000),
        block_transfer: Nanos(1_000_000),
        concurrency: 1,
        driver: Nanos::ZERO,
        hit: Nanos::ZERO,
        uniform: true,
        mean_compute: Nanos(1_000_000),
        constant_compute: true,
    };
    // Building a disk takes longer than all other checks, so only for policies that need one.
    let asks = keys.needs() == Needs::Drive;
    let device = asks.then(|| build_device("hp97560", Table::new()).ok()).flatten();
    let drive = device.and_then(|device| device.drive_facts());
    let env = ReadAheadEnv {
        block_bytes: scenario.workload.block_bytes(),
        drive: drive.map(Arc::new),
        future: Some(Arc::new([Vec::new()])),
        initial_places: Arc::new([]),
    };
    policy(keys, &context, &env, asking).map(drop)
}
