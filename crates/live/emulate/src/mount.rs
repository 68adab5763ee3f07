//! An emulated disk from mount to unmount: it never stays mounted, whatever fails.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use headstart_device::{build_device, build_scheduler, Drive, SECTOR_BYTES};
use headstart_types::{keys, system_says, Bytes, Nanos};
use nix::unistd::{getgid, getuid};
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use super::arm::{Answer, Arm};
use super::files::{Files, MountedArm, DISK, STATISTICS};
use super::image::Image;
use super::mounted::{Mounted, Undone, DEVICE};
use super::statistics::{About, Statistics};
use super::Error;
use headstart_host::set_realtime_priority;
use headstart_host::{Clock, RealClock};

/// How long to wait for a thread to end after unmounting; one that still waits for an unresponsive image is abandoned.
const GRACE: Duration = Duration::from_secs(2);
/// Number of timed reads of the statistics at mount, and of untimed ones before. 101 reads took only some 2 ms, the
/// length of one time slice of other work on the machine.
const TIMED: (usize, usize) = (1001, 20);

keys! {
    /// Options of an emulation.
    pub struct Settings {
        /// The drive: a name of `headstart list devices`, or the path of a profile.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "PROFILE", "x-file" = "url"))]
        pub profile: String = String::new(),
        /// The disk's contents: a file or a block device, which is only read.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "IMAGE", "x-file" = "own"))]
        pub image: PathBuf = PathBuf::new(),
        /// The mount point: an empty folder.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "MOUNT", "x-file" = "any"))]
        pub mount: PathBuf = PathBuf::new(),
        /// Keys of the device that override those of the profile.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        #[schemars(extend("x-names" = ["--set"], "x-metavar" = "KEY=VALUE", "x-set" = true))]
        #[schemars(extend("x-help" = "Override a key of the device: buffer.size=1MiB. Repeatable."))]
        pub keys: Table = Table::new(),
        /// The scheduler of the drive's queue: a name of `headstart list schedulers`.
        #[schemars(extend("x-metavar" = "NAME"))]
        pub scheduler: String = "fcfs".to_owned(),
    }
}

/// A mounted emulated disk. Dropping it unmounts it.
pub struct Emulation {
    arm: Arc<MountedArm>,
    fuse_round_trip_ns: Arc<OnceLock<u64>>,
    /// Absolute path.
    mount: PathBuf,
    mounted: Mounted,
    session: Option<JoinHandle<io::Result<()>>>,
    arm_thread: Option<JoinHandle<()>>,
}

/// The final report of an emulation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ended {
    /// The statistics until the end.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Whether processes still had files of the mount open at the end. They get I/O errors from then on.
    pub was_in_use: bool,
    /// Whether another file system was mounted over the mount point at the end. Both stay mounted, and reads of the
    /// emulated disk fail with I/O errors.
    pub was_covered: bool,
}

/// How often [`emulate`] reports statistics.
const REFRESH: Duration = Duration::from_millis(100);

/// Mounts an emulated disk until it is unmounted or `told` returns false. `told` receives the statistics at once and 10
/// times a second.
///
/// # Errors
/// As for [`Emulation::mount`] and [`Emulation::unmount`].
pub fn emulate(settings: &Settings, told: &mut dyn FnMut(&Statistics) -> bool) -> Result<Ended, Error> {
    let emulation = Emulation::mount(settings)?;
    while emulation.is_mounted() && told(&emulation.statistics()) {
        std::thread::sleep(REFRESH);
    }
    emulation.unmount()
}

/// The arm of the drive `profile` with `keys`, holding the bytes of `image`.
pub(super) fn arm_of<A: Answer>(
    profile: &str,
    keys: Table,
    scheduler: &str,
    image: &Path,
) -> Result<Arm<RealClock, A>, Error> {
    let device = build_device(profile, keys)?;
    let ordered = build_scheduler(scheduler, Table::new()).map_err(|error| error.within("scheduler"))?;
    let opened = Image::open(image)?;
    let capacity_bytes = device.capacity_sectors().map(|sectors| sectors * SECTOR_BYTES);
    if let Some(most) = capacity_bytes.filter(|most| opened.bytes > *most) {
        let problem = format!("is larger than the drive: {}", Bytes(opened.bytes));
        return Err(Error::path(image, problem, format!("at most {}, what {profile} holds", Bytes(most))));
    }
    let about = About {
        profile: profile.to_owned(),
        scheduler: scheduler.to_owned(),
        image: image.display().to_string(),
        image_bytes: opened.bytes,
        capacity_bytes,
    };
    Ok(Arm::new(Arc::new(RealClock::new(1, 1.0)), opened, Drive::new(device, ordered), about))
}

impl Emulation {
    /// Mounts an emulated disk, which answers reads from then on.
    ///
    /// # Errors
    /// A setting is invalid, or the system refuses to mount. Then nothing is mounted.
    pub fn mount(settings: &Settings) -> Result<Self, Error> {
        let arm = arm_of(&settings.profile, settings.keys.clone(), &settings.scheduler, &settings.image)?;
        let mount = empty_folder(&settings.mount)?;
        Self::start(Arc::new(arm), mount)
    }

    fn start(arm: Arc<MountedArm>, mount: PathBuf) -> Result<Self, Error> {
        OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|source| {
            let allowed = "a Linux with FUSE (modprobe fuse), and in a container one that may use it";
            Error::path(Path::new(DEVICE), system_says(&source), allowed)
        })?;
        let fuse_round_trip_ns = Arc::new(OnceLock::new());
        let owner = (getuid().as_raw(), getgid().as_raw());
        let files = Files::new(arm.clone(), fuse_round_trip_ns.clone(), owner);
        let (session, mounted) = Mounted::new(files, &mount).map_err(|source| not_mounted(&mount, &source))?;
        // From here on, dropping it unmounts, as every error does.
        let mut emulation = Self { arm, fuse_round_trip_ns, mount, mounted, session: None, arm_thread: None };
        let arm = emulation.arm.clone();
        let arm_thread = Builder::new().name("headstart-arm".to_owned()).spawn(move || {
            arm.run(set_realtime_priority());
        });
        emulation.arm_thread = Some(arm_thread.map_err(|source| Error::Fuse(system_says(&source)))?);
        let session = Builder::new().name("headstart-fuse".to_owned()).spawn(move || {
            set_realtime_priority();
            session.run()
        });
        emulation.session = Some(session.map_err(|source| Error::Fuse(system_says(&source)))?);
        if let Ok(median) = emulation.round_trip() {
            let _ = emulation.fuse_round_trip_ns.set(median.0);
        }
        Ok(emulation)
    }

    /// Absolute path of the disk file.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.mount.join(DISK)
    }

    /// Statistics so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.arm.statistics(self.fuse_round_trip_ns.get().copied())
    }

    /// Whether reads are answered: it was neither unmounted nor has it failed.
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        let runs = |thread: Option<bool>| thread == Some(false);
        let session = self.session.as_ref().map(JoinHandle::is_finished);
        runs(session) && runs(self.arm_thread.as_ref().map(JoinHandle::is_finished))
    }

    /// Unmounts the disk unless it is unmounted already, and returns its statistics. Outstanding reads fail.
    ///
    /// # Errors
    /// It failed before. It is unmounted nevertheless.
    pub fn unmount(mut self) -> Result<Ended, Error> {
        self.end()
    }

    /// Median time of a read that needs no drive.
    fn round_trip(&self) -> io::Result<Nanos> {
        let file = File::open(self.mount.join(STATISTICS))?;
        let clock = RealClock::new(1, 1.0);
        clock.enter(0);
        let (timed, before) = TIMED;
        let mut times = Vec::with_capacity(timed + before);
        for _ in 0..timed + before {
            let start = clock.now();
            file.read_exact_at(&mut [0], 0)?;
            times.push(clock.now() - start);
        }
        times.drain(..before);
        times.sort_unstable();
        Ok(times[timed / 2])
    }

    /// Ends the emulation in any case; a second call does nothing.
    fn end(&mut self) -> Result<Ended, Error> {
        let undone = self.mounted.undo(self.session.as_ref().is_some_and(JoinHandle::is_finished));
        let (was_in_use, was_covered) = (undone == Undone::InUse, undone == Undone::Covered);
        let session = self.session.take().map(|thread| join(thread, GRACE));
        let statistics = self.statistics();
        self.arm.close();
        let arm = self.arm_thread.take().map(|thread| join(thread, GRACE));
        match (session, arm) {
            (Some(Some(Ok(Err(error)))), _) => Err(Error::Fuse(system_says(&error))),
            (Some(Some(Err(_))), _) | (_, Some(Some(Err(_)))) => Err(Error::Fuse("a thread has failed".to_owned())),
            // If only a set-user-id program may unmount, that detaches a mount in use and does not report it.
            (session, _) => {
                let was_in_use = was_in_use || (!was_covered && matches!(session, Some(None)));
                Ok(Ended { statistics, was_in_use, was_covered })
            }
        }
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The thread's result, `Err` if it panicked; `None` if it does not end within `patience`.
fn join<T>(thread: JoinHandle<T>, patience: Duration) -> Option<std::thread::Result<T>> {
    const STEP: Duration = Duration::from_millis(1);
    let mut waited = Duration::ZERO;
    while !thread.is_finished() {
        if waited >= patience {
            return None;
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
    Some(thread.join())
}

/// Absolute path of a folder suitable as a mount point.
fn empty_folder(path: &Path) -> Result<PathBuf, Error> {
    let error = |problem: String| Error::path(path, problem, "an empty folder where nothing is mounted");
    let system = |source: io::Error| match source.raw_os_error() {
        Some(number) if number == nix::errno::Errno::ENOTCONN as i32 => {
            error("holds a mount whose process has ended: umount it".to_owned())
        }
        _ => error(system_says(&source)),
    };
    let metadata = path.metadata().map_err(system)?;
    if !metadata.is_dir() {
        return Err(error("is no folder".to_owned()));
    }
    let whole = path.canonicalize().map_err(system)?;
    let above = whole.parent().map(Path::metadata).transpose().map_err(system)?;
    if above.is_none_or(|above| above.dev() != metadata.dev()) {
        return Err(error("something is mounted there".to_owned()));
    }
    if whole.read_dir().map_err(system)?.next().is_some() {
        return Err(error("is not empty".to_owned()));
    }
    Ok(whole)
}

/// Why the system refuses to mount.
fn not_mounted(mount: &Path, source: &io::Error) -> Error {
    let allowed = "root, or a user where the program fusermount3 is installed (package fuse3)";
    let problem = match source.kind() {
        io::ErrorKind::NotFound => "cannot be mounted: this user may not, and there is no fusermount3".to_owned(),
        _ => format!("cannot be mounted: {}", system_says(source).trim()),
    };
    Error::path(mount, problem, allowed)
}
