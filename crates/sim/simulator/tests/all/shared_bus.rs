//! `device.shared_bus`: the data of several disks over one bus.

use headstart_sim::Report;

use crate::common;

/// 16 disks that read 64 requests of 1 MiB each side by side, in stripes of 64 KiB.
fn run(bus: &str) -> Report {
    common::run(&format!(
        "workload = {{generator = \"sequential\", blocks = 8192, request_blocks = 128, issue = \"whole\"}}\n\
         cache = {{blocks = 4096}}\npolicy = \"demand\"\n\
         device = {{model = \"seagate-exos-x20\", count = 16, stripe_unit = \"64KiB\"{bus}}}\n"
    ))
}

#[test]
fn disks_together_are_no_faster_than_their_bus() {
    let alone = run("");
    let bytes = 64.0 * f64::from(1 << 20);
    let rate = |report: &Report| bytes / (report.elapsed_ns as f64 / 1e9);
    let mut before = u64::MAX;
    for bytes_per_second in [40_000_000u64, 80_000_000, 160_000_000, 100_000_000_000] {
        let report = run(&format!(", shared_bus = {{bytes_per_second = {bytes_per_second}}}"));
        assert!(rate(&report) <= bytes_per_second as f64);
        assert!(report.elapsed_ns <= before, "a faster bus takes no longer");
        before = report.elapsed_ns;
        assert_eq!(report.counts.misses, alone.counts.misses);
        if bytes_per_second == 40_000_000 {
            assert!(rate(&report) > 0.9 * bytes_per_second as f64, "the bus is what limits: {}", rate(&report));
        }
    }
    // A very fast bus, or a bus with a single disk, has no effect.
    assert!(before - alone.elapsed_ns < alone.elapsed_ns / 100, "{before}, {}", alone.elapsed_ns);
    let each = run(", shared_bus = {bytes_per_second = 1_000_000_000, disks = 1}").elapsed_ns;
    assert!(each - alone.elapsed_ns < alone.elapsed_ns / 1000, "{each}, {}", alone.elapsed_ns);
    // Two buses of eight disks carry twice as much.
    let two = run(", shared_bus = {bytes_per_second = 40_000_000, disks = 8}");
    assert!(rate(&two) > 1.8 * 40e6 && rate(&two) <= 80e6, "{}", rate(&two));
}
