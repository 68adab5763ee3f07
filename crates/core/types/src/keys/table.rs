//! The keys of a registry's row, whichever struct they are read into.

use serde::Serialize;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{absent_in_words, defaults_of, property_names, read_keys, Keys, NoKeys, TypedKeys};
use crate::KeyError;

type Beside = (fn() -> Table, fn() -> &'static Json);

/// The keys of a registry's row: their defaults and their schema.
#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    defaults: fn() -> Table,
    /// Defaults that replace the struct's own, in TOML.
    over: &'static str,
    schema: fn() -> &'static Json,
    /// Defaults and schema of a second struct whose keys are allowed beside these.
    beside: Option<Beside>,
    read: fn(Table) -> Result<TypedKeys, KeyError>,
}

impl KeyTable {
    /// No keys at all.
    pub const NONE: Self = Self::of::<NoKeys>();

    /// The keys of a struct that has defaults.
    #[must_use]
    pub const fn of<K: Keys + Default + Serialize + Send + Sync + 'static>() -> Self {
        let read = |table| read_keys::<K>(table).map(TypedKeys::new);
        Self { defaults: defaults_of::<K>, over: "", schema: K::schema, beside: None, read }
    }

    /// Any keys, which are read into a table, with defaults given as TOML text; for rows that are not written in Rust.
    #[must_use]
    pub const fn any(defaults: &'static str) -> Self {
        Self { over: defaults, read: |table| Ok(TypedKeys::new(table)), ..Self::NONE }
    }

    /// The keys of a struct whose defaults are given as TOML text, such as a shipped profile; they are read into a table.
    #[must_use]
    pub const fn with_text<K: Keys>(defaults: &'static str) -> Self {
        Self { schema: K::schema, ..Self::any(defaults) }
    }

    /// The same keys with other defaults, given as TOML text; for a row that shares its struct with others.
    #[must_use]
    pub const fn with(self, over: &'static str) -> Self {
        Self { over, ..self }
    }

    /// The same keys plus those of a second struct.
    #[must_use]
    pub const fn beside<K: Keys + Default + Serialize>(self) -> Self {
        Self { beside: Some((defaults_of::<K>, K::schema)), ..self }
    }

    /// Every key that has a default, with that default.
    ///
    /// # Panics
    /// The text of the defaults is not TOML.
    #[must_use]
    pub fn defaults(&self) -> Table {
        let mut defaults = (self.defaults)();
        defaults.extend(self.over.parse::<Table>().expect("defaults are TOML"));
        defaults.extend(self.beside.map_or_else(Table::new, |(defaults, _)| defaults()));
        defaults
    }

    /// Reads the keys that were given, and the defaults of the others, into the struct.
    ///
    /// # Errors
    /// The first key that is unknown, missing, of the wrong type or out of range.
    pub fn read(&self, given: Table) -> Result<TypedKeys, KeyError> {
        let mut table = self.defaults();
        table.extend(given);
        (self.read)(table)
    }

    /// Whether there is a key of that name.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        property_names(&self.schema()).contains(&key)
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        property_names(&self.schema()).is_empty() && self.defaults().is_empty()
    }

    /// The JSON Schema of a table of these keys.
    ///
    /// # Panics
    /// A default has no JSON form.
    #[must_use]
    pub fn schema(&self) -> Json {
        let mut schema = (self.schema)().clone();
        let beside = self.beside.and_then(|(_, schema)| schema().get("properties")?.as_object());
        if let (Some(keys), Some(more)) = (schema.get_mut("properties").and_then(Json::as_object_mut), beside) {
            keys.extend(more.clone());
        }
        with_defaults(&mut schema, self.defaults());
        schema
    }

    /// The keys absent from `given` whose default depends on the run, each with a description of that default.
    #[must_use]
    pub fn absent(&self, given: &Table) -> Vec<(String, String)> {
        absent_in_words((self.schema)(), given)
    }
}

/// Puts defaults into a schema, key by key for nested tables. Lists of tables are left out: they are too long to show.
fn with_defaults(schema: &mut Json, defaults: Table) {
    for (key, value) in defaults {
        let property = schema.pointer_mut(&format!("/properties/{key}"));
        match (property, value) {
            (Some(property), Value::Table(table)) if property.get("properties").is_some() => {
                with_defaults(property, table);
            }
            (_, Value::Array(list)) if list.iter().any(Value::is_table) => {}
            (Some(Json::Object(property)), value) => {
                property.insert("default".into(), serde_json::to_value(value).expect("a plain value"));
            }
            _ => {}
        }
    }
}
