//! The simulated disks behind a level: drives, their queues, and the calendar of their completions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstart_device::{
    build_array, build_device, build_scheduler, CommandQueue, Drive, Request, Started, Statistics, SECTOR_BYTES,
};
use headstart_engine::{Backend, Kind, Order};
use headstart_types::{Block, Disk, Nanos};

use crate::scenario::DeviceKeys;
use crate::Error;

/// An order that has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The block has been fetched; the disk worked on it for that long.
    Fetched(Block, Disk, Nanos),
    /// The block needed no fetch.
    Allocated(Block, Disk),
    /// The block has been written.
    Written(Block, Disk),
}

/// The disks of a run.
pub struct Storage {
    drives: Vec<Drive>,
    sectors: u32,
    /// By block: its first sector.
    sector_of: Vec<u64>,
    /// Completion times of requests in service (false), and instants at which a scheduler wants to be asked again
    /// (true), with their disks.
    calendar: BinaryHeap<Reverse<(Nanos, bool, u32)>>,
    /// By disk: the last instant at which its scheduler has asked to be asked again.
    wakes_at: Vec<Nanos>,
    /// Orders that have ended and have not been handed over.
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
            device.reseed(seed.wrapping_add(u64::from(disk)));
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
            calendar: BinaryHeap::new(),
            ended: VecDeque::new(),
            touched: Vec::new(),
        })
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

    /// Makes further blocks known: `sector_of` holds the first sector of each, those known before included.
    pub fn grow(&mut self, sector_of: &[u64]) {
        self.sector_of.extend_from_slice(&sector_of[self.sector_of.len()..]);
    }

    /// The earliest completion, or the earliest instant at which a scheduler wants to be asked again.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.calendar.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Completes one request that ends at `now`, if there is one, and starts its disk's next.
    #[inline]
    pub fn complete(&mut self, now: Nanos) -> Option<Ended> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let Reverse((_, wake, disk)) = *self.calendar.peek().filter(|next| next.0 .0 <= now)?;
            self.calendar.pop();
            if !wake {
                let ended = &mut self.ended;
                self.drives[disk as usize].finish(now, |finished| {
                    let block = Block(finished.request.tag as u32);
                    ended.push_back(match finished.request.write {
                        false => Ended::Fetched(block, Disk(disk), finished.service_time),
                        true => Ended::Written(block, Disk(disk)),
                    });
                });
            }
            self.start(now, disk);
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
                Started::Ends(end) => self.calendar.push(Reverse((end, false, disk))),
                Started::Wakes(at) => {
                    if self.wakes_at[disk as usize] != at {
                        self.wakes_at[disk as usize] = at;
                        self.calendar.push(Reverse((at, true, disk)));
                    }
                    return;
                }
                Started::Nothing => return,
            }
        }
    }

    /// What each disk has done up to `now`.
    pub fn statistics(&self, now: Nanos) -> impl Iterator<Item = Statistics> + '_ {
        self.drives.iter().map(move |drive| drive.statistics(now))
    }
}

impl Backend for Storage {
    #[inline]
    fn warm(&self, block: Block) -> u32 {
        self.sector_of[block.index()] as u32
    }

    #[inline]
    fn issue(&mut self, now: Nanos, order: Order) {
        if order.kind == Kind::Allocate {
            // Handed over when this instant comes round again.
            self.ended.push_back(Ended::Allocated(order.block, order.disk));
            self.calendar.push(Reverse((now, true, order.disk.0)));
            return;
        }
        let request = Request {
            write: order.kind == Kind::Write,
            prefetch: order.kind == Kind::Prefetch,
            process: Some(0),
            ..Request::read(self.sector_of[order.block.index()], self.sectors, u64::from(order.block.0))
        };
        self.drives[order.disk.index()].submit(now, request);
        if self.touched.last() != Some(&order.disk.0) {
            self.touched.push(order.disk.0);
        }
    }
}
