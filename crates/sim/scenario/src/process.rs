//! Section `[process]`: the processes of a parallel program.

use headstart_engine::parallel::{BufferPlace, Buffers, Contention, IdleOrder};
use headstart_policy::parallel::PrefetchFor;
use headstart_policy::predictor;
use headstart_policy::registry;
use headstart_trace::patterns;
use headstart_types::{as_text, defaults_of, keys, read_keys, KeyError, Nanos, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::action::{ActionIssues, ActionTime};
use super::limits::COST_MAX;
use super::policy::named_value;

/// Where processes synchronise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// Never.
    Never,
    /// Each process after this many of its own reads.
    Process(u32),
    /// All processes after this many reads in total.
    All(u32),
    /// After each sequential portion.
    Portion,
}

/// The access pattern of the processes.
#[derive(Debug, Clone)]
pub struct PatternKeys {
    /// The name of its row.
    pub name: &'static str,
    /// Its keys with every default.
    pub keys: Table,
    /// Number of processes.
    pub count: u32,
}

/// The processes of a parallel program.
#[derive(Debug, Clone)]
pub struct ProcessKeys {
    /// Number of processes; `None`: as many as in the trace.
    pub count: Option<u32>,
    /// Their access pattern; `None`: the trace's processes read what the trace contains.
    pub pattern: Option<PatternKeys>,
    /// Where they synchronise.
    pub meets: Meets,
    /// The duration of a prefetch action.
    pub action: ActionTime,
    /// When its request enters the disk's queue.
    pub issues: ActionIssues,
    /// Minimum expected idle time for an action to begin.
    pub min_time: Nanos,
    /// Minimum distance in references of a prefetched block from its string's cursor.
    pub min_lead: Position,
    /// Maximum number of prefetched and unused blocks; 0: one per process.
    pub buffers: u32,
    /// Whether processors prefetch blocks that only other processes will read.
    pub for_others: bool,
    /// Whose blocks are prefetched first.
    pub prefetch_for: PrefetchFor,
    /// The predictor of the blocks that are prefetched, with its keys; `None`: they are known in advance.
    pub predictor: Option<(&'static str, Table)>,
    /// Which of several idle processors takes the next action.
    pub order: IdleOrder,
    /// Minimum number of reads by which a processor's process must be ahead, towards its next barrier, of the process
    /// furthest behind, for an action to begin.
    pub min_slack: u32,
    /// Additional processors that only perform prefetch actions; the others then perform none.
    pub io_processors: u32,
    /// The node that holds a block's buffer.
    pub buffer_place: BufferPlace,
    /// Cost of reading a block whose buffer is at another node.
    pub remote_cost: Nanos,
    /// Time for which a look-up holds the shared structures.
    pub contention: Nanos,
    /// Whether a prefetch action also holds them, in addition to its duration.
    pub actions_contend: bool,
}

impl ProcessKeys {
    /// The contention for the shared structures.
    #[must_use]
    pub fn contends(&self) -> Contention {
        Contention::new(self.contention, self.actions_contend)
    }

    /// The placement of the buffers of `processes` processes; `None` if it costs nothing.
    #[must_use]
    pub fn buffers_of(&self, processes: usize) -> Option<Buffers> {
        Buffers::new(self.buffer_place, self.remote_cost, (processes as u32, self.io_processors))
    }

    /// The keys of its policy; a block has `block_bytes` bytes.
    #[must_use]
    pub fn policy_keys(&self, block_bytes: u64) -> Vec<(String, Value)> {
        let mut keys = vec![
            ("min_lead".to_owned(), i64::from(self.min_lead).into()),
            ("buffers".to_owned(), i64::from(self.buffers).into()),
            ("for_others".to_owned(), self.for_others.into()),
            ("prefetch_for".to_owned(), self.prefetch_for.name().into()),
        ];
        if let Some((name, own)) = &self.predictor {
            let bytes = Value::from(block_bytes as i64);
            let parts = [("name", Value::from(*name)), ("keys", own.clone().into()), ("block_bytes", bytes)];
            keys.push((
                "predictor".to_owned(),
                Table::from_iter(parts.map(|(key, value)| (key.to_owned(), value))).into(),
            ));
        }
        keys
    }
}

keys! {
    /// Section `[process]`: the processes of a parallel program. In the original, an action took 6 to 16 ms
    /// (kotz-ellis, section 6.2).
    pub struct ProcessSection {
        /// Number of processes: their numbers and strings are preserved.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000), extend("x-absent" = "20 with a pattern, else as many as in the \
        trace"))]
        count: Option<u32> = None,
        /// Duration of a prefetch action: a time such as "10ms", or "uniform:6ms:16ms".
        prefetch_action: String = "uniform:6ms:16ms".to_owned(),
        /// When the request of a prefetch action enters the disk's queue.
        action_issues: Issues = Issues::End,
        /// Minimum expected idle time for an action to begin.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        min_time: Nanos = Nanos::ZERO,
        /// Which of several idle processors takes the next action.
        idle_order: Order = Order::Longest,
        /// Minimum number of reads by which a processor's process must be ahead, towards its next barrier, of the
        /// process furthest behind, for an action to begin. 0: no minimum.
        min_slack: u32 = 0,
        /// Additional processors that only perform prefetch actions; if there are any, the other processors perform
        /// none. They serve the processes in turn.
        #[schemars(range(max = 100_000))]
        io_processors: u32 = 0,
        /// The processor whose node holds the buffer of a block.
        buffer_place: Place = Place::Shared,
        /// Time to read a block whose buffer is at another processor's node, in addition to `host.hit_time`.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        remote_cost: Nanos = Nanos::ZERO,
        /// Time for which a look-up holds the shared structures.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        contention: Nanos = Nanos::ZERO,
        /// The operations that hold the shared structures.
        contention_scope: Contends = Contends::LookUps,
        /// Minimum distance in references of a prefetched block from its string's cursor.
        min_lead: Position = 0,
        /// Maximum number of prefetched and unused blocks; 0: one per process.
        buffers: u32 = 0,
        /// Whether processors also prefetch blocks that only other processes will read.
        for_others: bool = true,
        /// Whose blocks an idle processor prefetches first.
        prefetch_for: PrefetchFor = PrefetchFor::Own,
    }
}

keys! {
    /// Where processes synchronise.
    pub struct BarrierSection {
        /// The reads that are counted.
        scope: Scope = Scope::Process,
        /// Reads between two barriers.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-absent" = "10 if the scope is process or all"))]
        every: Option<u32> = None,
    }
}

/// The reads between two barriers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    /// A number of each process's reads.
    Process,
    /// A number of all processes' reads together.
    All,
    /// Those of a sequential portion.
    Portion,
    /// No barriers.
    None,
}

/// When a request enters the queue.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Issues {
    /// When the action begins.
    Start,
    /// When the action ends.
    End,
}

/// Which processor comes first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// The one with the longest expected idle time.
    Longest,
    /// The one with the shortest expected idle time.
    Shortest,
    /// The one with the lowest number.
    Number,
    /// The one whose process has the fewest reads left before its next barrier.
    Slack,
}

/// The processor whose node holds the buffer of a block.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// Round-robin over all.
    Shared,
    /// The processor that fetches it, for its process or ahead.
    Requester,
    /// The processor that its disk is attached to: disk d to number d mod processors, of the I/O processors if there
    /// are any.
    Disk,
}

/// What contends for the shared structures.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Contends {
    /// Look-ups.
    LookUps,
    /// Look-ups and prefetch actions.
    All,
}

/// Processes of the original's machine (kotz-ellis, section 5.4).
const COUNT: u32 = 20;
/// Reads between two barriers (kotz-ellis, section 5.4).
const EVERY: u32 = 10;

/// Reads the section; also returns it as a table with all defaults.
pub fn read(mut table: Table) -> Result<(ProcessKeys, Table), KeyError> {
    let pattern = table.remove("pattern");
    let predictor = table.remove("predictor").map(read_predictor).transpose();
    let predictor = predictor.map_err(|error| error.within("predictor"))?;
    let (meets, barrier) = read_barrier(table.remove("barrier")).map_err(|error| error.within("barrier"))?;
    let mut resolved = defaults_of::<ProcessSection>();
    if pattern.is_some() {
        resolved.insert("count".into(), i64::from(COUNT).into());
    }
    resolved.extend(table);
    let raw: ProcessSection = read_keys(resolved.clone())?;
    let pattern = pattern.map(|pattern| read_pattern(pattern, raw.count.unwrap_or(COUNT))).transpose()?;
    let keys = ProcessKeys {
        count: raw.count,
        pattern,
        meets,
        action: action_time(&raw.prefetch_action)?,
        issues: match raw.action_issues {
            Issues::Start => ActionIssues::Start,
            Issues::End => ActionIssues::End,
        },
        min_time: raw.min_time,
        min_lead: raw.min_lead,
        buffers: raw.buffers,
        for_others: raw.for_others,
        order: match raw.idle_order {
            Order::Longest => IdleOrder::Longest,
            Order::Shortest => IdleOrder::Shortest,
            Order::Number => IdleOrder::Number,
            Order::Slack => IdleOrder::Slack,
        },
        min_slack: raw.min_slack,
        io_processors: raw.io_processors,
        buffer_place: match raw.buffer_place {
            Place::Shared => BufferPlace::Shared,
            Place::Requester => BufferPlace::Requester,
            Place::Disk => BufferPlace::Disk,
        },
        remote_cost: raw.remote_cost,
        prefetch_for: raw.prefetch_for,
        predictor,
        contention: raw.contention,
        actions_contend: matches!(raw.contention_scope, Contends::All),
    };
    if keys.prefetch_for == PrefetchFor::Critical && !keys.for_others {
        let problem = "\"critical\" prefetches for other processes, which for_others = false excludes";
        return Err(KeyError::new("prefetch_for", problem, "\"own\", or for_others = true"));
    }
    if keys.io_processors > 0 && !keys.for_others {
        let problem = "I/O processors have no process, and for_others = false excludes the other processes";
        return Err(KeyError::new("io_processors", problem, "0, or for_others = true"));
    }
    if keys.predictor.is_some() && keys.prefetch_for == PrefetchFor::Critical {
        let problem = "with a predictor, the future reads of processes are not known, nor which is behind";
        return Err(KeyError::new("prefetch_for", problem, "\"own\", or no predictor"));
    }
    if keys.predictor.is_some() && keys.min_lead > 0 {
        let problem = "with a predictor, the future reads of processes are not known, nor how far ahead a block is";
        return Err(KeyError::new("min_lead", problem, "0, or no predictor"));
    }
    // Sub-tables come last, with the keys that depend on them.
    resolved.remove("count");
    resolved.insert("barrier".into(), barrier.into());
    if let Some(count) = keys.count {
        resolved.insert("count".into(), i64::from(count).into());
    }
    if let Some((name, keys)) = &keys.predictor {
        let name = ("name".to_owned(), Value::from(*name));
        resolved.insert("predictor".into(), Table::from_iter([name].into_iter().chain(keys.clone())).into());
    }
    if let Some(PatternKeys { name, keys, .. }) = &keys.pattern {
        let name = ("name".to_owned(), Value::from(*name));
        resolved.insert("pattern".into(), Table::from_iter([name].into_iter().chain(keys.clone())).into());
    }
    Ok((keys, resolved))
}

fn read_pattern(pattern: Value, count: u32) -> Result<PatternKeys, KeyError> {
    let (name, given) = named_value(Some(pattern), "pattern", "")?;
    let row = patterns::pattern(&name)?;
    let mut keys = row.keys.defaults();
    keys.extend(given);
    Ok(PatternKeys { name: row.name, keys, count })
}

/// The predictor that a value names, with every default.
fn read_predictor(value: Value) -> Result<(&'static str, Table), KeyError> {
    let (name, given) = named_value(Some(value), "predictor", "")?;
    let mut keys = registry::policy(&name).map_or_else(|_| Table::new(), |row| row.keys.defaults());
    keys.extend(given);
    let parts = [("name", Value::from(name.clone())), ("keys", keys.clone().into())];
    predictor::named(&Table::from_iter(parts.map(|(key, value)| (key.to_owned(), value))), 1)?;
    Ok((registry::policy(&name)?.name, keys))
}

fn read_barrier(value: Option<Value>) -> Result<(Meets, Table), KeyError> {
    let scope = |scope: &str| Table::from_iter([("scope".to_owned(), Value::from(scope))]);
    let table = match value {
        None => scope("none"),
        Some(Value::String(word)) => scope(&word),
        Some(Value::Table(table)) => table,
        Some(other) => {
            let problem = format!("is a {}", other.type_str());
            return Err(KeyError::new("", problem, "{every = 10, scope = \"process\"}, or a scope"));
        }
    };
    let mut resolved = defaults_of::<BarrierSection>();
    resolved.extend(table);
    let BarrierSection { scope, every } = read_keys(resolved.clone())?;
    let reads = every.unwrap_or(EVERY);
    let meets = match scope {
        Scope::Process => Meets::Process(reads),
        Scope::All => Meets::All(reads),
        Scope::Portion => Meets::Portion,
        Scope::None => Meets::Never,
    };
    if matches!(scope, Scope::Process | Scope::All) {
        resolved.insert("every".into(), i64::from(reads).into());
    } else if every.is_some() {
        let allowed = "scope = \"process\" or \"all\", or no every";
        return Err(KeyError::new("every", "has no meaning with this scope", allowed));
    }
    Ok((meets, resolved))
}

fn action_time(text: &str) -> Result<ActionTime, KeyError> {
    let allowed = "a time such as \"10ms\", or \"uniform:6ms:16ms\"";
    let fail = |problem: String| KeyError::new("prefetch_action", problem, allowed);
    let time = |text: &str| text.parse::<Nanos>().map_err(&fail);
    let range = match text.strip_prefix("uniform:") {
        None => ActionTime { least: time(text)?, most: time(text)? },
        Some(range) => {
            let (least, most) = range.split_once(':').ok_or_else(|| fail(format!("\"{text}\" is not a range")))?;
            ActionTime { least: time(least)?, most: time(most)? }
        }
    };
    if range.least > range.most || range.most > COST_MAX {
        return Err(fail(format!("\"{text}\" is out of range")));
    }
    Ok(range)
}
