//! Equations (2) to (5), with the parts kept apart.
//!
//! With k data requests for each of n files, D the disk's overhead and T half a turn, the tables' form is
//!
//! ```text
//! FS    = copy of a block + 2 system calls (k + indirect)
//! file  = FS + k D + transfer + T + (n > 1) G(1) + (n > segments) (k - 1) (T + G(n)) + indirect (D + G(1) + T + block)
//! Total = n file + (2 <= n <= segments) k R(n)              FSRT = Total request / span
//! ```
//!
//! (equation (4) is printed upside down). A drive that does not read ahead is one whose segments never suffice, where a
//! lone stream still pays no seek. First come, first served: every seek is over two places at random, G(1), and there is
//! no way back. CSCAN: the way back is a full stroke, as the paper says; no table checks it.

use headstart_types::KeyError;

use super::overlap::Overlap;
use super::parameters::{Costs, Disk, FileSystem, Parameters, Scheduler, Work};
use super::requests::{for_each_run, Run};
use super::seeks::Seeks;

/// What the model says of the mean request of the application, and of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Response {
    /// Mean time from a request to its data: the sum of the six terms that follow. FSRT.
    pub response_ns: f64,
    /// Fixed times of disk requests.
    pub overhead_ns: f64,
    /// Moving the arm.
    pub seek_ns: f64,
    /// Half a turn for each request that goes to the surface at another place.
    pub rotation_ns: f64,
    /// Moving data off the disk.
    pub transfer_ns: f64,
    /// System calls and copying.
    pub file_system_ns: f64,
    /// What passes while the application computes, of this stream or of another; never positive, and zero where nobody
    /// computes.
    pub hidden_ns: f64,
    /// Sum of the response times of a file's requests. `TotalFSRT`.
    pub total_ns: f64,
    /// From the first request of a file to its end, thinking included.
    pub elapsed_ns: f64,
    /// Requests of the application for each file: span / request as in equation (4), or whole ones with
    /// [`Costs::EachRequest`].
    pub requests: f64,
    /// Disk requests of a file, indirect blocks included.
    pub disk_requests: f64,
    /// The disk's share of busy time, 0 to 1.
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

/// What one disk request, or several, cost, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    overhead: f64,
    seek: f64,
    rotation: f64,
    transfer: f64,
}

impl Cost {
    fn sum(self) -> f64 {
        self.overhead + self.seek + self.rotation + self.transfer
    }

    fn add(&mut self, other: Cost, times: f64) {
        self.overhead += other.overhead * times;
        self.seek += other.seek * times;
        self.rotation += other.rotation * times;
        self.transfer += other.transfer * times;
    }
}

/// The response time with its terms.
///
/// # Errors
/// The first parameter out of range; its key is that of Python's `headstart.model.file_system`.
#[inline]
pub fn response(parameters: &Parameters, seeks: &mut Seeks) -> Result<Response, KeyError> {
    parameters.check()?;
    let Parameters { file_system, disk, work } = parameters;
    let costs = DiskCosts::new(disk, work.streams, seeks);
    let mut file = Cost::default();
    let mut overlap = Overlap::new(file_system, work);
    let (mut data, mut indirect) = (0, 0);
    for_each_run(file_system, work.file_bytes, |run| {
        let mut left = run;
        if data == 0 || run.indirect > 0 {
            let mut first = if data == 0 { costs.first(run.bytes) } else { costs.further(run.bytes) };
            first.add(costs.indirect(file_system.block_bytes), run.indirect as f64);
            file.add(first, 1.0);
            overlap.fetch(Run { count: 1, ..run }, costs.of_all(first, run.bytes), first.sum());
            left.count -= 1;
        }
        if left.count > 0 {
            let each = costs.further(run.bytes);
            file.add(each, left.count as f64);
            overlap.fetch(left, costs.of_all(each, run.bytes), each.sum());
        }
        data += run.count;
        indirect += run.indirect;
    });
    Ok(summary(file_system, disk, work, file, &overlap, (data, indirect)))
}

fn summary(
    file_system: &FileSystem,
    disk: &Disk,
    work: &Work,
    file: Cost,
    overlap: &Overlap,
    (data, indirect): (u64, u64),
) -> Response {
    let streams = f64::from(work.streams);
    let disk_requests = (data + indirect) as f64;
    let span = work.file_bytes as f64;
    let request_bytes = work.request_bytes.min(work.file_bytes);
    let block_kib = file_system.block_bytes as f64 / 1024.0;
    let (requests, own) = match file_system.costs {
        Costs::Tables => {
            let calls = 2.0 * file_system.system_call_ns * disk_requests;
            (span / request_bytes as f64, streams * (calls + file_system.copy_ns_per_kib * block_kib))
        }
        Costs::EachRequest => {
            let requests = work.file_bytes.div_ceil(request_bytes) as f64;
            (requests, file_system.system_call_ns * requests + file_system.copy_ns_per_kib * span / 1024.0)
        }
    };
    // What n streams together keep the disk busy with, while each of them waits.
    let shared = overlap.contended();
    let scale = if disk.parallel { 1.0 } else { streams };
    let transfer = shared - scale * (file.overhead + file.seek + file.rotation);
    let total_ns = overlap.waits() + own;
    let elapsed_ns = total_ns + work.think_ns * requests;
    let busy_ns = if disk.parallel { (streams * file.transfer).max(file.sum()) } else { streams * file.sum() };
    Response {
        response_ns: total_ns / requests,
        overhead_ns: scale * file.overhead / requests,
        seek_ns: scale * file.seek / requests,
        rotation_ns: scale * file.rotation / requests,
        transfer_ns: transfer / requests,
        file_system_ns: own / requests,
        hidden_ns: (overlap.waits() - shared) / requests,
        total_ns,
        elapsed_ns,
        requests,
        disk_requests,
        busy: if elapsed_ns > 0.0 { (busy_ns / elapsed_ns).min(1.0) } else { 0.0 },
    }
}

/// What single requests cost at a number of streams.
struct DiskCosts {
    miss_overhead: f64,
    hit_overhead: f64,
    rotation: f64,
    /// Nanoseconds a byte.
    bus: f64,
    surface: f64,
    /// G(1): to any place.
    random_seek: f64,
    /// To the first request of a file.
    first_seek: f64,
    /// The disk's cache has read ahead.
    cached: bool,
    /// To a further request: from the other streams' places, and its share of the way back.
    further_seek: f64,
    back_seek: f64,
    streams: f64,
    parallel: bool,
}

impl DiskCosts {
    #[inline]
    fn new(disk: &Disk, streams: u32, seeks: &mut Seeks) -> Self {
        let random_seek = seeks.moments(1).next;
        let moments = seeks.moments(streams);
        let (next, back) = match disk.scheduler {
            Scheduler::Clook => (moments.next, moments.back),
            Scheduler::Cscan => (moments.next, seeks.full_stroke()),
            Scheduler::Fcfs => (random_seek, 0.0),
        };
        let several = f64::from(u8::from(streams > 1));
        let cached = disk.read_ahead && streams <= disk.cache_segments;
        Self {
            miss_overhead: disk.miss_overhead_ns,
            hit_overhead: disk.hit_overhead_ns,
            rotation: disk.revolution_ns / 2.0,
            bus: 1e9 / disk.bus_bytes_per_second,
            surface: 1e9 / disk.disk_bytes_per_second,
            random_seek,
            first_seek: several * random_seek,
            cached,
            further_seek: if cached { 0.0 } else { several * next },
            // k R(n) for all n files together.
            back_seek: if cached { several * back / f64::from(streams) } else { 0.0 },
            streams: f64::from(streams),
            parallel: disk.parallel,
        }
    }

    /// Equation (2).
    fn random(&self, bytes: u64, seek: f64) -> Cost {
        let transfer = bytes as f64 * self.bus.max(self.surface);
        Cost { overhead: self.miss_overhead, seek, rotation: self.rotation, transfer }
    }

    /// The first data request of a file.
    fn first(&self, bytes: u64) -> Cost {
        self.random(bytes, self.first_seek + self.back_seek)
    }

    /// A later one: equation (3) where the disk's cache has read ahead. The paper's transfer takes the bus alone; here it
    /// also waits for what the surface, which turns on during the overhead, has not delivered.
    fn further(&self, bytes: u64) -> Cost {
        if !self.cached {
            return self.random(bytes, self.further_seek);
        }
        let bytes = bytes as f64;
        let transfer = (bytes * self.bus).max(bytes * self.surface - self.hit_overhead);
        Cost { overhead: self.hit_overhead, seek: self.back_seek, rotation: 0.0, transfer }
    }

    /// An indirect block, in a cylinder group of its own.
    fn indirect(&self, bytes: u64) -> Cost {
        self.random(bytes, self.random_seek)
    }

    /// How long each of n streams waits when all ask at once for what costs one `each`: until all are served, or, where
    /// fixed times pass at once, until all transfers are through.
    fn of_all(&self, each: Cost, bytes: u64) -> f64 {
        if self.parallel {
            each.sum().max(self.streams * bytes as f64 * self.bus.max(self.surface))
        } else {
            self.streams * each.sum()
        }
    }
}
