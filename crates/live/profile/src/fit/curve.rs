//! Difference between a model and the measurement: reads by size and by queue depth.

use headstart_device::Device;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::check::{demerit, probe_of};
use super::super::depths::{piece, Point, Timed};
use super::super::lab::align;
use super::super::probe::ALIGNMENT;
use super::super::{Error, Probe, Read};
use super::Samples;

/// Maximum number of simulated reads per size.
const TIMED: usize = 64;

/// The natural logarithm of simulated over measured throughput, with the same number and batches of reads.
fn point_off(device: &dyn Device, point: &Point, random: &mut ChaCha8Rng) -> Result<f64, Error> {
    let mut probe = probe_of(device)?;
    let (mut left, mut took) = (point.reads, 0);
    while left > 0 {
        let reads = anywhere(probe.sectors(), point.sectors(), left.min(piece(point.depth)), random);
        took += probe.read_together(&reads, point.depth)?.0;
        left -= reads.len();
    }
    Ok((point.reads as f64 * 1e9 / took.max(1) as f64 / point.requests_per_s.max(1e-9)).ln())
}

fn anywhere(capacity: u64, sectors: u32, count: usize, random: &mut ChaCha8Rng) -> Vec<Read> {
    let end = align(capacity.saturating_sub(sectors.into())) / u64::from(ALIGNMENT);
    let mut place = || random.random_range(0..end.max(1)) * u64::from(ALIGNMENT);
    (0..count).map(|_| Read { sector: place(), sectors }).collect()
}

/// Root mean square error of 4 KiB reads by queue depth, as a logarithm.
pub(super) fn depths_off(device: &dyn Device, points: &[Point]) -> Result<f64, Error> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut squares = 0.0;
    for point in points {
        squares += point_off(device, point, &mut random)?.powi(2);
    }
    Ok((squares / points.len().max(1) as f64).sqrt())
}

/// The same over everything that the model was fitted to: sizes, depths, and the distribution of the shortest reads'
/// times.
pub(super) fn all_off(device: &dyn Device, samples: &Samples) -> Result<f64, Error> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut squares = Vec::new();
    for (index, timed) in samples.by_size.iter().enumerate() {
        let times = alone(device, timed, &mut random)?;
        let simulated = Timed { sectors: timed.sectors, times_ns: times };
        squares.push((simulated.mean_ns() / timed.mean_ns().max(1.0)).max(1e-9).ln().powi(2));
        if index == 0 {
            squares.push((demerit(&timed.times_ns, &simulated.times_ns) / timed.mean_ns().max(1.0)).powi(2));
        }
    }
    let small = depths_off(device, &samples.small)?.powi(2);
    let long = depths_off(device, &samples.long)?.powi(2);
    let sizes = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    Ok((sizes + small + long).sqrt())
}

fn alone(device: &dyn Device, timed: &Timed, random: &mut ChaCha8Rng) -> Result<Vec<f64>, Error> {
    let mut probe = probe_of(device)?;
    let reads = anywhere(probe.sectors(), timed.sectors, TIMED, random);
    reads.into_iter().map(|read| Ok(probe.read(read)?.took().0 as f64)).collect()
}
