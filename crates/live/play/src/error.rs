//! Why there is no result.

use headstart_nbd::client::ClientError;
use headstart_trace::TraceError;
use headstart_types::KeyError;

/// In one line.
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
    /// There is no way to the server.
    #[error(transparent)]
    Connect(ClientError),
    /// The connection was lost on the way.
    #[error("{uri}: {source} after {requests} requests")]
    Lost {
        /// The server.
        uri: String,
        /// What happened.
        source: ClientError,
        /// How many had been replied to.
        requests: u64,
    },
    /// The caller wanted no more.
    #[error("stopped")]
    Stopped,
}
