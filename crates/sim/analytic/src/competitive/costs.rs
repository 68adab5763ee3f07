//! The disk time of streams: equations (1) to (4) and (6).

use std::iter::Sum;
use std::ops::Add;

/// A stream that is read from its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Bytes read. `S_tot`.
    pub length_bytes: f64,
    /// Transfer rate at its position. `R_tr`.
    pub bytes_per_second: f64,
}

impl Stream {
    /// The transfer time of `bytes`.
    #[must_use]
    pub fn transfer_ns(&self, bytes: f64) -> f64 {
        bytes * 1e9 / self.bytes_per_second
    }
}

/// The sizes of a stream's prefetches: first the ramp, then always the depth. `S_p^1`, `S_p^2`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The first prefetches, in bytes. Empty if all have the same size.
    pub ramp_bytes: Vec<f64>,
    /// Every further one.
    pub depth_bytes: f64,
}

impl Schedule {
    /// `depth_bytes` each time. `S_p`.
    #[must_use]
    pub fn constant(depth_bytes: f64) -> Self {
        Self { ramp_bytes: Vec::new(), depth_bytes }
    }

    /// A slow start (section 4.3): `first_bytes`, twice that, and so on while it is less than the depth. There is none
    /// with a first prefetch of 0.
    #[must_use]
    pub fn slow_start(first_bytes: f64, depth_bytes: f64) -> Self {
        let sizes = std::iter::successors((first_bytes > 0.0).then_some(first_bytes), |size| Some(size * 2.0));
        Self { ramp_bytes: sizes.take_while(|size| *size < depth_bytes).collect(), depth_bytes }
    }

    /// Number of prefetches of the slow start. P.
    #[must_use]
    pub fn slow_prefetches(&self) -> u64 {
        self.ramp_bytes.len() as u64
    }

    /// Bytes that they fetch. T.
    #[must_use]
    pub fn slow_bytes(&self) -> f64 {
        self.ramp_bytes.iter().sum()
    }

    /// The size of the k-th prefetch, k from 1.
    #[must_use]
    pub fn size(&self, k: u64) -> f64 {
        let index = usize::try_from(k - 1).unwrap_or(usize::MAX);
        self.ramp_bytes.get(index).copied().unwrap_or(self.depth_bytes)
    }

    /// The number of prefetches that a stream of `length_bytes` needs, and the bytes that they fetch.
    #[must_use]
    pub fn prefetches(&self, length_bytes: f64) -> (u64, f64) {
        let mut fetched = 0.0;
        for (before, size) in self.ramp_bytes.iter().enumerate() {
            if fetched >= length_bytes {
                return (before as u64, fetched);
            }
            fetched += size;
        }
        let further = ((length_bytes - fetched) / self.depth_bytes).ceil().max(0.0);
        (self.slow_prefetches() + further as u64, fetched + further * self.depth_bytes)
    }
}

/// The times of the switches (seek and rotation) before a stream's prefetches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Switches<'a> {
    /// All equal, in nanoseconds: the average, as in equations (6) and (7). `C_switch^avg`.
    Alike(f64),
    /// One for each prefetch, in nanoseconds; the last also applies to all that follow it. `C_switch[i, j]`.
    Each(&'a [f64]),
}

impl Switches<'_> {
    /// The sum of the first `count`. Equation (2).
    #[must_use]
    pub fn sum_ns(&self, count: u64) -> f64 {
        match self {
            Self::Alike(time) => count as f64 * time,
            Self::Each(times) => {
                let known = times.len().min(usize::try_from(count).unwrap_or(usize::MAX));
                let last = times.last().copied().unwrap_or(0.0);
                times[..known].iter().sum::<f64>() + (count - known as u64) as f64 * last
            }
        }
    }
}

/// Disk time by use. Costs of several streams add up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Number of prefetches.
    pub prefetches: u64,
    /// `C_tot_switch`, equation (2).
    pub switch_ns: f64,
    /// Transfer of used data.
    pub transfer_ns: f64,
    /// Transfer of unused data: exact, where equation (3) gives a bound. `C_waste`.
    pub waste_ns: f64,
}

impl Cost {
    /// `C_total`.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.switch_ns + self.transfer_ns + self.waste_ns
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            prefetches: self.prefetches + other.prefetches,
            switch_ns: self.switch_ns + other.switch_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
            waste_ns: self.waste_ns + other.waste_ns,
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// The cost of a stream with a schedule. A term of equation (4), first line.
#[must_use]
pub fn cost(stream: &Stream, schedule: &Schedule, switches: Switches<'_>) -> Cost {
    let (prefetches, fetched) = schedule.prefetches(stream.length_bytes);
    Cost {
        prefetches,
        switch_ns: switches.sum_ns(prefetches),
        transfer_ns: stream.transfer_ns(stream.length_bytes),
        waste_ns: stream.transfer_ns((fetched - stream.length_bytes).max(0.0)),
    }
}

/// The cost if its length is known: a switch and the transfer. A term of equations (1) and (6).
#[must_use]
pub fn optimum(stream: &Stream, switch_ns: f64) -> Cost {
    Cost { prefetches: 1, switch_ns, transfer_ns: stream.transfer_ns(stream.length_bytes), waste_ns: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    /// 1 MB/s: a kilobyte per millisecond.
    const SLOW: f64 = 1e6;

    fn stream(kilobytes: f64) -> Stream {
        Stream { length_bytes: kilobytes * 1e3, bytes_per_second: SLOW }
    }

    #[test]
    fn a_stream_by_hand() {
        // 25 KB, 10 KB at a time: three switches of 4 ms, 25 ms used, 5 ms wasted. The optimum has one switch.
        let found = cost(&stream(25.0), &Schedule::constant(1e4), Switches::Alike(4.0 * MS));
        let expected = Cost { prefetches: 3, switch_ns: 12.0 * MS, transfer_ns: 25.0 * MS, waste_ns: 5.0 * MS };
        assert_eq!((found, found.total_ns()), (expected, 42.0 * MS));
        assert_eq!(optimum(&stream(25.0), 4.0 * MS).total_ns(), 29.0 * MS);
    }

    #[test]
    fn a_whole_number_of_prefetches_wastes_nothing() {
        let whole = cost(&stream(20.0), &Schedule::constant(1e4), Switches::Alike(4.0 * MS));
        assert_eq!((whole.prefetches, whole.waste_ns), (2, 0.0));
        let byte = Stream { length_bytes: 20_001.0, ..stream(20.0) };
        let more = cost(&byte, &Schedule::constant(1e4), Switches::Alike(4.0 * MS));
        assert_eq!((more.prefetches, more.waste_ns), (3, 9_999_000.0));
    }

    #[test]
    fn switches_one_by_one() {
        let times = [1.0, 5.0, 2.0];
        let sums = [0, 1, 2, 3, 4, 10].map(|count| Switches::Each(&times).sum_ns(count));
        assert_eq!(sums, [0.0, 1.0, 6.0, 8.0, 10.0, 22.0]);
        assert_eq!(Switches::Alike(3.0).sum_ns(4), 12.0);
    }

    #[test]
    fn the_papers_slow_start() {
        // Section 4.3: 16, 32, 64, 98, 98 ... pages; P = 3, T = 112 pages.
        let pages = Schedule::slow_start(16.0, 98.0);
        assert_eq!([1, 2, 3, 4, 5, 99].map(|k| pages.size(k)), [16.0, 32.0, 64.0, 98.0, 98.0, 98.0]);
        assert_eq!((pages.slow_prefetches(), pages.slow_bytes()), (3, 112.0));
        let lengths = [0.0, 1.0, 16.0, 17.0, 48.0, 112.0, 113.0, 210.0, 211.0];
        let counts = lengths.map(|length| pages.prefetches(length));
        let expected =
            [(0, 0.0), (1, 16.0), (1, 16.0), (2, 48.0), (2, 48.0), (3, 112.0), (4, 210.0), (4, 210.0), (5, 308.0)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_start_as_deep_as_the_depth_is_not_slow() {
        for first in [98.0, 200.0, 0.0] {
            assert_eq!(Schedule::slow_start(first, 98.0), Schedule::constant(98.0));
        }
        assert_eq!(Schedule::slow_start(97.0, 98.0).ramp_bytes, [97.0]);
    }

    #[test]
    fn costs_of_streams_sum() {
        let costs = [25.0, 20.0].map(|length| cost(&stream(length), &Schedule::constant(1e4), Switches::Alike(MS)));
        let sum: Cost = costs.into_iter().sum();
        assert_eq!((sum.prefetches, sum.total_ns()), (5, 55.0 * MS));
    }
}
