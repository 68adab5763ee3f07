//! What all runs of a forecast share: the program, the places of its pages, the drives, and how far hints are trusted.

use std::collections::{BTreeMap, BTreeSet};

use headstart_device::{build_device, build_scheduler, sectors_of, Device, DeviceError, Drive};
use headstart_emulate::ClockedDrive;
use headstart_policy::readahead::{Linux, Version};
use headstart_policy::registry::{PolicyRow, POLICIES};
use headstart_policy::BlockMap;
use headstart_trace::hints::{About, Recording};
use headstart_types::{stream_seed, KeyError, Nanos};
use toml::Table;

use super::disks::Disk;
use super::host::{Host, Times};
use super::memory::Memory;
use super::places::Places;
use super::prefetcher::Prefetcher;
use super::program::Program;
use super::system::{guess, ours};
use super::{DiskUsed, Error, Row, Settings, BUDGET_BYTES_MIN};
use crate::conductor::{Conductor, Plan, Trust};
use crate::head_start::HeadStart;
use crate::list::{disks_of, main_disk, waited_for_page, HintList, PAGE_BYTES};
use crate::machine::Machine;
use crate::recorded::identity;
use crate::universe::Universe;
use crate::waiting::Waiting;

/// Maximum number of open files with a read-ahead of their own.
const OPEN_FILES: usize = 65_536;
/// Maximum number of marks of the read-ahead: all that may ever be needed, since pages do not leave the cache.
const MARKS: usize = 1 << 22;

/// Whether both are of one command.
fn is_of(hints: &About, about: &About) -> bool {
    (&hints.command, &hints.folder) == (&about.command, &about.folder)
}

/// A disk of the forecast, not yet used.
pub(super) struct Template {
    device: Box<dyn Device>,
    arm: bool,
    pub used: DiskUsed,
}

/// What all runs share.
pub(super) struct Study<'a> {
    program: Program,
    pub places: Places,
    pub templates: Vec<Template>,
    /// The referenced pages, and whether they are in memory at the start.
    pages: Vec<((u32, u64), bool)>,
    /// The disk that the forecast is about.
    pub main: usize,
    pub list: HintList,
    /// By hinted file: its disk among those of the hints, and its file in the recording; by disk of the hints: the disk
    /// of the places.
    pub disk_of_hint: Vec<headstart_types::Disk>,
    recorded: Vec<u32>,
    /// By file of the recording: its device and inode.
    identity: Vec<(u64, u64)>,
    disks: Vec<usize>,
    version: Version,
    trust: Trust,
    settings: &'a Settings,
    pub notes: Vec<String>,
}

impl<'a> Study<'a> {
    /// `own`: the number of files of the command itself; only its hints name the others.
    pub fn try_new(recording: &Recording, own: usize, settings: &'a Settings, list: HintList) -> Result<Self, Error> {
        let identity: Vec<_> = recording.files.iter().map(identity).collect();
        let number_of: BTreeMap<_, u32> = identity.iter().zip(0..).collect();
        let recorded: Vec<u32> = list.files.iter().map(|file| number_of[&file.identity]).collect();
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
            let (profile, keys) = given.cloned().unwrap_or_else(|| (guess(found).to_owned(), Table::new()));
            let scheduler = settings.scheduler.as_ref().filter(|_| disk == main);
            let scheduler = scheduler.map_or_else(|| ours(&found.scheduler), String::as_str).to_owned();
            if given.is_none() {
                let of = found.shown();
                notes.push(format!(
                    "{of} is taken for {profile}, by its waits in the recording or what the system says"
                ));
            }
            build_scheduler(&scheduler, Table::new()).map_err(|error| error.within("device.scheduler"))?;
            let device = build_device(&profile, keys).map_err(|error| match error {
                DeviceError::Key(error) => DeviceError::Key(error.within("device")),
                error => error,
            })?;
            let arm = device.drive_facts().is_some();
            let capacity = device.capacity_sectors().map(|sectors| sectors / sectors_of(PAGE_BYTES));
            let used = DiskUsed {
                name: found.name.clone(),
                profile,
                scheduler,
                read_ahead_bytes: settings.read_ahead_bytes.unwrap_or(found.read_ahead_bytes),
                read_bytes: found.pages * PAGE_BYTES,
            };
            if places.fit(disk, capacity) {
                notes.push(format!("{} is smaller than the file system: pages were moved together", used.profile));
            }
            templates.push(Template { device, arm, used });
        }
        let mut seen = BTreeSet::new();
        let mut pages = Vec::new();
        for read in recording.references() {
            // If the recorded run was not cold, the disk that the forecast is about is assumed to be.
            let as_found = recording.about.cold || places.disk_of[read.file as usize].index() != main;
            let each = (read.start..read.end()).map(|page| (read.file, page)).filter(|page| seen.insert(*page));
            pages.extend(each.map(|page| (page, settings.cached || as_found && read.hit)));
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
            places,
            templates,
            pages,
            main,
            list,
            disk_of_hint,
            recorded,
            identity,
            disks,
            trust: match &settings.hints {
                _ if settings.trusted => Trust::Whole,
                Some(hints) if !is_of(&hints.about, &recording.about) => Trust::Earned,
                _ => Trust::SameCommand,
            },
            settings,
            notes,
        })
    }

    /// The policies to try; one that was not requested by name may fail to work.
    pub fn policies(&self) -> Result<Vec<&'static PolicyRow>, Error> {
        let tried = |row: &&'static PolicyRow| self.machine(row, BUDGET_BYTES_MIN, &HintList::default());
        let named = &self.settings.policies;
        if named.is_empty() {
            let hinted = POLICIES.iter().copied().filter(|row| row.is_hinted());
            return Ok(hinted.filter(|row| tried(row).is_ok()).collect());
        }
        named.iter().try_for_each(|row| tried(row).map(|_| ()))?;
        Ok(named.clone())
    }

    fn arms(&self) -> Vec<bool> {
        self.disks.iter().map(|disk| self.templates[*disk].arm).collect()
    }

    /// Whether the disk that holds most of the hinted data has an arm.
    fn has_arm(&self) -> bool {
        self.arms()[main_disk(&self.list.ranges, &self.disk_of_hint, self.disks.len())]
    }

    fn machine(&self, row: &'static PolicyRow, budget_bytes: u64, list: &HintList) -> Result<Machine, KeyError> {
        let plan = Plan { row, keys: Table::new(), budget_bytes, trust: self.trust };
        let setting = plan.setting(&self.list, self.disks.len(), self.has_arm())?;
        let disk_of = if list.files.is_empty() { Vec::new() } else { self.disk_of_hint.clone() };
        let universe = Universe::new(list, disk_of, &self.in_order_left());
        Machine::try_new(&setting, universe).map_err(|error| error.within("policy"))
    }

    /// By disk: whether sequential reads are left to the kernel.
    pub fn in_order_left(&self) -> Vec<bool> {
        self.arms().into_iter().map(|arm| !arm && self.trust != Trust::Whole).collect()
    }

    /// `read_ahead_bytes`: the kernel's read-ahead on each disk; `None`: the current setting.
    pub fn host(
        &self,
        read_ahead_bytes: Option<u64>,
        all_cached: bool,
        prefetcher: Option<Prefetcher>,
    ) -> Result<Host<'_>, Error> {
        let (mut disks, mut kernels) = (Vec::new(), Vec::new());
        for (at, (template, found)) in (0u64..).zip(self.templates.iter().zip(&self.places.disks)) {
            let mut device = template.device.clone();
            device.reseed(stream_seed(1, "disk", at));
            let drive = Drive::new(device, build_scheduler(&template.used.scheduler, Table::new())?);
            let pages_max = found.request_bytes_max / PAGE_BYTES;
            let ahead = read_ahead_bytes.unwrap_or(template.used.read_ahead_bytes) / PAGE_BYTES;
            kernels.push(Linux::new(self.version, ahead, pages_max, OPEN_FILES, MARKS));
            disks.push(Disk { drive: ClockedDrive::new(drive), arm: template.arm, pages_max: pages_max as usize });
        }
        let cached = self.pages.iter().filter(|(_, is_cached)| all_cached || *is_cached).map(|(page, _)| *page);
        let memory = Memory::new(&self.places, cached, kernels, disks);
        Ok(Host::new(&self.program, memory, prefetcher))
    }

    /// A run without prefetching, with the given read-ahead or the current setting.
    pub fn plain(&self, read_ahead_bytes: Option<u64>) -> Result<(Row, Times), Error> {
        let mut host = self.host(read_ahead_bytes, false, None)?;
        let row = host.run(if read_ahead_bytes == Some(0) { "demand" } else { "linux" }, None);
        Ok((row, host.times))
    }

    pub fn hinted(&self, row: &'static PolicyRow, budget_bytes: u64) -> Result<Row, Error> {
        let machine = self.machine(row, budget_bytes, &self.list)?;
        let queues = Waiting::new(&self.arms(), self.list.files.iter().map(|file| file.is_device).collect(), true);
        let pages = machine.universe().blocks() as u64;
        let head_start = HeadStart::of(self.trust == Trust::Whole, self.has_arm(), &self.list, pages);
        let conductor = Conductor::new(machine, queues, budget_bytes, self.trust);
        let recorded = Nanos(self.list.elapsed_ns);
        let conductor = conductor.at_risk(recorded, self.has_arm(), waited_for_page(&self.list.ranges));
        let (recorded, identity) = (self.recorded.clone(), self.identity.clone());
        let threads = self.program.threads.len();
        let prefetcher = Prefetcher::new(conductor, recorded, identity, threads, self.settings.open);
        let row = self.host(None, false, Some(prefetcher))?.run(row.name, head_start);
        Ok(Row { budget_bytes: Some(budget_bytes), ..row })
    }

    /// No prefetching is faster: think time, with each disk delivering the absent pages at its full rate.
    pub fn lower_bound_ns(&self, compute_ns: u64) -> u64 {
        let mut absent = vec![BTreeSet::new(); self.templates.len()];
        for ((file, page), _) in self.pages.iter().filter(|(_, is_cached)| !is_cached) {
            absent[self.places.disk_of[*file as usize].index()].extend(self.places.page(*file, *page));
        }
        let sectors = absent.iter().map(|pages| pages.len() as u64 * sectors_of(PAGE_BYTES));
        let least = self.templates.iter().zip(sectors).map(|(each, sectors)| each.device.least_transfer(sectors).0);
        least.fold(compute_ns, u64::max)
    }
}
