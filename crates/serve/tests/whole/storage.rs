//! The backing: bytes with faults, and a cache of its own whose contents a stop of the machine may lose.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use headstart_serve::backing::Backing;
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
}

pub struct Inner {
    pub bytes: Vec<u8>,
    stable: Vec<u8>,
    pub broken: Vec<(Range<u64>, Broken)>,
    /// How often it has changed.
    pub changes: u64,
    random: ChaCha8Rng,
}

#[derive(Clone)]
pub struct Storage(Arc<Mutex<Inner>>);

impl Storage {
    pub fn new(size_bytes: u64, seed: u64) -> Self {
        let bytes: Vec<u8> = (0..size_bytes / GRAIN).flat_map(|grain| content(FIRST, grain)).collect();
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self(Arc::new(Mutex::new(Inner { stable: bytes.clone(), bytes, broken: Vec::new(), changes: 0, random })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// The machine stops: of what is not stable, any part is lost.
    pub fn crash(&self) {
        let mut inner = self.lock();
        let Inner { bytes, stable, random, .. } = &mut *inner;
        let grains = bytes.chunks_mut(GRAIN as usize).zip(stable.chunks_mut(GRAIN as usize));
        for (now, stable) in grains {
            if random.random() {
                now.copy_from_slice(stable);
            } else {
                stable.copy_from_slice(now);
            }
        }
    }

    fn change(&self, offset: u64, length: u64, fua: bool, with: impl Fn(&mut [u8])) -> io::Result<()> {
        let mut inner = self.lock();
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
        inner.changes += 1;
        if let Some(error) = fails {
            return Err(error);
        }
        if fua {
            inner.stable[from..to].copy_from_slice(&inner.bytes[from..to]);
        }
        Ok(())
    }
}

impl Inner {
    /// The error of work on these bytes, if it fails.
    pub fn fails(&self, offset: u64, length: u64, is: impl Fn(Broken) -> bool) -> Option<io::Error> {
        let touched = offset / PAGE..(offset + length).div_ceil(PAGE);
        let meets = |pages: &Range<u64>| pages.start < touched.end && touched.start < pages.end;
        let met = self.broken.iter().find(|(pages, how)| *how == Broken::Vanished || meets(pages) && is(*how))?;
        Some(match met.1 {
            Broken::ShortReads => io::ErrorKind::UnexpectedEof.into(),
            Broken::Vanished => io::ErrorKind::NotConnected.into(),
            Broken::Reads | Broken::Changes => io::Error::other("broken"),
        })
    }
}

impl Backing for Storage {
    fn size_bytes(&self) -> u64 {
        self.lock().bytes.len() as u64
    }

    /// What is there: whether it can be read shows at the end.
    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let inner = self.lock();
        for (page, buffer) in (offset / PAGE..).zip(buffers) {
            let from = (page * PAGE) as usize;
            let to = (from + PAGE as usize).min(inner.bytes.len());
            buffer.fill(0);
            buffer[..to - from].copy_from_slice(&inner.bytes[from..to]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.change(offset, data.len() as u64, fua, |bytes| bytes.copy_from_slice(data))
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        let is_followed: bool = self.lock().random.random();
        self.change(offset, length, fua, |bytes| {
            if is_followed {
                bytes.fill(0);
            }
        })
    }

    fn zero(&self, offset: u64, length: u64, _no_hole: bool, fua: bool) -> io::Result<()> {
        self.change(offset, length, fua, |bytes| bytes.fill(0))
    }

    fn flush(&self) -> io::Result<()> {
        let mut inner = self.lock();
        match inner.fails(0, 0, |_| false) {
            Some(error) => Err(error),
            None => {
                inner.stable = inner.bytes.clone();
                Ok(())
            }
        }
    }
}
