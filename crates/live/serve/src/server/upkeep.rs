//! Accepts clients, and looks after the limits: clients that take too long leave, unused memory goes back to the system.

use std::io;

use headstart_types::Nanos;
use mio::{Interest, Token};

use super::connection::{Connection, Gone};
use super::{Observer, Server, CONNECTIONS};

/// Time for a client to choose an export, including TLS.
const HANDSHAKE_MAX: Nanos = Nanos::from_millis(10_000);
/// How long a client may hold memory that others wait for without taking replies or sending the rest of its write.
const HELD_MAX: Nanos = Nanos::from_millis(30_000);

impl Server {
    /// Accepts clients as long as there is room.
    pub(super) fn accept(&mut self, listener: usize, observer: &mut dyn Observer) {
        loop {
            if !self.taken.has_room(self.connections.len()) {
                self.taken.unaccepted = true;
                return;
            }
            let stream = match self.listeners[listener].accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors or memory: try again later, since the system does not report waiting clients
                // again.
                Err(error) => {
                    self.taken.unaccepted = true;
                    if !std::mem::replace(&mut self.taken.is_logged, true) {
                        observer.happened(self.now, self.next_connection, "not accepted", &error.to_string());
                    }
                    return;
                }
            };
            self.taken.is_logged = false;
            let number = self.next_connection;
            self.next_connection += 1;
            let mut connection = Connection::new(stream, self.settings.clone(), self.tls.clone());
            let token = Token(number as usize + CONNECTIONS);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(connection.stream(), token, interest).is_ok() {
                observer.happened(self.now, number, "connected", &connection.stream().peer());
                self.taken.change(0, connection.held());
                self.taken.negotiating.push_back((self.now, number));
                self.connections.insert(number, connection);
                self.accepted += 1;
                self.active.push(number);
            }
        }
    }

    /// Accepts clients that waited for room.
    pub(super) fn accept_waiting(&mut self, observer: &mut dyn Observer) {
        if std::mem::take(&mut self.taken.unaccepted) {
            (0..self.listeners.len()).for_each(|listener| self.accept(listener, observer));
        }
    }

    /// 10 times a second: drops clients that take too long, accepts waiting clients, and returns unused memory.
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
                // Takes the allocator's lock for some milliseconds at most.
                let _ =
                    std::thread::Builder::new().name("serve-memory".into()).spawn(headstart_host::memory::give_back);
            }
        }
    }
}
