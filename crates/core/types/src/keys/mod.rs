//! Reads tables of keys, as in scenarios and profiles, into typed structs.
//!
//! Each thing with keys is one struct made by [`keys!`](crate::keys): a key's name, type, default, range and
//! documentation stand on its field and nowhere else. [`read_keys`] reads a table into the struct. [`KeyTable`] gives
//! registries, docs and the JSON Schema what they need to know about it. Errors name the key and what is allowed:
//! [`reader`] checks types, [`ranges`] checks ranges against the struct's schema, and [`Keys::check`] checks
//! combinations of keys.

mod chosen;
mod options;
mod ranges;
mod reader;
mod refusal;
mod schema;
mod table;
mod toml_text;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::KeyError;

pub use chosen::{Chosen, Row, TypedKeys};
pub use options::{options, read_options};
pub use schema::{absent_in_words, one_of, optional, property_names, schema_of};
pub use table::KeyTable;
pub use toml_text::toml_problem;

/// The keys of one thing. Made by [`keys!`](crate::keys).
pub trait Keys: DeserializeOwned + JsonSchema {
    /// The JSON Schema of a table with these keys; computed once.
    fn schema() -> &'static KeySchema;

    /// Checks what the type and range of a single key cannot express.
    ///
    /// # Errors
    /// Names the key at fault.
    fn check(&self) -> Result<(), KeyError> {
        Ok(())
    }
}

/// The JSON Schema of keys.
pub type KeySchema = Json;

/// Reads a table into its struct.
///
/// # Errors
/// The first key that is unknown, missing, of the wrong type or out of range.
pub fn read_keys<K: Keys>(table: Table) -> Result<K, KeyError> {
    let value = Value::Table(table);
    ranges::check(K::schema(), &value, ranges::Path::Top)?;
    let keys: K = reader::read(&value, &|path, key| schema::allowed_of(K::schema(), path, key))?;
    keys.check()?;
    Ok(keys)
}

/// Reads a table into a struct without a schema, for files that headstart itself writes.
///
/// # Errors
/// The first key that is unknown, missing or of the wrong type.
pub fn read_table<T: DeserializeOwned>(table: Table) -> Result<T, KeyError> {
    reader::read(&Value::Table(table), &|_, _| "a value".to_owned())
}

/// Takes one key out of a table, for example the name that decides which other keys the table may have.
///
/// # Errors
/// The key is missing, or its value has the wrong type.
pub fn take_key<T: DeserializeOwned + JsonSchema>(table: &mut Table, key: &str) -> Result<T, KeyError> {
    let missing = || KeyError::new(key, "is missing", schema::allowed(&schema_of::<T>()));
    let value = table.remove(key).ok_or_else(missing)?;
    reader::read(&value, &|_, _| String::new()).map_err(|error| error.within(key))
}

/// Checks a value whose bounds depend on other keys.
///
/// # Errors
/// `value` is not in `range`.
pub fn within_range(key: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<(), KeyError> {
    if range.contains(&value) {
        return Ok(());
    }
    let allowed = format!("a whole number from {} to {}", range.start(), range.end());
    Err(KeyError::new(key, format!("{value} is out of range"), allowed))
}

/// The defaults of a struct as a table.
///
/// # Panics
/// A default has no TOML form.
#[must_use]
pub fn defaults_of<K: Default + Serialize>() -> Table {
    Table::try_from(K::default()).expect("keys are plain values")
}

/// Makes the struct of one thing's keys. A field is a key: its documentation, its range (`#[schemars(range(...))]`, or
/// `#[schemars(extend("x-max" = "1h"))]` of a time or a size), its type and its default.
///
/// ```
/// use headstart_types::{keys, read_keys};
///
/// keys! {
///     /// Reads ahead.
///     pub struct ExampleKeys {
///         /// Blocks after each request.
///         #[schemars(range(min = 1, max = 64))]
///         pub degree: u32 = 4,
///     }
/// }
///
/// let keys: ExampleKeys = read_keys("degree = 8".parse().unwrap()).unwrap();
/// assert_eq!(keys.degree, 8);
/// let error = read_keys::<ExampleKeys>("degree = 65".parse().unwrap()).unwrap_err();
/// assert_eq!(error.to_string(), "degree: 65 is out of range; allowed: a whole number from 1 to 64");
/// ```
///
/// If no field has a default, every key must be given, except those with `#[serde(default)]`. `impl check = function;`
/// after the struct names the function that checks combinations of keys.
#[macro_export]
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr),* $(,)?
        }
        $(impl check = $check:expr;)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::Keys for $name {
            fn schema() -> &'static $crate::KeySchema {
                static SCHEMA: std::sync::OnceLock<$crate::KeySchema> = std::sync::OnceLock::new();
                SCHEMA.get_or_init($crate::schema_of::<Self>)
            }

            $(fn check(&self) -> Result<(), $crate::KeyError> {
                let check: fn(&Self) -> Result<(), $crate::KeyError> = $check;
                check(self)
            })?
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),+ $(,)?
        }
        $(impl check = $check:expr;)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl $crate::Keys for $name {
            fn schema() -> &'static $crate::KeySchema {
                static SCHEMA: std::sync::OnceLock<$crate::KeySchema> = std::sync::OnceLock::new();
                SCHEMA.get_or_init($crate::schema_of::<Self>)
            }

            $(fn check(&self) -> Result<(), $crate::KeyError> {
                let check: fn(&Self) -> Result<(), $crate::KeyError> = $check;
                check(self)
            })?
        }
    };
}

keys! {
    /// No keys.
    pub struct NoKeys {}
}

/// Serializes as the text that a user would write: `#[serde(serialize_with = "headstart_types::as_text")]`.
///
/// # Errors
/// Those of the serializer.
pub fn as_text<T: std::fmt::Display, S: serde::Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// As [`as_text`], for an optional value.
///
/// # Errors
/// Those of the serializer.
pub fn as_text_if_any<T: std::fmt::Display, S: serde::Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Nanos};

    #[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum When {
        Always,
        OnMiss,
        Tagged,
    }

    keys! {
        struct Inner {
            /// Of two.
            #[schemars(range(min = 0.0, max = 0.5))]
            part: f64 = 0.25,
        }
    }

    keys! {
        struct Example {
            /// How far ahead.
            horizon: u32 = 62,
            #[schemars(range(min = 1, max = 64))]
            degree: u32 = 4,
            #[schemars(extend("x-max" = "1h"))]
            #[serde(serialize_with = "as_text")]
            overhead: Nanos = Nanos::ZERO,
            #[schemars(extend("x-min" = "1B"))]
            #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text_if_any")]
            #[schemars(extend("x-absent" = "none: as large as the device"))]
            size: Option<Bytes> = None,
            when: When = When::Tagged,
            weight: f64 = 1.0,
            names: Vec<String> = Vec::new(),
            inner: Inner = Inner::default(),
            flag: bool = false,
        }
        impl check = |keys| match keys.degree > keys.horizon {
            true => Err(KeyError::new("degree", "is above horizon", format!("at most {}", keys.horizon))),
            false => Ok(()),
        };
    }

    fn fail(text: &str) -> String {
        read_keys::<Example>(text.parse().expect("TOML")).expect_err(text).to_string()
    }

    #[test]
    fn errors_name_the_key_and_what_is_allowed() {
        for (text, expected) in [
            (
                "horizn = 3",
                "horizn: unknown key (did you mean \"horizon\"?); allowed: horizon, degree, overhead, size, when, weight, \
                 names, inner, flag",
            ),
            ("inner = {prt = 1}", "inner.prt: unknown key (did you mean \"part\"?); allowed: part"),
            ("horizon = -1", "horizon: -1 is out of range; allowed: a whole number from 0"),
            ("horizon = 1.5", "horizon: 1.5 is a number; allowed: a whole number from 0"),
            ("horizon = \"few\"", "horizon: \"few\" is a string; allowed: a whole number from 0"),
            ("horizon = 4294967296", "horizon: 4294967296 is out of range; allowed: a whole number from 0 to 4294967295"),
            ("degree = 65", "degree: 65 is out of range; allowed: a whole number from 1 to 64"),
            ("horizon = 3", "degree: is above horizon; allowed: at most 3"),
            ("overhead = \"2h\"", "overhead: 7200s is too long; allowed: a time of at most 1h"),
            ("size = \"0B\"", "size: 0B is out of range; allowed: a size from 1B"),
            (
                "when = \"taged\"",
                "when: \"taged\" is unknown (did you mean \"tagged\"?); allowed: \"always\", \"on-miss\", \"tagged\"",
            ),
            ("when = 1", "when: 1 is a number; allowed: \"always\", \"on-miss\", \"tagged\""),
            ("weight = \"x\"", "weight: \"x\" is a string; allowed: a number"),
            ("names = [\"a\", 1]", "names[1]: 1 is a number; allowed: a quoted string"),
            ("names = \"a\"", "names: \"a\" is a string; allowed: a list"),
            ("inner = 1", "inner: 1 is a number; allowed: a table of keys"),
            ("inner = {part = 0.6}", "inner.part: 0.6 is out of range; allowed: a number from 0 to 0.5"),
            ("flag = 1", "flag: 1 is a number; allowed: true or false"),
        ] {
            assert_eq!(fail(text), expected, "{text}");
        }
        assert!(fail("overhead = 5").starts_with("overhead: 5 is a number; allowed: a time with a unit"));
        assert!(fail("overhead = \"5\"").starts_with("overhead: \"5\" has no unit; allowed: a time with a unit"));
        assert!(read_keys::<NoKeys>("x = 1".parse().expect("TOML"))
            .expect_err("none")
            .to_string()
            .starts_with("x: unk"));
    }

    #[test]
    fn values_are_read_and_whole_numbers_are_numbers() {
        let keys: Example =
            read_keys("weight = 2\nsize = \"4KiB\"\nwhen = \"always\"".parse().expect("TOML")).expect("keys");
        assert_eq!((keys.weight, keys.size, keys.inner.part), (2.0, Some(Bytes(4096)), 0.25));
        assert!(matches!(keys.when, When::Always));
    }

    #[test]
    fn a_struct_that_requires_keys_says_which_is_missing() {
        keys! {
            #[allow(dead_code)]
            struct Required {
                /// What a fetch takes.
                fetch_time: Nanos,
            }
        }
        let error = read_keys::<Required>(Table::new()).expect_err("missing").to_string();
        assert!(error.starts_with("fetch_time: is missing; allowed: a time with a unit"), "{error}");
    }

    #[test]
    fn the_schema_has_what_the_docs_and_editors_need() {
        let table = KeyTable::of::<Example>();
        let schema = table.schema();
        assert_eq!(schema["additionalProperties"], false);
        let property = |key: &str| &schema["properties"][key];
        assert_eq!(
            (&property("horizon")["default"], &property("horizon")["description"]),
            (&62.into(), &"How far ahead.".into())
        );
        assert_eq!((&property("degree")["minimum"], &property("degree")["maximum"]), (&1.into(), &64.into()));
        assert_eq!((&property("overhead")["type"], &property("overhead")["default"]), (&"string".into(), &"0s".into()));
        assert_eq!(property("size")["type"], "string");
        assert!(property("size").get("default").is_none());
        assert_eq!(table.absent(&Table::new()), [("size".to_owned(), "none: as large as the device".to_owned())]);
        assert!(table.absent(&"size = \"1B\"".parse().expect("TOML")).is_empty());
    }
}
