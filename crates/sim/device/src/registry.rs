//! Device models and schedulers by name. A row is in its own file and in the list of its folder. Help, docs and
//! conformance tests iterate the lists.

use std::path::Path;

use headstart_types::{system_says, KeyError};
use toml::Table;

use crate::driver_cost::{self, DriverCost};
use crate::models::{profile, shipped, MODELS};
use crate::row::{Model, SchedulerRow};
use crate::schedulers::SCHEDULERS;
use crate::{Device, Scheduler};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A key of the scenario.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key of a profile, or of the keys that override it.
    #[error("{path}: {error}")]
    Profile { path: String, error: KeyError },
    /// A profile that is not valid TOML.
    #[error("{path}, line {line}: {problem}; allowed: a profile in TOML")]
    Syntax {
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
    Read { path: String, source: std::io::Error },
}

/// A short name, and the model that it stands for.
const HDD: (&str, &str) = ("hdd", shipped::SEAGATE_EXOS_X20.name);

/// The row of a model. "hdd" is a current hard disk.
#[must_use]
pub fn model(name: &str) -> Option<&'static Model> {
    let name = if name == HDD.0 { HDD.1 } else { name };
    MODELS.iter().find(|row| row.name == name)
}

/// The host's cost of a request to a device, by its model's name or the path of a profile: a user's profile counts as a
/// current SATA or SAS drive.
#[must_use]
pub fn driver_cost(name_or_profile_path: &str) -> DriverCost {
    model(name_or_profile_path).map_or(driver_cost::SCSI, |row| row.driver_cost)
}

#[must_use]
pub fn scheduler(name: &str) -> Option<&'static SchedulerRow> {
    SCHEDULERS.iter().find(|row| row.name == name)
}

/// A device by its model's name or by the path of a profile (an existing file, or any name that ends in `.toml`), with
/// its defaults overridden by `keys`.
///
/// # Errors
/// The offending key or the file and key. An unknown name is an error at `model`.
pub fn build_device(name_or_profile_path: &str, keys: Table) -> Result<Box<dyn Device>, DeviceError> {
    if let Some(row) = model(name_or_profile_path) {
        return Ok(row.build(keys)?);
    }
    let path = Path::new(name_or_profile_path);
    if path.extension().is_some_and(|extension| extension == "toml") || path.exists() {
        return profile::load(path, keys);
    }
    let names = MODELS.iter().map(|row| row.name).chain([HDD.0, "or the path of a profile (.toml)"]);
    Err(KeyError::unknown("model", "model", name_or_profile_path, names).into())
}

/// An empty queue by its scheduler's name.
///
/// # Errors
/// The offending key within the scheduler's table; an unknown name is an error without a key.
pub fn build_scheduler(name: &str, keys: Table) -> Result<Box<dyn Scheduler>, KeyError> {
    let unknown = || KeyError::unknown("", "scheduler", name, SCHEDULERS.iter().map(|row| row.name));
    (scheduler(name).ok_or_else(unknown)?.build)(keys)
}
