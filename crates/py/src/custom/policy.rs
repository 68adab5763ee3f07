//! A hinted policy written in Python: it chooses fetches and victims together, based on disclosed references.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use headstart_policy::readahead::Found;
use headstart_policy::{BlockState, Event, Fetch, Hints, Policy, View};
use headstart_types::{Block, Nanos, Outcome, Position};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::call::{wrong, Fault, Method};
use super::replacement::shown;
use super::view::{showing, Cache};

/// Disclosed references: the block at each position, or `None` where it is not known (yet).
#[pyclass(frozen, name = "Hints", module = "headstart")]
pub struct PyHints {
    hints: Arc<Hints>,
    cursor: Arc<AtomicU32>,
    /// Positions of each block's disclosed references; those of block b are at `starts[b]..starts[b + 1]`.
    positions: Vec<Position>,
    starts: Vec<usize>,
}

impl PyHints {
    /// Hints relative to `cursor`, which advances.
    fn new(hints: Arc<Hints>, cursor: Arc<AtomicU32>) -> Self {
        let blocks = hints.blocks.iter().map(|block| block.index() + 1).max().unwrap_or(0);
        let mut starts = vec![0; blocks + 1];
        let disclosed = || (0..hints.blocks.len() as Position).filter(|at| hints.is_disclosed(*at));
        disclosed().for_each(|at| starts[hints.blocks[at as usize].index() + 1] += 1);
        for block in 0..blocks {
            starts[block + 1] += starts[block];
        }
        let (mut next, mut positions) = (starts.clone(), vec![0; starts[blocks]]);
        for at in disclosed() {
            let block = hints.blocks[at as usize].index();
            positions[next[block]] = at;
            next[block] += 1;
        }
        Self { hints, cursor, positions, starts }
    }

    fn is_known(&self, at: Position) -> bool {
        let cursor = self.cursor.load(Ordering::Relaxed);
        at < cursor || (self.hints.is_disclosed(at) && at < self.hints.horizon(cursor))
    }
}

#[pymethods]
impl PyHints {
    fn __len__(&self) -> usize {
        self.hints.blocks.len()
    }

    fn __getitem__(&self, position: Position) -> PyResult<Option<u32>> {
        match self.hints.blocks.get(position as usize) {
            Some(block) => Ok(self.is_known(position).then_some(block.0)),
            None => Err(PyIndexError::new_err("beyond the last reference")),
        }
    }

    /// Position of the next disclosed reference to `block` at or after `position` (the cursor if `None`); `None` if
    /// there is none. Takes time proportional to the logarithm of the block's references.
    #[pyo3(signature = (block, position=None))]
    fn next_use(&self, block: usize, position: Option<Position>) -> Option<Position> {
        let from = position.unwrap_or_else(|| self.cursor.load(Ordering::Relaxed));
        let uses = &self.positions[*self.starts.get(block)?..*self.starts.get(block + 1)?];
        let next = *uses.get(uses.partition_point(|at| *at < from))?;
        self.is_known(next).then_some(next)
    }
}

/// A `headstart.Policy`.
pub struct PyPolicy {
    decide: Method,
    victim: Method,
    served: Method,
    arrived: Method,
    cache: Py<Cache>,
    cursor: Arc<AtomicU32>,
    /// Upper bound of block numbers, exclusive.
    blocks: usize,
    /// Requests may have several blocks.
    whole: bool,
    /// Missed blocks that found no frame; retried at every decision.
    owed: VecDeque<Block>,
}

const FETCHES: &str = "allowed: (block, victim) of each fetch, and victim None while a frame is free";

impl PyPolicy {
    /// `object` is of the class that the user names `class`, and works with `hints`. `whole`: requests may have several
    /// blocks.
    pub fn new(object: &Bound<'_, PyAny>, class: &str, hints: Arc<Hints>, whole: bool) -> PyResult<Self> {
        let method = |name| Method::of(object, class, "Policy", name);
        let cursor = Arc::new(AtomicU32::new(0));
        let py = object.py();
        method("hinted")?.call((Py::new(py, PyHints::new(hints, cursor.clone()))?,), |_| Ok(()));
        Ok(Self {
            decide: method("decide")?,
            victim: method("victim")?,
            served: method("served")?,
            arrived: method("arrived")?,
            cache: Py::new(py, Cache)?,
            cursor,
            blocks: 0,
            whole,
            owed: VecDeque::new(),
        })
    }

    /// Fetches the missed blocks that the process waits for, as far as there are frames.
    fn pay(&mut self, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let (mut free, mut states) = (view.free, None::<Vec<BlockState>>);
        while let Some(block) = self.owed.front().copied() {
            let now = View { free, blocks: states.as_deref().unwrap_or(view.blocks), ..*view };
            let Some(fetch) = self.demand(block, &now) else { return };
            fetches.push(fetch);
            self.owed.pop_front();
            if self.owed.is_empty() {
                return;
            }
            // The next fetch must see this decision.
            let states = states.get_or_insert_with(|| view.blocks.to_vec());
            states[block.index()] = BlockState::in_flight(false);
            match fetch.victim {
                Some(victim) => states[victim.index()] = BlockState::ABSENT,
                None => free -= 1,
            }
        }
    }

    /// The fetch of a block that the process waits for; `None` if no frame is available.
    fn demand(&self, block: Block, view: &View<'_>) -> Option<Fetch> {
        let mut victim = None;
        if view.free == 0 {
            let cache = Python::with_gil(|py| self.cache.clone_ref(py));
            let chosen = showing(view, || self.victim.call((block.0, cache), |answer| chosen(answer, view)));
            victim = chosen.flatten();
            if victim.is_none() {
                let all = (0..view.blocks.len() as u32).map(Block);
                if let Some(other) = all.into_iter().find(|block| view.state(*block).is_evictable()) {
                    self.victim.refuse(&format!("chose no block, though block {} may leave", other.0));
                }
                return None;
            }
        }
        Some(Fetch { block, victim })
    }

    /// Parses the fetches returned by `decide`.
    fn read(&self, answer: &Bound<'_, PyAny>, view: &View<'_>, fetches: &mut Vec<Fetch>) -> Result<(), Fault> {
        if answer.is_none() {
            return Ok(());
        }
        let Ok(items) = answer.try_iter() else {
            return wrong(format!("returned {}; {FETCHES}", shown(answer)));
        };
        let (mut fetched, mut evicted, mut free) = (BTreeSet::new(), BTreeSet::new(), view.free);
        for item in items {
            let item = item?;
            let (block, victim) = match item.extract::<(u32, Option<u32>)>() {
                Ok((block, victim)) => (Block(block), victim.map(Block)),
                Err(_) => return wrong(format!("named {}; {FETCHES}", shown(&item))),
            };
            let is_absent = view.state(block).is_absent() || evicted.contains(&block);
            if block.index() >= self.blocks {
                return wrong(format!("fetched block {}; allowed: a block below {}", block.0, self.blocks));
            }
            if !is_absent || !fetched.insert(block) {
                return wrong(format!("fetched block {}, which is in the cache or on its way", block.0));
            }
            match victim {
                None if free == 0 => return wrong(format!("named no victim for block {}; {FETCHES}", block.0)),
                None => free -= 1,
                Some(victim) if free > 0 => {
                    return wrong(format!("evicted block {} while {free} frames are free; {FETCHES}", victim.0));
                }
                Some(victim) if !view.state(victim).is_evictable() || !evicted.insert(victim) => {
                    return wrong(format!("evicted block {}, {NOT_EVICTABLE}", victim.0));
                }
                Some(_) => {}
            }
            fetches.push(Fetch { block, victim });
        }
        Ok(())
    }
}

const NOT_EVICTABLE: &str = "which is not in the cache or is waited for; allowed: a block that is evictable";

/// Parses the block returned by `victim`.
fn chosen(answer: &Bound<'_, PyAny>, view: &View<'_>) -> Result<Option<Block>, Fault> {
    match answer.extract::<Option<u32>>() {
        Ok(None) => Ok(None),
        Ok(Some(block)) if view.state(Block(block)).is_evictable() => Ok(Some(Block(block))),
        Ok(Some(block)) => wrong(format!("chose block {block}, {NOT_EVICTABLE}")),
        Err(_) => wrong(format!("returned {}; allowed: a block that is evictable", shown(answer))),
    }
}

impl Policy for PyPolicy {
    fn on(&mut self, _now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        self.cursor.store(view.cursor, Ordering::Relaxed);
        match event {
            Event::Served { position, block, outcome, .. } => {
                self.cursor.fetch_max(position + 1, Ordering::Relaxed);
                self.served.tell((position, block.0, outcome != Outcome::Miss));
            }
            Event::Arrived { block, disk, .. } => self.arrived.tell((block.0, disk.0)),
            Event::Asked { .. } => {
                let found = view.asked.iter().zip(view.found);
                self.owed = found.filter(|(_, found)| **found == Found::Absent).map(|(block, _)| *block).collect();
                self.pay(view, fetches);
            }
            Event::Decide => {
                self.owed.retain(|block| view.state(*block).is_absent());
                if !self.owed.is_empty() {
                    return self.pay(view, fetches);
                }
                let cache = Python::with_gil(|py| self.cache.clone_ref(py));
                showing(view, || self.decide.call((cache,), |answer| self.read(answer, view, fetches)));
            }
            Event::Idle { .. } | Event::Skipped { .. } | Event::Expected => {}
        }
    }

    fn grow(&mut self, blocks: usize) {
        self.blocks = blocks;
    }

    fn decides(&self, _outstanding: &[u32]) -> bool {
        !self.owed.is_empty() || self.decide.is_there()
    }

    fn takes_requests(&self) -> bool {
        self.whole
    }
}
