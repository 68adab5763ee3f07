//! Section `[device]`.

use std::borrow::Cow;
use std::fmt;

use headstart_device::{ArrayRow, SharedBusKeys};
use headstart_types::{as_text_if_any, keys, property_names, read_keys, within_range, Bytes, KeyError, Keys};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use super::named::Named;
use super::{Input, WorkloadKeys};

#[derive(Clone)]
pub struct DeviceKeys {
    /// A model's name or the path of a profile.
    pub model: String,
    pub model_keys: Table,
    /// Disks per server, at least 1.
    pub count: u32,
    /// Servers with such disks, at least 1: those of the `[[level]]` that has `servers`.
    pub servers: u32,
    /// How the disks form one volume.
    pub array: &'static ArrayRow,
    pub array_keys: Table,
    pub stripe_unit: Bytes,
    pub scheduler: String,
    pub scheduler_keys: Table,
    /// The drive's own command queue; `None`: the scheduler feeds the disk.
    pub commands: Option<CommandKeys>,
    /// Number of segments of a disk's buffer; `None`: as in its profile.
    pub cache_segments: Option<CacheSegments>,
    /// The bus that the disks share; `None`: each has its own.
    pub shared_bus: Option<SharedBusKeys>,
    /// Explicit placement: labels of the blocks of each disk.
    pub layout: Option<Vec<Vec<String>>>,
}

impl DeviceKeys {
    /// Number of disks with their own queue, over all servers.
    #[must_use]
    pub fn disks(&self) -> u32 {
        self.servers * self.disks_of_server()
    }

    /// Number of disks with their own queue, per server: an array behind one controller counts as one.
    #[must_use]
    pub fn disks_of_server(&self) -> u32 {
        if self.array.is_independent() {
            self.count
        } else {
            1
        }
    }
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, count, scheduler, .. } = self;
        write!(f, "{count} {model} ({}), {scheduler}", self.array.name)
    }
}

/// The command queue of a disk.
#[derive(Debug, Clone)]
pub struct CommandKeys {
    /// Maximum number of commands in it, including those in service.
    pub depth: u32,
    /// The name of its scheduler.
    pub scheduler: String,
    pub scheduler_keys: Table,
}

/// Number of segments of a disk's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSegments {
    /// A fixed number.
    Count(u64),
    /// As many as there are processes.
    Streams,
    /// As many as there are open files, at any time.
    OpenFiles,
}

impl Serialize for CacheSegments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CacheSegments::Count(count) => serializer.serialize_u64(*count),
            CacheSegments::Streams => serializer.serialize_str("streams"),
            CacheSegments::OpenFiles => serializer.serialize_str("open-files"),
        }
    }
}

impl<'de> Deserialize<'de> for CacheSegments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrName;

        impl Visitor<'_> for CountOrName {
            type Value = CacheSegments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 1, \"streams\", or \"open-files\"")
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<CacheSegments, E> {
                match count {
                    1.. => Ok(CacheSegments::Count(count.unsigned_abs())),
                    _ => Err(E::invalid_value(Unexpected::Signed(count), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CacheSegments, E> {
                match text {
                    "streams" => Ok(CacheSegments::Streams),
                    "open-files" => Ok(CacheSegments::OpenFiles),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(CountOrName)
    }
}

impl JsonSchema for CacheSegments {
    fn schema_name() -> Cow<'static, str> {
        "CacheSegments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["streams", "open-files"]}]})
    }
}

/// Maximum queue depth: NVMe's limit.
const QUEUE_DEPTH_MAX: u32 = 65_536;

/// More disks than any system has; keeps a typing error from filling the memory.
pub(super) const DISKS_MAX: u32 = 100_000;

keys! {
    /// Section `[device]`: the disks.
    pub struct DeviceSection {
        /// A name of `headstart list devices`, or the path of a profile. With keys: `{name = "uniform", fetch_time =
        /// "2ms"}`. The keys may also be given in `[device]` itself.
        model: Named = Named::bare("hp97560"),
        /// Number of disks. If a level has `servers`: number of disks per server.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = DISKS_MAX), extend("x-absent" = "1, or the number of lists in layout"))]
        count: Option<u32> = None,
        /// How the disks form one volume: independent disks (`"stripe"`, `"concat"`), each with its own queue, or disks
        /// behind one controller, which policies and the scheduler see as one disk. An array's own keys are given in a
        /// table with its name, or in `[device]` itself.
        array: Named = Named::bare("stripe"),
        /// Stripe unit.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
        #[schemars(extend("x-absent" = "a block"))]
        stripe_unit: Option<Bytes> = None,
        /// The host's scheduler of each disk's queue: a name of `headstart list schedulers`. With keys: `{name =
        /// "deadline", merge = false}`.
        scheduler: Named = Named::bare("cscan"),
        /// Maximum number of commands that the drive accepts and schedules itself, including the one in service. For an
        /// array behind one controller: maximum number of outstanding commands at the controller.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
        #[schemars(extend("x-absent" = "none: a disk accepts one command at a time"))]
        queue_depth: Option<u32> = None,
        /// The drive's own scheduler. Only with `queue_depth`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "\"sptf\" beside a queue_depth"))]
        drive_scheduler: Option<Named> = None,
        /// Number of segments of a disk's buffer, which is divided evenly (rounded down): a whole number; `"streams"`,
        /// the number of processes (of the trace with `"per-pid"` or `"dealt"`, of a pattern's `count`, else 1); or
        /// `"open-files"`, the number of open files, up to 16. The number of open files changes during the run, and
        /// each change discards the buffer's contents. A process keeps a file open until it has read the file's last
        /// block or reads another file. Segments are added at once and removed when fewer than half are in use.
        /// Read-ahead and write segments are limited to the available segments. Proposed by Shriver, Small and Smith
        /// (USENIX 1999, section 6), with 1 to 16 segments. Not for drives whose buffer is one stream.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "none: segments as in the profile"))]
        cache_segments: Option<CacheSegments> = None,
        /// A bus or controller that transfers the data of several disks, one request at a time: `{bytes_per_second =
        /// 20_000_000, command = "100us", disks = 4}`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "none: each disk has its own"))]
        shared_bus: Option<SharedBusKeys> = None,
        /// Explicit placement: the labels of each disk's blocks. Only for inline references.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "none: array determines the placement"))]
        layout: Option<Vec<Vec<String>>> = None,
    }
}

/// Reads the section.
pub fn read(table: Table, workload: &WorkloadKeys) -> Result<DeviceKeys, KeyError> {
    let array = headstart_device::array(name_of(&table, "array").unwrap_or("stripe"))?;
    let row = name_of(&table, "model").and_then(headstart_device::model);
    let has_queue = row.is_some_and(|row| row.keys.has("queue_depth"));
    // Keys next to the model's name belong to the array if its queue is the controller's, otherwise to the model.
    let (mut own, mut array_keys, mut model_keys) = (Table::new(), Table::new(), Table::new());
    for (key, value) in table {
        let of_section = property_names(DeviceSection::schema()).contains(&key.as_str());
        let of = match array.is_independent() {
            false if array.keys.has(&key) => &mut array_keys,
            true if has_queue && key == "queue_depth" => &mut model_keys,
            _ if of_section => &mut own,
            _ => &mut model_keys,
        };
        of.insert(key, value);
    }
    let raw: DeviceSection = read_keys(own)?;
    array_keys.extend(raw.array.keys.clone());
    let model_keys: Table = raw.model.keys.clone().into_iter().chain(model_keys).collect();
    let disks = raw.layout.as_ref().map(|lists| lists.len() as u32);
    let count = raw.count.or(disks).unwrap_or(1);
    raw.fits(workload, array, has_queue)?;
    let model = headstart_device::model(&raw.model.name).map_or(raw.model.name, |row| row.name.to_owned());
    let scheduler = raw.scheduler;
    let drive_scheduler = raw.drive_scheduler.unwrap_or_else(|| Named::bare("sptf"));
    Ok(DeviceKeys {
        count,
        servers: 1,
        array,
        stripe_unit: raw.stripe_unit.unwrap_or(Bytes(workload.block_bytes())),
        commands: raw.queue_depth.map(|depth| CommandKeys {
            depth,
            scheduler: drive_scheduler.name,
            scheduler_keys: drive_scheduler.keys,
        }),
        cache_segments: raw.cache_segments,
        shared_bus: raw.shared_bus,
        layout: raw.layout,
        model,
        model_keys,
        array_keys,
        scheduler: scheduler.name,
        scheduler_keys: scheduler.keys,
    })
}

fn name_of<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    let value = table.get(key)?;
    value.as_str().or_else(|| value.get("name")?.as_str())
}

impl DeviceSection {
    /// Refuses keys that contradict each other.
    fn fits(&self, workload: &WorkloadKeys, array: &ArrayRow, has_queue: bool) -> Result<(), KeyError> {
        if let Some(lists) = &self.layout {
            if !matches!(workload.input, Input::References(_)) {
                let problem = "has block labels, which only inline references have";
                return Err(KeyError::new("layout", problem, "workload.references, or no layout"));
            }
            let disks = lists.len() as u64;
            if disks != u64::from(self.count.unwrap_or(disks as u32)) {
                let allowed = "one list in layout for each disk";
                return Err(KeyError::new("count", "differs from the number of lists in layout", allowed));
            }
            within_range("layout", disks, 1..=DISKS_MAX.into())?;
            if array.name != "stripe" {
                let problem = "determines the placement, as the array does";
                return Err(KeyError::new("layout", problem, "array = \"stripe\", or no layout"));
            }
        }
        if self.cache_segments == Some(CacheSegments::OpenFiles) && !array.is_independent() {
            let problem = format!("\"open-files\" needs disks, which \"{}\" hides behind its controller", array.name);
            return Err(KeyError::new("cache_segments", problem, "a number, \"streams\", or independent disks"));
        }
        if self.drive_scheduler.is_none() || self.queue_depth.is_some() {
            return Ok(());
        }
        let (problem, allowed) = match (array.is_independent(), has_queue) {
            (false, _) => (
                format!("the disks of \"{}\" have no queues of their own", array.name),
                "scheduler, or an array of independent disks",
            ),
            (true, true) => ("the model orders its own queue".to_owned(), "scheduler"),
            (true, false) => ("there is no queue in the drive".to_owned(), "a queue_depth in addition"),
        };
        Err(KeyError::new("drive_scheduler", problem, allowed))
    }
}

impl DeviceKeys {
    /// The section with all defaults.
    pub(crate) fn table(&self) -> Table {
        let row = headstart_device::model(&self.model);
        let defaults = row.map_or_else(Table::new, |row| row.keys.defaults());
        let mut model = headstart_device::overlay(defaults, self.model_keys.clone());
        model.insert("name".into(), self.model.clone().into());
        let mut array = self.array_keys.clone();
        array.insert("name".into(), self.array.name.into());
        let mut resolved = Table::new();
        resolved.insert("model".into(), model.into());
        resolved.insert("count".into(), i64::from(self.count).into());
        let bare = self.array_keys.is_empty();
        resolved.insert("array".into(), if bare { self.array.name.into() } else { array.into() });
        resolved.insert("stripe_unit".into(), self.stripe_unit.to_string().into());
        resolved.insert("scheduler".into(), scheduler_table(&self.scheduler, &self.scheduler_keys).into());
        if let Some(commands) = &self.commands {
            let scheduler = scheduler_table(&commands.scheduler, &commands.scheduler_keys);
            resolved.insert("queue_depth".into(), i64::from(commands.depth).into());
            resolved.insert("drive_scheduler".into(), scheduler.into());
        }
        if let Some(segments) = self.cache_segments {
            resolved.insert("cache_segments".into(), Value::try_from(segments).expect("a number or a name"));
        }
        if let Some(bus) = &self.shared_bus {
            resolved.insert("shared_bus".into(), Value::try_from(bus).expect("numbers and times"));
        }
        if let Some(layout) = &self.layout {
            resolved.insert("layout".into(), layout.clone().into());
        }
        resolved
    }
}

/// A scheduler with all its keys.
fn scheduler_table(name: &str, keys: &Table) -> Table {
    let mut table = Table::from_iter([("name".to_owned(), Value::from(name))]);
    table.extend(headstart_device::scheduler(name).map_or_else(Table::new, |row| row.keys.defaults()));
    table.extend(keys.clone());
    table
}
