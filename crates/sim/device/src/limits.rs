//! Bounds of the numbers in a profile, shared by the code that reads profiles and the code that writes them.

use headstart_types::Nanos;

/// Maximum of any time of a device: sums stay far below 64 bits.
pub const TIME_MAX: Nanos = Nanos(3_600_000_000_000);

/// Maximum length of a drive's name.
pub const NAME_CHARACTERS_MAX: usize = 200;

/// Maximum number of revolutions per minute.
pub const RPM_MAX: u32 = 1_000_000;

/// Maximum number of surfaces of a drive.
pub const SURFACES_MAX: u32 = 1_000;

/// Maximum number of cylinders of a drive.
pub const CYLINDERS_MAX: u32 = 10_000_000;

/// Maximum number of zones of a drive: real ones have up to some dozens. Some requests scan all zones, and all are
/// displayed.
pub const ZONES_MAX: usize = 1_000;

/// Maximum number of sectors per track.
pub const SECTORS_PER_TRACK_MAX: u64 = 1_000_000;

/// Maximum number of sectors that pass a head per minute: keeps the arithmetic of `rotation.rs` within 64 bits.
pub const SECTORS_PER_MINUTE_MAX: u64 = 300_000_000;

/// Maximum distance, in cylinders, in a seek curve.
pub const DISTANCE_MAX: u64 = 100_000_000;

/// Maximum size of a profile in bytes: 400 times the largest of those that are shipped or imported from the measured
/// set.
pub const PROFILE_BYTES_MAX: u64 = 4 << 20;
