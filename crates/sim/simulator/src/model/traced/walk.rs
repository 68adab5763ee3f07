//! One pass over a trace: what the file system fetches, and what the program waits for.
//!
//! As in the simulation (`workload/filling.rs`, the engine's levels): an inode is read when the program switches to its
//! file, indirect blocks before the blocks they lead to. An absent block is fetched together with the following blocks
//! that the read-ahead names; other blocks that it names, including those named for a resident block, are fetched while
//! the program continues. A written block needs no fetch: it is dirty, and leaves with its cluster or when it is due
//! (`writing.rs`). Requests outstanding when the program ends are not counted. Cost: constant per block read, and the
//! disk's per request. Memory: 24 bytes per fetched block.

use std::collections::{HashMap, HashSet};

use headstart_analytic::file_system::TracedDisk;
use headstart_layout::{Contents, Placing, METADATA};
use headstart_policy::readahead::{Asked, Cached, Ffs, Found, Run};
use headstart_policy::ReadAhead;
use headstart_trace::Record;
use headstart_types::{KeyError, Nanos};
use rustc_hash::FxBuildHasher;

use super::writing::Writing;
use crate::workload::{Cutter, Opened};
use crate::Error;

/// The cost of the program's own work, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Per request.
    pub system_call_ns: f64,
    /// Per KiB returned.
    pub copy_ns_per_kib: f64,
    /// Factor on the recorded think times.
    pub think_scale: f64,
    /// Whether inodes are read.
    pub opens: bool,
}

/// The trace in the terms of the paper's Table 2.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests, and their bytes.
    pub requests: u64,
    /// See `requests`.
    pub bytes: u64,
    /// Distinct blocks requested.
    pub blocks: u64,
    /// Requests that do not begin where the previous one to their file ended.
    pub runs: u64,
    /// Requests to another file than the previous one.
    pub switches: u64,
    /// Requests that write.
    pub writes: u64,
}

/// Blocks, and when each becomes resident.
struct Known {
    placing: Placing,
    sizes: HashMap<u32, u64, FxBuildHasher>,
    there: HashMap<(u32, u64), f64, FxBuildHasher>,
    now: f64,
}

impl Cached for Known {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.there.contains_key(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.there.get(&(file, index)).is_some_and(|at| *at <= self.now)
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.sizes.get(&file).copied()
    }

    fn frames(&self) -> u32 {
        u32::MAX
    }

    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.placing.ffs().map_or(0, |ffs| ffs.contiguous(file, index, most))
    }

    fn mapped_by(&self, file: u32, index: u64) -> Option<(u32, u64)> {
        self.placing.ffs()?.mapped_by(file, index).map(|address| (METADATA, address))
    }
}

/// A program that reads a trace.
pub struct Walk {
    known: Known,
    read_ahead: Option<Ffs>,
    writing: Option<Writing>,
    costs: Costs,
    pub tally: Tally,
    /// The disk's times.
    pub disk: TracedDisk,
    /// The program's clock, and the sum of its requests' times.
    pub now: f64,
    /// See `now`.
    pub response_ns: f64,
    /// The current file, and the last indirect block used in it.
    trail: Option<(u32, Option<u64>)>,
    /// Where the last request to each file ended.
    ends: HashMap<u32, u64, FxBuildHasher>,
    asked: HashSet<(u32, u64), FxBuildHasher>,
    runs: Vec<Run>,
}

impl Walk {
    /// The initial state. `writing` is the write-back state; `None` if writes count as reads.
    pub fn new(
        (placing, contents): (Placing, &Contents),
        read_ahead: Option<Ffs>,
        writing: Option<Writing>,
        disk: TracedDisk,
        costs: Costs,
    ) -> Self {
        let sizes = contents.files.iter().copied().collect();
        Self {
            known: Known { placing, sizes, there: HashMap::default(), now: 0.0 },
            read_ahead,
            writing,
            costs,
            tally: Tally::default(),
            disk,
            now: 0.0,
            response_ns: 0.0,
            trail: None,
            ends: HashMap::default(),
            asked: HashSet::default(),
            runs: Vec::new(),
        }
    }

    /// Number of fetched blocks.
    pub fn fetched(&self) -> u64 {
        self.known.there.len() as u64
    }

    /// Passes over the trace.
    ///
    /// # Errors
    /// An error of the trace, or a block without a place.
    pub fn through(&mut self, opened: &Opened, cutter: &Cutter) -> Result<(), Error> {
        let mut records = opened.read()?;
        let mut last: Option<Record> = None;
        while records.advance()? {
            for record in records.batch() {
                match last.replace(*record) {
                    Some(last) => self.now += cutter.think(&last, Some(record)).0 as f64 * self.costs.think_scale,
                    None => self.stand_at(record.file)?,
                }
                let cut = cutter.cut(record, &records)?;
                let writes = record.write && self.writing.is_some();
                self.count(record, writes);
                self.open(cut.file)?;
                let began = self.now;
                for at in cut.first..cut.first + cut.blocks {
                    let bytes = cutter.asked(record, at);
                    self.look_up(cut.file, at)?;
                    self.tally.blocks += u64::from(self.asked.insert((cut.file, at)));
                    if writes {
                        self.write((cut.file, at), bytes)?;
                    } else {
                        self.read(cut.file, at)?;
                    }
                    self.now += self.costs.copy_ns_per_kib * bytes as f64 / 1024.0;
                }
                self.now += self.costs.system_call_ns;
                self.response_ns += self.now - began;
            }
        }
        if let Some(last) = last {
            self.now += cutter.think(&last, None).0 as f64 * self.costs.think_scale;
        }
        self.write_due()?;
        self.disk.count_until(self.now);
        Ok(())
    }

    /// If files were opened before the run, the arm is at the inode of the one opened last: as in the simulation, the
    /// first to be read.
    fn stand_at(&mut self, file: u32) -> Result<(), KeyError> {
        if let (false, Some(inode)) = (self.costs.opens, self.inode(file)) {
            let (_, sector) = self.known.placing.place(METADATA, inode)?;
            self.disk.stand_at(sector * headstart_device::SECTOR_BYTES);
        }
        Ok(())
    }

    fn inode(&self, file: u32) -> Option<u64> {
        self.known.placing.ffs()?.inode(file)
    }

    fn count(&mut self, record: &Record, writes: bool) {
        let end = record.offset.saturating_add(record.size);
        self.tally.requests += 1;
        self.tally.bytes += record.size;
        self.tally.writes += u64::from(writes);
        self.tally.runs += u64::from(self.ends.insert(record.file, end) != Some(record.offset));
        self.tally.switches += u64::from(self.trail.is_some_and(|(file, _)| file != record.file));
    }

    fn open(&mut self, file: u32) -> Result<(), KeyError> {
        if self.trail.is_some_and(|(last, _)| last == file) {
            return Ok(());
        }
        self.trail = Some((file, None));
        match self.inode(file).filter(|_| self.costs.opens) {
            Some(inode) => self.need(METADATA, inode),
            None => Ok(()),
        }
    }

    /// Reads the indirect blocks that lead to a block, unless the previous block used the same ones.
    fn look_up(&mut self, file: u32, at: u64) -> Result<(), KeyError> {
        let Some(ffs) = self.known.placing.ffs() else { return Ok(()) };
        let leaf = ffs.mapped_by(file, at);
        if self.trail == Some((file, leaf)) {
            return Ok(());
        }
        let leading: Vec<u64> = ffs.indirect(file, at).collect();
        self.trail = Some((file, leaf));
        leading.into_iter().try_for_each(|address| self.need(METADATA, address))
    }

    /// Fetches a single block, unless it is resident or outstanding, and waits for it.
    fn need(&mut self, file: u32, at: u64) -> Result<(), KeyError> {
        if !self.known.is_cached(file, at) {
            self.fetch(&[(file, at)])?;
        }
        self.wait_for(file, at);
        Ok(())
    }

    fn read(&mut self, file: u32, at: u64) -> Result<(), KeyError> {
        self.known.now = self.now;
        let found = match (self.known.is_cached(file, at), self.known.is_resident(file, at)) {
            (false, _) => Found::Absent,
            (true, false) => Found::Unready,
            (true, true) => Found::Ready,
        };
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        if let Some(read_ahead) = &mut self.read_ahead {
            let asked = Asked { file, first: at, count: 1, client: 0, ends_inside: false };
            read_ahead.asked(Nanos(self.now as u64), &asked, &[found], &self.known, &mut runs);
        }
        let mut blocks = if found == Found::Absent { vec![(file, at)] } else { Vec::new() };
        for run in &runs {
            let named = (run.first..=u64::MAX).take(run.count as usize).map(|index| (run.file, index));
            blocks.extend(named.filter(|(file, index)| !self.known.is_cached(*file, *index)));
        }
        self.runs = runs;
        self.fetch(&blocks)?;
        self.wait_for(file, at);
        Ok(())
    }

    fn wait_for(&mut self, file: u32, at: u64) {
        self.now = self.known.there.get(&(file, at)).map_or(self.now, |there| there.max(self.now));
    }

    /// Fetches blocks: those that are contiguous in a file become resident together.
    fn fetch(&mut self, blocks: &[(u32, u64)]) -> Result<(), KeyError> {
        let follows = |one: &(u32, u64), next: &(u32, u64)| *next == (one.0, one.1 + 1);
        blocks.chunk_by(follows).try_for_each(|order| self.fetch_order(order))
    }

    /// One disk request per run of sectors.
    fn fetch_order(&mut self, blocks: &[(u32, u64)]) -> Result<(), KeyError> {
        self.write_due()?;
        let mut there = self.now;
        for (first, bytes) in self.pieces(blocks)? {
            there = self.disk.read(self.now, first, bytes);
        }
        self.known.there.extend(blocks.iter().map(|block| (*block, there)));
        Ok(())
    }

    /// Writes `bytes` of a block: it needs no fetch, and the program does not wait for the disk.
    fn write(&mut self, block: (u32, u64), bytes: u64) -> Result<(), KeyError> {
        self.wait_for(block.0, block.1);
        self.write_due()?;
        self.known.there.entry(block).or_insert(self.now);
        let Some(writing) = &mut self.writing else { return Ok(()) };
        let known = &self.known;
        let runs = writing.written(self.now, block, bytes, |most| known.contiguous(block.0, block.1, most));
        runs.iter().try_for_each(|run| self.write_order(self.now, run))
    }

    /// Writes the blocks that are due.
    fn write_due(&mut self) -> Result<(), KeyError> {
        while let Some((at, block)) = self.writing.as_mut().and_then(|writing| writing.take_due(self.now)) {
            self.write_order(at, &[block])?;
        }
        Ok(())
    }

    fn write_order(&mut self, at: f64, blocks: &[(u32, u64)]) -> Result<(), KeyError> {
        for (first, bytes) in self.pieces(blocks)? {
            self.disk.write(at, first, bytes);
        }
        Ok(())
    }

    /// The runs of sectors that hold the blocks: first byte and length.
    fn pieces(&self, blocks: &[(u32, u64)]) -> Result<Vec<(u64, u64)>, KeyError> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for block in blocks {
            let (sector, sectors) = self.lies(*block)?;
            let (first, bytes) = (sector * headstart_device::SECTOR_BYTES, sectors * headstart_device::SECTOR_BYTES);
            match pieces.last_mut().filter(|(begin, count)| begin + count == first) {
                Some((_, count)) => *count += bytes,
                None => pieces.push((first, bytes)),
            }
        }
        Ok(pieces)
    }

    /// First sector of a block, and its number of sectors.
    fn lies(&self, (file, at): (u32, u64)) -> Result<(u64, u64), KeyError> {
        let placing = &self.known.placing;
        let (_, sector) = placing.place(file, at)?;
        Ok((sector, placing.short(file, at).map_or(placing.block_sectors(), u64::from)))
    }
}
