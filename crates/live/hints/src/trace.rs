//! The references of a command as the kernel traces them (`crate::page_trace`), in order.
//!
//! References to metadata, the pages of a block device, are not traced: `block_touch_buffer` shows only repeated ones.
//! Those that the command itself has to read are visible as pages that enter the page cache, in the file system of
//! block devices, which has no device of its own. The same is true of pages of files that the command waits for, reads
//! ahead, or writes, long before the read that waits for them is visible.

use std::io;
use std::time::Duration;

use crate::page_trace::{PageTrace, Purpose, Raw, RawEvent};
use headstart_host::child::Switches;
use headstart_host::PathError;
use headstart_host::Roots;

/// Referenced pages: the file, by device and inode, and the first and the last page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Device and inode.
    pub file: (u64, u64),
    /// First page.
    pub first: u64,
    /// Last page.
    pub last: u64,
    /// How the reference is known.
    pub by: By,
}

/// How a reference is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A system call or a fault: the pages of a call are there.
    Use,
    /// A fault has mapped those of the pages that are there, at least one.
    Mapped,
    /// A page of a device that the command had to read for its file system.
    Metadata,
    /// The page enters the page cache: something of that file is read or written.
    Coming,
}

/// The trace of one command. Dropping it removes it.
#[derive(Debug)]
pub struct Trace {
    pages: PageTrace,
    /// Events of one look, from all processors.
    came: Vec<RawEvent>,
    /// By task: the window that it has tried to map, and whether that was before the last look. If the page that it
    /// needs is not there, a fault event follows.
    mapped: Vec<(u32, Seen, bool)>,
}

impl Trace {
    /// A trace that follows no process yet.
    ///
    /// # Errors
    /// See [`PageTrace::new`].
    pub fn new(roots: &Roots, patience: Duration) -> Result<Self, PathError> {
        Ok(Self { pages: PageTrace::new(roots, Purpose::Run, patience)?, came: Vec::new(), mapped: Vec::new() })
    }

    /// For the command to start with.
    pub fn switches(&mut self) -> Option<Switches> {
        self.pages.switches.take()
    }

    /// See [`PageTrace::leave`].
    pub fn leave(self, is_last: bool) {
        self.pages.leave(is_last);
    }

    /// Traces only uses from now on: there is nothing left to suspend for pages that enter the page cache.
    pub fn uses_only(&self) {
        self.pages.uses_only();
    }

    /// Calls `each` for what has come since the last time, without waiting.
    ///
    /// # Errors
    /// From the system.
    pub fn take(&mut self, each: &mut dyn FnMut(Seen)) -> io::Result<()> {
        let Self { pages, came, mapped } = self;
        let taken = pages.take(|event| came.push(event));
        // The events of each processor are in order.
        came.sort_by_key(|event| event.time_ns);
        look(came.drain(..), mapped, each);
        taken
    }
}

/// Calls `each` for the references in the events of one look, and for the windows that are now known to be mapped.
fn look(came: impl Iterator<Item = RawEvent>, mapped: &mut Vec<(u32, Seen, bool)>, each: &mut dyn FnMut(Seen)) {
    for RawEvent { pid, raw, .. } in came {
        if let Some(at) = mapped.iter().position(|(task, ..)| *task == pid) {
            let (_, window, _) = mapped.swap_remove(at);
            if !is_fault_in(raw, &window) {
                each(window);
            }
        }
        match seen(raw) {
            Some(window) if window.by == By::Mapped => mapped.push((pid, window, false)),
            Some(seen) => each(seen),
            None => {}
        }
    }
    mapped.retain_mut(|(_, window, is_old)| {
        let is_done = std::mem::replace(is_old, true);
        if is_done {
            each(*window);
        }
        !is_done
    });
}

/// Whether the task needs a page of the window that was not there.
fn is_fault_in(raw: Raw, window: &Seen) -> bool {
    matches!(raw, Raw::Fault((device, inode), page)
        if (u64::from(device), inode) == window.file && (window.first..=window.last).contains(&page))
}

/// The reference in an event.
fn seen(raw: Raw) -> Option<Seen> {
    let ((device, inode), first, last, by) = match raw {
        // File systems without a device of their own, including that of block devices.
        Raw::Add((device, inode), first, _) if device >> 20 == 0 => ((0, inode), first, first, By::Metadata),
        Raw::Add(inode, first, pages) => (inode, first, (first + pages).saturating_sub(1), By::Coming),
        Raw::Get(inode, first, last) => (inode, first, last, By::Use),
        Raw::Map(inode, first, last) => (inode, first, last, By::Mapped),
        Raw::Fault(inode, page) => (inode, page, page, By::Use),
        Raw::Sleep | Raw::Wake => return None,
    };
    let file = match by {
        By::Metadata => (0, inode),
        By::Use | By::Mapped | By::Coming => (u64::from(device), inode),
    };
    (first <= last).then_some(Seen { file, first, last, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_unless_its_page_is_missing() {
        let inode = ((7 << 20) | 1, 0x1c);
        let event = |pid, raw| RawEvent { time_ns: 0, pid, raw, name: None };
        let (map, fault) = (|first| Raw::Map(inode, first, first + 15), |page| Raw::Fault(inode, page));
        let mut mapped = Vec::new();
        let mut looked = |events: &[RawEvent]| {
            let mut seen = Vec::new();
            look(events.iter().copied(), &mut mapped, &mut |each| seen.push((each.first, each.by)));
            seen
        };
        // Another task's fault proves nothing; one elsewhere proves that the window was mapped.
        let events = [event(1, map(0)), event(2, fault(3)), event(1, fault(5)), event(1, map(0)), event(1, fault(40))];
        assert_eq!(looked(&events), [(3, By::Use), (5, By::Use), (0, By::Mapped), (40, By::Use)]);
        // A fault may still follow the last window.
        assert_eq!(looked(&[event(1, map(48)), event(2, map(64))]), []);
        assert_eq!(looked(&[event(1, fault(50))]), [(50, By::Use), (64, By::Mapped)]);
        assert_eq!(looked(&[]), []);
    }

    #[test]
    fn events_by_hand() {
        let (inode, file) = (((7 << 20) | 1, 0x1c), ((7 << 20) | 1, 0x1c));
        let all = [
            (Raw::Get(inode, 0, 3), Some(Seen { file, first: 0, last: 3, by: By::Use })),
            (Raw::Map(inode, 5, 9), Some(Seen { file, first: 5, last: 9, by: By::Mapped })),
            (Raw::Fault(inode, 2), Some(Seen { file, first: 2, last: 2, by: By::Use })),
            (Raw::Add(inode, 3, 4), Some(Seen { file, first: 3, last: 6, by: By::Coming })),
            // The inode of a device has its number.
            (Raw::Add((5, 7 << 20), 3, 1), Some(Seen { file: (0, 7 << 20), first: 3, last: 3, by: By::Metadata })),
            // A read of an empty file references nothing.
            (Raw::Get(inode, 1, 0), None),
            (Raw::Sleep, None),
            (Raw::Wake, None),
        ];
        for (raw, expected) in all {
            assert_eq!(seen(raw), expected, "{raw:?}");
        }
    }
}
