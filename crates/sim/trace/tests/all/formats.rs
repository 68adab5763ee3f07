//! Every format on lines written by hand, its detection, and compression.

use std::path::Path;

use headstart_trace::{open, open_with, Carries, FileEntry, Record, FORMATS};
use headstart_types::Nanos;

use crate::common;
use crate::common::{bzip2, drain, file, gzip, oracle, recording, records, scratch, xz, zstd};

/// A small valid trace of each format: file name, content, number of records.
fn examples() -> Vec<(&'static str, &'static str, Vec<u8>, usize)> {
    let objects = [oracle(7, 3, 100, 3), oracle(7, 9, 50, -1), oracle(9, 3, 100, -1)].concat();
    let commands = [common::vscsi_1(1, 0x2a, 512, 8, 5), common::vscsi_1(2, 0x28, 4096, 9, 7)].concat();
    let path = scratch("every_format_hints").join("x.hints");
    recording().write(&path).unwrap();
    let hints = std::fs::read(path).unwrap();
    vec![
        ("headstart", "a.csv", b"time,op,pid,file,offset,size,dur_us\n0.000000,R,1,0,0,4096,35\n".to_vec(), 1),
        ("hints", "x.hints", hints, 5),
        ("msr", "m.csv", b"128166372003061629,hm,1,Read,383496192,32768,413\n".to_vec(), 1),
        ("alibaba", "l.csv", b"64,R,126703661056,4096,1577808000000046\n".to_vec(), 1),
        ("tencent", "n.csv", b"1538323199,12910952,128,0,1063\n1538323200,8,8,1,1064\n".to_vec(), 2),
        (
            "systor17",
            "s.csv",
            b"Timestamp,Response,IOType,LUN,Offset,Size\n1456135200.013118000,0.000806000,R,4,8192,4096\n".to_vec(),
            1,
        ),
        ("dbench", "client.txt", b"# a client\n0.5 WRITE3 \"/f\" 0 1024 0 0x00000000\n".to_vec(), 1),
        (
            "biosnoop",
            "bio.txt",
            b"TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.000004 supervise 1950 xvda1 W 13092560 4096 0.74\n"
                .to_vec(),
            1,
        ),
        ("thesios", "t.csv", b"filename,file_offset,op_type,request_io_size_bytes,start_time\nf,0,READ,512,1705000000.5\n".to_vec(), 1),
        ("baleen", "x.trace", b"7 0 4096 1570000000.5 1 9 5 6\n7 4096 4096 1570000001 3 9 5 6\n".to_vec(), 2),
        ("twitter", "c.csv", b"0,ns:u:1,6,249,1,get,0\n0,ns:v:22,7,27,18,add,86400\n".to_vec(), 2),
        ("meta-kv", "kv.csv", b"op_time,key,key_size,op,op_count,size\n604,a,48,GET,2,87\n605,b,48,SET,1,7\n".to_vec(), 3),
        ("meta-cdn", "cdn.csv", b"timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd\n1678838400,a,1,9,19,10,-1,-1\n".to_vec(), 1),
        ("rocksdb", "r.csv", b"1567000000000001,1024,9,4096,0,default,2,17,1,0,1,0,10,5,1,8,0,1,0,12\n".to_vec(), 1),
        ("procmon", "Logfile.CSV", b"\"Time of Day\",\"Operation\",\"Path\",\"Detail\"\n\"9:00:00.5 AM\",\"ReadFile\",\"C:\\x\",\"Offset: 0, Length: 1,024\"\n".to_vec(), 1),
        ("etw", "d.csv", b"  DiskRead, 8612, a.exe (39), 11, 0xff, 0x018f0b8000, 0x00001000, 283, 0, 0x060043, 283\n".to_vec(), 1),
        ("dftracer", "x.pfw", b"[\n{\"id\":1,\"name\":\"pread\",\"cat\":\"POSIX\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1,\"ph\":\"X\",\"args\":{\"fhash\":\"a\",\"ret\":7,\"offset\":0}}\n]\n".to_vec(), 1),
        ("darshan", "dxt.txt", b"# DXT, file_id: 1, file_name: /x\n X_POSIX 0 read 0 0 512 0.1 0.2\n".to_vec(), 1),
        ("ftrace", "trace.txt", b"  a-7 [000] d..1  10.5: block_rq_issue: 8,0 R 4096 () 8 + 8 [a]\n".to_vec(), 1),
        ("fiu", "homes.blkparse", b"89968195792462 4892 syslogd 904265560 8 W 6 0 531e779039c0d2a5\n".to_vec(), 1),
        ("ibm-cos", "IBMObjectStoreTrace000", b"1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056\n".to_vec(), 1),
        ("s3-log", "log", b"o b [27/Nov/2026:10:00:00 +0000] 1.2.3.4 r id REST.GET.OBJECT k \"GET /k HTTP/1.1\" 200 - 9 9 3 2 \"-\"\n".to_vec(), 1),
        ("cloudfront", "E1.log", b"#Version: 1.0\n#Fields: date time sc-bytes cs-method cs-uri-stem sc-status\n2026-11-27\t10:00:00\t9\tGET\t/k\t200\n".to_vec(), 1),
        ("csv", "b.csv", b"time_us,lba,nsect\n5,8,16\n6,24,1\n".to_vec(), 2),
        (
            "strace",
            "app.strace",
            b"7 1.5 openat(AT_FDCWD, \"/f\", O_RDONLY) = 3 <0.000010>\n7 1.6 read(3, \"\"..., 99) = 99 <0.000020>\n"
                .to_vec(),
            1,
        ),
        (
            "perf-trace",
            "app.perf",
            b"     0.000 ( 0.025 ms): cat/7 read(fd: 3</f>, buf: 0x7f, count: 99)  = 99\n".to_vec(),
            1,
        ),
        ("fio", "f.log", b"fio version 3 iolog\n2 /f add\n9 /f read 0 4096\n".to_vec(), 1),
        ("fio-lat", "x_lat.1.log", b"7, 7558275, 0, 4096, 122880, 0\n".to_vec(), 1),
        ("blkparse", "b.txt", b"  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n".to_vec(), 1),
        ("spc", "u.spc", b"0,303567,3584,w,0.000000\n1,55590,3072,R,0.5\n".to_vec(), 2),
        ("disksim", "p.trace", b"15849.28847 0 6198696 8 0\n15850.5 0 6198704 2048 1\n".to_vec(), 2),
        ("replayer", "q.trace", b"0.000 0 11562803200 4096 1\n".to_vec(), 1),
        ("mqsim", "r.trace", b"11413000 0 657728 16 1\n11565000 1 31244784 64 0\n".to_vec(), 2),
        ("measured", "m.trace", b"R Hit 8 4 500.00000 100.00000\n".to_vec(), 1),
        ("webcachesim", "test.tr", b"1 1 120\n2 2 64\n".to_vec(), 2),
        ("lis", "c.lis", b"\n10 2 0 0\n".to_vec(), 1),
        ("lirs", "d.trace", b"0\n1\n*\n0\n\n".to_vec(), 3),
        ("offsets", "o.txt", b"0x1000\n8192\n".to_vec(), 2),
        ("vscsi", "v.vscsi", commands, 2),
        ("oracleGeneral", "e.oracleGeneral.bin", objects, 3),
        ("u32", "w.trace", (0..99u32).flat_map(|index| (index * 7 % 50).to_le_bytes()).collect(), 99),
    ]
}

#[test]
fn every_format_has_an_example_is_recognised_and_reads_alike_in_every_compression() {
    let directory = scratch("every_format");
    let examples = examples();
    let names: Vec<&str> = examples.iter().map(|example| example.0).collect();
    assert_eq!(names, FORMATS.iter().map(|row| row.name).collect::<Vec<_>>());
    for (format, name, content, count) in examples {
        let plain = file(&directory, name, &content);
        let request_bytes = (format == "offsets").then_some(512);
        let read = |path: &Path, format| drain(&mut *open_with(path, format, request_bytes).unwrap()).unwrap();
        let expected = read(&plain, format);
        assert_eq!(expected.len(), count, "{format}");
        // The suffix does not decide: the content is detected under every name.
        for packed_name in [name.to_owned(), format!("{name}.gz"), "unnamed".to_owned()] {
            let path = file(&directory, &packed_name, &content);
            let (chosen, reason) = open_with(&path, "auto", request_bytes).unwrap().format().unwrap();
            assert!(chosen == format && reason.len() > 10, "{chosen}: {reason}");
            for packed in [content.clone(), gzip(&content), bzip2(&content), xz(&content), zstd(&content)] {
                let path = file(&directory, &packed_name, &packed);
                assert_eq!(read(&path, "auto"), expected, "{format} as {packed_name}");
            }
        }
    }
}

#[test]
fn compressed_files_of_several_parts_are_read_whole() {
    let directory = scratch("several_parts");
    for pack in [gzip, bzip2, xz, zstd] {
        let path = file(&directory, "t.trace", [pack(b"1\n2\n"), pack(b"3\n")].concat());
        let blocks: Vec<u64> = records(&path, "lirs").unwrap().iter().map(|record| record.offset).collect();
        assert_eq!(blocks, [1, 2, 3]);
    }
}

#[test]
fn headstart_csv_and_its_file_table() {
    let directory = scratch("headstart_csv");
    let content = "time,op,pid,file,offset,size,dur_us\n\
        2.000000,R,15515,0,0,4096,35\n\
        2.000088,W,15516,1,6676480,1,7.5\r\n";
    let path = file(&directory, "p.csv.gz", gzip(content.as_bytes()));
    let expected = [
        Record { duration: Nanos(35_000), size: 4096, pid: 15515, ..Record::default() },
        Record {
            time: Nanos(88_000),
            duration: Nanos(7_500),
            offset: 6_676_480,
            size: 1,
            pid: 15516,
            file: 1,
            write: true,
            ..Record::default()
        },
    ];
    assert_eq!(records(&path, "headstart").unwrap(), expected);
    let reader = open(&path, "auto").unwrap();
    assert!(reader.files().is_empty());
    assert_eq!(reader.unit_bytes(), 1);
    let carries = reader.carries();
    assert!(
        carries.time && carries.duration && carries.processes && carries.files && carries.writes && carries.addresses
    );
    assert!(!carries.objects && !carries.think);

    let table = "file,max_offset,disk_size,path\n1,6676481,,\"/a, \"\"b\"\n0,4096,14908,/c,d\n";
    file(&directory, "p.files.csv.xz", xz(table.as_bytes()));
    let expected = [
        FileEntry { file: 1, size_bytes: 6_676_481, path: "/a, \"b".to_owned() },
        FileEntry { file: 0, size_bytes: 14_908, path: "/c,d".to_owned() },
    ];
    assert_eq!(open(&path, "auto").unwrap().files(), expected);
}

#[test]
fn lirs_blocks_are_objects_of_8_kib() {
    let directory = scratch("lirs_blocks");
    let path = file(&directory, "t.trace", "0\r\n18\r\n*\r\n0\n\n\n");
    let block = |offset| Record { offset, size: 8192, ..Record::default() };
    assert_eq!(records(&path, "auto").unwrap(), [block(0), block(18), block(0)]);
    let reader = open(&path, "lirs").unwrap();
    assert_eq!(reader.carries(), Carries { objects: true, ..Carries::NOTHING });
    assert_eq!(reader.unit_bytes(), 8192);
    assert!(reader.note().unwrap().contains("first touch"));
}

#[test]
fn lis_lines_are_runs_of_pages() {
    let directory = scratch("lis_lines");
    let path = file(&directory, "t.lis", "\n\n110765 64 0 0\n  7   1  252 1 \n\n");
    let run = |start: u64, pages: u64| Record { offset: start * 512, size: pages * 512, ..Record::default() };
    assert_eq!(records(&path, "auto").unwrap(), [run(110_765, 64), run(7, 1)]);
    let reader = open(&path, "lis").unwrap();
    assert_eq!(reader.carries(), Carries { addresses: true, ..Carries::NOTHING });
    assert_eq!(reader.unit_bytes(), 512);
}

#[test]
fn lis_lines_of_one_page_each_are_objects() {
    let directory = scratch("lis_objects");
    let path = file(&directory, "t.lis", "9 1 0 0\n7 1 0 1\n9 1 0 2\n");
    let object = |number: u64| Record { offset: number, size: 512, ..Record::default() };
    assert_eq!(records(&path, "auto").unwrap(), [object(9), object(7), object(9)]);
    let reader = open(&path, "lis").unwrap();
    assert_eq!(reader.carries(), Carries { objects: true, ..Carries::NOTHING });
    assert!(reader.note().unwrap().contains("taken as objects"));
}

#[test]
fn measured_requests_follow_the_one_before_by_service_and_think_time() {
    let directory = scratch("measured_lines");
    // Issued at 0, done at 15,362 us, 56,074 us of think time; the second is issued at 71,436 us and ends 3,024.5 us
    // later; the third follows at once.
    let content = "R Hit    1975456   4  15362.00000  56074.00000\n\n\
        W Miss   1975280   8   3024.50000      0.00000\r\n\
        R Hit 0 1 1 1\nW Doub 0 1 1 1\nW Trip 0 1 1 1\n";
    let path = file(&directory, "m.trace", content);
    let ns = |us: f64| Nanos((us * 1_000.0) as u64);
    let at = |time: f64, duration: f64, think: f64| Record {
        time: ns(time),
        duration: ns(duration),
        think: ns(think),
        ..Record::default()
    };
    let expected = [
        Record { offset: 1_975_456 * 512, size: 2_048, ..at(0.0, 15_362.0, 56_074.0) },
        Record { offset: 1_975_280 * 512, size: 4_096, write: true, ..at(71_436.0, 3_024.5, 0.0) },
        Record { offset: 0, size: 512, ..at(74_460.5, 1.0, 1.0) },
        Record { offset: 0, size: 512, write: true, ..at(74_462.5, 1.0, 1.0) },
        Record { offset: 0, size: 512, write: true, ..at(74_464.5, 1.0, 1.0) },
    ];
    assert_eq!(records(&path, "auto").unwrap(), expected);
    let reader = open(&path, "measured").unwrap();
    let carries =
        Carries { time: true, duration: true, think: true, writes: true, addresses: true, ..Carries::NOTHING };
    assert_eq!((reader.carries(), reader.unit_bytes()), (carries, 512));
}

#[test]
fn oracle_general_leaves_out_and_counts_empty_records() {
    let directory = scratch("oracle_empty");
    let content = [oracle(100, u64::MAX, 512, -1), oracle(100, 1, 0, -1), oracle(103, 2, u32::MAX, -1)].concat();
    let path = file(&directory, "t.bin", content);
    let mut reader = open(&path, "oracleGeneral").unwrap();
    let expected = [
        Record { offset: u64::MAX, size: 512, ..Record::default() },
        Record { time: Nanos(3_000_000_000), offset: 2, size: u64::from(u32::MAX), ..Record::default() },
    ];
    assert_eq!(common::drain(&mut *reader).unwrap(), expected);
    assert_eq!(reader.skipped(), 1);
    assert_eq!(reader.progress(), (72, 72));
}

#[test]
fn csv_columns_come_in_any_order_and_unit() {
    let directory = scratch("csv_columns");
    let read = |content: &str| records(&file(&directory, "t.csv", content), "csv").unwrap();
    let rows = read("\u{feff}Size,comm,OFFSET,timestamp_ms,op\n10,\"a,b\",5,1.5,read\n1,x,0,1.75,W\n");
    assert_eq!(rows[0], Record { offset: 5, size: 10, ..Record::default() });
    assert_eq!(rows[1], Record { time: Nanos(250_000), size: 1, write: true, ..Record::default() });
    // An origin far from zero, as in time since 1970, and a device column.
    let rows = read("time,dev,sector,nsect\n1700000000.5,3,8,2\n1700000000.500000007,3,10,1\n");
    assert_eq!(rows[1], Record { time: Nanos(7), file: 3, offset: 5120, size: 512, ..Record::default() });
    assert_eq!(read("lbn\n3\n")[0], Record { offset: 1536, size: 512, ..Record::default() });
    assert_eq!(read("block\n3\n\n")[0], Record { offset: 3, size: 4096, ..Record::default() });
    assert_eq!(read("id,size,think_us\n3,7,1.5\n")[0].think, Nanos(1_500));
}

#[test]
fn csv_declares_what_its_columns_carry() {
    let directory = scratch("csv_carries");
    let open = |content: &str| open(&file(&directory, "t.csv", content), "csv").unwrap();
    let reader = open("id,size\n3,7\n4,8\n");
    assert_eq!(reader.carries(), Carries { objects: true, ..Carries::NOTHING });
    assert_eq!(reader.unit_bytes(), 7, "that of the first object");
    let reader = open("time_ns,lba,op\n1,2,R\n");
    assert_eq!(reader.carries(), Carries { time: true, writes: true, addresses: true, ..Carries::NOTHING });
    assert_eq!(reader.unit_bytes(), 512);
}
