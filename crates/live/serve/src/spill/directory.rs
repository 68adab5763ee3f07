//! Tracks which pages are in a spill file, and where: a level of the engine, and the slots of its blocks.

use std::ops::Range;

use headstart_assemble::served;
use headstart_engine::{Ask, Backend, IoRequest, Level};
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos, NEVER};
use rustc_hash::{FxHashMap, FxHashSet};
use toml::Table;

use super::format::Entry;
use super::SpillTotals;
use crate::pages::Pages;
use crate::work::Place;

/// Ignores the level's orders, since pages are admitted without a fetch.
struct Nowhere;

impl Backend for Nowhere {
    fn issue(&mut self, _now: Nanos, _order: IoRequest<'_>) -> u32 {
        0
    }
}

pub(super) struct Directory {
    pub(super) level: Level,
    pub(super) pages: Pages,
    /// Slot of each block that is resident or being stored.
    pub(super) slot_of: FxHashMap<Block, u32>,
    free: Vec<u32>,
    /// The table of the file, by slot.
    pub(super) table: Vec<Option<Entry>>,
    /// Free slots whose entries could not be overwritten: the pages they name must not change until they are.
    pub(super) stale: FxHashSet<u32>,
    /// Blocks being stored, and those of them that have changed since.
    pub(super) storing: FxHashSet<Block>,
    pub(super) cancelled: FxHashSet<Block>,
    evicted: Vec<Block>,
    /// The next server may use the content.
    pub(super) is_kept: bool,
    pub(super) totals: SpillTotals,
    /// Logical time of the level, whose policy needs no clock.
    now: Nanos,
}

impl Directory {
    pub(super) fn new(table: Vec<Option<Entry>>, page_count: u64, page_bytes: u64) -> Self {
        let slots = table.len() as u32;
        let keys = Table::from_iter(
            [("blocks", i64::from(slots).into()), ("policy", "demand".into())]
                .map(|(key, value): (&str, toml::Value)| (key.to_owned(), value)),
        );
        let mut level = served(keys, page_bytes).expect("these keys are right").tier.level;
        level.note_evictions();
        let mut all = Self {
            level,
            pages: Pages::new(page_count, slots),
            slot_of: FxHashMap::default(),
            free: Vec::new(),
            table,
            stale: FxHashSet::default(),
            storing: FxHashSet::default(),
            cancelled: FxHashSet::default(),
            evicted: Vec::new(),
            is_kept: true,
            totals: SpillTotals::default(),
            now: Nanos::ZERO,
        };
        // The most recently added slot is used first.
        for slot in (0..slots).rev() {
            let page = all.table[slot as usize].map(|entry| entry.page);
            let is_there = page.is_some_and(|page| all.admit(page, slot));
            if !is_there {
                all.table[slot as usize] = None;
                all.free.push(slot);
            }
        }
        all.totals.found_pages = all.slot_of.len() as u64;
        all
    }

    fn tick(&mut self) -> Nanos {
        self.now = Nanos(self.now.0 + 1);
        self.now
    }

    /// Admits `page` from a slot of the file; false if another slot holds it or it does not exist.
    fn admit(&mut self, page: u64, slot: u32) -> bool {
        let Some(block) = self.pages.block(0, page).filter(|block| !self.slot_of.contains_key(block)) else {
            return false;
        };
        self.put(block);
        self.slot_of.insert(block, slot);
        self.arrived(block);
        true
    }

    fn put(&mut self, block: Block) {
        let now = self.tick();
        self.level.put(now, block, &self.pages, &mut Nowhere);
    }

    pub(super) fn arrived(&mut self, block: Block) {
        let now = self.tick();
        self.level.arrived(now, block, None, &self.pages);
    }

    pub(super) fn begin(&mut self, page: u64) -> Option<Place> {
        let block = self.pages.block(0, page)?;
        if !self.level.is_unknown(block) {
            return None;
        }
        self.put(block);
        let mut evicted = std::mem::take(&mut self.evicted);
        self.level.take_evicted(&mut evicted);
        for block in evicted.drain(..) {
            self.free.extend(self.slot_of.remove(&block));
        }
        self.evicted = evicted;
        let slot = self.free.pop().expect("the level has as many frames as there are slots");
        self.slot_of.insert(block, slot);
        self.storing.insert(block);
        let Self { pages, level, .. } = self;
        pages.forget(|block| level.is_unknown(block));
        Some(Place { page, block, slot })
    }

    /// Block and slot of a page that can be read.
    pub(super) fn resident(&self, page: u64) -> Option<(Block, u32)> {
        let block = self.pages.known(0, page).filter(|block| self.level.state(*block).is_resident())?;
        Some((block, self.slot_of.get(&block).copied()?))
    }

    /// Like [`Directory::resident`], counted as a request, with the page's checksum.
    pub(super) fn look_up(&mut self, page: u64) -> Option<(Block, u32, u128)> {
        let Some((block, slot)) = self.resident(page) else {
            self.totals.missed_pages += 1;
            return None;
        };
        let now = self.tick();
        let asked = Asked { file: 0, first: page, count: 1, client: 0, ends_inside: false };
        let ask =
            Ask { id: 0, asked, blocks: &[block], write: false, quiet: false, position: NEVER, compute: Nanos::ZERO };
        self.level.request(now, &ask, &self.pages, &mut Nowhere);
        let entry = self.table[slot as usize].expect("a slot in use has its entry");
        Some((block, slot, entry.sum))
    }

    /// Cancels those of `pages` that are being stored; returns the table entries that name others of them, with their
    /// slots.
    pub(super) fn cancel(&mut self, pages: Range<u64>) -> Vec<(u64, u32)> {
        let mut named = Vec::new();
        for block in self.pages.known_within(pages.start, pages.end) {
            if self.storing.contains(&block) {
                self.cancelled.insert(block);
            } else if let Some(slot) = self.slot_of.get(&block) {
                named.push(*slot);
            }
        }
        // The old entries of slots being overwritten may name some of the pages.
        named.extend(self.storing.iter().filter_map(|block| self.slot_of.get(block)));
        named.extend(&self.stale);
        let entry = |slot: u32| self.table[slot as usize].map(|entry| (entry.page, slot));
        named.into_iter().filter_map(entry).filter(|(page, _)| pages.contains(page)).collect()
    }

    /// The entry of a page was zeroed. Another page may be on its way into the slot.
    pub(super) fn took_out(&mut self, page: u64, slot: u32) {
        self.wrote(slot, None);
        self.leave(page, slot);
    }

    /// The entry of a slot was written.
    pub(super) fn wrote(&mut self, slot: u32, entry: Option<Entry>) {
        self.table[slot as usize] = entry;
        self.stale.remove(&slot);
    }

    /// Removes a page from a slot, unless it has moved.
    pub(super) fn leave(&mut self, page: u64, slot: u32) {
        if let Some((block, _)) = self.resident(page).filter(|(_, its)| *its == slot) {
            self.drop_block(block);
        }
    }

    /// Removes everything permanently.
    pub(super) fn clear(&mut self) {
        self.table.fill(None);
        let resident: Vec<Block> = self.slot_of.keys().copied().collect();
        for block in resident {
            if self.storing.contains(&block) {
                self.cancelled.insert(block);
            } else {
                self.drop_block(block);
            }
        }
        // The next server then finds a file that was in use and whose backing has changed since.
        self.is_kept = false;
    }

    pub(super) fn drop_block(&mut self, block: Block) {
        self.level.take_out(block);
        self.free.extend(self.slot_of.remove(&block));
    }
}
