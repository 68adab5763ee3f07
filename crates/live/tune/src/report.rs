//! What was done, as a record and as JSON.

use std::path::PathBuf;

use headstart_types::DriveFacts;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Depth, Device, Seen};
use headstart_host::Process;

/// Version of the JSON.
pub(super) const SCHEMA: u32 = 1;

/// The requested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Show the depths.
    DryRun,
    /// Write the depth.
    Apply,
    /// Write the original value.
    Restore,
}

/// Report of `headstart tune`: the current, the proposed and the written value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// The requested action.
    pub action: Action,
    /// The device.
    pub device: Device,
    /// `read_ahead_kb` at the start.
    pub found_kb: u64,
    /// `read_ahead_kb` at the end.
    pub now_kb: u64,
    /// The proposed depth; null with `--restore`.
    pub proposed: Option<Depth>,
    /// The value that `--restore` would write. Null if `tune` has not set the current value.
    pub old_kb: Option<u64>,
    /// The process that watches the device. Null if there is none.
    pub watcher: Option<Process>,
    /// The state file.
    pub state: PathBuf,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// As JSON, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and finite numbers")
    }
}

/// Why a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It was stopped.
    Stopped,
    /// Its duration was over.
    Time,
    /// The device was removed or its medium changed.
    Gone,
    /// Another program changed the value.
    Changed,
}

/// Status of a watch.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// The device.
    pub device: Device,
    /// The drive, as given on the command line.
    pub profile: String,
    /// Time since the start.
    pub elapsed_ns: u64,
    /// Statistics of the requests, the resulting depth and the faults.
    #[serde(flatten)]
    pub seen: Seen,
    /// Duration of half a revolution.
    pub half_turn_ns: u64,
    /// The read-ahead at the start of the watch, in KiB.
    pub found_kb: u64,
    /// The current read-ahead, in KiB.
    pub now_kb: u64,
    /// The lowest value written, in KiB.
    pub lowest_kb: Option<u64>,
    /// The highest value written, in KiB.
    pub highest_kb: Option<u64>,
    /// Why the watch ended. Null while it runs.
    pub ended: Option<Ended>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

impl Status {
    pub(super) fn new(device: &Device, profile: &str, facts: &DriveFacts, found_kb: u64, notes: Vec<String>) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            device: device.clone(),
            profile: profile.to_owned(),
            elapsed_ns: 0,
            seen: Seen::default(),
            half_turn_ns: facts.half_turn.0,
            found_kb,
            now_kb: found_kb,
            lowest_kb: None,
            highest_kb: None,
            ended: None,
            notes,
        }
    }

    /// As JSON, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and finite numbers")
    }
}
