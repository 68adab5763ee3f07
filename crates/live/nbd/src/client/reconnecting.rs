//! A client that replaces a lost connection, for storage that outlives its server's restarts.
//!
//! A lost connection fails its requests; the next request connects again. A server that comes back with another size has
//! other content, and is refused. Everything else (flags, block sizes) is what the current connection says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Client, ClientError, ConnectOptions};
use crate::Uri;

/// Limits of a server that stands for a disk: a reachable one accepts and negotiates within milliseconds, and Linux waits
/// as long for a command of a SCSI disk (`SD_TIMEOUT`).
pub const DISK_LIMITS: ConnectOptions = ConnectOptions {
    connection_count: 1,
    connect_time_max: Duration::from_secs(10),
    reply_time_max: Some(Duration::from_secs(30)),
};

pub struct Reconnecting {
    uri: Uri,
    options: ConnectOptions,
    size_bytes: u64,
    /// Held while a connection is made.
    upstream: Mutex<Upstream>,
    /// Attempts to reconnect that have ended.
    attempts: AtomicU64,
}

struct Upstream {
    client: Arc<Client>,
    /// The error of the last attempt to reconnect.
    failure: Option<ClientError>,
}

impl Reconnecting {
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(uri: Uri, options: ConnectOptions) -> Result<Self, ClientError> {
        let client = Arc::new(Client::connect(&uri, options)?);
        let (size_bytes, upstream) = (client.export().size_bytes, Mutex::new(Upstream { client, failure: None }));
        Ok(Self { uri, options, size_bytes, upstream, attempts: AtomicU64::new(0) })
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Upstream> {
        self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection; a lost one is replaced.
    ///
    /// # Errors
    /// As [`Client::connect`], or [`ClientError::Resized`]. A request that waited for an attempt that failed does not try
    /// again, so each request waits for at most one attempt.
    pub fn client(&self) -> Result<Arc<Client>, ClientError> {
        self.client_if(|| Ok(()), || ())
    }

    /// Like [`Self::client`], but a lost connection is replaced only if `may_replace` allows it; `replaced` is called
    /// before any request uses the new one.
    ///
    /// # Errors
    /// As [`Self::client`], or that of `may_replace`.
    pub fn client_if<E: From<ClientError>>(
        &self,
        may_replace: impl FnOnce() -> Result<(), E>,
        replaced: impl FnOnce(),
    ) -> Result<Arc<Client>, E> {
        let attempts = self.attempts.load(Ordering::SeqCst);
        let mut upstream = self.lock();
        if !upstream.client.is_lost() {
            return Ok(upstream.client.clone());
        }
        may_replace()?;
        if self.attempts.load(Ordering::SeqCst) > attempts {
            if let Some(failure) = &upstream.failure {
                return Err(failure.clone().into());
            }
        }
        let again = Client::connect(&self.uri, self.options).and_then(|client| {
            let is_same = client.export().size_bytes == self.size_bytes;
            is_same.then_some(client).ok_or(ClientError::Resized)
        });
        upstream.failure = again.as_ref().err().cloned();
        self.attempts.fetch_add(1, Ordering::SeqCst);
        upstream.client = Arc::new(again?);
        replaced();
        Ok(upstream.client.clone())
    }

    /// Calls `with` with whether the connection is lost. It is not replaced meanwhile.
    pub fn while_kept(&self, with: impl FnOnce(bool)) {
        let upstream = self.lock();
        with(upstream.client.is_lost());
    }
}
