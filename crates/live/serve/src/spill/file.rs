//! The work on a spill file, which any thread may do. Only the serving thread knows which page is in which slot
//! (`directory.rs`).

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_host::owned::LockedFile;

use super::format::{checksum, Entry, Layout, ENTRY_BYTES};

pub(super) struct SpillFile {
    pub(super) file: LockedFile,
    pub(super) layout: Layout,
    /// Part of every checksum.
    pub(super) salt: [u8; 16],
}

impl SpillFile {
    fn write_entry(&self, slot: u32, entry: Option<Entry>) -> io::Result<()> {
        self.file.write_all_at(&Entry::to_bytes(entry), self.layout.entry(slot.into()))
    }
}

/// A page to be written to a slot, or read from it.
pub struct Place {
    pub(super) file: Arc<SpillFile>,
    pub(super) slot: u32,
    pub page: u64,
    pub(crate) buffer: BytesMut,
}

impl Place {
    pub(crate) fn store(&self) -> io::Result<()> {
        let Self { file, slot, page, buffer } = self;
        let sum = checksum(&file.salt, *page, buffer);
        file.file.write_all_at(buffer, file.layout.slot((*slot).into()))?;
        file.write_entry(*slot, Some(Entry { page: *page, sum }))
    }

    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the slot has no entry, and [`io::ErrorKind::InvalidData`] if the entry is not that of
    /// this page with these bytes.
    pub(crate) fn load(&mut self) -> io::Result<()> {
        let Self { file, slot, page, buffer } = self;
        let mut entry = [0; ENTRY_BYTES as usize];
        file.file.read_exact_at(&mut entry, file.layout.entry((*slot).into()))?;
        file.file.read_exact_at(buffer, file.layout.slot((*slot).into()))?;
        let entry = Entry::from_bytes(&entry).ok_or(io::ErrorKind::NotFound)?;
        if entry != (Entry { page: *page, sum: checksum(&file.salt, *page, buffer) }) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }
}

/// Zeroes the entries of pages that are about to change.
pub struct Zeroing {
    pub(super) file: Arc<SpillFile>,
    /// `None`: all.
    pub(super) slots: Option<Vec<u32>>,
}

impl Zeroing {
    /// # Errors
    /// An entry may still be there: its page must not change.
    pub(crate) fn carry_out(&self) -> io::Result<()> {
        let Some(slots) = &self.slots else {
            // After a loss, the next server discards the file even if its entries stay.
            let zeroes = vec![0; (self.file.layout.slots * ENTRY_BYTES) as usize];
            let _ = self.file.file.write_all_at(&zeroes, self.file.layout.entry(0));
            return Ok(());
        };
        slots.iter().try_for_each(|slot| self.file.write_entry(*slot, None))
    }
}
