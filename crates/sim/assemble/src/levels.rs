//! Levels and their policies, from a scenario's keys.

use headstart_engine::{Clusters, Level, Share, Tier};
use headstart_policy::coordinator::CoordinatorContext;
use headstart_policy::readahead::{BuildReadAhead, ReadAheadContext};
use headstart_policy::registry::{Beside, Context};
use headstart_policy::{Policy, RequestPolicy};
use headstart_scenario::{share_of, CacheSize, LowerKeys, LowerSize, PolicyKeys, Scenario};
use headstart_types::{Chosen, KeyError};

use crate::ReadAheadEnv;

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
    let Chosen { row, keys: own } = &keys.policy;
    let context = &Context { replacement: keys.replacement.clone(), ..context.clone() };
    let by_blocks = !asking || row.name != "demand";
    if !keys.takes_requests() && by_blocks {
        return row.build(own, context);
    }
    let with_replacement = |read_ahead| context.join(Beside::Requests(read_ahead));
    let frames = context.frames;
    let Some(reads_ahead) = row.reads_ahead() else { return with_replacement(None) };
    let ReadAheadEnv { block_bytes, drive, future, initial_places } = env.clone();
    let read_ahead_context = ReadAheadContext { block_bytes, frames, drive, future };
    match reads_ahead.build {
        BuildReadAhead::Separate(make) => with_replacement(Some(make(own, &read_ahead_context)?)),
        BuildReadAhead::WithReplacement(make) => {
            let mut parts = make(own, &read_ahead_context)?;
            // A host's replacement has already learnt of them from the context.
            for (block, (file, index)) in context.initial.iter().zip(&*initial_places) {
                parts.placed(*block, *file, *index);
                parts.inserted(*block);
            }
            Ok(Box::new(RequestPolicy::new(parts, frames)))
        }
    }
}

/// Number of first levels.
#[must_use]
pub fn first_levels(scenario: &Scenario) -> usize {
    scenario.lower.iter().map(|level| level.section.clients as usize).product()
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
) -> Result<(Vec<Tier>, Vec<u32>), KeyError> {
    let mut tiers = Vec::new();
    let mut frames_of = Vec::new();
    let mut sizes = vec![(scenario.cache.section.name.as_str(), context.frames)];
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
        sizes.push((lower.name(), frames));
        let above = begin;
        begin += count;
        count /= lower.section.clients as usize;
        for upper in 0..count * lower.section.clients as usize {
            let tier = &mut tiers[above + upper];
            (tier.below, tier.spread) = (Some(begin + upper / lower.section.clients as usize), lower.spread);
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
    if keys.section.separate_prefetch {
        level.separate_prefetches();
    }
    let mut tier = Tier::new(level, frames > 0);
    tier.link = keys.link();
    let Chosen { row, keys: own } = &keys.coordinator;
    let made = (row.build)(own, &CoordinatorContext { frames });
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
