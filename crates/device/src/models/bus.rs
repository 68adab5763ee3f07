//! The bus to the host: time by the byte or by the sector, rounded up to nanoseconds.
//!
//! A drive that was measured over a slower bus than its own has the measured time beside the rate of its maker's data
//! sheet, `data_sheet_bytes_per_second`; `rate` selects one of the two.

use headstart_types::{KeyError, Nanos};

use super::geometry::{Access, Zone};
use super::rotation::Tick;
use crate::keys::Keys;
use crate::SECTOR_BYTES;

/// Time of a sector at a byte a second.
const PER_SECTOR: u64 = SECTOR_BYTES * 1_000_000_000;

/// Bytes a second at most: keeps [`Bus::time`] within its arithmetic.
const RATE_MAX: u64 = u64::MAX >> 20;

/// The key of the maker's rate.
const SHEET: &str = "data_sheet_bytes_per_second";

/// How fast data cross the bus.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bus {
    /// So many bytes a second.
    Rate(u64),
    /// So long for a sector: of a read, of a write.
    Sector([Nanos; 2]),
}

impl Bus {
    /// From the `bus` table of a profile.
    ///
    /// # Errors
    /// The key at fault.
    pub fn from_keys(mut keys: Keys) -> Result<Self, KeyError> {
        let measured = if keys.has("sector_time") {
            if keys.has("bytes_per_second") {
                return Err(KeyError::new("bytes_per_second", "beside sector_time", "one of the two"));
            }
            let read = keys.time_or_zero("sector_time")?;
            Bus::Sector([read, keys.or("write_sector_time", read, Keys::time_or_zero)?])
        } else {
            Self::of_rate(keys.whole("bytes_per_second", 1, RATE_MAX)?)
        };
        let sheet = keys.whole_if(SHEET, 1, RATE_MAX)?;
        let from_sheet =
            keys.or("rate", false, |keys, key| keys.choice(key, &[("measured", false), ("data-sheet", true)]))?;
        let bus = match (from_sheet, sheet) {
            (false, _) => measured,
            (true, Some(rate)) => Self::of_rate(rate),
            (true, None) => {
                let allowed = "bus.data_sheet_bytes_per_second beside it";
                return Err(KeyError::new("rate", "is data-sheet, and the profile has no such rate", allowed));
            }
        };
        keys.finish(&["bytes_per_second", "sector_time", "write_sector_time", SHEET, "rate"])?;
        Ok(bus)
    }

    fn of_rate(rate: u64) -> Self {
        match rate {
            // Most are: and a product is cheaper than a quotient.
            rate if PER_SECTOR % rate == 0 => Bus::Sector([Nanos(PER_SECTOR / rate); 2]),
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

    /// Whether a read's sectors take longer over the bus than they take to pass a head of `zone`.
    #[inline]
    pub fn is_slower(&self, zone: &Zone) -> bool {
        self.time(1, false) > zone.rotation.sector()
    }

    /// When `from..to` of a read that ends before `end` leaves the bus free for what is not read yet: the bus takes
    /// each sector once it is in, and is idle while the head moves from track to track. The head came to the path and
    /// the tick `known` no later than to `from`.
    ///
    /// Within a run of sectors without a gap the bus, which is slower, falls behind from the first on: only that one
    /// counts. Cost: some divisions a track.
    pub fn end_behind_gaps(&self, zone: &Zone, known: (u64, Tick), (from, to): (u64, u64), end: u64) -> Nanos {
        let (path, tick) = known;
        let mut latest = Nanos::ZERO;
        zone.first_of_runs(from, to, Access::Read, |sector, sector_path| {
            let is_in = zone.rotation.time(zone.rotation.after(tick, sector_path + 1 - path));
            latest = latest.max(is_in + self.time((end - sector) as u32, false));
        });
        latest
    }

    /// No reads of `sectors` sectors in all take less.
    pub fn least_time(&self, sectors: u64) -> Nanos {
        match *self {
            Bus::Sector([read, _]) => read * sectors,
            Bus::Rate(rate) => Nanos((u128::from(sectors) * u128::from(PER_SECTOR) / u128::from(rate)) as u64),
        }
    }

    /// Time of `sectors` sectors.
    #[inline]
    pub fn time(&self, sectors: u32, write: bool) -> Nanos {
        // At most 2^32 * 512e9, which needs 128 bits; below 2^24 sectors it fits 64.
        match *self {
            Bus::Sector(times) => times[usize::from(write)] * u64::from(sectors),
            Bus::Rate(rate) if sectors < 1 << 24 => Nanos((u64::from(sectors) * PER_SECTOR).div_ceil(rate)),
            Bus::Rate(rate) => Nanos((u128::from(sectors) * u128::from(PER_SECTOR)).div_ceil(u128::from(rate)) as u64),
        }
    }
}
