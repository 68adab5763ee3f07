//! Profiles: the numbers of a mechanical drive in TOML, shipped or user-written, with one schema.
//!
//! Keys: `name`, `rpm`, `surfaces`, `head_switch`, `write_settle`, `nominal_service`, `mapping` and `sparing` (see
//! `geometry.rs`, `sparing.rs`), `sectors`, `[[zones]]` (`cylinders`, `sectors_per_track`, `track_skew`,
//! `cylinder_skew`; `first_cylinder`, `offset`, `reserved`, `spares`, `slips`, `defects`), `[seek]` (`seek.rs`),
//! `[controller]` (`overhead.rs`), `[bus]` (`bus.rs`), `[buffer]`: `size` and `read_ahead` for one stream
//! (`single.rs`), or `segments` and the keys in `segments.rs`. Every number is required unless none is the natural
//! default: an incomplete profile is an error. A scenario may override keys of a profile, table by table: see
//! [`overlay`].
//!
//! The profile of a measured device without an arm has another form, [`NO_ARM`]: the model that was fitted to it, and
//! its keys.

use std::path::Path;

use headstart_types::{keys, read_keys, read_text, toml_problem, within_range, Bytes, KeyError, Nanos};
use toml::{Table, Value};

use super::arm::Arm;
use super::bus::{Bus, BusKeys};
use super::flash::Flash;
use super::geometry::{DriveShape, Mapping, Zone, ZoneShape};
use super::mechanical::{Cache, Mechanical};
use super::object_store::ObjectStore;
use super::overhead::{self, Overheads};
use super::parameters::Parameters;
use super::seek::{self, SeekTable};
use super::segmented::Segmented;
use super::segments::Buffer;
use super::single::Single;
use super::sparing::{self, Scheme};
use crate::device::sectors_of;
use crate::limits::{
    CYLINDERS_MAX, NAME_CHARACTERS_MAX, PROFILE_BYTES_MAX, RPM_MAX, SECTORS_PER_MINUTE_MAX, SECTORS_PER_TRACK_MAX,
    SURFACES_MAX, ZONES_MAX,
};
use crate::time::{SignedTime, Time};
use crate::{Device, DeviceError};

/// The key `form` of the profile that `headstart profile` writes for a device without an arm: it has the load that
/// saturates the device and, in the table `service`, the best-fitting model with its keys.
pub const NO_ARM: &str = "no-arm";
/// The models that such a profile may name, and their constructors.
const FITTED: &[(&str, Make)] = &[
    ("flash", |keys| Ok(Box::new(Flash::try_new(&read_keys(keys)?)?))),
    ("object-store", |keys| Ok(Box::new(ObjectStore::new(&read_keys(keys)?)))),
];

type Make = fn(Table) -> Result<Box<dyn Device>, KeyError>;

keys! {
    /// Keys of a mechanical drive.
    pub struct ProfileKeys {
        /// The drive's name: one printable line.
        name: String,
        /// Revolutions per minute.
        #[schemars(range(min = 1, max = RPM_MAX))]
        rpm: u32,
        /// Number of surfaces that hold data.
        #[schemars(range(min = 1, max = SURFACES_MAX))]
        surfaces: u32,
        /// Time of a head switch.
        head_switch: Time,
        /// Additional time for the arm to settle before a write, after a seek or a head switch.
        #[serde(default)]
        write_settle: SignedTime,
        /// Typical service time of a block, which policies use as an estimate.
        #[schemars(extend("x-min" = "1ns", "x-max" = "1h"))]
        nominal_service: Nanos,
        /// The order of surfaces.
        #[serde(default)]
        mapping: Mapping,
        /// Sparing scheme: where spare sectors are.
        #[serde(default)]
        sparing: sparing::Named,
        /// Number of cylinders per range. Only with sparing = "range".
        #[schemars(range(min = 1, max = CYLINDERS_MAX))]
        sparing_range: Option<u32>,
        /// Capacity that the drive reports, in sectors. Default: all sectors of its zones.
        #[schemars(range(min = 1))]
        sectors: Option<u64>,
        /// The zones, outermost first.
        #[schemars(length(min = 1, max = ZONES_MAX))]
        zones: Vec<ZoneShape>,
        /// Seek times by distance.
        #[schemars(with = "seek::Forms")]
        seek: Table,
        /// Controller overhead of a command.
        #[schemars(with = "overhead::Forms")]
        controller: Table,
        /// The bus to the host.
        #[schemars(with = "BusKeys")]
        bus: Table,
        /// The buffer: one stream, or several segments.
        #[schemars(with = "BufferForms")]
        buffer: Table
    }
    impl check = check;
}

keys! {
    /// A buffer with one stream.
    struct SingleKeys {
        /// Size of the buffer.
        #[schemars(extend("x-max" = "1TiB"))]
        size: Bytes,
        /// Whether the drive reads ahead until the buffer is full.
        read_ahead: bool
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum BufferForms {
    Single(SingleKeys),
    Segmented(Buffer),
}

/// Overrides `base` with `keys`: tables are merged key by key, other values are replaced. If keys exclude each other,
/// those of `keys` win: a table in another form replaces the one in `base` entirely.
#[must_use]
pub fn overlay(mut base: Table, keys: Table) -> Table {
    for (key, value) in keys {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) if !excludes(&key, &above, &below) => {
                Value::Table(overlay(below, above))
            }
            (_, above) => above,
        };
        base.insert(key, value);
    }
    base
}

/// Whether two tables named `table` have keys that exclude each other.
fn excludes(table: &str, above: &Table, below: &Table) -> bool {
    let forms = match table {
        "controller" => {
            return above.contains_key("overhead") && overhead::has_each(below)
                || overhead::has_each(above) && below.contains_key("overhead")
        }
        "bus" => ["bytes_per_second", "sector_time"],
        "buffer" => ["size", "segments"],
        _ => return false,
    };
    let form = |keys: &Table| forms.iter().position(|key| keys.contains_key(*key));
    matches!((form(above), form(below)), (Some(above), Some(below)) if above != below)
}

/// The device of the profile at `path`, overridden by `keys`; for a device without an arm, `keys` override its table
/// `service`.
///
/// # Errors
/// The file, and the line or key in it.
pub fn load(path: &Path, keys: Table) -> Result<Box<dyn Device>, DeviceError> {
    let shown = path.display().to_string();
    let text =
        read_text(path, PROFILE_BYTES_MAX).map_err(|source| DeviceError::Read { path: shown.clone(), source })?;
    let profile: Table = text.parse().map_err(|error| {
        let (line, problem) = toml_problem(&text, &error);
        DeviceError::Syntax { path: shown.clone(), line, problem }
    })?;
    let within = |error: KeyError| DeviceError::Profile { path: shown.clone(), error };
    if profile.get("form").and_then(Value::as_str) == Some(NO_ARM) {
        return fitted(profile, keys).map_err(within);
    }
    Ok(Box::new(Mechanical::from_table(overlay(profile, keys)).map_err(within)?))
}

/// The device of a profile without an arm.
fn fitted(mut profile: Table, keys: Table) -> Result<Box<dyn Device>, KeyError> {
    let Some(Value::Table(mut service)) = profile.remove("service") else {
        let problem = format!("\"{NO_ARM}\" is the profile of a device without an arm, but it has no table service");
        return Err(KeyError::new(
            "form",
            problem,
            "a profile of this version of headstart profile, or a model, such as nvme",
        ));
    };
    let named = service.remove("model");
    let model = named.as_ref().and_then(Value::as_str).unwrap_or_default();
    let Some((_, make)) = FITTED.iter().find(|(name, _)| *name == model) else {
        return Err(KeyError::unknown("service.model", "model", model, FITTED.iter().map(|(name, _)| *name)));
    };
    if let (true, Some(capacity)) = (model == "flash", profile.remove("capacity")) {
        service.insert("capacity".to_owned(), capacity);
    }
    make(overlay(service, keys)).map_err(|error| error.within("service"))
}

impl Mechanical {
    /// The drive that a profile describes.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has an impossible value.
    pub fn from_table(profile: Table) -> Result<Self, KeyError> {
        let keys: ProfileKeys = read_keys(profile)?;
        let arm = arm_of(&keys)?;
        let overheads = Overheads::read(keys.controller).map_err(|error| error.within("controller"))?;
        let bus = Bus::read(keys.bus).map_err(|error| error.within("bus"))?;
        let cache = cache_of(keys.buffer, &arm.zones).map_err(|error| error.within("buffer"))?;
        let bus_sector = [bus.time(1, false), bus.time(1, true)];
        Ok(Self::new(Parameters { arm, overheads, bus, bus_sector, nominal_service: keys.nominal_service }, cache))
    }
}

fn check(keys: &ProfileKeys) -> Result<(), KeyError> {
    if matches!(keys.sparing, sparing::Named::Range) != keys.sparing_range.is_some() {
        return Err(match keys.sparing_range {
            None => KeyError::new("sparing_range", "is missing", format!("a whole number from 1 to {CYLINDERS_MAX}")),
            Some(_) => KeyError::new(
                "sparing_range",
                "is only valid with sparing = \"range\"",
                "sparing = \"range\" in addition",
            ),
        });
    }
    let problem = match keys.name.chars().find(|character| character.is_control()) {
        Some(control) => format!("contains the control character {}", control.escape_unicode()),
        None if keys.name.chars().count() > NAME_CHARACTERS_MAX => {
            format!("has {} characters", keys.name.chars().count())
        }
        None if keys.name.trim().is_empty() => "is empty".to_owned(),
        None => return Ok(()),
    };
    let allowed = format!("a line of at most {NAME_CHARACTERS_MAX} characters without control characters");
    Err(KeyError::new("name", problem, allowed))
}

/// The moving parts.
fn arm_of(keys: &ProfileKeys) -> Result<Arm, KeyError> {
    let &ProfileKeys { rpm, surfaces, head_switch: Time(head_switch), mapping, .. } = keys;
    let SignedTime(write_settle) = keys.write_settle;
    let sparing = Scheme::of(keys.sparing, keys.sparing_range.unwrap_or(1));
    let shapes = zone_shapes(keys, sparing)?;
    let cylinders = shapes.last().map_or(0, ZoneShape::end);
    if cylinders > CYLINDERS_MAX {
        let allowed = format!("at most {CYLINDERS_MAX} in all");
        return Err(KeyError::new("zones", format!("{cylinders} cylinders"), allowed));
    }
    let seek = SeekTable::read(keys.seek.clone(), cylinders).map_err(|error| error.within("seek"))?;
    let next_cylinder = if cylinders > 1 { seek.time(1) } else { Nanos::ZERO };
    let switches_heads = mapping == Mapping::Forward && surfaces > 1;
    let across = if switches_heads { next_cylinder.max(head_switch) } else { next_cylinder };
    let settle = |time: Nanos| match time {
        Nanos::ZERO => time,
        _ => Nanos(time.0.saturating_add_signed(write_settle)),
    };
    let switches = [[head_switch, across], [settle(head_switch), settle(across)]];
    let drive = DriveShape { rpm, surfaces, mapping, sparing, switches };
    let mut zones: Vec<Zone> = Vec::with_capacity(shapes.len());
    for (index, shape) in shapes.iter().enumerate() {
        let first = zones.last().map_or(0, |zone| zone.end);
        let none = || KeyError::new(format!("zones[{index}].spares"), "leave no sector for data", "fewer spares");
        zones.push(Zone::new(first, shape, &drive).ok_or_else(none)?);
    }
    let held = zones.last().map_or(0, |zone| zone.end);
    let sectors = keys.sectors.unwrap_or(held);
    within_range("sectors", sectors, 1..=held)?;
    Ok(Arm { zones, sectors, seek, rpm, surfaces, head_switch, write_settle })
}

/// The buffer.
fn cache_of(table: Table, zones: &[Zone]) -> Result<Cache, KeyError> {
    if table.contains_key("segments") {
        return Ok(Cache::Segmented(Segmented::new(read_keys(table)?)));
    }
    let SingleKeys { size, read_ahead } = read_keys(table)?;
    Ok(Cache::Single(Single::new(sectors_of(size.0), read_ahead, zones)))
}

/// The zones, each with its first cylinder set and its slips sorted.
fn zone_shapes(keys: &ProfileKeys, sparing: Scheme) -> Result<Vec<ZoneShape>, KeyError> {
    let most = (SECTORS_PER_MINUTE_MAX / u64::from(keys.rpm)).min(SECTORS_PER_TRACK_MAX);
    let mut next = 0;
    let mut complete = |(index, shape): (usize, &ZoneShape)| {
        let mut shape = shape.clone();
        complete_zone(&mut shape, most, next, sparing).map_err(|error| error.within(&format!("zones[{index}]")))?;
        next = shape.end();
        Ok(shape)
    };
    keys.zones.iter().enumerate().map(&mut complete).collect()
}

/// Completes a zone whose first cylinder is `next` or later.
fn complete_zone(shape: &mut ZoneShape, most: u64, next: u32, sparing: Scheme) -> Result<(), KeyError> {
    within_range("sectors_per_track", shape.sectors_per_track.into(), 1..=most)?;
    let skew_max = u64::from(shape.sectors_per_track) - 1;
    let skews = [("track_skew", shape.track_skew), ("cylinder_skew", shape.cylinder_skew), ("offset", shape.offset)];
    skews.into_iter().try_for_each(|(key, skew)| within_range(key, skew.into(), 0..=skew_max))?;
    // Too many cylinders are refused when all have been counted.
    let first = *shape.first_cylinder.get_or_insert(next);
    if next <= CYLINDERS_MAX {
        within_range("first_cylinder", first.into(), next.into()..=CYLINDERS_MAX.into())?;
    }
    if matches!(sparing, Scheme::None | Scheme::End) {
        within_range("spares", shape.spares, 0..=0)?;
    }
    shape.slips.sort_unstable();
    match shape.slips.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(KeyError::new("slips", format!("{} twice", pair[0]), "each slipped sector once")),
        None => Ok(()),
    }
}
