//! The questions of Python's `headstart.model.file_system`.

use headstart_analytic::file_system::{Choices, Disk, Form, Geometry, Scheduler, SeekCurve, Seeks, Sheet};
use headstart_device::{build_device, DeviceError};
use headstart_types::KeyError;
use serde::Deserialize;
use toml::Table;

use super::drive::{drive, Modelled};
use crate::Error;

/// A drive, the choices, and the numbers written as text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub drive: DriveChoice,
    /// "clook", "cscan" or "fcfs".
    pub scheduler: String,
    /// "tables" or "4.4bsd".
    pub form: String,
    /// By default as the drive does.
    pub read_ahead: Option<bool>,
    /// By default as the drive does.
    pub read_ahead_on_sequence: Option<bool>,
    /// By default as the drive does.
    pub read_during_overhead: Option<bool>,
    /// See the model's parameter of that name.
    pub first_alone: bool,
    /// By parameter.
    #[serde(default)]
    pub texts: Table,
}

/// A drive of the registry, or one given by numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum DriveChoice {
    /// A model's name or a profile's path, with overriding keys.
    Device {
        name: String,
        #[serde(default)]
        keys: Table,
    },
    /// Equation (1), in nanoseconds and cylinders. The other numbers are parameters.
    Curve {
        /// Constant of short seeks.
        a: f64,
        /// Factor of the square root of the distance.
        b: f64,
        /// Constant of long seeks.
        c: f64,
        /// Factor of the distance.
        d: f64,
        /// The longest short seek.
        e: f64,
        /// Number of cylinders.
        cylinders: u32,
    },
}

/// The sheet and the seeks of a question.
///
/// # Errors
/// If the drive, a choice or a text is wrong.
pub fn sheet(question: &Question) -> Result<(Sheet, Seeks), Error> {
    let Modelled { disk, curve, .. } = modelled(&question.drive)?;
    let choices = Choices {
        scheduler: scheduler(&question.scheduler)?,
        form: form(&question.form)?,
        read_ahead: question.read_ahead,
        read_ahead_on_sequence: question.read_ahead_on_sequence,
        read_during_overhead: question.read_during_overhead,
        first_alone: question.first_alone,
    };
    let mut sheet = Sheet::new(disk, choices);
    for (name, text) in &question.texts {
        let Some(text) = text.as_str() else {
            return Err(KeyError::new(name, format!("{text} is not a text"), "numbers as columns").into());
        };
        sheet.set_text(name, text)?;
    }
    Ok((sheet, Seeks::new(curve)))
}

fn modelled(asked: &DriveChoice) -> Result<Modelled, Error> {
    match asked {
        DriveChoice::Device { name, keys } => {
            let device = build_device(name, keys.clone()).map_err(|error| match error {
                DeviceError::Key(error) => Error::Key(error.within("drive")),
                other => other.into(),
            })?;
            Ok(drive(&*device).map_err(|error| error.within("drive"))?)
        }
        DriveChoice::Curve { a, b, c, d, e, cylinders } => {
            if *cylinders == 0 {
                return Err(KeyError::new("cylinders", "is 0", "a whole number from 1").into());
            }
            if let Some((name, value)) = [("a", a), ("b", b), ("c", c), ("d", d), ("e", e)]
                .into_iter()
                .find(|(_, value)| !(0.0..=3.6e12).contains(*value))
            {
                return Err(KeyError::new(name, format!("{value} is out of range"), "a number from 0").into());
            }
            let curve = SeekCurve::Roots { a: *a, b: *b, c: *c, d: *d, e: *e, cylinders: *cylinders };
            // Values given with the curve override these.
            let disk = Disk {
                miss_overhead_ns: 0.0,
                hit_overhead_ns: 0.0,
                revolution_ns: 0.0,
                disk_bytes_per_second: f64::INFINITY,
                track_bytes_per_second: f64::INFINITY,
                rate_spread: 0.0,
                bus_bytes_per_second: f64::INFINITY,
                cache_segments: 0,
                read_ahead: true,
                read_ahead_on_sequence: false,
                read_during_overhead: true,
                scheduler: Scheduler::Clook,
                parallel: false,
            };
            Ok(Modelled { disk, curve, geometry: Geometry::default() })
        }
    }
}

/// The model's scheduler of that name.
///
/// # Errors
/// If the model has none of that name.
pub(super) fn scheduler(name: &str) -> Result<Scheduler, KeyError> {
    match name {
        "clook" => Ok(Scheduler::Clook),
        "cscan" => Ok(Scheduler::Cscan),
        "fcfs" => Ok(Scheduler::Fcfs),
        _ => Err(KeyError::unknown("scheduler", "scheduler", name, ["clook", "cscan", "fcfs"].into_iter())),
    }
}

fn form(name: &str) -> Result<Form, KeyError> {
    match name {
        "tables" => Ok(Form::Tables),
        "4.4bsd" => Ok(Form::Bsd),
        _ => Err(KeyError::unknown("form", "form", name, ["tables", "4.4bsd"].into_iter())),
    }
}
