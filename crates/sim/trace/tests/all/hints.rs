//! Recordings: what is written reads back, damaged files are refused, and as a trace they give their references.

use headstart_trace::hints::{
    check, merge, Change, FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording,
};
use headstart_trace::{info, open, Carries};
use proptest::prelude::*;

use crate::common;
use crate::common::{drain, recording, scratch};

fn kinds() -> impl Strategy<Value = ReadKind> {
    proptest::sample::select(vec![ReadKind::Read, ReadKind::Fault, ReadKind::Map, ReadKind::ReadAhead])
}

fn files() -> impl Strategy<Value = Vec<RecordedFile>> {
    let kind = proptest::sample::select(vec![FileKind::Regular, FileKind::Other, FileKind::Device]);
    let file = (kind, "/?[a-z\u{e9} \n]{0,9}", any::<(u32, u32, u64, u64, i64)>());
    let file = file.prop_map(|(kind, path, (major, minor, inode, size_bytes, mtime_ns))| RecordedFile {
        kind,
        path: path.into(),
        major,
        minor,
        inode,
        size_bytes,
        mtime_ns,
    });
    proptest::collection::vec(file, 1..9)
}

fn drawn() -> impl Strategy<Value = Recording> {
    let reads = proptest::collection::vec((any::<(u32, u64, u16, u16, bool)>(), 0u64..1 << 51, 1u32.., kinds()), 0..40);
    (files(), reads).prop_map(|(files, drawn)| {
        let mut recording = Recording { files, ..recording() };
        let (mut time_ns, processes) = (0, recording.processes.len());
        recording.reads = drawn
            .into_iter()
            .map(|((step, wait_ns, process, file, hit), start, pages, kind)| {
                time_ns += u64::from(step);
                let process = u32::from(process) % processes as u32;
                let file = u32::from(file) % recording.files.len() as u32;
                Read { time_ns, wait_ns, start, pages, process, file, kind, hit }
            })
            .collect();
        recording
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(recording in drawn()) {
        let path = scratch("hints-drawn").join("x.hints");
        recording.write(&path).unwrap();
        prop_assert_eq!(Recording::read(&path).unwrap(), recording);
    }
}

#[test]
fn as_a_trace_it_is_its_references() {
    let path = scratch("hints-trace").join("x.hints");
    recording().write(&path).unwrap();
    let mut reader = open(&path, "auto").unwrap();
    let carried =
        Carries { time: true, duration: true, processes: true, files: true, addresses: true, ..Carries::NOTHING };
    assert_eq!(reader.carries(), carried);
    let records = drain(&mut *reader).unwrap();
    let seen: Vec<_> = records.iter().map(|r| (r.time.0, r.duration.0, r.pid, r.file, r.offset, r.size)).collect();
    let expected = [
        (0, 500_000, 70, 1, 4096 << 24, 4096),
        (599_000, 200_000, 71, 0, 0, 16384),
        (899_000, 0, 71, 0, 8192, 4096),
        (949_000, 0, 71, 0, 0, 65536),
        (999_000, 7, 70, 2, 0, 4096),
    ];
    assert_eq!((seen, reader.skipped()), (expected.to_vec(), 1));
    let table: Vec<_> = reader.files().iter().map(|file| (file.path.as_str(), file.size_bytes)).collect();
    assert_eq!(table, [("/a b", 70_000), ("/dev/vda", 1 << 38), ("", 4096)]);
    let found = info(&mut *open(&path, "hints").unwrap(), Some(4096)).unwrap();
    assert_eq!((found.requests, found.distinct_blocks), (5, 18));
    // The note says which recorder sees what.
    assert!(found.note.unwrap().starts_with("contains every page used, through calls and mappings"));
}

#[test]
fn lost_events_are_a_note_and_no_references_an_error() {
    let path = scratch("hints-lost").join("x.hints");
    let mut recording = recording();
    recording.about.lost_events = 7;
    recording.write(&path).unwrap();
    let note = "the kernel dropped 7 events while recording: reads may be missing";
    assert!(open(&path, "auto").unwrap().note().unwrap().ends_with(note));
    recording.reads.retain(|read| read.kind == ReadKind::ReadAhead);
    recording.processes.push(RecordedProcess { pid: 1, name: String::new() });
    recording.write(&path).unwrap();
    assert_eq!(Recording::read(&path).unwrap(), recording);
    let text = open(&path, "auto").err().expect("there is nothing to read").to_string();
    assert_eq!(text, format!("{}: the trace has no records; allowed: one or more", path.display()));
}

/// Every prefix of a recording, changes and trailing bytes are refused on one line.
#[test]
fn what_is_damaged_is_refused() {
    let path = scratch("hints-damaged").join("x.hints");
    recording().write(&path).unwrap();
    let right = std::fs::read(&path).unwrap();
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let text = Recording::read(&path).expect_err("damaged").to_string();
        assert!(text.starts_with(path.to_str().unwrap()) && !text.contains('\n'), "{text}");
        text
    };
    (0..right.len()).for_each(|end| drop(refused(&right[..end])));
    let line = right.iter().position(|&byte| byte == b'\n').unwrap();
    for at in line + 1..right.len() {
        let mut content = right.clone();
        content[at] ^= 0x10;
        std::fs::write(&path, content).unwrap();
        // A few bits of zstd's header, such as its window's size, change nothing.
        assert!(Recording::read(&path).map_or(true, |read| read == recording()), "byte {at}");
    }
    let tail = |text: String| text.split_once(": ").unwrap().1.to_owned();
    assert_eq!(tail(refused(b"PNG")), "is not a recording; allowed: a recording of `headstart record`");
    assert_eq!(tail(refused(b"headstart-hints 9 {}\n")), "the version is 9; allowed: 1");
    let cut = &right[..right.len() - 5];
    assert_eq!(tail(refused(cut)), "is truncated; allowed: a recording of `headstart record`");
    let longer = [&right[..], b"x"].concat();
    assert_eq!(tail(refused(&longer)), "there are bytes after the reads; allowed: a recording of `headstart record`");
}

/// A recording of the first file only: ranges of pages, 10 ns apart.
fn ranges(of: &[(u64, u32)]) -> Recording {
    let mut recording = recording();
    recording.files.truncate(1);
    let read = |(time_ns, (start, pages)): (u64, &(u64, u32))| Read {
        time_ns,
        wait_ns: 1,
        start: *start,
        pages: *pages,
        process: 0,
        file: 0,
        kind: ReadKind::Read,
        hit: false,
    };
    recording.reads = (1..).step_by(10).zip(of).map(read).collect();
    recording
}

fn ranges_of(recording: &Recording) -> Vec<(u64, u32)> {
    recording.reads.iter().map(|read| (read.start, read.pages)).collect()
}

#[test]
fn what_recurs_is_merged_in_the_order_of_the_fullest() {
    // Pages 0 to 3 are in three, 8 in two, 9 in one, 12 in two but not in the first, which is as full as the last.
    let all =
        [ranges(&[(8, 2), (0, 4), (0, 1)]), ranges(&[(12, 1), (2, 2), (0, 2)]), ranges(&[(0, 4), (12, 1), (8, 1)])];
    let merged = merge(&all, 0.5).unwrap();
    assert_eq!(ranges_of(&merged), [(8, 1), (0, 4), (12, 1), (0, 1)]);
    assert_eq!((merged.about.recordings, merged.files.len(), merged.processes.len()), (3, 1, 2));
    assert_eq!(ranges_of(&merge(&all, 1.0).unwrap()), [(0, 4), (0, 1)]);
    // Merged again with one more, it counts as three.
    assert_eq!(ranges_of(&merge(&[merged.clone(), ranges(&[(9, 1)])], 0.75).unwrap()), ranges_of(&merged));
    // Page 17 is the last of 70,000 bytes.
    assert_eq!(ranges_of(&merge(&[ranges(&[(16, 9)])], 0.1).unwrap()), [(16, 2)]);
    for (share, problem) in [(0.0, "share: is 0"), (1.5, "share: is 1.5"), (1.0, "no page is in 2 of the 2 recordings")]
    {
        let text = merge(&[ranges(&[(1, 1)]), ranges(&[(2, 1)])], share).unwrap_err().to_string();
        assert!(text.contains(problem), "{text}");
    }
}

#[test]
fn stale_files_are_found() {
    let folder = scratch("hints-stale");
    let path = common::file(&folder, "f", "0123");
    let mut recording = ranges(&[(0, 2), (1, 1)]);
    recording.files[0].path.clone_from(&path);
    let found = |recording: &Recording| {
        check(recording).iter().map(|stale| (stale.file, stale.change, stale.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(found(&recording), [(0, Change::Replaced, 3 * 4096)]);
    let is = std::fs::metadata(&path).unwrap();
    use std::os::unix::fs::MetadataExt;
    let file = &mut recording.files[0];
    (file.major, file.minor) =
        ((is.dev() >> 8) as u32 & 0xfff, (is.dev() & 0xff | is.dev() >> 12 & 0xffff_ff00) as u32);
    (file.inode, file.size_bytes) = (is.ino(), 5);
    assert_eq!(found(&recording), [(0, Change::Size, 3 * 4096)]);
    recording.files[0].size_bytes = 4;
    assert_eq!(found(&recording), [(0, Change::Time, 3 * 4096)]);
    recording.files[0].mtime_ns = is.mtime() * 1_000_000_000 + is.mtime_nsec();
    assert_eq!(found(&recording), []);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found(&recording), [(0, Change::Missing, 3 * 4096)]);
}
