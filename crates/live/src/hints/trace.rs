//! The references of a command as the kernel traces them: an instance of tracefs that follows the command and its children.
//!
//! ```text
//! mm_filemap_get_pages: dev=7:0 ino=c ofs=0-16383       read(2) and its like have got these bytes
//! mm_filemap_fault: dev=7:0 ino=c ofs=4096000           a page has faulted, cached or not
//! mm_filemap_map_pages: dev=7:0 ino=c ofs=4063232-4128767   a fault has mapped what is cached of it
//! ```
//!
//! References to metadata, the pages of a block device, are not traced: `block_touch_buffer` shows the repeated ones only. Those that
//! the command has to read itself are, as pages that come into the page cache. So are those of files that it waits for, has read ahead,
//! or writes: long before the read is seen that waits for them.
//!
//! ```text
//! mm_filemap_add_to_page_cache: dev 0:5 ino 700000 pfn=0x1234 ofs=4096 order=0    of the file system of devices, 7:0
//! mm_filemap_add_to_page_cache: dev 7:0 ino c pfn=0x1234 ofs=4096 order=0         of a file
//! ```

use std::fs::File;
use std::io::{self, Read};

use super::list::{device_number, PAGE_BYTES};
use crate::child::Switches;
use crate::tracefs::{next_name, open_pipe, Tracefs};
use crate::tune::Roots;

/// The events.
const EVENTS: [&str; 4] =
    ["filemap/mm_filemap_get_pages", "filemap/mm_filemap_fault", "filemap/mm_filemap_map_pages", ADDED];
const ADDED: &str = "filemap/mm_filemap_add_to_page_cache";
/// Read at a time.
const PIECE: usize = 256 << 10;

/// Pages that have been referenced: of a file, by device and inode, the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Device and inode.
    pub file: (u64, u64),
    /// First page.
    pub first: u64,
    /// Last page.
    pub last: u64,
    /// How that is known.
    pub by: By,
}

/// How a reference is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A system call or a fault: the pages of a call are there.
    Use,
    /// It is a page of a device that the command has had to read for its file system.
    Metadata,
    /// The page comes into the page cache: something is read of that file, or written.
    Coming,
}

/// The instance. Its buffers, 1.4 MB for each processor, hold some 20,000 events that have not been read; another size costs 10 ms.
/// Dropping it removes it; the next command that traces removes that of a killed process.
#[derive(Debug)]
pub struct Trace {
    pipe: File,
    /// For the command to start with.
    pub switches: Option<Switches>,
    room: Vec<u8>,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
    tracefs: Tracefs,
}

impl Trace {
    /// An instance that follows nobody yet.
    ///
    /// # Errors
    /// There is no tracefs, it lacks the events, or it may not be used. Then nothing is left.
    pub fn new(roots: &Roots) -> io::Result<Self> {
        let missing =
            |what: &str| io::Error::new(io::ErrorKind::NotFound, format!("{}: no {what}", roots.tracing.display()));
        if !roots.tracing.join("instances").is_dir() {
            return Err(missing("tracefs"));
        }
        for event in EVENTS {
            if !roots.tracing.join("events").join(event).is_dir() {
                return Err(missing(event));
            }
        }
        let tracefs = Tracefs::create(roots, &next_name(roots, "run"))?;
        let _ = tracefs.set("options/context-info", "0");
        let pipe = open_pipe(&tracefs.folder().join("trace_pipe"))?;
        let switches = Some(tracefs.follow()?);
        EVENTS.iter().try_for_each(|event| tracefs.set(&format!("events/{event}/enable"), "1"))?;
        Ok(Self { pipe, switches, room: vec![0; PIECE], rest: Vec::new(), tracefs })
    }

    /// Removes it without waiting until the kernel has. `is_last`: this process ends now.
    pub fn leave(self, is_last: bool) {
        let Self { pipe, switches, tracefs, .. } = self;
        // While they are open it cannot be removed.
        drop((pipe, switches));
        tracefs.leave(is_last);
    }

    /// From now on only uses are traced: nothing is held up any more for what comes into the page cache.
    pub fn uses_only(&self) {
        let _ = self.tracefs.set(&format!("events/{ADDED}/enable"), "0");
    }

    /// Gives `each` what has come since the last time, without waiting.
    ///
    /// # Errors
    /// As the system says.
    pub fn take(&mut self, each: &mut dyn FnMut(Seen)) -> io::Result<()> {
        loop {
            match self.pipe.read(&mut self.room) {
                Ok(0) => return Ok(()),
                Ok(bytes) => lines(&mut self.rest, &self.room[..bytes], each),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Cuts what has come into lines; `rest` is what is left of the last one.
fn lines(rest: &mut Vec<u8>, came: &[u8], each: &mut dyn FnMut(Seen)) {
    let mut came = came;
    while let Some(end) = came.iter().position(|byte| *byte == b'\n') {
        let line = if rest.is_empty() {
            &came[..end]
        } else {
            rest.extend_from_slice(&came[..end]);
            &rest[..]
        };
        if let Some(seen) = parse(line) {
            each(seen);
        }
        rest.clear();
        came = &came[end + 1..];
    }
    rest.extend_from_slice(came);
}

/// What a line says.
fn parse(line: &[u8]) -> Option<Seen> {
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once("mm_filemap_")?;
    if let Some((_, rest)) = rest.split_once(": dev ") {
        return parse_added(rest);
    }
    let (_, rest) = rest.split_once(": dev=")?;
    let mut words = rest.split(' ');
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = u64::from_str_radix(words.next()?.strip_prefix("ino=")?, 16).ok()?;
    let offsets = words.next()?.strip_prefix("ofs=")?;
    let (first, last) = offsets.split_once('-').unwrap_or((offsets, offsets));
    let page = |offset: &str| offset.parse::<u64>().ok().map(|offset| offset / PAGE_BYTES);
    let file = (device_number(major.parse().ok()?, minor.parse().ok()?), inode);
    let (first, last) = (page(first)?, page(last)?);
    (first <= last).then_some(Seen { file, first, last, by: By::Use })
}

/// What follows of a line on a page that came into the page cache.
fn parse_added(rest: &str) -> Option<Seen> {
    let mut words = rest.split(' ');
    let (major, minor) = words.next()?.split_once(':')?;
    let device = device_number(major.parse().ok()?, minor.parse().ok()?);
    let inode = words.skip_while(|word| *word != "ino").nth(1)?;
    let inode = u64::from_str_radix(inode, 16).ok()?;
    let offset = rest.split_once(" ofs=")?.1.split(' ').next()?;
    let page = offset.parse::<u64>().ok()? / PAGE_BYTES;
    // File systems without a device of their own, that of all devices among them.
    let (file, by) = if major == "0" { ((0, inode), By::Metadata) } else { ((device, inode), By::Coming) };
    Some(Seen { file, first: page, last: page, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parts: &[&str]) -> Vec<Seen> {
        let (mut seen, mut rest) = (Vec::new(), Vec::new());
        parts.iter().for_each(|part| lines(&mut rest, part.as_bytes(), &mut |each| seen.push(each)));
        seen
    }

    #[test]
    fn lines_by_hand() {
        let file = ((7 << 20) | 1, 0x1c);
        assert_eq!(
            all(&[
                "  mm_filemap_get_pages: dev=7:1 ino=1c ofs=0-16383\n mm_filemap_fault: dev=7:1 i",
                "no=1c ofs=8192\n"
            ]),
            [Seen { file, first: 0, last: 3, by: By::Use }, Seen { file, first: 2, last: 2, by: By::Use }]
        );
        let metadata = Seen { file: (0, 7 << 20), first: 3, last: 3, by: By::Metadata };
        let added = "mm_filemap_add_to_page_cache: dev ";
        assert_eq!(all(&[added, "0:5 ino 700000 pfn=0x1f ofs=12288 order=0\n"]), [metadata]);
        let coming = Seen { file, first: 3, last: 3, by: By::Coming };
        assert_eq!(all(&[added, "7:1 ino 1c pfn=0x1f ofs=12288 order=0\n"]), [coming]);
        assert_eq!(all(&["CPU:1 [LOST 212 EVENTS]\nmm_filemap_fault: dev=7:1\n\n"]), []);
    }
}
