//! Equations (2) to (5), by parts.
//!
//! With k data requests for each of n files, the disk's overhead D and half a revolution T, the tables' form is
//!
//! ```text
//! FS    = copy of a block + 2 system calls (k + indirect)
//! file  = FS + k D + transfer + T + (n > 1) G(1) + (n > segments) (k - 1) (T + G(n)) + indirect (D + G(1) + T + block)
//! Total = n file + (2 <= n <= segments) k R(n)              FSRT = Total request / span
//! ```
//!
//! (equation (4) is printed upside down). A drive without read-ahead is modelled as one with too few segments, except
//! that a single stream still pays no seek. First come, first served: every seek is between two random positions, G(1),
//! and there is no way back. CSCAN: the way back is a full stroke, as in the paper; no table verifies it.

use headstart_types::KeyError;

use super::bsd::{self, Fetch, Served};
use super::disk_costs::{Cost, DiskCosts};
use super::overlap::Overlap;
use super::parameters::{FileSystem, Form, Parameters, Work};
use super::requests::{for_each_run, RequestRun};
use super::seeks::Seeks;

/// The model's results for the mean request of the application, and for a file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Response {
    /// Mean time from a request to its data: the sum of the six terms that follow. FSRT.
    pub response_ns: f64,
    /// Fixed times of disk requests.
    pub overhead_ns: f64,
    /// Arm movements.
    pub seek_ns: f64,
    /// Half a revolution for each request that needs the media at another position.
    pub rotation_ns: f64,
    /// Data transfer from the disk.
    pub transfer_ns: f64,
    /// System calls and copying.
    pub file_system_ns: f64,
    /// Overlap with computation of this stream or of another; never positive, and zero if no stream computes.
    pub hidden_ns: f64,
    /// Sum of the response times of a file's requests. `TotalFSRT`.
    pub total_ns: f64,
    /// From the first request of a file to its end, including think times.
    pub elapsed_ns: f64,
    /// Requests of the application per file: span / request as in equation (4), or whole ones with [`Form::Bsd`].
    pub requests: f64,
    /// Disk requests of a file, including indirect blocks.
    pub disk_requests: f64,
    /// The disk's utilisation, 0 to 1.
    pub busy: f64,
}

/// The fields of [`Response`], in the order of [`Response::values`].
pub const TERMS: [&str; 12] = [
    "response_ns",
    "overhead_ns",
    "seek_ns",
    "rotation_ns",
    "transfer_ns",
    "file_system_ns",
    "hidden_ns",
    "total_ns",
    "elapsed_ns",
    "requests",
    "disk_requests",
    "busy",
];

impl Response {
    /// The numbers, in the order of [`TERMS`].
    #[must_use]
    pub fn values(&self) -> [f64; TERMS.len()] {
        [
            self.response_ns,
            self.overhead_ns,
            self.seek_ns,
            self.rotation_ns,
            self.transfer_ns,
            self.file_system_ns,
            self.hidden_ns,
            self.total_ns,
            self.elapsed_ns,
            self.requests,
            self.disk_requests,
            self.busy,
        ]
    }
}

/// The costs of reading a file.
#[derive(Debug, Default)]
struct Reading {
    /// Disk time, for this stream alone.
    disk: Cost,
    /// The same as seen by this stream if all request at once, and nothing overlaps.
    seen: Cost,
    /// The sum of its waits.
    waits: f64,
    /// Disk requests, including indirect blocks.
    disk_requests: u64,
}

/// The response time with its terms.
///
/// # Errors
/// The first parameter out of range; its key is that of Python's `headstart.model.file_system`.
#[inline]
pub fn response(parameters: &Parameters, seeks: &mut Seeks) -> Result<Response, KeyError> {
    Ok(summary(parameters, &read(parameters, seeks)?))
}

/// The disk time of the requests of one file, regardless of which stream waits.
///
/// # Errors
/// As for [`response`].
pub fn disk_time(parameters: &Parameters, seeks: &mut Seeks) -> Result<Cost, KeyError> {
    Ok(read(parameters, seeks)?.disk)
}

#[inline]
fn read(parameters: &Parameters, seeks: &mut Seeks) -> Result<Reading, KeyError> {
    parameters.check()?;
    let form = parameters.file_system.form;
    let costs = DiskCosts::new(form, &parameters.disk, &parameters.work, seeks);
    Ok(match form {
        Form::Tables => read_as_tables(&parameters.file_system, &parameters.work, &costs),
        Form::Bsd => read_as_bsd(&parameters.file_system, &parameters.work, &costs),
    })
}

/// Equation (5) without n: the cost of the requests of one file.
#[inline]
fn read_as_tables(file_system: &FileSystem, work: &Work, costs: &DiskCosts) -> Reading {
    let mut reading = Reading::default();
    let mut overlap = Overlap::new(file_system, work);
    for_each_run(file_system, work.file_bytes, |run| {
        let mut left = run;
        if reading.disk_requests == 0 || run.indirect > 0 {
            let mut cost = match reading.disk_requests {
                0 => costs.first(run.bytes),
                _ => costs.further(run.bytes),
            };
            cost.add(costs.indirect(file_system.block_bytes), run.indirect as f64);
            let seen = costs.of_all(cost);
            reading.add(cost, seen, 1);
            overlap.fetch(RequestRun { count: 1, ..run }, seen.sum(), cost.sum());
            left.count -= 1;
        }
        if left.count > 0 {
            let cost = costs.further(run.bytes);
            let seen = costs.of_all(cost);
            reading.add(cost, seen, left.count);
            overlap.fetch(left, seen.sum(), cost.sum());
        }
        reading.disk_requests += run.indirect;
    });
    reading.waits = overlap.waits();
    reading
}

fn read_as_bsd(file_system: &FileSystem, work: &Work, costs: &DiskCosts) -> Reading {
    let mut reading = Reading::default();
    let mut ahead = ReadAhead::default();
    let mut before = Cost::default();
    let waits = bsd::read_through(file_system, work, |fetch| {
        let (mut cost, mut count) = (Cost::default(), 1);
        match fetch {
            Fetch::First(all) => {
                cost = costs.first(all);
                ahead.restart(costs, all);
            }
            Fetch::Further(all) => cost = ahead.further(costs, all),
            Fetch::Indirect(blocks) => {
                cost.add(costs.indirect(file_system.block_bytes), blocks as f64);
                count = blocks;
                ahead.restart(costs, file_system.block_bytes);
            }
        }
        let seen = costs.of_others(cost, before);
        before = cost;
        reading.add(cost, seen, 1);
        reading.disk_requests += count - 1;
        Served { alone: cost.sum(), contended: seen.sum() }
    });
    Reading { waits, ..reading }
}

/// Number of zones that a file may lie in, evenly spaced from the slowest to the fastest.
const ZONES: usize = 5;

/// The content of one stream's segment of the disk's cache after its last request, in bytes: by the file's zone, since
/// the read-ahead is often just long enough or just too short.
#[derive(Debug, Default)]
struct ReadAhead {
    held: [f64; ZONES],
    /// The head stopped after the last request, and the bus took this much longer than the media: `None` if it reads
    /// ahead.
    left: Option<f64>,
}

impl ReadAhead {
    /// `bytes` were read from the media. A single stream's read-ahead continues until its next request; among several
    /// it ends when the controller has processed another stream's request. The head also reads on while the bus is busy
    /// for `busy` after the data.
    fn fill(&mut self, costs: &DiskCosts, zone: usize, busy: f64) {
        let rate = (1.0 + costs.rate_spread * ((2 * zone + 1) as f64 / ZONES as f64 - 1.0)) / costs.track;
        self.held[zone] = match (costs.cached, costs.streams > 1.0) {
            (true, false) => f64::INFINITY,
            (true, true) if costs.read_during_overhead => (costs.hit_overhead + busy) * rate,
            _ => 0.0,
        };
    }

    /// A request that the cache did not hold has read `bytes`.
    fn restart(&mut self, costs: &DiskCosts, bytes: u64) {
        let busy = bytes as f64 * (costs.bus - costs.surface).max(0.0);
        if costs.on_sequence {
            // It is not yet known whether the next request continues here.
            *self = Self { held: [0.0; ZONES], left: Some(busy) };
            return;
        }
        (0..ZONES).for_each(|zone| self.fill(costs, zone, busy));
    }

    /// A request that continues the last one: from the cache, as far as it holds it.
    fn further(&mut self, costs: &DiskCosts, bytes: u64) -> Cost {
        let mut mean = Cost::default();
        for zone in 0..ZONES {
            mean.add(self.in_zone(costs, zone, bytes), 1.0 / ZONES as f64);
        }
        self.left = None;
        mean
    }

    fn in_zone(&mut self, costs: &DiskCosts, zone: usize, bytes: u64) -> Cost {
        let (wanted, held) = (bytes as f64, self.held[zone]);
        if wanted <= held {
            self.held[zone] -= wanted;
            return costs.further(bytes);
        }
        let mut cost = match self.left {
            Some(late) if costs.streams == 1.0 => costs.just_gone_by(bytes, late),
            _ => costs.random(bytes, costs.seeks.arm),
        };
        if held > 0.0 {
            // What is in the cache crosses the bus while the arm moves for the rest.
            let left = wanted * costs.bus - cost.seek - cost.rotation;
            cost.transfer = left.max((wanted - held) * costs.surface);
        }
        let busy = if held > 0.0 { 0.0 } else { wanted * (costs.bus - costs.surface).max(0.0) };
        self.fill(costs, zone, busy);
        cost
    }
}

impl Reading {
    fn add(&mut self, cost: Cost, seen: Cost, count: u64) {
        self.disk.add(cost, count as f64);
        self.seen.add(seen, count as f64);
        self.disk_requests += count;
    }
}

fn summary(Parameters { file_system, disk, work }: &Parameters, reading: &Reading) -> Response {
    let streams = f64::from(work.streams);
    let disk_requests = reading.disk_requests as f64;
    let span = work.file_bytes as f64;
    let request_bytes = work.request_bytes.min(work.file_bytes);
    let block_kib = file_system.block_bytes as f64 / 1024.0;
    let (requests, own) = match file_system.form {
        Form::Tables => {
            let calls = 2.0 * file_system.system_call_ns * disk_requests;
            (span / request_bytes as f64, streams * (calls + file_system.copy_ns_per_kib * block_kib))
        }
        Form::Bsd => {
            let requests = work.file_bytes.div_ceil(request_bytes) as f64;
            (requests, file_system.system_call_ns * requests + file_system.copy_ns_per_kib * span / 1024.0)
        }
    };
    let Cost { overhead, seek, rotation, transfer } = reading.seen;
    // Sums in another order differ in their last digits.
    let hidden = reading.waits - reading.seen.sum();
    let hidden = if hidden < -1e-9 * reading.waits { hidden } else { 0.0 };
    let total_ns = reading.waits + own;
    let elapsed_ns = total_ns + work.think_ns * requests;
    let busy_ns = if disk.parallel {
        (streams * reading.disk.transfer).max(reading.disk.sum())
    } else {
        streams * reading.disk.sum()
    };
    Response {
        response_ns: total_ns / requests,
        overhead_ns: overhead / requests,
        seek_ns: seek / requests,
        rotation_ns: rotation / requests,
        transfer_ns: transfer / requests,
        file_system_ns: own / requests,
        hidden_ns: hidden / requests,
        total_ns,
        elapsed_ns,
        requests,
        disk_requests,
        busy: if elapsed_ns > 0.0 { (busy_ns / elapsed_ns).min(1.0) } else { 0.0 },
    }
}
