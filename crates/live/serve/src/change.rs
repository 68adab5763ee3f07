//! Changes of what is stored.

use std::ops::Range;

/// A change of a backing.
#[derive(Debug)]
pub enum Change {
    Write {
        offset: u64,
        data: Vec<u8>,
        /// On stable storage when it completes.
        fua: bool,
    },
    /// Discards a range.
    Trim {
        offset: u64,
        length: u64,
        /// As for a write.
        fua: bool,
    },
    /// Zeroes a range.
    Zero {
        offset: u64,
        length: u64,
        /// The space stays allocated.
        no_hole: bool,
        /// As for a write.
        fua: bool,
    },
    /// Makes all written data stable.
    Flush,
    /// Drops data that may not be stable: acknowledged changes may be lost, and the cache holds none of them.
    Renew,
}

impl Change {
    /// The range that changes, if any.
    #[must_use]
    pub fn bytes(&self) -> Option<Range<u64>> {
        match self {
            Self::Write { offset, data, .. } => Some(*offset..*offset + data.len() as u64),
            Self::Trim { offset, length, .. } | Self::Zero { offset, length, .. } => Some(*offset..*offset + *length),
            Self::Flush | Self::Renew => None,
        }
    }

    /// Whether the change must be stable when it completes.
    #[must_use]
    pub fn is_fua(&self) -> bool {
        match self {
            Self::Write { fua, .. } | Self::Trim { fua, .. } | Self::Zero { fua, .. } => *fua,
            Self::Flush | Self::Renew => false,
        }
    }
}
