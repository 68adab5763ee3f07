//! Merges several recordings of one command, keeping what recurs.
//!
//! A page is kept if it is referenced in at least a given share of the recordings (by default one half). Its position,
//! time, wait and process are those of its first reference in the recording with the most references to kept pages.
//! Kept pages missing from that recording are taken, with their times, from the next fullest recording that has them.
//! Further references to a page come from the same recording as its first. Files are the same if path, device and inode
//! match. If their sizes and times differ, those of the last recording are used, and pages beyond that size are
//! dropped.
//!
//! Cost: logarithmic in the ranges for each read. Memory: the ranges of each file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use headstart_types::KeyError;

use super::{Read, RecordedFile, RecordedProcess, Recording};
use crate::TraceError;

/// How many recordings reference each page of a file, stored as the count from each page on until the next entry.
#[derive(Debug, Default)]
struct Counts {
    steps: BTreeMap<u64, i64>,
}

impl Counts {
    /// Counts the union of `ranges` once.
    fn add(&mut self, mut ranges: Vec<(u64, u64)>) {
        ranges.sort_unstable();
        let mut until = 0;
        for (start, end) in ranges {
            let start = start.max(until);
            if start < end {
                *self.steps.entry(start).or_default() += 1;
                *self.steps.entry(end).or_default() -= 1;
                until = end;
            }
        }
    }

    /// The ranges that at least `needed` recordings have.
    fn kept(&self, needed: i64) -> Vec<(u64, u64)> {
        let (mut kept, mut count, mut since) = (Vec::new(), 0, None);
        for (page, step) in &self.steps {
            count += step;
            match since {
                None if count >= needed => since = Some(*page),
                Some(start) if count < needed => {
                    kept.push((start, *page));
                    since = None;
                }
                _ => {}
            }
        }
        kept
    }
}

/// The identity of a file.
type Key = (PathBuf, u32, u32, u64);

fn key(file: &RecordedFile) -> Key {
    (file.path.clone(), file.major, file.minor, file.inode)
}

/// Merges recordings of one page size, in the given order; `share` is above 0 and at most 1.
///
/// # Errors
/// If there are no recordings, their page sizes differ, the share is out of range, or nothing recurs.
pub fn merge(recordings: &[Recording], share: f64) -> Result<Recording, TraceError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(KeyError::new("share", format!("is {share}"), "above 0 and at most 1").into());
    }
    let Some(last) = recordings.last() else {
        return Err(KeyError::new("recordings", "are missing", "one or more").into());
    };
    if recordings.iter().any(|each| each.about.page_bytes != last.about.page_bytes) {
        return Err(KeyError::new("recordings", "have different page sizes", "recordings of one machine").into());
    }
    // A recording that is itself merged counts as the recordings it was made of.
    let total: u64 = recordings.iter().map(|each| u64::from(each.about.recordings.max(1))).sum();
    let needed = ((total as f64 * share).ceil() as i64).max(1);
    let mut counts: BTreeMap<Key, Counts> = BTreeMap::new();
    let mut files: BTreeMap<Key, RecordedFile> = BTreeMap::new();
    for recording in recordings {
        let mut ranges: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        recording.references().for_each(|read| ranges.entry(read.file).or_default().push((read.start, read.end())));
        for (file, ranges) in ranges {
            let file = &recording.files[file as usize];
            let counts = counts.entry(key(file)).or_default();
            (0..recording.about.recordings.max(1)).for_each(|_| counts.add(ranges.clone()));
            files.insert(key(file), file.clone());
        }
    }
    let page_bytes = last.about.page_bytes;
    let kept: BTreeMap<Key, Vec<(u64, u64)>> = counts
        .into_iter()
        .map(|(key, counts)| {
            let end = files[&key].size_bytes.div_ceil(page_bytes);
            let within = |(start, stop): (u64, u64)| (start, stop.min(end));
            (key, counts.kept(needed).into_iter().map(within).filter(|(start, stop)| start < stop).collect())
        })
        .collect();
    let mut merged = Recording { processes: Vec::new(), files: Vec::new(), reads: Vec::new(), ..last.clone() };
    merged.about.recordings = u32::try_from(total).unwrap_or(u32::MAX);
    merged.about.lost_events = recordings.iter().map(|each| each.about.lost_events).sum();
    let mut order: Vec<&Recording> = recordings.iter().collect();
    let kept_pages = |recording: &Recording| -> u64 {
        let keys: Vec<Key> = recording.files.iter().map(key).collect();
        let of_kept = |read: &Read| pieces(&kept[&keys[read.file as usize]], read.start, read.end());
        recording.references().flat_map(of_kept).map(|(start, end)| end - start).sum()
    };
    order.sort_by_cached_key(|recording| std::cmp::Reverse(kept_pages(recording)));
    let mut taken: BTreeMap<Key, Counts> = BTreeMap::new();
    let (mut file_places, mut process_places) = (BTreeMap::new(), BTreeMap::new());
    for (which, recording) in order.into_iter().enumerate() {
        let mut of_this: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        let keys: Vec<Key> = recording.files.iter().map(key).collect();
        let others: Vec<Vec<(u64, u64)>> =
            keys.iter().map(|key| taken.get(key).map(|counts| counts.kept(1)).unwrap_or_default()).collect();
        for read in recording.references() {
            let key = &keys[read.file as usize];
            for (start, end) in pieces(&kept[key], read.start, read.end()) {
                for (start, end) in without(&others[read.file as usize], start, end) {
                    of_this.entry(read.file).or_default().push((start, end));
                    let file = *file_places.entry(key.clone()).or_insert_with(|| {
                        merged.files.push(files[key].clone());
                        merged.files.len() as u32 - 1
                    });
                    let process = *process_places.entry((which, read.process)).or_insert_with(|| {
                        let process: RecordedProcess = recording.processes[read.process as usize].clone();
                        merged.processes.push(process);
                        merged.processes.len() as u32 - 1
                    });
                    merged.reads.push(Read { start, pages: (end - start) as u32, file, process, ..*read });
                }
            }
        }
        for (file, ranges) in of_this {
            taken.entry(key(&recording.files[file as usize])).or_default().add(ranges);
        }
    }
    if merged.reads.is_empty() {
        let problem = format!("no page is in {needed} of the {total} recordings");
        return Err(KeyError::new("recordings", problem, "recordings of one command, or a smaller share").into());
    }
    merged.reads.sort_by_key(|read| read.time_ns);
    Ok(merged)
}

/// The parts of `start..end` in `ranges`, which are sorted.
fn pieces(ranges: &[(u64, u64)], start: u64, end: u64) -> Vec<(u64, u64)> {
    let first = ranges.partition_point(|(_, stop)| *stop <= start);
    let overlapping = ranges[first..].iter().take_while(|(begin, _)| *begin < end);
    overlapping.map(|(begin, stop)| (start.max(*begin), end.min(*stop))).collect()
}

/// The parts of `start..end` not in `ranges`, which are sorted.
fn without(ranges: &[(u64, u64)], mut start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (begin, stop) in pieces(ranges, start, end) {
        if start < begin {
            left.push((start, begin));
        }
        start = stop;
    }
    if start < end {
        left.push((start, end));
    }
    left
}
