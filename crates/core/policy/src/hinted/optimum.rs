//! The optimum: the least elapsed time over all schedules, by exhaustive search; for tiny instances only.
//!
//! Model: kimbrel96, section 2.1 (uniform fetch time, constant think time, no driver work). The search is A* over
//! states (cursor, remaining think time, resident set, what each disk is fetching) with the remaining think time as the
//! lower bound. Decisions are tried at instants where something happens; by "first opportunity" (section 2.2) no other
//! instants are needed. Only those of the paper's rules that hold for any number of disks prune the choice: a free
//! frame is used first, then that of a block that is never used again, and only blocks with a next use are fetched.
//!
//! Cost: exponential. Refused above [`BLOCKS_MAX`] blocks, [`DISKS_MAX`] disks, [`STATES_MAX`] states or
//! [`CHOICES_MAX`] choices. A single state of four disks and 19 frames has about 10^9 choices, so choices are counted
//! while a state is expanded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use headstart_types::{Block, Disk, KeyError, KeyTable, Nanos, TypedKeys};

use super::{Round, Strategy};
use crate::row::{Context, Family, PolicyRow};
use crate::{Disclosure, Policy};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "optimum",
    summary: "the least elapsed time of all schedules, by exhaustive search (tiny instances only)",
    source: "kimbrel96, section 2.1",
    keys: KeyTable::NONE,
    default_replacement: None,
    family: Family::Hinted(&build),
};

fn build(_: &TypedKeys, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
    context.for_one_process("optimum")?;
    let hints = context.hints_of_row();
    let refused = |problem: &str, allowed: &str| Err(KeyError::new("name", problem, allowed));
    if !(context.uniform && context.constant_compute) || context.mean_compute == Nanos::ZERO {
        return refused(
            "optimum is defined for one level on a uniform device, one constant think time and nothing else",
            "device.model = \"uniform\", workload.compute = a time above zero, no [host] costs, no level below, no \
             [process], no writes to the device",
        );
    }
    if hints.disclosure != Disclosure::All {
        return refused("optimum needs every reference disclosed", "no policy.hints");
    }
    let instance = Instance {
        references: hints.blocks.to_vec(),
        initial: context.initial.clone(),
        frames: context.frames as usize,
        disk_of: context.disk_of.to_vec(),
        disks: context.disks,
        compute: context.mean_compute,
        fetch: context.nominal_service,
    };
    let optimum = Optimum::try_new(&instance)
        .map_err(|large| KeyError::new("name", large.to_string(), "a smaller instance, or another policy"))?;
    Ok(context.hinted(optimum))
}

/// Maximum number of blocks.
pub const BLOCKS_MAX: usize = 32;
/// Maximum number of disks.
pub const DISKS_MAX: usize = 4;
/// Maximum number of states that a search keeps: about 1 GB.
pub const STATES_MAX: usize = 4_000_000;
/// Maximum number of choices that a search tries, each for one disk at one instant: about half a minute. A guess;
/// searches that stay within [`STATES_MAX`] try a few choices per state.
pub const CHOICES_MAX: u64 = 100_000_000;

/// An instance to schedule.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The reference string.
    pub references: Vec<Block>,
    /// Resident blocks at the start, at most `frames`.
    pub initial: Vec<Block>,
    /// K.
    pub frames: usize,
    /// The disk of each block.
    pub disk_of: Vec<Disk>,
    /// d, the number of disks.
    pub disks: usize,
    /// Think time after each reference.
    pub compute: Nanos,
    /// Fetch time of a block.
    pub fetch: Nanos,
}

/// The instance is too large to search; the text gives its size and the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLarge(pub String);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLarge {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    cursor: u32,
    think_left: Nanos,
    resident: u32,
    /// For each disk: the block being fetched and the time left; `IDLE` if none.
    fetching: [(u8, Nanos); DISKS_MAX],
}

const IDLE: (u8, Nanos) = (u8::MAX, Nanos::ZERO);

/// A fetch of the optimal schedule: time, block, victim.
type Step = (Nanos, Block, Option<Block>);

struct Reached {
    state: State,
    at: Nanos,
    /// The preceding state, and the fetches issued after it.
    parent: usize,
    issued: Vec<(Block, Option<Block>)>,
}

/// Limits of a search.
#[derive(Debug, Clone, Copy)]
struct Limits {
    states: usize,
    choices: u64,
}

const LIMITS: Limits = Limits { states: STATES_MAX, choices: CHOICES_MAX };

struct Search<'a> {
    instance: &'a Instance,
    limits: Limits,
    /// For each cursor: the blocks referenced at or after it.
    wanted: Vec<u32>,
    /// Choices tried so far.
    choices: u64,
    reached: Vec<Reached>,
    best: HashMap<State, Nanos, BuildHasherDefault<DefaultHasher>>,
    open: BinaryHeap<Reverse<(Nanos, usize)>>,
}

/// The least elapsed time for `instance`.
///
/// # Errors
/// The instance is too large.
pub fn optimal_elapsed(instance: &Instance) -> Result<Nanos, TooLarge> {
    solve(instance).map(|(elapsed, _)| elapsed)
}

/// The least elapsed time and a schedule that attains it.
fn solve(instance: &Instance) -> Result<(Nanos, Vec<Step>), TooLarge> {
    if instance.disk_of.len() > BLOCKS_MAX || instance.disks > DISKS_MAX {
        return Err(TooLarge(format!(
            "too large for the exact optimum: {} blocks on {} disks; at most {BLOCKS_MAX} blocks on {DISKS_MAX} disks",
            instance.disk_of.len(),
            instance.disks
        )));
    }
    Search::new(instance, LIMITS).run()
}

/// For each cursor up to and including the end: the blocks of `references` at or after it.
fn wanted_from(references: &[Block]) -> Vec<u32> {
    let mut wanted = vec![0; references.len() + 1];
    for (at, block) in references.iter().enumerate().rev() {
        wanted[at] = wanted[at + 1] | 1 << block.0;
    }
    wanted
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance, limits: Limits) -> Self {
        let wanted = wanted_from(&instance.references);
        let (reached, best, open) = (Vec::new(), HashMap::default(), BinaryHeap::new());
        Self { instance, limits, wanted, choices: 0, reached, best, open }
    }

    /// The least elapsed time and a schedule that attains it.
    fn run(&mut self) -> Result<(Nanos, Vec<Step>), TooLarge> {
        let resident = self.instance.initial.iter().fold(0, |set, block| set | 1 << block.0);
        let start = State { cursor: 0, think_left: Nanos::ZERO, resident, fetching: [IDLE; DISKS_MAX] };
        self.reach(start, Nanos::ZERO, usize::MAX, Vec::new())?;
        while let Some(Reverse((_, index))) = self.open.pop() {
            let Reached { state, at, .. } = self.reached[index];
            if state.cursor as usize == self.instance.references.len() {
                return Ok((at + state.think_left, self.schedule(index)));
            }
            if self.best[&state] == at {
                self.decide(index, state, at, 0, &mut Vec::new())?;
            }
        }
        unreachable!("fetching on demand always reaches the end")
    }

    fn reach(
        &mut self,
        state: State,
        at: Nanos,
        parent: usize,
        issued: Vec<(Block, Option<Block>)>,
    ) -> Result<(), TooLarge> {
        match self.best.get_mut(&state) {
            Some(best) if *best <= at => return Ok(()),
            Some(best) => *best = at,
            None => {
                self.best.insert(state, at);
            }
        }
        if self.reached.len() == self.limits.states {
            return Err(too_much(self.limits.states as u64, "states"));
        }
        let left = self.instance.references.len() as u64 - u64::from(state.cursor);
        self.open.push(Reverse((at + state.think_left + self.instance.compute * left, self.reached.len())));
        self.reached.push(Reached { state, at, parent, issued });
        Ok(())
    }

    /// Tries every choice for the disks from `disk` on, then advances time.
    fn decide(
        &mut self,
        from: usize,
        state: State,
        at: Nanos,
        disk: usize,
        issued: &mut Vec<(Block, Option<Block>)>,
    ) -> Result<(), TooLarge> {
        if self.choices == self.limits.choices {
            return Err(too_much(self.limits.choices, "choices"));
        }
        self.choices += 1;
        if disk == self.instance.disks {
            return self.pass(from, state, at, issued);
        }
        self.decide(from, state, at, disk + 1, issued)?;
        if state.fetching[disk] != IDLE {
            return Ok(());
        }
        let in_flight = state.fetching.iter().filter(|fetch| **fetch != IDLE).fold(0, |set, fetch| set | 1 << fetch.0);
        let wanted = self.wanted[state.cursor as usize];
        let used = (state.resident | in_flight).count_ones() as usize;
        let dead = state.resident & !wanted;
        let victims: Vec<Option<u32>> = if used < self.instance.frames {
            vec![None]
        } else if dead != 0 {
            vec![Some(dead.trailing_zeros())]
        } else {
            (0..32).filter(|block| state.resident >> block & 1 != 0).map(Some).collect()
        };
        for block in (0..self.instance.disk_of.len()).filter(|block| {
            (wanted & !state.resident & !in_flight) >> block & 1 != 0 && self.instance.disk_of[*block].index() == disk
        }) {
            for victim in &victims {
                let mut next = state;
                next.fetching[disk] = (block as u8, self.instance.fetch);
                next.resident &= !victim.map_or(0, |victim| 1 << victim);
                issued.push((Block(block as u32), victim.map(Block)));
                self.decide(from, next, at, disk + 1, issued)?;
                issued.pop();
            }
        }
        Ok(())
    }

    /// Serves the reference if possible, and moves on to the next instant at which something happens.
    fn pass(
        &mut self,
        from: usize,
        mut state: State,
        at: Nanos,
        issued: &[(Block, Option<Block>)],
    ) -> Result<(), TooLarge> {
        if state.think_left == Nanos::ZERO {
            let block = self.instance.references[state.cursor as usize];
            if state.resident >> block.0 & 1 != 0 {
                state.cursor += 1;
                state.think_left = self.instance.compute;
            }
        }
        let left = state.fetching.iter().filter(|fetch| **fetch != IDLE).map(|(_, left)| *left);
        let thinking = (state.think_left > Nanos::ZERO).then_some(state.think_left);
        let Some(step) = left.chain(thinking).min() else { return Ok(()) };
        for fetch in state.fetching.iter_mut().filter(|fetch| **fetch != IDLE) {
            fetch.1 -= step;
            if fetch.1 == Nanos::ZERO {
                state.resident |= 1 << fetch.0;
                *fetch = IDLE;
            }
        }
        state.think_left = state.think_left.saturating_sub(step);
        self.reach(state, at + step, from, issued.to_vec())
    }

    fn schedule(&self, mut index: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while self.reached[index].parent != usize::MAX {
            let parent = self.reached[index].parent;
            let at = self.reached[parent].at;
            // Within one instant the order of issue matters (a free frame can be taken only once): keep it.
            steps.extend(self.reached[index].issued.iter().rev().map(|(block, victim)| (at, *block, *victim)));
            index = parent;
        }
        steps.reverse();
        steps
    }
}

fn too_much(most: u64, what: &str) -> TooLarge {
    TooLarge(format!("too large for the exact optimum: more than {most} {what}; try fewer references or blocks"))
}

/// Replays the optimal schedule.
#[derive(Debug)]
pub struct Optimum {
    /// The remaining steps, in order.
    steps: VecDeque<Step>,
}

impl Optimum {
    /// Searches for the schedule.
    ///
    /// # Errors
    /// The instance is too large.
    pub fn try_new(instance: &Instance) -> Result<Self, TooLarge> {
        Ok(Self { steps: solve(instance)?.1.into() })
    }
}

impl Strategy for Optimum {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        while self.steps.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, block, victim)) = self.steps.pop_front() else { break };
            round.fetch(block, victim);
        }
    }

    /// Each step falls on an event, but that may be the mere end of a think time, at which a level that has not changed
    /// does not decide.
    fn wake_at(&self) -> Option<Nanos> {
        self.steps.front().map(|(at, ..)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance with a state of about 10^9 choices: 24 references to as many blocks on four disks, 19 of them
    /// cached.
    fn large() -> Instance {
        Instance {
            references: (0..24).rev().map(Block).collect(),
            initial: (0..19).map(Block).collect(),
            frames: 19,
            disk_of: (0..24).map(|block| Disk(block % 4)).collect(),
            disks: 4,
            compute: Nanos(1),
            fetch: Nanos(7),
        }
    }

    #[test]
    fn a_state_with_too_many_choices_is_refused_while_it_is_expanded() {
        let instance = large();
        let limits = Limits { states: 1_000_000, choices: 5_000 };
        let mut search = Search::new(&instance, limits);
        let TooLarge(problem) = search.run().expect_err("it is too large");
        assert!(problem.contains("more than 5000 choices"), "{problem}");
        assert_eq!(search.choices, 5_000);
    }

    #[test]
    fn no_state_is_kept_beyond_the_limit() {
        let instance = large();
        let limits = Limits { states: 1_000, choices: u64::MAX };
        let mut search = Search::new(&instance, limits);
        let TooLarge(problem) = search.run().expect_err("it is too large");
        assert!(problem.contains("more than 1000 states"), "{problem}");
        assert_eq!((search.reached.len(), search.best.len()), (1_000, 1_001));
        assert!(search.choices < 5_000, "{} choices", search.choices);
    }

    #[test]
    fn a_long_reference_string_costs_no_more_for_each_choice() {
        let references: Vec<Block> = (0..20_000).map(|at| Block(at % 3)).collect();
        let instance = Instance { references, initial: Vec::new(), frames: 3, ..large() };
        let mut search = Search::new(&instance, LIMITS);
        let (elapsed, _) = search.run().expect("it is small");
        // Three fetches overlap, each on a disk of its own; then every reference is a hit.
        assert_eq!(elapsed, Nanos(7 + 20_000));
        assert!(search.choices < 400_000, "{} choices", search.choices);
    }
}
