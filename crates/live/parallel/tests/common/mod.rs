//! Small parallel programs for tests.
#![allow(dead_code)] // Each test file uses its part.

use std::sync::Arc;

use headstart_engine::parallel::{ActionSetup, Draws, IdleOrder, Played, Scope, Setup};
use headstart_engine::{Costs, Level, Tier};
use headstart_host::SteppedClock;
use headstart_parallel::{run, workers, Error, Numbered};
use headstart_policy::registry::{policy, replacement, Context};
use headstart_types::{Block, Chosen, Disk, Meetings, Nanos, Position, Program};

/// A program of processes that read `strings`, process i string i; if there is only one string, all `processes` share
/// it. Each string is one portion.
pub fn program(strings: &[&[u32]], processes: u32) -> Arc<Program> {
    let mut end = 0;
    let string_ends: Vec<Position> = strings
        .iter()
        .map(|string| {
            end += string.len() as Position;
            end
        })
        .collect();
    let shared = strings.len() == 1;
    Arc::new(Program {
        blocks: strings.iter().flat_map(|string| string.iter().map(|block| Block(*block))).collect(),
        portion_ends: string_ends.as_slice().into(),
        string_ends: string_ends.into(),
        string_of: (0..processes).map(|process| if shared { 0 } else { process }).collect(),
        regular: true,
        meetings: Meetings::AtEnd,
    })
}

/// A run of `program` on `disks` disks that take `service`, with think times of `think`. With `prefetch`, actions take
/// that long; without, no processor prefetches. RU-sets and prefetching use two frames per process.
pub fn setup(program: &Arc<Program>, disks: usize, service: Nanos, think: Nanos, prefetch: Option<Nanos>) -> Setup {
    setup_in(2 * program.string_of.len() as u32, program, disks, (service, think), prefetch)
}

/// Like [`setup`], with a cache of `frames`.
pub fn setup_in(
    frames: u32,
    program: &Arc<Program>,
    disks: usize,
    (service, think): (Nanos, Nanos),
    prefetch: Option<Nanos>,
) -> Setup {
    let processes = program.string_of.len();
    let blocks = program.blocks.iter().map(|block| block.0 + 1).max().unwrap_or(0);
    let disk_of: Vec<Disk> = (0..blocks).map(|block| Disk(block % disks as u32)).collect();
    let context = Context {
        frames,
        initial: Vec::new(),
        disks,
        disk_of: disk_of.as_slice().into(),
        replacement: Chosen::plain(replacement("ru-set").expect("it is there")),
        hints: None,
        program: Some(program.clone()),
        disclosed_by: Arc::new([]),
        whole: false,
        nominal_service: service,
        block_transfer: service,
        concurrency: 1,
        driver: Nanos::ZERO,
        hit: Nanos::ZERO,
        uniform: true,
        mean_compute: think,
        constant_compute: true,
    };
    let always = |time: Nanos| -> Vec<Draws> { (0..processes).map(|_| Box::new(move || time) as Draws).collect() };
    let policy = Chosen::plain(policy("rapid-transit").expect("it is there"));
    let policy = policy.row.build(&policy.keys, &context).expect("good keys");
    let level = Level::new(policy, frames, &[], &disk_of, disks);
    Setup {
        tiers: vec![Tier::new(level, true)],
        first: 1,
        block_sectors: 1,
        program: program.clone(),
        disks,
        block_bytes: 64,
        service,
        barrier: None,
        thinks: always(think),
        costs: Costs::default(),
        contention: Nanos::ZERO,
        actions_contend: false,
        actions: prefetch.map(|time| ActionSetup {
            lengths: always(time),
            io_processors: 0,
            issues_at_start: false,
            idle_min: Nanos::ZERO,
            slack_min: 0,
            order: IdleOrder::Longest,
            alike: true,
            unused_max: Some(processes as u64),
        }),
    }
}

/// The blocks of a program, distributed over the disks.
pub fn space(setup: &Setup) -> Numbered {
    let blocks = setup.program.blocks.iter().map(|block| block.0 + 1).max().unwrap_or(0);
    let disks = setup.disks as u32;
    Numbered {
        disk_of: (0..blocks).map(|block| Disk(block % disks)).collect(),
        sector_of: (0..blocks).map(|block| u64::from(block / disks)).collect(),
    }
}

/// Plays it on a virtual clock.
pub fn stepped(setup: Setup) -> Result<Played, Error> {
    let clock = SteppedClock::new(workers(&setup));
    let space = space(&setup);
    run(setup, space, &clock, &mut |_, _| true)
}

/// Adds barriers.
pub fn meeting(setup: Setup, scope: Scope) -> Setup {
    Setup { barrier: Some(scope), ..setup }
}
