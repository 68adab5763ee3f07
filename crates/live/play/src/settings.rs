//! The options of `headstart play`. The parser, help, documentation, Python's keywords and errors are generated from
//! this struct. The terms are those of a scenario's `[workload]`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use headstart_nbd::{Uri, UriError};
use headstart_trace::{Compute, Select, Selection};
use headstart_types::{from_text, keys, Bytes, KeyError};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// After the reply to the process's previous request and a think time.
    Closed,
    /// At the trace's times.
    Open,
}

/// The source of think times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// From the trace: its think times, or the gaps between requests without the duration of the requests.
    Trace,
    /// The whole gaps between requests.
    Gaps,
    /// Drawn from a distribution.
    Drawn(Compute),
}

/// Which requests belong to one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// All requests.
    Merged,
    /// The requests of one process of the trace, and processes run concurrently.
    PerPid,
}

/// How the trace's writes are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// Writes are played as reads.
    AsRead,
    /// Writes are skipped.
    Skip,
    /// Writes are performed and overwrite the export's data.
    Write,
}

/// How addresses beyond the export's end are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// Report an error.
    Error,
    /// Take the address modulo the export's size.
    Wrap,
}

impl FromStr for Think {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "trace" => Ok(Think::Trace),
            "gaps" => Ok(Think::Gaps),
            _ => text.parse().map(Think::Drawn),
        }
    }
}

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Think::Trace => f.write_str("trace"),
            Think::Gaps => f.write_str("gaps"),
            Think::Drawn(compute) => compute.fmt(f),
        }
    }
}

impl Serialize for Think {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "\"trace\", \"gaps\", a time such as \"1ms\", or \"exp:1ms\" for exponential times with that mean",
        )
    }
}

keys! {
    /// Options of a replay.
    pub struct Settings {
        /// The trace.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "TRACE", "x-file" = "own"))]
        pub trace: PathBuf = PathBuf::new(),
        /// The server: nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH; nbds: uses TLS.
        #[schemars(extend("x-required" = true, "x-metavar" = "URI"))]
        pub to: String = String::new(),
        /// When requests are issued. closed: after the last reply and a think time; open: at the trace's times.
        pub arrival: Arrival = Arrival::Closed,
        /// Think times with closed arrival: "trace", "gaps", 1ms or exp:1ms.
        #[schemars(with = "String", extend("x-metavar" = "TIME"))]
        pub compute: Think = Think::Trace,
        /// Divide arrival and think times by X.
        #[schemars(range(min = 0.001, max = 1e6), extend("x-metavar" = "X"))]
        pub speed: f64 = 1.0,
        /// Maximum requests in flight: per process if closed (default 1), in total if open (default 1024).
        #[schemars(range(min = 1, max = 65536), extend("x-metavar" = "N"))]
        pub depth: Option<u32> = None,
        /// per-pid: run the trace's processes concurrently.
        pub processes: Processes = Processes::Merged,
        /// Play only the first N requests.
        #[schemars(range(min = 1), extend("x-metavar" = "N"))]
        pub limit: Option<u64> = None,
        /// Perform the trace's writes. They overwrite the export's data.
        pub writable: bool = false,
        /// Skip writes. Without this and --writable, writes are played as reads.
        pub skip_writes: bool = false,
        /// How the trace's writes are played. `write` overwrites the export's data.
        #[schemars(extend("x-names" = []))]
        pub writes: Writes = Writes::AsRead,
        /// Addresses beyond the export's end: report an error, or wrap around.
        pub addresses: Addresses = Addresses::Error,
        /// Connections to the server.
        #[schemars(range(min = 1, max = 65536), extend("x-metavar" = "N"))]
        pub connections: u32 = 1,
        /// Random seed of think times.
        #[schemars(extend("x-metavar" = "N"))]
        pub seed: u64 = 1,
        /// The trace's format: a name of `headstart list formats`.
        pub format: String = "auto".to_owned(),
        /// Request size, for a trace that has offsets but no sizes: 4KiB.
        #[schemars(extend("x-min" = "1B"))]
        pub request_size: Option<Bytes> = None,
        /// Which requests are played.
        #[schemars(extend("x-flat" = true))]
        pub select: Select = Select::default(),
    }
    impl check = Settings::check;
}

impl Settings {
    /// More than any device has in flight, and it needs little memory.
    pub const OPEN_DEPTH: u32 = 1024;

    /// # Errors
    /// It is not the address of a server.
    pub fn uri(&self) -> Result<Uri, UriError> {
        self.to.parse()
    }

    /// Selection of the requests to replay.
    ///
    /// # Errors
    /// A pattern is empty.
    pub fn selection(&self) -> Result<Selection, KeyError> {
        self.select.clone().try_into()
    }

    /// How writes are treated.
    #[must_use]
    pub fn writes(&self) -> Writes {
        match (self.writable, self.skip_writes) {
            (true, _) => Writes::Write,
            (_, true) => Writes::Skip,
            _ => self.writes,
        }
    }

    /// Maximum number of requests in flight.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(match self.arrival {
            Arrival::Closed => 1,
            Arrival::Open => Self::OPEN_DEPTH,
        })
    }

    fn check(&self) -> Result<(), KeyError> {
        if self.writable && self.skip_writes {
            return Err(KeyError::new("--writable, --skip-writes", "exclude each other", "one of them"));
        }
        if self.arrival == Arrival::Open && self.compute != Think::Trace {
            let problem = "open arrivals have no think times";
            return Err(KeyError::new("compute", problem, "arrival = \"closed\", or no compute"));
        }
        Ok(())
    }
}
