//! Faults of mapped files as the kernel traces them, within a budget.
//!
//! ```text
//! mm_filemap_fault: dev=7:0 ino=c ofs=4096000                                     a page has faulted, cached or not
//! mm_filemap_add_to_page_cache: dev 7:0 ino c pfn=0x380f0f ofs=3932160 order=0    what begins there is being read
//! mm_filemap_map_pages: dev=7:0 ino=c ofs=4063232-4128767                         a fault has mapped what is cached of it
//! ```
//!
//! The first and the last are there from Linux 6.12 on. Of what comes into the cache the kernel shows the beginnings of
//! parts of 64 KiB only: one event for sixteen pages. Faults of what is cached already are traced too, and may be many:
//! after a second with more events than the budget nothing is traced for ten.

use std::io;

use headstart_policy::readahead::PART_BYTES;
use headstart_types::Nanos;

use super::events::{Line, Lines};
use super::instance::Source;

/// The events.
pub(super) const FAULT: &str = "mm_filemap_fault";
pub(super) const FILLED: &str = "mm_filemap_add_to_page_cache";
pub(super) const MAPPED: &str = "mm_filemap_map_pages";

/// Events of a second before nothing is traced for a while: 2.6 % of a processor at what events cost (docs/tune.md). A disk
/// that reads 250 MB/s for faults has half as many.
const BUDGET: u64 = 20_000;
const SECOND: Nanos = Nanos::from_millis(1_000);
/// For so long. Both are ours.
const PAUSE: Nanos = Nanos::from_millis(10_000);

/// What the kernel says of a file's pages: device and inode, and bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultEvent {
    Fault { file: (u64, u64), offset: u64 },
    Filled { file: (u64, u64), offset: u64 },
    Mapped { file: (u64, u64), first: u64, last: u64 },
}

impl FaultEvent {
    /// Of a line of the trace, if it is one.
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("mm_filemap_")?;
        let (event, rest) = rest.split_once(": ")?;
        // Between names and values stands a space or an equals sign, by the event.
        let mut words = rest.split([' ', '=']);
        let mut value = |name: &str| words.find(|word| *word == name).and_then(|_| words.next());
        let (major, minor) = value("dev")?.split_once(':')?;
        let device = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
        let file = (u64::from(device.0) << 32 | u64::from(device.1), u64::from_str_radix(value("ino")?, 16).ok()?);
        let offset = value("ofs")?;
        let event = format!("mm_filemap_{event}");
        match event.as_str() {
            FAULT => Some(Self::Fault { file, offset: offset.parse().ok()? }),
            FILLED => Some(Self::Filled { file, offset: offset.parse().ok()? }),
            MAPPED => {
                let (first, last) = offset.split_once('-')?;
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(Self::Mapped { file, first, last })
            }
            _ => None,
        }
    }
}

/// The filter of [`FILLED`] that lets beginnings of parts through, on top of that of the devices.
pub(super) fn beginnings(page_bytes: u64) -> String {
    let pages = (PART_BYTES / page_bytes.max(1)).max(1);
    if pages == 1 {
        String::new()
    } else {
        format!(" && !(index & {})", pages - 1)
    }
}

/// What one look at the faults has given.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// Events that were overwritten before they were read.
    pub lost: u64,
    /// What happened meanwhile was not traced.
    pub blind: bool,
}

/// Events of faults, as long as they are few.
#[derive(Debug)]
pub(super) struct Faults<S> {
    source: S,
    lines: Lines,
    /// The second that is counted, and its events.
    since: Nanos,
    events: u64,
    paused_until: Option<Nanos>,
    /// How many times nothing was traced for a while.
    pub pauses: u64,
}

impl<S: Source> Faults<S> {
    pub fn new(source: S) -> Self {
        let (since, events) = (Nanos::ZERO, 0);
        Self { source, lines: Lines::default(), since, events, paused_until: None, pauses: 0 }
    }

    /// Gives `each` what has come since the last time.
    ///
    /// # Errors
    /// As the system says.
    pub fn take(&mut self, now: Nanos, mut each: impl FnMut(FaultEvent)) -> io::Result<Taken> {
        if let Some(until) = self.paused_until {
            if now >= until {
                self.paused_until = None;
                (self.since, self.events) = (now, 0);
                self.source.set_tracing(true)?;
            }
            return Ok(Taken { lost: 0, blind: true });
        }
        let (mut events, mut lost) = (0, 0);
        let Self { source, lines, .. } = self;
        source.take(&mut |piece| {
            lines.take(piece, |line| {
                events += 1;
                match line {
                    Line::Fault(event) => each(event),
                    Line::Lost(count) => lost += count,
                    Line::Served(..) | Line::Other => {}
                }
            });
        })?;
        if now >= self.since + SECOND {
            (self.since, self.events) = (now, 0);
        }
        self.events += events + lost;
        if self.events > BUDGET {
            self.source.set_tracing(false)?;
            // What is in the trace still is of no use.
            self.source.take(&mut |_| {})?;
            self.lines = Lines::default();
            self.paused_until = Some(now + PAUSE);
            self.pauses += 1;
        }
        Ok(Taken { lost, blind: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: (u64, u64) = (7 << 32, 12);

    #[test]
    fn lines_of_the_kernel() {
        for (line, expected) in [
            ("mm_filemap_fault: dev=7:0 ino=c ofs=4096000", FaultEvent::Fault { file: FILE, offset: 4_096_000 }),
            (
                "mm_filemap_add_to_page_cache: dev 7:0 ino c pfn=0x380f0f ofs=3932160 order=0",
                FaultEvent::Filled { file: FILE, offset: 3_932_160 },
            ),
            (
                " cat-7 [000] ..... 5.0: mm_filemap_add_to_page_cache: dev 7:0 ino c page=000000007 pfn=0x3 ofs=65536",
                FaultEvent::Filled { file: FILE, offset: 65_536 },
            ),
            (
                "mm_filemap_map_pages: dev=7:0 ino=c ofs=4063232-4128767",
                FaultEvent::Mapped { file: FILE, first: 4_063_232, last: 4_128_767 },
            ),
        ] {
            assert_eq!(FaultEvent::parse(line), Some(expected), "{line}");
            assert_eq!(Line::parse(line), Line::Fault(expected), "{line}");
        }
        for line in [
            "mm_filemap_get_pages: dev=7:0 ino=c ofs=0-4095",
            "mm_filemap_fault: dev=7 ino=c ofs=1",
            "mm_filemap_fault: dev=7:0 ino=g ofs=1",
            "mm_filemap_fault: dev=7:0 ino=c ofs=-4096",
            "mm_filemap_fault: dev=7:0 ino=c",
            "mm_filemap_map_pages: dev=7:0 ino=c ofs=8192-4095",
            "mm_filemap_map_pages: dev=7:0 ino=c ofs=8192",
        ] {
            assert_eq!(Line::parse(line), Line::Other, "{line}");
        }
    }

    #[test]
    fn one_page_of_a_part_is_shown() {
        assert_eq!(beginnings(4096), " && !(index & 15)");
        assert_eq!(beginnings(16384), " && !(index & 3)");
        assert_eq!(beginnings(65536), "");
    }

    /// So many faults at each look while it is on.
    struct Flood(usize, bool);

    impl Source for Flood {
        fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
            let lines = if self.1 { self.0 } else { 0 };
            (0..lines).for_each(|_| each(b"mm_filemap_fault: dev=7:0 ino=c ofs=4096\n"));
            Ok(())
        }

        fn set_tracing(&mut self, on: bool) -> io::Result<()> {
            self.1 = on;
            Ok(())
        }
    }

    #[test]
    fn a_flood_is_not_followed() {
        // 3,000 each tenth of a second: the seventh look goes beyond 20,000; then ten seconds of nothing, and again.
        let mut faults = Faults::new(Flood(3_000, true));
        let mut seen = Vec::new();
        for tenth in 1..=220 {
            let mut events = 0;
            let taken = faults.take(Nanos::from_millis(tenth * 100), |_| events += 1).expect("no error");
            assert_eq!((taken.lost, taken.blind), (0, events == 0));
            seen.extend((events > 0).then_some(tenth));
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 108, 109, 110, 111, 112, 113, 114, 215, 216, 217, 218, 219, 220]);
        assert_eq!(faults.pauses, 2);
        // 1,900 are within the budget at all times.
        let mut faults = Faults::new(Flood(1_900, true));
        for tenth in 1..=100 {
            assert!(!faults.take(Nanos::from_millis(tenth * 100), |_| {}).expect("no error").blind);
        }
    }

    proptest! {
        #[test]
        fn nearly_a_line(
            line in "mm_filemap_(fault|map_pages|add_to_page_cache): dev[ =][0-9]{0,6}:[0-9]{0,11} ino[ =][0-9a-h]{0,18} ofs[ =][0-9-]{0,40}",
        ) {
            if let Some(FaultEvent::Mapped { first, last, .. }) = FaultEvent::parse(&line) {
                prop_assert!(first <= last);
            }
        }
    }
}
