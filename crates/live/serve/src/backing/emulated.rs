//! An emulated disk: each read takes as long as on a drive of the registry. For studies and tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};

use bytes::BytesMut;
use headstart_emulate::{EmulatedDisk, Error};

use super::{file_identity, length_of, scatter, About, Backing, Kind, StartedRead};

/// The default scheduler of the drive.
const SCHEDULER: &str = "fcfs";

pub(super) const KIND: Kind = Kind {
    schemes: &[(
        "emulate:",
        "emulate:PROFILE[,SCHEDULER]:IMAGE, with names of `headstart list devices` and `list schedulers`",
    )],
    forms: &[(
        "emulate:PROFILE[,SCHEDULER]:IMAGE",
        "a file whose reads take the time that a drive of `headstart list devices` needs for them; read-only, without \
        the mount of `headstart emulate`",
    )],
    can_write: false,
    can_bypass: false,
    open: |opening| match EmulatedBacking::open(opening.rest) {
        Ok(disk) => Ok(Box::new(disk)),
        Err(error) => Err(opening.refused(error.to_string(), opening.form)),
    },
};

pub struct EmulatedBacking {
    disk: Arc<EmulatedDisk>,
    image: PathBuf,
}

impl EmulatedBacking {
    /// Opens `PROFILE[,SCHEDULER]:IMAGE`.
    pub fn open(text: &str) -> Result<Self, Error> {
        let (drive, image) = text.split_once(':').unwrap_or((text, ""));
        let (profile, scheduler) = drive.split_once(',').unwrap_or((drive, SCHEDULER));
        let disk = Arc::new(EmulatedDisk::open(profile, scheduler, Path::new(image))?);
        Ok(Self { disk, image: image.into() })
    }
}

impl Backing for EmulatedBacking {
    fn about(&self) -> About {
        let disk = self.disk.clone();
        let identity = std::fs::metadata(&self.image).ok().and_then(|image| file_identity(&image));
        let state = move || serde_json::to_value(disk.statistics()).unwrap_or_default();
        let size_bytes = self.disk.size_bytes();
        About { starts_reads: true, identity, device: Some(Arc::new(state)), ..About::of(size_bytes) }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let bytes = length_of(buffers) as u32;
        self.disk.read(offset, bytes, move |result| _ = sender.send(result.map(<[u8]>::to_vec)));
        scatter(&receiver.recv().map_err(io::Error::other)??, buffers);
        Ok(())
    }

    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        self.disk.read_all(reads.into_iter().map(|StartedRead { offset, mut buffers, ended, .. }| {
            let bytes = length_of(&buffers) as u32;
            let done = move |result: io::Result<&[u8]>| {
                let result = result.map(|data| scatter(data, &mut buffers));
                ended(buffers, result);
            };
            (offset, bytes, done)
        }));
        Vec::new()
    }
}
