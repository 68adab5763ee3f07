//! An export on a virtual clock, in front of a backing in memory.

#![allow(dead_code)] // Each test uses a part of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use headstart_assemble::served;
use headstart_hints::Prepared;
use headstart_serve::backing::{About, Backing};
use headstart_serve::change::Change;
use headstart_serve::conductor::{Conductor, Setting};
use headstart_serve::spill::Spill;
use headstart_serve::work::{Action, Answer, ClientRequest, Completed, Op, Work};
use headstart_types::Nanos;
use toml::Table;

pub const PAGE: u64 = 4096;

pub fn conductor(level: &str, size_bytes: u64, spill: Option<Spill>, hints: Option<Prepared>) -> Conductor {
    let keys: Table = level.parse().expect("the keys are TOML");
    let level = served(keys, PAGE).expect("the keys are right");
    let setting = Setting {
        size_bytes,
        page_bytes: PAGE,
        frames: level.frames,
        under_way_max: 8,
        read_bytes_max: 16 * PAGE,
        fails_in_parts: true,
    };
    Conductor::new(setting, level.tier, spill, hints)
}

/// Bytes in memory, some of which cannot be read or changed.
#[derive(Default)]
pub struct Memory {
    pub bytes: Vec<u8>,
    /// Pages whose reads fail.
    pub bad: Vec<u64>,
    /// Pages whose changes fail without effect.
    pub fixed: Vec<u64>,
    /// If set, the next sync fails and leaves these bytes.
    pub left: Option<Vec<u8>>,
}

/// [`Memory`] as a backing.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Memory>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap()
    }
}

/// Whether the range touches one of `pages`.
pub fn meets(pages: &[u64], offset: u64, length: u64) -> bool {
    let touched = offset / PAGE..(offset + length).div_ceil(PAGE);
    pages.iter().any(|page| touched.contains(page))
}

impl Backing for Shared {
    fn about(&self) -> About {
        About::of(self.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let memory = self.lock();
        if meets(&memory.bad, offset, buffers.len() as u64 * PAGE) {
            return Err(io::Error::other("bad"));
        }
        for (page, buffer) in (offset / PAGE..).zip(buffers) {
            let from = memory.bytes.len().min((page * PAGE) as usize);
            let to = (from + PAGE as usize).min(memory.bytes.len());
            buffer.fill(0);
            buffer[..to - from].copy_from_slice(&memory.bytes[from..to]);
        }
        Ok(())
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        let mut memory = self.lock();
        let Some(bytes) = change.bytes() else {
            return match memory.left.take() {
                Some(left) => {
                    memory.bytes = left;
                    Err(io::Error::other("not synced"))
                }
                None => Ok(()),
            };
        };
        if meets(&memory.fixed, bytes.start, bytes.end - bytes.start) {
            return Err(io::Error::other("fixed"));
        }
        let bytes = &mut memory.bytes[bytes.start as usize..bytes.end as usize];
        match change {
            Change::Write { data, .. } => bytes.copy_from_slice(data),
            _ => bytes.fill(0),
        }
        Ok(())
    }
}

/// An export over a backing in memory, whose work ends when the test decides.
pub struct World {
    pub conductor: Conductor,
    shared: Shared,
    pub now: Nanos,
    /// Keyed by end time and sequence number.
    pub under_way: BTreeMap<(Nanos, u64), (u64, Work)>,
    begun: u64,
    pub answers: BTreeMap<u64, Answer>,
    /// Duration of a read, by its first page, and of other work, by a number of its own.
    pub takes: fn(u64) -> Nanos,
}

impl World {
    pub fn new(level: &str, bytes: Vec<u8>) -> Self {
        let shared = Shared::default();
        shared.lock().bytes = bytes;
        Self::before(level, shared.clone(), None, None)
    }

    /// Places the level of `spill` between the cache and `shared`, and follows `hints`.
    pub fn before(level: &str, shared: Shared, spill: Option<Spill>, hints: Option<Prepared>) -> Self {
        let conductor = conductor(level, shared.about().size_bytes, spill, hints);
        Self {
            conductor,
            shared,
            now: Nanos::ZERO,
            under_way: BTreeMap::new(),
            begun: 0,
            answers: BTreeMap::new(),
            takes: |_| Nanos::from_millis(1),
        }
    }

    /// The content of the backing.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        self.shared.lock()
    }

    pub fn ask(&mut self, id: u64, offset: u64, length: u32, op: Op) {
        self.conductor.request(ClientRequest { id, client: 1, offset, length, op });
    }

    pub fn instant(&mut self) {
        let mut actions = Vec::new();
        self.conductor.instant(self.now, &mut actions);
        for action in actions {
            match action {
                Action::Start(id, work) => {
                    self.begun += 1;
                    let first = if let Work::Read { offset, .. } = &work { offset / PAGE } else { self.begun };
                    self.under_way.insert((self.now + (self.takes)(first), self.begun), (id, work));
                }
                Action::Reply(id, answer) => assert!(self.answers.insert(id, answer).is_none(), "answered twice: {id}"),
            }
        }
    }

    /// Completes the next work; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(((at, _), (id, work))) = self.under_way.pop_first() else { return false };
        self.now = at.max(self.now);
        let mut work = work;
        let result = work.carry_out(&self.shared);
        self.conductor.completed(Completed { id, buffers: work.into_buffers(), result });
        self.instant();
        true
    }

    /// Advances the clock by `time`, with everything that happens in it.
    pub fn pass(&mut self, time: Nanos) {
        let until = self.now + time;
        loop {
            let ends = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let timer = self.conductor.next_timer();
            let Some(next) = ends.into_iter().chain(timer).min().filter(|at| *at < until) else { break };
            if ends == Some(next) {
                self.step();
            } else {
                self.now = next.max(self.now);
                self.instant();
            }
        }
        self.now = until;
    }

    /// Sends a read and waits for its answer.
    pub fn read(&mut self, id: u64, offset: u64, length: u32) -> Answer {
        self.ask(id, offset, length, Op::Read);
        self.instant();
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            assert!(self.step(), "nothing brings the answer to {id}");
        }
    }
}

pub fn numbered(pages: u64, rest: usize) -> Vec<u8> {
    (0..pages * PAGE + rest as u64).map(|at| ((at / PAGE) * 31 + at % 251) as u8).collect()
}

pub fn data(answer: &Answer) -> Vec<u8> {
    match answer {
        Answer::Data(data) => data.slices(0).collect::<Vec<_>>().concat(),
        other => panic!("no bytes: {other:?}"),
    }
}
