//! Errors of traces. Each is displayed on one line that names the file and, where there is one, the line. What comes
//! from a file, its name included, is shown with its control characters escaped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use headstart_types::{printable, printable_path, system_says, KeyError};

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
    #[error("{}: {}; allowed: {allowed}", printable_path(file), printable(&system_says(source)))]
    Io {
        /// The file.
        file: PathBuf,
        /// What it said.
        source: io::Error,
        /// What it would have taken.
        allowed: &'static str,
    },
    /// The content is wrong.
    #[error("{}{place}: {}", printable_path(file), printable(problem))]
    Bad {
        /// The file.
        file: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// No format of that name, or none that fits.
    #[error("{}: {}; allowed: {allowed}", printable_path(file), printable(problem))]
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
    /// Whoever watches the reading has stopped it: see [`crate::watched()`].
    #[error("stopped")]
    Stopped,
}

impl TraceError {
    /// `file` cannot be read.
    pub(crate) fn reading(file: &Path, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source, allowed: "a trace file that can be read" }
    }

    /// `file` cannot be written.
    pub(crate) fn writing(file: &Path, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source, allowed: "a file in a folder that can be written" }
    }
}
