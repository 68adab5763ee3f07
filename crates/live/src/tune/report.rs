//! What was done, as a record and as JSON.

use std::path::PathBuf;

use serde::Serialize;

use super::{Depth, Device, Process};

/// Version of the JSON.
pub(super) const SCHEMA: u32 = 1;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// To look.
    DryRun,
    /// To write the depth.
    Apply,
    /// To write what was found.
    Restore,
}

/// What there is, what there should be, and what was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this record.
    pub schema: u32,
    /// Version of the program.
    pub version: &'static str,
    /// What was asked for.
    pub action: Action,
    /// The device.
    pub device: Device,
    /// What stood there when it began.
    pub found_kb: u64,
    /// What stands there now.
    pub now_kb: u64,
    /// What should stand there, and why; not when it was taken back.
    pub proposed: Option<Depth>,
    /// What `--restore` would write; `None` if nothing of ours stands there.
    pub old_kb: Option<u64>,
    /// Who watches it.
    pub watcher: Option<Process>,
    /// The state file.
    pub state: PathBuf,
    /// What else is to be said, a sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// As JSON, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and finite numbers")
    }
}
