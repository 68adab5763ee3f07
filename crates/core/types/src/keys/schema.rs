//! The JSON Schema of a struct of keys, and what is derived from it: bounds, descriptions, names.

use schemars::generate::SchemaSettings;
use schemars::JsonSchema;
use serde_json::{json, Map, Value as Json};
use toml::{Table, Value};

use crate::{Bytes, Nanos};

/// The schema of a type, without references to definitions and without null, which TOML does not have.
#[must_use]
pub fn schema_of<K: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<K>().to_value();
    without_null(&mut schema);
    schema
}

fn without_null(schema: &mut Json) {
    match schema {
        Json::Object(keys) => {
            if keys.get("default").is_some_and(Json::is_null) {
                keys.shift_remove("default");
            }
            if let Some(Json::Array(types)) = keys.get_mut("type") {
                types.retain(|each| each != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    keys.insert("type".into(), only);
                }
            }
            for of in ["anyOf", "oneOf"] {
                let Some(Json::Array(mut choices)) = keys.shift_remove(of) else { continue };
                choices.retain(|each| each.get("type").is_none_or(|kind| kind != "null"));
                match choices.pop() {
                    // Keywords beside the choice belong to the field itself and win.
                    Some(Json::Object(only)) if choices.is_empty() => only.into_iter().for_each(|(key, value)| {
                        keys.entry(key).or_insert(value);
                    }),
                    Some(last) => {
                        choices.push(last);
                        keys.insert(of.into(), choices.into());
                    }
                    None => {}
                }
            }
            keys.values_mut().for_each(without_null);
        }
        Json::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// The range of a number, of a time in nanoseconds or of a size in bytes.
pub(super) struct Bounds {
    least: f64,
    above: f64,
    pub most: f64,
    below: f64,
}

impl Bounds {
    pub fn of(schema: &Json) -> Self {
        let number = |name: &str| schema.get(name).and_then(Json::as_f64);
        let unit = |name: &str| match (schema.get("x-unit")?.as_str()?, schema.get(name)?.as_str()?) {
            ("time", text) => text.parse().ok().map(|time: Nanos| time.0 as f64),
            (_, text) => text.parse().ok().map(|size: Bytes| size.0 as f64),
        };
        Self {
            least: number("minimum").or_else(|| unit("x-min")).unwrap_or(f64::NEG_INFINITY),
            above: number("exclusiveMinimum").unwrap_or(f64::NEG_INFINITY),
            most: number("maximum").or_else(|| unit("x-max")).unwrap_or(f64::INFINITY),
            below: number("exclusiveMaximum").unwrap_or(f64::INFINITY),
        }
    }

    pub fn hold(&self, number: f64) -> bool {
        let above = number > self.above || self.above == f64::NEG_INFINITY;
        let below = number < self.below || self.below == f64::INFINITY;
        number >= self.least && number <= self.most && above && below
    }
}

/// What a schema allows, in words.
pub(super) fn allowed(schema: &Json) -> String {
    let text = |name: &str| schema.get(name).and_then(Json::as_str);
    if let Some(words) = text("x-allowed") {
        return words.to_owned();
    }
    let number = |name: &str| schema.get(name).filter(|bound| bound.is_number()).map(plain);
    let bounds = |least: Option<String>, most: Option<String>| match (least, most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    let shown = |name: &str| text(name).map(str::to_owned);
    match (text("x-unit"), text("type")) {
        (Some(unit), _) if text("x-min").or(text("x-max")).is_some() => {
            format!("a {unit}{}", bounds(shown("x-min"), shown("x-max")))
        }
        (Some("time"), _) => Nanos::ALLOWED.to_owned(),
        (Some("size"), _) => Bytes::ALLOWED.to_owned(),
        (_, Some("integer")) => format!("a whole number{}", bounds(number("minimum"), number("maximum"))),
        (_, Some("number")) => match (number("exclusiveMinimum"), number("exclusiveMaximum"), number("maximum")) {
            (Some(above), _, Some(most)) => format!("a number above {above}, at most {most}"),
            (Some(above), _, None) => format!("a number above {above}"),
            (None, Some(below), _) => {
                format!("a number from {} to below {below}", number("minimum").unwrap_or_default())
            }
            (None, None, most) => format!("a number{}", bounds(number("minimum"), most)),
        },
        (_, Some("string")) => match names(schema) {
            Some(names) => names,
            None => "a quoted string".to_owned(),
        },
        (_, Some("boolean")) => "true or false".to_owned(),
        (_, Some("array")) => match (number("minItems"), number("maxItems")) {
            (Some(least), Some(most)) if least == most => format!("a list of {least}"),
            (Some(least), Some(most)) => format!("a list of {least} to {most}"),
            (Some(least), None) => format!("a list of at least {least}"),
            (None, Some(most)) => format!("a list of at most {most}"),
            (None, None) => "a list".to_owned(),
        },
        (_, Some("object")) => "a table of keys".to_owned(),
        _ => names(schema).unwrap_or_else(|| "see `headstart simulate --explain`".to_owned()),
    }
}

/// The names of an enumeration.
fn names(schema: &Json) -> Option<String> {
    let quoted = |list: Vec<&Json>| list.into_iter().map(Json::to_string).collect::<Vec<_>>().join(", ");
    match schema.get("enum").and_then(Json::as_array) {
        Some(list) => Some(quoted(list.iter().collect())),
        None => {
            let list = schema.get("oneOf")?.as_array()?;
            Some(quoted(list.iter().map(|each| each.get("const")).collect::<Option<_>>()?))
        }
    }
}

/// A number as a user would write it: 1 rather than 1.0.
fn plain(number: &Json) -> String {
    number.as_f64().map_or_else(String::new, |number| number.to_string())
}

/// What key `key` of the table at `path` allows.
pub(super) fn allowed_of(schema: &Json, path: &str, key: &str) -> String {
    let mut steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    let inner = steps.try_fold(schema, |at, step| match step.strip_suffix(']') {
        Some(_) => at.get("items"),
        None => at.get("properties")?.get(step),
    });
    inner.and_then(|table| table.get("properties")?.get(key)).map_or_else(|| "a value".to_owned(), allowed)
}

/// A TOML float or integer as a number.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// The keys of a struct's schema, in their order.
#[must_use]
pub fn property_names(schema: &Json) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Json::as_object)
        .map_or_else(Vec::new, |map| map.keys().map(String::as_str).collect())
}

/// The keys absent from `given` whose default is described in words (`x-absent`), each with that description.
#[must_use]
pub fn absent_in_words(schema: &Json, given: &Table) -> Vec<(String, String)> {
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Vec::new() };
    let absent = properties.iter().filter(|(key, _)| !given.contains_key(*key));
    absent.filter_map(|(key, property)| Some((key.clone(), property.get("x-absent")?.as_str()?.to_owned()))).collect()
}

/// The schema of a thing chosen by name: a bare name, or a table with the name and that name's keys. `rows` holds
/// names, summaries and schemas; `common` holds keys that every name accepts. With a `default`, the table may omit the
/// name.
#[must_use]
pub fn one_of(rows: &[(&str, &str, Json)], common: &Map<String, Json>, default: Option<&str>) -> Json {
    let names: Vec<Json> =
        rows.iter().map(|(name, summary, _)| json!({"const": name, "description": summary})).collect();
    let tables = rows.iter().map(|(name, summary, keys)| {
        let mut properties = Map::from_iter([("name".to_owned(), json!({"const": name, "description": summary}))]);
        properties.extend(common.clone());
        properties.extend(keys.get("properties").and_then(Json::as_object).cloned().unwrap_or_default());
        let mut required: Vec<Json> = keys.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
        if default != Some(name) {
            required.push("name".into());
        }
        json!({
            "title": name, "description": summary, "type": "object", "properties": properties,
            "required": required, "additionalProperties": false,
        })
    });
    let choices: Vec<Json> = std::iter::once(json!({"type": "string", "oneOf": names})).chain(tables).collect();
    json!({"anyOf": choices})
}

/// A schema with a description, and a default if there is one.
#[must_use]
pub fn optional(mut schema: Json, description: &str, default: Option<Json>) -> Json {
    if let Some(keys) = schema.as_object_mut() {
        keys.insert("description".into(), description.into());
        if let Some(default) = default {
            keys.insert("default".into(), default);
        }
    }
    schema
}
