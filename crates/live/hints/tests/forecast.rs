//! Forecasts of synthetic recordings, on devices whose times can be worked out by hand.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use headstart_hints::forecast::{forecast, Error, Forecast, Settings};
use headstart_host::Roots;
use headstart_policy::registry::policy;
use headstart_trace::hints::{About, FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

const PAGE: u64 = 4096;
const MS: u64 = 1_000_000;
const DEVICES: [&str; 3] = ["ibm-36gb-10k", "seagate-exos-x20", "sata-ssd"];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder with one sparse file, which has no place on the device.
struct Sparse(PathBuf);

impl Sparse {
    fn new(pages: u64) -> Self {
        let name = format!("forecast-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        File::create(&path).and_then(|file| file.set_len(pages * PAGE)).expect("there is room");
        Self(path)
    }

    fn recorded(&self) -> RecordedFile {
        let found = fs::metadata(&self.0).expect("it is there");
        RecordedFile {
            kind: FileKind::Regular,
            path: self.0.clone(),
            major: nix::sys::stat::major(found.dev()) as u32,
            minor: nix::sys::stat::minor(found.dev()) as u32,
            inode: found.ino(),
            size_bytes: found.len(),
            mtime_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
        }
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn read(time_ns: u64, wait_ns: u64, process: u32, start: u64, pages: u32, kind: ReadKind) -> Read {
    Read { time_ns, wait_ns, start, pages, process, file: 0, kind, hit: false }
}

fn recording(file: &Sparse, reads: Vec<Read>, elapsed_ns: u64) -> Recording {
    let processes = reads.iter().map(|read| read.process).max().map_or(0, |last| last + 1);
    Recording {
        about: About {
            command: vec!["made-up".into()],
            folder: "/".into(),
            recorded_at_s: 1,
            elapsed_ns,
            exit_status: 0,
            kernel: "6.12.1".into(),
            page_bytes: PAGE,
            cold: true,
            lost_events: 0,
            recordings: 1,
        },
        processes: (0..processes).map(|pid| RecordedProcess { pid, name: "made-up".into() }).collect(),
        files: vec![file.recorded()],
        reads,
    }
}

/// The reads of one process, with these times between, pages and kinds; and how long it takes without waiting.
fn in_turn(reads: impl Iterator<Item = (u64, u64, u32, ReadKind)>) -> (Vec<Read>, u64) {
    let mut time = 0;
    let each = |(gap, start, pages, kind)| {
        time += gap;
        read(time, 0, 0, start, pages, kind)
    };
    (reads.map(each).collect(), time)
}

/// A device on which each request takes `fetch_ns`.
fn uniform(fetch_ns: u64) -> Settings {
    let keys: Table = format!("fetch_time = \"{fetch_ns}ns\"").parse().expect("a table");
    Settings {
        device: Some(("uniform".into(), keys)),
        scheduler: Some("fcfs".into()),
        policies: vec![policy("just-in-time").expect("it is there")],
        budgets: Vec::new(),
        read_ahead_bytes: Some(128 << 10),
        trusted: true,
        hints: None,
        cached: false,
        open: Nanos::ZERO,
        roots: Roots { sys: "/no/such/sys".into(), ..Roots::of_machine() },
    }
}

fn forecast_of(recording: &Recording, settings: &Settings) -> Forecast {
    forecast(recording, settings, |_| true).expect("it can be simulated")
}

#[test]
fn think_times_and_requests_by_hand() {
    // 1 ms of thinking, a page; 3 ms, a page far away; 2 ms to the end. The recorded waits, 9 ms each, do not matter.
    let file = Sparse::new(1000);
    let reads = vec![read(MS, 9 * MS, 0, 500, 1, ReadKind::Read), read(13 * MS, 9 * MS, 0, 900, 1, ReadKind::Read)];
    let found = forecast_of(&recording(&file, reads, 24 * MS), &uniform(2 * MS));
    assert_eq!((found.compute_ns, found.plain.elapsed_ns, found.plain.requests), (6 * MS, 10 * MS, 2));
    assert_eq!(found.demand.elapsed_ns, 10 * MS);
    // Both are prefetched from the start, one after the other: the first comes 1 ms late.
    assert_eq!(found.rows[0].elapsed_ns, 7 * MS);
    assert_eq!((found.rows[0].used_bytes, found.rows[0].wasted_bytes), (2 * PAGE, 0));
    let best = found.recommendation.expect("it saves 30 %");
    assert_eq!((best.policy.as_str(), best.elapsed_ns), ("just-in-time", 7 * MS));
}

#[test]
fn the_kernel_reads_around_a_fault_and_ahead_of_reads() {
    let file = Sparse::new(1000);
    let fault = |time_ns, page| read(time_ns, 0, 0, page, 1, ReadKind::Fault);
    // 32 pages around page 100 are 84 to 115. Of those around 116, 100 to 131, half are there.
    let faults = vec![fault(MS, 100), fault(2 * MS, 84), fault(3 * MS, 107), fault(4 * MS, 116)];
    let found = forecast_of(&recording(&file, faults, 4 * MS), &uniform(2 * MS));
    assert_eq!((found.plain.requests, found.plain.elapsed_ns, found.plain.read_bytes), (2, 8 * MS, 48 * PAGE));
    assert_eq!((found.demand.requests, found.demand.elapsed_ns), (4, 12 * MS));
    // A mapped window needs no read if its pages are there; otherwise one page of it was touched.
    let maps =
        vec![fault(MS, 100), read(2 * MS, 0, 0, 96, 16, ReadKind::Map), read(3 * MS, 0, 0, 500, 4, ReadKind::Map)];
    assert_eq!(forecast_of(&recording(&file, maps, 3 * MS), &uniform(2 * MS)).plain.requests, 2);
    // 256 pages from the start, in order: far fewer requests than pages, and the reader is never ahead of them.
    let pages = (0..256).map(|page| read(page * MS, 0, 0, page, 1, ReadKind::Read)).collect();
    let found = forecast_of(&recording(&file, pages, 256 * MS), &uniform(2 * MS));
    assert!(found.plain.requests < 16 && found.plain.elapsed_ns < 262 * MS, "{:?}", found.plain);
    assert_eq!(found.recommendation, None, "there is next to nothing to gain");
}

#[test]
fn threads_begin_and_end_with_what_they_depend_on() {
    // The first thread reads for 5 ms; the second starts 1 ms later and reads for 5 ms; the first goes on 1 ms after
    // that.
    let file = Sparse::new(1000);
    let reads = vec![
        read(0, 5 * MS, 0, 100, 1, ReadKind::Read),
        read(6 * MS, 5 * MS, 1, 300, 1, ReadKind::Read),
        read(12 * MS, 5 * MS, 0, 500, 1, ReadKind::Read),
    ];
    let found = forecast_of(&recording(&file, reads, 17 * MS), &uniform(MS));
    assert_eq!((found.compute_ns, found.plain.elapsed_ns), (2 * MS, 5 * MS));
}

#[test]
fn a_thread_that_goes_on_after_the_reads_of_another_one_has_waited_for_it() {
    // The first thread reads, and goes on 0.5 ms after ten reads of the second, which thinks 1 ms before each, and 1 ms
    // at the end.
    let file = Sparse::new(10_000);
    let elapsed_ms = |goes_on_ns: u64, wait_ns: u64| {
        let server = (0..10).map(|at| read((6 + 10 * at) * MS, wait_ns, 1, 300 + 100 * at, 1, ReadKind::Read));
        let mut reads = vec![read(0, 5 * MS, 0, 100, 1, ReadKind::Read)];
        reads.extend(server.chain([
            read(goes_on_ns, MS, 0, 5000, 1, ReadKind::Read),
            read(goes_on_ns + 2 * MS, MS, 1, 6000, 1, ReadKind::Read),
        ]));
        let found = forecast_of(&recording(&file, reads, goes_on_ns + 3 * MS), &uniform(MS));
        found.plain.elapsed_ns as f64 / MS as f64
    };
    // Twelve reads of 1 ms, ten thoughts of 1 ms, and 0.5 ms; the second thread thinks for 2.5 ms, during which it
    // might wait.
    assert!((elapsed_ms(105 * MS + MS / 2, 9 * MS) - (1.0 + 20.0 + 2.5 + 1.0)).abs() < 1e-6);
    // A thread that goes on later, or beside one that itself thinks, has thought all the time.
    assert!((elapsed_ms(107 * MS, 9 * MS) - (1.0 + 102.0 + 1.0 + 1.0)).abs() < 1.1);
    assert!((elapsed_ms(97 * MS, MS) - (1.0 + 92.0 + 1.0 + 1.0)).abs() < 1.1);
}

#[test]
fn what_is_there_already_costs_nothing() {
    let file = Sparse::new(1000);
    let mut recorded = recording(&file, vec![read(MS, 0, 0, 5, 3, ReadKind::Read)], 2 * MS);
    recorded.reads[0].hit = true;
    let found = forecast_of(&recorded, &uniform(MS));
    assert_eq!((found.plain.elapsed_ns, found.plain.requests), (2 * MS, 0), "another program keeps it in the cache");
    recorded.about.cold = false;
    let found = forecast_of(&recorded, &uniform(MS));
    assert_eq!((found.plain.elapsed_ns, found.plain.requests), (3 * MS, 1));
    assert!(found.notes.iter().any(|note| note.contains("caches as they were")), "{:?}", found.notes);
}

#[test]
fn what_other_disks_had_cached_is_there() {
    // A warm recording: on the disk that was waited for, everything is assumed to be absent; on the other one, what was
    // absent.
    let file = Sparse::new(1000);
    let requests = |is_cold, hits: [bool; 2]| {
        let page = |at: usize, wait_ns| Read {
            file: at as u32,
            hit: hits[at],
            ..read(at as u64 * MS, wait_ns, 0, 100, 1, ReadKind::Read)
        };
        let mut warm =
            recording(&file, vec![page(0, 0), page(1, 0), Read { start: 500, hit: false, ..page(0, MS) }], 9 * MS);
        warm.about.cold = is_cold;
        let other =
            RecordedFile { minor: warm.files[0].minor + 1, path: "/no/such/file".into(), ..warm.files[0].clone() };
        warm.files.push(other);
        forecast_of(&warm, &uniform(2 * MS)).plain.requests
    };
    assert_eq!([[true, true], [true, false], [false, false]].map(|hits| requests(false, hits)), [2, 3, 3]);
    assert_eq!([[true, true], [true, false], [false, false]].map(|hits| requests(true, hits)), [1, 2, 3]);
}

#[test]
fn files_that_have_changed_are_not_prefetched() {
    let file = Sparse::new(1000);
    let mut recorded = recording(&file, vec![read(MS, 0, 0, 500, 1, ReadKind::Read)], 2 * MS);
    recorded.files[0].mtime_ns -= 1;
    let found = forecast_of(&recorded, &uniform(2 * MS));
    assert_eq!((found.rows[0].prefetched_bytes, found.rows[0].elapsed_ns), (0, found.plain.elapsed_ns));
    assert!(found.notes.iter().any(|note| note.starts_with("1 files have changed")), "{:?}", found.notes);
}

#[test]
fn mistakes_are_named() {
    let file = Sparse::new(10);
    let recorded = recording(&file, vec![read(0, 0, 0, 0, 1, ReadKind::Read)], MS);
    let said = |settings: &Settings, recorded: &Recording| {
        forecast(recorded, settings, |_| true).expect_err("it is wrong").to_string()
    };
    let wrong = Settings { device: Some(("no-such".into(), Table::new())), ..uniform(MS) };
    assert!(said(&wrong, &recorded).contains("no-such"));
    let wrong = Settings { scheduler: Some("no-such".into()), ..uniform(MS) };
    assert!(said(&wrong, &recorded).starts_with("device.scheduler: "));
    let wrong = Settings { policies: vec![policy("optimum").expect("it is there")], ..uniform(MS) };
    assert!(!said(&wrong, &recorded).is_empty());
    let empty = recording(&file, Vec::new(), MS);
    assert!(matches!(forecast(&empty, &uniform(MS), |_| true), Err(Error::Empty)));
}

/// Reads of one process: gaps, pages, sizes, and whether they are faults.
fn reads() -> impl Strategy<Value = Vec<(u64, u64, u32, bool)>> {
    prop::collection::vec((0..3_000_000u64, 0..4000u64, 1..40u32, any::<bool>()), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn common_sense(reads in reads(), slow in 1..40u64) {
        let file = Sparse::new(4096);
        let (reads, time) = in_turn(reads.into_iter().map(|(gap, start, pages, fault)| match fault {
            true => (gap, start, 1, ReadKind::Fault),
            false => (gap, start, pages, ReadKind::Read),
        }));
        let recorded = recording(&file, reads, time);
        let budgets = vec![256 << 10, 1 << 20, 16 << 20];
        let settings = Settings { budgets, ..uniform(slow * 200_000) };
        let found = forecast_of(&recorded, &settings);
        // With everything cached, there is only thinking.
        let cached = forecast_of(&recorded, &Settings { cached: true, ..settings.clone() });
        prop_assert_eq!(cached.compute_ns, time);
        prop_assert_eq!((cached.plain.elapsed_ns, cached.plain.requests), (time, 0));
        prop_assert!(cached.rows.iter().all(|row| row.elapsed_ns == time));
        // Nothing is below the bound.
        let all = || found.rows.iter().chain([&found.plain, &found.demand]);
        prop_assert!(all().all(|row| row.elapsed_ns >= found.lower_bound_ns));
        // A larger budget costs at most a disk's queue of a few requests.
        let few = 16 * slow * 200_000;
        for pair in found.rows.windows(2) {
            prop_assert!(pair[1].elapsed_ns <= pair[0].elapsed_ns + pair[0].elapsed_ns / 10 + few, "{:?}", found.rows);
        }
        // A device twice as fast is not slower.
        let faster = forecast_of(&recorded, &Settings { device: uniform(slow * 100_000).device, ..settings });
        prop_assert!(faster.plain.elapsed_ns <= found.plain.elapsed_ns);
        prop_assert!(faster.demand.elapsed_ns <= found.demand.elapsed_ns);
        for (fast, row) in faster.rows.iter().zip(&found.rows) {
            prop_assert!(fast.elapsed_ns <= row.elapsed_ns + few, "{fast:?} {row:?}");
        }
    }
}

/// Reads of a file and of metadata anywhere on a large disk: which of both, where, and how many pages.
fn placed() -> impl Strategy<Value = Vec<(bool, u64, u32)>> {
    prop::collection::vec((any::<bool>(), 0..100_000_000u64, 1..9u32), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Only the command determines the places on a drive that is smaller than the file system: rows for it are the same
    /// whatever its hints name.
    #[test]
    fn hints_move_nothing_that_the_command_reads(own in placed(), other in placed()) {
        let (before, file, after) = (Sparse::new(40_000), Sparse::new(40_000), Sparse::new(40_000));
        let recorded = |files: &[&Sparse], placed: &[(bool, u64, u32)]| {
            let each = |(time, (is_metadata, start, pages)): (u64, &(bool, u64, u32))| Read {
                file: if *is_metadata { 0 } else { 1 + (start % files.len() as u64) as u32 },
                ..read(time * MS, 0, 0, if *is_metadata { *start } else { start % 39_990 }, *pages, ReadKind::Read)
            };
            let mut recorded = recording(files[0], (0..).zip(placed).map(each).collect(), placed.len() as u64 * MS);
            recorded.files = files.iter().map(|file| file.recorded()).collect();
            let (path, size_bytes) = ("/no/such/device".into(), 1 << 50);
            let device = RecordedFile { kind: FileKind::Device, inode: 0, path, size_bytes, ..recorded.files[0].clone() };
            recorded.files.insert(0, device);
            recorded
        };
        let settings = Settings { device: Some(("ibm-36gb-10k".into(), Table::new())), budgets: vec![1 << 20], ..uniform(MS) };
        let command = recorded(&[&file], &own);
        let found = forecast_of(&command, &settings);
        let hints = recorded(&[&before, &file, &after], &other);
        let with = forecast_of(&command, &Settings { hints: Some(hints), ..settings });
        prop_assert_eq!((found.plain, found.demand, found.lower_bound_ns), (with.plain, with.demand, with.lower_bound_ns));
    }
}

/// A command that reads random pages of a file, with hints that name other pages from one reference on.
fn wrong_hints() -> impl Strategy<Value = (Vec<(u64, u64, u32)>, u64, u64)> {
    let reads = prop::collection::vec((0..3_000_000u64, 0..30_000u64, 1..4u32), 50..250);
    (reads, 0..100u64, any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Hints that are wrong from any place on cost what is in flight when they turn wrong, twice (15 reads of some 6 ms
    /// and a few that are late), since the command may not be where the arm is afterwards; and what was read ahead by
    /// then: with an arm at most 35 % of the time, without one at worst one read per page: 16 pages, and one for each
    /// that was right. A command that reads fast by itself, from near places, gains nothing in return.
    #[test]
    fn wrong_hints_cost_a_few_reads((reads, right_percent, seed) in wrong_hints(), device in prop::sample::select(&DEVICES[..])) {
        let file = Sparse::new(70_000);
        let right = reads.len() as u64 * right_percent / 100;
        let (command, time) = in_turn(reads.into_iter().map(|(gap, start, pages)| (gap, start, pages, ReadKind::Read)));
        // The wrong ones lie where the command reads nothing.
        let other = |(at, each): (u64, &Read)| {
            let start = if at < right { each.start } else { 35_000 + (each.start ^ seed) % 30_000 };
            Read { start, ..*each }
        };
        let hints = (0..).zip(&command).map(other).collect();
        let recorded = recording(&file, command, time);
        let hints = Recording { reads: hints, ..recorded.clone() };
        let settings = Settings {
            device: Some((device.into(), Table::new())),
            trusted: false,
            hints: Some(hints),
            budgets: vec![1 << 30],
            ..uniform(MS)
        };
        let found = forecast_of(&recorded, &settings);
        let in_vain = 16 + recorded.reads.iter().take(right as usize).map(|each| u64::from(each.pages)).sum::<u64>();
        let row = &found.rows[0];
        let early = if device == "sata-ssd" { in_vain * MS / 5 } else { row.elapsed_ns * 35 / 100 };
        let limit = found.plain.elapsed_ns * 103 / 100 + 200 * MS + early;
        prop_assert!(row.elapsed_ns <= limit, "{} of {}: {row:?}", row.elapsed_ns, found.plain.elapsed_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A command's own hints, which are right, slow it down by at most a twentieth and a few reads of an arm, which is
    /// not where the command left it. With a head start, too.
    #[test]
    fn own_hints_make_no_command_slower((reads, ..) in wrong_hints(), device in prop::sample::select(&DEVICES[..]), trusted: bool, spread in 1..60u64) {
        let file = Sparse::new(70_000);
        let spread = reads.into_iter().map(|(gap, start, pages)| (gap, start * spread / 60, pages, ReadKind::Read));
        let (command, time) = in_turn(spread);
        let recorded = recording(&file, command, time);
        let settings = Settings { device: Some((device.into(), Table::new())), trusted, budgets: vec![1 << 30], ..uniform(MS) };
        let found = forecast_of(&recorded, &settings);
        let row = &found.rows[0];
        let limit = found.plain.elapsed_ns * 105 / 100 + 40 * MS;
        prop_assert!(row.elapsed_ns <= limit, "{} of {}: {row:?}", row.elapsed_ns, found.plain.elapsed_ns);
    }
}
