//! The tables of device models and schedulers: one row each. Help, docs and conformance tests iterate them.

use std::path::Path;

use headstart_types::{system_says, KeyError};
use toml::Table;

use crate::driver_cost::{self, DriverCost};
use crate::keys::Keys;
use crate::models::{flash_keys, object_store, profile, uniform::Uniform};
use crate::schedulers::{
    anticipatory::Anticipatory, cscan::Cscan, deadline::Deadline, fcfs::Fcfs, scan::Scan, sptf::Sptf, sstf::Sstf,
};
use crate::{Device, Flash, Mechanical, ObjectStore, Scheduler};

/// A device model that a scenario can name.
pub struct Model {
    /// The name.
    pub name: &'static str,
    /// What a request costs the host, where a scenario does not say.
    pub driver_cost: DriverCost,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
    /// Its keys with their defaults; a key without a default is absent.
    pub defaults: fn() -> Table,
    /// The device, from keys laid over the defaults.
    pub build: fn(Table) -> Result<Box<dyn Device>, KeyError>,
}

/// Every device model.
pub static MODELS: &[Model] = &[
    Model {
        name: "uniform",
        driver_cost: driver_cost::THEORETICAL,
        summary: "every request takes the same time: key fetch_time",
        source: "kimbrel96 section 2.1, the theoretical model",
        defaults: Table::new,
        build: |keys| Ok(Box::new(Uniform::from_keys(keys)?)),
    },
    Model {
        name: "hp97560",
        driver_cost: driver_cost::DISK_1990S,
        summary: "HP 97560, 1.3 GB, 4002 rpm, 128 KB read-ahead buffer",
        source: "Ruemmler and Wilkes 1994; Kotz, Toh, Radhakrishnan 1994; kimbrel96 Table 1",
        defaults: || profile::shipped("hp97560"),
        build: |keys| drive("hp97560", keys),
    },
    Model {
        name: "seagate-cheetah-9lp",
        driver_cost: driver_cost::DISK_1990S,
        summary: "Seagate Cheetah 9LP ST39102LW, 9.1 GB, 10,045 rpm, 3 segments, writes reported from the buffer",
        source: "extracted by DiskSim's authors (CMU), as measured",
        defaults: || profile::shipped("seagate-cheetah-9lp"),
        build: |keys| drive("seagate-cheetah-9lp", keys),
    },
    Model {
        name: "seagate-cheetah-4lp",
        driver_cost: driver_cost::DISK_1990S,
        summary: "Seagate Cheetah 4LP ST34501N, 4.5 GB, 10,033 rpm, 3 segments, writes reported from the buffer",
        source: "extracted by DiskSim's authors (CMU), as measured",
        defaults: || profile::shipped("seagate-cheetah-4lp"),
        build: |keys| drive("seagate-cheetah-4lp", keys),
    },
    Model {
        name: "seagate-barracuda-st32171w",
        driver_cost: driver_cost::DISK_1990S,
        summary: "Seagate Barracuda ST32171W, 2.1 GB, 7200 rpm, 3 segments, writes reported from the buffer",
        source: "extracted by DiskSim's authors (CMU), as measured",
        defaults: || profile::shipped("seagate-barracuda-st32171w"),
        build: |keys| drive("seagate-barracuda-st32171w", keys),
    },
    Model {
        name: "quantum-atlas-10k",
        driver_cost: driver_cost::DISK_1990S,
        summary: "Quantum Atlas 10K, 9.1 GB, 10,025 rpm, 10 segments, reads the track round, writes from the buffer",
        source: "extracted by DiskSim's authors (CMU), as measured",
        defaults: || profile::shipped("quantum-atlas-10k"),
        build: |keys| drive("quantum-atlas-10k", keys),
    },
    Model {
        name: "ibm-0661",
        driver_cost: driver_cost::DISK_1990S,
        summary: "IBM 0661 Lightning, 320 MB, 4316 rpm, no buffer",
        source: "Holland and Gibson 1992, from memory; curve as in RAIDframe; overhead and bus guessed",
        defaults: || profile::shipped("ibm-0661"),
        build: |keys| drive("ibm-0661", keys),
    },
    Model {
        name: "ibm-36gb-10k",
        driver_cost: driver_cost::DISK_2000S,
        summary: "IBM 36.4 GB, 10,000 rpm, 37.3 MB/s as measured through Linux 2.6.10",
        source: "averages of Li, Shen and Papathanasiou 2007; the rest guessed",
        defaults: || profile::shipped("ibm-36gb-10k"),
        build: |keys| drive("ibm-36gb-10k", keys),
    },
    Model {
        name: "seagate-146gb-10k",
        driver_cost: driver_cost::DISK_2000S,
        summary: "Seagate 146 GB, 10,000 rpm, 55.8 MB/s on average",
        source: "averages of Li, Shen and Papathanasiou 2007; the rest guessed",
        defaults: || profile::shipped("seagate-146gb-10k"),
        build: |keys| drive("seagate-146gb-10k", keys),
    },
    Model {
        name: "seagate-exos-x20",
        driver_cost: driver_cost::SCSI,
        summary: "Seagate Exos X20, 20 TB, 7200 rpm, 285 MB/s, 256 MB of cache",
        source: "data sheet; zones, seek curve and cache management guessed",
        defaults: || profile::shipped("seagate-exos-x20"),
        build: |keys| drive("seagate-exos-x20", keys),
    },
    Model {
        name: "nvme",
        driver_cost: driver_cost::NVME,
        summary:
            "NVMe solid-state drive, 2 TB, PCIe 4.0: channels at once, one link, a write buffer; no block management",
        source: "Samsung 990 PRO data sheet, 2022; guesses named in profiles/flash/nvme.toml",
        defaults: flash_keys::nvme,
        build: |keys| Ok(Box::new(Flash::from_table(profile::overlay(flash_keys::nvme(), keys))?)),
    },
    Model {
        name: "sata-ssd",
        driver_cost: driver_cost::SCSI,
        summary: "SATA solid-state drive, 1 TB: as nvme, with command queueing 32 deep and a link of 550 MB/s",
        source: "Samsung 870 EVO data sheet, 2021; guesses named in profiles/flash/sata-ssd.toml",
        defaults: flash_keys::sata_ssd,
        build: |keys| Ok(Box::new(Flash::from_table(profile::overlay(flash_keys::sata_ssd(), keys))?)),
    },
    Model {
        name: "object-store",
        driver_cost: driver_cost::HTTP,
        summary: "object store over the network: random time to the first byte, then a rate, on parallel connections",
        source: "Amazon S3 User Guide, performance; guesses named in profiles/remote/object-store.toml",
        defaults: object_store::object_store,
        build: |keys| Ok(Box::new(ObjectStore::from_table(profile::overlay(object_store::object_store(), keys))?)),
    },
];

/// The shipped drive `name` with `keys` laid over its profile.
fn drive(name: &str, keys: Table) -> Result<Box<dyn Device>, KeyError> {
    Ok(Box::new(Mechanical::from_table(profile::overlay(profile::shipped(name), keys))?))
}

/// A scheduler that a scenario can name.
pub struct SchedulerRow {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// An empty queue.
    pub build: fn(Table) -> Result<Box<dyn Scheduler>, KeyError>,
}

/// Every scheduler.
pub static SCHEDULERS: &[SchedulerRow] = &[
    SchedulerRow {
        name: "fcfs",
        summary: "first come, first served",
        defaults: Table::new,
        build: |keys| without_keys(keys, Fcfs::default()),
    },
    SchedulerRow {
        name: "sstf",
        summary: "shortest seek first: the sector nearest to the head",
        defaults: Table::new,
        build: |keys| without_keys(keys, Sstf::default()),
    },
    SchedulerRow {
        name: "sptf",
        summary: "shortest positioning time first, as the device reckons it; age_weight favours those that wait",
        defaults: || Table::from_iter([("age_weight".to_owned(), 0.0.into())]),
        build: |keys| Ok(Box::new(Sptf::new(age_weight(keys)?))),
    },
    SchedulerRow {
        name: "scan",
        summary: "the elevator: up and down by sector number, to the edges of the disk",
        defaults: || Table::from_iter([("full_stroke".to_owned(), true.into())]),
        build: |keys| Ok(Box::new(Scan::new(full_stroke(keys, true)?))),
    },
    SchedulerRow {
        name: "look",
        summary: "the elevator that turns at the last request",
        defaults: Table::new,
        build: |keys| without_keys(keys, Scan::new(false)),
    },
    SchedulerRow {
        name: "cscan",
        summary: "upward by sector number, then again from the lowest; full_stroke = true goes over the whole disk",
        // full_stroke = false is not written into resolved scenarios: the golden results are older than the key.
        defaults: Table::new,
        build: |keys| Ok(Box::new(Cscan::new(full_stroke(keys, false)?))),
    },
    SchedulerRow {
        name: "clook",
        summary: "as cscan, never beyond the last request",
        defaults: Table::new,
        build: |keys| without_keys(keys, Cscan::new(false)),
    },
    SchedulerRow {
        name: "deadline",
        summary: "Linux 2.6's deadline: batches by sector with merging, reads first, expiries",
        defaults: Deadline::defaults,
        build: |keys| Ok(Box::new(Deadline::from_keys(keys)?)),
    },
    SchedulerRow {
        name: "anticipatory",
        summary: "Linux 2.6's anticipatory: waits a moment for the next read of a process, where that is known",
        defaults: Anticipatory::defaults,
        build: |keys| Ok(Box::new(Anticipatory::from_keys(keys, false)?)),
    },
    SchedulerRow {
        name: "anticipatory-blind",
        summary: "as anticipatory, taking all requests for one process's, as below virtual machines and file servers",
        defaults: Anticipatory::defaults,
        build: |keys| Ok(Box::new(Anticipatory::from_keys(keys, true)?)),
    },
];

fn without_keys(keys: Table, scheduler: impl Scheduler + 'static) -> Result<Box<dyn Scheduler>, KeyError> {
    Keys::new(keys).finish(&[])?;
    Ok(Box::new(scheduler))
}

fn full_stroke(mut keys: Table, default: bool) -> Result<bool, KeyError> {
    keys.entry("full_stroke").or_insert(default.into());
    let mut keys = Keys::new(keys);
    let full_stroke = keys.boolean("full_stroke")?;
    keys.finish(&["full_stroke"])?;
    Ok(full_stroke)
}

/// In millionths.
fn age_weight(mut keys: Table) -> Result<u64, KeyError> {
    const ALLOWED: &str = "a number from 0 to 1000";
    let value = keys.remove("age_weight").unwrap_or(0.into());
    Keys::new(keys).finish(&["age_weight"])?;
    let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    match number {
        Some(weight) if (0.0..=1000.0).contains(&weight) => Ok((weight * 1e6).round() as u64),
        _ => Err(KeyError::new("age_weight", format!("{value} is outside"), ALLOWED)),
    }
}

/// Why a device could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A key of the scenario.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key of a profile, or of the keys laid over it.
    #[error("{path}: {error}")]
    Profile {
        /// The profile's path.
        path: String,
        /// What is wrong in it.
        error: KeyError,
    },
    /// A profile that is no TOML.
    #[error("{path}, line {line}: {problem}; allowed: a profile in TOML")]
    Syntax {
        /// The profile's path.
        path: String,
        /// Line, from 1.
        line: usize,
        /// The parser's message.
        problem: String,
    },
    /// A profile that cannot be read.
    #[error(
        "{path}: {}; allowed: a name of `headstart list devices`, or the path of a profile in TOML",
        system_says(source)
    )]
    Read {
        /// The profile's path.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The row of a model.
#[must_use]
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|row| row.name == name)
}

/// What a request to a device costs the host, by its model's name or the path of a profile: a profile of the user's
/// own counts as a SATA or SAS drive of today.
#[must_use]
pub fn driver_cost(name_or_profile_path: &str) -> DriverCost {
    model(name_or_profile_path).map_or(driver_cost::SCSI, |row| row.driver_cost)
}

/// The row of a scheduler.
#[must_use]
pub fn scheduler(name: &str) -> Option<&'static SchedulerRow> {
    SCHEDULERS.iter().find(|row| row.name == name)
}

/// A device by its model's name or by the path of a profile (a file that exists, or anything that ends in
/// `.toml`), with `keys` laid over the defaults.
///
/// # Errors
/// The key or the file and key at fault. An unknown name is an error at `model`.
pub fn build_device(name_or_profile_path: &str, keys: Table) -> Result<Box<dyn Device>, DeviceError> {
    if let Some(row) = model(name_or_profile_path) {
        return Ok((row.build)(keys)?);
    }
    let path = Path::new(name_or_profile_path);
    if path.extension().is_some_and(|extension| extension == "toml") || path.exists() {
        return Ok(Box::new(profile::load(path, keys)?));
    }
    let names = MODELS.iter().map(|row| row.name).chain(["or the path of a profile (.toml)"]);
    Err(KeyError::unknown("model", "model", name_or_profile_path, names).into())
}

/// An empty queue by its scheduler's name.
///
/// # Errors
/// The key at fault, within the scheduler's table; an unknown name is an error at no key.
pub fn build_scheduler(name: &str, keys: Table) -> Result<Box<dyn Scheduler>, KeyError> {
    match scheduler(name) {
        Some(row) => (row.build)(keys),
        None => Err(KeyError::unknown("", "scheduler", name, SCHEDULERS.iter().map(|row| row.name))),
    }
}
