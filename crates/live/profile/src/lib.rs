//! Measures a device by reading it: seek curve, rotation, rates by place, overhead, and the queue depth that saturates
//! it.
//!
//! [`measure`] reads through a [`Probe`] and times the reads; it never writes. The same code measures a simulated drive
//! in virtual time ([`SimulatedProbe`], in tests) and a real one with direct reads ([`DirectProbe`], [`profile`]). The
//! result is a profile ([`Profile::toml`]) that the simulator loads.
//!
//! - `probe.rs`, `simulated.rs`, `direct.rs`: the devices; `lab.rs`: time, random places and progress;
//! - `look.rs`, `rotation.rs`, `tracks.rs`, `overhead.rs`, `rates.rs`, `seeks.rs`, `depths.rs`: one part of the
//!   measurement each;
//! - `map.rs`: tracks by place; `errors.rs`: the error of each number; `drive.rs`: the profile of a drive with an arm;
//! - `fit/`, `no_arm.rs`: model and profile of a device without an arm;
//! - `check.rs`: validation of the model; `model.rs`: its numbers with their errors; `findings.rs`: the report.

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

/// Smallest device, in sectors, whose arm can be measured: 64 MiB.
const LEAST_SECTORS: u64 = 1 << 17;
/// Smallest object, in sectors: 4 MiB. Reads of 1 MiB of it give the rate of a connection.
const LEAST_SECTORS_OBJECT: u64 = 1 << 13;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a file or device.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The measurements are not conclusive.
    #[error("{problem}; allowed: {allowed}")]
    Unclear {
        /// The problem.
        problem: String,
        /// What is needed.
        allowed: String,
    },
    /// A setting of the caller, or a measured number that no drive can have.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}

/// Settings of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Approximate duration; a slow device takes longer, because each part needs a minimum number of reads.
    pub time: Nanos,
    /// Seed of the random places.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { time: Nanos::from_millis(60_000), seed: 1 }
    }
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The numbers.
    pub findings: Findings,
    /// The device as a profile.
    pub toml: String,
    /// Properties that determine the competitive depth; `None` without an arm.
    pub facts: Option<DriveFacts>,
}

/// Properties that determine the competitive depth of a device, which is named by the registry or by the path of a
/// profile; `None` without an arm.
///
/// # Errors
/// Unknown device, or an invalid profile or key.
pub fn facts(name_or_profile_path: &str, keys: Table) -> Result<Option<DriveFacts>, DeviceError> {
    Ok(build_device(name_or_profile_path, keys)?.drive_facts())
}

/// Measures a device. `name` is written into the profile. `tell` gets the progress after each read and returns whether
/// to continue.
///
/// # Errors
/// The device is too small, fails, or its times are inconclusive; or `tell` stopped it.
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

/// A profile's text, its depth properties, the name and numbers of its model, and the simulated device.
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

/// Measures a device without an arm.
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
