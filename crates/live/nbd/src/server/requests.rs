//! Checks requests: accepted ones lie within the export, are aligned, not too long, and were negotiated.

use super::Session;
use crate::request::{RawRequest, FLAG_DF, FLAG_FAST_ZERO, FLAG_FUA};
use crate::wire::Violation;
use crate::{Command, Errno, Flags, Request, REQUEST_BYTES};

/// A parsed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// The client's id.
    pub cookie: u64,
    /// Number of bytes after the header: read them, or skip them if the request is refused, before the next header.
    pub payload_bytes: u32,
    /// The request, or why it is refused: reply with [`Session::refused`].
    pub request: Result<Request, Refusal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub errno: Errno,
    pub message: &'static str,
}

fn refuse<T>(errno: Errno, message: &'static str) -> Result<T, Refusal> {
    Err(Refusal { errno, message })
}

impl Session {
    /// # Errors
    /// It is no request, so the start of the next one is unknown.
    pub fn check(&self, header: &[u8; REQUEST_BYTES]) -> Result<Incoming, Violation> {
        let Some(raw) = RawRequest::parse(header) else {
            return Violation::new("a request without its magic number");
        };
        let payload_bytes = if raw.code == 1 { raw.length } else { 0 };
        Ok(Incoming { cookie: raw.cookie, payload_bytes, request: self.request(&raw) })
    }

    fn request(&self, raw: &RawRequest) -> Result<Request, Refusal> {
        let RawRequest { flags, code, cookie, offset, length } = *raw;
        let Some((command, known_flags)) = Command::decode(code, flags) else {
            return refuse(Errno::Inval, "the command is unknown");
        };
        let request = Request { cookie, command, offset, length };
        if command == Command::Disconnect {
            return Ok(request);
        }
        let offered = self.export.flags;
        if command.changes() && offered.contains(Flags::READ_ONLY) {
            return refuse(Errno::Perm, "the export is read-only");
        }
        // Flags of the command that the export does not offer.
        let offers = [(FLAG_FUA, Flags::FUA), (FLAG_DF, Flags::DF), (FLAG_FAST_ZERO, Flags::FAST_ZERO)];
        let withheld = offers.iter().filter(|offer| !offered.contains(offer.1)).fold(0, |bits, offer| bits | offer.0);
        if flags & !(known_flags & !withheld) != 0 {
            return refuse(Errno::Inval, "the command does not take that flag");
        }
        let available = match command {
            Command::Flush => offered.contains(Flags::FLUSH),
            Command::Trim { .. } => offered.contains(Flags::TRIM),
            Command::WriteZeroes { .. } => offered.contains(Flags::WRITE_ZEROES),
            Command::Cache => offered.contains(Flags::CACHE),
            Command::BlockStatus { .. } => self.allocation,
            Command::Read { .. } | Command::Write { .. } | Command::Disconnect => true,
        };
        if !available {
            return refuse(Errno::Inval, "the command was not offered");
        }
        if command == Command::Flush {
            let none = offset == 0 && length == 0;
            return if none { Ok(request) } else { refuse(Errno::Inval, "a flush has neither offset nor length") };
        }
        if offset.checked_add(u64::from(length)).is_none_or(|end| end > self.export.size_bytes) {
            let grows = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
            return refuse(if grows { Errno::NoSpc } else { Errno::Inval }, "beyond the end of the export");
        }
        if length == 0 {
            return refuse(Errno::Inval, "the length is zero");
        }
        let blocks = self.export.blocks;
        let unit = u64::from(blocks.bytes_min);
        if offset % unit != 0 || u64::from(length) % unit != 0 {
            return refuse(Errno::Inval, "not aligned to the smallest block size");
        }
        // As in QEMU, caching counts as reading.
        let moves = matches!(command, Command::Read { .. } | Command::Write { .. } | Command::Cache);
        if moves && length > blocks.bytes_max {
            return refuse(Errno::Inval, "longer than the largest payload");
        }
        Ok(request)
    }
}
