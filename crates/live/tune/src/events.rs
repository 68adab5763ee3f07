//! Parses lines of `trace_pipe`: requests, and faults of mapped files.
//!
//! ```text
//! <...>-214 [001] d.h1. 27.308125: block_rq_complete: 7,0 R () 2048 + 768 none,0,0 [0]
//! block_rq_complete: 7,0 RA () 2048 + 768 [0]                        without the context; before Linux 6.7
//! mm_filemap_fault: dev=7:0 ino=c ofs=4096000                                     a fault, cached or not
//! mm_filemap_add_to_page_cache: dev 7:0 ino c pfn=0x380f0f ofs=3932160 order=0    a read into the page cache begins
//! mm_filemap_map_pages: dev=7:0 ino=c ofs=4063232-4128767                         a fault mapped these cached pages
//! CPU:1 [LOST 212 EVENTS]
//! ```
//!
//! Completions arrive in the order in which the arm serves requests, unlike issues.
//!
//! Faults and mappings are traced from Linux 6.12 on. A filter reduces additions to the page cache to the starts of 64
//! KiB parts: one event per sixteen pages.

use std::ops::Range;

use headstart_policy::readahead::PART_BYTES;

use super::Number;

/// Event of a request.
pub(super) const EVENT: &str = "block_rq_complete";
/// Events of mapped files.
pub(super) const FAULT: &str = "mm_filemap_fault";
pub(super) const FILLED: &str = "mm_filemap_add_to_page_cache";
pub(super) const MAPPED: &str = "mm_filemap_map_pages";
/// Maximum length of a line; longer ones are ignored.
const LONGEST: usize = 4096;

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// A device read or wrote these sectors.
    Served(Number, Range<u64>),
    /// A page of a mapped file faulted, or pages were read or mapped.
    Fault(FaultEvent),
    /// Number of events that were overwritten before they were read.
    Lost(u64),
    /// An event that moves no arm, a failed request, or an unknown line.
    Other,
}

impl Line {
    pub fn parse(line: &str) -> Self {
        if let Some(lost) = line.strip_prefix("CPU:").and_then(|rest| rest.split_once(" [LOST ")) {
            return lost
                .1
                .strip_suffix(" EVENTS]")
                .and_then(|count| count.parse().ok())
                .map_or(Self::Other, Self::Lost);
        }
        let fault = || FaultEvent::parse(line).map(Self::Fault);
        Self::served(line).or_else(fault).unwrap_or(Self::Other)
    }

    fn served(line: &str) -> Option<Self> {
        // A process's name may precede it, with any content but shorter than the event's name.
        let (_, rest) = line.split_once(EVENT)?;
        let mut words = rest.strip_prefix(": ")?.split(' ');
        let (major, minor) = words.next()?.split_once(',')?;
        let number = Number { major: major.parse().ok()?, minor: minor.parse().ok()? };
        if !moves_the_arm(words.next()?) {
            return None;
        }
        // A command's bytes in parentheses precede the sectors; a priority (newer kernels) and an error follow.
        let (before, after) = rest.split_once(" + ")?;
        let first: u64 = before.rsplit(' ').next()?.parse().ok()?;
        let mut after = after.split(' ');
        let sectors: u64 = after.next()?.parse().ok()?;
        let end = first.checked_add(sectors)?;
        (sectors > 0 && after.next_back()? == "[0]").then_some(Self::Served(number, first..end))
    }
}

/// Whether it is a read or a write, by the kernel's letters: F before the operation is a preceding flush.
fn moves_the_arm(letters: &str) -> bool {
    let operation = letters.strip_prefix('F').filter(|rest| !rest.is_empty()).unwrap_or(letters);
    operation.starts_with(['R', 'W'])
}

/// Pages of a file: device, inode, and range in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultEvent {
    Fault { file: (u64, u64), offset: u64 },
    Filled { file: (u64, u64), offset: u64 },
    Mapped { file: (u64, u64), first: u64, last: u64 },
}

impl FaultEvent {
    /// Parses a line of the trace.
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("mm_filemap_")?;
        let (event, rest) = rest.split_once(": ")?;
        // Depending on the event, names and values are separated by a space or an equals sign.
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

/// The filter of [`FILLED`] that passes starts of parts, in addition to the filter by device.
pub(super) fn beginnings(page_bytes: u64) -> String {
    let pages = (PART_BYTES / page_bytes.max(1)).max(1);
    if pages == 1 {
        String::new()
    } else {
        format!(" && !(index & {})", pages - 1)
    }
}

/// Splits input into lines; pieces may end anywhere.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Parses the lines that end in `piece`.
    pub fn take(&mut self, piece: &[u8], mut each: impl FnMut(Line)) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, next) = (&rest[..end], &rest[end + 1..]);
            if self.begun.is_empty() {
                each(parse(line));
            } else {
                self.begun.extend_from_slice(line);
                each(parse(&self.begun));
                self.begun.clear();
            }
            rest = next;
        }
        let room = (LONGEST + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&rest[..rest.len().min(room)]);
    }
}

fn parse(line: &[u8]) -> Line {
    match std::str::from_utf8(line) {
        Ok(line) if line.len() <= LONGEST => Line::parse(line),
        _ => Line::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn served(major: u64, minor: u64, sectors: Range<u64>) -> Line {
        Line::Served(Number { major, minor }, sectors)
    }

    #[test]
    fn lines_of_several_kernels() {
        for (line, expected) in [
            (
                "          <idle>-0       [001] ..s1.    27.308125: block_rq_complete: 7,0 R () 2048 + 768 none,0,0 [0]",
                served(7, 0, 2048..2816),
            ),
            ("block_rq_complete: 254,0 WS () 1 + 8 be,0,4 [0]", served(254, 0, 1..9)),
            ("x-1 [000] 5.0: block_rq_complete: 8,16 FWFS () 100 + 8 [0]", served(8, 16, 100..108)),
            (" a + b ()-7 [000] 5.0: block_rq_complete: 8,0 RA (28 00) 5 + 1 none,0,0 [0]", served(8, 0, 5..6)),
            ("block_rq_complete: 7,0 RM () 18446744073709551607 + 8 [0]", served(7, 0, u64::MAX - 8..u64::MAX)),
            ("CPU:1 [LOST 212 EVENTS]", Line::Lost(212)),
        ] {
            assert_eq!(Line::parse(line), expected, "{line}");
        }
        for line in [
            "",
            "block_rq_complete: ",
            "block_rq_complete: 7,0 D () 2048 + 768 none,0,0 [0]",
            "block_rq_complete: 7,0 FF () 0 + 0 none,0,0 [0]",
            "block_rq_complete: 7,0 N (12 00) 0 + 0 none,0,0 [0]",
            "block_rq_complete: 7,0 R () 2048 + 0 [0]",
            "block_rq_complete: 7,0 R () 2048 + 8 none,0,0 [-5]",
            "block_rq_complete: 7,0 R () 2048 + 8",
            "block_rq_complete: 7,0 R () 18446744073709551608 + 8 [0]",
            "block_rq_complete: 7:0 R () 2048 + 8 [0]",
            "block_rq_issue: 7,0 R 4096 () 2048 + 8 none,0,0 [cat]",
            "CPU:1 [LOST EVENTS]",
            "CPU:1 [LOST -1 EVENTS]",
        ] {
            assert_eq!(Line::parse(line), Line::Other, "{line}");
        }
    }

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

    fn all(pieces: &[&[u8]]) -> Vec<Line> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        pieces.iter().for_each(|piece| lines.take(piece, |line| found.push(line)));
        found
    }

    #[test]
    fn what_is_too_long_is_no_line() {
        let long = vec![b'a'; 3 * LONGEST];
        let good = b"\nblock_rq_complete: 7,0 R () 8 + 8 [0]\n";
        assert_eq!(all(&[&long, &long, good]), [Line::Other, served(7, 0, 8..16)]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(text in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
            let cut = cut.min(text.len());
            prop_assert_eq!(all(&[&text]), all(&[&text[..cut], &text[cut..]]));
        }

        #[test]
        fn nearly_a_line(
            line in "(CPU:[01] \\[LOST [0-9]{0,25} EVENTS\\])|(.{0,20}block_rq_complete: [0-9]{0,4},[0-9]{1,4} [RWDFNSA]{0,4} \\(.{0,8}\\) [0-9]{1,21} \\+ [0-9]{0,21}( none,0,0)? \\[-?[0-9]\\].?)",
        ) {
            if let Line::Served(number, sectors) = Line::parse(&line) {
                prop_assert!(sectors.start < sectors.end);
                let said = format!(
                    "{},{} ", number.major, number.minor
                );
                prop_assert!(line.contains(&said) || line.contains(",0"), "{line}");
            }
        }

        #[test]
        fn what_the_kernel_prints_is_read(
            major in 0u64..4096, minor in 0u64..1 << 20, first in 0u64..1 << 50, sectors in 1u64..1 << 20,
            name in "[^\\n]{0,15}", newer: bool,
        ) {
            let priority = if newer { " none,0,0" } else { "" };
            let line = format!("{name}-5 [001] d..1. 9.1: {EVENT}: {major},{minor} R () {first} + {sectors}{priority} [0]");
            prop_assert_eq!(Line::parse(&line), served(major, minor, first..first + sectors));
        }

        #[test]
        fn nearly_a_fault(
            line in "mm_filemap_(fault|map_pages|add_to_page_cache): dev[ =][0-9]{0,6}:[0-9]{0,11} ino[ =][0-9a-h]{0,18} ofs[ =][0-9-]{0,40}",
        ) {
            if let Some(FaultEvent::Mapped { first, last, .. }) = FaultEvent::parse(&line) {
                prop_assert!(first <= last);
            }
        }
    }
}
