//! Demand fetching: a missing block is fetched when it is referenced, never before (section 4.1 for
//! the off-line optimal replacement; LRU and FIFO for comparison).

use super::{run, Instance, Outcome, World};

/// Belady: the victim is the block whose next reference is furthest away.
pub fn demand_min(instance: &Instance) -> Outcome {
    demand(instance, |world| world.furthest(|_| true))
}

/// The victim is the block referenced longest ago; blocks not referenced yet come first, as listed.
pub fn demand_lru(instance: &Instance) -> Outcome {
    demand(instance, |world| {
        let age = |block: usize| match world.refs[..world.cursor].iter().rposition(|&b| b == block) {
            Some(position) => (1, position),
            None => (0, listed(instance, block)),
        };
        resident(world).min_by_key(|&block| age(block))
    })
}

/// The victim is the block fetched longest ago; the initial blocks come first, as listed.
pub fn demand_fifo(instance: &Instance) -> Outcome {
    demand(instance, |world| {
        let age = |block: usize| match world.log.iter().rposition(|issued| issued.block == block) {
            Some(turn) => (1, turn),
            None => (0, listed(instance, block)),
        };
        resident(world).min_by_key(|&block| age(block))
    })
}

fn demand(instance: &Instance, victim: impl Fn(&World) -> Option<usize>) -> Outcome {
    run(instance, |world| {
        let block = world.refs[world.cursor];
        if world.missing(block) {
            let victim = if world.has_free_frame() { None } else { victim(world) };
            world.issue(instance.disk_of[block], block, victim);
        }
    })
}

fn resident(world: &World) -> impl Iterator<Item = usize> + '_ {
    (0..world.resident.len()).filter(|&block| world.resident[block])
}

fn listed(instance: &Instance, block: usize) -> usize {
    instance.initial.iter().position(|&b| b == block).expect("a resident block was fetched or is initial")
}
