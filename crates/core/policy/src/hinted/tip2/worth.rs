//! The costs and benefits of a buffer in one currency: I/O service time saved or lost per reference and buffer.
//!
//! The model. A reference takes T_hit from the cache, and T_miss = T_hit + T_driver + T_disk otherwise. A process is
//! assumed to compute nothing between references (T_CPU = 0), which gives the greatest depths and benefits.
//!
//! Prefetching. A process that keeps x blocks in flight ahead of itself waits for the first of each x blocks and finds
//! the others resident, provided that the disks serve them in parallel: it stalls T_disk - x (T_hit + T_driver) per x
//! references. Including its own T_hit and T_driver a reference takes
//!
//! ```text
//! T_pf(0) = T_miss,   T_pf(x) = T_disk / x  for 0 < x < P,   T_pf(x) = T_hit + T_driver  for x >= P
//! P = T_disk / (T_hit + T_driver)              the prefetch horizon: deeper gains nothing
//! benefit(x) = T_pf(x - 1) - T_pf(x)           of the x-th buffer
//! ```
//!
//! Ejecting a hinted block that is x references ahead. If it is beyond the horizon, it is fetched again at the horizon:
//! its buffer serves others for x - P references at the price of one more T_driver. If it is nearer, it is fetched
//! again one reference later, at its depth at that time:
//!
//! ```text
//! cost(x) = T_driver / (x - P)  for x > P, cost(x) = T_pf(x - 1) - T_hit  else
//! ```
//!
//! The paper assumes that disks serve any number of requests in parallel. If they serve n, another fetch delays the
//! others by T_busy / n, where T_busy is the recent disk time per block. Then T_driver + T_busy / n replaces T_driver
//! in cost(x) beyond the horizon, and T_busy / n is added to cost(x) up to the horizon. Without that, blocks would be
//! ejected and fetched again as if the disks were idle.
//!
//! With a given horizon, T_pf may fall below T_hit. A nearer block then costs at least what its own buffer gains.
//! Otherwise two blocks could take each other's buffers in turn, and driver work would keep the process from its
//! references for ever.
//!
//! Shrinking the LRU cache of unhinted blocks from n buffers: H'(n) of the unhinted references become misses, at
//! T_driver + T_disk each.

use headstart_types::{Nanos, Position};

use super::super::from_device::horizon_of;

/// The times of the model, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth {
    hit: f64,
    driver: f64,
    disk: f64,
    /// T_pf at and beyond the horizon: T_hit + T_driver.
    least: f64,
    /// P in references, at least 1.
    pub horizon: Position,
    /// Time by which a fetch delays others: the disk's time for it over the number served in parallel; 0 in the paper.
    delay: f64,
}

impl Worth {
    /// P is rounded up, and at most `frames`, because no more blocks can be in flight.
    pub fn new(hit: Nanos, driver: Nanos, disk: Nanos, frames: u32) -> Self {
        let each = hit.0 + driver.0;
        let horizon = horizon_of(hit, driver, disk, frames);
        Self {
            hit: hit.0 as f64,
            driver: driver.0 as f64,
            disk: disk.0 as f64,
            least: each as f64,
            horizon,
            delay: 0.0,
        }
    }

    /// The same model with a given horizon, at least 1; the time per reference at the horizon follows from it.
    #[must_use]
    pub fn with_horizon(self, horizon: Position) -> Self {
        Self { horizon, least: self.disk / f64::from(horizon), ..self }
    }

    /// Sets the time `service_ns` that a fetch takes of a disk, and the number `servers` that are served in parallel.
    pub fn set_delay(&mut self, service_ns: f64, servers: f64) {
        self.delay = service_ns / servers;
    }

    /// T_pf: the time per reference with `depth` blocks in flight.
    fn prefetched(&self, depth: Position) -> f64 {
        match depth {
            0 => self.hit + self.driver + self.disk,
            _ if depth >= self.horizon => self.least,
            _ => (self.disk / f64::from(depth)).max(self.least),
        }
    }

    /// Benefit of a buffer for a missing hinted block that is `ahead` references ahead, per reference of its process.
    /// The benefit for the very next block is at least that for the one after it, although the model may say otherwise.
    pub fn benefit(&self, ahead: Position) -> f64 {
        let of = |depth: Position| self.prefetched(depth - 1) - self.prefetched(depth);
        if ahead <= 1 {
            of(1).max(of(2))
        } else {
            of(ahead)
        }
    }

    /// Cost of ejecting a hinted block that is `ahead` references ahead, per reference of its process.
    pub fn ejection(&self, ahead: Position) -> f64 {
        match ahead.checked_sub(self.horizon) {
            None | Some(0) => {
                (self.prefetched(ahead.saturating_sub(1)) - self.hit).max(self.benefit(ahead)) + self.delay
            }
            Some(beyond) => (self.driver + self.delay) / f64::from(beyond),
        }
    }

    /// Cost of one buffer less in the LRU cache, per unhinted reference; `marginal_hits` is H'(n).
    pub fn shrinking(&self, marginal_hits: f64) -> f64 {
        marginal_hits * (self.driver + self.disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, worked_out: f64) {
        assert!((ours - worked_out).abs() < 1e-6, "{ours}, not {worked_out}");
    }

    /// T_hit 1, T_driver 2, T_disk 12: P = 4.
    #[test]
    fn the_model_worked_out() {
        let worth = Worth::new(Nanos(1), Nanos(2), Nanos(12), 100);
        assert_eq!(worth.horizon, 4);
        // T_pf: 15, 12, 6, 4, 3, 3.
        for (depth, time) in [15.0, 12.0, 6.0, 4.0, 3.0, 3.0].into_iter().enumerate() {
            close(worth.prefetched(depth as u32), time);
        }
        // The first buffer gains 3, the second 6: the first counts as 6 too.
        for (ahead, gain) in [(0, 6.0), (1, 6.0), (2, 6.0), (3, 2.0), (4, 1.0), (5, 0.0), (50, 0.0)] {
            close(worth.benefit(ahead), gain);
        }
        // Nearer than P: fetched again one later. Beyond: T_driver over the references won.
        for (ahead, cost) in [(0, 14.0), (1, 14.0), (2, 11.0), (3, 5.0), (4, 3.0), (5, 2.0), (6, 1.0), (14, 0.2)] {
            close(worth.ejection(ahead), cost);
        }
        close(worth.shrinking(0.01), 0.14);
        // One is served at a time, in 12: 12 more up to P, (2 + 12) / (x - 4) beyond.
        let mut worth = worth;
        worth.set_delay(12.0, 1.0);
        for (ahead, cost) in [(1, 26.0), (4, 15.0), (5, 14.0), (6, 7.0), (18, 1.0)] {
            close(worth.ejection(ahead), cost);
        }
    }

    /// The buffer of a prefetched block is never given up for a block that is needed later.
    #[test]
    fn what_is_ahead_costs_more_than_what_is_further_gains() {
        let times = [
            (0, 0, 15_000),
            (243, 0, 15_000),
            (0, 500, 15_000),
            (243, 580, 15_000),
            (9, 9, 10),
            (7_000, 7_986, 15_000),
        ];
        let settings = times
            .iter()
            .flat_map(|times| [None, Some(1), Some(3), Some(21), Some(62), Some(500)].map(|given| (*times, given)));
        for ((hit, driver, disk), given) in settings {
            let mut worth = Worth::new(Nanos(hit), Nanos(driver), Nanos(disk), 1_000);
            worth = given.map_or(worth, |horizon| worth.with_horizon(horizon));
            for ahead in 0..=worth.horizon {
                for further in ahead + 1..worth.horizon + 3 {
                    let (gain, cost) = (worth.benefit(further), worth.ejection(ahead));
                    assert!(
                        gain <= cost,
                        "{hit} {driver} {disk} {given:?}: {further} gains {gain}, {ahead} costs {cost}"
                    );
                }
            }
        }
    }

    /// A horizon beyond 12 / (1 + 2): what is prefetched up to it gains, T_disk / x falling to T_disk / P.
    #[test]
    fn a_horizon_that_is_given_gains_up_to_there() {
        let worth = Worth::new(Nanos(1), Nanos(2), Nanos(12), 100).with_horizon(6);
        for (ahead, gain) in [(2, 6.0), (3, 2.0), (4, 1.0), (5, 0.6), (6, 0.4), (7, 0.0)] {
            close(worth.benefit(ahead), gain);
        }
        for (ahead, cost) in [(1, 14.0), (6, 1.4), (7, 2.0), (8, 1.0)] {
            close(worth.ejection(ahead), cost);
        }
        close(worth.with_horizon(1).benefit(1), 3.0);
    }

    #[test]
    fn a_processor_that_takes_no_time_looks_as_far_as_there_are_frames() {
        assert_eq!(Worth::new(Nanos(0), Nanos(0), Nanos(5), 30).horizon, 30);
        assert_eq!(Worth::new(Nanos(9), Nanos(0), Nanos(5), 30).horizon, 1);
        assert!(Worth::new(Nanos(9), Nanos(0), Nanos(5), 30).benefit(1) > 0.0);
    }
}
