//! An emulated disk when mounted: content, times, statistics, end. If mounting is impossible, each test says so and
//! passes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use headstart_emulate::{Emulation, Error, Settings, Statistics};
use headstart_host::{Clock, PathError, RealClock};

#[path = "../../host/tests/common/gate.rs"]
mod gate;
use gate::soon;

/// One disk at a time: times are measured, and processes started by another test briefly inherit this test's open
/// files.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder for a test with an empty mount point in it, removed at the end of the test.
#[allow(dead_code)] // The lock is only held.
struct Place(PathBuf, MutexGuard<'static, ()>);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("headstart-emulated-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("mount")).expect("there is room");
        Self(folder.canonicalize().expect("it is there"), alone)
    }

    fn mount(&self) -> PathBuf {
        self.0.join("mount")
    }

    /// An image that begins with `content` and has `bytes` bytes, sparse after that.
    fn image(&self, content: &[u8], bytes: u64) -> PathBuf {
        let path = self.0.join("image");
        let mut file = File::create(&path).expect("there is room");
        file.write_all(content).expect("there is room");
        file.set_len(bytes).expect("a file may have holes");
        path
    }

    fn settings(&self, profile: &str, keys: &str, image: PathBuf) -> Settings {
        let (profile, keys) = (profile.to_owned(), keys.parse().expect("TOML"));
        Settings { profile, keys, scheduler: "fcfs".to_owned(), image, mount: self.mount() }
    }

    fn is_mounted(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("Linux");
        mounts.lines().any(|line| line.split(' ').nth(1) == self.mount().to_str())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Never delete into a mount that a failed test has left.
        if !self.is_mounted() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Why mounting is impossible here, if it is.
fn why_not() -> Option<String> {
    /// `CAP_SYS_ADMIN` in the capability mask.
    const MAY_MOUNT: u64 = 1 << 21;
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse: {error}"));
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let may_mount = u64::from_str_radix(effective.trim(), 16).expect("a number") & MAY_MOUNT != 0;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let helped = std::env::split_paths(&path).any(|folder| folder.join("fusermount3").exists());
    (!may_mount && !helped).then(|| "neither CAP_SYS_ADMIN nor fusermount3".to_owned())
}

/// The emulated disk; `None` with a message if mounting is impossible.
fn mounted(settings: &Settings) -> Option<Emulation> {
    if let Some(reason) = why_not() {
        let _ = writeln!(io::stderr(), "SKIPPED, a test of emulated disks: {reason}");
        return None;
    }
    Some(Emulation::mount(settings).expect("it can be mounted"))
}

/// Gives this thread real-time priority like those that answer for the drive, so that a busy machine does not affect
/// its measurements.
#[allow(unsafe_code)]
fn go_first() {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads `parameter`, which is valid for as long as it takes; process 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
}

/// Sequential direct reads of an emulated disk: actual time of each, and time according to the drive.
fn timed_reads(emulation: &Emulation, reads: &[(u64, usize)]) -> Vec<(u64, u64)> {
    go_first();
    let disk = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(emulation.disk()).expect("it is there");
    let clock = RealClock::new(1, 1.0);
    clock.enter(0);
    let mut buffer = vec![0; reads.iter().map(|read| read.1).max().unwrap_or(0) + 4096];
    let aligned = buffer.as_ptr().align_offset(4096);
    let timed = reads.iter().map(|(offset, bytes)| {
        let before = emulation.statistics().response_ns;
        let start = clock.now();
        disk.read_exact_at(&mut buffer[aligned..aligned + bytes], *offset).expect("it can be read");
        ((clock.now() - start).0, emulation.statistics().response_ns - before)
    });
    timed.collect()
}

/// The statistics after `reads`: an answer is counted after it was given.
fn counted(emulation: &Emulation, reads: u64) -> Statistics {
    soon(|| emulation.statistics().lateness_ns.count == reads);
    emulation.statistics()
}

/// No read was faster than on the drive, and the median is at most a tenth slower.
fn assert_as_the_drive_says(times: &[(u64, u64)]) {
    assert!(times.iter().all(|(took, model)| took >= model), "earlier than the drive: {times:?}");
    let median = |mut each: Vec<u64>| {
        each.sort_unstable();
        each[each.len() / 2]
    };
    let (took, model) = times.iter().copied().unzip();
    let (took, model) = (median(took), median(model));
    assert!(took as f64 <= 1.1 * model as f64, "median {took} ns, by the drive {model} ns");
}

fn assert_adds_up(statistics: &Statistics, reads: u64) {
    let Statistics { seek_ns, rotation_ns, transfer_ns, overhead_ns, wait_ns, .. } = *statistics;
    assert_eq!(seek_ns + rotation_ns + transfer_ns + overhead_ns + wait_ns, statistics.service_ns);
    assert_eq!(statistics.queue_ns + statistics.service_ns, statistics.response_ns);
    assert_eq!((statistics.requests, statistics.device_requests, statistics.outstanding), (reads, reads, 0));
    assert_eq!((statistics.lateness_ns.count, statistics.failed), (reads, 0));
    assert!(statistics.busy_ns <= statistics.elapsed_ns);
}

const GIB: u64 = 1 << 30;

#[test]
fn the_disk_holds_the_image_and_can_only_be_read() {
    let place = Place::new();
    let content: Vec<u8> = (0..3_000_700_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let image = place.image(&content, content.len() as u64);
    let settings = place.settings("uniform", "fetch_time = \"20us\"", image);
    let Some(emulation) = mounted(&settings) else { return };
    assert!(place.is_mounted() && emulation.is_mounted());
    assert!(std::fs::read(emulation.disk()).expect("it can be read") == content);
    let disk = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(emulation.disk()).expect("it is there");
    for (from, bytes) in [(0, 4096), (4096, 65_536), (1_000_448, 100_352), (2_999_808, 892)] {
        let mut buffer = vec![0; bytes];
        disk.read_exact_at(&mut buffer, from as u64).expect("it can be read");
        assert!(buffer == content[from..from + bytes], "{from}");
    }
    assert_eq!(disk.read_at(&mut [0; 512], content.len() as u64).expect("the end is no error"), 0);
    let mut names: Vec<_> =
        place.mount().read_dir().expect("a folder").map(|entry| entry.expect("a name").file_name()).collect();
    names.sort();
    assert_eq!(names, ["disk.img", "stats", "stats.openmetrics"]);
    for name in ["disk.img", "stats", "another"] {
        let error = OpenOptions::new().write(true).create(true).truncate(true).open(place.mount().join(name));
        assert_eq!(error.expect_err("refused").kind(), io::ErrorKind::ReadOnlyFilesystem, "{name}");
    }
    assert_eq!(place.mount().join("no").metadata().expect_err("it is not there").kind(), io::ErrorKind::NotFound);
}

#[test]
fn reads_take_what_a_drive_of_constant_times_takes() {
    let place = Place::new();
    let image = place.image(&[], GIB);
    let Some(emulation) = mounted(&place.settings("uniform", "fetch_time = \"10ms\"", image)) else { return };
    let reads: Vec<(u64, usize)> = (0..15).map(|read| (read * 77_777 * 4096 % GIB, 4096)).collect();
    let times = timed_reads(&emulation, &reads);
    assert!(times.iter().all(|(_, model)| *model == 10_000_000), "{times:?}");
    assert_as_the_drive_says(&times);
    let ended = emulation.unmount().expect("it has not failed");
    assert_adds_up(&ended.statistics, 15);
    assert_eq!((ended.was_in_use, ended.statistics.bytes, place.is_mounted()), (false, 15 * 4096, false));
}

#[test]
fn reads_take_what_a_disk_takes() {
    let place = Place::new();
    let image = place.image(&[], 36_400_000_000);
    let Some(emulation) = mounted(&place.settings("ibm-36gb-10k", "", image)) else { return };
    let random: Vec<(u64, usize)> = (0..41).map(|read| (read * 5_555_557 * 4096 % 36_000_000_000, 4096)).collect();
    let times = timed_reads(&emulation, &random);
    assert_as_the_drive_says(&times);
    let mean_ns = times.iter().map(|(_, model)| model).sum::<u64>() / 41;
    assert!((8_000_000..14_000_000).contains(&mean_ns), "mean seek and half a turn are 10.5 ms, not {mean_ns} ns");
    let run: Vec<(u64, usize)> = (0..15).map(|read| (20 * GIB + (read << 20), 1 << 20)).collect();
    assert_as_the_drive_says(&timed_reads(&emulation, &run));
    let statistics = counted(&emulation, 56);
    assert_adds_up(&statistics, 56);
    assert_eq!((statistics.sequential, statistics.queue_depth_max), (14, 1));
    assert!(statistics.seek_ns > 0 && statistics.rotation_ns > 0);
}

#[test]
fn reads_at_once_queue_before_the_drive() {
    let place = Place::new();
    let image = place.image(&[], GIB);
    // Long enough for reads that start together to overlap.
    let Some(emulation) = mounted(&place.settings("uniform", "fetch_time = \"250ms\"", image)) else { return };
    let together = Barrier::new(4);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (emulation, together) = (&emulation, &together);
            scope.spawn(move || {
                together.wait();
                timed_reads(emulation, &[(reader * 8192, 4096)])
            });
        }
    });
    let statistics = counted(&emulation, 4);
    assert_adds_up(&statistics, 4);
    assert_eq!(statistics.busy_ns, 1_000_000_000);
    assert!(statistics.queue_depth_max >= 2 && statistics.queue_ns > 0, "{statistics:?}");
}

#[test]
fn the_statistics_are_files_that_reading_does_not_reset() {
    let place = Place::new();
    let image = place.image(&[], GIB);
    let Some(emulation) = mounted(&place.settings("uniform", "fetch_time = \"1ms\"", image)) else { return };
    timed_reads(&emulation, &[(0, 4096), (4096, 8192), (GIB - 512, 512)]);
    counted(&emulation, 3);
    for _ in 0..2 {
        let text = std::fs::read_to_string(place.mount().join("stats")).expect("it can be read");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let now = emulation.statistics();
        let expected: serde_json::Value = serde_json::from_str(&now.to_json()).expect("JSON");
        for (key, value) in expected.as_object().expect("an object") {
            // Only time goes on.
            if !["elapsed_ns", "utilization"].contains(&key.as_str()) {
                assert_eq!(read[key], *value, "{key}");
            }
        }
        assert_eq!((now.requests, now.bytes, now.sequential), (3, 4096 + 8192 + 512, 1));
        assert!(now.fuse_round_trip_ns.is_some_and(|time| time > 0));
    }
    let text = std::fs::read_to_string(place.mount().join("stats.openmetrics")).expect("it can be read");
    assert!(text.contains("headstart_emulate_requests_total{profile=\"uniform\"} 3\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn nothing_stays_mounted() {
    let place = Place::new();
    let image = place.image(b"first", GIB);
    let settings = place.settings("uniform", "fetch_time = \"1ms\"", image);
    // Unmount on drop.
    let Some(emulation) = mounted(&settings) else { return };
    drop(emulation);
    assert!(!place.is_mounted());
    // Still in use: processes with open files get errors.
    let emulation = mounted(&settings).expect("as before");
    let disk = File::open(emulation.disk()).expect("it is there");
    let ended = emulation.unmount().expect("it has not failed");
    assert!(ended.was_in_use && !place.is_mounted());
    disk.read_at(&mut [0; 512], GIB / 2).expect_err("nobody answers");
    drop(disk);
    // Unmounted from outside.
    let emulation = mounted(&settings).expect("as before");
    let by_hand = ["umount", "fusermount3 -u"].iter().any(|command| {
        let mut words = command.split(' ');
        let mut command = std::process::Command::new(words.next().expect("a word"));
        command.args(words).arg(place.mount()).status().is_ok_and(|status| status.success())
    });
    assert!(by_hand && !place.is_mounted());
    assert!(soon(|| !emulation.is_mounted()), "it notices");
    assert!(!emulation.unmount().expect("it has not failed").was_in_use);
}

#[test]
fn mistakes_are_named_and_nothing_is_mounted() {
    let place = Place::new();
    let image = place.image(b"first", 1_000_000);
    let good = place.settings("uniform", "fetch_time = \"1ms\"", image.clone());
    let refused = |settings: &Settings| match Emulation::mount(settings) {
        Ok(_) => panic!("it was mounted"),
        Err(error) => {
            assert!(!place.is_mounted());
            error.to_string()
        }
    };
    let unknown = refused(&Settings { profile: "no-drive".to_owned(), ..good.clone() });
    assert!(unknown.starts_with("model: unknown model \"no-drive\"; allowed: uniform, hp97560,"), "{unknown}");
    let keys = "fetch_time = 3".parse().expect("TOML");
    assert!(refused(&Settings { keys, ..good.clone() }).starts_with("fetch_time: "));
    let unknown = refused(&Settings { scheduler: "fifo".to_owned(), ..good.clone() });
    assert!(unknown.starts_with("scheduler: unknown scheduler \"fifo\""), "{unknown}");
    // Images.
    let named = |path: &Path, rest: &str| format!("{}: {rest}", path.display());
    let allowed = "allowed: a regular file or a block device that can be read";
    let missing = place.0.join("missing");
    let error = refused(&Settings { image: missing.clone(), ..good.clone() });
    assert_eq!(error, named(&missing, &format!("No such file or directory; {allowed}")));
    let error = refused(&Settings { image: place.0.clone(), ..good.clone() });
    assert_eq!(error, named(&place.0, &format!("is neither; {allowed}")));
    let empty = place.0.join("empty");
    File::create(&empty).expect("there is room");
    let error = refused(&Settings { image: empty.clone(), ..good.clone() });
    assert_eq!(error, named(&empty, &format!("is empty; {allowed}")));
    let large = place.0.join("large");
    File::create(&large).and_then(|file| file.set_len(36_400_000_001)).expect("a file may have holes");
    let (profile, keys) = ("ibm-36gb-10k".to_owned(), toml::Table::new());
    let error = refused(&Settings { profile, keys, image: large.clone(), ..good.clone() });
    let rest = "is larger than the drive: 36400000001B; allowed: at most 36.4GB, what ibm-36gb-10k holds";
    assert_eq!(error, named(&large, rest));
    // Mount points.
    let allowed = "allowed: an empty folder where nothing is mounted";
    for (mount, problem) in [
        (missing, "No such file or directory"),
        (image, "is no folder"),
        (place.0.clone(), "is not empty"),
        (PathBuf::from("/proc"), "something is mounted there"),
        (PathBuf::from("/"), "something is mounted there"),
    ] {
        let error = refused(&Settings { mount: mount.clone(), ..good.clone() });
        assert_eq!(error, named(&mount, &format!("{problem}; {allowed}")));
    }
    let Some(emulation) = mounted(&good) else { return };
    let error = Emulation::mount(&good).map(|_| ()).expect_err("it is in use");
    assert!(
        matches!(&error, Error::Path(PathError { problem, .. }) if problem == "something is mounted there"),
        "{error}"
    );
    assert!(emulation.is_mounted(), "the first stays");
}
