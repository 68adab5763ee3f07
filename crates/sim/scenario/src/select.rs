//! Key `workload.select`: which requests of a trace are read, by file and process.

use headstart_trace::{Select, Selection};
use headstart_types::{read_keys, KeyError, KeyTable};
use schemars::{Schema, SchemaGenerator};
use toml::Value;

/// The schema of the keys.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    KeyTable::of::<Select>().schema().clone().try_into().expect("a schema")
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
    read_keys::<Select>(table).and_then(Selection::try_from).map_err(|error| error.within("select"))
}
