//! Tracks in which slot of a spill file each page is. The level of the engine below the one in memory decides which
//! pages stay; this finds slots for them, and the work to do on the file.
//!
//! The conductor changes no page that is being stored or read. A slot may get another page while its old one is read,
//! which then is a miss, or while the entry of the old one is zeroed, which may lose the new one: a miss, too.

use std::io;
use std::ops::Range;

use bytes::BytesMut;
use headstart_assemble::served;
use headstart_engine::{Backend, IoRequest, Tier};
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos};
use rustc_hash::FxHashMap;
use toml::Table;

use super::file::{Place, Zeroing};
use super::Spill;
use crate::pages::Pages;

/// Stands for a page that may be lost and is being stored.
const LOST: u64 = u64::MAX;

/// Ignores orders: pages found in a file need no fetch.
struct Nowhere;

impl Backend for Nowhere {
    fn issue(&mut self, _now: Nanos, _order: IoRequest<'_>) -> u32 {
        0
    }
}

#[derive(Default)]
pub(super) struct Directory {
    /// Slot of each page that can be read.
    pub(super) slot_of: FxHashMap<u64, u32>,
    free: Vec<u32>,
    /// By slot: pages that its entry may name though they are not in `slot_of`, since the slot has got no other page
    /// yet, or a write has failed. The entry must be zeroed before such a page changes.
    named: FxHashMap<u32, Vec<u64>>,
    /// By slot: the page and the block being stored.
    storing: FxHashMap<u32, (u64, Block)>,
    /// Slots of pages that are being read.
    loading: FxHashMap<u64, u32>,
}

impl Spill {
    /// The level of the pages in the file, with those that were found in it.
    pub(crate) fn tier(&mut self, pages: &Pages) -> Tier {
        let keys = [("blocks", i64::from(self.slots()).into()), ("policy", toml::Value::from("demand"))];
        let keys = Table::from_iter(keys.map(|(key, value)| (key.to_owned(), value)));
        let mut tier = served(keys, self.file.layout.page_bytes).expect("these keys are right").tier;
        let directory = &mut self.directory;
        // The most recently added slot is used first.
        for (slot, page) in (0..self.file.layout.slots as u32).zip(std::mem::take(&mut self.found)).rev() {
            let block = page.and_then(|page| Some((page, pages.block(0, page)?)));
            match block {
                Some((page, block)) if !directory.slot_of.contains_key(&page) => {
                    tier.level.put(Nanos::ZERO, block, pages, &mut Nowhere);
                    tier.level.arrived(Nanos::ZERO, block, None, pages);
                    directory.slot_of.insert(page, slot);
                }
                _ => {
                    directory.named.extend(block.map(|(page, _)| (slot, vec![page])));
                    directory.free.push(slot);
                }
            }
        }
        self.totals.found_pages = directory.slot_of.len() as u64;
        tier
    }

    /// Whether `page` can be read from the file.
    #[must_use]
    pub fn holds(&self, page: u64) -> bool {
        self.directory.slot_of.contains_key(&page)
    }

    /// Whether nothing is being stored.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.directory.storing.is_empty()
    }

    /// Whether any of `pages` is being stored.
    #[must_use]
    pub fn is_storing(&self, pages: &Range<u64>) -> bool {
        self.directory.storing.values().any(|(page, _)| pages.contains(page))
    }

    /// The page has left the level, or is about to. Its entry stays in the file.
    pub fn release(&mut self, page: u64) {
        if let Some(slot) = self.directory.slot_of.remove(&page) {
            self.directory.named.insert(slot, vec![page]);
            self.directory.free.push(slot);
        }
    }

    /// Whether a page can be stored now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.directory.storing.len() < self.storing_max && !self.directory.free.is_empty()
    }

    /// Gives `page`, the level's `block`, a slot. Requires [`Spill::has_room`]; [`Spill::stored`] must follow.
    pub fn store(&mut self, page: u64, block: Block, buffer: BytesMut) -> (u32, Place) {
        let directory = &mut self.directory;
        let slot = directory.free.pop().expect("there is room");
        directory.named.entry(slot).or_default().push(page);
        directory.storing.insert(slot, (page, block));
        (slot, Place { file: self.file.clone(), slot, page, buffer })
    }

    /// The work on `slot` is done, or has failed: then the slot gets no other page, as its entry is uncertain. Returns the
    /// block, and whether it is in the file.
    ///
    /// # Panics
    /// No page is being stored there.
    pub fn stored(&mut self, slot: u32, done: bool) -> (Block, bool) {
        let directory = &mut self.directory;
        let (page, block) = directory.storing.remove(&slot).expect("it has been begun");
        let is_there = done && page != LOST;
        self.totals.failed_requests += u64::from(!done);
        self.totals.stored_pages += u64::from(is_there);
        if is_there {
            directory.named.remove(&slot);
            directory.slot_of.insert(page, slot);
        } else if done {
            directory.free.push(slot);
        }
        (block, is_there)
    }

    /// Reads `page`, which the file [holds](Spill::holds), into `buffer`. [`Spill::loaded`] must follow.
    pub fn load(&mut self, page: u64, buffer: BytesMut) -> Place {
        let slot = self.directory.slot_of[&page];
        self.directory.loading.insert(page, slot);
        Place { file: self.file.clone(), slot, page, buffer }
    }

    /// A read of `pages` has ended. Returns false if it was not one of the file. After an error, a single page is not
    /// there.
    pub fn loaded(&mut self, pages: Range<u64>, error: Option<&io::Error>) -> bool {
        let page = pages.start;
        let Some(slot) = self.directory.loading.remove(&page) else { return false };
        (page + 1..pages.end).for_each(|page| _ = self.directory.loading.remove(&page));
        // If a page has lost its slot in the meantime, nothing is wrong.
        let is_wrong = pages.end - page == 1 && self.directory.slot_of.get(&page) == Some(&slot);
        if let Some(error) = error.filter(|_| is_wrong) {
            match error.kind() {
                io::ErrorKind::NotFound => {}
                io::ErrorKind::InvalidData => self.totals.corrupt_pages += 1,
                _ => self.totals.failed_requests += 1,
            }
            self.release(page);
        }
        true
    }

    /// The work to do before `pages`, which have been [released](Spill::release), change. [`Spill::zeroed`] must follow.
    #[must_use]
    pub fn zeroing(&self, pages: &Range<u64>) -> Option<Zeroing> {
        let names = |(_, named): &(&u32, &Vec<u64>)| named.iter().any(|page| pages.contains(page));
        let slots: Vec<u32> = self.directory.named.iter().filter(names).map(|(slot, _)| *slot).collect();
        (!slots.is_empty()).then(|| Zeroing { file: self.file.clone(), slots: Some(slots) })
    }

    /// The entries that [`Spill::zeroing`] has found for `pages` are zeroes.
    pub fn zeroed(&mut self, pages: &Range<u64>) {
        self.directory.named.retain(|_, named| {
            named.retain(|page| !pages.contains(page));
            !named.is_empty()
        });
    }

    /// Removes everything. The next server finds a file that was in use and whose backing has changed since, and
    /// discards it.
    pub fn forget_all(&mut self) -> Zeroing {
        self.is_kept = false;
        let pages: Vec<u64> = self.directory.slot_of.keys().copied().collect();
        pages.into_iter().for_each(|page| self.release(page));
        self.directory.named.clear();
        self.directory.storing.values_mut().for_each(|(page, _)| *page = LOST);
        Zeroing { file: self.file.clone(), slots: None }
    }
}
