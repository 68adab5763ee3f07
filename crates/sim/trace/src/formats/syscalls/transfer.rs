//! Calls that move data from one descriptor to another: a read of the source and a write of the target.
//!
//! Source: sendfile(2), splice(2), tee(2), vmsplice(2), copy_file_range(2). If an offset is given, the call uses it and
//! the descriptor's offset does not move; if it is NULL, the descriptor's offset is used and moves. Pipes and sockets
//! are not on disk: of a splice from a file into a pipe only the read remains. tee and vmsplice only work on pipes.

use super::call::{descriptor, leading_number, Call};
use super::{Calls, End, FileOffset, Issued, Style, Target};

impl Calls {
    pub(super) fn transfer(&mut self, issued: Issued, call: &Call, style: Style) -> Result<(), String> {
        let end = |fd: (usize, &str), place: Option<(usize, &str)>| {
            let (fd, name) = descriptor(style.argument(call, fd.0, &[fd.1]))?;
            let place = place.map_or(FileOffset::Offset, |(index, name)| match style {
                Style::Strace => place_of(call.at(index)),
                // perf prints the pointer.
                Style::Perf => call.named(name).map_or(FileOffset::Offset, |_| FileOffset::Hidden),
            });
            Some(End { fd, name, place })
        };
        let (source, target) = match call.name {
            "copy_file_range" | "splice" => {
                (end((0, "fd_in"), Some((1, "off_in"))), end((2, "fd_out"), Some((3, "off_out"))))
            }
            "tee" => (end((0, "fdin"), None), end((1, "fdout"), None)),
            "vmsplice" => (None, end((0, "fd"), None)),
            // "NULL", "[0]" or "[0] => [4096]".
            _ => (end((1, "in_fd"), Some((2, "offset"))), end((0, "out_fd"), None)),
        };
        let Some(size) = call.number() else { return Ok(()) };
        let mut of_files = 0;
        let mut others = Vec::new();
        for (end, write) in [(source, false), (target, true)] {
            let Some(end) = end else { continue };
            match self.target_of(issued.pid, end)? {
                Some(Target::File(file)) => {
                    of_files += 1;
                    if size > 0 {
                        let record = self.request(issued, end, file, size, write, false)?;
                        self.give(record);
                    }
                }
                other => others.push(other),
            }
        }
        // One end of these is always a pipe or a socket; of two files, neither may be unknown.
        if of_files == 0 || call.name == "copy_file_range" {
            others.into_iter().take(1).for_each(|other| self.leave_out(other));
        } else if size == 0 {
            self.skipped += 1;
        }
        Ok(())
    }
}

/// The position of a transfer, from the printed pointer to an offset: "NULL", or the offset in brackets.
fn place_of(pointer: &str) -> FileOffset {
    match pointer.strip_prefix('[') {
        Some(offset) => leading_number(offset).map_or(FileOffset::Hidden, FileOffset::At),
        None if pointer.starts_with("0x") => FileOffset::Hidden,
        None => FileOffset::Offset,
    }
}
