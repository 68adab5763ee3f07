//! Additional lines printed by tracers, requests that move no data, record order, and format detection.

use headstart_trace::{open, Record, RecordReader};

use crate::common::{drain, file, scratch};

/// The detected format, the records, and the reader at its end.
fn read(test: &str, content: &str) -> (&'static str, Vec<Record>, Box<dyn RecordReader>) {
    let path = file(&scratch(test), "x.trace", content);
    let mut reader = open(&path, "auto").unwrap_or_else(|error| panic!("{content}: {error}"));
    let all = drain(&mut *reader).unwrap_or_else(|error| panic!("{content}: {error}"));
    (reader.format().unwrap().0, all, reader)
}

fn refused(test: &str, content: &str) -> String {
    let path = file(&scratch(test), "x.csv", content);
    open(&path, "auto").and_then(|mut reader| drain(&mut *reader)).unwrap_err().to_string()
}

#[test]
fn times_before_the_start_of_blkparse_are_put_where_they_belong() {
    // 2^64 ns, with the seconds whole and cut to 32 bits: 1 us, 2.5 s and 100.616 us before the start.
    for (printed, before_ns) in [
        ("1266874889.709550616", 1_000),
        ("1266874887.209551616", 2_500_000_000),
        ("18446744073.709550616", 1_000),
        ("18446744071.209551616", 2_500_000_000),
        ("1266874889.709451000", 100_616),
    ] {
        let text = format!(
            "8,0 0 1 0.000000000 7 Q R 8 + 8 [a]\n8,0 1 1 {printed} 7 Q R 0 + 8 [a]\n8,0 0 2 3.000000000 7 Q R 16 + 8 [a]\n"
        );
        let (format, records, _) = read("before_start", &text);
        let times: Vec<(u64, u64)> = records.iter().map(|record| (record.offset / 512, record.time.0)).collect();
        assert_eq!(
            (format, times),
            ("blkparse", vec![(0, 0), (8, before_ns), (16, before_ns + 3_000_000_000)]),
            "{printed}"
        );
    }
}

#[test]
fn kinds_of_requests_that_move_no_data_are_left_out_and_counted_alike() {
    let kinds = ["DS", "NS", "FF", "F", "D", "N", "DES", "FFS", "WZS", "ZR"];
    let csv = |kind: &str| format!("time_ns,op,dev,sector,nsect,pid\n1,R,8,0,8,1\n2,{kind},8,8,8,1\n0,RA,8,16,8,1\n");
    let blkparse = |kind: &str| {
        format!("8,0 1 1 0.1 7 Q R 0 + 8 [a]\n8,0 1 2 0.2 7 Q {kind} 8 + 8 [a]\n8,0 1 3 0.05 7 Q RA 16 + 8 [a]\n")
    };
    let snoop = |kind: &str| {
        let line = |time: &str, kind: &str, sector| format!("{time} a b 7 sda {kind} {sector} 4096 0.01\n");
        let lines = [line("0.1", "R", 0), line("0.2", kind, 8), line("0.05", "RA", 16)].concat();
        format!("TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n{lines}")
    };
    let alibaba = |kind: &str| format!("1,R,0,4096,1000\n1,{kind},4096,4096,1001\n1,R,8192,4096,900\n");
    let spc = |kind: &str| format!("1,0,4096,R,0.1\n1,8,4096,{kind},0.2\n1,16,4096,R,0.05\n");
    type Made<'a> = (&'a str, &'a dyn Fn(&str) -> String);
    let made: [Made; 5] =
        [("csv", &csv), ("blkparse", &blkparse), ("biosnoop", &snoop), ("alibaba", &alibaba), ("spc", &spc)];
    for (format, content) in made {
        for kind in kinds {
            let (recognised, records, reader) = read("no_data", &content(kind));
            let order: Vec<u64> = records.iter().map(|record| record.offset).collect();
            assert_eq!((recognised, reader.skipped(), order), (format, 1, vec![8192, 0]), "{kind}");
        }
        let wrong = file(&scratch("no_data_wrong"), "log", content("Q!"));
        let error = open(&wrong, format).and_then(|mut reader| drain(&mut *reader)).unwrap_err().to_string();
        assert!(
            error.contains("\"Q!\" in column ") && error.contains(" is not an operation; allowed"),
            "{format}: {error}"
        );
    }
}

#[test]
fn what_stands_above_and_between_the_lines_is_passed_over() {
    let csv = "time,op,offset,size\n0.0,R,0,4096\n0.1,R,4096,4096\n";
    let blkparse =
        "  8,0    1        1     0.000000000  4321  Q   R 0 + 8 [dd]\n  8,0 1 2 0.1 4321  Q   R 8 + 8 [dd]\n";
    let snoop =
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.000000 a 7 sda R 0 4096 0\n0.100000 a 7 sda R 8 4096 0\n";
    let strace = "1 0.5 read(3</a>, \"\"..., 4096) = 4096 <0.0>\n1 0.1 read(3</a>, \"\"..., 4096) = 4096 <0.0>\n";
    let many: String = (0..128).map(|cpu| format!("Input file sda.blktrace.{cpu} added\n")).collect();
    for (format, content) in [("csv", csv), ("blkparse", blkparse), ("biosnoop", snoop), ("strace", strace)] {
        // The column names of a layout may also follow a comment.
        let layout = format!("# from a cloud\n{}", "device_id,opcode,offset,length,timestamp\n1,R,0,4096,7\n");
        assert_eq!(read("above_layout", &layout).0, "alibaba");
        let above = [
            "# recorded on a test machine, with block size 4096\n",
            "\n#\n# time: 12:00, offset and size in bytes\n\n",
            "Attaching 2 probes...\n",
            "Tracing block I/O. Ctrl-C to end.\n",
            "Tracing block I/O... Hit Ctrl-C to end.\n",
            &many,
        ];
        for above in above {
            let (recognised, records, _) = read("above", &format!("{above}{content}"));
            let offsets: Vec<u64> = records.iter().map(|record| record.offset).collect();
            assert_eq!((recognised, offsets), (format, vec![0, 4096]), "{above}");
        }
        let at = content.trim_end().rfind('\n').unwrap() + 1;
        let between = format!("{}\n^C\n# a remark\n{}", &content[..at], &content[at..]);
        let (recognised, records, _) = read("between", &between);
        assert_eq!((recognised, records.len()), (format, 2));
    }
    let lost = csv.replace("0.1,", "Lost 12 events\n0.1,");
    let (_, records, reader) = read("lost", &lost);
    assert_eq!(
        (records.len(), reader.note().unwrap().as_str()),
        (2, "the tracer lost events: requests may be missing")
    );
}

#[test]
fn prose_and_tables_without_places_are_no_headers() {
    for prose in [
        "Tracing block I/O. Ctrl-C to end.\n1 a 3\n",
        "the block size is 4096\n17 18\n",
        "my id list\n1,2,3,4\n",
        "TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n             MAJOR MINOR\n611 259 0 reader 4179 10\n",
        "TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n611 259 0 reader 4179 10\n",
    ] {
        let error = refused("prose", prose);
        assert!(error.contains("the format was not recognised"), "{prose}: {error}");
        let advised = error.contains("bpftrace's biosnoop.bt, which prints no sectors");
        assert_eq!(advised, prose.starts_with("TIME"), "{error}");
    }
}

#[test]
fn operations_under_unknown_names_are_refused_and_other_columns_named() {
    for name in ["kind", "what", "io_op", "rw flag", "op.name", "x"] {
        let error = refused("op_unknown", &format!("{name},offset,size\nR,0,1\nW,1,1\n"));
        let expected = format!("line 1: column \"{name}\" seems to hold operations");
        assert!(error.contains(&expected) && error.contains("allowed: op, with R, W"), "{error}");
    }
    // By the name alone, regardless of the content.
    assert!(refused("op_unknown", "io_op,offset,size\n17,0,1\n").contains("column \"io_op\" seems to hold operations"));
    for (name, values) in
        [("rwbs", ["R", "WS"]), ("Op Type", ["read", "write"]), ("is_write", ["0", "1"]), ("is_read", ["1", "0"])]
    {
        let (_, records, _) = read("op_known", &format!("{name},offset,size\n{},0,1\n{},1,1\n", values[0], values[1]));
        assert_eq!(records.iter().map(|record| record.write).collect::<Vec<_>>(), [false, true], "{name}");
    }
    let (_, records, reader) = read("ignored", "op,offset,size,cpu,Flags\nR,0,1,3,W\nW,1,1,4,R\n");
    assert_eq!((records.len(), reader.note().unwrap().as_str()), (2, "ignored columns: cpu, flags"));
}

#[test]
fn five_columns_are_told_apart_by_what_they_hold() {
    for (format, content) in [
        ("mqsim", "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n"),
        ("tencent", "1538323199,12910952,128,0,1063\n1538323200,8,8,1,1064\n"),
        ("disksim", "15849.28847 0 6198696 8 0\n15850.5 0 6198704 2048 1\n"),
        ("replayer", "0.000 0 11562803200 4096 1\n"),
        ("spc", "0,303567,3584,w,0.000000\n1,55590,3072,R,0.5\n"),
        ("alibaba", "1,R,8192,4096,1577808000000046\n1,W,4096,4096,1577808000000047\n"),
        ("lis", "100 8 0 1\n200 16 0 2\n300 24 0 3\n"),
        ("lis", "100 8 0 0\n200 16 0 0\n"),
    ] {
        assert_eq!(read("five", content).0, format);
    }
    // Addresses in bytes, or times that are not seconds since 1970.
    for content in [
        "0.001,8192,4096,0,7\n0.002,12288,4096,0,7\n",
        "1538323199,8192,4096,0,7\n1538323200,1048576,4096,1,7\n",
        "5,8,8,0,1\n6,16,8,0,1\n",
        "100 0 8192 4096 1\n200 0 12288 4096 0\n",
        // Seconds with a fraction are not Alibaba's, addresses in bytes are not SPC's; time, address, size and 1 for a
        // read are not pages.
        "1,R,8192,4096,0.001\n1,W,4096,4096,0.002\n",
        "0,8192,4096,R,0.001\n0,4096,4096,W,0.002\n",
        "100 8 4096 1\n200 16 4096 0\n300 24 4096 1\n",
        // Whole milliseconds: in nanoseconds that would be 40 TB/s.
        "5 0 7 400 1\n10 0 800 8 1\n",
    ] {
        let error = refused("five_not", content);
        assert!(
            error.contains("the format was not recognised; nearest is csv, but there is no header"),
            "{content}: {error}"
        );
    }
}

/// 24,783 requests of a search engine in a minute, in nanoseconds as in MQSim's traces.
#[test]
fn mqsim_counts_nanoseconds() {
    let (format, records, reader) =
        read("mqsim", "11413000 0 657728 16 1\n60066625000 1 8 64 0\n60066624000 1 0 1 1\n");
    let seen: Vec<(u64, u32, u64, u64, bool)> =
        records.iter().map(|r| (r.time.0, r.file, r.offset, r.size, r.write)).collect();
    let expected = [
        (0, 0, 657_728 * 512, 8192, false),
        (60_055_211_000, 1, 0, 512, false),
        (60_055_212_000, 1, 4096, 32_768, true),
    ];
    assert_eq!((format, seen, reader.unit_bytes()), ("mqsim", expected.to_vec(), 512));
}

#[test]
fn snoops_of_all_tools() {
    // (start in ms, duration in us, sector, bytes, process, disk, write)
    type Row<'a> = (f64, u64, u64, u64, u32, &'a str, bool);
    let cases: [(&str, Vec<Row>, u64); 5] = [
        // Without the start of a request: no disk, no sector.
        (
            "TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n\
             0.000000000    ?              0              R  -1        8          1.09\n\
             1.094404000    my reader      2465   sda     R  148372480 143360     1.40\n\
             1.200000000                   0              R  -1        8          1.11\n\
             1.103634000    ?              0              W  105815168 4096       0.63\n",
            vec![(0.0, 1400, 148_372_480, 143_360, 2465, "sda", false), (10.0, 630, 105_815_168, 4096, 0, "", true)],
            2,
        ),
        // -P and -Q of bcc.
        (
            "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P QUE(ms) LAT(ms)\n\
             0.001000    a              1       nvme0n1   R 8          4096   ?    0.50    0.50\n\
             -0.000500   b              2       <unknown> W 16         512    S   -1.00   0.50\n",
            vec![(-1.0, 500, 16, 512, 2, "<unknown>", true), (0.0, 1000, 8, 4096, 1, "nvme0n1", false)],
            0,
        ),
        // libbpf-tools with -t, past midnight.
        (
            "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)\n\
             23:59:59.999 a              1       Unknown RA   8          4096     -1.000   1.000\n\
             00:00:00.001 b              2       sda     FF   0          0        -1.000   1.000\n\
             00:00:00.003 b              2       sda     WFS  16         512       1.000   2.000\n",
            vec![(0.0, 1000, 8, 4096, 1, "Unknown", false), (2.0, 3000, 16, 512, 2, "sda", true)],
            1,
        ),
        // perf-tools' iosnoop with -s.
        (
            "Tracing block I/O. Ctrl-C to end.\nSTARTs         COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
             100.614265     reader       8248   R    202,32   1431244248   45056      20.38\n\
             100.615265     jbd2 x       9      FWS  202,1    0            0           1.00\n\
             100.616265     jbd2 x       9      WM   202,1    8            4096        1.00\n",
            vec![(0.0, 20_380, 1_431_244_248, 45_056, 8248, "202,32", false), (2.0, 1000, 8, 4096, 9, "202,1", true)],
            1,
        ),
        // and with -t.
        (
            "Tracing block I/O for 5 seconds (buffered)...\nENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
             100.005000     a            1      R    8,0      8            512         5.00\n\
             100.004000     b            2      W    8,0      16           512         1.00\n",
            vec![(0.0, 5000, 8, 512, 1, "8,0", false), (3.0, 1000, 16, 512, 2, "8,0", true)],
            0,
        ),
    ];
    for (content, rows, skipped) in cases {
        let (format, records, reader) = read("snoops", content);
        let paths: Vec<&str> = reader.files().iter().map(|entry| entry.path.as_str()).collect();
        let first = rows[0].0;
        let seen: Vec<Row> = records
            .iter()
            .map(|r| {
                (
                    r.time.0 as f64 / 1e6 + first,
                    r.duration.0 / 1000,
                    r.offset / 512,
                    r.size,
                    r.pid,
                    paths[r.file as usize],
                    r.write,
                )
            })
            .collect();
        assert_eq!((format, seen, reader.skipped()), ("biosnoop", rows, skipped), "{content}");
    }
    // Without a time column there are no times.
    let text = "Tracing block I/O. Ctrl-C to end.\nCOMM PID TYPE DEV BLOCK BYTES LATms\na 1 R 8,0 8 512 5.00\n";
    let (_, records, reader) = read("snoop_untimed", text);
    assert!(!reader.carries().time && records[0].duration.0 == 5_000_000);
}
