//! Turns the kernel's events into reads: what was referenced, whether it was cached, and how long it took.
//!
//! The kernel reports the pages that a read needs (`get_pages`, after waiting for them), the page that a fault needs
//! (`fault`, before waiting; and `map_pages`, when it maps cached pages around it), and the pages that enter the cache
//! (`add`). New pages are *fresh* until they are referenced: a reference to fresh pages is a miss. A task in
//! uninterruptible sleep waits for a device if its events before or after say so:
//!
//! - a fault, or metadata that came, followed by sleep: the fault or the metadata waited;
//! - sleep followed by `get_pages` of fresh pages, or immediately by `get_pages`: the read waited, since its pages
//!   began to come.
//!
//! A read of many pages appears again for each part, with the same last page; it counts as one read. A second reference
//! to the same pages right after the first, as by small reads, is omitted.
//!
//! `map_pages` names the whole window around a fault, cached or not (mm/filemap.c). In the window count the pages that
//! came before, and the pages cached from the start: those that never come, and are cached when the recording ends. A
//! fault on a page of a large folio maps the whole folio.
//!
//! Cost: logarithmic in the ranges of pages. Memory: 40 bytes per read, and the fresh ranges.

use std::collections::BTreeMap;
use std::ops::Range;

use headstart_trace::hints::{Read, ReadKind};

use headstart_host::intervals::Intervals;

/// How soon after a sleep a read of cached pages must come for the sleep to count as its wait. A guess: between the two
/// there are a few hundred instructions of the kernel.
const SOON_NS: u64 = 100_000;

/// The content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Pages enter the cache.
    Add { file: u32, first: u64, pages: u64 },
    /// A read needs pages, and has them by now.
    Get { file: u32, first: u64, last: u64 },
    /// A fault needs a page.
    Fault { file: u32, page: u64 },
    /// A fault has mapped the cached ones of these pages.
    Map { file: u32, first: u64, last: u64 },
    /// The task sleeps until a device or a lock wakes it.
    Sleep,
    /// The task goes on.
    Wake,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub time_ns: u64,
    /// Index of the task.
    pub task: u32,
    pub what: What,
}

/// The state of a task.
#[derive(Debug, Clone, Default)]
struct Task {
    /// Its latest reference.
    last: Option<Last>,
    /// The read that further sleeps belong to: a fault, or metadata.
    open: Option<usize>,
    /// When the first page came that no reference has needed yet, and its file.
    coming: Option<(u64, u32)>,
    asleep_since: Option<u64>,
    /// Its unassigned sleeps since the latest reference: the start, the sum, and the end of the last one.
    slept: Option<(u64, u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    read: usize,
    kind: ReadKind,
    file: u32,
    first: u64,
    last: u64,
    /// Number of reads of this reference; a window may have several.
    reads: usize,
}

#[derive(Debug, Default)]
struct Pages {
    /// Pages that came and were not needed yet: when, and by which task.
    fresh: Intervals<(u64, u32)>,
    /// All pages that came, and those of them that came in a folio of several pages.
    came: Intervals<()>,
    folios: BTreeMap<u64, u64>,
    is_device: bool,
}

/// The reads so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    reads: Vec<Read>,
    tasks: BTreeMap<u32, Task>,
    files: BTreeMap<u32, Pages>,
    /// Reads of pages of windows that had not come.
    unknown: Vec<usize>,
}

impl Fold {
    /// Marks the pages of `file` as metadata.
    pub fn is_device(&mut self, file: u32) {
        self.files.entry(file).or_default().is_device = true;
    }

    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Handles the next event. Those of one task must come in order of time.
    pub fn take(&mut self, event: Event) {
        let Event { time_ns, task, what } = event;
        // The kernel's filter by process misses some switches to a followed task; a task that does something is awake.
        if what != What::Sleep {
            self.wake(time_ns, task);
        }
        match what {
            What::Add { file, first, pages } => self.add(time_ns, task, file, first..first + pages),
            What::Get { file, first, last } => self.get(time_ns, task, file, first, last),
            What::Fault { file, page } => self.fault(time_ns, task, file, page),
            What::Map { file, first, last } => self.map(time_ns, task, file, first, last),
            What::Sleep => self.tasks.entry(task).or_default().asleep_since = Some(time_ns),
            What::Wake => {}
        }
    }

    fn add(&mut self, time_ns: u64, task: u32, file: u32, range: Range<u64>) {
        let pages = self.files.entry(file).or_default();
        pages.came.insert(range.clone(), ());
        if range.end - range.start > 1 {
            pages.folios.insert(range.start, range.end);
        }
        if pages.is_device {
            let wide = (file, range.start, range.end - 1);
            self.tasks.entry(task).or_default().open = Some(self.reads.len());
            return self.reads.push(read(time_ns, 0, task, wide, ReadKind::Read, false));
        }
        pages.fresh.insert(range.clone(), (time_ns, task));
        let state = self.tasks.entry(task).or_default();
        match state.last {
            // The page that a fault needs comes after the fault was reported.
            Some(last) if last.kind == ReadKind::Fault && last.file == file => {
                state.open = Some(last.read);
                if range.contains(&last.first) {
                    pages.fresh.remove(last.first..last.first + 1);
                    self.reads[last.read].hit = false;
                }
            }
            _ => {
                state.coming.get_or_insert((time_ns, file));
            }
        }
    }

    fn get(&mut self, time_ns: u64, task: u32, file: u32, first: u64, last: u64) {
        if last < first {
            return;
        }
        let miss = self.files.entry(file).or_default().fresh.remove(first..last + 1);
        let state = self.tasks.entry(task).or_default();
        let coming = state.coming.take().filter(|(_, of)| *of == file).map(|(since, _)| since);
        let slept = state.slept.take();
        let slept = slept.filter(|(_, _, ended)| miss || ended + SOON_NS >= time_ns);
        let waited_ns = slept.map_or(0, |(_, sum, _)| sum);
        let before =
            state.last.filter(|before| before.kind == ReadKind::Read && before.file == file && before.last == last);
        if let Some(before) = before.filter(|before| before.first <= first) {
            let repeated = before.first == first && !miss && waited_ns == 0;
            if before.first < first || repeated {
                state.open = None;
                let read = &mut self.reads[before.read];
                read.hit &= !miss;
                read.wait_ns += waited_ns;
                return;
            }
        }
        let since = [coming.filter(|_| miss), slept.map(|(since, _, _)| since)];
        let time_ns = since.into_iter().flatten().fold(time_ns, u64::min);
        self.push(time_ns, waited_ns, task, (file, first, last), ReadKind::Read, !miss);
    }

    fn fault(&mut self, time_ns: u64, task: u32, file: u32, page: u64) {
        let state = self.tasks.entry(task).or_default();
        if let Some(last) = state.last.filter(|last| last.file == file) {
            // It retries after waiting.
            if last.kind == ReadKind::Fault && last.first == page {
                return;
            }
            // It has mapped the pages around before; none of them was touched yet.
            let around = last.kind == ReadKind::Map && (last.first..=last.last).contains(&page);
            if around && last.read + last.reads == self.reads.len() && self.reads[last.read..].iter().all(|it| it.hit) {
                self.reads.truncate(last.read);
                self.unknown.truncate(self.unknown.partition_point(|read| *read < last.read));
            }
        }
        let pages = self.files.entry(file).or_default();
        let miss = pages.fresh.remove(page..page + 1);
        // A present page is mapped with its whole folio (finish_fault of mm/memory.c, since Linux 6.16): the other
        // pages cause no fault.
        let folio = pages.folios.range(..=page).next_back().filter(|(_, end)| **end > page);
        let folio = folio.map(|(first, end)| *first..*end).filter(|folio| pages.fresh.remove(folio.clone()));
        self.push(time_ns, 0, task, (file, page, page), ReadKind::Fault, !miss);
        if let Some(folio) = folio {
            self.reads.push(read(time_ns, 0, task, (file, folio.start, folio.end - 1), ReadKind::Map, false));
        }
    }

    fn map(&mut self, time_ns: u64, task: u32, file: u32, first: u64, last: u64) {
        let window = first..last.saturating_add(1);
        let pages = self.files.entry(file).or_default();
        let before = self.tasks.get(&task).and_then(|state| state.last);
        // What the fault waited for is known.
        let is_known = |range: &Range<u64>| {
            let fault = before.filter(|before| before.kind == ReadKind::Fault && before.file == file);
            fault.is_some_and(|fault| *range == (fault.first..fault.first + 1))
        };
        let came: Vec<_> = pages.came.within(window.clone()).collect();
        let at = self.reads.len();
        let mut next = window.start;
        for range in came.into_iter().chain(std::iter::once(window.end..window.end)) {
            if next < range.start {
                self.unknown.push(self.reads.len());
                self.reads.push(read(time_ns, 0, task, (file, next, range.start - 1), ReadKind::Map, true));
            }
            let miss = pages.fresh.remove(range.clone());
            if !range.is_empty() && (miss || !is_known(&range)) {
                self.reads.push(read(time_ns, 0, task, (file, range.start, range.end - 1), ReadKind::Map, !miss));
            }
            next = range.end;
        }
        let reads = self.reads.len() - at;
        if reads > 0 {
            self.referenced(task, Last { read: at, kind: ReadKind::Map, file, first, last, reads });
        }
    }

    fn wake(&mut self, time_ns: u64, task: u32) {
        let state = self.tasks.entry(task).or_default();
        let Some(since) = state.asleep_since.take() else { return };
        let slept_ns = time_ns.saturating_sub(since);
        match state.open {
            Some(open) if state.coming.is_none() => self.reads[open].wait_ns += slept_ns,
            _ => {
                let (first, sum, _) = state.slept.unwrap_or((since, 0, 0));
                state.slept = Some((first, sum + slept_ns, time_ns));
            }
        }
    }

    fn push(&mut self, time_ns: u64, wait_ns: u64, task: u32, wide: (u32, u64, u64), kind: ReadKind, hit: bool) {
        let (file, first, last) = wide;
        let at = self.reads.len();
        self.reads.push(read(time_ns, wait_ns, task, wide, kind, hit));
        self.referenced(task, Last { read: at, kind, file, first, last, reads: 1 });
    }

    fn referenced(&mut self, task: u32, last: Last) {
        let state = self.tasks.entry(task).or_default();
        (state.coming, state.slept) = (None, None);
        state.open = (last.kind == ReadKind::Fault).then_some(last.read);
        state.last = Some(last);
    }

    /// All reads by time, and pages that came and were never needed. `cached`: which of these pages of a file are
    /// cached now.
    pub fn finish(mut self, mut cached: impl FnMut(u32, Range<u64>) -> Vec<Range<u64>>) -> Vec<Read> {
        for at in std::mem::take(&mut self.unknown) {
            let window = &mut self.reads[at];
            let (time_ns, task, file) = (window.time_ns, window.process, window.file);
            let range = window.start..window.end();
            window.pages = 0;
            // Pages that come later were not cached then.
            let mut there = Intervals::default();
            cached(file, range.clone()).into_iter().for_each(|cached| there.insert(cached, ()));
            let came = self.files.get(&file).into_iter().flat_map(|pages| pages.came.within(range.clone()));
            came.for_each(|came| _ = there.remove(came));
            let found = there.iter().map(|(found, ())| (file, found.start, found.end - 1));
            self.reads.extend(found.map(|wide| read(time_ns, 0, task, wide, ReadKind::Map, true)));
        }
        for (file, pages) in &self.files {
            for (range, (time_ns, task)) in pages.fresh.iter() {
                let wide = (*file, range.start, range.end - 1);
                self.reads.push(read(time_ns, 0, task, wide, ReadKind::ReadAhead, false));
            }
        }
        self.reads.retain(|read| read.pages > 0);
        // The parts of a window stay together, in page order.
        self.reads.sort_by_key(|read| (read.time_ns, (read.kind == ReadKind::Map).then_some((read.file, read.start))));
        self.reads.dedup_by(|next, read| {
            let is_part =
                read.kind == ReadKind::Map && next.kind == ReadKind::Map && (read.hit, next.hit) == (true, true);
            let same = |read: &Read| (read.time_ns, read.process, read.file);
            let joins = is_part && same(read) == same(next) && read.end() == next.start;
            read.pages += if joins { next.pages } else { 0 };
            joins
        });
        self.reads
    }
}

fn read(time_ns: u64, wait_ns: u64, process: u32, wide: (u32, u64, u64), kind: ReadKind, hit: bool) -> Read {
    let (file, start, last) = wide;
    let pages = u32::try_from(last - start + 1).unwrap_or(u32::MAX);
    Read { time_ns, wait_ns, start, pages, process, file, kind, hit }
}

#[cfg(test)]
mod tests {
    use super::What::{Add, Fault, Get, Map, Sleep, Wake};
    use super::*;

    /// Reads as (kind, file, first page, pages, hit, time, wait), from events of one task, 10 ns apart.
    fn folded(events: &[What]) -> Vec<(ReadKind, u32, u64, u32, bool, u64, u64)> {
        let mut fold = Fold::default();
        fold.is_device(9);
        for (index, what) in (1..).zip(events) {
            fold.take(Event { time_ns: 10 * index, task: 0, what: *what });
        }
        let row = |read: Read| (read.kind, read.file, read.start, read.pages, read.hit, read.time_ns, read.wait_ns);
        fold.finish(|_, _| Vec::new()).into_iter().map(row).collect()
    }

    fn add(first: u64, pages: u64) -> What {
        Add { file: 1, first, pages }
    }

    fn get(first: u64, last: u64) -> What {
        Get { file: 1, first, last }
    }

    use ReadKind::{Map as Mapped, ReadAhead};
    const READ: ReadKind = ReadKind::Read;
    const FAULT: ReadKind = ReadKind::Fault;

    #[test]
    fn a_miss_begins_when_its_pages_come_and_read_ahead_is_told_apart() {
        // Four pages come, one is needed after 10 ns of sleep, then the next one, which is there.
        let seen = folded(&[add(0, 4), Sleep, Wake, get(0, 0), get(1, 1)]);
        let expected =
            [(READ, 1, 0, 1, false, 10, 10), (ReadAhead, 1, 2, 2, false, 10, 0), (READ, 1, 1, 1, false, 50, 0)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_task_that_does_something_is_awake() {
        let window = Map { file: 1, first: 0, last: 15 };
        let seen = folded(&[Fault { file: 1, page: 5 }, add(0, 16), Sleep, window]);
        assert_eq!(seen, [(FAULT, 1, 5, 1, false, 10, 10), (Mapped, 1, 0, 16, false, 40, 0)]);
        assert_eq!(folded(&[add(0, 1), Sleep, get(0, 0)]), [(READ, 1, 0, 1, false, 10, 10)]);
    }

    #[test]
    fn parts_of_one_read_are_one_and_repeated_ones_left_out() {
        let seen = folded(&[get(0, 31), add(15, 17), Sleep, Wake, get(15, 31), get(0, 0), get(0, 0), get(1, 1)]);
        let expected = [(READ, 1, 0, 32, false, 10, 10), (READ, 1, 0, 1, true, 60, 0), (READ, 1, 1, 1, true, 80, 0)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_fault_waits_after_it_has_said_so() {
        // The task maps the cached pages around, faults, reads around, sleeps, and retries: then it maps all pages
        // around.
        let window = Map { file: 1, first: 0, last: 15 };
        let fault = Fault { file: 1, page: 5 };
        let seen = folded(&[window, fault, add(0, 32), Sleep, Wake, window, Fault { file: 1, page: 20 }]);
        let expected = [
            (FAULT, 1, 5, 1, false, 20, 10),
            (Mapped, 1, 0, 16, false, 60, 0),
            (FAULT, 1, 20, 1, false, 70, 0),
            (Mapped, 1, 0, 32, false, 70, 0),
        ];
        assert_eq!(seen, expected);
        assert_eq!(folded(&[fault, Sleep, Wake, fault]), [(FAULT, 1, 5, 1, true, 10, 10)]);
    }

    #[test]
    fn a_fault_of_a_page_that_is_there_maps_its_folio() {
        // Read-around brings two folios of 16 pages; the second faults when the first is mapped.
        let fault = |page| Fault { file: 1, page };
        let seen =
            folded(&[fault(5), add(0, 16), add(16, 16), Map { file: 1, first: 0, last: 15 }, fault(16), fault(40)]);
        let expected = [
            (FAULT, 1, 5, 1, false, 10, 0),
            (Mapped, 1, 0, 16, false, 40, 0),
            (FAULT, 1, 16, 1, false, 50, 0),
            (Mapped, 1, 16, 16, false, 50, 0),
            (FAULT, 1, 40, 1, true, 60, 0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn of_a_window_counts_what_came_or_was_cached() {
        let window = Map { file: 1, first: 0, last: 15 };
        let fault = |page| Fault { file: 1, page };
        let seen = folded(&[fault(5), add(4, 4), window]);
        assert_eq!(seen, [(FAULT, 1, 5, 1, false, 10, 0), (Mapped, 1, 4, 4, false, 30, 0)]);
        // Without read-ahead: one page each, which counts when it is mapped, and the earlier ones are mapped again.
        let seen = folded(&[window, fault(5), add(5, 1), window, window, fault(9), add(9, 1), window]);
        let expected = [(FAULT, 1, 5, 1, false, 20, 0), (FAULT, 1, 9, 1, false, 60, 0), (Mapped, 1, 5, 1, true, 80, 0)];
        assert_eq!(seen, expected);
        // 2 to 4 and 8 were cached, 7 to 9 are now: 7 came after the last window. Pages that came and pages that were
        // cached are separate reads.
        let mut fold = Fold::default();
        let events = [window, add(0, 2), window, window, add(7, 1), get(7, 7)];
        for (time_ns, what) in (0..).step_by(10).zip(events) {
            fold.take(Event { time_ns, task: 0, what });
        }
        let asked = std::cell::RefCell::new(Vec::new());
        let reads = fold.finish(|file, range| {
            asked.borrow_mut().push((file, range.clone()));
            [2..5, 7..10].map(|cached| cached.start.max(range.start)..cached.end.min(range.end)).into()
        });
        assert_eq!(*asked.borrow(), [(1, 0..16), (1, 2..16), (1, 2..16)]);
        let row = |read: &Read| (read.time_ns, read.kind, read.start, read.pages, read.hit);
        let cached = |at, first| [(at, Mapped, first, 5 - first as u32, true), (at, Mapped, 8, 2, true)];
        let expected = [
            &cached(0, 2)[..],
            &[(20, Mapped, 0, 2, false), (20, Mapped, 2, 3, true), (20, Mapped, 8, 2, true)],
            // Cached, and come by now: one page.
            &cached(30, 0),
            &[(40, READ, 7, 1, false)],
        ];
        assert_eq!(reads.iter().map(row).collect::<Vec<_>>(), expected.concat());
    }

    #[test]
    fn metadata_are_reads_of_the_device() {
        let inode = Add { file: 9, first: 700, pages: 1 };
        // The inode on the way to the data: each waits for itself.
        let seen = folded(&[inode, Sleep, Wake, add(0, 1), Sleep, Wake, get(0, 0)]);
        assert_eq!(seen, [(READ, 9, 700, 1, false, 10, 10), (READ, 1, 0, 1, false, 40, 10)]);
    }

    #[test]
    fn a_sleep_for_something_else_is_thinking() {
        assert_eq!(folded(&[Sleep, Wake, get(0, 0)]), [(READ, 1, 0, 1, true, 10, 10)], "a page under way");
        let mut fold = Fold::default();
        for (time_ns, what) in [(0, Sleep), (1_000_000, Wake), (1_200_000, get(0, 0))] {
            fold.take(Event { time_ns, task: 0, what });
        }
        assert_eq!(
            fold.finish(|_, _| Vec::new())[0],
            Read { time_ns: 1_200_000, wait_ns: 0, start: 0, pages: 1, process: 0, file: 1, kind: READ, hit: true }
        );
    }
}
