//! Conversion: what is written reads back, next accesses are right, and no partial output remains.

use std::collections::BTreeMap;
use std::path::Path;

use headstart_trace::{
    convert, generate, open, Carries, FileEntry, GeneratorContext, Record, RecordReader, TraceError,
};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::{drain, file, oracle, records, sample, scratch};

/// A reader of given records.
struct Given {
    carries: Carries,
    files: Vec<FileEntry>,
    records: Vec<Record>,
}

impl RecordReader for Given {
    fn carries(&self) -> Carries {
        self.carries
    }
    fn files(&self) -> &[FileEntry] {
        &self.files
    }
    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        into.extend(self.records.drain(..self.records.len().min(3)));
        Ok(!into.is_empty())
    }
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Any trace: the fields it carries, and matching records.
fn any_trace() -> impl Strategy<Value = (Carries, Vec<Record>)> {
    let record = (
        0..u64::MAX / 1000,
        any::<u32>(),
        any::<u32>(),
        0..1u64 << 62,
        1..1u64 << 62,
        any::<[u32; 2]>(),
        any::<bool>(),
    );
    (any::<[bool; 7]>(), proptest::collection::vec(record, 1..20)).prop_map(|(has, drawn)| {
        let [time, duration, think, processes, files, writes, objects] = has;
        let carries = Carries { time, duration, think, processes, files, writes, addresses: !objects, objects };
        let mut now = 0;
        let mut first = true;
        let records = drawn.into_iter().map(|(gap, dur, pause, offset, size, [pid, id], write)| {
            now += if std::mem::take(&mut first) { 0 } else { gap };
            Record {
                time: Nanos(if time { now } else { 0 }),
                duration: Nanos(if duration { dur.into() } else { 0 }),
                think: Nanos(if think { pause.into() } else { 0 }),
                offset,
                size,
                pid: if processes { pid } else { 0 },
                file: if files { id } else { 0 },
                write: writes && write,
                ..Record::default()
            }
        });
        (carries, records.collect())
    })
}

proptest! {
    #[test]
    fn csv_reads_back_as_it_was((carries, given) in any_trace(), suffix in 0usize..5) {
        let directory = scratch("csv_reads_back");
        let path = directory.join(["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.csv.zst"][suffix]);
        let files = if carries.files {
            vec![FileEntry { file: 4, size_bytes: 9, path: "/a,\"b\" c".to_owned() }, FileEntry { file: 1, size_bytes: 0, path: String::new() }]
        } else {
            Vec::new()
        };
        let mut reader = Given { carries, files: files.clone(), records: given.clone() };
        let summary = convert(&mut reader, "csv", &path, 8192).unwrap();
        prop_assert_eq!((summary.requests, summary.records), (given.len() as u64, given.len() as u64));
        let mut back = open(&path, "auto").unwrap();
        prop_assert_eq!(back.carries(), carries);
        prop_assert_eq!(back.files(), &files[..]);
        prop_assert_eq!(drain(&mut *back).unwrap(), given);
    }

    #[test]
    fn next_accesses_are_those_of_a_plain_search(ids in proptest::collection::vec(0u64..8, 1..60)) {
        let directory = scratch("next_accesses");
        let path = directory.join("t.oracleGeneral");
        let records: Vec<Record> = ids.iter().map(|&offset| Record { offset, size: 10, ..Record::default() }).collect();
        let mut reader = Given { carries: Carries { objects: true, ..Carries::NOTHING }, files: Vec::new(), records };
        convert(&mut reader, "oracleGeneral", &path, 8192).unwrap();
        let expected: Vec<u8> = (0..ids.len()).flat_map(|at| {
            let later = ids[at + 1..].iter().position(|id| *id == ids[at]);
            oracle(0, ids[at], 10, later.map_or(-1, |distance| (at + 1 + distance + 1) as i64))
        }).collect();
        prop_assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn a_recorded_trace_converts_to_the_very_same_bytes() {
    let Some(path) = sample("programs/cscope1.csv.xz") else { return };
    let directory = scratch("same_bytes");
    let target = directory.join("c.csv");
    let summary = convert(&mut *open(&path, "auto").unwrap(), "csv", &target, 8192).unwrap();
    let mut original = Vec::new();
    std::io::Read::read_to_end(&mut liblzma::read::XzDecoder::new(std::fs::File::open(&path).unwrap()), &mut original)
        .unwrap();
    assert!(std::fs::read(&target).unwrap() == original);
    assert_eq!(summary.file_table.as_deref(), Some(directory.join("c.files.csv").as_path()));
    assert_eq!(open(&target, "auto").unwrap().files(), open(&path, "auto").unwrap().files());
}

#[test]
fn an_oracle_general_trace_converts_to_itself() {
    let Some(path) = sample("third-party/blocks/cloudPhysicsIO.oracleGeneral.bin") else { return };
    let target = scratch("to_itself").join("c.oracleGeneral.zst");
    convert(&mut *open(&path, "auto").unwrap(), "oracleGeneral", &target, 1).unwrap();
    let written = zstd::stream::decode_all(std::fs::File::open(&target).unwrap()).unwrap();
    let original = std::fs::read(&path).unwrap();
    // Times count from the first record; everything else, including the next accesses, is byte for byte the same.
    let rest = |content: &[u8]| content.chunks_exact(24).flat_map(|record| record[4..].to_vec()).collect::<Vec<u8>>();
    assert!(rest(&written) == rest(&original));
    assert_eq!(records(&target, "auto").unwrap(), records(&path, "auto").unwrap());
}

#[test]
fn requests_of_several_blocks_and_files_become_one_record_a_block() {
    let directory = scratch("several_blocks");
    let path = file(&directory, "t.csv", "time,op,pid,file,offset,size,dur_us\n0,R,1,0,100,8192,1\n2.5,W,1,1,0,1,1\n");
    let target = directory.join("t.bin");
    let summary = convert(&mut *open(&path, "auto").unwrap(), "oracleGeneral", &target, 8192).unwrap();
    assert_eq!((summary.requests, summary.records), (2, 3));
    assert!(summary.lost.contains(&"the distinction of reads and writes") && !summary.lost.contains(&"think times"));
    let expected = [oracle(0, 0, 8192, -1), oracle(0, 1, 8192, -1), oracle(2, 1 << 40, 8192, -1)].concat();
    assert_eq!(std::fs::read(&target).unwrap(), expected);
}

#[test]
fn long_traces_are_completed_across_chunks() {
    let target = scratch("across_chunks").join("t.bin");
    let keys = "requests = 150000\nblocks = 70000".parse().unwrap();
    let context = GeneratorContext { seed: 3, block_bytes: 4096 };
    convert(&mut *generate("random", keys, &context).unwrap(), "oracleGeneral", &target, 4096).unwrap();
    let content = std::fs::read(&target).unwrap();
    let mut later: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for (index, record) in content.chunks_exact(24).enumerate().rev() {
        let next = later.insert(record[4..12].to_vec(), index as i64 + 1).unwrap_or(-1);
        assert_eq!(record[16..], next.to_le_bytes());
    }
}

#[test]
fn a_replaced_file_keeps_its_mode_and_stale_files_are_in_nobodys_way() {
    use std::os::unix::fs::PermissionsExt;
    let directory = scratch("mode");
    let path = file(&directory, "t.trace", "1\n2\n");
    let target = file(&directory, "out.csv", "old");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).unwrap();
    // As left by killed runs with the same process id.
    file(&directory, &format!(".out.csv.{}.tmp", std::process::id()), "stale");
    convert(&mut *open(&path, "lirs").unwrap(), "csv", &target, 8192).unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(&directory).len(), 3);
    // Stale files are named if the file cannot be written.
    let folder = directory.join("sub");
    std::fs::create_dir_all(folder.join("out.csv")).unwrap();
    file(&folder, ".out.csv.0123456789abcdef.tmp", "stale");
    let error = convert(&mut *open(&path, "lirs").unwrap(), "csv", &folder.join("out.csv"), 1).unwrap_err().to_string();
    assert!(error.contains("killed runs may have left") && error.contains(".out.csv.0123456789abcdef.tmp"));
    assert_eq!(names(&folder).len(), 2, "its own temporary file is gone");
}

#[test]
fn a_failing_conversion_leaves_nothing_and_keeps_what_was_there() {
    let directory = scratch("leaves_nothing");
    let path = file(&directory, "t.trace", "1\n2\nx\n");
    let target = file(&directory, "out.csv", "precious");
    for format in ["csv", "oracleGeneral"] {
        let error = convert(&mut *open(&path, "lirs").unwrap(), format, &target, 8192).unwrap_err().to_string();
        assert!(error.contains("t.trace, line 3"), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        assert_eq!(names(&directory), ["out.csv", "t.trace"]);
    }
    let error = convert(&mut *open(&path, "lirs").unwrap(), "parquet", &target, 8192).unwrap_err().to_string();
    assert_eq!(error, "to: unknown target format \"parquet\"; allowed: csv, oracleGeneral");
    let nowhere = directory.join("no/such/out.csv");
    assert!(matches!(convert(&mut *open(&path, "lirs").unwrap(), "csv", &nowhere, 1), Err(TraceError::Io { .. })));
}

#[test]
fn values_that_do_not_fit_the_target_are_errors() {
    let directory = scratch("do_not_fit");
    let refuse = |content: &str, block_bytes: u64| {
        let path = file(&directory, "t.csv", content);
        let result = convert(&mut *open(&path, "csv").unwrap(), "oracleGeneral", &directory.join("o"), block_bytes);
        assert_eq!(names(&directory), ["t.csv"]);
        result.unwrap_err().to_string()
    };
    assert!(refuse("id,size\n1,5000000000\n", 1).contains("size 5000000000 is too large"));
    assert!(refuse("time,id\n0,1\n4294967296,1\n", 1).contains("record 2: time 4294967296 s is too large"));
    assert!(refuse("file,offset,size\n1,1125899906842624,1\n", 512).contains("allowed: blocks below 2^40"));
    assert!(refuse("offset,size\n0,1125899906842624\n", 512).contains("t.csv, line 2: a request of 1024TiB is"));
    assert!(refuse("offset,size\n0,1\n", 0).starts_with("block_size: is 0"));
}

#[test]
fn a_file_table_of_another_trace_is_not_adopted() {
    let directory = scratch("not_adopted");
    let path = file(&directory, "t.csv", "file,offset,size\n1,1,1\n");
    file(&directory, "o.files.csv", "file,max_offset,disk_size,path\n1,2,3,/a\n");
    let result = convert(&mut *open(&path, "csv").unwrap(), "csv", &directory.join("o.csv"), 1);
    assert!(result.unwrap_err().to_string().contains("belongs to another trace"));
}
