//! The simulated disks behind a level: drives, their queues, and the calendar of their completions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use headstart_device::{
    build_array, build_device, build_scheduler, CommandQueue, Drive, Finished, Request, Started, SECTOR_BYTES,
};
use headstart_engine::{Backend, Kind, Order};
use headstart_types::{stream_seed, Block, Disk, Nanos};

use crate::scenario::DeviceKeys;
use crate::workload::Places;
use crate::Error;

/// What has become of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The block has been fetched; the disk worked on it for that long: of an order of several blocks, its share.
    Fetched(Nanos),
    /// The block needed no fetch.
    Allocated,
    /// The block has been written.
    Written,
}

/// One block of an order that has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The level that gave the order.
    pub owner: u32,
    /// The block.
    pub block: Block,
    /// Where it is.
    pub disk: Disk,
    /// What has become of it.
    pub what: What,
}

/// An order of several blocks, or of another level than the first: it is done when all its pieces are.
#[derive(Debug, Default)]
struct Group {
    blocks: Vec<Block>,
    owner: u32,
    pieces: u32,
    service: Nanos,
}

/// A tag with this bit names a group; another one a block, which is the only one of an order of the first level.
const GROUP: u64 = 1 << 63;

/// Marks a disk in the calendar whose scheduler wants to be asked again: after all completions of that instant.
const WAKE: u32 = 1 << 31;

/// The groups that have not ended.
#[derive(Debug, Default)]
struct Groups {
    /// By slot; those of `free` are old.
    groups: Vec<Group>,
    free: Vec<usize>,
}

impl Groups {
    /// The slot of a new group of `blocks`.
    fn open(&mut self, owner: u32, blocks: &[Block]) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() - 1
        });
        let group = &mut self.groups[slot];
        group.blocks.clear();
        group.blocks.extend_from_slice(blocks);
        (group.owner, group.pieces, group.service) = (owner, 0, Nanos::ZERO);
        slot
    }

    /// One piece of an order has ended: if it is the last, all of the order's blocks have.
    fn piece_ended(&mut self, piece: &Finished, disk_of: &[Disk], each: &mut dyn FnMut(Ended)) {
        let slot = (piece.request.tag & !GROUP) as usize;
        let group = &mut self.groups[slot];
        group.pieces -= 1;
        group.service += piece.service_time;
        if group.pieces > 0 {
            return;
        }
        let share = Nanos(group.service.0 / group.blocks.len() as u64);
        let what = if piece.request.write { What::Written } else { What::Fetched(share) };
        for &block in &group.blocks {
            each(Ended { owner: group.owner, block, disk: disk_of[block.index()], what });
        }
        self.free.push(slot);
    }
}

/// The disks of a run.
pub struct Storage {
    drives: Vec<Drive>,
    sectors: u32,
    /// By block: its first sector, and its disk.
    sector_of: Vec<u64>,
    disk_of: Vec<Disk>,
    /// Where blocks lie that have been numbered since; `None` where they are made known by [`Storage::grow`].
    places: Option<Rc<Places>>,
    /// The level whose orders are being given.
    owner: u32,
    /// The process for which they are given, where that is known: for schedulers that tell processes apart.
    pub process: Option<u32>,
    groups: Groups,
    /// Completion times of requests in service with their disks, and instants at which a scheduler wants to be asked
    /// again, marked [`WAKE`].
    calendar: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// By disk: the last instant at which its scheduler has asked to be asked again.
    wakes_at: Vec<Nanos>,
    /// Blocks that needed no fetch and have not been handed over.
    allocated: VecDeque<Ended>,
    /// Blocks of orders that have ended and have not been handed over: see [`Storage::complete_one`].
    ended: VecDeque<Ended>,
    /// Disks that have been given requests since they were last looked at.
    touched: Vec<u32>,
}

impl Storage {
    /// Idle disks for blocks of `block_bytes`.
    ///
    /// # Errors
    /// A key or the profile at fault.
    pub fn try_new(keys: &DeviceKeys, block_bytes: u64, seed: u64) -> Result<Self, Error> {
        // A profile is parsed once.
        let mut device = build_device(&keys.model, keys.model_keys.clone())?;
        if !keys.array.is_independent() {
            let unit = keys.stripe_unit.0.div_ceil(SECTOR_BYTES);
            let joined = build_array(keys.array.name, keys.count, device, unit, keys.array_keys.clone());
            device = joined.map_err(|error| error.within("device"))?;
        }
        let scheduler = || build_scheduler(&keys.scheduler, keys.scheduler_keys.clone());
        let mut drives = Vec::with_capacity(keys.disks() as usize);
        for disk in 0..keys.disks() {
            let mut device = device.clone();
            device.reseed(stream_seed(seed, "disk", disk.into()));
            let mut drive = Drive::new(device, scheduler().map_err(|error| error.within("device.scheduler"))?);
            if let Some(commands) = &keys.commands {
                let inner = build_scheduler(&commands.scheduler, commands.scheduler_keys.clone());
                let inner = inner.map_err(|error| error.within("device.drive_scheduler"))?;
                drive = drive.with_commands(CommandQueue::new(inner, commands.depth));
            }
            drives.push(drive);
        }
        let sectors = headstart_device::sectors_of(block_bytes).max(1) as u32;
        Ok(Self {
            wakes_at: vec![Nanos::ZERO; drives.len()],
            drives,
            sectors,
            sector_of: Vec::new(),
            disk_of: Vec::new(),
            places: None,
            owner: 0,
            process: Some(0),
            groups: Groups::default(),
            calendar: BinaryHeap::new(),
            allocated: VecDeque::new(),
            ended: VecDeque::new(),
            touched: Vec::new(),
        })
    }

    /// Divides the buffer of each disk among `segments`, before anything is issued.
    ///
    /// # Errors
    /// `device.cache_segments`: the disks have no segments, or cannot have as many.
    pub fn divide_buffers(&mut self, segments: u64) -> Result<(), Error> {
        let mut drives = self.drives.iter_mut();
        let divided = drives.try_for_each(|drive| drive.divide_buffer(segments));
        divided.map_err(|error| error.within("device.cache_segments").into())
    }

    /// The disks.
    #[must_use]
    pub fn drives(&self) -> &[Drive] {
        &self.drives
    }

    /// Sectors of a block.
    #[must_use]
    pub fn block_sectors(&self) -> u32 {
        self.sectors
    }

    /// From now on blocks are looked up in `places`.
    pub fn look_up(&mut self, places: Rc<Places>) {
        self.places = Some(places);
    }

    /// The arm of `disk` is at `sector`, before anything has been asked of it.
    pub fn stand_at(&mut self, disk: Disk, sector: u64) {
        self.drives[disk.index()].stand_at(sector);
    }

    /// The orders that follow are those of level `owner`.
    pub fn for_level(&mut self, owner: u32) -> &mut Self {
        self.owner = owner;
        self
    }

    fn learn(&mut self) {
        let places = self.places.as_ref().expect("blocks that are ordered are known");
        let universe = places.universe();
        self.sector_of.extend_from_slice(&universe.sector_of[self.sector_of.len()..]);
        self.disk_of.extend_from_slice(&universe.disk_of[self.disk_of.len()..]);
    }

    /// Makes further blocks known: `sector_of` holds the first sector of each, those known before included.
    pub fn grow(&mut self, sector_of: &[u64]) {
        self.sector_of.extend_from_slice(&sector_of[self.sector_of.len()..]);
    }

    /// The earliest completion, or the earliest instant at which a scheduler wants to be asked again.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.calendar.peek().map(|Reverse((at, _))| *at)
    }

    /// Completes what ends next at `now`, if anything does: gives each of its blocks to `each` and starts the next
    /// request of its disk. Returns whether there was anything.
    #[inline]
    pub fn complete(&mut self, now: Nanos, mut each: impl FnMut(Ended)) -> bool {
        if let Some(allocated) = self.allocated.pop_front() {
            each(allocated);
            return true;
        }
        let Some(Reverse((_, code))) = self.calendar.peek().filter(|next| next.0 .0 <= now).copied() else {
            return false;
        };
        self.calendar.pop();
        let disk = code & !WAKE;
        if code & WAKE == 0 {
            let Self { drives, groups, disk_of, .. } = self;
            drives[disk as usize].finish(now, |piece| {
                let Finished { request, service_time, .. } = piece;
                if request.tag & GROUP != 0 {
                    return groups.piece_ended(&piece, disk_of, &mut each);
                }
                let what = if request.write { What::Written } else { What::Fetched(service_time) };
                each(Ended { owner: 0, block: Block(request.tag as u32), disk: Disk(disk), what });
            });
        }
        self.start(now, disk);
        true
    }

    /// The same, one block at a time: for those who issue orders between one and the next.
    pub fn complete_one(&mut self, now: Nanos) -> Option<Ended> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let mut ended = std::mem::take(&mut self.ended);
            let any = self.complete(now, |block| ended.push_back(block));
            self.ended = ended;
            if !any {
                return None;
            }
        }
    }

    /// Starts what has been issued at `now`. Called once all of an instant's decisions have been queued, so that
    /// the schedulers see them together.
    #[inline]
    pub fn start_issued(&mut self, now: Nanos) {
        while let Some(disk) = self.touched.pop() {
            self.start(now, disk);
        }
    }

    #[inline]
    fn start(&mut self, now: Nanos, disk: u32) {
        loop {
            match self.drives[disk as usize].start(now) {
                Started::Ends(end) => self.calendar.push(Reverse((end, disk))),
                Started::Wakes(at) => {
                    if self.wakes_at[disk as usize] != at {
                        self.wakes_at[disk as usize] = at;
                        self.calendar.push(Reverse((at, disk | WAKE)));
                    }
                    return;
                }
                Started::Nothing => return,
            }
        }
    }
}

impl Storage {
    #[inline]
    fn submit(&mut self, now: Nanos, disk: Disk, (sector, sectors): (u64, u32), kind: Kind, tag: u64) {
        let request = Request {
            write: kind == Kind::Write,
            prefetch: kind == Kind::Prefetch,
            process: self.process,
            ..Request::read(sector, sectors, tag)
        };
        self.drives[disk.index()].submit(now, request);
        if self.touched.last() != Some(&disk.0) {
            self.touched.push(disk.0);
        }
    }

    /// Nothing but an arrival: handed over when this instant comes round again.
    #[cold]
    fn allocate(&mut self, now: Nanos, order: &Order<'_>) {
        let (owner, block, disk) = (self.owner, order.blocks[0], order.disk);
        self.allocated.push_back(Ended { owner, block, disk, what: What::Allocated });
        self.calendar.push(Reverse((now, disk.0 | WAKE)));
    }

    /// An order of several blocks: one request for each run of sectors on a disk.
    fn issue_group(&mut self, now: Nanos, order: &Order<'_>) {
        if order.blocks.iter().any(|block| block.index() >= self.sector_of.len()) {
            self.learn();
        }
        let slot = self.groups.open(self.owner, order.blocks);
        let place = |storage: &Self, at: usize| {
            let block = order.blocks[at].index();
            (storage.disk_of[block], storage.sector_of[block])
        };
        let (mut run, mut sectors) = (place(self, 0), self.sectors_of(order.blocks[0]));
        for at in 1..order.blocks.len() {
            let ((disk, sector), more) = (place(self, at), self.sectors_of(order.blocks[at]));
            if (disk, sector) == (run.0, run.1 + sectors) && sectors < PIECE_SECTORS_MAX {
                sectors += more;
                continue;
            }
            self.submit_piece(now, run, sectors, order.kind, slot);
            (run, sectors) = ((disk, sector), more);
        }
        self.submit_piece(now, run, sectors, order.kind, slot);
    }

    /// Sectors of a block: of a whole one, or of a fragment.
    #[inline]
    fn sectors_of(&self, block: Block) -> u64 {
        let short = self.places.as_ref().and_then(|places| places.universe().short(block));
        u64::from(short.unwrap_or(self.sectors))
    }

    fn submit_piece(&mut self, now: Nanos, (disk, sector): (Disk, u64), sectors: u64, kind: Kind, slot: usize) {
        self.groups.groups[slot].pieces += 1;
        self.submit(now, disk, (sector, sectors as u32), kind, GROUP | slot as u64);
    }
}

/// Sectors of a request at most, beside the last block's: keeps them within 32 bits.
const PIECE_SECTORS_MAX: u64 = 1 << 30;

impl Backend for Storage {
    #[inline]
    fn warm(&self, block: Block) -> u32 {
        self.sector_of[block.index()] as u32
    }

    #[inline]
    fn issue(&mut self, now: Nanos, order: Order<'_>) {
        match order {
            Order { kind: Kind::Allocate, .. } => self.allocate(now, &order),
            Order { blocks: &[block], disk, kind } if self.owner == 0 && self.places.is_none() => {
                let sector = self.sector_of[block.index()];
                self.submit(now, disk, (sector, self.sectors), kind, u64::from(block.0));
            }
            _ => self.issue_group(now, &order),
        }
    }
}
