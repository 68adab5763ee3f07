//! A value with a name and keys, such as a scheduler: a bare name, or a table with the name in it.

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

/// A name with keys.
#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub keys: Table,
}

impl Named {
    /// A name without keys.
    pub fn bare(name: &str) -> Self {
        Self { name: name.to_owned(), keys: Table::new() }
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or a table with a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Named, E> {
        Ok(Named::bare(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
        let (mut name, mut keys) = (None, Table::new());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => name = Some(map.next_value()?),
                _ => _ = keys.insert(key, map.next_value::<Value>()?),
            }
        }
        Ok(Named { name: name.ok_or_else(|| A::Error::missing_field("name"))?, keys })
    }
}

impl JsonSchema for Named {
    fn schema_name() -> Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "object"], "x-allowed": "a name, or a table with a name"})
    }
}
