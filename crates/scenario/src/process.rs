//! Section `[process]`: processes as one parallel program.

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

/// Where processes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// Nowhere.
    Never,
    /// Each after so many reads of its own.
    Process(u32),
    /// All after so many reads together.
    All(u32),
    /// After each sequential portion.
    Portion,
}

/// What processes read.
#[derive(Debug, Clone)]
pub struct PatternKeys {
    /// The name of its row.
    pub name: &'static str,
    /// Its own keys, every default included.
    pub keys: Table,
    /// How many processes.
    pub count: u32,
}

/// Processes as one parallel program.
#[derive(Debug, Clone)]
pub struct ProcessKeys {
    /// How many; `None`: as many as the trace has.
    pub count: Option<u32>,
    /// What they read; `None`: the trace's processes read what they read there.
    pub pattern: Option<PatternKeys>,
    /// Where they meet.
    pub meets: Meets,
    /// What a prefetch action takes.
    pub action: ActionTime,
    /// When its request enters the disk's queue.
    pub issues: ActionIssues,
    /// No action begins that is not expected to have this much idle time before it.
    pub min_time: Nanos,
    /// No block is prefetched that is fewer references beyond its string's cursor.
    pub min_lead: Position,
    /// Blocks prefetched and not used at most; 0: one for each process.
    pub buffers: u32,
    /// Processors prefetch what only other processes will read.
    pub for_others: bool,
    /// Whose blocks are prefetched first.
    pub prefetch_for: PrefetchFor,
    /// What predicts the blocks that are prefetched: its name and keys; `None`: they are known beforehand.
    pub predictor: Option<(&'static str, Table)>,
    /// Which of several idle processors takes on the next action.
    pub order: IdleOrder,
    /// No action begins on a processor whose process has not so many reads less to its next meeting than the one that has most.
    pub min_slack: u32,
    /// Processors beside those of the processes that do nothing but prefetch actions; then no other does.
    pub io_processors: u32,
    /// At which node a block's buffer is.
    pub buffer_place: BufferPlace,
    /// What reading a block costs whose buffer is at another node.
    pub remote_cost: Nanos,
    /// Time for which a look-up holds the shared structures.
    pub contention: Nanos,
    /// So does a prefetch action, beside the time that it takes.
    pub actions_contend: bool,
}

impl ProcessKeys {
    /// The shared structures.
    #[must_use]
    pub fn contends(&self) -> Contention {
        Contention::new(self.contention, self.actions_contend)
    }

    /// Where the buffers of `processes` processes are; `None` where that costs nothing.
    #[must_use]
    pub fn buffers_of(&self, processes: usize) -> Option<Buffers> {
        Buffers::new(self.buffer_place, self.remote_cost, (processes as u32, self.io_processors))
    }

    /// The keys that are its policy's; a block has `block_bytes` bytes.
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
    /// Section `[process]`: processes as one parallel program. An action took 6 to 16 ms (kotz-ellis, section 6.2).
    pub struct ProcessSection {
        /// How many processes: their numbers and strings are kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000), extend("x-absent" = "20 beside a pattern, else as many as the trace has"))]
        count: Option<u32> = None,
        /// What a prefetch action takes: a time such as "10ms", or "uniform:6ms:16ms".
        prefetch_action: String = "uniform:6ms:16ms".to_owned(),
        /// When the request of a prefetch action enters the disk's queue.
        action_issues: Issues = Issues::End,
        /// No action begins that is not expected to have this much idle time before it.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        min_time: Nanos = Nanos::ZERO,
        /// Which of several idle processors takes on the next action.
        idle_order: Order = Order::Longest,
        /// No action begins on a processor whose process has not at least so many reads less to its next meeting than the one that has
        /// most. 0: on any.
        min_slack: u32 = 0,
        /// Processors beside those of the processes, which do nothing but prefetch actions; where there are any, no other processor
        /// does. They take the processes in turn.
        #[schemars(range(max = 100_000))]
        io_processors: u32 = 0,
        /// At which processor's node the buffer of a block is.
        buffer_place: Place = Place::Shared,
        /// What reading a block takes beside `host.hit_time` if its buffer is at another processor's node.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        remote_cost: Nanos = Nanos::ZERO,
        /// Time for which a look-up holds the shared structures.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        contention: Nanos = Nanos::ZERO,
        /// What holds the shared structures.
        contention_scope: Contends = Contends::LookUps,
        /// No block is prefetched that is fewer references beyond its string's cursor.
        min_lead: Position = 0,
        /// Blocks prefetched and not used at most; 0: one for each process.
        buffers: u32 = 0,
        /// Processors prefetch what only other processes will read, too.
        for_others: bool = true,
        /// Whose blocks an idle processor prefetches first.
        prefetch_for: PrefetchFor = PrefetchFor::Own,
    }
}

keys! {
    /// Where processes meet.
    pub struct BarrierSection {
        /// After which reads.
        scope: Scope = Scope::Process,
        /// Reads between two meetings.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-absent" = "10 where the scope is process or all"))]
        every: Option<u32> = None,
    }
}

/// Which reads lie between two meetings.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    /// So many of each process.
    Process,
    /// So many of all together.
    All,
    /// Those of a sequential portion.
    Portion,
    /// All: they do not meet.
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
    /// The one that expects the longest idle time.
    Longest,
    /// The one that expects the shortest idle time.
    Shortest,
    /// The one of the lowest number.
    Number,
    /// The one whose process has least to read before its next meeting.
    Slack,
}

/// At which processor's node the buffer of a block is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// Any: one after the other.
    Shared,
    /// That of the processor that fetches it, for its process or ahead.
    Requester,
    /// That of the processor that its disk is attached to: disk d to number d mod processors, of the I/O processors if there are any.
    Disk,
}

/// What contends.
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
/// Reads between two meetings (kotz-ellis, section 5.4).
const EVERY: u32 = 10;

/// Reads the section; returns it with all defaults as a table too.
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
        let problem = "\"critical\" prefetches for other processes, which for_others = false rules out";
        return Err(KeyError::new("prefetch_for", problem, "\"own\", or for_others = true"));
    }
    if keys.io_processors > 0 && !keys.for_others {
        let problem = "I/O processors have no process of their own, and for_others = false rules out the others";
        return Err(KeyError::new("io_processors", problem, "0, or for_others = true"));
    }
    if keys.predictor.is_some() && keys.prefetch_for == PrefetchFor::Critical {
        let problem = "what processes will read is not known with a predictor, nor who is behind";
        return Err(KeyError::new("prefetch_for", problem, "\"own\", or no predictor"));
    }
    if keys.predictor.is_some() && keys.min_lead > 0 {
        let problem = "what processes will read is not known with a predictor, nor how far ahead a block is";
        return Err(KeyError::new("min_lead", problem, "0, or no predictor"));
    }
    // Tables of their own come last, and what depends on them.
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
        return Err(KeyError::new("every", "means nothing with this scope", allowed));
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
            let (least, most) = range.split_once(':').ok_or_else(|| fail(format!("\"{text}\" is no range")))?;
            ActionTime { least: time(least)?, most: time(most)? }
        }
    };
    if range.least > range.most || range.most > COST_MAX {
        return Err(fail(format!("\"{text}\" is out of range")));
    }
    Ok(range)
}
