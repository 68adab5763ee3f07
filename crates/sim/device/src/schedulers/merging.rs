//! The queue of the merging schedulers: by position, by end and by age, in lanes.
//!
//! A request that begins where a queued one of the same direction ends is merged with it (a back merge), as is one that
//! ends where a queued one begins (a front merge). If this closes a gap, both sides are merged. Nothing else is merged:
//! neither reads with writes, nor overlapping requests, nor beyond `sectors_max`. A merged request takes the place of
//! its part that arrived first; it is a prefetch if all its parts are.
//!
//! After Linux 2.6.18, block/elevator.c and ll_rw_blk.c (`__make_request`): a back merge is tried first, and if its
//! candidate would grow too large no front merge is tried. Of several candidates the earliest is used; in Linux, the
//! one used last. Two requests for one sector are both queued; in Linux the older is dispatched at once.
//!
//! O(log n) per request; no allocation after warm-up.

use std::ops::Range;

use super::sorted::Sorted;
use super::Queued;
use crate::Request;

/// Reads; with separate classes, demand reads.
pub(super) const READS: usize = 0;
/// Prefetches, if the classes are separate.
pub(super) const PREFETCHES: usize = 1;
pub(super) const WRITES: usize = 2;

/// A queued request, until it is taken.
pub(super) type Handle = u32;

/// What is merged, and what is kept separate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub back_merges: bool,
    pub front_merges: bool,
    /// Maximum size of a merged request.
    pub sectors_max: u32,
    /// Whether prefetches have their own lane.
    pub classes: bool,
}

/// The outcome of queueing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits on its own.
    Added,
    /// It was merged.
    Merged,
    /// It closed a gap: two requests became one, and the later one's process no longer has a request there.
    Closed(Option<u32>),
}

#[derive(Debug, Clone)]
struct Entry {
    whole: Queued,
    /// Empty for a single request.
    parts: Vec<Queued>,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    /// By (first sector, sequence).
    starts: Sorted<Handle>,
    /// By (sector after the last, sequence).
    ends: Sorted<Handle>,
    /// By (sequence, 0).
    ages: Sorted<Handle>,
}

/// Waiting requests, each in its lane.
#[derive(Debug, Clone)]
pub(super) struct MergeQueue {
    rules: Rules,
    entries: Vec<Entry>,
    unused: Vec<Handle>,
    lanes: [Lane; 3],
    /// For the lane of the last request taken: the next one by position at that time. If that one is merged into
    /// another or extended at its front, the one after it.
    next: [Option<Handle>; 3],
    len: usize,
}

impl MergeQueue {
    pub(super) fn new(rules: Rules) -> Self {
        let (entries, unused) = (Vec::new(), Vec::new());
        Self { rules, entries, unused, lanes: Default::default(), next: [None; 3], len: 0 }
    }

    pub(super) fn merges_up_to(&self) -> u32 {
        if self.rules.back_merges || self.rules.front_merges {
            self.rules.sectors_max
        } else {
            0
        }
    }

    /// Number of waiting requests; parts count individually.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn has(&self, lane: usize) -> bool {
        !self.lanes[lane].ages.is_empty()
    }

    pub(super) fn whole(&self, handle: Handle) -> &Queued {
        &self.entries[handle as usize].whole
    }

    /// The request that has waited longest.
    pub(super) fn eldest(&self, lane: usize) -> Option<Handle> {
        self.lanes[lane].ages.first().map(|(_, handle)| handle)
    }

    /// The lowest request that starts at or above `sector`.
    pub(super) fn at_or_above(&self, lane: usize, sector: u64) -> Option<Handle> {
        self.lanes[lane].starts.at_or_after((sector, 0)).map(|(_, handle)| handle)
    }

    /// The highest request that starts below `sector`; the earliest of several.
    pub(super) fn below(&self, lane: usize, sector: u64) -> Option<Handle> {
        let starts = &self.lanes[lane].starts;
        let ((sector, _), _) = starts.before((sector, 0))?;
        starts.at_or_after((sector, 0)).map(|(_, handle)| handle)
    }

    /// See the field.
    pub(super) fn next(&self, lane: usize) -> Option<Handle> {
        self.next[lane]
    }

    pub(super) fn lane_of(&self, request: &Request) -> usize {
        match (request.write, request.prefetch && self.rules.classes) {
            (true, _) => WRITES,
            (false, true) => PREFETCHES,
            (false, false) => READS,
        }
    }

    pub(super) fn push(&mut self, queued: Queued) -> Pushed {
        self.len += 1;
        let Request { sector, sectors, write, .. } = queued.request;
        let lanes = if write { WRITES..WRITES + 1 } else { READS..WRITES };
        if self.rules.back_merges {
            if let Some(handle) = self.ending_at(lanes.clone(), sector) {
                if !self.fits(handle, sectors) {
                    self.add(queued);
                    return Pushed::Added;
                }
                self.join(handle, queued);
                let latter = self.starting_at(lanes, queued.request.end());
                return self.close(Some(handle), latter);
            }
        }
        if self.rules.front_merges {
            let handle = self.starting_at(lanes.clone(), queued.request.end());
            if let Some(handle) = handle.filter(|&handle| self.fits(handle, sectors)) {
                self.join(handle, queued);
                let former = self.ending_at(lanes, sector);
                return self.close(former, Some(handle));
            }
        }
        self.add(queued);
        Pushed::Added
    }

    /// Takes a request out, and its parts into `parts`.
    pub(super) fn take(&mut self, handle: Handle, parts: &mut Vec<Queued>) -> Queued {
        let whole = *self.whole(handle);
        let lane = self.lane_of(&whole.request);
        let next = self.after(lane, &whole);
        self.unlink(handle);
        self.next = [None; 3];
        self.next[lane] = next;
        parts.append(&mut self.entries[handle as usize].parts);
        self.unused.push(handle);
        self.len -= parts.len().max(1);
        whole
    }

    /// The earliest request of the lanes that ends at `sector`.
    fn ending_at(&self, lanes: Range<usize>, sector: u64) -> Option<Handle> {
        let found = self.lanes[lanes].iter().filter_map(|lane| lane.ends.at_or_after((sector, 0)));
        found.filter(|(key, _)| key.0 == sector).min().map(|(_, handle)| handle)
    }

    /// The earliest request of the lanes that starts at `sector`.
    fn starting_at(&self, lanes: Range<usize>, sector: u64) -> Option<Handle> {
        let found = self.lanes[lanes].iter().filter_map(|lane| lane.starts.at_or_after((sector, 0)));
        found.filter(|(key, _)| key.0 == sector).min().map(|(_, handle)| handle)
    }

    fn fits(&self, handle: Handle, sectors: u32) -> bool {
        let whole = u64::from(self.whole(handle).request.sectors) + u64::from(sectors);
        whole <= u64::from(self.rules.sectors_max)
    }

    fn after(&self, lane: usize, whole: &Queued) -> Option<Handle> {
        self.lanes[lane].starts.at_or_after((whole.request.sector, whole.sequence + 1)).map(|(_, handle)| handle)
    }

    fn add(&mut self, queued: Queued) {
        let handle = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(Entry { whole: queued, parts: Vec::new() });
            (self.entries.len() - 1) as Handle
        });
        self.entries[handle as usize].whole = queued;
        self.link(handle);
    }

    fn join(&mut self, handle: Handle, queued: Queued) {
        let Entry { whole, parts } = &mut self.entries[handle as usize];
        if parts.is_empty() {
            parts.push(*whole);
        }
        parts.push(queued);
        let whole = joined(whole, &queued);
        self.relink(handle, whole);
    }

    /// Merges two neighbours without a gap; the former stays.
    fn close(&mut self, former: Option<Handle>, latter: Option<Handle>) -> Pushed {
        let (Some(former), Some(latter)) = (former, latter) else { return Pushed::Merged };
        let (one, two) = (*self.whole(former), *self.whole(latter));
        if former == latter || !self.fits(former, two.request.sectors) {
            return Pushed::Merged;
        }
        self.unlink(latter);
        let mut theirs = std::mem::take(&mut self.entries[latter as usize].parts);
        let ours = &mut self.entries[former as usize].parts;
        if ours.is_empty() {
            ours.push(one);
        }
        if theirs.is_empty() {
            ours.push(two);
        }
        ours.append(&mut theirs);
        self.entries[latter as usize].parts = theirs;
        self.unused.push(latter);
        self.relink(former, joined(&one, &two));
        Pushed::Closed(if one.sequence < two.sequence { two.request.process } else { one.request.process })
    }

    fn link(&mut self, handle: Handle) {
        let whole = *self.whole(handle);
        let lane = self.lane_of(&whole.request);
        let lane = &mut self.lanes[lane];
        lane.starts.insert((whole.request.sector, whole.sequence), handle);
        lane.ends.insert((whole.request.end(), whole.sequence), handle);
        lane.ages.insert((whole.sequence, 0), handle);
    }

    fn unlink(&mut self, handle: Handle) {
        let whole = *self.whole(handle);
        let index = self.lane_of(&whole.request);
        if self.next[index] == Some(handle) {
            self.next[index] = self.after(index, &whole);
        }
        let lane = &mut self.lanes[index];
        lane.starts.remove((whole.request.sector, whole.sequence));
        lane.ends.remove((whole.request.end(), whole.sequence));
        lane.ages.remove((whole.sequence, 0));
    }

    /// Replaces the handle's request by `whole`.
    fn relink(&mut self, handle: Handle, whole: Queued) {
        let old = *self.whole(handle);
        let lane = self.lane_of(&old.request);
        let same_place = old.request.sector == whole.request.sector && lane == self.lane_of(&whole.request);
        if same_place && old.sequence == whole.sequence {
            // The usual back merge: only the end has moved.
            let ends = &mut self.lanes[lane].ends;
            ends.remove((old.request.end(), old.sequence));
            ends.insert((whole.request.end(), whole.sequence), handle);
            self.entries[handle as usize].whole = whole;
            return;
        }
        let next = self.next[lane];
        self.unlink(handle);
        if same_place {
            self.next[lane] = next;
        }
        self.entries[handle as usize].whole = whole;
        self.link(handle);
    }
}

/// Merges two contiguous requests.
fn joined(one: &Queued, two: &Queued) -> Queued {
    let first = if one.sequence < two.sequence { one } else { two };
    let request = Request {
        sector: one.request.sector.min(two.request.sector),
        sectors: one.request.sectors + two.request.sectors,
        prefetch: one.request.prefetch && two.request.prefetch,
        ..first.request
    };
    Queued { request, ..*first }
}
