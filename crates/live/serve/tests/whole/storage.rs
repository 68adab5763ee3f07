//! A faulty backing with a cache of its own, part of which is lost when the machine stops, a sync fails, or the
//! connection is lost. It is a file, or a server behind a connection.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use headstart_nbd::Extent;
use headstart_serve::backing::{About, Backing, Unflushed};
use headstart_serve::change::Change;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::{content, FIRST};

pub const PAGE: u64 = 4096;
/// Changes are aligned to this and are multiples of it.
pub const GRAIN: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Reads fail with EIO.
    Reads,
    /// Reads are short.
    ShortReads,
    /// Changes fail with EIO, and take effect completely, partly or not at all.
    Changes,
    /// The storage is gone, for every page.
    Vanished,
    /// Syncs fail with EIO. Each grain that they should have made stable either is, or never will be.
    Syncs,
    /// Out of descriptors: everything fails without effect.
    Descriptors,
    /// Out of memory: everything fails without effect.
    Memory,
}

impl Broken {
    /// Whether requests for other pages fail, too.
    pub fn is_everywhere(self) -> bool {
        matches!(self, Self::Vanished | Self::Descriptors | Self::Memory)
    }
}

pub struct Inner {
    pub bytes: Vec<u8>,
    stable: Vec<u8>,
    /// Grains omitted by a failed sync: considered stable until they change again.
    skipped: Vec<bool>,
    /// If it is a server behind a connection: whether that is up.
    pub connection: Option<bool>,
    /// Acknowledged changes may have been lost: no sync may succeed from now on.
    pub has_lost: bool,
    /// A sync failed in some other way: later ones may fail.
    pub may_refuse: bool,
    pub broken: Vec<(Range<u64>, Broken)>,
    /// Number of changes.
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

    /// Stops the machine: any part of the unstable data is lost.
    pub fn crash(&self) {
        let mut inner = self.lock();
        for grain in 0..inner.skipped.len() {
            let loses = inner.skipped[grain] || inner.random.random();
            inner.settle(grain, loses);
        }
    }

    /// Restarts the server, which breaks the connection.
    pub fn disconnect(&self) {
        self.crash();
        self.lock().connection = Some(false);
    }

    /// Starts another server in front of it.
    pub fn reopen(&self) {
        let mut inner = self.lock();
        inner.connection = inner.connection.map(|_| true);
        (inner.has_lost, inner.may_refuse) = (false, false);
        self.1.reset();
    }

    /// Checks the connection; reconnects if it was lost, like an `NbdBacking`.
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
        // A failing change may be made up to any grain.
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

    /// Drops what could not be written from a file's page cache, or permits a new connection to a server.
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
    /// Copies a grain from the stable content, or to it.
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

    /// Makes grains stable; on failure, any unstable grains may be omitted.
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

    /// The error of an operation on these bytes, if it fails.
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

    /// Reads without faults, which are applied at completion.
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
