//! Logs of system calls: excerpts of the output of strace 6.1 and perf 6.1, with the offsets of the calls.

use headstart_trace::{open, FileEntry, Record, RecordReader};

use crate::common;
use crate::common::{drain, file, records, scratch};

/// (file, offset, size, write) of each record.
type Seen = (u32, u64, u64, bool);

fn seen(record: &Record) -> Seen {
    (record.file, record.offset, record.size, record.write)
}

/// The records of a log, and the reader at its end.
fn read(test: &str, content: &str) -> (Vec<Record>, Box<dyn RecordReader>) {
    let path = file(&scratch(test), "log", content);
    let mut reader = open(&path, "auto").unwrap();
    (drain(&mut *reader).unwrap(), reader)
}

fn requests(test: &str, content: &str) -> Vec<Seen> {
    read(test, content).0.iter().map(seen).collect()
}

/// A Python script that reads, seeks, and appends.
const SCRIPT: &str = r#"25416 1795407136.618000 execve("/usr/bin/python3", ["python3", "app.py"], 0x7ffdf4012028 /* 35 vars */) = 0 <0.000902>
25416 1795407136.620474 openat(AT_FDCWD</tmp/rec>, "data.bin", O_RDONLY|O_CLOEXEC) = 3</tmp/rec/data.bin> <0.000014>
25416 1795407136.620532 newfstatat(3</tmp/rec/data.bin>, "", {st_mode=S_IFREG|0644, st_size=300000, ...}, AT_EMPTY_PATH) = 0 <0.000008>
25416 1795407136.620581 ioctl(3</tmp/rec/data.bin>, TCGETS, 0x7fff206f8490) = -1 ENOTTY (Inappropriate ioctl for device) <0.000010>
25416 1795407136.620672 read(3</tmp/rec/data.bin>, "]\357^k)\264#4\"), 9) = 9 <"..., 4096) = 4096 <0.000011>
25416 1795407136.620741 lseek(3</tmp/rec/data.bin>, 100000, SEEK_SET) = 100000 <0.000006>
25416 1795407136.620770 read(3</tmp/rec/data.bin>, "\226\240h\201"..., 16384) = 16384 <0.000014>
25416 1795407136.620807 read(3</tmp/rec/data.bin>, "\214\351#\330"..., 4096) = 4096 <0.000007>
25416 1795407136.620914 pread64(3</tmp/rec/data.bin>, "\2752\330\6"..., 4096, 65536) = 4096 <0.000008>
25416 1795407136.620955 preadv2(3</tmp/rec/data.bin>, [{iov_base="\273{Z\355"..., iov_len=100}, {iov_base="~\371"..., iov_len=50}], 2, 8192, 0) = 150 <0.000010>
25416 1795407136.621076 lseek(3</tmp/rec/data.bin>, -100, SEEK_END) = 299900 <0.000010>
25416 1795407136.621121 read(3</tmp/rec/data.bin>, "cBR\300"..., 4096) = 100 <0.000007>
25416 1795407136.621154 read(3</tmp/rec/data.bin>, "", 4096) = 0 <0.000006>
25416 1795407136.621183 fcntl(3</tmp/rec/data.bin>, F_DUPFD_CLOEXEC, 0) = 4</tmp/rec/data.bin> <0.000006>
25416 1795407136.621216 lseek(4</tmp/rec/data.bin>, 0, SEEK_SET) = 0 <0.000006>
25416 1795407136.621243 read(3</tmp/rec/data.bin>, "]\357^k", 10) = 10 <0.000007>
25416 1795407136.621300 openat(AT_FDCWD</tmp/rec>, "data.bin", O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666) = 5</tmp/rec/data.bin> <0.000014>
25416 1795407136.621400 write(5</tmp/rec/data.bin>, "tail", 4) = 4 <0.000020>
25416 1795407136.621500 write(1<pipe:[123]>, "done\n", 5) = 5 <0.000020>
25416 1795407136.621600 read(6</proc/self/stat>, "1 (", 99) = 3 <0.000020>
25416 1795407136.621700 mmap(NULL, 300000, PROT_READ, MAP_SHARED, 3</tmp/rec/data.bin>, 0) = 0x7fa921ec3000 <0.000010>
25416 1795407136.621800 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
25416 1795407136.621900 exit_group(0)     = ?
25416 1795407136.622000 +++ exited with 0 +++
"#;

/// The reads and writes of the script.
const SCRIPT_REQUESTS: [Seen; 8] = [
    (0, 0, 4096, false),
    (0, 100_000, 16_384, false),
    (0, 116_384, 4096, false),
    (0, 65_536, 4096, false),
    (0, 8192, 150, false),
    (0, 299_900, 100, false),
    (0, 0, 10, false),
    (0, 300_000, 4, true),
];

#[test]
fn a_script_of_python_with_all_that_strace_can_print() {
    let (records, reader) = read("strace_script", SCRIPT);
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    // From the first read on, 620,672 us after the second; the lseek and the next read are 98 us later.
    assert_eq!([records[0].time.0, records[1].time.0, records[1].duration.0], [0, 98_000, 14_000]);
    assert!(records.iter().all(|record| record.pid == 25_416));
    let carries = reader.carries();
    assert!(carries.time && carries.duration && carries.processes && carries.files && !carries.think);
    let entry = FileEntry { file: 0, size_bytes: 300_004, path: "/tmp/rec/data.bin".to_owned() };
    assert_eq!((reader.files(), reader.skipped()), (&[entry][..], 1));
    let note = reader.note().unwrap();
    assert_eq!(
        note,
        "skipped calls: 1 on sockets, pipes, terminals and other streams, 1 on /proc and /sys; mappings of files: 1; traces \
         of system calls do not show reads through mappings: headstart record does, cached or not"
    );
}

/// The same log as printed by strace with other options.
fn with_options(change: impl Fn(&str) -> String) -> String {
    SCRIPT.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn the_options_of_strace_change_what_is_carried_and_not_what_is_read() {
    let strip_duration = |line: &str| match line.rsplit_once(" <0.") {
        Some((line, _)) => line.to_owned(),
        None => line.to_owned(),
    };
    let rest = |line: &str| line.splitn(3, ' ').nth(2).unwrap().to_owned();
    let carried = |reader: &dyn RecordReader| (reader.carries().time, reader.carries().duration);
    let (records, reader) = read("strace_no_t", &with_options(strip_duration));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    assert_eq!(carried(&*reader), (true, false));
    let (records, reader) = read("strace_no_time", &with_options(|line| strip_duration(&rest(line))));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    assert_eq!((carried(&*reader), records[3].time.0, records[0].pid), ((false, false), 0, 0));
    // -tt, past midnight from the fifth line of reads on.
    let clock = |line: &str| {
        let us: u64 = line[17..23].parse().unwrap();
        let clock = if us < 620_900 { format!("23:59:59.{us}") } else { format!("00:00:00.{us}") };
        format!("[pid 25416] {clock} {}", rest(line))
    };
    let (records, _) = read("strace_tt", &with_options(clock));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    let second_ns = 1_000_000_000;
    assert_eq!([records[2].time.0, records[3].time.0], [135_000, second_ns + 242_000]);
    let (records, reader) = read("strace_t", &with_options(|line| format!("23:59:59 {}", rest(line))));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    assert!(reader.note().unwrap().starts_with("times are whole seconds (strace -t): -ttt gives microseconds; "));
    // -r counts from the previous line.
    let (records, _) = read("strace_r", &with_options(|line| format!("     0.000100 {}", rest(line))));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), SCRIPT_REQUESTS);
    assert_eq!([records[0].time.0, records[1].time.0], [0, 200_000]);
}

#[test]
fn children_inherit_descriptors_and_threads_share_them() {
    let log = r#"10 1.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>
10 1.000100 read(3, "x"..., 100) = 100 <0.000010>
10 1.000200 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>
11 1.000300 read(3,  <unfinished ...>
10 1.000350 <... clone resumed>, child_tidptr=0x7f15faccca10) = 11 <0.000150>
11 1.000400 <... read resumed>"x"..., 50) = 50 <0.000100>
10 1.000500 read(3, "x"..., 25) = 25 <0.000010>
11 1.000600 close(3) = 0 <0.000010>
11 1.000700 openat(AT_FDCWD, "/b", O_RDONLY) = 3 <0.000010>
11 1.000800 read(3, "y"..., 7) = 7 <0.000010>
10 1.000900 read(3, "x"..., 5) = 5 <0.000010>
10 1.001000 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, child_tid=0x7f}, 88) = 12 <0.000010>
12 1.001100 openat(AT_FDCWD, "/c", O_RDONLY) = 4 <0.000010>
10 1.001200 read(4, "z"..., 3) = 3 <0.000010>
11 1.001300 +++ exited with 0 +++
"#;
    let expected =
        [(0, 0, 100), (0, 100, 50), (0, 150, 25), (1, 0, 7), (0, 175, 5), (2, 0, 3)].map(|(f, o, s)| (f, o, s, false));
    let (records, _) = read("strace_children", &log.replace(" 1.00", " 1700000001.00"));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    // A call in two pieces begins with the first piece.
    assert_eq!((records[1].time.0, records[1].duration.0, records[1].pid), (200_000, 100_000, 11));

    // On stderr, the first process has no id until others begin.
    let log = r#"openat(AT_FDCWD, "/a", O_RDONLY) = 3
read(3, "x"..., 100) = 100
clone(child_stack=NULL, flags=SIGCHLDstrace: Process 11 attached
 <unfinished ...>
[pid    11] read(3, "x"..., 50) = 50
[pid    10] read(3, "x"..., 25) = 25
hello from the program
[pid    11] +++ exited with 0 +++
read(3, "x"..., 5) = 5
"#;
    let expected = [(0, 0, 100), (0, 100, 50), (0, 150, 25), (0, 175, 5)].map(|(f, o, s)| (f, o, s, false));
    let well_printed = log.replace(
        "clone(child_stack=NULL, flags=SIGCHLDstrace: Process 11 attached\n <unfinished ...>\n",
        "clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\nstrace: Process 11 attached\n",
    );
    let (records, reader) = read("strace_stderr", &well_printed);
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!(records.iter().map(|record| record.pid).collect::<Vec<_>>(), [0, 11, 0, 0]);
    assert!(reader.note().unwrap().ends_with("skipped lines that are not system calls: 1"));
}

#[test]
fn descriptors_that_were_open_before_count_from_their_first_use_or_are_left_out() {
    let named = "read(3</a>, \"\"..., 5) = 5\nread(3</a>, \"\"..., 5) = 5\nread(4<socket:[7]>, \"\", 5) = 5\n";
    let (records, reader) = read("strace_before", named);
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), [(0, 0, 5, false), (0, 5, 5, false)]);
    assert!(reader.note().unwrap().contains("descriptors open before the trace began: 1; their offsets count from"));
    let unnamed = "read(3, \"\"..., 5) = 5\nopenat(AT_FDCWD, \"/a\", O_RDONLY) = 4\nread(4, \"\"..., 5) = 5\n";
    let (records, reader) = read("strace_unnamed", unnamed);
    assert_eq!(records.len(), 1);
    assert!(reader
        .note()
        .unwrap()
        .contains("skipped calls: 1 on descriptors whose opening was not traced (strace -y names them)"));
    let path = file(&scratch("strace_nothing"), "log", "close(3) = 0\nclose(4) = 0\n");
    let error = common::records(&path, "auto").unwrap_err().to_string();
    assert!(error.contains(": the trace has no records: no call in it reads or writes a file"), "{error}");
}

#[test]
fn files_below_an_open_directory_are_told_apart() {
    let log = r#"openat(AT_FDCWD, "/x", O_RDONLY|O_DIRECTORY) = 3
openat(AT_FDCWD, "/y", O_RDONLY|O_DIRECTORY) = 4
openat(3, "f", O_RDONLY) = 5
openat(4, "f", O_RDONLY) = 6
read(5, ""..., 5) = 5
read(6, ""..., 5) = 5
sendfile(1, 5, NULL, 100) = 10
sendfile(1, 5, [50] => [60], 10) = 10
"#;
    let (records, reader) = read("strace_below", log);
    let paths: Vec<&str> = records.iter().map(|record| reader.files()[record.file as usize].path.as_str()).collect();
    assert_eq!(paths, ["/x/f", "/y/f", "/x/f", "/x/f"]);
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [0, 0, 5, 50]);
}

#[test]
fn perf_trace_names_arguments_and_leaves_out_zeros() {
    let log = "         ? (         ): python3/28874  ... [continued]: execve())                                           = 0
     0.000 ( 0.025 ms): python3/28874 openat(dfd: CWD, filename: 0x21f906f0, flags: RDONLY|CLOEXEC)         = -1 ENOENT (No such file or directory)
    65.000 ( 0.025 ms): python3/28874 openat(dfd: CWD, filename: 0x21f906f0, flags: RDONLY|CLOEXEC)         = 4
    77.805 ( 0.024 ms): python3/28874 read(fd: 4</tmp/rec/data.bin>, buf: 0x55f8e7fba1e0, count: 4096)      = 4096
    77.919 ( 0.012 ms): python3/28874 lseek(fd: 4</tmp/rec/data.bin>, offset: 100000, whence: SET)          = 100000
    77.953 ( 0.024 ms): python3/28874 read(fd: 4</tmp/rec/data.bin>, buf: 0x55f8e7fba1e0, count: 16384)     = 16384
    78.110 ( 0.031 ms): python3/28874 pread64(fd: 4</tmp/rec/data.bin>, buf: 0x55f8e7fb05e0, count: 4096, pos: 65536) = 4096
    78.168 ( 0.076 ms): python3/28874 preadv2(fd: 4, vec: 0x7f473e881310, vlen: 2, pos_l: 8192)             = 150
    78.378 ( 0.012 ms): python3/28874 fcntl(fd: 4</tmp/rec/data.bin>, cmd: DUPFD_CLOEXEC)                   = 5</tmp/rec/data.bin>
    78.425 ( 0.012 ms): python3/28874 lseek(fd: 5</tmp/rec/data.bin>, whence: SET)                          = 0
    78.467 ( 0.020 ms): python3/28874 read(fd: 4</tmp/rec/data.bin>, buf: 0x7f473e90fb30, count: 10)        = 10
    78.611 ( 0.156 ms): python3/28874 clone3(uargs: 0x7ffe21f90ea0, size: 88)                               = 28883
    79.000 (         ): my cat/28883 read(fd: 4</tmp/rec/data.bin>, buf: 0x7f473e90fb30, count: 10) ...
    79.100 ( 0.010 ms): python3/28874 write(fd: 1<pipe:[9]>, buf: 0x1, count: 4)                            = 4
    79.000 ( 0.200 ms): my cat/28883  ... [continued]: read())                                              = 10
    79.300 ( 0.010 ms): python3/28874 openat(dfd: CWD, filename: 0x21f906f0, flags: WRONLY|APPEND)          = 6
    79.400 ( 0.010 ms): python3/28874 write(fd: 6, buf: 0x1, count: 4)                                      = 4
";
    let (records, reader) = read("perf_script", log);
    let expected: Vec<Seen> =
        [(0, 0, 4096), (0, 100_000, 16_384), (0, 65_536, 4096), (0, 8192, 150), (0, 0, 10), (0, 10, 10)]
            .map(|(file, offset, size)| (file, offset, size, false))
            .into_iter()
            .chain([(1, 0, 4, true)])
            .collect();
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!((records[1].time.0, records[1].duration.0), (148_000, 24_000));
    assert_eq!((records[5].pid, records[5].duration.0), (28_883, 200_000));
    let paths: Vec<&str> = reader.files().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths[0], "/tmp/rec/data.bin");
    assert!(paths[1].starts_with("(file "));
    assert!(reader.note().unwrap().starts_with("perf trace reads paths late: some may be missing or wrong; strace -y"));
}

#[test]
fn wrong_numbers_name_the_line() {
    let error = |content: &str| {
        let path = file(&scratch("strace_wrong"), "log", content);
        records(&path, "strace").unwrap_err().to_string()
    };
    let too_far = error("pread64(3</a>, \"\", 9, 18446744073709551615) = 9\n");
    assert!(too_far.ends_with("log, line 1: the end of the request is too large; allowed: below 2^64"), "{too_far}");
    let late = error("1 99:00:00 read(3</a>, \"\", 9) = 9\n");
    assert!(late.contains("log, line 1: \"99:00:00\" in column time is not a time"), "{late}");
}

#[test]
fn a_clock_after_a_huge_time_does_not_overflow() {
    let log = "1 18446744073.700000 openat(AT_FDCWD, \"data\", O_RDONLY) = 3 <0.000010>\n\
        1 23:59:59.000000 read(3, \"\"..., 4096) = 4096 <0.000010>\n\
        1 23:59:59.500000 read(3, \"\"..., 4096) = 4096 <0.000010>\n";
    assert_eq!(requests("strace_huge", log), [(0, 0, 4096, false), (0, 4096, 4096, false)]);
}

#[test]
fn requests_helper_reads_a_log_without_times() {
    assert_eq!(requests("strace_plain", "read(0</a>, \"\"..., 8) = 8 <0.1>\n"), [(0, 0, 8, false)]);
}
