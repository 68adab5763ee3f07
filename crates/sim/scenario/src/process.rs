//! Section `[process]`: the processes of a parallel program.

use headstart_engine::parallel::{BufferPlace, Buffers, Contention, IdleOrder};
use headstart_policy::parallel::{PrefetchFor, RapidTransitKeys};
use headstart_policy::predictor;
use headstart_policy::registry::PolicyRow;
use headstart_trace::patterns;
use headstart_types::{as_text, keys, read_keys, Chosen, KeyError, Nanos, Position, TypedKeys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::action::{ActionIssues, ActionTime};
use super::limits::COST_MAX;
use super::policy::named_value;

/// Barriers, where processes synchronise.
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
    /// The keys, with all defaults.
    pub section: ProcessSection,
    /// Their access pattern; `None`: the trace's processes read what the trace contains.
    pub pattern: Option<PatternKeys>,
    barrier: BarrierSection,
    /// Where they synchronise.
    pub meets: Meets,
    /// The duration of a prefetch action.
    pub action: ActionTime,
    /// The predictor of the blocks that are prefetched; `None`: they are known in advance.
    pub predictor: Option<Chosen<PolicyRow>>,
}

/// Keys that the policy gets.
pub const POLICY_KEYS: [&str; 5] = ["min_lead", "buffers", "for_others", "prefetch_for", "predictor"];

/// Keys about prefetch actions.
pub const ACTION_KEYS: [&str; 12] = [
    "prefetch_action",
    "action_issues",
    "min_time",
    "min_lead",
    "buffers",
    "for_others",
    "prefetch_for",
    "predictor",
    "idle_order",
    "min_slack",
    "io_processors",
    "contention_scope",
];

impl ProcessKeys {
    /// The contention for the shared structures.
    #[must_use]
    pub fn contends(&self) -> Contention {
        Contention::new(self.section.contention, self.section.contention_scope == Contends::All)
    }

    /// The placement of the buffers of `processes` processes; `None` if it costs nothing.
    #[must_use]
    pub fn buffers_of(&self, processes: usize) -> Option<Buffers> {
        let ProcessSection { buffer_place, remote_cost, io_processors, .. } = self.section;
        Buffers::new(buffer_place, remote_cost, (processes as u32, io_processors))
    }

    /// The keys of its policy; a block has `block_bytes` bytes.
    #[must_use]
    pub fn policy_keys(&self, block_bytes: u64) -> TypedKeys {
        let ProcessSection { min_lead, buffers, for_others, prefetch_for, .. } = self.section;
        let predictor = self.predictor.clone().map(|predictor| (predictor, block_bytes));
        TypedKeys::new(RapidTransitKeys { min_lead, buffers, for_others, prefetch_for, predictor })
    }

    /// The section with all defaults; with those of prefetch actions if there are `actions`.
    pub(crate) fn table(&self, actions: bool) -> Table {
        let mut table = Table::try_from(&self.section).expect("plain values");
        let count = table.remove("count");
        table.insert("barrier".into(), Value::try_from(&self.barrier).expect("plain values"));
        table.extend(count.map(|count| ("count".to_owned(), count)));
        if let Some(predictor) = &self.predictor {
            table.insert("predictor".into(), predictor.table().into());
        }
        if let Some(PatternKeys { name, keys, .. }) = &self.pattern {
            let name = ("name".to_owned(), Value::from(*name));
            table.insert("pattern".into(), Table::from_iter([name].into_iter().chain(keys.clone())).into());
        }
        if !actions {
            // They would be refused: a resolved scenario can be run again.
            ACTION_KEYS.iter().for_each(|key| drop(table.remove(*key)));
        }
        table
    }
}

keys! {
    /// Section `[process]`: the processes of a parallel program. In RAPID Transit, a prefetch action took 6 to 16 ms
    /// (kotz-ellis, section 6.2).
    pub struct ProcessSection {
        /// Number of processes. Their numbers and reference strings are preserved.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000), extend("x-absent" = "20 with a pattern, else as many as in the \
        trace"))]
        pub count: Option<u32> = None,
        /// Duration of a prefetch action: a time such as "10ms", or "uniform:6ms:16ms".
        prefetch_action: String = "uniform:6ms:16ms".to_owned(),
        /// When the request of a prefetch action enters the disk's queue.
        pub action_issues: ActionIssues = ActionIssues::End,
        /// Minimum expected idle time for an action to begin.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub min_time: Nanos = Nanos::ZERO,
        /// Which of several idle processors takes the next action.
        pub idle_order: IdleOrder = IdleOrder::Longest,
        /// Minimum lead for an action to begin: the number of reads by which the processor's process must be closer to
        /// its next barrier than the process furthest behind. 0: no minimum.
        pub min_slack: u32 = 0,
        /// Number of additional processors that only perform prefetch actions, for the processes in turn. If there are
        /// any, the other processors perform none.
        #[schemars(range(max = 100_000))]
        pub io_processors: u32 = 0,
        /// The processor whose node holds a block's buffer.
        pub buffer_place: BufferPlace = BufferPlace::Shared,
        /// Additional time to read a block whose buffer is on another processor's node.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub remote_cost: Nanos = Nanos::ZERO,
        /// Time for which an operation holds the shared structures.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        pub contention: Nanos = Nanos::ZERO,
        /// The operations that hold the shared structures.
        pub contention_scope: Contends = Contends::LookUps,
        /// Minimum distance in references of a prefetched block from its string's cursor.
        pub min_lead: Position = 0,
        /// Maximum number of blocks that are prefetched and not used yet. 0: one per process.
        pub buffers: u32 = 0,
        /// Whether processors also prefetch blocks that only other processes will read.
        pub for_others: bool = true,
        /// Which process's blocks an idle processor prefetches first.
        pub prefetch_for: PrefetchFor = PrefetchFor::Own,
    }
}

keys! {
    /// Barriers, where processes synchronise.
    pub struct BarrierSection {
        /// The reads that are counted.
        scope: Scope = Scope::Process,
        /// Number of reads between two barriers.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-absent" = "10 if the scope is process or all"))]
        every: Option<u32> = None,
    }
}

/// Which reads between two barriers are counted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    /// A number of each process's reads.
    Process,
    /// A number of all processes' reads together.
    All,
    /// The reads of a sequential portion.
    Portion,
    /// No barriers.
    None,
}

/// Which operations contend for the shared structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contends {
    /// Look-ups.
    LookUps,
    /// Look-ups and prefetch actions.
    All,
}

/// Processes of the original's machine (kotz-ellis, section 5.4).
const COUNT: u32 = 20;
/// Reads between two barriers (kotz-ellis, section 5.4).
const EVERY: u32 = 10;

/// Reads the section.
pub fn read(mut table: Table) -> Result<ProcessKeys, KeyError> {
    let pattern = table.remove("pattern");
    let predictor = table.remove("predictor").map(read_predictor).transpose();
    let predictor = predictor.map_err(|error| error.within("predictor"))?;
    let (meets, barrier) = read_barrier(table.remove("barrier")).map_err(|error| error.within("barrier"))?;
    let mut section: ProcessSection = read_keys(table)?;
    if pattern.is_some() {
        section.count.get_or_insert(COUNT);
    }
    let pattern = pattern.map(|pattern| read_pattern(pattern, section.count.unwrap_or(COUNT))).transpose()?;
    let action = action_time(&section.prefetch_action)?;
    let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
    let critical = section.prefetch_for == PrefetchFor::Critical;
    if critical && !section.for_others {
        let problem = "\"critical\" prefetches for other processes, which for_others = false excludes";
        return refused("prefetch_for", problem, "\"own\", or for_others = true");
    }
    if section.io_processors > 0 && !section.for_others {
        let problem = "I/O processors have no process, and for_others = false excludes the other processes";
        return refused("io_processors", problem, "0, or for_others = true");
    }
    if predictor.is_some() && critical {
        let problem = "with a predictor, the future reads of processes are not known, nor which is behind";
        return refused("prefetch_for", problem, "\"own\", or no predictor");
    }
    if predictor.is_some() && section.min_lead > 0 {
        let problem = "with a predictor, the future reads of processes are not known, nor how far ahead a block is";
        return refused("min_lead", problem, "0, or no predictor");
    }
    Ok(ProcessKeys { section, pattern, barrier, meets, action, predictor })
}

fn read_pattern(pattern: Value, count: u32) -> Result<PatternKeys, KeyError> {
    let (name, given) = named_value(Some(pattern), "pattern", "")?;
    let row = patterns::pattern(&name)?;
    let mut keys = row.keys.defaults();
    keys.extend(given);
    Ok(PatternKeys { name: row.name, keys, count })
}

fn read_predictor(value: Value) -> Result<Chosen<PolicyRow>, KeyError> {
    let (name, given) = named_value(Some(value), "predictor", "")?;
    predictor::named(&name, given)
}

fn read_barrier(value: Option<Value>) -> Result<(Meets, BarrierSection), KeyError> {
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
    let mut section: BarrierSection = read_keys(table)?;
    let reads = section.every.unwrap_or(EVERY);
    let meets = match section.scope {
        Scope::Process => Meets::Process(reads),
        Scope::All => Meets::All(reads),
        Scope::Portion => Meets::Portion,
        Scope::None => Meets::Never,
    };
    if matches!(section.scope, Scope::Process | Scope::All) {
        section.every = Some(reads);
    } else if section.every.is_some() {
        let allowed = "scope = \"process\" or \"all\", or no every";
        return Err(KeyError::new("every", "has no meaning with this scope", allowed));
    }
    Ok((meets, section))
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
