//! An emulated disk: each read takes the time that a drive of the registry needs for it. For studies and tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bytes::BytesMut;
use headstart_emulate::{EmulatedDisk, Error};

use super::{file_identity, scatter, Backing, StartedRead};

/// Orders the drive's queue where nothing is said.
const SCHEDULER: &str = "fcfs";

/// A drive, and the bytes of an image.
pub struct EmulatedBacking {
    disk: EmulatedDisk,
    image: PathBuf,
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
        Ok(Self { disk, image: image.into() })
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

    fn starts_reads(&self) -> bool {
        true
    }

    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        self.disk.read_all(reads.into_iter().map(|read| {
            let bytes = read.length() as u32;
            let StartedRead { offset, mut buffers, ended, .. } = read;
            let done = move |result: io::Result<&[u8]>| {
                let result = result.map(|data| scatter(data, &mut buffers));
                ended(buffers, result);
            };
            (offset, bytes, done)
        }));
        Vec::new()
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
