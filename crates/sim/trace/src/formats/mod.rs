//! One file per trace format, and what they share: `columns` turns a line into a record, `fixed` defines a format by
//! columns in a fixed order, `files` is the file table of the CSV formats, `names` numbers names, `bytes` is for binary
//! records.

mod alibaba;
mod baleen;
mod biosnoop;
mod blkparse;
mod bytes;
mod cloudfront;
mod columns;
pub(crate) mod csv;
mod darshan;
mod dbench;
mod dftracer;
mod disksim;
mod etw;
mod fields;
mod files;
mod fio;
mod fio_lat;
mod fiu;
mod fixed;
mod ftrace;
mod header;
pub(crate) mod headstart;
pub(crate) mod hints;
mod ibm_cos;
mod lirs;
mod lis;
mod measured;
mod meta;
mod mqsim;
mod msr;
mod names;
pub(crate) mod offsets;
mod operation;
pub(crate) mod oracle_general;
mod procmon;
mod replayer;
mod rocksdb;
mod s3_log;
mod spc;
mod syscalls;
mod systor;
mod table;
mod tencent;
mod thesios;
mod twitter;
mod u32_blocks;
mod vscsi;
mod webcachesim;

pub(crate) use biosnoop::lacks_sectors;
pub(crate) use files::{read_table, table_beside, table_path, HEADER as TABLE_HEADER};
pub(crate) use names::Processes;

use crate::Format;

/// All formats. If a file matches several, one with a mark wins; among equals, the first row wins. CSV formats with a
/// distinctive header therefore precede `csv`.
pub static FORMATS: &[Format] = &[
    headstart::FORMAT,
    hints::FORMAT,
    msr::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    systor::FORMAT,
    dbench::FORMAT,
    biosnoop::FORMAT,
    thesios::FORMAT,
    baleen::FORMAT,
    twitter::FORMAT,
    meta::KEY_VALUE_FORMAT,
    meta::CDN_FORMAT,
    rocksdb::FORMAT,
    procmon::FORMAT,
    etw::FORMAT,
    dftracer::FORMAT,
    darshan::FORMAT,
    ftrace::FORMAT,
    fiu::FORMAT,
    ibm_cos::FORMAT,
    s3_log::FORMAT,
    cloudfront::FORMAT,
    csv::FORMAT,
    syscalls::strace::FORMAT,
    syscalls::perf::FORMAT,
    fio::FORMAT,
    fio_lat::FORMAT,
    blkparse::FORMAT,
    spc::FORMAT,
    disksim::FORMAT,
    replayer::FORMAT,
    mqsim::FORMAT,
    measured::FORMAT,
    webcachesim::FORMAT,
    lis::FORMAT,
    lirs::FORMAT,
    offsets::FORMAT,
    vscsi::FORMAT,
    oracle_general::FORMAT,
    u32_blocks::FORMAT,
];

/// Whether the first bytes of a file can be text: UTF-8 without control characters. A character cut off at the end of
/// `head` is ignored.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => head,
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        Err(_) => return false,
    };
    whole.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

/// The lines of a head, without blank lines and remarks. A line cut off at the end of `head` is omitted unless it is
/// the only one.
fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |last| &head[..last]);
    let lines = whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !is_remark(line))
}

/// Offset and size of a request for the bytes from `first` to `last` of an object of `size` bytes; without bounds, of
/// the whole object.
fn ranged(first: Option<u64>, last: Option<u64>, size: u64) -> (u64, u64) {
    let first = first.unwrap_or(0);
    let end = last.map_or(size, |last| size.min(last.saturating_add(1)));
    (first, end.saturating_sub(first))
}

/// Resolves "%20" and other escapes in the path of a URL.
fn unescaped(path: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return path.into();
    }
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain.into()
}

/// Whether the first lines of a text, at least one and at most eight, are all accepted.
fn first_lines(head: &[u8], accept: impl Fn(&[u8]) -> bool) -> bool {
    lines_of(head).next().is_some() && lines_of(head).take(8).all(accept)
}

/// Whether most of the first lines, not counting those to `skip`, are accepted: messages of the tool or of the traced
/// program may be in between.
fn mostly(head: &[u8], skip: impl Fn(&[u8]) -> bool, accept: impl Fn(&[u8]) -> bool) -> bool {
    let lines = || lines_of(head).filter(|line| !skip(line)).take(32);
    2 * lines().filter(|line| accept(line)).count() > lines().count()
}

/// Whether a line is a comment or a remark of the tracer about itself, which may occur anywhere in a tool's text.
pub(crate) fn is_remark(line: &[u8]) -> bool {
    // blkparse; bpftrace; bcc and perf-tools; the terminal.
    const BEGINNINGS: [&[u8]; 14] = [
        b"#",
        b"//",
        b"Input file ",
        b"Attaching ",
        b"Attached ",
        b"Detaching",
        b"@",
        b"Tracing ",
        b"Ending tracing",
        b"Possibly lost ",
        b"Lost ",
        b"WARNING: ",
        b"Warning: ",
        b"^C",
    ];
    let line = line.trim_ascii_start();
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}
