//! Tracks acknowledged but unflushed changes of a server that may lose them.
//!
//! A server that was restarted, or another one at the same address, may not have changes that were acknowledged but not
//! flushed, and a new connection cannot detect that. Therefore a connection lost with unflushed changes is not replaced
//! until [`Change::Renew`](crate::work::Change::Renew) says that no cache holds any of them; until then all requests to
//! the server fail.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Error of a backing that may have lost acknowledged changes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Loss(String);

/// Creates the error of a backing that may have lost acknowledged changes.
#[must_use]
pub fn loss(reason: &str) -> io::Error {
    io::Error::other(Loss(reason.to_owned()))
}

/// Whether `error` was created by [`loss`].
#[must_use]
pub fn is_loss(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Loss>())
}

/// Copies `error` for another request.
pub(super) fn same(error: &io::Error) -> io::Error {
    if is_loss(error) {
        return loss(&error.to_string());
    }
    io::Error::new(error.kind(), error.to_string())
}

/// The state when a request began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    connection: u64,
    made: u64,
}

#[derive(Debug, Default)]
struct State {
    /// Number of connections before this one.
    connection: u64,
    /// Changes that this connection acknowledged, and the number of them that are flushed.
    made: u64,
    flushed: u64,
    /// Syncs in flight, and the number of changes flushed if none of them fails: the server may report the error of one
    /// sync to another.
    syncs: u64,
    flushed_by_then: u64,
    /// The connection is lost and not yet replaced.
    is_lost: bool,
    /// It may be replaced: no cache holds data that it brought.
    is_renewed: bool,
    /// Changes were given up earlier. The server may still hold them unflushed and lose them at any time.
    has_given_up: bool,
}

/// Changes acknowledged by successive connections.
#[derive(Debug, Default)]
pub struct Unflushed(Mutex<State>);

impl Unflushed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call this with the connection in hand, before sending a request over it.
    #[must_use]
    pub fn mark(&self) -> Mark {
        let state = self.lock();
        Mark { connection: state.connection, made: state.made }
    }

    /// Requests to replace the lost connection.
    ///
    /// # Errors
    /// It has acknowledged unflushed changes, and [`Unflushed::renew`] was not called yet.
    pub fn replace(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_renewed {
            return Ok(());
        }
        state.is_lost |= state.made > state.flushed || state.has_given_up;
        if state.is_lost {
            return Err(loss("the connection was lost, with writes that the other server had not flushed"));
        }
        Ok(())
    }

    /// The connection was replaced.
    pub fn replaced(&self) {
        let mut state = self.lock();
        let State { connection, has_given_up, .. } = *state;
        *state = State { connection: connection + 1, has_given_up, ..State::default() };
    }

    /// The server acknowledged a change over the connection of `mark`.
    ///
    /// # Errors
    /// That connection was lost, and the change may be lost with it.
    pub fn acknowledged(&self, mark: Mark) -> io::Result<()> {
        let mut state = self.lock();
        state.is_same(mark)?;
        state.made += 1;
        Ok(())
    }

    /// Runs `sync`, a flush or a change that must be stable, over the current connection.
    ///
    /// # Errors
    /// It failed, or its connection was lost.
    pub fn sync(&self, is_flush: bool, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mark = {
            let mut state = self.lock();
            state.syncs += 1;
            Mark { connection: state.connection, made: state.made }
        };
        let result = sync();
        let mut state = self.lock();
        if let Err(lost) = state.is_same(mark) {
            return result.and(Err(lost));
        }
        state.syncs -= 1;
        match &result {
            Ok(()) if is_flush => state.flushed_by_then = state.flushed_by_then.max(mark.made),
            Ok(()) => {}
            Err(_) => state.has_given_up |= state.made > state.flushed,
        }
        if state.syncs == 0 && !state.has_given_up {
            state.flushed = state.flushed.max(state.flushed_by_then);
        }
        result
    }

    /// Starts over with another server and a new connection.
    pub fn reset(&self) {
        *self.lock() = State::default();
    }

    /// No cache holds unflushed changes any more. `is_lost`: the connection is lost, even if this was not noticed here
    /// yet.
    pub fn renew(&self, is_lost: bool) {
        let mut state = self.lock();
        let State { connection, is_lost: was_lost, .. } = *state;
        *state = State {
            connection: connection + 1,
            is_renewed: is_lost || was_lost,
            has_given_up: true,
            ..State::default()
        };
    }
}

impl State {
    fn is_same(&self, mark: Mark) -> io::Result<()> {
        if self.is_lost || self.connection != mark.connection {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_unflushed_changes_is_not_replaced() {
        let unflushed = Unflushed::default();
        let first = unflushed.mark();
        assert!(unflushed.acknowledged(first).is_ok() && unflushed.acknowledged(first).is_ok());
        // A flush that began before the third change.
        let flushed = unflushed.sync(true, || unflushed.acknowledged(first));
        assert!(flushed.is_ok());
        let error = unflushed.replace().expect_err("the third change is not flushed");
        assert!(is_loss(&error) && !is_loss(&io::ErrorKind::ConnectionReset.into()));
        assert!(unflushed.sync(true, || Ok(())).is_err() && unflushed.replace().is_err());
        unflushed.renew(false);
        assert!(unflushed.acknowledged(first).is_err(), "the old connection's");
        assert!(unflushed.replace().is_ok());
        unflushed.replaced();
        // The second connection is lost, too; the server may still hold the changes given up before.
        assert!(unflushed.replace().is_err());
        unflushed.renew(false);
        assert!(unflushed.replace().is_ok());
    }

    #[test]
    fn a_connection_without_unflushed_changes_is_replaced() {
        let unflushed = Unflushed::default();
        let first = unflushed.mark();
        assert!(unflushed.acknowledged(first).is_ok() && unflushed.sync(true, || Ok(())).is_ok());
        assert!(unflushed.replace().is_ok());
        unflushed.replaced();
        assert!(unflushed.acknowledged(first).is_err(), "its connection is lost");
        assert!(unflushed.acknowledged(unflushed.mark()).is_ok() && unflushed.replace().is_err());
    }
    #[test]
    fn a_flush_beside_a_sync_that_fails_covers_nothing() {
        let unflushed = Unflushed::default();
        let failed = || -> io::Result<()> { Err(io::Error::other("broken")) };
        assert!(unflushed.sync(true, failed).is_err() && unflushed.replace().is_ok(), "there was nothing to be lost");
        assert!(unflushed.acknowledged(unflushed.mark()).is_ok());
        let outer = unflushed.sync(false, || unflushed.sync(true, || Ok(())).and_then(|()| failed()));
        assert!(outer.is_err() && unflushed.replace().is_err());
    }
}
