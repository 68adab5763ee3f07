//! Rows: what a coordinator's file says of it.

use toml::Table;

use headstart_types::{read_keys, KeyError, KeyTable, NoKeys};

use super::Coordinator;
use crate::row::ByPosition;

/// What a host tells about the level that a coordinator is built for.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorContext {
    /// Frames of the lower level; 0 if it only passes on.
    pub frames: u32,
}

/// How a row makes its coordinator.
pub type BuildCoordinator = fn(Table, &CoordinatorContext) -> Result<Box<dyn Coordinator>, KeyError>;

/// A coordinator's row.
pub struct CoordinatorRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// Whether, with these keys, the lower level reads more by position: it needs a trace with addresses.
    pub by_position: ByPosition,
    /// Builds it from its keys (without `name`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildCoordinator,
}

pub(super) fn without_keys<C: Coordinator + 'static>(
    keys: Table,
    coordinator: C,
) -> Result<Box<dyn Coordinator>, KeyError> {
    read_keys::<NoKeys>(keys)?;
    Ok(Box::new(coordinator))
}
