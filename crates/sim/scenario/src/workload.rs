//! Section `[workload]`.

use std::path::PathBuf;

use headstart_trace::{Selection, WORKLOADS};
use headstart_types::{as_text_if_any, defaults_of, keys, property_names, read_keys, Bytes, KeyError, Keys, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::sample::{self, SampleKeys};
use super::select;
use headstart_layout::{placement_schema, Addresses, Placement, DEFAULT_CHUNK};

/// The source of the references.
#[derive(Debug, Clone)]
pub enum Input {
    /// A trace file and the name of its format.
    Trace(PathBuf, String),
    /// A generator and its keys, with all defaults.
    Generator(String, Table),
    /// Block labels in the scenario itself.
    References(Vec<String>),
    /// The pattern in section `[process]`.
    Pattern,
}

/// The size of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSize {
    /// A number of bytes, at least 1.
    Bytes(u64),
    /// The trace's own units are the blocks.
    Object,
}

/// Think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeKey {
    /// As recorded.
    Trace,
    /// The whole time between two requests of the trace, including waits for I/O.
    Gaps,
    /// Constant, after each reference.
    Constant(Nanos),
    /// Exponential, with this mean, after each reference.
    Exponential(Nanos),
}

/// How writes are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// Writes count as reads.
    AsRead,
    /// Writes are skipped, and their time counts as think time.
    Skip,
    /// Each write goes to its disk at once, and the process waits for its completion.
    Through,
    /// Written blocks are dirty and go to their disks later: see `cache.write_delay`.
    Back,
}

impl Writes {
    /// Whether writes reach the devices as writes.
    #[must_use]
    pub fn reach_devices(self) -> bool {
        matches!(self, Writes::Through | Writes::Back)
    }
}

/// The workload.
#[derive(Debug, Clone)]
pub struct WorkloadKeys {
    /// The keys, with all defaults.
    pub section: WorkloadSection,
    /// The source of the references.
    pub input: Input,
    pub block_size: BlockSize,
    pub compute: ComputeKey,
    /// When requests are issued.
    pub arrival: Arrival,
    /// Where files lie; `None`: by address, or in table order if the trace distinguishes files.
    pub placement: Option<Placement>,
    /// How addresses beyond the device's capacity are treated.
    pub addresses: Addresses,
    /// Restricts reading to a sample of extents.
    pub sample: Option<SampleKeys>,
    /// Restricts reading to some files and processes.
    pub selection: Selection,
}

/// Default block size, and nominal size of an object in a device (kimbrel96, section 3).
const DEFAULT_BLOCK: u64 = 8192;

/// No scaling.
const DEFAULT_SCALE: f64 = 1.0;

impl WorkloadKeys {
    /// Bytes of a block; for objects a nominal size.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.block_size.bytes()
    }

    /// The section with all defaults: keys without one come after the others, then a generator's own.
    pub(crate) fn table(&self) -> Table {
        let defaults = defaults_of::<WorkloadSection>();
        let all = Table::try_from(&self.section).expect("plain values").into_iter();
        let (mut table, given): (Table, Table) = all.partition(|(key, _)| defaults.contains_key(key));
        table.extend(given);
        match &self.input {
            // A resolved scenario can be run again.
            Input::Pattern => of_input().iter().for_each(|key| drop(table.remove(key))),
            Input::Generator(_, keys) => table.extend(keys.clone()),
            _ => {}
        }
        if let Some(placement) = &self.placement {
            table.insert("placement".into(), placement.value());
        }
        table
    }
}

impl BlockSize {
    /// In bytes; for objects a nominal size.
    fn bytes(self) -> u64 {
        match self {
            BlockSize::Bytes(bytes) => bytes,
            BlockSize::Object => DEFAULT_BLOCK,
        }
    }
}

keys! {
    /// Section `[workload]`: the requests. One of trace, generator and references is needed. These keys are common to
    /// all inputs. A generator's own keys are given next to them. Keys of an input (`x-of-input`) cannot be combined
    /// with `process.pattern`.
    pub struct WorkloadSection {
        /// Path of a trace. `.gz`, `.bz2`, `.xz` and `.zst` files are decompressed while reading.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-of-input" = true))]
        trace: Option<String> = None,
        /// A name of `headstart list workloads`. The generator's own keys are given next to it in `[workload]`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-of-input" = true))]
        generator: Option<String> = None,
        /// The references, as labels of blocks: `["A", "b", "C"]`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-of-input" = true))]
        references: Option<Vec<String>> = None,
        /// Format of the trace: a name of `headstart list formats`, or "auto".
        #[schemars(extend("x-of-input" = true))]
        format: String = "auto".to_owned(),
        /// Request size, such as `"4KiB"`, for a trace that has offsets but no sizes.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        #[schemars(extend("x-absent" = "none: the trace carries sizes", "x-of-input" = true))]
        pub request_size: Option<Bytes> = None,
        /// Block size. A request of several blocks is several references. `"object"`: the trace's own units are the
        /// blocks.
        block_size: String = "8KiB".to_owned(),
        /// Think time after each reference: `"trace"` (as recorded, or the generator's own), `"gaps"` (the whole time
        /// between two requests of the trace, including waits for I/O), a constant such as `"1ms"`, or `"exp:1ms"`
        /// (exponentially distributed with this mean).
        compute: String = "trace".to_owned(),
        /// When requests are issued.
        #[schemars(extend("x-of-input" = true))]
        arrival: RawArrival = RawArrival::Closed,
        /// Which process issues which requests.
        #[schemars(extend("x-of-input" = true))]
        pub processes: Processes = Processes::Merged,
        /// How the blocks of a request are issued. Default: `"whole"`; `"blocks"` with `placement = "ffs"`, and if
        /// every request is one block: inline references and `block_size = "object"`.
        #[schemars(extend("x-of-input" = true))]
        pub issue: Issue = Issue::Blocks,
        /// How writes are treated.
        #[schemars(extend("x-of-input" = true))]
        pub writes: Writes = Writes::AsRead,
        /// Where files are placed on the device. `"address"`: the trace's numbers are addresses; `"table-order"`: files
        /// one after another, in the order of the file table; `"random-groups"`: each file at a random position within
        /// a group of 8550 blocks; `"ffs"`, or `{name = "ffs", ...}`: as laid out by a Fast File System, with its
        /// metadata (file-system.md).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "placement_schema")]
        #[schemars(extend("x-absent" = "\"table-order\" if the trace distinguishes files, else \"address\""))]
        placement: Option<Value> = None,
        /// How addresses beyond the device's capacity are treated.
        addresses: RawAddresses = RawAddresses::Error,
        /// Number of blocks per chunk, with `addresses = "compact-chunks"`. The default is our choice.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = CHUNK_MAX))]
        #[schemars(extend("x-absent" = "64 if workload.addresses is \"compact-chunks\""))]
        chunk_blocks: Option<u64> = None,
        /// Factor by which think times are multiplied.
        #[schemars(range(min = 0.0, max = f64::MAX), extend("x-allowed" = "a number from 0"))]
        pub compute_scale: f64 = DEFAULT_SCALE,
        /// Sum to which think times are scaled.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        #[schemars(extend("x-absent" = "none: think times are not scaled to a sum", "x-of-input" = true))]
        pub compute_total: Option<Nanos> = None,
        /// Factor by which the trace's times are multiplied; 2 is half as fast. Only with open arrivals.
        #[schemars(range(min = 0.0, max = f64::MAX), extend("x-allowed" = "a number from 0"))]
        #[schemars(extend("x-of-input" = true))]
        time_scale: f64 = DEFAULT_SCALE,
        /// Maximum number of requests to read.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1))]
        #[schemars(extend("x-absent" = "none: all requests", "x-of-input" = true))]
        pub limit: Option<u64> = None,
        /// Reads only a sample of the extents, `{rate = 0.1}`, drawn by a hash of file and position. `extent = "1MiB"`
        /// is the size of an extent, "file" samples whole files; `seed = 1` changes the draw. Requests are reduced to
        /// their parts in the sample. Counts are representative of the whole trace, times are not.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "none: all of each request", "x-of-input" = true))]
        #[schemars(schema_with = "sample::schema")]
        sample: Option<Value> = None,
        /// Reads only requests to some files or of some processes: `{path = "*.parquet"}`, `{pid = [7, 8]}`, `{process
        /// = "python3"}`. If several conditions are given, all must hold. `limit` counts the selected requests.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "none: all requests", "x-of-input" = true))]
        #[schemars(schema_with = "select::schema")]
        select: Option<Value> = None,
    }
}

/// When requests are issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RawArrival {
    /// The next reference is issued after the previous one and its think time.
    Closed,
    /// Whole requests are issued at the trace's times, regardless of outstanding requests, without think times and
    /// `[host]` costs.
    Open,
}

/// How addresses beyond the device's capacity are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RawAddresses {
    /// Report an error.
    Error,
    /// If any address is beyond the device, as "compact-chunks", with a note and with the largest chunks (64 blocks,
    /// 32, ... 1) for which all blocks fit.
    Auto,
    /// Only referenced blocks use space, in order of address, and read-ahead ends at a block that is never referenced.
    Compact,
    /// The volume is divided into chunks, and only chunks with a referenced block use space, in order of address.
    CompactChunks,
}

/// When requests are issued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// The next one after the last one is done and its think time has passed.
    Closed,
    /// At the trace's times, multiplied by this factor.
    Open(f64),
}

/// Which processes issue requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// A single process issues all requests, in the order of the trace.
    Merged,
    /// Each process of the trace issues its own requests.
    PerPid,
    /// Files are dealt to the number of processes that section `[process]` gives.
    Dealt,
}

impl Processes {
    /// Whether there are several concurrent processes.
    #[must_use]
    pub fn are_several(self) -> bool {
        self != Processes::Merged
    }
}

/// How the blocks of a request are issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Issue {
    /// One after another.
    Blocks,
    /// All at once.
    Whole,
}

/// Keys of an input, which a pattern does not have.
fn of_input() -> Vec<String> {
    let schema = WorkloadSection::schema();
    let names = property_names(schema).into_iter();
    names.filter(|key| schema["properties"][*key].get("x-of-input").is_some()).map(str::to_owned).collect()
}

/// Longer chunks would not compact anything; keeps addresses within 64 bits.
const CHUNK_MAX: u64 = 1 << 31;

/// Reads the section. With a `pattern` of the processes it names no input.
pub fn read(user: Table, pattern: bool) -> Result<WorkloadKeys, KeyError> {
    let (defaults, of_input) = (defaults_of::<WorkloadSection>(), of_input());
    let other = |key: &&String| user.get(*key).is_some_and(|value| defaults.get(*key) != Some(value));
    if let (true, Some(key)) = (pattern, of_input.iter().find(other)) {
        return Err(KeyError::new(key, "given together with process.pattern", "a pattern without it, or no pattern"));
    }
    let (mut common, mut own) = (Table::new(), Table::new());
    let known = property_names(WorkloadSection::schema());
    let placement =
        user.get("placement").and_then(|placement| placement.as_str().or_else(|| placement.get("name")?.as_str()));
    let by_clock = user.get("arrival").and_then(Value::as_str) == Some("open");
    let is_object = user.get("block_size").and_then(Value::as_str) == Some("object");
    let of_one_block = is_object || user.contains_key("references");
    if by_clock || !(pattern || of_one_block || placement == Some("ffs")) {
        common.insert("issue".into(), "whole".into());
    }
    let given_compute = user.get("compute").cloned();
    let generator = user.get("generator").and_then(Value::as_str).map(str::to_owned);
    for (key, value) in user {
        if known.contains(&key.as_str()) || generator.is_none() {
            common.insert(key, value);
        } else {
            own.insert(key, value);
        }
    }
    let mut section: WorkloadSection = read_keys(common)?;
    if let (Some(name), Some(compute)) = (&generator, given_compute) {
        // A generator makes its own think times, which the key overrides.
        let knows = WORKLOADS
            .iter()
            .find(|row| row.name == *name)
            .is_some_and(|row| row.keys.defaults().contains_key("compute"));
        if knows && section.compute != "trace" {
            own.insert("compute".into(), compute);
            section.compute = "trace".to_owned();
        }
    }
    let made = own.contains_key("compute");
    if let Some(row) = generator.as_ref().and_then(|name| WORKLOADS.iter().find(|row| row.name == *name)) {
        own = row.keys.defaults().into_iter().chain(own).collect();
    }
    let input = match (&section.trace, &section.generator, &section.references) {
        (Some(path), None, None) => Input::Trace(PathBuf::from(path), section.format.clone()),
        (None, Some(name), None) => Input::Generator(name.clone(), own),
        (None, None, Some(references)) => Input::References(references.clone()),
        (None, None, None) if pattern => Input::Pattern,
        (None, None, None) => {
            return Err(KeyError::new("trace", "nothing to run", "one of trace, generator, references"));
        }
        _ => return Err(KeyError::new("trace", "more than one input", "one of trace, generator, references")),
    };
    let block_size = block_size(&section.block_size)?;
    let placement = section.placement.take().map(|value| Placement::read(value, block_size.bytes())).transpose()?;
    let addresses = addresses(section.addresses, section.chunk_blocks)?;
    if section.addresses == RawAddresses::CompactChunks {
        section.chunk_blocks.get_or_insert(DEFAULT_CHUNK);
    }
    let keys = WorkloadKeys {
        input,
        block_size,
        compute: if made { ComputeKey::Trace } else { compute(&section.compute)? },
        arrival: arrival(&section.arrival, section.time_scale)?,
        placement,
        addresses,
        sample: section.sample.clone().map(sample::read).transpose()?,
        selection: section.select.clone().map(select::read).transpose()?.unwrap_or_default(),
        section,
    };
    if !keys.selection.is_all() && !matches!(keys.input, Input::Trace(..)) {
        return Err(KeyError::new("select", "the workload is not a trace", "a trace, or no select"));
    }
    if keys.sample.is_some() && !matches!(keys.input, Input::Trace(..) | Input::Generator(..)) {
        return Err(KeyError::new("sample", "the workload is not a trace", "a trace or a generator, or no sample"));
    }
    if keys.section.request_size.is_some() && !matches!(keys.input, Input::Trace(..)) {
        return Err(KeyError::new("request_size", "the workload is not a trace", "a trace, or no request_size"));
    }
    if keys.section.compute_total.is_some() && keys.section.compute_scale != DEFAULT_SCALE {
        let problem = "given together with compute_total, which scales too";
        return Err(KeyError::new("compute_scale", problem, "one of compute_scale, compute_total"));
    }
    Ok(keys)
}

fn arrival(arrival: &RawArrival, time_scale: f64) -> Result<Arrival, KeyError> {
    match arrival {
        RawArrival::Closed if time_scale == DEFAULT_SCALE => Ok(Arrival::Closed),
        RawArrival::Closed => {
            Err(KeyError::new("time_scale", "only valid with arrival = \"open\"", "arrival = \"open\" in addition"))
        }
        RawArrival::Open => Ok(Arrival::Open(time_scale)),
    }
}

fn addresses(addresses: RawAddresses, chunk_blocks: Option<u64>) -> Result<Addresses, KeyError> {
    match (addresses, chunk_blocks.unwrap_or(DEFAULT_CHUNK)) {
        (RawAddresses::CompactChunks, chunk_blocks) => Ok(Addresses::Compact { chunk_blocks }),
        _ if chunk_blocks.is_some() => {
            let allowed = "addresses = \"compact-chunks\" in addition";
            Err(KeyError::new("chunk_blocks", "only valid with addresses = \"compact-chunks\"", allowed))
        }
        (RawAddresses::Compact, _) => Ok(Addresses::Compact { chunk_blocks: 1 }),
        (RawAddresses::Error, _) => Ok(Addresses::Error),
        (RawAddresses::Auto, _) => Ok(Addresses::Auto),
    }
}

fn block_size(text: &str) -> Result<BlockSize, KeyError> {
    let allowed = format!("{}; or \"object\"", Bytes::ALLOWED);
    if text == "object" {
        return Ok(BlockSize::Object);
    }
    match text.parse::<Bytes>() {
        Ok(Bytes(bytes)) if bytes > 0 && bytes <= 1 << 30 => Ok(BlockSize::Bytes(bytes)),
        Ok(_) => Err(KeyError::new("block_size", format!("\"{text}\" is out of range"), "1B to 1GiB; or \"object\"")),
        Err(problem) => Err(KeyError::new("block_size", problem, allowed)),
    }
}

fn compute(text: &str) -> Result<ComputeKey, KeyError> {
    let allowed = "\"trace\", \"gaps\", a time such as \"1ms\", or \"exp:1ms\"";
    let time = |text: &str| text.parse::<Nanos>().map_err(|problem| KeyError::new("compute", problem, allowed));
    match text.strip_prefix("exp:") {
        _ if text == "trace" => Ok(ComputeKey::Trace),
        _ if text == "gaps" => Ok(ComputeKey::Gaps),
        Some(mean) => time(mean).map(ComputeKey::Exponential),
        None => time(text).map(ComputeKey::Constant),
    }
}
