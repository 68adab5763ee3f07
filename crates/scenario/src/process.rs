//! Section `[process]`: processes as one parallel program.

use headstart_engine::parallel::{Contention, IdleOrder};
use headstart_trace::patterns;
use headstart_types::{as_text, defaults_of, keys, read_keys, KeyError, Nanos, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::action::{ActionIssues, ActionTime};
use super::limits::COST_MAX;
use super::policy::{named_value, text};

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
    /// Which of several idle processors takes on the next action.
    pub order: IdleOrder,
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

    /// The keys that are its policy's.
    #[must_use]
    pub fn policy_keys(&self) -> [(String, Value); 3] {
        [
            ("min_lead".to_owned(), i64::from(self.min_lead).into()),
            ("buffers".to_owned(), i64::from(self.buffers).into()),
            ("for_others".to_owned(), self.for_others.into()),
        ]
    }
}

keys! {
    /// Section `[process]`: processes as one parallel program. An action took 6 to 16 ms (kotz-ellis, section 6.2).
    pub struct ProcessSection {
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
    }
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
pub(super) const COUNT: u32 = 20;
/// Processes at most: their numbers and strings are kept.
pub(super) const COUNT_MAX: u32 = 100_000;
/// Reads between two meetings (kotz-ellis, section 5.4).
const EVERY: i64 = 10;

/// Reads the section; returns it with all defaults as a table too.
pub fn read(mut table: Table) -> Result<(ProcessKeys, Table), KeyError> {
    let count = table.remove("count");
    let mut count = read_count(count)?;
    let pattern = match table.contains_key("pattern") {
        true => Some(read_pattern(&mut table, *count.get_or_insert(COUNT))?),
        false => None,
    };
    let (meets, barrier) = read_barrier(table.remove("barrier")).map_err(|error| error.within("barrier"))?;
    let mut resolved = defaults_of::<ProcessSection>();
    resolved.extend(table);
    let raw: ProcessSection = read_keys(resolved.clone())?;
    let keys = ProcessKeys {
        count,
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
        },
        contention: raw.contention,
        actions_contend: matches!(raw.contention_scope, Contends::All),
    };
    resolved.insert("barrier".into(), barrier.into());
    if let Some(count) = keys.count {
        resolved.insert("count".into(), i64::from(count).into());
    }
    if let Some(PatternKeys { name, keys, .. }) = &keys.pattern {
        let name = ("name".to_owned(), Value::from(*name));
        resolved.insert("pattern".into(), Table::from_iter([name].into_iter().chain(keys.clone())).into());
    }
    Ok((keys, resolved))
}

fn read_count(count: Option<Value>) -> Result<Option<u32>, KeyError> {
    let count = match count {
        None => return Ok(None),
        Some(Value::Integer(count)) => count,
        Some(other) => return Err(KeyError::new("count", format!("{other} is no number"), "a whole number from 1")),
    };
    if !(1..=i64::from(COUNT_MAX)).contains(&count) {
        let allowed = format!("a whole number from 1 to {COUNT_MAX}");
        return Err(KeyError::new("count", format!("{count} is out of range"), allowed));
    }
    Ok(Some(count as u32))
}

fn read_pattern(table: &mut Table, count: u32) -> Result<PatternKeys, KeyError> {
    let (name, given) = named_value(table.remove("pattern"), "pattern", "")?;
    let row = patterns::pattern(&name)?;
    let mut keys = row.keys.defaults();
    keys.extend(given);
    Ok(PatternKeys { name: row.name, keys, count })
}

fn read_barrier(value: Option<Value>) -> Result<(Meets, Table), KeyError> {
    const SCOPES: [&str; 4] = ["process", "all", "portion", "none"];
    let mut table = match value {
        None => Table::from_iter([("scope".to_owned(), Value::from("none"))]),
        Some(Value::String(scope)) => Table::from_iter([("scope".to_owned(), scope.into())]),
        Some(Value::Table(table)) => table,
        Some(other) => {
            let problem = format!("is a {}", other.type_str());
            return Err(KeyError::new("", problem, "{every = 10, scope = \"process\"}, or a scope"));
        }
    };
    let scope = text(&mut table, "scope", "process")?;
    let every = table.remove("every");
    if let Some(key) = table.keys().next() {
        return Err(KeyError::unknown_key(key, ["every", "scope"].into_iter()));
    }
    let counts = scope == "process" || scope == "all";
    let every = match every {
        None => EVERY,
        Some(_) if !counts => {
            let problem = format!("means nothing with scope = \"{scope}\"");
            return Err(KeyError::new("every", problem, "scope = \"process\" or \"all\", or no every"));
        }
        Some(Value::Integer(every)) => every,
        Some(other) => return Err(KeyError::new("every", format!("{other} is no number"), "a whole number from 1")),
    };
    if !(1..=i64::from(u32::MAX)).contains(&every) {
        return Err(KeyError::new("every", format!("{every} is out of range"), "a whole number from 1"));
    }
    let meets = match scope.as_str() {
        "process" => Meets::Process(every as u32),
        "all" => Meets::All(every as u32),
        "portion" => Meets::Portion,
        "none" => Meets::Never,
        other => return Err(KeyError::unknown("scope", "scope", other, SCOPES.into_iter())),
    };
    let mut resolved = Table::from_iter([("scope".to_owned(), Value::from(scope))]);
    if counts {
        resolved.insert("every".into(), every.into());
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
