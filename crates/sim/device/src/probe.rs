//! Black-box measurement of a device: response time and throughput under a steady load of one kind of request.
//!
//! A closed load: a constant number of requests is outstanding, and each completion is followed at once by the next
//! request, until the last counted request has ended, so the load does not decrease towards its end. It answers what a
//! data sheet answers, for any device and scheduler: random and sequential, by size and by queue depth. With one
//! outstanding, the response time is the service time.
//!
//! Random positions are uniform over the aligned positions of the device (over a tebibyte if it has no limit), drawn by
//! ChaCha8 from a seed: the same load gives the same figures on every machine. Cost: per request one draw, one event on
//! a heap of `depth`, and the device's own. Memory: 8 bytes per request.

use headstart_types::{stream_seed, Nanos};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Device, Drive, Request, Scheduler, Started, Statistics};

/// The span of random positions on a device without a limit: a tebibyte.
const SPAN_SECTORS: u64 = 1 << 31;

/// The positions of a load's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Uniform, aligned to the request's size.
    Random {
        /// Seed of the positions.
        seed: u64,
    },
    /// Sequential from this sector, wrapping at the end.
    Sequential { from: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub pattern: Pattern,
    /// Sectors per request; at least 1, at most the device's.
    pub sectors: u32,
    /// Outstanding requests; at least 1.
    pub depth: u32,
    /// Requests before the counted ones, for example to fill a write buffer.
    pub warm_up: u32,
    /// Counted requests; at least 1.
    pub requests: u32,
    pub write: bool,
}

impl Load {
    /// Reads of `sectors` sectors at random positions, one at a time.
    #[must_use]
    pub const fn random(sectors: u32, requests: u32, seed: u64) -> Self {
        Self { pattern: Pattern::Random { seed }, sectors, depth: 1, warm_up: 0, requests, write: false }
    }

    /// Sequential reads of `sectors` sectors, one at a time.
    #[must_use]
    pub const fn sequential(sectors: u32, requests: u32) -> Self {
        Self { pattern: Pattern::Sequential { from: 0 }, sectors, depth: 1, warm_up: 0, requests, write: false }
    }

    /// The same with `depth` outstanding.
    #[must_use]
    pub const fn at_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// From the end of the warm-up to the end of the last request.
    pub elapsed: Nanos,
    /// Response times after the warm-up, in ascending order.
    pub responses: Vec<Nanos>,
    pub sectors: u32,
    /// The drive's statistics, including the warm-up.
    pub statistics: Statistics,
}

impl Probed {
    /// Mean response time in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.responses.iter().map(|response| response.0 as f64).sum::<f64>() / self.responses.len() as f64
    }

    /// The response time that `percent` per cent of the requests do not exceed; 0 to 100.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Nanos {
        let rank = (self.responses.len() * percent as usize).div_ceil(100).max(1);
        self.responses[rank.min(self.responses.len()) - 1]
    }

    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.requests_per_second() * (u64::from(self.sectors) * crate::SECTOR_BYTES) as f64
    }

    #[must_use]
    pub fn requests_per_second(&self) -> f64 {
        self.responses.len() as f64 * 1e9 / self.elapsed.0.max(1) as f64
    }
}

/// Draws the positions of a load.
struct Places {
    pattern: Pattern,
    generator: ChaCha8Rng,
    sectors: u32,
    /// Number of aligned positions.
    count: u64,
    end: u64,
    next: u64,
}

impl Places {
    fn new(load: &Load, capacity: Option<u64>) -> Self {
        let end = capacity.unwrap_or(SPAN_SECTORS);
        let (seed, next) = match load.pattern {
            Pattern::Random { seed } => (seed, 0),
            Pattern::Sequential { from } => (0, from),
        };
        let generator = ChaCha8Rng::seed_from_u64(stream_seed(seed, "places", 0));
        let count = (end / u64::from(load.sectors)).max(1);
        Self { pattern: load.pattern, generator, sectors: load.sectors, count, end, next }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let sectors = u64::from(self.sectors);
        match self.pattern {
            // The high half of a 128-bit product: uniform to 1 part in 2^64 / count, without a division.
            Pattern::Random { .. } => {
                let place = (u128::from(self.generator.next_u64()) * u128::from(self.count)) >> 64;
                place as u64 * sectors
            }
            Pattern::Sequential { .. } => {
                if self.next + sectors > self.end {
                    self.next = 0;
                }
                self.next += sectors;
                self.next - sectors
            }
        }
    }
}

/// Applies `load` to an idle `device` behind `scheduler`, from time zero to the end of its last request.
///
/// The caller guarantees that the load's numbers are within their documented ranges.
#[must_use]
pub fn probe(device: Box<dyn Device>, scheduler: Box<dyn Scheduler>, load: &Load) -> Probed {
    let mut places = Places::new(load, device.capacity_sectors());
    let mut drive = Drive::new(device, scheduler);
    let mut responses = Vec::with_capacity(load.requests as usize);
    let (mut now, mut warm) = (Nanos::ZERO, Nanos::ZERO);
    let total = u64::from(load.warm_up) + u64::from(load.requests);
    let (mut issued, mut ended) = (0, 0);
    while ended < total {
        while issued - ended < u64::from(load.depth) {
            let request = Request::read(places.next(), load.sectors, issued);
            drive.submit(now, Request { write: load.write, ..request });
            issued += 1;
        }
        let wakes = loop {
            match drive.start(now) {
                Started::Ends(_) => {}
                Started::Wakes(at) => break Some(at),
                Started::Nothing => break None,
            }
        };
        match (drive.next_end(), wakes) {
            (Some(end), wakes) if wakes.is_none_or(|at| end <= at) => {
                now = end;
                drive.finish(now, |finished| {
                    ended += 1;
                    if ended > u64::from(load.warm_up) {
                        responses.push(finished.response_time);
                    } else {
                        warm = now;
                    }
                });
            }
            (_, Some(at)) => now = at,
            (_, None) => unreachable!("requests are outstanding, and nothing is in service or waited for"),
        }
    }
    responses.sort_unstable();
    Probed { elapsed: now - warm, responses, sectors: load.sectors, statistics: drive.statistics(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build_device, Cscan, Fcfs, Uniform};

    fn fcfs() -> Box<dyn Scheduler> {
        Box::new(Fcfs::default())
    }

    fn hp97560() -> Box<dyn Device> {
        build_device("hp97560", toml::Table::new()).expect("shipped")
    }

    #[test]
    fn a_uniform_device_by_hand() {
        // 10 requests of 2 ms one after another; with 4 outstanding each waits for 3 others, but the first three for 0,
        // 1 and 2: responses 2, 4, 6 ms and seven times 8 ms.
        let device: Box<dyn Device> = Box::new(Uniform::new(Nanos::from_millis(2)));
        let one = probe(device.clone(), fcfs(), &Load::random(16, 10, 1));
        assert_eq!((one.elapsed, one.percentile(50), one.mean_ns()), (Nanos::from_millis(20), Nanos(2_000_000), 2e6));
        assert_eq!((one.requests_per_second(), one.bytes_per_second()), (500.0, 500.0 * 8192.0));
        let warm = probe(device.clone(), fcfs(), &Load { warm_up: 5, ..Load::random(16, 10, 1) });
        assert_eq!((warm.elapsed, warm.responses.len(), warm.statistics.requests), (Nanos::from_millis(20), 10, 15));
        let four = probe(device, fcfs(), &Load::random(16, 10, 1).at_depth(4));
        let expected: Vec<Nanos> = [2, 4, 6, 8, 8, 8, 8, 8, 8, 8].map(Nanos::from_millis).into();
        assert_eq!((four.elapsed, four.responses.clone()), (Nanos::from_millis(20), expected));
        assert_eq!(
            (four.percentile(10), four.percentile(30), four.percentile(31)),
            (Nanos(2_000_000), Nanos(6_000_000), Nanos(8_000_000))
        );
    }

    #[test]
    fn the_parts_of_random_reads_of_the_hp97560() {
        let probed = probe(hp97560(), fcfs(), &Load::random(16, 20_000, 1));
        let statistics = probed.statistics;
        let mean_ms = |time: Nanos| time.0 as f64 / 20_000.0 / 1e6;
        // A revolution takes 14.99 ms and positions are uniform: half a revolution, 7.5 ms, minus what passes on the
        // way.
        assert!((mean_ms(statistics.rotation) - 7.5).abs() < 0.15, "{}", mean_ms(statistics.rotation));
        assert_eq!(statistics.overhead, Nanos::from_micros(2_200) * 20_000);
        assert_eq!(probed.elapsed, statistics.service);
        assert!(probed.responses.is_sorted());
    }

    #[test]
    fn sequential_reads_wrap_and_deep_queues_help_a_scheduler_that_sorts() {
        let capacity = hp97560().capacity_sectors().expect("a disk");
        let near_the_end = Load { pattern: Pattern::Sequential { from: capacity - 40 }, ..Load::sequential(16, 4) };
        let mut places = Places::new(&near_the_end, Some(capacity));
        assert_eq!([(); 4].map(|()| places.next()), [capacity - 40, capacity - 24, 0, 16]);
        let load = Load::random(16, 2_000, 1).at_depth(64);
        let sorted = probe(hp97560(), Box::new(Cscan::default()), &load);
        let in_order = probe(hp97560(), fcfs(), &load);
        assert!(sorted.requests_per_second() > 1.2 * in_order.requests_per_second());
        assert_eq!(sorted, probe(hp97560(), Box::new(Cscan::default()), &load));
    }
}
