//! Converts an instance of the naive models to a scenario of the library, and its result to their units.
//!
//! The unit of time is 1 ms. Both sides break ties by block number, and the library numbers blocks in order of first
//! appearance, so an instance is renumbered first ([`canonical`]).

use std::num::NonZero;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headstart_sim::{lower_bound, simulate, Report, Scenario};
use toml::{Table, Value};

use crate::naive::random::{instance, shrink, Limits};
use crate::naive::{Instance, Outcome};

/// The same instance with blocks numbered in order of first appearance: references, then the initial cache. Other
/// blocks are dropped.
pub fn canonical(drawn: &Instance) -> Instance {
    let mut order: Vec<usize> = vec![];
    for block in drawn.refs.iter().chain(&drawn.initial) {
        if !order.contains(block) {
            order.push(*block);
        }
    }
    let number = |block: &usize| order.iter().position(|other| other == block).expect("it is listed");
    Instance {
        refs: drawn.refs.iter().map(number).collect(),
        initial: drawn.initial.iter().map(number).collect(),
        disk_of: order.iter().map(|block| drawn.disk_of[*block]).collect(),
        ..drawn.clone()
    }
}

/// The scenario of an instance under `policy`, the keys of an inline table such as `name = "aggressive"`.
pub fn scenario(of: &Instance, policy: &str) -> Table {
    let name = |block: usize| Value::String(format!("b{block}"));
    let names = |blocks: &[usize]| Value::Array(blocks.iter().map(|block| name(*block)).collect());
    let on = |disk: usize| (0..of.disk_of.len()).filter(|block| of.disk_of[*block] == disk).map(name).collect();
    let mut workload = Table::new();
    workload.insert("references".into(), names(&of.refs));
    workload.insert("compute".into(), "1ms".into());
    let mut cache = Table::new();
    cache.insert("blocks".into(), Value::Integer(of.frames as i64));
    cache.insert("initial".into(), names(&of.initial));
    let mut device = Table::new();
    device.insert("model".into(), "uniform".into());
    device.insert("fetch_time".into(), format!("{}ms", of.fetch).into());
    // The theory's disks serve in order of issue.
    device.insert("scheduler".into(), "fcfs".into());
    device.insert("layout".into(), Value::Array((0..of.disks).map(|disk| Value::Array(on(disk))).collect()));
    let mut table = Table::new();
    table.insert("workload".into(), workload.into());
    table.insert("cache".into(), cache.into());
    table.extend(format!("policy = {{{policy}}}").parse::<Table>().unwrap_or_else(|error| panic!("{error}")));
    table.insert("device".into(), device.into());
    table
}

/// The library's whole report on an instance.
pub fn report(of: &Instance, policy: &str) -> Report {
    let text = || scenario(of, policy).to_string();
    let scenario = Scenario::from_table(scenario(of, policy)).unwrap_or_else(|error| panic!("{error}\n{}", text()));
    simulate(&scenario, &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{}", text()))
}

/// The library's result for an instance, in units.
pub fn fast(of: &Instance, policy: &str) -> Outcome {
    let report = report(of, policy);
    Outcome { elapsed: units(report.elapsed_ns, policy), fetches: report.counts.fetches }
}

/// The library's lower bound on elapsed time, in units.
pub fn bound(of: &Instance) -> u64 {
    let scenario = Scenario::from_table(scenario(of, "name = \"demand\"")).expect("a scenario");
    units(lower_bound(&scenario).expect("a bound").elapsed_ns.0, "bound")
}

fn units(ns: u64, what: &str) -> u64 {
    assert_eq!(ns % 1_000_000, 0, "{what}: all times of the theory are whole units");
    ns / 1_000_000
}

/// The smallest seed of `0..count` whose check returns something, and the result; the seeds are distributed to all
/// processors.
pub fn first_of<T: Send>(count: u64, check: impl Fn(u64) -> Option<T> + Sync) -> Option<(u64, T)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let least = AtomicU64::new(count);
    let look = &|thread: u64| {
        let mut seeds = (thread..count).step_by(threads as usize);
        let found =
            seeds.by_ref().take_while(|seed| *seed < least.load(Relaxed)).find_map(|seed| Some((seed, check(seed)?)));
        if let Some((seed, _)) = &found {
            least.fetch_min(*seed, Relaxed);
        }
        found
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || look(thread))).collect();
        all.into_iter()
            .filter_map(|each| each.join().expect("the check gives what is wrong"))
            .min_by_key(|(seed, _)| *seed)
    })
}

/// Checks a law over the instances of seeds `0..count`; the law returns the first statement that does not hold. A
/// failure prints the seed and, as a scenario, the smallest instance that still fails.
pub fn holds(count: u64, limits: Limits, law: impl Fn(u64, &Instance) -> Result<(), String> + Sync) {
    let broken = first_of(count, |seed| {
        let drawn = canonical(&instance(seed, limits));
        judge(&law, seed, &drawn).is_err().then_some(drawn)
    });
    if let Some((seed, drawn)) = broken {
        let least = canonical(&shrink(drawn, |smaller| judge(&law, seed, &canonical(smaller)).is_err()));
        let text = scenario(&least, "name = \"demand\"");
        panic!("seed {seed}: {}\n{least:?}\n{text}", judge(&law, seed, &least).unwrap_err());
    }
}

/// The same for a law with state: nothing is shrunk.
pub fn holds_with(count: u64, limits: Limits, mut law: impl FnMut(u64, &Instance) -> Result<(), String>) {
    for seed in 0..count {
        let drawn = canonical(&instance(seed, limits));
        if let Err(broken) = law(seed, &drawn) {
            panic!("seed {seed}: {broken}\n{}", scenario(&drawn, "name = \"demand\""));
        }
    }
}

/// The law's result; a panic, such as a failed assertion of the level, counts as a failure.
fn judge(law: &impl Fn(u64, &Instance) -> Result<(), String>, seed: u64, of: &Instance) -> Result<(), String> {
    let caught = catch_unwind(AssertUnwindSafe(|| law(seed, of)));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    })
}
