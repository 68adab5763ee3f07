//! Random load that keeps to the contract of a device, and the checks that every device must pass under it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};

use headstart_device::{build_array, Device, Request, Service, ARRAYS, MODELS};
use headstart_types::{stream_seed, Nanos};
use proptest::prelude::*;

/// One request: the gap before it, its place and length, and whether it is a write.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// 0 for none, 1 to wait for an end, else nanoseconds.
    gap: u64,
    /// Shares of the capacity in 2^32, or sectors near the last request.
    place: u64,
    near: bool,
    sectors: u32,
    write: bool,
}

impl Load {
    /// The same request as a read.
    pub fn into_read(self) -> Self {
        Self { write: false, ..self }
    }
}

/// Up to `most` requests: single and in bursts, near and far, small and large.
pub fn load(most: usize) -> impl Strategy<Value = Vec<Load>> {
    let gap = prop_oneof![Just(0u64), Just(1), 2u64..100_000, 2u64..30_000_000];
    let sectors = prop_oneof![1u32..20, Just(8), Just(16), 1u32..2_000];
    // Occasionally at the end of the disk.
    let place = prop_oneof![6 => 0u64..1 << 32, 1 => (1u64 << 32) - 200..1 << 32];
    let one = (gap, place, any::<bool>(), sectors, prop::bool::weighted(0.3));
    let one = one.prop_map(|(gap, place, near, sectors, write)| Load { gap, place, near, sectors, write });
    prop::collection::vec(one, 1..most)
}

/// Every row of the registry with its defaults.
pub fn every_model() -> Vec<(String, Box<dyn Device>)> {
    let build = |row: &headstart_device::Model| {
        let mut keys = row.keys.defaults();
        if row.name == "uniform" {
            keys.insert("fetch_time".into(), "2ms".into());
        }
        (row.name.to_owned(), row.build(keys).unwrap())
    };
    MODELS.iter().map(build).collect()
}

/// `model` with some members behind each controller, in units that need not match its pages.
pub fn every_array(model: &(String, Box<dyn Device>), members: u32, unit: u64) -> Vec<(String, Box<dyn Device>)> {
    let mut all = Vec::new();
    for row in ARRAYS.iter().filter(|row| !row.is_independent()) {
        for keys in ["", "failed = 1", "queue_depth = 3"] {
            let keys: toml::Table = keys.parse().unwrap();
            let built = build_array(row.name, members, Box::new(Spy::new(model.1.clone())), unit, keys.clone());
            match built {
                Ok(array) => all.push((format!("{} of {members} {}, {keys}", row.name, model.0), array)),
                Err(error) => assert!(["failed", "count"].contains(&error.key.as_str()), "{error}"),
            }
        }
    }
    all
}

/// A request to a member: its index, start and end, the request.
pub type Log = Arc<Mutex<Vec<(usize, Nanos, Nanos, Request)>>>;

/// A device that asserts that its caller keeps to the contract, and logs its requests.
#[derive(Clone)]
pub struct Spy {
    inner: Box<dyn Device>,
    index: usize,
    last: Nanos,
    ends: Vec<Nanos>,
    pub log: Log,
}

impl Spy {
    pub fn new(inner: Box<dyn Device>) -> Self {
        Self { inner, index: 0, last: Nanos::ZERO, ends: Vec::new(), log: Log::default() }
    }
}

impl Device for Spy {
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        assert!(now >= self.last, "time goes backwards");
        self.last = now;
        self.ends.retain(|end| *end > now);
        assert!(self.ends.len() < self.concurrency() as usize, "more in progress than it serves at once");
        assert!(request.sectors > 0 && request.end() <= self.capacity_sectors().unwrap_or(u64::MAX), "{request:?}");
        let service = self.inner.serve(now, request);
        self.ends.push(service.end);
        self.log.lock().unwrap().push((self.index, now, service.end, *request));
        service
    }

    fn capacity_sectors(&self) -> Option<u64> {
        self.inner.capacity_sectors()
    }

    fn least_service(&self, sectors: u32) -> Nanos {
        self.inner.least_service(sectors)
    }

    fn least_transfer(&self, sectors: u64) -> Nanos {
        self.inner.least_transfer(sectors)
    }

    fn nominal_service(&self) -> Nanos {
        self.inner.nominal_service()
    }

    fn concurrency(&self) -> u32 {
        self.inner.concurrency()
    }

    fn head_sector(&self) -> u64 {
        self.inner.head_sector()
    }

    fn positioning(&self, now: Nanos, request: &Request) -> Nanos {
        assert!(now >= self.last, "asked about the past");
        self.inner.positioning(now, request)
    }

    fn travel(&mut self, now: Nanos, sector: u64) -> Nanos {
        assert!(self.ends.iter().all(|end| *end <= now), "moved while it serves");
        self.inner.travel(now, sector)
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    /// A controller with seed 0 gives its member of index i this seed, from which the spy knows its index.
    fn reseed(&mut self, seed: u64) {
        self.index = (0..64).find(|&index| stream_seed(0, "member", index) == seed).unwrap_or(0) as usize;
        self.inner.reseed(seed);
    }
}

/// Sends `load` to `device` as fast as it specifies and the device accepts; returns each request and its service.
pub fn drive(device: &mut dyn Device, load: &[Load]) -> Vec<(Nanos, Request, Service)> {
    let capacity = device.capacity_sectors().unwrap_or(1 << 40);
    let concurrency = device.concurrency() as usize;
    assert!(concurrency >= 1);
    let (mut now, mut at, mut ends, mut all) = (Nanos::ZERO, 0, BinaryHeap::new(), Vec::new());
    for (index, each) in load.iter().enumerate() {
        now += if each.gap > 1 { Nanos(each.gap) } else { Nanos::ZERO };
        while let Some(&Reverse(end)) = ends.peek() {
            if end > now && ends.len() < concurrency && each.gap != 1 {
                break;
            }
            now = now.max(end);
            ends.pop();
        }
        let sectors = u64::from(each.sectors).min(capacity);
        let far = ((u128::from(each.place) * u128::from(capacity)) >> 32) as u64;
        let sector = if each.near { at + each.place % 64 } else { far }.min(capacity - sectors);
        let request = Request { write: each.write, ..Request::read(sector, sectors as u32, index as u64) };
        at = request.end();
        let service = device.serve(now, &request);
        ends.push(Reverse(service.end));
        all.push((now, request, service));
    }
    all
}

/// Parts sum, nothing is faster than the bound, queries have no side effects, a copy behaves the same.
pub fn keeps_the_contract(name: &str, mut device: Box<dyn Device>, load: &[Load]) -> Result<(), TestCaseError> {
    device.reseed(7);
    let mut copy = device.clone();
    let all = drive(&mut *device, load);
    let mut previous = Nanos::ZERO;
    for (now, request, service) in &all {
        let Service { end, seek, rotation, transfer, overhead, wait, .. } = *service;
        prop_assert_eq!(*now + seek + rotation + transfer + overhead + wait, end, "{}: parts of {:?}", name, request);
        let least = copy.least_service(request.sectors);
        prop_assert!(end >= *now + least, "{}: {:?} took {}, less than {}", name, request, end - *now, least);
        let asked = copy.positioning(*now, request);
        prop_assert_eq!(copy.positioning(*now, request), asked, "{}: asking is without effect", name);
        prop_assert_eq!(copy.serve(*now, request), *service, "{}: a copy does the same", name);
        prop_assert_eq!(copy.head_sector(), request.end(), "{}: the head is where the last request ended", name);
        if device.concurrency() == 1 {
            prop_assert!(end >= previous, "{}: ends in order", name);
            previous = end;
        }
    }
    Ok(())
}
