//! Scenarios as text, run through the library as a user would, and random ones from a seed.

use std::fmt::Write as _;
use std::path::PathBuf;

use headstart_device::{ARRAYS, MODELS, SCHEDULERS};
use headstart_policy::registry::{POLICIES, REPLACEMENTS};
use headstart_sim::{simulate, Report, Scenario};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

/// A trace on disk for as long as a test needs it.
pub struct Trace(PathBuf);

impl Trace {
    /// Requests of (write, block), each a block of 8 KiB, 1 ms of think time after each; `blocks_each` blocks.
    pub fn new(name: &str, requests: &[(bool, u64)], blocks_each: u64) -> Self {
        let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
        for (index, (write, block)) in requests.iter().enumerate() {
            let op = if *write { "W" } else { "R" };
            let (at, size) = (block * 8192, blocks_each * 8192);
            writeln!(text, "0.{:06},{op},1,1,{at},{size},0", index * 1000).expect("a string takes all");
        }
        Self::of_text(name, &text)
    }

    /// A trace with this text, in the format `headstart`.
    pub fn of_text(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headstart-{}-{name}.csv", std::process::id()));
        std::fs::write(&path, text).expect("the temporary folder can be written");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> std::path::Display<'_> {
        self.0.display()
    }

    /// The text of a scenario that reads it.
    pub fn scenario(&self, writes: &str, rest: &str) -> String {
        let path = self.0.display();
        format!(
            "workload = {{trace = \"{path}\", compute = \"1ms\", placement = \"address\", writes = \"{writes}\"}}\n{rest}"
        )
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // A file left in the temporary folder is harmless.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The number of random cases: `HEADSTART_CASES=10` draws ten times as many as a quick run.
pub fn times(quick: u64) -> u64 {
    let Ok(text) = std::env::var("HEADSTART_CASES") else { return quick };
    quick * text.parse::<u64>().unwrap_or_else(|_| panic!("HEADSTART_CASES: {text:?} is no number"))
}

/// Parses a test's scenario.
pub fn table(text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Reads and runs a scenario.
pub fn try_run(scenario: Table) -> Result<Report, String> {
    let scenario = Scenario::from_table(scenario).map_err(|error| error.to_string())?;
    simulate(&scenario, &mut |_| true).map_err(|error| error.to_string())
}

/// Runs a valid scenario.
pub fn run(text: &str) -> Report {
    try_run(table(text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Each policy of the registry as the keys of `[policy]`, with its defaults and with each replacement if that is open;
/// without `optimum`, which only takes tiny instances, and without policies for parallel programs.
pub fn policies() -> Vec<String> {
    let with = |name: &'static str| {
        REPLACEMENTS.iter().map(move |each| format!("name = \"{name}\", replacement = \"{}\"", each.name))
    };
    let rows = POLICIES.iter().filter(|row| row.name != "optimum" && row.goes_by_blocks());
    rows.flat_map(|row| match row.has_open_replacement() {
        true => with(row.name).collect::<Vec<_>>(),
        false => vec![format!("name = \"{}\"", row.name)],
    })
    .collect()
}

/// Whether contiguous blocks may be fetched with one request: for whole requests, and by policies that gather.
pub fn gathers(text: &str) -> bool {
    !text.contains("issue = \"blocks\"")
        || POLICIES.iter().any(|row| row.gathers() && text.contains(&format!("\"{}\"", row.name)))
}

fn one_of<'a>(rng: &mut ChaCha8Rng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

/// A whole system drawn from a seed, as the text of a scenario: any generator, policy with any keys and hints,
/// device, number of disks, scheduler and costs; small enough to run in a few milliseconds.
pub fn random_system(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (workload, blocks) = random_workload(&mut rng);
    let cache = match rng.random_range(0..4) {
        0 => format!("blocks = {}", rng.random_range(1..=4)),
        1 => format!("footprint = 0.{:02}", rng.random_range(1..=99)),
        2 => format!("size = \"{}KiB\"", 8 * rng.random_range(1..=blocks)),
        _ => format!("blocks = {}", rng.random_range(1..=2 * blocks)),
    };
    let policy = random_policy(&mut rng);
    let model = match rng.random_bool(0.5) {
        true => "model = \"hp97560\"".to_owned(),
        false => format!("model = \"uniform\", fetch_time = \"{}us\"", rng.random_range(1..=20_000)),
    };
    let (disks, unit) = (rng.random_range(1..=16), 8 * rng.random_range(1..=8));
    let scheduler = SCHEDULERS[rng.random_range(0..SCHEDULERS.len())].name;
    let array = random_array(&mut rng, model.contains("uniform")) + shared_bus(seed);
    let count = if array.contains("count") { String::new() } else { format!("count = {disks}, ") };
    let mut cost =
        |key: &str| format!("{key} = \"{}us\"", if rng.random_bool(0.5) { 0 } else { rng.random_range(1..900) });
    let host = ["driver_overhead", "hit_time", "system_call", "copy_per_kib"].map(&mut cost).join(", ");
    format!(
        "seed = {seed}\nworkload = {{{workload}}}\ncache = {{{cache}}}\npolicy = {{{policy}}}\n\
         device = {{{model}, {count}stripe_unit = \"{unit}KiB\", scheduler = \"{scheduler}\"{array}}}\nhost = {{{host}}}\n"
    )
}

/// The system of [`random_system`], with any model of the registry instead of its HP 97560, unless it needs a drive
/// with an arm: a separate scheduler, or a capacity after which another disk begins.
pub fn random_system_of_any_model(seed: u64) -> String {
    let models: Vec<&str> = MODELS.iter().map(|row| row.name).filter(|name| *name != "uniform").collect();
    let model = models[seed as usize % models.len()];
    let system = random_system(seed);
    if system.contains("drive_scheduler") || system.contains("concat") {
        return system;
    }
    system.replace("model = \"hp97560\"", &format!("model = \"{model}\""))
}

/// One bus for all disks or for some, in every fifth system.
fn shared_bus(seed: u64) -> &'static str {
    match seed % 10 {
        3 => ", shared_bus = {bytes_per_second = 5_000_000, disks = 2}",
        8 => ", shared_bus = {command = \"200us\"}",
        _ => "",
    }
}

/// Any array, or a command queue in each disk, as additional keys of `[device]`.
fn random_array(rng: &mut ChaCha8Rng, unlimited: bool) -> String {
    match rng.random_range(0..4) {
        0 => {
            let row = &ARRAYS[rng.random_range(0..ARRAYS.len())];
            // Disks without a capacity cannot be concatenated; parity needs three of them.
            match row.name {
                "concat" if unlimited => String::new(),
                "raid5" => ", array = \"raid5\", count = 4".to_owned(),
                name => format!(", array = \"{name}\""),
            }
        }
        1 => {
            let scheduler = SCHEDULERS[rng.random_range(0..SCHEDULERS.len())].name;
            format!(", queue_depth = {}, drive_scheduler = \"{scheduler}\"", rng.random_range(1..=32))
        }
        _ => String::new(),
    }
}

/// The keys of a workload, and its number of blocks.
fn random_workload(rng: &mut ChaCha8Rng) -> (String, u32) {
    let name = one_of(rng, &["synth", "sequential", "random", "loop", "zipf"]);
    let blocks: u32 = rng.random_range(1..=300);
    let request_blocks = if rng.random_bool(0.5) { 1 } else { rng.random_range(1..=blocks.min(9)) };
    let compute = one_of(rng, &["0s", "50us", "1ms", "exp:1ms", "exp:10ms"]);
    let length = match name {
        "synth" | "sequential" => format!("passes = {}", rng.random_range(1..=3)),
        _ => format!("requests = {}", rng.random_range(1..=900)),
    };
    let more = match rng.random_range(0..6) {
        0 => ", limit = 100",
        1 => one_of(rng, &[", addresses = \"compact\"", ", addresses = \"compact-chunks\", chunk_blocks = 8"]),
        2 => ", compute_scale = 0.5",
        _ => "",
    };
    let issue = ["blocks", "whole"][blocks as usize % 2];
    let text = format!(
        "generator = \"{name}\", blocks = {blocks}, {length}, request_blocks = {request_blocks}, issue = \"{issue}\", \
         compute = \"{compute}\"{more}"
    );
    (text, blocks)
}

/// Any row of the registry with its defaults, or one of kimbrel96's policies with drawn keys; with hints.
fn random_policy(rng: &mut ChaCha8Rng) -> String {
    let rows = policies();
    let mut policy = rows[rng.random_range(0..rows.len())].clone();
    let keys = match rng.random_bool(0.6) {
        true if policy.contains("fixed-horizon") => format!(", horizon = {}", rng.random_range(0..200)),
        true if policy.contains("reverse-aggressive") => format!(
            ", fetch_ratio = {}, batch_size = {}, forward_batch_size = {}, replay = \"released\"",
            rng.random_range(1..60),
            rng.random_range(1..20),
            rng.random_range(1..20)
        ),
        true if policy.contains("aggressive") => format!(", batch_size = {}", rng.random_range(1..100)),
        true if policy.contains("forestall") => format!(
            ", fetch_ratio = {}, batch_size = {}, lookahead = {}, horizon = {}",
            one_of(rng, &["0", "1", "7.5", "30", "inf", "\"dynamic\""]),
            rng.random_range(1..40),
            rng.random_range(0..500),
            rng.random_range(0..90)
        ),
        _ => String::new(),
    };
    policy.push_str(&keys);
    let name = policy.split('"').nth(1).expect("a name in quotes");
    let hinted = POLICIES.iter().any(|row| row.name == name && row.is_hinted()) || policy.contains("\"min\"");
    if hinted {
        policy.push_str(&match rng.random_range(0..8) {
            0 => format!(", hints = {{window = {}}}", rng.random_range(0..400)),
            1 => format!(", hints = {{fraction = 0.{}, seed = {}}}", rng.random_range(0..10), rng.random_range(0..100)),
            2 => ", hints = {fraction = 1.0}".to_owned(),
            3 | 4 => format!(
                ", hints = {{{}wrong = 0.{}, reordered = 0.{}, distance = {}, seed = {}}}",
                one_of(rng, &["", "fraction = 0.9, ", "window = 70, "]),
                rng.random_range(0..10),
                rng.random_range(0..10),
                rng.random_range(1..100),
                rng.random_range(0..100)
            ),
            _ => String::new(),
        });
    }
    policy
}

/// What two runs must share: everything except the scenario and the levels below the first.
pub fn same_but_lower_levels(one: &Report, two: &Report, text: &str) {
    let json = |report: &Report| {
        let mut value = serde_json::to_value(report).expect("plain values");
        let object = value.as_object_mut().expect("an object");
        object.remove("scenario");
        let levels = object.remove("levels").expect("levels");
        (value, levels[0].clone())
    };
    assert_eq!(json(one), json(two), "{text}");
}
