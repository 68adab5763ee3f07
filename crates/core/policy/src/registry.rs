//! All policies and replacements by name, in two lists; their rows are in their files. Help, docs and the conformance
//! tests iterate the lists.

use std::sync::LazyLock;

use headstart_types::KeyError;

use crate::replacement::{arc, clock, fifo, lfu, lirs, lru, min, mru, ru_set, s3_fifo, sieve, two_q};
use crate::{demand, hinted, parallel, predictor, readahead};

pub use crate::row::{Beside, Build, BuildReplacement, ByPosition, Context, Family, Join, PolicyRow, ReplacementRow};

/// All policies. The predictors have a list of their own, in which `rapid-transit` looks them up.
pub static POLICIES: LazyLock<Vec<&PolicyRow>> = LazyLock::new(|| {
    let others = [
        &demand::ROW,
        &hinted::fixed_horizon::ROW,
        &hinted::aggressive::ROW,
        &hinted::reverse_aggressive::ROW,
        &hinted::forestall::ROW,
        &hinted::just_in_time::ROW,
        &hinted::headstart_store::ROW,
        &hinted::tip2::ROW,
        &hinted::optimum::ROW,
        &parallel::rapid_transit::ROW,
        &readahead::obl::ROW,
        &readahead::ra::ROW,
        &readahead::linux_2_6::ROW,
        &readahead::sarc::ROW,
        &readahead::amp::ROW,
        &readahead::linux::ROW,
        &readahead::linux_2_6_10::ROW,
        &readahead::linux_2_6_16::ROW,
        &readahead::fixed_depth::ROW,
        &readahead::competitive::ROW,
        &readahead::oracle_depth::ROW,
        &readahead::ffs::ROW,
        &readahead::stride::ROW,
        &readahead::rocksdb::ROW,
        &readahead::zfs::ROW,
        &readahead::innodb::ROW,
        &readahead::postgres::ROW,
        &readahead::mountpoint_s3::ROW,
        &readahead::fsspec_readahead::ROW,
    ];
    others.into_iter().chain(predictor::ROWS).collect()
});

/// All replacement policies.
pub static REPLACEMENTS: &[&ReplacementRow] = &[
    &lru::ROW,
    &fifo::ROW,
    &arc::ROW,
    &min::ROW,
    &two_q::ROW,
    &sieve::ROW,
    &s3_fifo::ROW,
    &lirs::ROW,
    &mru::ROW,
    &clock::ROW,
    &lfu::ROW,
    &ru_set::ROW,
];

/// Rows that a host adds to the registry, such as policies written in another language.
pub trait Rows {
    /// The row of policy `name`; `None` if the host does not define that name.
    fn policy(&self, name: &str) -> Option<Result<&'static PolicyRow, KeyError>>;

    /// The row of replacement `name`; `None` if the host does not define that name.
    fn replacement(&self, name: &str) -> Option<Result<&'static ReplacementRow, KeyError>>;
}

/// Only the registry, without a host's rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Rows for BuiltIn {
    fn policy(&self, _: &str) -> Option<Result<&'static PolicyRow, KeyError>> {
        None
    }

    fn replacement(&self, _: &str) -> Option<Result<&'static ReplacementRow, KeyError>> {
        None
    }
}

/// The row of replacement `name`.
///
/// # Errors
/// The name is unknown; the error lists the names.
pub fn replacement(name: &str) -> Result<&'static ReplacementRow, KeyError> {
    let unknown = || KeyError::unknown("replacement", "replacement", name, REPLACEMENTS.iter().map(|row| row.name));
    REPLACEMENTS.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}

/// The row of replacement `name`, from the host's `rows` or the registry.
///
/// # Errors
/// As [`replacement`], and what is wrong with a host's row.
pub fn replacement_among(rows: &dyn Rows, name: &str) -> Result<&'static ReplacementRow, KeyError> {
    rows.replacement(name).unwrap_or_else(|| replacement(name))
}

/// The row of policy `name`.
///
/// # Errors
/// The name is unknown; the error lists the names.
pub fn policy(name: &str) -> Result<&'static PolicyRow, KeyError> {
    let unknown = || KeyError::unknown("name", "policy", name, POLICIES.iter().map(|row| row.name));
    POLICIES.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}

/// The row of policy `name`, from the host's `rows` or the registry.
///
/// # Errors
/// As [`policy`], and what is wrong with a host's row.
pub fn policy_among(rows: &dyn Rows, name: &str) -> Result<&'static PolicyRow, KeyError> {
    rows.policy(name).unwrap_or_else(|| policy(name))
}

/// All read-aheads and predictors.
pub fn read_aheads() -> impl Iterator<Item = &'static PolicyRow> {
    POLICIES.iter().copied().filter(|row| row.reads_ahead().is_some())
}
