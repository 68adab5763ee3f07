//! System calls other than read and write that move data, and truncated lines of strace: made up from the manual pages
//! and strace's own tests.

use headstart_trace::{open, Record, RecordReader};

use crate::common::{drain, file, scratch};

/// (file, offset, size, write, process) of each record.
type Seen = (u32, u64, u64, bool, u32);

fn read(test: &str, content: &str) -> (Vec<Record>, Box<dyn RecordReader>) {
    let path = file(&scratch(test), "log", content);
    let mut reader = open(&path, "auto").unwrap();
    let all = drain(&mut *reader).unwrap();
    assert!(["strace", "perf-trace"].contains(&reader.format().unwrap().0));
    (all, reader)
}

fn seen(record: &Record) -> Seen {
    (record.file, record.offset, record.size, record.write, record.pid)
}

/// Two files, 3 for reading and 4 for writing, and a pipe.
const OPEN: &str = "7 1700000005.000001 openat(AT_FDCWD</d>, \"in\", O_RDONLY) = 3</d/in> <0.000001>\n\
    7 1700000005.000002 openat(AT_FDCWD</d>, \"out\", O_RDWR|O_CREAT, 0644) = 4</d/out> <0.000001>\n\
    7 1700000005.000003 pipe2([5<pipe:[8]>, 6<pipe:[8]>], 0) = 0 <0.000001>\n";

#[test]
fn one_call_reads_one_file_and_writes_another() {
    let (from, to) = (|offset, size| (0, offset, size, false, 7), |offset, size| (1, offset, size, true, 7));
    // Calls and their requests, followed by the offsets of both descriptors afterwards.
    let cases: &[(&str, &[Seen], (u64, u64))] = &[
        (
            "copy_file_range(3</d/in>, NULL, 4</d/out>, NULL, 9223372035781033984, 0) = 700",
            &[from(0, 700), to(0, 700)],
            (700, 700),
        ),
        ("copy_file_range(3</d/in>, [4096], 4</d/out>, NULL, 99, 0) = 99", &[from(4096, 99), to(0, 99)], (0, 99)),
        ("copy_file_range(3</d/in>, NULL, 4</d/out>, [8], 99, 0) = 99", &[from(0, 99), to(8, 99)], (99, 0)),
        ("copy_file_range(3</d/in>, NULL, 4</d/out>, NULL, 99, 0) = 0", &[], (0, 0)),
        ("copy_file_range(3</d/in>, NULL, 4</d/out>, NULL, 99, 0) = -1 EXDEV (Invalid cross-device link)", &[], (0, 0)),
        ("sendfile(4</d/out>, 3</d/in>, NULL, 4096) = 512", &[from(0, 512), to(0, 512)], (512, 512)),
        ("sendfile(4</d/out>, 3</d/in>, [100] => [612], 4096) = 512", &[from(100, 512), to(0, 512)], (0, 512)),
        ("sendfile64(9<TCP:[1->2]>, 3</d/in>, [0] => [5], 5) = 5", &[from(0, 5)], (0, 0)),
        ("splice(3</d/in>, [65536], 6<pipe:[8]>, NULL, 65536, 0) = 65536", &[from(65_536, 65_536)], (0, 0)),
        ("splice(3</d/in>, NULL, 6<pipe:[8]>, NULL, 9, SPLICE_F_MOVE) = 9", &[from(0, 9)], (9, 0)),
        ("splice(5<pipe:[8]>, NULL, 4</d/out>, [16], 9, 0) = 9", &[to(16, 9)], (0, 0)),
        ("splice(5<pipe:[8]>, NULL, 4</d/out>, NULL, 9, 0) = 9", &[to(0, 9)], (0, 9)),
        ("tee(5<pipe:[8]>, 6<pipe:[8]>, 9, 0) = 9", &[], (0, 0)),
        ("vmsplice(6<pipe:[8]>, [{iov_base=\"x\", iov_len=1}], 1, 0) = 1", &[], (0, 0)),
        ("preadv2(3</d/in>, [{iov_base=\"x\", iov_len=1}], 1, -1, 0) = 1", &[from(0, 1)], (1, 0)),
        ("pwritev2(4</d/out>, [{iov_base=\"x\", iov_len=1}], 1, 0, RWF_HIPRI) = 1", &[to(0, 1)], (0, 0)),
    ];
    for (call, requests, (in_at, out_at)) in cases {
        let after =
            "7 1700000005.2 read(3</d/in>, \"\"..., 11) = 11 <0.000001>\n7 5.3 write(4</d/out>, \"\"..., 13) = 13 <0.000001>\n";
        let (records, _) = read("moving", &format!("{OPEN}7 1700000005.1 {call} <0.000500>\n{after}"));
        let expected: Vec<Seen> = requests.iter().copied().chain([from(*in_at, 11), to(*out_at, 13)]).collect();
        assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected, "{call}");
        let long = records[..requests.len()].iter().all(|record| record.duration.0 == 500_000);
        assert!(long, "{call}");
    }
}

#[test]
fn what_is_opened_for_appending_is_written_at_its_end() {
    let log = "7 1700000005.0 openat(AT_FDCWD</d>, \"a\", O_WRONLY|O_APPEND) = 3</d/a> <0.000001>\n\
        7 1700000005.1 fstat(3</d/a>, {st_mode=S_IFREG|0644, st_size=1000, ...}) = 0 <0.000001>\n\
        7 1700000005.2 write(3</d/a>, \"x\", 10) = 10 <0.000001>\n\
        7 1700000005.3 pwrite64(3</d/a>, \"x\", 5, 0) = 5 <0.000001>\n\
        7 1700000005.4 ftruncate(3</d/a>, 100) = 0 <0.000001>\n\
        7 1700000005.5 write(3</d/a>, \"x\", 10) = 10 <0.000001>\n\
        7 1700000005.6 fcntl(3</d/a>, F_SETFL, O_WRONLY) = 0 <0.000001>\n\
        7 1700000005.7 pwrite64(3</d/a>, \"x\", 5, 0) = 5 <0.000001>\n\
        7 1700000005.8 pwritev2(3</d/a>, [{iov_base=\"x\", iov_len=1}], 1, 0, RWF_APPEND) = 1 <0.000001>\n\
        7 1700000005.9 openat(AT_FDCWD</d>, \"a\", O_WRONLY|O_APPEND|O_TRUNC) = 4</d/a> <0.000001>\n\
        7 1700000006.0 write(4</d/a>, \"x\", 3) = 3 <0.000001>\n";
    let (records, _) = read("appending", log);
    let offsets: Vec<u64> = records.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [1000, 1010, 100, 0, 110, 0]);
}

/// Two requests of one call end when their results are collected, in any order, one of them short.
#[test]
fn io_submit_names_its_requests_and_io_getevents_their_results() {
    let iocb = |data: &str, op: &str, buffer: &str, offset: u64| {
        format!("{{aio_data={data}, aio_lio_opcode=IOCB_CMD_{op}, aio_fildes=3</d/in>, {buffer}, aio_offset={offset}}}")
    };
    let list = [
        iocb("0x1", "PREAD", "aio_buf=0x55, aio_nbytes=4096", 61_440),
        iocb("0x2", "PREADV", "aio_buf=[{iov_base=0x1, iov_len=512}, {iov_base=0x2, iov_len=1024}]", 8192),
        iocb("0x3", "PWRITE", "aio_buf=\"},{\\\"a\"..., aio_nbytes=512", 0),
        "{aio_data=0x4, aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3</d/in>}".to_owned(),
        iocb("0x5", "PREAD", "aio_buf=0x55, aio_nbytes=4096", 0),
        iocb("0x6", "PREAD", "aio_buf=0x55, aio_nbytes=77", 1 << 20),
    ]
    .join(", ");
    let submit = format!("7 1700000005.100000 io_submit(0x7f00, 7, [{list}, ...]) = 7 <0.000100>\n");
    let collect = "7 1700000005.101000 io_getevents(0x7f00, 1, 8, [{data=0x2, obj=0x9, res=1000, res2=0}, {data=0x4, obj=0x8, res=0, \
        res2=0}], NULL) = 2 <0.000500>\n\
        7 1700000005.103000 io_pgetevents(0x7f00, 1, 8, [{data=0x1, obj=0x9, res=4096, res2=0}, {data=0x5, obj=0x9, res=-5, res2=0}, \
        {data=0x3, obj=0x9, res=512, res2=0}], NULL, NULL) = 3 <0.000200>\n";
    let (records, reader) = read("aio", &format!("{OPEN}{submit}{collect}"));
    let seen: Vec<(u64, u64, bool, u64)> =
        records.iter().map(|record| (record.offset, record.size, record.write, record.duration.0)).collect();
    // 5.1015 - 5.1, 5.1032 - 5.1; the failed one is skipped, and the last one's result is not in the trace.
    let expected = [
        (8192, 1000, false, 1_500_000),
        (61_440, 4096, false, 3_200_000),
        (0, 512, true, 3_200_000),
        (1 << 20, 77, false, 100_000),
    ];
    assert_eq!(seen, expected);
    assert!(records.iter().all(|record| record.time == records[0].time && record.pid == 7));
    let note = reader.note().unwrap();
    assert!(note.contains("requests of io_submit that the trace does not show: 1 (strace -v shows all)"), "{note}");

    // With equal data, the moved size decides, then the order.
    let list = [
        iocb("0", "PREAD", "aio_buf=0x55, aio_nbytes=512", 0),
        iocb("0", "PREAD", "aio_buf=0x55, aio_nbytes=4096", 4096),
        iocb("0", "PREAD", "aio_buf=0x55, aio_nbytes=4096", 8192),
    ]
    .join(", ");
    let events = "7 1700000005.2 io_getevents(0x1, 1, 1, [{data=0, obj=0x9, res=4096, res2=0}], NULL) = 1 <0.000500>\n\
        7 1700000005.3 io_getevents(0x1, 1, 1, [{data=0, obj=0x9, res=4096, res2=0}], NULL) = 1 <0.000500>\n\
        7 1700000005.4 io_getevents(0x1, 1, 1, [{data=0, obj=0x9, res=512, res2=0}], NULL) = 1 <0.000500>\n";
    let (records, _) =
        read("aio-equal", &format!("{OPEN}7 1700000005.1 io_submit(0x1, 3, [{list}]) = 3 <0.000100>\n{events}"));
    let offsets: Vec<(u64, u64)> = records.iter().map(|record| (record.offset, record.duration.0)).collect();
    assert_eq!(offsets, [(4096, 100_500_000), (8192, 200_500_000), (0, 300_500_000)]);
    // A failed call gives no request; one that submits fewer gives the first.
    let fails = format!(
        "7 1700000005.1 io_submit(0x1, 3, [{list}]) = -1 EAGAIN (Resource temporarily unavailable) <0.000100>\n"
    );
    let takes = format!("7 1700000005.2 io_submit(0x1, 3, [{list}]) = 1 <0.000100>\n");
    let (records, _) = read("aio-few", &format!("{OPEN}{fails}{takes}"));
    assert_eq!(records.iter().map(|record| (record.offset, record.size)).collect::<Vec<_>>(), [(0, 512)]);
}

#[test]
fn rings_get_a_note() {
    let ring = "7 1700000005.1 io_uring_setup(8, {flags=0, sq_entries=8}) = 9<anon_inode:[io_uring]> <0.000010>\n\
        7 1700000005.2 io_uring_enter(9<anon_inode:[io_uring]>, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) = 1 <0.000190>\n\
        7 1700000005.3 read(3</d/in>, \"\"..., 8) = 8 <0.000001>\n";
    let (records, reader) = read("rings", &format!("{OPEN}{ring}"));
    let note = reader.note().unwrap();
    assert_eq!(records.len(), 1);
    assert!(note.contains("calls on rings of io_uring: 2; traces of system calls do not show"), "{note}");
}

#[test]
fn messages_of_strace_inside_a_line_and_marks_within_data() {
    let read_of = |pid, size| (0, 0, size, false, pid);
    let cases: &[(&str, Vec<Seen>)] = &[
        (
            "1 100.4 read(3</a>, \"x <unfinished ...>\"..., 4096) = 4096 <0.1>\n\
             1 100.6 read(3</a>, \"y\", 4096) = 4096 <0.1>\n",
            vec![read_of(1, 4096), (0, 4096, 4096, false, 1)],
        ),
        (
            "1 100.4 read(3</a>, \"<... read resumed>) = 7\"..., 9) = 9 <0.1>\n1 100.5 pread64(3</a>, \"strace: Process 5 attached\", \
             8, 0) = 8 <0.1>\n",
            vec![read_of(1, 9), read_of(1, 8)],
        ),
        // Both pieces contain the mark as data.
        (
            "1 100.4 pwrite64(3</a>, \"<unfinished ...>\", 16, 0 <unfinished ...>\n2 100.5 read(3</a>,  <unfinished ...>\n\
             1 100.6 <... pwrite64 resumed>) = 16 <0.2>\n2 100.7 <... read resumed>\"x resumed>\"..., 10) = 10 <0.2>\n",
            vec![(0, 0, 16, true, 1), read_of(2, 10)],
        ),
        // A child is attached while its parent's line is unfinished; it has a copy of the parent's descriptor.
        (
            "[pid 1] 100.1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.1>\n\
             [pid 1] 100.2 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 2 attached\n\
             , child_tidptr=0x7f) = 2 <0.1>\n[pid 2] 100.3 read(3, \"\"..., 5) = 5 <0.1>\n",
            vec![read_of(2, 5)],
        ),
        (
            "100.1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.1>\n\
             100.2 clone3({flags=CLONE_VM|CLONE_FILES}, 88strace: Process 2 attached\nstrace: Process 3 attached\n \
             <unfinished ...>\n[pid 2] 100.3 read(3, \"\"..., 5) = 5 <0.1>\n[pid 1] 100.4 <... clone3 resumed>) = 2 <0.1>\n\
             [pid 1] 100.5 read(3, \"\"..., 6) = 6 <0.1>\n",
            vec![read_of(2, 5), (0, 5, 6, false, 0)],
        ),
        (
            "[pid 2] 100.1 read(3</a>, \"\"..., 5) = 5 <0.1>\n[pid 2] 100.2 read(3</a>, /usr/bin/strace: Process 2 detached\n \
             <detached ...>\n",
            vec![read_of(2, 5)],
        ),
        // -Y prints the names of processes, -k the stack.
        (
            "12<my app> 100.1 read(3</a>, \"\"..., 5) = 5 <0.1>\n > /usr/lib/libc.so.6(read+0x11) [0x11]\n > /usr/bin/my(main+0x5) \
             [0x5]\n > unexpected_backtracing_error [0x7]\n13<b> 100.2 pread64(3</a>, \"\"..., 5, 0) = 5 <0.1>\n > a() [0x1]\n",
            vec![read_of(12, 5), read_of(13, 5)],
        ),
        ("[pid 12<c>] read(3</a>, \"\"..., 5) = 5\n[pid 12<c>] wait4(13<d>, 0x1, 0, NULL) = 13<d>\n", vec![read_of(12, 5)]),
    ];
    for (log, expected) in cases {
        let (records, reader) = read("cut_lines", log);
        assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), *expected, "{log}");
        let note = reader.note().unwrap_or_default();
        assert!(!note.contains("no system calls"), "{log}: {note}");
    }
}

/// With -r, times begin at 0 and go up and down; in a log whose times only increase they are not relative, even if
/// small.
#[test]
fn small_times_are_relative_or_not() {
    let log =
        |times: [&str; 3]| times.map(|time| format!("1 {time} pread64(3</a>, \"\"..., 1, 0) = 1 <0.1>\n")).concat();
    for (times, ms) in [
        (["0.000000", "0.5", "0.5"], [0, 500, 1000]),
        (["0.000000", "0.5", "0.7"], [0, 500, 1200]),
        (["100.4", "0.3", "0.5"], [0, 300, 800]),
        (["100.4", "100.6", "101.0"], [0, 200, 600]),
    ] {
        let (records, _) = read("small_times", &log(times));
        assert_eq!(records.iter().map(|record| record.time.0 / 1_000_000).collect::<Vec<_>>(), ms, "{times:?}");
    }
}

#[test]
fn perf_does_not_show_offsets_behind_pointers() {
    let log = " 0.1 ( 0.1 ms): a/7 openat(dfd: CWD, filename: \"/d/in\") = 3</d/in>\n \
        1.0 ( 0.2 ms): a/7 copy_file_range(fd_in: 3</d/in>, fd_out: 4</d/out>, len: 99) = 9\n \
        2.0 ( 0.2 ms): a/7 sendfile(out_fd: 5<socket:[9]>, in_fd: 3</d/in>, count: 5) = 5\n \
        3.0 ( 0.2 ms): a/7 io_submit(ctx_id: 0x7f, nr: 2, iocbpp: 0x7ffd) = 2\n";
    let (records, reader) = read("perf_moves", log);
    let expected = [(0, 0, 9, false, 7), (1, 0, 9, true, 7), (0, 9, 5, false, 7)];
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    assert!(reader.note().unwrap().contains("requests of io_submit that the trace does not show: 2"));
}
