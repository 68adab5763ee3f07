//! A device's parameters for the file-system model.
//!
//! - A drive with an arm gives them: [`Mechanics`]. Its media rate is that of a long read over all of it, so that a
//!   random position has the right expected time.
//! - A device that always serves the same read in the same time is measured: two reads of different lengths on the idle
//!   device give a fixed time and a rate. This covers `uniform`, whose rate is unlimited, and flash. A device with
//!   concurrency overlaps the fixed times.
//! - A device whose times are drawn at random has no such numbers and is refused.

use headstart_analytic::file_system::{Disk, Geometry, Scheduler, SeekCurve, Zone};
use headstart_device::{Device, Mechanics, Request, SECTOR_BYTES};
use headstart_types::{KeyError, Nanos};

/// Sectors of the two reads that measure a device without an arm: 8 KiB and 1 MiB.
const SHORT: u32 = 16;
const LONG: u32 = 2048;
/// Seeds that a device is tried with: random times practically always differ among them.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// A device in the model's terms.
#[derive(Debug, Clone)]
pub struct Modelled {
    /// Its numbers; the scheduler is CLOOK.
    pub disk: Disk,
    pub curve: SeekCurve,
    /// The positions of its sectors.
    pub geometry: Geometry,
}

/// The model's view of `device`.
///
/// # Errors
/// Without a key, if the device's times are random.
pub fn drive(device: &dyn Device) -> Result<Modelled, KeyError> {
    match device.mechanics() {
        Some(mechanics) => Ok(of_mechanics(&mechanics)),
        None => without_arm(device),
    }
}

/// The model's view of a drive with an arm.
pub(super) fn of_mechanics(mechanics: &Mechanics) -> Modelled {
    let (mut bytes, mut seconds, mut turning) = (0.0, 0.0, 0.0);
    let turn = mechanics.revolution().as_secs_f64();
    for band in &mechanics.bands {
        let here = (band.sectors * SECTOR_BYTES) as f64;
        bytes += here;
        seconds += here / band.bytes_per_second;
        turning += turn * band.sectors as f64 / f64::from(band.sectors_per_track);
    }
    let rates = mechanics.bands.iter().map(|band| band.bytes_per_second);
    let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
    let disk = Disk {
        miss_overhead_ns: mechanics.miss_overhead.0 as f64,
        hit_overhead_ns: mechanics.hit_overhead.0 as f64,
        revolution_ns: mechanics.revolution().0 as f64,
        disk_bytes_per_second: bytes / seconds,
        track_bytes_per_second: bytes / turning,
        rate_spread: if least > 0.0 { (most - least) / (most + least) } else { 0.0 },
        bus_bytes_per_second: SECTOR_BYTES as f64 * 1e9 / mechanics.bus_sector_ns,
        cache_segments: mechanics.segments,
        read_ahead: mechanics.reads_ahead,
        read_ahead_on_sequence: mechanics.reads_ahead_on_sequence,
        read_during_overhead: mechanics.reads_during_overhead,
        scheduler: Scheduler::Clook,
        parallel: false,
    };
    let curve = SeekCurve::Table(mechanics.seek.iter().map(|time| time.0 as f64).collect());
    Modelled { disk, curve, geometry: geometry(mechanics) }
}

fn geometry(mechanics: &Mechanics) -> Geometry {
    let turn = mechanics.revolution().0 as f64;
    let sector = SECTOR_BYTES as f64;
    let zones = mechanics.bands.iter().map(|band| Zone {
        first: band.first as f64 * sector,
        bytes: band.sectors as f64 * sector,
        first_cylinder: f64::from(band.first_cylinder),
        cylinders: f64::from(band.cylinders),
        surface: 1e9 / band.bytes_per_second,
        track: turn / (f64::from(band.sectors_per_track) * sector),
    });
    Geometry { zones: zones.collect(), segment_bytes: mechanics.segment_sectors as f64 * sector, writes_behind: false }
}

/// The model's view of a device without an arm.
pub(super) fn without_arm(device: &dyn Device) -> Result<Modelled, KeyError> {
    let most = device.capacity_sectors().map_or(u64::from(LONG), |capacity| capacity.min(LONG.into())) as u32;
    let short = idle_read(device, SHORT.min(most), 1);
    let long = idle_read(device, most, 1);
    if SEEDS.into_iter().any(|seed| idle_read(device, SHORT.min(most), seed) != short) {
        let allowed = "a drive with an arm, flash, or \"uniform\"";
        return Err(KeyError::new("", "its times are random, for which the equations have no term", allowed));
    }
    let further = f64::from(most - SHORT.min(most)) * SECTOR_BYTES as f64;
    let ns_per_byte = if further > 0.0 { long.saturating_sub(short).0 as f64 / further } else { 0.0 };
    let fixed_ns = short.0 as f64 - ns_per_byte * f64::from(SHORT.min(most)) * SECTOR_BYTES as f64;
    let disk = Disk {
        miss_overhead_ns: fixed_ns,
        hit_overhead_ns: fixed_ns,
        revolution_ns: 0.0,
        disk_bytes_per_second: f64::INFINITY,
        track_bytes_per_second: f64::INFINITY,
        rate_spread: 0.0,
        bus_bytes_per_second: 1e9 / ns_per_byte,
        cache_segments: 0,
        read_ahead: false,
        read_ahead_on_sequence: false,
        read_during_overhead: false,
        scheduler: Scheduler::Clook,
        parallel: device.concurrency() > 1,
    };
    Ok(Modelled { disk, curve: SeekCurve::None, geometry: Geometry::default() })
}

fn idle_read(device: &dyn Device, sectors: u32, seed: u64) -> Nanos {
    let mut device = device.clone_box();
    device.reseed(seed);
    device.serve(Nanos::ZERO, &Request::read(0, sectors, 0)).end
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_device::build_device;
    use toml::Table;

    fn modelled(name: &str, keys: &str) -> Result<Modelled, KeyError> {
        drive(&*build_device(name, keys.parse::<Table>().expect("TOML")).expect(name))
    }

    #[test]
    fn a_drive_says_what_it_is() {
        let Modelled { disk, curve, .. } = modelled("seagate-cheetah-4lp", "").expect("an arm");
        // 10,033 revolutions per minute, 3 segments; 131 to 195 sectors per track.
        assert!((disk.revolution_ns - 60e9 / 10_033.0).abs() < 1.0);
        assert_eq!((disk.cache_segments, disk.read_ahead, disk.parallel), (3, true, false));
        let track = |sectors: f64| sectors * 512.0 * 1e9 / disk.revolution_ns;
        assert!((0.8 * track(131.0)..track(195.0)).contains(&disk.disk_bytes_per_second), "{disk:?}");
        let SeekCurve::Table(times) = curve else { panic!("a table") };
        assert_eq!((times.len(), times[1]), (6581, 636_000.0));
    }

    #[test]
    fn a_uniform_device_has_one_time() {
        let Modelled { disk, curve, .. } = modelled("uniform", "fetch_time = \"2ms\"").expect("one time");
        assert_eq!((disk.miss_overhead_ns, disk.bus_bytes_per_second, disk.parallel), (2e6, f64::INFINITY, false));
        assert_eq!(curve, SeekCurve::None);
    }

    #[test]
    fn flash_has_a_fixed_time_and_its_links_rate() {
        // 1.9 us and 43 us before the link of 7.45 GB/s.
        let disk = modelled("nvme", "").expect("flash").disk;
        assert!((disk.miss_overhead_ns / 44_900.0 - 1.0).abs() < 0.01, "{disk:?}");
        assert!((disk.bus_bytes_per_second / 7.45e9 - 1.0).abs() < 0.01, "{disk:?}");
        assert!(disk.parallel);
    }

    #[test]
    fn random_times_are_refused() {
        let error = modelled("object-store", "").expect_err("random").to_string();
        assert!(error.contains("random") && error.contains("allowed: a drive with an arm"), "{error}");
    }
}
