//! Several disks as one volume: the list of arrays, and how to build one.
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

use crate::row::{ArrayKind, ArrayRow};
use crate::{array as independent, Device, Layout};

/// Every array.
pub static ARRAYS: &[ArrayRow] = &[independent::STRIPE, independent::CONCAT, mirror::ROW, raid0::ROW, raid5::ROW];

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
