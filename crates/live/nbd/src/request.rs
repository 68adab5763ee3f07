//! A request of the transmission phase.

use crate::wire::{self, Reader};

pub const REQUEST_BYTES: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Read {
        /// The reply has at most one chunk of content.
        single_chunk: bool,
    },
    /// Write content, which follows the header.
    Write {
        /// Stable before the reply.
        fua: bool,
    },
    /// End the connection; there is no reply.
    Disconnect,
    /// Make all acknowledged writes stable.
    Flush,
    /// The content is no longer needed.
    Trim {
        /// Stable before the reply.
        fua: bool,
    },
    /// The content will be needed: prefetch it.
    Cache,
    /// Zero the range.
    WriteZeroes {
        /// Stable before the reply.
        fua: bool,
        /// The space stays allocated.
        no_hole: bool,
        /// Fail with [`crate::Errno::NotSup`] if zeroing is no faster than writing.
        fast: bool,
    },
    /// Report what is allocated, and what reads as zeroes.
    BlockStatus {
        /// The reply has only one extent.
        one_extent: bool,
    },
}

pub(crate) const FLAG_FUA: u16 = 1;
pub(crate) const FLAG_NO_HOLE: u16 = 1 << 1;
pub(crate) const FLAG_DF: u16 = 1 << 2;
pub(crate) const FLAG_REQ_ONE: u16 = 1 << 3;
pub(crate) const FLAG_FAST_ZERO: u16 = 1 << 4;

impl Command {
    /// The number on the wire, and the flags.
    pub(crate) fn encode(self) -> (u16, u16) {
        let bits = |pairs: &[(bool, u16)]| pairs.iter().filter(|pair| pair.0).map(|pair| pair.1).sum();
        match self {
            Command::Read { single_chunk } => (0, bits(&[(single_chunk, FLAG_DF)])),
            Command::Write { fua } => (1, bits(&[(fua, FLAG_FUA)])),
            Command::Disconnect => (2, 0),
            Command::Flush => (3, 0),
            Command::Trim { fua } => (4, bits(&[(fua, FLAG_FUA)])),
            Command::Cache => (5, 0),
            Command::WriteZeroes { fua, no_hole, fast } => {
                (6, bits(&[(fua, FLAG_FUA), (no_hole, FLAG_NO_HOLE), (fast, FLAG_FAST_ZERO)]))
            }
            Command::BlockStatus { one_extent } => (7, bits(&[(one_extent, FLAG_REQ_ONE)])),
        }
    }

    /// The command with this number and these flags, and the mask of flags it accepts; `None` for an unknown number.
    pub(crate) fn decode(code: u16, flags: u16) -> Option<(Command, u16)> {
        let set = |flag| flags & flag != 0;
        Some(match code {
            0 => (Command::Read { single_chunk: set(FLAG_DF) }, FLAG_DF | FLAG_FUA),
            1 => (Command::Write { fua: set(FLAG_FUA) }, FLAG_FUA),
            2 => (Command::Disconnect, u16::MAX),
            3 => (Command::Flush, FLAG_FUA),
            4 => (Command::Trim { fua: set(FLAG_FUA) }, FLAG_FUA),
            5 => (Command::Cache, FLAG_FUA),
            6 => (
                Command::WriteZeroes { fua: set(FLAG_FUA), no_hole: set(FLAG_NO_HOLE), fast: set(FLAG_FAST_ZERO) },
                FLAG_FUA | FLAG_NO_HOLE | FLAG_FAST_ZERO,
            ),
            7 => (Command::BlockStatus { one_extent: set(FLAG_REQ_ONE) }, FLAG_REQ_ONE | FLAG_FUA),
            _ => return None,
        })
    }

    /// Whether it changes the export's content.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Command::Write { .. } | Command::Trim { .. } | Command::WriteZeroes { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The client's id, repeated in the reply.
    pub cookie: u64,
    pub command: Command,
    /// First byte; 0 if the command has no range.
    pub offset: u64,
    /// Bytes; 0 if the command has no range.
    pub length: u32,
}

impl Request {
    /// The header as sent by a client; the payload of a write follows.
    #[must_use]
    pub fn header(&self) -> [u8; REQUEST_BYTES] {
        let (code, flags) = self.command.encode();
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&wire::REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&code.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// A parsed header, not yet checked.
pub(crate) struct RawRequest {
    pub flags: u16,
    pub code: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

impl RawRequest {
    /// `None` if it is no request.
    pub fn parse(header: &[u8; REQUEST_BYTES]) -> Option<RawRequest> {
        let mut reader = Reader(header);
        (reader.u32()? == wire::REQUEST_MAGIC).then_some(())?;
        Some(RawRequest {
            flags: reader.u16()?,
            code: reader.u16()?,
            cookie: reader.u64()?,
            offset: reader.u64()?,
            length: reader.u32()?,
        })
    }
}

/// An extent in a reply to `BLOCK_STATUS` with the context base:allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes, never zero. The first extent begins at the request's offset, each other one where the previous
    /// ends.
    pub length: u32,
    /// Not allocated in the backing.
    pub hole: bool,
    /// Reads as zeroes.
    pub zero: bool,
}
