//! Decides whether reading around faults of mapped files pays at the competitive depth, from how much of it is used.
//!
//! Linux reads a whole read-ahead window around a random fault, half of it before the page (mm/filemap.c,
//! do_sync_mmap_readahead), until 100 faults of an open file have missed (MMAP_LOTSAMISS). Deep windows make such
//! faults slow: the depth that is right for streams transfers for as long as a switch takes, for a single page.
//!
//! Idea: the argument of competitive prefetching. A file is divided into *parts* of 64 KiB, which is also what a fault
//! maps at once (fault_around_bytes). A part read around a fault, other than the fault's own, costs its transfer; if it
//! is used later, it saves a fault with a switch. With a competitive depth of D bytes a switch is worth D bytes of
//! transfer. So reading around pays if more than part / D of what it brings is used.
//!
//! ```text
//! a page faults        remember where, for the parts that come next
//! a part comes         near a recent fault: it was read around it; the fault's own part is not counted
//! a part is mapped     if it was read around a fault and not mapped before: it is used
//! the device serves    bytes, of all requests
//! the depth            the floor while faults dominate and too little is used to pay; else the competitive depth
//! ```
//!
//! Faults dominate if they would transfer more than everything else at the competitive depth: the number of reads
//! around faults times D, against the bytes served less those read around faults. So the answer does not depend on the
//! current depth. To avoid oscillation at the limit, it switches back at half of that share or at twice the used share.
//! The floor is the kernel's own default: it still reads a part to judge by, and readers of streams fare no worse than
//! without this mechanism.
//!
//! Source: none; all of this is ours, including the constants, except those of the kernel.
//!
//! Cost: constant per event. Memory: about 60 bytes for each of at most 16,384 parts, which cover 1 GiB. Not for
//! kernels whose events cannot be observed, nor for devices without an arm.

use std::collections::VecDeque;

use super::recent::Recent;

/// Bytes per part: the kernel's fault_around_bytes.
pub const PART_BYTES: u64 = 64 << 10;

/// The floor: the kernel's default read-ahead, VM_READAHEAD_PAGES.
pub const FLOOR_BYTES: u64 = 128 << 10;

/// Maximum number of parts remembered: 1 GiB. A part used later than that counts as unused.
const PARTS: usize = 16_384;
/// Maximum number of faults whose parts may still arrive: more than the processes that wait for one disk at a time.
const FAULTS: usize = 64;
/// Parts read around faults before anything is concluded: 4 MiB.
const EVIDENCE: f64 = 64.0;
/// All counts are halved after this many parts (16 MiB) were read around faults, or this many bytes were served.
const HALVED_PARTS: f64 = 256.0;
const HALVED_BYTES: f64 = (32 << 20) as f64;
/// Factor of the hysteresis: to return to the competitive depth, the used share must be this many times the limit, or
/// the share of faults below 1 / `BACK` of its limit.
const BACK: f64 = 2.0;

/// A file: device and inode, or another unique pair.
pub type FileKey = (u64, u64);

/// A part that was read around a fault.
#[derive(Debug, Default, Clone, Copy)]
struct Brought {
    used: bool,
}

/// A fault that may have missed.
#[derive(Debug, Clone, Copy)]
struct Fault {
    file: FileKey,
    offset: u64,
    /// Whether a part has come, so that the kernel read around the fault.
    missed: bool,
}

/// Counts in which older events weigh less.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Counts {
    /// Faults that the kernel read around.
    around: f64,
    /// Parts read around them, without their own parts.
    brought: f64,
    /// How many of those parts were mapped later.
    used: f64,
    /// Bytes read around them, including their own parts.
    fault_bytes: f64,
    /// Bytes served for all requests.
    served_bytes: f64,
}

/// Totals since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct FaultTotals {
    /// Faults that the kernel read around.
    pub around: u64,
    /// Parts read around them, without their own parts.
    pub brought: u64,
    /// How many of those parts were mapped later.
    pub used: u64,
}

/// Observes faults and decides how deep reads around them may be.
#[derive(Debug)]
pub struct FaultWatch {
    faults: VecDeque<Fault>,
    parts: Recent<(FileKey, u64), Brought>,
    counts: Counts,
    totals: FaultTotals,
    low: bool,
}

impl Default for FaultWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl FaultWatch {
    /// A watch without observations.
    #[must_use]
    pub fn new() -> Self {
        let faults = VecDeque::with_capacity(FAULTS);
        Self {
            faults,
            parts: Recent::new(PARTS),
            counts: Counts::default(),
            totals: FaultTotals::default(),
            low: false,
        }
    }

    /// Records a fault on the page at `offset` of a file; the page may be cached already.
    pub fn fault(&mut self, file: FileKey, offset: u64) {
        self.map(file, offset);
        if self.faults.len() == FAULTS {
            self.faults.pop_front();
        }
        self.faults.push_back(Fault { file, offset, missed: false });
    }

    /// Records that the part at `offset` has entered the cache, where at most `window_bytes` are read around a fault.
    pub fn filled(&mut self, file: FileKey, offset: u64, window_bytes: u64) {
        let part = offset / PART_BYTES;
        let near = |fault: &&mut Fault| fault.file == file && fault.offset.abs_diff(offset) <= window_bytes / 2;
        let Some(fault) = self.faults.iter_mut().rev().find(near) else { return };
        if !std::mem::replace(&mut fault.missed, true) {
            self.counts.around += 1.0;
            self.totals.around += 1;
        }
        self.counts.fault_bytes += PART_BYTES as f64;
        if fault.offset / PART_BYTES == part {
            return;
        }
        *self.parts.get_or_default((file, part)) = Brought::default();
        self.counts.brought += 1.0;
        self.totals.brought += 1;
        self.age();
    }

    /// Records that a fault has mapped the cached pages in bytes `first..=last` of a file; it may be a recorded fault
    /// that had to wait.
    pub fn mapped(&mut self, file: FileKey, first: u64, last: u64) {
        let waited = |fault: &&Fault| fault.file == file && (first..=last).contains(&fault.offset);
        let offset = self.faults.iter().rev().find(waited).map_or(first.midpoint(last), |fault| fault.offset);
        self.map(file, offset);
    }

    /// Records that the device has served `bytes`.
    pub fn served(&mut self, bytes: u64) {
        self.counts.served_bytes += bytes as f64;
        self.age();
    }

    /// Resets after lost events: parts may have been used, or read around a fault, without being seen.
    pub fn lost(&mut self) {
        self.faults.clear();
        self.parts = Recent::new(PARTS);
        self.counts = Counts::default();
    }

    /// The depth in bytes, where `competitive_bytes` would be right for streams.
    pub fn depth_bytes(&mut self, competitive_bytes: f64) -> f64 {
        let floor = FLOOR_BYTES as f64;
        if competitive_bytes <= floor {
            self.low = false;
            return competitive_bytes;
        }
        let Counts { around, brought, used, fault_bytes, served_bytes } = self.counts;
        let others = (served_bytes - fault_bytes).max(0.0);
        let faults = around * competitive_bytes;
        let pays = PART_BYTES as f64 / competitive_bytes * brought;
        self.low = if self.low {
            // Too little evidence changes nothing.
            brought + others / PART_BYTES as f64 <= EVIDENCE || (faults * BACK > others && used < pays * BACK)
        } else {
            brought >= EVIDENCE && faults > others && used < pays
        };
        if self.low {
            floor
        } else {
            competitive_bytes
        }
    }

    /// Whether the depth is currently the floor.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.low
    }

    /// Totals since the start.
    #[must_use]
    pub fn totals(&self) -> FaultTotals {
        self.totals
    }

    fn map(&mut self, file: FileKey, offset: u64) {
        let Some(part) = self.parts.peek_mut((file, offset / PART_BYTES)) else { return };
        if !std::mem::replace(&mut part.used, true) {
            self.counts.used += 1.0;
            self.totals.used += 1;
        }
    }

    fn age(&mut self) {
        let counts = &mut self.counts;
        if counts.brought >= HALVED_PARTS || counts.served_bytes >= HALVED_BYTES {
            let Counts { around, brought, used, fault_bytes, served_bytes } = counts;
            for count in [around, brought, used, fault_bytes, served_bytes] {
                *count /= 2.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: FileKey = (7, 12);
    const PART: u64 = PART_BYTES;
    /// Six parts: reading around pays from a sixth on.
    const WINDOW: u64 = 6 * PART;

    /// A fault that misses in part `at`: the parts of `window` around it come, and are served in one request.
    fn miss(watch: &mut FaultWatch, at: u64, window: u64) {
        let offset = at * PART + 4096;
        watch.fault(FILE, offset);
        let half = window / PART / 2;
        (at + 1 - half..=at + half).for_each(|part| watch.filled(FILE, part * PART, window));
        watch.served(window);
        watch.mapped(FILE, at * PART, (at + 1) * PART - 1);
    }

    fn depth(watch: &mut FaultWatch) -> u64 {
        watch.depth_bytes(WINDOW as f64) as u64
    }

    #[test]
    fn random_faults_lower_the_depth() {
        let mut watch = FaultWatch::new();
        // Each brings five parts beside its own. Twelve: 60, too few to conclude. Thirteen: 65, none of them used.
        (1..=12).for_each(|fault| miss(&mut watch, fault * 1000, WINDOW));
        assert_eq!((depth(&mut watch), watch.is_low()), (WINDOW, false));
        miss(&mut watch, 13_000, WINDOW);
        assert_eq!((depth(&mut watch), watch.is_low()), (FLOOR_BYTES, true));
        assert_eq!(watch.totals(), FaultTotals { around: 13, brought: 65, used: 0 });
        // At the floor each brings one beside its own, and nothing changes.
        (20..=900).for_each(|fault| miss(&mut watch, fault * 1000, FLOOR_BYTES));
        assert_eq!(depth(&mut watch), FLOOR_BYTES);
        // A depth below the floor stays as it is.
        assert_eq!(watch.depth_bytes(100e3), 100e3);
    }

    #[test]
    fn what_is_used_pays() {
        // 20 faults bring 100 parts: a sixth are 16.7. With 16 used it does not pay; with 17 it does.
        for (used, low) in [(16, true), (17, false)] {
            let mut watch = FaultWatch::new();
            (1..=20).for_each(|fault| miss(&mut watch, fault * 1000, WINDOW));
            for fault in 1..=used {
                let next = fault * 1000 + 1;
                // A second mapping does not count.
                (0..2).for_each(|_| watch.mapped(FILE, next * PART, (next + 1) * PART - 1));
            }
            assert_eq!((depth(&mut watch), watch.totals().used), (if low { FLOOR_BYTES } else { WINDOW }, used));
        }
        // From the floor it takes a third: 100 faults bring 100 parts, besides the 65 from before: 55 of 165.
        let mut watch = FaultWatch::new();
        (1..=13).for_each(|fault| miss(&mut watch, fault * 1000, WINDOW));
        assert_eq!(depth(&mut watch), FLOOR_BYTES);
        (20..120).for_each(|fault| miss(&mut watch, fault * 1000, FLOOR_BYTES));
        (20..74).for_each(|fault| watch.fault(FILE, (fault * 1000 + 1) * PART));
        assert_eq!((depth(&mut watch), watch.totals().used), (FLOOR_BYTES, 54));
        watch.fault(FILE, (74 * 1000 + 1) * PART);
        assert_eq!(depth(&mut watch), WINDOW);
    }

    #[test]
    fn streams_keep_their_depth() {
        // 20 faults would transfer 120 parts at the competitive depth: while streams transfer as many, that depth
        // stays.
        let mut watch = FaultWatch::new();
        (1..=20).for_each(|fault| miss(&mut watch, fault * 1000, WINDOW));
        watch.served(120 * PART);
        assert_eq!(depth(&mut watch), WINDOW);
        // One byte less, and faults dominate. Then streams need twice as much to return to it.
        let mut watch = FaultWatch::new();
        (1..=20).for_each(|fault| miss(&mut watch, fault * 1000, WINDOW));
        watch.served(120 * PART - 1);
        assert_eq!(depth(&mut watch), FLOOR_BYTES);
        watch.served(120 * PART);
        assert_eq!(depth(&mut watch), FLOOR_BYTES);
        watch.served(1);
        assert_eq!(depth(&mut watch), WINDOW);
    }

    #[test]
    fn a_mapped_stream_is_a_stream() {
        // Faults that go through a file, each reading around it: all that comes is mapped next.
        let mut watch = FaultWatch::new();
        for window in 0..40 {
            miss(&mut watch, window * 6 + 2, WINDOW);
            (0..6).for_each(|part| watch.mapped(FILE, (window * 6 + part) * PART, (window * 6 + part + 1) * PART - 1));
            assert_eq!(depth(&mut watch), WINDOW);
        }
        assert_eq!(watch.totals(), FaultTotals { around: 40, brought: 200, used: 200 });
    }

    #[test]
    fn what_no_fault_has_asked_for_is_not_its() {
        let mut watch = FaultWatch::new();
        watch.fault(FILE, 100 * PART);
        // Another file; too far; far enough before.
        watch.filled((7, 13), 100 * PART, WINDOW);
        watch.filled(FILE, 104 * PART, WINDOW);
        watch.filled(FILE, 96 * PART, WINDOW);
        assert_eq!(watch.totals(), FaultTotals::default());
        watch.filled(FILE, 103 * PART, WINDOW);
        assert_eq!(watch.totals(), FaultTotals { around: 1, brought: 1, used: 0 });
        // Mapped with pages from the next part: the fault that has waited is within, and its own part is not counted.
        watch.mapped(FILE, 99 * PART + 61_440, 100 * PART + 61_439);
        watch.mapped(FILE, 102 * PART + 61_440, 103 * PART + 61_439);
        assert_eq!(watch.totals().used, 1);
        // After lost events it is as if nothing had been observed.
        watch.lost();
        watch.filled(FILE, 101 * PART, WINDOW);
        assert_eq!((watch.totals().around, watch.counts), (1, Counts::default()));
    }

    proptest! {
        /// For any events, memory is bounded, no more is used than was brought, and the depth is one of the two.
        #[test]
        fn anything(events in prop::collection::vec((0u8..6, 0u64..3, 0u64..200_000), 0..400), depth in 1e3f64..1e8) {
            let mut watch = FaultWatch::new();
            for (what, file, place) in events {
                let (file, offset) = ((0, file), place * 4096);
                match what {
                    0 => watch.fault(file, offset),
                    1 => (0..20).for_each(|part| watch.filled(file, offset + part * PART, depth as u64)),
                    2 => watch.mapped(file, offset, offset + PART - 1),
                    3 => watch.served(offset),
                    4 => watch.lost(),
                    _ => watch.mapped(file, u64::MAX, u64::MAX),
                }
                let found = watch.depth_bytes(depth);
                prop_assert!(found == depth || (found == FLOOR_BYTES as f64 && found < depth));
                prop_assert!(watch.totals().used <= watch.totals().brought);
                prop_assert!(watch.parts.len() <= PARTS && watch.faults.len() <= FAULTS);
            }
        }
    }
}
