//! Every policy and replacement by name: one row each. Help, docs and the conformance tests iterate these tables.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toml::Table;

use headstart_types::{typed_keys, Block, Disk, KeyError, Nanos, Position, Program};

use crate::hinted::{self, BatchSize, FetchRatio, Hinted, Knowledge, Replay, Strategy};
use crate::{parallel, Apart, Asking, Hints, Policy};

pub use crate::replacement::{replacement, BuildReplacement, ReplacementRow, REPLACEMENTS};

/// What a host tells about the level that a policy is built for.
#[derive(Clone)]
pub struct Context {
    /// K: frames of the cache, at least 1.
    pub frames: u32,
    /// Blocks resident at the start, least recently used first; at most `frames`.
    pub initial: Vec<Block>,
    /// Independent disks, at least 1.
    pub disks: usize,
    /// The disk of each block known so far.
    pub disk_of: Arc<[Disk]>,
    /// The replacement of a policy that leaves it open.
    pub replacement: &'static ReplacementRow,
    /// Its keys.
    pub replacement_keys: Table,
    /// Disclosed references; `None` if the row does not ask for them.
    pub hints: Option<Arc<Hints>>,
    /// What the processes of a parallel program will read; `None` where there is but one process that says nothing.
    /// Of policies that work from `hints` several processes share those, whose positions are then their merged order.
    pub program: Option<Arc<Program>>,
    /// The devices' typical service time of one block.
    pub nominal_service: Nanos,
    /// Every fetch takes exactly `nominal_service`.
    pub uniform: bool,
    /// Mean think time.
    pub mean_compute: Nanos,
    /// Every think time is exactly `mean_compute`, nothing else takes processor time, and the disks do nothing but the
    /// level's fetches, each as soon as they can: the model of the theory.
    pub constant_compute: bool,
}

/// How a row makes its policy.
pub type Build = fn(Table, &Context) -> Result<Box<dyn Policy>, KeyError>;

/// A policy's row.
pub struct PolicyRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it works from disclosed references.
    pub hinted: bool,
    /// Whether it is for parallel programs only: it needs [`Context::program`] and idle processors.
    pub parallel: bool,
    /// Whether `replacement` is left open.
    pub open_replacement: bool,
    /// The replacement where it is left open and not given.
    pub default_replacement: &'static str,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// Keys whose default depends on the run, and what it is, in words.
    pub computed: &'static [(&'static str, &'static str)],
    /// Builds it from its keys (without `name`, `hints` and `replacement`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: Build,
}

/// The policies.
pub static POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: "demand",
        summary: "no prefetching: a missing block is fetched when it is referenced",
        source: "kimbrel96, section 4.1 (with replacement min)",
        hinted: false,
        parallel: false,
        open_replacement: true,
        default_replacement: "lru",
        defaults: Table::new,
        computed: &[],
        build: |keys, context| {
            typed_keys::<NoKeys>(keys)?;
            (context.replacement.on_demand)(context.replacement_keys.clone(), context)
                .map_err(|error| error.within("replacement"))
        },
    },
    PolicyRow {
        name: "fixed-horizon",
        summary: "fetch each missing block once it is at most H references ahead",
        source: "kimbrel96, sections 2.3 and 2.7",
        hinted: true,
        parallel: false,
        open_replacement: false,
        default_replacement: "lru",
        defaults: defaults::<FixedHorizonKeys>,
        computed: &[],
        build: |keys, context| {
            let keys: FixedHorizonKeys = typed_keys(keys)?;
            Ok(hinted(context, hinted::FixedHorizon { horizon: keys.horizon }))
        },
    },
    PolicyRow {
        name: "aggressive",
        summary: "whenever a disk is free, fetch its next missing blocks unless that does harm",
        source: "kimbrel96, sections 2.4 and 2.7",
        hinted: true,
        parallel: false,
        open_replacement: false,
        default_replacement: "lru",
        defaults: defaults::<AggressiveKeys>,
        computed: &[],
        build: |keys, context| {
            let keys: AggressiveKeys = typed_keys(keys)?;
            Ok(hinted(context, hinted::Aggressive::new(keys.batch_size.on(context.disks))))
        },
    },
    PolicyRow {
        name: "reverse-aggressive",
        summary: "an off-line schedule made on the reversed references, which balances the disks",
        source: "kimbrel96, sections 2.5 and 2.7",
        hinted: true,
        parallel: false,
        open_replacement: false,
        default_replacement: "lru",
        defaults: defaults::<ReverseAggressiveKeys>,
        computed: &[
            ("fetch_ratio", "the device's typical service time over the mean think time"),
            ("batch_size", "1 on a uniform device, \"table6\" elsewhere"),
            ("forward_batch_size", "as batch_size"),
            ("replay", "\"mirror\" on a uniform device with every reference disclosed, \"released\" elsewhere"),
        ],
        build: build_reverse_aggressive,
    },
    PolicyRow {
        name: "forestall",
        summary: "prefetch like aggressive, but only once a stall is foreseen",
        source: "kimbrel96, section 5",
        hinted: true,
        parallel: false,
        open_replacement: false,
        default_replacement: "lru",
        defaults: defaults::<ForestallKeys>,
        computed: &[("lookahead", "twice the blocks of the cache")],
        build: |keys, context| {
            let keys: ForestallKeys = typed_keys(keys)?;
            let lookahead = keys.lookahead.unwrap_or(context.frames.saturating_mul(2));
            let batch_size = keys.batch_size.on(context.disks);
            let strategy = hinted::Forestall::new(keys.fetch_ratio, batch_size, lookahead, keys.horizon, context.disks);
            Ok(hinted(context, strategy))
        },
    },
    PolicyRow {
        name: "optimum",
        summary: "the least elapsed time of all schedules, by exhaustive search (tiny instances only)",
        source: "kimbrel96, section 2.1",
        hinted: true,
        parallel: false,
        open_replacement: false,
        default_replacement: "lru",
        defaults: Table::new,
        computed: &[],
        build: build_optimum,
    },
    PolicyRow {
        name: "rapid-transit",
        summary: "idle processors prefetch what the processes of a parallel program will read",
        source: "Kotz and Ellis, RAPID Transit, sections 5.1 and 5.4",
        hinted: false,
        parallel: true,
        open_replacement: true,
        default_replacement: "ru-set",
        defaults: defaults::<RapidTransitKeys>,
        computed: &[],
        build: build_rapid_transit,
    },
];

/// The row of policy `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn policy(name: &str) -> Result<&'static PolicyRow, KeyError> {
    let unknown = || KeyError::unknown("name", "policy", name, POLICIES.iter().map(|row| row.name));
    POLICIES.iter().find(|row| row.name == name).ok_or_else(unknown)
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FixedHorizonKeys {
    horizon: Position,
}

impl Default for FixedHorizonKeys {
    fn default() -> Self {
        Self { horizon: hinted::HORIZON }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AggressiveKeys {
    batch_size: BatchSize,
}

impl Default for AggressiveKeys {
    fn default() -> Self {
        Self { batch_size: BatchSize::Table6 }
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ReverseAggressiveKeys {
    /// F. Absent: the device's typical service time over the mean think time.
    #[serde(skip_serializing_if = "Option::is_none")]
    fetch_ratio: Option<f64>,
    /// Absent: 1 on a uniform device (the theory), Table 6 elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<BatchSize>,
    /// Absent: `batch_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    forward_batch_size: Option<BatchSize>,
    /// Absent: `mirror` on a uniform device with all references disclosed, `released` elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ForestallKeys {
    fetch_ratio: FetchRatio,
    batch_size: BatchSize,
    /// Absent: 2K.
    #[serde(skip_serializing_if = "Option::is_none")]
    lookahead: Option<Position>,
    horizon: Position,
}

impl Default for ForestallKeys {
    fn default() -> Self {
        Self {
            fetch_ratio: FetchRatio::Dynamic,
            batch_size: BatchSize::Table6,
            lookahead: None,
            horizon: hinted::HORIZON,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RapidTransitKeys {
    /// The most blocks prefetched and not used. 0: one for each process.
    buffers: u32,
    /// The fewest references from a string's cursor to what is prefetched of it.
    min_lead: Position,
    /// Whether a processor prefetches what only other processes will read.
    for_others: bool,
}

impl Default for RapidTransitKeys {
    fn default() -> Self {
        Self { buffers: 0, min_lead: 0, for_others: true }
    }
}

fn defaults<K: Default + Serialize>() -> Table {
    Table::try_from(K::default()).expect("keys are plain values")
}

fn context_hints(context: &Context) -> Arc<Hints> {
    context.hints.clone().expect("the host gives hints to rows that are `hinted`")
}

fn hinted<S: Strategy + 'static>(context: &Context, strategy: S) -> Box<dyn Policy> {
    let hints = context_hints(context);
    let knowledge = Knowledge::new(hints, &context.initial, context.disk_of.clone(), context.disks);
    Box::new(Hinted::new(knowledge, strategy, processes(context)))
}

/// Processes that share the level.
fn processes(context: &Context) -> u32 {
    context.program.as_ref().map_or(1, |program| program.string_of.len().max(1) as u32)
}

/// Refuses `name` to several processes.
fn for_one_process(name: &str, context: &Context) -> Result<(), KeyError> {
    if processes(context) == 1 {
        return Ok(());
    }
    let problem = format!("{name} plans for one process, whose references come in a known order");
    Err(KeyError::new("name", problem, "fixed-horizon, aggressive, forestall, or one process"))
}

fn build_reverse_aggressive(keys: Table, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    let keys: ReverseAggressiveKeys = typed_keys(keys)?;
    for_one_process("reverse-aggressive", context)?;
    let theory = context.uniform;
    let whole = context_hints(context).disclosure == crate::Disclosure::All;
    let replay = keys.replay.unwrap_or(if theory && whole { Replay::Mirror } else { Replay::Released });
    if replay == Replay::Mirror && !(theory && whole) {
        let problem =
            "mirror replays at planned times, which hold only on a uniform device with every reference disclosed";
        return Err(KeyError::new("replay", problem, "\"released\""));
    }
    let compute = context.mean_compute.max(Nanos(1));
    let fetch = match keys.fetch_ratio {
        None => context.nominal_service,
        Some(ratio) if ratio > 0.0 && ratio.is_finite() => Nanos((ratio * compute.0 as f64).round().max(1.0) as u64),
        Some(ratio) => {
            return Err(KeyError::new("fetch_ratio", format!("{ratio} is out of range"), "a number above 0"));
        }
    };
    let batch = keys.batch_size.unwrap_or(if theory { BatchSize::Fixed(1) } else { BatchSize::Table6 });
    let setting = hinted::ReverseSetting {
        frames: context.frames as usize,
        disks: context.disks,
        compute,
        fetch: fetch.max(Nanos(1)),
        batch_size: batch.on(context.disks),
        forward_batch_size: keys.forward_batch_size.unwrap_or(batch).on(context.disks),
        replay,
    };
    Ok(hinted(context, hinted::ReverseAggressive::new(setting)))
}

fn build_optimum(keys: Table, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    for_one_process("optimum", context)?;
    let hints = context_hints(context);
    let refused = |problem: &str, allowed: &str| Err(KeyError::new("name", problem, allowed));
    if !(context.uniform && context.constant_compute) || context.mean_compute == Nanos::ZERO {
        return refused(
            "optimum is defined for one level on a uniform device, one constant think time and nothing else",
            "device.model = \"uniform\", workload.compute = a time above zero, no [host] costs, no level below, no \
             [process], no writes to the device",
        );
    }
    if hints.disclosure != crate::Disclosure::All {
        return refused("optimum needs every reference disclosed", "no policy.hints");
    }
    let instance = hinted::OptimumInstance {
        references: hints.blocks.to_vec(),
        initial: context.initial.clone(),
        frames: context.frames as usize,
        disk_of: context.disk_of.to_vec(),
        disks: context.disks,
        compute: context.mean_compute,
        fetch: context.nominal_service,
    };
    let optimum = hinted::Optimum::try_new(&instance)
        .map_err(|large| KeyError::new("name", large.to_string(), "a smaller instance, or another policy"))?;
    Ok(hinted(context, optimum))
}

fn build_rapid_transit(keys: Table, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    let keys: RapidTransitKeys = typed_keys(keys)?;
    let Some(program) = context.program.clone() else {
        let problem = "rapid-transit works from what the processes of a parallel program will read";
        return Err(KeyError::new("name", problem, "[process] with a pattern, or another policy"));
    };
    if context.replacement.hinted {
        let problem = format!("{} knows only what is referenced, rapid-transit fetches more", context.replacement.name);
        return Err(KeyError::new("replacement", problem, "a replacement without hints"));
    }
    let replacement = (context.replacement.build)(context.replacement_keys.clone(), context)
        .map_err(|error| error.within("replacement"))?;
    let buffers = if keys.buffers == 0 { program.string_of.len() as u32 } else { keys.buffers };
    let setting = parallel::Setting { buffers, min_lead: keys.min_lead, for_others: keys.for_others };
    let asking = Asking::new(Box::new(Apart(replacement, None)), context.frames);
    Ok(Box::new(parallel::RapidTransit::new(asking, program, setting)))
}
