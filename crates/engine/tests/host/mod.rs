//! A second host for levels and policies, beside the simulator: FIFO disks with random service times, one process.
//! Small enough to trust, it checks the level's books after every event and writes down every decision.
#![allow(dead_code)] // each test program uses a part

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use headstart_engine::{Ask, Backend, Counts, Level, Order};
use headstart_policy::readahead::Asked;
use headstart_policy::registry::{Context, PolicyRow, ReplacementRow, POLICIES, REPLACEMENTS};
use headstart_policy::{Disclosure, Event, Fetch, Hints, NoSpace, Policy, Space, View};
use headstart_types::{Block, Disk, Nanos, Program};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What is run: references with the think time after each, and the machine.
#[derive(Debug, Clone)]
pub struct System {
    pub refs: Vec<u32>,
    pub think_ns: Vec<u64>,
    pub initial: Vec<u32>,
    pub frames: u32,
    /// By block.
    pub disk_of: Vec<u32>,
    pub disks: usize,
    /// Service times are drawn from 1 to this; all equal to it if `uniform`.
    pub service_ns_max: u64,
    pub uniform: bool,
    pub seed: u64,
}

impl System {
    /// A system drawn from a seed: up to `refs` references to up to `blocks` blocks.
    pub fn random(seed: u64, refs: usize, blocks: u32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let blocks = rng.random_range(1..=blocks);
        let (frames, disks) = (rng.random_range(1..=blocks.max(2)), rng.random_range(1..=5));
        let (shape, thinking) = (rng.random_range(0..3), rng.random_range(0..3));
        let mut block = 0;
        let refs: Vec<u32> = (0..rng.random_range(1..=refs))
            .map(|_| {
                let jump = shape == 0 || (shape == 1 && rng.random_range(0..5) == 0);
                block = if jump { rng.random_range(0..blocks) } else { (block + 1) % blocks };
                block
            })
            .collect();
        let think = |_: &u32| match thinking {
            0 => 0,
            1 => 1_000,
            _ => rng.random_range(0..3_000),
        };
        let think_ns = refs.iter().map(think).collect();
        let held = rng.random_range(0..=frames.min(blocks));
        Self {
            refs,
            think_ns,
            initial: (0..held).collect(),
            frames,
            disk_of: (0..blocks).map(|_| rng.random_range(0..disks)).collect(),
            disks: disks as usize,
            service_ns_max: rng.random_range(1..20_000),
            uniform: false,
            seed,
        }
    }

    pub fn blocks(&self) -> Arc<[Block]> {
        self.refs.iter().map(|block| Block(*block)).collect()
    }

    pub fn initial(&self) -> Vec<Block> {
        self.initial.iter().map(|block| Block(*block)).collect()
    }

    pub fn disk_of(&self) -> Arc<[Disk]> {
        self.disk_of.iter().map(|disk| Disk(*disk)).collect()
    }

    /// What a policy is built from.
    pub fn context(&self, replacement: &'static ReplacementRow, disclosure: Disclosure) -> Context {
        let mean = self.think_ns.iter().sum::<u64>() / self.think_ns.len().max(1) as u64;
        Context {
            frames: self.frames,
            initial: self.initial(),
            disks: self.disks,
            disk_of: self.disk_of(),
            replacement,
            replacement_keys: replacement.keys.defaults(),
            hints: Some(Arc::new(Hints { blocks: self.blocks(), disclosure })),
            program: None,
            nominal_service: Nanos(self.service_ns_max),
            uniform: self.uniform,
            mean_compute: Nanos(mean),
            constant_compute: self.think_ns.iter().all(|think| *think == mean),
        }
    }
}

/// One decision: when, the cursor, what, in place of what.
pub type Decision = (u64, u32, u32, Option<u32>);

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcomes {
    pub counts: Counts,
    pub elapsed_ns: u64,
    pub decisions: Vec<Decision>,
    /// References served by how they were found.
    pub served: u64,
}

/// A row and a replacement where that is open; without what only parallel programs use, of which this host knows
/// nothing.
pub fn rows() -> Vec<(&'static PolicyRow, &'static ReplacementRow)> {
    let open = |row: &'static PolicyRow| if row.has_open_replacement() { REPLACEMENTS.len() } else { 1 };
    let rows = POLICIES.iter().copied().filter(|row| row.goes_by_blocks());
    rows.flat_map(|row| REPLACEMENTS[..open(row)].iter().map(move |each| (row, *each))).collect()
}

/// Whether a row works from hints.
pub fn is_hinted(row: &PolicyRow, replacement: &ReplacementRow) -> bool {
    row.is_hinted() || (row.has_open_replacement() && replacement.hinted)
}

/// A row's policy with `keys` (TOML) over its defaults.
pub fn build(
    system: &System,
    row: &PolicyRow,
    replacement: &'static ReplacementRow,
    keys: &str,
    disclosure: &Disclosure,
) -> Box<dyn Policy> {
    let mut table = row.keys.defaults();
    table.extend(keys.parse::<toml::Table>().expect("TOML"));
    row.build(table, &system.context(replacement, disclosure.clone())).unwrap_or_else(|error| panic!("{error}"))
}

/// The same for `processes` processes that share the level and the hints.
pub fn build_shared(
    system: &System,
    row: &PolicyRow,
    replacement: &'static ReplacementRow,
    keys: &str,
    disclosure: &Disclosure,
    processes: u32,
) -> Box<dyn Policy> {
    let ends: Arc<[u32]> = [system.refs.len() as u32].into();
    let program = Program {
        blocks: system.blocks(),
        string_ends: ends.clone(),
        portion_ends: ends,
        string_of: vec![0; processes as usize].into(),
        regular: true,
    };
    let context = Context { program: Some(Arc::new(program)), ..system.context(replacement, disclosure.clone()) };
    let mut table = row.keys.defaults();
    table.extend(keys.parse::<toml::Table>().expect("TOML"));
    row.build(table, &context).unwrap_or_else(|error| panic!("{error}"))
}

/// Looks over a policy's shoulder: at each event the level's books must be right, and so must each decision.
struct Checked {
    policy: Box<dyn Policy>,
    frames: u32,
    decisions: Arc<Mutex<Vec<Decision>>>,
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
            // A round's fetches are carried out in order, so one may bring back what an earlier one has evicted.
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

    fn asks(&self) -> bool {
        self.policy.asks()
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.policy.wake_at()
    }
}

/// FIFO disks.
struct Disks {
    /// By disk: (block, service time, end once it is in service).
    queues: Vec<VecDeque<(Block, u64, u64)>>,
    rng: ChaCha8Rng,
    uniform: bool,
    service_ns_max: u64,
}

impl Backend for Disks {
    fn issue(&mut self, now: Nanos, order: Order<'_>) {
        let drawn = self.rng.random_range(1..=self.service_ns_max);
        let service = if self.uniform { self.service_ns_max } else { drawn };
        let queue = &mut self.queues[order.disk.index()];
        let start = queue.back().map_or(now.0, |(_, _, end)| *end);
        let [block] = order.blocks else { panic!("nothing asks for several blocks here") };
        queue.push_back((*block, service, start + service));
    }
}

impl Disks {
    fn next(&self) -> Option<u64> {
        self.queues.iter().filter_map(|queue| queue.front()).map(|(_, _, end)| *end).min()
    }

    fn pop(&mut self, now: u64) -> Option<(Block, Disk, u64)> {
        let disk = self.queues.iter().position(|queue| queue.front().is_some_and(|(_, _, end)| *end <= now))?;
        let (block, service, _) = self.queues[disk].pop_front()?;
        Some((block, Disk(disk as u32), service))
    }
}

/// Runs `policy` on `system`.
pub fn run(system: &System, policy: Box<dyn Policy>) -> Outcomes {
    let decisions = Arc::new(Mutex::new(vec![]));
    let checked = Box::new(Checked { policy, frames: system.frames, decisions: decisions.clone() });
    let mut level = Level::new(checked, system.frames, &system.initial(), &system.disk_of(), system.disks);
    let mut disks = Disks {
        queues: vec![VecDeque::new(); system.disks],
        rng: ChaCha8Rng::seed_from_u64(system.seed),
        uniform: system.uniform,
        service_ns_max: system.service_ns_max,
    };
    let (mut now, mut due, mut last_think) = (0, Some(0), Nanos::ZERO);
    let mut waiting = false;
    let mut at = 0;
    while at < system.refs.len() {
        let block = Block(system.refs[at]);
        let wake = level.wake_at().map(|wake| wake.0).filter(|wake| *wake > now);
        let next = [due, disks.next(), wake].into_iter().flatten().min();
        now = next.unwrap_or_else(|| panic!("nothing will bring {block:?}, reference {at}"));
        let instant = Nanos(now);
        while let Some((arrived, disk, service)) = disks.pop(now) {
            level.arrived(instant, arrived, disk, Some(Nanos(service)), &NoSpace);
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
            let asked = Asked { file: 0, first: 0, count: 1, client: 0 };
            let (position, compute) = (at as u32, last_think);
            let ask = Ask { id: 0, asked, blocks: &[block], write: false, position, compute };
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

/// The ways to disclose that conformance tests go through, for a string of `references`.
pub fn disclosures(references: usize, seed: u64) -> Vec<Disclosure> {
    let subset = |share: f64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Disclosure::Subset((0..references).map(|_| rng.random_bool(share)).collect())
    };
    let windows = [0, 1, 2, 7, 1_000_000].map(Disclosure::Window);
    [Disclosure::All, subset(0.0), subset(0.3), subset(1.0)].into_iter().chain(windows).collect()
}

/// One file in which no two blocks are neighbours, so that each is fetched by itself.
struct Apart(Vec<Disk>);

impl Space for Apart {
    fn block(&self, _file: u32, index: u64) -> Option<Block> {
        Some(Block((index / 2) as u32))
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.block(file, index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, 2 * u64::from(block.0))
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        None
    }

    fn disk(&self, block: Block) -> Disk {
        self.0[block.index()]
    }

    fn blocks(&self) -> usize {
        self.0.len()
    }
}

/// Runs `policy` on `system`, whose references `processes` processes share: each makes every `processes`-th one, in
/// order, and none waits for another.
pub fn run_shared(system: &System, policy: Box<dyn Policy>, processes: u32) -> Outcomes {
    let decisions = Arc::new(Mutex::new(vec![]));
    let checked = Box::new(Checked { policy, frames: system.frames, decisions: decisions.clone() });
    let mut level = Level::new(checked, system.frames, &system.initial(), &system.disk_of(), system.disks);
    let space = Apart(system.disk_of().to_vec());
    let mut disks = Disks {
        queues: vec![VecDeque::new(); system.disks],
        rng: ChaCha8Rng::seed_from_u64(system.seed),
        uniform: system.uniform,
        service_ns_max: system.service_ns_max,
    };
    let references = system.refs.len() as u32;
    // By process: its next reference, and when it makes it; `None` while it waits.
    let mut next: Vec<u32> = (0..processes).collect();
    let mut due: Vec<Option<u64>> = next.iter().map(|at| (*at < references).then_some(0)).collect();
    let (mut now, mut served, mut done) = (0, 0, vec![]);
    while served < u64::from(references) {
        let acts = due.iter().flatten().min().copied();
        now = [acts, disks.next()].into_iter().flatten().min().expect("somebody goes on");
        while let Some((arrived, disk, service)) = disks.pop(now) {
            level.arrived(Nanos(now), arrived, disk, Some(Nanos(service)), &space);
        }
        if level.wants_to_decide() {
            level.decide(Nanos(now), None, &space, &mut disks);
        }
        for process in 0..processes {
            let at = next[process as usize];
            if due[process as usize].is_some_and(|due| due <= now) {
                due[process as usize] = None;
                let first = 2 * u64::from(system.refs[at as usize]);
                let asked = Asked { file: 0, first, count: 1, client: process };
                let (id, blocks) = (u64::from(process), [Block(system.refs[at as usize])]);
                let ask = Ask { id, asked, blocks: &blocks, write: false, position: at, compute: Nanos(0) };
                let looked = level.request(Nanos(now), &ask, &space, &mut disks);
                done.extend((!looked.waits()).then_some(id));
            }
        }
        level.take_done(&mut done);
        for process in done.drain(..).map(|id| id as usize) {
            served += 1;
            let think = system.think_ns[next[process] as usize];
            next[process] += processes;
            due[process] = (next[process] < references).then_some(now + think);
        }
    }
    let decisions = decisions.lock().expect("one thread").clone();
    Outcomes { counts: level.counts().clone(), elapsed_ns: now, decisions, served }
}
