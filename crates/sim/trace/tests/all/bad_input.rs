//! Every kind of bad input gives one line that names the file and the position, without side effects.

use headstart_trace::{TraceError, FORMATS};

use crate::common::{bzip2, file, gzip, oracle, records, scratch, vscsi_1, xz, zstd};

const HEADER: &str = "time,op,pid,file,offset,size,dur_us\n";

/// The error of `content` under `name`, checked for being one line that begins with the file's path.
fn error(test: &str, name: &str, content: &[u8], format: &str) -> String {
    let path = file(&scratch(test), name, content);
    let error = records(&path, format).expect_err("an error").to_string();
    assert!(!error.contains('\n'), "{error}");
    error.strip_prefix(path.to_str().unwrap()).unwrap_or_else(|| panic!("no file: {error}")).to_owned()
}

#[test]
fn wrong_fields_name_line_column_and_what_is_allowed() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "0,R,1,0,abc,1,1",
            "headstart",
            ", line 2: \"abc\" in column offset is not a whole number; allowed: 0 or more",
        ),
        ("0,R,1,0,-5,1,1", "headstart", ", line 2: \"-5\" in column offset is negative; allowed: 0 or more"),
        (
            "0,R,1,0,1.5,1,1",
            "headstart",
            ", line 2: \"1.5\" in column offset is not a whole number; allowed: 0 or more",
        ),
        ("0,R,1,0,,1,1", "headstart", ", line 2: column offset is empty; allowed: a whole number, 0 or more"),
        ("0,R,1,0,0,0,1", "headstart", ": the trace has no records; allowed: one or more"),
        ("-1,R,1,0,0,1,1", "headstart", ", line 2: \"-1\" in column time is negative; allowed: a time, 0 or more"),
        ("NaN,R,1,0,0,1,1", "headstart", ", line 2: \"NaN\" in column time is not finite; allowed: a time, 0 or more"),
        (
            "0,X,1,0,0,1,1",
            "headstart",
            ", line 2: \"X\" in column op is not an operation; allowed: R, W, read, write, SCSI 28, 2a",
        ),
        (
            "0,R,4294967296,0,0,1,1",
            "headstart",
            ", line 2: \"4294967296\" in column pid is too large; allowed: 0 to 4294967295",
        ),
        ("0,R,1,0,0,1", "headstart", ", line 2: \"0,R,1,0,0,1\" has 6 columns; allowed: 7"),
        ("0,R,1,0,0,1,1,1", "headstart", ", line 2: \"0,R,1,0,0,1,1,1\" has more than 7 columns; allowed: 7"),
        (
            "0,R,1,0,18446744073709551615,1,1",
            "csv",
            ", line 2: offset 18446744073709551615 + size 1 is too large; allowed: below 2^64",
        ),
    ];
    for (lines, format, expected) in cases {
        let content = format!("{HEADER}{lines}\n");
        assert_eq!(error("wrong_fields", "x.csv", content.as_bytes(), format), *expected);
    }
}

#[test]
fn wrong_headers_list_what_is_allowed() {
    let header = |content: &str, format: &str| error("wrong_headers", "x.csv", content.as_bytes(), format);
    assert!(header("time,op\n1,R\n", "headstart").ends_with("allowed: time,op,pid,file,offset,size,dur_us"));
    let no_place = header("time,op\n1,R\n", "csv");
    assert!(no_place.starts_with(", line 1: the header \"time,op\" has no address column; allowed: one of offset"));
    assert!(header("time,op\n1,R\n", "auto").contains("not recognised; nearest is csv; its header needs a column"));
    assert!(header("offset,id,size\n1,1,1\n", "csv").contains("has both offset and id"));
    assert!(header("time,time_us,id\n1,1,1\n", "csv").contains("has both time and time_us"));
    assert!(header("offset\n1\n", "csv").contains("has an offset but no size"));
    assert!(header(&"id,".repeat(100), "csv").contains("has more than 64 columns"));
    assert!(error("wrong_headers", "x.csv", b"\xff\xfeid\n1\n", "csv").contains("is not UTF-8"));
}

#[test]
fn wrong_lines_of_the_other_text_formats() {
    let lirs = |content: &[u8]| error("wrong_lirs", "x.trace", content, "lirs");
    assert_eq!(lirs(b"hello\n"), ", line 1: \"hello\" in column block is not a whole number; allowed: 0 or more");
    assert_eq!(lirs(b"1\n\n2 3\n"), ", line 3: \"2 3\" in column block is not a whole number; allowed: 0 or more");
    let named = |content: &[u8]| error("wrong_lirs", "x.trace", content, "lirs");
    assert_eq!(named(b"1\n\xff\n"), ", line 2: \"\\xff\" in column block is not a whole number; allowed: 0 or more");
    let lis = |content: &[u8]| error("wrong_lis", "x.lis", content, "lis");
    assert!(lis(b"1 1 0 0\n5\n").starts_with(", line 2: \"5\" has 1 column; allowed: 4"));
    assert!(lis(b"1 1 0\n").starts_with(", line 1: \"1 1 0\" has 3 columns; allowed: 4"));
    assert!(lis(b"1 1 0 0 0\n").starts_with(", line 1: \"1 1 0 0 0\" has 5 columns; allowed: 4"));
    assert_eq!(lis(b"1 0 0 0\n"), ": the trace has no records; allowed: one or more");
    assert!(lis(b"36028797018963968 2 0 0\n").contains("in column start is too large"));
    assert!(lis(b"36028797018963967 2 0 0\n").contains("is too large; allowed: below 2^64"));
    assert!(lis(b"1 -1 0 0\n").contains("\"-1\" in column count is negative"));
    // Detected by its words, whatever its numbers are.
    let measured = |content: &[u8]| error("wrong_measured", "x.trace", content, "auto");
    let near = measured(b"R Hit 8 4 500 100\nR Hit near 4 500 100\n");
    assert_eq!(near, ", line 2: \"near\" in column sector is not a whole number; allowed: 0 or more");
    assert_eq!(measured(b"R Hit 8 0 5 1\n"), ": the trace has no records; allowed: one or more");
    assert_eq!(
        measured(b"W Miss 8 4 -5 1\n"),
        ", line 1: \"-5\" in column service is negative; allowed: a time, 0 or more"
    );
    assert!(
        measured(b"R Hit 8 4 5\n").starts_with(", line 1: \"R Hit 8 4 5\" has 5 columns; allowed: 6, \"R|W Hit|Miss")
    );
    assert!(measured(b"R Hit 36028797018963968 4 5 5\n").contains("in column sector is too large"));
    let long = measured(b"R Hit 8 4 18446744073709551 1\nR Hit 8 4 0 0\n");
    assert_eq!(long, ", line 1: the times sum to more than 584 years; allowed: less");
    let named = |content: &[u8]| error("wrong_measured", "x.trace", content, "measured");
    assert_eq!(named(b"X Hit 8 4 5 1\n"), ", line 1: \"X\" in column op is not an operation; allowed: R, W");
    assert_eq!(
        named(b"R Hot 8 4 5 1\n"),
        ", line 1: \"Hot\" in column cache is unknown; allowed: Hit, Miss, Doub, Trip"
    );
}

#[test]
fn wrong_lines_of_block_traces_name_column_and_what_is_allowed() {
    // format, a valid line, an invalid one, the error for the second line
    let cases: &[(&str, &str, &str, &str)] = &[
        ("spc", "0,1,512,R,0", "0,1,512,X,0", "\"X\" in column opcode is not an operation; allowed: R, W, read, write"),
        ("spc", "0,1,512,R,0", "0,1,512,R", "\"0,1,512,R\" has 4 columns; allowed: 5"),
        ("spc", "0,1,512,R,0", "0,36028797018963968,512,R,0", "\"36028797018963968\" in column LBA is too large; allowed: 0 to 36028797018963967"),
        ("msr", "5,h,0,Read,0,1,1", "5,h,x,Read,0,1,1", "\"x\" in column DiskNumber is not a whole number; allowed: 0 or more"),
        ("msr", "5,h,0,Read,0,1,1", "5,h,0,Read,0,1,-1", "\"-1\" in column ResponseTime is negative; allowed: a time, 0 or more"),
        ("alibaba", "0,R,0,1,5", "0,R,0,1,5,6", "\"0,R,0,1,5,6\" has more than 5 columns; allowed: 5"),
        ("tencent", "5,8,8,0,1", "5,8,8,2,1", "\"2\" in column IOType is not an operation; allowed: 0 for read, 1 for write"),
        ("replayer", "5.0 0 0 512 1", "5.0 0 0 512 2", "\"2\" in column read is not an operation; allowed: 1 for read, 0 for write"),
        ("disksim", "5.0 0 7 1 1", "5.0 0 7 1 g", "\"g\" in column flags is not hexadecimal; allowed: up to 16 digits"),
        ("systor17", "5,1,R,0,0,1", "5,1,R,0,-7,1", "\"-7\" in column Offset is negative; allowed: 0 or more"),
        ("fio", "fio version 2 iolog", "/f reed 0 1", "\"reed\" in column action is unknown; allowed: read, write, add, open, close, sync, datasync, trim, wait"),
        ("fio", "fio version 2 iolog", "/f read 0", "\"/f read 0\" has 3 columns; allowed: \"file action\" or \"file action offset length\""),
        ("fio", "fio version 3 iolog", "5 /f", "\"5 /f\" has too few columns; allowed: \"us file action\" or \"us file action offset length\""),
        ("fio", "fio version 3 iolog", "x /f read 0 1", "\"x\" in column time is not a number; allowed: a time, 0 or more"),
        ("blkparse", "8,0 1 1 0.5 9 Q R 8 + 8 [x]", "8,0 1 1 0.5 9 Q R x + 8 [x]", "\"x\" in column sector is not a whole number; allowed: 0 or more"),
        ("blkparse", "8,0 1 1 0.5 9 Q R 8 + 8 [x]", "8 1 1 0.5 9 Q R 8 + 8 [x]", "\"8\" in column device is not a device; allowed: major,minor"),
        ("blkparse", "8,0 1 1 0.5 9 Q R 8 + 8 [x]", "8,0 1 1 0.5", "\"8,0 1 1 0.5\" has no action; allowed: \"major,minor cpu sequence seconds pid action type sector + sectors\""),
        ("dbench", "READ \"/f\" 0 1 *", "READ \"/f\" * 1 *", "\"*\" in column offset is not a whole number; allowed: 0 or more"),
        ("dbench", "READ \"/f\" 0 1 *", "READ \"/f\" 0 *", "\"READ\" has 3 arguments; allowed: 4, \"name\" offset size status"),
        ("dbench", "READ \"/f\" 0 1 *", "ReadX 7 0 1 1 *", "handle \"7\" is not open; allowed: one that NTCreateX opened"),
        ("dbench", "1.5 READ \"/f\" 0 1 *", "READ \"/f\" 0 1 *", "the line has no time; allowed: a time on every line, or none"),
    ];
    for (format, right, wrong, expected) in cases {
        let content = format!("{right}\n{wrong}\n");
        let found = error("wrong_blocks", "trace", content.as_bytes(), format);
        assert_eq!(found, format!(", line 2: {expected}"), "{format}");
    }
    let first = error("wrong_blocks", "trace", b"fio version 1\n", "fio");
    let allowed = "allowed: fio version 2 iolog, fio version 3 iolog";
    assert_eq!(first, format!(", line 1: the first line \"fio version 1\" is wrong; {allowed}"));
    assert!(error("wrong_blocks", "trace", b"a\nb\n", "blkparse").starts_with(": no line is a request; allowed"));
}

#[test]
fn wrong_records_of_virtual_disks() {
    let bad = |content: &[u8]| error("wrong_vscsi", "x.vscsi", content, "vscsi");
    let first = vscsi_1(1, 0x28, 512, 1, 5);
    assert_eq!(
        bad(&vscsi_1(1, 0x28, 512, 1 << 55, 5)),
        ", record 1: sector 36028797018963968 is too large; allowed: 0 to 36028797018963967"
    );
    assert!(
        bad(&vscsi_1(1, 0x28, 512, 1, u64::MAX)).contains("record 1: the time of 18446744073709551615 us is too large")
    );
    assert!(bad(&[&first[..], &[0; 32]].concat()).starts_with(", record 2: the version is 0; allowed: 1"));
    assert!(bad(&first[..31]).starts_with(", record 1: the trace ends inside a record: 31 bytes of 32"));
}

#[test]
fn wrong_binary_records() {
    let directory_name = "wrong_binary";
    let bad = |content: &[u8]| error(directory_name, "x.oracleGeneral", content, "auto");
    let one = oracle(5, 1, 1, -1);
    assert_eq!(
        bad(&[&one[..], &one[..23]].concat()),
        ", record 2: the trace ends inside a record: 23 bytes of 24; allowed: whole records"
    );
    assert!(error(directory_name, "x.oracleGeneral", &one[..5], "oracleGeneral")
        .starts_with(", record 1: the trace ends inside a record"));
    let mut late: Vec<u8> = (0..2000).flat_map(|second| oracle(1000 + second, 1, 1, -1)).collect();
    late.extend(oracle(4, 1, 1, -1));
    let late = error(directory_name, "x.oracleGeneral", &late, "oracleGeneral");
    assert!(late.starts_with(", record 2001: the time is 2995s earlier than in a previous record"), "{late}");
    assert!(bad(&oracle(4, 1, 0, -1)).starts_with(": all 1 records are empty"));
}

#[test]
fn empty_traces_are_errors_in_every_format() {
    for row in FORMATS {
        for content in [&b""[..], &gzip(b""), &bzip2(b""), &xz(b""), &zstd(b"")] {
            let error = error("empty_traces", "x.trace", content, row.name);
            assert!(
                [": the trace has no records", ": there is no header", ": is not a recording"]
                    .iter()
                    .any(|problem| error.starts_with(problem)),
                "{error}"
            );
        }
    }
    assert!(error("empty_auto", "x", b"", "auto").starts_with(": the trace has no records"));
    assert!(error("empty_csv", "x.csv", HEADER.as_bytes(), "auto").starts_with(": the trace has no records"));
    assert!(error("empty_lirs", "x.trace", b"*\n", "auto").starts_with(": the trace has no records"));
    let empty_lis = |format| error("empty_lis", "x.lis", b"\n\n", format);
    assert!(empty_lis("lis").starts_with(": the trace has no records"));
}

#[test]
fn truncated_and_damaged_streams_say_so() {
    let lines: String =
        (0..50_000u64).map(|block| format!("{}\n", block.wrapping_mul(2_654_435_761) % 100_000)).collect();
    for (name, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)] {
        let whole = pack(lines.as_bytes());
        for length in [8, 20, whole.len() / 2, whole.len() - 1] {
            let error = error("truncated", "x.trace", &whole[..length], "lirs");
            assert!(error.starts_with(&format!(": the {name} stream is ")), "{length} of {}: {error}", whole.len());
        }
        let error = error("truncated_half", "x.trace", &whole[..whole.len() / 2], "lirs");
        assert_eq!(error, format!(": the {name} stream is truncated; allowed: a complete {name} file"));
    }
    let mut damaged = gzip(lines.as_bytes());
    let middle = damaged.len() / 2;
    damaged[middle..middle + 16].fill(0xff);
    let error = error("damaged", "x.trace", &damaged, "lirs");
    assert!(error.starts_with(": the gzip stream is damaged") || error.contains("in column block"), "{error}");
}

#[test]
fn missing_files_directories_and_unknown_formats() {
    let directory = scratch("missing");
    let missing = directory.join("none.trace");
    let error = headstart_trace::open(&missing, "auto").err().unwrap();
    assert!(matches!(error, TraceError::Io { .. }) && error.to_string().contains("none.trace: "), "{error}");
    let error = headstart_trace::open(&directory, "auto").err().unwrap().to_string();
    assert!(error.ends_with("is a directory; allowed: a trace in a regular file"), "{error}");
    let path = file(&directory, "x.bin", b"neither this nor that\n");
    let names: Vec<&str> = FORMATS.iter().map(|row| row.name).collect();
    let names = names.join(", ");
    let error = headstart_trace::open(&path, "auto").err().unwrap().to_string();
    assert!(error.ends_with(&format!("the format was not recognised; name it; allowed: {names}")), "{error}");
    let error = headstart_trace::open(&path, "spc2").err().unwrap().to_string();
    assert!(error.contains("unknown trace format \"spc2\"") && error.contains(&names), "{error}");
}

#[test]
fn a_wrong_file_table_names_the_table() {
    let directory = scratch("wrong_table");
    let trace = file(&directory, "x.csv", format!("{HEADER}0,R,1,0,0,1,1\n"));
    let table = |content: &[u8]| {
        file(&directory, "x.files.csv", content);
        headstart_trace::open(&trace, "auto").err().unwrap().to_string()
    };
    assert!(table(b"").contains("x.files.csv: the file table is empty"));
    assert!(table(b"a,b\n").contains("x.files.csv, line 1: the header \"a,b\" is wrong"));
    let header = b"file,max_offset,disk_size,path\n";
    let row = |row: &[u8]| table(&[header, row].concat());
    assert!(row(b"0,x,,/a\n").contains("line 2: \"x\" in column max_offset is not a whole number"));
    assert!(row(b"0,1,/a\n").contains("line 2: \"0,1,/a\" has 3 columns; allowed: 4"));
    assert!(row(b"0,1,1,\xff\n").contains("is not UTF-8"));
    assert!(row(b"0,1,1,/a\n0,1,1,/b\n").contains("line 3: file 0 has two rows"));
}

#[test]
fn a_binary_file_is_never_taken_for_block_numbers() {
    let digits: Vec<u8> = (0..2000).flat_map(|block| format!("{block}\n").into_bytes()).collect();
    let mut with_nul = digits.clone();
    with_nul[1000] = 0;
    let cases: [&[u8]; 5] =
        [b"\x7fELF\x02\x01\x01\0\0", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n\0", &with_nul, b"12\x1b[2J\n", b"\xff\xfe1\0"];
    for content in cases {
        let error = error("binary", "x.trace", content, "auto");
        assert!(error.starts_with(": the format was not recognised; name it"), "{error}");
    }
    assert_eq!(records(&file(&scratch("binary_not"), "x.trace", &digits), "auto").unwrap().len(), 2000);
}

#[test]
fn no_control_character_reaches_an_error() {
    let nasty = "a\0b\x1b[2J\x07\u{9b}1m\u{202e}\x7f\r";
    for row in FORMATS {
        for content in
            [format!("{nasty}\n"), format!("time,{nasty}\n1,2\n"), format!("fio version 2 iolog\n{nasty} {nasty}\n")]
        {
            let path = file(&scratch("control"), "evil\u{1b}[31m\n.csv", content.as_bytes());
            if let Err(error) = records(&path, row.name) {
                let error = error.to_string();
                assert!(!error.chars().any(|each| each.is_control() || each == '\u{202e}'), "{}: {error:?}", row.name);
                assert!(error.contains("evil\\u{1b}[31m\\n.csv"), "{error}");
            }
        }
    }
    let path = file(&scratch("control"), "x", b"1\n");
    let error = records(&path, "\x1b[2J").unwrap_err().to_string();
    assert!(error.contains("unknown trace format \"\\u{1b}[2J\""), "{error:?}");
}

#[test]
fn what_cannot_be_unpacked_is_named() {
    let packed: [(&[u8], &str); 3] =
        [(b"\x04\x22\x4d\x18rest", "lz4"), (b"PK\x03\x04rest", "zip"), (b"7z\xbc\xaf\x27\x1c", "7z")];
    for (content, name) in packed {
        let expected = format!(": is compressed by {name}; allowed: plain, or compressed by gzip, bzip2, xz or zstd");
        assert_eq!(error("packed", "x.csv.packed", content, "auto"), expected);
    }
}

/// Reading a pipe would wait for its writer, and `/dev/zero` has no end.
#[cfg(unix)]
#[test]
fn only_regular_files_are_opened() {
    let folder = scratch("irregular");
    let pipe = folder.join("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, what) in [
        (pipe.as_path(), "not a regular file"),
        (std::path::Path::new("/dev/zero"), "not a regular file"),
        (std::path::Path::new("/dev/null"), "not a regular file"),
        (folder.as_path(), "a directory"),
    ] {
        let expected = format!("{}: is {what}; allowed: a trace in a regular file", path.display());
        assert_eq!(records(path, "auto").unwrap_err().to_string(), expected);
        assert_eq!(headstart_trace::sha256_file(path).unwrap_err().to_string(), expected);
    }
}

/// 2 KB that stand for 252 million blocks of 8 KiB: they took 10.8 GB.
#[test]
fn a_small_file_is_not_allowed_many_blocks() {
    let lines: String = (0..60u64).map(|i| format!("{i},R,1,0,{},34359738368,1\n", i * 34_359_738_368)).collect();
    let path = file(&scratch("huge"), "huge.csv", format!("{HEADER}{lines}").as_bytes());
    let open = || headstart_trace::open(&path, "auto").unwrap();
    let expected = "huge.csv, line 6: with this request of 32GiB there are 20971520 distinct blocks, more than \
        16797696; allowed: larger blocks, smaller requests, or fewer of them";
    let error = headstart_trace::info(&mut *open(), Some(8192)).unwrap_err().to_string();
    assert!(error.ends_with(expected), "{error}");
    let error = headstart_trace::info(&mut *open(), Some(1)).unwrap_err().to_string();
    assert!(error.contains(", line 2: a request of 32GiB is 34359738368 blocks of 1B"), "{error}");
    assert_eq!(headstart_trace::info(&mut *open(), Some(1 << 30)).unwrap().distinct_blocks, 60 * 32);
}
