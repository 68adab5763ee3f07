//! The HP 97560 by hand. One sector passes in 60e9 / (4002 * 72) = 208,229.2 ns; `sector_border(n)` is the instant
//! of the n-th since time 0. Every request pays 2.2 ms of controller; a sector takes 51.2 us on the bus.

use headstart_device::{build_device, Device, Request, Service};
use headstart_types::Nanos;
use toml::Table;

const OVERHEAD: u64 = 2_200_000;
const BUS_SECTOR: u64 = 51_200;
/// An 8 KB block from the buffer: 2.2 ms and 16 * 51.2 us.
const FROM_BUFFER: Nanos = Nanos(OVERHEAD + 16 * BUS_SECTOR);

fn sector_border(n: u64) -> u64 {
    (u128::from(n) * 60_000_000_000).div_ceil(4002 * 72) as u64
}

fn hp(keys: &str) -> Box<dyn Device> {
    build_device("hp97560", keys.parse::<Table>().unwrap()).unwrap()
}

fn read(device: &mut dyn Device, now: Nanos, sector: u64) -> Service {
    device.serve(now, &Request::read(sector, 16, 0))
}

#[test]
fn capacity_and_bounds() {
    let device = hp("");
    assert_eq!(device.capacity_sectors(), Some(1962 * 19 * 72));
    assert_eq!(device.least_service(16), FROM_BUFFER);
    assert_eq!(device.nominal_service(), Nanos::from_millis(15));
    assert_eq!(device.concurrency(), 1);
}

#[test]
fn the_first_block_waits_for_a_turn() {
    // Ready at 2.2 ms, when sector 10 passes; sector 0 comes again after 72 sectors.
    let service = read(&mut *hp(""), Nanos::ZERO, 0);
    assert_eq!(service.overhead, Nanos(OVERHEAD));
    assert_eq!(service.seek, Nanos::ZERO);
    assert_eq!(service.rotation, Nanos(sector_border(72) - OVERHEAD));
    assert_eq!(service.transfer, Nanos(sector_border(72 + 16) - sector_border(72) + BUS_SECTOR));
    assert_eq!(service.end, Nanos(18_324_172 + BUS_SECTOR)); // 88 * 208,229.2, rounded up
    assert!(!service.buffer_hit);
}

#[test]
fn a_seek_of_100_cylinders() {
    // 2.2 + 7.24 = 9.44 ms is sector border 45.3. Cylinder 100 begins 100 * (19 * 72 + 18 * 8 + 18) = 153,000
    // sectors along the path, a multiple of 72: its first sector passes at border 72.
    let service = read(&mut *hp(""), Nanos::ZERO, 100 * 19 * 72);
    assert_eq!(service.seek, Nanos(7_240_000));
    assert_eq!(service.rotation, Nanos(sector_border(72) - 9_440_000));
    assert_eq!(service.end, Nanos(sector_border(72 + 16) + BUS_SECTOR));
}

#[test]
fn a_head_switch() {
    // Track 1 is skewed by 8: its first sector stands at angle 8. 2.2 + 1.6 = 3.8 ms is border 18.2; next 72 + 8.
    let service = read(&mut *hp(""), Nanos::ZERO, 72);
    assert_eq!(service.seek, Nanos(1_600_000));
    assert_eq!(service.rotation, Nanos(sector_border(80) - 3_800_000));
    assert_eq!(service.end, Nanos(sector_border(80 + 16) + BUS_SECTOR));
}

#[test]
fn borders_cost_their_skew() {
    // Sectors 64..80: 8 of track 0, a gap of 8, 8 of track 1.
    let track = read(&mut *hp(""), Nanos::ZERO, 64);
    assert_eq!(track.end, Nanos(sector_border(64 + 8 + 8 + 8) + BUS_SECTOR));
    // Sectors 1360..1376: 8 of track 18, a gap of 18, 8 of cylinder 1. Track 18 starts at angle 18 * 8 = 144 = 0
    // mod 72 and sector 1360 is its 64th; after 2.2 + 1.6 ms it passes at border 64.
    let cylinder = read(&mut *hp(""), Nanos::ZERO, 1360);
    assert_eq!(cylinder.end, Nanos(sector_border(64 + 8 + 18 + 8) + BUS_SECTOR));
}

#[test]
fn sequential_reads_run_at_the_speed_of_the_media() {
    // Two cylinders, back to back. Block i ends when its last sector has passed, on a path with gaps.
    let mut device = hp("");
    let mut now = Nanos::ZERO;
    for block in 0..171u64 {
        let service = read(&mut *device, now, block * 16);
        let last = block * 16 + 15;
        let (cylinder, track) = (last / 1368, last / 72);
        let path = last + track * 8 + cylinder * (18 - 8);
        assert_eq!(service.end, Nanos(sector_border(72 + path + 1) + BUS_SECTOR), "block {block}");
        assert_eq!(service.buffer_hit, block > 0);
        now = service.end;
    }
    // 3,042 sectors for 171 blocks: 3.70 ms a block after the first turn (section 4.2: between 3 and 4 ms).
    let each = (now.0 - sector_border(72)) / 171;
    assert!((3_700_000..3_710_000).contains(&each), "{each}");
}

#[test]
fn read_ahead_goes_on_while_idle_until_the_buffer_is_full() {
    let mut device = hp("");
    let mut now = read(&mut *device, Nanos::ZERO, 0).end + Nanos::from_millis(1000);
    // 128 KB are 16 blocks: all there.
    for block in 1..=16 {
        let service = read(&mut *device, now, block * 16);
        assert!(service.buffer_hit);
        assert_eq!(service.end - now, FROM_BUFFER, "block {block}");
        now = service.end;
    }
    // The head continued as soon as space was freed: it has been reading for 16 * 3.0192 ms.
    assert!(read(&mut *device, now, 17 * 16).buffer_hit);
}

#[test]
fn what_lies_past_a_full_buffer_is_a_new_access() {
    let mut device = hp("");
    let now = read(&mut *device, Nanos::ZERO, 0).end + Nanos::from_millis(1000);
    let service = read(&mut *device, now, 17 * 16);
    assert!(!service.buffer_hit);
    assert!(service.rotation > Nanos::ZERO);
}

#[test]
fn a_read_of_what_is_still_in_the_buffer_hits() {
    let mut device = hp("");
    let mut now = Nanos::ZERO;
    for block in 0..3 {
        now = read(&mut *device, now, block * 16).end;
    }
    assert_eq!(read(&mut *device.as_mut(), now, 0).end - now, FROM_BUFFER);
    // While idle, the head reads to sector 48 + 256 and overwrites everything before sector 48.
    now += Nanos::from_millis(1000);
    assert!(!read(&mut *device, now, 47).buffer_hit);

    let mut device = hp("");
    let now = read(&mut *device, Nanos::ZERO, 32).end + Nanos::from_millis(1000);
    assert_eq!(read(&mut *device, now, 48).end - now, FROM_BUFFER);
}

#[test]
fn a_read_ahead_of_the_head_repositions() {
    let mut device = hp("");
    let now = read(&mut *device, Nanos::ZERO, 0).end;
    // Sector 32 is 16 ahead of the head, which would reach it in 3.3 ms. The 2.2 ms of controller overhead leave time
    // for that too: the same passage, but counted as rotation.
    let service = read(&mut *device, now, 32);
    assert!(!service.buffer_hit);
    assert_eq!(service.end, Nanos(sector_border(72 + 48) + BUS_SECTOR));
    // Sector 56 is 8 ahead: it passes after 1.7 ms, before the controller is ready. A whole revolution is lost.
    let now = service.end;
    let service = read(&mut *device, now, 56);
    assert!(!service.buffer_hit);
    assert_eq!(service.end, Nanos(sector_border(72 + 72 + 56 + 16) + BUS_SECTOR));
}

#[test]
fn without_read_ahead_every_sequential_read_loses_a_turn() {
    let mut device = hp("buffer = {read_ahead = false}");
    let now = read(&mut *device, Nanos::ZERO, 0).end;
    let service = read(&mut *device, now, 16);
    assert!(!service.buffer_hit);
    assert_eq!(service.end, Nanos(sector_border(72 + 72 + 32) + BUS_SECTOR));
}

#[test]
fn a_write_costs_the_mechanics_and_empties_the_buffer() {
    let mut device = hp("");
    let now = read(&mut *device, Nanos::ZERO, 0).end;
    let write = device.serve(now, &Request { write: true, ..Request::read(32, 16, 0) });
    assert_eq!(write.end, Nanos(sector_border(72 + 48)));
    assert!(!read(&mut *device, write.end, 0).buffer_hit);
}

#[test]
fn a_read_over_a_zone_border_goes_on_in_the_next_zone() {
    // Two zones of one cylinder of one track: 10 and 5 sectors a turn of 10 ms, so 1 and 2 ms a sector.
    let profile: Table = "
        name = 'toy'
        rpm = 6000
        surfaces = 1
        head_switch = '0s'
        nominal_service = '10ms'
        zones = [
            {cylinders = 1, sectors_per_track = 10, track_skew = 0, cylinder_skew = 0},
            {cylinders = 1, sectors_per_track = 5, track_skew = 0, cylinder_skew = 0},
        ]
        seek = {form = 'root-linear', boundary = 0, root = ['0s', '0s'], linear = ['3ms', '0s']}
        controller = {overhead = '0s'}
        bus = {bytes_per_second = 512_000_000}
        buffer = {size = '4KiB', read_ahead = true}"
        .parse()
        .unwrap();
    let mut toy = headstart_device::Mechanical::from_table(profile).unwrap();
    assert_eq!(toy.capacity_sectors(), Some(15));
    // 8 ms to sector 8, 2 ms to read 8 and 9; 3 ms to cylinder 1, where sector 10 passes at 20 ms; 2 ms a sector.
    let service = toy.serve(Nanos::ZERO, &Request::read(8, 4, 0));
    assert_eq!(service.rotation, Nanos::from_millis(8));
    assert_eq!(service.end, Nanos(24_000_000 + 1_000)); // and 1 us of bus
                                                        // Its read-ahead goes on in the second zone, to its end.
    let service = toy.serve(Nanos::from_millis(50), &Request::read(12, 3, 0));
    assert!(service.buffer_hit);
    assert_eq!(service.end, Nanos(50_003_000));
}
