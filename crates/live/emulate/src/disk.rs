//! An emulated disk without a mount, for a program that takes the place of the kernel.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use headstart_types::system_says;
use toml::Table;

use super::arm::{Answer, Arm};
use super::mount::arm_of;
use super::{Error, Statistics};
use headstart_host::set_realtime_priority;
use headstart_host::RealClock;

/// Completion callback of a read, with its bytes. It must be quick, since later answers wait for it.
type Done = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;

struct Reply(Done);

impl Answer for Reply {
    fn data(self, data: &[u8]) {
        (self.0)(Ok(data));
    }

    fn failed(self) {
        (self.0)(Err(io::Error::other("the image of the emulated disk cannot be read")));
    }
}

/// An emulated disk. Dropping it fails outstanding reads.
pub struct EmulatedDisk {
    arm: Arc<Arm<RealClock, Reply>>,
    thread: Option<JoinHandle<()>>,
}

impl EmulatedDisk {
    /// The drive `profile`, with its queue ordered by `scheduler`, holding the bytes of `image`.
    ///
    /// # Errors
    /// One of them is invalid.
    pub fn open(profile: &str, scheduler: &str, image: &Path) -> Result<Self, Error> {
        let arm = Arc::new(arm_of(profile, Table::new(), scheduler, image)?);
        let own = arm.clone();
        let run = move || own.run(set_realtime_priority());
        let thread = Builder::new().name("headstart-arm".to_owned()).spawn(run);
        Ok(Self { arm, thread: Some(thread.map_err(|source| Error::Fuse(system_says(&source)))?) })
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.arm.image_bytes()
    }

    /// Submits a read. `done` is called on the answering thread; the data may be short at the image's end.
    pub fn read(&self, offset: u64, bytes: u32, done: impl FnOnce(io::Result<&[u8]>) + Send + 'static) {
        self.arm.submit(offset, bytes, None, Reply(Box::new(done)));
    }

    /// Submits reads (offset, bytes, callback) at one instant: the scheduler sees all of them before the drive starts
    /// one.
    pub fn read_all<D>(&self, reads: impl IntoIterator<Item = (u64, u32, D)>)
    where
        D: FnOnce(io::Result<&[u8]>) + Send + 'static,
    {
        let replies = reads.into_iter().map(|(offset, bytes, done)| (offset, bytes, Reply(Box::new(done))));
        self.arm.submit_all(None, replies);
    }

    /// Statistics so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.arm.statistics(None)
    }
}

impl Drop for EmulatedDisk {
    fn drop(&mut self) {
        self.arm.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
