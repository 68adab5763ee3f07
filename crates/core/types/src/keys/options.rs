//! The options of a command are the keys of a struct. What a parser needs beside a key's name, type, default, range and
//! documentation stands on its field, as in `#[schemars(extend("x-metavar" = "SIZE"))]`:
//!
//! - `x-metavar`: the name of its value in help;
//! - `x-names`: the option's names if they are not `--key`; none: the key is a keyword of Python only; `x-test`: it is for tests only;
//! - `x-set`: its values are KEY=VALUE, of a table of keys; `x-comma`: its value is a list with commas;
//! - `x-argument`: it is an argument, not an option; `x-required`: it has to be given;
//! - `x-help`, `x-panel`: its help if that is not the documentation, and its group there;
//! - `x-file`: its value is a file; "own", or "url" if it may be something else: no other option may name the same one;
//! - `x-flat`, on a table of keys: they are options of their own; a table here has documentation in place of their own.

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::{read_keys, Keys};
use crate::KeyError;

/// The properties of a schema; those of its flat tables stand in their place.
#[must_use]
pub fn options(schema: &Json) -> Map<String, Json> {
    let mut found = Map::new();
    for (key, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        if let Some(flat) = property.get("x-flat") {
            found.extend(options(property));
            for (key, documentation) in flat.as_object().into_iter().flatten() {
                found[key]["description"] = documentation.clone();
            }
        } else {
            found.insert(key.clone(), property.clone());
        }
    }
    found
}

/// Reads a flat table of options into its struct. A size may be a whole number of bytes: callers that are programs have
/// those.
///
/// # Errors
/// As of [`read_keys`].
pub fn read_options<K: Keys>(mut given: Table) -> Result<K, KeyError> {
    let known = options(K::schema());
    for (key, value) in given.iter_mut() {
        match known.get(key) {
            Some(property) => with_unit(property, value),
            None => return Err(KeyError::unknown_key(key, known.keys().map(String::as_str))),
        }
    }
    let mut flat = Vec::new();
    for (key, property) in K::schema().get("properties").and_then(Json::as_object).into_iter().flatten() {
        if property.get("x-flat").is_some() {
            let names = options(property);
            let inner: Table =
                names.into_iter().filter_map(|(name, _)| Some((name.clone(), given.remove(&name)?))).collect();
            given.insert(key.clone(), Value::Table(inner));
            flat.push(format!("{key}."));
        }
    }
    read_keys(given).map_err(|error: KeyError| {
        let inner = flat.iter().find_map(|prefix| error.key.strip_prefix(prefix.as_str()).map(str::to_owned));
        KeyError { key: inner.unwrap_or(error.key), ..error }
    })
}

fn with_unit(property: &Json, value: &mut Value) {
    match value {
        Value::Integer(bytes) if property.get("x-unit").and_then(Json::as_str) == Some("size") => {
            *value = format!("{bytes}B").into();
        }
        Value::Array(list) => {
            list.iter_mut().for_each(|each| with_unit(property.get("items").unwrap_or(property), each));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    keys! {
        struct Inner {
            depth: u32 = 1,
            name: String = String::new(),
        }
    }

    keys! {
        struct Outer {
            first: bool = false,
            #[schemars(extend("x-flat" = {"depth": "How deep."}))]
            inner: Inner = Inner::default(),
            last: u32 = 2,
            sizes: Vec<crate::Bytes> = Vec::new(),
        }
    }

    #[test]
    fn flat_tables_are_options_of_their_own() {
        let found = options(Outer::schema());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["first", "depth", "name", "last", "sizes"]);
        assert_eq!(found["depth"]["description"], "How deep.");
        let read = |text: &str| read_options::<Outer>(text.parse().expect("TOML"));
        let outer = read("depth = 7\nname = \"x\"\nlast = 3").expect("options");
        assert_eq!((outer.first, outer.inner.depth, outer.inner.name.as_str(), outer.last), (false, 7, "x", 3));
        let sizes = read("sizes = [4096, \"1MiB\"]").expect("options").sizes;
        assert_eq!(sizes.iter().map(|size| size.0).collect::<Vec<_>>(), [4096, 1 << 20]);
        let said = read("depth = -1").expect_err("negative").to_string();
        assert!(said.starts_with("depth: -1 is out of range"), "{said}");
        let said = read("dept = 1").expect_err("no option").to_string();
        assert_eq!(said, "dept: unknown key (did you mean \"depth\"?); allowed: first, depth, name, last, sizes");
    }
}
