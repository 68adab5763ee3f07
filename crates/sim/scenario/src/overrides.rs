//! `--set key=value`: overrides a value of a scenario.
//!
//! A key is a path of names separated by dots. An item of a list is given by its index in brackets, as in errors
//! (`level[1].policy.degree`), or after a dot by its name or index (`level.L2.policy.degree`, `level.1.policy.degree`).

use headstart_types::KeyError;
use toml::{Table, Value};

use super::cache::{default_name, SIZES};
use super::normal::name_to_table;

/// Examples of the argument of `--set`.
const ALLOWED: &str = "key=value, such as device.count=4 or level[1].policy.name=ra";

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// A key of a table, or a name or index in a list.
    Name(&'a str),
    Index(usize),
}

/// Applies one `a.b=value` to the scenario. The value is TOML; text that is not a TOML value is taken as a string.
///
/// # Errors
/// If the text is not a setting, or its key cannot be reached.
pub fn set(scenario: &mut Table, text: &str) -> Result<(), KeyError> {
    let (path, value) = text.split_once('=').ok_or_else(|| KeyError::new(text, "no value in --set", ALLOWED))?;
    let steps = steps(path.trim()).ok_or_else(|| KeyError::new(text, "is not a setting", ALLOWED))?;
    one_form(scenario, &steps, path.trim())?;
    let value = value.trim();
    let parsed = format!("x = {value}").parse::<Table>().ok().and_then(|mut parsed| parsed.remove("x"));
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    lay_in_table(scenario, "", &steps, value)
}

/// The steps of a path; `None` if it is not one.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        let name = name.trim();
        if name.is_empty() || name.contains(']') {
            return None;
        }
        steps.push(Step::Name(name));
        let mut rest = indices.trim();
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Index(index.trim().parse().ok()?));
            rest = after.trim_start();
        }
    }
    Some(steps)
}

/// A scenario has either `[cache]` and `[policy]`, or levels: a key of the other form is ambiguous.
fn one_form(scenario: &Table, steps: &[Step<'_>], path: &str) -> Result<(), KeyError> {
    let levels = scenario.get("level");
    match (steps, levels) {
        ([Step::Name("cache" | "policy"), ..], Some(Value::Array(levels))) => {
            Err(KeyError::new(path, "the scenario uses levels", items("level", levels)))
        }
        ([Step::Name("level"), _, ..], None) => {
            let allowed = "keys of cache and policy, or [[level]] in the scenario";
            Err(KeyError::new(path, "the scenario has no [[level]]", allowed))
        }
        _ => Ok(()),
    }
}

/// `at` is the path so far.
fn lay_in_table(table: &mut Table, at: &str, steps: &[Step<'_>], value: Value) -> Result<(), KeyError> {
    let (name, rest) = match steps {
        [Step::Name(name), rest @ ..] => (*name, rest),
        _ => return Err(KeyError::new(at, "is not a list", "a key of it after a dot")),
    };
    if rest.is_empty() {
        if SIZES.contains(&name) && (at == "cache" || at.starts_with("level[")) {
            // There is one size: the new one replaces the previous one.
            SIZES.iter().for_each(|size| drop(table.remove(*size)));
        }
        table.insert(name.to_owned(), value);
        return Ok(());
    }
    let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    if let (Some(Value::String(_)), Step::Name(_)) = (table.get(name), rest[0]) {
        // `policy = "lru"` and then `policy.x=1`: the short form is replaced by the table that it stands for.
        name_to_table(table, name, if path == "device" { "model" } else { "name" });
    }
    if let (None, Step::Index(_)) = (table.get(name), rest[0]) {
        return Err(KeyError::new(path, "is not given, so it has no items", "the whole list, as in key=[...]"));
    }
    match table.entry(name.to_owned()).or_insert_with(|| Table::new().into()) {
        Value::Table(inner) => lay_in_table(inner, &path, rest, value),
        Value::Array(list) => lay_in_list(list, &path, rest, value),
        other => Err(KeyError::new(path, format!("{other} is neither a table nor a list"), ALLOWED)),
    }
}

fn lay_in_list(list: &mut [Value], at: &str, steps: &[Step<'_>], value: Value) -> Result<(), KeyError> {
    let (step, rest) = steps.split_first().expect("a list is reached with a step to go");
    let found = match step {
        Step::Index(index) => (*index < list.len()).then_some(*index),
        Step::Name(name) => (0..list.len())
            .find(|index| item_name(at, *index, &list[*index]).is_some_and(|own| own == *name))
            .or_else(|| name.parse().ok().filter(|index| *index < list.len())),
    };
    let Some(index) = found else {
        let path = match step {
            Step::Index(index) => format!("{at}[{index}]"),
            Step::Name(name) => format!("{at}.{name}"),
        };
        return Err(KeyError::new(path, "there is no such item", items(at, list)));
    };
    let path = format!("{at}[{index}]");
    match (&mut list[index], rest) {
        (item, []) => {
            *item = value;
            Ok(())
        }
        (Value::Table(inner), _) => lay_in_table(inner, &path, rest, value),
        (Value::Array(inner), _) => lay_in_list(inner, &path, rest, value),
        (other, _) => Err(KeyError::new(path, format!("{other} is neither a table nor a list"), ALLOWED)),
    }
}

/// The name of an item of the list at `at`, if its items have names.
fn item_name(at: &str, index: usize, item: &Value) -> Option<String> {
    match item.as_table()?.get("name").and_then(Value::as_str) {
        Some(name) => Some(name.to_owned()),
        None if at == "level" => Some(default_name(index)),
        None => None,
    }
}

/// The ways to name items of a list.
fn items(at: &str, list: &[Value]) -> String {
    let named: Vec<String> = (0..list.len())
        .filter_map(|index| Some(format!("{at}[{index}] ({})", item_name(at, index, &list[index])?)))
        .collect();
    match list.len() {
        0 => format!("{at}=[...]: the list is empty"),
        count if named.len() == count => named.join(", "),
        1 => format!("{at}[0]"),
        count => format!("{at}[0] to {at}[{}]", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_LEVELS: &str = "workload = {references = [\"A\", \"B\"]}\nlevel = [{blocks = 4, policy = \"ra\"}, \
                              {name = \"server\", size = \"1MiB\"}]";

    fn after(start: &str, sets: &[&str]) -> Table {
        let mut table: Table = start.parse().expect("TOML");
        sets.iter().for_each(|each| set(&mut table, each).expect(each));
        table
    }

    fn refused(start: &str, text: &str) -> String {
        set(&mut start.parse().expect("TOML"), text).expect_err(text).to_string()
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

    #[test]
    fn a_level_is_named_by_index_or_by_name() {
        let expected = "workload = {references = [\"A\", \"B\"]}\n\
                        level = [{blocks = 4, policy = {name = \"ra\", degree = 8}}, {name = \"server\", size = \"1MiB\"}]";
        for key in ["level[0]", "level.0", "level.L1", "level [ 0 ]"] {
            let table = after(TWO_LEVELS, &[&format!("{key}.policy.degree=8")]);
            assert_eq!(table, expected.parse().expect("TOML"), "{key}");
        }
        for key in ["level[1]", "level.1", "level.server"] {
            let table = after(TWO_LEVELS, &[&format!("{key}.policy=amp")]);
            assert_eq!(table["level"][1]["policy"].as_str(), Some("amp"), "{key}");
        }
    }

    #[test]
    fn any_item_of_a_list_can_be_set() {
        let table = after(TWO_LEVELS, &["workload.references[1]=C", "level[1]={name = \"L2\", blocks = 1}"]);
        assert_eq!(table["workload"]["references"], Value::from(vec!["A", "C"]));
        assert_eq!(table["level"][1]["blocks"].as_integer(), Some(1));
        let table = after("device = {layout = [[\"A\"], [\"B\", \"C\"]]}", &["device.layout[1][0]=D"]);
        assert_eq!(table["device"]["layout"][1], Value::from(vec!["D", "C"]));
    }

    #[test]
    fn a_size_takes_the_place_of_another() {
        let table = after(TWO_LEVELS, &["level.server.blocks=7", "level.L1.footprint=0.5"]);
        assert_eq!(
            table["level"],
            "x = [{policy = \"ra\", footprint = 0.5}, {name = \"server\", blocks = 7}]".parse::<Table>().expect("TOML")
                ["x"]
        );
        assert_eq!(after("cache = {blocks = 4}", &["cache.size=1MiB"])["cache"].as_table().expect("a table").len(), 1);
    }

    #[test]
    fn errors_list_what_exists() {
        let both = "allowed: level[0] (L1), level[1] (server)";
        assert_eq!(refused(TWO_LEVELS, "level[2].blocks=1"), format!("level[2]: there is no such item; {both}"));
        assert_eq!(refused(TWO_LEVELS, "level.L2.blocks=1"), format!("level.L2: there is no such item; {both}"));
        assert_eq!(refused(TWO_LEVELS, "level.7=1"), format!("level.7: there is no such item; {both}"));
        assert_eq!(refused(TWO_LEVELS, "policy.name=ra"), format!("policy.name: the scenario uses levels; {both}"));
        let none = "level[1].blocks: the scenario has no [[level]]; allowed: keys of cache and policy, or [[level]] in the scenario";
        assert_eq!(refused("", "level[1].blocks=1"), none);
        let range =
            "workload.references[2]: there is no such item; allowed: workload.references[0] to workload.references[1]";
        assert_eq!(refused(TWO_LEVELS, "workload.references[2]=C"), range);
        assert!(refused(TWO_LEVELS, "workload[0].x=1").starts_with("workload: is not a list; "));
        assert!(refused(TWO_LEVELS, "device.layout[0]=[]").starts_with("device.layout: is not given"));
        assert!(refused("seed = 1", "seed.x=1").starts_with("seed: 1 is neither a table nor a list; "));
    }

    #[test]
    fn paths_that_are_none() {
        for path in ["", ".", "a.", "a..b", "[0]", "a[", "a[]", "a[x]", "a[-1]", "a[1]b", "a[1][", "a]"] {
            let refused = refused("", &format!("{path}=1"));
            assert!(refused.starts_with(&format!("{path}=1: is not a setting; allowed: key=value")), "{refused}");
        }
    }
}
