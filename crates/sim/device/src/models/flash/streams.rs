//! The drive's own read-ahead: pages that it reads into its memory before they are asked for.
//!
//! A read that begins where an earlier one ended, or less than `read_ahead` behind that, continues a *stream*. The drive
//! then reads up to `read_ahead` beyond its end, and the next read of the stream finds these pages there, or on their way.
//! A write to one of them discards what was read ahead. Evidence: small sequential reads, one at a time, are several times as fast as random ones of the same size
//! (docs/devices.md); no manufacturer describes the rule.
//!
//! Cost: a scan of the streams per read, a step per page read ahead. Memory: 8 bytes per page.

use std::collections::VecDeque;

use headstart_types::Nanos;

/// Streams that are followed at once. A guess.
const STREAMS: usize = 16;

#[derive(Debug, Clone, Default)]
struct Stream {
    /// Where its last read ended.
    next: u64,
    /// When each page from `first` on is in memory.
    first: u64,
    there: VecDeque<Nanos>,
    /// Sequence number of its last read; 0 for never.
    used: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Streams {
    list: Vec<Stream>,
    uses: u64,
    ahead_sectors: u64,
}

impl Streams {
    /// Streams of a drive that reads so many sectors ahead; none for 0.
    pub(super) fn new(ahead_sectors: u64) -> Self {
        let count = if ahead_sectors > 0 { STREAMS } else { 0 };
        Self { list: vec![Stream::default(); count], uses: 0, ahead_sectors }
    }

    /// The stream that a read of `sector` continues.
    #[inline]
    pub(super) fn continued(&self, sector: u64) -> Option<usize> {
        let gap = |stream: &Stream| sector.checked_sub(stream.next).filter(|_| stream.used > 0);
        let gaps = self.list.iter().enumerate().filter_map(|(index, stream)| Some((gap(stream)?, index)));
        gaps.min().filter(|(gap, _)| *gap <= self.ahead_sectors).map(|(_, index)| index)
    }

    /// When a page of a stream is in memory, if the drive read it ahead.
    #[inline]
    pub(super) fn there(&self, stream: usize, page: u64) -> Option<Nanos> {
        let stream = &self.list[stream];
        stream.there.get(page.checked_sub(stream.first)? as usize).copied()
    }

    /// Records a read that ended at sector `next`, which lies in `page`: of a stream, else of a new one in the place of
    /// the one that was idle for longest. Returns it, and the first page that it has not read ahead.
    pub(super) fn advance(&mut self, stream: Option<usize>, (next, page): (u64, u64)) -> Option<(usize, u64)> {
        let idle = || self.list.iter().enumerate().min_by_key(|(_, stream)| stream.used).map(|(index, _)| index);
        let index = stream.or_else(idle)?;
        self.uses += 1;
        let uses = self.uses;
        let entry = &mut self.list[index];
        if stream.is_none() {
            entry.there.clear();
        }
        while entry.first < page && entry.there.pop_front().is_some() {
            entry.first += 1;
        }
        if entry.there.is_empty() {
            entry.first = page;
        }
        (entry.next, entry.used) = (next, uses);
        Some((index, entry.first + entry.there.len() as u64))
    }

    /// Adds the next page of a stream, which is in memory at `there`.
    pub(super) fn push(&mut self, stream: usize, there: Nanos) {
        self.list[stream].there.push_back(there);
    }

    /// Discards what was read ahead if pages `first..=last` are part of it.
    pub(super) fn forget(&mut self, first: u64, last: u64) {
        for stream in &mut self.list {
            if stream.first <= last && first < stream.first + stream.there.len() as u64 {
                stream.there.clear();
            }
        }
    }
}
