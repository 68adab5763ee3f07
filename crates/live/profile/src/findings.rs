//! What a measurement has found.

use serde::Serialize;

use super::depths::Point;
use super::model::ModelFound;
use super::seeks::SeekPoint;

/// Version of the shape of [`Findings`] as JSON.
pub const SCHEMA: u32 = 1;

/// What a device is found to be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Version of these fields.
    pub schema: u32,
    /// Bytes of the device.
    pub capacity_bytes: u64,
    /// How long the measurement took, how many reads it were, and the seed of their places.
    pub elapsed_ns: u64,
    /// See above.
    pub reads: u64,
    /// See above.
    pub seed: u64,
    /// Median times of reads of 4 KiB.
    pub latency: Latency,
    /// Reads of 4 KiB by how many are outstanding.
    pub by_depth: Vec<Point>,
    /// From so many on throughput is within 5 % of the best; with an arm, 10 %.
    pub saturating_depth: usize,
    /// What moves and turns; none where reads take the same time wherever they are.
    pub arm: Option<ArmFound>,
    /// Of a device without an arm: random reads one at a time, by size.
    pub by_size: Vec<Point>,
    /// Of a device without an arm: from so many bytes on throughput is within 5 % of the best.
    pub saturating_bytes: Option<u64>,
    /// Of a device without an arm: reads of 256 KiB by how many are outstanding.
    pub by_depth_long: Vec<Point>,
    /// The model of the profile.
    pub model: Option<ModelFound>,
    /// What is to be known about these numbers, a sentence each.
    pub notes: Vec<String>,
}

/// Median times of reads of 4 KiB, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// At most 1 MiB before the one before.
    pub near_ns: u64,
    /// Anywhere.
    pub far_ns: u64,
    /// A second time, from the buffer; none if it is read from the media again.
    pub buffered_ns: Option<u64>,
}

/// A drive with an arm. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmFound {
    /// One turn.
    pub turn_ns: u64,
    /// How far off the turn may be: half the width of an interval that holds the truth nineteen times out of twenty.
    pub turn_error_ns: u64,
    /// Turns a minute.
    pub rpm: u32,
    /// How well the times of reads fit that turn, 0 to 1.
    pub turn_fit: f64,
    /// What a read takes beside arm, media and bus.
    pub overhead_ns: u64,
    /// How far off that may be.
    pub overhead_error_ns: u64,
    /// Bytes a second over the bus, from the buffer; none if it could not be measured.
    pub bus_bytes_per_s: Option<u64>,
    /// How far off that may be.
    pub bus_error_bytes_per_s: Option<u64>,
    /// Places that the buffer keeps; 0 without one.
    pub segments: usize,
    /// The zones, outermost first.
    pub zones: Vec<ZoneRate>,
    /// By distance.
    pub seeks: Vec<SeekPoint>,
    /// Between two places drawn evenly.
    pub mean_seek_ns: u64,
    /// How far off that may be.
    pub mean_seek_error_ns: u64,
    /// Bytes a second of long reads: the mean over all places, as they lie at random.
    pub mean_bytes_per_s: u64,
    /// How far off that may be.
    pub mean_error_bytes_per_s: u64,
    /// What passes the head in the time of a mean seek and half a turn: bytes, and whole pages of 4 KiB.
    pub competitive_depth_bytes: u64,
    /// How far off that may be.
    pub competitive_depth_error_bytes: u64,
    /// See above.
    pub competitive_depth_pages: u64,
}

/// A run of sectors whose tracks are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZoneRate {
    /// First sector.
    pub first_sector: u64,
    /// How many.
    pub sectors: u64,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// Of a long read.
    pub bytes_per_s: u64,
    /// It is the bus that keeps it from being faster.
    pub bus_bound: bool,
}
