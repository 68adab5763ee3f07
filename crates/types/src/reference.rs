//! References: what an application asks of the first level, one block at a time.

use crate::{Block, Nanos};

/// How the first level found a referenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Resident: served at once.
    HitReady,
    /// Its fetch had been issued at an earlier instant and had not ended: the process waited for the rest.
    HitUnready,
    /// Neither resident nor in flight at an earlier instant.
    Miss,
}

/// Think times of a chunk of references. Think time follows its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Think {
    /// The same after every reference.
    Constant(Nanos),
    /// One for each reference of the chunk.
    Each(Vec<Nanos>),
}

impl Think {
    /// Think time after reference `index` of the chunk.
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
    /// Think times, beside `blocks`.
    pub think: Think,
    /// Whether reference i is the last of its request; empty where every request is one block.
    pub request_ends: Vec<bool>,
    /// Whether reference i is the last of a request that ends before its block does; empty where none does.
    pub ends_inside: Vec<bool>,
    /// Whether reference i writes its block; empty where all read.
    pub writes: Vec<bool>,
    /// When the request of reference i arrives; empty where it is not needed.
    pub times: Vec<Nanos>,
    /// The process of reference i; empty where it is not needed.
    pub processes: Vec<u32>,
    /// Bytes of its block that reference i asks for, none for what a file system reads to find others; empty where
    /// all are of whole blocks.
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

    /// Whether the request that ends with reference `index` ends before its block does.
    #[inline]
    #[must_use]
    pub fn ends_inside(&self, index: usize) -> bool {
        self.ends_inside.get(index).copied().unwrap_or(false)
    }

    /// Bytes of its block that reference `index` asks for; `None`: all.
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
