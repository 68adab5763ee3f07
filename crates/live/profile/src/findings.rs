//! The findings of a measurement.

use schemars::JsonSchema;
use serde::Serialize;

use super::depths::Point;
use super::model::ModelFound;
use super::seeks::SeekPoint;

/// Schema version of [`Findings`] as JSON.
pub const SCHEMA: u32 = 1;

/// The measured properties of a device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// Schema version.
    pub schema: u32,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Duration of the measurement in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of reads.
    pub reads: u64,
    /// Seed of the random places.
    pub seed: u64,
    /// Median latency of 4 KiB reads.
    pub latency: Latency,
    /// 4 KiB reads by the number of outstanding reads.
    pub by_depth: Vec<Point>,
    /// Smallest depth whose throughput is within 5 % of the best; within 10 % for drives with an arm.
    pub saturating_depth: usize,
    /// The mechanics. Null if the time of a read does not depend on its place.
    pub arm: Option<ArmFound>,
    /// Drives without an arm: random reads one at a time, by size.
    pub by_size: Vec<Point>,
    /// Drives without an arm: smallest size in bytes whose throughput is within 5 % of the best.
    pub saturating_bytes: Option<u64>,
    /// Drives without an arm: 256 KiB reads by the number of outstanding reads.
    pub by_depth_long: Vec<Point>,
    /// The model of the profile.
    pub model: Option<ModelFound>,
    /// Notes on these numbers, one sentence each.
    pub notes: Vec<String>,
}

/// Median latency of 4 KiB reads, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// At most 1 MiB before the previous read.
    pub near_ns: u64,
    /// At a random place.
    pub far_ns: u64,
    /// A repeated read, served from the buffer. Null if the drive reads it from the media again.
    pub buffered_ns: Option<u64>,
}

/// A drive with an arm. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ArmFound {
    /// Time of a revolution.
    pub turn_ns: u64,
    /// Error of `turn_ns`: half the width of a 95 % confidence interval.
    pub turn_error_ns: u64,
    /// Revolutions per minute.
    pub rpm: u32,
    /// How well the times of reads fit that revolution, 0 to 1.
    pub turn_fit: f64,
    /// Time of a read without seek, rotation, media and bus.
    pub overhead_ns: u64,
    /// Error of `overhead_ns`.
    pub overhead_error_ns: u64,
    /// Bytes per second over the bus, from the buffer. Null if it could not be measured.
    pub bus_bytes_per_s: Option<u64>,
    /// Error of `bus_bytes_per_s`.
    pub bus_error_bytes_per_s: Option<u64>,
    /// Number of segments of the buffer; 0 without a buffer.
    pub segments: usize,
    /// The zones, outermost first.
    pub zones: Vec<ZoneRate>,
    /// Seek times by distance.
    pub seeks: Vec<SeekPoint>,
    /// Mean seek time between two uniformly random places.
    pub mean_seek_ns: u64,
    /// Error of `mean_seek_ns`.
    pub mean_seek_error_ns: u64,
    /// Bytes per second of long reads: the mean over uniformly random places.
    pub mean_bytes_per_s: u64,
    /// Error of `mean_bytes_per_s`.
    pub mean_error_bytes_per_s: u64,
    /// Bytes that pass the head during a mean seek and half a revolution (the competitive depth).
    pub competitive_depth_bytes: u64,
    /// Error of `competitive_depth_bytes`.
    pub competitive_depth_error_bytes: u64,
    /// The competitive depth in whole pages of 4 KiB.
    pub competitive_depth_pages: u64,
}

/// A run of sectors with tracks of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ZoneRate {
    /// First sector.
    pub first_sector: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Sectors per track.
    pub sectors_per_track: u32,
    /// Rate of a long read.
    pub bytes_per_s: u64,
    /// Whether the bus limits the rate.
    pub bus_bound: bool,
}
