//! Seek times by distance in cylinders, tabled once: a seek costs a look-up, and no root at run time.
//!
//! `root-linear` is the curve of Ruemmler and Wilkes 1994: a + b sqrt(d) where acceleration rules, c + e d where
//! the arm coasts. Square roots are exact in IEEE arithmetic, so the table is the same on every machine.

use headstart_types::{KeyError, Nanos};

use crate::keys::Keys;

/// Seek time of each distance; distance 0 takes none.
#[derive(Debug, Clone)]
pub struct SeekTable(Vec<Nanos>);

impl SeekTable {
    /// From the `seek` table of a profile, for distances below `cylinders`.
    ///
    /// # Errors
    /// The key at fault.
    pub(crate) fn from_keys(mut keys: Keys, cylinders: u32) -> Result<Self, KeyError> {
        const FORMS: &str = "\"root-linear\"";
        let form = keys.text("form", FORMS)?;
        if form != "root-linear" {
            return Err(KeyError::new("form", format!("unknown form \"{form}\""), FORMS));
        }
        let boundary = keys.whole("boundary", 0, u64::from(u32::MAX))? as u32;
        let root = keys.two_times("root")?;
        let linear = keys.two_times("linear")?;
        keys.finish(&["form", "boundary", "root", "linear"])?;
        Ok(Self::root_linear(cylinders, boundary, root, linear))
    }

    /// `root[0] + root[1] sqrt(d)` up to `boundary`, `linear[0] + linear[1] d` beyond.
    fn root_linear(cylinders: u32, boundary: u32, root: [Nanos; 2], linear: [Nanos; 2]) -> Self {
        let time = |distance: u32| match distance {
            0 => Nanos::ZERO,
            d if d <= boundary => root[0] + Nanos((root[1].0 as f64 * f64::from(d).sqrt()).round() as u64),
            d => linear[0] + linear[1] * u64::from(d),
        };
        Self((0..cylinders).map(time).collect())
    }

    /// Time to move the arm by `distance` cylinders. The caller guarantees that the drive has more than that.
    #[inline]
    #[must_use]
    pub fn time(&self, distance: u32) -> Nanos {
        self.0[distance as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_of_the_hp97560() {
        let ms = Nanos::from_millis_f64;
        let table = SeekTable::root_linear(1962, 383, [ms(3.24), ms(0.4)], [ms(8.0), ms(0.008)]);
        assert_eq!(table.time(0), Nanos::ZERO);
        assert_eq!(table.time(1), ms(3.64)); // 3.24 + 0.4 * 1
        assert_eq!(table.time(100), ms(7.24)); // 3.24 + 0.4 * 10: "the maximum seek within a group" of section 3.2
        assert_eq!(table.time(361), ms(10.84)); // 3.24 + 0.4 * 19
        assert_eq!(table.time(384), ms(11.072)); // 8.00 + 0.008 * 384
        assert_eq!(table.time(1961), ms(23.688)); // 8.00 + 0.008 * 1961
    }
}
