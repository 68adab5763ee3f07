//! Replays a trace against a live NBD server, and measures what its clients would see.
//!
//! [`survey()`] reads the trace once and finds errors before anything is sent. [`replay()`] reads it again: one thread
//! keeps the times and sends, and the client's threads record the time of each reply. Closed arrivals send a process's
//! next request after the reply to its last one and a think time; open arrivals send at the trace's times, regardless
//! of outstanding requests, and measure a response from the time at which the request was due, so that a server's
//! backlog counts.
//!
//! Memory: requests in flight, and at most [`AHEAD_MAX`] requests of a trace with separate processes.

mod error;
mod plan;
mod replay;
mod report;
mod settings;
mod survey;

pub use error::Error;
pub use plan::AHEAD_MAX;
pub use replay::replay;
pub use report::{ProcessReport, Report};
pub use settings::{Addresses, Arrival, Processes, Settings, Think, Writes};
pub use survey::{survey, Survey};

use headstart_nbd::client::{Client, ConnectOptions};

/// Replays the trace of `settings` against its server. `told` receives the share of the requests done, 0 to 1, and
/// their number; the replay stops once it returns false.
///
/// # Errors
/// The trace, the server or the connection fails.
pub fn play(settings: &Settings, told: &mut dyn FnMut((f64, u64)) -> bool) -> Result<Report, Error> {
    let uri = settings.uri()?;
    // Reports errors of the trace before connecting.
    survey::open(settings)?;
    let options = ConnectOptions { connection_count: settings.connections as usize, ..ConnectOptions::default() };
    let client = Client::connect(&uri, options).map_err(|source| Error::Connect { uri: uri.to_string(), source })?;
    let found = survey(settings, client.export(), &mut || told((0.0, 0)))?;
    replay(settings, &found, &client, &mut |requests| told((requests as f64 / found.requests as f64, requests)))
}
