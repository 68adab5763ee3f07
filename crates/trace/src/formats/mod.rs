//! One file per trace format. `columns` is what the two CSV formats share, `files` their file table.

mod columns;
pub(crate) mod csv;
mod files;
pub(crate) mod headstart;
pub(crate) mod lirs;
pub(crate) mod lis;
pub(crate) mod measured;
pub(crate) mod oracle_general;

pub(crate) use files::{read_table, table_beside, table_path, HEADER as TABLE_HEADER};

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
