//! A drive's parameters for competitive prefetching: its seek curve, half a revolution, and rates by position.

use headstart_analytic::file_system::SeekCurve;
use headstart_device::{build_device, DeviceError, SECTOR_BYTES};
use headstart_types::{Bytes, DriveFacts, KeyError, RateBand};
use toml::Table;

use crate::Error;

/// A position and the rate of a long read there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateAt {
    /// "outer", "mean", "inner" or "given".
    pub name: &'static str,
    /// The lower of the media's and the bus's rate.
    pub bytes_per_second: f64,
}

/// Seek times.
#[derive(Debug, Clone, PartialEq)]
pub enum Arm {
    /// Over the cylinders that hold the data: their number is C of equation (5).
    Curve(SeekCurve),
    /// The average in nanoseconds, if nothing else is known.
    Mean(f64),
}

/// The switch and the rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// Seek times.
    pub arm: Arm,
    /// Half a revolution.
    pub rotation_ns: f64,
    /// Outer, mean and inner; or a single one.
    pub rates: Vec<RateAt>,
    /// The size over which the data are spread.
    pub dataset_bytes: Option<f64>,
    /// A note for users.
    pub note: Option<String>,
}

impl Places {
    /// The mean over all positions, or the only one.
    pub fn mean(&self) -> RateAt {
        self.rates[self.rates.len() / 2]
    }
}

/// The parameters of a device whose data lie on its first `dataset` bytes, or on all of it.
///
/// # Errors
/// If there is no such device, it has no moving parts, or it is smaller than the data.
pub fn places(name: &str, keys: &Table, dataset: Option<f64>) -> Result<Places, Error> {
    let device = build_device(name, keys.clone()).map_err(|error| match error {
        DeviceError::Key(error) => Error::Key(error.within("drive")),
        other => other.into(),
    })?;
    let Some(facts) = device.drive_facts() else {
        let problem = format!("\"{name}\" has no seeks, hence no competitive depth");
        let allowed = "a drive with an arm, or seek, rotation and rate in numbers";
        return Err(KeyError::new("drive", problem, allowed).into());
    };
    let held = facts.bands.iter().map(|band| band.sectors).sum::<u64>();
    let capacity = (device.capacity_sectors().unwrap_or(held).min(held) * SECTOR_BYTES) as f64;
    let dataset = dataset.unwrap_or(capacity);
    if dataset > capacity {
        let problem = format!("{} do not fit on the drive", Bytes(dataset as u64));
        return Err(KeyError::new("dataset", problem, format!("up to {}", Bytes(capacity as u64))).into());
    }
    Ok(on(&facts, dataset))
}

fn on(facts: &DriveFacts, dataset: f64) -> Places {
    let used = used(&facts.bands, dataset);
    // The mean over positions, for streams at random positions: not the rate of one read over all of them, which spends
    // more time where it is slow.
    let mean = used.iter().map(|(band, bytes, _)| bytes * band.bytes_per_second).sum::<f64>() / dataset;
    // There is at least one byte of data, so there is a first and a last band.
    let [outer, inner] = [used.first(), used.last()].map(|end| end.map_or(mean, |(band, ..)| band.bytes_per_second));
    let at = |name, bytes_per_second| RateAt { name, bytes_per_second };
    let cylinders = used.iter().map(|(.., cylinders)| cylinders).sum::<f64>().ceil().max(1.0) as usize;
    let times = facts.seek.iter().take(cylinders).map(|time| time.0 as f64).collect();
    Places {
        arm: Arm::Curve(SeekCurve::Table(times)),
        rotation_ns: facts.half_turn.0 as f64,
        rates: vec![at("outer", outer), at("mean", mean), at("inner", inner)],
        dataset_bytes: Some(dataset),
        note: facts.note(),
    }
}

/// The bands that hold the first `bytes` of a drive, with the bytes and cylinders used in each.
fn used(bands: &[RateBand], bytes: f64) -> Vec<(&RateBand, f64, f64)> {
    let mut left = bytes;
    let mut used = Vec::new();
    for band in bands {
        let held = (band.sectors * SECTOR_BYTES) as f64;
        let here = left.min(held);
        if here <= 0.0 {
            break;
        }
        used.push((band, here, f64::from(band.cylinders) * here / held));
        left -= here;
    }
    used
}
