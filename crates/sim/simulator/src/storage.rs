//! The simulated disks behind a level: drives, their queues, and the calendar of their completions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_device::{Drive, Finished, Request, Started};
use headstart_engine::{Devices, Ended, From, IoRequest, Kind, Pieces, What};
use headstart_layout::{Places, METADATA};
use headstart_policy::BlockMap;
use headstart_scenario::DeviceKeys;
use headstart_types::{Block, Disk, Earliest, Nanos};

use crate::journal::DiskJournal;
use crate::open_files::OpenFiles;
use crate::Error;

/// A tag with this bit names a group; otherwise a block, the only one of an order of the first level.
const GROUP: u64 = 1 << 63;

/// The slot of the group.
const GROUP_SLOT: u64 = GROUP - 1;

pub struct Storage {
    drives: Vec<Drive>,
    sectors: u32,
    /// Orders of several blocks, or of a level other than the first.
    pieces: Pieces,
    /// By disk: when the first of its requests in service ends.
    ends: Earliest,
    /// Instants at which a disk's scheduler must be called again: after all completions of that instant.
    wakes: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// By disk: the last instant for which its scheduler requested a call.
    wakes_at: Vec<Nanos>,
    /// Orders that needed no fetch and have not been reported, with their tags.
    allocated: VecDeque<(Ended, u64)>,
    /// Orders that have ended and have not been reported, with their tags.
    ended: VecDeque<(Ended, u64)>,
    /// Parts of a merged request; empty between calls.
    parts: Vec<Finished>,
    /// Disks that received requests since they were last processed.
    touched: Vec<u32>,
    /// The open files, if buffers have as many segments.
    open_files: Option<Box<OpenFiles>>,
    /// The disks' journal, for timelines.
    pub(crate) journal: Option<Box<DiskJournal>>,
}

impl Storage {
    /// Idle disks for blocks of `block_bytes`.
    ///
    /// # Errors
    /// The offending key or profile.
    pub fn try_new(keys: &DeviceKeys, block_bytes: u64, seed: u64) -> Result<Self, Error> {
        let drives = headstart_assemble::drives(keys, seed)?;
        let sectors = headstart_device::sectors_of(block_bytes).max(1) as u32;
        Ok(Self {
            wakes_at: vec![Nanos::ZERO; drives.len()],
            ends: Earliest::new(drives.len()),
            drives,
            sectors,
            pieces: Pieces::default(),
            wakes: BinaryHeap::new(),
            allocated: VecDeque::new(),
            ended: VecDeque::new(),
            parts: Vec::new(),
            touched: Vec::new(),
            open_files: None,
            journal: None,
        })
    }

    /// Divides the buffer of each disk into `segments`, before anything is issued.
    ///
    /// # Errors
    /// At `device.cache_segments`, if the disks have no segments, or cannot have as many.
    pub fn divide_buffers(&mut self, segments: u64) -> Result<(), Error> {
        Ok(headstart_assemble::divide_buffers(&mut self.drives, segments)?)
    }

    /// From now on the buffer of each disk has as many segments as files are open on it.
    ///
    /// # Errors
    /// At `device.cache_segments`, if the disks have no segments, or cannot change their number.
    pub fn follow_open_files(&mut self) -> Result<(), Error> {
        let device = self.drives[0].device();
        let least = headstart_assemble::segments_min(device)?;
        let segments = device.mechanics().map_or(least, |mechanics| mechanics.segments + least - 1);
        self.open_files = Some(Box::new(OpenFiles::new(self.drives.len(), segments, least)));
        Ok(())
    }

    #[must_use]
    pub fn drives(&self) -> &[Drive] {
        &self.drives
    }

    /// Sectors of a block.
    #[must_use]
    pub fn block_sectors(&self) -> u32 {
        self.sectors
    }

    /// Places the arm of `disk` at `sector`. The caller guarantees that nothing was submitted to it.
    pub fn stand_at(&mut self, disk: Disk, sector: u64) {
        self.drives[disk.index()].stand_at(sector);
    }

    /// Completes the next request that ends at `now`, if any, and starts the next request of its disk. Returns whether
    /// there was one, and the order that it completes, with its tag; other completed orders are in `ended`.
    #[inline]
    fn complete(&mut self, now: Nanos) -> (bool, Option<(Ended, u64)>) {
        let (end, wake) = (self.ends.time(), self.next_wake());
        if end.min(wake) > now {
            return (false, None);
        }
        let mut over = None;
        let disk = if end <= wake {
            let disk = self.ends.first_by(end).expect("a disk has that end");
            match self.drives[disk as usize].finish_one(now) {
                Some(finished) => over = self.request_ended(now, disk, &finished),
                None => self.parts_ended(now, disk),
            }
            disk
        } else {
            let Some(Reverse((_, disk))) = self.wakes.pop() else { return (false, None) };
            disk
        };
        self.start_disk(now, disk);
        (true, over)
    }

    /// A request has ended. Returns the order that it completes, if any, with its tag.
    #[inline]
    fn request_ended(&mut self, now: Nanos, disk: u32, finished: &Finished) -> Option<(Ended, u64)> {
        // By its fields: binding the whole request copies it in memory, which would take as long as everything else
        // here.
        let Finished { request: Request { sector, sectors, tag, write, .. }, service_time, arrived, announced, .. } =
            *finished;
        if let Some(journal) = &mut self.journal {
            journal.finished((now, service_time, announced), disk, (sector, sectors), tag, arrived);
        }
        // What others have taken of a rate that they share is no work on this one.
        let service_time = service_time - (now - announced);
        let over = if tag & GROUP != 0 {
            self.pieces.ended((tag & GROUP_SLOT) as usize, service_time, write)?
        } else {
            let what = if write { What::Written } else { What::Fetched(service_time) };
            Ended { level: 0, what }
        };
        Some((over, tag))
    }

    /// A merged request has ended.
    #[cold]
    fn parts_ended(&mut self, now: Nanos, disk: u32) {
        let mut parts = std::mem::take(&mut self.parts);
        self.drives[disk as usize].finish_parts(now, &mut |part| parts.push(part));
        for part in parts.drain(..) {
            let over = self.request_ended(now, disk, &part);
            self.ended.extend(over);
        }
        self.parts = parts;
    }

    /// When the first scheduler must be called again.
    #[inline]
    fn next_wake(&self) -> Nanos {
        self.wakes.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Starts what the disk can begin, and updates its next end.
    #[inline]
    fn start_disk(&mut self, now: Nanos, disk: u32) {
        self.divide_buffer(now, disk);
        let drive = &mut self.drives[disk as usize];
        while drive.may_start() {
            match drive.start(now) {
                Started::Ends(end) => {
                    if let Some(journal) = &mut self.journal {
                        journal.started(disk, now, end);
                    }
                }
                Started::Wakes(at) => {
                    if self.wakes_at[disk as usize] != at {
                        self.wakes_at[disk as usize] = at;
                        self.wakes.push(Reverse((at, disk)));
                    }
                    break;
                }
                Started::Nothing => break,
            }
        }
        self.ends.set(disk, drive.next_end().unwrap_or(Nanos::MAX));
    }

    /// Divides a disk's buffer into as many segments as files are open, if requested.
    #[inline]
    fn divide_buffer(&mut self, now: Nanos, disk: u32) {
        let Some(files) = &mut self.open_files else { return };
        let Some(segments) = files.wanted(disk) else { return };
        if self.drives[disk as usize].redivide_buffer(now, segments.into()) {
            files.divided(disk, segments);
        }
    }
}

impl Storage {
    #[inline]
    fn queue(&mut self, now: Nanos, from: From, disk: Disk, (sector, sectors): (u64, u32), kind: Kind, tag: u64) {
        let request = Request {
            write: kind == Kind::Write,
            prefetch: kind == Kind::Prefetch,
            process: from.process,
            ..Request::read(sector, sectors, tag)
        };
        self.drives[disk.index()].submit(now, request);
        if self.touched.last() != Some(&disk.0) {
            self.touched.push(disk.0);
        }
    }

    /// Records a queued request in the journal.
    #[inline]
    fn note(&mut self, from: From, disk: Disk, place: (u64, u64), kind: Kind, blocks: &[Block]) {
        if let Some(journal) = &mut self.journal {
            journal.queued(from, disk, place, kind, blocks);
        }
    }

    /// Records which file is read.
    fn note_file(&mut self, from: From, order: &IoRequest<'_>, space: &Places) {
        let (Some(files), Some(process)) = (&mut self.open_files, from.process) else { return };
        let (Some(last), Kind::Demand | Kind::Prefetch) = (order.blocks.last(), order.kind) else { return };
        let (file, index) = space.place(*last);
        if file != METADATA {
            let to_end = space.file_blocks(file).is_some_and(|blocks| index + 1 >= blocks);
            files.read(process, file, order.disk.0, to_end);
        }
    }

    /// An order without a fetch: it is reported in a later pass over this instant.
    #[cold]
    fn allocate(&mut self, now: Nanos, level: u32, order: &IoRequest<'_>) {
        self.allocated.push_back((Ended { level, what: What::Allocated }, u64::from(order.blocks[0].0)));
        self.wakes.push(Reverse((now, order.disk.0)));
    }

    /// An order of several blocks: one request per run of sectors on a disk. Returns their number.
    fn queue_group(&mut self, now: Nanos, from: From, order: &IoRequest<'_>, space: &Places) -> u32 {
        let mut pieces = 1;
        let slot = self.pieces.open(from.level, order.blocks);
        let (mut run, mut sectors) = self.lies(order.blocks[0], space);
        let mut begin = 0;
        for (index, block) in order.blocks.iter().enumerate().skip(1) {
            let (at, more) = self.lies(*block, space);
            if at == (run.0, run.1 + sectors) && sectors < PIECE_SECTORS_MAX {
                sectors += more;
                continue;
            }
            self.note(from, run.0, (run.1, GROUP | slot as u64), order.kind, &order.blocks[begin..index]);
            self.queue_piece(now, from, (run, sectors), order.kind, slot);
            pieces += 1;
            begin = index;
            (run, sectors) = (at, more);
        }
        self.note(from, run.0, (run.1, GROUP | slot as u64), order.kind, &order.blocks[begin..]);
        self.queue_piece(now, from, (run, sectors), order.kind, slot);
        pieces
    }

    /// The place of a block, and its sectors: of a whole one, or of a fragment.
    #[inline]
    fn lies(&self, block: Block, space: &Places) -> ((Disk, u64), u64) {
        let universe = space.universe();
        let sectors = universe.short(block).unwrap_or(self.sectors);
        ((universe.disk_of[block.index()], universe.sector_of[block.index()]), u64::from(sectors))
    }

    fn queue_piece(
        &mut self,
        now: Nanos,
        from: From,
        ((disk, sector), sectors): ((Disk, u64), u64),
        kind: Kind,
        slot: usize,
    ) {
        self.pieces.add(slot);
        self.queue(now, from, disk, (sector, sectors as u32), kind, GROUP | slot as u64);
    }
}

/// Maximum number of sectors of a request without the last block's: keeps them within 32 bits.
const PIECE_SECTORS_MAX: u64 = 1 << 30;

impl Devices<Places> for Storage {
    #[inline]
    fn submit(&mut self, now: Nanos, from: From, order: IoRequest<'_>, space: &Places) -> u32 {
        if self.open_files.is_some() {
            self.note_file(from, &order, space);
        }
        match order {
            IoRequest { kind: Kind::Allocate, .. } => {
                self.allocate(now, from.level, &order);
                0
            }
            IoRequest { blocks: &[block], disk, kind } if from.level == 0 && !space.has_fragments() => {
                let sector = space.universe().sector_of[block.index()];
                self.note(from, disk, (sector, u64::from(block.0)), kind, &[block]);
                self.queue(now, from, disk, (sector, self.sectors), kind, u64::from(block.0));
                1
            }
            _ => self.queue_group(now, from, &order, space),
        }
    }

    #[inline]
    fn start(&mut self, now: Nanos) {
        while let Some(disk) = self.touched.pop() {
            if self.drives[disk as usize].may_start() {
                self.start_disk(now, disk);
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        Some(self.ends.time().min(self.next_wake())).filter(|at| *at != Nanos::MAX)
    }

    #[inline]
    fn ended(&mut self, now: Nanos, _space: &Places, into: &mut Vec<Block>) -> Option<Ended> {
        loop {
            let over = self.ended.pop_front().or_else(|| self.allocated.pop_front());
            let (any, over) = if over.is_some() { (true, over) } else { self.complete(now) };
            if let Some((ended, tag)) = over {
                if tag & GROUP == 0 {
                    into.push(Block(tag as u32));
                } else {
                    self.pieces.take((tag & GROUP_SLOT) as usize, into);
                }
                return Some(ended);
            }
            if !any {
                return None;
            }
        }
    }
}
