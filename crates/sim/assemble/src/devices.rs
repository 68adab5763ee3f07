//! The disks of a scenario, with their schedulers, queues and buses.

use headstart_device::{
    build_array, build_device, build_scheduler, on_shared_bus, CommandQueue, Device, Drive, SECTOR_BYTES,
};
use headstart_scenario::{CacheSegments, DeviceKeys, Error, Scenario};
use headstart_types::{stream_seed, KeyError};

/// Maximum number of disks built to check the keys: all are alike.
const CHECKED_MAX: u32 = 4;

/// Idle disks.
///
/// # Errors
/// The offending key or profile.
pub fn drives(keys: &DeviceKeys, seed: u64) -> Result<Vec<Drive>, Error> {
    // A profile is parsed once.
    let mut device = build_device(&keys.model, keys.model_keys.clone())?;
    if device.shares() && (keys.shared_bus.is_some() || !keys.array.is_independent()) {
        let problem = "is given beside shared_bus or an array behind one controller";
        return Err(KeyError::new("device.network_bytes_per_second", problem, "one of the two").into());
    }
    if !keys.array.is_independent() {
        let unit = keys.stripe_unit.0.div_ceil(SECTOR_BYTES);
        let joined = build_array(keys.array.name, keys.count, device, unit, keys.array_keys.clone());
        device = joined.map_err(|error| error.within("device"))?;
    }
    let scheduler = || build_scheduler(&keys.scheduler, keys.scheduler_keys.clone());
    let mut drives = Vec::with_capacity(keys.disks() as usize);
    let own = device.clone();
    for disk in 0..keys.disks() {
        if let Some(bus) = &keys.shared_bus {
            // The next disks share a new one, as do those of each server.
            if (disk % keys.disks_of_server()).is_multiple_of(bus.disks.unwrap_or(u32::MAX)) {
                device = on_shared_bus(own.clone(), bus);
            }
        }
        let mut device = device.clone();
        device.reseed(stream_seed(seed, "disk", disk.into()));
        let mut drive = Drive::new(device, scheduler().map_err(|error| error.within("device.scheduler"))?);
        if let Some(commands) = &keys.commands {
            let inner = build_scheduler(&commands.scheduler, commands.scheduler_keys.clone());
            let inner = inner.map_err(|error| error.within("device.drive_scheduler"))?;
            drive = drive.with_commands(CommandQueue::new(inner, commands.depth));
        }
        drives.push(drive);
    }
    Ok(drives)
}

/// Divides the buffer of each disk into `segments`, before anything is issued.
///
/// # Errors
/// At `device.cache_segments`, if the disks have no segments, or cannot have as many.
pub fn divide_buffers(drives: &mut [Drive], segments: u64) -> Result<(), KeyError> {
    let divided = drives.iter_mut().try_for_each(|drive| drive.divide_buffer(segments));
    divided.map_err(|error| error.within("device.cache_segments"))
}

/// The minimum number of segments of a disk's buffer that changes with the open files.
///
/// # Errors
/// At `device.cache_segments`, if the disks have no segments, or cannot change their number.
pub fn segments_min(device: &dyn Device) -> Result<u32, KeyError> {
    // A segment for all writes is not available to reads.
    let divides = |segments: u64| device.clone_box().divide_buffer(segments);
    let least = if divides(1).is_ok() { 1 } else { 2 };
    divides(least.into()).map_err(|error| error.within("device.cache_segments"))?;
    Ok(least)
}

/// Finds wrong keys and values of the disks. The trace is not read.
///
/// # Errors
/// The offending key or profile.
pub fn check_devices(scenario: &Scenario) -> Result<(), Error> {
    check(scenario).map_err(|error| scenario.as_written(error))
}

fn check(scenario: &Scenario) -> Result<(), Error> {
    let mut keys = scenario.device.clone();
    if keys.array.is_independent() {
        keys.count = keys.count.min(CHECKED_MAX);
    }
    let mut drives = drives(&keys, scenario.seed)?;
    match keys.cache_segments {
        Some(CacheSegments::Count(segments)) => divide_buffers(&mut drives, segments)?,
        Some(CacheSegments::OpenFiles) => drop(segments_min(drives[0].device())?),
        Some(CacheSegments::Streams) | None => {}
    }
    Ok(())
}
