//! `device.cache_segments`: the buffer of a disk divided among a fixed number of segments, or as many as there are
//! streams or open files.

use headstart_sim::Report;
use toml::Value;

use crate::common;

/// `files` files of 24 blocks, 1000 blocks apart, each read by its own process, a block of each in turn.
fn trace(name: &str, files: u64) -> common::Trace {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    let reads = (0..24).flat_map(|block| (0..files).map(move |file| (block, file)));
    for (at, (block, file)) in reads.enumerate() {
        text += &format!("0.{at:06},R,{file},{file},{},8192,0\n", (file * 1_000 + block) * 8192);
    }
    common::Trace::of_text(name, &text)
}

fn scenario(trace: &common::Trace, workload: &str, device: &str) -> String {
    format!(
        "workload = {{trace = \"{}\", compute = \"4ms\", placement = \"address\"{workload}}}\ncache = {{blocks = 64}}\n\
         policy = \"demand\"\ndevice = {{model = \"seagate-cheetah-4lp\", scheduler = \"fcfs\"{device}}}\n",
        trace.path()
    )
}

/// All of a result but the scenario.
fn result(report: &Report) -> Value {
    let mut value = Value::try_from(serde_json::to_value(report).expect("plain values")).expect("and no nulls");
    value.as_table_mut().expect("an object").remove("scenario");
    value
}

#[test]
fn a_number_is_as_keys_of_the_buffer() {
    let trace = trace("segments-number", 4);
    for (segments, sectors) in [(1, 846), (2, 423), (4, 211), (5, 169)] {
        let ahead = sectors.min(282);
        let keys = format!("segments = {segments}, segment_sectors = {sectors}, read_ahead_maximum = {ahead}");
        let laid = common::run(&scenario(&trace, "", &format!(", buffer = {{{keys}}}")));
        let divided = common::run(&scenario(&trace, "", &format!(", cache_segments = {segments}")));
        assert_eq!(result(&divided), result(&laid));
        assert_eq!(divided.scenario["device"]["cache_segments"].as_integer(), Some(segments));
        assert!(laid.scenario["device"].get("cache_segments").is_none());
        // A resolved scenario can be run again.
        let again = common::try_run(divided.scenario.clone()).expect("it ran before");
        assert_eq!(result(&again), result(&divided));
    }
}

#[test]
fn four_streams_need_four_segments() {
    let trace = trace("segments-four", 4);
    let hits = |device: &str| common::run(&scenario(&trace, "", device)).devices[0].buffer_hits;
    // Each stream's segment is replaced before the stream returns to it, or before it reaches its next block.
    assert_eq!(hits(", cache_segments = 3"), 0);
    assert!(hits(", cache_segments = 4") > 80);
    assert_eq!(hits(""), hits(", cache_segments = 3"), "the profile's are three");
}

#[test]
fn streams_are_the_processes() {
    let trace = trace("segments-streams", 5);
    let run = |workload: &str, segments: &str, process: &str| {
        let text = scenario(&trace, workload, &format!(", cache_segments = {segments}"));
        common::run(&format!("{text}{process}"))
    };
    for (workload, process, count) in [
        ("", "", 1),
        (", processes = \"per-pid\"", "", 5),
        (", processes = \"dealt\"", "process = {count = 3}", 3),
        (", processes = \"dealt\"", "process = {count = 9}", 5), // four get no file
    ] {
        let streams = run(workload, "\"streams\"", process);
        assert_eq!(streams.scenario["device"]["cache_segments"].as_str(), Some("streams"));
        assert_eq!(result(&streams), result(&run(workload, &count.to_string(), process)), "{workload}");
        let other = if count == 1 { 5 } else { count - 1 };
        assert!(result(&streams) != result(&run(workload, &other.to_string(), process)), "{workload}");
    }
    let pattern = |segments: &str| {
        common::run(&format!(
            "workload = {{}}\ncache = {{blocks = 40}}\npolicy = \"demand\"\n\
             process = {{count = 6, pattern = {{name = \"lfp\", blocks = 300}}}}\n\
             device = {{model = \"seagate-cheetah-4lp\", cache_segments = {segments}}}\n"
        ))
    };
    assert_eq!(result(&pattern("\"streams\"")), result(&pattern("6")));
    assert!(result(&pattern("\"streams\"")) != result(&pattern("5")));
}

#[test]
fn one_file_after_another_is_one_segment() {
    let trace = trace("segments-one-open", 5);
    let run = |segments: &str| common::run(&scenario(&trace, "", &format!(", cache_segments = {segments}")));
    let open = run("\"open-files\"");
    assert_eq!(open.scenario["device"]["cache_segments"].as_str(), Some("open-files"));
    // One process switches files with each block: it has one open.
    assert_eq!(result(&open), result(&run("1")));
    assert!(result(&open) != result(&run("5")));
    let again = common::try_run(open.scenario.clone()).expect("it ran before");
    assert_eq!(result(&again), result(&open));
}

#[test]
fn segments_follow_the_open_files() {
    // Each process has its own file from the start: segments are added before the first request starts. They are
    // removed, with their contents, when all but two processes have ended.
    let trace = trace("segments-open", 5);
    let processes = ", processes = \"per-pid\"";
    let run = |segments: &str| common::run(&scenario(&trace, processes, &format!(", cache_segments = {segments}")));
    let hits = |report: &Report| report.devices[0].buffer_hits;
    let [open, five, three] = ["\"open-files\"", "5", "3"].map(run);
    assert!(hits(&open) + 3 >= hits(&five), "{} of {}", hits(&open), hits(&five));
    assert!(hits(&open) > hits(&three) + 40, "{} and {}", hits(&open), hits(&three));
}

/// Seven processes read, six of them short files: then one reads alone.
#[test]
fn no_fixed_number_suits_both_phases_better() {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for (block, file) in (0..400).flat_map(|block| (0..7).map(move |file| (block, file))) {
        if block < 24 || file == 0 {
            text += &format!("{block}.0,R,{file},{file},{},8192,0\n", (file * 1_000 + block) * 8192);
        }
    }
    let trace = common::Trace::of_text("segments-phases", &text);
    let run = |segments: &str| {
        let workload = ", processes = \"per-pid\"";
        common::run(&scenario(&trace, workload, &format!(", cache_segments = {segments}"))).elapsed_ns
    };
    let open = run("\"open-files\"");
    for fixed in ["1", "2", "3", "6", "7", "16"] {
        let fixed_ns = run(fixed);
        assert!(open as f64 <= fixed_ns as f64 * 1.01, "{open} ns, and with {fixed} segments {fixed_ns} ns");
    }
}

#[test]
fn what_is_refused_names_the_key() {
    let trace = trace("segments-refused", 2);
    for (device, expected) in [
        (", cache_segments = 0", "device.cache_segments: 0 is out of range; allowed: a whole number from 1"),
        (
            ", cache_segments = \"many\"",
            "device.cache_segments: \"many\" is a string; allowed: a whole number from 1, \"streams\"",
        ),
        (", cache_segments = 847", "device.cache_segments: 847 segments of a buffer of 846 sectors; allowed: a whole"),
        (", cache_segments = 847, array = \"raid0\", count = 2", "device.cache_segments: 847 segments of a buffer"),
    ] {
        let error = common::try_run(common::table(&scenario(&trace, "", device))).expect_err(device);
        assert!(error.starts_with(expected), "{error}");
    }
    let hidden = scenario(&trace, "", ", cache_segments = \"open-files\", array = \"raid0\", count = 2");
    let error = common::try_run(common::table(&hidden)).expect_err("behind a controller");
    assert!(error.starts_with("device.cache_segments: \"open-files\" needs disks, which \"raid0\" hides"), "{error}");
    for segments in ["2", "\"streams\"", "\"open-files\""] {
        let text = scenario(&trace, "", &format!(", cache_segments = {segments}"));
        let error = common::try_run(common::table(&text.replace("seagate-cheetah-4lp", "hp97560"))).expect_err("none");
        assert!(error.starts_with("device.cache_segments: the buffer is one stream and has no segments"), "{error}");
    }
}
