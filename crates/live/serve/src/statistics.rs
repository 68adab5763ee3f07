//! Statistics of an export in addition to its level's counters.

use std::io;

use headstart_engine::{Responses, Summary};
use headstart_nbd::Extent;
use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use crate::work::{Action, Answer, ClientRequest, Op, Work};

/// Number of buckets, whose upper bounds are powers of two from 16 us on, in ns.
const BUCKETS: usize = 20;
const FIRST_SHIFT: u32 = 14;

#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: [u64; BUCKETS + 1],
    sum_ns: u128,
}

impl Histogram {
    pub fn record(&mut self, time: Nanos) {
        let bucket = (0..BUCKETS).find(|at| time.0 <= 1 << (FIRST_SHIFT + *at as u32)).unwrap_or(BUCKETS);
        self.counts[bucket] += 1;
        self.sum_ns += u128::from(time.0);
    }

    /// Upper bound of each bucket in seconds, and the number of times up to it; the last one is unbounded.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let mut sum = 0;
        self.counts.iter().enumerate().map(move |(at, count)| {
            sum += count;
            let bound = (at < BUCKETS).then(|| (1u64 << (FIRST_SHIFT + at as u32)) as f64 / 1e9);
            (bound, sum)
        })
    }

    /// Sum of all times, in seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Counters, which never decrease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Read requests.
    pub read_requests: u64,
    /// Bytes of read requests.
    pub read_bytes: u64,
    /// Write requests.
    pub write_requests: u64,
    /// Bytes of write requests.
    pub write_bytes: u64,
    /// Trim and write-zeroes requests.
    pub trim_requests: u64,
    /// Flush requests.
    pub flush_requests: u64,
    /// Cache requests, which announce reads.
    pub cache_requests: u64,
    /// Block status requests, which ask for allocated extents.
    pub extent_requests: u64,
    /// Requests that failed.
    pub failed_requests: u64,
    /// Reads of the backing for which a client was waiting when they started.
    pub backing_demand_reads: u64,
    /// Other reads of the backing.
    pub backing_prefetch_reads: u64,
    /// Bytes read from the backing.
    pub backing_read_bytes: u64,
    /// Failed reads of the backing.
    pub backing_failed_reads: u64,
}

#[derive(Debug, Default)]
pub struct Statistics {
    pub totals: Totals,
    /// Times from request to reply.
    pub responses: Responses,
    /// The same as a histogram.
    pub response_times: Histogram,
    /// Times of reads of the backing, without waiting for a slot.
    pub service_times: Histogram,
}

impl Statistics {
    /// Counts a new request.
    pub fn asked(&mut self, request: &ClientRequest) {
        let (totals, bytes) = (&mut self.totals, u64::from(request.length));
        match request.op {
            Op::Read => {
                totals.read_requests += 1;
                totals.read_bytes += bytes;
            }
            Op::Write { .. } => {
                totals.write_requests += 1;
                totals.write_bytes += bytes;
            }
            Op::Trim { .. } | Op::Zero { .. } => totals.trim_requests += 1,
            Op::Flush => totals.flush_requests += 1,
            Op::Cache => totals.cache_requests += 1,
            Op::Extents => totals.extent_requests += 1,
        }
    }

    /// Counts an answer, `response` after its request.
    pub fn answered(&mut self, answer: &Answer, response: Nanos) {
        self.totals.failed_requests += u64::from(matches!(answer, Answer::Failed(_)));
        self.responses.record(response);
        self.response_times.record(response);
    }

    /// Counts what the export asks of its host: work for the backing and the spill file, and replies.
    pub fn acts(&mut self, actions: &[Action]) {
        let totals = &mut self.totals;
        for action in actions {
            let Action::Start(_, Work::Read { buffers, demand, .. }) = action else { continue };
            totals.backing_read_bytes += buffers.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
            totals.backing_demand_reads += u64::from(*demand);
            totals.backing_prefetch_reads += u64::from(!demand);
        }
    }

    /// Counts a read of the backing that ended `service` after its start.
    pub fn read_ended(&mut self, result: &io::Result<Vec<Extent>>, service: Nanos) {
        self.totals.backing_failed_reads += u64::from(result.is_err());
        self.service_times.record(service);
    }

    /// Summary of the response times.
    #[must_use]
    pub fn response_ns(&self) -> Summary {
        self.responses.summary()
    }
}
