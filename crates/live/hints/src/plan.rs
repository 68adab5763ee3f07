//! Turns hints and a policy into the setting of a machine.

use headstart_policy::registry::{PolicyRow, POLICIES};
use headstart_types::{KeyError, Nanos};
use toml::Table;

use super::list::{HintList, PAGE_BYTES};
use super::machine::Setting;

/// Frames before anything has been used, for hints of another command and of the same one; later the disk time at risk
/// decides (`account.rs`).
const FRAMES_MIN: u32 = 4;
const FRAMES_MIN_SAME: u32 = 16;
/// Defaults of these keys, for policies that have them: batches as large as an arm can sort, and horizons as far as it
/// needs.
const ARM_BATCH: i64 = 1 << 16;
const FLASH_BATCH: i64 = 1024;
const HORIZON: i64 = 4096;
/// Typical time of a disk for a page.
const ARM_SERVICE: Nanos = Nanos(8_000_000);
const FLASH_SERVICE: Nanos = Nanos(100_000);
/// The part of it that depends on the page's size: 80 MB/s, and 1 GB/s.
const ARM_TRANSFER: Nanos = Nanos(50_000);
const FLASH_TRANSFER: Nanos = Nanos(4_000);
/// Reads that a disk without an arm serves at the same time.
const FLASH_CONCURRENCY: u32 = 16;

/// How far hints are trusted before they have proved right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Few frames at first, more for each prefetched page that is used.
    Earned,
    /// Recorded from the same command: more frames at first, and followed until the command deviates.
    SameCommand,
    /// The whole budget from the start.
    Whole,
}

/// How to prefetch from hints with a policy.
#[derive(Clone)]
pub struct Plan {
    /// The policy.
    pub row: &'static PolicyRow,
    /// Its keys.
    pub keys: Table,
    /// Maximum bytes prefetched and not yet used.
    pub budget_bytes: u64,
    /// How far the hints are trusted.
    pub trust: Trust,
}

impl Plan {
    /// The parameters of the machine, on `disks` disks, one of which has an arm if `arm`.
    ///
    /// # Errors
    /// The policy does not work from hints.
    pub fn setting(&self, list: &HintList, disks: usize, arm: bool) -> Result<Setting, KeyError> {
        let row = self.row;
        if !row.is_hinted() {
            let hinted = POLICIES.iter().filter(|row| row.is_hinted()).map(|row| row.name);
            let allowed = hinted.collect::<Vec<_>>().join(", ");
            return Err(KeyError::new("policy", format!("{} does not work from hints", row.name), allowed));
        }
        let mut keys = self.keys.clone();
        for (key, value) in [("batch_size", if arm { ARM_BATCH } else { FLASH_BATCH }), ("horizon", HORIZON)] {
            if row.keys.has(key) && !keys.contains_key(key) {
                keys.insert(key.into(), value.into());
            }
        }
        let pages: u64 = list.ranges.iter().map(|range| u64::from(range.count)).sum();
        let frames_max = (self.budget_bytes / PAGE_BYTES).clamp(1, pages.clamp(1, 1 << 24)) as u32;
        let frames_min = match self.trust {
            Trust::Whole => frames_max,
            Trust::SameCommand => FRAMES_MIN_SAME,
            Trust::Earned => FRAMES_MIN,
        };
        Ok(Setting {
            row,
            keys,
            frames_min: frames_min.min(frames_max),
            frames_max,
            growth: 0,
            disks,
            service: if arm { ARM_SERVICE } else { FLASH_SERVICE },
            transfer: if arm { ARM_TRANSFER } else { FLASH_TRANSFER },
            concurrency: if arm { 1 } else { FLASH_CONCURRENCY },
            think: Nanos(list.elapsed_ns / pages.max(1)),
        })
    }
}
