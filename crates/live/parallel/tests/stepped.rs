//! Live runs on a virtual clock, calculated by hand, exact to the nanosecond.

mod common;

use common::{meeting, program, setup, space, stepped};
use headstart_engine::parallel::{Idle, Scope};
use headstart_host::SteppedClock;
use headstart_parallel::{run, workers, Error};
use headstart_types::Nanos;

const MS: u64 = 1_000_000;

fn ms(time: u64) -> Nanos {
    Nanos(time * MS)
}

#[test]
fn two_readers_on_demand() {
    // Process 0 reads blocks 0 and 2 of disk 0, process 1 blocks 1 and 2: 30 ms per block, 10 ms of think time.
    let program = program(&[&[0, 2], &[1, 2]], 2);
    let outcome = stepped(setup(&program, 2, ms(30), ms(10), None)).expect("it runs");
    // 0-30 block 0 and block 1; both think until 40, request block 2, which arrives at 70, and think until 80.
    assert_eq!(outcome.elapsed, ms(80));
    assert_eq!((outcome.counts.misses, outcome.counts.hits_unready, outcome.counts.demand_fetches), (3, 1, 3));
    let [first, second] = &outcome.processes[..] else { panic!("two processes") };
    assert_eq!(
        (first.node.periods(Idle::OwnIo).necessary, first.node.periods(Idle::OtherIo).necessary),
        (ms(60), Nanos::ZERO)
    );
    assert_eq!(
        (second.node.periods(Idle::OwnIo).necessary, second.node.periods(Idle::OtherIo).necessary),
        (ms(30), ms(30))
    );
    let process = &first.process;
    assert_eq!((process.compute, process.read_time, process.free_at), (ms(20), ms(60), ms(80)));
    assert_eq!(outcome.disks.iter().map(|disk| disk.requests).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn an_action_overruns() {
    // One process, two disks. Blocks 0, 1, 2; 30 ms per block, no think time; an action takes 20 ms.
    // 0: miss on 0; action 1 (block 1) until 20, its request 20-50. One buffer, so no second action.
    // 30: block 0; requests block 1, in flight and therefore used; action 2 (block 2) begins at 30, until 50, request
    // 50-80.
    // 50: block 1 (the action ends with it); requests block 2, in flight until 80. Done.
    let program = program(&[&[0, 1, 2]], 1);
    let outcome = stepped(setup(&program, 2, ms(30), Nanos::ZERO, Some(ms(20)))).expect("it runs");
    assert_eq!(outcome.elapsed, ms(80));
    assert_eq!((outcome.processes[0].node.actions, outcome.processes[0].node.overrun), (2, Nanos::ZERO));
    // With 45 ms: action 1 ends at 45, 15 ms after block 0; its request takes until 75. It is requested at 45; action 2
    // lasts until 90, 15 ms after block 1; its request takes until 120.
    let outcome = stepped(setup(&program, 2, ms(30), Nanos::ZERO, Some(ms(45)))).expect("it runs");
    assert_eq!(outcome.elapsed, ms(120));
    let process = &outcome.processes[0];
    assert_eq!((process.node.actions, process.node.action_time, process.node.overrun), (2, ms(90), ms(30)));
    assert_eq!(
        (process.node.periods(Idle::OwnIo).necessary, process.node.periods(Idle::OwnIo).actual),
        (ms(30), ms(45))
    );
    assert_eq!(
        (process.node.periods(Idle::OtherIo).necessary, process.node.periods(Idle::OtherIo).actual),
        (ms(60), ms(75))
    );
}

#[test]
fn meets_after_each_read() {
    // Both blocks of process 0 are on disk 0, like one of process 1, so it has to queue.
    let program = program(&[&[0, 4], &[2, 1]], 2);
    let setup = meeting(setup(&program, 2, ms(30), ms(10), None), Scope::Process(1));
    let outcome = stepped(setup).expect("it runs");
    // Block 0 at 30, block 2 at 60; barrier at 70. Block 4 and block 1 at 100; done at 110, where no process waits.
    assert_eq!(outcome.elapsed, ms(110));
    let first = outcome.intervals[0];
    assert_eq!((first.interval.end, first.interval.critical, first.interval.slack), (ms(70), 1, ms(30)));
    assert_eq!((first.sums.references, first.sums.read_time, first.critical.own_io), (2, ms(90), ms(60)));
    assert_eq!(outcome.processes[0].node.periods(Idle::Barrier).necessary, ms(30));
}

#[test]
fn contention_is_first_come_first_served() {
    // Both look up at the same time and hold the structures for 5 ms each.
    let program = program(&[&[0], &[1]], 2);
    let mut setup = setup(&program, 2, ms(30), Nanos::ZERO, None);
    setup.contention = ms(5);
    let outcome = stepped(setup).expect("it runs");
    assert_eq!(outcome.processes.iter().map(|process| process.process.free_at).collect::<Vec<_>>(), [ms(35), ms(40)]);
}

#[test]
fn equal_runs_are_equal_and_a_stopped_one_ends() {
    let string: Vec<u32> = (0..200).collect();
    let program = program(&[&string], 8);
    let made = || meeting(setup(&program, 4, ms(30), ms(7), Some(ms(11))), Scope::All(40));
    let [one, other] = [made(), made()].map(|setup| stepped(setup).expect("it runs"));
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
    assert_eq!((one.counts.fetches(), one.counts.prefetches_wasted()), (200, 0));
    let setup = made();
    let clock = SteppedClock::new(workers(&setup));
    // Whether the callback is called before the end depends on the machine.
    let space = space(&setup);
    let stopped = run(setup, space, &clock, &mut |_, _| false);
    assert!(matches!(stopped, Err(Error::Stopped) | Ok(_)));
}
