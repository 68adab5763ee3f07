//! Following hints pays: with perfect hints a prefetching policy is not slower than `demand` with MIN, which prefetches
//! nothing and makes the fewest fetches. Random strings, think times, caches and one to four disks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bridge::first_of;
use crate::common;
use crate::naive::random::Random;

/// Allowed slowdown of just-in-time if every block takes the same time: up to 2 % of its fetches may be unused, and
/// more if the disk seems to have time for them. The maximum here is 3.9 %.
const JUST_IN_TIME: f64 = 1.04;
/// On a drive that reads ahead itself, the order and the time of requests matter too. The maximum here is 9.7 %.
const JUST_IN_TIME_ON_A_DRIVE: f64 = 1.10;
/// tip2 if every block takes the same time: its costs are means. The maximum here is 25 %.
const TIP2: f64 = 1.26;

/// The workload, cache, device and host of a seed. `drive`: the HP 97560; else disks that take the same time for each
/// block.
fn system(seed: u64, drive: bool) -> String {
    let mut random = Random::new(seed);
    let most = [20, 100, 400][random.below(3)];
    let blocks = 10 + random.below(most);
    let frames = 8.max(blocks * [5, 20, 50, 80, 95, 120][random.below(6)] / 100);
    let shape = random.below(4);
    let mut references = Vec::new();
    while references.len() < 2500.min(blocks * (2 + random.below(8))) {
        let (start, length) = (random.below(blocks), 1 + random.below(blocks.min(100)));
        for at in 0..length {
            references.push(match shape {
                0 => references.len() % blocks,
                1 => random.below(blocks),
                2 => (start + at) % blocks,
                _ => [start, at % (1 + blocks / 8)][random.below(2)],
            });
        }
    }
    let references: Vec<String> = references.iter().map(|block| format!("\"{block}\"")).collect();
    let compute = ["0s", "0.01ms", "0.1ms", "1ms", "exp:1ms", "exp:5ms"][random.below(6)];
    let driver = ["0s", "0.01ms", "0.5ms"][random.below(3)];
    let (disks, time) = ([1, 1, 2, 3, 4][random.below(5)], ["0.1ms", "2ms", "15ms"][random.below(3)]);
    let model = match drive {
        true => "\"hp97560\"".to_owned(),
        false => format!("{{name = \"uniform\", fetch_time = \"{time}\"}}"),
    };
    format!(
        "workload = {{references = [{}], compute = \"{compute}\"}}\ncache = {{blocks = {frames}}}\n\
         device = {{model = {model}, count = {disks}}}\nhost = {{driver_overhead = \"{driver}\"}}\n",
        references.join(", ")
    )
}

fn is_never_slower(policy: &str, drive: bool, instances: u64, most: f64) {
    let worst = AtomicU64::new(0);
    let slower = first_of(instances, |seed| {
        let system = system(seed, drive);
        let elapsed = |policy: &str| common::run(&format!("{system}policy = {{{policy}}}\n")).elapsed_ns as f64;
        let demand = elapsed("name = \"demand\", replacement = \"min\"");
        let ratio = elapsed(&format!("name = \"{policy}\"")) / demand;
        worst.fetch_max((ratio * 1e4) as u64, Relaxed);
        (ratio > most).then(|| format!("{ratio:.3} of demand's time: {}", &system[system.len() - 200..]))
    });
    println!("{policy}, drive {drive}: at most {} of demand's time", worst.into_inner() as f64 / 1e4);
    assert_eq!(slower, None, "{policy}: seed and what is wrong");
}

#[test]
fn just_in_time_is_not_slower_than_demand() {
    is_never_slower("just-in-time", false, 400, JUST_IN_TIME);
    is_never_slower("just-in-time", true, 400, JUST_IN_TIME_ON_A_DRIVE);
}

#[test]
fn tip2_is_not_slower_than_demand_on_even_disks() {
    is_never_slower("tip2", false, 400, TIP2);
}
