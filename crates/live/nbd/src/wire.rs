//! Magic numbers and constants of the protocol, and integers in network byte order.

/// The peer violated the protocol in a way that allows no reply: close the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl Violation {
    pub(crate) fn new<T>(what: impl Into<String>) -> Result<T, Violation> {
        Err(Violation(what.into()))
    }
}

/// `NBDMAGIC`
pub(crate) const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Second number in the greeting of oldstyle negotiation.
pub(crate) const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the greeting and of the client's answer: fixed newstyle; no zeroes after the reply to `EXPORT_NAME`.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 1 << 1;

pub(crate) mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

pub(crate) mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    /// Set in every error.
    pub const ERROR: u32 = 1 << 31;
    pub const UNSUP: u32 = ERROR | 1;
    pub const POLICY: u32 = ERROR | 2;
    pub const INVALID: u32 = ERROR | 3;
    pub const TLS_REQD: u32 = ERROR | 5;
    pub const UNKNOWN: u32 = ERROR | 6;
    pub const BLOCK_SIZE_REQD: u32 = ERROR | 8;
}

/// Items of a reply to INFO and GO.
pub(crate) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Types of structured replies.
pub(crate) mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in every error.
    pub const ERROR: u16 = 1 << 15;
    pub const ERROR_GENERAL: u16 = ERROR | 1;
    pub const ERROR_OFFSET: u16 = ERROR | 2;
    /// The flag of a reply's last chunk.
    pub const DONE: u16 = 1;
}

/// The states of an extent.
pub(crate) const STATE_HOLE: u32 = 1;
pub(crate) const STATE_ZERO: u32 = 2;

/// The only metadata context that both sides support.
pub(crate) const ALLOCATION: &str = "base:allocation";

/// Maximum length of a string, and of an option or a reply to one.
pub(crate) const STRING_BYTES_MAX: usize = 4096;
pub(crate) const OPTION_BYTES_MAX: u32 = 64 << 10;

/// Reads integers from the front of a slice; `None` at its end.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string preceded by its length.
    pub fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        string(self.bytes(length)?)
    }
}

/// A valid string of the protocol: UTF-8 without zero bytes, not too long.
pub(crate) fn string(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= STRING_BYTES_MAX && !text.contains('\0')).then_some(text)
}

/// Appends a string preceded by its length.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
