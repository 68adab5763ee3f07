//! Pages of the kernel's ring buffer, as read from `trace_pipe_raw`, and the fields of events in them.
//!
//! A page has a header (time of its first event, bytes in use) and events; an event starts with a word of 5 bits for
//! the type or length and 27 bits for the time since the previous one. `events/header_page`, `events/header_event` and
//! each event's `format` describe this (kernel's Documentation/trace/ftrace.rst, include/linux/ring_buffer.h).

/// A field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// The named field in a description such as "field:dev_t s_dev; offset:32; size:4; signed:0;".
    pub fn find(format: &str, name: &str) -> Option<Self> {
        format.lines().find_map(|line| {
            let mut parts = line.trim().strip_prefix("field:").or(line.trim().strip_prefix("field: "))?.split(';');
            let declared = parts.next()?.split_ascii_whitespace().last()?;
            if declared.split('[').next()? != name {
                return None;
            }
            let mut number = |key: &str| parts.next()?.trim().strip_prefix(key)?.parse().ok();
            Some(Self { offset: number("offset:")?, size: number("size:")? })
        })
    }

    /// Its bytes; none if the event is too short.
    pub fn bytes<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        event.get(self.offset..self.offset + self.size).unwrap_or_default()
    }

    /// Its value as a number in native byte order.
    pub fn number(&self, event: &[u8]) -> u64 {
        match *self.bytes(event) {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            ref bytes => bytes.try_into().map_or(0, u64::from_ne_bytes),
        }
    }
}

/// The layout of pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    time: Field,
    used: Field,
    /// Offset of the first event.
    data: usize,
    /// Bytes of a page.
    pub bytes: usize,
}

/// The bits of the count of used bytes that hold the count; others say that events are missing.
const USED: u64 = 0x3fff_ffff;
/// Types beyond lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that a time stamp holds.
const STAMP_BITS: u32 = 59;

impl Pages {
    /// From the text of `events/header_page`.
    pub fn parse(header: &str) -> Option<Self> {
        let data = Field::find(header, "data")?;
        let (time, used) = (Field::find(header, "timestamp")?, Field::find(header, "commit")?);
        Some(Self { time, used, data: data.offset, bytes: data.offset + data.size })
    }

    /// Calls `each` for the events of a page, with their times.
    pub fn events(&self, page: &[u8], mut each: impl FnMut(u64, &[u8])) {
        let used = (self.used.number(page) & USED) as usize;
        let mut time = self.time.number(page);
        let mut rest = page.get(self.data..).unwrap_or_default();
        rest = &rest[..used.min(rest.len())];
        let word = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        while let Some(head) = word(rest) {
            rest = &rest[4..];
            let (kind, step) =
                if cfg!(target_endian = "big") { (head >> 27, head & 0x07ff_ffff) } else { (head & 31, head >> 5) };
            match kind {
                TIME_EXTEND | TIME_STAMP => {
                    let Some(high) = word(rest) else { return };
                    rest = &rest[4..];
                    let value = (u64::from(high) << 27) + u64::from(step);
                    time = if kind == TIME_EXTEND { time + value } else { time >> STAMP_BITS << STAMP_BITS | value };
                }
                PADDING if step == 0 => return,
                _ => {
                    time += u64::from(step);
                    let mut length = 4 * kind as usize;
                    if kind == 0 || kind == PADDING {
                        // The length is the first word, and includes itself.
                        let Some(stated) = word(rest) else { return };
                        length = (stated as usize).max(4);
                    }
                    let Some(event) = rest.get(..length) else { return };
                    match kind {
                        PADDING => {}
                        0 => each(time, &event[4..]),
                        _ => each(time, event),
                    }
                    rest = &rest[length.next_multiple_of(4).min(rest.len())..];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(time: u64, words: &[u32]) -> Vec<u8> {
        let used = (4 * words.len() as u64) | (1 << 31);
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        let mut page: Vec<u8> = time.to_ne_bytes().into_iter().chain(used.to_ne_bytes()).chain(words).collect();
        page.resize(4096, 0xee);
        page
    }

    #[test]
    fn fields_are_found_by_name() {
        let format = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n";
        assert_eq!(Field::find(format, "common_type"), Some(Field { offset: 0, size: 2 }));
        assert_eq!(Field::find(format, "prev_comm"), Some(Field { offset: 8, size: 16 }));
        assert_eq!(Field::find(format, "comm"), None);
        assert_eq!(Field { offset: 3, size: 2 }.number(&[0; 4]), 0);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn events_of_a_page_have_times() {
        let pages = Pages::parse(HEADER).expect("a header");
        assert_eq!(pages.bytes, 4096);
        let words = [
            2 | 5 << 5,
            11,
            12, // two words, 5 ns behind the page's time
            30 | 1 << 5,
            1, // 2^27 + 1 ns pass
            1,
            13, // one word at the same time
            29 | 1 << 5,
            8,
            99, // a gap of eight bytes
            3 << 5,
            12,
            14,
            15, // twelve bytes, their length included
            31 | 7 << 5,
            0, // the time is 7
            1 | 1 << 5,
            16,
            29,
            17, // nothing more
        ];
        let mut seen = Vec::new();
        pages.events(&page(100, &words), |time, event| {
            seen.push((time, event.chunks(4).map(|word| word[0]).collect::<Vec<_>>()));
        });
        let then = 106 + (1 << 27);
        let expected = [(105, vec![11, 12]), (then, vec![13]), (then + 4, vec![14, 15]), (8, vec![16])];
        assert_eq!(seen, expected);
    }

    #[test]
    fn damaged_pages_end() {
        let pages = Pages::parse(HEADER).expect("a header");
        for kind in 0..32 {
            for length in 0..9 {
                pages.events(&page(u64::MAX >> 6, &[kind | 1 << 5, length, kind, length][..4]), |_, _| {});
                pages.events(&page(0, &[kind])[..20], |_, _| {});
            }
        }
        pages.events(&[], |_, _| panic!("nothing is there"));
    }
}
