//! The read-ahead to set: the competitive depth of a profile, or a given size.
//!
//! Source: Li, Shen and Papathanasiou, EuroSys 2007, equation (8): the amount transferred during an average switch,
//! which is a seek and half a revolution. The rate is the mean over all places of the device, as printed by `headstart
//! model competitive`.

use std::path::Path;

use headstart_device::{build_device, model, Model, Request, SECTOR_BYTES};
use headstart_policy::readahead::CompetitiveDepth;
use headstart_types::{Bytes, DriveFacts, KeyError, Nanos};
use nix::unistd::{sysconf, SysconfVar};
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use super::{Device, Error};
use headstart_profile::NoArm;

/// Maximum even with `force`: it takes a disk seconds.
const LARGEST: u64 = 1 << 30;
/// Larger values are probably a mistake. The slowest drive's switch of 40 ms at the fastest drive's 400 MB/s gives 16
/// MB, which no real drive needs.
const USUAL: u64 = 16 << 20;

/// Share of the highest rate that counts as saturated, as in a measured profile.
const SATURATED: f64 = 0.95;

/// What determines the depth.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// The competitive depth of a drive: a name of the registry or the path of a profile, with keys that override its
    /// own.
    Profile {
        /// Name or path.
        name: String,
        /// Overriding keys.
        keys: Table,
    },
    /// A given size.
    Depth(Bytes),
}

/// A depth and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Depth {
    /// The drive that the depth was computed for. Null if the depth was given.
    pub profile: Option<String>,
    /// The depth in bytes, not rounded.
    pub bytes: f64,
    /// The depth in whole pages, at least one.
    pub pages: u64,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// The depth in KiB, the unit of `read_ahead_kb`.
    pub kb: u64,
    /// Mean seek time of the drive. Null if the depth was given, like the next two.
    pub seek_ns: Option<u64>,
    /// Duration of half a revolution.
    pub half_turn_ns: Option<u64>,
    /// Mean rate of long reads over the device.
    pub bytes_per_second: Option<f64>,
    /// Capacity of the profile's drive in bytes.
    pub profile_bytes: Option<u64>,
    /// Drives without an arm: smallest size whose throughput, one read at a time, is within 5 % of the best.
    pub saturating_bytes: Option<u64>,
    /// Notes for the user.
    #[serde(skip)]
    pub note: Option<String>,
}

impl Depth {
    /// The depth for `device`; more than 16 MiB only with `force`.
    ///
    /// # Errors
    /// The profile does not exist, has no moving parts, or the depth is out of range.
    pub fn of(device: &Device, wanted: &Wanted, force: bool) -> Result<Self, Error> {
        match wanted {
            Wanted::Depth(bytes) => {
                check("depth", bytes.0, force)?;
                Ok(Self::given(bytes.0))
            }
            Wanted::Profile { name, keys } => {
                let depth = match NoArm::read(Path::new(name))? {
                    Some(_) if !keys.is_empty() => {
                        let problem = "the profile of a device without an arm has no keys to lay over";
                        return Err(
                            KeyError::new("set", problem, "--set with the profile of a drive with an arm").into()
                        );
                    }
                    Some(found) => Self::saturating(name, &found),
                    None => match of_flash(name, keys)? {
                        Some(depth) => depth,
                        None => Self::competitive(device, name, &facts(name, keys)?),
                    },
                };
                check("profile", depth.bytes as u64, force)?;
                Ok(depth)
            }
        }
    }

    fn saturating(name: &str, found: &NoArm) -> Self {
        Self {
            profile: Some(name.to_owned()),
            bytes_per_second: Some(found.bytes_per_second as f64),
            profile_bytes: Some(found.capacity.0),
            saturating_bytes: Some(found.saturating_size.0),
            ..Self::rounded(found.saturating_size.0 as f64)
        }
    }

    /// Whether it was computed for a drive with an arm.
    pub(super) fn is_of_an_arm(&self) -> bool {
        self.seek_ns.is_some()
    }

    fn given(bytes: u64) -> Self {
        Self::rounded(bytes as f64)
    }

    fn competitive(device: &Device, name: &str, facts: &DriveFacts) -> Self {
        let rate = mean_rate(facts, device.size_bytes);
        // Without any request, the weight does not matter.
        let depth = CompetitiveDepth::new(facts.mean_seek, facts.half_turn, 1.0);
        Self {
            profile: Some(name.to_owned()),
            seek_ns: Some(facts.mean_seek.0),
            half_turn_ns: Some(facts.half_turn.0),
            bytes_per_second: Some(rate),
            profile_bytes: Some(bytes_of(facts)),
            note: facts.note(),
            ..Self::rounded(depth.bytes(rate))
        }
    }

    fn rounded(bytes: f64) -> Self {
        let page_bytes = page_bytes();
        let pages = (bytes / page_bytes as f64).round().max(1.0) as u64;
        let kb = kb_of(pages, page_bytes);
        Self {
            profile: None,
            bytes,
            pages,
            page_bytes,
            kb,
            seek_ns: None,
            half_turn_ns: None,
            bytes_per_second: None,
            profile_bytes: None,
            saturating_bytes: None,
            note: None,
        }
    }

    /// Time of a switch: seek and half a revolution.
    #[must_use]
    pub fn switch(&self) -> Option<Nanos> {
        Some(Nanos(self.seek_ns? + self.half_turn_ns?))
    }
}

/// The depth of a flash model, determined as `headstart profile` does for a device: the smallest power of two from 4
/// KiB on whose throughput, one read at a time, is within 5 % of the best. `None` for other models.
fn of_flash(name: &str, keys: &Table) -> Result<Option<Depth>, Error> {
    let device = build_device(name, keys.clone())?;
    if device.drive_facts().is_some() || !model(name).is_some_and(Model::is_drive) {
        return Ok(None);
    }
    let mut rates = Vec::new();
    let mut size = 4096;
    while size <= USUAL {
        let mut device = build_device(name, keys.clone())?;
        let read = device.serve(Nanos::ZERO, &Request::read(0, (size / SECTOR_BYTES) as u32, 0));
        rates.push((size, size as f64 / read.end.as_secs_f64()));
        size *= 2;
    }
    let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let capacity = device.capacity_sectors();
    let near = rates.into_iter().find(|(_, rate)| *rate >= SATURATED * most);
    Ok(near.map(|(size, _)| Depth {
        profile: Some(name.to_owned()),
        bytes_per_second: Some(most),
        profile_bytes: capacity.map(|sectors| sectors * SECTOR_BYTES),
        saturating_bytes: Some(size),
        ..Depth::rounded(size as f64)
    }))
}

/// Rejects a depth that is out of range or probably a mistake.
///
/// # Errors
/// The depth is rejected.
pub(super) fn check(key: &str, bytes: u64, force: bool) -> Result<(), KeyError> {
    match bytes {
        0 => Err(KeyError::new(key, "a depth of nothing", "1B to 16MiB; with --force up to 1GiB")),
        _ if bytes <= USUAL => Ok(()),
        _ if bytes <= LARGEST && force => Ok(()),
        _ => {
            let problem = format!("a depth of {}", Bytes(bytes));
            Err(KeyError::new(key, problem, "1B to 16MiB; with --force up to 1GiB"))
        }
    }
}

/// The largest value that a watch of such a drive can write.
pub(super) fn deepest(facts: &DriveFacts) -> u64 {
    let seek = facts.seek.iter().copied().max().unwrap_or_default().max(facts.mean_seek);
    let rate = facts.bands.iter().map(|band| band.bytes_per_second).fold(0.0, f64::max);
    ((seek + facts.half_turn).as_secs_f64() * rate) as u64
}

/// Page size of this machine in bytes.
pub(super) fn page_bytes() -> u64 {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    page.and_then(|page| u64::try_from(page).ok()).unwrap_or(4096).max(1024)
}

/// Pages in KiB; a page is always a whole number of KiB.
pub(super) fn kb_of(pages: u64, page_bytes: u64) -> u64 {
    pages * (page_bytes / 1024)
}

/// The properties of a drive that determine the depth.
///
/// # Errors
/// The drive does not exist or has no moving parts.
pub(super) fn facts(name: &str, keys: &Table) -> Result<DriveFacts, Error> {
    let device = build_device(name, keys.clone())?;
    device.drive_facts().ok_or_else(|| {
        let problem =
            format!("nothing moves in \"{name}\": there is no switch that a deeper read-ahead could amortise");
        KeyError::new("profile", problem, "a drive with an arm, or --depth SIZE").into()
    })
}

/// Capacity of a drive in bytes.
pub(super) fn bytes_of(facts: &DriveFacts) -> u64 {
    facts.bands.iter().map(|band| band.sectors).sum::<u64>() * SECTOR_BYTES
}

/// Mean rate over the first `bytes` of a drive, or over all of it, for uniformly distributed streams.
pub(super) fn mean_rate(facts: &DriveFacts, bytes: Option<u64>) -> f64 {
    facts.mean_rate_of_places(bytes.map(|bytes| bytes.div_ceil(SECTOR_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_host::testing::Machine;

    #[test]
    fn the_paper_s_drive() {
        // Section 5: 7.53 ms, 3.00 ms, 37.3 MB/s: 393 KB, in pages of 4 KiB 95.9.
        let machine = Machine::new();
        machine.disk("sda", "8:0", 36_400_000_000 / 512, 128);
        let device = Device::at(&machine.roots(), Path::new("/dev/sda"), "8:0".parse().expect("a number"), false);
        let device = device.expect("it is there");
        let wanted = |name: &str| Wanted::Profile { name: name.to_owned(), keys: Table::new() };
        let depth = Depth::of(&device, &wanted("ibm-36gb-10k"), false).expect("a drive with an arm");
        assert!((392e3..394e3).contains(&depth.bytes), "{depth:?}");
        let switch = depth.switch().expect("a seek and half a turn");
        assert!((10.5..10.56).contains(&(switch.as_secs_f64() * 1e3)), "{depth:?}");
        assert_eq!(depth.kb * 1024, depth.pages * depth.page_bytes);
        if depth.page_bytes == 4096 {
            assert_eq!((depth.pages, depth.kb), (96, 384));
        }
        let error = Depth::of(&device, &wanted("object-store"), false).expect_err("no arm").to_string();
        assert!(
            error.starts_with("profile: nothing moves in \"object-store\"") && error.ends_with("or --depth SIZE"),
            "{error}"
        );
        let error = Depth::of(&device, &wanted("no-drive"), false).expect_err("no drive").to_string();
        assert!(error.contains("no-drive") && error.contains("allowed"), "{error}");
    }

    #[test]
    fn what_is_given_is_rounded_to_the_nearest_page() {
        let page = page_bytes();
        let pages = |bytes: u64| Depth::given(bytes).pages;
        assert_eq!([1, page, page * 3 / 2 - 1, page * 3 / 2, page * 10].map(pages), [1, 1, 1, 2, 10]);
        let machine = Machine::new();
        machine.disk("sda", "8:0", 8, 128);
        let device = Device::at(&machine.roots(), Path::new("/dev/sda"), "8:0".parse().expect("a number"), false);
        let device = device.expect("it is there");
        let of = |bytes, force| Depth::of(&device, &Wanted::Depth(Bytes(bytes)), force);
        for (bytes, force) in [(0, true), (USUAL + 1, false), (LARGEST, false), (LARGEST + 1, true)] {
            let error = of(bytes, force).expect_err("refused").to_string();
            assert!(error.ends_with("; allowed: 1B to 16MiB; with --force up to 1GiB"), "{error}");
        }
        assert_eq!([of(USUAL, false), of(LARGEST, true)].map(|depth| depth.expect("allowed").kb), [16 << 10, 1 << 20]);
    }

    #[test]
    fn a_depth_of_a_profile_has_the_limit_of_one_that_is_given() {
        let machine = Machine::new();
        machine.disk("sda", "8:0", 36_400_000_000 / 512, 128);
        let device = Device::at(&machine.roots(), Path::new("/dev/sda"), "8:0".parse().expect("a number"), false);
        // Seeks of minutes give gigabytes at 37 MB/s.
        let keys = "seek = {average = \"300s\", maximum = \"600s\"}".parse().expect("TOML");
        let wanted = Wanted::Profile { name: "ibm-36gb-10k".to_owned(), keys };
        let error = Depth::of(&device.expect("it is there"), &wanted, true).expect_err("refused").to_string();
        assert!(error.starts_with("profile: a depth of "), "{error}");
        assert!(error.ends_with("; allowed: 1B to 16MiB; with --force up to 1GiB"), "{error}");
    }
}
