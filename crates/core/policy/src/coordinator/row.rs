//! What a coordinator's file declares about it.

use headstart_types::{KeyError, KeyTable, Row, TypedKeys};

use super::Coordinator;
use crate::row::ByPosition;

/// What a host tells about the level for which a coordinator is built.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorContext {
    /// Frames of the lower level; 0 if it stores nothing and only forwards.
    pub frames: u32,
}

/// Builds a row's coordinator.
pub type BuildCoordinator = fn(&TypedKeys, &CoordinatorContext) -> Result<Box<dyn Coordinator>, KeyError>;

/// A coordinator's row.
pub struct CoordinatorRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help and docs.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// Whether the lower level prefetches by position with these keys, which needs a trace with addresses.
    pub by_position: ByPosition,
    /// Builds the coordinator from its keys.
    ///
    /// # Errors
    /// A key that does not fit the level.
    pub build: BuildCoordinator,
}

impl Row for CoordinatorRow {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self) -> &KeyTable {
        &self.keys
    }
}
