//! Recordings: what is written is read again, what is damaged is refused, and as a trace they are their references.

mod common;

use common::{drain, recording, scratch};
use headstart_trace::hints::{FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording};
use headstart_trace::{info, open, Carries};
use proptest::prelude::*;

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
        Carries { time: true, duration: true, processes: true, files: true, addresses: true, ..Carries::default() };
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
    assert_eq!((found.requests, found.distinct_blocks, found.note), (5, 18, None));
}

#[test]
fn lost_events_are_a_note_and_no_references_an_error() {
    let path = scratch("hints-lost").join("x.hints");
    let mut recording = recording();
    recording.about.lost_events = 7;
    recording.write(&path).unwrap();
    let note = "the kernel has dropped 7 events while recording: reads may be missing";
    assert_eq!(open(&path, "auto").unwrap().note().as_deref(), Some(note));
    recording.reads.retain(|read| read.kind == ReadKind::ReadAhead);
    recording.processes.push(RecordedProcess { pid: 1, name: String::new() });
    recording.write(&path).unwrap();
    assert_eq!(Recording::read(&path).unwrap(), recording);
    let text = open(&path, "auto").err().expect("there is nothing to read").to_string();
    assert_eq!(text, format!("{}: the trace has no records; allowed: one or more", path.display()));
}

/// Every prefix of a recording, changes and bytes behind it are refused on one line.
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
    assert_eq!(tail(refused(b"PNG")), "is no recording; allowed: a recording of `headstart record`");
    assert_eq!(tail(refused(b"headstart-hints 9 {}\n")), "the version is 9; allowed: 1");
    let cut = &right[..right.len() - 5];
    assert_eq!(tail(refused(cut)), "is cut short; allowed: a recording of `headstart record`");
    let longer = [&right[..], b"x"].concat();
    assert_eq!(tail(refused(&longer)), "there are bytes behind the reads; allowed: a recording of `headstart record`");
}
