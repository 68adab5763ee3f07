//! One disk as a host sees it: a queue in front of a device, and the statistics of both.
//!
//! The host calls [`Drive::submit`] for each request, then [`Drive::start`] until it gives nothing; when the end
//! that `start` returned has come it calls [`Drive::finish`] once for it, then `start` again. Time is the
//! host's: the drive is only told it. No allocation per request once the queue has reached its greatest length.

use headstart_types::Nanos;

use crate::{Device, Queued, Request, Scheduler, Service};

/// A request in the device's hands.
#[derive(Debug, Clone, Copy)]
struct InService {
    queued: Queued,
    started: Nanos,
    service: Service,
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// What was asked.
    pub request: Request,
    /// When it was submitted.
    pub arrived: Nanos,
    /// From the start of service to its end.
    pub service_time: Nanos,
    /// From submission to the end of service.
    pub response_time: Nanos,
    /// See [`Service::buffer_hit`].
    pub buffer_hit: bool,
}

/// What a drive has done. Sums are over completed requests, except `busy`.
///
/// Identities: `service = seek + rotation + transfer + overhead`; `response = queue + service`; with
/// concurrency 1 and nothing in service, `busy = service`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Completed requests.
    pub requests: u64,
    /// Sectors of completed requests.
    pub sectors: u64,
    /// Time with at least one request in service, up to the instant asked about.
    pub busy: Nanos,
    /// Sum of seek times.
    pub seek: Nanos,
    /// Sum of rotational waits.
    pub rotation: Nanos,
    /// Sum of transfer times.
    pub transfer: Nanos,
    /// Sum of controller overheads.
    pub overhead: Nanos,
    /// Sum of waits in the queue, from submission to the start of service.
    pub queue: Nanos,
    /// Sum of service times.
    pub service: Nanos,
    /// Sum of response times.
    pub response: Nanos,
    /// Completed requests that began in the device's buffer.
    pub buffer_hits: u64,
}

/// A device, its queue and its statistics.
pub struct Drive {
    device: Box<dyn Device>,
    scheduler: Box<dyn Scheduler>,
    /// At most `concurrency` requests, in no order.
    in_service: Vec<InService>,
    concurrency: usize,
    sequence: u64,
    busy_since: Nanos,
    done: Statistics,
}

impl Drive {
    /// An idle drive.
    #[must_use]
    pub fn new(device: Box<dyn Device>, scheduler: Box<dyn Scheduler>) -> Self {
        let concurrency = device.concurrency().max(1) as usize;
        Self {
            device,
            scheduler,
            in_service: Vec::with_capacity(concurrency.min(1024)),
            concurrency,
            sequence: 0,
            busy_since: Nanos::ZERO,
            done: Statistics::default(),
        }
    }

    /// The device, for its capacity and bounds.
    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Queues `request` at `now`. The caller guarantees that it lies within the capacity.
    #[inline]
    pub fn submit(&mut self, now: Nanos, request: Request) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.scheduler.push(Queued { request, arrived: now, sequence });
    }

    /// Starts the next request and returns the instant at which it ends.
    ///
    /// `None` when the device already serves as many as it can or nothing is queued. A device that serves
    /// several at once is filled by calling this until it gives `None`.
    #[inline]
    pub fn start(&mut self, now: Nanos) -> Option<Nanos> {
        if self.in_service.len() >= self.concurrency {
            return None;
        }
        let queued = self.scheduler.pop(now, &*self.device)?;
        if self.in_service.is_empty() {
            self.busy_since = now;
        }
        let service = self.device.serve(now, &queued.request);
        debug_assert_eq!(now + service.seek + service.rotation + service.transfer + service.overhead, service.end);
        self.in_service.push(InService { queued, started: now, service });
        Some(service.end)
    }

    /// Completes the request whose end has come at `now`: of several, the first to end, then the first to arrive.
    ///
    /// # Panics
    /// When no request ends at `now`: the host's event heap and the drive disagree.
    #[inline]
    pub fn finish(&mut self, now: Nanos) -> Finished {
        let (index, _) = self
            .in_service
            .iter()
            .enumerate()
            .min_by_key(|(_, each)| (each.service.end, each.queued.sequence))
            .expect("finish is called once for each end that start returned");
        let InService { queued, started, service } = self.in_service.swap_remove(index);
        assert_eq!(service.end, now, "finish is called at the end that start returned");
        let service_time = now - started;
        let response_time = now - queued.arrived;
        self.done.requests += 1;
        self.done.sectors += u64::from(queued.request.sectors);
        self.done.seek += service.seek;
        self.done.rotation += service.rotation;
        self.done.transfer += service.transfer;
        self.done.overhead += service.overhead;
        self.done.queue += started - queued.arrived;
        self.done.service += service_time;
        self.done.response += response_time;
        self.done.buffer_hits += u64::from(service.buffer_hit);
        if self.in_service.is_empty() {
            self.done.busy += now - self.busy_since;
        }
        Finished {
            request: queued.request,
            arrived: queued.arrived,
            service_time,
            response_time,
            buffer_hit: service.buffer_hit,
        }
    }

    /// Requests queued or in service.
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        (self.scheduler.len() + self.in_service.len()) as u32
    }

    /// Whether the device serves anything.
    #[inline]
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.in_service.is_empty()
    }

    /// What has been done up to `now`, which is not before the last event.
    #[must_use]
    pub fn statistics(&self, now: Nanos) -> Statistics {
        let mut statistics = self.done;
        if self.is_busy() {
            statistics.busy += now - self.busy_since;
        }
        statistics
    }
}
