//! From (file, block in file) to a disk and a sector.
//!
//! - by address: the number is the block of the volume;
//! - table order: files one after another, in the order of the file table, each starting at a block boundary; in an object
//!   store with a block between two, since a request reads one object;
//! - random groups (kimbrel96, section 3.2: "a random starting point within a group of 8550 8 kbyte blocks"): files
//!   fill groups in the order of the table, a group takes files up to 8550 blocks, and each file starts at a random
//!   block of its group. The paper gives no more; that files follow the table, and that blocks of two files may
//!   therefore share an address, is our interpretation;
//! - ffs: as laid out by a Fast File System, see `ffs`;
//! - compact: the volume is divided into chunks of as many blocks as the scenario gives (1, or chunk_blocks); only
//!   those with a referenced block use space, in order of their addresses. A block keeps its neighbours within its
//!   chunk.

use hashbrown::HashMap;
use headstart_device::{build_layout, Device, Layout, Stripe};
use headstart_types::{stream_seed, Bytes, Disk, KeyError, Nanos, Spread};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxBuildHasher;

use super::ffs::{Ffs, Spot, Volume};
use super::ffs::{FfsKeys, FileSize};
use super::placement::{Addresses, Placement};
use super::room::{Disks, Room};

/// Blocks of 8 KiB in 100 cylinders of an HP 97560 (kimbrel96, section 3.2).
const GROUP_BLOCKS: u64 = 8550;

/// First block of each file on the volume.
type Bases = HashMap<u32, u64, FxBuildHasher>;

/// The contents of the volume, as far as the rule needs them.
#[derive(Debug, Default)]
pub struct Contents {
    /// Files and their sizes in blocks, in table order; files missing from the table follow by number.
    pub files: Vec<(u32, u64)>,
    /// The same in bytes.
    pub file_bytes: Vec<FileSize>,
    /// Distinct (file, block in file) in order, if requested.
    pub blocks: Vec<(u32, u64)>,
}

/// The placing rule.
#[derive(Debug)]
pub struct Placing {
    /// By server: first block of each file on its volume; `None`: files are not distinguished.
    bases: Option<Vec<Bases>>,
    /// A file system instead, on one server.
    ffs: Option<Ffs>,
    /// By server; `None`: no compaction.
    compact: Option<Vec<Chunks>>,
    /// The layout of each server's volume.
    layout: Layout,
    /// How blocks are distributed to servers; `None`: there is one.
    spread: Option<Spread>,
    /// Disks per server.
    disks: u32,
    block_sectors: u64,
    /// Sectors per disk.
    capacity: Option<u64>,
    /// The device, for error texts.
    room: Room,
}

/// Contiguous blocks of a file on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    pub disk: Disk,
    /// First sector of the first block.
    pub sector: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// The chunks of the volume that use space.
#[derive(Debug)]
struct Chunks {
    /// Blocks per chunk; at least 1.
    blocks: u64,
    /// Their numbers on the volume, in order.
    order: Vec<u64>,
}

impl Chunks {
    /// The chunks of the blocks at `addresses`.
    fn new(blocks: u64, addresses: impl Iterator<Item = Result<u64, KeyError>>) -> Result<Self, KeyError> {
        let mut order = Vec::new();
        for address in addresses {
            let chunk = address? / blocks;
            // Neighbours are mostly consecutive.
            if order.last() != Some(&chunk) {
                order.push(chunk);
            }
        }
        order.sort_unstable();
        order.dedup();
        Ok(Self { blocks, order })
    }

    /// The place of the block at `address`; `None` if its chunk uses no space.
    fn place(&self, address: u64) -> Option<u64> {
        let rank = self.order.binary_search(&(address / self.blocks)).ok()?;
        Some(rank as u64 * self.blocks + address % self.blocks)
    }
}

impl Placing {
    /// The rule for blocks of `block`. `contents` holds the files and, for compaction, the blocks.
    ///
    /// # Errors
    /// The offending key.
    pub fn try_new(
        block: Bytes,
        placement: Placement,
        addresses: Addresses,
        disks: &Disks<'_>,
        contents: &Contents,
        seed: u64,
    ) -> Result<Self, KeyError> {
        let capacity = disks.device.capacity_sectors();
        let layout = if disks.array.is_independent() {
            build_layout(disks.array.name, disks.count, disks.stripe_unit, block, capacity)
        } else {
            Stripe::try_new(1, block, block).map(Layout::Stripe)
        };
        let layout = layout.map_err(|error| error.within("device"))?;
        let bases = match placement {
            Placement::Address => None,
            Placement::TableOrder => {
                // A request of an object store reads one object: no object adjoins another.
                let gap = u64::from(disks.device.holds_objects());
                Some(each_server(disks.spread, &contents.files, |_, files| table_order(files, gap)))
            }
            Placement::RandomGroups => {
                Some(each_server(disks.spread, &contents.files, |server, files| random_groups(files, seed, server)))
            }
            Placement::Ffs(_) => None,
        };
        let block_sectors = headstart_device::sectors_of(block.0).max(1);
        let room = Room::new(disks, block);
        let spread = disks.spread;
        let disk_count = if disks.array.is_independent() { disks.count } else { 1 };
        let (ffs, compact) = (None, None);
        let mut placing =
            Self { bases, ffs, compact, layout, spread, disks: disk_count, block_sectors, capacity, room };
        if let Placement::Ffs(keys) = placement {
            let volume = Volume {
                block_bytes: block.0,
                blocks: placing.volume_blocks(),
                gap_blocks: gap_blocks(&keys, block.0, disks.device)?,
            };
            placing.ffs = Some(Ffs::try_new(&keys, &volume, &contents.file_bytes, seed)?);
        }
        if let Addresses::Compact { chunk_blocks } = addresses {
            let mut chunks = Vec::new();
            for server in 0..spread.map_or(1, |spread| spread.servers) {
                let own = contents.blocks.iter().map(|(file, at)| (placing.local(*file, *at), *file));
                let own = own.filter(|((of, _), _)| *of == server);
                let addresses = own.map(|((_, local), file)| placing.volume_block(server, file, local));
                chunks.push(Chunks::new(chunk_blocks, addresses)?);
            }
            placing.compact = Some(chunks);
        }
        Ok(placing)
    }

    /// Whether addresses can lie beyond the device. A file system allocates its own.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.capacity.is_some() && self.ffs.is_none()
    }

    /// Number of independent disks over which a long run of blocks is striped.
    #[must_use]
    pub fn disks_abreast(&self) -> u64 {
        self.layout.disks_abreast()
    }

    /// The file system that lays out the blocks.
    #[must_use]
    pub fn ffs(&self) -> Option<&Ffs> {
        self.ffs.as_ref()
    }

    /// Sectors of block `at` of `file`, if it is partial.
    #[must_use]
    pub fn short(&self, file: u32, at: u64) -> Option<u32> {
        self.ffs.as_ref()?.spot(file, at)?.sectors
    }

    /// Sectors of a whole block.
    pub fn block_sectors(&self) -> u64 {
        self.block_sectors
    }

    /// The server that holds a block, and the block's number there.
    #[inline]
    fn local(&self, file: u32, at: u64) -> (u32, u64) {
        self.spread.map_or((0, at), |spread| spread.local(file, at))
    }

    /// The block of the server's volume, and the sectors of it before this one begins.
    fn spot(&self, server: u32, file: u32, at: u64) -> Result<(u64, u64), KeyError> {
        let Some(ffs) = &self.ffs else { return Ok((self.volume_block(server, file, at)?, 0)) };
        let beyond = || {
            let problem = format!("block {at} of file {file} lies beyond the file's end");
            KeyError::new("workload.placement", problem, "a trace whose file table has the files' sizes")
        };
        let Spot { block, skip, .. } = ffs.spot(file, at).ok_or_else(beyond)?;
        Ok((block, skip))
    }

    fn volume_block(&self, server: u32, file: u32, at: u64) -> Result<u64, KeyError> {
        let base = self.bases.as_ref().map_or(Some(0), |bases| bases[server as usize].get(&file).copied());
        base.and_then(|base| base.checked_add(at)).ok_or_else(|| {
            let problem = format!("block {at} of file {file} has no address below 2^64");
            KeyError::new("workload.addresses", problem, "larger blocks")
        })
    }

    /// Blocks of the volume; `None` if the device has no limit, or if only some blocks have places.
    #[must_use]
    pub fn volume_blocks(&self) -> Option<u64> {
        if self.bases.is_some() || self.compact.is_some() || self.ffs.is_some() {
            return None;
        }
        let blocks = self.device_blocks()?;
        Some(self.spread.map_or(blocks, |spread| spread.room(blocks)))
    }

    /// Blocks that a server's device holds; `None` if it has no limit.
    fn device_blocks(&self) -> Option<u64> {
        let capacity = self.capacity?;
        Some(match &self.layout {
            Layout::Stripe(stripe) => stripe.capacity_blocks(capacity),
            Layout::Concat(concat) => concat.capacity_blocks(),
            _ => return None,
        })
    }

    /// The extent at block `at` of `file`, and the number of its known contiguous blocks from there on. There may be
    /// more.
    ///
    /// # Errors
    /// As for [`Placing::place`].
    pub fn extent(&self, file: u32, at: u64) -> Result<Extent, KeyError> {
        let (disk, sector) = self.place(file, at)?;
        let alone = Extent { disk, sector, blocks: 1 };
        let single = |chunks: &Vec<Chunks>| chunks[0].blocks == 1;
        if self.ffs.is_some() || self.spread.is_some() || self.compact.as_ref().is_some_and(single) {
            return Ok(alone);
        }
        let address = self.volume_block(0, file, at)?;
        let of_volume = u64::MAX - address;
        let (address, of_chunk) = match &self.compact {
            None => (address, of_volume),
            Some(chunks) => {
                let chunks = &chunks[0];
                (chunks.place(address).unwrap_or(address), of_volume.min(chunks.blocks - address % chunks.blocks))
            }
        };
        // If sectors do not fit in 64 bits, blocks have no neighbours.
        let Some(of_numbers) = (u64::MAX / self.block_sectors).checked_sub(address) else { return Ok(alone) };
        let of_disk = (self.capacity.unwrap_or(u64::MAX / 2) - sector) / self.block_sectors;
        let blocks = of_chunk.min(of_numbers).min(of_disk).min(self.layout.follow(address)).max(1);
        Ok(Extent { blocks, ..alone })
    }

    /// Disk and first sector of block `at` of `file`.
    ///
    /// # Errors
    /// If it lies beyond the device, or in a chunk that uses no space.
    pub fn place(&self, file: u32, at: u64) -> Result<(Disk, u64), KeyError> {
        let (server, local) = self.local(file, at);
        let (address, skip) = self.spot(server, file, local)?;
        let compact = self.compact.as_ref().map(|chunks| &chunks[server as usize]);
        let address = match compact {
            None => address,
            Some(chunks) => chunks.place(address).ok_or_else(|| {
                let problem = format!("block {at} of file {file} is never referenced, nor is a neighbour of it");
                KeyError::new("workload.addresses", problem, "\"error\", or larger chunks")
            })?,
        };
        let beyond = |limit: u64| {
            if let (Some(chunks), Some(held)) = (compact, self.device_blocks()) {
                return self.room.too_small(chunks.order.len() as u64, chunks.blocks, held);
            }
            let problem = format!("block {address} lies beyond the device, whose disks hold {limit} sectors each");
            let allowed = "\"auto\", \"compact\", \"compact-chunks\", more or larger disks, or another placement";
            KeyError::new("workload.addresses", problem, allowed)
        };
        // Without a limit, sectors must still fit in 64 bits.
        let limit = self.capacity.unwrap_or(u64::MAX / 2);
        if address / u64::from(u32::MAX) > limit {
            return Err(beyond(limit));
        }
        let placed = |address| {
            let (disk, sector) = self.layout.place(address).expect("a rule places every block");
            (Disk(disk.0 + server * self.disks), sector)
        };
        if address.checked_mul(self.block_sectors).is_none() {
            // An unlimited device has no geometry: any place is valid, as long as it is distinct.
            return match self.capacity {
                Some(limit) => Err(beyond(limit)),
                None => Ok((placed(address % (u64::MAX / self.block_sectors / 2)).0, 0)),
            };
        }
        let (disk, sector) = placed(address);
        if sector + self.block_sectors > limit {
            return Err(beyond(limit));
        }
        Ok((disk, sector + skip))
    }
}

/// Blocks that pass the head of `disk` during the rotational delay, rounded up.
fn gap_blocks(keys: &FfsKeys, block_bytes: u64, disk: &dyn Device) -> Result<u64, KeyError> {
    if keys.rotational_delay == Nanos::ZERO {
        return Ok(0);
    }
    let mechanics = disk.mechanics().ok_or_else(|| {
        let problem = "the devices do not rotate";
        KeyError::new("workload.placement.rotational_delay", problem, "\"0ms\", or a disk")
    })?;
    // newfs uses one number of sectors per track: the mean over the disk.
    let cylinders: u64 = mechanics.bands.iter().map(|band| u64::from(band.cylinders)).sum();
    let tracks: u64 =
        mechanics.bands.iter().map(|band| u64::from(band.cylinders) * u64::from(band.sectors_per_track)).sum();
    let turn = mechanics.revolution().0 as f64;
    let sectors = keys.rotational_delay.0 as f64 / turn * tracks as f64 / cylinders.max(1) as f64;
    let block_sectors = headstart_device::sectors_of(block_bytes).max(1) as f64;
    Ok((sectors / block_sectors).ceil() as u64)
}

/// Applies `of` to the files of each server, with its number.
fn each_server(spread: Option<Spread>, files: &[(u32, u64)], of: impl Fn(u32, &[(u32, u64)]) -> Bases) -> Vec<Bases> {
    let Some(spread) = spread else { return vec![of(0, files)] };
    let parts = |server| -> Vec<(u32, u64)> {
        files.iter().map(|(file, blocks)| (*file, spread.blocks_of(*file, server, *blocks))).collect()
    };
    (0..spread.servers).map(|server| of(server, &parts(server))).collect()
}

/// Files one after another, with `gap` blocks between them.
fn table_order(files: &[(u32, u64)], gap: u64) -> Bases {
    let mut next = 0u64;
    files
        .iter()
        .map(|(file, blocks)| {
            let base = next;
            next = next.saturating_add(*blocks).saturating_add(gap);
            (*file, base)
        })
        .collect()
}

/// Files at random starts within groups.
fn random_groups(files: &[(u32, u64)], seed: u64, server: u32) -> Bases {
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(seed, "groups", server.into()));
    let (mut group, mut filled) = (0u64, 0u64);
    files
        .iter()
        .map(|(file, blocks)| {
            if filled > 0 && blocks.saturating_add(filled) > GROUP_BLOCKS {
                // A file larger than a group occupies all groups that it reaches.
                group += filled.div_ceil(GROUP_BLOCKS).max(1);
                filled = 0;
            }
            filled = blocks.saturating_add(filled);
            (*file, (group * GROUP_BLOCKS) + rng.random_range(0..GROUP_BLOCKS))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_one_another_in_table_order() {
        let bases = table_order(&[(3, 10), (1, 5), (2, 1)], 0);
        assert_eq!(bases, Bases::from_iter([(3, 0), (1, 10), (2, 15)]));
        let apart = table_order(&[(3, 10), (1, 5), (2, 1)], 1);
        assert_eq!(apart, Bases::from_iter([(3, 0), (1, 11), (2, 17)]));
    }

    #[test]
    fn chunks_keep_their_blocks_together() {
        // Chunks of four: 5 and 6 lie in the second, 40 in the eleventh, 3 in the first; no other chunk uses space.
        let chunks = Chunks::new(4, [40, 5, 3, 6].into_iter().map(Ok)).expect("addresses");
        assert_eq!(chunks.order, [0, 1, 10]);
        let places: Vec<Option<u64>> = [0, 3, 4, 7, 8, 39, 40, 43, 44].map(|at| chunks.place(at)).to_vec();
        let expected = [Some(0), Some(3), Some(4), Some(7), None, None, Some(8), Some(11), None];
        assert_eq!(places, expected);
        let single = Chunks::new(1, [40, 5, 3, 6].into_iter().map(Ok)).expect("addresses");
        assert_eq!([3, 4, 5, 6, 7, 40].map(|at| single.place(at)), [Some(0), None, Some(1), Some(2), None, Some(3)]);
        let huge = Chunks::new(1 << 31, [u64::MAX].into_iter().map(Ok)).expect("an address");
        assert_eq!(huge.place(u64::MAX), Some((1 << 31) - 1));
    }

    #[test]
    fn random_starts_stay_within_their_groups() {
        let files: Vec<(u32, u64)> = (0..40).map(|file| (file, 1000)).collect();
        let bases = random_groups(&files, 7, 0);
        // Eight files of 1000 blocks fill a group of 8550.
        for (file, base) in &bases {
            assert_eq!(base / GROUP_BLOCKS, u64::from(file / 8), "file {file}");
        }
        assert_eq!(bases, random_groups(&files, 7, 0));
        assert_ne!(bases, random_groups(&files, 8, 0));
    }
}
