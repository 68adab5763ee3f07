//! An object store: a random time to the first byte, then a constant rate, on each of several connections.
//!
//! The time to the first byte is log-normal, given by its median m and 99th percentile p: the logarithm is normal with
//! mean ln m and deviation ln(p / m) / 2.326. If p = m it is constant. Connections are independent; position and
//! history do not matter. Requests are admitted at a limited rate, separately for reads and writes, with a burst of one
//! second's worth (a token bucket, as the virtual scheduling algorithm of ITU-T I.371): requests above the rate wait,
//! where a real store would refuse them and clients would retry. Connections may share a network, fairly: of those that
//! transfer, each has an equal part of its rate at any time, and no more than its own rate (processor sharing; Kleinrock,
//! Queueing Systems II, 1976, section 4.4).
//!
//! Not modelled: connection set-up, slow start, refusals and retries, adaptive partitioning, objects and their names.
//!
//! Deterministic: ChaCha8 from a seed, and logarithms, exponentials and sines that are the same on every machine. Cost:
//! for every other request two random words, a logarithm and a sine; for each an exponential. With constant latency:
//! none of it. Memory: a few hundred bytes. With a shared network, a step per request in progress for each that begins or
//! ends, and 40 bytes for each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::{keys, read_keys, KeyError, KeyTable, Nanos};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::Network;
use super::{at_rate, PER_SECTOR};
use crate::driver_cost;
use crate::limits::TIME_MAX;
use crate::row::Model;
use crate::{Device, Request, Service, Wanted, SECTOR_BYTES};

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_840_8;

/// Bound of the normal numbers that 53 random bits give: sqrt(2 * 53 ln 2) = 8.571...
const NORMAL_MAX: f64 = 8.58;

/// The slowest network.
const RATE_MIN: u64 = 1_000;

const SECOND: Nanos = Nanos(1_000_000_000);

pub const ROW: Model = Model {
    name: "object-store",
    driver_cost: driver_cost::HTTP,
    summary: "object store over the network: random time to the first byte, then a rate, on parallel connections",
    source: "Amazon S3 User Guide, performance; guesses named in profiles/remote/object-store.toml",
    keys: KeyTable::with_text::<ObjectStoreKeys>(include_str!("../../profiles/remote/object-store.toml")),
    make: |keys| Ok(Box::new(ObjectStore::new(&read_keys(keys)?))),
};

keys! {
    /// Keys of `object-store`.
    pub(crate) struct ObjectStoreKeys {
        /// Median time to the first byte.
        #[schemars(extend("x-min" = "1ns", "x-max" = "1h"))]
        latency: Nanos,
        /// 99th percentile of the time to the first byte.
        #[schemars(extend("x-min" = "1ns", "x-max" = "1h"))]
        latency_p99: Nanos,
        /// Rate of one connection.
        #[schemars(range(min = 1_000, max = 1_000_000_000_000u64))]
        connection_bytes_per_second: u64,
        /// Maximum number of concurrent requests.
        #[schemars(range(min = 1, max = 65_536))]
        connections: u32,
        /// Maximum number of reads per second. 0: no limit.
        #[schemars(range(max = 1_000_000_000))]
        reads_per_second: u64,
        /// Maximum number of writes per second. 0: no limit.
        #[schemars(range(max = 1_000_000_000))]
        writes_per_second: u64,
        /// Rate of the network that all connections share in equal parts. 0: no limit.
        #[schemars(range(max = 1_000_000_000_000u64))]
        network_bytes_per_second: u64
    }
    impl check = |keys| {
        if keys.latency_p99 < keys.latency {
            let problem = format!("{} is below the median", keys.latency_p99);
            return Err(KeyError::new("latency_p99", problem, format!("a time from {}", keys.latency)));
        }
        if (1..RATE_MIN).contains(&keys.network_bytes_per_second) {
            let problem = format!("{} is out of range", keys.network_bytes_per_second);
            return Err(KeyError::new("network_bytes_per_second", problem, "0 for no limit, or from 1000"));
        }
        Ok(())
    };
}

#[derive(Debug, Clone)]
pub struct ObjectStore {
    latency: Latency,
    bytes_per_second: u64,
    connections: u32,
    /// For reads and for writes.
    limits: [Limit; 2],
    /// `None`: connections share nothing.
    network: Option<Network>,
    head_sector: u64,
}

impl ObjectStore {
    pub(crate) fn new(keys: &ObjectStoreKeys) -> Self {
        let (own, shared) = (keys.connection_bytes_per_second, keys.network_bytes_per_second);
        Self {
            latency: Latency::new(keys.latency, keys.latency_p99),
            bytes_per_second: if shared == 0 { own } else { own.min(shared) },
            network: (shared != 0).then(|| Network::new(own, shared)),
            connections: keys.connections,
            limits: [Limit::new(keys.reads_per_second), Limit::new(keys.writes_per_second)],
            head_sector: 0,
        }
    }

    /// Time of `sectors` sectors on a connection, rounded up.
    #[inline]
    fn transfer(&self, sectors: u32) -> Nanos {
        at_rate(sectors.into(), self.bytes_per_second)
    }
}

impl Device for ObjectStore {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        let admitted = self.limits[usize::from(request.write)].admit(now);
        let (overhead, transfer) = (self.latency.draw(), self.transfer(request.sectors));
        self.head_sector = request.end();
        if let Some(network) = &mut self.network {
            network.begin(now, admitted + overhead, u64::from(request.sectors) * SECTOR_BYTES);
        }
        Service {
            end: admitted + overhead + transfer,
            seek: Nanos::ZERO,
            rotation: Nanos::ZERO,
            transfer,
            overhead,
            wait: admitted - now,
            buffer_hit: false,
        }
    }

    fn shares(&self) -> bool {
        self.network.is_some()
    }

    fn first_end(&self) -> Option<(u64, Nanos)> {
        self.network.as_ref()?.first_end()
    }

    fn ended(&mut self, now: Nanos) {
        self.network.iter_mut().for_each(|network| network.ended(now));
    }

    fn holds_objects(&self) -> bool {
        true
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        self.latency.least() + self.transfer(sectors)
    }

    /// All connections busy all the time.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        let rate = u128::from(self.bytes_per_second) * u128::from(self.connections);
        let rate = self.network.as_ref().map_or(rate, |network| rate.min(network.shared.into()));
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        self.latency.least() + Nanos((bytes * u128::from(SECOND.0) / rate) as u64)
    }

    /// The latencies are drawn in the order of requests, regardless of what they read. At least as many latencies as
    /// requests are needed have passed, except for the `at_once` that may still be outstanding at the end. A request
    /// that reads over a gap saves another request and costs the gap's transfer time.
    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        let at_once = wanted.at_once.min(self.connections);
        let span = |sectors: u64| u128::from(sectors) * u128::from(PER_SECTOR) / u128::from(self.bytes_per_second);
        let (mut latency, mut longest, mut passed) = (self.latency.clone(), BinaryHeap::new(), 0u128);
        let mut next = || {
            longest.push(Reverse(latency.draw().0));
            if longest.len() > at_once as usize {
                passed += longest.pop().map_or(0, |Reverse(draw)| u128::from(draw));
            }
            passed
        };
        // By number of requests: the sum of their latencies without the longest ones.
        let runs = wanted.runs.len() as u64;
        let passed: Vec<u128> = (0..runs.max(wanted.requests)).map(|_| next()).collect();
        let mut gaps: Vec<u64> = wanted.gaps().collect();
        gaps.sort_unstable();
        let bridged = gaps.iter().scan(0u128, |sum, gap| {
            *sum += span(*gap);
            Some(*sum)
        });
        let with = |(gaps, time): (u64, u128)| time + passed[((runs - gaps).max(wanted.requests) - 1) as usize];
        let least = (0..).zip(std::iter::once(0).chain(bridged)).map(with).min().unwrap_or_default();
        let together = (least + span(wanted.sectors())) / u128::from(at_once);
        Nanos(together as u64).max(self.least_transfer(wanted.sectors()))
    }

    /// The median for 8 KiB.
    fn nominal_service(&self) -> Nanos {
        self.latency.median + self.transfer(16)
    }

    fn concurrency(&self) -> u32 {
        self.connections
    }

    fn head_sector(&self) -> u64 {
        self.head_sector
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn reseed(&mut self, seed: u64) {
        self.latency.rng = ChaCha8Rng::seed_from_u64(seed);
        self.latency.spare = None;
    }
}

/// Draws times to the first byte.
#[derive(Debug, Clone)]
struct Latency {
    median: Nanos,
    /// Deviation of the logarithm; zero if the time is constant.
    sigma: f64,
    rng: ChaCha8Rng,
    /// Normal numbers are generated in pairs.
    spare: Option<f64>,
}

impl Latency {
    fn new(median: Nanos, p99: Nanos) -> Self {
        let sigma = libm::log(p99.0 as f64 / median.0 as f64) / NORMAL_P99;
        Self { median, sigma, rng: ChaCha8Rng::seed_from_u64(0), spare: None }
    }

    fn draw(&mut self) -> Nanos {
        if self.sigma == 0.0 {
            return self.median;
        }
        let normal = self.normal();
        let drawn = self.median.0 as f64 * libm::exp(self.sigma * normal);
        // The conversion saturates.
        Nanos((drawn + 0.5) as u64).min(TIME_MAX)
    }

    /// A standard normal number, after Box and Muller, Annals of Mathematical Statistics 29(2), 1958.
    fn normal(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // In (0, 1], so that the logarithm is finite.
        let radius = (-2.0 * libm::log(((self.rng.next_u64() >> 11) + 1) as f64 * SCALE)).sqrt();
        let angle = std::f64::consts::TAU * ((self.rng.next_u64() >> 11) as f64 * SCALE);
        let (sine, cosine) = libm::sincos(angle);
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// A lower bound of all draws.
    fn least(&self) -> Nanos {
        if self.sigma == 0.0 {
            return self.median;
        }
        Nanos((self.median.0 as f64 * libm::exp(-self.sigma * NORMAL_MAX)) as u64)
    }
}

/// Admits a limited number of requests per second, with a burst of one second's worth.
#[derive(Debug, Clone)]
struct Limit {
    /// Time per request; zero for no limit.
    each: Nanos,
    /// When everything admitted so far would be finished at the steady rate.
    through: Nanos,
}

impl Limit {
    fn new(per_second: u64) -> Self {
        let each = SECOND.0.checked_div(per_second).map_or(Nanos::ZERO, Nanos);
        Self { each, through: Nanos::ZERO }
    }

    #[inline]
    fn admit(&mut self, now: Nanos) -> Nanos {
        let admitted = now.max(self.through.saturating_sub(SECOND - self.each));
        self.through = self.through.max(admitted) + self.each;
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_below(sorted: &[u64], bound: f64) -> f64 {
        sorted.partition_point(|drawn| (*drawn as f64) < bound) as f64 / sorted.len() as f64
    }

    #[test]
    fn latencies_have_their_percentiles() {
        for (median, p99) in [(100_000_000u64, 200_000_000u64), (30_000_000, 400_000_000), (1_000, 1_010)] {
            let mut latency = Latency::new(Nanos(median), Nanos(p99));
            let mut drawn: Vec<u64> = (0..400_000).map(|_| latency.draw().0).collect();
            drawn.sort_unstable();
            let (m, p) = (median as f64, p99 as f64);
            // The requested percentiles, their mirror images below the median, and one deviation.
            let deviation = (p / m).powf(1.0 / 2.326_347_9);
            for (bound, share) in [(m, 0.5), (p, 0.99), (m * m / p, 0.01), (m * deviation, 0.841_345)] {
                // Three deviations of a count in 400,000, and a tolerance of a nanosecond where that matters.
                let off = 3.0 * (share * (1.0 - share) / 400_000f64).sqrt() + if m < 1e6 { 0.06 } else { 0.0 };
                let is = share_below(&drawn, bound);
                assert!((is - share).abs() < off, "{median} to {p99}: {is} below {bound}, not {share}");
            }
            let sigma = (p / m).ln() / 2.326_347_9;
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / (m * (sigma * sigma / 2.0).exp()) - 1.0).abs() < 0.01, "{mean}");
            assert!(drawn[0] >= latency.least().0);
        }
    }

    #[test]
    fn pairs_of_normal_numbers_are_independent() {
        let mut latency = Latency::new(Nanos(1), Nanos(2));
        let drawn: Vec<f64> = (0..200_000).map(|_| latency.normal()).collect();
        let moment = |power: i32| drawn.iter().map(|z| z.powi(power)).sum::<f64>() / drawn.len() as f64;
        for (power, is, off) in [(1, 0.0, 0.01), (2, 1.0, 0.015), (3, 0.0, 0.03), (4, 3.0, 0.1)] {
            assert!((moment(power) - is).abs() < off, "{power}: {}", moment(power));
        }
        for lag in [1, 2] {
            let product = drawn.iter().zip(&drawn[lag..]).map(|(a, b)| a * b).sum::<f64>() / drawn.len() as f64;
            assert!(product.abs() < 0.01, "{lag}: {product}");
        }
    }

    #[test]
    fn the_furthest_number_is_within_the_bound() {
        let radius = (-2.0 * libm::log(1.0 / (1u64 << 53) as f64)).sqrt();
        assert!(radius < NORMAL_MAX, "{radius}");
        // The widest allowed distribution: no draw overflows.
        let mut widest = Latency::new(Nanos(1), TIME_MAX);
        assert!((0..10_000).all(|_| widest.draw() <= TIME_MAX));
        assert_eq!(widest.least(), Nanos::ZERO);
    }

    #[test]
    fn a_limit_by_hand() {
        // 4 per second with a burst of 4: four at once, the fifth after 250 ms, the sixth after 500 ms.
        let mut limit = Limit::new(4);
        let at = |limit: &mut Limit, ms: u64| limit.admit(Nanos::from_millis(ms)).0 / 1_000_000;
        let admitted: Vec<_> = (0..6).map(|_| at(&mut limit, 0)).collect();
        assert_eq!(admitted, [0, 0, 0, 0, 250, 500]);
        // At 1 s two more tokens are available; at 5 s four again.
        assert_eq!([1_000, 1_000, 1_000].map(|ms| at(&mut limit, ms)), [1_000, 1_000, 1_250]);
        assert_eq!([5_000; 5].map(|ms| at(&mut limit, ms)), [5_000, 5_000, 5_000, 5_000, 5_250]);
        let mut none = Limit::new(0);
        assert!((0..100).all(|_| at(&mut none, 7) == 7));
        // One at a time: a burst of one.
        let mut slow = Limit::new(1);
        assert_eq!([0, 0, 0].map(|ms| at(&mut slow, ms)), [0, 1_000, 2_000]);
    }
}
