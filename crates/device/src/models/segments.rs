//! The segments of a drive's buffer: what each holds, and which is given up next.

use headstart_types::{keys, within_range, KeyError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::arm::Arm;
use crate::Request;

/// How far the head reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAhead {
    /// Not at all.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and of the next one in a segment that goes back before this one.
    NextTrack,
}

/// When a write is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reporting {
    /// When it is on the media.
    Media,
    /// When it is in the buffer; one run of unwritten data at a time.
    Append,
    /// When it is in the buffer; as many runs as write segments.
    Buffer,
}

/// What a watermark is a part of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WatermarkOf {
    #[default]
    Request,
    Segment,
}

/// Segments at most: a hit is looked for in all of them.
const SEGMENTS_MAX: u64 = 1_000;

/// Sectors of a segment at most.
const SECTORS_MAX: u64 = 1 << 31;

fn yes() -> bool {
    true
}

keys! {
    /// A buffer of several segments.
    pub(crate) struct Buffer {
        /// Segments.
        #[schemars(range(min = 1, max = SEGMENTS_MAX))]
        pub segments: usize,
        /// Sectors of a segment.
        #[serde(rename = "segment_sectors")]
        #[schemars(range(min = 1, max = SECTORS_MAX))]
        pub size: u64,
        /// Segments that writes may take; all if absent.
        #[serde(default)]
        #[schemars(range(min = 1))]
        pub write_segments: Option<usize>,
        /// The last segment takes all writes, and nothing else.
        #[serde(default, rename = "write_segment_apart")]
        pub write_apart: bool,
        /// How far the head reads ahead.
        pub read_ahead: ReadAhead,
        /// Sectors read ahead before another request may break it off.
        #[serde(default, rename = "read_ahead_minimum")]
        pub minimum: u64,
        /// Sectors read ahead at most.
        #[serde(rename = "read_ahead_maximum")]
        pub maximum: Option<u64>,
        /// The head reads ahead only behind a read that begins where an earlier one ended: see `segmented.rs`.
        #[serde(default, rename = "read_ahead_on_sequence")]
        pub on_sequence: bool,
        /// What was requested stays in the segment while the head reads ahead.
        #[serde(default)]
        pub keep_requested: bool,
        /// What has been requested is given up.
        #[serde(default)]
        pub drop_requested: bool,
        /// A hit lets the head read on.
        #[serde(default)]
        pub read_ahead_on_hit: bool,
        /// What passes the head before the request's first sector is read too.
        #[serde(default)]
        pub read_before: bool,
        /// Sectors of a read are taken in the order in which they pass.
        #[serde(default)]
        pub zero_latency_read: bool,
        /// The same of a write.
        #[serde(default)]
        pub zero_latency_write: bool,
        /// When a write is done.
        #[serde(rename = "write_reporting")]
        pub reporting: Reporting,
        /// Writes that follow each other are one run.
        #[serde(default = "yes", rename = "combine_writes")]
        pub combine: bool,
        /// Reads are served from written data.
        #[serde(default = "yes")]
        pub hit_on_written: bool,
        /// A read of what is under way waits for it.
        #[serde(default)]
        pub hit_under_way: bool,
        /// A read that starts ahead of the stream is served by reading on where that is sooner: see `segmented.rs`.
        #[serde(default)]
        pub hit_ahead: bool,
        /// A read whose first part is in the buffer is served from it.
        #[serde(default = "yes")]
        pub partial_hit: bool,
        /// Whether anything stays in the buffer.
        #[serde(default = "yes")]
        pub caching: bool,
        /// Reading ahead stops within a sector.
        #[serde(default)]
        pub stop_within_sector: bool,
        /// The head goes on reading ahead while the controller takes in the next read: see `segmented.rs`.
        #[serde(default)]
        pub read_during_overhead: bool,
        /// Part of the request (or of the segment) that must be in before it starts to cross the bus.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub read_watermark: f64,
        /// What read_watermark is a part of.
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
    /// How many segments writes may take.
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

    /// Segments that reads may take.
    pub fn read_segments(&self) -> std::ops::Range<usize> {
        0..self.segments - usize::from(self.write_apart)
    }

    /// Segments that writes may take.
    pub fn segments_for_writes(&self) -> std::ops::Range<usize> {
        let first = if self.write_apart { self.segments - 1 } else { 0 };
        first..self.segments
    }

    /// Sectors of a request that must be in before the bus takes the first.
    #[inline]
    pub fn watermark(&self, sectors: u32) -> u64 {
        if self.read_watermark == 0.0 {
            return 1;
        }
        let of = if self.watermark_of == WatermarkOf::Segment { self.size } else { self.size.min(u64::from(sectors)) };
        (of as f64 * self.read_watermark) as u64
    }

    /// The sector before which a read-ahead behind `request` stops, in a segment that starts at `start`.
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

/// A run of sectors in the buffer; empty where start and end are one.
#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: u64,
    end: u64,
    written: bool,
    /// Where the furthest of the reads that it served lets the read-ahead stop.
    limit: u64,
    /// Where the last read that it served ended; 0 for none.
    asked: u64,
    /// When it was last used, by a count of uses; 0 for never.
    used: u64,
}

impl Segment {
    #[inline]
    fn extend(&mut self, end: u64, size: u64) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(size));
    }
}

/// All segments.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    size: u64,
    uses: u64,
}

impl Segments {
    /// Empty segments.
    pub fn new(buffer: &Buffer) -> Self {
        Self { list: vec![Segment::default(); buffer.segments], size: buffer.size, uses: 0 }
    }

    /// The segment that holds `sector`: one that holds all before `end` if there is one, and of those the last used.
    /// `read` is a segment that is further than its record.
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

    /// The segment to be used next: an empty one, else the one used longest ago, `except` some.
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

    /// Gives a segment other contents.
    #[inline]
    pub fn set(&mut self, index: usize, start: u64, end: u64, written: bool) {
        let segment = &mut self.list[index];
        (segment.start, segment.end, segment.written, segment.limit, segment.asked) = (start, end, written, 0, 0);
    }

    /// The segment whose last read ended at `sector`; of several, the last used.
    #[inline]
    pub fn followed(&self, sector: u64) -> Option<usize> {
        let ended_here = |(_, segment): &(usize, &Segment)| sector > 0 && segment.asked == sector;
        let followed = self.list.iter().enumerate().filter(ended_here).max_by_key(|(_, segment)| segment.used);
        followed.map(|(index, _)| index)
    }

    /// The last read of a segment ended at `end`.
    #[inline]
    pub fn set_asked(&mut self, index: usize, end: u64) {
        self.list[index].asked = end;
    }

    /// Lets the read-ahead go as far as `limit`, or further where a read before this one did; says how far.
    #[inline]
    pub fn raise_limit(&mut self, index: usize, limit: u64) -> u64 {
        let segment = &mut self.list[index];
        segment.limit = segment.limit.max(limit);
        segment.limit
    }

    /// The segment now ends at `end`; what no longer fits is overwritten, oldest first.
    #[inline]
    pub fn read_to(&mut self, index: usize, end: u64) {
        self.list[index].extend(end, self.size);
    }

    /// The segment also holds what lies from `start` on, as far as it fits.
    pub fn keep_from(&mut self, index: usize, start: u64) {
        let segment = &mut self.list[index];
        segment.start = segment.start.min(start).max(segment.end.saturating_sub(self.size));
    }

    /// The segment no longer holds what lies before `sector`.
    pub fn drop_before(&mut self, index: usize, sector: u64) {
        let segment = &mut self.list[index];
        segment.start = segment.start.max(sector).min(segment.end);
    }

    /// `start..end` was written into the segment: on from what it holds, or in its place.
    pub fn written(&mut self, index: usize, start: u64, end: u64) {
        let goes_on = self.list[index].written && self.list[index].end == start;
        if !goes_on {
            self.set(index, start, start, true);
        }
        self.read_to(index, end);
    }

    /// Empties what overlaps `start..end`: it is about to be written elsewhere.
    pub fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.list {
            if segment.start < end && start < segment.end {
                segment.end = segment.start;
            }
        }
    }
}
