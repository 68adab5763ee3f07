//! The formats of block traces and of file servers, on lines written by hand from each format's description.

use headstart_trace::{info, open, Carries, Record, FORMATS};
use headstart_types::Nanos;

use crate::common::{drain, file, records, scratch, vscsi_1, vscsi_2};

/// The fields that every block trace carries.
pub const BLOCKS: Carries = Carries { time: true, writes: true, addresses: true, ..Carries::NOTHING };

/// Reads `content`, both detected and by name, and returns the records, the fields that they carry, the unit and the
/// number of skipped records.
pub fn read(test: &str, format: &str, content: impl AsRef<[u8]>) -> (Vec<Record>, Carries, u64, u64) {
    let path = file(&scratch(test), "trace", content);
    let mut reader = open(&path, format).unwrap();
    let all = drain(&mut *reader).unwrap();
    assert_eq!(records(&path, "auto").unwrap(), all, "recognised");
    let most = FORMATS.iter().find(|row| row.name == format).unwrap().carries;
    let carries = reader.carries();
    let pairs = [(carries.time, most.time), (carries.duration, most.duration), (carries.processes, most.processes)];
    assert!(pairs.iter().all(|(carries, most)| *most || !carries), "{format} carries more than its row says");
    (all, carries, reader.unit_bytes(), reader.skipped())
}

/// A record of (ns, file, bytes, bytes).
pub fn at(time: u64, file: u32, offset: u64, size: u64) -> Record {
    Record { time: Nanos(time), file, offset, size, ..Record::default() }
}

pub fn write(record: Record) -> Record {
    Record { write: true, ..record }
}

pub fn took(record: Record, ns: u64) -> Record {
    Record { duration: Nanos(ns), ..record }
}

#[test]
fn spc_counts_addresses_in_sectors_and_sizes_in_bytes() {
    // Fields after the fifth are not defined by the format.
    let text = "0,20941264,8192,W,0.551706\n0, 20939840, 8192, w, 0.554041\n1,3072,512,r,1.5,x,y\n1,3072,0,R,1.5\n";
    let (all, carries, unit, skipped) = read("spc", "spc", text);
    let expected = [
        write(at(0, 0, 20_941_264 * 512, 8192)),
        write(at(2_335_000, 0, 20_939_840 * 512, 8192)),
        at(948_294_000, 1, 3072 * 512, 512),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit, skipped), (Carries { files: true, ..BLOCKS }, 512, 1));
}

#[test]
fn msr_counts_in_100_ns_and_numbers_disks_by_first_appearance() {
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
        128166372003061629,usr,1,Read,7014609920,24576,41286\n\
        128166372016382155,usr,0,Write,2517663744,4096,3\n\
        128166372016382150,hm,0,Read,0,512,1\n";
    let (all, carries, unit, _) = read("msr", "msr", text);
    // 128166372016382150 - 128166372003061629 = 13,320,521 units; the third request was issued before the second.
    let expected = [
        took(at(0, 0, 7_014_609_920, 24_576), 4_128_600),
        took(at(1_332_052_100, 2, 0, 512), 100),
        took(write(at(1_332_052_600, 1, 2_517_663_744, 4096)), 300),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit), (Carries { files: true, duration: true, ..BLOCKS }, 1));
    let mut reader = open(&file(&scratch("msr_note"), "trace", text), "auto").unwrap();
    assert!(info(&mut *reader, None).unwrap().note.unwrap().contains("sorted by issue time"));
}

#[test]
fn alibaba_counts_in_bytes_and_microseconds() {
    let lines = "0,R,126703661056,4096,1577808000000046\n1,W,19496058880,77824,1577808000000426\n";
    let expected = [at(0, 0, 126_703_661_056, 4096), write(at(380_000, 1, 19_496_058_880, 77_824))];
    for text in [lines.to_owned(), format!("device_id,opcode,offset,length,timestamp\r\n{lines}")] {
        let (all, carries, unit, _) = read("alibaba", "alibaba", text);
        assert_eq!(all, expected);
        assert_eq!((carries, unit), (Carries { files: true, ..BLOCKS }, 1));
    }
}

#[test]
fn tencent_counts_in_sectors_and_seconds() {
    let lines = "1538323199,12910952,128,0,1063\n1538323201,6338688,8,1,1627\n";
    let expected = [at(0, 1063, 12_910_952 * 512, 65_536), write(at(2_000_000_000, 1627, 6_338_688 * 512, 4096))];
    for text in [lines.to_owned(), format!("Timestamp,Offset,Size,IOType,VolumeID\n{lines}")] {
        let (all, carries, unit, _) = read("tencent", "tencent", text);
        assert_eq!(all, expected);
        assert_eq!((carries, unit), (Carries { files: true, ..BLOCKS }, 512));
    }
}

#[test]
fn systor_leaves_out_requests_without_an_answer() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456135200.013118000,,,0,4096,4096\n\
        1456135200.013119000,0.000806000,R,4,899056122368,131072\n\
        1456135200.213119000,,W,4,0,512\n\
        1456135200.113119000,0.001,W,6,8192,512\n";
    let (all, carries, unit, skipped) = read("systor", "systor17", text);
    let expected =
        [took(at(0, 4, 899_056_122_368, 131_072), 806_000), took(write(at(100_000_000, 6, 8192, 512)), 1_000_000)];
    assert_eq!(all, expected);
    assert_eq!((carries, unit, skipped), (Carries { files: true, duration: true, ..BLOCKS }, 1, 2));
}

#[test]
fn disksim_counts_in_blocks_and_replayers_in_bytes() {
    // Flags: bit 0 marks a read, the others urgency and synchrony.
    let (all, carries, unit, _) =
        read("disksim", "disksim", "13.191135 30 0 5 1\n17.829285\t20 576560 6 1a\n  24.5 17 8 24 0x11 \n");
    let expected =
        [at(0, 30, 0, 2560), write(at(4_638_150, 20, 576_560 * 512, 3072)), at(11_308_865, 17, 4096, 12_288)];
    assert_eq!(all, expected);
    assert_eq!((carries, unit), (Carries { files: true, ..BLOCKS }, 512));
    let (all, carries, unit, _) = read("replayer", "replayer", "0.000 0 4096 4096 1\n0.5 1 512 7680 0\n");
    assert_eq!(all, [at(0, 0, 4096, 4096), write(at(500_000, 1, 512, 7680))]);
    assert_eq!((carries, unit), (Carries { files: true, ..BLOCKS }, 1));
}

#[test]
fn vscsi_of_both_versions_leaves_out_what_moves_nothing() {
    let (read_16, write_10, inquiry) = (0x88, 0x2a, 0x12);
    let first =
        [vscsi_1(9, write_10, 512, 100, 50), vscsi_1(10, inquiry, 36, 0, 51), vscsi_1(11, read_16, 4096, 1, 60)];
    let (all, carries, unit, skipped) = read("vscsi", "vscsi", first.concat());
    assert_eq!(all, [write(at(0, 0, 51_200, 512)), at(10_000, 0, 512, 4096)]);
    assert_eq!((carries, unit, skipped), (BLOCKS, 512, 1));
    let second =
        [vscsi_2(1, read_16, 0, 7, [3, 4]), vscsi_2(2, write_10, 512, 100, [50, 7]), vscsi_2(3, 0x28, 8, 2, [51, 1])];
    let (all, carries, _, skipped) = read("vscsi", "vscsi", second.concat());
    assert_eq!(all, [took(write(at(0, 0, 51_200, 512)), 7000), took(at(1000, 0, 1024, 8), 1000)]);
    assert_eq!((carries, skipped), (Carries { duration: true, ..BLOCKS }, 1));
}

/// As in fio's reader, a wait lasts until a time since the start, and has four columns.
#[test]
fn fio_logs_are_read_as_fio_reads_them() {
    let text =
        "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 1000 0\n/tmp/x open\n\
        /tmp/x write 8192 512\n/dev/sda trim 0 4096\n/dev/sda wait 500 0\n/dev/sda sync 0 0\n/dev/sda read 4096 4096\n\
        /dev/sda wait 9000\n/dev/sda datasync 0 0\n/dev/sda wait 1500 0\n/dev/sda read 0 512\n\
        /dev/sda read 0 0\n/dev/sda close\n";
    let (all, carries, unit, skipped) = read("fio", "fio", text);
    let ms = 1_000_000;
    let expected =
        [at(0, 0, 0, 4096), write(at(1000 * ms, 1, 8192, 512)), at(1000 * ms, 0, 4096, 4096), at(1500 * ms, 0, 0, 512)];
    assert_eq!(all, expected);
    // Skipped: the trim, both syncs, the wait of three columns, the empty read.
    assert_eq!((carries, unit, skipped), (Carries { files: true, ..BLOCKS }, 1, 5));
    let (all, _, _, skipped) = read("fio", "fio", "fio version 3 iolog\n5 /f wait 7 0\n6 /f sync 0 0\n9 /f read 0 1\n");
    assert_eq!((all.len(), skipped), (1, 2));
    let text = "fio version 3 iolog\n2 Nvme1n1 add\n872 Nvme1n1 open\n878 Nvme1n1 write 0 16384\n888 b read 512 1\n\
        10001677 Nvme1n1 close\n";
    let (all, ..) = read("fio", "fio", text);
    assert_eq!(all, [write(at(0, 0, 0, 16_384)), at(10_000, 1, 512, 1)]);
}

/// Jobs with the same log file append to it, each with times relative to its own start.
#[test]
fn fio_jobs_in_one_log_follow_one_another() {
    let text = "fio version 3 iolog\n2 a add\n10 a read 0 4096\n30 a read 4096 4096\n50 a close\n\
        fio version 3 iolog\n5 b open\n8 b read 0 512\n9 b close\n";
    let (all, _, _, skipped) = read("fio-jobs-3", "fio", text);
    assert_eq!((all, skipped), (vec![at(0, 0, 0, 4096), at(20_000, 0, 4096, 4096), at(48_000, 1, 0, 512)], 0));
    let text = "fio version 2 iolog\na read 0 1\na wait 1000 0\na read 1 1\n\
        fio version 2 iolog\nb read 0 1\nb wait 500 0\nb read 1 1\n";
    let (all, ..) = read("fio-jobs-2", "fio", text);
    let ms = 1_000_000;
    let expected = [at(0, 0, 0, 1), at(1000 * ms, 0, 1, 1), at(1000 * ms, 1, 0, 1), at(1500 * ms, 1, 1, 1)];
    assert_eq!(all, expected);
}

/// One line of blkparse.
fn event(device: &str, us: u64, pid: u32, action: &str, rest: &str) -> String {
    format!("  {device}    3 {us:8}     0.{us:06}000 {pid:5}  {action:2}  {rest}\n")
}

#[test]
fn blkparse_takes_what_was_queued_and_its_completion() {
    let events = [
        event("8,0", 0, 697, "G", "N [x]"),
        event("8,0", 1, 697, "Q", "W 64 + 8 [kjournald]"),
        event("8,0", 2, 697, "G", "W 64 + 8 [kjournald]"),
        event("8,0", 3, 697, "Q", "WS 72 + 8 [name + with (a) 7]"),
        event("8,0", 4, 697, "M", "WS 72 + 8 [kjournald]"),
        event("8,16", 5, 42, "Q", "RA 64 + 16 [cat]"),
        event("8,16", 5, 42, "Q", "FWS [cat]"),
        event("8,16", 6, 42, "Q", "DS 1000 + 2048 [fstrim]"),
        event("8,0", 7, 697, "D", "W 64 + 16 [kjournald]"),
        event("8,0", 107, 0, "C", "W 64 + 16 [0]"),
        event("8,0", 120, 697, "Q", "R 0 + 1 [cat]"),
        event("8,16", 205, 0, "C", "RA 64 + 16 [0]"),
        event("8,0", 210, 0, "D", "R 512 (85 08 0e 00) [hdparm]"),
        event("8,0", 211, 0, "m", "N cfq697S / alloced"),
    ];
    let summary =
        "CPU3 (8,0):\n Reads Queued:          60,      240KiB\t Writes Queued:     1\n\nThroughput (R/W): 2KiB/s\n";
    let text = events.concat() + summary;
    let (all, carries, unit, _) = read("blkparse", "blkparse", &text);
    let (sda, sdb) = (8 << 20, (8 << 20) + 16);
    let by = |pid: u32, record: Record| Record { pid, ..record };
    let expected = [
        by(697, took(write(at(0, sda, 64 * 512, 4096)), 106_000)),
        by(697, took(write(at(2_000, sda, 72 * 512, 4096)), 104_000)),
        by(42, took(at(4_000, sdb, 64 * 512, 8192), 200_000)),
        by(697, at(119_000, sda, 0, 512)),
    ];
    assert_eq!(all, expected, "merged requests end together; the last has no completion");
    let full = Carries { files: true, duration: true, processes: true, ..BLOCKS };
    assert_eq!((carries, unit), (full, 512));

    // Without queued events, the issued ones are the requests; without those, the completions.
    let without = |actions: &[&str]| -> String {
        let line_has = |line: &&String| actions.iter().any(|action| line.contains(&format!("  {action}   ")));
        events.iter().filter(|line| !line_has(line)).cloned().collect()
    };
    let (all, carries, ..) = read("blkparse", "blkparse", without(&["Q"]));
    assert_eq!(all, [by(697, took(write(at(0, sda, 64 * 512, 8192)), 100_000))]);
    assert_eq!(carries, full);
    let (all, carries, ..) = read("blkparse", "blkparse", without(&["Q", "D"]));
    assert_eq!(all, [write(at(0, sda, 64 * 512, 8192)), at(98_000, sdb, 64 * 512, 8192)]);
    assert_eq!(carries, Carries { files: true, ..BLOCKS });
    let (all, carries, ..) = read("blkparse", "blkparse", without(&["C"]));
    assert_eq!((all.len(), carries), (4, Carries { files: true, processes: true, ..BLOCKS }));
}

#[test]
fn dbench_loadfiles_of_its_back_ends() {
    let text = "# a comment\n\
        0.010 NTCreateX \"\\clients\\client1\\a b.doc\" 0x40 2 9938 NT_STATUS_OK\n\
        0.020 NTCreateX \"\\clients\\client1\\none\" 0x0 1 -1 NT_STATUS_OBJECT_NAME_NOT_FOUND\n\
        0.030 WriteX 9938 65534 1 1 NT_STATUS_OK\n\
        0.040 ReadX 9938 0 65536 65535 NT_STATUS_OK\n\
        0.050 ReadX 9938 65536 512 0 NT_STATUS_OK\n\
        0.060 Close 9938 NT_STATUS_OK\n\
        0.060 NTCreateX \"\\clients\\client1\\c\" 0x0 1 9938 0x00000000\n\
        0.061 readx 9938 0x200 1024 1024 0x00000000\n\
        0.062 Rename \"\\clients\\client1\\c\" \"\\clients\\client1\\d\" NT_STATUS_OK\n\
        0.062 ReadX 9938 0 8 8 NT_STATUS_FILE_LOCK_CONFLICT\n";
    let (all, carries, unit, skipped) = read("dbench", "dbench", text);
    assert_eq!(all, [write(at(0, 0, 65_534, 1)), at(10_000_000, 0, 0, 65_535), at(31_000_000, 1, 512, 1024)]);
    assert_eq!((carries, unit, skipped), (Carries { files: true, ..BLOCKS }, 1, 2));
    // By name, without times: SMB and NFS.
    let text = "OPEN \"/file0\" 0x1c SUCCESS\nWRITE \"/file0\" 0 32768 SUCCESS\nREAD \"/file1\" 32768 512 *\n\
        WRITE3 \"/file0\" 0 1024 0 0x00000000\nREAD3 \"/file0\" 2048 1 0x00000000\nCLOSE \"/file0\" SUCCESS\n";
    let (all, carries, ..) = read("dbench", "dbench", text);
    assert_eq!(all, [write(at(0, 0, 0, 32_768)), at(0, 1, 32_768, 512), write(at(0, 0, 0, 1024)), at(0, 0, 2048, 1)]);
    assert_eq!(carries, Carries { files: true, time: false, ..BLOCKS });
    let (all, carries, ..) = read("dbench", "dbench", "seq,op,pid,file,offset,size\n12,W,0,2,65534,1\n14,R,3,2,0,4\n");
    assert_eq!(all, [write(at(0, 2, 65_534, 1)), Record { pid: 3, ..at(0, 2, 0, 4) }]);
    assert_eq!(carries, Carries { files: true, time: false, processes: true, ..BLOCKS });
}

/// Tencent's times are whole seconds, and one of their traces decreases by one after more than 1024 requests.
#[test]
fn whole_seconds_may_go_back_by_one() {
    let line = |second: u64| format!("{second},0,8,0,1063\n");
    let text = [line(1_538_323_200).repeat(5_000), line(1_538_323_199), line(1_538_323_201).repeat(3)].concat();
    let (all, ..) = read("seconds", "tencent", text);
    let times: Vec<u64> = all.iter().map(|record| record.time.0 / 1_000_000_000).collect();
    assert_eq!(times, [vec![0], vec![1; 5_000], vec![2; 3]].concat());
}

#[test]
fn what_is_half_a_minute_late_is_mended_and_what_is_later_is_refused() {
    let line = |ms: u64| format!("0,R,0,4096,{}\n", ms * 1_000);
    // Two thousand requests up to the 31st second, more than a batch in that, and then one of the first.
    let late = |by_ms: u64| (0..7000).map(|index| line(by_ms * index.min(1999) / 1999)).collect::<String>() + &line(0);
    let path = |content: String| file(&scratch("late"), "trace", content);
    assert_eq!(records(&path(late(30_000)), "alibaba").unwrap().len(), 7001);
    let error = records(&path(late(31_000)), "alibaba").unwrap_err().to_string();
    let expected = ", line 7001: the time is 31s earlier than in a previous record; \
        allowed: earlier by up to 30s, by up to 250000 records";
    assert!(error.ends_with(expected), "{error}");
    // However late: a thousand records are always held back.
    let late: String = (1..=1000).map(|hour| line(hour * 3_600_000)).collect::<String>() + &line(0);
    assert!(records(&path(late), "alibaba").unwrap().iter().is_sorted_by_key(|record| record.time));
}

#[test]
fn biosnoop_prints_a_request_when_it_is_done() {
    let content = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
        0.000004    supervise      1950   xvda1   W 13092560   4096      0.00    0.74\n\
        0.010       Web Content    7      sdb     R 8          512       1.00    6.50\n\
        0.004       jbd2/sda1-8    9      sdb     WS 16        1024      0.00    0.50\n\
        0.005       kworker/0:1    9      sdb     W -1         0         0.00    0.50\n\
        0.006       fstrim         9      sdb     D 16         4096      0.00    0.50\n";
    let (records, carries, unit_bytes, skipped) = read("biosnoop", "biosnoop", content);
    assert_eq!(
        (carries, unit_bytes, skipped),
        (Carries { duration: true, processes: true, files: true, ..BLOCKS }, 512, 2)
    );
    // Issued at -0.736 ms, 2.5 ms and 3.5 ms.
    let seen: Vec<(u64, u64, u64, u64, u32, u32, bool)> =
        records.iter().map(|r| (r.time.0, r.duration.0, r.offset / 512, r.size, r.pid, r.file, r.write)).collect();
    let expected = [
        (0, 740_000, 13_092_560, 4096, 1950, 0, true),
        (3_236_000, 7_500_000, 8, 512, 7, 1, false),
        (4_236_000, 500_000, 16, 1024, 9, 1, true),
    ];
    assert_eq!(seen, expected);
    let path = file(&scratch("biosnoop_wrong"), "log", content.replace("Web Content    7", "x"));
    let error = records_error(&path);
    assert!(error.contains("log, line 3: \"sdb\" in column PID is not a whole number"), "{error}");
    let path = file(
        &scratch("biosnoop_bt"),
        "log",
        "TIME(ms)     COMM             PID  DISK  LAT(ms)\n611     bash     4179 nvme0n1   10\n",
    );
    assert!(records_error(&path)
        .contains("looks like bpftrace's biosnoop.bt, which prints no sectors; use biosnoop of bcc"));
}

fn records_error(path: &std::path::Path) -> String {
    records(path, "auto").unwrap_err().to_string()
}

#[test]
fn what_is_not_recognised_is_told_the_nearest_format_and_the_fix() {
    let cases: [(&[u8], &str); 7] = [
        (b"PERFILE2\x01\x02", "the binary file of perf record; perf trace -o FILE"),
        (b"% time     seconds  usecs/call     calls    errors syscall\n", "summary of strace -c"),
        (b"{\"op\": \"read\"}\n", "looks like JSON; write it as CSV"),
        (b"PAR1\x15\x04", "looks like Parquet"),
        (b"\x07\x74\x61\x65\x01\0\0\0", "blkparse -i FILE"),
        (b"R,4096,8192\nR,12288,8192\n", "nearest is csv, but there is no header; add one above the data"),
        (b"when,what,read_length\n", "nearest is csv; its header needs a column of addresses"),
    ];
    for (content, expected) in cases {
        let error = records_error(&file(&scratch("nearest"), "log", content));
        assert!(error.contains("the format was not recognised; ") && error.contains(expected), "{error}");
        assert!(error.contains("; or name the format; allowed: headstart, hints, msr"), "{error}");
    }
}
