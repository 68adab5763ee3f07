//! File layout of a 4.4BSD Fast File System: cylinder groups, clusters, indirect blocks, fragments.
//!
//! Source: E. Shriver, C. Small and K. A. Smith, "Why does file system prefetching work?", USENIX 1999, section 2.1;
//! where it is silent, 4.4BSD-Lite, sys/ufs/ffs/ffs_alloc.c (`ffs_blkpref`, `ffs_dirpref`) and newfs. A directory and
//! the inodes of its files are placed in a cylinder group drawn uniformly among those with at least the average number
//! of free blocks; a file's direct blocks in its inode's group, from the first free place on, each cluster after the
//! previous one, separated by the sectors that pass during the rotational delay. An indirect block is placed in another
//! group, drawn likewise, and the blocks that it points to follow it there: the first of them begins a cluster. A file
//! without indirect blocks ends in a fragment, which shares its block with those of other files.
//!
//! Interpretations: the paper does not specify the group of an indirect block, except that its equations use "a random
//! cylinder group"; 4.4BSD takes the next group with at least the average, which in an empty file system would be the
//! file's own. An aged file system has a share of each group in use, in runs of random length: see `Group::age`.
//!
//! Metadata are blocks of a separate file, [`METADATA`], at their addresses. Cost: laying out a file scans each block
//! from the preferred one to the first place that fits; a look-up is logarithmic in the file's extents. Memory: 32
//! bytes per extent; a byte per block of each group that has files.

mod file;
mod group;
mod keys;

use std::collections::{BTreeMap, BTreeSet};

use headstart_types::{stream_seed, Bytes, KeyError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use file::FileMap;
use group::{Group, Header};
pub use keys::{FfsKeys, Opens};

/// The file whose blocks are inodes and indirect blocks: its block `at` is the block at address `at` of the volume.
/// File numbers are dense, so no trace reaches this one.
pub const METADATA: u32 = u32::MAX;

/// Number of draws of a group before the next suitable one is taken.
const DRAWS: u32 = 64;

/// Size of a block's address in an indirect block.
const ADDRESS_BYTES: u64 = 4;

/// Blocks of a cylinder group that hold no file data.
fn group_header(keys: &FfsKeys, block_bytes: u64) -> u64 {
    Header::new(keys.cylinder_group.0, keys.fragment.0, block_bytes).blocks()
}

/// The location of a block: the block of the volume, the sectors before it, and its size if it is not a whole block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    pub block: u64,
    /// Sectors of that block before this one begins.
    pub skip: u64,
    /// Sectors of a fragment; `None`: a whole block.
    pub sectors: Option<u32>,
}

/// A file to be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSize {
    pub file: u32,
    pub bytes: u64,
}

/// The inputs of the layout besides the keys.
#[derive(Debug, Clone, Copy)]
pub struct Volume {
    pub block_bytes: u64,
    /// Blocks of the devices; `None` if they have no limit.
    pub blocks: Option<u64>,
    /// Blocks that pass the head during the rotational delay.
    pub gap_blocks: u64,
}

#[derive(Debug)]
pub struct Ffs {
    files: BTreeMap<u32, FileMap>,
    /// Addresses of inodes and indirect blocks.
    metadata: BTreeSet<u64>,
    fragment_sectors: u64,
}

impl Ffs {
    /// Lays out `files` one after another.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn try_new(keys: &FfsKeys, volume: &Volume, files: &[FileSize], seed: u64) -> Result<Self, KeyError> {
        let mut laying = Laying::try_new(keys, volume, seed)?;
        let (mut maps, mut metadata) = (BTreeMap::new(), BTreeSet::new());
        let mut home = 0;
        for (number, file) in files.iter().enumerate() {
            if number % keys.directory_files as usize == 0 {
                home = laying.draw(None).ok_or_else(|| full(file.file))?;
            }
            let map = laying.lay(home, file.bytes).ok_or_else(|| full(file.file))?;
            metadata.extend(map.metadata());
            maps.insert(file.file, map);
        }
        Ok(Self { files: maps, metadata, fragment_sectors: keys.fragment.0 / headstart_device::SECTOR_BYTES })
    }

    /// The location of block `at` of `file`; `None` beyond its end.
    #[must_use]
    pub fn spot(&self, file: u32, at: u64) -> Option<Spot> {
        if file == METADATA {
            return self.metadata.contains(&at).then_some(Spot { block: at, skip: 0, sectors: None });
        }
        let map = self.files.get(&file)?;
        if let Some(tail) = map.tail.filter(|tail| tail.at == at) {
            let sectors = Some((tail.count * self.fragment_sectors) as u32);
            return Some(Spot { block: tail.block, skip: tail.first * self.fragment_sectors, sectors });
        }
        map.address(at).map(|block| Spot { block, skip: 0, sectors: None })
    }

    /// The block that holds the inode of `file`.
    #[must_use]
    pub fn inode(&self, file: u32) -> Option<u64> {
        self.files.get(&file).map(|map| map.inode)
    }

    /// The indirect blocks that lead to block `at` of `file`, topmost first; none for a direct block.
    pub fn indirect(&self, file: u32, at: u64) -> impl Iterator<Item = u64> + '_ {
        self.files.get(&file).into_iter().flat_map(move |map| map.indirect(at))
    }

    /// The indirect block that holds the address of block `at` of `file`.
    #[must_use]
    pub fn mapped_by(&self, file: u32, at: u64) -> Option<u64> {
        self.files.get(&file)?.leaf(at)
    }

    /// Number of whole, contiguous blocks of `file` from `at` on, at most `most`.
    #[must_use]
    pub fn contiguous(&self, file: u32, at: u64, most: u64) -> u64 {
        if file == METADATA {
            return most.min(1);
        }
        self.files.get(&file).map_or(0, |map| map.contiguous(at).min(most))
    }
}

fn full(file: u32) -> KeyError {
    let problem = format!("file {file} does not fit in the file system");
    KeyError::new("workload.placement", problem, "a larger device or size, a lower full, or fewer files")
}

/// A file system under construction.
struct Laying {
    groups: Vec<Option<Group>>,
    /// Blocks per group.
    group_blocks: u64,
    header: Header,
    /// Free blocks of an untouched group, which is only created when it is used.
    fresh: u64,
    /// Total number of free blocks.
    left: u64,
    full: f64,
    free_run: f64,
    direct: u64,
    pointers: u64,
    cluster: u64,
    gap: u64,
    block_bytes: u64,
    fragment_bytes: u64,
    rng: ChaCha8Rng,
    seed: u64,
}

impl Laying {
    fn try_new(keys: &FfsKeys, volume: &Volume, seed: u64) -> Result<Self, KeyError> {
        let block_bytes = volume.block_bytes;
        let of_device = volume.blocks.map(|blocks| blocks.saturating_mul(block_bytes));
        let bytes = match (keys.size.map(|size| size.0), of_device) {
            (Some(size), Some(most)) if size > most => {
                let problem = format!("{} is more than the devices hold", Bytes(size));
                return Err(KeyError::new("workload.placement.size", problem, format!("at most {}", Bytes(most))));
            }
            (Some(bytes), _) | (None, Some(bytes)) => bytes,
            (None, None) => {
                let problem = "is missing, and the devices have no limit";
                return Err(KeyError::new("workload.placement.size", problem, "a size such as \"4GiB\""));
            }
        };
        let groups = keys.groups(bytes, block_bytes);
        if groups == 0 {
            let allowed = format!("cylinder groups of at most {}", Bytes(bytes));
            return Err(KeyError::new("workload.placement.cylinder_group", "larger than the file system", allowed));
        }
        let header = Header::new(keys.cylinder_group.0, keys.fragment.0, block_bytes);
        let group_blocks = keys.group_blocks(block_bytes);
        let fresh = ((group_blocks - header.blocks()) as f64 * (1.0 - keys.full)).round() as u64;
        Ok(Self {
            groups: (0..groups).map(|_| None).collect(),
            group_blocks,
            header,
            fresh,
            left: fresh * groups,
            full: keys.full,
            free_run: keys.free_run.0 as f64 / block_bytes as f64,
            direct: u64::from(keys.direct_blocks),
            pointers: (block_bytes / ADDRESS_BYTES).max(1),
            cluster: keys.cluster.0 / block_bytes,
            gap: volume.gap_blocks,
            block_bytes,
            fragment_bytes: keys.fragment.0,
            rng: ChaCha8Rng::seed_from_u64(stream_seed(seed, "ffs", 0)),
            seed,
        })
    }

    fn free_in(&self, group: usize) -> u64 {
        self.groups[group].as_ref().map_or(self.fresh, Group::left)
    }

    /// Draws a group among those with at least the average number of free blocks, other than `except` if possible; the
    /// next one with free blocks if the draws fail.
    fn draw(&mut self, except: Option<usize>) -> Option<usize> {
        let count = self.groups.len();
        let average = self.left / count as u64;
        let will_do = |laying: &Self, group: usize, least: u64| {
            laying.free_in(group) >= least.max(1) && (count == 1 || Some(group) != except)
        };
        for _ in 0..DRAWS {
            let group = self.rng.random_range(0..count);
            if will_do(self, group, average) {
                return Some(group);
            }
        }
        let from = self.rng.random_range(0..count);
        let after = |least| (0..count).map(|step| (from + step) % count).find(|group| will_do(self, *group, least));
        after(average).or_else(|| after(1)).or_else(|| (0..count).find(|group| self.free_in(*group) > 0))
    }

    /// The group, created on first use.
    fn group(&mut self, number: usize) -> &mut Group {
        if self.groups[number].is_none() {
            let mut group = Group::empty(self.group_blocks, self.header);
            let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(self.seed, "ffs-group", number as u64));
            group.age(self.full, self.free_run, &mut rng);
            self.left = self.left - self.fresh + group.left();
            self.groups[number] = Some(group);
        }
        self.groups[number].as_mut().expect("it has just been made")
    }

    /// Applies `take` to a group and the address of its first block, and counts what it allocates.
    fn counted<T>(&mut self, number: usize, take: impl FnOnce(&mut Group) -> T) -> T {
        let before = self.group(number).left();
        let taken = take(self.group(number));
        self.left -= before - self.group(number).left();
        taken
    }

    /// Allocates an inode in `home` or the next group that has one: its group and address.
    fn inode(&mut self, home: usize) -> Option<(usize, u64)> {
        let count = self.groups.len();
        (0..count).map(|step| (home + step) % count).find_map(|group| {
            let block = self.group(group).inode()?;
            Some((group, group as u64 * self.group_blocks + block))
        })
    }

    /// Allocates up to `want` contiguous blocks in `place`'s group, or the next one with free blocks.
    fn take(&mut self, place: &mut Continuation, want: u64) -> Option<(u64, u64)> {
        let count = self.groups.len();
        for _ in 0..count {
            let preferred = place.preferred;
            if let Some((at, run)) = self.counted(place.group, |group| group.take(preferred, want)) {
                place.preferred = at + run;
                return Some((place.group as u64 * self.group_blocks + at, run));
            }
            *place = Continuation { group: (place.group + 1) % count, preferred: 0 };
        }
        None
    }

    /// Lays out a file of `bytes` whose directory is in group `home`.
    fn lay(&mut self, home: usize, bytes: u64) -> Option<FileMap> {
        let (group, inode) = self.inode(home)?;
        let last_fragments = (bytes % self.block_bytes).div_ceil(self.fragment_bytes);
        let per_block = self.block_bytes / self.fragment_bytes;
        let blocks = bytes.div_ceil(self.block_bytes);
        // Only files without indirect blocks end in a fragment (4.4BSD; McKusick and others 1984).
        let has_tail = (1..per_block).contains(&last_fragments) && blocks <= self.direct;
        let whole = blocks - u64::from(has_tail);
        let mut map = FileMap::new(inode, self.direct, self.pointers);
        let mut place = Continuation { group, preferred: 0 };
        let (mut at, mut in_cluster) = (0, 0);
        while at < whole {
            if map.needs_leaf(at) {
                self.switch(&mut place, &mut map, at)?;
                in_cluster = 0;
            }
            let want = (self.cluster - in_cluster).min(map.until_next_leaf(at)).min(whole - at);
            let (address, run) = self.take(&mut place, want)?;
            map.push(at, address, run);
            at += run;
            in_cluster += run;
            if in_cluster == self.cluster {
                place.preferred += self.gap;
                in_cluster = 0;
            }
        }
        if has_tail {
            let preferred = place.preferred;
            let taken = |group: &mut Group| group.take_fragments(preferred, last_fragments, per_block);
            let count = self.groups.len();
            let (number, (block, first)) = (0..count)
                .map(|step| (place.group + step) % count)
                .find_map(|number| self.counted(number, taken).map(|taken| (number, taken)))?;
            map.end_in(whole, number as u64 * self.group_blocks + block, (first, last_fragments));
        }
        Some(map)
    }

    /// Switches to another group for the indirect blocks that block `at` is the first to need.
    fn switch(&mut self, place: &mut Continuation, map: &mut FileMap, at: u64) -> Option<()> {
        let group = self.draw(Some(place.group))?;
        *place = Continuation { group, preferred: 0 };
        for _ in 0..map.new_maps(at) {
            let (address, _) = self.take(place, 1)?;
            map.push_map(address);
        }
        Some(())
    }
}

/// Where a file continues.
#[derive(Debug, Clone, Copy)]
struct Continuation {
    group: usize,
    /// Block of the group.
    preferred: u64,
}

#[cfg(test)]
mod tests;
