//! Open arrivals at a disk: the response time of an open queue. Our addition; the paper lists arrival processes and run
//! lengths (Table 2) but validates closed readers of whole files.
//!
//! Requests form contiguous runs with geometric lengths: each continues the previous one with the same probability, so
//! that service times are independent. The first of a run follows equation (2), with the seek between two random
//! positions and a rotational latency uniform over a revolution; a continuing request follows equation (3) if the disk
//! reads ahead, otherwise it waits until its sectors come round. First come, first served, with W the wait in the
//! queue:
//!
//! ```text
//! Poisson    W = l E[S^2] / 2 (1 - r)                                             Pollaczek and Khinchine
//! bursts     W = l E[S^2] / 2 (1 - r) + E[X (X - 1)] E[S] / 2 E[X] (1 - r)        X simultaneous requests
//! constant   W = r E[S] c / 2 (1 - r)  exp(-2 (1 - r) / 3 r c)                    c = Var S / E[S]^2
//! ```
//!
//! l requests per second, r = l E[S] below 1. The first two are exact for such service times. The third is Kraemer and
//! Langenbach-Belz's approximation ("Approximate formulae for the delay in the queueing system GI/G/1", ITC 8, 1976).
//! The angle since the previous request depends on whether the disk was idle: we use the mean over both cases, weighted
//! with the resulting r.
//!
//! Not modelled: zones, and tracks that end within a request. Cost: some dozen steps of a few divisions each.

use headstart_types::KeyError;

use super::disk_costs::Cost;
use super::parameters::Disk;
use super::seeks::Seeks;

/// The arrival process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timing {
    /// Constant intervals.
    Constant,
    /// Exponential intervals.
    Poisson,
    /// Simultaneous requests, geometric in number with this mean; exponential intervals between bursts.
    Bursty(f64),
}

/// The arriving requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// The arrival process.
    pub timing: Timing,
    /// Mean time between two requests, in nanoseconds; above zero.
    pub interval_ns: f64,
    /// Bytes per request; at least 1.
    pub request_bytes: u64,
    /// Mean length of a run, in requests; at least 1.
    pub run_length: f64,
    /// Number of requests that fit in the span, at least 1: a run ends at the span's end.
    pub places: f64,
}

/// The model's results for the mean request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenResponse {
    /// From arrival to completion: the wait and the service.
    pub response_ns: f64,
    /// Wait in the queue.
    pub wait_ns: f64,
    /// The parts of its service.
    pub service: Cost,
    /// The disk's utilisation, below 1.
    pub busy: f64,
}

/// Mean and mean square of a service time.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    mean: f64,
    square: f64,
}

impl Moments {
    /// Of the sum of a constant time and independent random ones.
    fn of(constant: f64, varying: &[Moments]) -> Self {
        let mean = constant + varying.iter().map(|part| part.mean).sum::<f64>();
        let variance: f64 = varying.iter().map(|part| part.square - part.mean * part.mean).sum();
        Self { mean, square: mean * mean + variance }
    }

    /// Of a uniform time from zero to `most`.
    fn even(most: f64) -> Self {
        Self { mean: most / 2.0, square: most * most / 3.0 }
    }

    fn constant(time: f64) -> Self {
        Self { mean: time, square: time * time }
    }

    /// A mixture: this one with probability `chance`, else the other.
    fn or(self, chance: f64, other: Self) -> Self {
        let mix = |this: f64, other: f64| chance * this + (1.0 - chance) * other;
        Self { mean: mix(self.mean, other.mean), square: mix(self.square, other.square) }
    }
}

/// Iterations until the disk's utilisation, which determines the angles, converges.
const ROUNDS: u32 = 60;

/// The mean response time of requests in an open queue.
///
/// # Errors
/// At `interval`, if they arrive faster than the disk serves them.
pub fn open_response(disk: &Disk, arrivals: &Arrivals, seeks: &mut Seeks) -> Result<OpenResponse, KeyError> {
    let seek = Moments { mean: seeks.moments(1).next, square: seeks.curve().squared().mean(1, 2) };
    let begins = begins(arrivals);
    let mut busy: f64 = 0.5;
    for _ in 0..ROUNDS {
        let (all, _) = service(disk, arrivals, begins, seek, busy.min(1.0));
        busy = (busy + all.mean / arrivals.interval_ns) / 2.0;
    }
    let (all, parts) = service(disk, arrivals, begins, seek, busy.min(1.0));
    let busy = all.mean / arrivals.interval_ns;
    if busy >= 1.0 {
        let problem = format!("requests arrive faster than the disk serves them, {:.3} ms each", all.mean / 1e6);
        return Err(KeyError::new("interval", problem, format!("more than {:.3} ms", all.mean / 1e6)));
    }
    let wait_ns = wait(arrivals, all, busy);
    Ok(OpenResponse { response_ns: wait_ns + all.mean, wait_ns, service: parts, busy })
}

/// The probability that a request begins a run.
fn begins(arrivals: &Arrivals) -> f64 {
    let over = 1.0 / arrivals.run_length;
    over + (1.0 - over) / arrivals.places.max(1.0)
}

/// Pollaczek and Khinchine's wait, plus the term for bursts; or the wait for constant intervals.
fn wait(arrivals: &Arrivals, service: Moments, busy: f64) -> f64 {
    let free = 2.0 * (1.0 - busy);
    let poisson = service.square / arrivals.interval_ns / free;
    match arrivals.timing {
        Timing::Poisson => poisson,
        // For a geometric number with mean b, E[X (X - 1)] / E[X] = 2 (b - 1).
        Timing::Bursty(burst) => poisson + 2.0 * (burst - 1.0) * service.mean / free,
        Timing::Constant => {
            let variation = service.square / (service.mean * service.mean) - 1.0;
            if variation <= 0.0 {
                return 0.0;
            }
            busy * service.mean * variation / free * libm::exp(-free / (3.0 * busy * variation))
        }
    }
}

/// A request's service time, and the means of its parts, at a utilisation of `busy`.
fn service(disk: &Disk, arrivals: &Arrivals, begins: f64, seek: Moments, busy: f64) -> (Moments, Cost) {
    let bytes = arrivals.request_bytes as f64;
    let (surface, bus) = (bytes * 1e9 / disk.disk_bytes_per_second, bytes * 1e9 / disk.bus_bytes_per_second);
    let moved = surface.max(bus);
    let turn = Moments::even(disk.revolution_ns);
    let first = Moments::of(disk.miss_overhead_ns + moved, &[seek, turn]);
    let first_cost = Cost { overhead: disk.miss_overhead_ns, seek: seek.mean, rotation: turn.mean, transfer: moved };
    // The position has just passed when the last request ends, and comes round again; if the disk was idle, its angle
    // is uniform.
    let late = disk.miss_overhead_ns + (bus - surface).max(0.0);
    let passed = if disk.revolution_ns > 0.0 { late % disk.revolution_ns } else { 0.0 };
    let round = Moments::constant(disk.revolution_ns - passed).or(busy, turn);
    let missed = Moments::of(disk.miss_overhead_ns + moved, &[round]);
    let missed_cost = Cost { overhead: disk.miss_overhead_ns, seek: 0.0, rotation: round.mean, transfer: moved };
    let held = bus.max(surface - disk.hit_overhead_ns);
    let hit = Moments::constant(disk.hit_overhead_ns + held);
    let hit_cost = Cost { overhead: disk.hit_overhead_ns, transfer: held, ..Cost::default() };
    // Share of the continuing requests that the disk's cache does not hold at all.
    let misses = match (disk.read_ahead && disk.cache_segments > 0, disk.read_ahead_on_sequence) {
        (false, _) => 1.0,
        (true, true) => begins,
        (true, false) => 0.0,
    };
    let mut parts = Cost::default();
    for (cost, share) in
        [(first_cost, begins), (missed_cost, (1.0 - begins) * misses), (hit_cost, (1.0 - begins) * (1.0 - misses))]
    {
        parts.add(cost, share);
    }
    (first.or(begins, missed.or(misses, hit)), parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::{tables, SeekCurve};
    use proptest::prelude::*;

    const MS: f64 = 1e6;

    /// No arm, no rotation: each request takes `ms`.
    fn flat(ms: f64) -> Disk {
        Disk { revolution_ns: 0.0, miss_overhead_ns: ms * MS, hit_overhead_ns: ms * MS, ..still() }
    }

    fn still() -> Disk {
        Disk {
            disk_bytes_per_second: f64::INFINITY,
            track_bytes_per_second: f64::INFINITY,
            bus_bytes_per_second: f64::INFINITY,
            ..tables::disk(1.2)
        }
    }

    fn arrivals(timing: Timing, interval_ms: f64) -> Arrivals {
        Arrivals { timing, interval_ns: interval_ms * MS, request_bytes: 8192, run_length: 1.0, places: 1e6 }
    }

    fn on(disk: &Disk, arrivals: &Arrivals) -> OpenResponse {
        open_response(disk, arrivals, &mut Seeks::new(SeekCurve::None)).expect("it keeps up")
    }

    #[test]
    fn queues_by_hand() {
        // M/D/1, half busy: the wait is half a service. Bursts of 3 add twice 2 services over twice a half.
        let poisson = on(&flat(2.0), &arrivals(Timing::Poisson, 4.0));
        assert!((poisson.wait_ns - 1.0 * MS).abs() < 1.0 && (poisson.busy - 0.5).abs() < 1e-9, "{poisson:?}");
        let bursty = on(&flat(2.0), &arrivals(Timing::Bursty(3.0), 4.0));
        assert!((bursty.wait_ns - 9.0 * MS).abs() < 1.0, "{bursty:?}");
        assert_eq!(on(&flat(2.0), &arrivals(Timing::Constant, 4.0)).wait_ns, 0.0);
        // Only a revolution of 6 ms: uniform 0 to 6, E[S] = 3, E[S^2] = 12. Every 6 ms: 12 / 6 / 2 / (1 - 1/2) = 2.
        let turning = Disk { miss_overhead_ns: 0.0, hit_overhead_ns: 0.0, ..still() };
        let found = on(&turning, &arrivals(Timing::Poisson, 6.0));
        assert!((found.wait_ns - 2.0 * MS).abs() < 1.0 && (found.response_ns - 5.0 * MS).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_disk_that_cannot_keep_up_says_so() {
        let error = open_response(&flat(2.0), &arrivals(Timing::Poisson, 1.5), &mut Seeks::new(SeekCurve::None));
        let error = error.expect_err("too fast").to_string();
        assert!(
            error.starts_with("interval: requests arrive faster than the disk serves them, 2.000 ms each"),
            "{error}"
        );
    }

    proptest! {
        /// General properties of a queue: parts sum to the response, waits grow with the load and with bursts, are
        /// smaller at a constant rate, and longer runs, a faster bus and more read-ahead never slow it down.
        #[test]
        fn queues_behave(
            overhead in 0.1f64..2.0, interval in 20.0f64..200.0, run in 1.0f64..50.0, burst in 1.0f64..20.0,
            request in 1u64..8, bus in 5.0f64..40.0, ahead in any::<bool>(), sequence in any::<bool>(),
        ) {
            let disk = Disk {
                bus_bytes_per_second: bus * 1e6, read_ahead: ahead, read_ahead_on_sequence: sequence,
                ..tables::disk(overhead)
            };
            let mut seeks = Seeks::new(tables::seek_curve());
            let mut of = |disk: &Disk, more: Arrivals| open_response(disk, &more, &mut seeks).expect("it keeps up");
            let each = Arrivals { run_length: run, request_bytes: request * 8192, ..arrivals(Timing::Poisson, interval) };
            let found = of(&disk, each);
            prop_assert!((found.wait_ns + found.service.sum() - found.response_ns).abs() < 1.0);
            prop_assert!(found.busy > 0.0 && found.busy < 1.0);
            let seldom = of(&disk, Arrivals { interval_ns: each.interval_ns * 1.1, ..each });
            let bursts = of(&disk, Arrivals { timing: Timing::Bursty(burst), ..each });
            let constant = of(&disk, Arrivals { timing: Timing::Constant, ..each });
            let long = of(&disk, Arrivals { run_length: run * 1.5, ..each });
            let fast = of(&Disk { bus_bytes_per_second: bus * 2e6, ..disk }, each);
            let always = of(&Disk { read_ahead: true, read_ahead_on_sequence: false, ..disk }, each);
            let slack = 1.0 + 1e-9;
            let (wait, response) = (found.wait_ns * slack, found.response_ns * slack);
            prop_assert!(seldom.wait_ns <= wait && constant.wait_ns <= wait);
            prop_assert!(bursts.response_ns * slack >= found.response_ns);
            prop_assert!(long.response_ns <= response && fast.response_ns <= response && always.response_ns <= response);
        }
    }
}
