//! Names of files and devices, numbered in order of first appearance.
//!
//! Cost: a comparison if a name repeats the previous one, otherwise a search in a tree of the distinct names. Memory:
//! the distinct names.

use std::collections::{BTreeMap, HashMap};

use crate::hash::Build;
use crate::{FileEntry, ProcessEntry, Record};

#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<Box<[u8]>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Names {
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        if self.last == name && !self.numbers.is_empty() {
            return Ok(self.last_number);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let next = u32::try_from(self.numbers.len());
                let next = next.map_err(|_| format!("there are too many names; allowed: {}", u32::MAX))?;
                self.numbers.insert(name.into(), next);
                next
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }
}

/// The names of processes in a trace.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    entries: Vec<ProcessEntry>,
    /// For each process, the entry of its current name.
    present: HashMap<u32, usize, Build>,
}

impl Processes {
    /// Records the name under which a process issues a request.
    #[inline]
    pub fn meet(&mut self, record: &Record, name: &[u8]) {
        let known = self.present.get(&record.pid).map(|at| &self.entries[*at]);
        if known.is_none_or(|entry| entry.name.as_bytes() != name) {
            self.present.insert(record.pid, self.entries.len());
            let name = String::from_utf8_lossy(name).into_owned();
            self.entries.push(ProcessEntry { pid: record.pid, name, from: record.stands_at });
        }
    }

    /// The names so far.
    pub fn entries(&self) -> &[ProcessEntry] {
        &self.entries
    }
}

/// The names of files in a trace, with the largest end of their requests.
#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    names: Names,
    entries: Vec<FileEntry>,
}

impl NamedFiles {
    /// The number of the file of this name.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        let file = self.names.number(name)?;
        if file as usize == self.entries.len() {
            self.entries.push(FileEntry { file, size_bytes: 0, path: String::from_utf8_lossy(name).into_owned() });
        }
        Ok(file)
    }

    /// Records the end of a request; files that have only numbers are ignored.
    #[inline]
    pub fn reaches(&mut self, record: &Record) {
        if let Some(entry) = self.entries.get_mut(record.file as usize) {
            entry.size_bytes = entry.size_bytes.max(record.offset.saturating_add(record.size));
        }
    }

    /// Sets the path of a file.
    pub fn rename(&mut self, file: u32, path: String) {
        if let Some(entry) = self.entries.get_mut(file as usize) {
            entry.path = path;
        }
    }

    /// Raises the size of a file to at least `bytes`.
    pub fn has_size(&mut self, file: u32, bytes: u64) {
        if let Some(entry) = self.entries.get_mut(file as usize) {
            entry.size_bytes = entry.size_bytes.max(bytes);
        }
    }

    /// The size of a file as far as known.
    pub fn size_of(&self, file: u32) -> u64 {
        self.entries.get(file as usize).map_or(0, |entry| entry.size_bytes)
    }

    /// The files so far, by number.
    pub fn entries(&self) -> &[FileEntry] {
        &self.entries
    }
}
