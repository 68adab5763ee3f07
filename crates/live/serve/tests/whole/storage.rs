//! The backing: bytes with faults, and a cache of its own, whose contents are lost in part when the machine stops, when a sync fails, and
//! when the connection to it is lost. It is a file, or a server behind a connection.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use headstart_nbd::Extent;
use headstart_serve::backing::{About, Backing, Unflushed};
use headstart_serve::work::Change;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::{content, FIRST};

pub const PAGE: u64 = 4096;
/// Changes are of so many bytes, and of multiples of it.
pub const GRAIN: u64 = 256;

/// How pages fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Reads give EIO.
    Reads,
    /// Reads bring too little.
    ShortReads,
    /// Changes give EIO, and are made, or not, or in part.
    Changes,
    /// There is nothing any more, of any page.
    Vanished,
    /// Syncs give EIO. What they should have made stable is, or never will be, grain by grain.
    Syncs,
    /// There are no more descriptors: all fails, and changes nothing.
    Descriptors,
    /// There is no more memory: the same.
    Memory,
}

impl Broken {
    /// Whether it fails what touches other pages, too.
    pub fn is_everywhere(self) -> bool {
        matches!(self, Self::Vanished | Self::Descriptors | Self::Memory)
    }
}

pub struct Inner {
    pub bytes: Vec<u8>,
    stable: Vec<u8>,
    /// Grains that a sync that failed has left out: they are taken for stable until they change again.
    skipped: Vec<bool>,
    /// It is a server behind a connection, which is up.
    pub connection: Option<bool>,
    /// Acknowledged changes may have been lost: no sync may be answered from now on.
    pub has_lost: bool,
    /// A sync has failed in some other way: none need be.
    pub may_refuse: bool,
    pub broken: Vec<(Range<u64>, Broken)>,
    /// How often it has changed.
    pub changes: u64,
    random: ChaCha8Rng,
}

#[derive(Clone)]
pub struct Storage(Arc<Mutex<Inner>>, Arc<Unflushed>);

impl Storage {
    pub fn new(size_bytes: u64, seed: u64, is_server: bool) -> Self {
        let bytes: Vec<u8> = (0..size_bytes / GRAIN).flat_map(|grain| content(FIRST, grain)).collect();
        let random = ChaCha8Rng::seed_from_u64(seed);
        let inner = Inner {
            stable: bytes.clone(),
            skipped: vec![false; (size_bytes / GRAIN) as usize],
            bytes,
            connection: is_server.then_some(true),
            has_lost: false,
            may_refuse: false,
            broken: Vec::new(),
            changes: 0,
            random,
        };
        Self(Arc::new(Mutex::new(inner)), Arc::default())
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// The machine stops: of what is not stable, any part is lost.
    pub fn crash(&self) {
        let mut inner = self.lock();
        for grain in 0..inner.skipped.len() {
            let loses = inner.skipped[grain] || inner.random.random();
            inner.settle(grain, loses);
        }
    }

    /// The server is restarted, and the connection to it lost.
    pub fn disconnect(&self) {
        self.crash();
        self.lock().connection = Some(false);
    }

    /// Another server starts in front of it.
    pub fn reopen(&self) {
        let mut inner = self.lock();
        inner.connection = inner.connection.map(|_| true);
        (inner.has_lost, inner.may_refuse) = (false, false);
        self.1.reset();
    }

    /// The connection, which is made anew if it is lost, as that of an `NbdBacking` is.
    fn connected(&self) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.connection == Some(false) {
            if let Err(error) = self.1.replace() {
                inner.has_lost = true;
                return Err(error);
            }
            self.1.replaced();
            inner.connection = Some(true);
        }
        Ok(())
    }

    fn make(&self, bytes: Range<u64>, fua: bool, with: impl Fn(&mut [u8])) -> io::Result<()> {
        self.connected()?;
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        let mut inner = self.lock();
        if let Some(error) = inner.fails(offset, length, Broken::is_everywhere) {
            inner.may_refuse |= fua;
            return Err(error);
        }
        let inner = &mut *inner;
        let (from, to) = (offset as usize, (offset + length) as usize);
        let fails = inner.fails(offset, length, |broken| broken == Broken::Changes);
        let grains = length / GRAIN;
        // What fails may be made up to any of its grains.
        let made = if fails.is_some() { inner.random.random_range(0..=grains) } else { grains };
        let mut new = inner.bytes[from..to].to_vec();
        with(&mut new);
        let made = (made * GRAIN) as usize;
        inner.bytes[from..from + made].copy_from_slice(&new[..made]);
        inner.skipped[from / GRAIN as usize..(from + made) / GRAIN as usize].fill(false);
        inner.changes += 1;
        if let Some(error) = fails {
            inner.may_refuse |= fua;
            return Err(error);
        }
        if fua {
            let grains = from / GRAIN as usize..to / GRAIN as usize;
            self.1.sync(false, || inner.sync(grains))?;
        } else {
            self.1.acknowledged(self.1.mark())?;
        }
        Ok(())
    }

    pub fn flush(&self) -> io::Result<()> {
        self.connected()?;
        let mut inner = self.lock();
        if let Some(error) = inner.fails(0, 0, |_| false) {
            inner.may_refuse = true;
            return Err(error);
        }
        let grains = 0..inner.skipped.len();
        self.1.sync(true, || inner.sync(grains))
    }

    /// The page cache of a file gives up what could not be written; another connection may be made to a server.
    fn renew(&self) {
        let mut inner = self.lock();
        for grain in 0..inner.skipped.len() {
            if inner.skipped[grain] && inner.connection.is_none() {
                inner.settle(grain, true);
            }
        }
        self.1.renew(inner.connection == Some(false));
    }
}

impl Inner {
    /// A grain becomes what is stable, or the other way round.
    fn settle(&mut self, grain: usize, loses: bool) {
        let bytes = grain * GRAIN as usize..(grain + 1) * GRAIN as usize;
        let (now, stable) = (&mut self.bytes[bytes.clone()], &mut self.stable[bytes]);
        if loses {
            now.copy_from_slice(stable);
        } else {
            stable.copy_from_slice(now);
        }
        self.skipped[grain] = false;
    }

    /// Makes grains stable; where that fails, all that are not may be left out.
    fn sync(&mut self, grains: Range<usize>) -> io::Result<()> {
        if let Some(error) = self.fails(0, u64::MAX - PAGE, |how| how == Broken::Syncs) {
            self.has_lost = true;
            for grain in 0..self.skipped.len() {
                let bytes = grain * GRAIN as usize..(grain + 1) * GRAIN as usize;
                if self.bytes[bytes.clone()] != self.stable[bytes] && self.random.random() {
                    self.skipped[grain] = true;
                } else if !self.skipped[grain] {
                    self.settle(grain, false);
                }
            }
            return Err(error);
        }
        for grain in grains.filter(|grain| !self.skipped[*grain]).collect::<Vec<_>>() {
            self.settle(grain, false);
        }
        Ok(())
    }

    /// The error of work on these bytes, if it fails.
    pub fn fails(&self, offset: u64, length: u64, is: impl Fn(Broken) -> bool) -> Option<io::Error> {
        let touched = offset / PAGE..(offset + length).div_ceil(PAGE);
        let meets = |pages: &Range<u64>| pages.start < touched.end && touched.start < pages.end;
        let met = self.broken.iter().find(|(pages, how)| how.is_everywhere() || meets(pages) && is(*how))?;
        Some(match met.1 {
            Broken::ShortReads => io::ErrorKind::UnexpectedEof.into(),
            Broken::Vanished => io::ErrorKind::NotConnected.into(),
            Broken::Reads | Broken::Changes | Broken::Syncs => io::Error::other("broken"),
            Broken::Descriptors => io::Error::from_raw_os_error(24),
            Broken::Memory => io::Error::from_raw_os_error(12),
        })
    }
}

impl Backing for Storage {
    fn about(&self) -> About {
        About::of(self.lock().bytes.len() as u64)
    }

    /// What is there: whether it can be read shows at the end.
    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        self.connected()?;
        let inner = self.lock();
        for (page, buffer) in (offset / PAGE..).zip(buffers) {
            let from = (page * PAGE) as usize;
            let to = (from + PAGE as usize).min(inner.bytes.len());
            buffer.fill(0);
            buffer[..to - from].copy_from_slice(&inner.bytes[from..to]);
        }
        Ok(())
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        match change {
            Change::Flush => return self.flush(),
            Change::Renew => self.renew(),
            _ => {}
        }
        let Some(bytes) = change.bytes() else { return Ok(()) };
        let is_hint = matches!(change, Change::Trim { .. });
        let is_followed = !is_hint || self.lock().random.random();
        self.make(bytes, change.is_fua(), |now| match change {
            Change::Write { data, .. } => now.copy_from_slice(data),
            _ if is_followed => now.fill(0),
            _ => {}
        })
    }

    fn extents(&self, _offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        self.connected()?;
        Ok(vec![Extent { length, hole: false, zero: false }])
    }
}
