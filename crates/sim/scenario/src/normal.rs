//! Expands short forms and unifies the two forms of a scenario: the first `[[level]]` becomes `[cache]` and `[policy]`.

use headstart_types::KeyError;
use toml::{Table, Value};

use super::level::policy_of;

const FIRST_KEYS: [&str; 9] =
    ["name", "blocks", "size", "footprint", "initial", "write_delay", "write_cluster", "policy", "replacement"];

/// Expands short forms: a bare string in place of a table with a name, and the first `[[level]]` into `[cache]` and
/// `[policy]`; `level` keeps the levels below it.
///
/// # Errors
/// If both forms are used, or if a level is not a table.
pub fn normal_form(mut table: Table) -> Result<Table, KeyError> {
    name_to_table(&mut table, "policy", "name");
    name_to_table(&mut table, "device", "model");
    if let Some(levels) = table.remove("level") {
        first_level(&mut table, levels)?;
    }
    Ok(table)
}

/// Replaces a bare name by a table with that name.
pub fn name_to_table(table: &mut Table, section: &str, key: &str) {
    if let Some(Value::String(name)) = table.get(section) {
        let name = name.clone();
        table.insert(section.into(), Table::from_iter([(key.to_owned(), Value::String(name))]).into());
    }
}

/// Moves the first level to `[cache]` and `[policy]`.
fn first_level(table: &mut Table, levels: Value) -> Result<(), KeyError> {
    const ALLOWED: &str = "one or more [[level]], or [cache] and [policy]";
    if table.contains_key("cache") || table.contains_key("policy") {
        return Err(KeyError::new("level", "given together with [cache] or [policy]", ALLOWED));
    }
    let mut levels = match levels {
        Value::Array(levels) => levels,
        other => vec![other],
    };
    let rest = levels.split_off(levels.len().min(1));
    let Some(Value::Table(mut level)) = levels.pop() else {
        return Err(KeyError::new("level", "is not a table", ALLOWED));
    };
    if let Some(key) = level.keys().find(|key| !FIRST_KEYS.contains(&key.as_str())) {
        return Err(KeyError::unknown_key(key, FIRST_KEYS.into_iter()).within("level[0]"));
    }
    let policy = policy_of(level.remove("policy"), level.remove("replacement"));
    let policy = policy.map_err(|error| error.within("level[0]"))?;
    table.insert("cache".into(), level.into());
    table.insert("policy".into(), policy.into());
    if !rest.is_empty() {
        table.insert("level".into(), rest.into());
    }
    Ok(())
}

/// Translates an error at `[cache]` or `[policy]` to the key that the user wrote in a scenario with levels.
#[must_use]
pub fn as_written(mut error: KeyError) -> KeyError {
    let (section, rest) = error.key.split_at(error.key.find('.').unwrap_or(error.key.len()));
    match section {
        "cache" => error.key = format!("level[0]{rest}"),
        "policy" => error.key = format!("level[0].policy{rest}"),
        _ => {}
    }
    error
}
