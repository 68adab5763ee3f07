//! An emulated disk: each read takes the time that a drive of the registry needs for it. For studies and tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Mutex, PoisonError};

use bytes::BytesMut;
use headstart_live::emulate::{EmulatedDisk, Error};

use super::{file_identity, scatter, Backing, ReadEnded};

/// Orders the drive's queue where nothing is said.
const SCHEDULER: &str = "fcfs";

/// A read that has not been given to the drive.
type Held = (u64, Vec<BytesMut>, ReadEnded);

/// A drive, and the bytes of an image.
pub struct EmulatedBacking {
    disk: EmulatedDisk,
    image: PathBuf,
    /// Reads of this instant, which arrive at the drive together.
    held: Mutex<Vec<Held>>,
}

impl EmulatedBacking {
    /// Opens `PROFILE[,SCHEDULER]:IMAGE`.
    ///
    /// # Errors
    /// What of it is at fault.
    pub fn open(text: &str) -> Result<Self, Error> {
        let (drive, image) = text.split_once(':').unwrap_or((text, ""));
        let (profile, scheduler) = drive.split_once(',').unwrap_or((drive, SCHEDULER));
        let disk = EmulatedDisk::open(profile, scheduler, Path::new(image))?;
        Ok(Self { disk, image: image.into(), held: Mutex::default() })
    }

    fn read_only() -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

impl Backing for EmulatedBacking {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        self.disk.read(offset, bytes as u32, move |result| _ = sender.send(result.map(<[u8]>::to_vec)));
        scatter(&receiver.recv().map_err(io::Error::other)??, buffers);
        Ok(())
    }

    fn start_read(&self, offset: u64, buffers: Vec<BytesMut>, ended: ReadEnded) -> Option<(Vec<BytesMut>, ReadEnded)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push((offset, buffers, ended));
        None
    }

    fn submit_reads(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        if held.is_empty() {
            return;
        }
        self.disk.read_all(held.into_iter().map(|(offset, mut buffers, ended)| {
            let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
            let done = move |result: io::Result<&[u8]>| {
                let result = result.map(|data| scatter(data, &mut buffers));
                ended(buffers, result);
            };
            (offset, bytes as u32, done)
        }));
    }

    fn write(&self, _offset: u64, _data: &[u8], _fua: bool) -> io::Result<()> {
        Self::read_only()
    }

    fn trim(&self, _offset: u64, _length: u64, _fua: bool) -> io::Result<()> {
        Self::read_only()
    }

    fn zero(&self, _offset: u64, _length: u64, _no_hole: bool, _fua: bool) -> io::Result<()> {
        Self::read_only()
    }

    fn identity(&self) -> Option<String> {
        file_identity(&std::fs::metadata(&self.image).ok()?)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn device(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.disk.statistics()).ok()
    }
}
