//! Promises of just-in-time: no block is evicted that is needed before the fetched one, no block known to be needed
//! within the window is evicted for one that is not, and no process waits while the disks are idle.

use headstart_policy::registry::policy;
use headstart_policy::Disclosure;

use crate::host::{build, odd_systems, run, Outcomes, System};

fn outcomes(system: &System) -> Outcomes {
    let row = policy("just-in-time").expect("a row");
    let replacement = headstart_policy::registry::replacement("lru").expect("a row");
    run(system, build(system, row, replacement, "", &Disclosure::All))
}

fn systems() -> impl Iterator<Item = (String, System)> {
    let random =
        |uniform: bool| move |seed: u64| (format!("seed {seed}"), System { uniform, ..System::random(seed, 300, 60) });
    let odd = odd_systems().into_iter().map(|(name, system)| (name.to_owned(), system));
    odd.chain((0..400).map(random(false))).chain((400..800).map(random(true)))
}

/// The next use of `block` from `cursor` on; `None`: never.
fn next_use(system: &System, block: u32, cursor: u32) -> Option<usize> {
    system.refs[cursor as usize..].iter().position(|each| *each == block)
}

#[test]
fn nothing_is_given_up_for_what_is_needed_later() {
    for (name, system) in systems() {
        let outcomes = outcomes(&system);
        for round in outcomes.decisions.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            let cursor = round[0].1;
            // Blocks are given frames in order of place, so what holds for each holds for the last needed one of a
            // round. A block that is needed at once takes any frame.
            let at_once = |block: u32| system.refs.get(cursor as usize) == Some(&block);
            if round.iter().any(|(_, _, block, _)| at_once(*block)) {
                continue;
            }
            let last = round.iter().map(|(_, _, block, _)| next_use(&system, *block, cursor)).max().flatten();
            for victim in round.iter().filter_map(|(_, _, _, victim)| *victim) {
                let again = next_use(&system, victim, cursor);
                assert!(again.is_none() || again > last, "{name}: {victim} goes at {cursor} for what is needed later");
            }
        }
    }
}

#[test]
fn a_process_waits_only_while_a_disk_works() {
    for (name, system) in systems().filter(|(_, system)| system.uniform) {
        let outcomes = outcomes(&system);
        let work = outcomes.counts.fetches() * system.service_ns_max;
        let thinks: u64 = system.think_ns.iter().sum();
        assert!(outcomes.elapsed_ns <= thinks + work, "{name}: {} > {thinks} + {work}", outcomes.elapsed_ns);
    }
}

#[test]
fn what_fits_is_fetched_once() {
    for (name, system) in systems() {
        let mut blocks: Vec<u32> = system.refs.iter().chain(&system.initial).copied().collect();
        blocks.sort_unstable();
        blocks.dedup();
        if blocks.len() as u32 > system.frames {
            continue;
        }
        let fetches = outcomes(&system).counts.fetches() as usize;
        assert_eq!(fetches, blocks.iter().filter(|block| !system.initial.contains(block)).count(), "{name}");
    }
}
