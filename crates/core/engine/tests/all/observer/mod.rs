//! The engine observed from outside: every request, decision, order, arrival and eviction is entered into the
//! observer's own books (`book.rs`). All counts of the level must equal these, as must the lengths of its orders and
//! the counts of the drives. Random systems, every policy of the registry block by block and by whole requests, every
//! device, several disks.

mod book;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use headstart_device::{build_device, build_scheduler, Drive, Finished, Request, Started, MODELS, SCHEDULERS};
use headstart_engine::{Ask, Backend, IoRequest, Kind, Level};
use headstart_policy::readahead::{Asked, BuildReadAhead, ReadAheadContext};
use headstart_policy::registry::{Beside, Context, PolicyRow, ReplacementRow, POLICIES, REPLACEMENTS};
use headstart_policy::{BlockMap, Disclosure, Event, Fetch, Hints, Policy, RequestPolicy, View};
use headstart_types::{Block, Disk, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use book::{Book, IssueMode, FILE_BLOCKS};

const SYSTEMS: u64 = 30;
const BLOCK_SECTORS: u32 = 8;

/// Files one after another, dealt out to the disks.
#[derive(Clone, Copy)]
struct Files {
    files: u32,
    disks: u32,
}

impl BlockMap for Files {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        let at = index < FILE_BLOCKS.into() && file < self.files;
        at.then(|| Block(file * FILE_BLOCKS + index as u32))
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.block(file, index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (block.0 / FILE_BLOCKS, (block.0 % FILE_BLOCKS).into())
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        Some(FILE_BLOCKS.into())
    }

    fn disk(&self, block: Block) -> Disk {
        Disk(block.0 / FILE_BLOCKS % self.disks)
    }

    fn blocks(&self) -> usize {
        (self.files * FILE_BLOCKS) as usize
    }

    fn sector(&self, block: Block) -> Option<u64> {
        Some(u64::from(block.0 * BLOCK_SECTORS))
    }
}

#[derive(Debug, Clone)]
struct PlannedRequest {
    first: u32,
    count: u32,
    write: bool,
    think: u64,
}

/// A system to run: by process, its requests.
#[derive(Debug, Clone)]
struct Drawn {
    files: u32,
    disks: u32,
    frames: u32,
    initial: Vec<Block>,
    planned: Vec<Vec<PlannedRequest>>,
    write_delay: Option<u64>,
    device: &'static str,
    scheduler: &'static str,
    replacement: usize,
}

fn drawn(seed: u64, processes: u32, count_max: u32) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (files, frames) = (rng.random_range(1..=5), rng.random_range(1..=48));
    let blocks = files * FILE_BLOCKS;
    let think_max = [1, 300_000, 20_000_000][rng.random_range(0..3)];
    let (writes, jumps) = ([0.0, 0.3][rng.random_range(0..2)], rng.random_range(0.0..1.0));
    let planned = |rng: &mut ChaCha8Rng| {
        let mut first = 0;
        let mut request = || {
            first = if rng.random_bool(jumps) { rng.random_range(0..blocks) } else { first % blocks };
            let count = rng.random_range(1..=count_max).min(FILE_BLOCKS - first % FILE_BLOCKS);
            let request =
                PlannedRequest { first, count, write: rng.random_bool(writes), think: rng.random_range(0..think_max) };
            first += count;
            request
        };
        (0..60).map(|_| request()).collect()
    };
    Drawn {
        files,
        disks: rng.random_range(1..=3),
        frames,
        initial: (0..rng.random_range(0..=frames.min(blocks))).map(Block).collect(),
        planned: (0..processes).map(|_| planned(&mut rng)).collect(),
        write_delay: rng.random_bool(0.5).then(|| rng.random_range(1..50_000_000)),
        device: MODELS[rng.random_range(0..MODELS.len())].name,
        scheduler: SCHEDULERS[rng.random_range(0..SCHEDULERS.len())].name,
        replacement: rng.random_range(0..REPLACEMENTS.len()),
    }
}

impl Drawn {
    fn files(&self) -> Files {
        Files { files: self.files, disks: self.disks }
    }

    fn disk_of(&self) -> Vec<Disk> {
        (0..self.files * FILE_BLOCKS).map(|block| self.files().disk(Block(block))).collect()
    }

    fn policy(&self, row: &'static PolicyRow, whole: bool) -> Box<dyn Policy> {
        let fits = |each: &&ReplacementRow| !each.hinted || self.planned.len() == 1;
        let open = || REPLACEMENTS.iter().copied().cycle().skip(self.replacement).find(fits).expect("there are others");
        let chosen = row.has_open_replacement().then(open).unwrap_or(REPLACEMENTS[0]);
        let blocks = self.planned[0]
            .iter()
            .flat_map(|request| (request.first..request.first + request.count).map(Block))
            .collect();
        let context = Context {
            initial: self.initial.clone(),
            disks: self.disks as usize,
            disk_of: self.disk_of().into(),
            hints: Some(Arc::new(Hints { blocks, disclosure: Disclosure::All })),
            whole,
            nominal_service: Nanos(10_000_000),
            uniform: false,
            constant_compute: false,
            ..Context::plain(chosen, self.frames, Vec::new(), 0)
        };
        let with = |read_ahead| context.join(Beside::Requests(read_ahead));
        let drive = build_device("hp97560", Table::new()).expect("it is shipped").drive_facts().map(Arc::new);
        let of_read_ahead = ReadAheadContext { block_bytes: 4096, frames: self.frames, drive, future: Some([].into()) };
        // Orders of at most this many blocks, if that can be set.
        let given = row.keys.has("max_request").then(|| ("max_request".to_owned(), "12KiB".into()));
        let keys = &row.keys.read(given.into_iter().collect()).expect("good keys");
        let built = match row.reads_ahead().map(|reads_ahead| reads_ahead.build) {
            Some(BuildReadAhead::Separate(make)) => make(keys, &of_read_ahead).and_then(|parts| with(Some(parts))),
            Some(BuildReadAhead::WithReplacement(make)) => make(keys, &of_read_ahead).map(|mut parts| {
                for block in &self.initial {
                    let (file, index) = self.files().place(*block);
                    parts.placed(*block, file, index);
                    parts.inserted(*block);
                }
                Box::new(RequestPolicy::new(parts, self.frames)) as Box<dyn Policy>
            }),
            None if whole && !row.is_hinted() => with(None),
            None => row.build(keys, &context),
        };
        built.unwrap_or_else(|error| panic!("{}: {error}", row.name))
    }
}

/// Passes everything on, and notes the decisions.
struct Watched(Box<dyn Policy>, Arc<Mutex<Book>>);

impl Policy for Watched {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        self.0.on(now, event, view, fetches);
        self.1.lock().expect("one thread").decided.clone_from(fetches);
    }

    fn grow(&mut self, blocks: usize) {
        self.0.grow(blocks);
    }

    fn decides(&self, outstanding: &[u32]) -> bool {
        self.0.decides(outstanding)
    }

    fn takes_requests(&self) -> bool {
        self.0.takes_requests()
    }

    fn gathers(&self) -> bool {
        self.0.gathers()
    }

    fn order_max(&self) -> u32 {
        self.0.order_max()
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.0.wake_at()
    }
}

/// The drives; the observer is between them and the level.
struct Outside {
    book: Arc<Mutex<Book>>,
    drives: Vec<Drive>,
    wakes: BTreeMap<usize, Nanos>,
    orders: Vec<(Kind, Vec<Block>, u64)>,
    allocated: Vec<Block>,
    /// Orders and sectors that have ended, and the sum of the times since they were given.
    done: (u64, u64, u128),
}

impl Backend for Outside {
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32 {
        self.book.lock().expect("one thread").ordered(now.0, order.kind, order.blocks);
        if order.kind == Kind::Allocate {
            self.allocated.extend(order.blocks);
            return 0;
        }
        let (sector, sectors) =
            (u64::from(order.blocks[0].0 * BLOCK_SECTORS), order.blocks.len() as u32 * BLOCK_SECTORS);
        let read = Request::read(sector, sectors, self.orders.len() as u64);
        let (write, prefetch) = (order.kind == Kind::Write, order.kind == Kind::Prefetch);
        self.drives[order.disk.index()].submit(now, Request { write, prefetch, ..read });
        self.orders.push((order.kind, order.blocks.to_vec(), now.0));
        1
    }
}

impl Outside {
    fn start(&mut self, now: Nanos) {
        for (at, drive) in self.drives.iter_mut().enumerate() {
            while drive.may_start() {
                match drive.start(now) {
                    Started::Ends(_) => continue,
                    Started::Wakes(then) => drop(self.wakes.insert(at, then)),
                    Started::Nothing => drop(self.wakes.remove(&at)),
                }
                break;
            }
        }
    }

    fn next(&self) -> Option<Nanos> {
        self.drives.iter().filter_map(Drive::next_end).chain(self.wakes.values().copied()).min()
    }

    fn ended(&mut self, now: Nanos) -> Vec<Finished> {
        let mut all = Vec::new();
        self.wakes.retain(|_, at| *at > now);
        for drive in &mut self.drives {
            while drive.next_end() == Some(now) {
                drive.finish(now, |finished| all.push(finished));
            }
        }
        all
    }
}

/// Runs it, and compares.
fn watch(what: &str, drawn: &Drawn, policy: Box<dyn Policy>) {
    let mode = IssueMode {
        gathers: policy.takes_requests() || policy.gathers(),
        order_max: policy.order_max() as usize,
        takes_requests: policy.takes_requests(),
    };
    let book = Arc::new(Mutex::new(Book::new(what, mode, &drawn.initial)));
    let noted = || -> MutexGuard<'_, Book> { book.lock().expect("one thread") };
    // The only device without a default time.
    let time = (drawn.device == "uniform").then(|| ("fetch_time".to_owned(), "7ms".into()));
    let keys = Table::from_iter(time);
    let drive = |_| {
        let scheduler = build_scheduler(drawn.scheduler, Table::new()).expect("it has defaults");
        Drive::new(build_device(drawn.device, keys.clone()).expect("it has defaults"), scheduler)
    };
    let mut outside = Outside {
        book: book.clone(),
        drives: (0..drawn.disks).map(drive).collect(),
        wakes: BTreeMap::new(),
        orders: Vec::new(),
        allocated: Vec::new(),
        done: (0, 0, 0),
    };
    let watched = Box::new(Watched(policy, book.clone()));
    let mut level = Level::new(watched, drawn.frames, &drawn.initial, &drawn.disk_of(), drawn.disks as usize);
    let files = drawn.files();
    // By process: its next request, when it goes on (`None` while it waits), and the request that it has waited for.
    let mut next = vec![0; drawn.planned.len()];
    let mut due = vec![Some(0); drawn.planned.len()];
    let mut waited = vec![false; drawn.planned.len()];
    let (mut now, mut position, mut done) = (0, 0, Vec::new());
    loop {
        let wakes = level.wake_at().map(|at| at.0).filter(|at| *at > now);
        let instants = due.iter().flatten().copied().chain(outside.next().map(|at| at.0)).chain(wakes);
        let instants =
            instants.chain(level.flush_at().map(|at| at.0)).chain((!outside.allocated.is_empty()).then_some(now));
        let is_left = next.iter().zip(&drawn.planned).any(|(at, planned)| *at < planned.len());
        let Some(then) = instants.min().filter(|_| is_left) else {
            assert!(!is_left, "{what}: nothing will end the wait");
            break;
        };
        now = then;
        let instant = Nanos(now);
        let mut come: Vec<(Block, Option<Nanos>)> = outside.allocated.drain(..).map(|block| (block, None)).collect();
        for Finished { request, service_time, .. } in outside.ended(instant) {
            let (kind, blocks, given) = outside.orders[request.tag as usize].clone();
            let (orders, sectors, response_ns) = outside.done;
            outside.done = (orders + 1, sectors + u64::from(request.sectors), response_ns + u128::from(now - given));
            match kind {
                Kind::Write => blocks.iter().for_each(|block| level.written(*block)),
                _ => {
                    come.extend(blocks.iter().map(|block| (*block, Some(Nanos(service_time.0 / blocks.len() as u64)))))
                }
            }
        }
        for (block, service) in come {
            noted().came(now, block.0, service.map(|service| service.0));
            level.arrived(instant, block, service, &files);
        }
        level.take_done(&mut done);
        for process in done.drain(..).map(|id: u64| id as usize) {
            (due[process], waited[process]) = (Some(now), true);
        }
        if level.flush_at().is_some_and(|at| at.0 <= now) {
            noted().flushed(now);
            level.flush(instant, &mut outside);
            noted().over(now);
        }
        if level.wants_to_decide() || level.wake_at().is_some_and(|at| at <= instant) {
            let acts = due[0].is_none_or(|due| due <= now) && next[0] < drawn.planned[0].len();
            let at_hand = (acts && !mode.takes_requests).then(|| Block(drawn.planned[0][next[0]].first));
            (noted().round, noted().at_hand) = (true, at_hand.map(|block| block.0));
            level.decide(instant, at_hand, &files, &mut outside);
            noted().over(now);
        }
        for process in 0..next.len() {
            if due[process].is_none_or(|due| due > now) || next[process] == drawn.planned[process].len() {
                continue;
            }
            let request = drawn.planned[process][next[process]].clone();
            let blocks: Vec<Block> = (request.first..request.first + request.count).map(Block).collect();
            noted().at_hand = None;
            due[process] = None;
            let waits = if std::mem::take(&mut waited[process]) {
                noted().round = true;
                level.take(instant, &files, &mut outside);
                blocks.iter().filter(|_| !mode.takes_requests).for_each(|block| noted().handed_over(now, block.0));
                false
            } else {
                blocks.iter().for_each(|block| noted().referenced(now, process as u32, block.0, request.write));
                noted().round = true;
                let (file, first) = files.place(blocks[0]);
                let asked = Asked { file, first, count: request.count, client: process as u32, ends_inside: false };
                let compute =
                    Nanos(if next[process] == 0 { 0 } else { drawn.planned[process][next[process] - 1].think });
                let ask = Ask {
                    id: process as u64,
                    asked,
                    blocks: &blocks,
                    write: request.write,
                    quiet: false,
                    position,
                    compute,
                };
                position += request.count;
                level.request(instant, &ask, &files, &mut outside).waits()
            };
            noted().over(now);
            if waits {
                continue;
            }
            if request.write {
                let delay = drawn.write_delay;
                let numbers: Vec<u32> = blocks.iter().map(|block| block.0).collect();
                noted().written(&numbers, delay.map(|delay| now + delay));
                let blocks: Vec<_> = blocks.iter().map(|block| (*block, None)).collect();
                level.write(instant, &blocks, delay.map(Nanos), &files, &mut outside);
                noted().over(now);
            }
            next[process] += 1;
            due[process] = (next[process] < drawn.planned[process].len()).then_some(now + request.think);
        }
        outside.start(instant);
    }
    let book = noted();
    assert_eq!(*level.counts(), book.counts(), "{what}: {drawn:?}");
    assert_eq!(book.orders_seen, book.orders_expected, "{what}: {drawn:?}");
    let counted = outside.drives.iter().map(|drive| drive.statistics(Nanos(now)));
    let sums =
        counted.fold((0, 0, 0), |sums, each| (sums.0 + each.parts, sums.1 + each.sectors, sums.2 + each.response_ns));
    assert_eq!(sums, outside.done, "{what}: {drawn:?}");
}

fn rows() -> impl Iterator<Item = &'static PolicyRow> {
    // The search for the optimum needs equal service times.
    POLICIES.iter().copied().filter(|row| !row.is_parallel() && row.name != "optimum")
}

#[test]
fn block_by_block_each_count_is_the_observers() {
    for row in rows().filter(|row| row.goes_by_blocks()) {
        for seed in 0..SYSTEMS {
            let drawn = drawn(seed, 1, 1);
            watch(&format!("{}, seed {seed}", row.name), &drawn, drawn.policy(row, false));
        }
    }
}

#[test]
fn by_whole_requests_each_count_is_the_observers() {
    let mut asked = 0;
    for row in rows() {
        for seed in 0..SYSTEMS {
            let processes = if row.is_hinted() { 1 } else { 1 + seed as u32 % 3 };
            let drawn = drawn(!seed, processes, 6);
            let policy = drawn.policy(row, true);
            if policy.takes_requests() {
                watch(&format!("{}, seed {seed}", row.name), &drawn, policy);
                asked += 1;
            }
        }
    }
    assert!(asked > 20 * SYSTEMS, "{asked}: the policies that take whole requests");
}
