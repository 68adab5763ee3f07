//! Block management of a solid-state drive: the location of data, and garbage collection.
//!
//! Flash is written page by page and erased block by block. Data is therefore written to a log, regardless of its
//! address, and a table gives the current location of each *unit*. A *superblock*, `block_pages` pages of each channel,
//! is erased at once. The drive has more flash than its capacity, by `over_provisioning`. When that is used up, the
//! superblock with the fewest valid units is collected (*greedy*): its valid units are read and written to the log
//! again, interleaved with the host's writes: if v of its N units are valid, v are moved while the host writes N - v.
//! Then it is erased. Each unit that the host writes thus costs N / (N - v) writes, the *write amplification*.
//!
//! Under uniformly random writes, v is derived by Xiang and Kurkoski (An improved analytical expression for write
//! amplification in NAND flash, 2011): with over-provisioning r, N / (N - v) = (1 + r) / (1 + r + W(-(1 + r) e^-(1 +
//! r))).
//!
//! Not modelled: separate logs for hot data, wear levelling, trimming, the reads and writes of the table itself.
//!
//! Cost: a step per unit written and per unit moved; a scan of all superblocks for each choice. Memory: 5 bytes per
//! unit of each 256 KiB that was written to (with units of 4 KiB), and 4 per unit of each superblock that was written.

use headstart_types::KeyError;
use rustc_hash::FxHashMap;

use super::flash_keys::FlashKeys;

/// Units whose part of the table is allocated together.
const CHUNK: u32 = 1 << 6;
/// At its initial location, or not written yet.
const UNMOVED: u32 = u32::MAX;
/// Erased superblocks kept in reserve: one to be written next, and one for the units moved in the meantime.
const RESERVE: usize = 2;
/// Minimum number of superblocks in excess of the capacity: the open one, the reserve, and one that can be collected.
const SPARE_MIN: u64 = RESERVE as u64 + 2;
/// Maximum number of superblocks: each choice scans all of them.
const SUPERBLOCKS_MAX: u64 = 1 << 20;

/// Channel operations caused by a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A page is read on this channel.
    Read(usize),
    /// A page is programmed on this channel.
    Program(usize),
    /// Every channel erases a block.
    Erase,
}

/// The superblock that is being collected.
#[derive(Debug, Clone)]
struct Victim {
    superblock: u32,
    /// Valid units when it was chosen; units written by the host and units moved since.
    valid: u64,
    written: u64,
    moved: u64,
    /// Its next slot to inspect, and the page that was read last.
    cursor: u32,
    page: u32,
}

/// The location of all units. A *slot* is the space of one unit: slots of a page are consecutive, pages lie on the
/// channels in turn.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    channels: u32,
    page_units: u32,
    superblock_units: u32,
    /// Units of the drive's capacity.
    count: u32,
    filled: bool,
    /// The slot of each unit, in chunks that are created when one of their units is written; [`UNMOVED`]: as initially
    /// filled.
    table: FxHashMap<u32, Box<[u32; CHUNK as usize]>>,
    /// For each superblock, the unit in each slot; `None`: as initially filled, with slot i holding unit i.
    units: Vec<Option<Box<[u32]>>>,
    /// For each superblock, its number of valid units; `None` while it is erased.
    valid: Vec<Option<u32>>,
    erased: Vec<u32>,
    /// The slot that is written next.
    head: u32,
    victim: Option<Victim>,
    work: Vec<Work>,
}

impl Blocks {
    /// Block management with `keys`; `None` if it is off.
    ///
    /// # Errors
    /// If the flash has too few superblocks or too many.
    pub fn try_new(keys: &FlashKeys) -> Result<Option<Self>, KeyError> {
        if keys.over_provisioning == 0.0 {
            return Ok(None);
        }
        let wrong = |key: &str, problem: String, allowed: &str| Err(KeyError::new(key, problem, allowed));
        let units = keys.capacity.0.div_ceil(keys.mapping_size.0);
        let page_units = keys.page_size.0 / keys.mapping_size.0;
        let superblock_units = keys.channels * keys.block_pages * page_units;
        let flash_units = (units as f64 * (1.0 + keys.over_provisioning)) as u64;
        if flash_units >= u64::from(UNMOVED) || superblock_units > flash_units {
            let problem = format!("{flash_units} units in superblocks of {superblock_units}");
            return wrong("mapping_size", problem, "units for fewer than 2^32 and for several superblocks");
        }
        let superblocks = flash_units / superblock_units;
        if superblocks > SUPERBLOCKS_MAX {
            let problem = format!("{superblocks} superblocks of channels x block_pages pages are too many");
            return wrong("block_pages", problem, "a number for at most 1048576 superblocks");
        }
        let taken = units.div_ceil(superblock_units);
        if superblocks < taken + SPARE_MIN {
            let size = superblock_units * keys.mapping_size.0 / 1_000_000;
            let spare = superblocks.saturating_sub(taken);
            let problem =
                format!("{spare} superblocks of {size} MB (channels x block_pages pages) beyond the capacity");
            return wrong("over_provisioning", problem, "a share, a capacity or smaller superblocks for at least 4");
        }
        let valid = |at: u64| {
            let first = at * superblock_units;
            (keys.filled && first < units).then(|| superblock_units.min(units - first) as u32)
        };
        let valid: Vec<Option<u32>> = (0..superblocks).map(valid).collect();
        // Superblocks are taken from the end.
        let erased = (0..superblocks as u32).rev().filter(|at| valid[*at as usize].is_none()).collect();
        let mut blocks = Self {
            channels: keys.channels as u32,
            page_units: page_units as u32,
            superblock_units: superblock_units as u32,
            count: units as u32,
            filled: keys.filled,
            table: FxHashMap::default(),
            units: vec![None; superblocks as usize],
            valid,
            erased,
            head: 0,
            victim: None,
            work: Vec::new(),
        };
        blocks.open();
        Ok(Some(blocks))
    }

    /// The page of flash that holds a unit. A unit that was never written has the location it would have on a full
    /// drive.
    pub fn page_of(&self, unit: u64) -> u32 {
        self.slot_of(unit as u32).unwrap_or(unit as u32) / self.page_units
    }

    /// The channel of a page of flash.
    pub fn channel_of(&self, page: u32) -> usize {
        (page % self.channels) as usize
    }

    fn slot_of(&self, unit: u32) -> Option<u32> {
        let chunk = self.table.get(&(unit / CHUNK));
        match chunk.map_or(UNMOVED, |chunk| chunk[(unit % CHUNK) as usize]) {
            UNMOVED => self.filled.then_some(unit),
            slot => Some(slot),
        }
    }

    fn superblock_of(&self, slot: u32) -> usize {
        (slot / self.superblock_units) as usize
    }

    /// Writes units of the host to the log. Returns the resulting channel operations, including garbage collection.
    pub fn write(&mut self, units: &[u64]) -> &[Work] {
        self.work.clear();
        for unit in units {
            self.append(*unit as u32);
            self.collect();
        }
        &self.work
    }

    fn append(&mut self, unit: u32) {
        if let Some(before) = self.slot_of(unit) {
            let superblock = self.superblock_of(before);
            *self.valid[superblock].as_mut().expect("what lies in a superblock is there") -= 1;
        }
        let slot = self.head;
        let chunk = self.table.entry(unit / CHUNK).or_insert_with(|| Box::new([UNMOVED; CHUNK as usize]));
        chunk[(unit % CHUNK) as usize] = slot;
        let superblock = self.superblock_of(slot);
        let units = self.units[superblock].as_mut().expect("an open superblock has its units");
        units[(slot % self.superblock_units) as usize] = unit;
        *self.valid[superblock].as_mut().expect("it is open") += 1;
        self.head += 1;
        if self.head.is_multiple_of(self.page_units) {
            self.work.push(Work::Program(self.channel_of(slot / self.page_units)));
        }
        if self.head.is_multiple_of(self.superblock_units) {
            self.open();
        }
    }

    /// Opens an erased superblock for writing.
    fn open(&mut self) {
        let superblock = self.erased.pop().expect("collection keeps a reserve");
        self.head = superblock * self.superblock_units;
        self.valid[superblock as usize] = Some(0);
        let units = self.units[superblock as usize].take();
        self.units[superblock as usize] =
            Some(units.unwrap_or_else(|| vec![UNMOVED; self.superblock_units as usize].into()));
    }

    /// Moves as many units as are due for what the host has written, if the reserve is in use.
    fn collect(&mut self) {
        if self.victim.is_none() && self.erased.len() < RESERVE {
            self.victim = Some(self.choose());
        }
        let Some(mut victim) = self.victim.take() else { return };
        victim.written += 1;
        let freed = u64::from(self.superblock_units) - victim.valid;
        let end = (victim.superblock + 1) * self.superblock_units;
        while victim.cursor < end && victim.moved * freed <= victim.written * victim.valid {
            let slot = victim.cursor;
            victim.cursor += 1;
            let within = (slot % self.superblock_units) as usize;
            let unit = self.units[victim.superblock as usize].as_ref().map_or(slot, |units| units[within]);
            // The last superblock of a full drive may have slots that are never filled.
            if unit >= self.count || self.slot_of(unit) != Some(slot) {
                continue;
            }
            let page = slot / self.page_units;
            if std::mem::replace(&mut victim.page, page) != page {
                self.work.push(Work::Read(self.channel_of(page)));
            }
            victim.moved += 1;
            self.append(unit);
        }
        if victim.cursor < end {
            self.victim = Some(victim);
            return;
        }
        self.valid[victim.superblock as usize] = None;
        self.erased.insert(0, victim.superblock);
        self.work.push(Work::Erase);
    }

    /// The superblock with the fewest valid units among those that are completely written.
    fn choose(&self) -> Victim {
        let open = self.superblock_of(self.head);
        let written = self.valid.iter().enumerate().filter(|(at, _)| *at != open);
        let (superblock, valid) = written
            .filter_map(|(at, valid)| valid.map(|valid| (at as u32, valid)))
            .min_by_key(|(_, valid)| *valid)
            .expect("data fills several");
        let cursor = superblock * self.superblock_units;
        Victim { superblock, valid: valid.into(), written: 0, moved: 0, cursor, page: UNMOVED }
    }
}

#[cfg(test)]
mod tests {
    use headstart_types::read_keys;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Two channels, two units per page, two pages per block: superblocks of eight units.
    fn small(more: &str) -> Result<Option<Blocks>, KeyError> {
        let mut keys: toml::Table = include_str!("../../profiles/flash/nvme.toml").parse().expect("shipped");
        for text in ["channels = 2\npage_size = '8KiB'\nblock_pages = 2\nmapping_size = '4KiB'", more] {
            keys.extend(text.parse::<toml::Table>().expect("it is TOML"));
        }
        Blocks::try_new(&read_keys(keys)?)
    }

    /// Units written on behalf of these host units, including moved ones: those of the programmed pages.
    fn written(blocks: &mut Blocks, units: impl Iterator<Item = u64>) -> usize {
        let programs = |work: &[Work]| work.iter().filter(|each| matches!(each, Work::Program(_))).count();
        let pages: usize = units.map(|unit| programs(blocks.write(&[unit]))).sum();
        pages * blocks.page_units as usize
    }

    #[test]
    fn by_hand() {
        // 16 units in two superblocks, and four more.
        let mut blocks = small("capacity = '64KiB'\nover_provisioning = 2.0").unwrap().unwrap();
        assert_eq!((blocks.page_of(0), blocks.page_of(5), blocks.channel_of(5)), (0, 2, 1));
        // Units 0 and 9 share a page of the third superblock, on the first channel.
        assert_eq!(blocks.write(&[0]), []);
        assert_eq!(blocks.write(&[9]), [Work::Program(0)]);
        assert_eq!((blocks.page_of(0), blocks.page_of(9), blocks.page_of(1)), (8, 8, 0));
        // Its end and the fourth; when the fifth is opened, one erased superblock is left.
        assert_eq!(blocks.write(&[0, 1, 2, 3, 4, 5]).len(), 3);
        // No unit of the first superblock is valid then, so nothing is moved.
        assert_eq!(blocks.write(&[0, 1, 2, 3, 4, 5, 6, 7])[3..], [Work::Program(1), Work::Erase]);
        assert_eq!(blocks.erased, [0, 5]);
        assert_eq!(blocks.write(&[8, 10, 11, 12, 13, 14, 15]).len(), 3);
        assert_eq!(blocks.write(&[8]), [Work::Program(1), Work::Erase]);
    }

    #[test]
    fn too_little_spare_flash_is_refused() {
        assert!(small("").unwrap().is_none(), "blocks are not managed unless asked");
        let problem = small("capacity = '1MiB'\nover_provisioning = 0.05").unwrap_err().to_string();
        assert!(problem.contains("over_provisioning") && problem.contains("at least 4"), "{problem}");
    }

    #[test]
    fn a_unit_lies_where_it_was_written_last_and_nothing_is_lost() {
        for filled in ["true", "false"] {
            let mut blocks =
                small(&format!("capacity = '1020KiB'\nover_provisioning = 0.3\nfilled = {filled}")).unwrap().unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(1);
            for _ in 0..20_000 {
                blocks.write(&[u64::from(random.next_u32() % 255)]);
                let valid: u32 = blocks.valid.iter().flatten().sum();
                let held = (0..255).filter(|unit| blocks.slot_of(*unit).is_some()).count();
                assert_eq!(valid as usize, held);
            }
            let mut slots: Vec<_> = (0..255).filter_map(|unit| blocks.slot_of(unit)).collect();
            slots.sort_unstable();
            slots.dedup();
            assert_eq!(slots.len(), 255, "no two in one place");
        }
    }

    /// The published expression, with W by bisection: x e^-x = (1 + r) e^-(1 + r) has its other root in 0..1.
    fn expected(over_provisioning: f64) -> f64 {
        let whole = 1.0 + over_provisioning;
        let (mut low, mut high) = (0.0f64, 1.0f64);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if middle * (-middle).exp() < whole * (-whole).exp() {
                low = middle;
            } else {
                high = middle;
            }
        }
        whole / (whole - low)
    }

    #[test]
    fn write_amplification_is_the_published_one() {
        assert!((expected(0.3) - 2.36).abs() < 0.01, "as the paper's abstract has it");
        for over_provisioning in [0.15, 0.3, 0.6, 1.0] {
            // 1024 superblocks of 64 units of data, as in the paper.
            let keys = format!("capacity = '256MiB'\nblock_pages = 16\nover_provisioning = {over_provisioning}");
            let mut blocks = small(&keys).unwrap().unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(2);
            let mut units = std::iter::repeat_with(|| u64::from(random.next_u32() % 65_536));
            written(&mut blocks, units.by_ref().take(400_000));
            let measured = written(&mut blocks, units.take(200_000)) as f64 / 200_000.0;
            let expected = expected(over_provisioning);
            println!("{over_provisioning}: {measured:.3}, expected {expected:.3}");
            assert!((measured / expected - 1.0).abs() < 0.05, "{over_provisioning}: {measured:.3}, not {expected:.3}");
        }
    }

    #[test]
    fn data_written_in_order_needs_no_moves() {
        let mut blocks = small("capacity = '1MiB'\nover_provisioning = 0.3").unwrap().unwrap();
        assert_eq!(written(&mut blocks, (0..256).cycle().take(256 * 20)), 256 * 20);
    }
}
