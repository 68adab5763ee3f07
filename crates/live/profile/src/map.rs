//! Zones, assembled from the measured places.

use super::tracks::TrackAt;

/// Adjacent places whose track lengths differ by less are one zone.
const ALIKE: f64 = 0.015;

/// A run of sectors with tracks of equal length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ZoneFound {
    pub first: u64,
    pub sectors: u64,
    pub track_sectors: u32,
    /// Rate of a long read, as a share of the media rate without switches.
    pub share: f64,
}

/// The zones of a disk and the tracks in them.
#[derive(Debug, Clone)]
pub(super) struct Map {
    /// Sorted by first sector, without gaps; never empty.
    pub zones: Vec<ZoneFound>,
    /// Number of tracks before each zone.
    before: Vec<f64>,
}

impl Map {
    /// Builds zones from `shares` at `places`, which are sorted. A zone ends half-way between its last place and the
    /// next.
    pub fn new(sectors: u64, places: &[TrackAt], shares: &[f64]) -> Self {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in 0..places.len() {
            match groups.last_mut() {
                Some(group) if alike(mean(group, |at| places[at].track_sectors), places[index].track_sectors) => {
                    group.push(index);
                }
                _ => groups.push(vec![index]),
            }
        }
        let mut zones: Vec<ZoneFound> = Vec::with_capacity(groups.len());
        for (at, group) in groups.iter().enumerate() {
            let first = zones.last().map_or(0, |zone| zone.first + zone.sectors);
            let last = places[group[group.len() - 1]].sector;
            let end = groups.get(at + 1).map_or(sectors, |next| last.midpoint(places[next[0]].sector));
            zones.push(ZoneFound {
                first,
                sectors: end - first,
                track_sectors: mean(group, |at| places[at].track_sectors).round().max(1.0) as u32,
                share: mean(group, |at| shares[at]),
            });
        }
        let mut before = Vec::with_capacity(zones.len());
        let mut tracks = 0.0;
        for zone in &zones {
            before.push(tracks);
            tracks += zone.sectors as f64 / f64::from(zone.track_sectors);
        }
        Self { zones, before }
    }

    fn zone(&self, sector: u64) -> usize {
        self.zones.partition_point(|zone| zone.first <= sector).max(1) - 1
    }

    /// Sectors per track at `sector`.
    pub fn track_sectors(&self, sector: u64) -> f64 {
        f64::from(self.zones[self.zone(sector)].track_sectors)
    }

    /// The track of a sector, with the fraction of the track, assuming that zones begin with a track.
    pub fn track(&self, sector: u64) -> f64 {
        let index = self.zone(sector);
        let zone = &self.zones[index];
        self.before[index] + (sector - zone.first) as f64 / f64::from(zone.track_sectors)
    }

    /// The first sector of a track.
    pub fn sector(&self, track: f64) -> u64 {
        let index = self.before.partition_point(|before| *before <= track).max(1) - 1;
        let zone = &self.zones[index];
        let within = (track - self.before[index]).max(0.0) * f64::from(zone.track_sectors);
        zone.first + (within as u64).min(zone.sectors - 1)
    }

    /// Number of tracks.
    pub fn tracks(&self) -> f64 {
        let last = self.zones.len() - 1;
        self.before[last] + self.zones[last].sectors as f64 / f64::from(self.zones[last].track_sectors)
    }
}

fn alike(one: f64, other: f64) -> bool {
    (one - other).abs() < ALIKE * one
}

fn mean(indices: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    indices.iter().map(|index| value(*index)).sum::<f64>() / indices.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_zones() {
        let at = |sector, track_sectors| TrackAt { sector, track_sectors };
        let places = [at(100, 200.4), at(300, 199.8), at(500, 100.0), at(700, 100.2)];
        let map = Map::new(800, &places, &[0.8, 0.9, 0.7, 0.7]);
        let zone = |first, sectors, track_sectors, share| ZoneFound { first, sectors, track_sectors, share };
        assert_eq!(map.zones.len(), 2);
        assert_eq!(map.zones[0], zone(0, 400, 200, map.zones[0].share));
        assert_eq!(map.zones[1], zone(400, 400, 100, 0.7));
        assert!((map.zones[0].share - 0.85).abs() < 1e-9);
        // Two tracks in the first zone, four in the second.
        assert_eq!((map.tracks(), map.track(300), map.track(650)), (6.0, 1.5, 4.5));
        assert_eq!((map.sector(1.5), map.sector(4.5), map.sector(99.0)), (300, 650, 799));
        assert_eq!((map.track_sectors(399), map.track_sectors(400)), (200.0, 100.0));
    }
}
