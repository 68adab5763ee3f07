//! Scenarios: what to simulate, as a TOML table.
//!
//! A scenario is read in three steps: short forms are written out (in `normal`), the user's keys are laid over
//! every default, and each section is read into typed keys, so that an unknown key, a wrong type or a value out of
//! range is an error that names the key and what is allowed. The table with all defaults in it is what a result
//! carries and what `--explain` prints.

mod checks;
mod device;
mod level;
mod normal;
mod policy;
mod process;
mod source;
mod workload;

use std::path::Path;

use headstart_types::{typed_keys, KeyError, Nanos};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use device::{CommandKeys, DeviceKeys};
pub use level::{LowerKeys, LowerSize};
use policy::is_parallel;
pub use policy::{HintsKeys, PolicyKeys};
pub use process::{Meets, PatternKeys, ProcessKeys};
pub use source::Source;
pub use workload::{
    Addresses, Arrival, BlockSize, ComputeKey, Input, Issue, Placement, Processes, WorkloadKeys, Writes,
};

use crate::Error;

/// What to simulate, read and checked as far as that is possible without the trace.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Seed of everything random.
    pub seed: u64,
    /// Who asks for what.
    pub workload: WorkloadKeys,
    /// The cache.
    pub cache: CacheKeys,
    /// The policy of its level.
    pub policy: PolicyKeys,
    /// The levels below it.
    pub lower: Vec<LowerKeys>,
    /// The disks.
    pub device: DeviceKeys,
    /// Costs in processor time.
    pub host: HostKeys,
    /// What makes the processes one parallel program; `None` where they are none.
    pub process: Option<ProcessKeys>,
    /// The scenario with every default in it.
    pub resolved: Table,
}

/// Section `[cache]`.
#[derive(Debug, Clone)]
pub struct CacheKeys {
    /// Its name, for the reader and for the sizes of levels below.
    pub name: String,
    /// How large.
    pub size: CacheSize,
    /// Labels of the blocks that are resident at the start, least recently used first.
    pub initial: Vec<String>,
    /// How long a written block may stay dirty; `None` where writes do not stay.
    pub write_delay: Option<Nanos>,
}

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// In blocks, at least 1.
    Blocks(u32),
    /// As a share of the distinct blocks of the workload, above 0.
    Footprint(f64),
}

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

impl Scenario {
    /// Reads a scenario from its table.
    ///
    /// # Errors
    /// The first key at fault.
    pub fn from_table(table: Table) -> Result<Self, KeyError> {
        let mut table = normal::normal_form(table)?;
        let mut take = |name: &str| match table.remove(name) {
            None => Ok(Table::new()),
            Some(Value::Table(section)) => Ok(section),
            Some(other) => Err(KeyError::new(name, format!("is a {}", other.type_str()), "a table of keys")),
        };
        let (workload, cache, policy) = (take("workload")?, take("cache")?, take("policy")?);
        let (device, host) = (take("device")?, take("host")?);
        let process = take("process")?;
        let lower = match table.remove("level") {
            None => Vec::new(),
            Some(Value::Array(levels)) => levels,
            Some(_) => return Err(KeyError::new("level", "is no list of levels", "[[level]] one after another")),
        };
        let seed = match table.remove("seed") {
            None => 1,
            Some(Value::Integer(seed)) if seed >= 0 => seed as u64,
            Some(other) => return Err(KeyError::new("seed", format!("{other} is no seed"), "a whole number from 0")),
        };
        if let Some((key, _)) = table.iter().next() {
            return Err(KeyError::new(
                key,
                "unknown key",
                "seed, workload, cache, policy, level, device, host, process",
            ));
        }
        if let Some(key) = POLICY_KEYS.into_iter().find(|key| policy.contains_key(*key)) {
            if policy.get("name").and_then(Value::as_str).is_some_and(is_parallel) {
                return Err(KeyError::new(format!("policy.{key}"), "stands in [process]", "process keys of that name"));
            }
        }
        let actions = ACTION_KEYS.into_iter().find(|key| process.contains_key(*key));
        let process = match process.is_empty() {
            true => None,
            false => Some(process::read(process).map_err(|error| error.within("process"))?),
        };
        let (process, process_table) = process.unzip();
        let pattern = process.as_ref().is_some_and(|process: &ProcessKeys| process.pattern.is_some());
        let (workload, workload_table) = workload::read(workload, pattern).map_err(|error| error.within("workload"))?;
        let (cache, cache_table) = read_cache(cache, &workload).map_err(|error| error.within("cache"))?;
        let (mut policy, mut policy_table) = policy::read(policy).map_err(|error| error.within("policy"))?;
        if let (true, Some(process)) = (policy.parallel(), &process) {
            policy.keys.extend(process.policy_keys());
            POLICY_KEYS.iter().for_each(|key| {
                policy_table.remove(*key);
            });
        }
        let lower = level::read(lower, &cache.name, &workload)?;
        let (lower, lower_tables): (Vec<_>, Vec<_>) = lower.into_iter().unzip();
        let (device, device_table) = device::read(device, &workload).map_err(|error| error.within("device"))?;
        let host = read_host(host).map_err(|error| error.within("host"))?;
        let mut resolved = Table::new();
        resolved.insert("seed".into(), Value::Integer(seed as i64));
        resolved.insert("workload".into(), workload_table.into());
        if lower.is_empty() {
            resolved.insert("cache".into(), cache_table.into());
            resolved.insert("policy".into(), policy_table.into());
        } else {
            let mut first = cache_table;
            first.insert("name".into(), cache.name.clone().into());
            first.insert("policy".into(), policy_table.into());
            let levels = std::iter::once(first).chain(lower_tables).map(Value::from).collect();
            resolved.insert("level".into(), Value::Array(levels));
        }
        resolved.insert("device".into(), device_table.into());
        resolved.insert("host".into(), host_table(&host).into());
        if let Some(table) = process_table {
            resolved.insert("process".into(), table.into());
        }
        let scenario = Self { seed, workload, cache, policy, lower, device, host, process, resolved };
        scenario.fits_together()?;
        scenario.makes_a_program(actions)?;
        Ok(scenario)
    }

    /// Whether it takes more than one process that goes block by block on one level.
    #[must_use]
    pub fn is_flow(&self) -> bool {
        self.process.is_some()
            || !self.lower.is_empty()
            || self.workload.arrival != Arrival::Closed
            || self.workload.processes == Processes::PerPid
            || self.workload.issue == Issue::Whole
            || self.policy.asks()
    }

    /// Whether the policy gives idle processors prefetch actions.
    #[must_use]
    pub fn has_actions(&self) -> bool {
        self.policy.parallel()
    }

    /// Reads a scenario from a file, a table or a text, with `key=value` overrides laid over it.
    ///
    /// # Errors
    /// The file, line or key at fault.
    pub fn read(source: &Source, overrides: &[String]) -> Result<Self, Error> {
        let mut table = source.table()?;
        for each in overrides {
            normal::set(&mut table, each)?;
        }
        let mut scenario = Self::from_table(table)?;
        if let Source::File(file) = source {
            scenario.find_beside(file);
        }
        Ok(scenario)
    }

    /// Keys that are absent and whose default depends on the run, and what it is, in words.
    #[must_use]
    pub fn computed_defaults(&self) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        if self.workload.placement.is_none() && !matches!(self.workload.input, Input::References(_) | Input::Pattern) {
            let default = "\"table-order\" if the trace tells files apart, else \"address\"";
            found.push(("workload.placement".to_owned(), default));
        }
        let row = headstart_policy::registry::POLICIES.iter().find(|row| row.name == self.policy.name);
        for (key, default) in row.map_or(&[][..], |row| row.computed) {
            if !self.policy.keys.contains_key(*key) {
                found.push((format!("policy.{key}"), *default));
            }
        }
        found
    }

    /// Files that are not where one works are looked for beside the scenario.
    fn find_beside(&mut self, file: &Path) {
        let beside = |path: &Path| {
            let candidate = file.parent()?.join(path);
            (path.is_relative() && !path.exists() && candidate.exists()).then_some(candidate)
        };
        if let Input::Trace(path, _) = &mut self.workload.input {
            *path = beside(path).unwrap_or_else(|| std::mem::take(path));
        }
        if headstart_device::model(&self.device.model).is_none() {
            if let Some(path) = beside(Path::new(&self.device.model)) {
                self.device.model = path.display().to_string();
            }
        }
    }
}

/// Keys of `[process]` that are its policy's.
const POLICY_KEYS: [&str; 3] = ["min_lead", "buffers", "for_others"];

/// Keys of `[process]` that say how prefetch actions go.
const ACTION_KEYS: [&str; 6] = ["prefetch_action", "action_issues", "min_time", "min_lead", "buffers", "for_others"];

/// The longest cost: keeps sums within 64 bits.
pub(crate) const COST_MAX: Nanos = Nanos(3_600_000_000_000);

fn read_host(table: Table) -> Result<HostKeys, KeyError> {
    let host: HostKeys = typed_keys(table)?;
    match host_rows(&host).into_iter().find(|(_, cost)| *cost > COST_MAX) {
        Some((key, cost)) => Err(KeyError::new(key, format!("{cost} is too long"), "a time of at most 1h")),
        None => Ok(host),
    }
}

fn host_rows(host: &HostKeys) -> [(&'static str, Nanos); 4] {
    [
        ("driver_overhead", host.driver_overhead),
        ("hit_time", host.hit_time),
        ("system_call", host.system_call),
        ("copy_per_kib", host.copy_per_kib),
    ]
}

fn host_table(host: &HostKeys) -> Table {
    host_rows(host).into_iter().map(|(key, time)| (key.to_owned(), Value::String(time.to_string()))).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    #[serde(default = "first_name")]
    name: String,
    blocks: Option<i64>,
    size: Option<headstart_types::Bytes>,
    footprint: Option<f64>,
    #[serde(default)]
    initial: Vec<String>,
    write_delay: Option<Nanos>,
}

fn first_name() -> String {
    "L1".to_owned()
}

/// Blocks of a cache that is not given a size: 10 MiB of 8 KiB blocks (kimbrel96, section 3.1).
const DEFAULT_BLOCKS: i64 = 1280;

/// The delay of the update daemon of Unix, and of Linux's `dirty_expire_centisecs`.
const DEFAULT_WRITE_DELAY: &str = "30s";

fn read_cache(mut table: Table, workload: &WorkloadKeys) -> Result<(CacheKeys, Table), KeyError> {
    let block_bytes = workload.block_bytes();
    if workload.writes == Writes::Back {
        table.entry("write_delay").or_insert_with(|| DEFAULT_WRITE_DELAY.into());
    } else if table.contains_key("write_delay") {
        let allowed = "workload.writes = \"back\", or no write_delay";
        return Err(KeyError::new("write_delay", "nothing stays dirty", allowed));
    }
    let sized: Vec<&str> = ["blocks", "size", "footprint"].into_iter().filter(|key| table.contains_key(*key)).collect();
    if let [_, second, ..] = sized[..] {
        return Err(KeyError::new(second, "given beside another size", "one of blocks, size, footprint"));
    }
    if sized.is_empty() {
        table.insert("blocks".into(), Value::Integer(DEFAULT_BLOCKS));
    }
    let mut resolved = table.clone();
    // The name of a single level is for the reader only.
    resolved.remove("name");
    let raw: RawCache = typed_keys(table)?;
    if raw.write_delay.is_some_and(|delay| delay > crate::run::TIME_MAX) {
        return Err(KeyError::new("write_delay", "is too long", "at most 146 years"));
    }
    let write_delay = raw.write_delay;
    let blocks = |key: &str, blocks: i128| {
        let allowed = "at least one block, fewer than 4294967295";
        match u32::try_from(blocks) {
            Ok(blocks) if blocks > 0 && blocks < u32::MAX => Ok(CacheSize::Blocks(blocks)),
            _ => Err(KeyError::new(key, format!("a cache of {blocks} blocks"), allowed)),
        }
    };
    let size = match raw {
        RawCache { blocks: Some(count), .. } => blocks("blocks", i128::from(count))?,
        RawCache { size: Some(size), .. } => blocks("size", i128::from(size.0 / block_bytes))?,
        RawCache { footprint: Some(share), .. } if share > 0.0 && share.is_finite() => CacheSize::Footprint(share),
        _ => return Err(KeyError::new("footprint", "out of range", "a number above 0")),
    };
    Ok((CacheKeys { name: raw.name, size, initial: raw.initial, write_delay }, resolved))
}
