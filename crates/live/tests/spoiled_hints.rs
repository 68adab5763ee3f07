//! Forecasts of recorded commands with hints of others and with spoiled ones, as docs/hints-study.md has them: how much does prefetching
//! cost when hints turn wrong? Needs recordings, and their file system mounted:
//!
//! ```sh
//! HEADSTART_RECORDINGS=DIR HEADSTART_PAIRS=FILE cargo test -p headstart-live --test spoiled_hints -- --ignored --nocapture
//! ```
//!
//! Each line of FILE names a command, its hints and a device: `git-status grep ibm-36gb-10k` takes DIR/git-status.hints and
//! DIR/grep.hints. `turn:25:grep` as hints are the first 25 % of the command's own and then all of grep's; of `mix:25:grep`, 25 % of the
//! command's own, drawn, and in place of the others those of grep. Both are taken for hints of the same command.

use std::path::{Path, PathBuf};

use headstart_live::forecast::{forecast, Forecast, Settings, OPEN};
use headstart_live::tune::Roots;
use headstart_policy::registry::policy;
use headstart_trace::hints::{Read, RecordedFile, Recording};
use toml::Table;

/// What is asked: so much of plain at most.
const MOST: f64 = 1.03;

fn setting(name: &str) -> PathBuf {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")).into()
}

fn recording(folder: &Path, name: &str) -> Recording {
    Recording::read(&folder.join(format!("{name}.hints"))).expect("a recording")
}

/// The files of `other` among those of `made`, which gets what it has not.
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

/// Whether each read is kept, of which `percent` are: of a linear congruential generator (Knuth, MMIX).
fn kept(percent: u64) -> impl FnMut() -> bool {
    let mut state = 12_345u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100 < percent
    }
}

/// Hints of `command` that are spoiled with those of `other`.
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

fn forecast_of(folder: &Path, command: &str, hints: &str, device: &str) -> Forecast {
    let of_command = recording(folder, command);
    let wrong = match hints.split(':').collect::<Vec<_>>()[..] {
        [name] => (name != command).then(|| recording(folder, name)),
        [how, percent, other] => {
            let percent = percent.parse().expect("a percentage");
            Some(spoiled(&of_command, how, percent, &recording(folder, other)))
        }
        _ => panic!("{hints}: allowed: NAME, turn:PERCENT:NAME, mix:PERCENT:NAME"),
    };
    let settings = Settings {
        device: Some((device.into(), Table::new())),
        scheduler: None,
        policies: vec![policy("just-in-time").expect("it is registered")],
        budgets: vec![1 << 30],
        read_ahead_bytes: Some(128 << 10),
        trusted: false,
        hints: wrong,
        cached: false,
        open: OPEN,
        roots: Roots::of_machine(),
    };
    forecast(&of_command, &settings, |_| true).expect("it can be simulated")
}

#[test]
#[ignore = "needs recordings"]
fn spoiled_hints() {
    let (folder, pairs) = (setting("HEADSTART_RECORDINGS"), setting("HEADSTART_PAIRS"));
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for line in std::fs::read_to_string(pairs).expect("a list of pairs").lines() {
        let [command, hints, device] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let found = forecast_of(&folder, command, hints, device);
        let share = found.rows[0].elapsed_ns as f64 / found.plain.elapsed_ns as f64;
        println!("{share:.3} of {:.3} s: {command}, hints {hints}, {device}", found.plain.elapsed_ns as f64 / 1e9);
        if command == hints { &mut right } else { &mut wrong }.push(share);
    }
    let mean = (right.iter().map(|share: &f64| share.ln()).sum::<f64>() / right.len() as f64).exp();
    let beyond = |limit: f64| wrong.iter().filter(|share| **share > limit).count();
    println!("own hints: {mean:.3}, the geometric mean of {}", right.len());
    println!("others: worst {:.2}; {} in all", wrong.iter().copied().fold(0.0, f64::max), wrong.len());
    [MOST, 1.05, 1.1, 1.2, 1.5].iter().for_each(|limit| println!("above {limit}: {}", beyond(*limit)));
}
