//! Replays a trace against a live server of the Network Block Device protocol, and measures what its clients would see.
//!
//! [`survey()`] reads the trace once, and finds what is wrong before anything is sent. [`replay()`] reads it again: one thread
//! keeps the times and sends, the client's threads note the moment of each reply. Closed arrivals send the next request of a
//! process after the reply to the last one and a think time; open arrivals send at the trace's times, whatever is
//! outstanding, and count a request's response from the time at which it was due: a server that falls behind is seen to.
//!
//! Memory: what is in flight, and of a trace whose processes are told apart at most [`AHEAD_MAX`] requests.

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

/// Replays the trace of `settings` against its server. `told` gets the share of the requests that are done, 0 to 1, and
/// how many; the replay stops once it returns false.
///
/// # Errors
/// The trace, the server, or the connection.
pub fn play(settings: &Settings, told: &mut dyn FnMut((f64, u64)) -> bool) -> Result<Report, Error> {
    let uri = settings.uri()?;
    // What is wrong with the trace is said before a server is asked.
    survey::open(settings)?;
    let options = ConnectOptions { connection_count: settings.connections as usize, ..ConnectOptions::default() };
    let client = Client::connect(&uri, options).map_err(Error::Connect)?;
    let found = survey(settings, client.export(), &mut || told((0.0, 0)))?;
    replay(settings, &found, &client, &mut |requests| told((requests as f64 / found.requests as f64, requests)))
}
