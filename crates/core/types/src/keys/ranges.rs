//! Checks a table against the ranges in a struct's schema before it is read.

use std::fmt;

use serde_json::Value as Json;
use toml::Value;

use super::schema::{allowed, number_of, Bounds};
use crate::{Bytes, KeyError, Nanos};

/// The path of a value; formatted only for an error.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Top,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Top => Ok(()),
            Path::Key(Path::Top, key) => f.write_str(key),
            Path::Key(table, key) => write!(f, "{table}.{key}"),
            Path::Item(list, index) => write!(f, "{list}[{index}]"),
        }
    }
}

/// Reports the first value within `value`, at `path`, that is out of range. Values of a wrong type are skipped.
pub(super) fn check(schema: &Json, value: &Value, path: Path<'_>) -> Result<(), KeyError> {
    match value {
        Value::Table(table) => {
            let Some(properties) = schema.get("properties") else { return Ok(()) };
            let known = |(key, value): (&String, &Value)| match properties.get(key) {
                Some(property) => check(property, value, Path::Key(&path, key)),
                None => Ok(()),
            };
            table.iter().try_for_each(known)
        }
        Value::Array(list) => {
            let bound = |name: &str| schema.get(name).and_then(Json::as_u64);
            let outside = bound("minItems").is_some_and(|least| (list.len() as u64) < least)
                || bound("maxItems").is_some_and(|most| list.len() as u64 > most);
            if outside {
                let problem = if list.is_empty() { "is empty".to_owned() } else { format!("a list of {}", list.len()) };
                return Err(KeyError::new(path.to_string(), problem, allowed(schema)));
            }
            let Some(items) = schema.get("items") else { return Ok(()) };
            list.iter().enumerate().try_for_each(|(index, item)| check(items, item, Path::Item(&path, index)))
        }
        Value::String(text) => {
            let bounds = Bounds::of(schema);
            let number = match schema.get("x-unit").and_then(Json::as_str) {
                Some("time") => text.parse().ok().map(|time: Nanos| (time.0 as f64, time.to_string())),
                Some("size") => text.parse().ok().map(|size: Bytes| (size.0 as f64, size.to_string())),
                _ => None,
            };
            match number {
                Some((number, shown)) if !bounds.hold(number) => {
                    let problem = match schema.get("x-unit").and_then(Json::as_str) {
                        Some("time") if number > bounds.most => "too long",
                        _ if number > bounds.most => "too large",
                        _ => "out of range",
                    };
                    Err(KeyError::new(path.to_string(), format!("{shown} is {problem}"), allowed(schema)))
                }
                _ => Ok(()),
            }
        }
        _ => match number_of(value) {
            Some(number) if takes_numbers(schema, value) && !Bounds::of(schema).hold(number) => {
                Err(KeyError::new(path.to_string(), format!("{value} is out of range"), allowed(schema)))
            }
            _ => Ok(()),
        },
    }
}

fn takes_numbers(schema: &Json, value: &Value) -> bool {
    match schema.get("type").and_then(Json::as_str) {
        Some("number") => true,
        Some("integer") => value.is_integer(),
        _ => false,
    }
}
