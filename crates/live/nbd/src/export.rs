//! An export of a server.

use crate::PAYLOAD_BYTES_MAX;

/// Transmission flags of an export, as both sides see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Always set.
    pub const HAS_FLAGS: Flags = Flags(1);
    /// Writes, trims and zeroing are refused.
    pub const READ_ONLY: Flags = Flags(1 << 1);
    /// FLUSH is supported.
    pub const FLUSH: Flags = Flags(1 << 2);
    /// The flag FUA (stable before the reply) is supported.
    pub const FUA: Flags = Flags(1 << 3);
    /// Seeks cost time.
    pub const ROTATIONAL: Flags = Flags(1 << 4);
    /// TRIM is supported.
    pub const TRIM: Flags = Flags(1 << 5);
    /// `WRITE_ZEROES` is supported.
    pub const WRITE_ZEROES: Flags = Flags(1 << 6);
    /// The flag DF (one chunk of content per reply) is supported. The server's [`crate::server::Handshake`] sets and
    /// clears it.
    pub const DF: Flags = Flags(1 << 7);
    /// A flush on one connection covers writes of all, and all see the same content at once.
    pub const MULTI_CONN: Flags = Flags(1 << 8);
    /// CACHE is supported.
    pub const CACHE: Flags = Flags(1 << 10);
    /// The flag `FAST_ZERO` (fail if zeroing is as slow as writing) is supported.
    pub const FAST_ZERO: Flags = Flags(1 << 11);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The union of both.
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// These flags without `flags`.
    #[must_use]
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }
}

/// Limits of offsets and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of this; a power of two, 1 to 64 KiB.
    pub bytes_min: u32,
    /// The most efficient size; a power of two, at least 512.
    pub bytes_preferred: u32,
    /// Maximum payload of one read or write, a multiple of `bytes_min`.
    pub bytes_max: u32,
}

impl Default for BlockSizes {
    /// The specification's defaults for a server that states nothing.
    fn default() -> Self {
        Self { bytes_min: 1, bytes_preferred: 4096, bytes_max: PAYLOAD_BYTES_MAX }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// At most 4096 bytes without a zero byte; empty for the default export.
    pub name: String,
    /// A sentence for humans; may be empty.
    pub description: String,
    pub size_bytes: u64,
    /// Commands and flags that may be sent.
    pub flags: Flags,
    pub blocks: BlockSizes,
    /// Whether `BLOCK_STATUS` is supported (context base:allocation).
    pub allocation: bool,
}

pub trait Exports {
    /// The export `name`. The empty name is the default export, if the server has one.
    fn find(&self, name: &str) -> Option<Export>;
    /// Names and descriptions to show to clients.
    fn list(&self) -> Vec<(String, String)>;
}

/// The first export is also the default.
impl Exports for [Export] {
    fn find(&self, name: &str) -> Option<Export> {
        let named = self.iter().find(|export| export.name == name);
        named.or(if name.is_empty() { self.first() } else { None }).cloned()
    }

    fn list(&self) -> Vec<(String, String)> {
        self.iter().map(|export| (export.name.clone(), export.description.clone())).collect()
    }
}
