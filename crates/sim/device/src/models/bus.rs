//! The bus to the host: time per byte or per sector, rounded up to nanoseconds.
//!
//! The profile of a drive that was measured over a slower bus than its own also has the data sheet's rate,
//! `data_sheet_bytes_per_second`; `rate` selects one of the two.

use headstart_types::{keys, read_keys, KeyError, Nanos};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::geometry::{Access, Zone};
use super::rotation::Tick;
use super::{at_rate, PER_SECTOR};
use crate::time::Time;

/// Maximum rate in bytes per second: keeps [`Bus::time`] within its arithmetic.
const RATE_MAX: u64 = u64::MAX >> 20;

/// Which of the two rates is simulated.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RateOf {
    #[default]
    Measured,
    DataSheet,
}

keys! {
    /// The bus to the host. Exactly one of bytes_per_second and sector_time gives its speed.
    pub(super) struct BusKeys {
        /// Rate of the bus.
        #[schemars(range(min = 1, max = RATE_MAX))]
        bytes_per_second: Option<u64>,
        /// Time to transfer one sector.
        sector_time: Option<Time>,
        /// Time to transfer one sector of a write. Default: sector_time.
        write_sector_time: Option<Time>,
        /// Rate given in the data sheet, if the drive was measured over a slower bus.
        #[schemars(range(min = 1, max = RATE_MAX))]
        data_sheet_bytes_per_second: Option<u64>,
        /// Which of the two rates is simulated.
        #[serde(default)]
        rate: RateOf
    }
}

/// The speed of the bus.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bus {
    /// Bytes per second.
    Rate(u64),
    /// Time of one sector: read, written.
    Sector([Nanos; 2]),
}

impl Bus {
    /// Reads the table `bus` of a profile.
    ///
    /// # Errors
    /// The offending key.
    pub fn read(table: Table) -> Result<Self, KeyError> {
        let keys: BusKeys = read_keys(table)?;
        match (keys.rate, keys.data_sheet_bytes_per_second, keys.sector_time, keys.bytes_per_second) {
            (_, _, Some(_), Some(_)) => Err(KeyError::new("bytes_per_second", "beside sector_time", "one of the two")),
            (RateOf::DataSheet, Some(rate), ..) => Ok(Self::of_rate(rate)),
            (RateOf::DataSheet, None, ..) => {
                let allowed = "bus.data_sheet_bytes_per_second in addition";
                Err(KeyError::new("rate", "is data-sheet, and the profile has no such rate", allowed))
            }
            (_, _, Some(read), _) => Ok(Bus::Sector([read.0, keys.write_sector_time.unwrap_or(read).0])),
            (_, _, None, Some(rate)) if keys.write_sector_time.is_none() => Ok(Self::of_rate(rate)),
            (_, _, None, Some(_)) => {
                Err(KeyError::new("write_sector_time", "there is no sector_time", "sector_time in addition"))
            }
            (_, _, None, None) => {
                Err(KeyError::new("bytes_per_second", "is missing", "one of bytes_per_second, sector_time"))
            }
        }
    }

    fn of_rate(rate: u64) -> Self {
        match rate {
            // Most rates divide evenly, and a product is cheaper than a quotient.
            rate if PER_SECTOR.is_multiple_of(rate) => Bus::Sector([Nanos(PER_SECTOR / rate); 2]),
            rate => Bus::Rate(rate),
        }
    }

    /// Time of one sector of a read in nanoseconds, not rounded.
    pub fn sector_ns(&self) -> f64 {
        match *self {
            Bus::Sector([read, _]) => read.0 as f64,
            Bus::Rate(rate) => PER_SECTOR as f64 / rate as f64,
        }
    }

    /// Whether a sector that is read takes longer on the bus than under a head of `zone`.
    #[inline]
    pub fn is_slower(&self, zone: &Zone) -> bool {
        self.time(1, false) > zone.rotation.sector()
    }

    /// When the bus has moved `from..to` of a read that ends before `end`, considering only sectors that have not been
    /// read yet: the bus moves each sector once it has been read, and idles while the head moves from track to track.
    /// The head reached the path and tick `known` no later than `from`.
    ///
    /// Within a run of sectors without a gap, the slower bus falls behind from the first sector on, so only that one
    /// counts. Cost: some divisions per track.
    pub fn end_behind_gaps(&self, zone: &Zone, known: (u64, Tick), (from, to): (u64, u64), end: u64) -> Nanos {
        let (path, tick) = known;
        let mut latest = Nanos::ZERO;
        zone.first_of_runs(from, to, Access::Read, |sector, sector_path| {
            let is_in = zone.rotation.time(zone.rotation.after(tick, sector_path + 1 - path));
            latest = latest.max(is_in + self.time((end - sector) as u32, false));
        });
        latest
    }

    /// A lower bound of the bus time of reads of `sectors` sectors in all.
    pub fn least_time(&self, sectors: u64) -> Nanos {
        match *self {
            Bus::Sector([read, _]) => read * sectors,
            Bus::Rate(rate) => Nanos((u128::from(sectors) * u128::from(PER_SECTOR) / u128::from(rate)) as u64),
        }
    }

    /// Bus time of `sectors` sectors.
    #[inline]
    pub fn time(&self, sectors: u32, write: bool) -> Nanos {
        match *self {
            Bus::Sector(times) => times[usize::from(write)] * u64::from(sectors),
            Bus::Rate(rate) => at_rate(sectors.into(), rate),
        }
    }
}
