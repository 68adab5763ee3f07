//! The depth that balances switches and waste, and its guarantees: equations (7), (8), (14) and (15).

use super::{Schedule, Stream};

/// The data that passes the head in the time of a switch (seek and rotation). `S_p` of equation (8).
#[must_use]
pub fn competitive_depth(switch_ns: f64, bytes_per_second: f64) -> f64 {
    switch_ns * bytes_per_second / 1e9
}

/// A depth in whole pages: the nearest number, at least one.
#[must_use]
pub fn whole_pages(depth_bytes: f64, page_bytes: f64) -> f64 {
    (depth_bytes / page_bytes).round().max(1.0) * page_bytes
}

/// The ratio to the optimum that streams prefetched to the competitive depth stay below, after a slow start of this
/// many prefetches. 2 without one, equation (8); 2 + P with it, equation (15).
#[must_use]
pub fn competitive_ratio(slow_prefetches: u64) -> f64 {
    2.0 + slow_prefetches as f64
}

/// The two lines of equation (14), for one stream; without a slow start, of equation (7).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpperBounds {
    /// The stream costs at most this.
    pub at_most_ns: f64,
    /// The stream costs less than this.
    pub less_than_ns: f64,
}

/// The bounds on the cost of a stream, for any depth, competitive or not. The caller guarantees that no prefetch of the
/// ramp is larger than the depth.
#[must_use]
pub fn upper_bounds(stream: &Stream, schedule: &Schedule, switch_ns: f64) -> UpperBounds {
    let Stream { length_bytes, .. } = *stream;
    let depth = schedule.depth_bytes;
    let slow = schedule.slow_prefetches() as f64;
    let transfers = stream.transfer_ns(length_bytes) + stream.transfer_ns(depth);
    UpperBounds {
        at_most_ns: transfers + (((length_bytes - schedule.slow_bytes()) / depth).ceil() + slow) * switch_ns,
        less_than_ns: transfers + (length_bytes / depth + 1.0 + slow) * switch_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: f64 = 1e3;
    const MB: f64 = 1e6;
    const MS: f64 = 1e6;

    fn rounded_kb(switch_ms: f64, megabytes_per_second: f64) -> f64 {
        (competitive_depth(switch_ms * MS, megabytes_per_second * MB) / KB).round()
    }

    /// Section 5. The paper's MB are 10^6 bytes and its KB 10^3.
    #[test]
    fn the_papers_ibm_drive() {
        assert_eq!(rounded_kb(7.53 + 3.00, 37.3), 393.0);
        // No other interpretation of the units gives 393: 411.9, 402.2 and 383.6.
        let (mib, kib) = (1024.0 * 1024.0, 1024.0);
        for (mega, kilo) in [(mib, KB), (mib, kib), (MB, kib)] {
            let other = competitive_depth(10.53 * MS, 37.3 * mega) / kilo;
            assert!((other - 393.0).abs() > 9.0, "{other}");
        }
        // Its 37.5 MB/s, given as 300 Mb/s, agree.
        assert_eq!(37.5 * MB * 8.0, 300.0 * MB);
    }

    /// Section 5 gives an "average seek time" of 7.98 ms for the Seagate drive and the array. Its depths of 446 KB and
    /// 646 KB only follow if those 7.98 ms are the whole switch; 446 only before rounding, since 7.98 ms x 55.8 MB/s
    /// are 445.3 KB.
    #[test]
    fn the_papers_seagate_drive_and_array() {
        assert_eq!((rounded_kb(7.98, 55.8), rounded_kb(7.98, 80.9)), (445.0, 646.0));
        let (least, most) = (rounded_kb(7.975, 55.75), rounded_kb(7.985, 55.85));
        assert!((least..=most).contains(&446.0), "{least} to {most}");
        // As a seek plus half a revolution of 3.00 ms.
        assert_eq!((rounded_kb(7.98 + 3.00, 55.8), rounded_kb(7.98 + 3.00, 80.9)), (613.0, 888.0));
    }

    #[test]
    fn whole_pages_by_hand() {
        assert_eq!(
            [392_769.0, 6143.0, 6145.0, 10.0].map(|bytes| whole_pages(bytes, 4096.0) / 4096.0),
            [96.0, 1.0, 2.0, 1.0]
        );
    }

    /// Equation (14) with the slow start of section 4.3 in pages, at a page per nanosecond.
    #[test]
    fn bounds_by_hand() {
        let stream = |length_bytes| Stream { length_bytes, bytes_per_second: 1e9 };
        let slow = Schedule::slow_start(16.0, 98.0);
        // (200 + 98) + (ceil(88 / 98) + 3) 98, and (200 + 98) + (200 / 98 + 1 + 3) 98.
        let expected = UpperBounds { at_most_ns: 298.0 + 4.0 * 98.0, less_than_ns: 298.0 + 200.0 + 4.0 * 98.0 };
        assert_eq!(upper_bounds(&stream(200.0), &slow, 98.0), expected);
        // Equation (7).
        let expected = UpperBounds { at_most_ns: 298.0 + 3.0 * 98.0, less_than_ns: 298.0 + 200.0 + 98.0 };
        assert_eq!(upper_bounds(&stream(200.0), &Schedule::constant(98.0), 98.0), expected);
        assert_eq!((competitive_ratio(0), competitive_ratio(3)), (2.0, 5.0));
        // A whole number of prefetches: 196 are two, 112 of slow start and 98 are four, and 112 alone are three.
        let at_most = |length, schedule: &Schedule| upper_bounds(&stream(length), schedule, 98.0).at_most_ns;
        assert_eq!(at_most(196.0, &Schedule::constant(98.0)), 196.0 + 98.0 + 2.0 * 98.0);
        assert_eq!(at_most(210.0, &slow), 210.0 + 98.0 + 4.0 * 98.0);
        assert_eq!(at_most(112.0, &slow), 112.0 + 98.0 + 3.0 * 98.0);
    }
}
