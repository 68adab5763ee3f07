//! Zones, tracks and skews: where a sector lies, and how far a continuous read has come when it reaches it.
//!
//! Sectors are numbered along a track, then over the surfaces of a cylinder, then over cylinders; some drives reverse
//! the order of surfaces on every other cylinder, so that moving to the next cylinder needs no head switch. The first
//! sector of a track lies `track_skew` sectors after the end of the previous one (`cylinder_skew` on a new cylinder),
//! so that it arrives just after the head has switched. One number then tells both where a sector is and when a stream
//! reaches it: its *path*, the count of sectors, including gaps, that pass the head from the zone's first sector to
//! this one in a read without pauses. Path modulo sectors per track is the angle; the difference of two paths is the
//! time between them in sectors. If a skew is shorter than the switch, the gap is the skew plus whole revolutions, as
//! on a real drive that has just missed the sector. Writes settle longer than reads, so they have their own gaps and
//! paths; the angles are the same.
//!
//! Sectors that hold no data (spares, slips: `sparing.rs`) pass the head like others, and a switch does not begin
//! before they have passed; a profile has few spares per track or cylinder. A passage breaks at a sector that was
//! remapped in the field, which lies elsewhere, and after a slipped track, over which the head moves: see
//! [`Zone::run_end`].

use headstart_types::{keys, Nanos};
use schemars::JsonSchema;
use serde::Deserialize;

use super::rotation::Rotation;
use super::sparing::{Extent, Scheme, Sparing};
use crate::limits::{CYLINDERS_MAX, SECTORS_PER_TRACK_MAX};

/// The order of surfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// The same on every cylinder.
    #[default]
    Forward,
    /// Reversed on odd cylinders, counted from the zone's first.
    Serpentine,
    /// Reversed on odd cylinders, counted from the drive's first.
    SerpentineCylinder,
}

/// Maximum of the sector numbers in a zone's description.
const SECTORS_MAX: u64 = 1 << 40;

keys! {
    /// A zone as the profile describes it.
    pub(crate) struct ZoneShape {
        /// Number of cylinders.
        #[schemars(range(min = 1, max = CYLINDERS_MAX))]
        pub cylinders: u32,
        /// Sectors per track.
        #[schemars(range(min = 1, max = SECTORS_PER_TRACK_MAX))]
        pub sectors_per_track: u32,
        /// Offset of a track's first sector relative to that of the previous track, in sectors.
        pub track_skew: u32,
        /// The same offset between the last track of a cylinder and the first track of the next one, in sectors.
        pub cylinder_skew: u32,
        /// First cylinder. Default: the cylinder after the previous zone.
        #[schemars(range(max = CYLINDERS_MAX))]
        pub first_cylinder: Option<u32>,
        /// Angle of the first sector, in sectors.
        #[serde(default)]
        pub offset: u32,
        /// Number of sectors at the start of the zone that hold no data.
        #[serde(default)]
        #[schemars(range(max = SECTORS_MAX))]
        pub reserved: u64,
        /// Number of spares per region.
        #[serde(default)]
        #[schemars(range(max = SECTORS_MAX))]
        pub spares: u64,
        /// Physical sectors that are skipped (slipped).
        #[serde(default)]
        #[schemars(inner(range(max = SECTORS_MAX)))]
        pub slips: Vec<u64>,
        /// Physical sectors that were remapped in the field: pairs of bad sector and replacement.
        #[serde(default)]
        #[schemars(inner(inner(range(max = SECTORS_MAX))))]
        pub defects: Vec<[u64; 2]>
    }
}

impl ZoneShape {
    /// The cylinder after its last, once its first cylinder is set.
    pub fn end(&self) -> u32 {
        self.first_cylinder.unwrap_or(0).saturating_add(self.cylinders)
    }
}

/// The common parameters of a drive's zones.
#[derive(Debug, Clone, Copy)]
pub struct DriveShape {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Tracks per cylinder.
    pub surfaces: u32,
    /// Order of the surfaces.
    pub mapping: Mapping,
    /// Where the spares are.
    pub sparing: Scheme,
    /// Times of a head switch, of a move by one cylinder, and of both at once; for reads, then for writes.
    pub switches: [[Nanos; 2]; 2],
}

/// A head position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadPosition {
    /// Cylinder, counted over the whole drive.
    pub cylinder: u32,
    /// Track within the cylinder.
    pub surface: u32,
}

/// Reads or writes: their gaps differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read = 0,
    Write = 1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gaps {
    /// Sectors that pass between the end of a track and the start of the next in the same cylinder.
    track_gap: u64,
    /// Path length of a track and the gap after it.
    track_path: u64,
    /// Path length of a cylinder with all its gaps.
    cylinder_path: u64,
}

/// A run of cylinders with the same number of sectors per track.
#[derive(Debug, Clone)]
pub struct Zone {
    /// First sector of the zone.
    pub first: u64,
    /// The sector after its last.
    pub end: u64,
    pub first_cylinder: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Rotation, in units of this zone's sectors.
    pub rotation: Rotation,
    /// Sectors per track.
    pub track_sectors: u64,
    cylinder_sectors: u64,
    gaps: [Gaps; 2],
    surfaces: u64,
    mapping: Mapping,
    offset: u64,
    sparing: Sparing,
    /// Physical slips if they shift the angle of the following tracks, and the modulus of the shift.
    turning: (Vec<u64>, u64),
    /// (sector, physical sector) of the remapped sectors, sorted by sector.
    remapped: Vec<(u64, u64)>,
    /// Sectors at which a passage breaks, ascending: the remapped sectors, those after them, those after slipped
    /// tracks.
    breaks: Vec<u64>,
}

impl Zone {
    /// The zone that starts at sector `first` of a drive. `None` if its spares leave no sector for data.
    #[must_use]
    pub fn new(first: u64, shape: &ZoneShape, drive: &DriveShape) -> Option<Self> {
        let rotation = Rotation::new(drive.rpm, shape.sectors_per_track);
        let track_sectors = u64::from(shape.sectors_per_track);
        let surfaces = u64::from(drive.surfaces);
        let cylinder_sectors = track_sectors * surfaces;
        let gap = |skew: u32, switch: Nanos| {
            let missed = rotation.least(switch).saturating_sub(u64::from(skew));
            u64::from(skew) + missed.div_ceil(track_sectors) * track_sectors
        };
        let gaps = drive.switches.map(|[head, cylinder]| {
            let track_gap = gap(shape.track_skew, head);
            let cylinder_gap = gap(shape.cylinder_skew, cylinder);
            Gaps {
                track_gap,
                track_path: track_sectors + track_gap,
                cylinder_path: cylinder_sectors + (surfaces - 1) * track_gap + cylinder_gap,
            }
        });
        let zone_sectors = cylinder_sectors * u64::from(shape.cylinders);
        let extent = Extent { track: track_sectors, cylinder: cylinder_sectors, zone: zone_sectors };
        let sparing = Sparing::new(drive.sparing, extent, shape.spares, shape.reserved, &shape.slips)?;
        let turning = match drive.sparing {
            scheme if !scheme.slips_turn_tracks() => (Vec::new(), 1),
            Scheme::Track => (shape.slips.clone(), track_sectors),
            _ => (shape.slips.clone(), cylinder_sectors),
        };
        let end = first + sparing.sectors();
        let mut zone = Self {
            first,
            end,
            first_cylinder: shape.first_cylinder.unwrap_or(0),
            cylinders: shape.cylinders,
            rotation,
            track_sectors,
            cylinder_sectors,
            gaps,
            surfaces,
            mapping: drive.mapping,
            offset: u64::from(shape.offset),
            sparing,
            turning,
            remapped: Vec::new(),
            breaks: Vec::new(),
        };
        let tracks = drive.sparing == Scheme::Tracks;
        zone.remap(&shape.defects, if tracks { track_sectors } else { 1 });
        zone.breaks = zone.remapped.iter().flat_map(|(sector, _)| [*sector, sector + 1]).collect();
        if tracks {
            let behind = |slip: &u64| first + zone.sparing.rank((slip + 1) * track_sectors);
            zone.breaks.extend(shape.slips.iter().map(behind).collect::<Vec<_>>());
        }
        zone.breaks.sort_unstable();
        zone.breaks.dedup();
        Some(zone)
    }

    fn remap(&mut self, defects: &[[u64; 2]], unit: u64) {
        for [bad, replacement] in defects {
            for index in 0..unit {
                let (bad, replacement) = (bad * unit + index, replacement * unit + index);
                let sector = self.sparing.rank(bad);
                if bad != replacement && sector < self.sparing.sectors() && self.sparing.physical(sector) == bad {
                    self.remapped.push((self.first + sector, replacement));
                }
            }
        }
        self.remapped.sort_unstable();
        self.remapped.dedup_by_key(|(sector, _)| *sector);
    }

    /// The physical sector, counted from the zone's first.
    #[inline]
    fn physical(&self, sector: u64) -> u64 {
        if !self.remapped.is_empty() {
            if let Ok(index) = self.remapped.binary_search_by_key(&sector, |(sector, _)| *sector) {
                return self.remapped[index].1;
            }
        }
        self.sparing.physical(sector - self.first)
    }

    /// Sectors by which preceding slips have shifted the angle of a physical sector's track.
    #[inline]
    fn turned(&self, physical: u64) -> u64 {
        let (slips, unit) = &self.turning;
        if slips.is_empty() {
            return 0;
        }
        let cutoff = physical / unit * unit;
        slips.partition_point(|slip| *slip < cutoff) as u64
    }

    #[inline]
    fn place(&self, cylinder: u64, surface: u64) -> HeadPosition {
        let cylinder = self.first_cylinder + cylinder as u32;
        let backward = match self.mapping {
            Mapping::Forward => false,
            Mapping::Serpentine => (cylinder - self.first_cylinder) % 2 == 1,
            Mapping::SerpentineCylinder => cylinder % 2 == 1,
        };
        let surface = if backward { self.surfaces - 1 - surface } else { surface };
        HeadPosition { cylinder, surface: surface as u32 }
    }

    /// Path to the start of `sector`, and its cylinder and track within the zone.
    #[inline]
    fn way(&self, sector: u64, access: Access) -> (u64, u64, u64) {
        let physical = self.physical(sector);
        let gaps = &self.gaps[access as usize];
        let (cylinder, rest) = (physical / self.cylinder_sectors, physical % self.cylinder_sectors);
        let surface = rest / self.track_sectors;
        let path = self.offset + cylinder * gaps.cylinder_path + rest + surface * gaps.track_gap;
        (path + self.turned(physical), cylinder, surface)
    }

    /// Path to the start of `sector`, and its position. The caller guarantees that it lies in this zone.
    #[inline]
    #[must_use]
    pub fn locate(&self, sector: u64, access: Access) -> (u64, HeadPosition) {
        let (path, cylinder, surface) = self.way(sector, access);
        (path, self.place(cylinder, surface))
    }

    /// Path of a read to the start of `sector`.
    #[inline]
    #[must_use]
    pub fn path(&self, sector: u64) -> u64 {
        self.way(sector, Access::Read).0
    }

    /// Cylinder and track within the zone at a read's `path`, and the sectors into that track including its gap.
    fn track_at(&self, path: u64) -> (u64, u64, u64) {
        let gaps = &self.gaps[Access::Read as usize];
        let within = path.saturating_sub(self.offset);
        let (mut cylinder, mut rest) = (within / gaps.cylinder_path, within % gaps.cylinder_path);
        if !self.turning.0.is_empty() {
            // The shift by slips depends on the cylinder, so it is subtracted iteratively until nothing changes.
            for _ in 0..3 {
                let surface = (rest / gaps.track_path).min(self.surfaces - 1);
                let track = cylinder * self.cylinder_sectors + surface * self.track_sectors;
                let straight = within.saturating_sub(self.turned(track));
                (cylinder, rest) = (straight / gaps.cylinder_path, straight % gaps.cylinder_path);
            }
        }
        let surface = (rest / gaps.track_path).min(self.surfaces - 1);
        (cylinder.min(u64::from(self.cylinders) - 1), surface, rest - surface * gaps.track_path)
    }

    /// The head's position at a read's `path`; within a gap, the previous track.
    #[must_use]
    pub fn place_at(&self, path: u64) -> HeadPosition {
        let (cylinder, surface, _) = self.track_at(path);
        self.place(cylinder, surface)
    }

    /// The sector after the last that has passed at a read's `path`, and the number of sectors since the end of its
    /// track.
    #[must_use]
    pub fn passed_at(&self, path: u64) -> (u64, u64) {
        let (cylinder, surface, into) = self.track_at(path);
        let track = cylinder * self.cylinder_sectors + surface * self.track_sectors;
        let passed = track + into.min(self.track_sectors);
        (self.first + self.sparing.rank(passed), into.saturating_sub(self.track_sectors))
    }

    /// The first sector on the track of `sector`, and the one after the last.
    #[must_use]
    pub fn track_of(&self, sector: u64) -> (u64, u64) {
        let track = self.sparing.physical(sector - self.first) / self.track_sectors * self.track_sectors;
        let rank = |physical| self.first + self.sparing.rank(physical);
        (rank(track), rank(track + self.track_sectors))
    }

    /// Calls `each` for the sectors of `from..end` that do not directly follow the previous one, with their paths: the
    /// first sector, the first of each track, and those after slips. The caller guarantees that they lie in this zone
    /// and that a passage over them does not break.
    pub fn first_of_runs(&self, from: u64, end: u64, access: Access, mut each: impl FnMut(u64, u64)) {
        let mut first = from;
        while first < end {
            let next = self.track_of(first).1.clamp(first + 1, end);
            let (start, last) = (self.way(first, access).0, self.way(next - 1, access).0);
            each(first, start);
            self.gaps_between((first, start), (next - 1, last), access, &mut each);
            first = next;
        }
    }

    /// The sectors after `first` up to `last`, on one track, that follow a slip.
    fn gaps_between(&self, first: (u64, u64), last: (u64, u64), access: Access, each: &mut impl FnMut(u64, u64)) {
        let sectors = last.0 - first.0;
        if last.1 - first.1 == sectors {
            return;
        }
        if sectors == 1 {
            return each(last.0, last.1);
        }
        let middle = first.0 + sectors / 2;
        let middle = (middle, self.way(middle, access).0);
        self.gaps_between(first, middle, access, each);
        self.gaps_between(middle, last, access, each);
    }

    /// The sector after the last that shares a cylinder with `sector`.
    #[must_use]
    pub fn cylinder_end(&self, sector: u64) -> u64 {
        let next = (self.sparing.physical(sector - self.first) / self.cylinder_sectors + 1) * self.cylinder_sectors;
        self.first + self.sparing.rank(next)
    }

    /// Offset of `sector` within its track, in physical sectors.
    #[must_use]
    pub fn within_track(&self, sector: u64) -> u64 {
        self.physical(sector) % self.track_sectors
    }

    /// The first sector at or after offset `within`, in physical sectors, on the track of `sector`.
    #[must_use]
    pub fn sector_within(&self, sector: u64, within: u64) -> u64 {
        let track = self.sparing.physical(sector - self.first) / self.track_sectors * self.track_sectors;
        self.first + self.sparing.rank(track + within)
    }

    /// The end of a passage from `sector` on: the zone's end, or a break before it.
    #[inline]
    #[must_use]
    pub fn run_end(&self, sector: u64) -> u64 {
        if self.breaks.is_empty() {
            return self.end;
        }
        let index = self.breaks.partition_point(|sector_after| *sector_after <= sector);
        self.breaks.get(index).map_or(self.end, |sector_after| (*sector_after).min(self.end))
    }

    /// Rate of a read of the whole zone in bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        let path = self.gaps[Access::Read as usize].cylinder_path * u64::from(self.cylinders);
        let seconds = path as f64 / self.rotation.per_second();
        (self.end - self.first) as f64 * crate::SECTOR_BYTES as f64 / seconds
    }
}
