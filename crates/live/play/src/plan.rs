//! The second pass: each process's requests in order, with the wait before each.

use std::collections::{BTreeMap, VecDeque};

use headstart_nbd::client::ServerExport;
use headstart_trace::{Compute, ComputeSampler, Record, RecordReader};
use headstart_types::Nanos;

use crate::survey::open;
use crate::{Arrival, Error, Processes, Settings, Survey, Think, Writes};

/// Maximum number of requests read ahead to find the next one of a process: if its next request is further away, the
/// process waits for the others.
pub const AHEAD_MAX: usize = 1 << 20;

/// A request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Planned {
    /// Index of the process.
    pub process: usize,
    /// Aligned to the export's blocks.
    pub offset: u64,
    /// Also aligned.
    pub length: u64,
    pub write: bool,
    /// Closed arrivals: think time before the request. Open arrivals: when it is due. Divided by the speed.
    pub wait: Nanos,
}

/// The source of think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    Own,
    Rests,
    Gaps,
    Nothing,
}

struct Process {
    pid: u32,
    waiting: VecDeque<Planned>,
    /// End of the last request, and the think time after it.
    last: Option<(Nanos, Nanos)>,
    sampler: Option<ComputeSampler>,
}

pub(crate) struct Plan<'a> {
    settings: &'a Settings,
    survey: &'a Survey,
    unit: u64,
    size_bytes: u64,
    reader: Box<dyn RecordReader>,
    recorded: Recorded,
    compute: Option<Compute>,
    batch: std::vec::IntoIter<Record>,
    left: u64,
    ended: bool,
    processes: Vec<Process>,
    by_pid: BTreeMap<u32, usize>,
    /// Number of requests read and not yet taken.
    ahead: usize,
}

impl<'a> Plan<'a> {
    pub fn new(settings: &'a Settings, survey: &'a Survey, export: &ServerExport) -> Result<Self, Error> {
        let carries = survey.carries;
        let recorded = match settings.compute {
            Think::Drawn(_) => Recorded::Nothing,
            Think::Gaps if carries.time => Recorded::Gaps,
            _ if carries.think => Recorded::Own,
            _ if carries.time && carries.duration => Recorded::Rests,
            _ => Recorded::Nothing,
        };
        let unit = u64::from(export.blocks.bytes_min);
        Ok(Self {
            settings,
            survey,
            unit,
            size_bytes: export.size_bytes / unit * unit,
            reader: open(settings)?,
            recorded,
            compute: if let Think::Drawn(compute) = settings.compute { Some(compute) } else { None },
            batch: Vec::new().into_iter(),
            left: settings.limit.unwrap_or(u64::MAX),
            ended: false,
            processes: Vec::new(),
            by_pid: BTreeMap::new(),
            ahead: 0,
        })
    }

    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// The process's pid in the trace.
    pub fn pid(&self, process: usize) -> u32 {
        self.processes[process].pid
    }

    /// Number of processes seen so far.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// The next request of a process; `None` if there is none, or none among the requests read ahead.
    pub fn next_of(&mut self, process: usize) -> Result<Option<Planned>, Error> {
        while self.processes[process].waiting.is_empty() && self.ahead < AHEAD_MAX && self.read_one()?.is_some() {}
        let planned = self.processes[process].waiting.pop_front();
        self.ahead -= usize::from(planned.is_some());
        Ok(planned)
    }

    /// The next request in trace order.
    pub fn next(&mut self) -> Result<Option<Planned>, Error> {
        debug_assert!(self.ahead == 0, "requests are taken in one way or the other");
        let Some(process) = self.read_one()? else { return Ok(None) };
        self.next_of(process)
    }

    /// Whether everything was read.
    pub fn is_read(&self) -> bool {
        self.ended || self.left == 0
    }

    /// Reads until every process of the trace was seen, or the limit is reached.
    pub fn meet_processes(&mut self) -> Result<(), Error> {
        let count = match self.settings.processes {
            Processes::Merged => 1,
            Processes::PerPid => self.survey.processes,
        };
        while (self.processes.len() as u64) < count && self.ahead < AHEAD_MAX && self.read_one()?.is_some() {}
        Ok(())
    }

    /// Reads a record into its process's queue; `None` at the end.
    fn read_one(&mut self) -> Result<Option<usize>, Error> {
        loop {
            if self.is_read() {
                return Ok(None);
            }
            let Some(record) = self.batch.next() else {
                let mut batch = Vec::new();
                self.ended = !self.reader.read(&mut batch)?;
                self.batch = batch.into_iter();
                continue;
            };
            self.left -= 1;
            // The time of a skipped write counts as think time.
            if record.write && self.settings.writes() == Writes::Skip {
                continue;
            }
            return Ok(Some(self.plan(&record)));
        }
    }

    /// Adds a record to its process's queue.
    fn plan(&mut self, record: &Record) -> usize {
        let pid = if self.settings.processes == Processes::PerPid { record.pid } else { 0 };
        let (compute, seed) = (self.compute, self.settings.seed);
        let process = *self.by_pid.entry(pid).or_insert_with(|| {
            let sampler = compute.map(|compute| compute.sampler(seed, self.processes.len() as u64));
            self.processes.push(Process { pid, waiting: VecDeque::new(), last: None, sampler });
            self.processes.len() - 1
        });
        let own = &mut self.processes[process];
        let wait = match (self.settings.arrival, self.recorded) {
            (Arrival::Open, _) => record.time,
            (Arrival::Closed, Recorded::Own) => own.last.map_or(Nanos::ZERO, |last| last.1),
            (Arrival::Closed, Recorded::Rests | Recorded::Gaps) => {
                Nanos(own.last.map_or(0, |last| record.time.0.saturating_sub(last.0 .0)))
            }
            (Arrival::Closed, Recorded::Nothing) => {
                let first = own.last.is_none();
                own.sampler.as_mut().filter(|_| !first).map_or(Nanos::ZERO, ComputeSampler::next_think)
            }
        };
        let rest = if self.recorded == Recorded::Rests { record.duration.0 } else { 0 };
        own.last = Some((Nanos(record.time.0.saturating_add(rest)), record.think));
        let (offset, length) = self.place(record);
        let planned = Planned {
            process,
            offset,
            length,
            write: record.write && self.settings.writes() == Writes::Write,
            wait: Nanos((wait.0 as f64 / self.settings.speed) as u64),
        };
        self.processes[process].waiting.push_back(planned);
        self.ahead += 1;
        process
    }

    /// The request's range on the export, rounded outwards to whole blocks. Addresses wrap around; what extends beyond
    /// the end is cut.
    fn place(&self, record: &Record) -> (u64, u64) {
        let start = self.survey.address(record) % self.size_bytes / self.unit * self.unit;
        let end = (self.survey.address(record) % self.size_bytes).saturating_add(record.size);
        let end = end.div_ceil(self.unit).saturating_mul(self.unit).min(self.size_bytes);
        (start, end - start)
    }
}
