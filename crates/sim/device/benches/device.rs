//! Nanoseconds per operation, printed, the best of five rounds: one request served, one pushed and popped. A loop and a
//! clock are sufficient, because the numbers are compared within one run. Without `--bench` (as `cargo test --benches`
//! runs it) the rounds are short and only show that it still works.

// A benchmark measures wall-clock time; no result depends on it.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::time::Instant;

use headstart_device::{build_array, build_device, build_scheduler, Device, Drive, Next, Request, Started};
use headstart_types::Nanos;
use toml::Table;

/// A cheap generator: its cost must not dominate.
fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Prints the best of five rounds of `round`, each of `count` operations.
fn report(what: &str, count: u64, mut round: impl FnMut()) {
    let mut time = || {
        let started = Instant::now();
        round();
        started.elapsed().as_nanos() as f64 / count as f64
    };
    let best = (0..5).map(|_| time()).fold(f64::INFINITY, f64::min);
    println!("{what:<44} {best:>7.1} ns");
}

fn serve(model: &str, what: &str, count: u64, sector: impl FnMut(u64) -> u64) {
    let keys: Table = if model == "uniform" { "fetch_time = '2ms'".parse().unwrap() } else { Table::new() };
    serve_by(build_device(model, keys).unwrap(), &format!("{model}, {what}"), count, sector);
}

fn array(kind: &str, member: &str, count: u64) {
    let device = build_device(member, Table::new()).unwrap();
    let device = build_array(kind, 5, device, 128, Table::new()).unwrap();
    let mut state = 1;
    serve_by(device, &format!("{kind} of 5 {member}, random"), count, |_| xorshift(&mut state) % 160_000 * 16);
}

fn serve_by(mut device: Box<dyn Device>, what: &str, count: u64, mut sector: impl FnMut(u64) -> u64) {
    let mut now = Nanos::ZERO;
    report(&format!("serve, {what}"), count, || {
        for index in 0..count {
            now = device.serve(now, &Request::read(sector(index), 16, index)).end;
        }
        black_box(now);
    });
}

fn queue(scheduler: &str, depth: u64, count: u64) {
    let device = build_device("hp97560", Table::new()).unwrap();
    let mut queue = build_scheduler(scheduler, Table::new()).unwrap();
    let (mut state, mut parts) = (1, Vec::new());
    let queued = |sequence: u64, sector: u64| headstart_device::Queued {
        request: Request::read(sector, 16, sequence),
        arrived: Nanos::ZERO,
        sequence,
    };
    report(&format!("push and pop, {scheduler}, {depth} queued, random"), count, || {
        for sequence in 0..count {
            queue.push(queued(sequence, xorshift(&mut state) % 160_000 * 16));
            if queue.len() as u64 > depth {
                if let Next::Serve(queued) = black_box(queue.pop(Nanos::ZERO, &*device, &mut parts)) {
                    queue.completed(Nanos::ZERO, &queued);
                }
                parts.clear();
            }
        }
    });
}

/// Four neighbours at a time, pushed and popped, which a merging scheduler merges into one.
fn sequential(scheduler: &str, count: u64) {
    let device = build_device("uniform", "fetch_time = '2ms'".parse().unwrap()).unwrap();
    let mut queue = build_scheduler(scheduler, Table::new()).unwrap();
    let (mut state, mut parts) = (1, Vec::new());
    report(&format!("push and pop, {scheduler}, four neighbours"), count, || {
        for sequence in 0..count {
            if sequence % 4 == 0 {
                state = xorshift(&mut state) % 160_000 * 64;
            }
            let request = Request::read(state + sequence % 4 * 16, 16, sequence);
            queue.push(headstart_device::Queued { request, arrived: Nanos::ZERO, sequence });
            if queue.len() > 80 {
                if let Next::Serve(queued) = black_box(queue.pop(Nanos::ZERO, &*device, &mut parts)) {
                    queue.completed(Nanos::ZERO, &queued);
                }
                parts.clear();
            }
        }
    });
}

fn drive(depth: u64, count: u64) {
    let scheduler = build_scheduler("cscan", Table::new()).unwrap();
    let mut drive = Drive::new(build_device("hp97560", Table::new()).unwrap(), scheduler);
    let mut now = Nanos::ZERO;
    report(&format!("drive: submit to finish, sequential, by {depth}"), count, || {
        let mut issued = 0;
        while issued < count {
            for _ in 0..depth {
                drive.submit(now, Request::read(issued % 160_000 * 16, 16, issued));
                issued += 1;
            }
            while let Started::Ends(end) = drive.start(now) {
                now = end;
                drive.finish(now, |finished| {
                    black_box(finished);
                });
            }
        }
    });
}

/// Random reads through a first come, first served queue, one at a time.
fn fcfs(model: &str, count: u64) {
    let scheduler = build_scheduler("fcfs", Table::new()).unwrap();
    let mut drive = Drive::new(build_device(model, Table::new()).unwrap(), scheduler);
    let (mut now, mut state) = (Nanos::ZERO, 1);
    report(&format!("drive, {model}, random, fcfs"), count, || {
        for index in 0..count {
            drive.submit(now, Request::read(xorshift(&mut state) % 1_000_000 * 16, 16, index));
            while let Started::Ends(end) = drive.start(now) {
                now = end;
                drive.finish(now, |finished| {
                    black_box(finished);
                });
            }
        }
    });
}

fn main() {
    let count = if std::env::args().any(|argument| argument == "--bench") { 2_000_000 } else { 2_000 };
    let mut state = 1;
    serve("uniform", "sequential", count, |index| index % 160_000 * 16);
    serve("hp97560", "sequential", count, |index| index % 160_000 * 16);
    serve("hp97560", "every other block", count, |index| index % 80_000 * 32);
    serve("hp97560", "random", count, move |_| xorshift(&mut state) % 160_000 * 16);
    for model in ["nvme", "sata-ssd"] {
        let mut state = 1;
        serve(model, "8 KiB, sequential", count, |index| index % 160_000 * 16);
        serve(model, "8 KiB, random", count, move |_| xorshift(&mut state) % 100_000_000 * 16);
    }
    serve("object-store", "random", count, |index| index % 160_000 * 16);
    for kind in ["mirror", "raid0", "raid5"] {
        array(kind, "hp97560", count);
        array(kind, "nvme", count);
    }
    serve("seagate-cheetah-9lp", "random", count, move |_| xorshift(&mut state) % 1_000_000 * 16);
    serve("seagate-cheetah-9lp", "sequential", count, |index| index % 1_000_000 * 16);
    fcfs("seagate-cheetah-9lp", count);
    for depth in [4, 16, 80, 2048] {
        queue("cscan", depth, count);
    }
    for scheduler in ["fcfs", "sstf", "scan", "look", "clook"] {
        queue(scheduler, 80, count);
    }
    for scheduler in ["deadline", "anticipatory"] {
        queue(scheduler, 80, count / 4);
        sequential(scheduler, count / 4);
    }
    queue("sstf", 2048, count);
    queue("sptf", 32, count / 10);
    drive(4, count);
    drive(80, count);
}
