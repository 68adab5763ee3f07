use std::collections::{BTreeMap, VecDeque};

use headstart_types::Nanos;
use proptest::prelude::*;

use super::*;
use crate::optimum::Reads;

impl Shelf {
    /// What holds after each event.
    fn check(&self) {
        assert!(self.arena.used() <= self.limits.memory_bytes, "{} bytes of memory", self.arena.used());
        assert!(self.spilled_bytes <= self.limits.spill_bytes, "{} bytes of spill", self.spilled_bytes);
        let (mut placed, mut spilled, mut leaving) = (0, self.unclaimed.values().sum::<u64>(), 0);
        let mut count = 0;
        for object in &self.objects {
            let mut end = 0;
            for (start, id) in object {
                let segment = self.of(*id);
                count += 1;
                assert_eq!(*start, segment.span.start);
                assert!(segment.span.start >= end && segment.span.bytes() > 0, "segments do not overlap");
                end = segment.span.end;
                let length = Place::bytes_of(segment.span.bytes());
                let has_place = matches!(segment.state, State::Coming | State::Here);
                assert_eq!(segment.place.is_some(), has_place, "{segment:?}");
                placed += if has_place { length } else { 0 };
                spilled += if segment.is_spilled || segment.is_storing { length } else { 0 };
                leaving += if segment.is_storing { length } else { 0 };
                let may_leave = segment.state == State::Here && segment.leases == 0 && !segment.is_leaving;
                assert_eq!(self.in_memory.of(*id).is_some(), may_leave, "{segment:?}");
                assert_eq!(self.in_spill.of(*id).is_some(), segment.is_spilled, "{segment:?}");
                assert_eq!(self.wanted.contains(id), segment.state == State::Wanted);
                let is_kept = segment.state != State::Absent || segment.is_spilled || segment.is_storing;
                assert!(is_kept || segment.leases > 0, "nothing is left of {segment:?}");
            }
        }
        assert_eq!(count, self.segments.iter().flatten().count());
        assert_eq!((placed, spilled, leaving), (self.arena.used(), self.spilled_bytes, self.leaving_bytes));
        let Totals { read_bytes, memory_hit_bytes, coming_bytes, spill_hit_bytes, missed_bytes, .. } = self.totals;
        assert_eq!(read_bytes, memory_hit_bytes + coming_bytes + spill_hit_bytes + missed_bytes);
        assert!(self.totals.wasted_bytes <= self.totals.prefetched_bytes);
    }
}

/// A host whose work is done when the test wants it.
struct World {
    shelf: Shelf,
    work: VecDeque<Action>,
    /// What the spill's files are.
    files: BTreeMap<Span, ()>,
    now: u64,
}

impl World {
    fn new(memory_bytes: u64, spill_bytes: u64) -> Self {
        let limits = Limits { memory_bytes, spill_bytes, requests: 4 };
        Self { shelf: Shelf::new(limits), work: VecDeque::new(), files: BTreeMap::new(), now: 0 }
    }

    fn act(&mut self) {
        self.now += 1_000_000;
        self.shelf.act();
        for action in self.shelf.take_actions() {
            match action {
                Action::Remove(span) => assert!(self.files.remove(&span).is_some(), "{span:?} is in the spill"),
                Action::Free(_) | Action::RemoveFound(_) => {}
                other => self.work.push_back(other),
            }
        }
        self.shelf.check();
    }

    /// Ends one piece of work.
    fn end(&mut self, at: usize, is_whole: bool) {
        let Some(action) = self.work.remove(at) else { return };
        match action {
            Action::Fetch { segments, demand } => {
                segments.iter().for_each(|id| self.shelf.arrived(*id, is_whole, false));
                self.shelf.request_ended(demand);
            }
            Action::Load(segment) => {
                let is_there = self.files.contains_key(&self.shelf.span(segment));
                if is_there && is_whole {
                    self.shelf.arrived(segment, true, true);
                } else {
                    self.shelf.not_spilled(segment);
                }
            }
            Action::Store(segment) => {
                if is_whole {
                    self.files.insert(self.shelf.span(segment), ());
                }
                self.shelf.stored(segment, is_whole);
            }
            Action::Remove(_) | Action::RemoveFound(_) | Action::Free(_) => unreachable!("done at once"),
        }
        self.shelf.check();
        self.act();
    }

    fn finish(&mut self) {
        for done in 0.. {
            if self.work.is_empty() {
                return;
            }
            assert!(done < 10_000, "it comes and goes: {:?}", self.work);
            self.end(0, true);
        }
    }

    /// Reads at once: whatever it takes is done.
    fn read(&mut self, span: Span) {
        let parts = self.shelf.request(span, Nanos(self.now)).expect("it fits");
        self.act();
        while parts.iter().any(|part| self.shelf.of(part.segment).state != State::Here) {
            assert!(!self.work.is_empty(), "a read waits for nothing");
            self.end(0, true);
        }
        parts.iter().for_each(|part| self.shelf.release(part.segment));
        self.act();
    }
}

fn span(object: u32, start: u64, end: u64) -> Span {
    Span { object, start, end }
}

#[test]
fn exactly_what_is_wanted_is_fetched() {
    let mut world = World::new(1 << 20, 0);
    world.read(span(0, 100, 200));
    world.read(span(0, 150, 300));
    world.read(span(0, 0, 400));
    assert_eq!(world.shelf.totals.fetched_bytes, 400);
    assert_eq!(world.shelf.totals.memory_hit_bytes, 50 + 200);
    let parts = world.shelf.request(span(0, 50, 350), Nanos(9)).expect("it fits");
    let spans: Vec<(u64, u64)> = parts.iter().map(|part| (part.span.start, part.span.end)).collect();
    assert_eq!(spans, [(50, 100), (100, 200), (200, 300), (300, 350)]);
    assert!(parts.iter().all(|part| part.is_here));
    assert_eq!(world.shelf.request(span(0, 0, 2 << 20), Nanos(9)), Err(1 << 20));
}

#[test]
fn what_readers_hold_is_not_evicted_and_what_waits_comes_when_they_let_go() {
    let mut world = World::new(16 << 10, 0);
    let first = world.shelf.request(span(0, 0, 16 << 10), Nanos(0)).expect("it fits");
    world.act();
    world.finish();
    let second = world.shelf.request(span(1, 0, 4096), Nanos(0)).expect("it fits");
    world.act();
    assert!(world.work.is_empty() && world.shelf.is_stuck());
    world.shelf.release(first[0].segment);
    world.act();
    world.finish();
    assert_eq!(world.shelf.of(second[0].segment).state, State::Here);
    // A reader that gives up while it waits leaves nothing.
    let third = world.shelf.request(span(2, 0, 16 << 10), Nanos(0)).expect("it fits");
    third.iter().for_each(|part| world.shelf.release(part.segment));
    world.act();
    assert!(!world.shelf.is_stuck());
}

#[test]
fn disclosed_neighbours_are_one_request() {
    let mut world = World::new(1 << 20, 0);
    world.shelf.disclose(0, &[span(0, 0, 100), span(0, 100, 200), span(0, 300, 400), span(1, 0, 50)]);
    world.act();
    let lengths: Vec<usize> = world
        .work
        .iter()
        .map(|action| if let Action::Fetch { segments, demand: false } = action { segments.len() } else { 0 })
        .collect();
    assert_eq!(lengths, [2, 1, 1]);
    world.finish();
    (0..2).for_each(|at| world.read(span(0, at * 100, at * 100 + 100)));
    assert_eq!((world.shelf.totals.missed_bytes, world.shelf.totals.memory_hit_bytes), (0, 200));
}

/// Bytes fetched for `order`, all of which is disclosed, by what the optimum fetches.
fn over_optimum(order: &[u32], item_bytes: u64, memory_bytes: u64, spill_bytes: u64) -> f64 {
    let mut world = World::new(memory_bytes, spill_bytes);
    let spans: Vec<Span> = order.iter().map(|object| span(*object, 0, item_bytes)).collect();
    world.shelf.disclose(0, &spans);
    world.act();
    let mut reads = Reads::default();
    for each in &spans {
        reads.note(*each);
        world.read(*each);
    }
    let least = reads.optimum(memory_bytes + spill_bytes).expect("few reads");
    world.shelf.totals.fetched_bytes as f64 / least as f64
}

fn epochs(items: u32, count: u32) -> Vec<u32> {
    use rand::seq::SliceRandom;
    use rand::SeedableRng;
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    (0..count)
        .flat_map(|_| {
            let mut epoch: Vec<u32> = (0..items).collect();
            epoch.shuffle(&mut random);
            epoch
        })
        .collect()
}

#[test]
fn a_disclosed_order_costs_little_more_than_the_optimum() {
    let four_nodes: Vec<u32> = epochs(4000, 6).into_iter().step_by(4).collect();
    let groups: Vec<u32> = epochs(5000, 2).into_iter().map(|sample| sample / 25).collect();
    for (name, order, memory_items, spill_items) in [
        ("one node", epochs(1000, 6), 300, 0),
        ("one node, most on the disk", epochs(1000, 6), 50, 300),
        ("a share of four nodes", four_nodes, 500, 0),
        ("row groups", groups, 60, 0),
        ("a loop", (0..6000).map(|at| at % 1000).collect(), 300, 0),
    ] {
        let times = over_optimum(&order, 4096, memory_items * 4096, spill_items * 4096);
        assert!(times < 1.06, "{name}: {times:.3} of the optimum");
    }
}

#[test]
fn an_order_that_nobody_follows_costs_little() {
    let mut world = World::new(400 * 4096, 0);
    world.shelf.disclose(0, &(1000..3000).map(|object| span(object, 0, 4096)).collect::<Vec<_>>());
    world.act();
    world.finish();
    for at in 0..1000_u32 {
        world.read(span(at % 300, 0, 4096));
    }
    let totals = &world.shelf.totals;
    assert!(totals.prefetched_bytes <= 200 * 4096, "half of the memory, {}", totals.prefetched_bytes);
    assert_eq!(totals.missed_bytes, 300 * 4096);
}

#[test]
fn what_an_earlier_run_has_left_is_claimed_or_makes_room() {
    let mut world = World::new(8 << 10, 16 << 10);
    (0..5).for_each(|number| world.shelf.found(number, 4096));
    assert_eq!(world.shelf.take_actions(), [Action::RemoveFound(0)], "it was larger");
    assert!(world.shelf.claim(1, Some(span(0, 0, 4096))));
    world.files.insert(span(0, 0, 4096), ());
    assert!(!world.shelf.claim(2, None), "its object has changed");
    assert!(!world.shelf.claim(0, Some(span(0, 0, 4096))), "it is gone");
    assert_eq!(world.shelf.take_actions(), [Action::RemoveFound(2)]);
    world.shelf.check();
    world.read(span(0, 0, 4096));
    assert_eq!((world.shelf.totals.spill_hit_bytes, world.shelf.totals.fetched_bytes), (4096, 0));
    (1..9).for_each(|object| world.read(span(object, 0, 4096)));
    world.finish();
    assert!(world.shelf.unclaimed.is_empty(), "they made room");
}

#[derive(Debug, Clone)]
enum Event {
    Request(Span),
    Release(usize),
    End(usize, bool),
    Disclose(u32, Vec<Span>),
    Withdraw(u32),
}

fn spans() -> impl Strategy<Value = Span> {
    (0..4_u32, 0..20_u64, 1..8_u64)
        .prop_map(|(object, start, length)| span(object, start * 1000, (start + length) * 1000))
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => spans().prop_map(Event::Request),
        6 => any::<usize>().prop_map(Event::Release),
        8 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(at, is_whole)| Event::End(at, is_whole)),
        2 => (0..3_u32, prop::collection::vec(spans(), 1..20)).prop_map(|(order, spans)| Event::Disclose(order, spans)),
        1 => (0..3_u32).prop_map(Event::Withdraw),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    #[test]
    fn nothing_is_lost_whatever_happens(
        events in events(),
        memory in 4..20_u64,
        spill in prop_oneof![Just(0), 1..20_u64],
    ) {
        let mut world = World::new(memory * 4096, spill * 4096);
        let mut held: Vec<Part> = Vec::new();
        for event in events {
            match event {
                Event::Request(span) => {
                    if let Ok(parts) = world.shelf.request(span, Nanos(world.now)) {
                        let covered: Vec<(u64, u64)> = parts.iter().map(|part| (part.span.start, part.span.end)).collect();
                        prop_assert_eq!(covered[0].0, span.start);
                        prop_assert_eq!(covered[covered.len() - 1].1, span.end);
                        prop_assert!(covered.windows(2).all(|pair| pair[0].1 == pair[1].0));
                        held.extend(parts);
                    }
                    world.act();
                }
                Event::Release(at) if !held.is_empty() => {
                    let part = held.remove(at % held.len());
                    world.shelf.release(part.segment);
                    world.act();
                }
                Event::End(at, is_whole) if !world.work.is_empty() => world.end(at % world.work.len(), is_whole),
                Event::Disclose(order, spans) => {
                    world.shelf.disclose(order, &spans);
                    world.act();
                }
                Event::Withdraw(order) => {
                    world.shelf.withdraw(order);
                    world.act();
                }
                Event::Release(_) | Event::End(..) => {}
            }
            world.shelf.check();
        }
        // Readers that let go, one after the other, let everybody else go on.
        while !held.is_empty() || !world.work.is_empty() {
            world.finish();
            if let Some(part) = held.pop() {
                let segment = world.shelf.of(part.segment);
                prop_assert!(segment.leases > 0);
                world.shelf.release(part.segment);
                world.act();
            }
        }
        prop_assert_eq!((world.shelf.coming, world.shelf.prefetches, world.shelf.wanted.len()), (0, 0, 0));
        prop_assert!(world.shelf.segments.iter().flatten().all(|segment| segment.leases == 0));
    }
}
