//! A block that was expected counts as a miss for a request at the instant of its fetch, and as a late hit after it.

use std::collections::BTreeMap;

use headstart_engine::{Ask, Backend, IoRequest, Level};
use headstart_policy::conformance::Draws;
use headstart_policy::readahead::Asked;
use headstart_policy::replacement::Lru;
use headstart_policy::{RequestPolicy, SeparateReadAhead};
use headstart_types::{Block, Disk, Nanos, NEVER};

use super::bypass::Line;

/// When each block on its way was ordered.
#[derive(Default)]
struct OnTheWay(BTreeMap<Block, Nanos>);

impl Backend for OnTheWay {
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32 {
        self.0.extend(order.blocks.iter().map(|block| (*block, now)));
        1
    }
}

#[test]
fn blocks_are_fresh_at_the_instant_of_their_fetch() {
    let mut late_hits = 0;
    for seed in 0..100 {
        let mut draws = Draws::new(seed);
        let parts = SeparateReadAhead(Box::new(Lru::new(&[], 100)), None);
        let policy = Box::new(RequestPolicy::new(Box::new(parts), 100));
        let mut level = Level::new(policy, 100, &[], &[Disk(0); 100], 1);
        let (mut disk, mut now) = (OnTheWay::default(), Nanos::ZERO);
        for id in 0..200 {
            let (first, count) = (draws.below(90) as u32, 1 + draws.below(10) as u32);
            let blocks: Vec<Block> = (first..first + count).map(Block).collect();
            match draws.below(4) {
                0 => now += Nanos(1),
                1 => _ = level.expect(now, &blocks, &Line, &mut disk),
                2 => {
                    for block in blocks.into_iter().filter(|block| disk.0.remove(block).is_some()) {
                        level.arrived(now, block, None, &Line);
                    }
                }
                _ => {
                    let is_late = |block: &&Block| disk.0.get(block).is_some_and(|at| *at < now);
                    let late = blocks.iter().filter(is_late).count() as u32;
                    let asked = Asked { file: 0, first: first.into(), count, client: 0, ends_inside: false };
                    let compute = Nanos::ZERO;
                    let ask = Ask { id, asked, blocks: &blocks, write: false, quiet: false, position: NEVER, compute };
                    assert_eq!(level.request(now, &ask, &Line, &mut disk).hits_unready, late, "seed {seed}, step {id}");
                    late_hits += late;
                }
            }
        }
    }
    assert!(late_hits > 1000, "{late_hits}");
}
