//! Section `[device]`.

use headstart_device::ArrayRow;
use headstart_types::{Bytes, KeyError};
use toml::{Table, Value};

use super::{Input, WorkloadKeys};

/// The disks.
#[derive(Clone)]
pub struct DeviceKeys {
    /// A model's name or the path of a profile.
    pub model: String,
    /// The model's own keys.
    pub model_keys: Table,
    /// Disks, at least 1.
    pub count: u32,
    /// How they are one volume.
    pub array: &'static ArrayRow,
    /// The array's own keys.
    pub array_keys: Table,
    /// Unit of striping.
    pub stripe_unit: Bytes,
    /// The scheduler's name.
    pub scheduler: String,
    /// The scheduler's own keys.
    pub scheduler_keys: Table,
    /// The command queue of each disk itself; `None`: the scheduler feeds the disk.
    pub commands: Option<CommandKeys>,
    /// Segments among which a disk's buffer is divided; `None`: as its profile has it.
    pub cache_segments: Option<CacheSegments>,
    /// Explicit placement: labels of the blocks of each disk.
    pub layout: Option<Vec<Vec<String>>>,
}

impl DeviceKeys {
    /// Disks with a queue of their own: those of an array behind one controller are one.
    #[must_use]
    pub fn disks(&self) -> u32 {
        if self.array.is_independent() {
            self.count
        } else {
            1
        }
    }
}

impl std::fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { model, count, scheduler, .. } = self;
        write!(f, "{count} {model} ({}), {scheduler}", self.array.name)
    }
}

/// The command queue of a disk.
#[derive(Debug, Clone)]
pub struct CommandKeys {
    /// Commands in it, those in service included.
    pub depth: u32,
    /// The name of the scheduler that orders them.
    pub scheduler: String,
    /// That scheduler's own keys.
    pub scheduler_keys: Table,
}

/// Segments among which the buffer of a disk is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSegments {
    /// So many.
    Count(u64),
    /// As many as there are processes.
    Streams,
}

/// Commands of the deepest queue: NVMe's limit.
pub(super) const QUEUE_DEPTH_MAX: u32 = 65_536;

/// More disks than anybody has; keeps a slip of the finger from filling the memory.
pub(super) const DISKS_MAX: i64 = 100_000;

/// Reads the section; returns it with all defaults as a table too.
pub fn read(mut table: Table, workload: &WorkloadKeys) -> Result<(DeviceKeys, Table), KeyError> {
    let (model, mut model_keys) = named(&mut table, "model", "name", "hp97560")?;
    let (scheduler, scheduler_keys) = named(&mut table, "scheduler", "name", "cscan")?;
    let (array, mut array_keys) = named(&mut table, "array", "name", "stripe")?;
    let array = headstart_device::array(&array)?;
    let layout = table.remove("layout").map(read_layout).transpose()?;
    if layout.is_some() && !matches!(workload.input, Input::References(_)) {
        let problem = "names blocks, which only inline references have";
        return Err(KeyError::new("layout", problem, "workload.references, or no layout"));
    }
    let disks = layout.as_ref().map(Vec::len);
    let count = match table.remove("count") {
        None => disks.unwrap_or(1) as i64,
        Some(Value::Integer(count)) => count,
        Some(other) => return Err(KeyError::new("count", format!("{other} is no number"), "a whole number from 1")),
    };
    if !(1..=DISKS_MAX).contains(&count) {
        return Err(KeyError::new("count", format!("{count} disks"), format!("a whole number from 1 to {DISKS_MAX}")));
    }
    if disks.is_some_and(|disks| disks as i64 != count) {
        return Err(KeyError::new("count", "differs from the disks of layout", "one list in layout for each disk"));
    }
    let stripe_unit = match table.remove("stripe_unit") {
        None => Bytes(workload.block_bytes()),
        Some(Value::String(text)) => {
            text.parse().map_err(|problem: String| KeyError::new("stripe_unit", problem, Bytes::ALLOWED))?
        }
        Some(other) => return Err(KeyError::new("stripe_unit", format!("{other} has no unit"), Bytes::ALLOWED)),
    };
    if layout.is_some() && array.name != "stripe" {
        let problem = "says where blocks lie, as the array does";
        return Err(KeyError::new("layout", problem, "array = \"stripe\", or no layout"));
    }
    let commands = if array.is_independent() {
        read_commands(&mut table, &model)?
    } else {
        // Behind one controller the queue in the middle is the controller's.
        if table.contains_key("drive_scheduler") {
            let problem = format!("the disks of \"{}\" have no queues of their own", array.name);
            return Err(KeyError::new("drive_scheduler", problem, "scheduler, or an array of independent disks"));
        }
        let own = ["queue_depth", "failed"].into_iter().filter_map(|key| Some((key.to_owned(), table.remove(key)?)));
        array_keys.extend(own);
        None
    };
    let cache_segments = table.remove("cache_segments").map(read_cache_segments).transpose()?;
    // What is left beside the model's name belongs to the model.
    model_keys.extend(table);
    let mut resolved = Table::new();
    let defaults = headstart_device::model(&model).map_or_else(Table::new, |row| (row.defaults)());
    let mut model_table = headstart_device::overlay(defaults, model_keys.clone());
    model_table.insert("name".into(), model.clone().into());
    resolved.insert("model".into(), model_table.into());
    resolved.insert("count".into(), count.into());
    let mut array_table = array_keys.clone();
    array_table.insert("name".into(), array.name.into());
    resolved.insert("array".into(), if array_keys.is_empty() { array.name.into() } else { array_table.into() });
    resolved.insert("stripe_unit".into(), stripe_unit.to_string().into());
    resolved.insert("scheduler".into(), scheduler_table(&scheduler, &scheduler_keys).into());
    if let Some(commands) = &commands {
        resolved.insert("queue_depth".into(), i64::from(commands.depth).into());
        resolved
            .insert("drive_scheduler".into(), scheduler_table(&commands.scheduler, &commands.scheduler_keys).into());
    }
    match cache_segments {
        None => {}
        Some(CacheSegments::Count(count)) => _ = resolved.insert("cache_segments".into(), (count as i64).into()),
        Some(CacheSegments::Streams) => _ = resolved.insert("cache_segments".into(), "streams".into()),
    }
    if let Some(layout) = &layout {
        let lists: Vec<Value> = layout.iter().map(|list| Value::from(list.clone())).collect();
        resolved.insert("layout".into(), Value::Array(lists));
    }
    let count = count as u32;
    let keys = DeviceKeys {
        model,
        model_keys,
        count,
        array,
        array_keys,
        stripe_unit,
        scheduler,
        scheduler_keys,
        commands,
        cache_segments,
        layout,
    };
    Ok((keys, resolved))
}

/// A scheduler with all its keys.
fn scheduler_table(name: &str, keys: &Table) -> Table {
    let mut table = Table::from_iter([("name".to_owned(), Value::from(name))]);
    let row = headstart_device::scheduler(name);
    table.extend(row.map_or_else(Table::new, |row| (row.defaults)()));
    table.extend(keys.clone());
    table
}

/// Takes `queue_depth` and `drive_scheduler`, unless the model has a queue of its own under that name.
fn read_commands(table: &mut Table, model: &str) -> Result<Option<CommandKeys>, KeyError> {
    const DEPTH: &str = "a whole number from 1 to 65536";
    let row = headstart_device::model(model);
    if row.is_some_and(|row| (row.defaults)().contains_key("queue_depth")) {
        return Ok(None);
    }
    let Some(depth) = table.remove("queue_depth") else {
        return match table.contains_key("drive_scheduler") {
            true => Err(KeyError::new("drive_scheduler", "there is no queue in the drive", "a queue_depth beside it")),
            false => Ok(None),
        };
    };
    let within = |depth: &u32| (1..=QUEUE_DEPTH_MAX).contains(depth);
    let depth = match depth.as_integer().and_then(|depth| u32::try_from(depth).ok()).filter(within) {
        Some(depth) => depth,
        None => return Err(KeyError::new("queue_depth", format!("{depth} is outside"), DEPTH)),
    };
    let (scheduler, scheduler_keys) = named(table, "drive_scheduler", "name", "sptf")?;
    Ok(Some(CommandKeys { depth, scheduler, scheduler_keys }))
}

fn read_cache_segments(value: Value) -> Result<CacheSegments, KeyError> {
    match value {
        Value::Integer(count) if count > 0 => Ok(CacheSegments::Count(count.unsigned_abs())),
        Value::String(text) if text == "streams" => Ok(CacheSegments::Streams),
        other => {
            let allowed = "a whole number from 1, or \"streams\"";
            Err(KeyError::new("cache_segments", format!("{other} is no number of segments"), allowed))
        }
    }
}

/// A thing with a name and keys, or its bare name.
fn named(table: &mut Table, key: &str, name: &str, default: &str) -> Result<(String, Table), KeyError> {
    match table.remove(key) {
        None => Ok((default.to_owned(), Table::new())),
        Some(Value::String(text)) => Ok((text, Table::new())),
        Some(Value::Table(mut keys)) => match keys.remove(name) {
            Some(Value::String(text)) => Ok((text, keys)),
            _ => Err(KeyError::new(format!("{key}.{name}"), "missing", "a name")),
        },
        Some(other) => Err(KeyError::new(key, format!("{other} is no name"), "a name, or a table with a name")),
    }
}

fn read_layout(value: Value) -> Result<Vec<Vec<String>>, KeyError> {
    let refused = || KeyError::new("layout", "is no list of lists", "one list of block names for each disk");
    let Value::Array(lists) = value else { return Err(refused()) };
    let read = |list: Value| match list {
        Value::Array(names) => {
            names.into_iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(refused)).collect()
        }
        _ => Err(refused()),
    };
    lists.into_iter().map(read).collect()
}
