//! The mechanical drive compared with a second one that walks sector by sector, in 128-bit arithmetic, and its
//! invariants. The drives are small, so that borders, full buffers and stops occur often.

use headstart_device::{build_device, Device, Mechanical, Request, Service};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

const MINUTE: u128 = 60_000_000_000;

/// One zone, cylinder seeks of `seek[0] + seek[1] * distance` ns.
#[derive(Debug, Clone)]
struct Shape {
    rpm: u64,
    cylinders: u64,
    surfaces: u64,
    sectors: u64,
    skews: [u64; 2],
    switch: u64,
    seek: [u64; 2],
    overhead: u64,
    buffer: u64,
    read_ahead: bool,
    bus_bytes_per_second: u64,
}

impl Shape {
    fn profile(&self) -> Table {
        let Shape { rpm, cylinders, surfaces, sectors, skews, switch, seek, overhead, buffer, .. } = self;
        format!(
            "name = 'random'
            rpm = {rpm}
            surfaces = {surfaces}
            head_switch = '{switch}ns'
            nominal_service = '10ms'
            zones = [{{cylinders = {cylinders}, sectors_per_track = {sectors}, track_skew = {}, cylinder_skew = {}}}]
            seek = {{form = 'root-linear', boundary = 0, root = ['0s', '0s'], linear = ['{}ns', '{}ns']}}
            controller = {{overhead = '{overhead}ns'}}
            bus = {{bytes_per_second = {}}}
            buffer = {{size = '{}B', read_ahead = {}}}",
            skews[0],
            skews[1],
            seek[0],
            seek[1],
            self.bus_bytes_per_second,
            buffer * 512,
            self.read_ahead,
        )
        .parse()
        .unwrap()
    }

    fn capacity(&self) -> u64 {
        self.cylinders * self.surfaces * self.sectors
    }

    /// (cylinder, surface)
    fn place(&self, sector: u64) -> (u64, u64) {
        let track = sector / self.sectors;
        (track / self.surfaces, track % self.surfaces)
    }

    fn movement(&self, from: (u64, u64), to: (u64, u64)) -> u64 {
        let distance = from.0.abs_diff(to.0);
        let arm = if distance == 0 { 0 } else { self.seek[0] + self.seek[1] * distance };
        if from.1 == to.1 {
            arm
        } else {
            arm.max(self.switch)
        }
    }

    fn border(&self, n: u128) -> u128 {
        (n * MINUTE).div_ceil(u128::from(self.rpm * self.sectors))
    }

    /// Sectors that pass before `sector` starts, once the previous one has passed.
    fn gap_before(&self, sector: u64) -> u128 {
        if !sector.is_multiple_of(self.sectors) {
            return 0;
        }
        let (from, to) = (self.place(sector - 1), self.place(sector));
        let (skew, time) = if from.0 == to.0 {
            (self.skews[0], self.switch)
        } else {
            let arm = self.seek[0] + self.seek[1];
            (self.skews[1], if self.surfaces > 1 { arm.max(self.switch) } else { arm })
        };
        let mut gap = u128::from(skew);
        while self.border(gap) < u128::from(time) {
            gap += u128::from(self.sectors);
        }
        gap
    }

    fn angle(&self, sector: u64) -> u128 {
        let skewed = |border: u64| self.skews[usize::from(self.place(border - 1).0 != self.place(border).0)];
        let skew: u64 = (1..=sector / self.sectors).map(|track| skewed(track * self.sectors)).sum();
        u128::from((sector + skew) % self.sectors)
    }

    fn bus(&self, sectors: u64) -> u128 {
        (u128::from(sectors) * 512_000_000_000).div_ceil(u128::from(self.bus_bytes_per_second))
    }
}

/// The head of a read: sectors from `first` up to `next` have been read, `next` will be at border `end`.
#[derive(Debug, Clone)]
struct Head {
    first: u64,
    next: u64,
    end: u128,
    stop: u64,
    /// Moving to `next` from elsewhere.
    arriving: bool,
}

struct Naive {
    shape: Shape,
    head: Option<Head>,
    rest: (u64, u64),
}

impl Naive {
    fn advance(&mut self, time: u128) {
        let shape = &self.shape;
        if let Some(head) = &mut self.head {
            while head.next < head.stop && shape.border(head.end) <= time {
                head.next += 1;
                head.end += 1;
                head.arriving = false;
                if head.next < shape.capacity() {
                    head.end += shape.gap_before(head.next);
                }
            }
        }
    }

    fn first_border(&self, time: u128, sector: u64) -> u128 {
        let angle = self.shape.angle(sector);
        let mut n = time * u128::from(self.shape.rpm * self.shape.sectors) / MINUTE;
        n = n.saturating_sub(2);
        while self.shape.border(n) < time || n % u128::from(self.shape.sectors) != angle {
            n += 1;
        }
        n
    }

    fn stop(&self, end: u64) -> u64 {
        (end + if self.shape.read_ahead { self.shape.buffer } else { 0 }).min(self.shape.capacity())
    }

    fn place(&self, now: u128) -> (u64, u64) {
        let shape = &self.shape;
        match &self.head {
            None => self.rest,
            Some(head) if head.next == head.stop => shape.place(head.stop - 1),
            Some(head) => {
                let passing = now * u128::from(shape.rpm * shape.sectors) / MINUTE;
                let began = head.arriving || passing + 1 >= head.end;
                shape.place(if began { head.next } else { head.next - 1 })
            }
        }
    }

    /// End of service, and whether it was a hit.
    fn serve(&mut self, now: Nanos, request: &Request) -> (u128, bool) {
        let now = u128::from(now.0);
        let ready = now + u128::from(self.shape.overhead);
        let (sector, end) = (request.sector, request.end());
        self.advance(now);
        let hit = self.head.as_ref().is_some_and(|head| {
            !request.write
                && self.shape.buffer > 0
                && (head.first..=head.next).contains(&sector)
                && sector < head.stop
                && head.next - sector <= self.shape.buffer
        });
        if hit {
            self.advance(ready);
            let stop = self.stop(end);
            let mut head = self.head.clone().unwrap();
            if stop > head.stop {
                if head.next == head.stop {
                    let moved = self.shape.movement(self.shape.place(head.stop - 1), self.shape.place(head.stop));
                    head.end = self.first_border(ready + u128::from(moved), head.stop) + 1;
                    head.arriving = true;
                }
                head.stop = stop;
            }
            self.head = Some(head);
            return (self.over_bus(ready, request), true);
        }
        let there = ready + u128::from(self.shape.movement(self.place(now), self.shape.place(sector)));
        let start = self.first_border(there, sector);
        self.head = Some(Head { first: sector, next: sector, end: start + 1, stop: self.stop(end), arriving: true });
        if request.write {
            let (done, bus) = (self.read_by(end), self.shape.bus(request.sectors.into()));
            self.head = None;
            self.rest = self.shape.place(end - 1);
            return (done.max(ready + bus), false);
        }
        (self.over_bus(0, request), false)
    }

    /// When the bus has moved everything, from `ready` on: each sector once it has been read, one after another.
    fn over_bus(&self, ready: u128, request: &Request) -> u128 {
        let ends = |sector| self.read_by(sector + 1).max(ready) + self.shape.bus(request.end() - sector);
        (request.sector..request.end()).map(ends).max().unwrap()
    }

    /// When all sectors before `end` have been read; zero if they already were.
    fn read_by(&self, end: u64) -> u128 {
        let mut head = self.head.clone().unwrap();
        let mut done = 0;
        while head.next < end {
            done = self.shape.border(head.end);
            head.next += 1;
            head.end += 1;
            if head.next < end {
                head.end += self.shape.gap_before(head.next);
            }
        }
        done
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let geometry = (prop::sample::select(vec![4002u64, 5400, 6000, 7199]), 1u64..5, 1u64..4, 4u64..20);
    let times = (0u64..2_000_000, 0u64..3_000_000, 0u64..100_000, 0u64..3_000_000);
    (geometry, times, 0u64..20, any::<bool>(), prop::sample::select(vec![100_000u64, 10_000_000]), 0u64..400).prop_map(
        |((rpm, cylinders, surfaces, sectors), (switch, base, slope, overhead), buffer, quiet, bus, skews)| Shape {
            rpm,
            cylinders,
            surfaces,
            sectors,
            skews: [skews % 20 % sectors, skews / 20 % sectors],
            switch,
            seek: [base, slope],
            overhead,
            buffer,
            read_ahead: !quiet || buffer % 2 == 0,
            bus_bytes_per_second: bus,
        },
    )
}

/// How a step chooses its sector, its length, its pause before, and whether it writes.
type Step = (u8, u64, u32, u64);

/// Serves `steps`; `check` sees each request with the instant of its start.
fn play(device: &mut dyn Device, steps: &[Step], mut check: impl FnMut(Nanos, &Request, Service)) {
    let capacity = device.capacity_sectors().unwrap();
    let (mut now, mut last) = (Nanos::ZERO, 0);
    for &(kind, place, sectors, pause) in steps {
        let sectors = u64::from(sectors).min(capacity);
        let sector = match kind % 8 {
            0..=3 => last,
            4 => last + place % 8,
            5 => last.saturating_sub(place % 24),
            _ => place,
        } % (capacity - sectors + 1);
        let write = kind >= 240;
        let request = Request { write, ..Request::read(sector, sectors as u32, 0) };
        now += Nanos(if kind % 3 == 0 { pause } else { 0 });
        let service = device.serve(now, &request);
        check(now, &request, service);
        now = service.end;
        last = request.end();
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<u8>(), any::<u64>(), 1u32..20, 0u64..40_000_000), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn walks_as_the_naive_drive_does(shape in shapes(), steps in steps()) {
        let mut device = Mechanical::from_table(shape.profile()).unwrap();
        prop_assert_eq!(device.capacity_sectors(), Some(shape.capacity()));
        let mut naive = Naive { shape, head: None, rest: (0, 0) };
        let mut wrong = None;
        play(&mut device, &steps, |now, request, service| {
            let expected = naive.serve(now, request);
            if wrong.is_none() && (u128::from(service.end.0), service.buffer_hit) != expected {
                wrong = Some((now, *request, service, expected));
            }
        });
        prop_assert!(wrong.is_none(), "{wrong:?}");
    }

    #[test]
    fn parts_sum_and_the_least_service_is_a_bound(shape in shapes(), steps in steps()) {
        let mut device = Mechanical::from_table(shape.profile()).unwrap();
        let bounds: Vec<Nanos> = (0..20).map(|sectors| device.least_service(sectors)).collect();
        play(&mut device, &steps, |now, request, service| {
            assert_eq!(now + service.overhead + service.seek + service.rotation + service.transfer, service.end);
            assert!(service.end - now >= bounds[request.sectors as usize]);
        });
    }

    #[test]
    fn the_hp97560_keeps_its_bounds(steps in steps()) {
        let mut device = build_device("hp97560", Table::new()).unwrap();
        let bounds: Vec<Nanos> = (0..20).map(|sectors| device.least_service(sectors)).collect();
        let turn = Nanos(60_000_000_000 / 4002 + 1);
        play(&mut *device, &steps, |now, request, service| {
            assert_eq!(now + service.overhead + service.seek + service.rotation + service.transfer, service.end);
            assert!(service.end - now >= bounds[request.sectors as usize]);
            assert!(service.rotation <= turn);
        });
    }
}
