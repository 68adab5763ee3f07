//! Mean request size and shares in exact arithmetic, so that no threshold depends on floating-point rounding.
//!
//! In floating point 0.1 of 70 frames is 7.000000000000001, which rounds up to 8. Here a share is a whole number of
//! billionths and a mean is kept as a fraction.

/// A mean of whole numbers: `blocks / requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Average {
    /// Sum of the counted sizes, in blocks.
    pub blocks: u64,
    /// Number of counted requests.
    pub requests: u64,
}

impl Average {
    /// Counts `size` unless it exceeds twice the current mean. The first size is always counted.
    pub(super) fn take_in(&mut self, size: u64) {
        if self.requests == 0 || wide(size, self.requests) <= wide(self.blocks, 2) {
            self.blocks = self.blocks.saturating_add(size);
            self.requests += 1;
        }
    }

    /// The mean, rounded up; 0 before the first size.
    #[must_use]
    pub fn rounded_up(self) -> u64 {
        self.blocks.div_ceil(self.requests.max(1))
    }

    /// Whether `size` is larger than `share` of the mean.
    pub(super) fn is_exceeded_by(self, size: u64, share: Share) -> bool {
        wide(size, self.requests) * u128::from(Share::ONE.0) > wide(self.blocks, share.0)
    }
}

/// A number from 0 to [`Share::MAX`], to nine decimal places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

impl Share {
    /// A share of 0.
    pub const ZERO: Share = Share(0);
    /// The whole, a share of 1.
    pub const ONE: Share = Share(1_000_000_000);
    /// A thousand times the whole: no threshold needs more, and products stay below 2^128.
    pub const MAX: Share = Share(1000 * Share::ONE.0);

    /// `share`, rounded to nine decimal places; `None` if it is out of range or not a number.
    #[must_use]
    pub fn try_new(share: f64) -> Option<Share> {
        let allowed = (0.0..=(Share::MAX.0 / Share::ONE.0) as f64).contains(&share);
        allowed.then(|| Share((share * Share::ONE.0 as f64).round() as u64))
    }

    /// This share of `whole`, rounded up; at most 2^32 - 1.
    #[must_use]
    pub fn of(self, whole: u32) -> u32 {
        let share = wide(u64::from(whole), self.0).div_ceil(u128::from(Share::ONE.0));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_a_tenth() {
        let tenth = Share::try_new(0.1).unwrap();
        for frames in 0..5000 {
            assert_eq!(tenth.of(frames), frames.div_ceil(10), "{frames}");
        }
        assert_eq!(Share::MAX.of(7), 7000);
        assert_eq!(Share::MAX.of(u32::MAX), u32::MAX);
    }

    #[test]
    fn the_mean_leaves_out_what_is_larger_than_twice_it() {
        let mut average = Average::default();
        for size in [4, 8, 13, 12] {
            average.take_in(size);
        }
        // 4; 8 <= 2 * 4; 13 > 2 * 6 stays out; 12 <= 2 * 6. (4 + 8 + 12) / 3 = 8.
        assert_eq!(average, Average { blocks: 24, requests: 3 });
        average.take_in(1);
        assert_eq!(average.rounded_up(), 7); // 25 / 4 = 6.25
        let half = Share::try_new(0.5).unwrap();
        assert!(average.is_exceeded_by(7, Share::ONE) && !average.is_exceeded_by(6, Share::ONE));
        assert!(average.is_exceeded_by(4, half) && !average.is_exceeded_by(3, half)); // half is 3.125
        for _ in 0..3 {
            average.take_in(u64::from(u32::MAX)); // too large for the mean: no overflow, no change
        }
        assert_eq!(average.requests, 4);
        assert!(average.is_exceeded_by(u64::from(u32::MAX), Share::MAX));
    }

    #[test]
    fn out_of_range_is_refused() {
        for share in [-0.1, 1000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Share::try_new(share), None, "{share}");
        }
        assert_eq!(Share::try_new(1000.0), Some(Share::MAX));
    }
}
