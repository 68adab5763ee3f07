//! What passes between clients, the conductor and a backing.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::{Errno, Extent};
use headstart_types::Block;

use crate::backing::Backing;
use crate::spill::Spill;

/// The bytes of a page. The cache and the replies that are on their way share them, so that nothing is copied for a reply; a page
/// that changes while a reply has it is copied first ([`Buffers::of_mut`](crate::buffers::Buffers::of_mut)).
pub type Page = Arc<BytesMut>;

/// The bytes that a read brings: pages that follow one another, all of one length, less what lies before and behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Data {
    pages: Vec<Page>,
    skip: usize,
    length: usize,
}

impl Data {
    /// `length` bytes of `pages`, `skip` bytes behind the beginning of the first, in which they begin.
    #[must_use]
    pub fn new(pages: Vec<Page>, skip: usize, length: usize) -> Self {
        Self { pages, skip, length }
    }

    /// How many bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The bytes from `at` on, page by page.
    pub fn slices(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let page_bytes = self.pages.first().map_or(1, |page| page.len());
        let (from, end) = (self.skip + at, self.skip + self.length);
        let first = from / page_bytes;
        (first..).zip(&self.pages[first..]).map(move |(number, page)| {
            let start = number * page_bytes;
            &page[from.saturating_sub(start)..(end - start).min(page_bytes)]
        })
    }

    /// The pages, to be given back to [`Conductor::reuse`](crate::conductor::Conductor::reuse).
    #[must_use]
    pub fn into_pages(self) -> Vec<Page> {
        self.pages
    }
}

/// What a client wants done with a range of an export.
#[derive(Debug)]
pub enum Op {
    /// Its bytes.
    Read,
    /// It is going to be read.
    Cache,
    /// New bytes, as many as the request is long.
    Write {
        /// The bytes.
        data: Vec<u8>,
        /// On stable storage before the reply.
        fua: bool,
    },
    /// Its bytes are no longer needed, and may be anything.
    Trim {
        /// As of a write.
        fua: bool,
    },
    /// Zeroes as new bytes.
    Zero {
        /// As of a write.
        fua: bool,
        /// The space stays allocated.
        no_hole: bool,
    },
    /// Everything that has been replied to is to be on stable storage.
    Flush,
    /// What of it is allocated.
    Extents,
}

impl Op {
    /// Whether something is to be stable when it is answered.
    #[must_use]
    pub fn syncs(&self) -> bool {
        match self {
            Self::Write { fua, .. } | Self::Trim { fua } | Self::Zero { fua, .. } => *fua,
            Self::Flush => true,
            Self::Read | Self::Cache | Self::Extents => false,
        }
    }
}

/// A request of a client, within the export.
#[derive(Debug)]
pub struct ClientRequest {
    /// The host's name for it.
    pub id: u64,
    /// Whose it is: read-aheads tell the streams of clients apart.
    pub client: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 only of a flush.
    pub length: u32,
    /// What is wanted.
    pub op: Op,
}

/// What a request has led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// A read's bytes, whose pages go back by [`Conductor::reuse`](crate::conductor::Conductor::reuse).
    Data(Data),
    /// Done, without anything to return.
    Done,
    /// From the request's offset on.
    Extents(Vec<Extent>),
    /// It failed.
    Failed(Errno),
}

/// A page that is to be kept in a spill file, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The page.
    pub page: u64,
    /// Its block in the file's level.
    pub(crate) block: Block,
    /// Its slot in the file.
    pub(crate) slot: u32,
}

/// A change of a backing.
#[derive(Debug)]
pub enum Change {
    /// Writes.
    Write {
        /// First byte.
        offset: u64,
        /// What.
        data: Vec<u8>,
        /// On stable storage when it ends.
        fua: bool,
    },
    /// Gives a range up.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// As of a write.
        fua: bool,
    },
    /// Makes a range zeroes.
    Zero {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// The space stays allocated.
        no_hole: bool,
        /// As of a write.
        fua: bool,
    },
    /// Makes stable what has been written.
    Flush,
    /// Forgets what is not known to be stable: acknowledged changes may be lost, and nothing of them is left in the cache.
    Renew,
}

impl Change {
    /// The bytes that change, if any do.
    #[must_use]
    pub fn bytes(&self) -> Option<Range<u64>> {
        match self {
            Self::Write { offset, data, .. } => Some(*offset..*offset + data.len() as u64),
            Self::Trim { offset, length, .. } | Self::Zero { offset, length, .. } => Some(*offset..*offset + *length),
            Self::Flush | Self::Renew => None,
        }
    }

    /// Whether what changes is to be stable when it ends.
    #[must_use]
    pub fn is_fua(&self) -> bool {
        match self {
            Self::Write { fua, .. } | Self::Trim { fua, .. } | Self::Zero { fua, .. } => *fua,
            Self::Flush | Self::Renew => false,
        }
    }
}

/// Work for a backing.
pub enum Work {
    /// Fills the buffers in turn; what lies beyond the end of the backing reads as zeroes.
    Read {
        /// First byte.
        offset: u64,
        /// Where to.
        buffers: Vec<BytesMut>,
        /// A client waits for it.
        demand: bool,
    },
    /// Changes it.
    Change(Change),
    /// Keeps a page that has left the cache in a spill file, if that can be.
    Store {
        /// The file.
        spill: Arc<Spill>,
        /// Where.
        place: Place,
        /// Its bytes.
        buffer: BytesMut,
    },
    /// Says what is allocated.
    Extents {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
}

impl Work {
    /// Does it.
    ///
    /// # Errors
    /// It could not be done.
    pub fn carry_out(&mut self, backing: &dyn Backing) -> io::Result<Vec<Extent>> {
        match self {
            Self::Read { offset, buffers, .. } => backing.read(*offset, buffers)?,
            Self::Change(change) => backing.change(change)?,
            Self::Store { spill, place, buffer } => spill.store(*place, buffer),
            Self::Extents { offset, length } => return backing.extents(*offset, *length),
        }
        Ok(Vec::new())
    }

    /// The buffers that go back to the conductor.
    #[must_use]
    pub fn into_buffers(self) -> Vec<BytesMut> {
        match self {
            Self::Read { buffers, .. } => buffers,
            Self::Store { buffer, .. } => vec![buffer],
            Self::Change(_) | Self::Extents { .. } => Vec::new(),
        }
    }
}

/// Work that has ended: named by the conductor, with the buffers of a read.
#[derive(Debug)]
pub struct Completed {
    /// The conductor's name for it.
    pub id: u64,
    /// The buffers of a read, filled if it was done, or of a page that was to be kept; else none.
    pub buffers: Vec<BytesMut>,
    /// The extents, if they were wanted; else none.
    pub result: io::Result<Vec<Extent>>,
}

/// What the host is to do.
pub enum Action {
    /// Have the backing do this, and bring [`Completed`] back under this name.
    Start(u64, Work),
    /// Answer the request of this name.
    Reply(u64, Answer),
}
