//! The keys of the read-aheads of li07: `fixed-depth`, `competitive` and `oracle-depth`.

use serde::{Deserialize, Serialize};

use headstart_types::KeyError;

use super::keys::{at_least_one, LinuxKeys};
use super::{CompetitiveSetting, ReadAheadContext, Seeks, Size};

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedDepthKeys {
    /// Of the windows, the largest: li07, section 6.2.
    pub depth: Size,
    /// The first: li07, section 4.3.
    pub start: Size,
    /// As in `linux`.
    pub max_request: Size,
    pub files: u32,
}

impl Default for FixedDepthKeys {
    fn default() -> Self {
        let LinuxKeys { max_request, files, .. } = LinuxKeys::default();
        Self { depth: Size::kib(800), start: Size::kib(64), max_request, files }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompetitiveKeys {
    /// The first window: li07, section 4.3.
    pub start: Size,
    /// Of the latest seek in the moving average.
    pub weight: f64,
    pub seeks: Seeks,
    pub shrink: bool,
    /// As in `linux`.
    pub max_request: Size,
    pub files: u32,
}

impl Default for CompetitiveKeys {
    fn default() -> Self {
        let FixedDepthKeys { start, max_request, files, .. } = FixedDepthKeys::default();
        Self { start, weight: 0.0625, seeks: Seeks::default(), shrink: true, max_request, files }
    }
}

impl CompetitiveKeys {
    pub fn setting(self, context: &ReadAheadContext) -> Result<CompetitiveSetting, KeyError> {
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            let problem = format!("{} is out of range", self.weight);
            return Err(KeyError::new("weight", problem, "a number above 0, at most 1"));
        }
        Ok(CompetitiveSetting {
            first: self.start.some_blocks("start", context.block_bytes)?,
            weight: self.weight,
            seeks: self.seeks,
            shrink: self.shrink,
            request_max: self.max_request.blocks(context.block_bytes),
            files: at_least_one("files", self.files)? as usize,
            block_bytes: context.block_bytes,
            frames: context.frames,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OracleDepthKeys {
    /// The largest request: what Linux 2.6 let a SCSI host have (SCSI_DEFAULT_MAX_SECTORS, 1024).
    pub max_request: Size,
}

impl Default for OracleDepthKeys {
    fn default() -> Self {
        Self { max_request: Size::kib(512) }
    }
}
