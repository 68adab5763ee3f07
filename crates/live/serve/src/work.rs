//! Types exchanged between clients, the conductor and a backing.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::{Errno, Extent};

use crate::backing::Backing;
use crate::change::Change;
use crate::spill::{Place, Zeroing};

/// The bytes of a page. The cache and outgoing replies share them, so that a reply copies nothing; if a page changes
/// while a reply uses it, it is copied first ([`Buffers::of_mut`](crate::buffers::Buffers::of_mut)).
pub type Page = Arc<BytesMut>;

/// The bytes of a read: adjacent pages of one size, without the unused bytes at both ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Data {
    pages: Vec<Page>,
    skip: usize,
    length: usize,
}

impl Data {
    /// `length` bytes of `pages` from byte `skip` of the first page on.
    #[must_use]
    pub fn new(pages: Vec<Page>, skip: usize, length: usize) -> Self {
        Self { pages, skip, length }
    }

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

    /// The pages, to be returned through [`Conductor::reuse`](crate::conductor::Conductor::reuse).
    #[must_use]
    pub fn into_pages(self) -> Vec<Page> {
        self.pages
    }
}

/// An operation on a range of an export.
#[derive(Debug)]
pub enum Op {
    /// Read the range.
    Read,
    /// Bring the range into the cache.
    Cache,
    /// New bytes, as many as the request is long.
    Write {
        /// The bytes.
        data: Vec<u8>,
        /// On stable storage before the reply.
        fua: bool,
    },
    /// Discard the range, whose content is undefined afterwards.
    Trim {
        /// As of a write.
        fua: bool,
    },
    /// Zero the range.
    Zero {
        /// As of a write.
        fua: bool,
        /// The space stays allocated.
        no_hole: bool,
    },
    /// Make everything that was answered stable.
    Flush,
    /// Report the allocation.
    Extents,
}

impl Op {
    /// Whether the answer promises that data is stable.
    #[must_use]
    pub fn syncs(&self) -> bool {
        match self {
            Self::Write { fua, .. } | Self::Trim { fua } | Self::Zero { fua, .. } => *fua,
            Self::Flush => true,
            Self::Read | Self::Cache | Self::Extents => false,
        }
    }
}

/// A client's request, within the bounds of the export.
#[derive(Debug)]
pub struct ClientRequest {
    /// The host's id.
    pub id: u64,
    /// The client: read-aheads distinguish the streams of clients.
    pub client: u32,
    pub offset: u64,
    /// Bytes; 0 only for a flush.
    pub length: u32,
    pub op: Op,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The data of a read; its pages go back through [`Conductor::reuse`](crate::conductor::Conductor::reuse).
    Data(Data),
    /// Success without data.
    Done,
    /// Extents from the request's offset on.
    Extents(Vec<Extent>),
    Failed(Errno),
}

/// Work for a backing or a spill file.
pub enum Work {
    /// Fills the buffers in order, with zeroes beyond the end of the backing.
    Read {
        offset: u64,
        buffers: Vec<BytesMut>,
        /// A client waits for it.
        demand: bool,
    },
    /// Makes the change, after its pages have left the spill file.
    Change(Change, Option<Zeroing>),
    /// Stores an evicted page in a spill file.
    Store(Place),
    /// Reads pages from a spill file.
    Load(Vec<Place>),
    /// Reports the allocation.
    Extents { offset: u64, length: u32 },
}

impl Work {
    /// # Errors
    /// The work failed.
    pub fn carry_out(&mut self, backing: &dyn Backing) -> io::Result<Vec<Extent>> {
        match self {
            Self::Read { offset, buffers, .. } => backing.read(*offset, buffers)?,
            Self::Change(change, zeroing) => {
                zeroing.iter().try_for_each(Zeroing::carry_out)?;
                backing.change(change)?;
            }
            Self::Store(place) => place.store()?,
            Self::Load(places) => places.iter_mut().try_for_each(Place::load)?,
            Self::Extents { offset, length } => return backing.extents(*offset, *length),
        }
        Ok(Vec::new())
    }

    /// The buffers to return to the conductor.
    #[must_use]
    pub fn into_buffers(self) -> Vec<BytesMut> {
        match self {
            Self::Read { buffers, .. } => buffers,
            Self::Store(place) => vec![place.buffer],
            Self::Load(places) => places.into_iter().map(|place| place.buffer).collect(),
            Self::Change(..) | Self::Extents { .. } => Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct Completed {
    /// The conductor's id.
    pub id: u64,
    /// The buffers of a read, filled if it succeeded, or of a stored page; otherwise none.
    pub buffers: Vec<BytesMut>,
    /// The extents, if requested; otherwise none.
    pub result: io::Result<Vec<Extent>>,
}

/// An action for the host.
pub enum Action {
    /// Do the work, and report [`Completed`] with this id.
    Start(u64, Work),
    /// Answer the request with this id.
    Reply(u64, Answer),
}
