//! Limits of the automatic read-ahead.

/// Minimum: Linux's default read-ahead.
pub const WINDOW_BYTES_MIN: u64 = 128 << 10;
/// Maximum: data read ahead is wasted when the stream ends.
pub const WINDOW_BYTES_MAX: u64 = 16 << 20;
