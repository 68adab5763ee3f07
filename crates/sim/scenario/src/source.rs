//! The origin of a scenario.

use std::path::PathBuf;

use headstart_types::{read_text, system_says, toml_problem, TEXT_BYTES_MAX};
use toml::Table;

use super::Error;

#[derive(Debug, Clone)]
pub enum Source {
    /// A TOML file. Relative paths in it refer to the current folder, or else to the file's.
    File(PathBuf),
    /// A JSON object of the same structure.
    Json(String),
}

impl Source {
    /// The scenario's table, as written.
    ///
    /// # Errors
    /// If the file cannot be read, is not a regular file or too large, or is not valid TOML (JSON).
    pub fn table(&self) -> Result<Table, Error> {
        match self {
            Source::File(path) => {
                let name = path.display().to_string();
                let allowed = "a scenario in TOML, as described in docs/scenario.md";
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
                problem: "is not a table of keys, or contains a value that no key takes, such as null".into(),
                allowed: "a JSON object with the structure of a scenario",
            }),
        }
    }
}
