//! Aggressive (sections 2.4 and 2.7): free disks fetch their first missing blocks, replacing the block referenced
//! furthest away, as long as that is referenced later than the block fetched.
//!
//! A disk is free when nothing is outstanding on it, so a block that turns out to be missing when it is referenced
//! waits until its disk has finished its batch.

use super::{run, Instance, Outcome, World};

/// `batch` is the greatest number of fetches that a free disk is given at a time; at least 1.
pub fn aggressive(instance: &Instance, batch: usize) -> Outcome {
    run(instance, |world| {
        let free: Vec<bool> = (0..instance.disks).map(|disk| world.idle(disk)).collect();
        fill(world, &instance.disk_of, &free, batch);
    })
}

/// Gives each of the disks in `free` up to `batch` fetches, all their missing blocks taken together in
/// order of reference, until the next one may not have a frame.
pub(super) fn fill(world: &mut World, disk_of: &[usize], free: &[bool], batch: usize) {
    let mut given = vec![0; free.len()];
    while let Some(position) = world.first_missing(|b| free[disk_of[b]] && given[disk_of[b]] < batch) {
        let block = world.refs[position];
        let victim = match world.furthest(|_| true) {
            _ if world.has_free_frame() => None,
            Some(victim) if world.next_use(victim) > position => Some(victim),
            _ => return,
        };
        world.issue(disk_of[block], block, victim);
        given[disk_of[block]] += 1;
    }
}
