//! Fixed horizon (section 2.3): every missing block at most H references away is fetched at once, in
//! reference order, for the block referenced furthest away, if that is more than H away. A missing block
//! that is referenced now is fetched in any case; if every frame is in flight it waits for one.

use super::{run, Instance, Outcome, World};

/// `horizon` is H, in references; 0 is demand fetching.
pub fn fixed_horizon(instance: &Instance, horizon: u64) -> Outcome {
    run(instance, |world| horizon_rule(world, &instance.disk_of, horizon))
}

/// The rule by itself, which forestall adds to its own.
pub(super) fn horizon_rule(world: &mut World, disk_of: &[usize], horizon: u64) {
    while let Some(position) = world.first_missing(|_| true) {
        let distance = |position: usize| (position - world.cursor) as u64;
        if distance(position) > horizon {
            return;
        }
        let block = world.refs[position];
        let victim = match world.furthest(|_| true) {
            _ if world.has_free_frame() => None,
            None => return,
            Some(victim) if position == world.cursor || distance(world.next_use(victim)) > horizon => Some(victim),
            Some(_) => return,
        };
        world.issue(disk_of[block], block, victim);
    }
}
