//! A controller with disks of one model behind it, as one device: what all arrays have in common.
//!
//! It holds up to `queue_depth` commands and passes each on at once. What a scheme does with a command is its own
//! affair (`raid0.rs`, `raid5.rs`, `mirror.rs`). The controller itself costs no time and has no cache, and the way to
//! it has no limit of rate. A request reports the parts of the piece that ends last, with its wait for its disk.

use headstart_types::{keys, stream_seed, DriveFacts, KeyError, Nanos};

use super::members::Members;
use crate::{Device, Mechanics, Request, Service};

/// How an array cuts a request and where its pieces lie.
pub trait Scheme: Clone + Send + 'static {
    /// Serves a request that lies within the capacity.
    fn serve(&self, members: &mut Members, now: Nanos, request: &Request) -> Service;

    /// Sectors of the volume on disks of `member` sectors each.
    fn capacity_sectors(&self, member: u64) -> u64;

    /// A disk that holds `sector`, and the sector there.
    fn place(&self, sector: u64) -> (usize, u64);

    /// However a request of `sectors` sectors lies, one disk gets a piece of so many at least.
    fn largest_piece(&self, sectors: u32) -> u32;

    /// Disks over which a long run is spread, each with its share: at least 1.
    fn data_disks(&self) -> u64;

    /// As [`Device::positioning`].
    fn positioning(&self, members: &Members, now: Nanos, request: &Request) -> Nanos {
        let (member, sector) = self.place(request.sector);
        members.positioning(member, now, &Request { sector, ..*request })
    }
}

keys! {
    /// Keys of disks behind one controller.
    pub struct JoinedKeys {
        /// Commands that the controller has under way at once.
        #[schemars(range(min = 1, max = 65_536), extend("x-absent" = "as many commands as its disks serve at once"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub queue_depth: Option<u32> = None,
    }
}

/// The array.
#[derive(Clone)]
pub struct Controller<S> {
    scheme: S,
    members: Members,
    queue_depth: u32,
    head_sector: u64,
}

impl<S: Scheme> Controller<S> {
    /// `count` disks like `member`; without a depth, as many commands as they serve at once.
    ///
    /// # Errors
    /// `count`, when there is no disk.
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

    /// Evenly over all disks. Parity that stands in for a failed disk is read instead of its data, from the other disks: no
    /// fewer sectors of a row are read than are delivered of it.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        self.members.any().least_transfer(sectors.div_ceil(self.members.len() as u64))
    }

    /// That of a disk: most requests are one piece.
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

    /// All arms go to the same place.
    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        let (_, sector) = self.scheme.place(sector);
        self.members.devices_mut().map(|device| device.travel(now, sector)).max().unwrap_or(now)
    }

    /// Those of a disk.
    fn mechanics(&self) -> Option<Mechanics> {
        self.members.any().mechanics()
    }

    /// A disk's arm at the rate of all that hold data: a run longer than a row of units keeps them all busy, and they
    /// move together. Of a run shorter than that, or of mirrors that share the work, it says too much.
    fn drive_facts(&self) -> Option<DriveFacts> {
        self.members.any().drive_facts().map(|facts| facts.over(self.scheme.data_disks()))
    }

    fn divide_buffer(&mut self, segments: u64) -> Result<(), KeyError> {
        self.members.devices_mut().try_for_each(|device| device.divide_buffer(segments))
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    /// A seed of its own for each disk.
    fn reseed(&mut self, seed: u64) {
        for (index, device) in self.members.devices_mut().enumerate() {
            device.reseed(stream_seed(seed, "member", index as u64));
        }
    }
}

/// Most units that a request of `sectors` sectors touches.
pub fn units_at_most(sectors: u32, unit_sectors: u64) -> u64 {
    (u64::from(sectors) + unit_sectors).saturating_sub(2) / unit_sectors + 1
}

/// Checks the stripe unit.
pub fn whole_unit(unit_sectors: u64) -> Result<u64, KeyError> {
    match unit_sectors {
        0 => Err(KeyError::new("stripe_unit", "must be above zero", "a size of at least a sector")),
        // A unit's first sector times the number of disks stays within 64 bits.
        more if more > 1 << 40 => Err(KeyError::new("stripe_unit", "is too much", "at most 2^40 sectors")),
        unit => Ok(unit),
    }
}
