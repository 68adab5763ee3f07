//! Limits for all clients together: connections, time of a handshake, and memory for requests and replies.
//!
//! Memory is charged when the header of a request has been read, at the maximum for the request and its reply, and
//! released when the last byte of the reply has been sent. A quarter of it is divided among the maximum number of
//! connections. Beyond its share, a client may hold as much as then remains free (dynamic thresholds: Choudhury and
//! Hahne, IEEE/ACM Transactions on Networking 6(2), 1998), so that many clients that take no replies leave some for
//! others. A request without room stays in its socket.

use std::collections::VecDeque;

use headstart_nbd::{Command, Request, EXTENTS_MAX};
use headstart_types::Nanos;

use super::active::Active;
use crate::settings::Settings;

/// How often unused memory is returned to the system.
const GIVES_BACK_EVERY: Nanos = Nanos::from_millis(2_000);
/// A smaller amount is not worth the system calls.
const GIVES_BACK_MIN: usize = 16 << 20;
/// Bytes that all connections move per turn of the loop, and the maximum and minimum per connection.
const TURN_BYTES: usize = 2 << 20;
const TURN_BYTES_MAX: usize = 1 << 20;
const TURN_BYTES_MIN: usize = 64 << 10;
/// Maximum number of connections per turn.
pub const TURN_CONNECTIONS: usize = TURN_BYTES / TURN_BYTES_MIN;

/// Divisor: this part of the memory is divided among the maximum number of connections.
const OWN_PARTS: usize = 4;
/// Memory of a request in addition to its bytes.
pub const REQUEST_COST: usize = 512;
/// Memory of an extent of a reply, for the backing's and the protocol's form.
const EXTENT_COST: usize = 24;

/// What a connection may use in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Bytes moved over its socket.
    pub bytes: usize,
    /// Each connection's own share of memory, in bytes.
    pub own: usize,
    /// Shared memory that is free, in bytes.
    pub free: usize,
}

/// Current use of the limits.
#[derive(Debug)]
pub struct Taken {
    /// Maximum number of connections. Further clients wait to be accepted.
    connections_max: usize,
    /// Memory for requests and replies.
    memory_bytes: usize,
    /// Memory that connections hold beyond their own shares, and that of requests whose connections have ended.
    used: usize,
    /// Maximum of `used` since memory was last returned to the system.
    peak: usize,
    gives_back: Nanos,
    /// Memory was released.
    freed: bool,
    /// Connections whose request has no room, longest waiting first.
    pub starved: Active,
    /// Connections in the handshake, with the time of acceptance, oldest first.
    pub negotiating: VecDeque<(Nanos, u64)>,
    /// Clients may be waiting to be accepted, without a further event.
    pub unaccepted: bool,
    /// The failure to accept was logged.
    pub is_logged: bool,
}

/// Bytes that a connection may move in one turn, among `active` connections with work.
pub fn turn_bytes(active: usize) -> usize {
    (TURN_BYTES / active.max(1)).clamp(TURN_BYTES_MIN, TURN_BYTES_MAX)
}

/// Memory of a request in flight and its reply, in whole pages, since a reply keeps whole pages.
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
    pub fn new(settings: &Settings, memory_bytes: usize) -> Self {
        Self {
            connections_max: settings.connections(),
            memory_bytes,
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

    /// Each connection's own share, and the free shared memory.
    pub fn free(&self) -> (usize, usize) {
        let own = self.memory_bytes / OWN_PARTS / self.connections_max.max(1);
        let shared = self.memory_bytes - own * self.connections_max;
        (own, shared.saturating_sub(self.used))
    }

    /// The memory of a connection changes from `before` to `now`.
    pub fn change(&mut self, before: usize, now: usize) {
        let (own, _) = self.free();
        self.use_shared(before.saturating_sub(own), now.saturating_sub(own));
    }

    /// A connection that held `held` has ended; its requests in flight still take `under_way`.
    pub fn leaves(&mut self, held: usize, under_way: usize) {
        let (own, _) = self.free();
        self.use_shared(held.saturating_sub(own), under_way);
    }

    /// A request of a connection that had ended is done.
    pub fn ends(&mut self, cost: usize) {
        self.use_shared(cost, 0);
    }

    fn use_shared(&mut self, before: usize, now: usize) {
        self.used = self.used - before + now;
        self.peak = self.peak.max(self.used);
        self.freed |= now < before;
    }

    /// The starved connections, if memory was released.
    pub fn fed(&mut self) -> Vec<u64> {
        if std::mem::take(&mut self.freed) {
            self.starved.take(usize::MAX)
        } else {
            Vec::new()
        }
    }

    pub fn has_room(&self, connections: usize) -> bool {
        connections < self.connections_max
    }

    /// Whether to return memory to the system now; `Some(true)` if the peak was well above the current use.
    pub fn is_to_give_back(&mut self, now: Nanos) -> Option<bool> {
        if now < self.gives_back {
            return None;
        }
        self.gives_back = now + GIVES_BACK_EVERY;
        let is_much = self.peak - self.used >= GIVES_BACK_MIN;
        self.peak = self.used;
        Some(is_much)
    }
}
