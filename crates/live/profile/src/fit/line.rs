//! A straight line through medians: the time of a read by its size.

use super::super::depths::Timed;
use super::super::lab::WIDTH;

/// Relative error of a median that never changes: clock resolution and rounding.
const ROUNDED: f64 = 2e-4;
/// Standard error of a median in units of a mean's, for normal times.
const OF_MEDIAN: f64 = 1.2533;
/// Distance of the quartiles in standard deviations, for normal times.
const QUARTILES: f64 = 1.349;

/// Nanoseconds of a read of `sectors`: `first_ns + sectors * sector_ns`, each with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub first_ns: f64,
    pub first_error_ns: f64,
    pub sector_ns: f64,
    pub sector_error_ns: f64,
}

/// The quantile of `values` at `share`.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match sorted.is_empty() {
        true => 0.0,
        false => sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor()),
    }
}

/// The standard error of a median.
pub(in super::super) fn median_error(values: &[f64]) -> f64 {
    let deviation = (quantile(values, 0.75) - quantile(values, 0.25)) / QUARTILES;
    OF_MEDIAN * deviation / (values.len().max(1) as f64).sqrt()
}

impl Line {
    /// Weighted least squares of the medians. If they scatter more than their errors allow, the errors are scaled up.
    pub fn through(timed: &[Timed]) -> Self {
        let points: Vec<(f64, f64, f64)> = timed
            .iter()
            .map(|timed| {
                let median = quantile(&timed.times_ns, 0.5);
                let error = median_error(&timed.times_ns).hypot(ROUNDED * median).max(1.0);
                (f64::from(timed.sectors), median, 1.0 / (error * error))
            })
            .collect();
        let sum = |of: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let weight = sum(&|point| point.2);
        let (x, y) = (sum(&|point| point.2 * point.0) / weight, sum(&|point| point.2 * point.1) / weight);
        let across = sum(&|point| point.2 * (point.0 - x).powi(2));
        let slope = if across > 0.0 { sum(&|point| point.2 * (point.0 - x) * (point.1 - y)) / across } else { 0.0 };
        let sector_ns = slope.max(0.0);
        let first_ns = (y - sector_ns * x).max(0.0);
        let misfit = sum(&|point| point.2 * (point.1 - first_ns - sector_ns * point.0).powi(2));
        let grown = (misfit / (points.len() as f64 - 2.0).max(1.0)).sqrt().max(1.0);
        let slope_error = if across > 0.0 { (1.0 / across).sqrt() } else { 0.0 };
        Self {
            first_ns,
            first_error_ns: WIDTH * grown * (1.0 / weight + x * x * slope_error * slope_error).sqrt(),
            sector_ns,
            sector_error_ns: WIDTH * grown * slope_error,
        }
    }

    /// Bytes per second with the error; `None` if longer reads take no longer within the error.
    pub fn rate(&self) -> Option<(f64, f64)> {
        let rate = headstart_device::SECTOR_BYTES as f64 * 1e9 / self.sector_ns.max(1e-9);
        (self.sector_ns > self.sector_error_ns).then(|| (rate, rate * self.sector_error_ns / self.sector_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(sectors: u32, times: &[f64]) -> Timed {
        Timed { sectors, times_ns: times.to_vec() }
    }

    #[test]
    fn a_line_is_found() {
        let line = Line::through(&[timed(8, &[1_080.0; 3]), timed(16, &[1_160.0; 3]), timed(800, &[9_000.0; 3])]);
        assert!((line.first_ns - 1_000.0).abs() < 1e-6 && (line.sector_ns - 10.0).abs() < 1e-9, "{line:?}");
        let (rate, error) = line.rate().expect("longer reads take longer");
        assert!((rate - 51.2e9).abs() < 1.0 && error > 0.0 && error < 0.01 * rate, "{rate} {error}");
        let flat = Line::through(&[timed(8, &[2e6; 9]), timed(80, &[2e6; 9]), timed(8_000, &[2e6; 9])]);
        assert_eq!((flat.rate(), flat.first_ns.round()), (None, 2e6));
    }

    #[test]
    fn quantiles_by_hand() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&values, share)), [1.0, 2.5, 4.0]);
        // Quartiles 1.75 and 3.25: 1.5 / 1.349 of a deviation; four values.
        assert!((median_error(&values) - 1.2533 * 1.5 / 1.349 / 2.0).abs() < 1e-12);
        assert_eq!((quantile(&[], 0.5), median_error(&[5.0])), (0.0, 0.0));
    }
}
