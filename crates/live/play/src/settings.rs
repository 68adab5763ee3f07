//! What is replayed, and how. The words are those of a scenario's `[workload]`.

use std::path::PathBuf;
use std::str::FromStr;

use headstart_nbd::Uri;
use headstart_trace::{Compute, Selection};
use headstart_types::KeyError;
use serde::Serialize;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// After the reply to the last one and a think time.
    Closed,
    /// At the trace's times.
    Open,
}

/// What a think time is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// As the trace has it: its own, or gaps between requests without the time that the requests took.
    Trace,
    /// Whole gaps.
    Gaps,
    /// Of a distribution.
    Drawn(Compute),
}

/// Which requests are of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// All.
    Merged,
    /// Those of a process of the trace; processes run side by side.
    PerPid,
}

/// What becomes of the trace's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// They are read.
    AsRead,
    /// They are left out.
    Skip,
    /// They are written: what the export held there is lost.
    Write,
}

/// What becomes of addresses beyond the export's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// They are an error.
    Error,
    /// The address modulo the export's size.
    Wrap,
}

macro_rules! words {
    ($type:ident, $key:literal, $kind:literal, $($word:literal => $value:ident),*) => {
        impl FromStr for $type {
            type Err = KeyError;

            fn from_str(text: &str) -> Result<Self, KeyError> {
                match text {
                    $($word => Ok($type::$value),)*
                    _ => Err(KeyError::unknown($key, $kind, text, [$($word),*].into_iter())),
                }
            }
        }
    };
}

words!(Arrival, "arrival", "arrival", "closed" => Closed, "open" => Open);
words!(Processes, "processes", "choice", "merged" => Merged, "per-pid" => PerPid);
words!(Writes, "writes", "choice", "as-read" => AsRead, "skip" => Skip, "write" => Write);
words!(Addresses, "addresses", "choice", "error" => Error, "wrap" => Wrap);

impl FromStr for Think {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match text {
            "trace" => Ok(Think::Trace),
            "gaps" => Ok(Think::Gaps),
            _ => text.parse().map(Think::Drawn).map_err(|problem: String| {
                KeyError::new("compute", problem, format!("\"trace\", \"gaps\", {}", Compute::ALLOWED))
            }),
        }
    }
}

/// A replay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The trace.
    pub trace: PathBuf,
    /// Its format, or "auto".
    pub format: String,
    /// The size of requests, for a trace that carries none.
    pub request_bytes: Option<u64>,
    /// The server.
    pub to: Uri,
    /// When requests are sent.
    pub arrival: Arrival,
    /// Think times, for closed arrivals.
    pub think: Think,
    /// Times, of arrivals and of thinking, are divided by it; above zero.
    pub speed: f64,
    /// Requests in flight: of each process (closed, 1 if `None`), of all (open, [`Self::OPEN_DEPTH`] if `None`); above zero.
    pub depth: Option<u32>,
    /// Which requests are of one process.
    pub processes: Processes,
    /// The most requests; above zero.
    pub limit: Option<u64>,
    /// What becomes of writes.
    pub writes: Writes,
    /// What becomes of addresses beyond the end.
    pub addresses: Addresses,
    /// Connections to the server; above zero.
    pub connections: u32,
    /// Of drawn think times.
    pub seed: u64,
    /// Which files and processes are replayed.
    pub selection: Selection,
}

impl Settings {
    /// More than any device has in flight, and little enough memory.
    pub const OPEN_DEPTH: u32 = 1024;
    /// The most connections, and requests in flight.
    const MANY: u32 = 65_536;
    const SPEEDS: std::ops::RangeInclusive<f64> = 1e-3..=1e6;

    /// How many may be in flight.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(match self.arrival {
            Arrival::Closed => 1,
            Arrival::Open => Self::OPEN_DEPTH,
        })
    }

    /// Checks each by itself.
    ///
    /// # Errors
    /// Which one is out of range, and what is allowed.
    pub fn check(&self) -> Result<(), KeyError> {
        if !Self::SPEEDS.contains(&self.speed) {
            let allowed = format!("a number from {} to {}", Self::SPEEDS.start(), Self::SPEEDS.end());
            return Err(KeyError::new("speed", format!("{} is out of range", self.speed), allowed));
        }
        for (key, value) in [("depth", self.depth()), ("connections", self.connections)] {
            if !(1..=Self::MANY).contains(&value) {
                let allowed = format!("a whole number from 1 to {}", Self::MANY);
                return Err(KeyError::new(key, format!("{value} is out of range"), allowed));
            }
        }
        if self.limit == Some(0) {
            return Err(KeyError::new("limit", "is 0", "a whole number from 1"));
        }
        if self.arrival == Arrival::Open && self.think != Think::Trace {
            let problem = "open arrivals have no think times";
            return Err(KeyError::new("compute", problem, "arrival = \"closed\", or no compute"));
        }
        Ok(())
    }
}
