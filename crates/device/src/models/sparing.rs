//! Spare, slipped and reserved sectors: which physical sector of a zone holds a logical one.
//!
//! A drive sets sectors aside for those that turn out bad: so many at the end (or the front) of every track,
//! cylinder, range of cylinders or zone, its *region*. A sector found bad in the factory is *slipped*: what
//! follows moves up by one, into the region's spares, or, in the schemes that say so, to the end of the zone.
//! The distance between a logical and its physical sector is then constant between slips: it is kept as a sorted
//! list of steps, and a look-up is two divisions and a binary search, or nothing for a zone without spares.
//!
//! The schemes are those of DiskSim's disk model (Bucy and others, CMU-PDL-08-101, parameter "Sparing scheme used"):
//! extracted drives come with them. Differences: spares at a cylinder's front are counted in both directions,
//! and a region with more slips than spares spills into the next one instead of failing.

use schemars::JsonSchema;
use serde::Deserialize;

/// The names of the schemes in a profile.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Named {
    #[default]
    None,
    Tracks,
    Track,
    Cylinder,
    CylinderSlipToEnd,
    CylinderFront,
    CylinderFrontSlipToEnd,
    End,
    /// Completed by its length, `sparing_range`.
    Range,
    Zone,
    ZoneSlipToEnd,
}

/// Where a drive keeps its spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// No spares; slips are passed over.
    None,
    /// Whole tracks at the end of the zone; slips count tracks.
    Tracks,
    /// At the end of every track.
    Track,
    /// Of every cylinder.
    Cylinder {
        /// At its front rather than its end.
        front: bool,
        /// Slips move sectors to the end of the zone, not into the spares.
        slip_to_end: bool,
    },
    /// At the end of so many cylinders.
    Range(u32),
    /// At the end of the zone.
    Zone {
        /// Slips do not use the spares.
        slip_to_end: bool,
    },
    /// At the end of the drive: zones have none, slips move what follows in the zone.
    End,
}

impl Scheme {
    /// The scheme of a name; `range` cylinders, where it has ranges.
    pub(crate) fn of(name: Named, range: u32) -> Self {
        match name {
            Named::None => Scheme::None,
            Named::Tracks => Scheme::Tracks,
            Named::Track => Scheme::Track,
            Named::Cylinder => Scheme::Cylinder { front: false, slip_to_end: false },
            Named::CylinderSlipToEnd => Scheme::Cylinder { front: false, slip_to_end: true },
            Named::CylinderFront => Scheme::Cylinder { front: true, slip_to_end: false },
            Named::CylinderFrontSlipToEnd => Scheme::Cylinder { front: true, slip_to_end: true },
            Named::End => Scheme::End,
            Named::Range => Scheme::Range(range),
            Named::Zone => Scheme::Zone { slip_to_end: false },
            Named::ZoneSlipToEnd => Scheme::Zone { slip_to_end: true },
        }
    }

    fn slips_to_end(self) -> bool {
        matches!(
            self,
            Scheme::None
                | Scheme::End
                | Scheme::Cylinder { slip_to_end: true, .. }
                | Scheme::Zone { slip_to_end: true }
        )
    }

    /// Whether slips also move the angle of the tracks that follow.
    pub fn slips_turn_tracks(self) -> bool {
        matches!(self, Scheme::Track | Scheme::Cylinder { .. })
    }
}

/// The size of a zone, in physical sectors.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Of a track.
    pub track: u64,
    /// Of a cylinder.
    pub cylinder: u64,
    /// Of the zone.
    pub zone: u64,
}

/// From one position on, physical sectors lie `shift` further.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// First position to which the step applies.
    from: u64,
    /// Positions of the region before it, where steps end with their region.
    region: u64,
    /// Sectors passed over, this slip included.
    shift: u64,
    /// Where the slip lies.
    physical: u64,
}

/// The map of one zone.
///
/// A *position* counts the sectors that hold data or are reserved, without spares and slips.
#[derive(Debug, Clone)]
pub struct Sparing {
    extent: Extent,
    reserved: u64,
    /// Physical sectors of a region, and those of them that are not spare.
    region: u64,
    data: u64,
    front: u64,
    slips_to_end: bool,
    slip_sectors: u64,
    steps: Vec<Step>,
    /// Whether position and physical sector are the same everywhere.
    identity: bool,
    /// Logical sectors of the zone.
    sectors: u64,
}

impl Sparing {
    /// The map of a zone of `extent` with `spares` of each region, `reserved` sectors at the front and the
    /// physical `slips`, sorted. `None` where nothing is left for data.
    #[must_use]
    pub fn new(scheme: Scheme, extent: Extent, spares: u64, reserved: u64, slips: &[u64]) -> Option<Self> {
        let region = match scheme {
            Scheme::Track => extent.track,
            Scheme::Cylinder { .. } => extent.cylinder,
            Scheme::Range(cylinders) => extent.cylinder * u64::from(cylinders),
            Scheme::None | Scheme::Tracks | Scheme::Zone { .. } | Scheme::End => extent.zone,
        };
        let slip_sectors = if scheme == Scheme::Tracks { extent.track } else { 1 };
        let spare = spares.checked_mul(slip_sectors)?;
        let data = region.checked_sub(spare).filter(|data| *data > 0)?;
        let slips_to_end = scheme.slips_to_end();
        let front = if matches!(scheme, Scheme::Cylinder { front: true, .. }) { spare } else { 0 };
        let mut map = Self {
            extent,
            reserved,
            region,
            data,
            front,
            slips_to_end,
            slip_sectors,
            steps: Vec::new(),
            identity: true,
            sectors: 0,
        };
        map.add_slips(slips);
        map.identity = map.steps.is_empty() && data == region;
        // A last range that is not whole has no spares.
        let spared = extent.zone / region * spare;
        let lost = if slips_to_end { map.steps.last().map_or(0, |step| step.shift) } else { 0 };
        map.sectors = extent.zone.checked_sub(spared + lost + reserved).filter(|sectors| *sectors > 0)?;
        Some(map)
    }

    fn add_slips(&mut self, slips: &[u64]) {
        for slip in slips {
            let physical = slip * self.slip_sectors;
            let (index, within) = (physical / self.region, physical % self.region);
            let Some(rest) = within.checked_sub(self.front) else { continue };
            let region = index * self.data;
            let before = match self.steps.last() {
                Some(step) if self.slips_to_end || step.region == region => step.shift,
                _ => 0,
            };
            // Slips among the spares move nothing, unless earlier slips have moved data there.
            let reach = if self.slips_to_end { self.data } else { self.data + before };
            if rest >= reach {
                continue;
            }
            let from = region + rest - before;
            self.steps.push(Step { from, region, shift: before + self.slip_sectors, physical });
        }
    }

    /// Logical sectors of the zone.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Sectors passed over before `position`, by the slips of its region or of the zone.
    #[inline]
    fn shift(&self, position: u64, region: u64) -> u64 {
        let index = self.steps.partition_point(|step| step.from <= position);
        match index.checked_sub(1).map(|index| self.steps[index]) {
            Some(step) if self.slips_to_end || step.region == region => step.shift,
            _ => 0,
        }
    }

    /// The physical sector of a logical one, both counted from the zone's first.
    #[inline]
    #[must_use]
    pub fn physical(&self, sector: u64) -> u64 {
        let position = sector + self.reserved;
        if self.identity {
            position
        } else {
            self.displaced(position)
        }
    }

    /// The physical sector of a position in a zone with spares or slips.
    fn displaced(&self, position: u64) -> u64 {
        let physical = if self.slips_to_end {
            let moved = position + self.shift(position, 0);
            self.spread(moved / self.data, moved % self.data)
        } else if self.data == self.region {
            position + self.shift(position, 0)
        } else {
            let (index, rest) = (position / self.data, position % self.data);
            self.spread(index, rest) + self.shift(position, index * self.data)
        };
        physical.min(self.extent.zone - 1)
    }

    #[inline]
    fn spread(&self, index: u64, rest: u64) -> u64 {
        index * self.region + self.front + rest
    }

    /// How many logical sectors lie before the physical one.
    #[must_use]
    pub fn rank(&self, physical: u64) -> u64 {
        let position = if self.identity {
            physical
        } else {
            let (index, within) = (physical / self.region, physical % self.region);
            let whole = index * self.data;
            let held = within.saturating_sub(self.front);
            if self.slips_to_end {
                let position = whole + held.min(self.data);
                position - self.slipped(physical, None)
            } else {
                whole + held.saturating_sub(self.slipped(physical, Some(whole))).min(self.data)
            }
        };
        position.saturating_sub(self.reserved).min(self.sectors)
    }

    /// Slipped sectors before the physical one, of one region or of all.
    fn slipped(&self, physical: u64, region: Option<u64>) -> u64 {
        let index = self.steps.partition_point(|step| step.physical < physical);
        match index.checked_sub(1).map(|index| self.steps[index]) {
            Some(step) if region.is_none_or(|region| region == step.region) => {
                step.shift - self.slip_sectors + (physical - step.physical).min(self.slip_sectors)
            }
            _ => 0,
        }
    }
}
