//! Bounds of the numbers of a profile: what reads profiles and what writes them keep the same ones.

use headstart_types::Nanos;

/// No time of a device is longer than this: sums of them stay far from the end of 64 bits.
pub const TIME_MAX: Nanos = Nanos(3_600_000_000_000);

/// Longest name of a drive.
pub const NAME_CHARACTERS_MAX: usize = 200;

/// Most turns a minute.
pub const RPM_MAX: u32 = 1_000_000;

/// Most surfaces of a drive.
pub const SURFACES_MAX: u32 = 1_000;

/// Most cylinders of a drive.
pub const CYLINDERS_MAX: u32 = 10_000_000;

/// Most zones of a drive: real ones have up to some dozens. Every zone is looked through by some requests and shown.
pub const ZONES_MAX: usize = 1_000;

/// Most sectors of a track.
pub const SECTORS_PER_TRACK_MAX: u64 = 1_000_000;

/// Most sectors that may pass a head in a minute: keeps the arithmetic of `rotation.rs` within 64 bits.
pub const SECTORS_PER_MINUTE_MAX: u64 = 300_000_000;

/// The longest distance, in cylinders, that a seek curve may name.
pub const DISTANCE_MAX: u64 = 100_000_000;

/// Largest profile in bytes: 400 times the largest of those that are shipped or imported from the measured set.
pub const PROFILE_BYTES_MAX: u64 = 4 << 20;
