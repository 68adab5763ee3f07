//! Reads that nothing was fitted to, beside what the fitted model says of the same reads: the error of the model as a whole.
//!
//! One at a time each read is timed: the two distributions are held against each other by Ruemmler and Wilkes' *demerit*, the root of
//! the mean square of their horizontal distance, as a share of the mean time measured ("An Introduction to Disk Drive Modeling", IEEE
//! Computer 27(3), 1994). With several outstanding only the time of all of them is known. The model gets the reads in their order; where
//! the platter stands is chance, so it gets them several times.

use headstart_device::{build_scheduler, Device, Drive};
use headstart_types::Nanos;
use serde::Serialize;
use toml::Table;

use super::lab::{align, Lab, Phase, WIDTH};
use super::probe::ALIGNMENT;
use super::{Error, Probe, Read, SimulatedProbe};

/// Reads of a row: at least, and at most.
const READS: (usize, usize) = (40, 2_000);
/// How often a model gets reads that are timed one by one.
const REPEATS: usize = 4;
/// Reads in order before the next place.
const RUN: usize = 32;
/// A read nearby begins so many sectors before the last one: 64 KiB to 1 MiB.
const NEAR: (u64, u64) = (128, 2048);
/// Where two distributions are held against each other.
const QUANTILES: usize = 200;

/// Where the reads of a row lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Places {
    /// Anywhere.
    Anywhere,
    /// A little before the last one.
    Nearby,
    /// One after another, from one place and then from another.
    InOrder,
}

/// Reads of one kind, measured and simulated. Times are nanoseconds a read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldOut {
    /// Bytes of a read.
    pub request_bytes: u64,
    /// How many were outstanding.
    pub depth: usize,
    /// Where.
    pub places: Places,
    /// How many there were.
    pub reads: usize,
    /// On average.
    pub measured_ns: f64,
    /// What the model takes.
    pub simulated_ns: f64,
    /// How far the two may be apart by chance alone, nineteen times out of twenty; none where reads were not timed by themselves.
    pub chance_ns: Option<f64>,
    /// See above; none where reads were not timed by themselves.
    pub demerit: Option<f64>,
}

impl HeldOut {
    /// By which share the model is off.
    #[must_use]
    pub fn off(&self) -> f64 {
        self.simulated_ns / self.measured_ns.max(1.0) - 1.0
    }
}

/// The error of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// By kind of read.
    pub held_out: Vec<HeldOut>,
    /// By which share the model is off: the mean over all kinds, whether it is too slow or too fast.
    pub mean_error: f64,
    /// The largest of them.
    pub largest_error: f64,
    /// The mean over those kinds that were timed read by read.
    pub demerit: f64,
}

/// What is read; `order` says what one read has to do with the one before.
#[derive(Debug, Clone, Copy)]
struct Kind {
    sectors: u32,
    depth: usize,
    places: Places,
}

const fn kind(sectors: u32, depth: usize, places: Places) -> Kind {
    Kind { sectors, depth, places }
}

/// Of a drive with an arm: one at a time, since what it does with several is not a part of the profile.
const ARM: [Kind; 4] = [
    kind(8, 1, Places::Anywhere),
    kind(128, 1, Places::Anywhere),
    kind(8, 1, Places::Nearby),
    kind(128, 1, Places::InOrder),
];

/// Without one: sizes and depths between those that the model was fitted to.
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

/// The reads of a kind, and what they took: each by itself, or all of them.
struct Measured {
    kind: Kind,
    reads: Vec<Read>,
    times_ns: Vec<f64>,
}

/// Measures what is held out.
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

/// A device of the simulator that is read like a real one.
pub(super) fn probe_of(device: &dyn Device) -> Result<SimulatedProbe, Error> {
    Ok(SimulatedProbe::new(Drive::new(device.clone_box(), build_scheduler("fcfs", Table::new())?)))
}

fn measure(lab: &mut Lab<'_>, kind: Kind, time: Nanos) -> Result<Measured, Error> {
    let until = lab.elapsed() + time;
    let mut reads = places(lab, kind, READS.0.max(4 * kind.depth));
    let mut times_ns = Vec::new();
    if kind.depth == 1 {
        // More as long as there is time, in whole runs.
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

/// So many reads of a kind.
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
    /// The same reads on the model.
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

    /// The reads, within a model that holds a little less than the device.
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

    /// Of the mean: its standard error.
    fn error(&self) -> f64 {
        self.deviation / self.count.sqrt()
    }
}

/// The root of the mean square of the horizontal distance between two distributions.
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
        // Half of them 3 more, half 4 less: sqrt of (9 + 16) / 2. The order of reads says nothing, their number neither.
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
