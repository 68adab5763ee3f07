//! Files read through a simulated Fast File System: timelines worked by hand, costs by bytes, refusals.

use headstart_sim::Report;

use crate::common::{run, table, try_run};

/// Files on a disk that takes 2 ms per request; further keys of each section.
fn files(workload: &str, placement: &str, policy: &str, rest: &str) -> String {
    let placement = if placement.is_empty() { String::new() } else { format!(", {placement}") };
    format!(
        "workload = {{generator = \"files\", placement = {{name = \"ffs\", size = \"1GiB\"{placement}}}, {workload}}}\n\
         cache = {{blocks = 100}}\npolicy = {{{policy}}}\n\
         device = {{model = \"uniform\", fetch_time = \"2ms\"}}\n{rest}"
    )
}

fn ms(report: &Report) -> f64 {
    report.elapsed_ns as f64 / 1e6
}

#[test]
fn a_cluster_is_read_in_four_requests_one_ahead_of_the_reader() {
    // Requests of 1, 2, 3 and 2 blocks. 0 at 2 ms; 1 is absent: 4. At 4 block 2 is there and 3 to 5 are fetched, of
    // which 3 is waited for: 6. At 6 block 4 is there and 6 and 7 are fetched: 8.
    let report = run(&files("file_size = \"64KiB\"", "", "name = \"ffs\"", ""));
    assert_eq!((ms(&report), report.devices[0].requests, report.requests), (8.0, 4, 8));
    let counts = (report.counts.misses, report.counts.hits_unready, report.counts.hits_ready);
    // A prefetch at the instant of its reference is a demand fetch, and its reference a miss.
    assert_eq!(counts, (4, 0, 4));
    assert_eq!((report.counts.fetches, report.counts.prefetches_wasted), (8, 0));
    // Eight without prefetching.
    let report = run(&files("file_size = \"64KiB\"", "", "name = \"demand\"", ""));
    assert_eq!((ms(&report), report.devices[0].requests), (16.0, 8));
}

#[test]
fn the_disk_works_while_the_reader_thinks() {
    // 1 ms after each request. 0: 2, thinks to 3. 1: 5, to 6. 2 and with it 3 to 5, until 8; thinks to 7; waits to 8,
    // to 9. 4 and with it 6 and 7, until 11; to 10; 5 to 11; 6 to 12; 7 to 13.
    let report = run(&files("file_size = \"64KiB\", compute = \"1ms\"", "", "name = \"ffs\"", ""));
    assert_eq!((ms(&report), report.stall_ns, report.compute_ns), (13.0, 5_000_000, 8_000_000));
}

#[test]
fn beyond_the_direct_blocks_an_indirect_block_is_read() {
    // As above to 6 ms, when 6 to 10 are fetched (window 4): 8. At 8, when 7 is read, 11 alone (the end of its run),
    // and when 8 is, the indirect block: 10 and 12. Block 12 waits for it, and is fetched with 13 to 15: 14.
    let report = run(&files("file_size = \"128KiB\"", "", "name = \"ffs\"", ""));
    assert_eq!((ms(&report), report.devices[0].requests), (14.0, 7));
    // 16 blocks and the indirect one.
    assert_eq!((report.counts.references, report.counts.fetches, report.requests), (17, 17, 16));
    let report = run(&files("file_size = \"128KiB\"", "", "name = \"demand\"", ""));
    assert_eq!((ms(&report), report.devices[0].requests), (34.0, 17));
}

#[test]
fn nobody_thinks_after_metadata() {
    for compute in ["1ms", "exp:1ms"] {
        let report = run(&files(
            &format!("file_size = \"128KiB\", request = \"64KiB\", compute = \"{compute}\""),
            "opens = \"read\"",
            "name = \"ffs\"",
            "",
        ));
        // A generator's think time is that of a request: two.
        let least = if compute == "1ms" { 2_000_000 } else { 1 };
        assert!(report.compute_ns >= least && report.compute_ns < 20_000_000, "{}", report.compute_ns);
    }
    // After each reference, if a trace's think times are replaced: sixteen, not eighteen.
    let scenario = files(
        "file_size = \"128KiB\", compute_total = \"16ms\", compute = \"1ms\"",
        "opens = \"read\"",
        "name = \"ffs\"",
        "",
    );
    assert_eq!(run(&scenario).compute_ns, 16_000_000);
}

#[test]
fn handing_over_costs_by_the_byte_and_a_call_by_the_request() {
    // Requests of 10 KiB of a file of 24 KiB: 10, 10 and 4; blocks 0 1, 1 2, 2: five references, 24 KiB in all.
    let host = "host = {copy_per_kib = \"10us\", system_call = \"100us\"}";
    let report = run(&files("file_size = \"24KiB\", request = \"10KiB\"", "", "name = \"ffs\"", host));
    assert_eq!((report.counts.references, report.requests, report.overhead_ns), (5, 3, 240_000 + 300_000));
}

#[test]
fn an_open_reads_the_inode_and_is_no_request() {
    let scenario = |opens: &str| {
        let host = "host = {system_call = \"1ms\", hit_time = \"1ms\"}";
        files(
            "files = 3, file_size = \"16KiB\", request = \"16KiB\"",
            &format!("opens = \"{opens}\""),
            "name = \"ffs\"",
            host,
        )
    };
    let (before, read) = (run(&scenario("before")), run(&scenario("read")));
    // Three inodes in as many groups, 2 ms each, without processor costs.
    assert_eq!(ms(&read), ms(&before) + 6.0);
    assert_eq!((read.requests, read.counts.references), (3, before.counts.references + 3));
    assert_eq!((read.response_ns.mean, read.overhead_ns), (before.response_ns.mean, before.overhead_ns));
    // Two requests, as one and one, 2 ms each; a call and two blocks at 1 ms.
    assert_eq!(before.response_ns.mean, 7_000_000);
}

#[test]
fn a_fragment_is_read_as_what_it_is() {
    // 20 KiB: two blocks and four fragments of 1 KiB, on a drive of 72 sectors a track: 40 sectors in all.
    let scenario = |size: &str| {
        table(&format!(
            "workload = {{generator = \"files\", placement = \"ffs\", file_size = \"{size}\"}}\n\
             cache = {{blocks = 100}}\npolicy = \"demand\"\ndevice = {{model = \"hp97560\"}}"
        ))
    };
    let (whole, part) = (try_run(scenario("24KiB")).expect("a run"), try_run(scenario("20KiB")).expect("a run"));
    assert_eq!((whole.devices[0].blocks, part.devices[0].blocks), (3, 2));
    assert_eq!((whole.devices[0].requests, part.devices[0].requests), (3, 3));
    assert!(part.devices[0].transfer_ns < whole.devices[0].transfer_ns);
}

#[test]
fn processes_read_their_files_side_by_side() {
    // Four files, four disks' worth of requests on one disk: 16 requests of 2 ms, and all four wait for one another.
    let workload = "files = 4, file_size = \"64KiB\", request = \"64KiB\", processes = \"per-pid\"";
    let report = run(&files(workload, "", "name = \"ffs\"", ""));
    assert_eq!((ms(&report), report.requests, report.processes.len()), (32.0, 4, 4));
    assert!(report.response_ns.mean > 25_000_000);
    assert_eq!(
        serde_json::to_string(&report).expect("plain"),
        serde_json::to_string(&run(&files(workload, "", "name = \"ffs\"", ""))).expect("plain")
    );
}

#[test]
fn an_aged_file_system_takes_more_requests() {
    let requests = |full: f64| {
        let placement = format!("full = {full}, free_run = \"16KiB\"");
        run(&files("files = 20, file_size = \"256KiB\"", &placement, "name = \"ffs\"", "")).devices[0].requests
    };
    // Free runs of two blocks on average instead of whole clusters.
    assert!(requests(0.9) > requests(0.0) * 5 / 4, "{} {}", requests(0.9), requests(0.0));
}

#[test]
fn whole_clusters_take_fewer_requests() {
    let report = run(&files("file_size = \"64KiB\"", "", "name = \"ffs\", first = \"64KiB\"", ""));
    assert_eq!((ms(&report), report.devices[0].requests), (2.0, 1));
}

#[test]
fn what_contradicts_a_file_system_is_refused() {
    let base = |more: &str| files(more, "", "name = \"ffs\"", "");
    let of_placement = |keys: &str| files("files = 2", keys, "name = \"ffs\"", "");
    for (scenario, begin) in [
        (base("issue = \"requests\""), "workload.issue"),
        (base("arrival = \"open\""), "workload.issue"),
        (base("writes = \"through\""), "workload.writes"),
        (base("addresses = \"compact\""), "workload.addresses"),
        (base("block_size = \"object\""), "workload.block_size"),
        (of_placement("cylinder_group = \"1000B\""), "workload.placement.cylinder_group"),
        (of_placement("cylinder_group = \"16KiB\""), "workload.placement.cylinder_group"),
        (of_placement("cluster = \"0B\""), "workload.placement.cluster"),
        (of_placement("fragment = \"512B\""), "workload.placement.fragment"),
        (of_placement("full = 1.0"), "workload.placement.full"),
        (of_placement("direct_blocks = 0"), "workload.placement.direct_blocks"),
        (of_placement("rotational_delay = \"1ms\""), "workload.placement.rotational_delay"),
        (of_placement("rotdelay = \"1ms\""), "workload.placement.rotdelay"),
        (of_placement("opens = \"never\""), "workload.placement.opens"),
    ] {
        let error = try_run(table(&scenario)).expect_err(&scenario);
        assert!(error.starts_with(begin), "{begin}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for (placement, begin) in [
        ("\"fss\"", "workload.placement: unknown placement \"fss\""),
        ("{name = \"address\", full = 0.5}", "workload.placement.full"),
        ("{full = 0.5}", "workload.placement.name"),
        ("3", "workload.placement"),
    ] {
        let scenario = format!("workload = {{generator = \"files\", placement = {placement}}}\ndevice = {{model = \"uniform\", fetch_time = \"2ms\"}}");
        let error = try_run(table(&scenario)).expect_err(&scenario);
        assert!(error.starts_with(begin), "{begin}: {error}");
    }
}
