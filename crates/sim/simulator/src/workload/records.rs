//! Records of a workload, which can be read repeatedly, filtered as the scenario says.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use headstart_scenario::{BlockSize, Input, Processes, SampleKeys, Scenario, Traces, Writes};
use headstart_trace::reuse::hash;
use headstart_trace::{
    check_distinct, generate, Carries, GeneratorContext, Record, RecordReader, Selection, TraceError,
};
use headstart_types::{Bytes, KeyError};
use toml::Table;

use crate::Error;

/// Number of blocks after which a batch ends.
const BATCH_BLOCKS_MAX: u64 = 1 << 20;

/// A trace or generator that can be read repeatedly from its start.
#[derive(Debug, Clone)]
pub struct Opened {
    source: Origin,
    traces: Traces,
    seed: u64,
    block_bytes: u64,
    /// Whether blocks are the trace's own objects.
    objects: bool,
    writes: Writes,
    limit: u64,
    dealer: Option<Dealer>,
    /// Restricts reading to this process.
    pid: Option<u32>,
    /// Restricts reading to a sample of extents.
    sampler: Option<Sampler>,
}

#[derive(Debug, Clone)]
enum Origin {
    Trace { path: PathBuf, format: String, request_bytes: Option<u64>, selection: Selection },
    Generator(String, Table),
}

impl Opened {
    /// For a scenario whose input is a trace or a generator.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Option<Self> {
        let (keys, seed) = (&scenario.workload, scenario.seed);
        let source = match &keys.input {
            Input::Trace(path, format) => {
                let (request_bytes, selection) =
                    (keys.section.request_size.map(|Bytes(bytes)| bytes), keys.selection.clone());
                Origin::Trace { path: path.clone(), format: format.clone(), request_bytes, selection }
            }
            Input::Generator(name, own) => Origin::Generator(name.clone(), own.clone()),
            Input::References(_) | Input::Pattern => return None,
        };
        let limit = keys.section.limit.unwrap_or(u64::MAX);
        let count = scenario.process.as_ref().and_then(|process| process.section.count);
        let dealer = count.filter(|_| keys.section.processes == Processes::Dealt).map(Dealer::new);
        Some(Self {
            source,
            traces: scenario.traces.clone(),
            seed,
            block_bytes: keys.block_bytes(),
            objects: keys.block_size == BlockSize::Object,
            writes: keys.section.writes,
            limit,
            dealer,
            pid: None,
            sampler: keys.sample.map(Sampler::new),
        })
    }

    /// Restricts reading to process `pid`; a limit counts all requests.
    #[must_use]
    pub fn of_process(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// The same, decoded separately from other runs.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { traces: self.traces.alone(), ..self.clone() }
    }

    /// The traces shared with other runs; and the trace, if it is one.
    #[must_use]
    pub fn shared(&self) -> (&Traces, Option<&Path>) {
        let path = match &self.source {
            Origin::Trace { path, .. } => Some(path.as_path()),
            Origin::Generator(..) => None,
        };
        (&self.traces, path)
    }

    /// The fields that the records carry.
    ///
    /// # Errors
    /// As for [`Opened::read`].
    pub fn carries(&self) -> Result<Carries, Error> {
        Ok(self.read()?.carries())
    }

    /// The records from the first on.
    ///
    /// # Errors
    /// If the trace cannot be read, or a generator's key is wrong.
    pub fn read(&self) -> Result<Records, Error> {
        let reader = match &self.source {
            Origin::Trace { path, format, request_bytes, selection } => {
                self.traces.open(path, format, *request_bytes, selection).map_err(|error| match error {
                    TraceError::UnknownFormat { problem, allowed, .. } if format != "auto" => {
                        Error::Key(KeyError::new("workload.format", problem, allowed))
                    }
                    TraceError::Key(error) if SELECT.contains(&error.key.as_str()) => {
                        Error::Key(error.within("workload.select"))
                    }
                    TraceError::Key(error) => Error::Key(error.within("workload")),
                    other => other.into(),
                })?
            }
            Origin::Generator(name, keys) => {
                let context = GeneratorContext { seed: self.seed, block_bytes: self.block_bytes };
                let generated = generate(name, keys.clone(), &context).map_err(|error| error.within("workload"))?;
                self.traces.watching(generated)
            }
        };
        let skip_writes = self.writes == Writes::Skip;
        let dealer = self.dealer.clone();
        let block_bytes = (!self.objects && !reader.carries().objects).then_some(self.block_bytes);
        Ok(Records {
            reader,
            batch: Vec::new(),
            range: 0..0,
            bytes_max: block_bytes.map(|bytes| bytes.saturating_mul(BATCH_BLOCKS_MAX)),
            taken: 0,
            skip_writes,
            dealer,
            pid: self.pid,
            sampler: self.sampler.clone(),
            left: self.limit,
        })
    }
}

/// Deals whole files to processes round-robin, each time a file is begun: as a sampler distributes the samples of an
/// epoch among the ranks of a training. A file is begun by a request of a process whose last request was to another
/// file.
#[derive(Debug, Clone)]
struct Dealer {
    count: u32,
    /// Files begun so far, modulo `count`.
    next: u32,
    /// By process of the trace: its current file, and the process that the file was dealt to.
    in_hand: BTreeMap<u32, (u32, u32)>,
}

impl Dealer {
    fn new(count: u32) -> Self {
        Self { count, next: 0, in_hand: BTreeMap::new() }
    }

    /// Changes a request's process to the one that its file is dealt to.
    fn deal(&mut self, record: &mut Record) {
        let in_hand = self.in_hand.get(&record.pid).filter(|(file, _)| *file == record.file);
        let process = match in_hand {
            Some((_, process)) => *process,
            None => {
                let process = self.next;
                self.next = (process + 1) % self.count;
                self.in_hand.insert(record.pid, (record.file, process));
                process
            }
        };
        record.pid = process;
    }
}

/// Restricts requests to a sample of the extents. Each run of sampled extents in a request becomes a request; the think
/// time of the rest is lost.
#[derive(Debug, Clone)]
struct Sampler {
    keys: SampleKeys,
    parts: Vec<Record>,
}

impl Sampler {
    fn new(keys: SampleKeys) -> Self {
        Self { keys, parts: Vec::new() }
    }

    fn takes(&self, file: u32, extent: u64) -> bool {
        hash((file, extent), self.keys.seed) as f64 <= self.keys.rate * u64::MAX as f64
    }

    fn take_parts(&mut self, batch: &mut Vec<Record>, objects: bool) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        for record in batch.iter() {
            match self.keys.extent_bytes {
                None => parts.extend(self.takes(record.file, u64::MAX).then_some(*record)),
                // An object has no neighbours.
                Some(_) if objects => parts.extend(self.takes(record.file, record.offset).then_some(*record)),
                Some(extent) => self.cut(record, extent, &mut parts),
            }
        }
        self.parts = std::mem::replace(batch, parts);
    }

    fn cut(&self, record: &Record, extent_bytes: u64, parts: &mut Vec<Record>) {
        let end = record.offset + record.size;
        let mut at = record.offset;
        let first = parts.len();
        while at < end {
            let extent = at / extent_bytes;
            let next = (extent + 1).saturating_mul(extent_bytes).min(end);
            if self.takes(record.file, extent) {
                match parts[first..].last_mut() {
                    Some(last) if last.offset + last.size == at => last.size += next - at,
                    _ => parts.push(Record { offset: at, size: next - at, ..*record }),
                }
            }
            at = next;
        }
    }
}

/// The keys of [`Selection`].
const SELECT: [&str; 3] = ["path", "pid", "process"];

/// Converts a reading error; an error at a key refers to the selection.
fn not_selected(error: TraceError) -> Error {
    match error {
        TraceError::Key(error) => error.within("workload.select").into(),
        other => other.into(),
    }
}

/// One pass over the records.
pub struct Records {
    reader: Box<dyn RecordReader>,
    batch: Vec<Record>,
    /// The part of `batch` being returned.
    range: Range<usize>,
    /// Bytes after which a batch ends; `None` if every record is one block.
    bytes_max: Option<u64>,
    /// Records returned so far.
    taken: u64,
    skip_writes: bool,
    dealer: Option<Dealer>,
    pid: Option<u32>,
    sampler: Option<Sampler>,
    left: u64,
}

impl Records {
    /// The fields that they carry.
    #[must_use]
    pub fn carries(&self) -> Carries {
        self.reader.carries()
    }

    /// The reader, for its file table and note.
    #[must_use]
    pub fn reader(&self) -> &dyn RecordReader {
        &*self.reader
    }

    /// Advances to the next selected records; false at the end. Their total size is limited to little more than the
    /// maximum request, so that their blocks fit in memory.
    ///
    /// # Errors
    /// An error of the trace.
    pub fn advance(&mut self) -> Result<bool, Error> {
        if self.range.end == self.batch.len() {
            self.fill()?;
            self.range = 0..0;
        }
        self.range = self.range.end..self.batch.len();
        if let Some(bytes_max) = self.bytes_max {
            let mut bytes = 0u64;
            for index in self.range.clone() {
                bytes = bytes.saturating_add(self.batch[index].size);
                if bytes > bytes_max {
                    self.range.end = index + 1;
                    break;
                }
            }
        }
        self.taken += self.range.len() as u64;
        Ok(!self.range.is_empty())
    }

    /// The records that the last call of [`Records::advance`] found, in order.
    #[must_use]
    pub fn batch(&self) -> &[Record] {
        &self.batch[self.range.clone()]
    }

    /// Advances and returns the records; empty at the end.
    ///
    /// # Errors
    /// As for [`Records::advance`].
    pub fn next_batch(&mut self) -> Result<&[Record], Error> {
        self.advance()?;
        Ok(self.batch())
    }

    /// The error for `record`, one of those returned.
    #[cold]
    pub fn bad(&self, record: &Record, problem: &str, allowed: &str) -> Error {
        self.reader.bad(record, problem, allowed).into()
    }

    /// Refuses more distinct blocks than fit in memory, of which `record` has the last.
    ///
    /// # Errors
    /// If there are too many.
    #[inline]
    pub fn check_distinct(&self, count: usize, record: &Record) -> Result<(), Error> {
        Ok(check_distinct(count as u64, self.taken, record, &*self.reader)?)
    }

    /// Reads the next batch; empty at the end.
    fn fill(&mut self) -> Result<(), Error> {
        self.batch.clear();
        while self.batch.is_empty() && self.left > 0 && self.reader.read(&mut self.batch).map_err(not_selected)? {
            if self.skip_writes {
                self.batch.retain(|record| !record.write);
            }
            self.batch.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= self.batch.len() as u64;
            if let Some(dealer) = &mut self.dealer {
                self.batch.iter_mut().for_each(|record| dealer.deal(record));
            }
            if let Some(pid) = self.pid {
                self.batch.retain(|record| record.pid == pid);
            }
            if let Some(sampler) = &mut self.sampler {
                sampler.take_parts(&mut self.batch, self.reader.carries().objects);
            }
        }
        Ok(())
    }
}
