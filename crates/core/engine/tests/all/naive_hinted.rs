//! The hinted policies against a second implementation that scans the whole disclosed string and the whole cache at
//! each decision: equal decisions, one by one, with random service and think times (so that forestall's estimates move)
//! and every kind of disclosure; by one process, and by several that serve positions out of order.

use headstart_policy::{Disclosure, Event, Fetch, Policy, View};
use headstart_types::{Block, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::{build, build_shared, disclosures, misled, rows, run, run_shared, Outcomes, System};

/// Number of random systems.
const COUNT: u64 = 300;

#[derive(Debug, Clone, Copy)]
pub enum Rule {
    FixedHorizon {
        horizon: usize,
    },
    Aggressive {
        batch: usize,
    },
    /// `ratio`: F', or `None` for the estimate.
    Forestall {
        ratio: Option<f64>,
        batch: usize,
        lookahead: usize,
        horizon: usize,
    },
}

pub struct Naive {
    rule: Rule,
    /// As disclosed.
    pub refs: Vec<u32>,
    pub disclosure: Disclosure,
    pub disk_of: Vec<u32>,
    /// For each block: the turn of its last arrival or use; initial blocks in order.
    touched: Vec<usize>,
    turn: usize,
    thinks: Vec<u64>,
    /// Indexed by disk.
    services: Vec<Vec<u64>>,
    /// Indexed by position.
    served: Vec<bool>,
    processes: u32,
    owed: Vec<u32>,
}

/// A round of decisions in progress.
pub struct Now<'a> {
    pub cursor: usize,
    resident: Vec<bool>,
    absent: Vec<bool>,
    pinned: Vec<bool>,
    pub free: u32,
    /// For each disk, including this round's fetches.
    outstanding: Vec<u32>,
    pub fetches: &'a mut Vec<Fetch>,
}

impl Naive {
    pub fn new(system: &System, rule: Rule, disclosure: &Disclosure, processes: u32) -> Self {
        let mut touched = vec![0; system.disk_of.len()];
        system.initial.iter().enumerate().for_each(|(turn, block)| touched[*block as usize] = turn);
        Self {
            rule,
            refs: system.refs.clone(),
            disclosure: disclosure.clone(),
            disk_of: system.disk_of.clone(),
            touched,
            turn: system.initial.len(),
            thinks: vec![],
            services: vec![vec![]; system.disks],
            served: vec![false; system.refs.len()],
            processes,
            owed: vec![],
        }
    }

    /// The positions from `cursor` on that are visible and not served.
    fn visible(&self, cursor: usize) -> impl Iterator<Item = usize> + '_ {
        (cursor..self.refs.len()).filter(|at| !self.served[*at]).filter(move |at| match &self.disclosure {
            Disclosure::All => true,
            Disclosure::Window(window) => *at - cursor < *window as usize,
            Disclosure::Subset(known) => known[*at],
        })
    }

    fn next_use(&self, cursor: usize, block: usize) -> Option<usize> {
        self.visible(cursor).find(|at| self.refs[*at] as usize == block)
    }

    /// Positions of the missing blocks of the disks that `may` names, in order.
    pub fn missing(&self, now: &Now<'_>, may: impl Fn(usize) -> bool) -> Vec<usize> {
        let first = |at: &usize| self.next_use(now.cursor, self.refs[*at] as usize) == Some(*at);
        let wanted = |at: &usize| now.absent[self.refs[*at] as usize] && may(self.disk(*at));
        self.visible(now.cursor).filter(|at| wanted(at) && first(at)).collect()
    }

    pub fn disk(&self, at: usize) -> usize {
        self.disk_of[self.refs[at] as usize] as usize
    }

    /// The block to evict, and its next use: one without a known next use, least recently touched, or the furthest.
    pub fn victim(&self, now: &Now<'_>) -> Option<(usize, Option<usize>)> {
        let candidates = (0..now.resident.len()).filter(|block| now.resident[*block] && !now.pinned[*block]);
        let with_use = candidates.map(|block| (block, self.next_use(now.cursor, block)));
        with_use.min_by_key(|(block, next)| match next {
            None => (0, self.touched[*block]),
            Some(next) => (1, usize::MAX - next),
        })
    }

    /// A free frame, or a victim that is next used after `limit`.
    pub fn frame_beyond(&self, now: &Now<'_>, limit: usize) -> Option<Option<usize>> {
        if now.free > 0 {
            return Some(None);
        }
        self.victim(now).filter(|(_, next)| next.is_none_or(|next| next > limit)).map(|(block, _)| Some(block))
    }

    pub fn any_frame(&self, now: &Now<'_>) -> Option<Option<usize>> {
        if now.free > 0 {
            return Some(None);
        }
        self.victim(now).map(|(block, _)| Some(block))
    }

    pub fn fetch(&self, now: &mut Now<'_>, block: usize, frame: Option<usize>) {
        match frame {
            None => now.free -= 1,
            Some(victim) => {
                now.resident[victim] = false;
                now.absent[victim] = true;
            }
        }
        now.absent[block] = false;
        now.outstanding[self.disk_of[block] as usize] += 1;
        let victim = frame.map(|block| Block(block as u32));
        now.fetches.push(Fetch { block: Block(block as u32), victim });
    }

    fn fill(&self, now: &mut Now<'_>, open: &[bool], batch: usize) {
        let mut given = vec![0; open.len()];
        while let Some(at) = self.missing(now, |disk| open[disk] && given[disk] < batch).first().copied() {
            let Some(frame) = self.frame_beyond(now, at) else { return };
            given[self.disk(at)] += 1;
            self.fetch(now, self.refs[at] as usize, frame);
        }
    }

    fn within(&self, now: &mut Now<'_>, horizon: usize) {
        while let Some(at) = self.missing(now, |_| true).first().copied().filter(|at| at - now.cursor <= horizon) {
            let frame = match self.frame_beyond(now, now.cursor + horizon) {
                None if at == now.cursor => self.any_frame(now),
                frame => frame,
            };
            let Some(frame) = frame else { return };
            self.fetch(now, self.refs[at] as usize, frame);
        }
    }

    /// The mean of the last 100, in nanoseconds.
    fn recent(each: &[u64]) -> Option<f64> {
        let last = &each[each.len().saturating_sub(100)..];
        (!last.is_empty()).then(|| last.iter().sum::<u64>() as f64 / last.len() as f64)
    }

    /// Section 5: F' = F below 5 ms, else 4F; 15 ms before there is history.
    fn estimate(&self, disk: usize) -> f64 {
        let service = Self::recent(&self.services[disk]).unwrap_or(15e6);
        let think = Self::recent(&self.thinks).unwrap_or(0.0);
        let cautious = if service < 5e6 { service } else { 4.0 * service };
        if think > 0.0 {
            cautious / think
        } else {
            f64::INFINITY
        }
    }

    fn decide(&self, now: &mut Now<'_>) {
        let disks = now.outstanding.len();
        let idle: Vec<bool> = now.outstanding.iter().map(|requests| *requests == 0).collect();
        match self.rule {
            Rule::FixedHorizon { horizon } => self.within(now, horizon),
            Rule::Aggressive { batch } => self.fill(now, &idle, batch),
            Rule::Forestall { ratio, batch, lookahead, horizon } => {
                let fires = |disk: usize| {
                    let ratio = ratio.unwrap_or_else(|| self.estimate(disk));
                    let missing = self.missing(now, |other| other == disk);
                    let within = missing.iter().enumerate().filter(|(_, at)| **at - now.cursor <= lookahead);
                    within.into_iter().any(|(index, at)| (index + 1) as f64 * ratio >= (at - now.cursor) as f64)
                };
                let open: Vec<bool> = (0..disks).map(|disk| idle[disk] && fires(disk)).collect();
                self.fill(now, &open, batch);
                if horizon > 0 {
                    self.within(now, horizon);
                }
            }
        }
    }

    /// The level at the start of a round of decisions.
    pub fn now<'a>(&self, view: &View<'_>, fetches: &'a mut Vec<Fetch>) -> Now<'a> {
        Now {
            cursor: self.served.iter().position(|served| !served).unwrap_or(self.refs.len()),
            resident: view.blocks.iter().map(|state| state.is_resident()).collect(),
            absent: view.blocks.iter().map(|state| state.is_absent()).collect(),
            pinned: view.blocks.iter().map(|state| state.is_pinned()).collect(),
            free: view.free,
            outstanding: view.outstanding.to_vec(),
            fetches,
        }
    }

    /// Whether any queued block is still absent; it is fetched, and nothing else in this round.
    pub fn owes(&mut self, now: &mut Now<'_>) -> bool {
        self.owed.retain(|block| now.absent[*block as usize]);
        let any = !self.owed.is_empty();
        self.pay(now);
        any
    }

    /// Fetches the queued blocks on demand, as far as there are frames.
    fn pay(&mut self, now: &mut Now<'_>) {
        while let Some(block) = self.owed.first().copied() {
            let Some(frame) = self.any_frame(now) else { return };
            self.fetch(now, block as usize, frame);
            self.owed.remove(0);
        }
    }

    fn touch(&mut self, block: Block) {
        self.touched[block.index()] = self.turn;
        self.turn += 1;
    }
}

impl Policy for Naive {
    fn on(&mut self, _now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let counted = self.processes == 1 && !matches!(event, Event::Served { .. });
        let mut now = self.now(view, fetches);
        assert!(!counted || now.cursor == view.cursor as usize);
        match event {
            Event::Decide => {
                if self.owes(&mut now) {
                    return;
                }
                loop {
                    let before = now.fetches.len();
                    self.decide(&mut now);
                    if now.fetches.len() == before {
                        return;
                    }
                }
            }
            Event::Served { position, block, compute, .. } => {
                // A wrong hint is dropped, as if its block had been used.
                let hinted = self.refs[position as usize];
                if hinted != block.0 && self.next_use(now.cursor, hinted as usize) == Some(position as usize) {
                    self.touch(Block(hinted));
                }
                self.touch(block);
                self.served[position as usize] = true;
                if position >= self.processes {
                    self.thinks.push(compute.0 / u64::from(self.processes));
                }
            }
            Event::Asked { position, .. } => {
                let block = view.asked[0].0;
                if self.processes == 1 {
                    let expected = self.next_use(now.cursor, block as usize) == Some(position as usize);
                    if !expected {
                        self.owed = vec![block];
                        self.pay(&mut now);
                    }
                    return;
                }
                if now.absent[block as usize] && !self.owed.contains(&block) {
                    self.owed.push(block);
                }
                self.owed.retain(|block| now.absent[*block as usize]);
                self.pay(&mut now);
            }
            Event::Skipped { .. } => panic!("processes of a simulation reference what they say"),
            Event::Expected => panic!("hints are given at the start"),
            Event::Idle { .. } => panic!("only parallel programs have idle processors"),
            Event::Arrived { block, disk, service } => {
                self.touch(block);
                self.services[disk.index()].push(service.expect("nothing is written here").0);
            }
        }
    }

    fn grow(&mut self, _blocks: usize) {}

    fn takes_requests(&self) -> bool {
        self.processes > 1
    }
}

fn settings(rng: &mut ChaCha8Rng) -> Vec<(&'static str, String, Rule)> {
    let (horizon, batch) = (rng.random_range(0..40), rng.random_range(1..12));
    let (lookahead, ratio) = (rng.random_range(0..150), f64::from(rng.random_range(0..80)) / 4.0);
    let forestall = |fetch_ratio: &str, batch: usize, lookahead: usize, horizon: usize, ratio: Option<f64>| {
        let keys =
            format!("fetch_ratio = {fetch_ratio}\nbatch_size = {batch}\nlookahead = {lookahead}\nhorizon = {horizon}");
        ("forestall", keys, Rule::Forestall { ratio, batch, lookahead, horizon })
    };
    vec![
        ("fixed-horizon", format!("horizon = {horizon}"), Rule::FixedHorizon { horizon }),
        ("aggressive", format!("batch_size = {batch}"), Rule::Aggressive { batch }),
        forestall("\"dynamic\"", batch, lookahead, 0, None),
        forestall("\"dynamic\"", batch, lookahead, horizon, None),
        forestall(&format!("{ratio:?}"), batch, lookahead, 0, Some(ratio)),
        forestall("inf", 1, lookahead, horizon, Some(f64::INFINITY)),
    ]
}

/// A system with service times around the 5 ms at which the estimate changes and think times of microseconds to
/// milliseconds, and the random generator for further choices.
fn drawn(seed: u64) -> (System, ChaCha8Rng) {
    let mut system = System::random(seed, 220, 40);
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    let (slow, long) = (rng.random_range(1..3_000), rng.random_range(1..2_000));
    system.service_ns_max *= slow;
    system.think_ns.iter_mut().for_each(|think| *think *= long);
    (system, rng)
}

fn equal(fast: &Outcomes, naive: &Outcomes, what: &str) -> usize {
    let differ = fast.decisions.iter().zip(&naive.decisions).find(|(fast, naive)| fast != naive);
    assert_eq!(differ, None, "{what}");
    assert_eq!(fast, naive, "{what}");
    fast.decisions.len()
}

#[test]
fn decisions_equal_those_of_the_naive_policies() {
    let mut decisions = 0;
    for seed in 0..COUNT {
        let (system, mut rng) = drawn(seed);
        for (name, keys, rule) in settings(&mut rng) {
            let (row, replacement) = *rows().iter().find(|(row, _)| row.name == name).expect("a row");
            for disclosure in disclosures(system.refs.len(), seed) {
                // Wrong hints too, in every fourth system.
                for said in [system.clone(), misled(&system)].into_iter().take(if seed % 4 == 0 { 2 } else { 1 }) {
                    let fast = run(&system, build(&said, row, replacement, &keys, &disclosure));
                    let naive = run(&system, Box::new(Naive::new(&said, rule, &disclosure, 1)));
                    let what = format!("seed {seed}, {name} {keys:?}, {disclosure:?}\n{:?}\n{system:?}", said.refs);
                    decisions += equal(&fast, &naive, &what);
                }
            }
        }
    }
    println!("{decisions} decisions compared");
}

#[test]
fn decisions_for_several_processes_equal_those_of_the_naive_policies() {
    let (mut decisions, mut late) = (0, 0);
    for seed in 0..COUNT {
        let (system, mut rng) = drawn(seed);
        let processes = rng.random_range(2..7);
        // Either kind of hints in half of the systems.
        let said = if seed % 2 == 0 { system.clone() } else { misled(&system) };
        for (name, keys, rule) in settings(&mut rng) {
            let (row, replacement) = *rows().iter().find(|(row, _)| row.name == name).expect("a row");
            for disclosure in disclosures(system.refs.len(), seed) {
                let policy = build_shared(&said, row, replacement, &keys, &disclosure, processes);
                let fast = run_shared(&system, policy, processes);
                let naive = Box::new(Naive::new(&said, rule, &disclosure, processes));
                let naive = run_shared(&system, naive, processes);
                let what = format!(
                    "seed {seed}, {processes} processes, {name} {keys:?}, {disclosure:?}\n{:?}\n{system:?}",
                    said.refs
                );
                decisions += equal(&fast, &naive, &what);
                late += fast.counts.hits_unready;
            }
        }
    }
    assert!(decisions > 100_000 && late > 10_000, "{decisions} decisions compared, {late} unready hits");
}
