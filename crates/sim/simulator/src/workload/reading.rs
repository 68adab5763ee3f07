//! References as they are read, a chunk at a time.

use headstart_layout::Places;
use headstart_trace::Record;
use headstart_types::{Block, Chunk, KeyError, Nanos, Think};

use super::cutting::Cutter;
use super::filling::{Filling, Marks, Trail};
use super::records::Records;
use super::thinking::{after_data, Factor, Thinking};
use crate::Error;

/// Maximum number of references that can be known in advance. Each costs a run some 20 bytes, 2.7 GB in all. A guess at
/// what a large laptop has.
pub const KNOWN_REFERENCES_MAX: usize = 1 << 27;

/// Maximum number of references of a process, leaving room for a chunk within 32 bits.
const GIVEN_MAX: u64 = (u32::MAX - (1 << 30)) as u64;

#[allow(clippy::large_enum_variant)] // A run has only one or two.
enum Left {
    Records {
        records: Records,
        cutter: Cutter,
        held: Option<Record>,
    },
    /// Inline references; `None` once they have been returned.
    Inline(Option<Vec<Block>>),
}

/// The remaining references of a process.
pub struct Reading {
    left: Left,
    factor: Factor,
    thinking: Thinking,
    marks: Marks,
    trail: Trail,
    /// References returned so far.
    given: u64,
}

impl Reading {
    /// Blocks given in the scenario; `None` if processes take theirs from a program.
    #[must_use]
    pub fn inline(blocks: Option<Vec<Block>>, factor: Factor, thinking: Thinking) -> Self {
        Self::new(Left::Inline(blocks), factor, thinking, Marks::default())
    }

    /// The references of records.
    #[must_use]
    pub fn of_records(records: Records, cutter: Cutter, factor: Factor, thinking: Thinking, marks: Marks) -> Self {
        Self::new(Left::Records { records, cutter, held: None }, factor, thinking, marks)
    }

    /// The references of other records of the same trace.
    ///
    /// # Panics
    /// If these are not records.
    #[must_use]
    pub fn of_others(&self, records: Records, thinking: Thinking) -> Self {
        let Left::Records { cutter, .. } = &self.left else { unreachable!("only records have processes") };
        Self::of_records(records, cutter.clone(), self.factor, thinking, self.marks)
    }

    fn new(left: Left, factor: Factor, thinking: Thinking, marks: Marks) -> Self {
        Self { left, factor, thinking, marks, trail: Trail::default(), given: 0 }
    }

    /// The progress as (done, total), in units of the input.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match &self.left {
            Left::Records { records, .. } => records.reader().progress(),
            Left::Inline(_) => (0, 1),
        }
    }

    /// The think time, if all are equal.
    #[must_use]
    pub fn constant_think(&self) -> Option<Nanos> {
        match &self.thinking {
            Thinking::Constant(think) => Some(self.factor.of(*think)),
            Thinking::Recorded if !self.marks.thinks => Some(Nanos::ZERO),
            _ => None,
        }
    }

    /// Fills `chunk` with the next references, numbered in `places`; false, and none, at the end.
    ///
    /// # Errors
    /// An error of the trace, or more references than can be numbered.
    pub fn fill(&mut self, chunk: &mut Chunk, places: &Places) -> Result<bool, Error> {
        if self.given > GIVEN_MAX {
            let problem = "more references than positions can number";
            return Err(KeyError::new("workload.limit", problem, "fewer than 3 billion references").into());
        }
        chunk.blocks.clear();
        chunk.request_ends.clear();
        chunk.ends_inside.clear();
        chunk.writes.clear();
        chunk.times.clear();
        chunk.bytes.clear();
        let constant = self.constant_think();
        let mut recorded = match std::mem::replace(&mut chunk.think, Think::Constant(Nanos::ZERO)) {
            Think::Each(mut each) => {
                each.clear();
                each
            }
            Think::Constant(_) => Vec::new(),
        };
        let keep = constant.is_none().then_some(&mut recorded);
        match &mut self.left {
            Left::Inline(references) => chunk.blocks = references.take().unwrap_or_default(),
            Left::Records { records, cutter, held } => {
                let (marks, trail) = (self.marks, &mut self.trail);
                places.number(|universe, placing| {
                    let thinks = keep;
                    let mut filling = Filling {
                        cutter,
                        placing,
                        universe,
                        chunk,
                        thinks,
                        marks,
                        trail,
                        plain: !marks.writes && !marks.bytes && marks.time_scale.is_none() && placing.ffs().is_none(),
                    };
                    filling.pull(records, held)
                })?;
            }
        }
        let factor = self.factor;
        chunk.think = match (constant, &mut self.thinking) {
            (Some(think), _) if think == Nanos::ZERO || chunk.bytes.is_empty() => Think::Constant(think),
            (Some(think), _) => Think::Each(after_data(chunk, || think)),
            (None, Thinking::Drawn(sampler)) => Think::Each(after_data(chunk, || factor.of(sampler.next_think()))),
            (None, _) => {
                recorded.iter_mut().for_each(|think| *think = self.factor.of(*think));
                Think::Each(recorded)
            }
        };
        if chunk.blocks.is_empty() && places.universe().is_empty() {
            let problem = "no requests remain";
            return Err(KeyError::new("workload.writes", problem, "\"as-read\", or a trace with reads").into());
        }
        self.given += chunk.blocks.len() as u64;
        Ok(!chunk.blocks.is_empty())
    }

    fn block_bytes(&self) -> u32 {
        match &self.left {
            Left::Records { cutter, .. } => cutter.block_bytes() as u32,
            Left::Inline(_) => 0,
        }
    }

    /// The error for more references than a policy can know in advance.
    #[cold]
    fn too_many(&self) -> Error {
        let problem =
            format!("there are more than {KNOWN_REFERENCES_MAX} references, and the policy needs all in advance");
        let allowed = "larger blocks, a lower workload.limit, or a policy without hints";
        match &self.left {
            Left::Records { records, held: Some(last), .. } => {
                records.bad(last, &format!("up to here {problem}"), allowed)
            }
            _ => KeyError::new("workload.limit", problem, allowed).into(),
        }
    }

    /// All remaining references, in one chunk.
    ///
    /// # Errors
    /// An error of the trace, or too many references to number.
    pub fn rest(&mut self, places: &Places) -> Result<Chunk, Error> {
        self.rest_within(KNOWN_REFERENCES_MAX, places)
    }

    /// The same, for at most `most` references.
    ///
    /// # Errors
    /// As for [`Reading::rest`].
    pub fn rest_within(&mut self, most: usize, places: &Places) -> Result<Chunk, Error> {
        let (mut all, mut part) = (Chunk::empty(), Chunk::empty());
        let (mut each, mut constant) = (Vec::new(), Nanos::ZERO);
        while self.fill(&mut part, places)? {
            if all.blocks.len() + part.blocks.len() > most {
                return Err(self.too_many());
            }
            if !part.request_ends.is_empty() || !all.request_ends.is_empty() {
                all.request_ends.resize(all.blocks.len(), true);
                all.request_ends.extend_from_slice(&part.request_ends);
                all.request_ends.resize(all.blocks.len() + part.blocks.len(), true);
            }
            if !part.ends_inside.is_empty() {
                all.ends_inside.resize(all.blocks.len(), false);
                all.ends_inside.extend_from_slice(&part.ends_inside);
            }
            if !part.writes.is_empty() || !all.writes.is_empty() {
                all.writes.resize(all.blocks.len(), false);
                all.writes.extend_from_slice(&part.writes);
                all.writes.resize(all.blocks.len() + part.blocks.len(), false);
            }
            if !part.bytes.is_empty() || !all.bytes.is_empty() {
                let whole = self.block_bytes();
                all.bytes.resize(all.blocks.len(), whole);
                all.bytes.extend_from_slice(&part.bytes);
                all.bytes.resize(all.blocks.len() + part.blocks.len(), whole);
            }
            // Some parts have one think time for all of their references, others have one for each.
            match &part.think {
                Think::Constant(think) if each.is_empty() => constant = *think,
                Think::Constant(think) => each.resize(all.blocks.len() + part.blocks.len(), *think),
                Think::Each(thinks) => {
                    each.resize(all.blocks.len(), constant);
                    each.extend_from_slice(thinks);
                }
            }
            all.blocks.extend_from_slice(&part.blocks);
        }
        all.think = if each.is_empty() { Think::Constant(constant) } else { Think::Each(each) };
        Ok(all)
    }
}
