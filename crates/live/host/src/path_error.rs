//! What is wrong with a file, a folder or a device: the same line of all that the live half does.

use std::path::{Path, PathBuf};

/// A path, what is wrong with it, and what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}; allowed: {allowed}", path.display())]
pub struct PathError {
    /// The path.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
    /// What would do.
    pub allowed: String,
}

impl PathError {
    /// `problem` with `path`.
    pub fn new(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), allowed: allowed.into() }
    }
}
