//! One file per trace format, and what they share: `columns` turns a line into a record, `fixed` makes a format of
//! columns in a fixed order, `files` is the file table of the CSV formats, `names` numbers names, `scsi` and `bytes`
//! are for binary records.

pub(crate) mod alibaba;
pub(crate) mod biosnoop;
pub(crate) mod blkparse;
mod bytes;
mod columns;
pub(crate) mod csv;
pub(crate) mod dbench;
pub(crate) mod disksim;
mod fields;
mod files;
pub(crate) mod fio;
mod fixed;
mod header;
pub(crate) mod headstart;
pub(crate) mod hints;
pub(crate) mod lirs;
pub(crate) mod lis;
pub(crate) mod measured;
pub(crate) mod msr;
mod names;
pub(crate) mod offsets;
pub(crate) mod oracle_general;
pub(crate) mod replayer;
mod scsi;
pub(crate) mod spc;
pub(crate) mod syscalls;
pub(crate) mod systor;
pub(crate) mod tencent;
pub(crate) mod u32_blocks;
pub(crate) mod vscsi;

pub(crate) use biosnoop::lacks_sectors;
pub(crate) use files::{read_table, table_beside, table_path, HEADER as TABLE_HEADER};

/// Whether the first bytes of a file can be text: UTF-8 without control characters. A character that `head` cuts is
/// not looked at.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => head,
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        Err(_) => return false,
    };
    whole.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

/// Whether the first lines of a text, at least one and at most eight, are all accepted. A line that `head` cuts is
/// not looked at unless it is the only one; blank lines are passed over.
fn first_lines(head: &[u8], accept: impl Fn(&[u8]) -> bool) -> bool {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |last| &head[..last]);
    let lines = whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut seen = 0;
    for line in lines.take(8) {
        if !accept(line) {
            return false;
        }
        seen += 1;
    }
    seen > 0
}
