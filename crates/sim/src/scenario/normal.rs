//! Short forms written out, and `--set key=value`.

use headstart_types::KeyError;
use toml::{Table, Value};

/// Writes out short forms: a bare string where a table with a name may stand, the first `[[level]]` as `[cache]` and
/// `[policy]`; what is left of `level` are those below it.
pub fn normal_form(mut table: Table) -> Result<Table, KeyError> {
    name_to_table(&mut table, "policy", "name");
    name_to_table(&mut table, "device", "model");
    if let Some(levels) = table.remove("level") {
        first_level(&mut table, levels)?;
    }
    Ok(table)
}

fn name_to_table(table: &mut Table, section: &str, key: &str) {
    if let Some(Value::String(name)) = table.get(section) {
        let name = name.clone();
        table.insert(section.into(), Table::from_iter([(key.to_owned(), Value::String(name))]).into());
    }
}

/// The first level is the same as `[cache]` and `[policy]`.
fn first_level(table: &mut Table, levels: Value) -> Result<(), KeyError> {
    const ALLOWED: &str = "[[level]] one after another, or [cache] and [policy]";
    if table.contains_key("cache") || table.contains_key("policy") {
        return Err(KeyError::new("level", "given beside [cache] or [policy]", ALLOWED));
    }
    let mut levels = match levels {
        Value::Array(levels) => levels,
        other => vec![other],
    };
    let rest = levels.split_off(levels.len().min(1));
    let Some(Value::Table(mut level)) = levels.pop() else {
        return Err(KeyError::new("level", "is no table", ALLOWED));
    };
    let policy = super::level::take_policy(&mut level).map_err(|error| error.within("level"))?;
    table.insert("cache".into(), level.into());
    table.insert("policy".into(), policy.into());
    if !rest.is_empty() {
        table.insert("level".into(), rest.into());
    }
    Ok(())
}

/// Lays one `a.b=value` over the scenario. The value is TOML; what is no TOML value is taken as a string.
pub fn set(table: &mut Table, text: &str) -> Result<(), KeyError> {
    let allowed = "key=value, such as device.count=4 or policy.name=forestall";
    let (path, value) = text.split_once('=').ok_or_else(|| KeyError::new(text, "no value in --set", allowed))?;
    let value = format!("x = {value}").parse::<Table>().ok().and_then(|mut parsed| parsed.remove("x"));
    let value = value.unwrap_or_else(|| Value::String(text[path.len() + 1..].trim().to_owned()));
    let path: Vec<&str> = path.trim().split('.').collect();
    let (last, sections) = path.split_last().expect("split gives at least one part");
    if path.iter().any(|part| part.is_empty()) {
        return Err(KeyError::new(text, "an empty key in --set", allowed));
    }
    let mut at = table;
    for section in sections {
        if let Some(Value::String(_)) = at.get(*section) {
            // `policy = "lru"` and then `policy.x=1`: the short form gives way to the table that it stands for.
            name_to_table(at, section, if *section == "device" { "model" } else { "name" });
        }
        let next = at.entry((*section).to_owned()).or_insert_with(|| Table::new().into());
        at = next.as_table_mut().ok_or_else(|| KeyError::new(*section, "is no table", allowed))?;
    }
    at.insert((*last).to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: &str, sets: &[&str]) -> Table {
        let mut table: Table = start.parse().expect("TOML");
        sets.iter().for_each(|each| set(&mut table, each).expect(each));
        table
    }

    #[test]
    fn overrides_are_toml_values_or_bare_strings() {
        let table = after(
            "policy = \"demand\"",
            &["policy.replacement=min", "device.count=4", "cache.initial=[\"A\"]", "x=1.5"],
        );
        let expected = "policy = {name = \"demand\", replacement = \"min\"}\ndevice = {count = 4}\ncache = {initial = [\"A\"]}\nx = 1.5";
        assert_eq!(table, expected.parse().expect("TOML"));
        assert!(set(&mut Table::new(), "device.count").is_err());
        assert!(set(&mut Table::new(), "device..count=1").is_err());
    }
}
