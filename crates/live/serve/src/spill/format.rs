//! Format of a spill file: a header, a table with one entry per slot, and the slots, one page each.
//!
//! ```text
//! 0       header: 4096 bytes, of which the first 136 are used
//! 4096    table: 32 bytes a slot, up to a multiple of 4096
//! ...     slots
//! ```
//!
//! Numbers are little-endian. An entry consists of a page's number plus one (0: the slot is empty), eight zero bytes,
//! and a checksum of 128 bits over the file's salt, the page's number and its bytes. No order of writes matters: if an
//! entry and a slot do not belong together, as after a torn write, the checksum differs. The salt is drawn when the
//! file is laid out, so slots of an earlier layout never match.

use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

pub const MAGIC: [u8; 16] = *b"headstart-spill\n";
const VERSION: u64 = 1;
pub const HEADER_BYTES: u64 = 4096;
pub const ENTRY_BYTES: u64 = 32;
const ALIGNMENT: u64 = 4096;
/// Bytes of the header before its checksum.
const SUMMED_BYTES: usize = 120;

/// How the file was left, or is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Closed in order.
    Closed,
    /// In use by a server with read-only clients.
    Reading,
    /// In use by a server whose clients may write.
    Writing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub page_bytes: u64,
    /// Number of slots.
    pub slots: u64,
    /// Part of every checksum.
    pub salt: [u8; 16],
    /// Digest of the backing's identity; zeroes if unknown.
    pub identity: [u8; 32],
    /// Boot id of the machine when the file was opened; zeroes if unknown.
    pub boot: [u8; 16],
    pub state: State,
}

impl Header {
    /// The form in the file.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [VERSION, self.page_bytes, self.slots] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.salt);
        bytes.extend(self.identity);
        bytes.extend(self.boot);
        let state: u64 = match self.state {
            State::Closed => 0,
            State::Reading => 1,
            State::Writing => 2,
        };
        bytes.extend(state.to_le_bytes());
        bytes.extend([0; 8]);
        debug_assert_eq!(bytes.len(), SUMMED_BYTES);
        let sum = XxHash3_128::oneshot(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes.resize(HEADER_BYTES as usize, 0);
        bytes
    }

    /// Parses a header; `None` if it is damaged or of another version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (summed, rest) = bytes.split_at_checked(SUMMED_BYTES)?;
        if rest.get(..16)? != XxHash3_128::oneshot(summed).to_le_bytes() || !summed.starts_with(&MAGIC) {
            return None;
        }
        let number = |at: usize| summed[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let state = match number(104)? {
            0 => State::Closed,
            1 => State::Reading,
            2 => State::Writing,
            _ => return None,
        };
        Some(Self {
            page_bytes: number(24)?,
            slots: number(32)?,
            salt: summed[40..56].try_into().ok()?,
            identity: summed[56..88].try_into().ok()?,
            boot: summed[88..104].try_into().ok()?,
            state,
        })
        .filter(|_| number(16) == Some(VERSION))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub page_bytes: u64,
    /// Number of slots.
    pub slots: u64,
}

impl Layout {
    /// The layout with as many slots as fit into `file_bytes`.
    #[must_use]
    pub fn of(file_bytes: u64, page_bytes: u64) -> Self {
        let slots = file_bytes.saturating_sub(HEADER_BYTES + ALIGNMENT) / (page_bytes + ENTRY_BYTES);
        Self { page_bytes, slots }
    }

    #[must_use]
    pub fn file_bytes(self) -> u64 {
        self.slot(self.slots)
    }

    /// Offset of the entry of a slot.
    #[must_use]
    pub fn entry(self, slot: u64) -> u64 {
        HEADER_BYTES + slot * ENTRY_BYTES
    }

    /// Offset of a slot.
    #[must_use]
    pub fn slot(self, slot: u64) -> u64 {
        self.entry(self.slots).next_multiple_of(ALIGNMENT) + slot * self.page_bytes
    }
}

/// Content of a slot: a page and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub page: u64,
    /// See [`checksum`].
    pub sum: u128,
}

impl Entry {
    /// The form in the file.
    #[must_use]
    pub fn to_bytes(entry: Option<Self>) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        if let Some(Self { page, sum }) = entry {
            bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
            bytes[16..].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    /// Parses an entry; `None` for an empty slot.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let page = u64::from_le_bytes(bytes[..8].try_into().ok()?).checked_sub(1)?;
        Some(Self { page, sum: u128::from_le_bytes(bytes[16..].try_into().ok()?) })
    }
}

/// Reads the entries of a file, by slot.
pub fn read_table(file: &std::fs::File, layout: Layout) -> io::Result<Vec<Option<Entry>>> {
    /// Entries read at a time.
    const PART: u64 = 1 << 15;
    let mut entries = Vec::new();
    let mut part = vec![0; (PART * ENTRY_BYTES) as usize];
    for first in (0..layout.slots).step_by(PART as usize) {
        let count = PART.min(layout.slots - first);
        let part = &mut part[..(count * ENTRY_BYTES) as usize];
        file.read_exact_at(part, layout.entry(first))?;
        entries.extend(part.chunks_exact(ENTRY_BYTES as usize).map(Entry::from_bytes));
    }
    Ok(entries)
}

/// Checksum of a page's bytes in a file with this salt.
#[must_use]
pub fn checksum(salt: &[u8; 16], page: u64, bytes: &[u8]) -> u128 {
    let mut hasher = XxHash3_128::new();
    hasher.write(salt);
    hasher.write(&page.to_le_bytes());
    hasher.write(bytes);
    hasher.finish_128()
}

/// Digest of a backing's identity; zeroes if unknown.
#[must_use]
pub fn digest(identity: Option<&str>) -> [u8; 32] {
    identity.map_or([0; 32], |identity| Sha256::digest(identity).into())
}

/// Id of this boot; zeroes if the system does not report it.
#[must_use]
pub fn boot() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map(u128::to_le_bytes).unwrap_or_default()
}

/// Sixteen random bytes.
///
/// # Errors
/// The system does not provide any.
pub fn salt() -> io::Result<[u8; 16]> {
    let mut salt = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut salt)?;
    Ok(salt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_any_flipped_byte_is_noticed() {
        let header = Header {
            page_bytes: 65_536,
            slots: 12_345,
            salt: *b"0123456789abcdef",
            identity: digest(Some("a file")),
            boot: [7; 16],
            state: State::Writing,
        };
        let bytes = header.to_bytes();
        assert_eq!((bytes.len(), Header::from_bytes(&bytes)), (4096, Some(header)));
        for at in 0..SUMMED_BYTES + 16 {
            let mut broken = bytes.clone();
            broken[at] ^= 4;
            assert_eq!(Header::from_bytes(&broken), None, "byte {at}");
        }
        assert_eq!(Header::from_bytes(&bytes[..100]), None);
    }

    #[test]
    fn slots_lie_apart_and_within_the_file() {
        for (file_bytes, page_bytes) in [(1 << 20, 4096), (10_000_000, 4096), (1 << 30, 1 << 20), (5_000, 4096)] {
            let layout = Layout::of(file_bytes, page_bytes);
            assert!(layout.file_bytes() <= file_bytes.max(8192), "{layout:?}");
            assert!(layout.entry(layout.slots) <= layout.slot(0) && layout.slot(0).is_multiple_of(4096));
        }
        assert_eq!(Layout::of(1 << 20, 4096).slots, 252);
        let entry = Entry { page: 0, sum: u128::MAX };
        assert_eq!(Entry::from_bytes(&Entry::to_bytes(Some(entry))), Some(entry));
        assert_eq!(Entry::from_bytes(&Entry::to_bytes(None)), None);
    }
}
