//! The optimum's schedule, executed by the simulator, takes as long as the search computed.

use headstart_policy::hinted::{optimal_elapsed, OptimumInstance};
use headstart_types::{Block, Disk, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;

const BLOCKS: u32 = 7;

/// A list of these blocks, as a scenario labels them.
fn names(blocks: impl Iterator<Item = u32>) -> String {
    format!("[{}]", blocks.map(|block| format!("\"{block}\"")).collect::<Vec<_>>().join(", "))
}

#[test]
fn steps_are_in_time_where_thinking_takes_longer_than_fetching() {
    // A fetch is over within a think time then, and the next may begin at its end, when nothing else has changed: the
    // step came late, and its victim was gone.
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let references: Vec<_> = (0..rng.random_range(4..16)).map(|_| Block(rng.random_range(0..BLOCKS))).collect();
        let (frames, disks) = (rng.random_range(2..5), rng.random_range(1..3));
        let on = |disk| names((0..BLOCKS).filter(|block| block % disks == disk));
        let layout: Vec<_> = (0..disks).map(on).collect();
        let report = common::run(&format!(
            "workload = {{references = {}, compute = \"10ms\"}}\ncache = {{blocks = {frames}}}\npolicy = \"optimum\"\n\
             device = {{model = \"uniform\", fetch_time = \"3ms\", layout = [{}]}}\nhost = {{driver_overhead = \"0s\"}}\n",
            names(references.iter().map(|block| block.0)),
            layout.join(", ")
        ));
        let disk_of = (0..BLOCKS).map(|block| Disk(block % disks)).collect();
        let (compute, fetch, disks) = (Nanos::from_millis(10), Nanos::from_millis(3), disks as usize);
        let instance = OptimumInstance { references, initial: Vec::new(), frames, disk_of, disks, compute, fetch };
        assert_eq!(optimal_elapsed(&instance).map(|elapsed| elapsed.0), Ok(report.elapsed_ns), "seed {seed}");
    }
}
