//! What all clients may take together: connections, the time of a handshake, and memory for requests and replies.
//!
//! Memory is counted when the header of a request has been read, at what the request and its reply may take, and given back when the
//! last byte of the reply has been sent. A quarter of it is divided among all connections that there may be. Beyond its part, a client
//! may hold as much as then is still free (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998), so that
//! many clients that take no replies leave some. A request for which there is no room stays in its socket.

use std::collections::VecDeque;

use headstart_nbd::{Command, Request, EXTENTS_MAX};
use headstart_types::Nanos;

use super::connection::{Connection, Gone};
use super::turns::Active;
use super::{Observer, Server};

/// How long a client may take to choose an export, TLS included.
const HANDSHAKE_MAX: Nanos = Nanos::from_millis(10_000);
/// How long a client may hold memory that others wait for, without taking its replies or sending the rest of its write.
const HELD_MAX: Nanos = Nanos::from_millis(30_000);
/// How often memory that is no longer needed goes back to the system.
const GIVES_BACK_EVERY: Nanos = Nanos::from_millis(2_000);
/// Less is not worth the system calls.
const GIVES_BACK_MIN: usize = 16 << 20;
/// What all connections together move in one turn of the loop, and what each one moves at most and at least.
const TURN_BYTES: usize = 2 << 20;
const TURN_BYTES_MAX: usize = 1 << 20;
const TURN_BYTES_MIN: usize = 64 << 10;
/// Connections in a turn at most.
pub const TURN_CONNECTIONS: usize = TURN_BYTES / TURN_BYTES_MIN;

/// One part of so many is divided among all connections that there may be.
const OWN_PARTS: usize = 4;
/// What a request takes beside its bytes.
pub const REQUEST_COST: usize = 512;
/// And an extent of a reply, in the backing's words and in the protocol's.
const EXTENT_COST: usize = 24;

/// What a connection may take in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Bytes of its socket.
    pub bytes: usize,
    /// Bytes of memory that each connection may hold.
    pub own: usize,
    /// Bytes that are free for whichever needs more.
    pub free: usize,
}

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time. Clients beyond them wait to be accepted.
    pub connections: usize,
    /// Bytes of requests and replies.
    pub memory_bytes: usize,
}

/// What they take.
#[derive(Debug)]
pub struct Taken {
    limits: Limits,
    /// What connections hold beyond their own parts, and what requests take whose connections have ended.
    used: usize,
    /// The most that was used since memory was last given back to the system.
    peak: usize,
    gives_back: Nanos,
    /// Something has become free.
    freed: bool,
    /// Connections with a request for which there is no room, those first that have waited longest.
    pub starved: Active,
    /// Connections in the order in which they were accepted, with their times, up to the end of their handshakes.
    pub negotiating: VecDeque<(Nanos, u64)>,
    /// Clients may wait to be accepted, of which the system says nothing more.
    pub unaccepted: bool,
    /// That has been logged.
    pub is_logged: bool,
}

/// What a connection may move in one turn where so many have something to do.
pub fn turn_bytes(active: usize) -> usize {
    (TURN_BYTES / active.max(1)).clamp(TURN_BYTES_MIN, TURN_BYTES_MAX)
}

/// What a request and its reply take of memory while they are under way: whole pages, as those are what a reply keeps.
pub fn cost_of(request: Option<&Request>, page_bytes: u64) -> usize {
    let bytes = match request.map(|request| (request.command, request)) {
        Some((Command::Read { .. } | Command::Cache, request)) => {
            let (first, end) = (request.offset, request.offset + u64::from(request.length));
            ((end.div_ceil(page_bytes) - first / page_bytes) * page_bytes) as usize
        }
        Some((Command::Write { .. }, request)) => request.length as usize,
        Some((Command::BlockStatus { .. }, _)) => EXTENTS_MAX * EXTENT_COST,
        _ => 0,
    };
    REQUEST_COST + bytes
}

impl Taken {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: 0,
            peak: 0,
            gives_back: Nanos::ZERO,
            freed: false,
            starved: Active::default(),
            negotiating: VecDeque::new(),
            unaccepted: false,
            is_logged: false,
        }
    }

    /// What each connection may hold, and what is free beyond that.
    pub fn free(&self) -> (usize, usize) {
        let own = self.limits.memory_bytes / OWN_PARTS / self.limits.connections.max(1);
        let shared = self.limits.memory_bytes - own * self.limits.connections;
        (own, shared.saturating_sub(self.used))
    }

    /// A connection held `before` bytes, and holds `now`.
    pub fn change(&mut self, before: usize, now: usize) {
        let (own, _) = self.free();
        self.use_shared(before.saturating_sub(own), now.saturating_sub(own));
    }

    /// A connection that held so much has ended, with requests under way that take some of it.
    pub fn leaves(&mut self, held: usize, under_way: usize) {
        let (own, _) = self.free();
        self.use_shared(held.saturating_sub(own), under_way);
    }

    /// A request has ended whose connection had left.
    pub fn ends(&mut self, cost: usize) {
        self.use_shared(cost, 0);
    }

    fn use_shared(&mut self, before: usize, now: usize) {
        self.used = self.used - before + now;
        self.peak = self.peak.max(self.used);
        self.freed |= now < before;
    }

    /// The starved connections, if there may be room for one.
    pub fn fed(&mut self) -> Vec<u64> {
        if std::mem::take(&mut self.freed) {
            self.starved.take(usize::MAX)
        } else {
            Vec::new()
        }
    }

    /// Whether one more connection may be accepted.
    pub fn has_room(&self, connections: usize) -> bool {
        connections < self.limits.connections
    }

    /// Whether memory is to be given back now: more was used than is.
    fn is_to_give_back(&mut self, now: Nanos) -> Option<bool> {
        if now < self.gives_back {
            return None;
        }
        self.gives_back = now + GIVES_BACK_EVERY;
        let is_much = self.peak - self.used >= GIVES_BACK_MIN;
        self.peak = self.used;
        Some(is_much)
    }
}

impl Server {
    /// 10 times a second: clients that take too long, clients that wait to be accepted, and memory that is not needed.
    pub(super) fn look_after(&mut self, observer: &mut dyn Observer) {
        while let Some((_, number)) =
            self.taken.negotiating.front().filter(|(since, _)| *since + HANDSHAKE_MAX <= self.now)
        {
            let number = *number;
            self.taken.negotiating.pop_front();
            if self.connections.get(&number).is_some_and(|connection| connection.export().is_none()) {
                let why = format!("the handshake takes longer than {} s", HANDSHAKE_MAX.0 / 1_000_000_000);
                self.close(number, Gone(Some(why)), observer);
            }
        }
        let now = self.now;
        let is_held = |connection: &mut Connection| now - connection.moves(now) >= HELD_MAX;
        let held = self.connections.iter_mut().filter_map(|(number, each)| is_held(each).then_some(*number));
        let held: Vec<u64> = held.collect();
        if self.connections.values().any(Connection::is_starved) {
            for number in held {
                let why = "it holds memory that others wait for, and neither takes nor sends anything".to_owned();
                self.close(number, Gone(Some(why)), observer);
            }
        }
        self.accept_waiting(observer);
        if let Some(is_much) = self.taken.is_to_give_back(now) {
            let shrunk = self.exports.iter_mut().fold(false, |any, served| served.conductor.shrink() | any);
            if is_much || shrunk {
                // It takes the allocator's lock for some milliseconds at most.
                let _ =
                    std::thread::Builder::new().name("serve-memory".into()).spawn(headstart_host::memory::give_back);
            }
        }
    }
}
