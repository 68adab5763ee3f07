//! Errors of traces. Each is displayed on one line that names the file and, if known, the line. Text from a file,
//! including its name, is shown with control characters escaped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use headstart_types::{printable, printable_path, system_says, KeyError};

/// The position of an error in a file. Lines and records count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPosition {
    File,
    /// A line of a text format.
    Line(u64),
    /// A record of a binary format.
    Record(u64),
}

impl fmt::Display for ErrorPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorPosition::File => Ok(()),
            ErrorPosition::Line(line) => write!(f, ", line {line}"),
            ErrorPosition::Record(record) => write!(f, ", record {record}"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system reported an error.
    #[error("{}: {}; allowed: {allowed}", printable_path(file), printable(&system_says(source)))]
    Io {
        file: PathBuf,
        source: io::Error,
        /// What is allowed.
        allowed: &'static str,
    },
    #[error("{}{place}: {}", printable_path(file), printable(problem))]
    Bad {
        file: PathBuf,
        place: ErrorPosition,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// No format has that name, or the file matches no format.
    #[error("{}: {}; allowed: {allowed}", printable_path(file), printable(problem))]
    UnknownFormat {
        file: PathBuf,
        /// The unknown name, or that no format matches.
        problem: String,
        /// The names of the formats.
        allowed: String,
    },
    /// A key of the scenario is wrong.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The caller stopped the reading: see [`crate::watched()`].
    #[error("stopped")]
    Stopped,
}

impl TraceError {
    pub(crate) fn reading(file: &Path, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source, allowed: "a trace file that can be read" }
    }

    pub(crate) fn writing(file: &Path, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source, allowed: "a file in a writable directory" }
    }
}
