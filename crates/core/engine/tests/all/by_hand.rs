//! Each policy on a sequence that can be worked by hand, decision by decision. "2: E for A" is a fetch of E in place of
//! A issued at time 2, "0: C" one into a free frame. Every reference computes for one unit; a fetch takes F.

use headstart_policy::registry::{policy, replacement};
use headstart_policy::Disclosure;

use crate::host::{build, run, System};

/// A unit of time.
const UNIT_NS: u64 = 1_000;

/// The results of a run: decisions as text, and elapsed units.
type Worked = (Vec<String>, u64);

/// A sequence whose blocks are letters.
struct Sequence {
    refs: &'static str,
    initial: &'static str,
    frames: u32,
    /// The blocks of each disk.
    layout: &'static [&'static str],
    fetch: u64,
}

impl Sequence {
    fn work(&self, name: &str, keys: &str) -> Worked {
        self.disclosed(name, keys, &Disclosure::All)
    }

    fn disclosed(&self, name: &str, keys: &str, disclosure: &Disclosure) -> Worked {
        let mut letters: Vec<char> = self.refs.chars().chain(self.initial.chars()).collect();
        let mut seen = vec![];
        letters.retain(|letter| {
            !seen.contains(letter) && {
                seen.push(*letter);
                true
            }
        });
        let number = |letter: char| letters.iter().position(|other| *other == letter).expect("it is listed") as u32;
        let disk =
            |letter: &char| self.layout.iter().position(|blocks| blocks.contains(*letter)).expect("it is placed");
        let system = System {
            refs: self.refs.chars().map(number).collect(),
            think_ns: vec![UNIT_NS; self.refs.len()],
            initial: self.initial.chars().map(number).collect(),
            frames: self.frames,
            disk_of: letters.iter().map(|letter| disk(letter) as u32).collect(),
            disks: self.layout.len(),
            service_ns_max: self.fetch * UNIT_NS,
            uniform: true,
            seed: 0,
        };
        let (name, open) = name.split_once('/').unwrap_or((name, "lru"));
        let (row, open) = (policy(name).expect("a row"), replacement(open).expect("a row"));
        let outcomes = run(&system, build(&system, row, open, keys, disclosure));
        let letter = |block: u32| letters[block as usize];
        let words = outcomes.decisions.iter().map(|(at, _, block, victim)| {
            let victim = victim.map_or(String::new(), |victim| format!(" for {}", letter(victim)));
            format!("{}: {}{victim}", at / UNIT_NS, letter(*block))
        });
        (words.collect(), outcomes.elapsed_ns / UNIT_NS)
    }
}

fn check(worked: Worked, decisions: &[&str], elapsed: u64) {
    assert_eq!(worked.0, decisions);
    assert_eq!(worked.1, elapsed);
}

/// kimbrel96, Figure 1.
const FIGURE_1: Sequence = Sequence { refs: "AbCdEF", initial: "AbdF", frames: 4, layout: &["ACEF", "bd"], fetch: 2 };

#[test]
fn figure_1_on_demand() {
    // C is missed at 2, A is done with; C and d take 4 to 6. E is missed at 6; b is done with. E at 8, F at 9.
    check(FIGURE_1.work("demand/min", ""), &["2: C for A", "6: E for b"], 10);
}

#[test]
fn figure_1_aggressively() {
    // At 0 disk 0 is free: C (next use 2) for F (5), which must then come back. At 2: E for A. At 4: F for b, there
    // at 6, one unit late.
    let decisions = ["0: C for F", "2: E for A", "4: F for b"];
    check(FIGURE_1.work("aggressive", "batch_size = 1"), &decisions, 7);
    // With batches of 2, E at 0 would need a victim used after 4, and F is gone. At 2 the disk takes both at once.
    check(FIGURE_1.work("aggressive", "batch_size = 2"), &["0: C for F", "2: E for A", "2: F for b"], 7);
}

#[test]
fn figure_1_by_fixed_horizon() {
    // H = 2. At 0 C is 2 ahead; F, 5 ahead, goes. At 2: E for A. At 3 F is 2 ahead and queues behind E: 4 to 6.
    check(FIGURE_1.work("fixed-horizon", "horizon = 2"), &["0: C for F", "2: E for A", "3: F for b"], 7);
    // H = 1. At 1 C is 1 ahead and A done with: there at 3, one unit late. d at 4, when E is 1 ahead: there at 6,
    // one unit late. F at 7.
    check(FIGURE_1.work("fixed-horizon", "horizon = 1"), &["1: C for A", "4: E for b"], 8);
}

#[test]
fn figure_1_by_forestall() {
    // F' = 2. At 0, C: 1 * 2 >= 2. At 2, E: 1 * 2 >= 2. At 4, F: 2 >= 1.
    let keys = "fetch_ratio = 2\nbatch_size = 1\nhorizon = 0";
    check(FIGURE_1.work("forestall", keys), &["0: C for F", "2: E for A", "4: F for b"], 7);
}

#[test]
fn figure_1_in_reverse() {
    // F E d C b A from a cache of F E d C. b and A are missing. F is used at 0, so at 1: b (use 4) for F, which comes
    // back last of all; F's disk is busy from 1 to 3. At 3: A for E, to 5. At 5, F for C, to 7, the end.
    // Turned around at 7: C for F at 0, E for A at 2, F for b at 4.
    let decisions = ["0: C for F", "2: E for A", "4: F for b"];
    check(FIGURE_1.work("reverse-aggressive", "replay = \"mirror\""), &decisions, 7);
    // Released: F may go at once, A from cursor 1 on, b from 2; the disk is free at 0, 2 and 4.
    check(FIGURE_1.work("reverse-aggressive", "replay = \"released\""), &decisions, 7);
}

#[test]
fn figure_1_at_best() {
    // The paper's (b): d goes for C, and is fetched back by the other disk in parallel with E: 6.
    assert_eq!(FIGURE_1.work("optimum", "").1, 6);
}

#[test]
fn forestall_waits_as_long_as_it_may() {
    // Section 5 with F = 2: 2F - 1 = 3 blocks are there, two missing ones follow. At 0: 1 * 2 < 3 for D, but
    // 2 * 2 >= 4 for E: start now. D from 0 to 2, E from 2 to 4, just in time.
    let two = Sequence { refs: "ABCDEFG", initial: "ABCFG", frames: 7, layout: &["ABCDEFG"], fetch: 2 };
    check(two.work("forestall", "fetch_ratio = 2\nbatch_size = 1\nhorizon = 0"), &["0: D", "2: E"], 7);
    // Fixed horizon starts D at 1 and has E at 5, one unit late.
    check(two.work("fixed-horizon", "horizon = 2"), &["1: D", "2: E"], 8);
    // One missing block, D: aggressive takes E's frame at 0 and must fetch E again; forestall waits until 1, when A
    // is done with.
    let one = Sequence { refs: "ABCDE", initial: "ABCE", frames: 4, layout: &["ABCDE"], fetch: 2 };
    check(one.work("aggressive", "batch_size = 1"), &["0: D for E", "2: E for A"], 5);
    check(one.work("forestall", "fetch_ratio = 2\nbatch_size = 1\nhorizon = 0"), &["1: D for A"], 5);
}

#[test]
fn an_eviction_may_trigger_another_disk_at_the_same_instant() {
    // F = 5, F' = 2.5. At 0: A is wanted now, and B fires on its disk: 2.5 >= 1; B takes the place of F, the
    // furthest. D on the third disk, 3 ahead, does not fire alone: 2.5 < 3. But with F gone it is the first of two,
    // and F is 5 ahead: 2 * 2.5 >= 5. So D goes out at 0 as well, for E.
    // At 5 C (2 ahead) may have D's frame, at 6 D has A's; at 10 E for B, at 11 F for C.
    // A 5, B 6, C 10, D 11, E 15, F 16.
    let sequence = Sequence { refs: "ABCDEF", initial: "FE", frames: 3, layout: &["B", "ACE", "DF"], fetch: 5 };
    let decisions = ["0: A", "0: B for F", "0: D for E", "5: C for D", "6: D for A", "10: E for B", "11: F for C"];
    let keys = "fetch_ratio = 2.5\nbatch_size = 1\nhorizon = 0\nlookahead = 100";
    check(sequence.work("forestall", keys), &decisions, 17);
}

#[test]
fn aggressive_builds_batches_over_free_disks() {
    // F = 3, two free frames. A and C are on disk 0, b, d and Y on disk 1. Batches of 2 at 0, in order of use over
    // both disks: A and b into the free frames, C (3) for Y (5); d (4) may not have X, which is next.
    // At 3 disk 1 is free, disk 0 still has C: d for X; Y (5) may not have A (1) or b (2). At 6: Y for A.
    // X 0, A 3, b 4, C 6, d 7, Y 9.
    let sequence = Sequence { refs: "XAbCdY", initial: "XY", frames: 4, layout: &["XAC", "bdY"], fetch: 3 };
    let decisions = ["0: A", "0: b", "0: C for Y", "3: d for X", "6: Y for A"];
    check(sequence.work("aggressive", "batch_size = 2"), &decisions, 10);
    // Batches of 1: C and d wait until 3; by then X is done with.
    let decisions = ["0: A", "0: b", "3: C for X", "3: d for Y", "6: Y for A"];
    check(sequence.work("aggressive", "batch_size = 1"), &decisions, 10);
}

#[test]
fn fixed_horizon_refuses_a_victim_within_it() {
    // H = 2. At 0 C is 1 ahead, but the furthest block, B, is 2 ahead: not further than H. At 1 A is done with.
    let sequence = Sequence { refs: "ACB", initial: "AB", frames: 2, layout: &["ABC"], fetch: 2 };
    check(sequence.work("fixed-horizon", "horizon = 2"), &["1: C for A"], 5);
    // The current reference takes a frame in any case: A for B, though B is only 1 ahead.
    let sequence = Sequence { refs: "AB", initial: "B", frames: 1, layout: &["AB"], fetch: 3 };
    check(sequence.work("fixed-horizon", "horizon = 4"), &["0: A for B", "4: B for A"], 8);
}

#[test]
fn partial_hints() {
    let sequence = Sequence { refs: "ABCD", initial: "", frames: 4, layout: &["ABCD"], fetch: 2 };
    let work = |disclosure: Disclosure| sequence.disclosed("aggressive", "batch_size = 1", &disclosure);
    // All known: the disk never rests, D is there at 8.
    check(work(Disclosure::All), &["0: A", "2: B", "4: C", "6: D"], 9);
    // Two references ahead are enough for one disk.
    check(work(Disclosure::Window(2)), &["0: A", "2: B", "4: C", "6: D"], 9);
    // The current one only, or none: each is fetched when it is referenced, 4 * (2 + 1).
    check(work(Disclosure::Window(1)), &["0: A", "3: B", "6: C", "9: D"], 12);
    check(work(Disclosure::Window(0)), &["0: A", "3: B", "6: C", "9: D"], 12);
    // D alone is known: it goes out first, and A, asked for at 0, queues behind it until 4. A 4, B 7, C 10, D 11.
    let known = Disclosure::Subset([false, false, false, true].into());
    check(work(known), &["0: D", "0: A", "5: B", "8: C"], 12);
}

#[test]
fn replacement_on_demand() {
    // A B A C A B in 2 frames, F = 3. LRU and MIN: C for B, B for C. FIFO: C for A, A for B, B for C.
    // Misses and references follow one another: elapsed = 6 + 3 * misses.
    let sequence = Sequence { refs: "ABACAB", initial: "", frames: 2, layout: &["ABC"], fetch: 3 };
    check(sequence.work("demand/lru", ""), &["0: A", "4: B", "9: C for B", "14: B for C"], 6 + 3 * 4);
    check(sequence.work("demand/min", ""), &["0: A", "4: B", "9: C for B", "14: B for C"], 6 + 3 * 4);
    check(sequence.work("demand/fifo", ""), &["0: A", "4: B", "9: C for A", "13: A for B", "17: B for C"], 6 + 3 * 5);
    // ARC: at the third reference A is in T2, B alone in T1. C is new: T1's B goes to B1. A hits. B is found in B1:
    // the target rises to 1, T1 (C) is not above it, so T2's A goes. As many misses, but C stays.
    check(sequence.work("demand/arc", ""), &["0: A", "4: B", "9: C for B", "14: B for A"], 6 + 3 * 4);
}

#[test]
fn a_fetch_at_the_instant_of_its_reference_is_a_demand_fetch() {
    // A is resident, no think time: B is fetched while the process is at A, and referenced at that same instant.
    let system = System {
        refs: vec![0, 1],
        think_ns: vec![0, 0],
        initial: vec![0],
        frames: 2,
        disk_of: vec![0, 0],
        disks: 1,
        service_ns_max: UNIT_NS,
        uniform: true,
        seed: 0,
    };
    let (row, open) = (policy("aggressive").expect("a row"), replacement("lru").expect("a row"));
    let counts = run(&system, build(&system, row, open, "", &Disclosure::All)).counts;
    assert_eq!((counts.hits_ready, counts.hits_unready, counts.misses), (1, 0, 1));
    assert_eq!((counts.demand_fetches, counts.prefetches, counts.prefetches_wasted()), (1, 0, 0));
}

#[test]
fn frames_beyond_the_blocks_cost_nothing() {
    // The memory of reverse aggressive's plan follows the length of the string, not the size of the cache.
    let plenty = Sequence { refs: "ABAB", initial: "", frames: u32::MAX - 1, layout: &["AB"], fetch: 2 };
    let (decisions, elapsed) = plenty.work("reverse-aggressive", "batch_size = 1");
    assert_eq!(decisions, ["0: A", "2: B"]);
    assert_eq!(elapsed, 7);
}
