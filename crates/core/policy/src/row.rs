//! Rows: what the file of a policy or a replacement declares about it, and what it is built from.

use std::fmt;
use std::sync::Arc;

use headstart_types::{Block, Chosen, Disk, KeyError, KeyTable, Nanos, Position, Program, Row, TypedKeys};

use crate::hinted::{Hinted, Knowledge, Strategy};
use crate::readahead::{BuildReadAhead, Needs, ReadAheadContext, ReadsAhead};
use crate::{Hints, OnLine, Policy, ReadAhead, Replacement, RequestPolicy, SeparateReadAhead};

/// Builds a row's replacement. A reference to a closure, so that a host's row can carry data.
pub type BuildReplacement = &'static (dyn Fn(&TypedKeys, &Context) -> Result<Box<dyn Replacement>, KeyError> + Sync);

/// A replacement's row.
pub struct ReplacementRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help and docs.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Whether it needs disclosed references.
    pub hinted: bool,
    /// Its keys.
    pub keys: KeyTable,
    /// Builds it from its keys.
    ///
    /// # Errors
    /// A key that does not fit the level.
    pub build: BuildReplacement,
    /// Combines it with the part that decides on fetches. Each row gets its own monomorphic policy, so calls are
    /// inlined.
    ///
    /// # Errors
    /// As `build`.
    pub join: Join,
}

/// Combines a row's replacement with the part that decides on fetches.
pub type Join = &'static (dyn Fn(&TypedKeys, &Context, Beside) -> Result<Box<dyn Policy>, KeyError> + Sync);

/// The part of a policy that decides on fetches, beside a replacement.
pub enum Beside {
    /// Demand fetching of single blocks.
    Blocks,
    /// Whole requests, with an optional read-ahead.
    Requests(Option<Box<dyn ReadAhead>>),
}

impl Beside {
    /// Combines both into a policy for a cache of `frames` frames.
    pub fn join<R: Replacement + 'static>(self, replacement: R, frames: u32) -> Box<dyn Policy> {
        match self {
            Beside::Blocks => Box::new(OnLine::new(replacement)),
            Beside::Requests(read_ahead) => {
                Box::new(RequestPolicy::new(Box::new(SeparateReadAhead(Box::new(replacement), read_ahead)), frames))
            }
        }
    }
}

/// What a host tells about the level for which a policy is built.
#[derive(Clone)]
pub struct Context {
    /// K: frames of the cache, at least 1.
    pub frames: u32,
    /// Blocks resident at the start, least recently used first; at most `frames`.
    pub initial: Vec<Block>,
    /// Number of independent disks, at least 1.
    pub disks: usize,
    /// The disk of each block known so far.
    pub disk_of: Arc<[Disk]>,
    /// The replacement, for policies that leave it open.
    pub replacement: Chosen<ReplacementRow>,
    /// Disclosed references; `None` if the row does not need them.
    pub hints: Option<Arc<Hints>>,
    /// The reference strings of the processes of a parallel program; `None` for a single process that discloses
    /// nothing. For policies that use `hints`, several processes share those, whose positions are then in their merged
    /// order.
    pub program: Option<Arc<Program>>,
    /// For each process: the positions in `hints` of the references that it discloses, ascending; empty for one that
    /// gives no hints. No entries at all if one process owns the hints, or if the process of a future reference is
    /// unknown.
    pub disclosed_by: Arc<[Vec<Position>]>,
    /// Whether requests have any number of blocks and the policy sees whole requests.
    pub whole: bool,
    /// The devices' typical service time for one block.
    pub nominal_service: Nanos,
    /// Minimum additional time for one more block of the same request.
    pub block_transfer: Nanos,
    /// Number of requests that a disk serves in parallel, at least 1.
    pub concurrency: u32,
    /// Processor time per disk request.
    pub driver: Nanos,
    /// Processor time to read a block from the cache.
    pub hit: Nanos,
    /// Whether every fetch takes exactly `nominal_service`.
    pub uniform: bool,
    /// Mean think time.
    pub mean_compute: Nanos,
    /// Whether the model of the theory holds: every think time is exactly `mean_compute`, nothing else takes processor
    /// time, and the disks only serve the level's fetches, each as soon as they can.
    pub constant_compute: bool,
}

impl Context {
    /// A level with one disk and one process that discloses nothing, and a replacement with default keys.
    #[must_use]
    pub fn plain(replacement: &'static ReplacementRow, frames: u32, initial: Vec<Block>, blocks: usize) -> Self {
        Self {
            frames,
            initial,
            disks: 1,
            disk_of: vec![Disk(0); blocks].into(),
            replacement: Chosen::plain(replacement),
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
    /// The host has provided none.
    #[must_use]
    pub fn hints_of_row(&self) -> Arc<Hints> {
        self.hints.clone().expect("the host gives hints to rows that are hinted")
    }

    /// The replacement, combined with the part that decides on fetches.
    ///
    /// # Errors
    /// A key of the replacement that does not fit the level.
    pub fn join(&self, beside: Beside) -> Result<Box<dyn Policy>, KeyError> {
        let Chosen { row, keys } = &self.replacement;
        (row.join)(keys, self, beside).map_err(|error| error.within("replacement"))
    }

    /// A hinted policy with this strategy.
    pub(crate) fn hinted<S: Strategy + 'static>(&self, strategy: S) -> Box<dyn Policy> {
        let knowledge = Knowledge::new(self.hints_of_row(), &self.initial, self.disk_of.clone(), self.disks);
        Box::new(Hinted::new(knowledge, strategy, (self.processes(), self.disclosing()), self.whole))
    }

    /// Number of processes that share the level.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.program.as_ref().map_or(1, |program| program.string_of.len().max(1) as u32)
    }

    /// Number of processes that disclose references, at least 1.
    pub(crate) fn disclosing(&self) -> u32 {
        let giving = self.disclosed_by.iter().filter(|positions| !positions.is_empty()).count() as u32;
        if self.disclosed_by.is_empty() {
            self.processes()
        } else {
            giving.max(1)
        }
    }

    /// Rejects policy `name` for several processes.
    pub(crate) fn for_one_process(&self, name: &str) -> Result<(), KeyError> {
        if self.processes() == 1 {
            return Ok(());
        }
        let problem = format!("{name} plans for one process, whose references come in a known order");
        Err(KeyError::new("name", problem, "fixed-horizon, aggressive, forestall, or one process"))
    }

    /// The number of blocks for `value`, a share or multiple of the frames; rounded down.
    pub(crate) fn share(&self, value: f64) -> usize {
        (value * f64::from(self.frames)).floor() as usize
    }
}

/// Builds a row's policy.
pub type Build = &'static (dyn Fn(&TypedKeys, &Context) -> Result<Box<dyn Policy>, KeyError> + Sync);

/// The information that a policy uses, and how it is built from its keys.
pub enum Family {
    /// Current references only.
    Demand(Build),
    /// Disclosed references: it needs [`Context::hints`].
    Hinted(Build),
    /// As `Hinted`, and contiguous blocks are fetched in one request; see [`Policy::gathers`].
    Gathering(Build),
    /// The reference strings of a parallel program: it needs [`Context::program`] and idle processors.
    Parallel(Build),
    /// Current requests.
    ReadAhead(ReadsAhead),
    /// Past requests: it may name blocks of any file.
    Predictor(ReadsAhead, ByPosition),
}

/// Whether a predictor with these keys treats consecutive numbers as neighbouring places, as every read-ahead does.
pub type ByPosition = fn(&TypedKeys) -> bool;

/// A policy's row.
pub struct PolicyRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help and docs.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// The default replacement; `None` if the policy chooses its victims itself.
    pub default_replacement: Option<&'static str>,
    /// The information that it uses.
    pub family: Family,
}

impl PolicyRow {
    /// The family's name in `list` and docs.
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

    /// Whether it uses disclosed references.
    #[must_use]
    pub fn is_hinted(&self) -> bool {
        matches!(self.family, Family::Hinted(_) | Family::Gathering(_))
    }

    /// Whether contiguous blocks that it fetches together form one request.
    #[must_use]
    pub fn gathers(&self) -> bool {
        matches!(self.family, Family::Gathering(_))
    }

    /// Whether it is for parallel programs only.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        matches!(self.family, Family::Parallel(_))
    }

    /// Whether it can work block by block, for one process: demand fetching and hinted policies.
    #[must_use]
    pub fn goes_by_blocks(&self) -> bool {
        matches!(self.family, Family::Demand(_) | Family::Hinted(_) | Family::Gathering(_))
    }

    /// Whether the user chooses the replacement.
    #[must_use]
    pub fn has_open_replacement(&self) -> bool {
        self.default_replacement.is_some()
    }

    /// Whether it learns from past requests what to prefetch.
    #[must_use]
    pub fn is_predictor(&self) -> bool {
        matches!(self.family, Family::Predictor(..))
    }

    /// The read-ahead part of a read-ahead or predictor; `None` for other policies.
    #[must_use]
    pub fn reads_ahead(&self) -> Option<&ReadsAhead> {
        match &self.family {
            Family::ReadAhead(reads_ahead) | Family::Predictor(reads_ahead, _) => Some(reads_ahead),
            _ => None,
        }
    }

    /// Builds the read-ahead part alone, from its keys.
    ///
    /// # Errors
    /// A key that does not fit the level, or that the row is not a read-ahead.
    pub fn build_read_ahead(
        &self,
        keys: &TypedKeys,
        context: &ReadAheadContext,
    ) -> Result<Box<dyn ReadAhead>, KeyError> {
        match self.reads_ahead().map(|reads_ahead| reads_ahead.build) {
            Some(BuildReadAhead::Separate(build)) => build(keys, context),
            Some(BuildReadAhead::WithReplacement(build)) => Ok(build(keys, context)?),
            None => Err(KeyError::new("name", format!("{} is no read-ahead", self.name), "a read-ahead")),
        }
    }

    /// What it needs to know besides what a level knows.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.reads_ahead().map_or(Needs::Nothing, |reads_ahead| reads_ahead.needs)
    }

    /// Whether it prefetches by position with these keys, which needs a trace with addresses.
    #[must_use]
    pub fn is_by_position(&self, keys: &TypedKeys) -> bool {
        match &self.family {
            Family::ReadAhead(_) => true,
            Family::Predictor(_, by_position) => by_position(keys),
            Family::Demand(_) | Family::Hinted(_) | Family::Gathering(_) | Family::Parallel(_) => false,
        }
    }

    /// Builds the policy from its keys. Read-aheads and predictors are built from their parts instead.
    ///
    /// # Errors
    /// A key that does not fit the level, or a read-ahead.
    pub fn build(&self, keys: &TypedKeys, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
        match self.family {
            Family::Demand(build) | Family::Hinted(build) | Family::Gathering(build) | Family::Parallel(build) => {
                build(keys, context)
            }
            Family::ReadAhead(_) | Family::Predictor(..) => Err(KeyError::new(
                "name",
                format!("{} is a read-ahead", self.name),
                "a policy that is not a read-ahead",
            )),
        }
    }
}

impl Row for PolicyRow {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self) -> &KeyTable {
        &self.keys
    }
}

impl Row for ReplacementRow {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self) -> &KeyTable {
        &self.keys
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
