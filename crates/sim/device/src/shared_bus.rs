//! A bus or controller shared by several disks: it carries one transfer at a time.
//!
//! A read's data may cross as they come from the disk, the last when the disk has read them; a write's cross before the
//! disk begins. A request occupies the bus for its `command` and its bytes, without a break, in the first sufficiently
//! long gap: a disk that will need the bus late does not delay one that needs it now. Requests get their gaps in the
//! order in which disks begin them. A request's wait for the bus delays its disk's next request, as for a disk that
//! does not disconnect.
//!
//! Not modelled: arbitration by priority, disks that disconnect and read on in the meantime, selection time (it is part
//! of `command`). Cost: a step per outstanding request of the disks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headstart_types::{as_text, keys, DriveFacts, KeyError, Nanos};

use crate::{Device, Mechanics, Request, Service, Wanted, SECTOR_BYTES};

keys! {
    /// Keys of a bus that disks share.
    pub struct SharedBusKeys {
        /// Rate of the bus.
        #[schemars(range(min = 1_000, max = 1_000_000_000_000u64))]
        pub bytes_per_second: u64 = 20_000_000,
        /// Bus time of each request in addition to its data.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1s"))]
        pub command: Nanos = Nanos::ZERO,
        /// Number of disks per bus. There are as many buses as the disks need.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-absent" = "all"))]
        pub disks: Option<u32> = None,
    }
}

/// The bookings of a bus, without their disks.
#[derive(Debug)]
struct Bus {
    bytes_per_second: u64,
    command: Nanos,
    /// Bookings that are not over, in order, without overlaps.
    booked: VecDeque<(Nanos, Nanos)>,
}

impl Bus {
    fn span(&self, sectors: u32) -> Nanos {
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        self.command + Nanos((bytes * 1_000_000_000).div_ceil(self.bytes_per_second.into()) as u64)
    }

    /// Books `span` from `earliest` on, and returns its start. Later calls never refer to times before `now`.
    fn book(&mut self, now: Nanos, earliest: Nanos, span: Nanos) -> Nanos {
        while self.booked.front().is_some_and(|(_, end)| *end <= now) {
            self.booked.pop_front();
        }
        let (mut begin, mut at) = (earliest, self.booked.len());
        for (index, (from, to)) in self.booked.iter().enumerate() {
            if begin + span <= *from {
                at = index;
                break;
            }
            begin = begin.max(*to);
        }
        self.booked.insert(at, (begin, begin + span));
        begin
    }
}

/// A device behind a shared bus.
struct Behind {
    device: Box<dyn Device>,
    bus: Arc<Mutex<Bus>>,
}

/// Puts `device`, and all clones of the result, behind one bus.
#[must_use]
pub fn on_shared_bus(device: Box<dyn Device>, keys: &SharedBusKeys) -> Box<dyn Device> {
    let &SharedBusKeys { bytes_per_second, command, .. } = keys;
    let bus = Bus { bytes_per_second, command, booked: VecDeque::new() };
    Box::new(Behind { device, bus: Arc::new(Mutex::new(bus)) })
}

impl Behind {
    fn bus(&self) -> MutexGuard<'_, Bus> {
        // The data behind the lock is consistent even after a panic.
        self.bus.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Behind {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        let service = self.device.serve(now, request);
        let mut bus = self.bus();
        let span = bus.span(request.sectors);
        let end = if request.write {
            let begin = bus.book(now, now, span);
            service.end.max(now + span) + (begin - now)
        } else {
            bus.book(now, service.end.saturating_sub(span).max(now), span) + span
        };
        Service { end, wait: service.wait + (end - service.end), ..service }
    }

    fn holds_objects(&self) -> bool {
        self.device.holds_objects()
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.device.capacity_sectors()
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        self.device.least_service(sectors).max(self.bus().span(sectors))
    }

    /// A shared bus carries at least what this device moves.
    fn least_transfer(&self, sectors: u64) -> Nanos {
        let bytes = u128::from(sectors) * u128::from(SECTOR_BYTES);
        let carried = Nanos((bytes * 1_000_000_000 / u128::from(self.bus().bytes_per_second)) as u64);
        self.device.least_transfer(sectors).max(carried)
    }

    fn least_reads(&self, wanted: &Wanted<'_>) -> Nanos {
        self.device.least_reads(wanted).max(self.least_transfer(wanted.sectors()))
    }

    fn nominal_service(&self) -> Nanos {
        self.device.nominal_service()
    }

    fn concurrency(&self) -> u32 {
        self.device.concurrency()
    }

    fn head_sector(&self) -> u64 {
        self.device.head_sector()
    }

    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        self.device.positioning(now, request)
    }

    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        self.device.travel(now, sector)
    }

    fn mechanics(&self) -> Option<Mechanics> {
        self.device.mechanics()
    }

    fn drive_facts(&self) -> Option<DriveFacts> {
        self.device.drive_facts()
    }

    fn divide_buffer(&mut self, segments: u64) -> Result<(), KeyError> {
        self.device.divide_buffer(segments)
    }

    fn redivide_buffer(&mut self, now: Nanos, segments: u64) -> bool {
        self.device.redivide_buffer(now, segments)
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(Self { device: self.device.clone(), bus: self.bus.clone() })
    }

    fn reseed(&mut self, seed: u64) {
        self.device.reseed(seed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toml::Table;

    use super::*;
    use crate::build_device;

    /// Reads take 1 ms; a bus of 1 MB/s carries a block of 512 B in 512 us.
    fn two(command: u64) -> [Box<dyn Device>; 2] {
        let keys: Table = "fetch_time = '1ms'".parse().expect("it is TOML");
        let keys_of_bus =
            SharedBusKeys { bytes_per_second: 1_000_000, command: Nanos(command), ..SharedBusKeys::default() };
        let first = on_shared_bus(build_device("uniform", keys).expect("shipped"), &keys_of_bus);
        [first.clone(), first]
    }

    #[test]
    fn by_hand() {
        let read = Request::read(0, 1, 0);
        let [mut one, mut two] = two(88_000);
        // The bus is busy from 400 us to 1 ms; then from 1 to 1.6 ms.
        assert_eq!(one.serve(Nanos(0), &read).end, Nanos(1_000_000));
        let service = two.serve(Nanos(0), &read);
        assert_eq!((service.end, service.wait), (Nanos(1_600_000), Nanos(600_000)));
        // A preceding write is sent in the first gap of 600 us: from 1.6 ms on.
        assert_eq!(one.serve(Nanos(1_000_000), &Request::write(0, 1, 0)).end, Nanos(2_600_000));
        // Later the bus is free.
        assert_eq!(two.serve(Nanos(3_000_000), &read).end, Nanos(4_000_000));
        // Four blocks occupy the bus for 88 + 2,048 us, longer than the disk takes; a gap before them is too short.
        assert_eq!(one.serve(Nanos(3_000_000), &Request::read(0, 4, 0)).end, Nanos(4_000_000 + 2_136_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn nothing_overlaps_on_the_bus_and_nothing_is_faster_for_it(
            load in prop::collection::vec((0u64..3_000_000, 1u32..9, any::<bool>()), 1..60),
        ) {
            let [mut one, mut two] = two(10_000);
            let mut now = Nanos::ZERO;
            let mut carried = Nanos::ZERO;
            let mut last = Nanos::ZERO;
            for (gap, sectors, write) in load {
                now += Nanos(gap);
                let request = Request { write, ..Request::read(0, sectors, 0) };
                // Each disk serves one at a time.
                for device in [&mut one, &mut two] {
                    let service = device.serve(now, &request);
                    prop_assert!(service.end >= now + Nanos::from_millis(1));
                    prop_assert!(service.end >= now + device.least_service(sectors));
                    let parts = service.seek + service.rotation + service.transfer + service.overhead + service.wait;
                    prop_assert_eq!(parts, service.end - now);
                    last = last.max(service.end);
                }
                carried += Nanos((10_000 + 512_000 * u64::from(sectors)) * 2);
                now = last;
            }
            prop_assert!(carried <= last, "the bus carries one at a time");
        }
    }
}
