//! A client of several servers: worked out by hand, compared with disks without levels, and general properties.

use headstart_sim::Report;

use crate::common;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// References, think time 1 ms, blocks of 8 KiB, a device of 2 ms on each server.
fn by_hand(references: &str, levels: &str) -> Report {
    let names: Vec<String> = references.split_whitespace().map(|name| format!("\"{name}\"")).collect();
    common::run(&format!(
        "workload = {{references = [{}], compute = \"1ms\"}}\n{levels}\n\
         [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n",
        names.join(", ")
    ))
}

fn requests(report: &Report) -> Vec<u64> {
    report.devices.iter().map(|device| device.requests).collect()
}

fn names(report: &Report) -> Vec<&str> {
    report.levels.iter().map(|level| level.name.as_str()).collect()
}

#[test]
fn blocks_belong_to_one_server_each() {
    // A and C are server 1's, B and D server 2's. Each: disk 2 ms, link 1 ms, think 1 ms; A again, which L1 has evicted
    // and server 1 still has: link 1 ms, think 1 ms.
    let levels =
        "[[level]]\nblocks = 3\n[[level]]\nservers = 2\nunit = \"8KiB\"\nblocks = 4\nlink = {alpha = \"1ms\"}\n";
    let report = by_hand("A B C D A", levels);
    assert_eq!(
        (ms(report.elapsed_ns), requests(&report), names(&report)),
        (18.0, vec![2, 2], vec!["L1", "L2.1", "L2.2"])
    );
    let counts: Vec<_> =
        report.levels[1..].iter().map(|level| (level.counts.references, level.counts.hits_ready)).collect();
    assert_eq!((counts, report.levels[1].blocks), (vec![(3, 1), (2, 0)], 4), "each server has that many blocks");
    assert_eq!((ms(report.levels[1].link_ns), ms(report.levels[2].link_ns)), (3.0, 2.0));
}

#[test]
fn a_request_is_cut_at_the_servers() {
    // `ra` of degree 2 above: A comes with B and C. A and C are one request to server 1, B is one to server 2, side by
    // side: 0-2. Think until 3; B hits and D joins: 3-5. C at 4, until 5; D is there, until 6. The driver's work is
    // that of three requests.
    let levels = "[[level]]\nblocks = 8\npolicy = {name = \"ra\", degree = 2}\n\
                  [[level]]\nservers = 2\nunit = \"8KiB\"\nblocks = 0\n";
    let report = by_hand("A B C D", levels);
    assert_eq!((ms(report.elapsed_ns), requests(&report)), (6.0, vec![1, 2]));
    assert_eq!(report.levels[1].prefetching.bypass_blocks + report.levels[2].prefetching.bypass_blocks, 4);
    let costs = format!("{levels}[host]\ndriver_overhead = \"100us\"\n");
    assert_eq!(by_hand("A B C D", &costs).driver_ns, 300_000);
}

#[test]
fn a_server_reads_ahead_within_its_own_stripes() {
    // Stripes of two blocks: server 1 has 0 1 4 5, server 2 has 2 3 6 7. `ra` of degree 2 below: 0 brings 1 and 4. 4 is
    // there then; it brings 5 and 8, as 1 does not: 2 comes from the other server, which brings 3 and 6.
    let trace = common::Trace::new("stripes", &[(false, 0), (false, 4), (false, 2), (false, 6)], 1);
    let levels = "[[level]]\nblocks = 1\n\
                  [[level]]\nservers = 2\nunit = \"16KiB\"\nblocks = 64\npolicy = {name = \"ra\", degree = 2}\n\
                  [device]\nmodel = \"uniform\"\nfetch_time = \"2ms\"\n";
    let report = common::run(&trace.scenario("as-read", levels));
    let counts = |at: usize| {
        let counts = &report.levels[at].counts;
        (counts.misses, counts.hits_ready, counts.prefetches, counts.prefetches_used)
    };
    assert_eq!((counts(1), counts(2)), ((1, 1, 4, 1), (1, 1, 4, 1)));
}

#[test]
fn whole_files_go_round() {
    // Six files of 32 blocks: servers 1 to 3 have two each, wholly.
    let text = |level: &str| {
        format!(
            "[workload]\ngenerator = \"files\"\nfiles = 6\nfile_size = \"256KiB\"\nprocesses = \"per-pid\"\n\
             placement = \"table-order\"\n\
             [[level]]\nblocks = 8\n[[level]]\nblocks = 64\nclients = 3\n{level}\n[device]\nmodel = \"hp97560\"\n"
        )
    };
    let report = common::run(&text("servers = 3\nunit = \"file\""));
    assert_eq!(names(&report), ["L1.1", "L1.2", "L1.3", "L2.1", "L2.2", "L2.3"]);
    let references: Vec<u64> = report.levels[3..].iter().map(|level| level.counts.references).collect();
    assert_eq!(references, [64, 64, 64]);
    let one = common::run(&text(""));
    assert!(report.elapsed_ns < one.elapsed_ns, "three disks are faster than one");
    // Three servers in front of three disks each: nine disks, and more levels below each server.
    let deep =
        common::run(&(text("servers = 3\nunit = \"file\"\n[[level]]\nblocks = 9\nname = \"vault\"") + "count = 3\n"));
    assert_eq!((deep.devices.len(), deep.levels.len()), (9, 9));
    assert_eq!(names(&deep)[6..], ["vault.1", "vault.2", "vault.3"]);
    for server in 0..3 {
        assert_eq!(deep.levels[6 + server].counts.references, deep.levels[3 + server].counts.fetches);
        let read: u64 = deep.devices[server * 3..server * 3 + 3].iter().map(|device| device.blocks).sum();
        assert_eq!(read, deep.levels[6 + server].counts.fetches, "a server's blocks are on its own disks");
    }
}

#[test]
fn servers_without_frames_are_disks() {
    // Nothing is prefetched, so each request is one block: servers without frames and costs equal striping over
    // independent disks.
    for (seed, generator) in (0u64..).zip(["sequential", "random", "zipf", "loop"].into_iter().cycle().take(120)) {
        let (servers, unit) = (1 + seed % 5, 8 * (1 + seed % 7));
        let model = ["model = \"hp97560\"", "model = \"uniform\"\nfetch_time = \"3ms\""][(seed % 2) as usize];
        let length = if generator == "sequential" { "passes = 2" } else { "requests = 200" };
        let workload = format!(
            "seed = {seed}\n[workload]\ngenerator = \"{generator}\"\nblocks = {}\n{length}\ncompute = \"exp:1ms\"\n",
            10 + seed
        );
        let level = format!("[[level]]\nblocks = {}\n", 1 + seed % 40);
        let text = format!("{workload}{level}[device]\n{model}\ncount = {servers}\nstripe_unit = \"{unit}KiB\"\n");
        let tier = if servers > 1 { format!("servers = {servers}\nunit = \"{unit}KiB\"") } else { String::new() };
        let spread = format!("{workload}{level}[[level]]\nblocks = 0\n{tier}\n[device]\n{model}\n");
        common::same_but_lower_levels(&common::run(&text), &common::run(&spread), &spread);
    }
}

#[test]
fn mistakes_are_refused() {
    let refused = |text: &str, says: &str| {
        let error = common::try_run(common::table(text)).expect_err(says);
        assert!(error.contains(says), "{error:?} should contain {says:?}");
    };
    let lower = |lower: &str, device: &str| {
        format!(
            "workload = {{references = [\"A\"]}}\n[[level]]\nblocks = 1\n[[level]]\nblocks = 1\n{lower}\n\
             [device]\nmodel = \"hp97560\"\n{device}\n"
        )
    };
    refused(&lower("servers = 0", ""), "level[1].servers: 0 is out of range; allowed: a whole number from 1 to 10000");
    refused(&lower("unit = \"8KiB\"", ""), "level[1].unit: there are no servers to share files");
    refused(&lower("servers = 2\nunit = \"9KiB\"", ""), "level[1].unit: 9KiB is not a multiple of the block size");
    refused(&lower("servers = 2\nunit = \"files\"", ""), "a size such as \"64KiB\", or \"file\"");
    refused(&lower("servers = 2", "layout = [[\"A\"]]"), "level[1].servers: device.layout says where blocks lie");
    refused(
        &lower("servers = 2\n[[level]]\nblocks = 1\nservers = 2", ""),
        "level[2].servers: another level already has servers",
    );
    refused(&lower("servers = 10000", "count = 11"), "level[1].servers: 110000 disks of all servers");
    let shared = "[workload]\ngenerator = \"files\"\nprocesses = \"per-pid\"\n[[level]]\nblocks = 8\n\
                  [[level]]\nblocks = 8\nservers = 2\n[[level]]\nblocks = 8\nclients = 2\n[device]\nmodel = \"hp97560\"\n";
    refused(shared, "level[2].clients: a server does not share");
    let files = "[workload]\ngenerator = \"files\"\nplacement = \"ffs\"\n[[level]]\nblocks = 8\n\
                 [[level]]\nblocks = 8\nservers = 2\n[device]\nmodel = \"hp97560\"\n";
    refused(files, "level[1].servers: a file system lies on one server");
}
