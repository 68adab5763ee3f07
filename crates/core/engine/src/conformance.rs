//! Conformance checks for any [`Policy`], including your own.
//!
//! [`policy`] runs what `make` returns on a level over FIFO disks, through odd systems and a few hundred drawn from
//! fixed seeds, and panics at the first broken promise: capacity is never exceeded; a victim is resident and not
//! pinned; a fetched block is absent; every reference is served; the counts add up; the same system gives the same
//! decisions. The systems include one frame, one block, many blocks of one disk and a cache larger than all blocks. It
//! takes about a second. Replacements and read-aheads have checks of their own: [`headstart_policy::conformance`].
//!
//! ```
//! use headstart_engine::conformance;
//! use headstart_policy::{Event, Fetch, Policy, View};
//! use headstart_types::{Block, Nanos};
//!
//! /// Demand fetching that evicts the resident block of the highest number.
//! struct Highest;
//!
//! impl Policy for Highest {
//!     fn on(&mut self, _: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
//!         let Event::Asked { .. } = event else { return };
//!         let evictable = |block: &Block| view.state(*block).is_evictable();
//!         let mut resident = (0..view.blocks.len() as u32).map(Block).filter(evictable);
//!         let victim = if view.free > 0 { None } else { resident.next_back() };
//!         fetches.push(Fetch { block: view.asked[0], victim });
//!     }
//!     fn grow(&mut self, _: usize) {}
//!     fn decides(&self, _outstanding: &[u32]) -> bool {
//!         false
//!     }
//! }
//!
//! conformance::policy(|_system| Box::new(Highest));
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use headstart_policy::conformance::Draws;
use headstart_policy::readahead::Asked;
use headstart_policy::{Event, Fetch, NoSpace, Policy, View};
use headstart_types::{Block, Disk, Nanos};

use crate::{Ask, Backend, Counts, IoRequest, Level};

/// Checks a policy that works block by block, for one process.
///
/// # Panics
/// The policy breaks a promise.
pub fn policy(make: impl Fn(&System) -> Box<dyn Policy>) {
    let drawn = (0..300).map(|seed| ("drawn", System::random(seed, 120, 25)));
    for (name, system) in odd_systems().into_iter().chain(drawn) {
        let what = format!("{name}: {system:?}");
        let (first, second) = (run(&system, make(&system)), run(&system, make(&system)));
        assert_eq!(first, second, "{what}: the same system must give the same decisions");
        check(&what, &system, &first);
    }
}

/// What is run: references, the think time after each, and the machine.
#[derive(Debug, Clone)]
pub struct System {
    /// The block of each reference.
    pub refs: Vec<u32>,
    /// The think time after each reference.
    pub think_ns: Vec<u64>,
    /// Blocks resident at the start, least recently used first.
    pub initial: Vec<u32>,
    /// Frames of the cache, at least 1.
    pub frames: u32,
    /// The disk of each block.
    pub disk_of: Vec<u32>,
    /// Number of disks.
    pub disks: usize,
    /// Service times are drawn from 1 to this; all equal it if `uniform`.
    pub service_ns_max: u64,
    /// Whether all services take the same time.
    pub uniform: bool,
    /// Seed of the service times.
    pub seed: u64,
}

impl System {
    /// A system drawn from a seed: up to `refs` references to up to `blocks` blocks.
    #[must_use]
    pub fn random(seed: u64, refs: usize, blocks: u32) -> Self {
        let mut draws = Draws::new(seed);
        let blocks = 1 + draws.below(blocks.into()) as u32;
        let (frames, disks) = (1 + draws.below(blocks.max(2).into()) as u32, 1 + draws.below(5) as u32);
        let (shape, thinking) = (draws.below(3), draws.below(3));
        let (count, mut block) = (1 + draws.below(refs as u64), 0);
        let mut next = || {
            let jump = shape == 0 || (shape == 1 && draws.below(5) == 0);
            block = if jump { draws.below(blocks.into()) as u32 } else { (block + 1) % blocks };
            block
        };
        let refs: Vec<u32> = (0..count).map(|_| next()).collect();
        let mut think = || [0, 1_000, draws.below(3_000)][thinking as usize];
        let think_ns = refs.iter().map(|_| think()).collect();
        let held = draws.below(u64::from(frames.min(blocks)) + 1) as u32;
        Self {
            refs,
            think_ns,
            initial: (0..held).collect(),
            frames,
            disk_of: (0..blocks).map(|_| draws.below(disks.into()) as u32).collect(),
            disks: disks as usize,
            service_ns_max: 1 + draws.below(20_000),
            uniform: false,
            seed,
        }
    }

    /// The block of each reference.
    #[must_use]
    pub fn blocks(&self) -> Arc<[Block]> {
        self.refs.iter().map(|block| Block(*block)).collect()
    }

    /// Blocks resident at the start.
    #[must_use]
    pub fn initial(&self) -> Vec<Block> {
        self.initial.iter().map(|block| Block(*block)).collect()
    }

    /// The disk of each block.
    #[must_use]
    pub fn disk_of(&self) -> Arc<[Disk]> {
        self.disk_of.iter().map(|disk| Disk(*disk)).collect()
    }
}

/// A system with references `refs` and default values otherwise.
fn plain(refs: Vec<u32>, frames: u32, disks: usize) -> System {
    let blocks = refs.iter().max().map_or(1, |most| most + 1);
    System {
        think_ns: vec![1_000; refs.len()],
        initial: vec![],
        frames,
        disk_of: (0..blocks).map(|block| block % disks as u32).collect(),
        disks,
        service_ns_max: 9_000,
        uniform: false,
        seed: 1,
        refs,
    }
}

/// Edge-case systems, by name.
#[must_use]
pub fn odd_systems() -> Vec<(&'static str, System)> {
    let scan = |blocks: u32, passes: usize| (0..passes).flat_map(move |_| 0..blocks).collect::<Vec<_>>();
    let idle = |system: System| System { think_ns: vec![0; system.refs.len()], ..system };
    let full = |system: System| System { initial: (0..system.frames).collect(), ..system };
    vec![
        ("one reference", plain(vec![0], 1, 1)),
        ("one block, many times", plain(vec![0; 60], 3, 2)),
        ("one frame", plain(scan(7, 9), 1, 1)),
        ("one frame, many disks", plain(scan(20, 3), 1, 16)),
        ("a cache larger than all", plain(scan(30, 3), 5_000, 4)),
        ("a loop one larger than the cache", plain(scan(11, 8), 10, 2)),
        ("no think time", idle(plain(scan(25, 4), 10, 3))),
        ("no think time, one frame", idle(plain(scan(5, 5), 1, 2))),
        ("all there from the start", full(plain(scan(12, 4), 12, 2))),
        ("full of the wrong blocks", {
            let system = plain(scan(20, 2), 6, 3);
            System { initial: (14..20).collect(), ..system }
        }),
        ("more disks than blocks", plain(scan(3, 9), 2, 64)),
        ("all on one of many disks", {
            let system = plain(scan(30, 4), 9, 8);
            System { disk_of: vec![5; 30], ..system }
        }),
        ("slow disks", System { service_ns_max: 5_000_000, ..plain(scan(40, 3), 15, 3) }),
    ]
}

/// Checks a run's outcomes against the invariants of every run. `what` appears in the message.
///
/// # Panics
/// The counts do not add up.
pub fn check(what: &str, system: &System, outcomes: &Outcomes) {
    let counts = &outcomes.counts;
    assert_eq!(outcomes.served, system.refs.len() as u64, "{what}");
    assert_eq!(counts.references, outcomes.served, "{what}");
    assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses, "{what}");
    assert_eq!(counts.fetches(), outcomes.decisions.len() as u64, "{what}");
    assert!(counts.prefetches_late <= counts.prefetches_used && counts.prefetches_used <= counts.prefetches, "{what}");
    let evicting = outcomes.decisions.iter().filter(|decision| decision.3.is_some()).count() as u64;
    assert_eq!(counts.evictions, evicting, "{what}");
    let mut absent: Vec<u32> = system.refs.iter().filter(|block| !system.initial.contains(block)).copied().collect();
    absent.sort_unstable();
    absent.dedup();
    assert!(counts.fetches() >= absent.len() as u64, "{what}: each block must come once");
    assert!(outcomes.elapsed_ns >= system.think_ns.iter().sum(), "{what}");
}

/// One decision: time, cursor, block, victim.
pub type Decision = (u64, u32, u32, Option<u32>);

/// The outcomes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcomes {
    /// The level's counts.
    pub counts: Counts,
    /// From the first reference to the end of the last think time.
    pub elapsed_ns: u64,
    /// All decisions, in order.
    pub decisions: Vec<Decision>,
    /// Number of references served.
    pub served: u64,
}

/// Wraps a policy and checks at each event that the level's state is consistent and that each decision is allowed.
pub struct Checked {
    policy: Box<dyn Policy>,
    frames: u32,
    decisions: Arc<Mutex<Vec<Decision>>>,
}

impl Checked {
    /// Watches `policy` on a level of `frames` frames and appends its decisions to `decisions`.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, frames: u32, decisions: Arc<Mutex<Vec<Decision>>>) -> Self {
        Self { policy, frames, decisions }
    }
}

impl Policy for Checked {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let resident = view.blocks.iter().filter(|state| state.is_resident()).count() as u32;
        let in_flight = view.blocks.iter().filter(|state| state.is_in_flight()).count() as u32;
        assert_eq!(resident + in_flight + view.free, self.frames, "every frame is resident, in flight or free");
        assert!(!view.blocks.iter().any(|state| state.is_resident() && state.is_in_flight()));
        for (disk, outstanding) in view.outstanding.iter().enumerate() {
            let on = |block: &usize| view.disk_of[*block].index() == disk && view.blocks[*block].is_in_flight();
            assert_eq!((0..view.blocks.len()).filter(on).count() as u32, *outstanding, "disk {disk}");
        }
        self.policy.on(now, event, view, fetches);
        let mut free = view.free;
        for (at, Fetch { block, victim }) in fetches.iter().enumerate() {
            let before = &fetches[..at];
            // A round's fetches are carried out in order, so one may fetch a block that an earlier one has evicted.
            let evicted = before.iter().any(|other| other.victim == Some(*block));
            assert!(view.state(*block).is_absent() || evicted, "{block:?} is here");
            assert!(!before.iter().any(|other| other.block == *block), "{block:?} twice in a round");
            match victim {
                None => free = free.checked_sub(1).expect("a free frame"),
                Some(victim) => {
                    assert_eq!(free, 0, "free frames go first");
                    assert!(view.state(*victim).is_evictable(), "{victim:?} cannot go");
                    assert!(!before.iter().any(|other| other.victim == Some(*victim)), "{victim:?} twice");
                }
            }
        }
        let decided =
            fetches.iter().map(|fetch| (now.0, view.cursor, fetch.block.0, fetch.victim.map(|block| block.0)));
        self.decisions.lock().expect("one thread").extend(decided);
    }

    fn grow(&mut self, blocks: usize) {
        self.policy.grow(blocks);
    }

    fn decides(&self, outstanding: &[u32]) -> bool {
        self.policy.decides(outstanding)
    }

    fn takes_requests(&self) -> bool {
        self.policy.takes_requests()
    }

    fn gathers(&self) -> bool {
        self.policy.gathers()
    }

    fn order_max(&self) -> u32 {
        self.policy.order_max()
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.policy.wake_at()
    }
}

/// FIFO disks.
pub struct Disks {
    /// For each disk: (block, service time, end of service).
    queues: Vec<VecDeque<(Block, u64, u64)>>,
    draws: Draws,
    uniform: bool,
    service_ns_max: u64,
}

impl Backend for Disks {
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32 {
        let drawn = 1 + self.draws.below(self.service_ns_max);
        let service = if self.uniform { self.service_ns_max } else { drawn };
        let queue = &mut self.queues[order.disk.index()];
        let start = queue.back().map_or(now.0, |(_, _, end)| *end);
        queue.extend(order.blocks.iter().map(|block| (*block, service, start + service)));
        1
    }
}

impl Disks {
    /// The disks of a system.
    #[must_use]
    pub fn new(system: &System) -> Self {
        Self {
            queues: vec![VecDeque::new(); system.disks],
            draws: Draws::new(system.seed),
            uniform: system.uniform,
            service_ns_max: system.service_ns_max,
        }
    }

    /// The time at which the next fetch ends.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.queues.iter().filter_map(|queue| queue.front()).map(|(_, _, end)| *end).min()
    }

    /// A fetch that has ended by `now`: its block and its service time.
    pub fn pop(&mut self, now: u64) -> Option<(Block, u64)> {
        let disk = self.queues.iter().position(|queue| queue.front().is_some_and(|(_, _, end)| *end <= now))?;
        let (block, service, _) = self.queues[disk].pop_front()?;
        Some((block, service))
    }
}

/// Runs `policy` on `system`, checking every event.
///
/// # Panics
/// The policy breaks a promise.
#[must_use]
pub fn run(system: &System, policy: Box<dyn Policy>) -> Outcomes {
    let decisions = Arc::new(Mutex::new(vec![]));
    let checked = Box::new(Checked::new(policy, system.frames, decisions.clone()));
    let mut level = Level::new(checked, system.frames, &system.initial(), &system.disk_of(), system.disks);
    let mut disks = Disks::new(system);
    let (mut now, mut due, mut last_think) = (0, Some(0), Nanos::ZERO);
    let mut waiting = false;
    let mut at = 0;
    while at < system.refs.len() {
        let block = Block(system.refs[at]);
        let wake = level.wake_at().map(|wake| wake.0).filter(|wake| *wake > now);
        let next = [due, disks.next(), wake].into_iter().flatten().min();
        now = next.unwrap_or_else(|| panic!("nothing will bring {block:?}, reference {at}"));
        let instant = Nanos(now);
        while let Some((arrived, service)) = disks.pop(now) {
            level.arrived(instant, arrived, Some(Nanos(service)), &NoSpace);
            if waiting && arrived == block {
                due = Some(now);
            }
        }
        let acts = due.is_some_and(|due| due <= now);
        if level.wants_to_decide() || level.wake_at().is_some_and(|wake| wake <= instant) {
            let at_hand = (acts || due.is_none()).then_some(block);
            level.decide(instant, at_hand, &NoSpace, &mut disks);
        }
        if !acts {
            continue;
        }
        if waiting {
            level.take(instant, &NoSpace, &mut disks);
            waiting = false;
        } else {
            let asked = Asked { file: 0, first: 0, count: 1, client: 0, ends_inside: false };
            let (position, compute) = (at as u32, last_think);
            let ask = Ask { id: 0, asked, blocks: &[block], write: false, quiet: false, position, compute };
            waiting = level.request(instant, &ask, &NoSpace, &mut disks).waits();
            due = due.filter(|_| !waiting);
        }
        if !waiting {
            last_think = Nanos(system.think_ns[at]);
            due = Some(now + last_think.0);
            at += 1;
        }
    }
    let decisions = decisions.lock().expect("one thread").clone();
    Outcomes { counts: level.counts().clone(), elapsed_ns: due.unwrap_or(now), decisions, served: at as u64 }
}
