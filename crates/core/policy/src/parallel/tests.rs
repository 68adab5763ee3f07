//! RAPID Transit worked by hand, and in random programs against a model that scans the strings from their cursors.

use std::sync::Arc;

use headstart_types::{Block, Chosen, Disk, Meetings, Nanos, Outcome, Position, Program, TypedKeys};
use proptest::prelude::*;

use super::RapidTransitKeys;
use crate::predictor;
use crate::readahead::{Asked, Found};
use crate::registry::{policy, replacement, Context};
use crate::{BlockMap, BlockState, Event, Fetch, Hints, Policy, View};

/// One file; a block's number is its index.
struct File(u32);

impl BlockMap for File {
    fn block(&self, _file: u32, index: u64) -> Option<Block> {
        (index < u64::from(self.0)).then_some(Block(index as u32))
    }
    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.block(file, index)
    }
    fn place(&self, block: Block) -> (u32, u64) {
        (0, u64::from(block.0))
    }
    fn file_blocks(&self, _file: u32) -> Option<u64> {
        Some(u64::from(self.0))
    }
    fn disk(&self, _block: Block) -> Disk {
        Disk(0)
    }
    fn blocks(&self) -> usize {
        self.0 as usize
    }
}

const BLOCKS: u32 = 40;

fn context(program: Option<Arc<Program>>, frames: u32) -> Context {
    Context {
        frames,
        initial: vec![],
        disks: 1,
        disk_of: vec![Disk(0); BLOCKS as usize].into(),
        replacement: Chosen::plain(replacement("ru-set").unwrap()),
        hints: program.as_ref().map(|program| Arc::new(Hints::all(program.blocks.clone()))),
        program,
        disclosed_by: Arc::new([]),
        whole: false,
        nominal_service: Nanos(1),
        block_transfer: Nanos(1),
        concurrency: 1,
        driver: Nanos::ZERO,
        hit: Nanos::ZERO,
        uniform: true,
        mean_compute: Nanos(1),
        constant_compute: true,
    }
}

/// A level without time; the test ends fetches explicitly.
struct Host {
    policy: Box<dyn Policy>,
    program: Arc<Program>,
    states: Vec<BlockState>,
    free: u32,
    /// For each block: the waiting processes and their positions.
    waiters: Vec<Vec<(u32, Position)>>,
}

impl Host {
    fn new(program: &Arc<Program>, frames: u32, keys: &str) -> Self {
        let mut keys: toml::Table = keys.parse().unwrap();
        let predictor = keys.remove("predictor");
        let row = policy("rapid-transit").unwrap();
        let keys: RapidTransitKeys = row.keys.read(keys).unwrap().get::<RapidTransitKeys>().clone();
        let predictor = predictor.map(|name| predictor::named(name.as_str().unwrap(), toml::Table::new()).unwrap());
        let keys = RapidTransitKeys { predictor: predictor.map(|predictor| (predictor, 8192)), ..keys };
        let mut policy = row.build(&TypedKeys::new(keys), &context(Some(program.clone()), frames)).unwrap();
        policy.grow(BLOCKS as usize);
        let waiters = vec![vec![]; BLOCKS as usize];
        let states = vec![BlockState::ABSENT; BLOCKS as usize];
        Self { policy, program: program.clone(), states, free: frames, waiters }
    }

    /// Sends `event` and carries out the decisions; returns the fetched blocks.
    fn tell(&mut self, event: Event, (asked, found): (&[Block], &[Found])) -> Vec<u32> {
        let (blocks, space, mut fetches) = (&self.states, &File(BLOCKS), vec![]);
        let view = View { cursor: 0, free: self.free, blocks, outstanding: &[0], disk_of: &[], space, asked, found };
        self.policy.on(Nanos(0), event, &view, &mut fetches);
        for Fetch { block, victim } in &fetches {
            match victim {
                None => self.free = self.free.checked_sub(1).expect("a free frame"),
                Some(victim) => {
                    assert!(self.states[victim.index()].is_evictable() && self.free == 0);
                    self.states[victim.index()] = BlockState::ABSENT;
                }
            }
            assert!(self.states[block.index()].is_absent(), "{block:?} is here");
            self.states[block.index()] = BlockState::in_flight(self.waiters[block.index()].is_empty());
        }
        fetches.iter().map(|fetch| fetch.block.0).collect()
    }

    fn read(&mut self, process: u32, position: Position) -> Vec<u32> {
        let block = self.program.blocks[position as usize];
        let state = self.states[block.index()];
        self.states[block.index()] = state.used();
        let found = match (state.is_resident(), state.is_in_flight()) {
            (true, _) => Found::Ready,
            (_, true) => Found::Unready,
            _ => Found::Absent,
        };
        if found == Found::Ready {
            self.serve(process, position, block);
        } else {
            self.waiters[block.index()].push((process, position));
        }
        let asked = Asked { file: 0, first: u64::from(block.0), count: 1, client: process, ends_inside: false };
        self.tell(Event::Asked { asked, position, write: false }, (&[block], &[found]))
    }

    fn serve(&mut self, process: u32, position: Position, block: Block) {
        let (outcome, compute) = (Outcome::HitReady, Nanos(0));
        self.tell(Event::Served { position, block, outcome, compute, process }, (&[], &[]));
    }

    fn arrive(&mut self, block: u32) {
        let state = self.states[block as usize].arrived();
        self.states[block as usize] = state;
        self.tell(Event::Arrived { block: Block(block), disk: Disk(0), service: Some(Nanos(1)) }, (&[], &[]));
        for (process, position) in std::mem::take(&mut self.waiters[block as usize]) {
            self.states[block as usize] = self.states[block as usize].used();
            self.serve(process, position, Block(block));
        }
    }

    /// The process reads, and the block arrives.
    fn reads(&mut self, process: u32, position: Position) {
        for block in self.read(process, position) {
            self.arrive(block);
        }
    }

    fn idle(&mut self, process: u32) -> Option<u32> {
        let could = self.policy.could_prefetch(Some(process));
        let fetched = self.tell(Event::Idle { process }, (&[], &[]));
        assert!(fetched.len() <= 1 && (could || fetched.is_empty()));
        fetched.first().copied()
    }

    fn unused(&self) -> usize {
        self.states.iter().filter(|state| state.is_unused_prefetch()).count()
    }
}

fn program(
    blocks: &[u32],
    string_ends: &[u32],
    portion_ends: &[u32],
    string_of: &[u32],
    regular: bool,
) -> Arc<Program> {
    let blocks = blocks.iter().map(|block| Block(*block)).collect();
    let (string_ends, portion_ends) = (string_ends.into(), portion_ends.into());
    Arc::new(Program {
        blocks,
        string_ends,
        portion_ends,
        string_of: string_of.into(),
        regular,
        meetings: Meetings::AtEnd,
    })
}

#[test]
fn a_shared_string_is_prefetched_in_order_up_to_the_buffers() {
    let shared = program(&[0, 1, 2, 3, 4, 5], &[6], &[6], &[0, 0], true);
    let mut host = Host::new(&shared, 4, "");
    // Process 0 misses block 0; both processors act: two buffers for two processes.
    assert_eq!(host.read(0, 0), [0]);
    assert_eq!((host.idle(0), host.idle(1), host.idle(0)), (Some(1), Some(2), None));
    assert!(!host.policy.could_prefetch(None));
    // Block 1 is requested in flight: its buffer is free before it has arrived.
    assert_eq!(host.read(1, 1), [0u32; 0]);
    assert_eq!(host.idle(1), Some(3));
    // With a lead of 2 the next but one after the cursor, which is at 1.
    let mut host = Host::new(&shared, 9, "min_lead = 2\nbuffers = 5");
    host.reads(0, 0);
    assert_eq!((host.idle(0), host.idle(0), host.idle(0), host.idle(0)), (Some(3), Some(4), Some(5), None));
    // Blocks that are too near now are left to demand fetching.
    assert_eq!((host.read(1, 1), host.read(0, 2)), (vec![1], vec![2]));
}

#[test]
fn the_next_portion_is_known_where_portions_are_regular() {
    let strings = |regular| program(&[0, 1, 10, 11], &[4], &[2, 4], &[0], regular);
    let mut host = Host::new(&strings(true), 5, "buffers = 4");
    assert_eq!((host.idle(0), host.idle(0), host.idle(0)), (Some(0), Some(1), Some(10)));
    // Irregular: nothing before the first read, then block 1, then nothing before block 10 has been read.
    let mut host = Host::new(&strings(false), 5, "buffers = 4");
    assert!(!host.policy.could_prefetch(None));
    assert_eq!(host.idle(0), None);
    host.reads(0, 0);
    assert_eq!((host.idle(0), host.idle(0)), (Some(1), None));
    host.arrive(1);
    host.reads(0, 1);
    assert_eq!(host.idle(0), None);
    assert_eq!(host.read(0, 2), [10]);
    assert_eq!((host.idle(0), host.idle(0)), (Some(11), None));
}

#[test]
fn the_own_string_comes_first_then_the_next_others() {
    let local = program(&[0, 10, 20, 21], &[1, 2, 4], &[1, 2, 4], &[0, 1, 2], true);
    let mut host = Host::new(&local, 9, "buffers = 9");
    assert_eq!((host.idle(1), host.idle(1), host.idle(1)), (Some(10), Some(20), Some(21)));
    assert_eq!((host.idle(1), host.idle(1)), (Some(0), None), "round to the first");
    let mut host = Host::new(&local, 9, "buffers = 9\nfor_others = false");
    assert_eq!((host.idle(1), host.idle(1)), (Some(10), None));
    assert!(host.policy.could_prefetch(None) && !host.policy.could_prefetch(Some(1)));
}

#[test]
fn the_process_furthest_behind_comes_first() {
    let local = program(&[0, 1, 2, 3, 10, 11, 12, 13], &[4, 8], &[4, 8], &[0, 1], true);
    let every_two = Arc::new(Program { meetings: Meetings::Every(2), ..(*local).clone() });
    let mut host = Host::new(&every_two, 9, "buffers = 9\nprefetch_for = \"critical\"");
    // Process 0 reads block 0: one read is left before they synchronise, process 1 has two.
    host.reads(0, 0);
    assert_eq!(host.idle(0), Some(10));
    // Both have one left that is absent: the own string's.
    assert_eq!((host.idle(0), host.idle(0)), (Some(1), Some(11)));
    // Blocks beyond the synchronisation shorten no interval: the own string's first, then the other's.
    assert_eq!((host.idle(1), host.idle(0)), (Some(12), Some(2)));
    // Without barriers process 1, which has read nothing, is behind as long as it has more absent blocks.
    let mut host = Host::new(&local, 9, "buffers = 9\nprefetch_for = \"critical\"");
    host.reads(0, 0);
    assert_eq!((host.idle(0), host.idle(0), host.idle(0)), (Some(10), Some(1), Some(11)));
}

#[test]
fn what_was_there_and_has_left_is_prefetched_after_all() {
    // Process 1 will read block 0 last; it is there when the string is scanned, and is evicted before that read.
    let local = program(&[0, 1, 2, 5, 0], &[3, 5], &[3, 5], &[0, 1], true);
    let mut host = Host::new(&local, 3, "buffers = 1");
    host.reads(0, 0);
    assert_eq!(host.idle(1), Some(5));
    host.arrive(5);
    host.reads(1, 3);
    assert_eq!(host.idle(1), Some(1), "block 0 is there, the rest of its string is done");
    host.arrive(1);
    host.reads(0, 1);
    // 0 is tossed now, and evicted for block 2.
    assert_eq!(host.idle(0), Some(2));
    host.arrive(2);
    host.reads(0, 2);
    assert_eq!(host.idle(0), Some(0), "in place of block 1");
    assert_eq!(host.idle(0), None);
}

#[test]
fn what_a_predictor_names_is_fetched_by_idle_processors() {
    let string: Vec<u32> = [1, 5, 7, 8, 1, 5].into_iter().chain(20..35).collect();
    let end = string.len() as u32;
    let own = program(&string, &[end], &[end], &[0], true);
    let keys = "buffers = 1\npredictor = \"last-successor\"";
    let mut host = Host::new(&own, 2, keys);
    // Nothing is known on a first pass, regardless of the string.
    for position in 0..4 {
        host.reads(0, position);
        assert_eq!((host.idle(0), host.policy.could_prefetch(Some(0))), (None, false), "{position}");
    }
    // 5 followed 1, and 7 followed 5; both have been evicted. Each is one action.
    host.reads(0, 4);
    assert_eq!((host.idle(0), host.idle(0)), (Some(5), None));
    host.arrive(5);
    host.reads(0, 5);
    assert_eq!((host.idle(0), host.unused()), (Some(7), 1));
    host.arrive(7);
    // 7 is not referenced this time. It keeps its buffer for ten requests, and then becomes the first victim.
    for position in 6..16 {
        host.reads(0, position);
        assert_eq!((host.unused(), host.idle(0)), (1, None), "{position}");
    }
    host.reads(0, 16);
    assert_eq!((host.unused(), host.states[7].is_absent()), (0, true));
}

#[test]
fn what_was_named_for_a_process_is_fetched_by_its_own_processor_first() {
    let string: Vec<u32> = [1, 2, 3, 4, 1].into_iter().collect();
    let other: Vec<u32> = [11, 12, 13, 14, 11].into_iter().collect();
    let both = program(&[string, other].concat(), &[5, 10], &[5, 10], &[0, 1], true);
    for (keys, expected) in [("", [Some(12), Some(2), None]), ("for_others = false\n", [Some(12), None, None])] {
        let keys = format!("{keys}buffers = 4\npredictor = \"last-successor\"");
        let mut host = Host::new(&both, 4, &keys);
        for position in 0..5 {
            host.reads(0, position);
            host.reads(1, 5 + position);
        }
        assert_eq!([(); 3].map(|()| host.idle(1)), expected, "{keys}");
        // A block that has been requested meanwhile needs no action.
        assert!(!host.policy.could_prefetch(Some(1)), "{keys}");
    }
}

/// The error of `name` for a context that it rejects.
fn refusal(name: &str, context: &Context, keys: &str) -> String {
    let row = policy(name).unwrap();
    let built = row.keys.read(keys.parse().unwrap()).and_then(|keys| row.build(&keys, context));
    built.err().unwrap().to_string()
}

#[test]
fn a_program_is_needed() {
    let row = policy("rapid-transit").unwrap();
    assert!(row.is_parallel() && row.has_open_replacement() && !row.is_hinted());
    let mut context = context(None, 4);
    let error = |context: &Context, keys: &str| refusal("rapid-transit", context, keys);
    assert!(error(&context, "").starts_with("name: rapid-transit needs to know what the processes"));
    context.program = Some(program(&[0], &[1], &[1], &[0], true));
    assert!(error(&context, "buffer = 1").starts_with("buffer: unknown"), "{}", error(&context, "buffer = 1"));
    context.replacement = Chosen::plain(replacement("min").unwrap());
    assert!(error(&context, "").starts_with("replacement: min cannot be used with rapid-transit"));
}

#[test]
fn plans_for_one_process_are_refused_to_several() {
    let shared = |processes| context(Some(program(&[0, 1], &[2], &[2], &vec![0; processes], true)), 4);
    for name in ["reverse-aggressive", "optimum"] {
        let error = refusal(name, &shared(2), "");
        assert!(error.starts_with(&format!("name: {name} plans for one process")), "{error}");
        // The optimum finds this instance too large, but accepts its single process.
        let alone = policy(name).unwrap().build(&Chosen::plain(policy(name).unwrap()).keys, &shared(1)).err();
        assert!(alone.is_none_or(|error| !error.to_string().contains("plans for one process")));
    }
    for name in ["fixed-horizon", "aggressive", "forestall"] {
        let asks = |processes| {
            let row = policy(name).unwrap();
            row.build(&Chosen::plain(row).keys, &shared(processes)).unwrap().takes_requests()
        };
        assert_eq!((asks(1), asks(2)), (false, true), "{name}");
    }
}

/// Strings of portions that start anywhere, shared or not.
fn programs() -> impl Strategy<Value = Arc<Program>> {
    let portion = (0..BLOCKS, 1u32..6);
    let string = prop::collection::vec(portion, 1..7);
    (prop::collection::vec(string, 1..5), any::<bool>(), any::<bool>(), any::<bool>(), 1usize..5).prop_map(
        |(mut strings, alike, shared, regular, processes)| {
            let (mut blocks, mut string_ends, mut portion_ends) = (vec![], vec![], vec![]);
            if alike {
                strings = vec![strings[0].clone(); processes];
            }
            let strings = if shared { &strings[..1] } else { &strings[..] };
            for string in strings {
                for (first, length) in string {
                    blocks.extend((0..*length).map(|at| (first + at) % BLOCKS));
                    portion_ends.push(blocks.len() as u32);
                }
                string_ends.push(blocks.len() as u32);
            }
            let string_of: Vec<u32> = if shared { vec![0; processes] } else { (0..strings.len() as u32).collect() };
            program(&blocks, &string_ends, &portion_ends, &string_of, regular)
        },
    )
}

/// The position and the number of the first absent block of a string that may be prefetched, found by a scan.
fn naive_next(host: &Host, cursors: &[Position], string: u32, min_lead: u32) -> Option<(u32, u32)> {
    let program = &host.program;
    let (positions, cursor) = (program.string(string), cursors[string as usize]);
    let limit = match (program.regular, cursor == positions.start) {
        (true, _) => positions.end,
        (false, true) => positions.start,
        (false, false) => program.portion_end(cursor - 1),
    };
    let blocks = (cursor + min_lead..limit).map(|at| (at, program.blocks[at as usize]));
    blocks.into_iter().find(|(_, block)| host.states[block.index()].is_absent()).map(|(at, block)| (at, block.0))
}

/// Where a string's readers synchronise next, found by a scan.
fn naive_meeting(program: &Program, string: u32, cursor: Position) -> Position {
    let positions = program.string(string);
    let meets = |at: &Position| match program.meetings {
        Meetings::AtEnd => false,
        Meetings::Every(every) => (at - positions.start).is_multiple_of(every),
        Meetings::Portion => program.portion_ends.contains(at),
    };
    (cursor.max(positions.start + 1)..positions.end).find(meets).unwrap_or(positions.end)
}

proptest! {
    #[test]
    fn chooses_what_going_through_the_strings_chooses(
        program in programs(), buffers in 1u32..6, min_lead in 0u32..4, (for_others, critical) in any::<(bool, bool)>(),
        meetings in prop_oneof![Just(Meetings::AtEnd), Just(Meetings::Portion), (1u32..6).prop_map(Meetings::Every)],
        steps in prop::collection::vec((0u8..8, any::<u32>()), 1..300),
    ) {
        let processes = program.string_of.len() as u32;
        let program = Arc::new(Program { meetings, ..(*program).clone() });
        let first = if critical && for_others { "critical" } else { "own" };
        let keys = format!("buffers = {buffers}\nmin_lead = {min_lead}\nfor_others = {for_others}\nprefetch_for = \"{first}\"");
        let mut host = Host::new(&program, processes + buffers, &keys);
        let strings = program.string_ends.len() as u32;
        let mut cursors: Vec<Position> = (0..strings).map(|string| program.string(string).start).collect();
        for (what, number) in steps {
            let process = number % processes;
            let own = program.string_of[process as usize];
            let waits = host.waiters.iter().flatten().any(|(waiting, _)| *waiting == process);
            match what {
                0..=2 if !waits && cursors[own as usize] < program.string(own).end => {
                    let (position, cursor) = (cursors[own as usize], &mut cursors[own as usize]);
                    *cursor += 1;
                    host.read(process, position);
                    let block = program.blocks[position as usize];
                    prop_assert!(!host.states[block.index()].is_absent(), "the frames are enough");
                }
                3..=4 => {
                    let in_flight: Vec<u32> =
                        (0..BLOCKS).filter(|block| host.states[*block as usize].is_in_flight()).collect();
                    if !in_flight.is_empty() {
                        host.arrive(in_flight[number as usize % in_flight.len()]);
                    }
                }
                _ => {
                    let others = (1..strings).map(|after| (own + after) % strings).filter(|_| for_others);
                    let nexts: Vec<(u32, (u32, u32))> = [own].into_iter().chain(others)
                        .filter_map(|string| Some((string, naive_next(&host, &cursors, string, min_lead)?)))
                        .collect();
                    let behind = |(string, (at, _)): &(u32, (u32, u32))| {
                        naive_meeting(&program, *string, cursors[*string as usize]).saturating_sub(*at)
                    };
                    let most = nexts.iter().map(behind).max().filter(|most| *most > 0 && first == "critical");
                    let expected = nexts.iter().find(|next| most.is_none_or(|most| behind(next) == most))
                        .map(|(_, (_, block))| *block)
                        .filter(|_| host.unused() < buffers as usize);
                    prop_assert_eq!(host.idle(process), expected);
                }
            }
            prop_assert!(host.unused() <= buffers as usize);
        }
    }
}
