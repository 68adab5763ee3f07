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
//! - `fit/`: the model of a device without an arm; `no_arm.rs`: its profile;
//! - `check.rs`: the model beside reads that nothing was fitted to; `model.rs`: its numbers with their errors; `findings.rs`: all of it
//!   for people and programs.

mod check;
mod depths;
mod direct;
mod drive;
mod errors;
mod findings;
mod fit;
mod lab;
mod look;
mod map;
mod model;
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

pub use check::{Check, HeldOut, Places};
pub use depths::Point;
pub use direct::DirectProbe;
pub use findings::{ArmFound, Findings, Latency, ZoneRate, SCHEMA};
pub use fit::Parameter;
use headstart_device::{build_device, Device, DeviceError, SECTOR_BYTES};
use headstart_host::PathError;
use headstart_types::{Bytes, DriveFacts, KeyError, Nanos};
pub use lab::{Phase, Progress, Tell};
pub use model::ModelFound;
pub use no_arm::NoArm;
pub use probe::{Probe, Read, Span, ALIGNMENT};
pub use run::{check, profile, profile_with};
pub use seeks::SeekPoint;
pub use simulated::SimulatedProbe;
use toml::Table;

use lab::{median, Lab};

/// Smallest device whose arm can be measured, in sectors: 64 MiB.
const LEAST_SECTORS: u64 = 1 << 17;
/// Smallest object, in sectors: 4 MiB, of which reads of 1 MiB give the rate of a connection.
const LEAST_SECTORS_OBJECT: u64 = 1 << 13;

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
    /// The device as a profile.
    pub toml: String,
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
    let is_object_store = probe.is_object_store();
    let (least, kind) = if is_object_store { (LEAST_SECTORS_OBJECT, "an object") } else { (LEAST_SECTORS, "a device") };
    if capacity < least {
        return Err(Error::Unclear {
            problem: format!("{} is too small to tell anything", Bytes(capacity * SECTOR_BYTES)),
            allowed: format!("{kind} of {} at least", Bytes(least * SECTOR_BYTES)),
        });
    }
    let mut lab = Lab::new(probe, settings.seed, settings.time, tell);
    // The latency of a store varies, which can look like an arm.
    let traits = if is_object_store { look::DriveTraits::default() } else { look::look(&mut lab)? };
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
        by_depth_long: Vec::new(),
        model: None,
        notes: Vec::new(),
    };
    let has_arm = traits.has_arm();
    let (mut toml, facts, parameters, device) = match has_arm {
        true => moving(&mut lab, &traits, name, &mut findings)?,
        false => flat(&mut lab, name, is_object_store, &mut findings)?,
    };
    let check = check::check(&mut lab, &*device, has_arm)?;
    let (name, parameters) = parameters;
    let model = ModelFound { name, parameters, check };
    toml.push_str(&model.comments());
    findings.model = Some(model);
    findings.elapsed_ns = lab.elapsed().0;
    findings.reads = lab.reads;
    Ok(Profile { findings, toml, facts })
}

/// A profile, what of it decides how much is worth reading at once, the name and the numbers of its model, and the device of it.
type Modelled = (String, Option<DriveFacts>, (&'static str, Vec<Parameter>), Box<dyn Device>);

/// Measures a drive with an arm.
fn moving(
    lab: &mut Lab<'_>,
    traits: &look::DriveTraits,
    name: &str,
    findings: &mut Findings,
) -> Result<Modelled, Error> {
    let drive = drive::drive(lab, traits, name)?;
    findings.notes = drive.notes;
    findings.by_depth = depths::depths(lab, true)?;
    findings.saturating_depth = depths::saturating(&findings.by_depth, true).map_or(1, |point| point.depth);
    let parameters = ("mechanical", drive::parameters(&drive.arm));
    findings.arm = Some(drive.arm);
    Ok((drive.toml, Some(drive.facts), parameters, Box::new(drive.built)))
}

/// Measures a device without one.
fn flat(lab: &mut Lab<'_>, name: &str, is_object_store: bool, findings: &mut Findings) -> Result<Modelled, Error> {
    let effort = if is_object_store { &depths::OBJECT_STORE } else { &depths::DEVICE };
    let by_size = depths::sizes(lab, effort)?;
    if is_object_store {
        let median = median(&by_size[0].times_ns.iter().map(|ns| Nanos::rounded(*ns)).collect::<Vec<_>>());
        findings.latency.near_ns = median.unwrap_or_default().0;
        findings.latency.far_ns = findings.latency.near_ns;
    }
    findings.by_size = by_size.iter().map(depths::Timed::point).collect();
    findings.saturating_bytes = depths::saturating(&findings.by_size, false).map(|point| point.request_bytes);
    findings.by_depth = depths::depths(lab, false)?;
    findings.saturating_depth = depths::saturating(&findings.by_depth, false).map_or(1, |point| point.depth);
    findings.by_depth_long = depths::long_depths(lab, effort)?;
    let samples = fit::Samples {
        capacity_bytes: findings.capacity_bytes,
        by_size,
        small: findings.by_depth.clone(),
        long: findings.by_depth_long.clone(),
    };
    let fit = if is_object_store { fit::network(&samples)? } else { fit::fit(&samples)? };
    findings.reads = lab.reads;
    let toml = no_arm::text(findings, name, is_object_store) + &fit.text();
    let device = fit.device(findings.capacity_bytes)?;
    Ok((toml, None, (fit.model, fit.parameters), device))
}
