//! Real threads and tiny times: regardless of the machine's scheduling, each process gets its blocks, none passes a
//! barrier early, no prefetch exceeds its buffers (both asserted at every event), and the run ends.

mod common;

use std::time::{Duration, Instant};

use common::{meeting, program, setup, setup_in, space};
use headstart_engine::parallel::{Idle, Played, Scope, Setup};
use headstart_host::RealClock;
use headstart_parallel::{run, workers, Error};
use headstart_types::Nanos;

/// A run without progress for this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

#[allow(clippy::disallowed_methods)] // A watchdog is about real time.
fn play(setup: Setup, speed: f64, what: &str) -> Played {
    let clock = RealClock::new(workers(&setup), speed);
    let (mut seen, mut since) = (0, Instant::now());
    let space = space(&setup);
    let outcome = run(setup, space, &clock, &mut |_, taken| {
        if taken != seen {
            (seen, since) = (taken, Instant::now());
        }
        since.elapsed() < PATIENCE
    });
    outcome.unwrap_or_else(|error| panic!("{what}: {error} at {seen} references"))
}

fn adds_up(outcome: &Played, what: &str) {
    let counts = &outcome.counts;
    assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses, "{what}");
    assert_eq!(counts.fetches(), outcome.disks.iter().map(|disk| disk.requests).sum::<u64>(), "{what}");
    assert_eq!(counts.references, outcome.requests, "{what}");
    for member in &outcome.processes {
        let (process, node) = (&member.process, &member.node);
        let waits = node.periods(Idle::OwnIo).necessary
            + node.periods(Idle::OtherIo).necessary
            + node.periods(Idle::Barrier).necessary;
        assert!(process.compute + waits + node.overrun <= process.free_at, "{what}: {member:?}");
        assert!(process.read_time + process.compute <= process.free_at, "{what}: {member:?}");
        assert!(node.overrun <= node.action_time, "{what}: {member:?}");
    }
    for pair in outcome.intervals.windows(2) {
        assert_eq!(pair[0].interval.end, pair[1].interval.start, "{what}");
    }
}

#[test]
fn many_threads_and_tiny_times() {
    let us = |time: u64| Nanos(time * 1_000);
    for seed in 0..24u64 {
        // Unrelated numbers.
        let of = |prime: u64, range: u64| seed * prime % range;
        let (processes, disks) = (2 + of(7, 39) as u32, 1 + of(5, 17) as usize);
        let reads = 300 + of(11, 200) as u32;
        let string: Vec<u32> = (0..reads).collect();
        let program = program(&[&string], processes);
        let action = [None, Some(us(0)), Some(us(of(13, 300)))][seed as usize % 3];
        let mut setup = setup(&program, disks, us(of(3, 200)), us(of(17, 150)), action);
        setup.contention = us(of(19, 3));
        if let Some(actions) = &mut setup.actions {
            actions.issues_at_start = seed % 2 == 0;
        }
        let scope = [Scope::Process(3), Scope::All(processes * 4), Scope::SharedPortion][seed as usize / 3 % 3];
        let what = format!("seed {seed}: {processes} processes, {disks} disks, {scope:?}, actions {action:?}");
        let outcome = play(meeting(setup, scope), 1.0, &what);
        adds_up(&outcome, &what);
        // Whichever process reads, everything is fetched once and no prefetch is wasted.
        assert_eq!((outcome.counts.fetches(), outcome.counts.prefetches_wasted()), (u64::from(reads), 0), "{what}");
    }
}

#[test]
fn everybody_reads_the_whole_file() {
    let string: Vec<u32> = (0..100).collect();
    let strings = [&string[..]; 20];
    let program = program(&strings, 20);
    for action in [None, Some(Nanos(100_000))] {
        let setup = setup_in(100, &program, 5, (Nanos(300_000), Nanos(100_000)), action);
        let outcome = play(meeting(setup, Scope::Process(10)), 1.0, "lw");
        adds_up(&outcome, "lw");
        // The cache holds everything: each block is fetched once.
        assert_eq!((outcome.counts.references, outcome.counts.fetches()), (2000, 100));
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // A stop is to take effect soon in real time.
fn stops_in_the_middle_of_long_waits() {
    let string: Vec<u32> = (0..1000).collect();
    let program = program(&[&string], 20);
    let hour = Nanos(3_600_000_000_000);
    let setup = setup(&program, 20, hour, Nanos::ZERO, Some(hour));
    let clock = RealClock::new(workers(&setup), 1.0);
    let mut asked = None;
    let space = space(&setup);
    let outcome = run(setup, space, &clock, &mut |_, _| {
        asked = Some(Instant::now());
        false
    });
    assert_eq!(outcome.err(), Some(Error::Stopped));
    let took = asked.expect("it has been asked").elapsed();
    // Immediate on an idle machine.
    assert!(took < PATIENCE, "all threads have ended after {took:?}");
}
