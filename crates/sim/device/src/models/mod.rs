//! Device models: one file each for the simple ones, and the parts of the mechanical drive.

mod arm;
mod bus;
pub mod flash;
mod flash_blocks;
mod flash_channels;
mod flash_keys;
pub mod geometry;
pub mod mechanical;
mod network;
pub mod object_store;
mod overhead;
mod parameters;
pub mod profile;
pub mod rotation;
pub mod seek;
mod segmented;
mod segments;
pub mod shipped;
mod single;
mod sparing;
pub mod stream;
pub mod uniform;

use headstart_types::Nanos;

use crate::row::Model;
use crate::SECTOR_BYTES;

/// All models.
pub static MODELS: &[Model] = &[
    uniform::ROW,
    shipped::HP97560,
    shipped::SEAGATE_CHEETAH_9LP,
    shipped::SEAGATE_CHEETAH_4LP,
    shipped::SEAGATE_BARRACUDA_ST32171W,
    shipped::QUANTUM_ATLAS_10K,
    shipped::IBM_0661,
    shipped::IBM_36GB_10K,
    shipped::SEAGATE_146GB_10K,
    shipped::SEAGATE_EXOS_X20,
    shipped::NVME,
    shipped::NVME_GEN5,
    shipped::SATA_SSD,
    object_store::ROW,
];

/// Time of a sector at one byte per second, in nanoseconds.
const PER_SECTOR: u64 = SECTOR_BYTES * 1_000_000_000;

/// Time of at most 2^32 sectors at a rate, rounded up.
#[inline]
fn at_rate(sectors: u64, bytes_per_second: u64) -> Nanos {
    // At most 2^32 * 512e9, which needs 128 bits; below 2^24 sectors it fits in 64.
    if sectors < 1 << 24 {
        Nanos((sectors * PER_SECTOR).div_ceil(bytes_per_second))
    } else {
        Nanos((u128::from(sectors) * u128::from(PER_SECTOR)).div_ceil(u128::from(bytes_per_second)) as u64)
    }
}
