//! Forestall (section 5): a disk stays idle until waiting longer would bring a stall, then it acts as
//! aggressive does.
//!
//! With d_i the distance to the i-th missing block of an idle disk, the disk is triggered if i * F' >= d_i
//! for some i. All idle disks are judged first, and those triggered then fetch together. Then fixed
//! horizon's rule, if it is on. An eviction may make a block missing that triggers another idle disk, so
//! both parts are repeated until neither issues anything ("whenever", says the paper). Look-ahead limits
//! the blocks that may trigger, not those that a triggered disk fetches (which tells only for batches
//! above 1).

use super::aggressive::fill;
use super::fixed_horizon::horizon_rule;
use super::{run, Instance, Outcome, World};

/// `fetch_ratio` is F'; `lookahead` is in references, `None` without end; `horizon` 0 turns its rule off.
pub fn forestall(
    instance: &Instance,
    fetch_ratio: f64,
    batch: usize,
    lookahead: Option<usize>,
    horizon: u64,
) -> Outcome {
    run(instance, |world| loop {
        let issued = world.log.len();
        let triggered: Vec<bool> = (0..instance.disks)
            .map(|disk| world.idle(disk) && would_stall(world, &instance.disk_of, disk, fetch_ratio, lookahead))
            .collect();
        fill(world, &instance.disk_of, &triggered, batch);
        if horizon > 0 {
            horizon_rule(world, &instance.disk_of, horizon);
        }
        if world.log.len() == issued {
            return;
        }
    })
}

fn would_stall(world: &World, disk_of: &[usize], disk: usize, fetch_ratio: f64, lookahead: Option<usize>) -> bool {
    let mut missing: Vec<usize> = vec![]; // blocks of this disk, in order of reference
    for position in world.cursor..world.refs.len() {
        let (block, distance) = (world.refs[position], position - world.cursor);
        if lookahead.is_some_and(|limit| distance > limit) {
            return false;
        }
        if disk_of[block] == disk && world.missing(block) && !missing.contains(&block) {
            missing.push(block);
            if missing.len() as f64 * fetch_ratio >= distance as f64 {
                return true;
            }
        }
    }
    false
}
