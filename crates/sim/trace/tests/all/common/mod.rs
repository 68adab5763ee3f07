//! Shared by the integration tests: scratch files, compression, reading to the end, the sample traces.

#![allow(dead_code, missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};

use headstart_trace::{Record, RecordReader, TraceError};

/// A separate directory for each test, emptied at its start.
pub fn scratch(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Writes `content` to `name` in the test's directory and returns the path.
pub fn file(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

pub fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

pub fn xz(content: &[u8]) -> Vec<u8> {
    let mut out = liblzma::write::XzEncoder::new(Vec::new(), 6);
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

pub fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(content, 0).unwrap()
}

/// All records of a reader.
pub fn drain(reader: &mut dyn RecordReader) -> Result<Vec<Record>, TraceError> {
    let (mut batch, mut all) = (Vec::new(), Vec::new());
    while reader.read(&mut batch)? {
        assert!(!batch.is_empty() && batch.len() <= headstart_trace::BATCH);
        all.extend_from_slice(&batch);
    }
    assert!(batch.is_empty(), "the end comes without records");
    Ok(all)
}

/// All records of a file.
pub fn records(path: &Path, format: &str) -> Result<Vec<Record>, TraceError> {
    drain(&mut *headstart_trace::open(path, format)?)
}

/// One record of the format oracleGeneral.
pub fn oracle(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
}

/// One record of the format vscsi, version 1.
pub fn vscsi_1(serial: u32, command: u16, bytes: u32, sector: u64, time_us: u64) -> Vec<u8> {
    let words = [serial.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat();
    [&words[..], &command.to_le_bytes(), &0x100u16.to_le_bytes(), &sector.to_le_bytes(), &time_us.to_le_bytes()]
        .concat()
}

/// One record of the format vscsi, version 2.
pub fn vscsi_2(serial: u32, command: u16, bytes: u32, sector: u64, times_us: [u64; 2]) -> Vec<u8> {
    let words = [serial.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat();
    let times = times_us.map(u64::to_le_bytes).concat();
    [&command.to_le_bytes()[..], &0x200u16.to_le_bytes(), &words, &sector.to_le_bytes(), &times].concat()
}

/// A file of the sample traces next to the checkout; prints a note if it is missing.
pub fn sample(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: no sample trace {}", path.display());
    None
}

/// A small recording: two processes, a file, a directory and a device, hits and misses, pages read ahead.
pub fn recording() -> headstart_trace::hints::Recording {
    use headstart_trace::hints::{About, FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording};
    let file = |kind, path: &str, inode, size_bytes| RecordedFile {
        kind,
        path: path.into(),
        major: 254,
        minor: 0,
        inode,
        size_bytes,
        mtime_ns: -5,
    };
    let read = |time_ns, wait_ns, (start, pages), (process, file), kind, hit| Read {
        time_ns,
        wait_ns,
        start,
        pages,
        process,
        file,
        kind,
        hit,
    };
    Recording {
        about: About {
            command: ["cat", "/a b"].map(str::to_owned).to_vec(),
            folder: "/".into(),
            recorded_at_s: 1_700_000_000,
            elapsed_ns: 9_000_000,
            exit_status: 0,
            kernel: "6.18".into(),
            page_bytes: 4096,
            cold: true,
            lost_events: 0,
            recordings: 1,
        },
        processes: [(70, "sh"), (71, "cat")].map(|(pid, name)| RecordedProcess { pid, name: name.into() }).to_vec(),
        files: vec![
            file(FileKind::Regular, "/a b", 12, 70_000),
            file(FileKind::Device, "/dev/vda", 0, 1 << 38),
            file(FileKind::Other, "", 2, 4096),
        ],
        reads: vec![
            read(1_000, 500_000, (1 << 24, 1), (0, 1), ReadKind::Read, false),
            read(600_000, 200_000, (0, 4), (1, 0), ReadKind::Read, false),
            read(900_000, 0, (4, 12), (1, 0), ReadKind::ReadAhead, false),
            read(900_000, 0, (2, 1), (1, 0), ReadKind::Fault, true),
            read(950_000, 0, (0, 16), (1, 0), ReadKind::Map, true),
            read(1_000_000, 7, (0, 1), (0, 2), ReadKind::Read, false),
        ],
    }
}
