//! The layout: mapping, sparing and zones of `dm_layout_g1` as the profile's `mapping`, `sparing` and `[[zones]]`.
//!
//! Source: DiskSim 4.0 manual, sections on `dm_layout_g1` and its zones. Skews in "sectors" are truncated to whole
//! sectors, as in DiskSim; in "revolutions" they are rounded to sectors. Slips are sorted, where DiskSim takes them in
//! the given order; one beyond its zone can never be reached and is dropped, with a warning.

use std::collections::BTreeMap;
use std::fmt::Write;

use headstart_device::limits::{self, ZONES_MAX};

use crate::error::{FilePosition, ImportError};
use crate::params::{leftover, naturals, write_list, Notes, Params};
use crate::parser::{Document, Kind, Value};

const MAPPINGS: [&str; 3] = ["forward", "serpentine", "serpentine-cylinder"];
const SPARINGS: [&str; 11] = [
    "none",
    "tracks",
    "cylinder",
    "track",
    "cylinder-slip-to-end",
    "cylinder-front",
    "cylinder-front-slip-to-end",
    "end",
    "range",
    "zone",
    "zone-slip-to-end",
];
const NONE: i64 = 0;
const TRACKS: i64 = 1;
const END: i64 = 7;
const RANGE: i64 = 8;

/// The limits of profiles, so that the result can be read.
const CYLINDERS_MAX: i64 = limits::CYLINDERS_MAX as i64;
const SECTORS_PER_MINUTE_MAX: i64 = limits::SECTORS_PER_MINUTE_MAX as i64;
const SECTORS_PER_TRACK_MAX: i64 = limits::SECTORS_PER_TRACK_MAX as i64;

pub(crate) struct Layout {
    mapping: i64,
    sparing: i64,
    range: i64,
    zones: Vec<Zone>,
}

struct Zone {
    first: i64,
    cylinders: i64,
    sectors_per_track: i64,
    skews: [i64; 3],
    reserved: i64,
    spares: i64,
    slips: Vec<u64>,
    defects: BTreeMap<u64, u64>,
    at: FilePosition,
}

impl Layout {
    /// Reads `dm_layout_g1`.
    pub(crate) fn try_new(
        document: &Document,
        params: &mut Params,
        (surfaces, rpm): (i64, i64),
        notes: &mut Notes,
    ) -> Result<Self, ImportError> {
        if params.base() != "dm_layout_g1" {
            let problem = format!("the layout model {} is not supported", params.base());
            return Err(ImportError::at(params.at(), problem, "dm_layout_g1"));
        }
        let mapping = params.need_whole("LBN-to-PBN mapping scheme", 0, 2)?;
        let sparing = params.need_whole("Sparing scheme used", 0, 10)?;
        let range = params.whole("Rangesize for sparing", 1, CYLINDERS_MAX)?.unwrap_or(1);
        let revolutions = in_revolutions(params)?;
        let list = params.get("Zones").ok_or_else(|| params.missing("Zones"))?;
        let Kind::List(values) = &list.kind else { return Err(crate::params::wrong("Zones", list, "a list of zones")) };
        if values.len() > ZONES_MAX {
            let problem = format!("{} zones", values.len());
            return Err(ImportError::at(&list.at, problem, format!("at most {ZONES_MAX} zones")));
        }
        let mut layout = Self { mapping, sparing, range, zones: Vec::with_capacity(values.len()) };
        for value in values {
            let zone = zone(document, value, (surfaces, rpm), (sparing, revolutions), notes)?;
            if layout.zones.last().is_some_and(|before| zone.first < before.first + before.cylinders) {
                let problem = format!("the zone from cylinder {} starts within or before the one before", zone.first);
                return Err(ImportError::at(&zone.at, problem, "zones in order of their cylinders"));
            }
            if layout.sectors_of(&zone, surfaces) <= 0 {
                return Err(ImportError::at(&zone.at, "the zone holds no sector", "fewer spares and reserved sectors"));
            }
            layout.zones.push(zone);
        }
        if layout.zones.is_empty() {
            return Err(ImportError::at(&list.at, "no zones", "at least one dm_layout_g1_zone"));
        }
        Ok(layout)
    }

    /// One more than the last cylinder of all zones.
    pub(crate) fn cylinders(&self) -> i64 {
        self.zones.last().map_or(0, |zone| zone.first + zone.cylinders)
    }

    /// Sectors of 512 bytes that a host can address.
    pub(crate) fn sectors(&self, surfaces: i64) -> i64 {
        self.zones.iter().map(|zone| self.sectors_of(zone, surfaces)).sum()
    }

    /// Sectors of a zone that hold data, by the sparing scheme. The last, shorter range of a zone has no spares.
    fn sectors_of(&self, zone: &Zone, surfaces: i64) -> i64 {
        let slips = zone.slips.len() as i64;
        let spared = match self.sparing {
            1 => zone.spares * zone.sectors_per_track,
            2 | 5 => zone.spares * zone.cylinders,
            3 => zone.spares * zone.cylinders * surfaces,
            4 | 6 => zone.spares * zone.cylinders + slips,
            7 => slips,
            8 => zone.spares * (zone.cylinders / self.range),
            9 => zone.spares,
            10 => zone.spares + slips,
            _ => 0,
        };
        zone.cylinders * surfaces * zone.sectors_per_track - zone.reserved - spared
    }

    /// `mapping` and `sparing`, for the top of the profile.
    pub(crate) fn write_scheme(&self, out: &mut String) {
        _ = writeln!(out, "mapping = \"{}\"", MAPPINGS[self.mapping as usize]);
        _ = writeln!(out, "sparing = \"{}\"", SPARINGS[self.sparing as usize]);
        if self.sparing == RANGE {
            _ = writeln!(out, "sparing_range = {}", self.range);
        }
    }

    /// All `[[zones]]`.
    pub(crate) fn write_zones(&self, out: &mut String) {
        for zone in &self.zones {
            let [track, cylinder, offset] = zone.skews;
            _ = writeln!(out, "\n[[zones]]  # {}:{}", zone.at.file_name(), zone.at.line);
            _ = writeln!(out, "first_cylinder = {}\ncylinders = {}", zone.first, zone.cylinders);
            _ = writeln!(out, "sectors_per_track = {}", zone.sectors_per_track);
            _ = writeln!(out, "track_skew = {track}\ncylinder_skew = {cylinder}");
            for (key, value) in [("offset", offset), ("reserved", zone.reserved), ("spares", zone.spares)] {
                if value != 0 {
                    _ = writeln!(out, "{key} = {value}");
                }
            }
            if !zone.slips.is_empty() {
                write_list(out, "slips", &zone.slips.iter().map(u64::to_string).collect::<Vec<_>>());
            }
            if !zone.defects.is_empty() {
                let pairs = zone.defects.iter().map(|(bad, other)| format!("[{bad}, {other}]"));
                write_list(out, "defects", &pairs.collect::<Vec<_>>());
            }
        }
    }
}

fn in_revolutions(params: &mut Params) -> Result<Option<bool>, ImportError> {
    const ALLOWED: &str = "sectors, revolutions";
    match params.word("Skew units", ALLOWED)? {
        None => Ok(None),
        Some(("sectors", _)) => Ok(Some(false)),
        Some(("revolutions", _)) => Ok(Some(true)),
        Some((other, at)) => Err(ImportError::at(at, format!("Skew units = {other}"), ALLOWED)),
    }
}

fn zone(
    document: &Document,
    value: &Value,
    (surfaces, rpm): (i64, i64),
    (sparing, revolutions): (i64, Option<bool>),
    notes: &mut Notes,
) -> Result<Zone, ImportError> {
    let Kind::Block(block) = &value.kind else {
        return Err(crate::params::wrong("Zones", value, "blocks dm_layout_g1_zone { ... }"));
    };
    let params = &mut Params::try_new(document, block)?;
    if params.base() != "dm_layout_g1_zone" {
        return Err(ImportError::at(params.at(), format!("a zone of type {}", params.base()), "dm_layout_g1_zone"));
    }
    let first = params.need_whole("First cylinder number", 0, CYLINDERS_MAX - 1)?;
    let last = params.need_whole("Last cylinder number", first, CYLINDERS_MAX - 1)?;
    let most = (SECTORS_PER_MINUTE_MAX / rpm).min(SECTORS_PER_TRACK_MAX);
    let sectors_per_track = params.need_whole("Blocks per track", 1, most)?;
    let revolutions = in_revolutions(params)?.or(revolutions).unwrap_or(false);
    let mut skews = [0; 3];
    for (skew, name) in
        skews.iter_mut().zip(["Skew for track switch", "Skew for cylinder switch", "Offset of first block"])
    {
        let number = params.real(name, -1e9, 1e9)?.unwrap_or(0.0);
        let sectors = if revolutions { (number * sectors_per_track as f64).round() } else { number.trunc() };
        *skew = (sectors as i64).rem_euclid(sectors_per_track);
    }
    let cylinders = last - first + 1;
    let in_zone = cylinders * surfaces * sectors_per_track;
    let reserved = params.whole("Empty space at zone front", 0, in_zone)?.unwrap_or(0);
    let mut spares = params.whole("Number of spares", 0, in_zone)?.unwrap_or(0);
    let counted = if sparing == TRACKS { cylinders * surfaces } else { in_zone };
    let (mut slips, mut defects) = bad_places(params, counted as u64, notes)?;
    if spares > 0 && matches!(sparing, NONE | END) {
        notes.unused(&format!("Number of spares = {spares}: this sparing scheme has none in its zones"));
        spares = 0;
    }
    if sparing == NONE && (!slips.is_empty() || !defects.is_empty()) {
        notes.unused("slips and defects: without spares there are none, as in DiskSim");
        (slips, defects) = (Vec::new(), BTreeMap::new());
    }
    leftover(params, notes);
    Ok(Zone { first, cylinders, sectors_per_track, skews, reserved, spares, slips, defects, at: block.at.clone() })
}

/// Slips, sorted, and defects by the bad sector, all below `counted`.
fn bad_places(
    params: &mut Params,
    counted: u64,
    notes: &mut Notes,
) -> Result<(Vec<u64>, BTreeMap<u64, u64>), ImportError> {
    let mut slips = naturals("slips", params.list("slips")?)?;
    slips.sort_unstable();
    let given = slips.len();
    slips.dedup();
    slips.retain(|slip| *slip < counted);
    let list = params.list("defects")?;
    let flat = naturals("defects", list)?;
    if flat.len() % 2 == 1 {
        return Err(ImportError::at(&list[0].at, "an odd number of defects", "pairs: the bad place, its replacement"));
    }
    let pairs = flat.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let moved: Vec<(u64, u64)> = pairs.filter(|(bad, other)| bad != other).collect();
    let inside = moved.iter().filter(|(bad, other)| *bad < counted && *other < counted);
    let defects: BTreeMap<u64, u64> = inside.copied().collect();
    let dropped = given - slips.len() + moved.len() - defects.len();
    if dropped > 0 {
        notes.warn(params.at(), &format!("{dropped} slips or defects passed over: twice, or beyond the zone"));
    }
    Ok((slips, defects))
}
