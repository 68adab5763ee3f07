//! Zones, tracks and skews: where a sector lies and how far a continuous read has come when it gets there.
//!
//! Sectors are numbered along a track, then over the surfaces of a cylinder, then over cylinders. The first
//! sector of a track lies `track_skew` sectors behind the end of the one before (`cylinder_skew` on a new
//! cylinder), so that a head that switches meets it as it comes. One number then says both where a sector is and
//! when a stream reaches it: its *path*, the count of sectors that pass the head from the zone's first sector
//! to this one when a read never pauses, gaps included. Path mod sectors-per-track is the angle; the difference
//! of two paths is the time between them in sectors. Where a skew is shorter than the switch, the gap is that
//! skew and whole turns, as on a real drive that has just missed the sector.

use headstart_types::Nanos;

use super::rotation::Rotation;

/// A run of cylinders with the same number of sectors a track.
#[derive(Debug, Clone)]
pub struct Zone {
    /// First sector of the zone.
    pub first: u64,
    /// The sector after its last.
    pub end: u64,
    /// First cylinder.
    pub first_cylinder: u32,
    /// Turning, in this zone's sectors.
    pub rotation: Rotation,
    track_sectors: u64,
    cylinder_sectors: u64,
    /// Sectors that pass between the end of a track and the start of the next of the same cylinder.
    track_gap: u64,
    /// Path of a track with the gap after it.
    track_path: u64,
    /// Path of a cylinder with all its gaps.
    cylinder_path: u64,
    surfaces: u64,
}

/// What a profile says of a zone.
#[derive(Debug, Clone, Copy)]
pub struct ZoneShape {
    /// Cylinders of the zone.
    pub cylinders: u32,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// Offset of a track's first sector against the track before, in sectors.
    pub track_skew: u32,
    /// The same from the last track of a cylinder to the first of the next.
    pub cylinder_skew: u32,
}

/// Where a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Cylinder, over the whole drive.
    pub cylinder: u32,
    /// Track within the cylinder.
    pub surface: u32,
}

impl Zone {
    /// The zone that starts at sector `first` and cylinder `first_cylinder` of a drive with `surfaces` tracks a
    /// cylinder. Switching heads takes `head_switch`, moving to the next cylinder `next_cylinder`.
    #[must_use]
    pub fn new(
        (first, first_cylinder): (u64, u32),
        shape: ZoneShape,
        (rpm, surfaces): (u32, u32),
        (head_switch, next_cylinder): (Nanos, Nanos),
    ) -> Self {
        let rotation = Rotation::new(rpm, shape.sectors_per_track);
        let track_sectors = u64::from(shape.sectors_per_track);
        let surfaces = u64::from(surfaces);
        let gap = |skew: u32, switch: Nanos| {
            let missed = rotation.least(switch).saturating_sub(u64::from(skew));
            u64::from(skew) + missed.div_ceil(track_sectors) * track_sectors
        };
        let track_gap = gap(shape.track_skew, head_switch);
        let cylinder_gap = gap(shape.cylinder_skew, next_cylinder.max(head_switch));
        let cylinder_sectors = track_sectors * surfaces;
        Self {
            first,
            end: first + cylinder_sectors * u64::from(shape.cylinders),
            first_cylinder,
            rotation,
            track_sectors,
            cylinder_sectors,
            track_gap,
            track_path: track_sectors + track_gap,
            cylinder_path: cylinder_sectors + (surfaces - 1) * track_gap + cylinder_gap,
            surfaces,
        }
    }

    /// Path to the start of `sector`, and where it lies. The caller guarantees that it lies in this zone.
    #[inline]
    #[must_use]
    pub fn locate(&self, sector: u64) -> (u64, Place) {
        let within = sector - self.first;
        let (cylinder, rest) = (within / self.cylinder_sectors, within % self.cylinder_sectors);
        let surface = rest / self.track_sectors;
        let path = cylinder * self.cylinder_path + rest + surface * self.track_gap;
        (path, Place { cylinder: self.first_cylinder + cylinder as u32, surface: surface as u32 })
    }

    /// Path to the start of `sector`.
    #[inline]
    #[must_use]
    pub fn path(&self, sector: u64) -> u64 {
        self.locate(sector).0
    }

    /// Where the head is at `path`; within a gap it still counts as on the track before.
    #[must_use]
    pub fn place_at(&self, path: u64) -> Place {
        let (cylinder, rest) = (path / self.cylinder_path, path % self.cylinder_path);
        let surface = (rest / self.track_path).min(self.surfaces - 1);
        Place { cylinder: self.first_cylinder + cylinder as u32, surface: surface as u32 }
    }
}
