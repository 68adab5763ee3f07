//! Key `workload.select`: which requests of a trace are read, by file and process.

use headstart_trace::Selection;
use headstart_types::{keys, read_keys, KeyError, KeyTable};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

keys! {
    /// Which requests of a trace are read.
    struct RawSelect {
        /// Globs of file paths (`"*.parquet"`, `["/data/*", "*.bin"]`); `*` also matches "/".
        path: OneOrMore<String> = OneOrMore::More(Vec::new()),
        /// Process or thread ids.
        pid: OneOrMore<u32> = OneOrMore::More(Vec::new()),
        /// Process names, or globs of them.
        process: OneOrMore<String> = OneOrMore::More(Vec::new()),
    }
}

/// A value, or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> From<OneOrMore<T>> for Vec<T> {
    fn from(values: OneOrMore<T>) -> Self {
        match values {
            OneOrMore::One(value) => vec![value],
            OneOrMore::More(values) => values,
        }
    }
}

/// The schema of the keys.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    KeyTable::of::<RawSelect>().schema().clone().try_into().expect("a schema")
}

/// Reads the value.
///
/// # Errors
/// If it is not a table of the keys, or a key is wrong.
pub fn read(value: Value) -> Result<Selection, KeyError> {
    let Value::Table(table) = value else {
        let problem = format!("is a {}", value.type_str());
        return Err(KeyError::new("select", problem, "a table of keys, as in {path = \"*.parquet\"}"));
    };
    of_table(table).map_err(|error| error.within("select"))
}

fn of_table(table: Table) -> Result<Selection, KeyError> {
    let RawSelect { path, pid, process } = read_keys(table)?;
    let found = Selection { paths: path.into(), pids: pid.into(), processes: process.into() };
    for (key, patterns) in [("path", &found.paths), ("process", &found.processes)] {
        if patterns.iter().any(String::is_empty) {
            return Err(KeyError::new(key, "is empty", "a name, or a glob such as \"*.parquet\""));
        }
    }
    Ok(found)
}
