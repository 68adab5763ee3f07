//! Scenarios: what to simulate, as a TOML table.
//!
//! A scenario is read in two steps: short forms are expanded (in `normal`), and each section is read into typed keys
//! with defaults, so that an unknown key, a wrong type or a value out of range is an error that names the key and what
//! is allowed. The typed keys serialise as a scenario with all defaults, which is part of the result, and which
//! `--explain` prints.

mod action;
mod cache;
mod checks;
mod device;
mod error;
mod host;
mod level;
mod limits;
mod named;
mod normal;
mod overrides;
mod policy;
mod process;
mod sample;
mod schema;
mod select;
mod source;
mod traces;
mod unset;
mod workload;

use std::path::Path;

use headstart_layout::Placement;
use headstart_policy::registry::{BuiltIn, Rows};
use headstart_types::{KeyError, Spread};
use toml::{Table, Value};

pub use action::{ActionDraws, ActionIssues, ActionTime};
pub use cache::{share_of, CacheKeys, CacheSize};
pub use device::{CacheSegments, CommandKeys, DeviceKeys};
pub use error::Error;
pub use host::HostKeys;
use level::SizeKey;
pub use level::{read_one as read_level, LowerKeys, LowerSize};
pub use limits::{too_long, COST_MAX, TIME_MAX};
use policy::is_parallel;
pub use policy::{HintsKeys, PolicyKeys};
pub use process::{Contends, Meets, PatternKeys, ProcessKeys};
use process::{ACTION_KEYS, POLICY_KEYS};
pub use sample::SampleKeys;
pub use schema::schema;
pub use select::read as read_selection;
pub use source::Source;
pub use traces::{Survey, Traces};
pub use workload::{Arrival, BlockSize, ComputeKey, Input, Issue, Processes, WorkloadKeys, Writes};

/// What to simulate, parsed and checked as far as possible without the trace.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Seed for all random draws.
    pub seed: u64,
    pub workload: WorkloadKeys,
    pub cache: CacheKeys,
    /// The policy of the first level.
    pub policy: PolicyKeys,
    /// The levels below the first.
    pub lower: Vec<LowerKeys>,
    /// The disks.
    pub device: DeviceKeys,
    /// Costs in processor time.
    pub host: HostKeys,
    /// Keys of a parallel program; `None` if the processes are independent.
    pub process: Option<ProcessKeys>,
    /// Traces shared with other runs; by default none.
    pub traces: Traces,
    /// Whether it was written with `[[level]]`.
    in_levels: bool,
}

/// The keys of a scenario.
const SECTIONS: [&str; 8] = ["seed", "workload", "cache", "policy", "level", "device", "host", "process"];

impl Scenario {
    /// Reads a scenario from its table.
    ///
    /// # Errors
    /// The first offending key.
    pub fn from_table(table: Table) -> Result<Self, KeyError> {
        Self::from_table_with(table, &BuiltIn)
    }

    /// Reads a scenario that may also use the host's policies, `rows`.
    ///
    /// # Errors
    /// The first offending key.
    pub fn from_table_with(table: Table, rows: &dyn Rows) -> Result<Self, KeyError> {
        let in_levels = table.contains_key("level");
        let read = normal::normal_form(table).and_then(|table| Self::from_normal_form(table, in_levels, rows));
        read.map_err(|error| if in_levels { normal::as_written(error) } else { error })
    }

    fn from_normal_form(mut table: Table, in_levels: bool, rows: &dyn Rows) -> Result<Self, KeyError> {
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
            Some(_) => return Err(KeyError::new("level", "is not a list of levels", "one or more [[level]]")),
        };
        let seed = match table.remove("seed") {
            None => 1,
            Some(Value::Integer(seed)) if seed >= 0 => seed as u64,
            Some(other) => {
                return Err(KeyError::new("seed", format!("{other} is not a seed"), "a whole number from 0"))
            }
        };
        if let Some((key, _)) = table.iter().next() {
            return Err(KeyError::unknown_key(key, SECTIONS.into_iter()));
        }
        if let Some(key) = POLICY_KEYS.into_iter().find(|key| policy.contains_key(*key)) {
            if policy.get("name").and_then(Value::as_str).is_some_and(|name| is_parallel(name, rows)) {
                return Err(KeyError::new(
                    format!("policy.{key}"),
                    "belongs in [process]",
                    "process keys of that name",
                ));
            }
        }
        let actions = ACTION_KEYS.into_iter().find(|key| process.contains_key(*key));
        let process = match process.is_empty() {
            true => None,
            false => Some(process::read(process).map_err(|error| error.within("process"))?),
        };
        let pattern = process.as_ref().is_some_and(|process: &ProcessKeys| process.pattern.is_some());
        let mut policy = policy::read(policy, rows).map_err(|error| error.within("policy"))?;
        let workload = workload::read(workload, pattern).map_err(|error| error.within("workload"))?;
        let cache = cache::read(cache, &workload).map_err(|error| error.within("cache"))?;
        if let (true, Some(process)) = (policy.parallel(), &process) {
            policy.policy.keys = process.policy_keys(workload.block_bytes());
        }
        let lower = level::read(lower, &cache.section.name, &workload, rows)?;
        let mut device = device::read(device, &workload).map_err(|error| error.within("device"))?;
        device.servers = lower.iter().filter_map(|level| level.spread).map(|spread| spread.servers).max().unwrap_or(1);
        let host = host::read(host, &workload, &device).map_err(|error| error.within("host"))?;
        let traces = Traces::default();
        let scenario = Self { seed, workload, cache, policy, lower, device, host, process, traces, in_levels };
        scenario.fits_together()?;
        scenario.makes_a_program(actions)?;
        Ok(scenario)
    }

    /// The scenario with all defaults, as its author could have written it.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::from_iter([("seed".to_owned(), Value::Integer(self.seed as i64))]);
        let mut add = |section: &str, keys: Value| table.insert(section.to_owned(), keys);
        add("workload", self.workload.table().into());
        let mut first = Table::try_from(&self.cache.section).expect("plain values");
        if self.lower.is_empty() {
            add("cache", first.into());
            add("policy", self.policy.table().into());
        } else {
            first.insert("policy".into(), self.policy.table().into());
            let levels = std::iter::once(first).chain(self.lower.iter().map(LowerKeys::table)).map(Value::from);
            add("level", levels.collect::<Vec<_>>().into());
        }
        add("device", self.device.table().into());
        add("host", Value::try_from(self.host).expect("plain values"));
        if let Some(process) = &self.process {
            add("process", process.table(self.has_actions()).into());
        }
        table
    }

    /// Whether blocks must be found by their position in files, as needed by policies that act on requests, levels
    /// below others, a file system, clusters of written blocks, and disks that follow the open files. One process that
    /// reads block by block on one level does not need it.
    #[must_use]
    pub fn needs_places(&self) -> bool {
        self.process.is_some()
            || !self.lower.is_empty()
            || self.workload.arrival != Arrival::Closed
            || self.workload.section.processes.are_several()
            || self.workload.section.issue == Issue::Whole
            || self.policy.takes_requests()
            || self.device.cache_segments == Some(CacheSegments::OpenFiles)
            || self.cache.write_cluster.is_some()
            || matches!(self.workload.placement, Some(Placement::Ffs(_)))
    }

    /// How blocks are distributed to servers, if a level has several.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        self.lower.iter().find_map(|level| level.spread)
    }

    /// Whether the policy gives idle processors prefetch actions.
    #[must_use]
    pub fn has_actions(&self) -> bool {
        self.policy.parallel()
    }

    /// Reads a scenario from a file, a table or a text, with `key=value` overrides.
    ///
    /// # Errors
    /// The offending file, line or key.
    pub fn read(source: &Source, overrides: &[String]) -> Result<Self, Error> {
        Self::read_with(source, overrides, &BuiltIn)
    }

    /// The same, with the host's policies, `rows`.
    ///
    /// # Errors
    /// The offending file, line or key.
    pub fn read_with(source: &Source, overrides: &[String], rows: &dyn Rows) -> Result<Self, Error> {
        let mut table = source.table()?;
        if let (Source::File(path), true) = (source, table.is_empty() && overrides.is_empty()) {
            let allowed = "a scenario with one of workload.trace, workload.generator, workload.references";
            let path = path.display().to_string();
            return Err(Error::Scenario { path, line: String::new(), problem: "is empty".to_owned(), allowed });
        }
        for each in overrides {
            overrides::set(&mut table, each)?;
        }
        let mut scenario = Self::from_table_with(table, rows)?;
        if let Source::File(file) = source {
            scenario.find_beside(file);
        }
        Ok(scenario)
    }

    /// Whether a level's size is a share of the distinct blocks.
    #[must_use]
    pub fn has_footprints(&self) -> bool {
        let lower = |level: &LowerKeys| matches!(level.size, LowerSize::Own(CacheSize::Footprint(_)));
        matches!(self.cache.size, CacheSize::Footprint(_)) || self.lower.iter().any(lower)
    }

    /// Whether a level's size is given in bytes.
    #[must_use]
    pub fn sizes_in_bytes(&self) -> bool {
        let lower = |level: &LowerKeys| matches!(level.section.size, Some(SizeKey::Own(_)));
        self.cache.section.size.is_some() || self.lower.iter().any(lower)
    }

    /// Translates an error of a run of this scenario to the key that the user wrote.
    #[must_use]
    pub fn as_written(&self, error: Error) -> Error {
        match error {
            Error::Key(key) if self.in_levels => Error::Key(normal::as_written(key)),
            other => other,
        }
    }

    /// Relative paths fall back to the scenario's folder.
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
