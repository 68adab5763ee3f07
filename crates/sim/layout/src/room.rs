//! The error for a trace that touches more than the device holds: both sizes, and what to change.

use headstart_device::{build_device, sectors_of, ArrayRow, Device, MODELS};
use headstart_types::{Bytes, KeyError, Spread};
use toml::Table;

/// The devices of a run.
#[derive(Clone, Copy)]
pub struct Disks<'a> {
    pub model: &'a str,
    /// One of them.
    pub device: &'a dyn Device,
    /// Number per server.
    pub count: u32,
    /// How blocks are distributed to servers with such disks; `None`: there is one server.
    pub spread: Option<Spread>,
    /// How they form a volume.
    pub array: &'static ArrayRow,
    /// Contiguous bytes on one of them.
    pub stripe_unit: Bytes,
}

/// A device, as an error describes it.
#[derive(Debug)]
pub struct Room {
    model: String,
    disks: u32,
    /// Whether the capacity is proportional to the number of disks: they are independent, without copies or parity.
    grows: bool,
    block: Bytes,
}

impl Room {
    #[must_use]
    pub fn new(device: &Disks<'_>, block: Bytes) -> Self {
        Self { model: device.model.to_owned(), disks: device.count, grows: device.array.is_independent(), block }
    }

    /// The error if the device holds `held` blocks, fewer than the touched `chunks` chunks of `chunk_blocks` blocks.
    #[must_use]
    pub fn too_small(&self, chunks: u64, chunk_blocks: u64, held: u64) -> KeyError {
        let needed = chunks.saturating_mul(chunk_blocks);
        let size = |blocks: u64| gib(blocks.saturating_mul(self.block.0));
        let plural = if self.disks == 1 { "disk holds" } else { "disks hold" };
        let touched = match chunk_blocks {
            1 => format!("{chunks} blocks ({})", size(needed)),
            _ => format!("{chunks} chunks of {chunk_blocks} blocks ({})", size(needed)),
        };
        let (disks, model) = (self.disks, &self.model);
        let problem =
            format!("the trace touches {touched}, and {disks} {model} {plural} {held} blocks ({})", size(held));
        KeyError::new("workload.addresses", problem, self.ways_out(needed, chunk_blocks, held).join(", or "))
    }

    /// The changes that make it fit.
    fn ways_out(&self, needed: u64, chunk_blocks: u64, held: u64) -> Vec<String> {
        let mut ways = Vec::new();
        if chunk_blocks > 1 {
            ways.push("smaller chunks (workload.chunk_blocks)".to_owned());
        }
        let each = held / u64::from(self.disks).max(1);
        if self.grows && each > 0 {
            ways.push(format!("device.count = {} or more", needed.div_ceil(each)));
        }
        match larger_model(needed.saturating_mul(sectors_of(self.block.0))) {
            Some(name) => ways.push(format!("a larger device, such as device.model = \"{name}\"")),
            None => ways.push("a larger device".to_owned()),
        }
        ways.push("fewer requests (workload.limit)".to_owned());
        ways
    }
}

/// The smallest shipped model with at least `sectors`.
fn larger_model(sectors: u64) -> Option<&'static str> {
    let capacity = |name: &str| build_device(name, Table::new()).ok()?.capacity_sectors();
    let sized = MODELS.iter().filter_map(|row| Some((capacity(row.name)?, row.name)));
    sized.filter(|(held, _)| *held >= sectors).min().map(|(_, name)| name)
}

/// Bytes in GiB, with one decimal.
fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
