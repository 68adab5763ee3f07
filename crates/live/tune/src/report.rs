//! What was done, as a record and as JSON.

use std::path::PathBuf;

use headstart_types::DriveFacts;
use serde::Serialize;

use super::{Depth, Device, Seen};
use headstart_host::Process;

/// Version of the JSON.
pub(super) const SCHEMA: u32 = 1;

/// The requested action.
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
    /// The requested action.
    pub action: Action,
    /// The device.
    pub device: Device,
    /// What stood there when it began.
    pub found_kb: u64,
    /// The number in effect, in KiB.
    pub now_kb: u64,
    /// What should stand there, and why; not when it was taken back.
    pub proposed: Option<Depth>,
    /// What `--restore` would write; `None` if the number is not ours.
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

/// Why a watch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It was stopped.
    Stopped,
    /// Its time was over.
    Time,
    /// The device has gone, or has another medium.
    Gone,
    /// Another program has set the number.
    Changed,
}

/// What a watch has seen and done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Version of this record.
    pub schema: u32,
    /// Version of the program.
    pub version: &'static str,
    /// The device.
    pub device: Device,
    /// The drive, as it was named.
    pub profile: String,
    /// Since the start.
    pub elapsed_ns: u64,
    /// What the arm did, and what follows from it.
    #[serde(flatten)]
    pub seen: Seen,
    /// Half a turn of the drive.
    pub half_turn_ns: u64,
    /// What was found.
    pub found_kb: u64,
    /// The number in effect.
    pub now_kb: u64,
    /// The lowest that was written; `None` if none was.
    pub lowest_kb: Option<u64>,
    /// The highest.
    pub highest_kb: Option<u64>,
    /// Why it has ended; `None` while it goes on.
    pub ended: Option<Ended>,
    /// What else is to be said, a sentence each.
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
