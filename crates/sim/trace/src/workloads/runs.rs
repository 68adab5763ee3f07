//! `runs`: open arrivals in runs of contiguous requests at uniformly drawn positions.
//!
//! The workload that E. Shriver, C. Small and K. A. Smith, "Why does file system prefetching work?", USENIX 1999,
//! specify in Table 2: a rate, an arrival process (constant, Poisson or bursty), a span of data, a request size and a
//! run length. They validate closed processes that read whole files; the rest comes from their model of disks (Shriver,
//! Merchant and Wilkes, SIGMETRICS 1998). It needs `arrival = "open"`: otherwise the times are ignored and only think
//! times are used.
//!
//! Our choices where the paper is silent: a run's length is geometric, so that each request continues its run with the
//! same probability, except at the end of the span. A burst is a set of simultaneous requests with a geometric size;
//! bursts arrive as a Poisson process whose rate preserves the mean interval between requests.
//!
//! Cost: two or three random words per request.

use headstart_types::{keys, read_keys, stream_seed, Bytes, KeyError, KeyTable, Nanos};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::generator::{Pause, Size, REQUESTS_MAX};
use super::{Compute, ComputeSampler, GeneratorContext, Workload};
use crate::{Carries, Record, RecordReader, TraceError, BATCH};

pub(super) const WORKLOAD: Workload = Workload {
    name: "runs",
    summary: "runs of contiguous requests, arriving at a constant rate, as a Poisson process or in bursts",
    source: "Shriver, Small and Smith, USENIX 1999, Table 2",
    keys: KeyTable::of::<RunsKeys>(),
    make: open,
};

/// The arrival process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Timing {
    /// Constant intervals.
    Constant,
    /// Exponential intervals.
    Poisson,
    /// Bursts of simultaneous requests, with exponential intervals between bursts.
    Bursty,
}

/// A longer burst or run practically never ends.
const LENGTH_MAX: f64 = 1e9;

keys! {
    /// Keys of `runs`.
    struct RunsKeys {
        /// Number of requests.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 10_000,
        /// The arrival process.
        timing: Timing = Timing::Poisson,
        /// Mean time between two requests.
        interval: Pause = Pause(Nanos::from_millis(20)),
        /// Mean number of requests per burst, with `timing = "bursty"`.
        #[schemars(range(min = 1.0, max = LENGTH_MAX))]
        burst: f64 = 8.0,
        /// Size of the address range that runs are spread over: a multiple of `request`.
        span: Size = Size::bytes(1 << 30),
        /// Size of each request.
        request: Size = Size::bytes(8 << 10),
        /// Mean length of a run, in requests.
        #[schemars(range(min = 1.0, max = LENGTH_MAX))]
        run_length: f64 = 1.0,
        /// The think time after each request. Only with closed arrivals.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: RunsKeys = read_keys(keys)?;
    let (Size(Bytes(span)), Size(Bytes(request_bytes)), Pause(interval)) = (keys.span, keys.request, keys.interval);
    if span % request_bytes != 0 {
        let problem = format!("{} is not a multiple of the request size", Bytes(span));
        return Err(KeyError::new("span", problem, format!("a multiple of {}", Bytes(request_bytes))));
    }
    let burst = if keys.timing == Timing::Bursty { keys.burst } else { 1.0 };
    let between = Nanos::rounded(interval.0 as f64 * burst);
    let gaps = if keys.timing == Timing::Constant { Compute::Constant(between) } else { Compute::Exponential(between) };
    let rng = |name| ChaCha8Rng::seed_from_u64(stream_seed(context.seed, name, 0));
    Ok(Box::new(Runs {
        requests: keys.requests,
        places: span / request_bytes,
        request_bytes,
        // Think times use another stream.
        gaps: gaps.sampler(context.seed, 1),
        compute: keys.compute.sampler(context.seed, 0),
        bursts: Geometric::new(burst, rng("bursts")),
        runs: Geometric::new(keys.run_length, rng("runs")),
        rng: rng("places"),
        time: Nanos::ZERO,
        next: None,
        done: 0,
    }))
}

/// Draws whether a length with a geometric distribution ends here.
struct Geometric {
    rng: ChaCha8Rng,
    /// Probability of continuing, in units of 2^-32.
    share: u64,
}

impl Geometric {
    fn new(mean: f64, rng: ChaCha8Rng) -> Self {
        Self { rng, share: ((1.0 - 1.0 / mean) * 4_294_967_296.0) as u64 }
    }

    fn goes_on(&mut self) -> bool {
        self.share > 0 && u64::from(self.rng.next_u32()) < self.share
    }
}

struct Runs {
    requests: u64,
    /// Number of requests that fit in the span.
    places: u64,
    request_bytes: u64,
    gaps: ComputeSampler,
    compute: ComputeSampler,
    bursts: Geometric,
    runs: Geometric,
    rng: ChaCha8Rng,
    time: Nanos,
    /// The position after the last request.
    next: Option<u64>,
    done: u64,
}

impl Runs {
    fn record(&mut self) -> Record {
        if self.done > 0 && !self.bursts.goes_on() {
            self.time += self.gaps.next_think();
        }
        // Drawn for each request, so that the run length does not change the other random streams.
        let goes_on = self.runs.goes_on();
        let place = match self.next.filter(|next| goes_on && *next < self.places) {
            Some(next) => next,
            // Multiply and keep the high half: the bias is below 2^-64 per position.
            None => ((u128::from(self.rng.next_u64()) * u128::from(self.places)) >> 64) as u64,
        };
        self.next = Some(place + 1);
        self.done += 1;
        let (offset, size) = (place * self.request_bytes, self.request_bytes);
        Record { time: self.time, think: self.compute.next_think(), offset, size, ..Record::default() }
    }
}

impl RecordReader for Runs {
    fn carries(&self) -> Carries {
        Carries { time: true, think: true, addresses: true, ..Carries::NOTHING }
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        let count = (self.requests - self.done).min(BATCH as u64);
        for _ in 0..count {
            let record = self.record();
            into.push(record);
        }
        Ok(count > 0)
    }

    fn progress(&self) -> (u64, u64) {
        (self.done, self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: GeneratorContext = GeneratorContext { seed: 5, block_bytes: 8192 };

    fn records(keys: &str) -> Vec<Record> {
        let mut reader = WORKLOAD.open(keys.parse().expect("TOML"), &CONTEXT).expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        all
    }

    /// Mean and squared coefficient of variation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64;
        (mean, square / (mean * mean))
    }

    fn gaps(records: &[Record]) -> Vec<f64> {
        records.windows(2).map(|pair| (pair[1].time - pair[0].time).0 as f64).collect()
    }

    #[test]
    fn intervals_by_timing() {
        let gaps_of = |timing: &str| gaps(&records(&format!("requests = 100000\ninterval = \"2ms\"\n{timing}")));
        assert!(gaps_of("timing = \"constant\"").iter().all(|gap| *gap == 2e6));
        let (mean, variation) = moments(&gaps_of("timing = \"poisson\""));
        assert!((mean / 2e6 - 1.0).abs() < 0.01 && (variation - 1.0).abs() < 0.03, "{mean} {variation}");
        // A share of 1 - 1/4 of the gaps is zero, the others are exponential with mean 8 ms: 2 * 64 / 4 minus 4, over
        // 4.
        let bursty = gaps_of("timing = \"bursty\"\nburst = 4.0");
        let (mean, variation) = moments(&bursty);
        assert!((mean / 2e6 - 1.0).abs() < 0.02 && (variation - 7.0).abs() < 0.5, "{mean} {variation}");
        let together = bursty.iter().filter(|gap| **gap == 0.0).count() as f64 / bursty.len() as f64;
        assert!((together - 0.75).abs() < 0.01, "{together}");
    }

    #[test]
    fn runs_of_a_mean_length_in_the_span() {
        let all = records("requests = 100000\nrun_length = 5.0\nspan = \"64MiB\"\nrequest = \"16KiB\"");
        let follows = all.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 16384).count() as f64;
        assert!((follows / all.len() as f64 - 0.8).abs() < 0.01, "{follows}");
        assert!(all.iter().all(|record| record.offset % 16384 == 0 && record.offset + record.size <= 64 << 20));
        let starts: Vec<f64> = all.iter().map(|record| record.offset as f64).collect();
        let (mean, variation) = moments(&starts);
        // Uniform: the mean is the middle, the variance a third of the mean's square.
        assert!((mean / f64::from(32 << 20) - 1.0).abs() < 0.03 && (variation - 1.0 / 3.0).abs() < 0.02);
        // Runs of one request: requests are contiguous only by chance.
        let single = records("requests = 10000");
        assert!(single.windows(2).filter(|pair| pair[1].offset == pair[0].offset + 8192).count() < 3);
    }

    #[test]
    fn lengths_do_not_change_arrivals() {
        let times = |keys: &str| records(keys).iter().map(|record| record.time).collect::<Vec<_>>();
        assert_eq!(times("run_length = 1.0"), times("run_length = 20.0"));
    }

    #[test]
    fn what_is_refused() {
        let error = |keys: &str| WORKLOAD.open(keys.parse().expect("TOML"), &CONTEXT).err().expect(keys).to_string();
        assert!(error("span = \"20KiB\"")
            .starts_with("span: 20KiB is not a multiple of the request size; allowed: a multiple"));
        assert!(error("timing = \"often\"").starts_with("timing: "), "{}", error("timing = \"often\""));
        assert!(error("burst = 0.5").starts_with("burst: 0.5 is out of range"), "{}", error("burst = 0.5"));
    }
}
