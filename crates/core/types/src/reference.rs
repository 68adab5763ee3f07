//! References: what an application requests from the first level, one block at a time.

use crate::{Block, Nanos};

/// How the first level found a referenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Resident: served at once.
    HitReady,
    /// Its fetch was issued at an earlier instant and is still in flight: the process waits for the rest.
    HitUnready,
    /// Neither resident nor in flight before this instant.
    Miss,
}

/// Think times of a chunk of references. A think time follows its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Think {
    /// The same after every reference.
    Constant(Nanos),
    /// One per reference of the chunk.
    Each(Vec<Nanos>),
}

impl Think {
    /// The think time after reference `index` of the chunk.
    #[inline]
    #[must_use]
    pub fn after(&self, index: usize) -> Nanos {
        match self {
            Think::Constant(think) => *think,
            Think::Each(each) => each[index],
        }
    }
}

/// A run of consecutive references, resolved to dense block numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The referenced blocks, in order.
    pub blocks: Vec<Block>,
    /// Think times, parallel to `blocks`.
    pub think: Think,
    /// Whether reference i is the last of its request; empty if every request is one block.
    pub request_ends: Vec<bool>,
    /// Whether reference i is the last of a request that ends before the end of its block; empty if none does.
    pub ends_inside: Vec<bool>,
    /// Whether reference i writes its block; empty if all are reads.
    pub writes: Vec<bool>,
    /// Arrival time of reference i's request; empty if not needed.
    pub times: Vec<Nanos>,
    /// The process of reference i; empty if not needed.
    pub processes: Vec<u32>,
    /// Bytes of the block that reference i requests, 0 for metadata that a file system reads to find other blocks;
    /// empty if every reference requests whole blocks.
    pub bytes: Vec<u32>,
}

impl Chunk {
    /// A chunk without references.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            blocks: Vec::new(),
            think: Think::Constant(Nanos::ZERO),
            request_ends: Vec::new(),
            ends_inside: Vec::new(),
            writes: Vec::new(),
            times: Vec::new(),
            processes: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Whether reference `index` ends its request.
    #[inline]
    #[must_use]
    pub fn ends_request(&self, index: usize) -> bool {
        self.request_ends.get(index).copied().unwrap_or(true)
    }

    /// Whether the request whose last reference is `index` ends before the end of its block.
    #[inline]
    #[must_use]
    pub fn ends_inside(&self, index: usize) -> bool {
        self.ends_inside.get(index).copied().unwrap_or(false)
    }

    /// Bytes of the block that reference `index` requests; `None` means the whole block.
    #[inline]
    #[must_use]
    pub fn bytes_of(&self, index: usize) -> Option<u32> {
        self.bytes.get(index).copied()
    }

    /// Whether reference `index` writes its block.
    #[inline]
    #[must_use]
    pub fn is_write(&self, index: usize) -> bool {
        self.writes.get(index).copied().unwrap_or(false)
    }
}
