//! Where a scenario comes from.

use std::path::PathBuf;

use headstart_types::{read_text, system_says, toml_problem, TEXT_BYTES_MAX};
use toml::Table;

use super::Error;

/// A scenario's origin.
#[derive(Debug, Clone)]
pub enum Source {
    /// A TOML file. Paths in it are relative to the folder that one works in, or else to the file's own.
    File(PathBuf),
    /// A JSON object of the same shape.
    Json(String),
}

impl Source {
    /// The scenario's table, as written.
    ///
    /// # Errors
    /// The file cannot be read, is no regular file or too large, or is no TOML (JSON).
    pub fn table(&self) -> Result<Table, Error> {
        match self {
            Source::File(path) => {
                let name = path.display().to_string();
                let allowed = "a scenario in TOML, as docs/scenario.md describes it";
                let fail =
                    |line: String, problem: String| Error::Scenario { path: name.clone(), line, problem, allowed };
                let text = read_text(path, TEXT_BYTES_MAX).map_err(|error| fail(String::new(), system_says(&error)))?;
                text.parse::<Table>().map_err(|error| {
                    let (line, problem) = toml_problem(&text, &error);
                    fail(format!(", line {line}"), problem)
                })
            }
            Source::Json(text) => serde_json::from_str(text).map_err(|_| Error::Scenario {
                path: "scenario".into(),
                line: String::new(),
                problem: "is no table of keys, or holds a value that no key takes, such as null".into(),
                allowed: "a JSON object of the shape of a scenario",
            }),
        }
    }
}
