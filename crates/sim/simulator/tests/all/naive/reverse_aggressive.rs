//! Reverse aggressive (sections 2.5 and 2.7): a schedule for the reversed sequence, turned round. What
//! the reversed run fetches, the forward run evicts; what it evicts, the forward run fetches. So a
//! fetch of the reversed run occupies the disk of its *victim*.
//!
//! The reversed run starts with the first K distinct blocks of the reversed sequence. Over idle disks with
//! room in their batch, the first missing block takes the place of the block needed latest (ties: lowest
//! disk, then lowest block number), if that is needed later than the missing block. After its last
//! reference it goes on until the forward run's initial cache is back: the sequence is continued by the
//! initial blocks that are referenced at all, in order of first forward reference, then by one dummy for
//! each frame that is free or holds a block never referenced. These take no time and are never passed.
//! Frames that the reversed run leaves empty throughout (fewer distinct blocks than frames) need no dummy.
//!
//! The first missing position never decreases during the reversed run (each eviction makes a block missing
//! at a later position only), so nothing is fetched in vain, and the run's evictions, read backwards, are
//! in order of release, as the paper says.

use super::{run, Instance, Outcome, World, NEVER};

/// How the schedule is replayed forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// An operation served from s to s + F in a reversed run of length T starts at T - (s + F). Where
    /// `fetch_ratio` is not F it may have to wait: for its disk to be idle, or until its pair is ready.
    Mirror,
    /// Section 2.7: fetches by request, evictions by release, matched in order; an idle disk is given the
    /// first pairs of its own that are ready, up to a batch.
    Released,
}

/// One fetch of the forward run and the eviction that makes room for it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    fetch: usize,
    /// `None`: a free frame, or a block never referenced.
    evict: Option<usize>,
    /// Position of the reference that needs the fetch.
    request: usize,
    /// The eviction may come once the cursor has got here.
    release: usize,
    /// Start of the mirrored operation.
    start: u64,
}

/// `fetch_ratio` is the F of the reversed run, in whole units, at least 1; `batch` is the reversed run's,
/// `forward_batch` that of the forward run (used by [`Replay::Released`] alone).
pub fn reverse_aggressive(
    instance: &Instance,
    fetch_ratio: u64,
    batch: usize,
    replay: Replay,
    forward_batch: usize,
) -> Outcome {
    let pairs = schedule(instance, fetch_ratio, batch);
    match replay {
        Replay::Mirror => mirror(instance, pairs, fetch_ratio == instance.fetch && batch == 1),
        Replay::Released => released(instance, pairs, forward_batch),
    }
}

/// The reversed run. Its pairs come back in the forward run's order: the last one issued first.
fn schedule(instance: &Instance, fetch_ratio: u64, batch: usize) -> Vec<Pair> {
    let (length, blocks) = (instance.refs.len(), instance.disk_of.len());
    let mut refs: Vec<usize> = instance.refs.iter().rev().copied().collect();
    let start_cache = first_distinct(&refs, instance.frames);
    let live = first_distinct(&instance.refs, NEVER).into_iter().filter(|block| instance.initial.contains(block));
    refs.extend(live);
    let dummies = start_cache.len() - (refs.len() - length);
    refs.extend(blocks..blocks + dummies);

    let mut world =
        World::new(refs, &start_cache, start_cache.len().max(1), blocks + dummies, instance.disks, fetch_ratio);
    loop {
        world.complete();
        pair_first_missing(&mut world, &instance.disk_of, batch);
        if world.cursor == length && world.first_missing(|_| true).is_none() {
            break;
        }
        if world.cursor < length {
            world.serve();
        }
        world.now += 1;
    }
    let last_end = world.queues.iter().flatten().map(|&(_, end)| end).max();
    let total = last_end.unwrap_or(0).max(world.now);

    let turned = world.log.iter().rev().map(|issued| {
        let fetch = issued.victim.expect("the reversed run's frames are all in use");
        let used = world.refs[..issued.cursor].iter().rposition(|&b| b == fetch).expect("evicted only after use");
        let next = (issued.cursor..).find(|&p| world.refs[p] == issued.block).expect("fetched only for a reference");
        Pair {
            fetch,
            evict: Some(issued.block).filter(|&block| block < blocks),
            request: length - 1 - used,
            release: length.saturating_sub(next),
            start: total - (issued.start + fetch_ratio),
        }
    });
    turned.collect()
}

/// The decisions of the reversed run at one instant.
fn pair_first_missing(world: &mut World, disk_of: &[usize], batch: usize) {
    let idle: Vec<bool> = (0..world.queues.len()).map(|disk| world.idle(disk)).collect();
    while let Some(position) = world.first_missing(|_| true) {
        let mut best: Option<(usize, usize)> = None; // (disk, victim)
        for disk in (0..idle.len()).filter(|&disk| idle[disk] && world.queues[disk].len() < batch) {
            let Some(victim) = world.furthest(|b| disk_of.get(b) == Some(&disk)) else { continue };
            if best.is_none_or(|(_, other)| world.next_use(victim) > world.next_use(other)) {
                best = Some((disk, victim));
            }
        }
        match best {
            Some((disk, victim)) if world.next_use(victim) > position => {
                world.issue(disk, world.refs[position], Some(victim));
            }
            _ => return,
        }
    }
}

fn mirror(instance: &Instance, mut pairs: Vec<Pair>, exact: bool) -> Outcome {
    pairs.sort_by_key(|pair| pair.start);
    run(instance, |world| {
        let may = |world: &World, pair: &Pair| {
            world.now >= pair.start && world.idle(instance.disk_of[pair.fetch]) && ready(world, instance, pair)
        };
        while let Some(turn) = pairs.iter().position(|pair| may(world, pair)) {
            issue(world, instance, &pairs.remove(turn));
        }
        let late = pairs.iter().find(|pair| world.now >= pair.start);
        assert!(!exact || late.is_none(), "{late:?} is late at {} in {instance:?}", world.now);
    })
}

fn released(instance: &Instance, pairs: Vec<Pair>, forward_batch: usize) -> Outcome {
    assert!(pairs.is_sorted_by_key(|pair| pair.release));
    let mut by_request = pairs.clone();
    by_request.sort_by_key(|pair| pair.request);
    let mut pairs: Vec<Pair> = std::iter::zip(by_request, pairs)
        .map(|(fetch, evict)| Pair { fetch: fetch.fetch, request: fetch.request, ..evict })
        .collect();
    run(instance, |world| {
        let mut given = vec![0; instance.disks];
        let idle: Vec<bool> = (0..instance.disks).map(|disk| world.idle(disk)).collect();
        let may = |world: &World, pair: &Pair, given: &[usize]| {
            let disk = instance.disk_of[pair.fetch];
            idle[disk] && given[disk] < forward_batch && ready(world, instance, pair)
        };
        while let Some(turn) = pairs.iter().position(|pair| may(world, pair, &given)) {
            let pair = pairs.remove(turn);
            given[instance.disk_of[pair.fetch]] += 1;
            issue(world, instance, &pair);
        }
    })
}

/// The eviction is released and its block here to be evicted, and the block to fetch is not here any more.
fn ready(world: &World, instance: &Instance, pair: &Pair) -> bool {
    let room = match pair.evict {
        Some(block) => world.resident[block],
        None => world.has_free_frame() || never_referenced(world, instance).is_some(),
    };
    room && world.cursor >= pair.release && world.missing(pair.fetch)
}

fn issue(world: &mut World, instance: &Instance, pair: &Pair) {
    let victim = match pair.evict {
        None if world.has_free_frame() => None,
        None => never_referenced(world, instance),
        evict => evict,
    };
    world.issue(instance.disk_of[pair.fetch], pair.fetch, victim);
}

fn never_referenced(world: &World, instance: &Instance) -> Option<usize> {
    (0..instance.disk_of.len()).find(|block| world.resident[*block] && !instance.refs.contains(block))
}

fn first_distinct(refs: &[usize], limit: usize) -> Vec<usize> {
    let mut seen: Vec<usize> = vec![];
    for &block in refs {
        if seen.len() < limit && !seen.contains(&block) {
            seen.push(block);
        }
    }
    seen
}
