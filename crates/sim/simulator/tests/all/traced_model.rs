//! The file-system model of a trace compared with the simulation.

use headstart_sim::model::traced_answer;
use headstart_sim::Scenario;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::{run, table, Trace};

fn answer(text: &str) -> Result<Value, String> {
    let scenario = Scenario::from_table(table(text)).map_err(|error| error.to_string())?;
    traced_answer(&scenario).map_err(|error| error.to_string())
}

/// Reads of blocks of files, one after another.
fn trace(name: &str, reads: impl IntoIterator<Item = (u64, u64)>) -> Trace {
    requests(name, reads.into_iter().map(|(file, block)| ('R', file, block * 8192, 8192)))
}

/// Requests, each of an operation, a file, an offset and a size.
fn requests(name: &str, requests: impl IntoIterator<Item = (char, u64, u64, u64)>) -> Trace {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for (op, file, offset, size) in requests {
        text += &format!("0.0,{op},1,{file},{offset},{size},0\n");
    }
    Trace::of_text(name, &text)
}

/// With writes that go to the disk later.
fn writing(scenario: &str, cache: &str) -> String {
    scenario
        .replace("compute = \"0ms\"", "compute = \"0ms\", writes = \"back\"")
        .replace("blocks = 20000", &format!("blocks = 20000{cache}"))
}

const UNIFORM: &str = "model = \"uniform\", fetch_time = \"2ms\", scheduler = \"fcfs\"";
const CHEETAH: &str = "model = \"seagate-cheetah-4lp\", scheduler = \"clook\", controller = {overhead = \"1.2ms\"}, \
                       bus = {bytes_per_second = 9523200}, buffer = {read_during_overhead = true}";

fn scenario(trace: &Trace, policy: &str, placement: &str, device: &str) -> String {
    format!(
        "workload = {{trace = \"{}\", compute = \"0ms\", placement = {{name = \"ffs\"{placement}}}}}\n\
         cache = {{blocks = 20000}}\npolicy = \"{policy}\"\ndevice = {{{device}}}\nhost = {{copy_per_kib = \"10240ns\"}}",
        trace.path()
    )
}

fn number(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().expect("a number")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any reads on a disk that always takes the same time: the model reproduces the simulation's events.
    #[test]
    fn any_trace_on_a_uniform_disk_is_the_simulation(
        pieces in prop::collection::vec((0u64..4, 0u64..60, 1u64..14), 1..25),
        prefetching in any::<bool>(), opens in any::<bool>(), direct in 1u64..20, directory in 1u64..4,
    ) {
        let reads = pieces.iter().flat_map(|(file, first, count)| (0..*count).map(move |at| (*file, first + at)));
        let trace = trace("traced-uniform", reads);
        let policy = if prefetching { "ffs" } else { "demand" };
        let opens = if opens { "read" } else { "before" };
        let placement = format!(
            ", size = \"1GiB\", opens = \"{opens}\", direct_blocks = {direct}, directory_files = {directory}"
        );
        let text = scenario(&trace, policy, &placement, UNIFORM);
        let (found, report) = (answer(&text).expect("modelled"), run(&text));
        prop_assert_eq!(number(&found, "disk_requests"), report.devices[0].requests as f64, "{}", text);
        let mean = report.response_ns.mean as f64;
        prop_assert!((number(&found, "response_ns") - mean).abs() < 2.0, "{} is not {mean}\n{text}", found);
        let elapsed = report.elapsed_ns as f64;
        prop_assert!((number(&found, "elapsed_ns") - elapsed).abs() < 2.0, "{} is not {elapsed}\n{text}", found);
    }

    /// The same for reads and writes: whole blocks and halves, in clusters and single, due soon and never.
    #[test]
    fn any_writes_on_a_uniform_disk_are_the_simulation(
        pieces in prop::collection::vec((any::<bool>(), 0u64..4, 0u64..60, 1u64..30, 1u64..3), 1..25),
        prefetching in any::<bool>(), opens in any::<bool>(), direct in 1u64..20,
        cluster in prop::option::of(1u64..12), delay in prop::sample::select(vec!["3000001ns", "20000003ns", "30s"]),
    ) {
        let made = pieces.iter().flat_map(|(writes, file, first, count, parts)| {
            let (op, size) = (if *writes { 'W' } else { 'R' }, 8192 / parts);
            (0..count * parts).map(move |at| (op, *file, first * 8192 + at * size, size))
        });
        let trace = requests("traced-uniform-writes", made);
        let policy = if prefetching { "ffs" } else { "demand" };
        let opens = if opens { "read" } else { "before" };
        let placement = format!(", size = \"1GiB\", opens = \"{opens}\", direct_blocks = {direct}");
        let cluster = cluster.map_or(String::new(), |blocks| format!(", write_cluster = \"{}KiB\"", 8 * blocks));
        let cache = format!(", write_delay = \"{delay}\"{cluster}");
        let text = writing(&scenario(&trace, policy, &placement, UNIFORM), &cache);
        let (found, report) = (answer(&text).expect("modelled"), run(&text));
        let device = &report.devices[0];
        let requests = (number(&found, "disk_requests"), number(&found, "disk_writes"));
        prop_assert_eq!(requests, (device.requests as f64, device.writes as f64), "{}", text);
        let mean = report.response_ns.mean as f64;
        prop_assert!((number(&found, "response_ns") - mean).abs() < 2.0, "{} is not {mean}\n{text}", found);
        let elapsed = report.elapsed_ns as f64;
        prop_assert!((number(&found, "elapsed_ns") - elapsed).abs() < 2.0, "{} is not {elapsed}\n{text}", found);
    }
}

/// A file of 20 blocks is written from start to end, then another one is read. By hand: a block takes 80 KiB-times of
/// copying, 81.92 us; the clusters of blocks 0 to 7 and 12 to 19 leave when blocks 7 and 19 are written, that of 8 to
/// 11 when 11 is, for an indirect block comes behind. That one is read, and waits for the writes before it.
#[test]
fn a_sequential_writer_by_hand() {
    let whole = |op, file| (0..20).map(move |block| (op, file, block * 8192, 8192));
    let trace = requests("traced-writer", whole('W', 1).chain([('R', 2, 0, 8192)]));
    let text = writing(&scenario(&trace, "demand", ", size = \"1GiB\"", UNIFORM), ", write_cluster = \"64KiB\"");
    let (found, report) = (answer(&text).expect("modelled"), run(&text));
    // The first write begins at 7 copies and takes 2 ms, the second then; the indirect block is there at 7 copies + 6
    // ms, the third cluster leaves 8 copies later, at 7 copies + 6 ms + 7 copies. The read comes a copy later and waits
    // for it.
    let copy = 81_920;
    let third = 7 * copy + 6_000_000 + 7 * copy;
    let elapsed = third + 2_000_000 + 2_000_000 + copy;
    assert_eq!((report.elapsed_ns, number(&found, "elapsed_ns")), (elapsed, elapsed as f64));
    let device = &report.devices[0];
    assert_eq!((device.requests, device.writes, report.counts.blocks_written), (5, 3, 20));
    assert_eq!((number(&found, "disk_requests"), number(&found, "disk_writes")), (5.0, 3.0));
    assert_eq!(found["parameters"]["writes"].as_u64(), Some(20));
    assert_eq!(report.levels[0].dirty_blocks, 0);
    // Without clusters each block is due by itself, half a minute later.
    let alone = run(&text.replace(", write_cluster = \"64KiB\"", ""));
    assert_eq!((alone.devices[0].writes, alone.levels[0].dirty_blocks), (0, 20));
}

#[test]
fn parameters_by_hand() {
    // File 1: 0 1 2, again 1, then 20 21, behind an indirect block; file 2: 0, and file 1 again; file 2: 1, 3.
    let reads = [(1, 0), (1, 1), (1, 2), (1, 1), (2, 0), (1, 20), (1, 21), (2, 1), (1, 22), (2, 3)];
    let trace = trace("traced-hand", reads);
    let found = answer(&scenario(&trace, "demand", ", opens = \"read\"", CHEETAH)).expect("modelled");
    let of = &found["parameters"];
    let whole = |key: &str| of[key].as_u64().expect(key);
    assert_eq!((whole("requests"), whole("data_span")), (10, 9 * 8192));
    // 0 to 2; 1; 0 and 1 of file 2; 20 to 22; 3.
    assert_eq!((whole("runs"), whole("switches")), (5, 5));
    assert_eq!(of["run_length"].as_f64(), Some(2.0 * 8192.0));
    assert_eq!(of["request"].as_f64(), Some(8192.0));
    // Nine blocks, two inodes, an indirect block.
    assert_eq!(number(&found, "disk_requests"), 12.0);
}

/// Two to four files in turn: with a segment for each, the drive's cache has what it read ahead in the last turn. An
/// earlier form of the model charged every turn with a seek: 142 % more than the simulation.
#[test]
fn files_in_turn_find_their_segments() {
    for files in 2..=4u64 {
        let reads = (0..30).flat_map(|set| (0..files * 12).map(move |at| (set * files + at % files, at / files)));
        let trace = trace(&format!("traced-turns-{files}"), reads);
        let text = scenario(&trace, "demand", "", CHEETAH);
        let (found, report) = (answer(&text).expect("modelled"), run(&text));
        let error = number(&found, "response_ns") / report.response_ns.mean as f64 - 1.0;
        println!("{files} in turn: {error:+.3}");
        assert!(error.abs() < 0.1, "{files}: {error:+.3}");
        let hits = (number(&found, "buffer_hits"), report.devices[0].buffer_hits as f64);
        assert!((hits.0 - hits.1).abs() <= 0.1 * number(&found, "disk_requests"), "{files}: {hits:?}");
        assert_eq!(hits.1 > 0.0, files <= 3, "{files}: {hits:?}");
    }
}

#[test]
fn traces_on_a_cheetah_are_near_the_simulation() {
    let whole = |blocks: u64| (0..60).flat_map(move |file| (0..blocks).map(move |block| (file, block)));
    // Blocks of one file here and there: a step that shares no factor with their number goes through all.
    let scattered = (0..400).map(|at| (0, at * 181 % 4001));
    let turns = (0..40).flat_map(|pair| (0..24).map(move |at| (2 * pair + at % 2, at / 2)));
    for (name, trace, most) in [
        ("whole files", trace("traced-eight", whole(8)), 0.1),
        ("files of 20 blocks", trace("traced-twenty", whole(20)), 0.1),
        ("one block each", trace("traced-one", whole(1)), 0.1),
        ("scattered", trace("traced-scattered", scattered), 0.1),
        ("two files in turn", trace("traced-turns", turns), 0.1),
    ] {
        for policy in ["demand", "ffs"] {
            let text = scenario(&trace, policy, ", opens = \"read\"", CHEETAH);
            let found = answer(&text).expect("modelled");
            let report = run(&text);
            let error = number(&found, "response_ns") / report.response_ns.mean as f64 - 1.0;
            println!("{name}, {policy}: {error:+.3}");
            assert_eq!(number(&found, "disk_requests"), report.devices[0].requests as f64, "{name}, {policy}");
            assert!(error.abs() < most, "{name}, {policy}: {error:+.3}");
        }
    }
}

/// A reader and a writer in turn: reads wait for the clusters written before.
#[test]
fn writes_on_a_cheetah_are_near_the_simulation() {
    let through = "buffer = {read_during_overhead = true, write_reporting = \"media\"}";
    for (drive, device) in [
        ("writes behind", CHEETAH.to_owned()),
        ("writes through", CHEETAH.replace("buffer = {read_during_overhead = true}", through)),
    ] {
        for (name, written) in [("as much as is read", 1), ("four times as much", 4)] {
            let turn = |at: u64| {
                let write = move |nth| ('W', 1000 + at / 8, (at % 8 * written + nth) * 8192, 8192);
                std::iter::once(('R', at / 8, at % 8 * 8192, 8192)).chain((0..written).map(write))
            };
            let trace = requests(&format!("traced-cheetah-writes-{written}"), (0..480).flat_map(turn));
            for cluster in ["", ", write_cluster = \"64KiB\""] {
                let cache = format!(", write_delay = \"100ms\"{cluster}");
                let text = writing(&scenario(&trace, "ffs", "", &device), &cache);
                let (found, report) = (answer(&text).expect("modelled"), run(&text));
                let error = number(&found, "response_ns") / report.response_ns.mean as f64 - 1.0;
                println!("{drive}, {name}{cluster}: {error:+.3}");
                let requests = (number(&found, "disk_requests"), report.devices[0].requests as f64);
                // The number of blocks that have become due depends on when the program ends.
                assert!((requests.0 / requests.1 - 1.0).abs() < 0.03, "{drive}, {name}{cluster}: {requests:?}");
                assert!(error.abs() < 0.25, "{drive}, {name}{cluster}: {error:+.3}");
            }
        }
    }
}

#[test]
fn what_the_model_of_a_trace_does_not_know_is_refused() {
    let trace = trace("traced-refused", [(1, 0), (1, 1), (2, 0)]);
    let text = scenario(&trace, "ffs", "", CHEETAH);
    for (old, new, expected) in [
        ("\"0ms\"", "\"1ms\"", "workload.compute: the model of a trace uses the trace's think times, or none"),
        ("{name = \"ffs\"}", "\"table-order\"", "workload.placement: the model has a Fast File System"),
        ("blocks = 20000", "blocks = 2", "cache.blocks: 2 blocks do not hold what is fetched"),
        ("blocks = 20000", "footprint = 0.5", "cache.footprint: the model evicts nothing"),
        ("policy = \"ffs\"", "policy = \"obl\"", "policy.name: the model does not cover obl"),
        ("compute = \"0ms\"", "compute = \"0ms\", processes = \"per-pid\"", "workload.processes: the model of a trace"),
        (
            "compute = \"0ms\"",
            "compute = \"0ms\", writes = \"through\"",
            "workload.writes: no process waits for a write",
        ),
        ("blocks = 20000", "blocks = 20000, write_cluster = \"64KiB\"", "cache.write_cluster: nothing stays dirty"),
        ("scheduler = \"clook\"", "scheduler = \"clook\", queue_depth = 4", "device.queue_depth: "),
    ] {
        assert!(text.contains(old), "{old}");
        let error = answer(&text.replacen(old, new, 1)).expect_err(new);
        assert!(error.starts_with(expected), "{error}");
    }
}
