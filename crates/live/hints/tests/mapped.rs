//! Compares what is recorded of mapped files with the page cache afterwards, on real file systems with different
//! read-ahead. Needs root and loop devices; skipped with a note without them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use gate::copy_program;
use headstart_hints::record::{record, Settings, BUFFER_KIB, WALK_MAX};
use headstart_host::page_cache::PageCache;
use headstart_host::Roots;
use headstart_trace::hints::{ReadKind, Recording};
use loop_device::LoopDevice;

#[path = "../../host/tests/common/gate.rs"]
mod gate;
#[path = "common/loop_device.rs"]
mod loop_device;

const PAGE: u64 = 4096;
const PAGES: u64 = 2048;
/// Touches these pages of a mapped file.
const TOUCH: &str =
    "import mmap, sys\nwith open(sys.argv[1], 'rb') as f: m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
    for page in sys.argv[2].split(','): m[int(page) * 4096]";

fn recorded(command: &[&str], cold: bool) -> Recording {
    let settings = Settings {
        roots: Roots::of_machine(),
        command: command.iter().map(Into::into).collect(),
        cold,
        buffer_kib: BUFFER_KIB,
        walk_max: WALK_MAX,
        elapsed_max: None,
    };
    let recording = record(&settings, |_| {}, || true).expect("root, and a tracefs");
    assert_eq!((recording.about.lost_events, recording.about.exit_status), (0, 0));
    recording
}

/// Pages of the file that the command referenced, and the part of them that was cached before.
fn referenced(recording: &Recording, path: &Path) -> [BTreeSet<u64>; 2] {
    let file = recording.files.iter().position(|file| file.path == path).expect("its path");
    let reads = recording.reads.iter().filter(|read| read.file as usize == file && read.kind != ReadKind::ReadAhead);
    let pages = |hit: bool| reads.clone().filter(move |read| read.hit || !hit).flat_map(|read| read.start..read.end());
    let missed: BTreeSet<u64> =
        reads.clone().filter(|read| !read.hit).flat_map(|read| read.start..read.end()).collect();
    [pages(false).collect(), pages(true).filter(|page| !missed.contains(page)).collect()]
}

fn cached(path: &Path) -> BTreeSet<u64> {
    let file = File::open(path).expect("it is there");
    let bytes = file.metadata().expect("it is open").len();
    let cache = PageCache::of(&file, bytes).expect("it can be mapped");
    (0..bytes.div_ceil(PAGE)).filter(|page| cache.has(page * PAGE)).collect()
}

/// Every 11th page and a neighbour of some, in random order.
fn random() -> BTreeSet<u64> {
    (0..90).flat_map(|at| [at * 11, at * 11 + at % 3 / 2]).collect()
}

fn listed(pages: impl Iterator<Item = u64>) -> String {
    pages.map(|page| page.to_string()).collect::<Vec<_>>().join(",")
}

fn on(kind: &str, read_ahead_kib: u32) {
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mapped-{kind}-{}.img", std::process::id()));
    let Some(device) = LoopDevice::new(&image, kind, 320 << 20) else { return };
    if !device.read_ahead(read_ahead_kib) {
        return;
    }
    let (path, program) = (device.folder().join("data"), device.folder().join("cat"));
    fs::write(&path, vec![7; (PAGES * PAGE) as usize]).expect("there is room");
    copy_program("/bin/cat", &program);
    let touch = |pages: &str, cold| recorded(&["python3", "-c", TOUCH, path.to_str().expect("UTF-8"), pages], cold);
    let case = format!("{kind}, {read_ahead_kib} KiB");

    let touched = random();
    let order = touched.iter().copied().filter(|page| page % 2 == 1).chain(touched.iter().copied().rev());
    let recording = touch(&listed(order), true);
    let [all, hits] = referenced(&recording, &path);
    assert!(touched.is_subset(&all) && all.is_subset(&cached(&path)) && hits.is_empty(), "{case}: {all:?}, {hits:?}");
    if read_ahead_kib == 0 {
        assert_eq!(all, touched, "{case}: one page comes for each fault");
    }

    // Most pages of the windows are there from before, and those between are not.
    if read_ahead_kib == 0 {
        let before = touch(&listed((0..64).filter(|page| page % 4 != 1)), true);
        assert_eq!(before.about.exit_status, 0);
        let [all, hits] = referenced(&touch("5,40", false), &path);
        assert_eq!((all.contains(&5), hits.contains(&5), all.contains(&1)), (true, false, false), "{case}");
        let windows = (0..16).chain(32..48);
        assert_eq!(hits, windows.filter(|page| page % 4 != 1).collect(), "{case}");
    }

    let [all, hits] = referenced(&touch(&listed(0..PAGES), true), &path);
    let missing: Vec<u64> = (0..PAGES).filter(|page| !all.contains(page)).collect();
    assert!(missing.is_empty() && hits.is_empty(), "{case}: in order: {missing:?}, {hits:?}");

    let [all, _] = referenced(&recorded(&[program.to_str().expect("UTF-8"), "/dev/null"], true), &program);
    assert!(!all.is_empty() && all.is_subset(&cached(&program)), "{case}: {all:?}");
}

#[test]
fn of_mapped_files_only_what_came_or_was_cached_is_recorded() {
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("SKIPPED: recording needs root");
    }
    for kind in ["ext4", "xfs"] {
        [0, 128, 8192].into_iter().for_each(|kib| on(kind, kib));
    }
}
