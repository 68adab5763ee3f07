//! Rotation without drift: which sector passes the head at which nanosecond.
//!
//! The platter is at angle 0 at time 0 and rotates at exactly rpm revolutions per minute. A revolution is not a whole
//! number of nanoseconds (60e9 / 4002), but a minute is a whole number of revolutions. Time is therefore kept as (start
//! of a minute, *tick* within it); a tick is the passage of one sector of the zone: `rpm * sectors` ticks per minute.
//! Tick n begins at the first whole nanosecond not before n * 60e9 / (rpm * sectors) of its minute; errors do not
//! accumulate, and no instant is ever early.

use headstart_types::Nanos;

const MINUTE: u64 = 60_000_000_000;

/// Below this, ticks * MINUTE fits in 64 bits.
const SMALL: u64 = u64::MAX / MINUTE;

/// The instant at which the boundary between two sectors passes the head, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Start of a minute.
    base: u64,
    /// Sectors passed since `base`.
    count: u64,
}

/// The rotation in one zone.
#[derive(Debug, Clone)]
pub struct Rotation {
    sectors: u64,
    per_minute: u64,
    /// Time of a sector, rounded up.
    sector: Nanos,
}

impl Rotation {
    /// `rpm` revolutions per minute, `sectors` sectors per revolution.
    #[must_use]
    pub fn new(rpm: u32, sectors: u32) -> Self {
        let per_minute = u64::from(rpm) * u64::from(sectors);
        let sector = Nanos(MINUTE.div_ceil(per_minute.max(1)));
        Self { sectors: u64::from(sectors), per_minute, sector }
    }

    /// The first tick, not before `time`, at which the sector of angle `angle` (in sectors) begins.
    #[inline]
    #[must_use]
    pub fn next(&self, time: Nanos, angle: u64) -> Tick {
        let within = time.0 % MINUTE;
        // The least n whose instant, n * MINUTE / per_minute rounded up, is not before `within`. The product is below
        // 60e9 * per_minute; profiles keep per_minute at most 3e8.
        let first = if within == 0 { 0 } else { (within - 1) * self.per_minute / MINUTE + 1 };
        let (angle, at) = (angle % self.sectors, first % self.sectors);
        let wait = if angle >= at { angle - at } else { angle + self.sectors - at };
        Tick { base: time.0 - within, count: first + wait }
    }

    /// `sectors` sectors after `tick`.
    #[inline]
    #[must_use]
    pub fn after(&self, tick: Tick, sectors: u64) -> Tick {
        let mut later = Tick { base: tick.base, count: tick.count + sectors };
        if later.count >= self.per_minute {
            later.base += later.count / self.per_minute * MINUTE;
            later.count %= self.per_minute;
        }
        later
    }

    /// The instant of a tick.
    #[inline]
    #[must_use]
    pub fn time(&self, tick: Tick) -> Nanos {
        Nanos(tick.base + self.span(tick.count))
    }

    /// Ticks from `tick` to the last one not after `time`; 0 if `time` is before it.
    #[inline]
    #[must_use]
    pub fn passed(&self, tick: Tick, time: Nanos) -> u64 {
        let since = time.0.saturating_sub(tick.base);
        let count = if since <= MINUTE {
            since * self.per_minute / MINUTE
        } else {
            (u128::from(since) * u128::from(self.per_minute) / u128::from(MINUTE)) as u64
        };
        count.saturating_sub(tick.count)
    }

    /// The smallest number of ticks from the start of a minute that take at least `time`.
    #[must_use]
    pub fn least(&self, time: Nanos) -> u64 {
        match time.0 {
            0 => 0,
            ns => (u128::from(ns - 1) * u128::from(self.per_minute) / u128::from(MINUTE)) as u64 + 1,
        }
    }

    /// The time in which a sector passes, rounded up.
    #[inline]
    #[must_use]
    pub fn sector(&self) -> Nanos {
        self.sector
    }

    /// Ticks per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.per_minute as f64 / 60.0
    }

    /// A lower bound of the time in which `sectors` sectors pass, from any angle.
    #[must_use]
    pub fn least_span(&self, sectors: u64) -> Nanos {
        Nanos((u128::from(sectors) * u128::from(MINUTE) / u128::from(self.per_minute)) as u64)
    }

    /// Nanoseconds of `count` ticks from the start of a minute, rounded up.
    #[inline]
    #[must_use]
    pub fn span(&self, count: u64) -> u64 {
        if count <= SMALL {
            (count * MINUTE).div_ceil(self.per_minute)
        } else {
            (u128::from(count) * u128::from(MINUTE)).div_ceil(u128::from(self.per_minute)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_minute_is_a_whole_number_of_turns() {
        let rotation = Rotation::new(4002, 72);
        let start = rotation.next(Nanos::ZERO, 0);
        assert_eq!(rotation.time(start), Nanos::ZERO);
        // One revolution: 60e9 / 4002 = 14,992,503.7 ns; one sector: 208,229.2 ns.
        assert_eq!(rotation.time(rotation.after(start, 72)), Nanos(14_992_504));
        assert_eq!(rotation.time(rotation.after(start, 1)), Nanos(208_230));
        assert_eq!(rotation.time(rotation.after(start, 72 * 4002)), Nanos(MINUTE));
        assert_eq!(rotation.time(rotation.after(start, 72 * 4002 * 1_000_000)), Nanos(MINUTE * 1_000_000));
        // Just after sector 0 began, it comes again a revolution later.
        assert_eq!(rotation.time(rotation.next(Nanos(1), 0)), Nanos(14_992_504));
        assert_eq!(rotation.time(rotation.next(Nanos(1), 1)), Nanos(208_230));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Never early, never a revolution late, at the right angle, and independent of intermediate steps.
        #[test]
        fn the_next_passage_is_the_first(
            time in 0u64..1 << 52, rpm in 1u32..20_000, sectors in 1u32..2_000, angle in 0u64..5_000,
            more in 0u64..1 << 28,
        ) {
            let rotation = Rotation::new(rpm, sectors);
            let tick = rotation.next(Nanos(time), angle);
            let at = rotation.time(tick).0;
            prop_assert!(at >= time);
            let turn = (MINUTE).div_ceil(u64::from(rpm));
            prop_assert!(at - time <= turn, "{} > {turn}", at - time);
            prop_assert_eq!(tick.count % u64::from(sectors), angle % u64::from(sectors));
            prop_assert_eq!(rotation.next(Nanos(at), angle), rotation.after(tick, 0));
            let later = rotation.after(tick, more);
            prop_assert_eq!(rotation.passed(tick, rotation.time(later)), more);
            let least = rotation.least(Nanos(time));
            prop_assert!(rotation.span(least) >= time && (least == 0 || rotation.span(least - 1) < time));
        }
    }
}
