//! The recorder on the kernel's own trace. Needs root and a tracefs; skipped with a note without them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use headstart_hints::record::{record, Settings, Summary, BUFFER_KIB, WALK_MAX};
use headstart_host::ring::Ring;
use headstart_host::Roots;
use headstart_trace::hints::{FileKind, ReadKind, RecordedFile, Recording};

#[path = "../../host/tests/common/gate.rs"]
mod gate;

use gate::{copy_program, soon};

const PAGE: usize = 4096;

/// One recording at a time, so that a test can see what is left behind.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether this machine can record.
fn can_record() -> bool {
    let can = nix::unistd::geteuid().is_root() && record(&settings(&["true"]), |_| {}, || true).is_ok();
    if !can {
        eprintln!("SKIPPED: recording needs root and Linux 6.12");
    }
    can
}

fn settings(command: &[&str]) -> Settings {
    let command = command.iter().map(Into::into).collect();
    Settings {
        roots: Roots::of_machine(),
        command,
        cold: false,
        buffer_kib: BUFFER_KIB,
        walk_max: WALK_MAX,
        elapsed_max: None,
    }
}

fn recorded(command: &[&str]) -> Recording {
    let _alone = ALONE.lock();
    let recording = record(&settings(command), |_| {}, || true).expect("root, and a tracefs");
    assert_eq!(recording.about.lost_events, 0);
    recording
}

/// A file of `pages` pages on a device, none of which are in the page cache.
fn uncached(name: &str, pages: usize) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, vec![7; pages * PAGE]).expect("there is room");
    let script = "import os, sys\nf = os.open(sys.argv[1], os.O_RDWR)\nos.fsync(f)\nos.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)";
    python(script, &path).status().expect("python3");
    path
}

fn python(script: &str, path: &Path) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(path);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Reads of a file as (kind, first page, pages, hit), without read-ahead.
fn reads_of(recording: &Recording, path: &Path) -> Vec<(ReadKind, u64, u32, bool)> {
    let Some(file) = recording.files.iter().position(|file| file.path == path) else { return Vec::new() };
    let reads = recording.references().filter(|read| read.file as usize == file);
    reads.map(|read| (read.kind, read.start, read.pages, read.hit)).collect()
}

#[test]
fn reads_are_recorded_with_hits_waits_and_files() {
    if !can_record() {
        return;
    }
    let path = uncached("read", 64);
    let script =
        "import os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\nos.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM)\n\
        os.pread(f, 8192, 40960)\nos.pread(f, 4096, 0)\nos.pread(f, 4096, 40960)\nos.pread(f, 1 << 20, 250000)";
    let recording = recorded(&["python3", "-c", script, text(&path)]);
    let expected = [
        (ReadKind::Read, 10, 2, false),
        (ReadKind::Read, 0, 1, false),
        (ReadKind::Read, 10, 1, true),
        // Cut at the end of the file.
        (ReadKind::Read, 61, 3, false),
    ];
    assert_eq!(reads_of(&recording, &path), expected);
    let file = recording.files.iter().find(|file| file.path == path).expect("its path");
    let found = fs::metadata(&path).expect("it is there");
    let RecordedFile { kind, inode, size_bytes, mtime_ns, .. } = *file;
    let mtime_ns_found = found.mtime() * 1_000_000_000 + found.mtime_nsec();
    assert_eq!((kind, inode, size_bytes, mtime_ns), (FileKind::Regular, found.ino(), 64 * PAGE as u64, mtime_ns_found));
    // A device that answers at once causes no waits; the tests of `fold` cover waits.
    let waits: u64 = recording.reads.iter().map(|read| read.wait_ns).sum();
    assert!(waits <= recording.about.elapsed_ns);
    assert!(recording.reads.iter().all(|read| read.time_ns + read.wait_ns <= recording.about.elapsed_ns));
    assert_eq!((recording.about.exit_status, Summary::of(&recording).unnamed_files), (0, 0));
}

#[test]
fn faults_are_recorded() {
    if !can_record() {
        return;
    }
    let path = uncached("mapped", 256);
    let script =
        "import mmap, os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\nm = mmap.mmap(f, 0, prot=mmap.PROT_READ)\n\
        m.madvise(mmap.MADV_RANDOM)\nx = m[4096 * 100]\nx = m[4096 * 200]\nx = m[4096 * 101]";
    let recording = recorded(&["python3", "-c", script, text(&path)]);
    let faults: Vec<_> = reads_of(&recording, &path).into_iter().filter(|read| read.0 == ReadKind::Fault).collect();
    let expected = [100, 200, 101].map(|page| (ReadKind::Fault, page, 1, false));
    assert_eq!(faults, expected);
}

/// The file that [`reads_by_io_uring`] reads.
const RING_FILE: &str = "HEADSTART_RING_FILE";

/// Not a test but the command of the next one: reads some pages through io_uring.
#[test]
#[ignore = "the command of another test"]
fn reads_by_io_uring() {
    let Some(path) = std::env::var_os(RING_FILE) else { return };
    let file = Arc::new(fs::File::open(path).expect("it is there"));
    let mut ring = Ring::try_new(4).expect("an io_uring");
    for (name, page) in [(1, 40), (2, 7), (3, 21)] {
        ring.push(name, &file, page * PAGE as u64, vec![BytesMut::zeroed(PAGE)]).expect("there is room");
    }
    ring.submit();
    while ring.under_way() > 0 {
        if let Some(ended) = ring.take() {
            assert_eq!(ended.result.expect("it can be read"), PAGE);
        }
    }
}

#[test]
fn reads_through_io_uring_are_recorded() {
    if !can_record() {
        return;
    }
    if Ring::try_new(4).is_err() {
        return eprintln!("SKIPPED: no io_uring here");
    }
    let path = uncached("ring", 64);
    let program = std::env::current_exe().expect("this program");
    let file = format!("{RING_FILE}={}", path.display());
    let ours = ["--exact", "reads_by_io_uring", "--ignored", "--quiet"];
    let recording = recorded(&[&["env", &file, text(&program)], &ours[..]].concat());
    assert_eq!(recording.about.exit_status, 0);
    // The kernel's threads may read them in any order; read-ahead is omitted.
    let pages: BTreeSet<u64> = reads_of(&recording, &path).into_iter().map(|read| read.1).collect();
    assert_eq!(pages, BTreeSet::from([7, 21, 40]));
    assert!(reads_of(&recording, &path).iter().all(|read| read.0 == ReadKind::Read && read.2 == 1));
}

#[test]
fn reads_of_directories_are_recorded() {
    if !can_record() {
        return;
    }
    let folder = uncached("many/first", 1).with_file_name("");
    (0..2000).for_each(|number| drop(fs::write(folder.join(format!("{number:0100}")), "")));
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(&folder).output().expect("coreutils").stdout;
    if kind != b"ext2/ext3\n" {
        return eprintln!("SKIPPED: directories are pages of the device on ext2 to ext4 only");
    }
    assert!(Command::new("sync").status().is_ok_and(|status| status.success()));
    let _alone = ALONE.lock();
    let script = format!("ls -f {} > /dev/null", folder.display());
    let cold = Settings { cold: true, ..settings(&["sh", "-c", &script]) };
    let recording = record(&cold, |_| {}, || true).expect("root, and a tracefs");
    let of_device = |read: &&headstart_trace::hints::Read| recording.files[read.file as usize].kind == FileKind::Device;
    let pages: u64 =
        recording.references().filter(of_device).filter(|read| !read.hit).map(|read| u64::from(read.pages)).sum();
    let blocks = fs::metadata(&folder).expect("it is there").len() / PAGE as u64;
    assert!(blocks > 40 && pages >= blocks, "{pages} pages of metadata, of them {blocks} of the directory");
}

/// An overlay of `lower`, unmounted when dropped; `None` if none can be mounted here.
struct Overlay(PathBuf);

impl Overlay {
    fn of(lower: &Path) -> Option<Self> {
        let place = lower.with_file_name("overlay");
        let [upper, work, merged] = ["upper", "work", "merged"].map(|name| place.join(name));
        [&upper, &work, &merged].into_iter().for_each(|folder| fs::create_dir_all(folder).expect("a folder"));
        let layers = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        let mounted = Command::new("mount").args(["-t", "overlay", "overlay", "-o", &layers]).arg(&merged).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(merged))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn files_on_an_overlay_are_recorded_as_those_below() {
    if !can_record() {
        return;
    }
    let path = uncached("layers/file", 40);
    let Some(overlay) = Overlay::of(path.parent().expect("a folder")) else {
        return eprintln!("SKIPPED: no overlay can be mounted here");
    };
    let recording = recorded(&["sh", "-c", &format!("cat {} > /dev/null", overlay.0.join("file").display())]);
    let inode = fs::metadata(&path).expect("it is there").ino();
    let file = recording.files.iter().position(|file| file.inode == inode && file.path.ends_with("file"));
    let file = file.expect("its path, in the layer below if that is mounted");
    let pages = recording.references().filter(|read| read.file as usize == file).map(|read| read.pages).sum::<u32>();
    assert_eq!(pages, 40);
}

#[test]
fn children_exec_and_directories_are_recorded() {
    if !can_record() {
        return;
    }
    let program = uncached("program", 1);
    fs::remove_file(&program).expect("ours");
    copy_program("/bin/cat", &program);
    let folder = program.parent().expect("a folder");
    let read = uncached("by-a-child", 3);
    let script = format!(
        "{} {} | cat > /dev/null; ls -l {} > /dev/null; exit 3",
        program.display(),
        read.display(),
        folder.display()
    );
    let recording = recorded(&["sh", "-c", &script]);
    assert_eq!(recording.about.exit_status, 3);
    assert!(!reads_of(&recording, &program).is_empty(), "exec reads the program");
    assert_eq!(reads_of(&recording, &read), [(ReadKind::Read, 0, 3, false)]);
    // The name of a process that ends at once may be missing; the process is not.
    let of_file = |path: &Path| recording.files.iter().position(|file| file.path == path).expect("its path") as u32;
    let (program, read) = (of_file(&program), of_file(&read));
    let by = |file| recording.references().find(move |each| each.file == file).expect("it is read").process;
    assert_eq!(by(program), by(read), "{:?}", recording.processes);
    assert!(by(read) != 0, "{:?}", recording.processes);
}

#[test]
fn a_command_that_a_signal_ends_and_one_that_is_not_there() {
    if !can_record() {
        return;
    }
    assert_eq!(recorded(&["sh", "-c", "kill -9 $$"]).about.exit_status, 137);
    let _alone = ALONE.lock();
    let error = record(&settings(&["/no/such"]), |_| {}, || true).expect_err("no such program").to_string();
    assert_eq!(error, "/no/such: there is no such program; allowed: a command that can be started");
    let own = format!("headstart-{}-", std::process::id());
    if !Roots::of_machine().tracing.join("instances").is_dir() {
        return eprintln!("SKIPPED: no tracefs is mounted to look at");
    }
    let is_left = || {
        let mut instances = fs::read_dir(Roots::of_machine().tracing.join("instances")).expect("a folder").flatten();
        instances.any(|entry| entry.file_name().to_string_lossy().starts_with(&own))
    };
    // Instances of other tests here are removed a second later.
    assert!(soon(|| !is_left()));
}

#[test]
fn lost_events_are_counted() {
    if !can_record() {
        return;
    }
    let path = uncached("lost", 4096);
    let script = "import os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\n\
        for i in range(40): [os.pread(f, 1, 4096 * i) for i in range(4096)]";
    let small = Settings { buffer_kib: 8, ..settings(&["python3", "-c", script, text(&path)]) };
    let _alone = ALONE.lock();
    // A process that is busy with other work.
    let slow = || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        true
    };
    let recording = record(&small, |_| {}, slow).expect("root, and a tracefs");
    assert!(recording.about.lost_events > 1000, "{}", recording.about.lost_events);
    assert_eq!(recording.about.exit_status, 0);
}

/// If no tracefs is mounted, the recorder mounts one for itself, in its own mount namespace; the command sees no other
/// mounts than before.
#[test]
fn a_command_sees_no_tracefs_that_was_not_mounted() {
    if !can_record() {
        return;
    }
    const COMMAND: &str = "HEADSTART_UNMOUNTED";
    if let Some(result) = std::env::var_os(COMMAND) {
        let script =
            format!("readlink /proc/self/ns/mnt > {0}; cat /proc/self/mounts >> {0}", PathBuf::from(result).display());
        assert!(recorded(&["sh", "-c", &script]).references().count() > 0);
        return;
    }
    let result = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unmounted-{}", std::process::id()));
    let script = "umount --all --types tracefs; readlink /proc/self/ns/mnt; exec \"$@\"";
    let own = std::env::current_exe().expect("this program");
    let words = ["--exact", "a_command_sees_no_tracefs_that_was_not_mounted", "--nocapture"];
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(own).args(words).env(COMMAND, &result);
    let done = command.output().expect("util-linux");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let seen = fs::read_to_string(&result).expect("the command ran");
    let namespace = String::from_utf8_lossy(&done.stdout).lines().next().unwrap_or_default().to_owned();
    assert!(seen.starts_with(&namespace) && !seen.contains("tracefs"), "{namespace}: {seen}");
    fs::remove_file(result).expect("ours");
}

#[test]
fn without_a_tracefs_it_says_so_and_runs_nothing() {
    let roots = Roots { tracing: "/no/tracing".into(), ..Roots::of_machine() };
    let settings = Settings { roots, ..settings(&["touch", "/no/such/file"]) };
    let error = record(&settings, |_| panic!("it runs"), || true).expect_err("no tracefs").to_string();
    let allowed =
        "root, Linux 6.12 or later with filemap tracepoints, and its tracefs: mount -t tracefs tracefs /no/tracing";
    assert_eq!(error, format!("/no/tracing: there is no tracefs; allowed: {allowed}"));
}

#[test]
fn what_a_killed_recorder_has_left_goes_with_the_next() {
    if !can_record() {
        return;
    }
    let instances = Roots::of_machine().tracing.join("instances");
    if !instances.is_dir() {
        return eprintln!("SKIPPED: no tracefs is mounted to look at");
    }
    // There has never been a process with that number and start time.
    let left = instances.join("headstart-1-99999999999-record.0");
    fs::create_dir(&left).expect("root");
    recorded(&["true"]);
    // The kernel removes it later, without anything waiting for it.
    assert!(soon(|| !left.exists()));
}
