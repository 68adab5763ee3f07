//! The references themselves, a chunk at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use headstart_device::{Explicit, Layout, Stripe};
use headstart_trace::patterns::{self, PatternContext};
use headstart_trace::{Carries, Record};
use headstart_types::{Block, Bytes, Chunk, KeyError, Nanos, Program, Think};

use super::cutting::{Cut, Cutter};
use super::numbering::Universe;
use super::places::Places;
use super::placing::Placing;
use super::records::{Opened, Records};
use super::survey::{survey, Survey};
use super::thinking::{factor, thinking, Factor, Thinking};
use crate::run::TIME_MAX;
use crate::scenario::{
    Addresses, Arrival, BlockSize, CacheSize, DeviceKeys, Input, LowerKeys, LowerSize, PatternKeys, Placement,
    Processes, Scenario, WorkloadKeys,
};
use crate::Error;

/// The references of a scenario, in order.
pub struct References {
    /// Blocks seen so far.
    pub places: Rc<Places>,
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
    /// What a user must know of the trace.
    pub note: Option<&'static str>,
    /// Processes in order of their first requests, where each asks for its own.
    pub pids: Vec<u32>,
    /// What processes read by a pattern, and whether they share it.
    pub program: Option<Arc<Program>>,
    supply: Supply,
    factor: Factor,
    thinking: Thinking,
    /// Writes are told apart.
    mark_writes: bool,
    /// Arrival times are kept, multiplied by this.
    time_scale: Option<f64>,
}

enum Supply {
    Records {
        records: Records,
        cutter: Cutter,
        held: Option<Record>,
    },
    /// Inline references; `None` once they have been handed out.
    Inline(Option<Vec<Block>>),
}

impl References {
    /// Prepares the references of `scenario` for disks of `capacity` sectors.
    ///
    /// # Errors
    /// A key or the trace is at fault.
    pub fn try_new(scenario: &Scenario, capacity: Option<u64>) -> Result<Self, Error> {
        match Opened::new(&scenario.workload, scenario.seed) {
            Some(opened) => Self::from_records(scenario, &opened, capacity),
            None => match scenario.process.as_ref().and_then(|process| process.pattern.as_ref()) {
                Some(pattern) => Self::of_pattern(scenario, pattern, capacity),
                None => Self::inline(scenario, capacity),
            },
        }
    }

    /// Nothing but places: processes take what they read from the program's strings.
    fn of_pattern(scenario: &Scenario, pattern: &PatternKeys, capacity: Option<u64>) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let context = PatternContext { processes: pattern.count, seed: scenario.seed };
        let strings = patterns::pattern(pattern.name)?.strings(pattern.keys.clone(), &context);
        let strings = strings.map_err(|error| error.within("process.pattern"))?;
        let mut found = Survey { references: strings.blocks.len() as u64, ..Survey::default() };
        let footprint = matches!(scenario.cache.size, CacheSize::Footprint(_));
        if footprint || keys.addresses != Addresses::Error {
            found.blocks = strings.blocks.iter().map(|at| (0, u64::from(*at))).collect();
        }
        let placing = Placing::try_new(keys, Placement::Address, &scenario.device, capacity, &found, scenario.seed)?;
        let sizes = BTreeMap::from([(0, u64::from(strings.file_blocks))]);
        let places = Places::new(Universe::default(), Some(placing), sizes);
        if scenario.is_flow() {
            places.keep_places();
        }
        let number = |universe: &mut Universe, placing: &Placing| {
            strings.blocks.iter().map(|at| universe.number(0, u64::from(*at), placing)).collect()
        };
        let blocks: Vec<Block> = places.number(number)?;
        let program = Program {
            blocks: blocks.into(),
            string_ends: strings.string_ends.into(),
            portion_ends: strings.portion_ends.into(),
            string_of: strings.string_of.into(),
            regular: strings.regular,
        };
        let thinking = thinking(keys.compute, scenario.seed);
        Ok(Self {
            places: Rc::new(places),
            distinct: found.blocks.len(),
            frames: frames(scenario.cache.size, found.blocks.len()),
            initial: Vec::new(),
            placement: Some(Placement::Address),
            carries: Carries::default(),
            note: None,
            pids: Vec::new(),
            program: Some(Arc::new(program)),
            supply: Supply::Inline(None),
            factor: Factor::Scale(keys.compute_scale),
            thinking,
            mark_writes: false,
            time_scale: None,
        })
    }

    fn from_records(scenario: &Scenario, opened: &Opened, capacity: Option<u64>) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let records = opened.read()?;
        let carries = records.carries();
        if keys.block_size == BlockSize::Object && !carries.objects {
            let allowed = "a size such as \"8KiB\"";
            return Err(KeyError::new("workload.block_size", "the trace has no objects of its own", allowed).into());
        }
        if !scenario.cache.initial.is_empty() {
            let problem = "names blocks, which only inline references have";
            return Err(KeyError::new("cache.initial", problem, "workload.references, or no initial").into());
        }
        let by_default = if carries.files { Placement::TableOrder } else { Placement::Address };
        let placement = keys.placement.unwrap_or(by_default);
        let cutter = Cutter::new(keys, carries, placement != Placement::Address);
        let by_footprint = |level: &LowerKeys| matches!(level.size, LowerSize::Own(CacheSize::Footprint(_)));
        let footprint =
            matches!(scenario.cache.size, CacheSize::Footprint(_)) || scenario.lower.iter().any(by_footprint);
        let distinct = keys.addresses != Addresses::Error || footprint;
        let pids = if keys.processes == Processes::PerPid { pids(opened, carries)? } else { Vec::new() };
        let needed = distinct || placement != Placement::Address || keys.compute_total.is_some();
        let found = if needed { survey(opened, &cutter, distinct)? } else { Survey::default() };
        let placing = Placing::try_new(keys, placement, &scenario.device, capacity, &found, scenario.seed)?;
        let frames = frames(scenario.cache.size, found.blocks.len());
        let note = records.reader().note();
        let sizes =
            if placement == Placement::Address { BTreeMap::new() } else { found.files.iter().copied().collect() };
        let supply = Supply::Records { records, cutter, held: None };
        let thinking = thinking(keys.compute, scenario.seed);
        let factor = factor(keys, &thinking, &found, scenario.seed)?;
        Ok(Self {
            places: Rc::new(Places::new(Universe::default(), Some(placing), sizes)),
            distinct: found.blocks.len(),
            frames,
            initial: Vec::new(),
            placement: Some(placement),
            carries,
            note,
            pids,
            program: None,
            supply,
            factor,
            thinking,
            mark_writes: keys.writes.reach_devices(),
            time_scale: time_scale(keys, carries)?,
        })
    }

    fn inline(scenario: &Scenario, capacity: Option<u64>) -> Result<Self, Error> {
        let Input::References(names) = &scenario.workload.input else { unreachable!("no records: inline") };
        if names.is_empty() {
            return Err(KeyError::new("workload.references", "empty", "at least one block name").into());
        }
        if scenario.workload.processes == Processes::PerPid {
            let allowed = "\"merged\", or a trace with processes";
            return Err(KeyError::new("workload.processes", "inline references have no processes", allowed).into());
        }
        if scenario.workload.placement.is_some() {
            let allowed = "device.layout, or no placement";
            return Err(KeyError::new("workload.placement", "inline references have no files", allowed).into());
        }
        let limit = scenario.workload.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let names = &names[..names.len().min(limit)];
        let mut numbers: BTreeMap<&String, u64> = BTreeMap::new();
        let mut order = Vec::new();
        for name in names.iter().chain(&scenario.cache.initial) {
            numbers.entry(name).or_insert_with(|| {
                order.push(name);
                order.len() as u64 - 1
            });
        }
        let block = Bytes(scenario.workload.block_bytes());
        let layout = layout(&scenario.device, block, capacity, &numbers).map_err(|error| error.within("device"))?;
        let sectors = headstart_device::sectors_of(block.0).max(1);
        let mut universe = Universe::default();
        universe.keep_places();
        for (at, name) in order.iter().enumerate() {
            let (disk, sector) = layout.place(at as u64).ok_or_else(|| {
                KeyError::new("device.layout", format!("block \"{name}\" is nowhere"), "every block once")
            })?;
            if capacity.is_some_and(|capacity| sector + sectors > capacity) {
                let problem = format!("block \"{name}\" lies beyond the device");
                return Err(KeyError::new("workload.references", problem, "fewer or smaller blocks").into());
            }
            universe.push_named(disk, sector);
        }
        let number = |name: &String| Block(numbers[name] as u32);
        let references: Vec<Block> = names.iter().map(number).collect();
        let initial: Vec<Block> = scenario.cache.initial.iter().map(number).collect();
        let frames = frames(scenario.cache.size, order.len());
        let distinct: BTreeSet<Block> = initial.iter().copied().collect();
        if distinct.len() < initial.len() || initial.len() > frames as usize {
            let allowed = format!("at most {frames} different blocks");
            return Err(KeyError::new("cache.initial", "does not fit the cache", allowed).into());
        }
        let found = Survey { references: references.len() as u64, ..Survey::default() };
        let thinking = thinking(scenario.workload.compute, scenario.seed);
        let factor = factor(&scenario.workload, &thinking, &found, scenario.seed)?;
        Ok(Self {
            places: Rc::new(Places::new(universe, None, BTreeMap::new())),
            distinct: order.len(),
            frames,
            initial,
            placement: None,
            carries: Carries::default(),
            note: None,
            pids: Vec::new(),
            program: None,
            supply: Supply::Inline(Some(references)),
            factor,
            thinking,
            mark_writes: false,
            time_scale: time_scale(&scenario.workload, Carries::default())?,
        })
    }

    /// The references of one process of the same trace, from its first on, in the same space.
    ///
    /// # Errors
    /// The trace cannot be read again.
    pub fn of_process(&self, scenario: &Scenario, pid: u32) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let Some(opened) = Opened::new(keys, scenario.seed) else {
            let allowed = "\"merged\", or a trace with processes";
            return Err(KeyError::new("workload.processes", "inline references have no processes", allowed).into());
        };
        let Supply::Records { cutter, .. } = &self.supply else { unreachable!("it is read from records") };
        let records = opened.of_process(pid).read()?;
        Ok(Self {
            places: self.places.clone(),
            distinct: self.distinct,
            frames: self.frames,
            initial: Vec::new(),
            placement: self.placement,
            carries: self.carries,
            note: None,
            pids: Vec::new(),
            program: None,
            supply: Supply::Records { records, cutter: cutter.clone(), held: None },
            factor: self.factor,
            thinking: thinking(keys.compute, scenario.seed.wrapping_add(u64::from(pid))),
            mark_writes: self.mark_writes,
            time_scale: self.time_scale,
        })
    }

    /// Whether every think time is the same, and which it is.
    #[must_use]
    pub fn constant_think(&self) -> Option<Nanos> {
        match (&self.thinking, &self.supply) {
            (Thinking::Constant(think), _) => Some(self.factor.of(*think)),
            (Thinking::Recorded, Supply::Inline(_)) => Some(Nanos::ZERO),
            (Thinking::Recorded, _) if !self.carries.think && !self.carries.time => Some(Nanos::ZERO),
            _ => None,
        }
    }

    /// How far the reading is: (done, total), in units of the input.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        match &self.supply {
            Supply::Records { records, .. } => records.reader().progress(),
            Supply::Inline(_) => (0, 1),
        }
    }

    /// Fills `chunk` with the next references; false, and none, at the end.
    ///
    /// # Errors
    /// The trace is wrong there.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.blocks.clear();
        chunk.request_ends.clear();
        chunk.writes.clear();
        chunk.times.clear();
        let constant = self.constant_think();
        let mut recorded = match std::mem::replace(&mut chunk.think, Think::Constant(Nanos::ZERO)) {
            Think::Each(mut each) => {
                each.clear();
                each
            }
            Think::Constant(_) => Vec::new(),
        };
        let keep = constant.is_none().then_some(&mut recorded);
        match &mut self.supply {
            Supply::Inline(references) => chunk.blocks = references.take().unwrap_or_default(),
            Supply::Records { records, cutter, held } => {
                let (mark_writes, time_scale) = (self.mark_writes, self.time_scale);
                self.places.number(|universe, placing| {
                    Cutting { cutter, placing, universe, chunk, thinks: keep, mark_writes, time_scale }
                        .pull(records, held)
                })?;
            }
        }
        chunk.think = match (constant, &mut self.thinking) {
            (Some(think), _) => Think::Constant(think),
            (None, Thinking::Drawn(sampler)) => {
                recorded.clear();
                recorded.extend((0..chunk.blocks.len()).map(|_| self.factor.of(sampler.next_think())));
                Think::Each(recorded)
            }
            (None, _) => {
                recorded.iter_mut().for_each(|think| *think = self.factor.of(*think));
                Think::Each(recorded)
            }
        };
        if chunk.blocks.is_empty() && self.places.universe().disk_of.is_empty() {
            let problem = "no request is left";
            return Err(KeyError::new("workload.writes", problem, "\"as-read\", or a trace with reads").into());
        }
        Ok(!chunk.blocks.is_empty())
    }

    /// All references that are left, in one chunk.
    ///
    /// # Errors
    /// The trace is wrong somewhere, or there are too many references to number.
    pub fn rest(&mut self) -> Result<Chunk, Error> {
        let (mut all, mut part) = (Chunk::empty(), Chunk::empty());
        let mut each = Vec::new();
        while self.next(&mut part)? {
            if all.blocks.len() + part.blocks.len() >= headstart_types::NEVER as usize {
                let problem = "more references than a hinted policy can number";
                return Err(KeyError::new("workload.limit", problem, "fewer than 4294967295 references").into());
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
            all.blocks.extend_from_slice(&part.blocks);
            match &part.think {
                Think::Constant(think) => all.think = Think::Constant(*think),
                Think::Each(thinks) => each.extend_from_slice(thinks),
            }
        }
        if !each.is_empty() {
            all.think = Think::Each(each);
        }
        Ok(all)
    }
}

/// Processes in order of their first requests.
fn pids(opened: &Opened, carries: Carries) -> Result<Vec<u32>, Error> {
    if !carries.processes {
        let allowed = "\"merged\", or a trace with processes";
        return Err(KeyError::new("workload.processes", "the trace tells no processes apart", allowed).into());
    }
    let (mut records, mut seen, mut order) = (opened.read()?, BTreeSet::new(), Vec::new());
    loop {
        let batch = records.next_batch()?;
        if batch.is_empty() {
            return Ok(order);
        }
        order.extend(batch.iter().map(|record| record.pid).filter(|pid| seen.insert(*pid)));
    }
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

/// References under construction.
struct Cutting<'a> {
    cutter: &'a Cutter,
    placing: &'a Placing,
    universe: &'a mut Universe,
    chunk: &'a mut Chunk,
    /// Kept where think times are as recorded: all after the last block of a request.
    thinks: Option<&'a mut Vec<Nanos>>,
    mark_writes: bool,
    time_scale: Option<f64>,
}

impl Cutting<'_> {
    #[inline]
    fn push(&mut self, record: &Record, next: Option<&Record>) -> Result<(), Error> {
        let Cut { file, first, blocks } = self.cutter.cut(record)?;
        for at in first..first + blocks {
            self.chunk.blocks.push(self.universe.number(file, at, self.placing)?);
        }
        let count = self.chunk.blocks.len();
        if let Some(thinks) = &mut self.thinks {
            thinks.resize(count - 1, Nanos::ZERO);
            thinks.push(self.cutter.think(record, next));
        }
        if let Some(scale) = self.time_scale {
            let time = Nanos((record.time.0 as f64 * scale).round() as u64).min(TIME_MAX);
            self.chunk.times.resize(count, time);
        }
        if self.mark_writes && (record.write || !self.chunk.writes.is_empty()) {
            // Where all read there are no marks; from the first write on, all are marked.
            self.chunk.writes.resize(count - blocks as usize, false);
            self.chunk.writes.resize(count, record.write);
        }
        if blocks > 1 || !self.chunk.request_ends.is_empty() {
            // Single-block requests need no marks; from the first larger one on, all are marked.
            self.chunk.request_ends.resize(count - blocks as usize, true);
            self.chunk.request_ends.resize(count - 1, false);
            self.chunk.request_ends.push(true);
        }
        Ok(())
    }

    /// Cuts one batch. A request's think time is known once the next one is: the last record is held back.
    fn pull(&mut self, records: &mut Records, held: &mut Option<Record>) -> Result<(), Error> {
        while self.chunk.blocks.is_empty() {
            let batch = records.next_batch()?;
            if let Some(record) = held.take() {
                self.push(&record, batch.first())?;
            }
            if self.thinks.is_none() && self.cutter.objects && !self.mark_writes && self.time_scale.is_none() {
                // Nothing to hold back, and one block each.
                for record in batch {
                    let file = self.cutter.file(record);
                    self.chunk.blocks.push(self.universe.number(file, record.offset, self.placing)?);
                }
                return Ok(());
            }
            for pair in batch.windows(2) {
                self.push(&pair[0], Some(&pair[1]))?;
            }
            *held = batch.last().copied();
            if batch.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn frames(size: CacheSize, distinct: usize) -> u32 {
    match size {
        CacheSize::Blocks(blocks) => blocks,
        CacheSize::Footprint(share) => share_of(share, distinct),
    }
}

/// A share of so many blocks, at least one.
#[must_use]
pub fn share_of(share: f64, distinct: usize) -> u32 {
    ((distinct as f64 * share).round() as u32).max(1)
}

/// Where inline blocks lie: as listed, or striped in order of their numbers. Listed blocks that nobody references
/// have numbers after `numbers`: they only take up room.
fn layout(
    device: &DeviceKeys,
    block: Bytes,
    capacity: Option<u64>,
    numbers: &BTreeMap<&String, u64>,
) -> Result<Layout, KeyError> {
    let Some(lists) = &device.layout else {
        return match device.array.is_independent() {
            true => {
                headstart_device::build_layout(device.array.name, device.count, device.stripe_unit, block, capacity)
            }
            false => Stripe::try_new(1, block, block).map(Layout::Stripe),
        };
    };
    let mut others: BTreeMap<&String, u64> = BTreeMap::new();
    let mut number = |name| {
        let next = (numbers.len() + others.len()) as u64;
        numbers.get(name).copied().unwrap_or_else(|| *others.entry(name).or_insert(next))
    };
    let lists: Vec<Vec<u64>> = lists.iter().map(|list| list.iter().map(&mut number).collect()).collect();
    Explicit::try_new(&lists, block).map(Layout::Explicit)
}
