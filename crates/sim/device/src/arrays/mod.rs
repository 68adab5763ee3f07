//! Several disks as one volume: the registry of arrays, and their construction.
//!
//! There are two kinds. *Independent* disks have separate queues, and a [`Layout`] maps blocks to them; a policy sees
//! every disk. *Joined* disks are behind one controller: they are one [`Device`], so a policy and a scheduler see one
//! disk.

mod controller;
mod members;
mod mirror;
mod raid0;
mod raid5;

use headstart_types::{Bytes, KeyError};
use toml::Table;

use crate::row::{ArrayKind, ArrayRow};
use crate::{array as independent, Device, Layout};

pub static ARRAYS: &[ArrayRow] = &[independent::STRIPE, independent::CONCAT, mirror::ROW, raid0::ROW, raid5::ROW];

/// The row of an array.
///
/// # Errors
/// At `array`, for an unknown name.
pub fn array(name: &str) -> Result<&'static ArrayRow, KeyError> {
    let unknown = || KeyError::unknown("array", "array", name, ARRAYS.iter().map(|row| row.name));
    ARRAYS.iter().find(|row| row.name == name).ok_or_else(unknown)
}

/// The mapping of blocks to `disks` independent disks of `capacity_sectors` each.
///
/// # Errors
/// At the scenario's keys `array`, `count`, `block_size` or `stripe_unit`.
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

/// `members` disks like `member` as one device. `keys` may have `queue_depth`, the maximum number of outstanding
/// commands (by default as many as the members serve concurrently), and for `raid5` `failed`, the missing disk, from 0.
///
/// # Errors
/// At `array`, `count`, `stripe_unit`, or a key of `keys`.
pub fn build_array(
    kind: &str,
    members: u32,
    member: Box<dyn Device>,
    unit_sectors: u64,
    keys: Table,
) -> Result<Box<dyn Device>, KeyError> {
    match array(kind)?.kind {
        ArrayKind::Joined(build) => build(members, member, unit_sectors, keys),
        ArrayKind::Independent(_) => Err(other(kind, "has independent disks, not one device", false)),
    }
}

/// The error for an array of the other kind.
fn other(kind: &str, problem: &str, independent: bool) -> KeyError {
    let names: Vec<_> = ARRAYS.iter().filter(|row| row.is_independent() == independent).map(|row| row.name).collect();
    KeyError::new("array", format!("\"{kind}\" {problem}"), names.join(", "))
}
