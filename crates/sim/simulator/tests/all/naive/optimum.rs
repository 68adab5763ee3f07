//! The exact optimum by exhaustive search, breadth first, one layer per unit of time.
//!
//! At each instant every idle disk may do nothing or fetch any of its blocks that is not here, into a free
//! frame if there is one, else in place of any resident block: no rule of thumb prunes the choice, that is
//! its point. Left out is only what cannot help: a queued fetch evicts its victim before its disk can use
//! the frame, so waiting for the disk is never worse, and neither is a free frame than an eviction.
//!
//! Cost: exponential. For at most 10 references, 6 blocks, 4 frames, 3 disks.

use std::collections::BTreeSet;

use super::Instance;

/// The machine just before the decisions of an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    cursor: usize,
    /// Bit b: block b is resident.
    resident: u8,
    /// Per disk: the block in flight and the time that is left, at least 1.
    flights: [Option<(u8, u8)>; 3],
}

/// The shortest elapsed time of any schedule, in units.
pub fn optimum(instance: &Instance) -> u64 {
    search(instance, |state, visit| choose(instance, state, 0, visit))
}

/// The same for one disk by the rules of section 2.2, which some optimal schedule follows there: the disk
/// idles, or fetches the first missing block for the one referenced last, unless that does harm. A check
/// on the unpruned search.
pub fn optimum_of_one_disk(instance: &Instance) -> u64 {
    assert!(instance.disks == 1);
    let ahead = |state: &State, block: usize| instance.refs[state.cursor..].iter().position(|&b| b == block);
    search(instance, |state, visit| {
        visit(state);
        let here = |block: usize| state.resident & 1 << block != 0;
        let Some(&block) = instance.refs[state.cursor..].iter().find(|&&b| !here(b)) else { return };
        if state.flights[0].is_some() {
            return;
        }
        let mut issued = state.clone();
        issued.flights[0] = Some((block as u8, instance.fetch as u8));
        if state.resident.count_ones() as usize == instance.frames {
            let residents = (0..instance.disk_of.len()).filter(|&b| here(b));
            let last = residents.max_by_key(|&b| ahead(state, b).unwrap_or(usize::MAX)).expect("no frame is free");
            if ahead(state, last).unwrap_or(usize::MAX) < ahead(state, block).expect("it is missing") {
                return;
            }
            issued.resident &= !(1 << last);
        }
        visit(&issued);
    })
}

/// Breadth first over everything that `decisions` allows in a state.
fn search(instance: &Instance, decisions: impl Fn(&State, &mut dyn FnMut(&State))) -> u64 {
    let Instance { refs, initial, frames, disk_of, disks, fetch } = instance;
    assert!(refs.len() <= 10 && disk_of.len() <= 6 && *frames <= 4 && *disks <= 3 && *fetch < 256);
    let resident = initial.iter().fold(0, |mask, block| mask | 1 << block);
    let mut layer = vec![State { cursor: 0, resident, flights: [None; 3] }];
    let mut seen: BTreeSet<State> = layer.iter().cloned().collect();
    for now in 0.. {
        if layer.iter().any(|state| state.cursor == refs.len()) {
            return now;
        }
        let mut next = vec![];
        for state in &layer {
            decisions(state, &mut |chosen| {
                let successor = advance(instance, chosen);
                if seen.insert(successor.clone()) {
                    next.push(successor);
                }
            });
        }
        assert!(!next.is_empty(), "every instance can be served: {instance:?}");
        layer = next;
    }
    unreachable!()
}

/// Every choice of the disks from `disk` on in this state.
fn choose(instance: &Instance, state: &State, disk: usize, visit: &mut dyn FnMut(&State)) {
    if disk == instance.disks {
        return visit(state);
    }
    choose(instance, state, disk + 1, visit);
    if state.flights[disk].is_some() {
        return;
    }
    let held = state.resident.count_ones() as usize + state.flights.iter().flatten().count();
    for block in 0..instance.disk_of.len() {
        if instance.disk_of[block] != disk || state.resident & 1 << block != 0 {
            continue;
        }
        let mut issued = state.clone();
        issued.flights[disk] = Some((block as u8, instance.fetch as u8));
        if held < instance.frames {
            choose(instance, &issued, disk + 1, visit);
            continue;
        }
        for victim in (0..instance.disk_of.len()).filter(|victim| state.resident & 1 << victim != 0) {
            issued.resident = state.resident & !(1 << victim);
            choose(instance, &issued, disk + 1, visit);
        }
    }
}

/// Serves the reference at the cursor if its block is here, and lets one unit pass.
fn advance(instance: &Instance, state: &State) -> State {
    let mut next = state.clone();
    if state.resident & 1 << instance.refs[state.cursor] != 0 {
        next.cursor += 1;
    }
    for flight in &mut next.flights {
        match flight {
            Some((block, 1)) => {
                next.resident |= 1 << *block;
                *flight = None;
            }
            Some((_, left)) => *left -= 1,
            None => {}
        }
    }
    next
}
