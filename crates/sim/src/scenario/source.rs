//! Where a scenario comes from.

use std::path::PathBuf;

use headstart_types::system_says;
use toml::Table;

use crate::Error;

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
    /// The file cannot be read, or is no TOML (JSON).
    pub fn table(&self) -> Result<Table, Error> {
        match self {
            Source::File(path) => {
                let name = path.display().to_string();
                let allowed = "a scenario in TOML, as docs/scenario.md describes it";
                let fail =
                    |line: String, problem: String| Error::Scenario { path: name.clone(), line, problem, allowed };
                let text = std::fs::read_to_string(path).map_err(|error| fail(String::new(), system_says(&error)))?;
                text.parse::<Table>().map_err(|error| {
                    let at = error.span().map_or(0, |span| span.start);
                    let line = text.get(..at).unwrap_or(&text).matches('\n').count() + 1;
                    fail(format!(", line {line}"), error.message().replace('\n', "; "))
                })
            }
            Source::Json(text) => serde_json::from_str(text).map_err(|error| Error::Scenario {
                path: "scenario".into(),
                line: String::new(),
                problem: error.to_string(),
                allowed: "a JSON object of the shape of a scenario",
            }),
        }
    }
}
