//! The optimum: the least elapsed time over all schedules, by exhaustive search; for tiny instances only.
//!
//! Model: kimbrel96, section 2.1 (uniform fetch time, constant think time, no driver work). The search is A* over
//! states (cursor, think time left, resident set, what each disk is fetching), bounded from below by the think
//! time left. Decisions are tried at instants where something happens; by "first opportunity" (section 2.2) no
//! other instants are needed. Of the paper's rules only what holds on any number of disks prunes the choice: a
//! free frame goes first, then a block that is never used again, and only blocks with a use are fetched.
//! Cost: exponential. Refused above [`BLOCKS_MAX`] blocks, [`DISKS_MAX`] disks or [`STATES_MAX`] states.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

use headstart_types::{Block, Disk, Nanos};

use super::{Round, Strategy};

/// Most blocks of the universe.
pub const BLOCKS_MAX: usize = 32;
/// Most disks.
pub const DISKS_MAX: usize = 4;
/// Most states that a search may meet: about 1 GB.
pub const STATES_MAX: usize = 4_000_000;

/// What to schedule.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The reference string.
    pub references: Vec<Block>,
    /// Resident blocks at the start, at most `frames`.
    pub initial: Vec<Block>,
    /// K.
    pub frames: usize,
    /// By block.
    pub disk_of: Vec<Disk>,
    /// d.
    pub disks: usize,
    /// Think time after each reference.
    pub compute: Nanos,
    /// Fetch time.
    pub fetch: Nanos,
}

/// The instance is too large to search; says how.
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
    /// By disk: the block being fetched and the time left; `IDLE` if none.
    fetching: [(u8, Nanos); DISKS_MAX],
}

const IDLE: (u8, Nanos) = (u8::MAX, Nanos::ZERO);

/// A fetch of the optimal schedule: when, what, in place of what.
type Step = (Nanos, Block, Option<Block>);

struct Reached {
    state: State,
    at: Nanos,
    /// The state before, and the fetches issued on the way from it.
    parent: usize,
    issued: Vec<(Block, Option<Block>)>,
}

struct Search<'a> {
    instance: &'a Instance,
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

/// The least elapsed time and a schedule that takes it.
fn solve(instance: &Instance) -> Result<(Nanos, Vec<Step>), TooLarge> {
    if instance.disk_of.len() > BLOCKS_MAX || instance.disks > DISKS_MAX {
        return Err(TooLarge(format!(
            "too large for the exact optimum: {} blocks on {} disks; at most {BLOCKS_MAX} blocks on {DISKS_MAX} disks",
            instance.disk_of.len(),
            instance.disks
        )));
    }
    let mut search = Search { instance, reached: Vec::new(), best: HashMap::default(), open: BinaryHeap::new() };
    let resident = instance.initial.iter().fold(0, |set, block| set | 1 << block.0);
    let start = State { cursor: 0, think_left: Nanos::ZERO, resident, fetching: [IDLE; DISKS_MAX] };
    search.reach(start, Nanos::ZERO, usize::MAX, Vec::new());
    while let Some(Reverse((_, index))) = search.open.pop() {
        let Reached { state, at, .. } = search.reached[index];
        if state.cursor as usize == instance.references.len() {
            return Ok((at + state.think_left, search.schedule(index)));
        }
        if search.best[&state] < at {
            continue;
        }
        if search.reached.len() > STATES_MAX {
            return Err(TooLarge(format!(
                "too large for the exact optimum: more than {STATES_MAX} states; try fewer references or blocks"
            )));
        }
        search.decide(index, state, at, 0, &mut Vec::new());
    }
    unreachable!("fetching on demand always reaches the end")
}

impl Search<'_> {
    fn reach(&mut self, state: State, at: Nanos, parent: usize, issued: Vec<(Block, Option<Block>)>) {
        match self.best.get_mut(&state) {
            Some(best) if *best <= at => return,
            Some(best) => *best = at,
            None => {
                self.best.insert(state, at);
            }
        }
        let left = self.instance.references.len() as u64 - u64::from(state.cursor);
        self.open.push(Reverse((at + state.think_left + self.instance.compute * left, self.reached.len())));
        self.reached.push(Reached { state, at, parent, issued });
    }

    /// Blocks referenced at or after the cursor.
    fn wanted(&self, state: &State) -> u32 {
        self.instance.references[state.cursor as usize..].iter().fold(0, |set, block| set | 1 << block.0)
    }

    /// Tries every choice for the disks from `disk` on, then lets time pass.
    fn decide(&mut self, from: usize, state: State, at: Nanos, disk: usize, issued: &mut Vec<(Block, Option<Block>)>) {
        if disk == self.instance.disks {
            return self.pass(from, state, at, issued);
        }
        self.decide(from, state, at, disk + 1, issued);
        if state.fetching[disk] != IDLE {
            return;
        }
        let in_flight = state.fetching.iter().filter(|fetch| **fetch != IDLE).fold(0, |set, fetch| set | 1 << fetch.0);
        let wanted = self.wanted(&state);
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
                self.decide(from, next, at, disk + 1, issued);
                issued.pop();
            }
        }
    }

    /// Serves the reference if it can be, and moves on to the next instant at which something happens.
    fn pass(&mut self, from: usize, mut state: State, at: Nanos, issued: &[(Block, Option<Block>)]) {
        if state.think_left == Nanos::ZERO {
            let block = self.instance.references[state.cursor as usize];
            if state.resident >> block.0 & 1 != 0 {
                state.cursor += 1;
                state.think_left = self.instance.compute;
            }
        }
        let left = state.fetching.iter().filter(|fetch| **fetch != IDLE).map(|(_, left)| *left);
        let thinking = (state.think_left > Nanos::ZERO).then_some(state.think_left);
        let Some(step) = left.chain(thinking).min() else { return };
        for fetch in state.fetching.iter_mut().filter(|fetch| **fetch != IDLE) {
            fetch.1 -= step;
            if fetch.1 == Nanos::ZERO {
                state.resident |= 1 << fetch.0;
                *fetch = IDLE;
            }
        }
        state.think_left = state.think_left.saturating_sub(step);
        self.reach(state, at + step, from, issued.to_vec());
    }

    fn schedule(&self, mut index: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        while self.reached[index].parent != usize::MAX {
            let parent = self.reached[index].parent;
            let at = self.reached[parent].at;
            // Within one instant the order of issue matters (a free frame may be taken once only): keep it.
            steps.extend(self.reached[index].issued.iter().rev().map(|(block, victim)| (at, *block, *victim)));
            index = parent;
        }
        steps.reverse();
        steps
    }
}

/// The policy that carries out the optimal schedule.
#[derive(Debug)]
pub struct Optimum {
    steps: std::iter::Peekable<std::vec::IntoIter<Step>>,
}

impl Optimum {
    /// Searches for the schedule.
    ///
    /// # Errors
    /// The instance is too large.
    pub fn try_new(instance: &Instance) -> Result<Self, TooLarge> {
        Ok(Self { steps: solve(instance)?.1.into_iter().peekable() })
    }
}

impl Strategy for Optimum {
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>) {
        while let Some((_, block, victim)) = self.steps.next_if(|(at, ..)| *at <= now) {
            round.fetch(block, victim);
        }
    }

    // `wake_at` is not needed: every step of the schedule is at an instant at which something happens.
}
