//! Policies broken on purpose: the level must catch each of them. If one of these tests fails, the checks that all
//! other tests rely on do not work.

use headstart_engine::{Ask, Backend, IoRequest, Level};
use headstart_policy::readahead::Asked;
use headstart_policy::{Event, Fetch, NoSpace, Policy, View};
use headstart_types::{Block, Disk, Nanos};

/// Decides on the same fetches at each decision.
struct Broken(Vec<Fetch>);

impl Policy for Broken {
    fn on(&mut self, _now: Nanos, event: Event, _view: &View<'_>, fetches: &mut Vec<Fetch>) {
        if event == Event::Decide {
            fetches.extend(&self.0);
        }
    }

    fn grow(&mut self, _blocks: usize) {}
}

struct Nowhere;

impl Backend for Nowhere {
    fn issue(&mut self, _now: Nanos, _order: IoRequest<'_>) -> u32 {
        1
    }
}

fn fetch(block: u32, victim: Option<u32>) -> Fetch {
    Fetch { block: Block(block), victim: victim.map(Block) }
}

/// A level of two frames that holds blocks 0 and 1 of 6.
fn full(fetches: Vec<Fetch>) -> Level {
    Level::new(Box::new(Broken(fetches)), 2, &[Block(0), Block(1)], &[Disk(0); 6], 1)
}

#[test]
fn a_sound_policy_passes() {
    let mut level = full(vec![fetch(2, Some(0)), fetch(3, Some(1))]);
    assert_eq!(level.decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere), 2);
    assert_eq!(level.counts().prefetches, 2);
    assert!(level.state(Block(0)).is_absent() && level.state(Block(2)).is_in_flight());
}

#[test]
#[should_panic = "needs a free frame"]
fn more_than_the_frames() {
    full(vec![fetch(2, None)]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "is no victim"]
fn a_victim_that_is_absent() {
    full(vec![fetch(2, Some(4))]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "is no victim"]
fn a_victim_twice() {
    full(vec![fetch(2, Some(0)), fetch(3, Some(0))]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "is no victim"]
fn a_victim_in_flight() {
    full(vec![fetch(2, Some(0)), fetch(3, Some(2))]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "is no victim"]
fn a_victim_that_is_waited_for() {
    // Block 2 is in flight into a free frame and the process waits for it: when it arrives, it is pinned.
    struct Later;
    impl Policy for Later {
        fn on(&mut self, now: Nanos, event: Event, _view: &View<'_>, fetches: &mut Vec<Fetch>) {
            if event == Event::Decide {
                fetches.push(if now == Nanos::ZERO { fetch(2, None) } else { fetch(3, Some(2)) });
            }
        }
        fn grow(&mut self, _blocks: usize) {}
    }
    let mut level = Level::new(Box::new(Later), 1, &[], &[Disk(0); 6], 1);
    level.decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
    let asked = Asked { file: 0, first: 2, count: 1, client: 0, ends_inside: false };
    let ask = Ask { id: 0, asked, blocks: &[Block(2)], write: false, quiet: false, position: 0, compute: Nanos::ZERO };
    assert!(level.request(Nanos(1), &ask, &NoSpace, &mut Nowhere).waits());
    level.arrived(Nanos(2), Block(2), Some(Nanos(2)), &NoSpace);
    assert!(level.state(Block(2)).is_resident() && level.state(Block(2)).is_pinned());
    level.decide(Nanos(2), None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "though it is resident or in flight"]
fn a_block_that_is_there() {
    full(vec![fetch(1, Some(0))]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "though it is resident or in flight"]
fn a_block_twice() {
    full(vec![fetch(2, Some(0)), fetch(2, Some(1))]).decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "free frames go before victims"]
fn a_victim_while_frames_are_free() {
    let mut level = Level::new(Box::new(Broken(vec![fetch(2, Some(0))])), 3, &[Block(0)], &[Disk(0); 6], 1);
    level.decide(Nanos::ZERO, None, &NoSpace, &mut Nowhere);
}

#[test]
#[should_panic = "the initial blocks fit"]
fn more_initial_blocks_than_frames() {
    drop(Level::new(Box::new(Broken(vec![])), 1, &[Block(0), Block(1)], &[Disk(0); 6], 1));
}
