//! What hints would save: a recorded command played on simulated disks, plain and as `headstart run` prefetches for it.
//!
//! ```text
//! recording -> program (threads, think times) -+
//! file systems' maps -> places of the pages ---+-> host: page cache, kernel's read-ahead, drives -> elapsed time
//! policy, budget -> machine of `hints` --------+
//! ```
//!
//! - `program.rs`: what the command does; `places.rs`: where its pages lie;
//! - `memory.rs`, `storage.rs`: page cache and read-ahead of the kernel, over simulated drives;
//! - `system.rs`: the recorded system, in the terms of the simulator;
//! - `host.rs`, `queues.rs`: the command, and the readers of prefetches, in virtual time; what decides is the code of [`crate`].
//!
//! Known limits: think times are those of the recording; threads that wait for one another are known only where one ends; writes,
//! direct I/O and other programs are left out.

mod host;
mod memory;
mod places;
mod program;
mod queues;
mod report;
mod storage;
mod system;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use headstart_device::{build_device, build_scheduler, sectors_of, Device, DeviceError, Drive};
use headstart_policy::readahead::Version;
use headstart_policy::registry::{PolicyRow, POLICIES};
use headstart_policy::BlockMap;
use headstart_trace::hints::{About, FileKind, RecordedFile, Recording};
use headstart_types::{stream_seed, KeyError, Nanos};
use toml::Table;

use crate::conductor::{Conductor, Plan, Trust};
use crate::head_start::HeadStart;
use crate::list::{disks_of, main_disk, waited_for_page, HintList, PAGE_BYTES};
use crate::machine::Machine;
use crate::report::Report;
use crate::universe::Universe;
use crate::Error as HintsError;
use headstart_host::Roots;

use host::{Host, Prefetcher, Ran, Times};
use memory::{Kernel, PageCache, State};
use places::Places;
use program::Program;
use queues::SimulatedQueues;
use storage::Storage;
use system::{guess, ours};

pub use places::DiskFound;
pub use report::{DiskUsed, Forecast, Recommendation, Row, BENEFIT_MIN};

/// The smallest budget of those that are tried.
const BUDGET_BYTES_MIN: u64 = 8 << 20;
/// References to pages that are played at most: 64 GiB of pages.
const PAGES_MAX: u64 = 1 << 24;
/// Budgets that are tried where none are given: up to 16 GiB.
const BUDGETS_MAX: usize = 12;

/// What it takes to open a file, and to ask where it lies or what of it is cached: 40 to 55 us were measured (ext4, Linux 6.18, inodes
/// cached as pages).
pub const OPEN: Nanos = Nanos(50_000);

/// What is asked.
#[derive(Clone)]
pub struct Settings {
    /// The device that the recorded run has waited for most, by name or path of a profile, and keys laid over it; `None`: by its waits
    /// and what the system says.
    pub device: Option<(String, Table)>,
    /// What orders its queue; `None`: as the kernel's scheduler is set.
    pub scheduler: Option<String>,
    /// Hinted policies; empty: all that work with `headstart run`.
    pub policies: Vec<&'static PolicyRow>,
    /// Bytes prefetched and not yet used, at most; empty: from 8 MiB up to what the hints need, doubling.
    pub budgets: Vec<u64>,
    /// The kernel's read-ahead; `None`: as it is set.
    pub read_ahead_bytes: Option<u64>,
    /// As `headstart run --trust`.
    pub trusted: bool,
    /// What is prefetched, where that is not what the recording says: an older recording, or a wrong one.
    pub hints: Option<Recording>,
    /// Every page is in the page cache at first: what remains is thinking.
    pub cached: bool,
    /// What a thread that prefetches takes of the processor to open a file; zero where that does not matter.
    pub open: Nanos,
    /// Where the system shows itself.
    pub roots: Roots,
}

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A policy or the scheduler.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The recording.
    #[error(transparent)]
    Hints(#[from] HintsError),
    /// It has no reads.
    #[error("nothing was read; allowed: a recording with at least one read")]
    Empty,
    /// It has more pages than are played.
    #[error("{0} pages were read; allowed: up to {PAGES_MAX}")]
    Pages(u64),
}

/// Forecasts the command of `recording`. `between` is called between runs; false ends it early, and what has been run by then
/// is forecast.
///
/// # Errors
/// The device, the scheduler or a policy is not as it should be, or the recording is of no use.
pub fn forecast(
    recording: &Recording,
    settings: &Settings,
    mut between: impl FnMut(f64) -> bool,
) -> Result<Forecast, Error> {
    let recording = &within_files(recording)?;
    let hints = settings.hints.as_ref().map(within_files).transpose()?;
    let hints = hints.as_ref().unwrap_or(recording);
    let list = HintList::try_from(hints)?;
    let (files, of_hints) = joined(&recording.files, &hints.files);
    let both = Recording { files, ..recording.clone() };
    let recorded = hinted(hints).map(|file| of_hints[file as usize]).collect();
    let mut study = Study::try_new(&both, recording.files.len(), settings, list, recorded)?;
    let compute = study.host(true, None)?.run(None).elapsed;
    let (demand, _) = study.plain(Some(0))?;
    let (plain, times) = study.plain(None)?;
    if settings.hints.is_none() {
        study.list = HintList::try_from(&timed(recording, &times, plain.elapsed_ns))?;
    }
    let universe = Universe::new(&study.list, study.disk_of_hint.clone());
    let hinted_bytes = universe.blocks() as u64 * PAGE_BYTES;
    let policies = study.policies(settings)?;
    let budgets = budgets(settings, hinted_bytes);
    let (mut rows, runs) = (Vec::new(), policies.len() * budgets.len());
    for row in policies {
        for budget_bytes in &budgets {
            if !between(rows.len() as f64 / runs as f64) {
                break;
            }
            rows.push(study.hinted(row, *budget_bytes, &plain)?);
        }
    }
    let mut notes = std::mem::take(&mut study.notes);
    if !recording.about.cold {
        notes.push(format!(
            "recorded with caches as they were: the forecast is for an empty cache of {}, and metadata that was cached is missing",
            study.places.disks[study.main].shown()
        ));
    }
    if recording.about.lost_events > 0 {
        notes.push(format!(
            "the kernel has dropped {} events while recording: reads may be missing",
            recording.about.lost_events
        ));
    }
    let bound = study.lower_bound(compute);
    Ok(Forecast::new(
        recording,
        study.disks_used(),
        (hinted_bytes, compute, bound),
        (plain, demand),
        rows,
        (settings.trusted, notes),
    ))
}

/// The recording without pages beyond the ends of its files: as large as those were, or as they are if that is less.
///
/// # Errors
/// It has no reads, or too many pages.
fn within_files(recording: &Recording) -> Result<Recording, Error> {
    let mut recording = recording.clone();
    let now =
        |file: &RecordedFile| fs::metadata(&file.path).ok().filter(fs::Metadata::is_file).map(|found| found.len());
    let sizes: Vec<u64> =
        recording.files.iter().map(|file| now(file).map_or(file.size_bytes, |now| now.min(file.size_bytes))).collect();
    recording.cut(&sizes);
    let pages: u64 = recording.references().map(|read| u64::from(read.pages)).sum();
    match pages {
        0 => Err(Error::Empty),
        1..=PAGES_MAX => Ok(recording),
        _ => Err(Error::Pages(pages)),
    }
}

/// The recording as it would be of the simulated devices: what is prefetched on them has been recorded on them.
///
/// # Errors
/// As [`forecast`].
pub fn as_simulated(recording: &Recording, settings: &Settings) -> Result<Recording, Error> {
    let recording = &within_files(recording)?;
    let list = HintList::try_from(recording)?;
    let study = Study::try_new(recording, recording.files.len(), settings, list, hinted(recording).collect())?;
    let (plain, times) = study.plain(None)?;
    Ok(timed(recording, &times, plain.elapsed_ns))
}

/// The recording with other times.
fn timed(recording: &Recording, times: &Times, elapsed_ns: u64) -> Recording {
    let mut timed = recording.clone();
    timed.about.elapsed_ns = elapsed_ns;
    for read in &mut timed.reads {
        if let Some((begun, done)) = times.get(&(read.file, read.start)) {
            (read.time_ns, read.wait_ns) = (begun.0, (*done - *begun).0);
        }
    }
    timed
}

/// Whether both are of one command.
fn is_of(hints: &About, about: &About) -> bool {
    (&hints.command, &hints.folder) == (&about.command, &about.folder)
}

/// All files of both, and which of them each of the second is.
fn joined(files: &[RecordedFile], more: &[RecordedFile]) -> (Vec<RecordedFile>, Vec<u32>) {
    let identity = |file: &RecordedFile| (file.major, file.minor, file.inode, file.kind == FileKind::Device);
    let (mut all, mut place) = (files.to_vec(), BTreeMap::new());
    place.extend((0u32..).zip(files).map(|(at, file)| (identity(file), at)));
    let of_more = more.iter().map(|file| {
        *place.entry(identity(file)).or_insert_with(|| {
            all.push(file.clone());
            all.len() as u32 - 1
        })
    });
    let of_more = of_more.collect();
    (all, of_more)
}

/// The files that [`HintList`] has, in its order: without those that cannot be read ahead.
fn hinted(hints: &Recording) -> impl Iterator<Item = u32> + '_ {
    let is_hinted = |file: &RecordedFile| file.kind != FileKind::Other && !file.path.as_os_str().is_empty();
    (0u32..).zip(&hints.files).filter(move |(_, file)| is_hinted(file)).map(|(at, _)| at)
}

/// Doubling from the least up to what the hints need.
fn budgets(settings: &Settings, hinted_bytes: u64) -> Vec<u64> {
    if !settings.budgets.is_empty() {
        return settings.budgets.clone();
    }
    let mut budgets = vec![BUDGET_BYTES_MIN];
    while budgets.len() < BUDGETS_MAX && budgets[budgets.len() - 1] < hinted_bytes {
        budgets.push(budgets[budgets.len() - 1] * 2);
    }
    budgets
}

/// A drive of the forecast, before it is used.
struct Template {
    device: Box<dyn Device>,
    name: String,
    scheduler: String,
    arm: bool,
}

/// What all runs share.
struct Study<'a> {
    recording: &'a Recording,
    program: Program,
    places: Places,
    templates: Vec<Template>,
    /// The disk that the forecast is about.
    main: usize,
    list: HintList,
    /// By hinted file: its disk among those of the hints, and the file of the recording; by disk of the hints: that of the places.
    disk_of_hint: Vec<headstart_types::Disk>,
    recorded: Vec<u32>,
    disks: Vec<usize>,
    version: Version,
    read_ahead_bytes: Option<u64>,
    trust: Trust,
    cached: bool,
    open: Nanos,
    notes: Vec<String>,
}

impl<'a> Study<'a> {
    /// `own`: how many of the files are the command's; the others are named by its hints alone.
    fn try_new(
        recording: &'a Recording,
        own: usize,
        settings: &Settings,
        list: HintList,
        recorded: Vec<u32>,
    ) -> Result<Self, Error> {
        let metadata = list.ranges.iter().filter(|range| list.files[range.file as usize].is_device);
        let metadata =
            metadata.map(|range| (recorded[range.file as usize], range.first, range.first + u64::from(range.count)));
        let mut places = Places::new(recording, own, metadata.collect(), &settings.roots.sys);
        let mut notes = Vec::new();
        let weight = |disk: &usize| (places.disks[*disk].waited_all_ns, places.disks[*disk].pages);
        let main = (0..places.disks.len()).max_by_key(weight).unwrap_or(0);
        let mut templates = Vec::new();
        for disk in 0..places.disks.len() {
            let found = &places.disks[disk];
            let given = settings.device.as_ref().filter(|_| disk == main);
            let (name, keys) = given.cloned().unwrap_or_else(|| (guess(found).to_owned(), Table::new()));
            let scheduler = settings.scheduler.as_ref().filter(|_| disk == main);
            let scheduler = scheduler.map_or_else(|| ours(&found.scheduler), String::as_str).to_owned();
            if given.is_none() {
                let of = found.shown();
                notes.push(format!("{of} is taken for {name}, by its waits in the recording or what the system says"));
            }
            build_scheduler(&scheduler, Table::new()).map_err(|error| error.within("device.scheduler"))?;
            let device = build_device(&name, keys).map_err(|error| match error {
                DeviceError::Key(error) => DeviceError::Key(error.within("device")),
                error => error,
            })?;
            let arm = device.drive_facts().is_some();
            let capacity = device.capacity_sectors().map(|sectors| sectors / sectors_of(PAGE_BYTES));
            if places.fit(disk, capacity) {
                notes.push(format!("{name} is smaller than the file system: pages were moved together"));
            }
            templates.push(Template { device, name, scheduler, arm });
        }
        let changed = places.changed.iter().filter(|changed| **changed).count();
        for (files, what) in [
            (changed, "have changed since they were recorded: they are not prefetched"),
            (places.unplaced, "have no known place on the device: they are taken to lie one after another"),
        ] {
            if files > 0 {
                notes.push(format!("{files} files {what}"));
            }
        }
        let (disk_of_hint, numbers) = disks_of(&list.files);
        let place_of = |number: &u64| places.disks.iter().position(|disk| disk.number == *number).unwrap_or(main);
        let disks = numbers.iter().map(place_of).collect();
        Ok(Self {
            program: Program::new(recording),
            version: Version::of_release(&recording.about.kernel),
            recording,
            places,
            templates,
            main,
            list,
            disk_of_hint,
            recorded,
            disks,
            read_ahead_bytes: settings.read_ahead_bytes,
            trust: match &settings.hints {
                _ if settings.trusted => Trust::Whole,
                Some(hints) if !is_of(&hints.about, &recording.about) => Trust::Earned,
                _ => Trust::SameCommand,
            },
            cached: settings.cached,
            open: settings.open,
            notes,
        })
    }

    /// The policies that are asked for; a policy that is not asked for by name need not work.
    fn policies(&self, settings: &Settings) -> Result<Vec<&'static PolicyRow>, Error> {
        let tried = |row: &&'static PolicyRow| self.machine(row, BUDGET_BYTES_MIN, &HintList::default());
        if settings.policies.is_empty() {
            let hinted = POLICIES.iter().copied().filter(|row| row.is_hinted());
            return Ok(hinted.filter(|row| tried(row).is_ok()).collect());
        }
        settings.policies.iter().try_for_each(|row| tried(row).map(|_| ()))?;
        Ok(settings.policies.clone())
    }

    fn arms(&self) -> Vec<bool> {
        self.disks.iter().map(|disk| self.templates[*disk].arm).collect()
    }

    /// Whether the disk that most of what is hinted lies on has an arm.
    fn has_arm(&self) -> bool {
        self.arms()[main_disk(&self.list.ranges, &self.disk_of_hint, self.disks.len())]
    }

    fn machine(&self, row: &'static PolicyRow, budget_bytes: u64, list: &HintList) -> Result<Machine, KeyError> {
        let plan = Plan { row, keys: Table::new(), budget_bytes, trust: self.trust };
        let setting = plan.setting(&self.list, self.disks.len(), self.has_arm())?;
        let disk_of = if list.files.is_empty() { Vec::new() } else { self.disk_of_hint.clone() };
        Machine::try_new(setting, Universe::new(list, disk_of)).map_err(|error| error.within("policy"))
    }

    /// The kernel's read-ahead on each disk; `only`: that many bytes on each.
    fn kernels(&self, only: Option<u64>) -> Vec<Kernel> {
        let each = |disk: &DiskFound| {
            let bytes = only.or(self.read_ahead_bytes).unwrap_or(disk.read_ahead_bytes);
            Kernel::new(self.version, bytes / PAGE_BYTES, disk.request_bytes_max / PAGE_BYTES)
        };
        self.places.disks.iter().map(each).collect()
    }

    /// What is in the page cache at first: everything, or what the recorded run has found there. Where that was not cold, the disk
    /// that the forecast is about is taken to be.
    fn cache(&self, all: bool) -> PageCache {
        let mut cache = PageCache::new(self.places.pages_of.clone());
        let mut seen = BTreeSet::new();
        for read in self.recording.references() {
            let as_found = self.recording.about.cold || self.places.disk_of[read.file as usize] != self.main;
            for page in read.start..read.end() {
                let is_first = all || (as_found && seen.insert((read.file, page)));
                if all || (is_first && read.hit) {
                    cache.set(read.file, page, State::Cached);
                }
            }
        }
        cache
    }

    fn host(&self, all_cached: bool, prefetcher: Option<Prefetcher>) -> Result<Host<'_>, Error> {
        let mut drives = Vec::new();
        for (at, template) in (0u64..).zip(&self.templates) {
            let mut device = template.device.clone();
            device.reseed(stream_seed(1, "disk", at));
            drives.push((Drive::new(device, build_scheduler(&template.scheduler, Table::new())?), template.arm));
        }
        let storage = Storage::new(self.cache(all_cached || self.cached), &self.places, drives);
        Ok(Host {
            program: &self.program,
            places: &self.places,
            storage,
            kernels: self.kernels(None),
            prefetcher,
            head_start: None,
            times: Times::default(),
        })
    }

    /// Without prefetching, with a read-ahead of so many bytes, or as it is set.
    fn plain(&self, read_ahead_bytes: Option<u64>) -> Result<(Row, Times), Error> {
        let mut host = Host { kernels: self.kernels(read_ahead_bytes), ..self.host(false, None)? };
        let name = if read_ahead_bytes == Some(0) { "demand" } else { "linux" };
        let ran = host.run(None);
        Ok((Row::plain(name, ran), host.times))
    }

    fn hinted(&self, row: &'static PolicyRow, budget_bytes: u64, plain: &Row) -> Result<Row, Error> {
        let machine = self.machine(row, budget_bytes, &self.list)?;
        let arms = self.arms();
        let queues = SimulatedQueues::new(&arms, self.list.files.iter().map(|file| file.is_device).collect());
        let pages = machine.universe().blocks() as u64;
        let head_start = HeadStart::of(self.trust == Trust::Whole, self.has_arm(), &self.list, pages);
        let conductor = Conductor::new(machine, queues, budget_bytes, self.trust);
        let recorded = Nanos(self.list.elapsed_ns);
        let conductor = conductor.at_risk(recorded, self.has_arm(), waited_for_page(&self.list.ranges));
        let identity = self.recording.files.iter().map(|file| {
            let device = crate::device_number(u64::from(file.major), u64::from(file.minor));
            if file.kind == FileKind::Device {
                (0, device)
            } else {
                (device, file.inode)
            }
        });
        let prefetcher = Prefetcher::new(conductor, self.recorded.clone(), identity.collect(), &arms, self.open);
        let mut report = Report::new(row.name);
        let mut host = Host { head_start, ..self.host(false, Some(prefetcher))? };
        let ran: Ran = host.run(Some(&mut report));
        Ok(Row::hinted(report, budget_bytes, ran, plain))
    }

    /// No prefetching is faster: thinking, and each disk delivers what is absent at its rate.
    fn lower_bound(&self, compute: Nanos) -> Nanos {
        let cache = self.cache(self.cached);
        let mut absent = vec![BTreeSet::new(); self.templates.len()];
        for read in self.recording.references().filter(|_| !self.cached) {
            let disk = self.places.disk_of[read.file as usize];
            let pages = (read.start..read.end()).filter(|page| cache.state(read.file, *page).is_none());
            absent[disk].extend(pages.filter_map(|page| self.places.page(read.file, page)));
        }
        let least = self.templates.iter().zip(&absent);
        let least =
            least.map(|(template, pages)| template.device.least_transfer(pages.len() as u64 * sectors_of(PAGE_BYTES)));
        least.fold(compute, Nanos::max)
    }

    fn disks_used(&self) -> Vec<DiskUsed> {
        let each = |(found, template): (&DiskFound, &Template)| DiskUsed {
            name: found.name.clone(),
            profile: template.name.clone(),
            scheduler: template.scheduler.clone(),
            read_ahead_bytes: self.read_ahead_bytes.unwrap_or(found.read_ahead_bytes),
            read_bytes: found.pages * PAGE_BYTES,
        };
        self.places.disks.iter().zip(&self.templates).map(each).collect()
    }
}
