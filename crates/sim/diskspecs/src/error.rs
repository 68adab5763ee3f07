//! Errors of an import: one line that names file and line, what is wrong, and what is allowed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use headstart_types::system_says;

/// A position in one of the files that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    /// The file, as it was named or found.
    pub file: Rc<Path>,
    /// Line, from 1; 0 for the whole file.
    pub line: u32,
}

impl FilePosition {
    /// The whole of a file.
    pub(crate) fn whole(file: &Path) -> Self {
        Self { file: file.into(), line: 0 }
    }

    /// The file's name without its folders.
    pub(crate) fn file_name(&self) -> String {
        file_name(&self.file)
    }
}

impl std::fmt::Display for FilePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", one_line(&self.file.display().to_string()))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        Ok(())
    }
}

/// Why the import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{}; allowed: a .parv, .diskspecs or .model file that can be read", unreadable(at, path, source))]
    Read {
        /// Where it is named: the position of `source`, or the file itself.
        at: FilePosition,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A syntax error, or an impossible value.
    #[error("{at}: {problem}; allowed: {allowed}")]
    At {
        at: FilePosition,
        /// What is wrong.
        problem: String,
        /// What is allowed.
        allowed: String,
    },
}

impl ImportError {
    /// An error at a position.
    pub(crate) fn at(at: &FilePosition, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::At { at: at.clone(), problem: one_line(&problem.into()), allowed: one_line(&allowed.into()) }
    }
}

fn unreadable(at: &FilePosition, path: &Path, source: &std::io::Error) -> String {
    let says = system_says(source);
    match at.line {
        0 => format!("{at}: {says}"),
        _ => format!("{at}: cannot read {}: {says}", one_line(&path.display().to_string())),
    }
}

/// Makes text of a file safe for a message or a comment: without control characters, and shortened.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 300;
    let shown: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        return shown + "...";
    }
    shown
}

/// The name of a file without its folders.
pub(crate) fn file_name(path: &Path) -> String {
    one_line(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
}
