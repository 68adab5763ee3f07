//! Mean seek times from a seek curve, for n streams whose requests are served in the order of their cylinders.
//!
//! The arm moves M X cylinders, where M is their number. In the tables' form:
//! - G(n): from one request to the next of n, X ~ Beta(1, n + 1), with mean M / (n + 2) as in section 4.4 of the paper;
//!   G(1), with mean M / 3, between two random positions.
//! - R(n): back from the last of n requests to the first, X ~ Beta(n - 1, 3), with mean M (n - 1) / (n + 2).
//!
//! These distributions were found by fitting Table 4; the paper gives means, and "a large seek time" for the way back.
//! In the other form, the n positions are independent and uniform: from one to the next X ~ Beta(1, n), and back from
//! the last to the first X ~ Beta(n - 1, 2).
//!
//! Exact for both kinds of curve. The formula's pieces are powers of the distance, so their expectations are incomplete
//! beta functions with one integer parameter; a table's are sums over cylinders. Cost: n steps for a formula, two
//! powers per cylinder for a table, once for each n; afterwards a look-up. Memory: 40 bytes for each n up to the
//! largest.

/// Seek time by distance.
#[derive(Debug, Clone, PartialEq)]
pub enum SeekCurve {
    /// There is no arm.
    None,
    /// Equation (1): 0, then `a + b sqrt(d)` up to distance `e`, then `c + d d`. In nanoseconds; `e` in cylinders.
    Roots {
        /// Constant of short seeks: starting and settling.
        a: f64,
        /// Factor of the square root of the distance.
        b: f64,
        /// Constant of long seeks: starting and settling.
        c: f64,
        /// Factor of the distance.
        d: f64,
        /// The longest short seek, in cylinders.
        e: f64,
        /// M; at least 1.
        cylinders: u32,
    },
    /// By distance in cylinders from 0, in nanoseconds; as many as there are cylinders. Not empty.
    Table(Vec<f64>),
}

/// Mean seek times for n streams, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moments {
    /// G(n).
    pub next: f64,
    /// R(n); zero for one stream.
    pub back: f64,
    /// From one of n positions to the next; for one, between two random positions.
    pub step: f64,
    /// From the last of n positions to the first; zero for one.
    pub turn: f64,
}

/// A curve and the mean seek times computed so far.
#[derive(Debug, Clone)]
pub struct Seeks {
    curve: SeekCurve,
    known: Vec<Option<Moments>>,
}

impl Seeks {
    #[must_use]
    pub fn new(curve: SeekCurve) -> Self {
        Self { curve, known: Vec::new() }
    }

    #[must_use]
    pub fn curve(&self) -> &SeekCurve {
        &self.curve
    }

    /// For `n` streams, at least 1.
    #[inline]
    pub(super) fn moments(&mut self, n: u32) -> Moments {
        match self.known.get(n as usize) {
            Some(Some(moments)) => *moments,
            _ => self.compute(n),
        }
    }

    #[cold]
    fn compute(&mut self, n: u32) -> Moments {
        let moments = Moments {
            next: self.curve.mean(1, n + 1),
            back: if n > 1 { self.curve.mean(n - 1, 3) } else { 0.0 },
            step: self.curve.mean(1, n.max(2)),
            turn: if n > 1 { self.curve.mean(n - 1, 2) } else { 0.0 },
        };
        let index = n as usize;
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some(moments);
        moments
    }

    /// From a cylinder to the next.
    pub(super) fn next_cylinder(&self) -> f64 {
        match &self.curve {
            SeekCurve::None => 0.0,
            SeekCurve::Roots { a, b, e, .. } if *e >= 1.0 => a + b,
            SeekCurve::Roots { c, d, .. } => c + d,
            SeekCurve::Table(times) => times.get(1).copied().unwrap_or(0.0),
        }
    }

    /// From the first cylinder to the last.
    pub(super) fn full_stroke(&self) -> f64 {
        match &self.curve {
            SeekCurve::None => 0.0,
            SeekCurve::Roots { a, b, c, d, e, cylinders } => {
                let distance = f64::from(cylinders - 1);
                if distance <= *e {
                    a + b * distance.sqrt()
                } else {
                    c + d * distance
                }
            }
            SeekCurve::Table(times) => times.last().copied().unwrap_or(0.0),
        }
    }
}

impl SeekCurve {
    /// Over `distance` cylinders, capped at the last one.
    pub(crate) fn time(&self, distance: u32) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Table(times) => times.get(distance as usize).or(times.last()).copied().unwrap_or(0.0),
            Self::Roots { .. } if distance == 0 => 0.0,
            Self::Roots { a, b, e, .. } if f64::from(distance) <= *e => a + b * f64::from(distance).sqrt(),
            Self::Roots { c, d, .. } => c + d * f64::from(distance),
        }
    }

    /// The same distances with the squares of their times.
    pub(crate) fn squared(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Table(times) => Self::Table(times.iter().map(|time| time * time).collect()),
            Self::Roots { cylinders, .. } => {
                Self::Table((0..*cylinders).map(|distance| self.time(distance) * self.time(distance)).collect())
            }
        }
    }

    /// Mean seek time over a distance of M X, X ~ Beta(p, q), both integers.
    pub(crate) fn mean(&self, p: u32, q: u32) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Roots { a, b, c, d, e, cylinders } => {
                let all = f64::from(*cylinders);
                let short = (e / all).clamp(0.0, 1.0);
                let p = f64::from(p);
                let below = |power: f64| incomplete_beta(p + power, q, short);
                let beyond = |power: f64| incomplete_beta(p + power, q, 1.0) - below(power);
                let sum = a * below(0.0) + b * all.sqrt() * below(0.5) + c * beyond(0.0) + d * all * beyond(1.0);
                sum / incomplete_beta(p, q, 1.0)
            }
            Self::Table(times) => table_mean(times, p, q),
        }
    }
}

/// Each distance d is weighted with the probability of d - 1/2 to d + 1/2. With X ~ Beta(1, 2) these are the weights of
/// uniformly drawn pairs of cylinders.
fn table_mean(times: &[f64], p: u32, q: u32) -> f64 {
    let all = times.len() as f64;
    let p = f64::from(p);
    let whole = incomplete_beta(p, q, 1.0);
    let chance_up_to = |distance: usize| match q {
        _ if distance + 1 >= times.len() => 1.0,
        // Beta(1, q) in closed form.
        _ if p == 1.0 => 1.0 - libm::pow(1.0 - (distance as f64 + 0.5) / all, f64::from(q)),
        _ => incomplete_beta(p, q, (distance as f64 + 0.5) / all) / whole,
    };
    let (mut sum, mut before) = (0.0, 0.0);
    for (distance, time) in times.iter().enumerate() {
        let up_to = chance_up_to(distance);
        sum += time * (up_to - before);
        before = up_to;
    }
    sum
}

/// The integral of u^(p-1) (1-u)^(q-1) from 0 to `t`, p > 0, q an integer of at least 1. By parts from q = 1 on: B(t;
/// p, q + 1) = (q B(t; p, q) + t^p (1-t)^q) / (p + q). All terms are positive, so there is no cancellation.
fn incomplete_beta(p: f64, q: u32, t: f64) -> f64 {
    let mut power = libm::pow(t, p);
    let mut integral = power / p;
    for q in 1..q {
        power *= 1.0 - t;
        integral = (f64::from(q) * integral + power) / (p + f64::from(q));
    }
    integral
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::tables;

    fn near(ours: f64, expected: f64, relative: f64) {
        assert!((ours / expected - 1.0).abs() < relative, "{ours} is not {expected}");
    }

    /// The midpoint rule with a million steps, directly from the definition.
    fn quadrature(curve: impl Fn(f64) -> f64, density: impl Fn(f64) -> f64) -> f64 {
        const STEPS: u32 = 1_000_000;
        let point = |step: u32| (f64::from(step) + 0.5) / f64::from(STEPS);
        (0..STEPS).map(|step| curve(point(step)) * density(point(step))).sum::<f64>() / f64::from(STEPS)
    }

    #[test]
    fn beta_functions_by_hand() {
        near(incomplete_beta(1.0, 1, 0.25), 0.25, 1e-15);
        // The integral of u (1-u)^2 is t^2/2 - 2 t^3/3 + t^4/4.
        near(incomplete_beta(2.0, 3, 0.5), 0.125 - 2.0 / 24.0 + 1.0 / 64.0, 1e-14);
        // B(3/2, 2) = 4/15.
        near(incomplete_beta(1.5, 2, 1.0), 4.0 / 15.0, 1e-14);
    }

    #[test]
    fn means_equal_quadrature() {
        let mut seeks = Seeks::new(tables::seek_curve());
        let curve = |x: f64| {
            let distance = 6526.0 * x;
            if distance <= 801.0 {
                2000.0 + 173_000.0 * distance.sqrt()
            } else {
                3_597_000.0 + 2000.0 * distance
            }
        };
        for n in [1_u32, 2, 3, 4, 8, 16, 64] {
            let many = f64::from(n);
            let moments = seeks.moments(n);
            let next = quadrature(curve, |x| (many + 1.0) * libm::pow(1.0 - x, many));
            near(moments.next, next, 1e-6);
            if n > 1 {
                let scale = (many - 1.0) * many * (many + 1.0) / 2.0;
                let back = quadrature(curve, |x| scale * libm::pow(x, many - 2.0) * (1.0 - x) * (1.0 - x));
                near(moments.back, back, 1e-6);
                near(
                    moments.turn,
                    quadrature(curve, |x| (many - 1.0) * many * libm::pow(x, many - 2.0) * (1.0 - x)),
                    1e-6,
                );
            }
        }
    }

    #[test]
    fn a_line_has_the_papers_means() {
        // Seek time = distance: M / (n + 2) from one to the next, M (n - 1) / (n + 2) back.
        let line = |cylinders| SeekCurve::Roots { a: 0.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, cylinders };
        let table = SeekCurve::Table((0..6000).map(f64::from).collect());
        for n in [1, 2, 5, 30] {
            let many = f64::from(n);
            for curve in [line(6000), table.clone()] {
                let moments = Seeks::new(curve).moments(n);
                near(moments.next, 6000.0 / (many + 2.0), 1e-4);
                assert!((moments.back - 6000.0 * (many - 1.0) / (many + 2.0)).abs() < 0.5, "{moments:?}");
            }
        }
    }

    #[test]
    fn a_table_of_the_formula_has_its_means() {
        let SeekCurve::Roots { a, b, c, d, e, cylinders } = tables::seek_curve() else { panic!("a formula") };
        let time = |distance: f64| match distance {
            0.0 => 0.0,
            short if short <= e => a + b * short.sqrt(),
            long => c + d * long,
        };
        let mut table = Seeks::new(SeekCurve::Table((0..cylinders).map(|x| time(x.into())).collect()));
        let mut formula = Seeks::new(tables::seek_curve());
        for n in [1, 2, 4, 16] {
            near(table.moments(n).next, formula.moments(n).next, 1e-3);
            assert!((table.moments(n).back - formula.moments(n).back).abs() < 1e-3 * formula.full_stroke());
        }
        near(table.full_stroke(), formula.full_stroke(), 1e-12);
    }

    /// Positions drawn at random and served upward, directly from the definition.
    #[test]
    fn a_round_is_that_of_places_drawn_evenly() {
        let mut seeks = Seeks::new(tables::seek_curve());
        let SeekCurve::Roots { a, b, c, d, e, cylinders } = tables::seek_curve() else { panic!("a formula") };
        let curve = |x: f64| {
            let distance = f64::from(cylinders) * x;
            if distance <= e {
                a + b * distance.sqrt()
            } else {
                c + d * distance
            }
        };
        // Weyl's sequences, one for each position: uniform, and deterministic.
        let place = |round: u32, prime: f64| (f64::from(round) * prime.sqrt()).fract();
        let primes = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0];
        for n in [2_u32, 3, 5, 8] {
            const ROUNDS: u32 = 200_000;
            let mut sum = 0.0;
            for round in 1..=ROUNDS {
                let mut places: Vec<f64> = primes[..n as usize].iter().map(|prime| place(round, *prime)).collect();
                places.sort_by(f64::total_cmp);
                sum += places.windows(2).map(|pair| curve(pair[1] - pair[0])).sum::<f64>();
                sum += curve(places[places.len() - 1] - places[0]);
            }
            let moments = seeks.moments(n);
            near(f64::from(n - 1) * moments.step + moments.turn, sum / f64::from(ROUNDS), 0.01);
        }
    }

    #[test]
    fn many_streams_stay_finite() {
        let mut seeks = Seeks::new(tables::seek_curve());
        let moments = seeks.moments(10_000);
        assert!(moments.next > 2000.0 && moments.next < 300_000.0, "{moments:?}");
        near(moments.back, seeks.full_stroke(), 1e-3);
    }
}
