//! Tables of open descriptors, as processes and threads share and inherit them.

use std::collections::BTreeMap;

/// What a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A file, by its number.
    File(u32),
    /// A file whose path the trace has not shown yet, by a sequence number.
    Unnamed(u64),
    /// A socket, a pipe, a terminal.
    Stream,
    /// A kernel file below /proc or /sys.
    Pseudo,
}

/// An open file description, shared by duplicated descriptors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened {
    pub target: Target,
    /// The offset of the next read or write, in bytes.
    pub offset: u64,
    /// Whether writes go to the end of the file.
    pub append: bool,
}

impl Opened {
    /// A newly opened file.
    pub fn of(target: Target) -> Self {
        Self { target, offset: 0, append: false }
    }
}

/// An open file and the number of descriptors on it, in all tables.
#[derive(Debug)]
struct Shared {
    opened: Opened,
    holders: u32,
}

/// Open files by descriptor.
type Table = BTreeMap<u32, u64>;

/// The descriptors of all threads.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// The table of each thread; threads of a process share one.
    table_of: BTreeMap<u32, u64>,
    /// Tables, and the number of threads that use each.
    tables: BTreeMap<u64, (Table, u32)>,
    files: BTreeMap<u64, Shared>,
    /// The next number of a table or file.
    next: u64,
}

impl Descriptors {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Opens a file without a path.
    pub fn unnamed(&mut self) -> Opened {
        Opened::of(Target::Unnamed(self.number()))
    }

    /// A thread starts: it shares its parent's table, or gets a copy of it. No effect for a known thread.
    pub fn begin(&mut self, pid: u32, parent: Option<u32>, shares: bool) {
        if self.table_of.contains_key(&pid) {
            return;
        }
        let of_parent = parent.map(|parent| self.table(parent));
        let table = match of_parent {
            Some(table) if shares => table,
            other => {
                let copy = other.and_then(|table| self.tables.get(&table)).map(|(table, _)| table.clone());
                let copy = copy.unwrap_or_default();
                for file in copy.values() {
                    if let Some(shared) = self.files.get_mut(file) {
                        shared.holders += 1;
                    }
                }
                let number = self.number();
                self.tables.insert(number, (copy, 0));
                number
            }
        };
        if let Some((_, users)) = self.tables.get_mut(&table) {
            *users += 1;
        }
        self.table_of.insert(pid, table);
    }

    pub fn knows(&self, pid: u32) -> bool {
        self.table_of.contains_key(&pid)
    }

    /// A thread exits; with the last thread of a table its descriptors close.
    pub fn end(&mut self, pid: u32) {
        let Some(number) = self.table_of.remove(&pid) else { return };
        let Some((_, users)) = self.tables.get_mut(&number) else { return };
        *users -= 1;
        if *users == 0 {
            let (table, _) = self.tables.remove(&number).unwrap_or_default();
            table.into_values().for_each(|file| self.release(file));
        }
    }

    /// The table of a thread, created on first use.
    fn table(&mut self, pid: u32) -> u64 {
        if !self.knows(pid) {
            self.begin(pid, None, false);
        }
        self.table_of.get(&pid).copied().unwrap_or_default()
    }

    fn put(&mut self, pid: u32, fd: u32, file: u64) {
        let table = self.table(pid);
        let before = self.tables.get_mut(&table).and_then(|(table, _)| table.insert(fd, file));
        if let Some(before) = before {
            self.release(before);
        }
    }

    fn release(&mut self, file: u64) {
        if let Some(shared) = self.files.get_mut(&file) {
            shared.holders -= 1;
            if shared.holders == 0 {
                self.files.remove(&file);
            }
        }
    }

    /// Makes `fd` of a thread refer to this open file.
    pub fn open(&mut self, pid: u32, fd: u32, opened: Opened) {
        let file = self.number();
        self.files.insert(file, Shared { opened, holders: 1 });
        self.put(pid, fd, file);
    }

    /// Makes `to` refer to the same open file as `from`.
    pub fn copy(&mut self, pid: u32, from: u32, to: u32) {
        let table = self.table(pid);
        let file = self.tables.get(&table).and_then(|(table, _)| table.get(&from).copied());
        match file {
            Some(_) if from == to => {}
            Some(file) => {
                if let Some(shared) = self.files.get_mut(&file) {
                    shared.holders += 1;
                }
                self.put(pid, to, file);
            }
            None => self.close(pid, to),
        }
    }

    pub fn close(&mut self, pid: u32, fd: u32) {
        let table = self.table(pid);
        if let Some(file) = self.tables.get_mut(&table).and_then(|(table, _)| table.remove(&fd)) {
            self.release(file);
        }
    }

    pub fn find(&mut self, pid: u32, fd: u32) -> Option<&mut Opened> {
        let table = self.table_of.get(&pid)?;
        let file = self.tables.get(table)?.0.get(&fd)?;
        self.files.get_mut(file).map(|shared| &mut shared.opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_an_offset_and_children_have_tables_of_their_own() {
        let mut all = Descriptors::default();
        all.open(1, 3, Opened::of(Target::File(7)));
        all.copy(1, 3, 4);
        all.begin(2, Some(1), false);
        all.begin(3, Some(1), true);
        all.find(2, 4).unwrap().offset = 10;
        assert_eq!([(1, 3), (1, 4), (2, 3), (3, 3)].map(|(pid, fd)| all.find(pid, fd).unwrap().offset), [10; 4]);
        all.close(3, 3);
        assert!(all.find(1, 3).is_none() && all.find(2, 3).is_some());
        all.end(1);
        assert!(all.find(3, 4).is_some(), "its thread goes on");
        all.end(2);
        all.end(3);
        assert!(all.files.is_empty() && all.tables.is_empty() && all.table_of.is_empty());
        all.copy(9, 5, 6);
        assert!(all.find(9, 6).is_none());
    }
}
