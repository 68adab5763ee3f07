//! Spare, slipped and reserved sectors: which physical sector of a zone holds a logical one.
//!
//! A drive reserves sectors to replace bad ones: a number at the end (or the front) of every track, cylinder, range of
//! cylinders or zone, its *region*. A sector found bad in the factory is *slipped*: the following sectors move up by
//! one, into the region's spares, or, in some schemes, to the end of the zone. The distance between a logical and its
//! physical sector is then constant between slips: it is kept as a sorted list of steps with an index. A look-up is two
//! divisions and about one step, or nothing for a zone without spares.
//!
//! The schemes are those of DiskSim's disk model (Bucy and others, CMU-PDL-08-101, parameter "Sparing scheme used"),
//! which extracted drives use. Differences: spares at a cylinder's front are counted in both directions, and a region
//! with more slips than spares spills into the next one instead of failing.

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
    /// Requires `sparing_range`.
    Range,
    Zone,
    ZoneSlipToEnd,
}

/// Where a drive keeps its spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// No spares; slips are skipped.
    None,
    /// Whole tracks at the end of the zone; slips count tracks.
    Tracks,
    /// At the end of every track.
    Track,
    /// In every cylinder.
    Cylinder {
        /// At its front instead of its end.
        front: bool,
        /// Slips move sectors to the end of the zone, not into the spares.
        slip_to_end: bool,
    },
    /// At the end of every range of this many cylinders.
    Range(u32),
    /// At the end of the zone.
    Zone {
        /// Slips do not use the spares.
        slip_to_end: bool,
    },
    /// At the end of the drive: zones have none, slips move the following sectors of the zone.
    End,
}

impl Scheme {
    /// The scheme with this name; `range` is the number of cylinders of a range.
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

    /// Whether slips also shift the angle of the following tracks.
    pub fn slips_turn_tracks(self) -> bool {
        matches!(self, Scheme::Track | Scheme::Cylinder { .. })
    }
}

/// The sizes of a zone and its parts, in physical sectors.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub track: u64,
    pub cylinder: u64,
    pub zone: u64,
}

/// A step: from a position on, physical sectors lie `shift` further.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// First position to which the step applies.
    from: u64,
    /// Start of its region if steps only apply within their region.
    region: u64,
    /// Sectors skipped, including this slip.
    shift: u64,
    /// The slipped physical sector.
    physical: u64,
}

/// An index into a sorted list of places: the zone is divided into about as many equal parts as the list has entries,
/// and for each part the number of entries before it is stored. A look-up costs one step if the entries are spread
/// evenly, without the branches of a binary search.
#[derive(Debug, Clone, Default)]
struct Guide {
    /// A part has 2 to this power sectors.
    part_log2: u32,
    /// Number of entries before each part.
    before: Vec<u32>,
}

impl Guide {
    /// For `places`, which are sorted and at most `last`.
    fn new(places: impl ExactSizeIterator<Item = u64>, last: u64) -> Self {
        let part_log2 = (last / (places.len() as u64 + 1)).checked_ilog2().unwrap_or(0);
        let (mut places, mut passed) = (places.peekable(), 0);
        let before = (0..=last >> part_log2).map(|part| {
            while places.next_if(|place| *place < part << part_log2).is_some() {
                passed += 1;
            }
            passed
        });
        Self { part_log2, before: before.collect() }
    }

    /// Number of entries of `list` before `sector`: those with a lower place, and those with an equal place for which
    /// `comes_before` holds.
    #[inline]
    fn count(&self, list: &[Step], sector: u64, comes_before: impl Fn(&Step) -> bool) -> usize {
        let part = (sector >> self.part_log2) as usize;
        let from = self.before.get(part).map_or(list.len(), |before| *before as usize);
        from + list[from..].iter().take_while(|step| comes_before(step)).count()
    }
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
    /// Indexes of the steps, by position and by physical sector.
    guides: [Guide; 2],
    /// Whether position and physical sector are equal everywhere.
    identity: bool,
    /// Logical sectors of the zone.
    sectors: u64,
}

impl Sparing {
    /// The map of a zone of `extent` with `spares` spares per region, `reserved` sectors at the front and the sorted
    /// physical `slips`. `None` if no sectors are left for data.
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
            guides: Default::default(),
            identity: true,
            sectors: 0,
        };
        map.add_slips(slips);
        let steps = map.steps.iter();
        map.guides = [
            Guide::new(steps.clone().map(|step| step.from), extent.zone),
            Guide::new(steps.map(|step| step.physical), extent.zone),
        ];
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
            // Slips among the spares have no effect, unless earlier slips have moved data there.
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

    /// Sectors skipped before `position` because of the slips of its region or of the zone.
    #[inline]
    fn shift(&self, position: u64, region: u64) -> u64 {
        let index = self.guides[0].count(&self.steps, position, |step| step.from <= position);
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

    /// Number of logical sectors before the physical one.
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

    /// Slipped sectors before the physical one, in one region or in all.
    fn slipped(&self, physical: u64, region: Option<u64>) -> u64 {
        let index = self.guides[1].count(&self.steps, physical, |step| step.physical < physical);
        match index.checked_sub(1).map(|index| self.steps[index]) {
            Some(step) if region.is_none_or(|region| region == step.region) => {
                step.shift - self.slip_sectors + (physical - step.physical).min(self.slip_sectors)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_guide_counts_as_a_binary_search_does(mut places in prop::collection::vec(0u64..3_000, 0..60), sector in 0u64..3_300) {
            places.sort_unstable();
            let step = |place: &u64| Step { from: *place, region: 0, shift: 0, physical: *place };
            let steps: Vec<Step> = places.iter().map(step).collect();
            let guide = Guide::new(places.iter().copied(), 3_000);
            let up_to = guide.count(&steps, sector, |step| step.from <= sector);
            let below = guide.count(&steps, sector, |step| step.physical < sector);
            prop_assert_eq!(up_to, places.partition_point(|place| *place <= sector));
            prop_assert_eq!(below, places.partition_point(|place| *place < sector));
        }
    }
}
