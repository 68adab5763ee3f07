//! One turn of the loop: read from clients, run the exports, write to clients. A turn serves a limited number of
//! connections, and each moves a bounded number of bytes, so that busy connections delay the others for at most that
//! long. Connections that had nothing in flight go first, in up to half of the turn, as in fq_codel (RFC 8290).

use std::sync::PoisonError;

use headstart_nbd::Request;

use super::connection::{Connection, Gone, Wanted};
use super::limits::{turn_bytes, Turn, TURN_CONNECTIONS};
use super::{EmulatedLink, Observer, PendingReply, Server};
use crate::work::{Answer, ClientRequest, Work};

/// Bytes copied from the page cache in one turn, not counting the last read.
const AT_ONCE_TURN: usize = 2 << 20;

impl Server {
    /// Applies `does` to a connection, and updates its memory use.
    fn with<R>(&mut self, number: u64, does: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let connection = self.connections.get_mut(&number)?;
        let before = connection.held();
        let result = does(connection);
        self.taken.change(before, connection.held());
        Some(result)
    }

    /// The export chosen by a connection.
    fn export_of(&self, number: u64) -> Option<usize> {
        let name = self.connections.get(&number)?.export()?;
        self.names.iter().position(|export| export.name == name)
    }

    /// Does the pending work, as far as it fits into one turn.
    pub(super) fn work(&mut self, observer: &mut dyn Observer) {
        for (export, completed) in self.done.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.exports[export].conductor.completed(completed);
            self.exports[export].dirty = true;
        }
        for export in 0..self.exports.len() {
            self.take_ended(export);
            let crossed = self.exports[export].link.as_ref().map(EmulatedLink::crossed).unwrap_or_default();
            crossed.into_iter().for_each(|(id, answer)| self.answer(export, id, answer));
        }
        self.at_once_left = AT_ONCE_TURN;
        self.start_put_off();
        let mut wanted = Vec::new();
        let active = self.active.take(TURN_CONNECTIONS);
        let bytes = turn_bytes(active.len());
        for number in active {
            let (names, (own, free)) = (std::mem::take(&mut self.names), self.taken.free());
            let turn = Turn { bytes, own, free };
            let read = self.with(number, |connection| connection.read(&names[..], turn, &mut wanted));
            self.names = names;
            let connection = self.connections.get_mut(&number);
            if let Some(how) = connection.and_then(|connection| connection.stream().newly_encrypted()) {
                observer.happened(self.now, number, "encrypted", &how);
            }
            let export = self.export_of(number);
            for wanted in wanted.drain(..) {
                let export = export.expect("a client that asks has chosen one");
                self.ask(number, export, wanted, observer);
            }
            match read {
                Some(Ok(())) => self.answered.push(number),
                Some(Err(gone)) => self.close(number, gone, observer),
                None => {}
            }
        }
        for index in 0..self.exports.len() {
            let served = &mut self.exports[index];
            let due = served.conductor.next_timer().is_some_and(|at| at <= self.now);
            if std::mem::take(&mut served.dirty) || due {
                self.act(index);
            }
        }
        self.write(bytes, observer);
        self.start_put_off();
        (0..self.exports.len()).for_each(|index| self.take_ended(index));
        for number in self.taken.fed() {
            self.active.push(number);
        }
        self.accept_waiting(observer);
    }

    /// Starts work on an export's backing, or postpones it if it would delay clients now.
    pub(super) fn start_or_put_off(&mut self, index: usize, id: u64, work: Work) {
        if let (Work::Read { demand, .. }, true) = (&work, self.exports[index].pool.reads_at_once) {
            // Send replies to clients before copying prefetches.
            if !demand || self.at_once_left == 0 || !self.put_off.is_empty() {
                let queue = if *demand { &mut self.put_off } else { &mut self.prefetches };
                return queue.push_back((index, id, work));
            }
            self.takes_at_once(&work);
        }
        self.start(index, id, work);
    }

    fn takes_at_once(&mut self, work: &Work) {
        if let Work::Read { buffers, .. } = work {
            let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
            self.at_once_left = self.at_once_left.saturating_sub(bytes);
        }
    }

    fn start_put_off(&mut self) {
        while self.at_once_left > 0 {
            let Some((index, id, work)) = self.put_off.pop_front().or_else(|| self.prefetches.pop_front()) else {
                return;
            };
            self.takes_at_once(&work);
            self.start(index, id, work);
        }
    }

    fn ask(&mut self, number: u64, export: usize, wanted: Wanted, observer: &mut dyn Observer) {
        let Wanted { request, op, cost } = wanted;
        let (client, id) = (number as u32, self.next_request);
        self.next_request += 1;
        observer.requested(self.now, client, export, &request);
        let Request { offset, length, .. } = request;
        self.exports[export].conductor.request(ClientRequest { id, client, offset, length, op });
        self.exports[export].dirty = true;
        self.pending_replies.insert(id, PendingReply { connection: number, request, cost });
    }

    pub(super) fn answer(&mut self, export: usize, id: u64, answer: Answer) {
        let Some(PendingReply { connection: number, request, cost }) = self.pending_replies.remove(&id) else { return };
        if self.connections.contains_key(&number) {
            self.with(number, |connection| connection.reply(&request, cost, answer));
            self.answered.push(number);
            return;
        }
        self.taken.ends(cost);
        if let Answer::Data(reply) = answer {
            self.exports[export].conductor.reuse(reply);
        }
    }

    /// Writes to the connections of this turn and to those with new answers. Those with more to write stay active.
    fn write(&mut self, bytes: usize, observer: &mut dyn Observer) {
        let mut used = Vec::new();
        for number in self.answered.take(usize::MAX) {
            let Some(written) = self.with(number, |connection| connection.write_into(bytes, &mut used)) else {
                continue;
            };
            if let Some(export) = self.export_of(number) {
                used.drain(..).for_each(|reply| self.exports[export].conductor.reuse(reply));
            }
            used.clear();
            let connection = &self.connections[&number];
            match written {
                Ok(()) if connection.is_over() => self.close(number, Gone(None), observer),
                Ok(()) if connection.is_starved() && !connection.may_write() => self.taken.starved.push(number),
                Ok(()) if connection.may_read() || connection.may_write() => self.active.push(number),
                Ok(()) => {}
                Err(gone) => self.close(number, gone, observer),
            }
        }
    }

    pub(super) fn close(&mut self, number: u64, gone: Gone, observer: &mut dyn Observer) {
        let export = self.export_of(number);
        let Some(mut connection) = self.connections.remove(&number) else { return };
        // The memory of its requests is released when they have been answered.
        self.taken.leaves(connection.held(), connection.under_way());
        if let Some(export) = export {
            connection.unsent().for_each(|reply| self.exports[export].conductor.reuse(reply));
        }
        connection.stream().end();
        let _ = self.poll.registry().deregister(connection.stream());
        drop(connection);
        let (what, detail) = gone.0.map_or(("disconnected", String::new()), |why| ("refused", why));
        observer.happened(self.now, number, what, &detail);
    }
}
