//! The coordinators, one line each; their rows are in their files. Help, docs and the conformance tests iterate this
//! list.

use headstart_types::KeyError;

use super::row::CoordinatorRow;
use super::{demote, du, duel, pfc, uncoordinated};

/// All coordinators.
pub static COORDINATORS: &[&CoordinatorRow] = &[&uncoordinated::ROW, &du::ROW, &demote::ROW, &pfc::ROW, &duel::ROW];

/// The row of coordinator `name`.
///
/// # Errors
/// The name is unknown; the error lists the names.
pub fn coordinator(name: &str) -> Result<&'static CoordinatorRow, KeyError> {
    let unknown = || KeyError::unknown("name", "coordinator", name, COORDINATORS.iter().map(|row| row.name));
    COORDINATORS.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}
