//! Mutated scenarios: a mutated scenario file gives a scenario, or a one-line error.
//!
//! 2,000 inputs, or HEADSTART_FUZZ_INPUTS. A failure prints the number of the input, which is the seed of its
//! mutations. `random_scenarios` tests runs of accepted scenarios.

use std::path::Path;

use headstart_sim::Scenario;
use headstart_types::toml_problem;
use toml::Table;

use crate::mutate::run;

/// Sections that the examples lack.
const MORE: &str = r#"
seed = 7
[workload]
generator = "zipf"
requests = 1000
blocks = 500
alpha = 0.9
block_size = "4KiB"
compute = "exp:1ms"
compute_scale = 0.5
processes = "merged"
issue = "whole"
writes = "skip"
placement = "address"
addresses = "compact-chunks"
chunk_blocks = 8
limit = 900
[cache]
footprint = 0.05
[policy]
name = "linux"
read_ahead = "512KiB"
replacement = {name = "lirs"}
[device]
model = {name = "hp97560", rpm = 7200}
count = 4
array = "raid5"
stripe_unit = "64KiB"
scheduler = "deadline"
[host]
driver_overhead = "0.5ms"
hit_time = "1us"
"#;

fn read(content: &[u8]) -> Result<(), String> {
    // A file that is not UTF-8 is refused before parsing.
    let text = String::from_utf8_lossy(content);
    let table: Table = text.parse().map_err(|error| toml_problem(&text, &error).1)?;
    Scenario::from_table(table).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn mutated_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    // A grid is not a scenario.
    seeds.retain(|text| !String::from_utf8_lossy(text).contains("\n[grid]"));
    assert!(seeds.len() >= 4, "examples are scenarios");
    seeds.push(MORE.as_bytes().to_vec());
    run("scenario", &seeds, read);
}
