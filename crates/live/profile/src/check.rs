//! Validation: reads that the model was not fitted to, compared with the model's times for the same reads.
//!
//! Reads that are timed one at a time are compared by Ruemmler and Wilkes' *demerit*: the root mean square of the
//! horizontal distance between the two distributions, as a share of the mean measured time ("An Introduction to Disk
//! Drive Modeling", IEEE Computer 27(3), 1994). With several reads outstanding only their total time is known. The
//! model gets the reads in the same order, several times, because the rotational position at the start is random.

use headstart_device::{build_scheduler, Device, Drive};
use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use super::lab::{align, Lab, Phase, WIDTH};
use super::probe::ALIGNMENT;
use super::{Error, Probe, Read, SimulatedProbe};

/// Minimum and maximum number of reads per row.
const READS: (usize, usize) = (40, 2_000);
/// How often the model repeats reads that are timed one by one.
const REPEATS: usize = 4;
/// Consecutive reads before the next random place.
const RUN: usize = 32;
/// Distance in sectors by which a nearby read precedes the last one: 64 KiB to 1 MiB.
const NEAR: (u64, u64) = (128, 2048);
/// Number of quantiles at which two distributions are compared.
const QUANTILES: usize = 200;

/// Placement of the reads in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Places {
    /// Uniformly random.
    Anywhere,
    /// 64 KiB to 1 MiB before the previous read.
    Nearby,
    /// Sequential runs from random places.
    InOrder,
}

/// Reads of one kind, measured and simulated. Times are nanoseconds per read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HeldOut {
    /// Size of a read in bytes.
    pub request_bytes: u64,
    /// Number of outstanding reads.
    pub depth: usize,
    /// Placement.
    pub places: Places,
    /// Number of reads.
    pub reads: usize,
    /// Mean measured time.
    pub measured_ns: f64,
    /// Mean simulated time.
    pub simulated_ns: f64,
    /// Difference that chance alone explains in 19 of 20 cases. Null if reads were not timed one by one.
    pub chance_ns: Option<f64>,
    /// The demerit figure. Null if reads were not timed one by one.
    pub demerit: Option<f64>,
}

impl HeldOut {
    /// Relative error of the model.
    #[must_use]
    pub fn off(&self) -> f64 {
        self.simulated_ns / self.measured_ns.max(1.0) - 1.0
    }
}

/// Error of the model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// One entry per kind of read.
    pub held_out: Vec<HeldOut>,
    /// Mean of the absolute relative errors over all kinds.
    pub mean_error: f64,
    /// Largest absolute relative error.
    pub largest_error: f64,
    /// Mean demerit over the kinds whose reads were timed one by one.
    pub demerit: f64,
}

/// A kind of read; `order` is the relation of a read to the previous one.
#[derive(Debug, Clone, Copy)]
struct Kind {
    sectors: u32,
    depth: usize,
    places: Places,
}

const fn kind(sectors: u32, depth: usize, places: Places) -> Kind {
    Kind { sectors, depth, places }
}

/// For drives with an arm: one read at a time, because a profile does not model the drive's own queue.
const ARM: [Kind; 4] = [
    kind(8, 1, Places::Anywhere),
    kind(128, 1, Places::Anywhere),
    kind(8, 1, Places::Nearby),
    kind(128, 1, Places::InOrder),
];

/// For drives without an arm: sizes and depths between those that the model was fitted to.
const FLAT: [Kind; 8] = [
    kind(24, 1, Places::Anywhere),
    kind(384, 1, Places::Anywhere),
    kind(128, 1, Places::InOrder),
    kind(8, 3, Places::Anywhere),
    kind(8, 12, Places::Anywhere),
    kind(8, 48, Places::Anywhere),
    kind(192, 3, Places::Anywhere),
    kind(192, 12, Places::Anywhere),
];

/// Reads of a kind with their times: one each, or one for all of them.
struct Measured {
    kind: Kind,
    reads: Vec<Read>,
    times_ns: Vec<f64>,
}

/// Measures the validation reads.
pub(super) fn check(lab: &mut Lab<'_>, device: &dyn Device, arm: bool) -> Result<Check, Error> {
    lab.begin(Phase::Check);
    let kinds: &[Kind] = if arm { &ARM } else { &FLAT };
    let most = lab.sectors() / 4;
    let mut measured = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| u64::from(kind.sectors) <= most) {
        let time = Nanos(lab.left().0 / (kinds.len() - index) as u64);
        measured.push(measure(lab, *kind, time)?);
    }
    let mut probe = probe_of(device)?;
    let held_out: Vec<HeldOut> = measured.iter().map(|row| row.beside(&mut probe)).collect::<Result<_, Error>>()?;
    Ok(Check::of(held_out))
}

/// Wraps a simulated device so that it can be read like a real one.
pub(super) fn probe_of(device: &dyn Device) -> Result<SimulatedProbe, Error> {
    Ok(SimulatedProbe::new(Drive::new(device.clone_box(), build_scheduler("fcfs", Table::new())?)))
}

fn measure(lab: &mut Lab<'_>, kind: Kind, time: Nanos) -> Result<Measured, Error> {
    let until = lab.elapsed() + time;
    let mut reads = places(lab, kind, READS.0.max(4 * kind.depth));
    let mut times_ns = Vec::new();
    if kind.depth == 1 {
        // Continues in whole runs while time is left.
        let mut next = 0;
        while next < reads.len() {
            times_ns.push(lab.read(reads[next].sector, reads[next].sectors)?.took().0 as f64);
            next += 1;
            if next == reads.len() && next < READS.1 && lab.elapsed() < until {
                reads.extend(places(lab, kind, RUN));
            }
        }
    } else {
        let mut took = lab.read_together(&reads, kind.depth)?;
        let more = (reads.len() as f64 * time.0 as f64 / took.0.max(1) as f64) as usize;
        if more >= 2 * reads.len() {
            reads = places(lab, kind, more.min(READS.1));
            took = lab.read_together(&reads, kind.depth)?;
        }
        times_ns.push(took.0 as f64);
    }
    Ok(Measured { kind, reads, times_ns })
}

/// Returns `count` reads of a kind.
fn places(lab: &mut Lab<'_>, kind: Kind, count: usize) -> Vec<Read> {
    let Kind { sectors, places, .. } = kind;
    let run = u64::from(sectors) * RUN as u64;
    let mut reads: Vec<Read> = Vec::with_capacity(count);
    for index in 0..count {
        let before = reads.last().map(|read| read.sector).filter(|_| index % RUN != 0);
        let sector = match (places, before) {
            (Places::InOrder, Some(before)) => before + u64::from(sectors),
            (Places::InOrder, None) => lab.anywhere(run.min(lab.sectors() / 2) as u32),
            (Places::Nearby, Some(before)) if before > NEAR.1 => lab.place(before - NEAR.1, before - NEAR.0),
            _ => lab.anywhere(sectors.max(ALIGNMENT)),
        };
        let last = lab.sectors() - u64::from(sectors);
        reads.push(Read { sector: align(sector.min(last)), sectors });
    }
    reads
}

impl Measured {
    /// Runs the same reads on the model.
    fn beside(&self, probe: &mut SimulatedProbe) -> Result<HeldOut, Error> {
        let reads = self.fitting(probe.sectors());
        let request_bytes = u64::from(self.kind.sectors) * headstart_device::SECTOR_BYTES;
        let count = self.reads.len();
        let row = |measured_ns, simulated_ns, chance_ns, demerit| HeldOut {
            request_bytes,
            depth: self.kind.depth,
            places: self.kind.places,
            reads: count,
            measured_ns,
            simulated_ns,
            chance_ns,
            demerit,
        };
        if self.kind.depth > 1 {
            let took = probe.read_together(&reads, self.kind.depth)?;
            return Ok(row(self.times_ns[0] / count as f64, took.0 as f64 / count as f64, None, None));
        }
        let mut simulated = Vec::with_capacity(REPEATS * count);
        for _ in 0..REPEATS {
            for read in &reads {
                simulated.push(probe.read(*read)?.took().0 as f64);
            }
        }
        let (measured, model) = (Spread::of(&self.times_ns), Spread::of(&simulated));
        let chance = WIDTH * measured.error().hypot(model.error());
        let demerit = demerit(&self.times_ns, &simulated) / measured.mean.max(1.0);
        Ok(row(measured.mean, model.mean, Some(chance), Some(demerit)))
    }

    /// The reads, moved into a model that is slightly smaller than the device.
    fn fitting(&self, sectors: u64) -> Vec<Read> {
        let last = sectors.saturating_sub(self.kind.sectors.into());
        self.reads.iter().map(|read| Read { sector: align(read.sector.min(last)), ..*read }).collect()
    }
}

impl Check {
    fn of(held_out: Vec<HeldOut>) -> Self {
        let off = || held_out.iter().map(|row| row.off().abs());
        let demerits: Vec<f64> = held_out.iter().filter_map(|row| row.demerit).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (mean_error, largest_error) = (mean(&off().collect::<Vec<_>>()), off().fold(0.0, f64::max));
        Self { mean_error, largest_error, demerit: mean(&demerits), held_out }
    }
}

/// Mean and deviation.
struct Spread {
    mean: f64,
    deviation: f64,
    count: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Self { mean, deviation: (squares / (count - 1.0).max(1.0)).sqrt(), count }
    }

    /// Standard error of the mean.
    fn error(&self) -> f64 {
        self.deviation / self.count.sqrt()
    }
}

/// Root mean square of the horizontal distance between two distributions.
pub(super) fn demerit(one: &[f64], other: &[f64]) -> f64 {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let (one, other) = (sorted(one), sorted(other));
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let at = |values: &[f64], share: f64| values[((share * values.len() as f64) as usize).min(values.len() - 1)];
    let squares = (0..QUANTILES).map(|step| {
        let share = (step as f64 + 0.5) / QUANTILES as f64;
        (at(&one, share) - at(&other, share)).powi(2)
    });
    (squares.sum::<f64>() / QUANTILES as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demerit_is_the_distance_of_two_curves() {
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let later: Vec<f64> = times.iter().map(|time| time + 7.0).collect();
        assert_eq!(demerit(&times, &times), 0.0);
        assert!((demerit(&times, &later) - 7.0).abs() < 1e-9);
        // Half of them 3 more, half 4 less: sqrt of (9 + 16) / 2. Neither the order nor the number of reads matters.
        let both: Vec<f64> = times.iter().map(|time| if *time < 50.0 { time + 3.0 } else { time - 4.0 }).collect();
        let twice: Vec<f64> = times.iter().chain(&times).copied().rev().collect();
        assert!((demerit(&both, &twice) - 12.5_f64.sqrt()).abs() < 0.2, "{}", demerit(&both, &twice));
        assert_eq!(demerit(&[], &times), 0.0);
    }

    #[test]
    fn the_error_of_a_model_is_the_mean_of_its_rows() {
        let row = |measured_ns, simulated_ns, demerit| HeldOut {
            request_bytes: 4096,
            depth: 1,
            places: Places::Anywhere,
            reads: 1,
            measured_ns,
            simulated_ns,
            chance_ns: None,
            demerit,
        };
        // 10 % too slow, 20 % too fast.
        let check = Check::of(vec![row(100.0, 110.0, Some(0.3)), row(100.0, 80.0, None)]);
        assert!((check.mean_error - 0.15).abs() < 1e-9 && (check.largest_error - 0.2).abs() < 1e-9);
        assert!((check.demerit - 0.3).abs() < 1e-9);
    }
}
