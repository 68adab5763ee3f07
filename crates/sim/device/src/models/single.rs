//! A drive whose whole buffer serves one stream of reads: the old form of a profile's `buffer`.
//!
//! A read that starts in the buffer, or at the sector that the read-ahead is about to read, costs the overhead and the
//! bus, or waits for the media if that is later: sequential reads run at the speed of the media. A read beyond that
//! repositions. A write ends the stream and empties the buffer, and is done when it is on the media (no immediate
//! reporting). Reading ahead stops at the end of its zone.
//!
//! After Ruemmler and Wilkes 1994 and Kotz, Toh and Radhakrishnan 1994, as used by Kimbrel and others for the HP 97560.
//! Cost: one to three divisions for a sequential read, about ten for a reposition; no allocation.

use headstart_types::Nanos;

use super::arm::Passage;
use super::geometry::{Access, HeadPosition, Zone};
use super::parameters::{BufferShape, Parameters};
use super::stream::Stream;
use crate::{Request, Service};

#[derive(Debug, Clone)]
pub(crate) struct Single {
    /// Sectors of the buffer; 0 for none.
    buffer: u64,
    /// Sectors read ahead: the buffer's size, or 0.
    ahead: u64,
    /// Sectors of the buffer and the shortest time in which they can be read.
    fill: (u64, Nanos),
    /// The stream that the head follows, if the last request was a read.
    stream: Option<Stream>,
    /// Where the head rests without a stream.
    rest: HeadPosition,
    /// Whether the last request was a write.
    after_write: bool,
}

impl Single {
    /// An empty buffer of `buffer` sectors.
    pub fn new(buffer: u64, read_ahead: bool, zones: &[Zone]) -> Self {
        let fastest = |zone: &Zone| zone.rotation.span(buffer);
        let fill = Nanos(zones.iter().map(fastest).min().unwrap_or(0).saturating_sub(1));
        let rest = HeadPosition { cylinder: 0, surface: 0 };
        let ahead = if read_ahead { buffer } else { 0 };
        Self { buffer, ahead, fill: (buffer, fill), stream: None, rest, after_write: false }
    }

    /// See [`BufferShape`].
    pub fn buffer_shape(&self) -> BufferShape {
        let segments = u32::from(self.buffer > 0);
        let [reads_ahead_on_sequence, reads_during_overhead] = [false; 2];
        let reads_ahead = self.ahead > 0;
        BufferShape { segments, sectors: self.buffer, reads_ahead, reads_ahead_on_sequence, reads_during_overhead }
    }

    /// Whether a read from `sector` continues the stream.
    fn holds(&self, parameters: &Parameters, now: Nanos, sector: u64) -> bool {
        let holds = |stream: &Stream| stream.holds(&parameters.arm.zones[stream.zone], sector, self.buffer, now);
        self.buffer != 0 && self.stream.as_ref().is_some_and(holds)
    }

    /// Continues the stream if the request starts in it: when its part within the run has been read, when the bus has
    /// moved the sectors that were read late, and where the run ends.
    #[inline]
    fn follow(
        &mut self,
        parameters: &Parameters,
        now: Nanos,
        ready: Nanos,
        request: &Request,
    ) -> Option<(Nanos, Nanos, u64)> {
        let arm = &parameters.arm;
        let stream = self.stream.as_mut().filter(|_| self.buffer != 0)?;
        let zone = &arm.zones[stream.zone];
        if !stream.holds(zone, request.sector, self.buffer, now) {
            return None;
        }
        let limit = zone.run_end(request.sector);
        let end = request.end().min(limit);
        let stop = (end + self.ahead).min(limit);
        stream.extend(zone, stop, ready, |from, to| arm.movement(from, to, Access::Read));
        let run = (request.sector, end, request.end());
        let (done, bus_end) = stream.read_to_bus(zone, run, self.fill, &parameters.bus);
        Some((done, bus_end, end))
    }

    /// Where the head is at `now`.
    fn head(&self, parameters: &Parameters, now: Nanos) -> HeadPosition {
        match &self.stream {
            Some(stream) => stream.head(&parameters.arm.zones[stream.zone], now),
            None => self.rest,
        }
    }

    /// Passes over `run` from `time` on and leaves the stream there.
    fn reposition(
        &mut self,
        parameters: &Parameters,
        time: Nanos,
        head: HeadPosition,
        run: (u64, u64),
        access: Access,
    ) -> Passage {
        let passage = match access {
            Access::Read => parameters.arm.pass_to_bus(time, head, run, &parameters.bus),
            Access::Write => parameters.arm.pass((time, Nanos::ZERO), head, run, access),
        };
        self.rest = passage.head;
        self.stream = match access {
            Access::Write => None,
            Access::Read => {
                let piece = &passage.last;
                let stop = (piece.end + self.ahead).min(parameters.arm.zones[piece.zone].run_end(piece.from));
                let fill = if stop - piece.end >= self.buffer { self.fill.1 } else { Nanos::ZERO };
                Some(Stream::new(piece, stop, passage.done + fill))
            }
        };
        passage
    }

    /// See [`crate::Device::serve`].
    #[inline]
    pub fn serve(&mut self, parameters: &Parameters, now: Nanos, request: &Request) -> Service {
        let Parameters { overheads, bus_sector, .. } = parameters;
        let bus = parameters.bus.time(request.sectors, request.write);
        let after = usize::from(std::mem::replace(&mut self.after_write, request.write));
        if !request.write {
            let overhead = overheads.read_hit[after];
            let ready = now + overhead;
            if let Some((mut done, mut bus_end, reached)) = self.follow(parameters, now, ready, request) {
                if request.end() > reached {
                    let from = done.max(ready);
                    let head = self.head(parameters, from);
                    let passage = self.reposition(parameters, from, head, (reached, request.end()), Access::Read);
                    let rest = parameters.bus.time((request.end() - reached) as u32, false);
                    done = passage.done;
                    bus_end = bus_end.max(passage.bus_end).max(passage.first + rest);
                }
                let end = (ready + bus).max(done + bus_sector[0]).max(bus_end);
                let transfer = end - ready;
                let [seek, rotation, wait] = [Nanos::ZERO; 3];
                return Service { end, seek, rotation, transfer, overhead, wait, buffer_hit: true };
            }
        }
        let (overhead, access) = match request.write {
            true => (overheads.write_miss[after], Access::Write),
            false => (overheads.read_miss[after], Access::Read),
        };
        let ready = now + overhead;
        let head = self.head(parameters, now);
        let run = (request.sector, request.end());
        let Passage { seek, rotation, first, done, bus_end, .. } =
            self.reposition(parameters, ready, head, run, access);
        let end = if request.write {
            // The data crosses the bus while the arm moves.
            done.max(ready + bus)
        } else {
            // Sectors cross the bus as they are read; the slower of media and bus determines the rate.
            (done + bus_sector[0]).max(first + bus).max(bus_end)
        };
        // If a write's data takes longer on the bus than all else, the excess is transfer.
        let transfer = end - ready - seek - rotation;
        Service { end, seek, rotation, transfer, overhead, wait: Nanos::ZERO, buffer_hit: false }
    }

    /// See [`crate::Device::positioning`].
    pub fn positioning(&self, parameters: &Parameters, now: Nanos, request: &Request) -> Nanos {
        if !request.write && self.holds(parameters, now, request.sector) {
            return Nanos::ZERO;
        }
        let after = usize::from(self.after_write);
        let (overhead, access) = match request.write {
            true => (parameters.overheads.write_miss[after], Access::Write),
            false => (parameters.overheads.read_miss[after], Access::Read),
        };
        let run = (request.sector, request.sector + 1);
        let times = (now + overhead, Nanos::ZERO);
        let passage = parameters.arm.pass(times, self.head(parameters, now), run, access);
        passage.seek + passage.rotation
    }

    /// See [`crate::Device::travel`].
    pub fn travel(&mut self, parameters: &Parameters, now: Nanos, sector: u64) -> Nanos {
        let arm = &parameters.arm;
        let head = self.head(parameters, now);
        let zone = &arm.zones[arm.zone_of(sector)];
        let to = HeadPosition { surface: head.surface, ..zone.locate(sector, Access::Read).1 };
        self.stream = None;
        self.rest = to;
        now + arm.movement(head, to, Access::Read)
    }
}
