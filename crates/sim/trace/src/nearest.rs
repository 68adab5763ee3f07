//! Guesses what an unrecognised file is, and advises how to convert it.

use crate::formats::lacks_sectors;

/// Prefixes of files, and the advice for each.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"PERFILE2", "looks like the binary file of perf record; perf trace -o FILE prints a trace of calls, perf script one of block events"),
    (b"PAR1", "looks like Parquet; write it as CSV: python -c \"import pandas; pandas.read_parquet('F').to_csv('F.csv')\""),
    (b"SQLite format 3", "looks like an SQLite database; export the table as CSV: sqlite3 -csv -header F 'select ...'"),
    (b"\x17\x08\x44tracing", "looks like the binary file of trace-cmd; trace-cmd report prints block events, which \
    can be read"),
    // BLK_IO_TRACE_MAGIC and version 7, in either byte order.
    (b"\x07\x74\x61\x65", "looks like the binary file of blktrace; blkparse -i FILE prints a trace, which can be read"),
    (b"% time ", "looks like the summary of strace -c, which has no calls; record without -c: strace -f -y -ttt -T -o FILE CMD"),
    (b"{", "looks like JSON; write it as CSV with a header such as time,op,file,offset,size: jq -r '[.time, ...] | @csv'"),
    (b"[{", "looks like JSON; write it as CSV with a header such as time,op,file,offset,size: jq -r '.[] | [.time, ...] | @csv'"),
];

/// The advice for the file's most likely type.
pub(crate) fn nearest(head: &[u8]) -> Option<&'static str> {
    if let Some((_, advice)) = BEGINNINGS.iter().find(|(beginning, _)| head.starts_with(beginning)) {
        return Some(advice);
    }
    if lacks_sectors(head) {
        return Some(
            "looks like bpftrace's biosnoop.bt, which prints no sectors; use biosnoop of bcc, or the script in \
             docs/your-own-trace.md",
        );
    }
    let first = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
    let numbers = |separator: u8| {
        let mut fields =
            first.split(|&byte| byte == separator).map(<[u8]>::trim_ascii).filter(|field| !field.is_empty());
        let is_number = |field: &[u8]| {
            field.iter().any(u8::is_ascii_digit) && field.iter().all(|byte| b"0123456789.xabcdefABCDEF".contains(byte))
        };
        fields.clone().count() > 1 && fields.any(is_number)
    };
    if [b',', b';', b'\t', b'|', b' '].into_iter().any(numbers) {
        return Some(
            "nearest is csv, but there is no header; add one above the data, such as time,op,file,offset,size",
        );
    }
    let text = std::str::from_utf8(first).ok()?;
    let names = ["time", "op", "pid", "offset", "size", "length", "read", "write", "sector", "lba", "bytes", "latency"];
    let lower = text.to_ascii_lowercase();
    (text.contains([',', ';', '\t']) && names.iter().any(|name| lower.contains(name)))
        .then_some("nearest is csv; its header needs a column of addresses and one of sizes, such as offset,size")
}
