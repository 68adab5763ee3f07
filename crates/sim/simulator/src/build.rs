//! Builds a machine from a scenario's sections: policies, levels and processes.

use headstart_engine::parallel::{ActionSetup, Barrier, Draws, Scope, Strings};
use headstart_engine::{
    Actions, Client, Clusters, Costs, Cursor, IssueMode, Level, Parallel, Process, Reads, Share, Stack, System, Tier,
};
use headstart_layout::Places;
use headstart_policy::coordinator::registry::coordinator;
use headstart_policy::coordinator::CoordinatorContext;
use headstart_policy::readahead::{BuildReadAhead, ReadAheadContext};
use headstart_policy::registry::{Beside, Context};
use headstart_policy::{Policy, RequestPolicy};
use headstart_scenario::{
    share_of, ActionIssues, Arrival, CacheSize, Issue, LowerKeys, LowerSize, Meets, PolicyKeys, ProcessKeys, Processes,
    Scenario,
};
use headstart_types::{Chunk, KeyError, Meetings, Position, Program};

use crate::read_ahead_env::ReadAheadEnv;
use crate::run::Machine;
use crate::storage::Storage;
use crate::workload::{References, Supplied, Thinker};
use crate::Error;

/// The policy of a level. A policy without hints handles whole requests if `asking`.
///
/// # Errors
/// A key of the policy.
pub fn policy(
    keys: &PolicyKeys,
    context: &Context,
    env: &ReadAheadEnv,
    asking: bool,
) -> Result<Box<dyn Policy>, KeyError> {
    let by_blocks = !asking || keys.name != "demand";
    if !keys.takes_requests() && by_blocks {
        return keys.row().build(keys.keys.clone(), context);
    }
    let with_replacement = |read_ahead| {
        let joined = (keys.replacement.join)(keys.replacement_keys.clone(), context, Beside::Requests(read_ahead));
        joined.map_err(|error| error.within("replacement"))
    };
    let frames = context.frames;
    let Some(reads_ahead) = keys.row().reads_ahead() else { return with_replacement(None) };
    let ReadAheadEnv { block_bytes, drive, future, initial_places } = env.clone();
    let read_ahead_context = ReadAheadContext { block_bytes, frames, drive, future };
    match reads_ahead.build {
        BuildReadAhead::Separate(make) => with_replacement(Some(make(keys.keys.clone(), &read_ahead_context)?)),
        BuildReadAhead::WithReplacement(make) => {
            let mut parts = make(keys.keys.clone(), &read_ahead_context)?;
            // A host's replacement has already learnt of them from the context.
            for (block, (file, index)) in context.initial.iter().zip(&*initial_places) {
                parts.placed(*block, *file, *index);
                parts.inserted(*block);
            }
            Ok(Box::new(RequestPolicy::new(parts, frames)))
        }
    }
}

/// The parts of a machine, besides the first level's policy context.
pub struct Parts {
    /// The references of all processes.
    pub references: References,
    /// The places of the blocks.
    pub places: Places,
    /// All references by process, if the first level's policy needs them in advance.
    pub chunks: Vec<Chunk>,
    /// By process: the positions of its references, if several share hints; else empty.
    pub positions: Vec<Vec<Position>>,
    pub storage: Storage,
    /// The context from which the first level's policy is built.
    pub context: Context,
    /// The additional input of read-aheads.
    pub env: ReadAheadEnv,
}

/// The costs charged to a process.
#[must_use]
pub fn costs(scenario: &Scenario) -> Costs {
    let host = &scenario.host;
    Costs {
        driver: host.driver_overhead,
        hit: host.hit_time,
        request: host.system_call,
        copy_per_kib: host.copy_per_kib,
        block_bytes: scenario.workload.block_bytes(),
    }
}

/// The machine, and the frames of each level in the order of its tiers.
///
/// # Errors
/// An offending key, or an error of the trace.
pub fn machine(scenario: &Scenario, parts: Parts) -> Result<(Machine, Vec<u32>), Error> {
    let Parts { references, places, chunks, positions, mut storage, context, env } = parts;
    if let Some(file) = references.opened_last {
        if let Some((disk, sector)) = places.inode(file)? {
            storage.stand_at(disk, sector);
        }
    }
    let distinct = references.distinct;
    let first = first_levels(scenario);
    let manner = IssueMode {
        whole: scenario.workload.issue == Issue::Whole,
        open: scenario.workload.arrival != Arrival::Closed,
        write_delay: scenario.cache.write_delay,
    };
    let shared = context.program.as_ref().is_some_and(|program| shares(program));
    let (hinted, program) = (context.hints.is_some(), context.program.clone());
    let objects = !references.carries.addresses;
    let mut clients = clients(scenario, references, chunks, first)?;
    let processes = clients.len();
    let io_processors =
        scenario.process.as_ref().filter(|_| scenario.has_actions()).map_or(0, |keys| keys.io_processors);
    clients.extend((0..io_processors).map(|_| idle_client(scenario)));
    for (client, positions) in clients.iter_mut().zip(positions) {
        client.positions = Some(positions);
    }
    let parallel = scenario.process.as_ref().map(|keys| {
        let barrier = barrier(keys, shared).map(|scope| Barrier::new(scope, processes as u32));
        let actions = scenario.has_actions().then(|| Actions::new(actions(scenario, keys, processes, context.frames)));
        let strings = program.filter(|_| keys.pattern.is_some()).map(Strings::new);
        let buffers = keys.buffers_of(processes);
        Parallel::new(clients.len(), strings, barrier, actions, keys.contends(), buffers)
    });
    // Several processes on one level, parallel programs, and whole requests need policies that act on requests.
    let asking = manner.whole || manner.open || clients.len() > first || (parallel.is_some() && !hinted);
    let (mut tiers, frames) = tiers(scenario, (&context, &env), (first, asking), (storage.drives().len(), distinct))?;
    if objects {
        tiers.iter_mut().for_each(|tier| tier.level.order_singly());
    }
    if clients.len() > first && !tiers[0].level.takes_requests() {
        let problem = format!("{} follows one process", scenario.policy.name);
        return Err(KeyError::new("policy.name", problem, "another policy, or workload.processes = \"merged\"").into());
    }
    let stack = Stack::new(tiers, first, storage, places, scenario.workload.block_bytes());
    Ok((System::try_new(stack, clients, manner, parallel)?, frames))
}

/// Think times of a process that takes its references from a string.
#[must_use]
pub fn thinks(scenario: &Scenario, process: u32) -> Draws {
    let mut thinker = Thinker::new(&scenario.workload, scenario.seed, process);
    Box::new(move || thinker.next_think())
}

/// Number of first levels.
#[must_use]
pub fn first_levels(scenario: &Scenario) -> usize {
    scenario.lower.iter().map(|level| level.clients as usize).product()
}

/// The prefetch actions of processors.
#[must_use]
pub fn actions(scenario: &Scenario, keys: &ProcessKeys, processes: usize, frames: u32) -> ActionSetup {
    let length = |process| -> Draws {
        let mut draws = keys.action.draws(scenario.seed, process);
        Box::new(move || draws.next_action())
    };
    ActionSetup {
        lengths: (0..processes as u32 + keys.io_processors).map(length).collect(),
        io_processors: keys.io_processors,
        issues_at_start: keys.issues == ActionIssues::Start,
        idle_min: keys.min_time,
        slack_min: keys.min_slack,
        order: keys.order,
        alike: keys.for_others,
        unused_max: unused_max(scenario, keys, processes, frames),
    }
}

/// The processes: one, or one for each of the trace's, assigned round-robin to the first levels.
fn clients(
    scenario: &Scenario,
    references: References,
    chunks: Vec<Chunk>,
    first: usize,
) -> Result<Vec<Client<Supplied>>, Error> {
    let process = || Process::new(costs(scenario));
    if let Some(pattern) = scenario.process.as_ref().and_then(|process| process.pattern.as_ref()) {
        let taken = |process| Reads::taking(thinks(scenario, process));
        return Ok((0..pattern.count).map(|at| Client::new(process(), at as usize % first, taken(at))).collect());
    }
    if !chunks.is_empty() {
        let mut position = 0;
        let known = |(index, chunk): (usize, Chunk)| {
            let mut process = process();
            process.position = position;
            position += chunk.blocks.len() as Position;
            Client::new(process, index % first, Reads::Own(Cursor::known(chunk)))
        };
        return Ok(chunks.into_iter().enumerate().map(known).collect());
    }
    if scenario.workload.processes == Processes::Merged {
        return Ok(vec![Client::new(
            process(),
            0,
            Reads::Own(Cursor::reading(Supplied::new(references.reading, !scenario.needs_places()))),
        )]);
    }
    let each = |(index, pid): (usize, &u32)| {
        let supply = Supplied::new(references.of_process(scenario, *pid)?, false);
        Ok(Client::new(process(), index % first, Reads::Own(Cursor::reading(supply))))
    };
    references.pids.iter().enumerate().map(each).collect()
}

/// A processor that runs no process: it has no references.
fn idle_client(scenario: &Scenario) -> Client<Supplied> {
    Client::new(Process::new(costs(scenario)), 0, Reads::Own(Cursor::known(Chunk::empty())))
}

/// Where processes synchronise.
pub fn barrier(keys: &ProcessKeys, shared: bool) -> Option<Scope> {
    match keys.meets {
        Meets::Never => None,
        Meets::Process(every) => Some(Scope::Process(every)),
        Meets::All(every) => Some(Scope::All(every)),
        Meets::Portion if shared => Some(Scope::SharedPortion),
        Meets::Portion => Some(Scope::OwnPortion),
    }
}

/// The barriers among the readers of a string, as far as the string determines them; `shared`: all `processes` read the
/// same string.
pub fn meetings(keys: &ProcessKeys, shared: bool, processes: u32) -> Meetings {
    match keys.meets {
        Meets::Process(every) if shared => Meetings::Every(every.saturating_mul(processes)),
        Meets::Process(every) => Meetings::Every(every),
        Meets::All(every) if shared => Meetings::Every(every),
        Meets::Portion => Meetings::Portion,
        Meets::All(_) | Meets::Never => Meetings::AtEnd,
    }
}

/// The maximum number of prefetched and unused blocks, if the counts determine it: if `frames` are enough for the
/// replacement to keep prefetched blocks until they are used. A request issued as a whole may need more frames than its
/// process's list has, and takes those of prefetched blocks.
pub fn unused_max(scenario: &Scenario, keys: &ProcessKeys, processes: usize, frames: u32) -> Option<u64> {
    let processes = processes as u64;
    let buffers = if keys.buffers == 0 { processes } else { u64::from(keys.buffers) };
    let size = scenario.policy.replacement_keys.get("size").and_then(toml::Value::as_integer).unwrap_or(1);
    let kept = processes.saturating_mul(size.unsigned_abs()).saturating_add(buffers);
    let by_blocks = scenario.workload.issue == Issue::Blocks;
    // A wrongly predicted block leaves without having been used.
    let certain = keys.predictor.is_none();
    (by_blocks && certain && scenario.policy.replacement.name == "ru-set" && kept <= u64::from(frames))
        .then_some(buffers)
}

/// Whether several processes read one string.
pub fn shares(program: &Program) -> bool {
    program.string_ends.len() < program.string_of.len()
}

/// The levels, from the first levels to the one above the disks, and the frames of each.
///
/// # Errors
/// A key of a policy or a coordinator.
pub fn tiers(
    scenario: &Scenario,
    (context, env): (&Context, &ReadAheadEnv),
    (first, asking): (usize, bool),
    (disks, distinct): (usize, usize),
) -> Result<(Vec<Tier>, Vec<u32>), Error> {
    let mut tiers = Vec::new();
    let mut frames_of = Vec::new();
    let mut sizes = vec![(scenario.cache.name.as_str(), context.frames)];
    let (mut begin, mut count, mut spread) = (0, first, None);
    for _ in 0..count {
        let policy = policy(&scenario.policy, context, env, asking).map_err(|error| error.within("policy"))?;
        let mut level = Level::new(policy, context.frames, &context.initial, &context.disk_of, disks);
        if let Some(blocks) = scenario.cache.write_cluster {
            level.gather_writes(Clusters::new(blocks, scenario.workload.block_bytes()));
        }
        tiers.push(Tier::new(level, context.frames > 0));
        frames_of.push(context.frames);
    }
    for (at, lower) in scenario.lower.iter().enumerate() {
        let within = |error: KeyError| error.within(&format!("level[{}]", at + 1));
        let frames = frames(&lower.size, &sizes, distinct);
        sizes.push((lower.name.as_str(), frames));
        let above = begin;
        begin += count;
        count /= lower.clients as usize;
        for upper in 0..count * lower.clients as usize {
            let tier = &mut tiers[above + upper];
            (tier.below, tier.spread) = (Some(begin + upper / lower.clients as usize), lower.spread);
        }
        if let Some(of_level) = lower.spread {
            (count, spread) = (of_level.servers as usize, Some(of_level));
        }
        let context =
            Context { frames: frames.max(1), initial: Vec::new(), hints: None, program: None, ..context.clone() };
        for server in 0..count as u32 {
            let mut tier = lower_tier(lower, frames, &context, env, disks).map_err(within)?;
            tier.share = spread.map(|spread| Share { spread, server });
            tiers.push(tier);
            frames_of.push(frames);
        }
    }
    Ok((tiers, frames_of))
}

/// A lower level of `frames` frames, and the coordinator above it.
///
/// # Errors
/// A key of the policy or the coordinator.
pub fn lower_tier(
    keys: &LowerKeys,
    frames: u32,
    context: &Context,
    env: &ReadAheadEnv,
    disks: usize,
) -> Result<Tier, KeyError> {
    let policy = policy(&keys.policy, context, env, true).map_err(|error| error.within("policy"))?;
    let mut level = Level::new(policy, frames, &[], &context.disk_of, disks);
    if keys.separate_prefetch {
        level.separate_prefetches();
    }
    let mut tier = Tier::new(level, frames > 0);
    tier.link = keys.link;
    let (name, own) = &keys.coordinator;
    let made = (coordinator(name)?.build)(own.clone(), &CoordinatorContext { frames });
    tier.coordinator = made.map_err(|error| error.within("coordinator"))?;
    Ok(tier)
}

/// Frames of a level below the first; a share of the workload's blocks is resolved as for the first level.
fn frames(size: &LowerSize, above: &[(&str, u32)], distinct: usize) -> u32 {
    match size {
        LowerSize::Own(CacheSize::Blocks(blocks)) => *blocks,
        LowerSize::Own(CacheSize::Footprint(share)) => share_of(*share, distinct),
        LowerSize::Ratio(name, ratio) => {
            let (_, frames) = above.iter().find(|(other, _)| other == name).expect("it has been checked");
            ((f64::from(*frames) * ratio).round() as u32).max(u32::from(*ratio > 0.0))
        }
    }
}
