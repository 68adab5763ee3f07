//! Operations: one table for all formats of the words and codes that logs use.
//!
//! Sources: `blk_fill_rwbs` of Linux (kernel/trace/blktrace.c) and `fill_rwbs` of blkparse for the letters of the block
//! layer; the names of system calls.

use crate::number::shown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    /// It moves no data: a discard, a flush, a command to the drive, an `open`. It is skipped and counted.
    Other,
}

/// Words in lower case.
const WORDS: &[(&[&str], Operation)] = &[
    (&["r", "rd", "read", "reads", "readv", "pread", "pread64", "preadv", "preadv2"], Operation::Read),
    (
        &["w", "wr", "write", "writes", "writev", "pwrite", "pwrite64", "pwritev", "pwritev2", "append"],
        Operation::Write,
    ),
    (
        &[
            "open",
            "openat",
            "openat2",
            "creat",
            "create",
            "close",
            "lseek",
            "_llseek",
            "seek",
            "stat",
            "fstat",
            "lstat",
            "statx",
            "fsync",
            "fdatasync",
            "datasync",
            "sync",
            "syncfs",
            "sync_file_range",
            "flush",
            "preflush",
            "f",
            "barrier",
            "trim",
            "discard",
            "unmap",
            "secure_erase",
            "write_zeroes",
            "write_same",
            "d",
            "n",
            "none",
            "nop",
            "noop",
            "mmap",
            "munmap",
            "msync",
            "truncate",
            "ftruncate",
            "fallocate",
            "unlink",
            "rename",
            "mkdir",
            "rmdir",
            "fadvise",
            "fadvise64",
            "dup",
            "fcntl",
            "flock",
            "getattr",
            "setattr",
            "lookup",
            "readdir",
            "access",
            "zone_reset",
            "reset",
            "verify",
            "identify",
            "inquiry",
            "other",
        ],
        Operation::Other,
    ),
];

/// Parses an operation; with `codes` also a hexadecimal SCSI command code.
#[inline]
pub(super) fn operation(field: &[u8], column: &str, codes: bool) -> Result<Operation, String> {
    let text = field.trim_ascii();
    match text {
        b"R" | b"Read" => Ok(Operation::Read),
        b"W" | b"Write" => Ok(Operation::Write),
        _ => letters(text).or_else(|| word(text)).or_else(|| code(text).filter(|_| codes)).ok_or_else(|| {
            let more = if codes { ", SCSI 28, 2a" } else { "" };
            format!("{} in column {column} is not an operation; allowed: R, W, read, write{more}", shown(field))
        }),
    }
}

/// The letters of Linux's block layer: F for a preceding flush, the operation, then flags (FUA, read-ahead, sync,
/// metadata, atomic; barrier in old kernels).
#[inline]
pub(super) fn letters(text: &[u8]) -> Option<Operation> {
    if let Some(operation) = text.strip_prefix(b"F").and_then(letters) {
        return Some(operation);
    }
    let (operation, flags) = match text {
        [b'R', flags @ ..] => (Operation::Read, flags),
        [b'W', b'Z', flags @ ..] => (Operation::Other, flags),
        [b'W', flags @ ..] => (Operation::Write, flags),
        [b'D', b'E', flags @ ..] | [b'D' | b'N' | b'F', flags @ ..] => (Operation::Other, flags),
        // Zone operations: append; reset, reset of all, open, close, finish.
        [b'Z', b'A', flags @ ..] => (Operation::Write, flags),
        [b'Z', b'R', b'A', flags @ ..] | [b'Z', b'R' | b'O' | b'C' | b'F', flags @ ..] => (Operation::Other, flags),
        _ => return None,
    };
    flags.iter().all(|flag| b"FASMUB".contains(flag)).then_some(operation)
}

#[cold]
fn word(text: &[u8]) -> Option<Operation> {
    let same = |word: &&str| word.as_bytes().eq_ignore_ascii_case(text);
    WORDS.iter().find(|(words, _)| words.iter().any(same)).map(|(_, operation)| *operation)
}

/// Two hexadecimal digits.
#[cold]
fn code(text: &[u8]) -> Option<Operation> {
    let digits = std::str::from_utf8(text).ok().filter(|digits| digits.len() == 2 && !digits.starts_with('+'))?;
    scsi(u16::from_str_radix(digits, 16).ok()?)
}

/// The operation of a SCSI command; `None` for other codes. Source: INCITS T10, SCSI Block Commands (SBC-3), table of
/// operation codes.
pub(super) fn scsi(code: u16) -> Option<Operation> {
    Some(match code {
        // READ (6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
        // WRITE (6), (10), (12), (16); WRITE AND VERIFY (10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Operation::Write,
        // TEST UNIT READY, REQUEST SENSE, INQUIRY, MODE SENSE, START STOP UNIT, READ CAPACITY, VERIFY, SYNCHRONIZE
        // CACHE, WRITE SAME, UNMAP, LOG SENSE, RESERVE and RELEASE, READ CAPACITY (16), REPORT LUNS
        0x00 | 0x03 | 0x12 | 0x1a | 0x5a | 0x1b | 0x25 | 0x2f | 0x8f | 0x35 | 0x91 | 0x41 | 0x93 | 0x42 | 0x4d
        | 0x5e | 0x5f | 0x9e | 0xa0 => Operation::Other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_words_and_codes() {
        for (texts, expected) in [
            ("R RA RS RM RSM RAM RFS r read READ Read rd pread64 preadv2 28 88 a8", Operation::Read),
            ("W WS WM WFS FWS FWFS FW WB WSU ZA ZAS w write Write wr pwrite64 writev 2a 8A AA", Operation::Write),
            (
                "D DS DE DES N NS NSM F FF FS FFS FN WZ WZS ZR ZRA ZO ZC ZF d f n flush trim discard open close fsync \
                 35 91 42 12 00 1a",
                Operation::Other,
            ),
        ] {
            for text in texts.split_whitespace() {
                assert_eq!(operation(text.as_bytes(), "op", true), Ok(expected), "{text}");
            }
        }
        for text in ["", "X", "RX", "1", "0", "2", "RW", "get", "f7", "-1", "+1", "Z", "ZX", "readable"] {
            let error = operation(text.as_bytes(), "op", true).unwrap_err();
            assert!(
                error.ends_with("in column op is not an operation; allowed: R, W, read, write, SCSI 28, 2a"),
                "{error}"
            );
        }
        assert!(operation(b"28", "op", false).is_err());
    }
}
