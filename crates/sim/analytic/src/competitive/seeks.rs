//! The expected seek if the scheduler can choose from n requests at random positions: equation (5), Pr[D >= x] = (1 - x
//! / C)^n, so that D / C ~ Beta(1, n).
//!
//! n = 2 gives the mean between two independent positions, which the paper gives for its drives. n = 1 is one request
//! ahead of the arm, at most C away.

use crate::file_system::SeekCurve;

/// Mean seek time of a curve in closed form or a table, exactly. C is the curve's number of cylinders: for a data set
/// on fewer cylinders, pass the corresponding part of the table.
///
/// In a table each distance d is weighted with the probability of d - 1/2 to d + 1/2: for n = 2, as pairs of cylinders
/// are.
#[must_use]
pub fn expected_seek(curve: &SeekCurve, concurrent: u32) -> f64 {
    curve.mean(1, concurrent.max(1))
}

/// Number of equally probable distances at which a function is evaluated.
const POINTS: u32 = 1 << 16;

/// Mean seek time of any function of the distance, over a data set of width `span`, in the function's own unit.
///
/// The mean of the function at the midpoints of 2^16 equally probable distances: for a smooth curve, including square
/// roots, accurate to 1e-5.
#[must_use]
pub fn expected_seek_by(curve: impl Fn(f64) -> f64, span: f64, concurrent: u32) -> f64 {
    let root = 1.0 / f64::from(concurrent.max(1));
    let distance = |chance: f64| span * (1.0 - libm::pow(chance, root));
    let point = |index: u32| curve(distance((f64::from(index) + 0.5) / f64::from(POINTS)));
    (0..POINTS).map(point).sum::<f64>() / f64::from(POINTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, expected: f64, relative: f64) {
        assert!((ours / expected - 1.0).abs() < relative, "{ours} is not {expected}");
    }

    #[test]
    fn a_line_has_the_mean_distance() {
        // E[D] = C / (n + 1).
        let table = SeekCurve::Table((0..5000).map(f64::from).collect());
        let formula = SeekCurve::Roots { a: 0.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, cylinders: 5000 };
        for n in [1, 2, 3, 8, 64] {
            let mean = 5000.0 / (f64::from(n) + 1.0);
            near(expected_seek(&table, n), mean, 1e-3);
            near(expected_seek(&formula, n), mean, 1e-12);
            near(expected_seek_by(|distance| distance, 5000.0, n), mean, 1e-5);
        }
    }

    #[test]
    fn two_requests_are_two_random_places() {
        // All pairs of 40 cylinders, one by one.
        let times: Vec<f64> = (0..40).map(|d| if d == 0 { 0.0 } else { 1e6 + 2e5 * f64::from(d).sqrt() }).collect();
        let pairs = (0..40_usize).flat_map(|from| (0..40_usize).map(move |to| from.abs_diff(to)));
        let mean = pairs.map(|distance| times[distance]).sum::<f64>() / 1600.0;
        near(expected_seek(&SeekCurve::Table(times), 2), mean, 1e-3);
    }

    #[test]
    fn functions_tables_and_formulas_agree() {
        let (a, b) = (6e5, 8e4);
        let formula = SeekCurve::Roots { a, b, c: 0.0, d: 0.0, e: 20_000.0, cylinders: 20_000 };
        let time = |distance: f64| a + b * distance.sqrt();
        let table = SeekCurve::Table((0..20_000).map(|d| if d == 0 { 0.0 } else { time(d.into()) }).collect());
        for n in [1, 2, 4, 16, 64] {
            let exact = expected_seek(&formula, n);
            near(expected_seek(&table, n), exact, 2e-3);
            near(expected_seek_by(time, 20_000.0, n), exact, 1e-5);
        }
    }

    #[test]
    fn the_nearest_of_many_is_near() {
        // Distances as seen by the scheduler: the minimum of n uniform numbers, by Weyl's sequences.
        let primes = [2.0_f64, 3.0, 5.0, 7.0];
        let rounds = 100_000;
        let least =
            |round: u32| primes.iter().map(|prime| (f64::from(round) * prime.sqrt()).fract()).fold(1.0, f64::min);
        let mean = (1..=rounds).map(|round| least(round).sqrt()).sum::<f64>() / f64::from(rounds);
        near(expected_seek_by(f64::sqrt, 1.0, 4), mean, 0.01);
    }
}
