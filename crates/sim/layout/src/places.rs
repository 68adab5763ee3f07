//! The universe of blocks as seen by levels below the workload: shared, and growing when a read-ahead names a block.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, KeyError};
use prefetch_index::prefetch_index;

use super::ffs::{Ffs, METADATA};
use super::numbering::{Fresh, Universe};
use super::placing::Placing;

/// Blocks, their numbers, and where they lie.
#[derive(Debug)]
pub struct Places {
    universe: RefCell<Universe>,
    /// `None` for inline references, whose blocks have labels and no neighbours.
    placing: Option<Arc<Placing>>,
    /// Blocks of each file, if files are distinguished.
    sizes: BTreeMap<u32, u64>,
}

impl Places {
    /// Blocks placed by `placing`; `sizes` gives the blocks of each file.
    #[must_use]
    pub fn new(universe: Universe, placing: Option<Placing>, sizes: BTreeMap<u32, u64>) -> Self {
        Self { universe: RefCell::new(universe), placing: placing.map(Arc::new), sizes }
    }

    /// The blocks known so far.
    ///
    /// # Panics
    /// While blocks are being added, which is a bug.
    #[must_use]
    pub fn universe(&self) -> Ref<'_, Universe> {
        self.universe.borrow()
    }

    /// Whether any block is partial.
    #[inline]
    #[must_use]
    pub fn has_fragments(&self) -> bool {
        self.universe.borrow().has_fragments()
    }

    /// Keeps the file and position of each block from now on: 16 bytes per block.
    pub fn keep_places(&self) {
        self.universe.borrow_mut().keep_places();
    }

    /// Number of independent disks over which a long run of blocks is striped.
    #[must_use]
    pub fn disks_abreast(&self) -> u64 {
        self.placing.as_ref().map_or(1, |placing| placing.disks_abreast())
    }

    /// The file system that lays out the blocks.
    #[must_use]
    pub fn ffs(&self) -> Option<&Ffs> {
        self.placing.as_ref()?.ffs()
    }

    /// Disk and first sector of the inode of `file`; `None` without a file system.
    ///
    /// # Errors
    /// If its place is beyond the device.
    pub fn inode(&self, file: u32) -> Result<Option<(Disk, u64)>, KeyError> {
        let (Some(placing), Some(block)) = (&self.placing, self.ffs().and_then(|ffs| ffs.inode(file))) else {
            return Ok(None);
        };
        placing.place(METADATA, block).map(Some)
    }

    /// Adds blocks by the placing rule.
    ///
    /// # Errors
    /// The errors of `add`.
    ///
    /// # Panics
    /// For inline references, which have no rule.
    pub fn number<T, E>(&self, add: impl FnOnce(&mut Universe, &Placing) -> Result<T, E>) -> Result<T, E> {
        add(&mut self.universe.borrow_mut(), self.placing.as_deref().expect("records are placed by a rule"))
    }

    /// Moves the numbers of all blocks so far to a new instance; the places stay here, and this one no longer numbers
    /// blocks.
    #[must_use]
    pub fn numbers_apart(&self) -> Self {
        let universe = RefCell::new(self.universe.borrow_mut().numbers_apart());
        Self { universe, placing: self.placing.clone(), sizes: BTreeMap::new() }
    }

    /// Places of the blocks numbered since the last call.
    #[must_use]
    pub fn take_fresh(&self) -> Fresh {
        self.universe.borrow_mut().take_fresh()
    }

    /// Adds the places of blocks that others have numbered.
    pub fn add(&self, fresh: &Fresh) {
        self.universe.borrow_mut().add(fresh);
    }
}

impl BlockMap for Places {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        if let Some(block) = self.known(file, index) {
            return Some(block);
        }
        let placing = self.placing.as_ref()?;
        let within = self.sizes.get(&file).is_none_or(|blocks| index < *blocks);
        // A place beyond the device is treated like the end of a file.
        within.then(|| self.universe.borrow_mut().name(file, index, placing))?
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.universe.borrow().find(file, index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        self.universe.borrow().place_of(block)
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.sizes.get(&file).copied().or_else(|| self.placing.as_ref()?.volume_blocks())
    }

    #[inline]
    fn sector(&self, block: Block) -> Option<u64> {
        self.universe.borrow().sector_of.get(block.index()).copied()
    }

    #[inline]
    fn prefetch(&self, block: Block) {
        prefetch_index(&self.universe.borrow().sector_of, block.index());
    }

    fn adjoins(&self, block: Block, next: Block) -> bool {
        let universe = self.universe.borrow();
        let Some(sectors) =
            universe.short(block).map(u64::from).or(self.placing.as_ref().map(|placing| placing.block_sectors()))
        else {
            return false;
        };
        let ends = universe.sector_of[block.index()] + sectors;
        universe.disk_of[block.index()] == universe.disk_of[next.index()] && universe.sector_of[next.index()] == ends
    }

    fn disk(&self, block: Block) -> Disk {
        self.universe.borrow().disk_of[block.index()]
    }

    fn blocks(&self) -> usize {
        self.universe.borrow().disk_of.len()
    }

    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        match self.ffs() {
            Some(ffs) => ffs.contiguous(file, index, most),
            None => self.file_blocks(file).map_or(most, |blocks| blocks.saturating_sub(index).min(most)),
        }
    }

    fn mapped_by(&self, file: u32, index: u64) -> Option<(u32, u64)> {
        self.ffs()?.mapped_by(file, index).map(|address| (METADATA, address))
    }
}
