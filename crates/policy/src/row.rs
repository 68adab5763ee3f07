//! Rows: what a policy's and a replacement's file says of it, and what they are built from.

use std::fmt;
use std::sync::Arc;

use toml::Table;

use headstart_types::{Block, Disk, KeyError, KeyTable, Nanos, Position, Program};

use crate::hinted::{Hinted, Knowledge, Strategy};
use crate::readahead::{Needs, ReadsAhead};
use crate::{Apart, Asking, Hints, OnLine, Policy, ReadAhead, Replacement};

/// How a row makes its replacement: a reference, so that a row that a host brings can know more than a function does.
pub type BuildReplacement = &'static (dyn Fn(Table, &Context) -> Result<Box<dyn Replacement>, KeyError> + Sync);

/// A replacement's row.
pub struct ReplacementRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs disclosed references.
    pub hinted: bool,
    /// Its keys.
    pub keys: KeyTable,
    /// Builds it from its keys (without `name`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReplacement,
    /// Joins it to what decides about fetches. One row, one monomorphic policy: its calls are inlined.
    ///
    /// # Errors
    /// As `build`.
    pub join: Join,
}

/// How a row joins its replacement to what decides about fetches.
pub type Join = &'static (dyn Fn(Table, &Context, Beside) -> Result<Box<dyn Policy>, KeyError> + Sync);

/// What decides about fetches beside a replacement.
pub enum Beside {
    /// Demand, block by block.
    Blocks,
    /// Requests as wholes, and a read-ahead if there is one.
    Requests(Option<Box<dyn ReadAhead>>),
}

impl Beside {
    /// The policy of both, for a cache of `frames` frames.
    pub fn join<R: Replacement + 'static>(self, replacement: R, frames: u32) -> Box<dyn Policy> {
        match self {
            Beside::Blocks => Box::new(OnLine::new(replacement)),
            Beside::Requests(read_ahead) => {
                Box::new(Asking::new(Box::new(Apart(Box::new(replacement), read_ahead)), frames))
            }
        }
    }
}

/// What a host tells about the level that a policy is built for.
#[derive(Clone)]
pub struct Context {
    /// K: frames of the cache, at least 1.
    pub frames: u32,
    /// Blocks resident at the start, least recently used first; at most `frames`.
    pub initial: Vec<Block>,
    /// Independent disks, at least 1.
    pub disks: usize,
    /// The disk of each block known so far.
    pub disk_of: Arc<[Disk]>,
    /// The replacement of a policy that leaves it open.
    pub replacement: &'static ReplacementRow,
    /// Its keys.
    pub replacement_keys: Table,
    /// Disclosed references; `None` if the row does not ask for them.
    pub hints: Option<Arc<Hints>>,
    /// What the processes of a parallel program will read; `None` where there is but one process that says nothing.
    /// Of policies that work from `hints` several processes share those, whose positions are then their merged order.
    pub program: Option<Arc<Program>>,
    /// By process: the positions in `hints` of the references that it discloses, ascending; empty of one that gives no hints.
    /// No entry at all where one process has the hints for itself, or where it is not known whose a reference will be.
    pub disclosed_by: Arc<[Vec<Position>]>,
    /// Requests have any number of blocks, and are asked about as wholes.
    pub whole: bool,
    /// The devices' typical service time of one block.
    pub nominal_service: Nanos,
    /// What one more block of the same request takes, at the least.
    pub block_transfer: Nanos,
    /// Requests that a disk serves at once, at least 1.
    pub concurrency: u32,
    /// Processor time of a request to a disk.
    pub driver: Nanos,
    /// Processor time of reading a block from the cache.
    pub hit: Nanos,
    /// Every fetch takes exactly `nominal_service`.
    pub uniform: bool,
    /// Mean think time.
    pub mean_compute: Nanos,
    /// Every think time is exactly `mean_compute`, nothing else takes processor time, and the disks do nothing but the
    /// level's fetches, each as soon as they can: the model of the theory.
    pub constant_compute: bool,
}

impl Context {
    /// A level of one disk and one process that says nothing, with a replacement of default keys.
    #[must_use]
    pub fn plain(replacement: &'static ReplacementRow, frames: u32, initial: Vec<Block>, blocks: usize) -> Self {
        Self {
            frames,
            initial,
            disks: 1,
            disk_of: vec![Disk(0); blocks].into(),
            replacement,
            replacement_keys: replacement.keys.defaults(),
            hints: None,
            program: None,
            disclosed_by: Arc::new([]),
            whole: false,
            nominal_service: Nanos(1),
            block_transfer: Nanos(1),
            concurrency: 1,
            driver: Nanos::ZERO,
            hit: Nanos::ZERO,
            uniform: true,
            mean_compute: Nanos(1),
            constant_compute: true,
        }
    }

    /// The disclosed references, for a row that is [hinted](PolicyRow::is_hinted).
    ///
    /// # Panics
    /// The host has given none.
    #[must_use]
    pub fn hints_of_row(&self) -> Arc<Hints> {
        self.hints.clone().expect("the host gives hints to rows that are hinted")
    }

    /// A hinted policy of this strategy.
    pub(crate) fn hinted<S: Strategy + 'static>(&self, strategy: S) -> Box<dyn Policy> {
        let knowledge = Knowledge::new(self.hints_of_row(), &self.initial, self.disk_of.clone(), self.disks);
        Box::new(Hinted::new(knowledge, strategy, (self.processes(), self.disclosing()), self.whole))
    }

    /// Processes that share the level.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.program.as_ref().map_or(1, |program| program.string_of.len().max(1) as u32)
    }

    /// Processes of those whose references are disclosed, at least 1.
    pub(crate) fn disclosing(&self) -> u32 {
        let giving = self.disclosed_by.iter().filter(|positions| !positions.is_empty()).count() as u32;
        if self.disclosed_by.is_empty() {
            self.processes()
        } else {
            giving.max(1)
        }
    }

    /// Refuses policy `name` to several processes.
    pub(crate) fn for_one_process(&self, name: &str) -> Result<(), KeyError> {
        if self.processes() == 1 {
            return Ok(());
        }
        let problem = format!("{name} plans for one process, whose references come in a known order");
        Err(KeyError::new("name", problem, "fixed-horizon, aggressive, forestall, or one process"))
    }

    /// The blocks that `value`, a share or a multiple of the frames, stands for; rounded down.
    pub(crate) fn share(&self, value: f64) -> usize {
        (value * f64::from(self.frames)).floor() as usize
    }
}

/// How a row makes its policy.
pub type Build = &'static (dyn Fn(Table, &Context) -> Result<Box<dyn Policy>, KeyError> + Sync);

/// What a policy works from, and how it is built from its keys (without `name`, `hints` and `replacement`).
pub enum Family {
    /// What is referenced.
    Demand(Build),
    /// Disclosed references: it needs [`Context::hints`].
    Hinted(Build),
    /// The same, and what lies together is fetched with one request: see [`Policy::gathers`].
    Gathering(Build),
    /// What the processes of a parallel program will read: it needs [`Context::program`] and idle processors.
    Parallel(Build),
    /// Requests as they come.
    ReadAhead(ReadsAhead),
    /// Requests as they have come before: it may name blocks of any file.
    Predictor(ReadsAhead, ByPosition),
}

/// Whether a predictor with these keys takes neighbouring numbers for neighbouring places, as every read-ahead does.
pub type ByPosition = fn(&Table) -> bool;

/// A policy's row.
pub struct PolicyRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// The replacement where none is given; `None`: it chooses its victims itself.
    pub default_replacement: Option<&'static str>,
    /// What it works from.
    pub family: Family,
}

impl PolicyRow {
    /// The family's name.
    #[must_use]
    pub fn family_name(&self) -> &'static str {
        match self.family {
            Family::Demand(_) => "demand",
            Family::Hinted(_) | Family::Gathering(_) => "hinted",
            Family::Parallel(_) => "parallel",
            Family::ReadAhead(_) => "read-ahead",
            Family::Predictor(..) => "predictor",
        }
    }

    /// Whether it works from disclosed references.
    #[must_use]
    pub fn is_hinted(&self) -> bool {
        matches!(self.family, Family::Hinted(_) | Family::Gathering(_))
    }

    /// Whether what it fetches together and lies together is one request.
    #[must_use]
    pub fn gathers(&self) -> bool {
        matches!(self.family, Family::Gathering(_))
    }

    /// Whether it is for parallel programs only.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        matches!(self.family, Family::Parallel(_))
    }

    /// Whether it can go block by block, for one process: demand fetching and hinted policies.
    #[must_use]
    pub fn goes_by_blocks(&self) -> bool {
        matches!(self.family, Family::Demand(_) | Family::Hinted(_) | Family::Gathering(_))
    }

    /// Whether a replacement is chosen beside it.
    #[must_use]
    pub fn has_open_replacement(&self) -> bool {
        self.default_replacement.is_some()
    }

    /// Whether it learns what to prefetch from the requests that have come.
    #[must_use]
    pub fn is_predictor(&self) -> bool {
        matches!(self.family, Family::Predictor(..))
    }

    /// What is special to a read-ahead or a predictor; `None` of other policies.
    #[must_use]
    pub fn reads_ahead(&self) -> Option<&ReadsAhead> {
        match &self.family {
            Family::ReadAhead(reads_ahead) | Family::Predictor(reads_ahead, _) => Some(reads_ahead),
            _ => None,
        }
    }

    /// What it has to be told beside what a level has.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.reads_ahead().map_or(Needs::Nothing, |reads_ahead| reads_ahead.needs)
    }

    /// Whether, with these keys, it prefetches by position: it needs a trace with addresses.
    #[must_use]
    pub fn is_by_position(&self, keys: &Table) -> bool {
        match &self.family {
            Family::ReadAhead(_) => true,
            Family::Predictor(_, by_position) => by_position(keys),
            Family::Demand(_) | Family::Hinted(_) | Family::Gathering(_) | Family::Parallel(_) => false,
        }
    }

    /// Builds it, unless it is a read-ahead: that is built of its parts.
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub fn build(&self, keys: Table, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
        match self.family {
            Family::Demand(build) | Family::Hinted(build) | Family::Gathering(build) | Family::Parallel(build) => {
                build(keys, context)
            }
            Family::ReadAhead(_) | Family::Predictor(..) => {
                Err(KeyError::new("name", format!("{} is a read-ahead", self.name), "a policy that is none"))
            }
        }
    }
}

impl fmt::Debug for PolicyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for ReplacementRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
