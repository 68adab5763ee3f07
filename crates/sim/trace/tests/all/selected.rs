//! Selections of requests by file and process: compared with a naive filter, and error texts.

use std::path::Path;

use headstart_trace::{open, selected, Record, Selection, TraceError};
use proptest::prelude::*;

use crate::common::{drain, file, scratch};

const HEADER: &str = "time_us,pid,comm,path,offset,size,dur_us\n";

fn selection(paths: &[&str], pids: &[u32], processes: &[&str]) -> Selection {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Selection { paths: texts(paths), pids: pids.to_vec(), processes: texts(processes) }
}

fn read(path: &Path, selection: &Selection) -> Result<Vec<Record>, TraceError> {
    drain(&mut *selected(open(path, "auto")?, selection)?)
}

/// Offsets of the selected requests.
fn offsets(path: &Path, selection: &Selection) -> Vec<u64> {
    read(path, selection).expect("requests").iter().map(|record| record.offset).collect()
}

#[test]
fn files_processes_and_both() {
    let directory = scratch("selected");
    let lines =
        "0,7,python3,/usr/lib/a.py,0,10,1\n1,7,python3,/data/x.parquet,1,10,1\n2,8,worker,/data/y.parquet,2,10,1\n\
                 3,8,worker,/data/notes,3,10,1\n";
    let path = file(&directory, "t.csv", format!("{HEADER}{lines}"));
    assert_eq!(offsets(&path, &selection(&["*.parquet"], &[], &[])), [1, 2]);
    assert_eq!(offsets(&path, &selection(&["notes", "/usr/*"], &[], &[])), [0, 3]);
    assert_eq!(offsets(&path, &selection(&[], &[8], &[])), [2, 3]);
    assert_eq!(offsets(&path, &selection(&[], &[], &["py*"])), [0, 1]);
    assert_eq!(offsets(&path, &selection(&["*.parquet"], &[], &["worker"])), [2]);
    // Times count from the first selected request.
    let taken = read(&path, &selection(&[], &[8], &[])).unwrap();
    assert_eq!(taken.iter().map(|record| record.time.0).collect::<Vec<_>>(), [0, 1_000]);
    let mut reader = selected(open(&path, "auto").unwrap(), &selection(&["*.parquet"], &[], &[])).unwrap();
    assert_eq!(drain(&mut *reader).unwrap().len(), 2);
    // The table and the note cover the selected requests.
    let paths: Vec<&str> = reader.files().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["/data/x.parquet", "/data/y.parquet"]);
    assert!(reader.note().unwrap().ends_with("selected: 2 of 4 requests"));
}

#[test]
fn a_process_that_changes_its_name_is_told_by_each_request() {
    let directory = scratch("selected_names");
    let lines = "0,7,bash,/a,0,10,1\n1,7,python3,/a,1,10,1\n2,7,bash,/a,2,10,1\n";
    let path = file(&directory, "t.csv", format!("{HEADER}{lines}"));
    assert_eq!(offsets(&path, &selection(&[], &[], &["python3"])), [1]);
    assert_eq!(offsets(&path, &selection(&[], &[], &["bash"])), [0, 2]);
}

/// blkparse, ftrace and perf script print the name at the end of the line, strace -Y behind the process id.
#[test]
fn names_of_processes_as_each_tool_prints_them() {
    let directory = scratch("selected_tools");
    let blkparse = "8,0 0 1 0.1 7 Q R 0 + 8 [cat]\n8,0 0 2 0.2 0 C R 0 + 8 [0]\n8,0 1 3 0.3 8 Q R 8 + 8 [my app [2]]\n8,0 1 4 0.4 0 C R 8 + 8 [0]\n";
    let ftrace = "# tracer: nop\n cat-7 [000] ..... 1.1: block_bio_queue: 8,0 R 0 + 8 [cat]\n \
        my app [2]-8 [001] ..... 1.2: block_bio_queue: 8,0 R 8 + 8 [my app [2]]\n";
    let strace = "7<cat> 1.1 pread64(3</a>, \"\"..., 4096, 0) = 4096 <0.1>\n8<my app [2]> 1.2 pread64(3</a>, \"\"..., 4096, 4096) = 4096 <0.1>\n";
    for (name, text) in [("blkparse", blkparse), ("ftrace", ftrace), ("strace", strace)] {
        let path = file(&directory, name, text);
        assert_eq!(open(&path, "auto").unwrap().format().unwrap().0, name);
        assert_eq!(offsets(&path, &selection(&[], &[], &["cat"])), [0], "{name}");
        assert_eq!(offsets(&path, &selection(&[], &[], &["my*"])), [4096], "{name}");
    }
}

#[test]
fn what_fits_nothing_lists_what_there_is() {
    let directory = scratch("selected_nothing");
    let lines = "0,7,python3,/b,0,10,1\n1,8,worker,/a,1,10,1\n2,8,worker,/a,2,10,1\n";
    let path = file(&directory, "t.csv", format!("{HEADER}{lines}"));
    let error = |selection: &Selection| read(&path, selection).unwrap_err().to_string();
    assert_eq!(error(&selection(&["*.bin"], &[], &[])), "path: \"*.bin\" matches none of 3 requests; allowed: /a, /b");
    assert_eq!(
        error(&selection(&[], &[9], &[])),
        "pid: 9 matches none of 3 requests; allowed: 8 (worker), 7 (python3)"
    );
    assert_eq!(
        error(&selection(&[], &[], &["cat"])),
        "process: \"cat\" matches none of 3 requests; allowed: worker, python3"
    );
    let both = error(&selection(&["/b"], &[8], &[]));
    assert!(both.starts_with("path: \"/b\", together with the other conditions, matches none"), "{both}");
    let bare = file(&directory, "bare.csv", "offset,size\n0,10\n");
    for (selection, key) in [
        (selection(&["*"], &[], &[]), "path: the trace does not distinguish files"),
        (selection(&[], &[1], &[]), "pid: the trace carries no processes"),
        (selection(&[], &[], &["a"]), "process: the trace carries no processes"),
    ] {
        let error = read(&bare, &selection).unwrap_err().to_string();
        assert!(error.starts_with(key) && error.contains("; allowed: "), "{error}");
    }
}

proptest! {
    /// Any selection, with or without batches, gives the same as a filter over all records.
    #[test]
    fn as_a_filter_over_all_records(
        requests in proptest::collection::vec((0u32..4, 0usize..3, 0u64..1000), 1..60),
        pids in proptest::collection::vec(0u32..5, 0..3),
        paths in proptest::collection::vec(0usize..4, 0..3),
    ) {
        let directory = scratch("selected_any");
        let names = ["/a/one", "/a/two.bin", "/b/three.bin"];
        let globs = ["/a/*", "*.bin", "three*", "none"];
        let takes = [[0, 1].as_slice(), &[1, 2], &[2], &[]];
        let lines: String =
            requests.iter().enumerate().map(|(at, (pid, name, offset))| format!("{at},{pid},c,{},{offset},1,1\n", names[*name])).collect();
        let path = file(&directory, "t.csv", format!("{HEADER}{lines}"));
        let chosen: Vec<&str> = paths.iter().map(|at| globs[*at]).collect();
        let kept: Vec<u64> = requests
            .iter()
            .filter(|(pid, name, _)| (pids.is_empty() || pids.contains(pid)) && (paths.is_empty() || paths.iter().any(|at| takes[*at].contains(name))))
            .map(|(_, _, offset)| *offset)
            .collect();
        let found = read(&path, &selection(&chosen, &pids, &[]));
        match found {
            Ok(records) => prop_assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), kept),
            Err(error) => prop_assert!(kept.is_empty(), "{}", error),
        }
    }
}
