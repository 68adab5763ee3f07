//! The references themselves, a chunk at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use headstart_device::Device;
use headstart_engine::Supply;
use headstart_layout::{Addresses, FfsKeys, Opens, Placement, Places, Universe};
use headstart_scenario::{Arrival, BlockSize, ComputeKey, Input, Scenario, Survey, WorkloadKeys};
use headstart_trace::{Carries, Record, RecordReader};
use headstart_types::{Block, Bytes, Chunk, KeyError, Nanos, Program, Think};

use super::cutting::{Cutter, RecordedThink};
use super::filling::{Filling, Trail};
use super::fitting::fitting;
use super::inline::Inline;
use super::patterned::Patterned;
use super::records::{Opened, Records};
use super::survey::{pids, survey};
use super::thinking::{after_data, factor, thinking, Factor, Thinking};
use crate::Error;

/// References that can be known in advance. Each costs a run some 20 bytes, which makes 2.7 GB. A guess at what a large
/// laptop holds.
pub const KNOWN_REFERENCES_MAX: usize = 1 << 27;

/// The references of a scenario, in order.
pub struct References {
    /// Distinct blocks, where somebody asks; else none.
    pub distinct: usize,
    /// Blocks of the cache, resolved.
    pub frames: u32,
    /// Blocks resident at the start.
    pub initial: Vec<Block>,
    /// The placement that is used; `None` for inline references.
    pub placement: Option<Placement>,
    /// What the trace says of itself.
    pub carries: Carries,
    /// What recorded think times are made of.
    pub recorded: RecordedThink,
    /// What a user must know of the trace and of what was made of it.
    pub notes: Vec<String>,
    /// Processes in order of their first requests, where each asks for its own.
    pub pids: Vec<u32>,
    /// What processes read by a pattern, and whether they share it.
    pub program: Option<Arc<Program>>,
    left: Left,
    factor: Factor,
    thinking: Thinking,
    /// Writes are told apart.
    mark_writes: bool,
    /// Arrival times are kept, multiplied by this.
    time_scale: Option<f64>,
    /// It matters how much of a block is asked for.
    mark_bytes: bool,
    /// Files are opened in the run.
    opens: bool,
    trail: Trail,
    /// References handed out so far.
    given: u64,
    /// The file that was opened last before the run.
    pub opened_last: Option<u32>,
}

/// References of a process at most, with room for a chunk within 32 bits.
const GIVEN_MAX: u64 = (u32::MAX - (1 << 30)) as u64;

#[allow(clippy::large_enum_variant)] // A run has one or two of them.
enum Left {
    Records {
        records: Records,
        cutter: Cutter,
        held: Option<Record>,
    },
    /// Inline references; `None` once they have been handed out.
    Inline(Option<Vec<Block>>),
}

impl Supply<Places> for References {
    type Error = Error;

    fn next(&mut self, chunk: &mut Chunk, places: &Places) -> Result<bool, Error> {
        self.fill(chunk, places)
    }

    fn progress(&self) -> (u64, u64) {
        match &self.left {
            Left::Records { records, .. } => records.reader().progress(),
            Left::Inline(_) => (0, 1),
        }
    }
}

impl References {
    /// Prepares the references of `scenario` for disks like `disk`, and the places of their blocks.
    ///
    /// # Errors
    /// A key or the trace is at fault.
    pub fn try_new(scenario: &Scenario, disk: &dyn Device) -> Result<(Self, Places), Error> {
        match Opened::new(scenario) {
            Some(opened) => Self::recorded(scenario, opened, disk),
            None if matches!(scenario.workload.input, Input::Pattern) => {
                Ok(Self::of_program(scenario, Patterned::try_new(scenario, disk)?))
            }
            None => Self::named(scenario, Inline::try_new(scenario, disk.capacity_sectors())?),
        }
    }

    /// Nothing but places: processes take what they read from the program's strings.
    fn of_program(scenario: &Scenario, patterned: Patterned) -> (Self, Places) {
        let keys = &scenario.workload;
        let Patterned { places, program, distinct } = patterned;
        let references = Self {
            distinct,
            frames: scenario.cache.size.frames(distinct),
            initial: Vec::new(),
            placement: Some(Placement::Address),
            carries: Carries::default(),
            recorded: RecordedThink::Nothing,
            notes: Vec::new(),
            pids: Vec::new(),
            program: Some(Arc::new(program)),
            left: Left::Inline(None),
            factor: Factor::Scale(keys.compute_scale),
            thinking: thinking(keys.compute, scenario.seed, 0),
            mark_writes: false,
            time_scale: None,
            mark_bytes: false,
            opens: false,
            trail: Trail::default(),
            given: 0,
            opened_last: None,
        };
        (references, places)
    }

    fn named(scenario: &Scenario, inline: Inline) -> Result<(Self, Places), Error> {
        let keys = &scenario.workload;
        let Inline { universe, references, initial, frames } = inline;
        let found = Survey { references: references.len() as u64, ..Survey::default() };
        let thinking = thinking(keys.compute, scenario.seed, 0);
        let factor = factor(keys, &thinking, &found, scenario.seed)?;
        let references = Self {
            distinct: universe.disk_of.len(),
            frames,
            initial,
            placement: None,
            carries: Carries::default(),
            recorded: RecordedThink::Nothing,
            notes: Vec::new(),
            pids: Vec::new(),
            program: None,
            left: Left::Inline(Some(references)),
            factor,
            thinking,
            mark_writes: false,
            time_scale: time_scale(keys, Carries::default())?,
            mark_bytes: false,
            opens: false,
            trail: Trail::default(),
            given: 0,
            opened_last: None,
        };
        Ok((references, Places::new(universe, None, BTreeMap::new())))
    }

    fn recorded(scenario: &Scenario, opened: Opened, disk: &dyn Device) -> Result<(Self, Places), Error> {
        let keys = &scenario.workload;
        let records = opened.read()?;
        let carries = records.carries();
        if keys.block_size == BlockSize::Object && !carries.objects {
            let allowed = "a size such as \"8KiB\"";
            return Err(KeyError::new("workload.block_size", "the trace has no objects of its own", allowed).into());
        }
        if keys.compute == ComputeKey::Gaps && !carries.time {
            let allowed = "a time such as \"1ms\", or a trace with times";
            return Err(KeyError::new("workload.compute", "the trace carries no times", allowed).into());
        }
        if !scenario.cache.initial.is_empty() {
            let problem = "names blocks, which only inline references have";
            return Err(KeyError::new("cache.initial", problem, "workload.references, or no initial").into());
        }
        let by_default = if carries.files { Placement::TableOrder } else { Placement::Address };
        let placement = keys.placement.unwrap_or(by_default);
        let cutter = Cutter::new(keys, carries, placement != Placement::Address);
        let distinct = matches!(keys.addresses, Addresses::Compact { .. }) || scenario.has_footprints();
        let pids = if keys.processes.are_several() { pids(&opened, keys.processes, carries)? } else { Vec::new() };
        let opened_last = match placement {
            Placement::Ffs(FfsKeys { opens: Opens::Before, .. }) => last_to_begin(&opened, pids.last().copied())?,
            _ => None,
        };
        let needed = distinct || placement != Placement::Address || keys.compute_total.is_some();
        let found = if needed { survey(&opened, &cutter, distinct)? } else { Arc::default() };
        let mut notes = Vec::new();
        let place = |addresses, found: &Survey| super::placing(scenario, placement, addresses, disk, found);
        let (placing, found) = match keys.addresses {
            Addresses::Auto => {
                let (placing, found, note) = fitting(&opened, &cutter, found, place)?;
                notes.extend(note);
                (placing, found)
            }
            fixed => (place(fixed, &found)?, found),
        };
        // Counts in a note are known where the records have been read once.
        let of_trace = if found.references > 0 { found.note.clone() } else { records.reader().note() };
        notes.splice(0..0, of_trace);
        let frames = scenario.cache.size.frames(found.contents.blocks.len());
        let sizes = if placement == Placement::Address {
            BTreeMap::new()
        } else {
            found.contents.files.iter().copied().collect()
        };
        notes.extend(ignored_sizes(scenario, records.reader()));
        let left = Left::Records { records, cutter, held: None };
        let thinking = thinking(keys.compute, scenario.seed, 0);
        let factor = factor(keys, &thinking, &found, scenario.seed)?;
        let references = Self {
            distinct: found.contents.blocks.len(),
            frames,
            initial: Vec::new(),
            placement: Some(placement),
            carries,
            recorded: RecordedThink::of(keys, carries),
            notes,
            pids,
            program: None,
            left,
            factor,
            thinking,
            mark_writes: keys.writes.reach_devices(),
            time_scale: time_scale(keys, carries)?,
            mark_bytes: scenario.host.pays_for_blocks(),
            opens: matches!(placement, Placement::Ffs(FfsKeys { opens: Opens::Read, .. })),
            trail: Trail::default(),
            given: 0,
            opened_last,
        };
        Ok((references, Places::new(Universe::default(), Some(placing), sizes)))
    }

    /// The references of one process of the same trace, from its first on, in the same space.
    ///
    /// # Errors
    /// The trace cannot be read again.
    pub fn of_process(&self, scenario: &Scenario, pid: u32) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let (Some(opened), Left::Records { cutter, .. }) = (Opened::new(scenario), &self.left) else {
            unreachable!("only records have processes")
        };
        let records = opened.of_process(pid).read()?;
        Ok(Self {
            distinct: self.distinct,
            frames: self.frames,
            initial: Vec::new(),
            placement: self.placement,
            carries: self.carries,
            recorded: self.recorded,
            notes: Vec::new(),
            pids: Vec::new(),
            program: None,
            left: Left::Records { records, cutter: cutter.clone(), held: None },
            factor: self.factor,
            thinking: thinking(keys.compute, scenario.seed, pid),
            mark_writes: self.mark_writes,
            time_scale: self.time_scale,
            mark_bytes: self.mark_bytes,
            opens: self.opens,
            trail: Trail::default(),
            given: 0,
            opened_last: None,
        })
    }

    /// Whether every think time is the same, and which it is.
    #[must_use]
    pub fn constant_think(&self) -> Option<Nanos> {
        match (&self.thinking, &self.left) {
            (Thinking::Constant(think), _) => Some(self.factor.of(*think)),
            (Thinking::Recorded, Left::Inline(_)) => Some(Nanos::ZERO),
            (Thinking::Recorded, _) if self.recorded == RecordedThink::Nothing => Some(Nanos::ZERO),
            _ => None,
        }
    }

    /// Fills `chunk` with the next references, numbered in `places`; false, and none, at the end.
    ///
    /// # Errors
    /// The trace is wrong there, or has more references than can be numbered.
    fn fill(&mut self, chunk: &mut Chunk, places: &Places) -> Result<bool, Error> {
        if self.given > GIVEN_MAX {
            let problem = "more references than positions can number";
            return Err(KeyError::new("workload.limit", problem, "fewer than 3 billion references").into());
        }
        chunk.blocks.clear();
        chunk.request_ends.clear();
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
                let (mark_writes, time_scale) = (self.mark_writes, self.time_scale);
                let (mark_bytes, opens, trail) = (self.mark_bytes, self.opens, &mut self.trail);
                places.number(|universe, placing| {
                    let thinks = keep;
                    let mut filling = Filling {
                        cutter,
                        placing,
                        universe,
                        chunk,
                        thinks,
                        mark_writes,
                        time_scale,
                        mark_bytes,
                        opens,
                        trail,
                        plain: !mark_writes && !mark_bytes && time_scale.is_none() && placing.ffs().is_none(),
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
        if chunk.blocks.is_empty() && places.universe().disk_of.is_empty() {
            let problem = "no request is left";
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

    /// More references than a policy can know in advance.
    #[cold]
    fn too_many(&self) -> Error {
        let problem =
            format!("there are more than {KNOWN_REFERENCES_MAX} references, and the policy needs all in advance");
        let allowed = "larger blocks, a lower workload.limit, or a policy that is not told the future";
        match &self.left {
            Left::Records { records, held: Some(last), .. } => {
                records.bad(last, &format!("up to here {problem}"), allowed)
            }
            _ => KeyError::new("workload.limit", problem, allowed).into(),
        }
    }

    /// All references that are left, in one chunk.
    ///
    /// # Errors
    /// The trace is wrong somewhere, or there are too many references to number.
    pub fn rest(&mut self, places: &Places) -> Result<Chunk, Error> {
        self.rest_within(KNOWN_REFERENCES_MAX, places)
    }

    /// The same, of which there may be `most`.
    ///
    /// # Errors
    /// As for [`References::rest`].
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
            // A part may have one think time for all of its references where another part has one for each.
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

/// What is to be known of a cache that is given in bytes, where the trace's objects are not of the size of a block.
fn ignored_sizes(scenario: &Scenario, reader: &dyn RecordReader) -> Option<String> {
    let block = scenario.workload.block_bytes();
    let ignored = reader.carries().objects && (reader.sizes_vary() || reader.unit_bytes() != block);
    (ignored && scenario.sizes_in_bytes()).then(|| {
        let block = Bytes(block);
        format!(
            "the sizes of the trace's objects are ignored: each takes one block, and a cache counts blocks of {block}"
        )
    })
}

/// The first file of the process that begins last: of `pid`, or of the only one.
fn last_to_begin(opened: &Opened, pid: Option<u32>) -> Result<Option<u32>, Error> {
    let opened = opened.clone();
    let mut records = pid.map_or(opened.clone(), |pid| opened.of_process(pid)).read()?;
    Ok(records.next_batch()?.first().map(|record| record.file))
}

/// The factor on arrival times, where they are asked for.
fn time_scale(keys: &WorkloadKeys, carries: Carries) -> Result<Option<f64>, KeyError> {
    match keys.arrival {
        Arrival::Closed => Ok(None),
        Arrival::Open(scale) if carries.time => Ok(Some(scale)),
        Arrival::Open(_) => {
            Err(KeyError::new("workload.arrival", "the workload carries no times", "\"closed\", or a trace with times"))
        }
    }
}
