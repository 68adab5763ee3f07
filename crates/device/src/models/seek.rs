//! Seek times by distance in cylinders, tabled once: a seek costs a look-up, and no root at run time.
//!
//! Forms of the curve, by what is known of a drive:
//! - `root-linear`: a + b sqrt(d) where acceleration rules, c + e d where the arm coasts (Ruemmler and Wilkes 1994);
//!   the first few distances may be given one by one, since short seeks follow no formula (Worthington, Ganger and
//!   Patt, CSE-TR-194-94).
//! - `table`: measured times of some distances, straight lines between them and on beyond the last.
//! - `min-average-max`: min + b (d-1) + a sqrt(d-1), with a and b such that the mean over random pairs and the full
//!   stroke come out about right (Lee and Katz, SIGMETRICS 1993, section 2): all that a data sheet says.
//! - `line`: straight lines through minimum, average at a third of the cylinders, and maximum.
//! - `sum`: constant + linear d + root sqrt(d).
//! - `constant`.
//!
//! Square roots are exact in IEEE arithmetic, so the table is the same on every machine. 8 bytes a cylinder.

use std::sync::Arc;

use headstart_types::{KeyError, Nanos};

use crate::keys::{Keys, TIME_MAX};

/// Seek time of each distance; distance 0 takes none.
#[derive(Debug, Clone)]
pub struct SeekTable(Arc<[Nanos]>);

impl SeekTable {
    /// From the `seek` table of a profile, for distances below `cylinders`.
    ///
    /// # Errors
    /// The key at fault.
    pub(crate) fn from_keys(mut keys: Keys, cylinders: u32) -> Result<Self, KeyError> {
        const FORMS: &str = "\"root-linear\", \"table\", \"min-average-max\", \"line\", \"sum\" or \"constant\"";
        let form = keys.text("form", FORMS)?;
        match form.as_str() {
            "root-linear" => Self::read_root_linear(keys, cylinders),
            "table" => Self::read_table(keys, cylinders),
            "min-average-max" => {
                let [minimum, average, maximum] = three_points(keys)?;
                Ok(Self::min_average_max(cylinders, minimum, average, maximum))
            }
            "line" => {
                let [minimum, average, maximum] = three_points(keys)?;
                Ok(Self::line(cylinders, minimum, average, maximum))
            }
            "sum" => {
                let (constant, linear, root) =
                    (keys.time_or_zero("constant")?, keys.time_or_zero("linear")?, keys.time_or_zero("root")?);
                keys.finish(&["form", "constant", "linear", "root"])?;
                let time = |d: u32| constant + scaled(linear, d) + scaled_root(root, d);
                Ok(Self::tabulate(cylinders, time))
            }
            "constant" => {
                let time = keys.time_or_zero("time")?;
                keys.finish(&["form", "time"])?;
                Ok(Self::tabulate(cylinders, |_| time))
            }
            _ => Err(KeyError::new("form", format!("unknown form \"{form}\""), FORMS)),
        }
    }

    /// No seek takes longer than [`TIME_MAX`], however steep the curve.
    fn tabulate(cylinders: u32, time: impl Fn(u32) -> Nanos) -> Self {
        Self((0..cylinders).map(|d| if d == 0 { Nanos::ZERO } else { time(d).min(TIME_MAX) }).collect())
    }

    fn read_root_linear(mut keys: Keys, cylinders: u32) -> Result<Self, KeyError> {
        let boundary = keys.whole("boundary", 0, u64::from(u32::MAX))? as u32;
        let root = keys.two_times("root")?;
        let linear = keys.two_times("linear")?;
        let first = if keys.has("first_ms") { keys.milliseconds("first_ms")? } else { Vec::new() };
        keys.finish(&["form", "boundary", "root", "linear", "first_ms"])?;
        Ok(Self::root_linear(cylinders, boundary, root, linear, &first))
    }

    /// `first` one by one, then `root[0] + root[1] sqrt(d)` up to `boundary`, `linear[0] + linear[1] d` beyond.
    fn root_linear(cylinders: u32, boundary: u32, root: [Nanos; 2], linear: [Nanos; 2], first: &[Nanos]) -> Self {
        Self::tabulate(cylinders, |d| match first.get(d as usize - 1) {
            Some(time) => *time,
            None if d <= boundary => root[0] + scaled_root(root[1], d),
            None => linear[0] + scaled(linear[1], d),
        })
    }

    fn read_table(mut keys: Keys, cylinders: u32) -> Result<Self, KeyError> {
        let distances = keys.wholes("distances", 1, 100_000_000)?;
        let times = keys.milliseconds("times_ms")?;
        keys.finish(&["form", "distances", "times_ms"])?;
        if distances.len() != times.len() {
            let problem = format!("{} times for {} distances", times.len(), distances.len());
            return Err(KeyError::new("times_ms", problem, "one time for each distance"));
        }
        if let Some(index) = distances.windows(2).position(|pair| pair[0] >= pair[1]) {
            let problem = format!("{} after {}", distances[index + 1], distances[index]);
            return Err(KeyError::new("distances", problem, "rising distances"));
        }
        if distances.len() < 2 {
            return Err(KeyError::new("distances", "too few", "at least two"));
        }
        let points: Vec<(u64, Nanos)> = distances.into_iter().zip(times).collect();
        Ok(Self::interpolate(cylinders, &points))
    }

    /// Straight lines between `points` and on beyond the last two; the first time below the first distance. The
    /// caller guarantees at least two points with rising distances.
    fn interpolate(cylinders: u32, points: &[(u64, Nanos)]) -> Self {
        Self::tabulate(cylinders, |d| {
            let d = u64::from(d);
            let above = points.partition_point(|(distance, _)| *distance < d).clamp(1, points.len() - 1);
            let ((d1, t1), (d2, t2)) = (points[above - 1], points[above]);
            if d <= d1 {
                return t1;
            }
            // At most an hour times 10^7 cylinders: beyond 64 bits before it is cut.
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
    fn min_average_max(cylinders: u32, minimum: Nanos, average: Nanos, maximum: Nanos) -> Self {
        let [min, avg, max] = [minimum, average, maximum].map(|time| time.0 as f64);
        let all = f64::from(cylinders);
        let root = (15.0 * avg - 10.0 * min - 5.0 * max) / (3.0 * all.sqrt());
        let linear = (7.0 * min - 15.0 * avg + 8.0 * max) / (3.0 * all);
        Self::tabulate(cylinders, |d| {
            let beyond = f64::from(d - 1);
            Nanos((min + root * beyond.sqrt() + linear * beyond).round().max(0.0) as u64)
        })
    }

    fn line(cylinders: u32, minimum: Nanos, average: Nanos, maximum: Nanos) -> Self {
        let third = u64::from(cylinders / 3).max(2);
        let last = u64::from(cylinders.saturating_sub(1)).max(third + 1);
        Self::interpolate(cylinders, &[(1, minimum), (third, average), (last, maximum)])
    }

    /// Time to move the arm by `distance` cylinders. The caller guarantees that the drive has more than that.
    #[inline]
    #[must_use]
    pub fn time(&self, distance: u32) -> Nanos {
        self.0[distance as usize]
    }

    /// The times of all distances from 0.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.0
    }
}

/// `scale` times `distance`, as far as it counts: see [`SeekTable::tabulate`].
fn scaled(scale: Nanos, distance: u32) -> Nanos {
    Nanos(scale.0.saturating_mul(distance.into())).min(TIME_MAX)
}

fn scaled_root(scale: Nanos, distance: u32) -> Nanos {
    Nanos((scale.0 as f64 * f64::from(distance).sqrt()).round() as u64)
}

fn three_points(mut keys: Keys) -> Result<[Nanos; 3], KeyError> {
    const KEYS: [&str; 3] = ["minimum", "average", "maximum"];
    let mut times = [Nanos::ZERO; 3];
    for (time, key) in times.iter_mut().zip(KEYS) {
        *time = keys.time_or_zero(key)?;
    }
    keys.finish(&["form", "minimum", "average", "maximum"])?;
    for index in 1..3 {
        if times[index] < times[index - 1] {
            let problem = format!("{} is below {}", times[index], KEYS[index - 1]);
            return Err(KeyError::new(KEYS[index], problem, "minimum <= average <= maximum"));
        }
    }
    Ok(times)
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
        // Measured times may fall: 1.531 ms at 10, 1.515 at 12.
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
        // 10^7 times an hour is beyond 64 bits: each form gives an hour for the far end, and never falls.
        let hour = ms(3.6e6);
        for seek in [
            "form = 'sum'\nconstant = '1ms'\nlinear = '1h'\nroot = '1h'",
            "form = 'root-linear'\nboundary = 1\nroot = ['1ms', '1ms']\nlinear = ['1ms', '1h']",
            "form = 'table'\ndistances = [1, 2]\ntimes_ms = [1, 3_600_000]",
            "form = 'min-average-max'\nminimum = '1ms'\naverage = '2ms'\nmaximum = '1h'",
        ] {
            let keys = Keys::new(seek.parse().expect("TOML"));
            let table = SeekTable::from_keys(keys, 10_000_000).expect("a curve");
            assert!(table.time(9_999_999) * 2 > hour && table.times().iter().all(|time| *time <= hour), "{seek}");
            assert!(seek.contains("min") || table.times().is_sorted(), "{seek}");
        }
    }

    #[test]
    fn three_numbers_of_a_data_sheet() {
        // C = 900, min 2, avg 10, max 18: a = (-20 + 150 - 90) / 90 = 4/9, b = (14 - 150 + 144) / 2700 = 8/2700.
        let table = SeekTable::min_average_max(900, ms(2.0), ms(10.0), ms(18.0));
        assert_eq!(table.time(1), ms(2.0));
        assert_eq!(table.time(101), Nanos(6_740_741)); // 2 + 4/9 * 10 + 8/2700 * 100 = 2 + 4.444444 + 0.296296
        let pairs = |d: usize| 2.0 * (900 - d) as f64;
        let mean = (1..900).map(|d| pairs(d) * table.time(d as u32).0 as f64).sum::<f64>() / (900.0 * 900.0);
        assert!((mean / 1e6 - 10.0).abs() < 0.1, "{mean}");
        let lines = SeekTable::line(900, ms(2.0), ms(10.0), ms(18.0));
        assert_eq!([lines.time(1), lines.time(300), lines.time(899)], [ms(2.0), ms(10.0), ms(18.0)]);
    }
}
