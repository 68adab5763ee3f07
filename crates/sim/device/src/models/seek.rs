//! Seek times by distance in cylinders, tabulated once: a seek is a table look-up without square roots at run time.
//!
//! Forms of the curve, depending on what is known of a drive:
//! - `root-linear`: a + b sqrt(d) while acceleration dominates, c + e d while the arm coasts (Ruemmler and Wilkes
//!   1994); the first few distances may be given individually, since short seeks follow no formula (Worthington, Ganger
//!   and Patt, CSE-TR-194-94).
//! - `table`: measured times at some distances, with linear interpolation and extrapolation.
//! - `min-average-max`: min + b (d-1) + a sqrt(d-1), with a and b such that the mean over random pairs and the full
//!   stroke are about right (Lee and Katz, SIGMETRICS 1993, section 2): all that a data sheet gives.
//! - `line`: straight lines through minimum, average at a third of the cylinders, and maximum.
//! - `sum`: constant + linear d + root sqrt(d).
//! - `constant`.
//!
//! Square roots are exact in IEEE arithmetic, so the table is the same on every machine. 8 bytes per cylinder.

use std::sync::Arc;

use headstart_types::{keys, read_keys, take_key, KeyError, Nanos};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use crate::limits::{DISTANCE_MAX, TIME_MAX};
use crate::time::Time;

/// Form of a seek curve.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Form {
    RootLinear,
    Table,
    MinAverageMax,
    Line,
    Sum,
    Constant,
}

/// The forms with their keys.
#[derive(JsonSchema)]
#[schemars(tag = "form", rename_all = "kebab-case")]
#[allow(dead_code)]
pub(super) enum Forms {
    RootLinear(RootLinear),
    Table(Measured),
    MinAverageMax(ThreePoints),
    Line(ThreePoints),
    Sum(Sum),
    Constant(Constant),
}

keys! {
    /// a + b sqrt(d) up to the boundary, c + e d beyond.
    pub(super) struct RootLinear {
        /// Distance at which the arm begins to coast, in cylinders.
        boundary: u32,
        /// a and b.
        root: [Time; 2],
        /// c and e.
        linear: [Time; 2],
        /// Seek times of the shortest distances, from 1 cylinder on, in milliseconds.
        #[serde(default)]
        #[schemars(inner(range(min = 0.0, max = 3_600_000.0)))]
        first_ms: Vec<f64>
    }
}

keys! {
    /// Measured times with linear interpolation.
    pub(super) struct Measured {
        /// Seek distances in cylinders, ascending.
        #[schemars(inner(range(min = 1, max = DISTANCE_MAX)), length(min = 2))]
        distances: Vec<u64>,
        /// Seek time for each distance, in milliseconds.
        #[schemars(inner(range(min = 0.0, max = 3_600_000.0)))]
        times_ms: Vec<f64>
    }
    impl check = |keys| {
        let Measured { distances, times_ms } = keys;
        if distances.len() != times_ms.len() {
            let problem = format!("{} times for {} distances", times_ms.len(), distances.len());
            return Err(KeyError::new("times_ms", problem, "one time for each distance"));
        }
        match distances.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => {
                Err(KeyError::new("distances", format!("{} after {}", pair[1], pair[0]), "rising distances"))
            }
            None => Ok(()),
        }
    };
}

keys! {
    /// Seek times as given in a data sheet.
    pub(super) struct ThreePoints {
        /// Time of a seek to the next cylinder.
        minimum: Time,
        /// Mean seek time over all pairs of cylinders.
        average: Time,
        /// Time of a full-stroke seek.
        maximum: Time
    }
    impl check = |keys| {
        let [minimum, average, maximum] = keys.times();
        let rising = "minimum <= average <= maximum";
        if average < minimum {
            return Err(KeyError::new("average", format!("{average} is below minimum"), rising));
        }
        match maximum < average {
            true => Err(KeyError::new("maximum", format!("{maximum} is below average"), rising)),
            false => Ok(()),
        }
    };
}

impl ThreePoints {
    fn times(&self) -> [Nanos; 3] {
        [self.minimum.0, self.average.0, self.maximum.0]
    }
}

keys! {
    /// constant + linear d + root sqrt(d).
    pub(super) struct Sum {
        /// Part of the seek time that does not depend on the distance.
        constant: Time,
        /// Time per cylinder.
        linear: Time,
        /// Time per square root of a cylinder.
        root: Time
    }
}

keys! {
    /// The same seek time for all distances.
    pub(super) struct Constant {
        /// Time of every seek, regardless of its distance.
        time: Time
    }
}

/// Seek time of each distance; 0 for distance 0.
#[derive(Debug, Clone)]
pub struct SeekTable(Arc<[Nanos]>);

impl SeekTable {
    /// Reads the table `seek` of a profile, for distances below `cylinders`.
    ///
    /// # Errors
    /// The offending key.
    pub(crate) fn read(mut table: Table, cylinders: u32) -> Result<Self, KeyError> {
        Ok(match take_key(&mut table, "form")? {
            Form::RootLinear => {
                let RootLinear { boundary, root, linear, first_ms } = read_keys(table)?;
                let first: Vec<Nanos> = first_ms.into_iter().map(Nanos::from_millis_f64).collect();
                Self::root_linear(cylinders, boundary, root.map(|time| time.0), linear.map(|time| time.0), &first)
            }
            Form::Table => {
                let Measured { distances, times_ms } = read_keys(table)?;
                let points = distances.into_iter().zip(times_ms.into_iter().map(Nanos::from_millis_f64));
                Self::interpolate(cylinders, &points.collect::<Vec<_>>())
            }
            Form::MinAverageMax => Self::min_average_max(cylinders, read_keys::<ThreePoints>(table)?.times()),
            Form::Line => Self::line(cylinders, read_keys::<ThreePoints>(table)?.times()),
            Form::Sum => {
                let Sum { constant, linear, root } = read_keys(table)?;
                Self::tabulate(cylinders, |d| constant.0 + scaled(linear.0, d) + scaled_root(root.0, d))
            }
            Form::Constant => {
                let Constant { time } = read_keys(table)?;
                Self::tabulate(cylinders, |_| time.0)
            }
        })
    }

    /// Times are capped at [`TIME_MAX`], however steep the curve.
    fn tabulate(cylinders: u32, time: impl Fn(u32) -> Nanos) -> Self {
        Self((0..cylinders).map(|d| if d == 0 { Nanos::ZERO } else { time(d).min(TIME_MAX) }).collect())
    }

    /// `first` individually, then `root[0] + root[1] sqrt(d)` up to `boundary`, `linear[0] + linear[1] d` beyond.
    fn root_linear(cylinders: u32, boundary: u32, root: [Nanos; 2], linear: [Nanos; 2], first: &[Nanos]) -> Self {
        Self::tabulate(cylinders, |d| match first.get(d as usize - 1) {
            Some(time) => *time,
            None if d <= boundary => root[0] + scaled_root(root[1], d),
            None => linear[0] + scaled(linear[1], d),
        })
    }

    /// Linear interpolation between `points`, extrapolated beyond the last two; the first time below the first
    /// distance. The caller guarantees at least two points with ascending distances.
    fn interpolate(cylinders: u32, points: &[(u64, Nanos)]) -> Self {
        Self::tabulate(cylinders, |d| {
            let d = u64::from(d);
            let above = points.partition_point(|(distance, _)| *distance < d).clamp(1, points.len() - 1);
            let ((d1, t1), (d2, t2)) = (points[above - 1], points[above]);
            if d <= d1 {
                return t1;
            }
            // At most an hour times 10^7 cylinders: exceeds 64 bits before it is capped.
            let along = |rise: u64| {
                let time = u128::from(rise) * u128::from(d - d1) / u128::from(d2 - d1);
                time.min(u128::from(TIME_MAX.0)) as u64
            };
            if t2 >= t1 {
                t1 + Nanos(along(t2.0 - t1.0))
            } else {
                t1.saturating_sub(Nanos(along(t1.0 - t2.0)))
            }
        })
    }

    /// Lee and Katz: a = (-10 min + 15 avg - 5 max) / (3 sqrt(C)), b = (7 min - 15 avg + 8 max) / (3 C).
    fn min_average_max(cylinders: u32, times: [Nanos; 3]) -> Self {
        let [min, avg, max] = times.map(|time| time.0 as f64);
        let all = f64::from(cylinders);
        let root = (15.0 * avg - 10.0 * min - 5.0 * max) / (3.0 * all.sqrt());
        let linear = (7.0 * min - 15.0 * avg + 8.0 * max) / (3.0 * all);
        Self::tabulate(cylinders, |d| {
            let beyond = f64::from(d - 1);
            Nanos((min + root * beyond.sqrt() + linear * beyond).round().max(0.0) as u64)
        })
    }

    fn line(cylinders: u32, [minimum, average, maximum]: [Nanos; 3]) -> Self {
        let third = u64::from(cylinders / 3).max(2);
        let last = u64::from(cylinders.saturating_sub(1)).max(third + 1);
        Self::interpolate(cylinders, &[(1, minimum), (third, average), (last, maximum)])
    }

    /// Time to move the arm by `distance` cylinders, which must be below the drive's number of cylinders.
    #[inline]
    #[must_use]
    pub fn time(&self, distance: u32) -> Nanos {
        self.0[distance as usize]
    }

    /// By distance: the least time of a movement over at least that distance.
    #[must_use]
    pub fn least_from(&self) -> Vec<Nanos> {
        let mut least = self.0.to_vec();
        for distance in (1..least.len()).rev() {
            least[distance - 1] = least[distance - 1].min(least[distance]);
        }
        least
    }

    /// The times of all distances from 0.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.0
    }
}

/// `scale` times `distance`, saturating: see [`SeekTable::tabulate`].
fn scaled(scale: Nanos, distance: u32) -> Nanos {
    Nanos(scale.0.saturating_mul(distance.into())).min(TIME_MAX)
}

fn scaled_root(scale: Nanos, distance: u32) -> Nanos {
    Nanos((scale.0 as f64 * f64::from(distance).sqrt()).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Nanos {
        Nanos::from_millis_f64(ms)
    }

    #[test]
    fn the_curve_of_the_hp97560() {
        let table = SeekTable::root_linear(1962, 383, [ms(3.24), ms(0.4)], [ms(8.0), ms(0.008)], &[]);
        assert_eq!(table.time(0), Nanos::ZERO);
        assert_eq!(table.time(1), ms(3.64)); // 3.24 + 0.4 * 1
        assert_eq!(table.time(100), ms(7.24)); // 3.24 + 0.4 * 10: "the maximum seek within a group" of section 3.2
        assert_eq!(table.time(361), ms(10.84)); // 3.24 + 0.4 * 19
        assert_eq!(table.time(384), ms(11.072)); // 8.00 + 0.008 * 384
        assert_eq!(table.time(1961), ms(23.688)); // 8.00 + 0.008 * 1961
    }

    #[test]
    fn the_first_distances_one_by_one() {
        let table = SeekTable::root_linear(500, 100, [ms(3.0), ms(0.5)], [ms(7.0), ms(0.01)], &[ms(1.0), ms(1.5)]);
        assert_eq!(table.time(1), ms(1.0));
        assert_eq!(table.time(2), ms(1.5));
        assert_eq!(table.time(4), ms(4.0)); // 3 + 0.5 * 2
    }

    #[test]
    fn measured_points_are_joined_by_lines() {
        // Measured times may decrease: 1.531 ms at 10, 1.515 at 12.
        let points = [(2, ms(1.0)), (10, ms(1.531)), (12, ms(1.515)), (20, ms(2.315))];
        let table = SeekTable::interpolate(40, &points);
        assert_eq!(table.time(1), ms(1.0)); // before the first point
        assert_eq!(table.time(10), ms(1.531));
        assert_eq!(table.time(11), ms(1.523)); // half of -0.016 below 1.531
        assert_eq!(table.time(16), ms(1.915)); // 1.515 + 4/8 * 0.8
        assert_eq!(table.time(30), ms(3.315)); // 2.315 + 10 * 0.1, beyond the last
    }

    #[test]
    fn steep_curves_end_at_an_hour() {
        // 10^7 times an hour exceeds 64 bits: each form gives an hour for the far end, and never decreases.
        let hour = ms(3.6e6);
        for seek in [
            "form = 'sum'\nconstant = '1ms'\nlinear = '1h'\nroot = '1h'",
            "form = 'root-linear'\nboundary = 1\nroot = ['1ms', '1ms']\nlinear = ['1ms', '1h']",
            "form = 'table'\ndistances = [1, 2]\ntimes_ms = [1, 3_600_000]",
            "form = 'min-average-max'\nminimum = '1ms'\naverage = '2ms'\nmaximum = '1h'",
        ] {
            let table = SeekTable::read(seek.parse().expect("TOML"), 10_000_000).expect("a curve");
            assert!(table.time(9_999_999) * 2 > hour && table.times().iter().all(|time| *time <= hour), "{seek}");
            assert!(seek.contains("min") || table.times().is_sorted(), "{seek}");
        }
    }

    #[test]
    fn three_numbers_of_a_data_sheet() {
        // C = 900, min 2, avg 10, max 18: a = (-20 + 150 - 90) / 90 = 4/9, b = (14 - 150 + 144) / 2700 = 8/2700.
        let table = SeekTable::min_average_max(900, [ms(2.0), ms(10.0), ms(18.0)]);
        assert_eq!(table.time(1), ms(2.0));
        assert_eq!(table.time(101), Nanos(6_740_741)); // 2 + 4/9 * 10 + 8/2700 * 100 = 2 + 4.444444 + 0.296296
        let pairs = |d: usize| 2.0 * (900 - d) as f64;
        let mean = (1..900).map(|d| pairs(d) * table.time(d as u32).0 as f64).sum::<f64>() / (900.0 * 900.0);
        assert!((mean / 1e6 - 10.0).abs() < 0.1, "{mean}");
        let lines = SeekTable::line(900, [ms(2.0), ms(10.0), ms(18.0)]);
        assert_eq!([lines.time(1), lines.time(300), lines.time(899)], [ms(2.0), ms(10.0), ms(18.0)]);
    }
}
