//! Why there is no result.

use headstart_nbd::client::ClientError;
use headstart_trace::TraceError;
use headstart_types::KeyError;

/// An error of a replay, in one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is wrong.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The server has no such address.
    #[error(transparent)]
    Uri(#[from] headstart_nbd::UriError),
    /// The trace cannot be read, or does not fit.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The server cannot be reached.
    #[error("{uri}: {source}")]
    Connect { uri: String, source: ClientError },
    /// The connection was lost during the replay.
    #[error("{uri}: {source} after {requests} requests")]
    Lost {
        uri: String,
        source: ClientError,
        /// Number of requests that had been answered.
        requests: u64,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}
