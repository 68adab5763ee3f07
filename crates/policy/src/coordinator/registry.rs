//! The coordinators: a line each, their rows stand in their files. Help, docs and the conformance tests iterate the list.

use headstart_types::KeyError;

use super::row::CoordinatorRow;
use super::{demote, du, duel, pfc, uncoordinated};

/// The coordinators.
pub static COORDINATORS: &[&CoordinatorRow] = &[&uncoordinated::ROW, &du::ROW, &demote::ROW, &pfc::ROW, &duel::ROW];

/// The row of coordinator `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn coordinator(name: &str) -> Result<&'static CoordinatorRow, KeyError> {
    let unknown = || KeyError::unknown("name", "coordinator", name, COORDINATORS.iter().map(|row| row.name));
    COORDINATORS.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}
