//! Sequential reads on shipped drives: their rate and bottleneck, also by queue depth.

use headstart_device::{
    build_device, build_scheduler, probe, sequential_read, CommandQueue, Drive, Limit, Load, Pattern, Request, Started,
};
use headstart_types::Nanos;
use toml::Table;

fn outer(model: &str, keys: &str, sectors: u32) -> (f64, Limit) {
    let device = build_device(model, keys.parse::<Table>().unwrap()).unwrap();
    let mechanics = device.mechanics().unwrap();
    let read = sequential_read(&*device, &mechanics, &mechanics.bands[0], sectors);
    (read.bytes_per_second / 1e6, read.limit)
}

#[test]
fn measured_drives_are_held_by_the_bus_they_were_measured_over() {
    let drives = ["seagate-cheetah-9lp", "seagate-cheetah-4lp", "seagate-barracuda-st32171w", "quantum-atlas-10k"];
    for model in drives {
        for sectors in [16, 2_048] {
            let (measured, limit) = outer(model, "", sectors);
            let (sheet, free) = outer(model, "bus = {rate = 'data-sheet'}", sectors);
            println!("{model} {sectors}: {measured:.2} {limit:?}, {sheet:.2} {free:?}");
            assert_eq!(limit, Limit::Interface, "{model} {sectors}");
            assert!(measured > 3.4 && measured < 5.2, "{model} {sectors}: {measured}");
            // Over a faster bus the next read comes before the next sector has passed, which these drives take for a
            // miss.
            assert_eq!(free, if sectors == 16 { Limit::Rotations } else { Limit::Media }, "{model} {sectors}");
            let both = "bus = {rate = 'data-sheet'}\nbuffer = {hit_under_way = true}";
            let (coming, _) = outer(model, both, sectors);
            println!("hit_under_way: {coming:.2}");
            assert!(coming > 0.95 * sheet.max(measured), "{model} {sectors}: {coming}");
        }
    }
}

#[test]
fn a_present_day_drive_is_held_by_its_overheads_or_its_media() {
    // 0.1 ms and 8 KiB at 600 MB/s: 72 MB/s; 1 MiB takes the media 3.68 ms, the bus 1.75 ms.
    let (small, limit) = outer("seagate-exos-x20", "", 16);
    assert!((55.0..72.1).contains(&small) && limit == Limit::Overheads, "{small} {limit:?}");
    let (large, limit) = outer("seagate-exos-x20", "", 2_048);
    assert!((250.0..286.0).contains(&large) && limit == Limit::Media, "{large} {limit:?}");
    let (_, limit) = outer("ibm-0661", "", 16);
    assert_eq!(limit, Limit::Rotations);
}

#[test]
fn a_rate_of_the_data_sheet_must_be_there() {
    let keys = "bus = {rate = 'data-sheet'}".parse::<Table>().unwrap();
    let error = build_device("hp97560", keys).err().unwrap().to_string();
    assert!(error.contains("bus.rate") && error.contains("data_sheet_bytes_per_second"), "{error}");
}

/// Reads every fourth 8 KiB with `depth` outstanding, and returns the time per read.
fn strided(host: &str, own: Option<&str>, depth: u64) -> u64 {
    const READS: u64 = 2_000;
    let scheduler = |name: &str| build_scheduler(name, Table::new()).unwrap();
    let mut drive = Drive::new(build_device("seagate-exos-x20", Table::new()).unwrap(), scheduler(host));
    if let Some(own) = own {
        drive = drive.with_commands(CommandQueue::new(scheduler(own), depth as u32));
    }
    let (mut now, mut issued, mut ended) = (Nanos::ZERO, 0, 0);
    while ended < READS {
        while issued < READS && issued - ended < depth {
            drive.submit(now, Request::read((1 << 30) + issued * 64, 16, issued));
            issued += 1;
        }
        match drive.start(now) {
            Started::Ends(end) => now = end,
            other => panic!("{other:?}"),
        }
        drive.finish(now, |_| ended += 1);
    }
    now.0 / READS
}

#[test]
fn queued_reads_ahead_of_the_stream_lose_no_turn() {
    for (host, own) in
        [("fcfs", None), ("cscan", None), ("sptf", None), ("fcfs", Some("sptf")), ("cscan", Some("fcfs"))]
    {
        for depth in [2, 8, 32] {
            let each = strided(host, own, depth);
            println!("{host} {own:?} {depth}: {each} ns");
            assert!(each < 160_000, "{host} {own:?} {depth}: {each} ns");
        }
    }
}

#[test]
fn the_rate_is_that_of_the_same_load() {
    let device = build_device("seagate-146gb-10k", Table::new()).unwrap();
    let mechanics = device.mechanics().unwrap();
    let read = sequential_read(&*device, &mechanics, &mechanics.bands[0], 128);
    let load = Load { pattern: Pattern::Sequential { from: 0 }, warm_up: 128, ..Load::sequential(128, 1_024) };
    let same = probe(device, build_scheduler("fcfs", Table::new()).unwrap(), &load);
    assert_eq!(read.bytes_per_second, same.bytes_per_second());
}
