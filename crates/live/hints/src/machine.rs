//! The machine around a command that is only watched: one level, whose frames are the bytes prefetched and not yet
//! used, under a hinted policy (`headstart_engine`). References come from the kernel's trace; the policy's fetches go
//! to the disks' threads. A block server has this level above the others of its machine (`follow.rs`).
//!
//! Three things differ from a process that the machine simulates itself:
//!
//! - A reference becomes visible after it has happened: the kernel has already fetched its misses. A demand fetch ends
//!   at once.
//! - A command and its children read nearly in the recorded order. The hints are therefore shared, as among several
//!   processes (`headstart_policy::hinted`), and a position that others have overtaken by [`SLACK`] references is
//!   skipped.
//! - Trust grows: the level starts with few frames, and gets `growth` for each prefetched page that is used, up to the
//!   budget. When `used` pages are used, at most `frames_min + growth * used` others are prefetched. Pages that the
//!   command finds in the page cache prove nothing: programs share libraries. `growth` is 0 if frames come through
//!   [`Machine::allow`], as for commands.

use std::sync::Arc;

use headstart_engine::{Ask, Counts, IssueMode, Level, NoSupply, Stack, System, Tier, What};
use headstart_host::mailbox::Mailbox;
use headstart_policy::readahead::Asked;
use headstart_policy::registry::{replacement, Context, PolicyRow};
use headstart_policy::Hints;
use headstart_types::{Block, Disk, KeyError, Meetings, Nanos, Position, Program};
use toml::Table;

use super::universe::{HintedSpace, Universe};

/// References beyond a position after which it is skipped.
const SLACK: u32 = 256;
/// A policy divides think times by the number of processes that share its hints; this stands for that number.
const PROCESSES: u64 = 2;

/// The watched level.
pub const WATCHED: usize = 0;
/// How a machine with a watched level issues requests: there is no process that it simulates.
pub const MODE: IssueMode = IssueMode { whole: true, open: true, write_delay: None };

/// The parameters of a machine, beside the pages.
#[derive(Clone)]
pub struct Setting {
    /// The policy.
    pub row: &'static PolicyRow,
    /// Its keys.
    pub keys: Table,
    /// Frames at the start; at least 1.
    pub frames_min: u32,
    /// Maximum number of frames: the budget.
    pub frames_max: u32,
    /// Frames gained for each prefetched page that is used.
    pub growth: u32,
    /// The number of disks.
    pub disks: usize,
    /// Typical time of a disk for a page.
    pub service: Nanos,
    /// The part of it that depends on the page's size.
    pub transfer: Nanos,
    /// Reads that a disk serves at the same time.
    pub concurrency: u32,
    /// Mean time between two references of the recorded run.
    pub think: Nanos,
}

impl Setting {
    /// The watched level, of pages on the disks `disk_of` in the order of need. It holds no bytes.
    ///
    /// # Errors
    /// A key of the policy is wrong, or does not work with shared hints.
    pub fn tier(&self, disk_of: &[Disk]) -> Result<Tier, KeyError> {
        let blocks: Arc<[Block]> = (0..disk_of.len() as u32).map(Block).collect();
        let references = blocks.len() as Position;
        let program = Program {
            blocks: blocks.clone(),
            string_ends: [references].into(),
            portion_ends: [references].into(),
            string_of: vec![0; PROCESSES as usize].into(),
            regular: false,
            meetings: Meetings::AtEnd,
        };
        let context = Context {
            frames: self.frames_max,
            disks: self.disks,
            disk_of: disk_of.into(),
            hints: Some(Arc::new(Hints::all(blocks))),
            program: Some(Arc::new(program)),
            nominal_service: self.service,
            block_transfer: self.transfer,
            concurrency: self.concurrency,
            uniform: false,
            mean_compute: self.think,
            constant_compute: false,
            ..Context::plain(replacement("lru")?, self.frames_max, Vec::new(), disk_of.len())
        };
        let policy = self.row.build(&self.row.keys.read(self.keys.clone())?, &context)?;
        let frames = self.frames_min.min(self.frames_max);
        let mut level = Level::new(policy, frames, &[], disk_of, self.disks);
        // A demanded page is there already. A prefetch ordered along with it would count as there, too, and no disk
        // would read it.
        level.separate_prefetches();
        Ok(Tier::new(level, false))
    }
}

/// Whether the position of a block is over, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Not over.
    No,
    /// The command has referenced the block.
    Seen,
    /// Enough has been referenced beyond it.
    Skipped,
    /// It is metadata that has come.
    Assumed,
}

/// A machine for one command, or for the clients of a server.
pub struct Machine<S = Universe> {
    /// The watched level, and the levels of a server below it.
    pub system: System<Mailbox, S, NoSupply>,
    /// By block: whether it has been referenced; whether a disk has read it; whether it was answered, read or not;
    /// whether it was referenced while ordered but not there; whether its position is over.
    referenced: Vec<bool>,
    read: Vec<bool>,
    answered: Vec<bool>,
    late: Vec<bool>,
    over: Vec<Over>,
    /// Late blocks that no disk has read, either so far or because the command itself had.
    late_unread: u64,
    /// The lowest position that is not over, and the number of references seen beyond it.
    lowest: u32,
    beyond: u32,
    frames_max: u32,
    growth: u32,
    /// Frames earned but not added yet.
    earned: u64,
    /// Blocks that a disk has read, whose positions were skipped, and that are still unused.
    passed_unused: u64,
    last_reference: Nanos,
}

impl Machine {
    /// The state at time zero.
    ///
    /// # Errors
    /// A key of the policy is wrong, or does not work with shared hints.
    pub fn try_new(setting: &Setting, universe: Universe) -> Result<Self, KeyError> {
        let disk_of: Vec<Disk> = universe.disks().collect();
        let mailbox = Mailbox::of_levels(Some(WATCHED as u32), None);
        let stack = Stack::new(vec![setting.tier(&disk_of)?], 1, mailbox, universe, super::PAGE_BYTES);
        let Ok(system) = System::try_new(stack, Vec::new(), MODE, None);
        Ok(Self::over(system, setting))
    }
}

impl<S: HintedSpace> Machine<S> {
    /// Watches the first level of `system`, which was made for `setting`.
    #[must_use]
    pub fn over(system: System<Mailbox, S, NoSupply>, setting: &Setting) -> Self {
        let pages = system.stack.space.hinted();
        Self {
            system,
            referenced: vec![false; pages],
            read: vec![false; pages],
            answered: vec![false; pages],
            late: vec![false; pages],
            over: vec![Over::No; pages],
            late_unread: 0,
            lowest: 0,
            beyond: 0,
            frames_max: setting.frames_max,
            growth: setting.growth,
            earned: 0,
            passed_unused: 0,
            last_reference: Nanos::ZERO,
        }
    }

    /// The places of blocks.
    #[must_use]
    pub fn universe(&self) -> &S {
        &self.system.stack.space
    }

    /// The current number of frames.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.level().frames()
    }

    fn level(&self) -> &Level {
        &self.system.stack.tiers[WATCHED].level
    }

    /// The counters of the level.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.level().counts()
    }

    /// Pages that a disk has read for the command and that it has used.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.counts().prefetches_used - self.late_unread
    }

    /// The part of [`used`](Self::used) that the command had to wait for.
    #[must_use]
    pub fn used_late(&self) -> u64 {
        self.counts().prefetches_late - self.late_unread
    }

    /// Pages read for the command that it has passed without using them.
    #[must_use]
    pub fn passed_unused(&self) -> u64 {
        self.passed_unused
    }

    /// Whether it has the maximum number of frames.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.frames() == self.frames_max
    }

    /// Whether every position is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.lowest as usize == self.over.len()
    }

    /// Whether all frames of the level hold unused prefetches.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let counts = self.counts();
        let unused = counts.prefetches - counts.prefetches_used;
        unused >= u64::from(self.level().frames())
    }

    /// Whether `block` has been referenced.
    #[must_use]
    pub fn is_referenced(&self, block: Block) -> bool {
        self.referenced[block.index()]
    }

    /// Whether a disk has read `block` for the command.
    #[must_use]
    pub fn has_read(&self, block: Block) -> bool {
        self.read[block.index()]
    }

    /// Whether `block` is near the command's position in its hints: closer than where positions are skipped.
    #[must_use]
    pub fn is_near(&self, block: Block) -> bool {
        (self.lowest..self.lowest.saturating_add(SLACK)).contains(&block.0)
    }

    /// Counts `pages` hinted pages as proof, though the command had to read them itself.
    pub fn earn(&mut self, pages: u64) {
        self.earned = self.earned.saturating_add(pages.saturating_mul(self.growth.into()));
    }

    /// Adds `frames` earned frames.
    pub fn add_frames(&mut self, frames: u64) {
        self.earned = self.earned.saturating_add(frames);
    }

    /// Makes room for at least `pages` more prefetches beside the unused ones.
    pub fn allow(&mut self, pages: u64) {
        let counts = self.counts();
        let frames = counts.prefetches - counts.prefetches_used + pages;
        self.add_frames(frames.saturating_sub(u64::from(self.frames()) + self.earned));
    }

    /// The command has referenced `block` for the first time.
    pub fn observe(&mut self, now: Nanos, block: Block) {
        if std::mem::replace(&mut self.referenced[block.index()], true) {
            return;
        }
        let before = self.over[block.index()];
        let was_unused = self.level().state(block).is_unused_prefetch();
        self.passed_unused -= u64::from(before == Over::Skipped && self.read[block.index()]);
        self.earn(was_unused.into());
        let late_before = self.counts().prefetches_late;
        self.use_block(now, block);
        if self.counts().prefetches_late > late_before {
            self.late[block.index()] = true;
            self.late_unread += u64::from(!self.read[block.index()]);
        }
        if before == Over::No {
            self.over[block.index()] = Over::Seen;
            self.beyond += 1;
            self.advance(now);
        }
    }

    /// The referenced page is there: the time until the next reference is think time, not waiting.
    pub fn answered(&mut self, now: Nanos) {
        self.last_reference = self.last_reference.max(now);
    }

    /// `block` is metadata that has come, and counts as referenced: its reference would not be visible. This proves
    /// nothing about others.
    pub fn assume_used(&mut self, now: Nanos, block: Block) {
        let over = &mut self.over[block.index()];
        if *over == Over::No {
            *over = Over::Assumed;
            self.use_block(now, block);
            self.advance(now);
        }
    }

    fn use_block(&mut self, now: Nanos, block: Block) {
        let (file, first) = self.universe().place(block);
        let compute = Nanos((now.0 - self.last_reference.0).saturating_mul(PROCESSES));
        self.last_reference = now;
        let asked = Asked { file, first, count: 1, client: 0, ends_inside: false };
        let ask = Ask { id: 0, asked, blocks: &[block], write: false, quiet: false, position: block.0, compute };
        self.system.observe(now, WATCHED, &ask);
    }

    /// Skips overtaken positions.
    fn advance(&mut self, now: Nanos) {
        while let Some(over) = self.over.get_mut(self.lowest as usize) {
            if *over != Over::No {
                self.beyond -= u32::from(*over == Over::Seen);
            } else if self.beyond > SLACK {
                *over = Over::Skipped;
                // A page that was only ordered, or was already in the page cache, costs nothing.
                self.passed_unused += u64::from(self.read[self.lowest as usize]);
                self.system.skip(now, WATCHED, self.lowest, Block(self.lowest));
            } else {
                break;
            }
            self.lowest += 1;
        }
    }

    /// `block` has been fetched, which took `service`; `None`: no fetch was needed.
    pub fn fetched(&mut self, block: Block, service: Option<Nanos>) {
        if service.is_some() {
            let passed = self.over[block.index()] == Over::Skipped && !self.referenced[block.index()];
            let again = std::mem::replace(&mut self.read[block.index()], true);
            self.passed_unused += u64::from(passed && !again);
            self.late_unread -= u64::from(self.late[block.index()] && !again);
        }
        self.answered[block.index()] = true;
        let what = service.map_or(What::Unneeded, What::Fetched);
        self.system.stack.devices.end(WATCHED as u32, what, block);
    }

    /// Handles all events that are due. Appends the policy's prefetches to `orders`, each block once: one that was
    /// evicted from the level for references elsewhere is still in the kernel's page cache.
    pub fn turn(&mut self, now: Nanos, orders: &mut Vec<Block>) {
        loop {
            self.grow();
            let Ok(()) = self.system.turn(now, &[]);
            let devices = &mut self.system.stack.devices;
            for block in std::mem::take(&mut devices.wanted) {
                if self.answered[block.index()] {
                    devices.end(WATCHED as u32, What::Unneeded, block);
                } else {
                    orders.push(block);
                }
            }
            if !devices.has_ended() {
                return;
            }
        }
    }

    /// Adds the frames earned since the last call.
    fn grow(&mut self) {
        let earned = std::mem::take(&mut self.earned);
        let room = self.frames_max.saturating_sub(self.level().frames());
        let more = u32::try_from(earned).unwrap_or(u32::MAX).min(room);
        if more > 0 {
            self.system.stack.tiers[WATCHED].level.grow(more);
        }
    }
}
