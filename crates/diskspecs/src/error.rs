//! Why an import failed: one line that names file and line, what is wrong there, and what is allowed.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use headstart_types::system_says;

/// A place in one of the files that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named or found.
    pub file: Rc<Path>,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: u32,
}

impl Place {
    /// The whole of a file.
    pub(crate) fn whole(file: &Path) -> Self {
        Self { file: file.into(), line: 0 }
    }

    /// The file's name without its folders.
    pub(crate) fn file_name(&self) -> String {
        file_name(&self.file)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", one_line(&self.file.display().to_string()))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        Ok(())
    }
}

/// Why no profile came out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{}; allowed: a .parv, .diskspecs or .model file that can be read", unreadable(at, path, source))]
    Read {
        /// Where it is named: the place of `source`, or the file itself.
        at: Place,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Text that is not of the form, or a value that no drive can have.
    #[error("{at}: {problem}; allowed: {allowed}")]
    At {
        /// Where.
        at: Place,
        /// What is wrong.
        problem: String,
        /// What would have been accepted.
        allowed: String,
    },
}

impl ImportError {
    /// An error at a place.
    pub(crate) fn at(at: &Place, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::At { at: at.clone(), problem: one_line(&problem.into()), allowed: one_line(&allowed.into()) }
    }
}

fn unreadable(at: &Place, path: &Path, source: &std::io::Error) -> String {
    let says = system_says(source);
    match at.line {
        0 => format!("{at}: {says}"),
        _ => format!("{at}: cannot read {}: {says}", one_line(&path.display().to_string())),
    }
}

/// Text of a file as it may stand in a message or a comment: no control characters, not endless.
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
