//! Facts of a drive with moving heads that set how much is worth reading at once: seek times, rotation, transfer rates.

use std::sync::Arc;

use crate::Nanos;

/// Bytes of one sector, the unit of every address on a disk.
pub const SECTOR_BYTES: u64 = 512;

/// A run of sectors with one transfer rate (a zone).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateBand {
    /// First sector.
    pub first: u64,
    /// Number of sectors, at least 1.
    pub sectors: u64,
    /// First cylinder.
    pub first_cylinder: u32,
    /// Number of cylinders, at least 1.
    pub cylinders: u32,
    /// Rate of a long sequential read in this band, above 0.
    pub bytes_per_second: f64,
}

/// The facts of one drive, or of an array whose heads move together: measured, or from a profile.
///
/// Sector numbers are those of the drive, or of the array's volume. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveFacts {
    /// Time of a read's seek, indexed by the distance in cylinders from 0. Not empty.
    pub seek: Arc<[Nanos]>,
    /// Mean seek time between two uniformly random places.
    pub mean_seek: Nanos,
    /// Half a rotation: the mean rotational latency.
    pub half_turn: Nanos,
    /// Sorted by first sector, without gaps. Not empty.
    pub bands: Arc<[RateBand]>,
    /// Rate of the media divided by the rate in `bands`. Above 1 where the host bus limited the measurement.
    pub media_factor: f64,
}

/// Below this factor, [`DriveFacts::note`] does not mention the bus.
const NOTED_FACTOR: f64 = 1.05;

impl DriveFacts {
    /// A warning for users of a depth computed from these facts; `None` if there is nothing to warn about.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        (self.media_factor >= NOTED_FACTOR).then(|| {
            format!(
                "the rate of this profile is that of the bus of the host on which the drive was measured, and the depth \
                 is computed from it: the media are up to {:.1} times as fast; behind a faster bus, use a depth up to \
                 that many times larger",
                self.media_factor
            )
        })
    }

    /// The band of a sector; the last band for sectors beyond the end.
    fn band(&self, sector: u64) -> &RateBand {
        let after = self.bands.partition_point(|band| band.first <= sector);
        &self.bands[after.max(1) - 1]
    }

    /// The cylinder of a sector, assuming that a band spreads its sectors evenly over its cylinders.
    #[must_use]
    pub fn cylinder(&self, sector: u64) -> u32 {
        let band = self.band(sector);
        let within = sector.saturating_sub(band.first).min(band.sectors - 1);
        let cylinders = u128::from(within) * u128::from(band.cylinders) / u128::from(band.sectors);
        band.first_cylinder + cylinders as u32
    }

    /// Seek time from one sector to another. Distances beyond the curve take its last time.
    #[must_use]
    pub fn seek_between(&self, from: u64, to: u64) -> Nanos {
        let distance = self.cylinder(from).abs_diff(self.cylinder(to)) as usize;
        self.seek[distance.min(self.seek.len() - 1)]
    }

    /// Rate of a long sequential read at a sector, in bytes per second.
    #[must_use]
    pub fn rate_at(&self, sector: u64) -> f64 {
        self.band(sector).bytes_per_second
    }

    /// Rate of one sequential read over the whole drive, in bytes per second (the harmonic mean over the sectors).
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        let sectors: f64 = self.bands.iter().map(|band| band.sectors as f64).sum();
        let time: f64 = self.bands.iter().map(|band| band.sectors as f64 / band.bytes_per_second).sum();
        sectors / time
    }

    /// Mean rate of long sequential reads that start at uniformly random places among the first `sectors` (`None`:
    /// all), in bytes per second. This arithmetic mean is above [`DriveFacts::mean_rate`], where slow bands take more
    /// of the time.
    #[must_use]
    pub fn mean_rate_of_places(&self, sectors: Option<u64>) -> f64 {
        let mut left = sectors.unwrap_or(u64::MAX).max(1);
        let (mut places, mut sum) = (0, 0.0);
        for band in self.bands.iter() {
            let here = band.sectors.min(left);
            left -= here;
            places += here;
            sum += here as f64 * band.bytes_per_second;
        }
        sum / places as f64
    }

    /// Facts of a volume that stripes single sectors over `disks` such drives: `disks` times the sectors and the rate.
    #[must_use]
    pub fn over(&self, disks: u64) -> Self {
        let wide = |band: &RateBand| RateBand {
            first: band.first.saturating_mul(disks),
            sectors: band.sectors.saturating_mul(disks),
            bytes_per_second: band.bytes_per_second * disks as f64,
            ..*band
        };
        Self { bands: self.bands.iter().map(wide).collect(), ..self.clone() }
    }

    /// Facts of `disks` such drives that read in parallel but keep the sector numbers of one: `disks` times the rate.
    #[must_use]
    pub fn abreast(&self, disks: u64) -> Self {
        let fast = |band: &RateBand| RateBand { bytes_per_second: band.bytes_per_second * disks as f64, ..*band };
        Self { bands: self.bands.iter().map(fast).collect(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bands of 10 cylinders: 100 sectors a cylinder at 40 MB/s, then 50 at 20 MB/s. d cylinders take d ms.
    fn facts() -> DriveFacts {
        let band = |first, sectors, first_cylinder, bytes_per_second| RateBand {
            first,
            sectors,
            first_cylinder,
            cylinders: 10,
            bytes_per_second,
        };
        DriveFacts {
            seek: (0..20).map(|distance| Nanos(distance * 1_000_000)).collect(),
            mean_seek: Nanos(6_650_000),
            half_turn: Nanos(3_000_000),
            bands: [band(0, 1000, 0, 40e6), band(1000, 500, 10, 20e6)].into(),
            media_factor: 1.0,
        }
    }

    #[test]
    fn sectors_lie_in_bands() {
        let facts = facts();
        assert_eq!(
            [0, 99, 100, 999, 1000, 1049, 1050, 1499].map(|at| facts.cylinder(at)),
            [0, 0, 1, 9, 10, 10, 11, 19]
        );
        assert_eq!([0, 999, 1000, 1499].map(|at| facts.rate_at(at)), [40e6, 40e6, 20e6, 20e6]);
        assert_eq!(facts.seek_between(50, 1050), Nanos(11_000_000)); // from cylinder 0 to 11
        assert_eq!(facts.seek_between(1050, 50), Nanos(11_000_000));
        // 1000 sectors at 40 take as long as 500 at 20: together 1500 in twice the time of 1000 at 40.
        assert!((facts.mean_rate() - 30e6).abs() < 1e-6);
    }

    #[test]
    fn the_mean_rate_of_places() {
        let rate = |sectors| (facts().mean_rate_of_places(sectors) / 1e3).round() as u64;
        assert_eq!(
            [0, 1000, 1250, 1500, 9999].map(|sectors| rate(Some(sectors))),
            [40_000, 40_000, 36_000, 33_333, 33_333]
        );
        assert_eq!(rate(None), 33_333);
    }

    #[test]
    fn beyond_the_end_is_the_end() {
        let facts = facts();
        assert_eq!((facts.cylinder(u64::MAX), facts.rate_at(u64::MAX)), (19, 20e6));
        let short = DriveFacts { seek: [Nanos(0), Nanos(5)].into(), ..facts };
        assert_eq!(short.seek_between(0, 1499), Nanos(5));
    }

    #[test]
    fn arrays_are_wider_or_faster() {
        // Behind a controller two sectors of the volume are one of each disk; side by side each keeps its own.
        let (facts, pair) = (facts(), facts().over(2));
        assert_eq!((pair.cylinder(200), pair.cylinder(2099), pair.cylinder(2100)), (1, 10, 11));
        assert_eq!((pair.rate_at(1999), pair.rate_at(2000)), (80e6, 40e6));
        assert_eq!((pair.seek, pair.half_turn), (facts.seek.clone(), facts.half_turn));
        let side = facts.abreast(2);
        assert_eq!((side.cylinder(100), side.rate_at(999)), (1, 80e6));
    }
}
