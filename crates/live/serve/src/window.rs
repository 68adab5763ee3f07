//! How far an export is read ahead, where that is not named.

/// The least window: what Linux reads ahead of any device.
pub const WINDOW_BYTES_MIN: u64 = 128 << 10;
/// The most: what lies ahead of a stream when it ends is read in vain.
pub const WINDOW_BYTES_MAX: u64 = 16 << 20;
