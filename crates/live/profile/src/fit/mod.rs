//! The model of a device without an arm: the simulator's model that is nearest to the measurement, with its keys.
//!
//! - `network.rs`: random latency, independent connections; `flash.rs`: constant times on channels, one link;
//! - `line.rs`: times by size; `curve.rs`: difference between a model and the measurement.

mod curve;
mod flash;
mod line;
mod network;

use std::fmt::Write;

use headstart_device::{build_device, Device};
use headstart_types::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use super::depths::{Point, Timed};
use super::Error;
pub(super) use line::median_error;

/// Minimum improvement for choosing the second model.
const NEARER: f64 = 0.01;

/// The measurements that models are fitted to.
pub(super) struct Samples {
    pub capacity_bytes: u64,
    pub by_size: Vec<Timed>,
    /// 4 KiB reads and longer ones, by queue depth.
    pub small: Vec<Point>,
    pub long: Vec<Point>,
}

/// A parameter of a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Parameter {
    /// The key in the profile. For a drive with an arm, the name of the figure.
    pub name: &'static str,
    /// The fitted value.
    pub value: f64,
    /// "ns", "bytes", "bytes/s", or empty for a count.
    pub unit: &'static str,
    /// Half the width of the 95 % confidence interval. Null if the reads do not determine it.
    pub error: Option<f64>,
}

impl Parameter {
    pub(super) fn new(name: &'static str, value: f64, unit: &'static str, error: Option<f64>) -> Self {
        Self { name, value, unit, error }
    }
}

/// A model with its keys and errors.
pub(super) struct Fit {
    pub model: &'static str,
    pub keys: Table,
    pub parameters: Vec<Parameter>,
}

impl Fit {
    /// The simulated device, with the capacity if the model has one.
    pub fn device(&self, capacity_bytes: u64) -> Result<Box<dyn Device>, Error> {
        let mut keys = self.keys.clone();
        if self.model == "object-store" {
            return device_of(self.model, keys);
        }
        keys.insert("capacity".to_owned(), toml::Value::String(Bytes(capacity_bytes).to_string()));
        device_of("nvme", keys)
    }

    /// The table of the profile, with a comment per key.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\n[service]\nmodel = \"{}\"  # [F] of a device: of flash and object-store, what comes nearer\n",
            self.model
        );
        for parameter in &self.parameters {
            let note = match (parameter.error, parameter.value == 0.0) {
                (Some(error), _) => format!("[F] +- {}", shown(error, parameter.unit)),
                (None, true) => "[G] reads do not tell".to_owned(),
                (None, false) => "[F] at least, or hardly to be told".to_owned(),
            };
            if let Some(value) = self.keys.get(parameter.name) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} = {value}  # {note}", parameter.name);
            }
        }
        let fitted = |key: &str| self.parameters.iter().any(|parameter| parameter.name == key);
        for (key, value) in self.keys.iter().filter(|(key, _)| !fitted(key)) {
            let _ = writeln!(text, "{key} = {value}  # [G]");
        }
        text
    }
}

/// A number with its unit, to three or four digits.
pub(super) fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value >= 1e9 => format!("{:.3} s", value / 1e9),
        "ns" if value >= 1e6 => format!("{:.3} ms", value / 1e6),
        "ns" if value >= 1e3 => format!("{:.3} us", value / 1e3),
        "ns" => format!("{value:.0} ns"),
        "bytes/s" => format!("{:.3} MB/s", value / 1e6),
        "bytes" => Bytes(value as u64).rounded(),
        _ => format!("{value:.1}"),
    }
}

/// A device of the registry.
fn device_of(model: &str, keys: Table) -> Result<Box<dyn Device>, Error> {
    build_device(model, keys).map_err(|error| Error::Unclear {
        problem: format!("a model of what was measured: {error}"),
        allowed: "a device, idle but for the measurement".to_owned(),
    })
}

pub(super) use network::fit as network;

/// The model that fits best.
pub(super) fn fit(samples: &Samples) -> Result<Fit, Error> {
    let [network, flash] = [network::fit(samples)?, flash::fit(samples)?];
    let off = |fit: &Fit| curve::all_off(&*fit.device(samples.capacity_bytes)?, samples);
    Ok(if off(&flash)? < off(&network)? - NEARER { flash } else { network })
}
