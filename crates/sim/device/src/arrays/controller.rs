//! A controller with disks of one model behind it, as one device: the common part of all arrays.
//!
//! It accepts up to `queue_depth` commands and forwards each at once. The scheme (`raid0.rs`, `raid5.rs`, `mirror.rs`)
//! splits a command into pieces. The controller has no cost and no cache, and its host link has no rate limit. A
//! request reports the times of the piece that ends last, including its wait for its disk.

use headstart_types::{keys, stream_seed, DriveFacts, KeyError, Nanos};

use super::members::Members;
use crate::{Device, Mechanics, Request, Service};

/// How an array splits a request and places its pieces.
pub trait Scheme: Clone + Send + 'static {
    /// Serves a request that lies within the capacity.
    fn serve(&self, members: &mut Members, now: Nanos, request: &Request) -> Service;

    /// Sectors of the volume on disks of `member` sectors each.
    fn capacity_sectors(&self, member: u64) -> u64;

    /// A disk that holds `sector`, and the sector there.
    fn place(&self, sector: u64) -> (usize, u64);

    /// A lower bound, over all positions, of the largest piece of a request of `sectors` sectors.
    fn largest_piece(&self, sectors: u32) -> u32;

    /// Number of disks over which a long run is spread; at least 1.
    fn data_disks(&self) -> u64;

    /// As [`Device::positioning`].
    fn positioning(&self, members: &Members, now: Nanos, request: &Request) -> Nanos {
        let (member, sector) = self.place(request.sector);
        members.positioning(member, now, &Request { sector, ..*request })
    }
}

keys! {
    /// Keys of an array behind one controller.
    pub struct JoinedKeys {
        /// Maximum number of outstanding commands at the controller.
        #[schemars(range(min = 1, max = 65_536), extend("x-absent" = "as many commands as its disks serve \
        concurrently"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue_depth: Option<u32> = None,
    }
}

#[derive(Clone)]
pub struct Controller<S> {
    scheme: S,
    members: Members,
    queue_depth: u32,
    head_sector: u64,
}

impl<S: Scheme> Controller<S> {
    /// `count` disks like `member`; without a depth, as many commands as they serve concurrently.
    ///
    /// # Errors
    /// At `count`, if it is zero.
    pub fn try_new(scheme: S, count: u32, member: Box<dyn Device>, queue_depth: Option<u32>) -> Result<Self, KeyError> {
        if count == 0 {
            return Err(KeyError::new("count", "no disk", "a whole number from 1"));
        }
        let queue_depth = queue_depth.unwrap_or_else(|| count.saturating_mul(member.concurrency().max(1)));
        Ok(Self { scheme, members: Members::new(count, member), queue_depth, head_sector: 0 })
    }
}

impl<S: Scheme> Device for Controller<S> {
    #[inline]
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        self.head_sector = request.end();
        self.scheme.serve(&mut self.members, now, request)
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.members.any().capacity_sectors().map(|sectors| self.scheme.capacity_sectors(sectors))
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        self.members.any().least_service(self.scheme.largest_piece(sectors))
    }

    /// Spread evenly over all disks. With a failed disk, parity is read instead of its data from the other disks: at
    /// least as many sectors of a row are read as are delivered of it.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        self.members.any().least_transfer(sectors.div_ceil(self.members.len() as u64))
    }

    /// The value of one disk: most requests are one piece.
    fn nominal_service(&self) -> Nanos {
        self.members.any().nominal_service()
    }

    fn concurrency(&self) -> u32 {
        self.queue_depth
    }

    fn head_sector(&self) -> u64 {
        self.head_sector
    }

    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        self.scheme.positioning(&self.members, now, request)
    }

    /// All arms move to the same place.
    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        let (_, sector) = self.scheme.place(sector);
        self.members.devices_mut().map(|device| device.travel(now, sector)).max().unwrap_or(now)
    }

    /// The mechanics of one disk.
    fn mechanics(&self) -> Option<Mechanics> {
        self.members.any().mechanics()
    }

    /// The arm of one disk at the combined rate of the disks that hold data: a run longer than a row of units keeps all
    /// disks busy, and their arms move together. For shorter runs, and for mirrors that share the work, this
    /// overestimates.
    fn drive_facts(&self) -> Option<DriveFacts> {
        self.members.any().drive_facts().map(|facts| facts.over(self.scheme.data_disks()))
    }

    fn divide_buffer(&mut self, segments: u64) -> Result<(), KeyError> {
        self.members.devices_mut().try_for_each(|device| device.divide_buffer(segments))
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    /// Each disk gets its own seed.
    fn reseed(&mut self, seed: u64) {
        for (index, device) in self.members.devices_mut().enumerate() {
            device.reseed(stream_seed(seed, "member", index as u64));
        }
    }
}

/// Maximum number of units that a request of `sectors` sectors touches.
pub fn units_at_most(sectors: u32, unit_sectors: u64) -> u64 {
    (u64::from(sectors) + unit_sectors).saturating_sub(2) / unit_sectors + 1
}

/// Checks the stripe unit.
pub fn whole_unit(unit_sectors: u64) -> Result<u64, KeyError> {
    match unit_sectors {
        0 => Err(KeyError::new("stripe_unit", "must be above zero", "a size of at least a sector")),
        // A unit's first sector times the number of disks stays within 64 bits.
        more if more > 1 << 40 => Err(KeyError::new("stripe_unit", "is too large", "at most 2^40 sectors")),
        unit => Ok(unit),
    }
}
