//! Rows: what the file of a device model, a scheduler or an array says of it.

use headstart_types::{Bytes, KeyError, KeyTable};
use toml::Table;

use crate::driver_cost::{DriverCost, HTTP, THEORETICAL};
use crate::{overlay, Device, Layout, Scheduler};

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
    /// Its keys; the defaults are those of its profile.
    pub keys: KeyTable,
    /// The device of a complete set of keys.
    pub(crate) make: fn(Table) -> Result<Box<dyn Device>, KeyError>,
}

impl Model {
    /// Whether a machine has such devices of its own, with a read-ahead: drives, but no remote stores.
    #[must_use]
    pub fn is_drive(&self) -> bool {
        self.driver_cost != HTTP && self.driver_cost != THEORETICAL
    }

    /// The device, from keys laid over the defaults.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has a value that no device can have.
    pub fn build(&self, keys: Table) -> Result<Box<dyn Device>, KeyError> {
        (self.make)(overlay(self.keys.defaults(), keys))
    }
}

/// A scheduler that a scenario can name.
pub struct SchedulerRow {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// An empty queue.
    pub build: fn(Table) -> Result<Box<dyn Scheduler>, KeyError>,
}

/// An array that a scenario can name.
pub struct ArrayRow {
    /// The name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// How it is made.
    pub kind: ArrayKind,
}

/// Lays blocks on independent disks: how many disks, stripe unit, block, sectors of a disk (`None`: no limit).
pub type LayDisks = fn(u32, Bytes, Bytes, Option<u64>) -> Result<Layout, KeyError>;

/// Joins disks behind one controller: how many, one of them, sectors of a stripe unit, the array's own keys.
pub type JoinDisks = fn(u32, Box<dyn Device>, u64, Table) -> Result<Box<dyn Device>, KeyError>;

/// How an array is made.
pub enum ArrayKind {
    /// Of independent disks.
    Independent(LayDisks),
    /// Of disks behind one controller.
    Joined(JoinDisks),
}

impl ArrayRow {
    /// Whether each disk has a queue of its own.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        matches!(self.kind, ArrayKind::Independent(_))
    }
}
