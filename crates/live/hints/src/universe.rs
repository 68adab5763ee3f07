//! The blocks of a command: each recorded page once, numbered in the order in which it is first needed.
//!
//! The position of a page in the reference string is its number: the string is 0, 1, 2, ... Memory: 32 bytes a page.

use std::collections::HashMap;

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk};
use rustc_hash::FxBuildHasher;

use super::list::{in_stretches, HintList, PAGE_BYTES};
use headstart_host::intervals::Intervals;

/// Maximum number of pages, 16 GiB: later pages of a recording are left to demand fetches.
const PAGES_MAX: usize = 4 << 20;
/// Pages read in order after which the rest of the stretch is left to the kernel: 2 MiB, some windows of its
/// read-ahead. A guess.
const STRETCH_PAGES: u64 = 512;

/// The space of a machine whose first blocks are the hinted pages, in the order of need.
pub trait HintedSpace: BlockMap + Send {
    /// The number of hinted pages.
    fn hinted(&self) -> usize;

    /// The file with this device and inode.
    fn file(&self, identity: (u64, u64)) -> Option<u32>;

    /// The last page of a file, with its recorded size.
    fn last_page(&self, file: u32) -> u64;

    /// Whether a block is metadata, to which references are not visible.
    fn is_metadata(&self, _block: Block) -> bool {
        false
    }

    /// Whether this page is hinted, and left to the kernel's read-ahead.
    fn is_left_to_kernel(&self, _file: u32, _page: u64) -> bool {
        false
    }

    /// The block of a hinted page.
    fn hinted_block(&self, file: u32, page: u64) -> Option<Block> {
        self.known(file, page).filter(|block| block.index() < self.hinted())
    }
}

/// The pages, as blocks of the machine.
#[derive(Debug)]
pub struct Universe {
    /// By block: its file, and its page in the file.
    places: Vec<(u32, u64)>,
    /// By file: its disk.
    disk_of_file: Vec<Disk>,
    blocks: hashbrown::HashMap<(u32, u64), Block, FxBuildHasher>,
    files: HashMap<(u64, u64), u32>,
    /// By file: its last page.
    last_pages: Vec<u64>,
    /// By file: whether its pages are metadata.
    is_device: Vec<bool>,
    /// By file: the pages that are left to the kernel's read-ahead.
    left_to_kernel: Vec<Intervals<()>>,
    /// Pages of the recording beyond the maximum number of blocks.
    pub left_out: u64,
}

impl Universe {
    /// The pages of `list`, whose files lie on the disks of `disk_of_file`. On `in_order_left` disks, long sequential
    /// stretches are left to the kernel: its read-ahead keeps a disk without an arm as busy, and costs less.
    #[must_use]
    pub fn new(list: &HintList, disk_of_file: Vec<Disk>, in_order_left: &[bool]) -> Self {
        let files = (0u32..).zip(&list.files).map(|(at, file)| (file.identity, at)).collect();
        let last_page = |size: Option<u64>| size.map_or(u64::MAX, |size| size.saturating_sub(1) / PAGE_BYTES);
        let last_pages = list.files.iter().map(|file| last_page(file.size)).collect();
        let is_device = list.files.iter().map(|file| file.is_device).collect();
        let (places, blocks) = (Vec::new(), hashbrown::HashMap::default());
        let left_to_kernel = vec![Intervals::default(); list.files.len()];
        let mut universe =
            Self { places, disk_of_file, blocks, files, last_pages, is_device, left_to_kernel, left_out: 0 };
        // A small recording may name many pages many times: those already named are skipped as a whole.
        let mut named = vec![Intervals::default(); list.files.len()];
        for (range, before) in in_stretches(&list.ranges, |range| range.file as usize) {
            let (file, pages) = (range.file as usize, range.first..range.first + u64::from(range.count));
            let is_left = || in_order_left.get(universe.disk_of_file[file].index()).is_some_and(|is_left| *is_left);
            if before >= STRETCH_PAGES && is_left() {
                universe.left_to_kernel[file].insert(pages, ());
                continue;
            }
            let new = if range.count > 1 { named[file].beside(pages.clone()) } else { vec![pages.clone()] };
            for pages in new {
                for page in pages.clone() {
                    if universe.places.len() == PAGES_MAX {
                        universe.left_out += pages.end - page;
                        break;
                    }
                    universe.add(range.file, page);
                }
            }
            if range.count > 1 {
                // As one range, whatever was within it.
                let named = &mut named[file];
                named.remove(pages.clone());
                named.insert(pages, ());
            }
        }
        universe
    }

    /// The block of this page, which gets a number if it has none.
    pub fn add(&mut self, file: u32, page: u64) -> Block {
        let next = Block(self.places.len() as u32);
        let block = *self.blocks.entry((file, page)).or_insert(next);
        if block == next {
            self.places.push((file, page));
        }
        block
    }

    /// By block: its disk.
    pub fn disks(&self) -> impl Iterator<Item = Disk> + '_ {
        self.places.iter().map(|(file, _)| self.disk_of_file[*file as usize])
    }
}

impl HintedSpace for Universe {
    fn hinted(&self) -> usize {
        self.places.len()
    }

    fn file(&self, identity: (u64, u64)) -> Option<u32> {
        self.files.get(&identity).copied()
    }

    fn last_page(&self, file: u32) -> u64 {
        self.last_pages[file as usize]
    }

    fn is_metadata(&self, block: Block) -> bool {
        self.is_device[self.places[block.index()].0 as usize]
    }

    fn is_left_to_kernel(&self, file: u32, page: u64) -> bool {
        self.left_to_kernel[file as usize].within(page..page + 1).next().is_some()
    }
}

impl BlockMap for Universe {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        self.known(file, index)
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.blocks.get(&(file, index)).copied()
    }

    fn place(&self, block: Block) -> (u32, u64) {
        self.places[block.index()]
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        None
    }

    fn disk(&self, block: Block) -> Disk {
        self.disk_of_file[self.places[block.index()].0 as usize]
    }

    fn blocks(&self) -> usize {
        self.places.len()
    }
}
