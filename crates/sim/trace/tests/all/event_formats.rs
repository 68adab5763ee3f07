//! The formats of tracers of systems, programs and benchmarks, on lines written by hand from each format's description.

use headstart_trace::{open, Carries, Record};

use crate::block_formats::{at, read, took, write, BLOCKS};
use crate::common::{drain, file, records, scratch};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn by(pid: u32, record: Record) -> Record {
    Record { pid, ..record }
}

fn error(content: &str, format: &str) -> String {
    records(&file(&scratch("event_error"), "trace", content), format).unwrap_err().to_string()
}

fn paths(test: &str, content: &str) -> Vec<String> {
    let mut reader = open(&file(&scratch(test), "trace", content), "auto").unwrap();
    drain(&mut *reader).unwrap();
    reader.files().iter().map(|file| file.path.clone()).collect()
}

/// One request as each tool prints it, and a second one without an end.
#[test]
fn ftrace_perf_and_systrace_print_the_same_events() {
    let sda = 8 << 20;
    let first = took(at(0, sda, 1000 * 512, 4096), MS);
    let second = at(2 * MS, sda, 2000 * 512, 8192);
    let ftrace = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
        \x20      Web Content-12    [001] .....  1000.000000: block_rq_issue: 8,0 R 4096 () 1000 + 8 none,0,0 [x + y]\n\
        \x20           <idle>-0     [001] d.h..  1000.001000: block_rq_complete: 8,0 R () 1000 + 8 none,0,0 [0]\n\
        \x20        (sd-pam)-12    [001] d.h..  1000.001500: sched_switch: prev_comm=x prev_pid=12 ==> next_comm=a: b\n\
        \x20              a-12     [000] .....  1000.001600: block_rq_issue: 8,0 DS 4096 () 9 + 8 none,0,0 [x]\n\
        \x20              a-12     [000] .....  1000.001700: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [x]\n\
        \x20              a-12     [000] .....  1000.002000: block_rq_issue: 8,0 RA 8192 () 2000 + 16 none,0,0 [x]\n";
    let (all, carries, unit, skipped) = read("ftrace", "ftrace", ftrace);
    assert_eq!(all, [by(12, first), by(12, second)]);
    let expected = Carries { duration: true, processes: true, files: true, ..BLOCKS };
    assert_eq!((carries, unit, skipped), (expected, 512, 2), "a discard and a flush");
    // With the thread's group, as with record-tgid and on Android; in systrace's page.
    let groups = ftrace.replace("-12    ", "-12    (   11)").replace("-0     ", "-0     (-----)");
    assert_eq!(read("ftrace_tgid", "ftrace", &groups).0, all);
    let page = format!(
        "<!DOCTYPE html>\n<html>\n<head><title>Android System Trace</title></head>\n<script>var a = {{b: 1.5}};</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n{groups}  </script>\n</html>\n"
    );
    assert_eq!(read("systrace", "ftrace", page).0, all);
    let perf = "            fio pool    11/12    [001]  1000.000000:          1 block:block_rq_issue: 8,0 R 4096 () 1000 + 8 [x]\n\
        \tffffffff8146e2c4 blk_mq_start_request+0x74 ([kernel.kallsyms])\n\n\
        \x20            swapper     0     [001]  1000.001000: block:block_rq_complete: 8,0 R () 1000 + 8 [0]\n\
        \x20                fio    12     [000]  1000.002000: block:block_rq_issue: 8,0 RA 8192 () 2000 + 16 [fio]\n";
    assert_eq!(read("perf_script", "ftrace", perf).0, all);
    // Queued events precede issued ones, which are merged.
    let queued = "a-7 [0] 1.0: block_bio_queue: 8,0 R 8 + 8 [a]\na-7 [0] 1.1: block_bio_queue: 8,0 R 16 + 8 [a]\n\
        a-7 [0] 1.2: block_rq_issue: 8,0 R 8192 () 8 + 16 [a]\nb-0 [0] 1.5: block_rq_complete: 8,0 R () 8 + 16 [0]\n";
    let expected =
        [by(7, took(at(0, sda, 4096, 4096), 500 * MS)), by(7, took(at(100 * MS, sda, 8192, 4096), 400 * MS))];
    assert_eq!(read("ftrace_queued", "ftrace", queued).0, expected);
    let error = error("# tracer: nop\n a-7 [000] 1.0: sched_wakeup: comm=x\n", "auto");
    assert!(error.contains("no line is a request; allowed: the events block_bio_queue, block_rq_issue"), "{error}");
    let error = records(&file(&scratch("ftrace_bad"), "t", queued.replace("8,0 R 16 + 8", "8,0 R x + 8")), "auto");
    assert!(error.unwrap_err().to_string().contains("line 2: \"x\" in column sector is not a whole number"));
}

#[test]
fn fio_latency_logs_are_written_at_the_end_of_requests() {
    let text = "7, 7558275, 0, 4096, 122880, 0\n7, 3993988, 1, 65536, 0, 0\n9, 500000, 2, 4096, 0, 0\n11, 1000000, 0, 512, 4096, 0x4001\n";
    let (all, carries, unit, skipped) = read("fio_lat", "fio-lat", text);
    // Begun at -558,275 ns, 3,006,012 ns and 10 ms.
    let expected = [
        took(at(0, 0, 122_880, 4096), 7_558_275),
        took(write(at(3_564_287, 0, 0, 65_536)), 3_993_988),
        took(at(10_558_275, 0, 4096, 512), 1_000_000),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit, skipped), (Carries { duration: true, ..BLOCKS }, 1, 1));
    // With log_issue_time the time is exact; old versions have no priority.
    let (all, ..) = read("fio_issue", "fio-lat", "7, 100, 0, 4096, 0, 0, 7000123\n8, 100, 0, 4096, 4096, 0, 8000000\n");
    assert_eq!(all, [took(at(0, 0, 0, 4096), 100), took(at(999_877, 0, 4096, 4096), 100)]);
    let (all, ..) = read("fio_old", "fio-lat", "1, 1000, 0, 4096, 0\n2, 1000, 0, 4096, 8192\n");
    assert_eq!(all, [took(at(0, 0, 0, 4096), 1000), took(at(MS, 0, 8192, 4096), 1000)]);
    let no_offsets = error("0, 287348, 0, 4096, 0\n3, 3370187, 0, 4096, 0\n", "auto");
    assert!(no_offsets.ends_with("the log has no offsets; allowed: a log written with log_offset=1"), "{no_offsets}");
    let averages = error("500, 1000, 0, 0, 0, 0\n1000, 1000, 0, 0, 0, 0\n", "auto");
    assert!(averages.ends_with("allowed: a log written without log_avg_msec"), "{averages}");
    let path = file(&scratch("fio_bw"), "x_bw.1.log", text);
    assert!(!open(&path, "auto").unwrap().carries().duration, "values of a bandwidth log are no durations");
}

#[test]
fn fiu_counts_in_blocks_and_nanoseconds() {
    let text = "89968195792462 4892 syslogd 904265560 8 W 6 0 531e779039c0d2a5\n\
        89968196000000 20782 gzip -9 283193184 16 R 8 16 56f11b711d91a065 56f11b711d91a066\n";
    let (all, carries, unit, _) = read("fiu", "fiu", text);
    let expected = [
        by(4892, write(at(0, 6 << 20, 904_265_560 * 512, 4096))),
        by(20_782, at(207_538, (8 << 20) + 16, 283_193_184 * 512, 8192)),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit), (Carries { processes: true, files: true, ..BLOCKS }, 512));
    let error = error(&text.replace(" R 8 16", " X 8 16"), "fiu");
    assert!(error.contains("line 2: ") && error.contains("is not a request; allowed: ns pid process lba"), "{error}");
}

#[test]
fn procmon_lines_are_requests_where_they_move_data_of_a_program() {
    let text = "\u{feff}\"Time of Day\",\"Process Name\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\",\"Duration\"\r\n\
        \"11:59:59.9000000 PM\",\"a.exe\",\"12\",\"CreateFile\",\"C:\\x.bin\",\"SUCCESS\",\"Desired Access: Read\",\"0.0000100\"\r\n\
        \"11:59:59.9500000 PM\",\"a.exe\",\"12\",\"ReadFile\",\"C:\\x, y.bin\",\"SUCCESS\",\"Offset: 4,096, Length: 65,536, Priority: Normal\",\"0.0005000\"\r\n\
        \"11:59:59.9500100 PM\",\"a.exe\",\"12\",\"ReadFile\",\"C:\\x, y.bin\",\"SUCCESS\",\"Offset: 4,096, Length: 65,536, I/O Flags: Non-cached, Paging I/O\",\"0.0004000\"\r\n\
        \"12:00:00.0500000 AM\",\"b.exe\",\"13\",\"WriteFile\",\"C:\\z.log\",\"SUCCESS\",\"Offset: 0, Length: 100\",\"0.0001000\"\r\n\
        \"12:00:00.0600000 AM\",\"a.exe\",\"12\",\"ReadFile\",\"C:\\x, y.bin\",\"END OF FILE\",\"Offset: 69,632, Length: 65,536\",\"0.0000100\"\r\n\
        \"12:00:00.0700000 AM\",\"b.exe\",\"13\",\"WriteFile\",\"C:\\z.log\",\"SUCCESS\",\"Offset: -1, Length: 9\",\"0.0001000\"\r\n\
        \"12:00:00.0800000 AM\",\"a.exe\",\"12\",\"ReadFile\",\"\\Device\\NamedPipe\\p\",\"SUCCESS\",\"Length: 24\",\"0.0000100\"\r\n";
    let (all, carries, unit, skipped) = read("procmon", "procmon", text);
    let expected = [
        by(12, took(at(0, 0, 4096, 65_536), 500 * US)),
        by(13, took(write(at(100 * MS, 1, 0, 100)), 100 * US)),
        by(13, took(write(at(120 * MS, 1, 100, 9)), 100 * US)),
    ];
    assert_eq!(all, expected);
    let expected = Carries { duration: true, processes: true, files: true, ..BLOCKS };
    assert_eq!((carries, unit, skipped), (expected, 1, 4));
    assert_eq!(paths("procmon_paths", text), ["C:\\x, y.bin", "C:\\z.log"]);
    // Other columns, 24 hours, and points between thousands.
    let text =
        "Operation,Path,Detail,Time of Day\nReadFile,C:\\x,\"Offset: 1.024, Length: 512\",\"15:00:00,5000000\"\n";
    let (all, carries, ..) = read("procmon_few", "procmon", text);
    assert_eq!((all, carries), (vec![at(0, 0, 1024, 512)], Carries { files: true, ..BLOCKS }));
}

#[test]
fn xperf_events_end_when_they_are_logged() {
    let header = |cpu: &str| {
        format!(
            "BeginHeader\n      DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,{cpu}      IrpPtr,   ByteOffset,     IOSize, \
             ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName\n\
             \x20 DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID, IrpPtr\nEndHeader\nOS Version: 6.1, Trace Size: 9KB\n"
        )
    };
    let events = |cpu: &str| {
        format!(
            "  DiskReadInit,       8300,        xperf.exe (3984),      11844,   0xffffe288b23f1b20\n\
             \x20     DiskRead,       8612,        xperf.exe (3984),      11844,{cpu}   0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"C:\\$Mft, 1\"\n\
             \x20    DiskWrite,       8500,          Unknown (  -1),         -1,{cpu}   0xffffe288b23f1b21, 0x0000002000, 0x00000200,         500,        1, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"D:\\x\"\n\
             \x20    DiskFlush,       8700,           System (   4),          8,{cpu}   0xffffe288b23f1b21, 30, 0, 0, 30, 3\n"
        )
    };
    // Begun at 8,329 us and 8,000 us.
    let expected = [
        took(write(at(0, 1, 0x2000, 512)), 500 * US),
        by(3984, took(at(329 * US, 0, 0x0001_8f0b_8000, 4096), 283 * US)),
    ];
    for cpu in ["", "   1,"] {
        let name = if cpu.is_empty() { "" } else { " CPU," };
        let (all, carries, unit, skipped) = read("xperf", "etw", header(name) + &events(cpu));
        assert_eq!(all, expected);
        let carried = Carries { duration: true, processes: true, files: true, ..BLOCKS };
        assert_eq!((carries, unit, skipped), (carried, 1, 1));
    }
    assert_eq!(read("xperf_bare", "etw", events("")).0, expected, "without a header");
}

#[test]
fn tracerpt_and_the_analyzer_have_disk_events_too() {
    let header = "Event Name,       Type,   Event ID,    Version,    Channel,      Level,     Opcode,       Task,         Keyword,        PID,        TID, Processor Number, Instance ID, Parent Instance ID, Activity ID, Related Activity ID,  Clock-Time, Kernel(ms), User(ms), User Data\n";
    let event = |kind: &str, clock: &str, data: &str| {
        format!("    DiskIo,       {kind},          0,          3,          0,          0,         10,          0, 0x0000000000000000, 0x00000004, 0x00000B1C,          1,           ,           , {{00000000-0000-0000-0000-000000000000}},           ,   {clock},         30,         15, {data}\n")
    };
    let text = [
        header.to_owned(),
        event("Read", "132100000000000000", "0, 0x00060043, 4096, 0, 8192, 0xFFFFFA80, 0xFFFFFA81, 5342, 2844"),
        event("FlushBuffers", "132100000000000010", "0, 0x00060043, 5342, 0xFFFFFA81"),
        event("Write", "132100000000000020", "1, 0x00060043, 512, 0, 1024, 0xFFFFFA80, 0xFFFFFA81, 5342, 2844"),
    ]
    .concat();
    let (all, carries, ..) = read("tracerpt", "etw", text);
    assert_eq!(all, [at(0, 0, 8192, 4096), write(at(2_000, 1, 1024, 512))]);
    assert_eq!(carries, Carries { files: true, ..BLOCKS });
    let text = "Process,Path Name,IO Type,Disk,Init Time (s),IO Time (\u{b5}s),Size (B),Min Offset\n\
        a.exe (7),C:\\x,Read,0,1.500000000,\"1,250.5\",\"65,536\",\"1,048,576\"\na.exe (7),C:\\x,Flush,0,1.6,10,0,0\n\
        a.exe (7),C:\\x,Write,1,1.750000000,100,512,0x200\n";
    let (all, carries, _, skipped) = read("analyzer", "etw", text);
    let expected = [took(at(0, 0, 1 << 20, 65_536), 1_250_500), took(write(at(250 * MS, 1, 512, 512)), 100 * US)];
    assert_eq!((&all[..], skipped), (&expected[..], 1));
    assert_eq!(carries, Carries { duration: true, files: true, ..BLOCKS });
}

#[test]
fn darshan_counts_what_mpi_reads_through_posix_once() {
    let section = |module: &str, file: &str, rank: u32, lines: &str| {
        format!(
            "\n# DXT, file_id: 16457598720760448348, file_name: {file}\n# DXT, rank: {rank}, hostname: n1\n\
             # DXT, write_count: 1, read_count: 2\n# DXT, mnt_pt: /, fs_type: ext4\n\
             # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n{}",
            lines.replace("MODULE", module)
        )
    };
    let lines = " MODULE       0  write        0               0       262144      0.0029      0.0032   [OST: 3]\n \
        MODULE       0   read        0          262144       131072      0.0010      0.0015\n";
    let other = " MODULE       1   read        0               0         1000      0.0020      0.0030\n MODULE       1   read        1               0         0      0.0020      0.0030\n";
    let [mpi, posix, stdio] = ["X_MPIIO", "X_POSIX", "X_STDIO"];
    // The first file was read through MPI-IO and POSIX, the second only through MPI-IO, the third by stdio.
    let sections = [
        section(posix, "/d/a, b.bin", 0, lines),
        section(mpi, "/d/a, b.bin", 0, lines),
        section(mpi, "/d/c", 1, other),
        section(stdio, "/d/e", 1, other),
    ];
    let start = "# darshan log version: 3.21\n# exe: ./a.out\n";
    let expected = [
        took(at(0, 0, 262_144, 131_072), 500 * US),
        by(1, took(at(MS, 2, 0, 1000), MS)),
        by(1, took(at(MS, 1, 0, 1000), MS)),
        took(write(at(1900 * US, 0, 0, 262_144)), 300 * US),
    ];
    let text = start.to_owned() + &sections.concat();
    let (all, carries, unit, skipped) = read("darshan", "darshan", &text);
    assert_eq!(all, expected);
    let carried = Carries { duration: true, processes: true, files: true, ..BLOCKS };
    assert_eq!((carries, unit, skipped), (carried, 1, 4), "two of MPI-IO, and two of 0 bytes");
    assert_eq!(paths("darshan_paths", &text), ["/d/a, b.bin", "/d/c", "/d/e"]);
    // MPI-IO before POSIX gives the same.
    let [a, b, ..] = &sections;
    assert_eq!(read("darshan_order", "darshan", format!("{start}{b}{a}")).0, [expected[0], expected[3]]);
    let error = error(&text.replace("  write  ", "  wrote  "), "darshan");
    assert!(error.contains("line 9: \"wrote\" in column Wt/Rd is unknown; allowed: read, write"), "{error}");
}

#[test]
fn dftracer_follows_the_positions_of_files() {
    let call = |name: &str, cat: &str, pid: u32, ts: u64, args: &str| {
        format!("{{\"id\":1,\"name\":\"{name}\",\"cat\":\"{cat}\",\"pid\":{pid},\"tid\":{pid},\"ts\":{ts},\"dur\":5,\"ph\":\"X\",\"args\":{{\"hhash\":\"h\",{args}}}}}\n")
    };
    let base = 1_795_812_995_000_000;
    let text = [
        "[\n".to_owned(),
        "{\"name\":\"FH\",\"cat\":\"dftracer\",\"type\":1,\"pid\":7,\"tid\":7,\"ph\":4,\"args\":{\"name\":\"/d/x\",\"value\":\"aa\"}}\n".to_owned(),
        call("open64", "POSIX", 7, base, "\"flags\":2,\"fhash\":\"aa\""),
        call("read", "POSIX", 7, base + 10, "\"ret\":4096,\"count\":8192,\"fhash\":\"aa\""),
        call("lseek64", "POSIX", 7, base + 20, "\"ret\":50000,\"whence\":0,\"offset\":50000,\"fhash\":\"aa\""),
        call("write", "POSIX", 7, base + 30, "\"ret\":100,\"count\":100,\"fhash\":\"aa\""),
        call("pread64", "POSIX", 7, base + 40, "\"ret\":10,\"offset\":99900,\"count\":512,\"fhash\":\"aa\""),
        call("read", "POSIX", 7, base + 50, "\"ret\":1,\"count\":1,\"fhash\":\"aa\""),
        call("read", "POSIX", 7, base + 60, "\"ret\":0,\"count\":1,\"fhash\":\"aa\""),
        call("close", "POSIX", 7, base + 70, "\"ret\":0,\"fhash\":\"aa\""),
        call("numpy.open", "dlio", 7, base + 75, "\"x\":1"),
        call("fopen64", "STDIO", 7, base + 80, "\"mode\":\"rb\",\"fhash\":\"bb\""),
        call("fseek", "STDIO", 7, base + 81, "\"ret\":0,\"whence\":0,\"offset\":64,\"fhash\":\"bb\""),
        call("fread", "STDIO", 7, base + 82, "\"ret\":3,\"count\":4,\"size\":8,\"fhash\":\"bb\""),
        // Another process, whose log follows.
        call("read", "POSIX", 8, base + 5, "\"ret\":\"512\",\"count\":512,\"fname\":\"/d/y\"").trim_end().to_owned() + ",\n",
        "]\n".to_owned(),
    ]
    .concat();
    let (all, carries, unit, skipped) = read("dftracer", "dftracer", &text);
    let us = |time: u64, record: Record| took(Record { time: headstart_types::Nanos(time * US), ..record }, 5 * US);
    let expected = [
        by(8, us(0, at(0, 2, 0, 512))),
        by(7, us(5, at(0, 0, 0, 4096))),
        by(7, us(25, write(at(0, 0, 50_000, 100)))),
        by(7, us(35, at(0, 0, 99_900, 10))),
        by(7, us(45, at(0, 0, 50_100, 1))),
        by(7, us(77, at(0, 1, 64, 24))),
    ];
    assert_eq!(all, expected);
    let carried = Carries { duration: true, processes: true, files: true, ..BLOCKS };
    // Two opens, two seeks, a close, and a read at the end.
    assert_eq!((carries, unit, skipped), (carried, 1, 6));
    assert_eq!(paths("dftracer_paths", &text), ["/d/x", "bb", "/d/y"]);
    let error =
        error(&text.replace("\"dur\":5,\"ph\":\"X\",\"args\":{\"hhash\":\"h\",\"ret\":100,", "\"dur\":,"), "dftracer");
    assert!(error.contains("line 6: ") && error.contains("column "), "{error}");
}
