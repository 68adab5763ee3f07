//! Addresses beyond the device: compared with a naively renumbered trace, and read-ahead by hand.

use std::fmt::Write as _;

use headstart_sim::Report;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;

const HEADER: &str = "time,op,pid,file,offset,size,dur_us\n";
const BLOCK: u64 = 8192;

/// Requests of (file, first block, blocks), 2 ms apart.
fn trace(name: &str, requests: &[(u32, u64, u64)]) -> common::Trace {
    let mut text = HEADER.to_owned();
    for (index, (file, first, blocks)) in requests.iter().enumerate() {
        let (at, offset, size) = (index as f64 * 0.002, first * BLOCK, blocks * BLOCK);
        writeln!(text, "{at:.3},R,1,{file},{offset},{size},0").expect("a string takes all");
    }
    common::Trace::of_text(name, &text)
}

fn run(trace: &common::Trace, keys: &str, policy: &str) -> Report {
    let path = trace.path();
    common::run(&format!(
        "workload = {{trace = \"{path}\", {keys}}}\ncache = {{blocks = 20}}\npolicy = {{{policy}}}\n\
         device = {{model = \"hp97560\"}}\n"
    ))
}

/// A result without its inputs.
fn figures(report: &Report) -> serde_json::Value {
    let mut value = serde_json::to_value(report).expect("plain values");
    let object = value.as_object_mut().expect("an object");
    object.remove("scenario");
    object.remove("trace_sha256");
    value
}

/// The place of `address`: its chunk follows those of lower addresses with any referenced block.
fn naive(address: u64, referenced: &[u64], chunk: u64) -> u64 {
    let mut before: Vec<u64> =
        referenced.iter().map(|each| each / chunk).filter(|each| *each < address / chunk).collect();
    before.sort_unstable();
    before.dedup();
    before.len() as u64 * chunk + address % chunk
}

#[test]
fn compaction_is_renumbering() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let chunk = [1, 2, 3, 8, 64, 1000][rng.random_range(0..6)];
        let requests: Vec<(u32, u64, u64)> = (0..120)
            .map(|_| (1, rng.random_range(0..1000) * 100_000_000 + rng.random_range(0..50), rng.random_range(1..6)))
            .collect();
        let referenced: Vec<u64> = requests.iter().flat_map(|(_, first, blocks)| *first..first + blocks).collect();
        // A request stays contiguous: all its blocks are referenced, so no chunk between two of them is skipped.
        let renumbered: Vec<(u32, u64, u64)> =
            requests.iter().map(|(file, first, blocks)| (*file, naive(*first, &referenced, chunk), *blocks)).collect();
        let (far, near) = (trace(&format!("far{seed}"), &requests), trace(&format!("near{seed}"), &renumbered));
        let keys = match chunk {
            1 => "placement = \"address\", addresses = \"compact\"".to_owned(),
            _ => format!("placement = \"address\", addresses = \"compact-chunks\", chunk_blocks = {chunk}"),
        };
        let compacted = run(&far, &keys, "name = \"demand\"");
        let by_hand = run(&near, "placement = \"address\"", "name = \"demand\"");
        assert_eq!(figures(&compacted), figures(&by_hand), "seed {seed}, chunks of {chunk}");
    }
}

#[test]
fn files_are_laid_out_before_chunks_are_cut() {
    // Table order: file 1 takes 0..10, file 2 from 10 on. Chunks of four: 9 and 10 share 8..12, 30 lies in 28..32.
    let requests = [(1, 9, 1), (2, 20, 1), (2, 0, 1)];
    let keys = "addresses = \"compact-chunks\", chunk_blocks = 4";
    let compacted = run(&trace("files", &requests), keys, "name = \"demand\"");
    let by_hand =
        run(&trace("files-near", &[(1, 1, 1), (1, 6, 1), (1, 2, 1)]), "placement = \"address\"", "name = \"demand\"");
    assert_eq!(figures(&compacted)["devices"], figures(&by_hand)["devices"]);
}

/// (prefetches, prefetches that were used) of read-ahead of six blocks.
fn read_ahead(requests: &[(u32, u64, u64)], keys: &str) -> (u64, u64) {
    let keys = format!("placement = \"address\", {keys}");
    let counts = run(&trace("ahead", requests), &keys, "name = \"ra\", degree = 6").counts;
    (counts.prefetches, counts.prefetches_used)
}

#[test]
fn read_ahead_finds_the_neighbours_in_a_chunk() {
    // 0 and 1 are requested, and 1,000,000: with chunks of four, 0..4 and 1,000,000 to 1,000,003 use space. 1, 2 and 3
    // follow 0, nothing new follows 1, three more follow 1,000,000. Without chunks only 1 does.
    let far = [(1, 0, 1), (1, 1, 1), (1, 1_000_000, 1)];
    assert_eq!(read_ahead(&far, "addresses = \"compact\""), (1, 1));
    assert_eq!(read_ahead(&far, "addresses = \"compact-chunks\", chunk_blocks = 4"), (6, 1));
    // The next chunk of the volume with a referenced block continues the sequence: 4 to 6 after 0, 7 after 1.
    let near = [(1, 0, 1), (1, 1, 1), (1, 7, 1), (1, 1_000_000, 1)];
    assert_eq!(read_ahead(&near, "addresses = \"compact-chunks\", chunk_blocks = 4"), (10, 2));
    // A chunk of the default size holds all six, and the seventh after 1.
    assert_eq!(read_ahead(&far, "addresses = \"compact-chunks\""), (13, 1));
}

#[test]
fn think_times_follow_requests_that_are_not_whole_blocks() {
    // In one part of the trace a partially requested block has its bytes recorded, in another none has: both parts must
    // have as many think times as references.
    let trace = common::Trace::of_text("unaligned", "offset,size\n57344,3996\n61440,4096\n65536,4096\n");
    let policies = ["fixed-horizon", "aggressive", "reverse-aggressive", "forestall", "demand\", replacement = \"min"];
    for policy in policies {
        let report = common::run(&format!(
            "workload = {{trace = \"{}\", compute = \"1ms\", block_size = \"4KiB\"}}\npolicy = {{name = \"{policy}\"}}\n\
             host = {{hit_time = \"10us\"}}\n",
            trace.path()
        ));
        assert_eq!((report.counts.references, report.compute_ns), (3, 3_000_000), "{policy}");
    }
}

/// The requests of `trace` under `addresses = "auto"`, on `disks` disks of 1.3 GB.
fn auto(trace: &common::Trace, disks: u32) -> Result<Report, String> {
    let path = trace.path();
    common::try_run(common::table(&format!(
        "workload = {{trace = \"{path}\", placement = \"address\", addresses = \"auto\"}}\ncache = {{blocks = 20}}\n\
         device = {{model = \"hp97560\", count = {disks}}}\n"
    )))
}

/// The notes about addresses.
fn address_notes(report: &Report) -> Vec<&String> {
    report.notes.iter().filter(|note| note.contains("addresses")).collect()
}

#[test]
fn auto_leaves_addresses_that_fit_and_compacts_others() {
    let near = trace("auto-near", &[(1, 0, 1), (1, 5, 2), (1, 90_000, 1)]);
    let kept = auto(&near, 1).expect("fits");
    assert_eq!(address_notes(&kept), Vec::<&String>::new());
    assert_eq!(figures(&kept), figures(&run(&near, "placement = \"address\"", "name = \"demand\"")));

    let far = trace("auto-far", &[(1, 0, 1), (1, 5, 2), (1, 90_000_000, 1)]);
    let compacted = auto(&far, 1).expect("fits in chunks");
    let notes = address_notes(&compacted);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("chunk_blocks = 64;"), "{notes:?}");
    let keys = "placement = \"address\", addresses = \"compact-chunks\", chunk_blocks = 64";
    let by_hand = run(&far, keys, "name = \"demand\"");
    assert_eq!(figures(&compacted)["devices"], figures(&by_hand)["devices"]);
}

/// An HP 97560 has 2,684,016 sectors: 167,751 blocks.
const HELD: u64 = 167_751;

#[test]
fn auto_takes_the_largest_chunks_that_fit() {
    // Blocks 1,000 apart, 5,000 of them: chunks of 64 take 320,000 blocks, of 32 take 160,000.
    let requests: Vec<(u32, u64, u64)> = (0..5_000).map(|index| (1, index * 1_000_000, 1)).collect();
    let report = auto(&trace("auto-chunks", &requests), 1).expect("fits");
    let notes = address_notes(&report);
    assert!(notes[0].contains("chunk_blocks = 32;"), "{notes:?}");
}

#[test]
fn more_blocks_than_the_device_holds_are_told_with_both_sizes_and_what_fits() {
    // 200,000 blocks in 2,000 requests, far apart.
    let requests: Vec<(u32, u64, u64)> = (0..2_000).map(|index| (1, index * 1_000_000, 100)).collect();
    let trace = trace("auto-much", &requests);
    let text = auto(&trace, 1).expect_err("does not fit");
    let expected = format!(
        "workload.addresses: the trace touches 200000 blocks (1.5 GiB), and 1 hp97560 disk holds {HELD} blocks (1.3 GiB); \
         allowed: device.count = 2 or more, or a larger device, such as device.model = "
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(auto(&trace, 2).expect("fits").counts.references, 200_000);
}
