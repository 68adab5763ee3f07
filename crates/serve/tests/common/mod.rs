//! An export on a virtual clock, before a backing in memory.

#![allow(dead_code)] // Each test uses a part of it.

use std::collections::BTreeMap;
use std::io;

use bytes::BytesMut;
use headstart_serve::conductor::{Conductor, Setting};
use headstart_serve::work::{Action, Answer, ClientRequest, Completed, Op, Work};
use headstart_sim::served;
use headstart_types::Nanos;
use toml::Table;

pub const PAGE: u64 = 4096;

pub fn conductor(level: &str, size_bytes: u64) -> Conductor {
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
    Conductor::new(setting, level.tier)
}

/// A backing in memory whose work ends when the test says so.
pub struct World {
    pub conductor: Conductor,
    pub bytes: Vec<u8>,
    pub now: Nanos,
    /// By when it ends, in the order in which it began.
    pub under_way: BTreeMap<(Nanos, u64), (u64, Work)>,
    begun: u64,
    /// By page: reads of it fail.
    pub bad: Vec<u64>,
    pub answers: BTreeMap<u64, Answer>,
    /// What each work takes, by its first page.
    pub takes: fn(u64) -> Nanos,
}

impl World {
    pub fn new(level: &str, bytes: Vec<u8>) -> Self {
        Self {
            conductor: conductor(level, bytes.len() as u64),
            bytes,
            now: Nanos::ZERO,
            under_way: BTreeMap::new(),
            begun: 0,
            bad: Vec::new(),
            answers: BTreeMap::new(),
            takes: |_| Nanos::from_millis(1),
        }
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
                    let first = if let Work::Read { offset, .. } = &work { offset / PAGE } else { 0 };
                    self.begun += 1;
                    self.under_way.insert((self.now + (self.takes)(first), self.begun), (id, work));
                }
                Action::Reply(id, answer) => assert!(self.answers.insert(id, answer).is_none(), "answered twice: {id}"),
            }
        }
    }

    fn carry_out(&mut self, id: u64, work: Work) -> Completed {
        let done = |buffers| Completed { id, buffers, result: Ok(Vec::new()) };
        match work {
            Work::Read { offset, mut buffers } => {
                let first = offset / PAGE;
                if self.bad.iter().any(|page| (first..first + buffers.len() as u64).contains(page)) {
                    return Completed { id, buffers, result: Err(io::Error::other("bad")) };
                }
                for (page, buffer) in (first..).zip(&mut buffers) {
                    let from = (page * PAGE) as usize;
                    let to = (from + PAGE as usize).min(self.bytes.len());
                    *buffer = BytesMut::from(&self.bytes[from..to]);
                    buffer.resize(PAGE as usize, 0);
                }
                done(buffers)
            }
            Work::Write { offset, data, .. } => {
                self.bytes[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
                done(Vec::new())
            }
            Work::Trim { offset, length, .. } | Work::Zero { offset, length, .. } => {
                self.bytes[offset as usize..(offset + length) as usize].fill(0);
                done(Vec::new())
            }
            Work::Flush | Work::Extents { .. } => done(Vec::new()),
            Work::Store { .. } => unreachable!("there is no spill file"),
        }
    }

    /// Lets the next thing end; false if nothing is under way.
    pub fn step(&mut self) -> bool {
        let Some(((at, _), (id, work))) = self.under_way.pop_first() else { return false };
        self.now = at.max(self.now);
        let completed = self.carry_out(id, work);
        self.conductor.completed(completed);
        self.instant();
        true
    }

    /// Lets so much time pass, and what happens in it happen.
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

    /// Asks, and waits for the answer.
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

pub fn data(answer: &Answer) -> &[u8] {
    match answer {
        Answer::Data(bytes, length) => &bytes[..*length],
        other => panic!("no bytes: {other:?}"),
    }
}
