//! Several disks as one volume: the table of arrays, one row each, and how to build one.
//!
//! Two kinds. Of *independent* disks each has its own queue, and a [`Layout`] says which blocks it holds; a policy
//! sees every disk. *Joined* disks stand behind one controller: they are one [`Device`], so that a policy and a
//! scheduler see one disk.

mod controller;
mod members;
mod mirror;
mod raid0;
mod raid5;

use headstart_types::{Bytes, KeyError};
use toml::Table;

use crate::keys::Keys;
use crate::{Concat, Device, Layout, Stripe};
use controller::Controller;
use mirror::Mirror;
use raid0::Raid0;
use raid5::Raid5;

/// An array that a scenario can name.
pub struct ArrayRow {
    /// The name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Its keys, none of which must be given, and what holds where one is not.
    pub computed: &'static [(&'static str, &'static str)],
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

/// The key that all joined disks have.
const QUEUE_DEPTH: (&str, &str) = ("queue_depth", "as many commands as its disks serve at once");

/// Every array.
pub static ARRAYS: &[ArrayRow] = &[
    ArrayRow {
        name: "stripe",
        summary: "independent disks, units in turn",
        source: "kimbrel96 section 3.2",
        computed: &[],
        kind: ArrayKind::Independent(|disks, unit, block, _| Ok(Layout::Stripe(Stripe::try_new(disks, unit, block)?))),
    },
    ArrayRow {
        name: "concat",
        summary: "independent disks, one after another",
        source: "folklore",
        computed: &[],
        kind: ArrayKind::Independent(|disks, _, block, capacity| {
            Ok(Layout::Concat(Concat::try_new(disks, block, capacity)?))
        }),
    },
    ArrayRow {
        name: "mirror",
        summary: "one queue; every disk holds all: a read goes to the nearest free one, a write to all",
        source: "Patterson, Gibson and Katz, RAID, SIGMOD 1988 (level 1)",
        computed: &[QUEUE_DEPTH],
        kind: ArrayKind::Joined(|count, member, _, keys| {
            let mut keys = Keys::new(keys);
            let depth = queue_depth(&mut keys)?;
            keys.finish(&["queue_depth"])?;
            Ok(Box::new(Controller::try_new(Mirror, count, member, depth)?))
        }),
    },
    ArrayRow {
        name: "raid0",
        summary: "one queue; requests are cut at stripe units",
        source: "Chen et al., RAID, ACM Computing Surveys 26(2), 1994 (level 0)",
        computed: &[QUEUE_DEPTH],
        kind: ArrayKind::Joined(|count, member, unit_sectors, keys| {
            let mut keys = Keys::new(keys);
            let depth = queue_depth(&mut keys)?;
            keys.finish(&["queue_depth"])?;
            Ok(Box::new(Controller::try_new(Raid0::try_new(count, unit_sectors)?, count, member, depth)?))
        }),
    },
    ArrayRow {
        name: "raid5",
        summary: "one queue; units and their parity in turn (left-symmetric), with one disk failed if need be",
        source:
            "Lee and Katz, parity placements, ASPLOS 1991; Chen et al., ACM Computing Surveys 26(2), 1994 (level 5)",
        computed: &[QUEUE_DEPTH, ("failed", "none: no disk is missing")],
        kind: ArrayKind::Joined(|count, member, unit_sectors, keys| {
            let mut keys = Keys::new(keys);
            let depth = queue_depth(&mut keys)?;
            let failed = keys.whole_if("failed", 0, u64::from(count.max(1)) - 1)?;
            keys.finish(&["queue_depth", "failed"])?;
            let raid5 = Raid5::try_new(count, unit_sectors, failed.map(|disk| disk as usize))?;
            Ok(Box::new(Controller::try_new(raid5, count, member, depth)?))
        }),
    },
];

/// Most commands that the controller has outstanding, if the user sets it.
fn queue_depth(keys: &mut Keys) -> Result<Option<u32>, KeyError> {
    Ok(keys.whole_if("queue_depth", 1, 65_536)?.map(|depth| depth as u32))
}

/// The row of an array.
///
/// # Errors
/// An unknown name is an error at `array`.
pub fn array(name: &str) -> Result<&'static ArrayRow, KeyError> {
    let unknown = || KeyError::unknown("array", "array", name, ARRAYS.iter().map(|row| row.name));
    ARRAYS.iter().find(|row| row.name == name).ok_or_else(unknown)
}

/// How blocks lie on `disks` independent disks of `capacity_sectors` each.
///
/// # Errors
/// `array`, `count`, `block_size` or `stripe_unit`, as the keys of a scenario are called.
pub fn build_layout(
    kind: &str,
    disks: u32,
    unit: Bytes,
    block: Bytes,
    capacity_sectors: Option<u64>,
) -> Result<Layout, KeyError> {
    match array(kind)?.kind {
        ArrayKind::Independent(build) => build(disks, unit, block, capacity_sectors),
        ArrayKind::Joined(_) => Err(other(kind, "is one device, not independent disks", true)),
    }
}

/// `members` disks like `member` as one device. Keys of `keys`: `queue_depth`, the commands that the controller has
/// under way at once (as many as the members together serve at once, if absent); of `raid5` also `failed`, the
/// disk that is missing, from 0.
///
/// # Errors
/// `array`, `count`, `stripe_unit`, or a key of `keys`.
pub fn build_array(
    kind: &str,
    members: u32,
    member: Box<dyn Device>,
    unit_sectors: u64,
    keys: Table,
) -> Result<Box<dyn Device>, KeyError> {
    match array(kind)?.kind {
        ArrayKind::Joined(build) => build(members, member, unit_sectors, keys),
        ArrayKind::Independent(_) => Err(other(kind, "is of independent disks, not one device", false)),
    }
}

/// An array of the other kind than was requested.
fn other(kind: &str, problem: &str, independent: bool) -> KeyError {
    let names: Vec<_> = ARRAYS.iter().filter(|row| row.is_independent() == independent).map(|row| row.name).collect();
    KeyError::new("array", format!("\"{kind}\" {problem}"), names.join(", "))
}
