//! Profiles: the numbers of a mechanical drive in TOML, shipped or written by the user, one schema.
//!
//! Keys: `name`, `rpm`, `surfaces`, `head_switch`, `write_settle`, `nominal_service`, `mapping` and `sparing` (see
//! `geometry.rs`, `sparing.rs`), `sectors`, `[[zones]]` (`cylinders`, `sectors_per_track`, `track_skew`,
//! `cylinder_skew`; `first_cylinder`, `offset`, `reserved`, `spares`, `slips`, `defects`), `[seek]` (`seek.rs`),
//! `[controller]` (`overhead.rs`), `[bus]` (`bus.rs`), `[buffer]`: `size` and `read_ahead` for one stream
//! (`single.rs`), or `segments` and what `segments.rs` lists. Every number is required unless nothing is its natural
//! default: a profile is complete or it is an error. A scenario may lay keys of its own over a profile, table by
//! table: see [`overlay`].

use std::path::Path;

use headstart_types::{read_text, toml_problem, KeyError, Nanos};
use toml::{Table, Value};

use super::arm::Arm;
use super::bus::Bus;
use super::geometry::{DriveShape, Mapping, Zone, ZoneShape};
use super::mechanical::{Cache, Mechanical};
use super::overhead::Overheads;
use super::parameters::Parameters;
use super::seek::SeekTable;
use super::segmented::Segmented;
use super::segments::Buffer;
use super::single::Single;
use super::sparing::Scheme;
use crate::device::sectors_of;
use crate::keys::Keys;
use crate::DeviceError;

/// Most sectors that may pass a head in a minute: keeps the arithmetic of `rotation.rs` within 64 bits.
const SECTORS_PER_MINUTE_MAX: u64 = 300_000_000;

/// The key `form` of the profile that `headstart profile` writes for a device without an arm: it has the load that saturates the
/// device, but no service times.
pub const NO_ARM: &str = "no-arm";

/// Most cylinders of a drive.
const CYLINDERS_MAX: u64 = 10_000_000;

/// Most zones of a drive: real ones have up to some dozens. Every zone is looked through by some requests and shown.
pub const ZONES_MAX: usize = 1_000;

/// Largest profile in bytes: 400 times the largest of those that are shipped or imported from the measured set.
pub const PROFILE_BYTES_MAX: u64 = 4 << 20;

/// Longest name of a drive.
const NAME_CHARACTERS_MAX: usize = 200;

/// Shipped profiles by the names of their models, in the registry's order.
const SHIPPED: &[(&str, &str)] = &[
    ("hp97560", include_str!("../../profiles/hp97560.toml")),
    ("seagate-cheetah-9lp", include_str!("../../profiles/seagate-cheetah-9lp.toml")),
    ("seagate-cheetah-4lp", include_str!("../../profiles/seagate-cheetah-4lp.toml")),
    ("seagate-barracuda-st32171w", include_str!("../../profiles/seagate-barracuda-st32171w.toml")),
    ("quantum-atlas-10k", include_str!("../../profiles/quantum-atlas-10k.toml")),
    ("ibm-0661", include_str!("../../profiles/ibm-0661.toml")),
    ("ibm-36gb-10k", include_str!("../../profiles/ibm-36gb-10k.toml")),
    ("seagate-146gb-10k", include_str!("../../profiles/seagate-146gb-10k.toml")),
    ("seagate-exos-x20", include_str!("../../profiles/seagate-exos-x20.toml")),
];

/// Keys of a profile.
pub const PROFILE_KEYS: [&str; 15] = [
    "name",
    "rpm",
    "surfaces",
    "head_switch",
    "write_settle",
    "nominal_service",
    "mapping",
    "sparing",
    "sparing_range",
    "sectors",
    "zones",
    "seek",
    "controller",
    "bus",
    "buffer",
];

/// The shipped profile of the model `name`; empty for any other name.
#[must_use]
pub fn shipped(name: &str) -> Table {
    let profile = SHIPPED.iter().find(|(model, _)| *model == name);
    profile.map_or_else(Table::new, |(_, text)| text.parse().expect("the shipped profile is TOML"))
}

/// `keys` over `base`: tables are joined key by key, anything else is replaced. Of keys that exclude each other those
/// of `keys` win: a table in another form than the one below replaces it whole.
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

/// Whether two tables of the name `table` have keys that exclude each other.
fn excludes(table: &str, above: &Table, below: &Table) -> bool {
    let each = Overheads::EACH.concat();
    let forms: [&[&str]; 2] = match table {
        "controller" => [&["overhead"], &each],
        "bus" => [&["bytes_per_second"], &["sector_time"]],
        "buffer" => [&["size"], &["segments"]],
        _ => return false,
    };
    let form = |keys: &Table| forms.iter().position(|form| form.iter().any(|key| keys.contains_key(*key)));
    matches!((form(above), form(below)), (Some(above), Some(below)) if above != below)
}

/// The drive of the profile at `path` with `keys` laid over it.
///
/// # Errors
/// The file, and the line or key in it.
pub fn load(path: &Path, keys: Table) -> Result<Mechanical, DeviceError> {
    let shown = path.display().to_string();
    let text =
        read_text(path, PROFILE_BYTES_MAX).map_err(|source| DeviceError::Read { path: shown.clone(), source })?;
    let profile: Table = text.parse().map_err(|error| {
        let (line, problem) = toml_problem(&text, &error);
        DeviceError::Syntax { path: shown.clone(), line, problem }
    })?;
    if profile.get("form").and_then(Value::as_str) == Some(NO_ARM) {
        let problem = format!("\"{NO_ARM}\" is the profile of a device without an arm, for headstart tune");
        let error = KeyError::new("form", problem, "a profile of a drive with an arm, or a model, such as nvme");
        return Err(DeviceError::Profile { path: shown, error });
    }
    Mechanical::from_table(overlay(profile, keys)).map_err(|error| DeviceError::Profile { path: shown, error })
}

impl Mechanical {
    /// The drive that a profile describes.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has a value that no drive can have.
    pub fn from_table(profile: Table) -> Result<Self, KeyError> {
        let mut keys = Keys::new(profile);
        name_of(&mut keys)?;
        let nominal_service = keys.time("nominal_service")?;
        let arm = arm_of(&mut keys)?;
        let overheads = Overheads::from_keys(keys.table("controller")?).map_err(|error| error.within("controller"))?;
        let bus = Bus::from_keys(keys.table("bus")?).map_err(|error| error.within("bus"))?;
        let cache = cache_of(keys.table("buffer")?, &arm.zones).map_err(|error| error.within("buffer"))?;
        keys.finish(&PROFILE_KEYS)?;
        let bus_sector = [bus.time(1, false), bus.time(1, true)];
        Ok(Self::new(Parameters { arm, overheads, bus, bus_sector, nominal_service }, cache))
    }
}

/// The drive's name: a line that can be shown anywhere.
fn name_of(keys: &mut Keys) -> Result<String, KeyError> {
    let name = keys.text("name", "the drive's name")?;
    let problem = match name.chars().find(|character| character.is_control()) {
        Some(control) => format!("holds the control character {}", control.escape_unicode()),
        None if name.chars().count() > NAME_CHARACTERS_MAX => format!("has {} characters", name.chars().count()),
        None if name.trim().is_empty() => "is empty".to_owned(),
        None => return Ok(name),
    };
    let allowed = format!("a line of at most {NAME_CHARACTERS_MAX} characters, none of them a control character");
    Err(KeyError::new("name", problem, allowed))
}

/// What moves and turns.
fn arm_of(keys: &mut Keys) -> Result<Arm, KeyError> {
    let rpm = keys.whole("rpm", 1, 1_000_000)? as u32;
    let surfaces = keys.whole("surfaces", 1, 1_000)? as u32;
    let head_switch = keys.time_or_zero("head_switch")?;
    let write_settle = keys.or("write_settle", 0, Keys::signed_time)?;
    let mappings = [
        ("forward", Mapping::Forward),
        ("serpentine", Mapping::Serpentine),
        ("serpentine-cylinder", Mapping::SerpentineCylinder),
    ];
    let mapping = keys.or("mapping", Mapping::Forward, |keys, key| keys.choice(key, &mappings))?;
    let sparing = sparing_of(keys)?;
    let shapes = zone_shapes(keys.tables("zones")?, rpm, sparing)?;
    let cylinders = shapes.last().map_or(0, |shape| u64::from(shape.first_cylinder) + u64::from(shape.cylinders));
    if cylinders > CYLINDERS_MAX {
        return Err(KeyError::new("zones", format!("{cylinders} cylinders"), "at most 10000000 in all"));
    }
    let seek = SeekTable::from_keys(keys.table("seek")?, cylinders as u32).map_err(|error| error.within("seek"))?;
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
    let sectors = keys.or("sectors", held, |keys, key| keys.whole(key, 1, held))?;
    Ok(Arm { zones, sectors, seek, rpm, surfaces, head_switch, write_settle })
}

fn sparing_of(keys: &mut Keys) -> Result<Scheme, KeyError> {
    let scheme = keys.or("sparing", Scheme::None, |keys, key| keys.choice(key, &Scheme::NAMES))?;
    match scheme {
        Scheme::Range(_) => Ok(Scheme::Range(keys.whole("sparing_range", 1, CYLINDERS_MAX)? as u32)),
        _ => Ok(scheme),
    }
}

/// How the buffer works.
fn cache_of(mut keys: Keys, zones: &[Zone]) -> Result<Cache, KeyError> {
    if keys.has("segments") {
        return Ok(Cache::Segmented(Segmented::new(Buffer::from_keys(keys)?)));
    }
    let size = keys.size("size")?;
    let read_ahead = keys.boolean("read_ahead")?;
    keys.finish(&["size", "read_ahead"])?;
    Ok(Cache::Single(Single::new(sectors_of(size.0), read_ahead, zones)))
}

fn zone_shapes(list: Vec<Keys>, rpm: u32, sparing: Scheme) -> Result<Vec<ZoneShape>, KeyError> {
    if list.len() > ZONES_MAX {
        return Err(KeyError::new("zones", format!("{} zones", list.len()), format!("at most {ZONES_MAX}")));
    }
    let most = (SECTORS_PER_MINUTE_MAX / u64::from(rpm)).min(1_000_000);
    let mut shapes: Vec<ZoneShape> = Vec::with_capacity(list.len());
    for (index, keys) in list.into_iter().enumerate() {
        let next = shapes.last().map_or(0, |shape| u64::from(shape.first_cylinder) + u64::from(shape.cylinders));
        let shape = zone_shape(keys, most, next, sparing).map_err(|error| error.within(&format!("zones[{index}]")))?;
        shapes.push(shape);
    }
    Ok(shapes)
}

/// One zone, whose first cylinder is `next` or later.
fn zone_shape(mut keys: Keys, most: u64, next: u64, sparing: Scheme) -> Result<ZoneShape, KeyError> {
    const KNOWN: [&str; 10] = [
        "cylinders",
        "sectors_per_track",
        "track_skew",
        "cylinder_skew",
        "first_cylinder",
        "offset",
        "reserved",
        "spares",
        "slips",
        "defects",
    ];
    const MOST: u64 = 1 << 40;
    let cylinders = keys.whole("cylinders", 1, CYLINDERS_MAX)? as u32;
    let sectors_per_track = keys.whole("sectors_per_track", 1, most)? as u32;
    let skew_max = u64::from(sectors_per_track) - 1;
    let track_skew = keys.whole("track_skew", 0, skew_max)? as u32;
    let cylinder_skew = keys.whole("cylinder_skew", 0, skew_max)? as u32;
    let offset = keys.or("offset", 0, |keys, key| keys.whole(key, 0, skew_max))? as u32;
    let first_cylinder = match next {
        next if next > CYLINDERS_MAX => CYLINDERS_MAX,
        next => keys.or("first_cylinder", next, |keys, key| keys.whole(key, next, CYLINDERS_MAX))?,
    } as u32;
    let reserved = keys.or("reserved", 0, |keys, key| keys.whole(key, 0, MOST))?;
    let spares_max = if matches!(sparing, Scheme::None | Scheme::End) { 0 } else { MOST };
    let spares = keys.or("spares", 0, |keys, key| keys.whole(key, 0, spares_max))?;
    let mut slips = keys.or("slips", Vec::new(), |keys, key| keys.wholes(key, 0, MOST))?;
    slips.sort_unstable();
    if let Some(pair) = slips.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(KeyError::new("slips", format!("{} twice", pair[0]), "each slipped sector once"));
    }
    let defects = keys.or("defects", Vec::new(), |keys, key| keys.pairs(key, MOST))?;
    keys.finish(&KNOWN)?;
    Ok(ZoneShape {
        first_cylinder,
        cylinders,
        sectors_per_track,
        track_skew,
        cylinder_skew,
        offset,
        reserved,
        spares,
        slips,
        defects,
    })
}
