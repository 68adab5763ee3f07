//! Measures at the start how far to read ahead of an unknown backing: its latency times its rate.
//!
//! A stream needs that many bytes in flight to reach the storage's full rate: it is the bandwidth-delay product of a
//! network, and what Li, Shen and Papathanasiou (Competitive Prefetching for Concurrent Sequential I/O, EuroSys 2007,
//! section 2) prove to cost at most twice the optimum on a disk, where the latency is a seek and a rotation. A few
//! reads far apart give both: a short read gives the latency, and a long one right behind it, which needs no seek,
//! gives the rate.
//!
//! A local device gets at least the system's read-ahead, which its driver or administrator has set and other servers of
//! a file use: the product leaves out how long a busy machine takes to notice that a read has completed. A file that is
//! in memory needs neither.
//!
//! Cost: eight reads, 4 MiB. If the backing's latency changes while it is served, set the read-ahead instead.

use std::io;

use headstart_types::Nanos;

use crate::backing::{Backing, NonBlockingRead};
use crate::buffers::Buffers;
use crate::window::{WINDOW_BYTES_MAX, WINDOW_BYTES_MIN};

/// Divisor: the maximum part of the cache for one window. Several streams, and pages that are read again, need the
/// rest.
const CACHE_SHARE: u64 = 4;

const SHORT_BYTES: u64 = 4096;
const LONG_BYTES: u64 = 1 << 20;
/// Number of places that are read.
const PLACES: u64 = 4;
/// A long read that seems faster than this says nothing about the rate.
const TRANSFER_MIN: Nanos = Nanos::from_micros(250);

/// The window for `backing` in front of a cache of `cache_bytes`: a power of two from [`WINDOW_BYTES_MIN`] to
/// [`WINDOW_BYTES_MAX`]. `now` is the clock.
///
/// # Errors
/// The backing cannot be read.
pub fn window_bytes(backing: &dyn Backing, cache_bytes: u64, now: &mut dyn FnMut() -> Nanos) -> io::Result<u64> {
    let about = backing.about();
    if about.size_bytes < PLACES * (SHORT_BYTES + LONG_BYTES) {
        return Ok(WINDOW_BYTES_MIN);
    }
    let mut pages = Buffers::new(SHORT_BYTES as usize);
    let (mut short, mut long, mut in_memory) = (Vec::new(), Vec::new(), 0);
    for place in 0..PLACES {
        let offset = about.size_bytes / PLACES * place / SHORT_BYTES * SHORT_BYTES;
        let mut timed = |offset: u64, bytes: u64, tries: bool| -> io::Result<Nanos> {
            let mut buffers = pages.take_run((bytes / SHORT_BYTES) as usize);
            let since = now();
            if tries && matches!(backing.try_read(offset, &mut buffers, false), NonBlockingRead::Done) {
                in_memory += 1;
            } else {
                backing.read(offset, &mut buffers)?;
            }
            let took = now().saturating_sub(since);
            buffers.into_iter().for_each(|buffer| pages.put_back(buffer));
            Ok(took)
        };
        short.push(timed(offset, SHORT_BYTES, true)?);
        long.push(timed(offset + SHORT_BYTES, LONG_BYTES, false)?);
    }
    if in_memory > PLACES / 2 {
        return Ok(WINDOW_BYTES_MIN);
    }
    short.sort_unstable();
    long.sort_unstable();
    // A disk's latencies vary, so the median counts. A busy machine only makes a transfer longer, so the minimum
    // counts.
    let (latency, whole) = (short[short.len() / 2], long[0]);
    // A long read that is faster than a short one had no latency.
    let transfer = if whole > latency { whole.saturating_sub(short[0]) } else { whole }.max(TRANSFER_MIN);
    let product = u128::from(latency.0) * u128::from(LONG_BYTES) / u128::from(transfer.0);
    let product = product.max(about.device_read_ahead_bytes.unwrap_or(0).into());
    let most = (cache_bytes / CACHE_SHARE).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
    let window = (product.min(WINDOW_BYTES_MAX.into()) as u64).next_power_of_two();
    Ok(if window > most { 1 << most.ilog2() } else { window.max(WINDOW_BYTES_MIN) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::BytesMut;

    use super::*;
    use crate::backing::{About, FileBacking};

    /// Storage on a virtual clock.
    struct Slow {
        /// Added before each read or, with `seeks`, before a read that does not follow the last one.
        latency: Nanos,
        bytes_per_second: u64,
        seeks: bool,
        /// The system's read-ahead.
        system_kib: Option<u64>,
        in_memory: bool,
        now: AtomicU64,
        end: AtomicU64,
    }

    impl Backing for Slow {
        fn about(&self) -> About {
            About { device_read_ahead_bytes: self.system_kib.map(|kib| kib << 10), ..About::of(1 << 30) }
        }

        fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
            let bytes: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
            let follows = self.end.swap(offset + bytes, Ordering::Relaxed) == offset;
            let latency = if self.seeks && follows { Nanos::ZERO } else { self.latency };
            self.now.fetch_add(latency.0 + bytes * 1_000_000_000 / self.bytes_per_second, Ordering::Relaxed);
            Ok(())
        }

        fn try_read(&self, _offset: u64, _buffers: &mut [BytesMut], _has_ring: bool) -> NonBlockingRead {
            if self.in_memory {
                NonBlockingRead::Done
            } else {
                NonBlockingRead::Waits
            }
        }
    }

    fn slow(latency_us: u64, mb_per_second: u64) -> Slow {
        let (latency, bytes_per_second) = (Nanos::from_micros(latency_us), mb_per_second * 1_000_000);
        let (now, end) = (AtomicU64::new(5), AtomicU64::new(u64::MAX));
        Slow { latency, bytes_per_second, seeks: false, system_kib: None, in_memory: false, now, end }
    }

    fn window_of(slow: &Slow, cache_bytes: u64) -> u64 {
        window_bytes(slow, cache_bytes, &mut || Nanos(slow.now.load(Ordering::Relaxed))).expect("it can be read") >> 10
    }

    fn window_kib(latency_us: u64, mb_per_second: u64, seeks: bool, cache_bytes: u64) -> u64 {
        window_of(&Slow { seeks, ..slow(latency_us, mb_per_second) }, cache_bytes)
    }

    #[test]
    fn a_device_is_read_ahead_of_as_far_as_the_system_does_it() {
        // 2 MiB without it, see below.
        let drive = |system_kib, in_memory| Slow { seeks: true, system_kib, in_memory, ..slow(8_000, 200) };
        let cache = 64 << 20;
        assert_eq!(window_of(&drive(Some(128), false), cache), 2 << 10);
        assert_eq!(window_of(&drive(Some(8192), false), cache), 8 << 10);
        // At most the maximum, and at most a quarter of the cache.
        assert_eq!(window_of(&drive(Some(1 << 20), false), cache), 16 << 10);
        assert_eq!(window_of(&drive(Some(8192), false), 8 << 20), 2 << 10);
        // The file is in the page cache: the device does not matter.
        assert_eq!(window_of(&drive(Some(8192), true), cache), 128);
    }

    #[test]
    fn the_window_is_latency_times_rate() {
        let cache = 64 << 20;
        // 25 ms: 2.5 MB at 100 MB/s; 25 MB at 1 GB/s, which is above the maximum.
        assert_eq!(window_kib(25_000, 100, false, cache), 4 << 10);
        assert_eq!(window_kib(25_000, 1_000, false, cache), 16 << 10);
        // A drive of 8 ms and 200 MB/s: 1.6 MB. Its long reads follow the short ones and need no seek.
        assert_eq!(window_kib(8_000, 200, true, cache), 2 << 10);
        // Flash: 80 us at 3 GB/s are 240 kB. Memory: the minimum.
        assert_eq!(window_kib(80, 3_000, false, cache), 256);
        assert_eq!(window_kib(2, 10_000, false, cache), 128);
        // A quarter of a small cache, but at least the minimum.
        assert_eq!(
            (window_kib(25_000, 1_000, false, 10 << 20), window_kib(25_000, 1_000, false, 1 << 10)),
            (2 << 10, 128)
        );
    }

    #[test]
    fn a_file_of_which_all_reads_are_direct_can_be_measured() {
        let path = std::env::temp_dir().join(format!("headstart-serve-direct-{}", std::process::id()));
        std::fs::write(&path, vec![1; 8 << 20]).expect("a temporary file");
        let opened = FileBacking::open(&path, false, true, false);
        std::fs::remove_file(&path).expect("it is there");
        // A file system in memory may not support direct I/O.
        let Ok(backing) = opened else { return };
        let mut now = 0;
        let mut clock = || {
            now += 1000;
            Nanos(now)
        };
        let window = window_bytes(&backing, 64 << 20, &mut clock).expect("the buffers fit");
        assert!(window >= WINDOW_BYTES_MIN);
    }
}
