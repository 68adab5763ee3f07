//! The public conformance host, [`headstart_engine::conformance`], with every row of the registry and with processes
//! that share a level.

use std::sync::{Arc, Mutex};

pub use headstart_engine::conformance::{check, odd_systems, run, Decision, Outcomes, System};
use headstart_engine::conformance::{Checked, Disks};
use headstart_engine::{Ask, Level};
use headstart_policy::readahead::Asked;
use headstart_policy::registry::{Context, PolicyRow, ReplacementRow, POLICIES, REPLACEMENTS};
use headstart_policy::{BlockMap, Disclosure, Hints, Policy};
use headstart_types::{Block, Chosen, Disk, Meetings, Nanos, Program};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The context that a policy is built from.
pub fn context(system: &System, replacement: &'static ReplacementRow, disclosure: Disclosure) -> Context {
    let mean = system.think_ns.iter().sum::<u64>() / system.think_ns.len().max(1) as u64;
    Context {
        frames: system.frames,
        initial: system.initial(),
        disks: system.disks,
        disk_of: system.disk_of(),
        replacement: Chosen::plain(replacement),
        hints: Some(Arc::new(Hints { blocks: system.blocks(), disclosure })),
        program: None,
        disclosed_by: Arc::new([]),
        whole: false,
        nominal_service: Nanos(system.service_ns_max),
        block_transfer: Nanos(system.service_ns_max),
        concurrency: 1,
        driver: Nanos::ZERO,
        hit: Nanos::ZERO,
        uniform: system.uniform,
        mean_compute: Nanos(mean),
        constant_compute: system.think_ns.iter().all(|think| *think == mean),
    }
}

/// All rows, each with a replacement if it leaves that open; without rows that only parallel programs use, which this
/// host does not support.
pub fn rows() -> Vec<(&'static PolicyRow, &'static ReplacementRow)> {
    let open = |row: &'static PolicyRow| if row.has_open_replacement() { REPLACEMENTS.len() } else { 1 };
    let rows = POLICIES.iter().copied().filter(|row| row.goes_by_blocks());
    rows.flat_map(|row| REPLACEMENTS[..open(row)].iter().map(move |each| (row, *each))).collect()
}

/// Whether a row uses hints.
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
    let keys = row.keys.read(keys.parse().expect("TOML")).expect("good keys");
    row.build(&keys, &context(system, replacement, disclosure.clone())).unwrap_or_else(|error| panic!("{error}"))
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
        meetings: Meetings::AtEnd,
    };
    let context = Context { program: Some(Arc::new(program)), ..context(system, replacement, disclosure.clone()) };
    let keys = row.keys.read(keys.parse().expect("TOML")).expect("good keys");
    row.build(&keys, &context).unwrap_or_else(|error| panic!("{error}"))
}

/// The disclosures that conformance tests use, for a string of `references`.
pub fn disclosures(references: usize, seed: u64) -> Vec<Disclosure> {
    let subset = |share: f64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Disclosure::Subset((0..references).map(|_| rng.random_bool(share)).collect())
    };
    let windows = [0, 1, 2, 7, 1_000_000].map(Disclosure::Window);
    [Disclosure::All, subset(0.0), subset(0.3), subset(1.0)].into_iter().chain(windows).collect()
}

/// `system` with hints that are wrong in many places, or in a few: a policy is built for the result and runs on
/// `system`.
pub fn misled(system: &System) -> System {
    let mut rng = ChaCha8Rng::seed_from_u64(!system.seed);
    let (wrong, swapped) = (rng.random_range(0.0..0.5), rng.random_range(0.0..0.5));
    let (mut refs, blocks) = (system.refs.clone(), system.disk_of.len() as u32);
    for at in 0..refs.len() {
        if rng.random_bool(swapped) {
            let other = rng.random_range(at..refs.len().min(at + 10));
            refs.swap(at, other);
        }
        if rng.random_bool(wrong) {
            refs[at] = rng.random_range(0..blocks);
        }
    }
    System { refs, ..system.clone() }
}

/// One file in which no two blocks are neighbours, so that each is fetched by itself.
struct Apart(Vec<Disk>);

impl BlockMap for Apart {
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

/// Runs `policy` on `system`, whose references are shared by `processes` processes: each makes every `processes`-th one
/// in order, without waiting for the others.
pub fn run_shared(system: &System, policy: Box<dyn Policy>, processes: u32) -> Outcomes {
    let decisions = Arc::new(Mutex::new(vec![]));
    let checked = Box::new(Checked::new(policy, system.frames, decisions.clone()));
    let mut level = Level::new(checked, system.frames, &system.initial(), &system.disk_of(), system.disks);
    let space = Apart(system.disk_of().to_vec());
    let mut disks = Disks::new(system);
    let references = system.refs.len() as u32;
    // For each process: its next reference, and its time; `None` while it waits.
    let mut next: Vec<u32> = (0..processes).collect();
    let mut due: Vec<Option<u64>> = next.iter().map(|at| (*at < references).then_some(0)).collect();
    let (mut now, mut served, mut done) = (0, 0, vec![]);
    while served < u64::from(references) {
        let acts = due.iter().flatten().min().copied();
        now = [acts, disks.next()].into_iter().flatten().min().expect("somebody goes on");
        while let Some((arrived, service)) = disks.pop(now) {
            level.arrived(Nanos(now), arrived, Some(Nanos(service)), &space);
        }
        if level.wants_to_decide() {
            level.decide(Nanos(now), None, &space, &mut disks);
        }
        for process in 0..processes {
            let at = next[process as usize];
            if due[process as usize].is_some_and(|due| due <= now) {
                due[process as usize] = None;
                let first = 2 * u64::from(system.refs[at as usize]);
                let asked = Asked { file: 0, first, count: 1, client: process, ends_inside: false };
                let (id, blocks) = (u64::from(process), [Block(system.refs[at as usize])]);
                let ask =
                    Ask { id, asked, blocks: &blocks, write: false, quiet: false, position: at, compute: Nanos(0) };
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
