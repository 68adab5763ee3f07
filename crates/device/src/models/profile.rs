//! Profiles: the numbers of a mechanical drive in TOML, shipped or written by the user, one schema.
//!
//! Keys: `name`, `rpm`, `surfaces`, `head_switch`, `nominal_service`, `[[zones]]` (`cylinders`,
//! `sectors_per_track`, `track_skew`, `cylinder_skew`), `[seek]` (see `seek.rs`), `[controller]` (`overhead`),
//! `[bus]` (`bytes_per_second`), `[buffer]` (`size`, `read_ahead`). Every number is required: a profile is
//! complete or it is an error. A scenario may lay keys of its own over a profile, table by table.

use std::path::Path;

use headstart_types::{KeyError, Nanos};
use toml::{Table, Value};

use super::geometry::{Zone, ZoneShape};
use super::mechanical::{Mechanical, Parameters};
use super::seek::SeekTable;
use crate::device::sectors_of;
use crate::keys::Keys;
use crate::DeviceError;

const HP97560: &str = include_str!("../../profiles/hp97560.toml");

/// Most sectors that may pass a head in a minute: keeps the arithmetic of `rotation.rs` within 64 bits.
const SECTORS_PER_MINUTE_MAX: u64 = 300_000_000;

/// The shipped profile of the HP 97560.
#[must_use]
pub fn hp97560() -> Table {
    HP97560.parse().expect("the shipped profile is TOML")
}

/// `keys` over `base`: tables are joined key by key, anything else is replaced.
#[must_use]
pub fn overlay(mut base: Table, keys: Table) -> Table {
    for (key, value) in keys {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => Value::Table(overlay(below, above)),
            (_, above) => above,
        };
        base.insert(key, value);
    }
    base
}

/// The drive of the profile at `path` with `keys` laid over it.
///
/// # Errors
/// The file, and the line or key in it.
pub fn load(path: &Path, keys: Table) -> Result<Mechanical, DeviceError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| DeviceError::Read { path: shown.clone(), source })?;
    let profile: Table = text.parse().map_err(|error: toml::de::Error| DeviceError::Syntax {
        path: shown.clone(),
        line: error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1),
        problem: error.message().replace('\n', ", "),
    })?;
    Mechanical::from_table(overlay(profile, keys)).map_err(|error| DeviceError::Profile { path: shown, error })
}

impl Mechanical {
    /// The drive that a profile describes.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has a value that no drive can have.
    pub fn from_table(profile: Table) -> Result<Self, KeyError> {
        const KNOWN: [&str; 9] =
            ["name", "rpm", "surfaces", "head_switch", "nominal_service", "zones", "seek", "controller", "bus"];
        let mut keys = Keys::new(profile);
        keys.text("name", "the drive's name")?;
        let rpm = keys.whole("rpm", 1, 1_000_000)? as u32;
        let surfaces = keys.whole("surfaces", 1, 1_000)? as u32;
        let head_switch = keys.time_or_zero("head_switch")?;
        let nominal_service = keys.time("nominal_service")?;
        let shapes = zone_shapes(keys.tables("zones")?, rpm)?;
        let cylinders = shapes.iter().map(|shape| u64::from(shape.cylinders)).sum::<u64>();
        if cylinders > 10_000_000 {
            return Err(KeyError::new("zones", format!("{cylinders} cylinders"), "at most 10000000 in all"));
        }
        let seek = SeekTable::from_keys(keys.table("seek")?, cylinders as u32).map_err(|error| error.within("seek"))?;
        let overhead = only(keys.table("controller")?, "controller", "overhead", |keys, key| keys.time_or_zero(key))?;
        let bus_bytes_per_second =
            only(keys.table("bus")?, "bus", "bytes_per_second", |keys, key| keys.whole(key, 1, u64::MAX >> 20))?;
        let (buffer, read_ahead) = buffer_of(keys.table("buffer")?).map_err(|error| error.within("buffer"))?;
        keys.finish(&[&KNOWN[..], &["buffer"]].concat())?;
        let next_cylinder = if cylinders > 1 { seek.time(1) } else { Nanos::ZERO };
        let mut zones: Vec<Zone> = Vec::with_capacity(shapes.len());
        let (mut first, mut cylinder) = (0, 0);
        for shape in shapes {
            let zone = Zone::new((first, cylinder), shape, (rpm, surfaces), (head_switch, next_cylinder));
            first = zone.end;
            cylinder += shape.cylinders;
            zones.push(zone);
        }
        let buffer = sectors_of(buffer);
        Ok(Self::new(Parameters {
            zones,
            seek,
            head_switch,
            overhead,
            bus_bytes_per_second,
            buffer,
            read_ahead,
            nominal_service,
        }))
    }
}

/// The one key of a table that has no other.
fn only<T>(
    mut keys: Keys,
    table: &str,
    key: &str,
    read: impl Fn(&mut Keys, &str) -> Result<T, KeyError>,
) -> Result<T, KeyError> {
    let value = read(&mut keys, key).map_err(|error| error.within(table))?;
    keys.finish(&[key]).map_err(|error| error.within(table))?;
    Ok(value)
}

/// Bytes of the buffer, and whether the drive reads ahead into it.
fn buffer_of(mut keys: Keys) -> Result<(u64, bool), KeyError> {
    let size = keys.size("size")?;
    let read_ahead = keys.boolean("read_ahead")?;
    keys.finish(&["size", "read_ahead"])?;
    Ok((size.0, read_ahead))
}

fn zone_shapes(list: Vec<Keys>, rpm: u32) -> Result<Vec<ZoneShape>, KeyError> {
    const KNOWN: [&str; 4] = ["cylinders", "sectors_per_track", "track_skew", "cylinder_skew"];
    let most = (SECTORS_PER_MINUTE_MAX / u64::from(rpm)).min(1_000_000);
    let shape = |mut keys: Keys| -> Result<ZoneShape, KeyError> {
        let cylinders = keys.whole("cylinders", 1, 10_000_000)? as u32;
        let sectors_per_track = keys.whole("sectors_per_track", 1, most)? as u32;
        let skew_max = u64::from(sectors_per_track) - 1;
        let track_skew = keys.whole("track_skew", 0, skew_max)? as u32;
        let cylinder_skew = keys.whole("cylinder_skew", 0, skew_max)? as u32;
        keys.finish(&KNOWN)?;
        Ok(ZoneShape { cylinders, sectors_per_track, track_skew, cylinder_skew })
    };
    let placed = |(index, keys)| shape(keys).map_err(|error| error.within(&format!("zones[{index}]")));
    list.into_iter().enumerate().map(placed).collect()
}
