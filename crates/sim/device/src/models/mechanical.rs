//! A disk drive with an arm, rotating platters and a buffer, from a profile's numbers.
//!
//! A request costs controller overhead, then arm or head movement, then the wait for its first sector, then the media
//! time (including the gaps of the skews), then the bus time of the last sector; or only overhead and bus if the buffer
//! holds it. The activity of head and buffer since the last request (reading ahead, writing out) is a function of time
//! that is computed when the next request arrives: nothing is simulated in between.
//!
//! After Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994, and the parameters
//! of DiskSim 4 (Bucy, Schindler, Schlosser, Ganger and others, CMU-PDL-08-101), whose extracted drives can be
//! imported. The buffer is one stream (`single.rs`) or several segments (`segmented.rs`). Differences from DiskSim:
//! requests are processed one at a time, so none overtakes another; there is no bus contention; reading ahead stops at
//! the end of its zone; a buffered write is accepted while earlier ones are written out as long as a write segment is
//! free.
//!
//! Cost: one to three divisions for a sequential read, about thirty for a random one; no allocation, no floating point.
//! Memory: 8 bytes per cylinder for the seek table, shared between copies.

use std::sync::Arc;

use headstart_types::{KeyError, Nanos};

use super::parameters::{BufferShape, Parameters};
use super::segmented::Segmented;
use super::single::Single;
use crate::device::Band;
use crate::{Device, Mechanics, Request, Service, Wanted};

/// The kind of buffer, and its state.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a drive has one")]
pub(crate) enum Cache {
    Single(Single),
    Segmented(Segmented),
}

#[derive(Debug, Clone)]
pub struct Mechanical {
    parameters: Arc<Parameters>,
    cache: Cache,
    head_sector: u64,
}

impl Mechanical {
    pub(crate) fn new(parameters: Parameters, cache: Cache) -> Self {
        Self { parameters: Arc::new(parameters), cache, head_sector: 0 }
    }
}

impl Device for Mechanical {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        self.head_sector = request.end();
        match &mut self.cache {
            Cache::Single(single) => single.serve(&self.parameters, now, request),
            Cache::Segmented(segmented) => segmented.serve(&self.parameters, now, request),
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        Some(self.parameters.arm.sectors)
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        let bus = |write| self.parameters.bus.time(sectors, write);
        self.parameters.overheads.least() + bus(false).min(bus(true))
    }

    /// Each sector passes the head before it is delivered, at most at the rate of the zone with the longest tracks, and
    /// crosses the bus.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        let Parameters { arm, bus, .. } = &*self.parameters;
        let media = arm.zones.iter().map(|zone| zone.rotation.least_span(sectors)).min().unwrap_or(Nanos::ZERO);
        media.max(bus.least_time(sectors))
    }

    /// Each run but the first is reached from another one: by moving over the cylinders to the nearest, or by reading
    /// the sectors between them. Nothing passes the head during a movement.
    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        let arm = &self.parameters.arm;
        let whole = self.least_transfer(wanted.sectors());
        let Some(distances) = arm.distances(wanted.runs) else { return whole };
        let seeks = arm.seek.least_from();
        let span =
            |sectors| arm.zones.iter().map(|zone| zone.rotation.least_span(sectors)).min().unwrap_or(Nanos::ZERO);
        let gaps: Vec<u64> = wanted.gaps().collect();
        let nearest =
            |at: usize| [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| gaps.get(at)).min();
        let enter = |(at, distance): (usize, &u32)| match nearest(at) {
            Some(gap) => seeks[*distance as usize].min(span(*gap)),
            None => Nanos::ZERO,
        };
        let times: Vec<Nanos> = distances.iter().enumerate().map(enter).collect();
        let first = times.iter().max().copied().unwrap_or(Nanos::ZERO);
        let moving = times.iter().map(|time| u128::from(time.0)).sum::<u128>() - u128::from(first.0);
        let moving = Nanos(u64::try_from(moving).unwrap_or(u64::MAX));
        whole.max(Nanos(span(wanted.sectors()).0.saturating_add(moving.0)))
    }

    fn nominal_service(&self) -> Nanos {
        self.parameters.nominal_service
    }

    fn head_sector(&self) -> u64 {
        self.head_sector
    }

    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        match &self.cache {
            Cache::Single(single) => single.positioning(&self.parameters, now, request),
            Cache::Segmented(segmented) => segmented.positioning(&self.parameters, now, request),
        }
    }

    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        match &mut self.cache {
            Cache::Single(single) => single.travel(&self.parameters, now, sector),
            Cache::Segmented(segmented) => segmented.travel(&self.parameters, now, sector),
        }
    }

    fn mechanics(&self) -> Option<Mechanics> {
        let Parameters { arm, overheads, bus, .. } = &*self.parameters;
        let BufferShape { segments, sectors, reads_ahead, reads_ahead_on_sequence, reads_during_overhead } =
            match &self.cache {
                Cache::Single(single) => single.buffer_shape(),
                Cache::Segmented(segmented) => segmented.buffer_shape(),
            };
        let bands = arm.zones.iter().map(|zone| Band {
            first: zone.first,
            sectors: zone.end - zone.first,
            first_cylinder: zone.first_cylinder,
            cylinders: zone.cylinders,
            sectors_per_track: zone.track_sectors as u32,
            bytes_per_second: zone.bytes_per_second(),
        });
        Some(Mechanics {
            rpm: arm.rpm,
            surfaces: arm.surfaces,
            head_switch: arm.head_switch,
            write_settle: Nanos(arm.write_settle.max(0).unsigned_abs()),
            seek: arm.seek.times().to_vec(),
            bands: bands.collect(),
            hit_overhead: overheads.whole_read(overheads.read_hit[0]),
            miss_overhead: overheads.whole_read(overheads.read_miss[0]) + overheads.first_reselect,
            bus_sector_ns: bus.sector_ns(),
            segments,
            segment_sectors: sectors,
            reads_ahead,
            reads_ahead_on_sequence,
            reads_during_overhead,
        })
    }

    fn divide_buffer(&mut self, segments: u64) -> Result<(), KeyError> {
        match &mut self.cache {
            Cache::Single(_) => {
                let allowed = "a drive whose profile has buffer.segments";
                Err(KeyError::new("", "the buffer is one stream and has no segments", allowed))
            }
            Cache::Segmented(segmented) => {
                *segmented = segmented.divided(segments)?;
                Ok(())
            }
        }
    }

    fn redivide_buffer(&mut self, now: Nanos, segments: u64) -> bool {
        match &mut self.cache {
            Cache::Single(_) => false,
            Cache::Segmented(segmented) => segmented.redivide(&self.parameters, now, segments),
        }
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
