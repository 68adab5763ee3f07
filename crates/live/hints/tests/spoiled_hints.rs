//! Forecasts of recorded commands with hints of other commands and with spoiled ones, as in docs/hints-study.md: how
//! much does prefetching cost when hints turn wrong? Needs recordings, and their file system mounted:
//!
//! ```sh
//! HEADSTART_RECORDINGS=DIR HEADSTART_PAIRS=FILE cargo test -p headstart-hints --test spoiled_hints -- --ignored --nocapture
//! ```
//!
//! Each line of FILE names a command, its hints and a device: `git-status grep ibm-36gb-10k` takes DIR/git-status.hints
//! and DIR/grep.hints. The hints `turn:25:grep` are the first 25 % of the command's own and then all of grep's;
//! `mix:25:grep` are a random 25 % of the command's own, with grep's in place of the others. Both count as hints of the
//! same command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use headstart_hints::forecast::{as_simulated, forecast, Row, Settings, OPEN};
use headstart_host::Roots;
use headstart_policy::registry::policy;
use headstart_trace::hints::{Read, RecordedFile, Recording};
use toml::Table;

/// The accepted share of plain.
const MOST: f64 = 1.03;

fn setting(name: &str) -> PathBuf {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")).into()
}

fn recording(folder: &Path, name: &str) -> Recording {
    Recording::read(&folder.join(format!("{name}.hints"))).expect("a recording")
}

/// The indices of the files of `other` in `made`, which receives the missing ones.
fn joined(made: &mut Vec<RecordedFile>, other: &[RecordedFile]) -> Vec<u32> {
    let is_same = |one: &RecordedFile, file: &RecordedFile| {
        (one.major, one.minor, one.inode, one.kind) == (file.major, file.minor, file.inode, file.kind)
    };
    let mut place = |file: &RecordedFile| {
        made.iter().position(|one| is_same(one, file)).unwrap_or_else(|| {
            made.push(file.clone());
            made.len() - 1
        })
    };
    other.iter().map(|file| place(file) as u32).collect()
}

/// Whether each read is kept, of which `percent` are, from a linear congruential generator (Knuth, MMIX).
fn kept(percent: u64) -> impl FnMut() -> bool {
    let mut state = 12_345u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
    }
}

/// Hints of `command`, spoiled with those of `other`.
fn spoiled(command: &Recording, how: &str, percent: u64, other: &Recording) -> Recording {
    let mut made = command.clone();
    let file_of = joined(&mut made.files, &other.files);
    let mut others = other.reads.iter().map(|read| Read { file: file_of[read.file as usize], process: 0, ..*read });
    made.reads = match how {
        "turn" => {
            let right = &command.reads[..command.reads.len() * percent as usize / 100];
            let after_ns = right.last().map_or(0, |read| read.time_ns + read.wait_ns);
            let wrong = others.map(|read| Read { time_ns: read.time_ns + after_ns, ..read });
            right.iter().copied().chain(wrong).collect()
        }
        "mix" => {
            let mut is_kept = kept(percent);
            let one = |read: &Read| {
                let instead = |other| Read { time_ns: read.time_ns, process: read.process, ..other };
                if is_kept() {
                    Some(*read)
                } else {
                    others.next().map(instead)
                }
            };
            command.reads.iter().filter_map(one).collect()
        }
        _ => panic!("{how}: allowed: turn, mix"),
    };
    made
}

/// The simulation settings for `device`.
fn settings(device: &str) -> Settings {
    Settings {
        device: Some((device.into(), Table::new())),
        scheduler: None,
        policies: vec![policy("just-in-time").expect("it is registered")],
        budgets: vec![1 << 30],
        read_ahead_bytes: Some(128 << 10),
        trusted: false,
        hints: None,
        cached: false,
        open: OPEN,
        roots: Roots::of_machine(),
    }
}

/// Recordings by name and device, timed as on that device.
type Timed = BTreeMap<(String, String), Recording>;

/// For a line of the list: how long the command takes plain, and with its hints.
fn times_of(timed: &Timed, command: &str, hints: &str, device: &str) -> (u64, Row) {
    let of = |name: &str| &timed[&(name.to_owned(), device.to_owned())];
    let wrong = match hints.split(':').collect::<Vec<_>>()[..] {
        [name] => of(name).clone(),
        [how, percent, other] => spoiled(of(command), how, percent.parse().expect("a percentage"), of(other)),
        _ => panic!("{hints}: allowed: NAME, turn:PERCENT:NAME, mix:PERCENT:NAME"),
    };
    // What the command does, including its think times, is as recorded.
    let recorded = recording(&setting("HEADSTART_RECORDINGS"), command);
    let found = forecast(&recorded, &Settings { hints: Some(wrong), ..settings(device) }, |_| true);
    let found = found.expect("it can be simulated");
    (found.plain.elapsed_ns, found.rows[0].clone())
}

#[test]
#[ignore = "needs recordings"]
fn spoiled_hints() {
    let (folder, pairs) = (setting("HEADSTART_RECORDINGS"), setting("HEADSTART_PAIRS"));
    let list = std::fs::read_to_string(pairs).expect("a list of pairs");
    let parts = |line: &'static str| line.split_whitespace().collect::<Vec<_>>();
    let lines: Vec<Vec<&str>> = String::leak(list).lines().map(parts).collect();
    let mut timed = Timed::new();
    for line in &lines {
        let [command, hints, device] = line[..] else { panic!("{line:?}") };
        for name in [command, hints.split(':').next_back().expect("a name")] {
            let made = || as_simulated(&recording(&folder, name), &settings(device)).expect("it can be simulated");
            timed.entry((name.to_owned(), device.to_owned())).or_insert_with(made);
        }
    }
    // In parts, one per processor; in the order of the list.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = lines.len().div_ceil(cores).max(1);
    let times = |lines: &[Vec<&str>]| -> Vec<(u64, Row)> {
        lines.iter().map(|line| times_of(&timed, line[0], line[1], line[2])).collect()
    };
    let found: Vec<(u64, Row)> = std::thread::scope(|scope| {
        let parts: Vec<_> = lines.chunks(part).map(|lines| scope.spawn(|| times(lines))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("it can be simulated")).collect()
    });
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for (line, (plain_ns, row)) in lines.iter().zip(found) {
        let [command, hints, device] = line[..] else { panic!("{line:?}") };
        let share = row.elapsed_ns as f64 / plain_ns as f64;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        println!(
            "{share:.3} of {:.3} s: {command}, hints {hints}, {device}: {:.1} MB used, {:.1} MB wasted; {}",
            plain_ns as f64 / 1e9,
            mb(row.used_bytes),
            mb(row.wasted_bytes),
            row.stopped.as_deref().unwrap_or("not stopped")
        );
        if command == hints { &mut right } else { &mut wrong }.push(share);
    }
    let mean = (right.iter().map(|share: &f64| share.ln()).sum::<f64>() / right.len() as f64).exp();
    let beyond = |limit: f64| wrong.iter().filter(|share| **share > limit).count();
    println!("own hints: {mean:.3}, the geometric mean of {}", right.len());
    println!("others: worst {:.2}; {} in all", wrong.iter().copied().fold(0.0, f64::max), wrong.len());
    [MOST, 1.05, 1.1, 1.2, 1.5].iter().for_each(|limit| println!("above {limit}: {}", beyond(*limit)));
}
