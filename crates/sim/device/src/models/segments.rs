//! The segments of a drive's buffer: their contents, and replacement.

use headstart_types::{keys, within_range, KeyError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::arm::Arm;
use crate::Request;

/// How far the drive reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAhead {
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, or of the next track if the segment begins before this one.
    NextTrack,
}

/// When a write is reported as complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reporting {
    /// When its data are on the media.
    Media,
    /// When its data are in the buffer, which holds at most one run of pending data.
    Append,
    /// When its data are in the buffer, which holds at most one run of pending data per write segment.
    Buffer,
}

/// The quantity that a watermark is a share of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WatermarkOf {
    #[default]
    Request,
    Segment,
}

/// Maximum number of segments: a hit scans all of them.
const SEGMENTS_MAX: u64 = 1_000;

/// Maximum number of sectors per segment.
const SECTORS_MAX: u64 = 1 << 31;

fn yes() -> bool {
    true
}

keys! {
    /// A buffer of several segments.
    pub(crate) struct Buffer {
        /// Number of segments.
        #[schemars(range(min = 1, max = SEGMENTS_MAX))]
        pub segments: usize,
        /// Sectors per segment.
        #[serde(rename = "segment_sectors")]
        #[schemars(range(min = 1, max = SECTORS_MAX))]
        pub size: u64,
        /// Maximum number of segments for writes. Default: all.
        #[serde(default)]
        #[schemars(range(min = 1))]
        pub write_segments: Option<usize>,
        /// Whether the last segment is reserved for writes and holds all of them.
        #[serde(default, rename = "write_segment_apart")]
        pub write_apart: bool,
        /// How far the drive reads ahead.
        pub read_ahead: ReadAhead,
        /// Number of sectors that are read ahead before another request may interrupt the read-ahead.
        #[serde(default, rename = "read_ahead_minimum")]
        pub minimum: u64,
        /// Maximum number of sectors read ahead.
        #[serde(rename = "read_ahead_maximum")]
        pub maximum: Option<u64>,
        /// Whether the drive only reads ahead after a read that begins where an earlier one ended.
        #[serde(default, rename = "read_ahead_on_sequence")]
        pub on_sequence: bool,
        /// Whether requested sectors stay in the segment while the drive reads ahead.
        #[serde(default)]
        pub keep_requested: bool,
        /// Whether requested sectors are dropped from the segment.
        #[serde(default)]
        pub drop_requested: bool,
        /// Whether the drive continues to read ahead after a hit.
        #[serde(default)]
        pub read_ahead_on_hit: bool,
        /// Whether the drive also reads sectors that pass the head before the request's first sector.
        #[serde(default)]
        pub read_before: bool,
        /// Whether the sectors of a read are read in the order in which they pass the head.
        #[serde(default)]
        pub zero_latency_read: bool,
        /// Whether the sectors of a write are written in the order in which they pass the head.
        #[serde(default)]
        pub zero_latency_write: bool,
        /// When a write is reported as complete.
        #[serde(rename = "write_reporting")]
        pub reporting: Reporting,
        /// Whether contiguous writes are combined into one run.
        #[serde(default = "yes", rename = "combine_writes")]
        pub combine: bool,
        /// Whether reads can be served from written data in the buffer.
        #[serde(default = "yes")]
        pub hit_on_written: bool,
        /// Whether a read waits for its sectors if they are already being read or written.
        #[serde(default)]
        pub hit_under_way: bool,
        /// Whether a read that starts ahead of the stream is served by reading on, if that is faster than
        /// repositioning.
        #[serde(default)]
        pub hit_ahead: bool,
        /// Whether a read is served from the buffer if only its first part is there.
        #[serde(default = "yes")]
        pub partial_hit: bool,
        /// Whether data stay in the buffer after a request.
        #[serde(default = "yes")]
        pub caching: bool,
        /// Whether the read-ahead can stop in the middle of a sector.
        #[serde(default)]
        pub stop_within_sector: bool,
        /// Whether the drive continues to read ahead while the controller processes the next read.
        #[serde(default)]
        pub read_during_overhead: bool,
        /// Share of the request (or of the segment) that must be read before the transfer over the bus starts.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub read_watermark: f64,
        /// What read_watermark is a share of.
        #[serde(default)]
        pub watermark_of: WatermarkOf
    }
    impl check = |keys| {
        if keys.write_apart && keys.segments < 2 {
            return Err(KeyError::new("write_segment_apart", "leaves no segment for reads", "at least two segments"));
        }
        within_range("write_segments", keys.write_segments() as u64, 1..=keys.segments as u64)?;
        within_range("read_ahead_minimum", keys.minimum, 0..=keys.size)?;
        within_range("read_ahead_maximum", keys.maximum.unwrap_or(0), 0..=keys.size)
    };
}

impl Buffer {
    /// Number of segments that writes may use.
    pub fn write_segments(&self) -> usize {
        match self.write_apart {
            true => 1,
            false => self.write_segments.unwrap_or(self.segments),
        }
    }

    /// See [`crate::Device::divide_buffer`].
    pub fn divided(&self, segments: u64) -> Result<Self, KeyError> {
        let sectors = self.segments as u64 * self.size;
        let (least, most) = (1 + u64::from(self.write_apart), sectors.min(SEGMENTS_MAX));
        if !(least..=most).contains(&segments) {
            let problem = format!("{segments} segments of a buffer of {sectors} sectors");
            return Err(KeyError::new("", problem, format!("a whole number from {least} to {most}")));
        }
        let size = sectors / segments;
        Ok(Self {
            segments: segments as usize,
            size,
            write_segments: Some(self.write_segments().min(segments as usize)),
            minimum: self.minimum.min(size),
            maximum: self.maximum.map(|maximum| maximum.min(size)),
            ..self.clone()
        })
    }

    /// The segments that reads may use.
    pub fn read_segments(&self) -> std::ops::Range<usize> {
        0..self.segments - usize::from(self.write_apart)
    }

    /// The segments that writes may use.
    pub fn segments_for_writes(&self) -> std::ops::Range<usize> {
        let first = if self.write_apart { self.segments - 1 } else { 0 };
        first..self.segments
    }

    /// Sectors of a request that must have been read before the first crosses the bus.
    #[inline]
    pub fn watermark(&self, sectors: u32) -> u64 {
        if self.read_watermark == 0.0 {
            return 1;
        }
        let of = if self.watermark_of == WatermarkOf::Segment { self.size } else { self.size.min(u64::from(sectors)) };
        (of as f64 * self.read_watermark) as u64
    }

    /// The sector before which a read-ahead after `request` stops, in a segment that starts at `start`.
    #[inline]
    pub fn limit(&self, arm: &Arm, request: &Request, start: u64) -> u64 {
        let end = request.end();
        let full = match self.maximum {
            Some(maximum) => end + maximum,
            None if !self.keep_requested => end + self.size,
            None => (request.sector + self.size).max(end + self.minimum),
        };
        let last = end - 1;
        let limit = match self.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Segment => full,
            ReadAhead::Track => full.min(arm.zones[arm.zone_of(last)].track_of(last).1),
            ReadAhead::Cylinder => full.min(arm.zones[arm.zone_of(last)].cylinder_end(last)),
            ReadAhead::NextTrack => {
                let next = end.min(arm.sectors - 1);
                let zone = &arm.zones[arm.zone_of(next)];
                let (first, track_end) = zone.track_of(next);
                track_end + if start < first { zone.track_sectors } else { 0 }
            }
        };
        limit.min(arm.sectors).max(end)
    }
}

/// A run of sectors in the buffer; empty if start equals end.
#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: u64,
    end: u64,
    written: bool,
    /// The furthest limit that any read served from it set for the read-ahead.
    limit: u64,
    /// Where the last read that it served ended; 0 for none.
    asked: u64,
    /// Sequence number of its last use; 0 for never.
    used: u64,
}

impl Segment {
    #[inline]
    fn extend(&mut self, end: u64, size: u64) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(size));
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    size: u64,
    uses: u64,
}

impl Segments {
    pub fn new(buffer: &Buffer) -> Self {
        Self { list: vec![Segment::default(); buffer.segments], size: buffer.size, uses: 0 }
    }

    /// The segment that holds `sector`: preferably one that holds everything before `end`, and the most recently used
    /// of those. `read` gives a segment's end that is more recent than its record.
    #[inline]
    pub fn find(&self, sector: u64, end: u64, written: bool, read: Option<(usize, u64)>) -> Option<usize> {
        let mut best = None;
        for (index, segment) in self.list.iter().enumerate() {
            let mut segment = *segment;
            if let Some((_, end)) = read.filter(|(read, _)| *read == index) {
                segment.extend(end, self.size);
            }
            if segment.start <= sector && sector < segment.end && (written || !segment.written) {
                let merit = (segment.end >= end, segment.used);
                if best.is_none_or(|(_, most)| merit > most) {
                    best = Some((index, merit));
                }
            }
        }
        best.map(|(index, _)| index)
    }

    /// The segment to be replaced next: an empty one, else the least recently used, excluding those for which `except`
    /// holds.
    #[inline]
    pub fn take(&mut self, among: std::ops::Range<usize>, except: impl Fn(usize) -> bool) -> usize {
        let first = among.start;
        let merit = |index: &usize| {
            let segment = &self.list[*index];
            if segment.start == segment.end {
                0
            } else {
                segment.used
            }
        };
        let chosen = among.filter(|index| !except(*index)).min_by_key(merit).unwrap_or(first);
        self.touch(chosen);
        chosen
    }

    /// Counts a use.
    #[inline]
    pub fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.list[index].used = self.uses;
    }

    #[inline]
    pub fn start(&self, index: usize) -> u64 {
        self.list[index].start
    }

    #[inline]
    pub fn end(&self, index: usize) -> u64 {
        self.list[index].end
    }

    /// Replaces the contents of a segment.
    #[inline]
    pub fn set(&mut self, index: usize, start: u64, end: u64, written: bool) {
        let segment = &mut self.list[index];
        (segment.start, segment.end, segment.written, segment.limit, segment.asked) = (start, end, written, 0, 0);
    }

    /// The most recently used segment whose last read ended at `sector`.
    #[inline]
    pub fn followed(&self, sector: u64) -> Option<usize> {
        let ended_here = |(_, segment): &(usize, &Segment)| sector > 0 && segment.asked == sector;
        let followed = self.list.iter().enumerate().filter(ended_here).max_by_key(|(_, segment)| segment.used);
        followed.map(|(index, _)| index)
    }

    /// Records that the last read of a segment ended at `end`.
    #[inline]
    pub fn set_asked(&mut self, index: usize, end: u64) {
        self.list[index].asked = end;
    }

    /// Raises a segment's read-ahead limit to `limit`; returns the result, which is higher if an earlier read set it
    /// so.
    #[inline]
    pub fn raise_limit(&mut self, index: usize, limit: u64) -> u64 {
        let segment = &mut self.list[index];
        segment.limit = segment.limit.max(limit);
        segment.limit
    }

    /// Extends the segment to `end`; the oldest data that no longer fit are overwritten.
    #[inline]
    pub fn read_to(&mut self, index: usize, end: u64) {
        self.list[index].extend(end, self.size);
    }

    /// Extends the segment to begin at `start`, as far as it fits.
    pub fn keep_from(&mut self, index: usize, start: u64) {
        let segment = &mut self.list[index];
        segment.start = segment.start.min(start).max(segment.end.saturating_sub(self.size));
    }

    /// Drops what lies before `sector`.
    pub fn drop_before(&mut self, index: usize, sector: u64) {
        let segment = &mut self.list[index];
        segment.start = segment.start.max(sector).min(segment.end);
    }

    /// Adds the written `start..end` to the segment: appended if contiguous, otherwise as its new contents.
    pub fn written(&mut self, index: usize, start: u64, end: u64) {
        let goes_on = self.list[index].written && self.list[index].end == start;
        if !goes_on {
            self.set(index, start, start, true);
        }
        self.read_to(index, end);
    }

    /// Empties segments that overlap `start..end`, which is about to be written elsewhere.
    pub fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.list {
            if segment.start < end && start < segment.end {
                segment.end = segment.start;
            }
        }
    }
}
