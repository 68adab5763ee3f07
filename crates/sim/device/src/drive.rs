//! A disk as the host sees it: a queue in front of a device, and the statistics of both.
//!
//! The host calls [`Drive::submit`] for each request, then [`Drive::start`] until it starts nothing more; at the end
//! that `start` returned it calls [`Drive::finish`] once, then `start` again. The host passes in the time. There is no
//! allocation per request once the queues have reached their maximum length.
//!
//! There are two queues. The host's scheduler holds what has been submitted. The drive's own command queue, if it has
//! one, accepts up to `depth` requests (including those in service) as soon as it has room and orders them with its own
//! scheduler, which knows the head position (tagged command queueing). Without a command queue, the host's scheduler
//! feeds the device. The drive's scheduler sees commands as they reach the drive: their arrival times and order count
//! from there, and their tags are the drive's. Only the scheduler that feeds the device moves the arm: a full stroke
//! requested by the host's scheduler is ignored with a command queue, as is any full stroke while a multi-channel
//! device is serving.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem;

use headstart_types::{KeyError, Nanos};

use crate::{CommandQueue, Device, Next, Queued, Request, Scheduler, Service, Statistics, Stroke};

#[derive(Debug)]
struct InService {
    /// As the scheduler that feeds the device gave it.
    queued: Queued,
    /// The requests that this scheduler merged into it; empty for a single one.
    parts: Vec<Queued>,
    started: Nanos,
    service: Service,
    /// The end that [`Drive::start`] returned.
    announced: Nanos,
    /// How many requests the device served before it.
    number: u64,
}

impl InService {
    /// A placeholder while nothing is in service.
    fn none() -> Self {
        let queued = Queued { request: Request::read(0, 1, 0), arrived: Nanos::ZERO, sequence: 0 };
        let (started, service, announced) = (Nanos::ZERO, Service::default(), Nanos::ZERO);
        Self { queued, parts: Vec::new(), started, service, announced, number: 0 }
    }

    /// Requests leave by end time, then by order of arrival.
    #[inline]
    fn key(&self) -> (Nanos, u64) {
        (self.service.end, self.queued.sequence)
    }
}

impl PartialEq for InService {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for InService {}

impl PartialOrd for InService {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap's maximum leaves first.
impl Ord for InService {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub request: Request,
    pub arrived: Nanos,
    /// From the start of service to its end; for a merged request, of the whole.
    pub service_time: Nanos,
    /// From submission to the end of service.
    pub response_time: Nanos,
    pub buffer_hit: bool,
    /// The end that [`Drive::start`] returned: an earlier one, if requests that came later share the device's rate.
    pub announced: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// A request is in service and ends at this instant, or later if the device [shares](Device::shares) a rate: see
    /// [`Drive::next_end`].
    Ends(Nanos),
    /// Nothing was started: a scheduler waits. The host calls `start` again at this instant.
    Wakes(Nanos),
    /// Nothing was started: nothing is queued, the device is at its maximum concurrency, or the queued requests must
    /// wait for the end of those in service.
    Nothing,
}

impl Statistics {
    /// Counts a completed request of the device.
    #[inline]
    fn count(&mut self, now: Nanos, ended: &InService) {
        let InService { queued, started, service, .. } = ended;
        self.requests += 1;
        self.writes += u64::from(queued.request.write);
        self.sectors += u64::from(queued.request.sectors);
        self.seek += service.seek;
        self.rotation += service.rotation;
        self.transfer += service.transfer;
        self.overhead += service.overhead;
        self.wait += service.wait;
        self.service += now - *started;
        self.buffer_hits += u64::from(service.buffer_hit);
    }

    /// Counts a completed request of the host: `ended`, or a part of it.
    #[inline]
    fn count_part(&mut self, now: Nanos, part: &Queued, ended: &InService) -> Finished {
        let response_time = now - part.arrived;
        self.parts += 1;
        self.queue_ns += u128::from((ended.started - part.arrived).0);
        self.response_ns += u128::from(response_time.0);
        Finished {
            request: part.request,
            arrived: part.arrived,
            service_time: now - ended.started,
            response_time,
            buffer_hit: ended.service.buffer_hit,
            announced: ended.announced,
        }
    }
}

/// A device, its queues and its statistics.
pub struct Drive {
    device: Box<dyn Device>,
    scheduler: Box<dyn Scheduler>,
    commands: Option<CommandQueue>,
    /// Number of requests in service: at most `concurrency`.
    serving: usize,
    concurrency: usize,
    /// Whether its queues may have work although nothing is queued, or nothing can begin.
    asks_always: bool,
    /// See [`Device::shares`].
    shares: bool,
    /// Requests that the device has served.
    served: u64,
    /// The request in service that ends first; stale if there is none. It is stored separately, since most devices
    /// serve one at a time, and is written in place.
    first: InService,
    others: BinaryHeap<InService>,
    sequence: u64,
    outstanding: u32,
    busy_since: Nanos,
    /// Scratch list for schedulers' parts; empty between calls.
    parts: Vec<Queued>,
    /// More such lists, kept for reuse.
    spare: Vec<Vec<Queued>>,
    done: Statistics,
}

impl Drive {
    /// An idle drive whose device is fed by `scheduler`.
    #[must_use]
    pub fn new(device: Box<dyn Device>, scheduler: Box<dyn Scheduler>) -> Self {
        let concurrency = device.concurrency().max(1) as usize;
        let asks_always = scheduler.idles_at_most() > Nanos::ZERO;
        Self {
            shares: device.shares(),
            served: 0,
            device,
            scheduler,
            commands: None,
            serving: 0,
            concurrency,
            asks_always,
            first: InService::none(),
            others: BinaryHeap::new(),
            sequence: 0,
            outstanding: 0,
            busy_since: Nanos::ZERO,
            parts: Vec::new(),
            spare: Vec::new(),
            done: Statistics::default(),
        }
    }

    /// Adds a command queue.
    #[must_use]
    pub fn with_commands(mut self, commands: CommandQueue) -> Self {
        self.commands = Some(commands);
        self.asks_always = true;
        self
    }

    #[must_use]
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// See [`Device::divide_buffer`]. The caller guarantees that nothing has been submitted.
    ///
    /// # Errors
    /// Without a key, if the buffer has no segments, or cannot have as many.
    pub fn divide_buffer(&mut self, segments: u64) -> Result<(), KeyError> {
        self.device.divide_buffer(segments)
    }

    /// See [`Device::redivide_buffer`]; also `false` while a request is in service.
    pub fn redivide_buffer(&mut self, now: Nanos, segments: u64) -> bool {
        !self.is_busy() && self.device.redivide_buffer(now, segments)
    }

    /// Places the arm at `sector`'s cylinder, as if it had been moved there before time zero. The caller guarantees
    /// that nothing has been submitted.
    pub fn stand_at(&mut self, sector: u64) {
        self.device.travel(Nanos::ZERO, sector);
    }

    /// Maximum number of sectors that the queues may merge into one request of the device; zero if nothing is merged.
    #[must_use]
    pub fn merges_up_to(&self) -> u32 {
        self.scheduler.merges_up_to().max(self.commands.as_ref().map_or(0, CommandQueue::merges_up_to))
    }

    /// Whether it is never idle while requests wait.
    #[must_use]
    pub fn conserves_work(&self) -> bool {
        let commands = self.commands.as_ref().map_or(Nanos::ZERO, CommandQueue::idles_at_most);
        self.scheduler.idles_at_most() == Nanos::ZERO && commands == Nanos::ZERO
    }

    /// Queues `request` at `now`. The caller guarantees that it lies within the capacity.
    #[inline]
    pub fn submit(&mut self, now: Nanos, request: Request) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.outstanding += 1;
        self.done.areas.came(now);
        self.scheduler.push(Queued { request, arrived: now, sequence });
    }

    /// Starts the next request and returns when it ends, or why none was started.
    ///
    /// To fill a device that serves several concurrently, call this until it no longer returns [`Started::Ends`].
    #[inline]
    pub fn start(&mut self, now: Nanos) -> Started {
        let device = &*self.device;
        let host_waits = self.commands.as_mut().and_then(|commands| commands.fill(now, device, &mut *self.scheduler));
        if self.serving >= self.concurrency {
            return host_waits.map_or(Started::Nothing, Started::Wakes);
        }
        let scheduler = self.commands.as_mut().map_or(&mut self.scheduler, CommandQueue::scheduler);
        // The request is read in place and copied once: a processor stalls on a load of data that was just stored in
        // parts.
        let next = scheduler.pop(now, &*self.device, &mut self.parts);
        let (queued, stroke) = match &next {
            Next::Serve(queued) => (queued, None),
            Next::ServeAfter(stroke, queued) => (queued, Some(*stroke)),
            _ => {
                debug_assert!(self.parts.is_empty());
                let waits = if let Next::Wait(until) = next { Some(until) } else { None };
                debug_assert!(waits.is_none_or(|until| until > now));
                return waits.into_iter().chain(host_waits).min().map_or(Started::Nothing, Started::Wakes);
            }
        };
        let mut begin = now;
        if !self.is_busy() {
            self.busy_since = now;
            begin = stroke.map_or(now, |stroke| self.stroke(now, stroke));
        }
        let service = self.device.serve(begin, &queued.request);
        debug_assert_eq!(
            begin + service.seek + service.rotation + service.transfer + service.overhead + service.wait,
            service.end
        );
        let parts = if self.parts.is_empty() {
            Vec::new()
        } else {
            mem::replace(&mut self.parts, self.spare.pop().unwrap_or_default())
        };
        let (announced, number) = (service.end, self.served);
        self.served += 1;
        if self.serving > 0 {
            self.join(InService { queued: *queued, parts, started: now, service, announced, number });
        } else {
            let first = &mut self.first;
            (first.queued, first.parts, first.started, first.service) = (*queued, parts, now, service);
            (first.announced, first.number) = (announced, number);
            if begin > now {
                first.service.seek += begin - now;
            }
        }
        self.serving += 1;
        self.done.areas.began(now);
        if self.shares {
            self.find_first();
        }
        Started::Ends(announced)
    }

    /// Adds a request to those in service.
    fn join(&mut self, held: InService) {
        let later = if held.key() < self.first.key() { mem::replace(&mut self.first, held) } else { held };
        self.others.push(later);
    }

    /// Finds the request that ends first of a device whose requests share a rate, and when.
    #[cold]
    fn find_first(&mut self) {
        let Some((number, end)) = self.device.first_end() else { return };
        if self.first.number != number {
            let mut others = mem::take(&mut self.others).into_vec();
            let found = others.iter_mut().find(|held| held.number == number).expect("it is in service");
            mem::swap(&mut self.first, found);
            self.others = others.into();
        }
        let InService { started, service, .. } = &mut self.first;
        service.wait = (end - *started).saturating_sub(service.overhead + service.transfer);
        service.end = end;
    }

    /// Moves the arm; a device without a capacity has no arm.
    fn stroke(&mut self, now: Nanos, stroke: Stroke) -> Nanos {
        let mut then = now;
        if let (Stroke::ToEnd | Stroke::ToEndAndStart, Some(sectors)) = (stroke, self.device.capacity_sectors()) {
            then = self.device.travel(then, sectors.saturating_sub(1));
        }
        if let Stroke::ToStart | Stroke::ToEndAndStart = stroke {
            then = self.device.travel(then, 0);
        }
        then
    }

    /// Completes the request that ends at `now`: if there are several, by order of arrival. Calls `each` for each of
    /// the requests that were merged into it, in order of arrival.
    ///
    /// # Panics
    /// If no request ends at `now`: the host's event heap and the drive disagree.
    #[inline]
    pub fn finish(&mut self, now: Nanos, mut each: impl FnMut(Finished)) {
        match self.finish_one(now) {
            Some(finished) => each(finished),
            None => self.finish_parts(now, &mut each),
        }
    }

    /// The same; returns the request unless it was merged, in which case [`Drive::finish_parts`] must be called next.
    ///
    /// # Panics
    /// As for [`Drive::finish`].
    #[inline]
    pub fn finish_one(&mut self, now: Nanos) -> Option<Finished> {
        assert!(self.serving > 0, "finish is called once for each end that start returned");
        let first = &mut self.first;
        assert_eq!(first.service.end, now, "finish is called at the end that start returned");
        self.done.count(now, first);
        if self.shares {
            self.device.ended(now);
        }
        self.serving -= 1;
        if self.serving == 0 {
            self.done.busy += now - self.busy_since;
        }
        match &mut self.commands {
            None => self.scheduler.completed(now, &first.queued),
            Some(commands) => {
                if first.parts.is_empty() {
                    first.parts = self.spare.pop().unwrap_or_default();
                }
                commands.completed(now, &first.queued, &mut first.parts, &mut *self.scheduler);
            }
        }
        if !first.parts.is_empty() {
            return None;
        }
        self.outstanding -= 1;
        self.done.areas.ended(now, 1);
        let finished = self.done.count_part(now, &first.queued, first);
        self.next_to_end();
        Some(finished)
    }

    /// Calls `each` for the parts of the merged request that was just completed, in order of arrival.
    #[cold]
    pub fn finish_parts(&mut self, now: Nanos, each: &mut dyn FnMut(Finished)) {
        let mut parts = mem::take(&mut self.first.parts);
        parts.sort_unstable_by_key(|part| part.sequence);
        self.outstanding -= parts.len() as u32;
        self.done.areas.ended(now, parts.len());
        for part in parts.drain(..) {
            each(self.done.count_part(now, &part, &self.first));
        }
        self.spare.push(parts);
        self.next_to_end();
    }

    #[inline]
    fn next_to_end(&mut self) {
        if self.serving > 0 {
            self.first = self.others.pop().expect("others are in service");
            if self.shares {
                self.find_first();
            }
        }
    }

    /// Whether calling [`Drive::start`] can have an effect: something is queued, and there is room for it. Always true
    /// if a scheduler may idle on purpose.
    #[inline]
    #[must_use]
    pub fn may_start(&self) -> bool {
        self.asks_always || (self.serving < self.concurrency && self.outstanding as usize > self.serving)
    }

    /// Requests of the host that are queued or in service; merged ones count individually.
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    #[inline]
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.serving > 0
    }

    /// When the first request in service ends.
    #[inline]
    #[must_use]
    pub fn next_end(&self) -> Option<Nanos> {
        self.is_busy().then_some(self.first.service.end)
    }

    /// The statistics up to `now`, which is not before the last event.
    #[must_use]
    pub fn statistics(&self, now: Nanos) -> Statistics {
        let mut statistics = self.done;
        if self.is_busy() {
            statistics.busy += now - self.busy_since;
            let started = std::iter::once(&self.first).chain(&self.others).map(|held| now - held.started);
            statistics.unfinished.service_ns = started.map(|time| time.0).fold(0, u64::wrapping_add);
        }
        statistics.areas = statistics.areas.up_to(now, self.outstanding, self.serving);
        statistics.unfinished.parts = self.outstanding;
        statistics
    }
}
