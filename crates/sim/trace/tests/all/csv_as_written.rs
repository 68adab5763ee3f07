//! CSV as commonly written: names, separators, units, clock times, paths, bare offsets.

use headstart_trace::{open, open_with, FileEntry, Record};
use headstart_types::Nanos;

use crate::common::{drain, file, records, scratch};

/// The records of a CSV file with this content, in the detected format; each test has its own folder.
fn read(test: &str, content: &str) -> Vec<Record> {
    records(&file(&scratch(test), "log.txt", content), "auto").unwrap()
}

fn error(test: &str, content: &str) -> String {
    records(&file(&scratch(test), "log.csv", content), "auto").unwrap_err().to_string()
}

#[test]
fn names_units_and_operations_of_people() {
    let expected = [
        Record { time: Nanos(0), duration: Nanos(90_000), offset: 0, size: 4096, pid: 7, ..Record::default() },
        Record {
            time: Nanos(2_000_000),
            duration: Nanos(1_500),
            offset: 65_536,
            size: 512,
            pid: 7,
            write: true,
            ..Record::default()
        },
    ];
    let same = [
        "ts,tid,syscall,pos,len,lat (us)\n10.5,7,pread64,0,4096,90\n10.502,7,pwrite64,65536,512,1.5\n",
        "Start-Time_ms;PID;RW;Offset;Length;Latency_ns\r\n5;7;READ;0x0;4096;90000\r\n\r\n7;7;w;0X10000;0x200;1500\r\n",
        "# timestamp [us]\tthread\ttype\taddress\tbytes\tduration(ms)\n9\t7\tr\t0\t4096\t0.09\n# remark\n2009\t7\tWR\t65536\t512\t0.0015\n",
        "time,pid,op,sector,nsect,dur_us\n0,7,RA,0,8,90\n0.002,7,WSM,128,1,1.5\n",
        "time thread op off_kib count elapsed_us\n0 7 rd 0 4096 90\n0.002   7 write 64 512 1.5\n",
        "time|thread|op|offset|size_sectors|service_us\n0|7|readv|0|8|90\n0.002|7|writev|65536|1|1.5\n",
    ];
    for content in same {
        assert_eq!(read("csv_names", content), expected, "{content}");
    }
}

#[test]
fn clocks_and_times_since_1970_in_any_unit() {
    let gap = |test, first: &str, second: &str| {
        let records = read(test, &format!("timestamp,offset,size\n{first},0,1\n{second},0,1\n"));
        (records[0].time, records[1].time)
    };
    let ms = |count: u64| (Nanos::ZERO, Nanos(count * 1_000_000));
    assert_eq!(gap("csv_epoch", "1714566896.789", "1714566896.791"), ms(2));
    assert_eq!(gap("csv_epoch", "1714566896789", "1714566896791"), ms(2));
    assert_eq!(gap("csv_epoch", "1714566896789000.5", "1714566896791000.5"), ms(2));
    assert_eq!(gap("csv_epoch", "1714566896789000000", "1714566896791000000"), ms(2));
    assert_eq!(gap("csv_epoch", "2024-05-01T12:34:56.789Z", "2024-05-01T14:34:56.791+02:00"), ms(2));
    assert_eq!(gap("csv_epoch", "12:34:56", "12:34:56.002"), ms(2));
    let path = file(&scratch("csv_epoch_note"), "x.csv", "timestamp,offset,size\n1714566896789,0,1\n");
    assert_eq!(open(&path, "auto").unwrap().note().unwrap(), "the times are taken as milliseconds");
    let wrong = error("csv_epoch_wrong", "time,offset,size\n12:34,0,1\n");
    assert!(wrong.contains("line 2: \"12:34\" in column time is not a time; allowed: HH:MM:SS.fraction"), "{wrong}");
}

#[test]
fn files_by_path_are_numbered_and_have_the_size_that_is_reached() {
    let content = "path,offset,length\n/data/a,0,10\n\"/data/b, c\",100,5\n/data/a,90,10\n7,0,1\n";
    let path = file(&scratch("csv_paths"), "x.csv", content);
    let mut reader = open(&path, "auto").unwrap();
    let files: Vec<u32> = drain(&mut *reader).unwrap().iter().map(|record| record.file).collect();
    assert_eq!(files, [0, 1, 0, 2]);
    let entry = |file, size_bytes, path: &str| FileEntry { file, size_bytes, path: path.to_owned() };
    assert_eq!(reader.files(), [entry(0, 100, "/data/a"), entry(1, 105, "/data/b, c"), entry(2, 1, "7")]);
}

#[test]
fn what_moves_no_data_is_left_out_and_counted() {
    let content = "op,offset,size\nopenat,,\nread,0,10\nread,10,0\nfsync,,\nclose,,\n";
    let mut reader = open(&file(&scratch("csv_nothing"), "x.csv", content), "auto").unwrap();
    assert_eq!((drain(&mut *reader).unwrap().len(), reader.skipped()), (1, 4));
    let wrong = error("csv_nothing_wrong", "op,offset,size\nfrobnicate,0,1\n");
    assert!(
        wrong.contains("line 2: \"frobnicate\" in column op is not an operation; allowed: R, W, read, write"),
        "{wrong}"
    );
}

#[test]
fn offsets_without_sizes_take_the_size_that_is_given() {
    let directory = scratch("csv_offsets");
    let at = |offset, size| Record { offset, size, ..Record::default() };
    let bare = file(&directory, "bare.txt", "# recorded by hand\n4096\n0x2000\n\n0\n");
    let mut reader = open_with(&bare, "auto", Some(512)).unwrap();
    assert_eq!(drain(&mut *reader).unwrap(), [at(4096, 512), at(8192, 512), at(0, 512)]);
    assert!(reader.carries().addresses && !reader.carries().objects);
    let column = file(&directory, "column.csv", "offset\n4096\n0x2000\n");
    assert_eq!(drain(&mut *open_with(&column, "auto", Some(7)).unwrap()).unwrap(), [at(4096, 7), at(8192, 7)]);

    let refused = |path, format, size| open_with(path, format, size).err().unwrap().to_string();
    let hexadecimal = file(&directory, "hexadecimal.txt", "0x10\n0x20\n");
    assert!(refused(&hexadecimal, "auto", None)
        .ends_with("allowed: with a size, --request-size 4KiB (workload.request_size)"));
    assert!(refused(&column, "auto", None).contains("an offset but no size"));
    assert!(refused(&bare, "auto", Some(0)).starts_with("request_size: is 0; allowed"));
    let sized = file(&directory, "sized.csv", "offset,size\n1,1\n");
    assert!(refused(&sized, "auto", Some(1)).contains("has a size column; allowed: no request size"));
    let fio = file(&directory, "fio.log", "fio version 2 iolog\n/f read 0 1\n");
    let error = refused(&fio, "auto", Some(1));
    assert!(
        error.contains("format fio, which carries sizes; allowed: no request_size, or one of the formats"),
        "{error}"
    );
}
