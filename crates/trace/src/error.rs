//! Errors of traces. Each is displayed on one line that names the file and, where there is one, the line.

use std::fmt;
use std::io;
use std::path::PathBuf;

use headstart_types::KeyError;

/// Where in a file something is wrong. Lines and records count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of a text format.
    Line(u64),
    /// A record of a binary format.
    Record(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(line) => write!(f, ", line {line}"),
            Place::Record(record) => write!(f, ", record {record}"),
        }
    }
}

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system refused.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The content is wrong.
    #[error("{}{place}: {problem}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// No format of that name, or none that fits.
    #[error("{}: {problem}; allowed: {allowed}", file.display())]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// The name that is unknown, or that nothing fits.
        problem: String,
        /// The formats' names.
        allowed: String,
    },
    /// A key is wrong.
    #[error(transparent)]
    Key(#[from] KeyError),
}
