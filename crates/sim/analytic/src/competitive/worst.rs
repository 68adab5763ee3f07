//! The worst-case ratio of a schedule's cost to the optimum: the supremum over all lengths of a stream. Our addition;
//! the paper bounds it.
//!
//! The cost jumps at the start of a prefetch and is constant until the next, while the optimum grows with the length.
//! The ratio is therefore largest just above a length at which everything fetched was used. With k prefetches, F_k
//! bytes by the k-th and s bytes per switch it is (k s + F_k) / (s + F_(k-1)). After the ramp that is a quotient of two
//! linear functions of k, whose maximum is at the first k or in the limit 1 + s / depth: the values to compare are the
//! ramp's prefetches and two more.

use super::{competitive_depth, Schedule};

/// The worst case of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worst {
    /// Least upper bound of cost over optimum; not reached, but approached arbitrarily closely.
    pub ratio: f64,
    /// By streams just longer than this, in bytes; infinite if by ever longer ones.
    pub above_bytes: f64,
    /// The prefetch of which such a stream uses almost nothing, from 1; `None` for ever longer ones.
    pub prefetch: Option<u64>,
}

/// The supremum over streams, with switches of `switch_ns` and a rate of `bytes_per_second`.
#[must_use]
pub fn worst(schedule: &Schedule, switch_ns: f64, bytes_per_second: f64) -> Worst {
    let switch_bytes = competitive_depth(switch_ns, bytes_per_second);
    let mut found = Worst { ratio: 0.0, above_bytes: 0.0, prefetch: None };
    let mut used = 0.0;
    for k in 1..=schedule.slow_prefetches() + 1 {
        let fetched = used + schedule.size(k);
        let ratio = (k as f64 * switch_bytes + fetched) / (switch_bytes + used);
        if ratio > found.ratio {
            found = Worst { ratio, above_bytes: used, prefetch: Some(k) };
        }
        used = fetched;
    }
    let limit = 1.0 + switch_bytes / schedule.depth_bytes;
    if limit > found.ratio {
        found = Worst { ratio: limit, above_bytes: f64::INFINITY, prefetch: None };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Switches of 98 pages, in pages.
    fn in_pages(schedule: &Schedule) -> Worst {
        worst(schedule, 98.0, 1e9)
    }

    #[test]
    fn constant_depths_by_hand() {
        // The competitive depth: 2 for a stream of almost zero length, and for every whole number of prefetches.
        let competitive = Worst { ratio: 2.0, above_bytes: 0.0, prefetch: Some(1) };
        assert_eq!(in_pages(&Schedule::constant(98.0)), competitive);
        // Twice as deep wastes two switches' time: 3. Half as deep switches twice as often: 3 in the limit.
        assert_eq!(in_pages(&Schedule::constant(196.0)), Worst { ratio: 3.0, ..competitive });
        let endless = Worst { ratio: 3.0, above_bytes: f64::INFINITY, prefetch: None };
        assert_eq!(in_pages(&Schedule::constant(49.0)), endless);
    }

    #[test]
    fn the_papers_slow_start_by_hand() {
        // 16, 32, 64, 98 ... pages. By prefetch: 114/98, (196+48)/114, (294+112)/146, (392+210)/210, (490+308)/308.
        let found = in_pages(&Schedule::slow_start(16.0, 98.0));
        assert_eq!(found, Worst { ratio: 602.0 / 210.0, above_bytes: 112.0, prefetch: Some(4) });
    }

    #[test]
    fn a_long_ramp_is_worst_before_its_end() {
        // From a thousandth of the depth: at the eighth of ten prefetches.
        let found = worst(&Schedule::slow_start(1.0, 1024.0), 1024.0, 1e9);
        let at = |k: u64| {
            let fetched = |k: u64| ((1_u64 << k) - 1) as f64;
            (k as f64 * 1024.0 + fetched(k)) / (1024.0 + fetched(k - 1))
        };
        let most = (1..=10).map(at).fold(0.0, f64::max);
        assert_eq!((found.ratio, found.prefetch), (most, Some(9)));
        assert!(found.ratio > 7.6 && found.ratio < 12.0, "{found:?}");
    }
}
