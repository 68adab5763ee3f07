//! Rows: the registry entries in the files of device models, schedulers and arrays.

use headstart_types::{Bytes, KeyError, KeyTable};
use toml::Table;

use crate::driver_cost::{DriverCost, HTTP, THEORETICAL};
use crate::{overlay, Device, Layout, Scheduler};

/// A device model that a scenario can name.
pub struct Model {
    pub name: &'static str,
    /// The host's cost of a request, unless the scenario gives it.
    pub driver_cost: DriverCost,
    /// One line for help.
    pub summary: &'static str,
    /// The source of its numbers.
    pub source: &'static str,
    /// Its keys; the defaults are those of its profile.
    pub keys: KeyTable,
    /// Builds the device from a complete set of keys.
    pub(crate) make: fn(Table) -> Result<Box<dyn Device>, KeyError>,
}

impl Model {
    /// Whether a machine can have such a device locally, with a read-ahead: drives, but not remote stores.
    #[must_use]
    pub fn is_drive(&self) -> bool {
        self.driver_cost != HTTP && self.driver_cost != THEORETICAL
    }

    /// Builds the device, with its defaults overridden by `keys`.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has an impossible value.
    pub fn build(&self, keys: Table) -> Result<Box<dyn Device>, KeyError> {
        (self.make)(overlay(self.keys.defaults(), keys))
    }
}

/// A scheduler that a scenario can name.
pub struct SchedulerRow {
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    pub keys: KeyTable,
    /// Builds an empty queue.
    pub build: fn(Table) -> Result<Box<dyn Scheduler>, KeyError>,
}

/// An array that a scenario can name.
pub struct ArrayRow {
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    pub keys: KeyTable,
    pub kind: ArrayKind,
}

/// Maps blocks to independent disks: number of disks, stripe unit, block, sectors of a disk (`None`: no limit).
pub type LayDisks = fn(u32, Bytes, Bytes, Option<u64>) -> Result<Layout, KeyError>;

/// Joins disks behind one controller: number of disks, one of them, sectors of a stripe unit, the array's own keys.
pub type JoinDisks = fn(u32, Box<dyn Device>, u64, Table) -> Result<Box<dyn Device>, KeyError>;

/// How an array is built.
pub enum ArrayKind {
    Independent(LayDisks),
    /// Disks behind one controller.
    Joined(JoinDisks),
}

impl ArrayRow {
    /// Whether each disk has its own queue.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        matches!(self.kind, ArrayKind::Independent(_))
    }
}
