//! All policies, replacements and coordinators by name. A row is in its own file and in the list of its folder. Help, docs
//! and the conformance tests iterate the lists.

use std::sync::LazyLock;

use headstart_types::KeyError;

use crate::coordinator::CoordinatorRow;
use crate::{demand, hinted, parallel, predictor, readahead};

pub use crate::coordinator::ROWS as COORDINATORS;
pub use crate::replacement::ROWS as REPLACEMENTS;
pub use crate::row::{Beside, Build, BuildReplacement, ByPosition, Context, Family, Join, PolicyRow, ReplacementRow};

/// All policies.
pub static POLICIES: LazyLock<Vec<&PolicyRow>> = LazyLock::new(|| {
    let folders = [hinted::ROWS, parallel::ROWS, readahead::ROWS, predictor::ROWS];
    std::iter::once(&demand::ROW).chain(folders.into_iter().flatten().copied()).collect()
});

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

/// The row of coordinator `name`.
///
/// # Errors
/// The name is unknown; the error lists the names.
pub fn coordinator(name: &str) -> Result<&'static CoordinatorRow, KeyError> {
    let unknown = || KeyError::unknown("name", "coordinator", name, COORDINATORS.iter().map(|row| row.name));
    COORDINATORS.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}
