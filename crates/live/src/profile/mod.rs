//! Measures a device by reading it: seek curve, rotation, rates by place, overhead, and the queue depth that pays.
//!
//! [`measure`] asks a [`Probe`] for reads and times them; it never writes. The same code measures a simulated drive in
//! virtual time ([`SimulatedProbe`]), which tests do, and a real one through direct reads ([`DirectProbe`], [`profile`]).
//! The findings on a drive with an arm become a profile ([`Profile::toml`]), which the simulator loads.
//!
//! - `probe.rs`, `simulated.rs`, `direct.rs`: the devices that are read; `lab.rs`: time, chance and progress;
//! - `look.rs`, `rotation.rs`, `tracks.rs`, `overhead.rs`, `rates.rs`, `seeks.rs`, `depths.rs`: one part of the measurement
//!   each;
//! - `map.rs`: tracks by place; `errors.rs`: the error of each number; `drive.rs`: the profile;
//!   `no_arm.rs`: that of a device without an arm; `findings.rs`: all of it for people and programs.

mod depths;
mod direct;
mod drive;
mod errors;
mod findings;
mod lab;
mod look;
mod map;
mod no_arm;
mod overhead;
mod probe;
mod rates;
mod rotation;
mod run;
mod seeks;
mod simulated;
mod text;
mod tracks;

use std::path::Path;

use crate::PathError;
pub use depths::Point;
pub use direct::DirectProbe;
pub use findings::{ArmFound, Findings, Latency, ZoneRate, SCHEMA};
use headstart_device::{build_device, DeviceError, SECTOR_BYTES};
use headstart_types::{DriveFacts, KeyError, Nanos};
pub use lab::{Phase, Progress, Tell};
pub use no_arm::NoArm;
pub use probe::{Probe, Read, Span, ALIGNMENT};
pub use run::profile;
pub use seeks::SeekPoint;
pub use simulated::SimulatedProbe;
use toml::Table;

use lab::Lab;

/// Smallest device whose arm can be measured, in sectors: 64 MiB.
const LEAST_SECTORS: u64 = 1 << 17;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or device.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The measurements are not conclusive.
    #[error("{problem}; allowed: {allowed}")]
    Unclear {
        /// Why it does not.
        problem: String,
        /// What would.
        allowed: String,
    },
    /// A number of the caller's, or one that was measured and no drive can have.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Somebody has stopped it.
    #[error("stopped")]
    Stopped,
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// About how long; a slow device takes longer, since each part needs a least number of reads.
    pub time: Nanos,
    /// Of the places that are read.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { time: Nanos::from_millis(60_000), seed: 1 }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The numbers.
    pub findings: Findings,
    /// The drive as a profile; of a device without an arm one for `headstart tune` alone.
    pub toml: Option<String>,
    /// What of it decides how much is worth reading at once; none of a device without an arm.
    pub facts: Option<DriveFacts>,
}

/// What decides how much of a drive is worth reading at once, by a name of the registry or the path of a profile; `None`
/// where nothing moves.
///
/// # Errors
/// No such device, or its profile or a key is at fault.
pub fn facts(name_or_profile_path: &str, keys: Table) -> Result<Option<DriveFacts>, DeviceError> {
    Ok(build_device(name_or_profile_path, keys)?.drive_facts())
}

/// Measures a device. `name` is written into the profile. `tell` gets the progress after each read, and returns whether to go on.
///
/// # Errors
/// The device is too small or does not answer, its times say nothing, or `tell` has stopped it.
pub fn measure(probe: &mut dyn Probe, name: &str, settings: &Settings, tell: Tell<'_>) -> Result<Profile, Error> {
    let capacity = probe.sectors();
    if capacity < LEAST_SECTORS {
        return Err(Error::Unclear {
            problem: format!("{} bytes are too few to tell anything", capacity * SECTOR_BYTES),
            allowed: format!("a device of {} bytes at least", LEAST_SECTORS * SECTOR_BYTES),
        });
    }
    let mut lab = Lab::new(probe, settings.seed, settings.time, tell);
    let traits = look::look(&mut lab)?;
    let mut findings = Findings {
        schema: SCHEMA,
        capacity_bytes: capacity * SECTOR_BYTES,
        elapsed_ns: 0,
        reads: 0,
        seed: settings.seed,
        latency: Latency {
            near_ns: traits.near.0,
            far_ns: traits.far.0,
            buffered_ns: traits.buffer.map(|buffer| buffer.hit.0),
        },
        by_depth: Vec::new(),
        saturating_depth: 1,
        arm: None,
        by_size: Vec::new(),
        saturating_bytes: None,
        notes: Vec::new(),
    };
    let (mut toml, mut facts) = (None, None);
    if traits.has_arm() {
        let drive = drive::drive(&mut lab, &traits, name)?;
        findings.arm = Some(drive.arm);
        findings.notes = drive.notes;
        (toml, facts) = (Some(drive.toml), Some(drive.facts));
    } else {
        findings.by_size = depths::sizes(&mut lab)?;
        findings.saturating_bytes = depths::saturating(&findings.by_size, false).map(|point| point.request_bytes);
    }
    let arm = findings.arm.is_some();
    findings.by_depth = depths::depths(&mut lab, arm)?;
    findings.saturating_depth = depths::saturating(&findings.by_depth, arm).map_or(1, |point| point.depth);
    findings.elapsed_ns = lab.elapsed().0;
    findings.reads = lab.reads;
    toml = toml.or_else(|| no_arm::text(&findings, name));
    Ok(Profile { findings, toml, facts })
}
