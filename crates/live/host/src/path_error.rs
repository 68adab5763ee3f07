//! An error concerning a file, a folder or a device, in the same form for all live commands.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}; allowed: {allowed}", path.display())]
pub struct PathError {
    pub path: PathBuf,
    pub problem: String,
    pub allowed: String,
}

impl PathError {
    pub fn new(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), allowed: allowed.into() }
    }
}
