//! Solid-state drives compared with their data sheets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_device::{build_device, Device, Request};
use headstart_types::Nanos;
use toml::Table;

fn flash(model: &str, keys: &str) -> Box<dyn Device> {
    build_device(model, keys.parse::<Table>().unwrap()).unwrap()
}

/// Requests per second in a closed loop with `depth` outstanding, `sectors` each, random or sequential: for `times`
/// consecutive groups of `count` requests.
fn rates(
    mut drive: Box<dyn Device>,
    (depth, sectors, write, random): (usize, u32, bool, bool),
    count: u64,
    times: u64,
) -> Vec<f64> {
    let places = drive.capacity_sectors().unwrap() / u64::from(sectors);
    let (mut state, mut ends) = (88_172_645_463_325_252u64, BinaryHeap::new());
    let (mut now, mut before, mut found) = (Nanos::ZERO, Nanos::ZERO, Vec::new());
    for index in 0..count * times {
        if ends.len() == depth {
            let Reverse(end) = ends.pop().unwrap();
            now = end;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let place = if random { state % places } else { index % places };
        let request = Request { write, ..Request::read(place * u64::from(sectors), sectors, index) };
        ends.push(Reverse(drive.serve(now, &request).end));
        if (index + 1) % count == 0 {
            found.push(count as f64 / (now - std::mem::replace(&mut before, now)).as_secs_f64());
        }
    }
    found
}

/// A drive of 4 GB with superblocks of 4 MiB instead of 6.4 TB with those of 1 GiB, each erased in proportionally less
/// time: write amplification depends on ratios, not on sizes.
const SLICE: &str = "capacity = '4GB'\nblock_pages = 1\nerase_time = '12us'\nwrite_buffer = '4MiB'";

/// Random writes to a full drive: fast while erased blocks last, then as specified.
#[test]
fn a_drive_written_at_random_falls_off_the_write_cliff() {
    let found = rates(flash("nvme-gen5", SLICE), (512, 8, true, true), 100_000, 20);
    println!("{found:.0?}");
    let steady = found[15..].iter().sum::<f64>() / 5.0;
    assert!(found[0] > 2_000_000.0, "erased blocks last for 200,000 writes: {found:.0?}");
    assert!((steady / 640_000.0 - 1.0).abs() < 0.06, "figures: 640,000 a second, not {steady:.0}");
    // Sequential writes move nothing, whatever was written before.
    let found = rates(flash("nvme-gen5", SLICE), (32, 256, true, false), 10_000, 20);
    assert!(found[15..].iter().all(|rate| (rate * 131_072.0 / 10_000e6 - 1.0).abs() < 0.06), "{found:.0?}");
}

/// The figures of a data sheet; the first of each pair is for reads, the second for writes.
struct Sheet {
    model: &'static str,
    /// Sequential, in MB/s. Their depth and size are not given: 128 KiB, 32 outstanding.
    sequential: [f64; 2],
    /// Random requests of 4 KiB a second, one outstanding.
    one: [f64; 2],
    /// The same with this many outstanding. 0: not the behaviour of a fresh drive.
    many: [f64; 2],
    depth: usize,
}

const SHEETS: [Sheet; 3] = [
    Sheet {
        model: "nvme",
        sequential: [7_450.0, 6_900.0],
        one: [22_000.0, 80_000.0],
        many: [1_400_000.0, 1_550_000.0],
        depth: 512,
    },
    // Its random writes are those of a drive in steady state, see above.
    Sheet {
        model: "nvme-gen5",
        sequential: [14_000.0, 10_000.0],
        one: [1e6 / 60.0, 1e6 / 15.0],
        many: [3_300_000.0, 0.0],
        depth: 1024,
    },
    Sheet {
        model: "sata-ssd",
        sequential: [560.0, 530.0],
        one: [13_000.0, 36_000.0],
        many: [98_000.0, 88_000.0],
        depth: 32,
    },
];

/// How far a model may be above and below its sheet.
const ABOVE: f64 = 1.05;
const BELOW: f64 = 0.94;

/// The rate of `model` after its write buffer has been filled: requests a second, and MB/s.
fn settled(model: &str, load: (usize, u32, bool, bool)) -> (f64, f64) {
    let bytes = f64::from(load.1) * 512.0;
    // A link may carry a little more than the flash takes, so that a buffer fills slowly.
    let fill = if load.2 { 1_500e6 } else { 80e6 };
    let count = (fill / bytes).clamp(2_000.0, 400_000.0) as u64;
    let rate = rates(flash(model, ""), load, count, 2)[1];
    (rate, rate * bytes / 1e6)
}

/// The shipped numbers reproduce the figures from which they were derived: all of a data sheet together.
#[test]
fn shipped_drives_do_what_their_data_sheets_say() {
    for Sheet { model, sequential, one, many, depth } in SHEETS {
        for (which, write) in [("reads", false), ("writes", true)] {
            let at = usize::from(write);
            let found = [
                ("sequential MB/s", settled(model, (32, 256, write, false)).1, sequential[at]),
                ("4 KiB a second, 1 deep", settled(model, (1, 8, write, true)).0, one[at]),
                ("4 KiB a second, full", settled(model, (depth, 8, write, true)).0, many[at]),
            ];
            for (what, does, says) in found.into_iter().filter(|(_, _, says)| *says > 0.0) {
                println!("{model}, {which}, {what}: {does:.0}, data sheet {says:.0}");
                assert!((BELOW..=ABOVE).contains(&(does / says)), "{model}, {which}, {what}: {does} for {says}");
            }
        }
    }
}

/// No depth, size and order beats the sheet.
#[test]
fn no_load_is_faster_than_the_data_sheet() {
    for Sheet { model, sequential, many, depth, .. } in SHEETS {
        for (write, random) in [(false, false), (false, true), (true, false), (true, true)] {
            for sectors in [8, 32, 256, 2_048] {
                for deep in [1, 4, 32, depth] {
                    let (rate, mb) = settled(model, (deep, sectors, write, random));
                    let load = format!("{model}, write {write}, random {random}, {sectors} sectors, {deep} deep");
                    let at = usize::from(write);
                    let known = !(random && write) || many[at] > 0.0;
                    assert!(!known || mb <= ABOVE * sequential[at], "{load}: {mb} MB/s for {}", sequential[at]);
                    let small = random && sectors == 8 && many[at] > 0.0;
                    assert!(!small || rate <= ABOVE * many[at], "{load}: {rate} a second for {}", many[at]);
                }
            }
        }
    }
}
