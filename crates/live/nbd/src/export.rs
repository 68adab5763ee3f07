//! What a server offers under a name.

use crate::PAYLOAD_BYTES_MAX;

/// What may be sent for an export: the transmission flags, as both sides see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Always set.
    pub const HAS_FLAGS: Flags = Flags(1);
    /// Writes, trims and zeroing are refused.
    pub const READ_ONLY: Flags = Flags(1 << 1);
    /// FLUSH is understood.
    pub const FLUSH: Flags = Flags(1 << 2);
    /// The flag FUA (stable before the reply) is understood.
    pub const FUA: Flags = Flags(1 << 3);
    /// Seeks cost time.
    pub const ROTATIONAL: Flags = Flags(1 << 4);
    /// TRIM is understood.
    pub const TRIM: Flags = Flags(1 << 5);
    /// `WRITE_ZEROES` is understood.
    pub const WRITE_ZEROES: Flags = Flags(1 << 6);
    /// The flag DF (one chunk of content in a reply) is understood. A server's [`crate::server::Handshake`] sets and clears it.
    pub const DF: Flags = Flags(1 << 7);
    /// A flush on one connection covers the writes of all, and all see the same content at once.
    pub const MULTI_CONN: Flags = Flags(1 << 8);
    /// CACHE is understood.
    pub const CACHE: Flags = Flags(1 << 10);
    /// The flag `FAST_ZERO` (fail if zeroing is as slow as writing) is understood.
    pub const FAST_ZERO: Flags = Flags(1 << 11);

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// These without those.
    #[must_use]
    pub const fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }
}

/// Which offsets and lengths a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it; a power of two, 1 to 64 KiB.
    pub bytes_min: u32,
    /// The size that costs least; a power of two, at least 512.
    pub bytes_preferred: u32,
    /// The longest payload of one read or write, a multiple of `bytes_min`.
    pub bytes_max: u32,
}

impl Default for BlockSizes {
    /// What the specification lets a client assume of a server that states nothing.
    fn default() -> Self {
        Self { bytes_min: 1, bytes_preferred: 4096, bytes_max: PAYLOAD_BYTES_MAX }
    }
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name, at most 4096 bytes without a zero byte; empty for the default export.
    pub name: String,
    /// A sentence for humans; may be empty.
    pub description: String,
    /// How long it is.
    pub size_bytes: u64,
    /// What may be sent for it.
    pub flags: Flags,
    /// Which offsets and lengths.
    pub blocks: BlockSizes,
    /// Whether `BLOCK_STATUS` can be asked for (context base:allocation).
    pub allocation: bool,
}

/// The exports of a server.
pub trait Exports {
    /// The export of that name. The empty name is the default export, if the server has one.
    fn find(&self, name: &str) -> Option<Export>;
    /// What a client may know of: name and description of each.
    fn list(&self) -> Vec<(String, String)>;
}

/// Several exports; the first is also the default one.
impl Exports for [Export] {
    fn find(&self, name: &str) -> Option<Export> {
        let named = self.iter().find(|export| export.name == name);
        named.or(if name.is_empty() { self.first() } else { None }).cloned()
    }

    fn list(&self) -> Vec<(String, String)> {
        self.iter().map(|export| (export.name.clone(), export.description.clone())).collect()
    }
}
