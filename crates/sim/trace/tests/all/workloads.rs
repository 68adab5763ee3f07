//! Generators: counts, positions, determinism, distributions, and errors for wrong keys.

use std::collections::BTreeMap;

use headstart_trace::{generate, info, GeneratorContext, Record, WORKLOADS};
use toml::Table;

use crate::common::drain;

const CONTEXT: GeneratorContext = GeneratorContext { seed: 7, block_bytes: 8192 };

fn keys(text: &str) -> Table {
    text.parse().unwrap()
}

fn records(name: &str, text: &str, context: &GeneratorContext) -> Vec<Record> {
    drain(&mut *generate(name, keys(text), context).unwrap()).unwrap()
}

fn blocks(name: &str, text: &str) -> Vec<u64> {
    records(name, text, &CONTEXT).iter().map(|record| record.offset / 8192).collect()
}

/// Keys that give a generator few records, with think times.
fn few(defaults: &Table) -> String {
    let small = [("blocks", "100"), ("request_blocks", "7"), ("requests", "30"), ("size", "\"2MB\"")];
    let small = small.into_iter().chain([("index_size", "\"1MB\""), ("lists", "100")]);
    let known = small.filter(|(key, _)| defaults.contains_key(*key));
    let known = known.filter(|(key, _)| *key != "requests" || !defaults.contains_key("blocks"));
    let known = known.chain(Some(("compute", "\"exp:1ms\"")).filter(|(key, _)| defaults.contains_key(*key)));
    known.map(|(key, value)| format!("{key} = {value}\n")).collect()
}

#[test]
fn every_generator_is_deterministic_and_does_as_it_declares() {
    for row in WORKLOADS {
        let text = &few(&row.keys.defaults());
        let mut reader = generate(row.name, keys(text), &CONTEXT).unwrap();
        let total = reader.progress().1;
        let first = drain(&mut *reader).unwrap();
        assert_eq!(reader.progress(), (total, total), "{}", row.name);
        assert_eq!(first, records(row.name, text, &CONTEXT), "{}", row.name);
        assert_ne!(first, records(row.name, text, &GeneratorContext { seed: 8, ..CONTEXT }), "{}", row.name);
        let carries = reader.carries();
        assert!(carries.think && carries.addresses && !carries.objects && !carries.duration);
        assert_eq!(carries.time, row.name == "runs", "{}", row.name);
        assert_eq!(carries.files, !reader.files().is_empty(), "{}", row.name);
        for record in &first {
            assert!(record.size > 0 && record.think.0 > 0);
            assert!(carries.processes || record.pid == 0, "{}", row.name);
            assert!(carries.files || record.file == 0, "{}", row.name);
            assert!(carries.writes || !record.write, "{}", row.name);
        }
    }
}

#[test]
fn generators_without_files_stay_within_their_blocks() {
    for row in WORKLOADS.iter().filter(|row| row.keys.defaults().contains_key("blocks")) {
        let mut reader = generate(row.name, keys(&few(&row.keys.defaults())), &CONTEXT).unwrap();
        assert_eq!((reader.unit_bytes(), reader.carries().files), (8192, false));
        let seen = drain(&mut *reader).unwrap();
        assert_eq!(seen.len() as u64, reader.progress().1, "{}", row.name);
        for record in seen {
            assert!(record.size <= 7 * 8192 && record.size % 8192 == 0);
            assert!(record.offset % 8192 == 0 && record.offset + record.size <= 100 * 8192);
        }
    }
}

#[test]
fn generators_with_files_stay_within_them() {
    for row in WORKLOADS.iter().filter(|row| !row.keys.defaults().contains_key("blocks")) {
        let mut reader = generate(row.name, keys(&few(&row.keys.defaults())), &CONTEXT).unwrap();
        assert_eq!(reader.unit_bytes(), 1, "{}", row.name);
        if !reader.carries().files {
            continue; // "runs": a separate test checks its span
        }
        let sizes: BTreeMap<u32, u64> = reader.files().iter().map(|entry| (entry.file, entry.size_bytes)).collect();
        assert_eq!(sizes.len(), reader.files().len(), "{}: a file is named twice", row.name);
        for record in drain(&mut *reader).unwrap() {
            assert!(record.offset + record.size <= sizes[&record.file], "{}: {record:?}", row.name);
        }
    }
}

#[test]
fn synth_is_50_passes_over_2000_blocks() {
    let synth = records("synth", "", &CONTEXT);
    assert_eq!(synth.len(), 100_000);
    for (index, record) in synth.iter().enumerate() {
        assert_eq!((record.offset, record.size), ((index as u64 % 2000) * 8192, 8192));
    }
    let think_s = synth.iter().map(|record| record.think.0).sum::<u64>() as f64 / 1e9;
    assert!((think_s - 100.0).abs() < 1.5, "{think_s}");
    // The same bytes on every machine.
    let first: Vec<u64> = synth[..4].iter().map(|record| record.think.0).collect();
    assert_eq!(first, [945_551, 1_800_431, 2_516_762, 645_755]);
}

#[test]
fn scans_wrap_where_the_blocks_end() {
    assert_eq!(blocks("sequential", "blocks = 3\npasses = 2"), [0, 1, 2, 0, 1, 2]);
    assert_eq!(blocks("loop", "blocks = 3\nrequests = 5"), [0, 1, 2, 0, 1]);
    let sizes = |name, text| records(name, text, &CONTEXT).iter().map(|r| r.size / 8192).collect::<Vec<_>>();
    assert_eq!(sizes("sequential", "blocks = 5\nrequest_blocks = 2\npasses = 2"), [2, 2, 1, 2, 2, 1]);
    let mut reader = generate("sequential", keys("blocks = 1000"), &CONTEXT).unwrap();
    let info = info(&mut *reader, None).unwrap();
    assert_eq!((info.requests, info.references, info.distinct_blocks), (1000, 1000, 1000));
    assert_eq!(info.sequential_share, Some(0.999));
}

#[test]
fn patterns_are_dealt_out_to_the_processes_in_turn() {
    let dealt = |name, text| -> Vec<(u32, u64)> {
        records(name, text, &CONTEXT).iter().map(|record| (record.pid, record.offset / 8192)).collect()
    };
    let shared = dealt("gw", "count = 3\nreads = 5");
    assert_eq!(shared, [(0, 0), (1, 1), (2, 2), (0, 3), (1, 4)]);
    // 3, 2 and 2 reads of the processes' own strings.
    let local = dealt("lfp", "count = 3\nreads = 7\nportion = 2\nstride = 1\napart = 10");
    assert_eq!(local, [(0, 0), (1, 10), (2, 20), (0, 1), (1, 11), (2, 21), (0, 2)]);
}

#[test]
fn a_share_writes_and_the_places_stay() {
    for name in ["random", "zipf"] {
        let of = |share: f64| {
            let text = format!("requests = 100000\nblocks = 100\nwrite_share = {share:?}");
            let reader = generate(name, keys(&text), &CONTEXT).unwrap();
            assert_eq!(reader.carries().writes, share > 0.0, "{name}");
            records(name, &text, &CONTEXT)
        };
        let [none, some, all] = [0.0, 0.25, 1.0].map(of);
        let writes = |records: &[Record]| records.iter().filter(|record| record.write).count();
        assert_eq!((writes(&none), writes(&all)), (0, 100_000), "{name}");
        // A standard deviation is 137.
        assert!(writes(&some).abs_diff(25_000) < 700, "{name}: {}", writes(&some));
        let places = |records: &[Record]| records.iter().map(|record| record.offset).collect::<Vec<_>>();
        assert!(places(&none) == places(&some) && places(&none) == places(&all), "{name}");
    }
}

#[test]
fn random_is_uniform() {
    let mut counts = [0u32; 100];
    blocks("random", "requests = 100000\nblocks = 100").iter().for_each(|block| counts[*block as usize] += 1);
    let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    // 99 degrees of freedom: mean 99, standard deviation 14.
    assert!((50.0..160.0).contains(&chi_square), "{chi_square}");
}

#[test]
fn zipf_has_the_shares_of_its_law() {
    for (alpha, text) in [(0.0, "0"), (0.7, "0.7"), (1.0, "1.0"), (1.5, "1.5"), (100.0, "100")] {
        let text = format!("requests = 400000\nblocks = 50\nalpha = {text}");
        let mut counts = [0u32; 50];
        blocks("zipf", &text).iter().for_each(|block| counts[*block as usize] += 1);
        assert!(!counts.is_sorted_by(|a, b| a >= b), "ranks are scattered, alpha {alpha}");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-alpha)).collect();
        let total: f64 = weights.iter().sum();
        let expected = weights.iter().map(|weight| weight / total * 400_000.0);
        // Unless expectations are tiny, each count lies within five standard deviations; for alpha 0, sorting spreads
        // the equal counts, which also stays within five.
        for (rank, (count, expected)) in counts.iter().zip(expected).enumerate() {
            let deviation = (f64::from(*count) - expected).abs();
            assert!(deviation < 5.0 * expected.sqrt() + 3.0, "alpha {alpha}, rank {rank}: {count}, {expected}");
        }
    }
}

#[test]
fn wrong_keys_say_what_is_allowed() {
    let error = |name: &str, text: &str| generate(name, keys(text), &CONTEXT).err().unwrap().to_string();
    let names: Vec<&str> = WORKLOADS.iter().map(|row| row.name).collect();
    assert!(["synth", "zipf", "gw", "two-rand"].iter().all(|name| names.contains(name)));
    assert_eq!(
        error("zip", ""),
        format!("generator: unknown generator \"zip\" (did you mean \"zipf\"?); allowed: {}", names.join(", "))
    );
    assert_eq!(
        error("zipf", "beta = 1"),
        "beta: unknown key; allowed: requests, blocks, alpha, request_blocks, compute, write_share"
    );
    assert_eq!(error("zipf", "alpha = -0.1"), "alpha: -0.1 is out of range; allowed: a number from 0 to 100");
    assert!(error("zipf", "alpha = nan").starts_with("alpha: nan is out of range"));
    assert!(error("zipf", "blocks = 1000000000").starts_with("blocks: 1000000000 is out of range"));
    assert!(error("random", "requests = 0").starts_with("requests: 0 is out of range; allowed: a whole number from 1"));
    assert!(error("random", "requests = -1").starts_with("requests: -1 is out of range"));
    assert!(
        error("random", "requests = \"many\"").starts_with("requests: \"many\" is a string; allowed: a whole number")
    );
    assert!(error("loop", "blocks = 4\nrequest_blocks = 5").starts_with("request_blocks: 5 is out of range"));
    assert!(error("synth", "compute = 1").starts_with("compute: 1 is a number; allowed: a time such as"));
    assert!(error("synth", "compute = \"1\"").starts_with("compute: \"1\" has no unit; allowed: a time such as"));
    assert!(error("synth", "passes = 0").starts_with("passes: 0 is out of range"));
    assert_eq!(error("gw", "portion = 1"), "portion: unknown key; allowed: blocks, reads, count, compute");
    assert!(error("lw", "count = 30\nreads = 29").starts_with("reads: 29 is out of range"));
    assert!(error("two-rand", "files = 1").starts_with("files: 1 is out of range; allowed: a whole number from 2"));
    assert!(error("one-rand", "delay = \"10\"").starts_with("delay: \"10\" has no unit; allowed: a time"));
    assert!(error("one-rand", "delay = \"1001h\"")
        .starts_with("delay: 3603600s is too long; allowed: a time of at most 1000h"));
    assert!(error("one-whole", "read = 65536").starts_with("read: 65536 is a number; allowed: a size"));
    assert!(error("one-whole", "requests = 3\nconcurrency = 4").starts_with("concurrency: 4 is out of range"));
    let huge = GeneratorContext { seed: 0, block_bytes: u64::MAX / 2 };
    assert!(generate("synth", Table::new(), &huge).err().unwrap().to_string().starts_with("blocks: 2000 blocks of"));
    assert!(generate("gw", Table::new(), &huge).err().unwrap().to_string().starts_with("blocks: 2000 blocks of"));
    assert!(generate("synth", Table::new(), &GeneratorContext { seed: 0, block_bytes: 0 }).is_err());
}
