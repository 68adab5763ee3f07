//! Tables of keys, as scenarios and profiles hold them, read into typed structs.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::meant;
use crate::{printable, KeyError};

/// Reads the keys of one table into a typed struct; an error names the key and what is allowed.
///
/// # Errors
/// An unknown key, a missing one, or a value of the wrong type or out of range.
pub fn typed_keys<K: DeserializeOwned>(keys: Table) -> Result<K, KeyError> {
    K::deserialize(Value::Table(keys.clone())).map_err(|error| {
        let message = error.message().replace('`', "\"");
        // serde does not say at which key a value was refused: find the one that fails in the same words alone.
        let fails_alone = |(key, value): &(&String, &Value)| {
            let alone = Table::from_iter([((*key).clone(), (*value).clone())]);
            K::deserialize(Value::Table(alone)).is_err_and(|alone| alone.message() == error.message())
        };
        let key = match message.strip_prefix("unknown field \"").and_then(|rest| rest.split_once('"')) {
            Some((unknown, _)) => unknown.to_owned(),
            None => keys.iter().find(fails_alone).map_or_else(String::new, |(key, _)| key.clone()),
        };
        let (problem, allowed) = message
            .split_once("; allowed: ")
            .or_else(|| message.split_once(", expected "))
            .or_else(|| message.split_once(", there are no fields").map(|(problem, _)| (problem, "no key here")))
            .unwrap_or((&message, "see `headstart simulate --explain`"));
        let (key, problem) = match missing(problem) {
            // The parser names a key that is not there; no value is at fault.
            Some(absent) => (absent.to_owned(), "is missing".to_owned()),
            // The names that are known stand in quotes.
            None if problem.starts_with("unknown field") => {
                let known: Vec<&str> = allowed.split('"').skip(1).step_by(2).collect();
                let problem = format!("unknown key{}", meant(&key, &known));
                (key, problem)
            }
            None => (key, in_words(problem)),
        };
        let allowed = match allowed.trim_start_matches("one of ") {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
            "i64" => "a whole number".to_owned(),
            "f64" => "a number".to_owned(),
            "a string" => "a text in quotes".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "a list".to_owned(),
            other if other == "a map" || other.starts_with("struct ") => "a table of keys".to_owned(),
            other => other.to_owned(),
        };
        KeyError::new(key, problem, allowed)
    })
}

/// The key that a parser misses.
fn missing(problem: &str) -> Option<&str> {
    problem.strip_prefix("missing field \"")?.strip_suffix('"')
}

/// A parser's message about a value, in terms of the format: parsers name types of their own language.
fn in_words(problem: &str) -> String {
    const KINDS: [(&str, &str); 6] = [
        ("integer ", "is a number"),
        ("floating point ", "is a number"),
        ("string ", "is a text"),
        ("boolean ", "is true or false"),
        ("sequence", "a list is no value here"),
        ("map", "a table is no value here"),
    ];
    if let Some(value) = problem.strip_prefix("invalid type: ") {
        let found = KINDS.iter().find_map(|(kind, words)| Some((value.strip_prefix(kind)?, *words)));
        return match found {
            Some(("", words)) => words.to_owned(),
            Some((value, words)) if words == "is a text" => format!("{value} {words}"),
            Some((value, words)) => format!("{} {words}", value.trim_matches('"')),
            None => "is a value of the wrong kind".to_owned(),
        };
    }
    if let Some(value) = problem.strip_prefix("invalid value: ") {
        let value = KINDS.iter().find_map(|(kind, _)| value.strip_prefix(kind)).unwrap_or(value);
        return format!("{} is out of range", value.trim_matches('"'));
    }
    if let Some(name) = problem.strip_prefix("unknown variant ") {
        return format!("{name} is unknown");
    }
    match problem.starts_with("data did not match") {
        true => "is a value of the wrong kind".to_owned(),
        false => problem.to_owned(),
    }
}

/// The line of `text` at which `error` is, from 1, and what is wrong there in a user's words.
#[must_use]
pub fn toml_problem(text: &str, error: &toml::de::Error) -> (usize, String) {
    const SHOWN_MAX: usize = 60;
    let at = error.span().map_or(0, |span| span.start);
    let line = text.get(..at).unwrap_or(text).matches('\n').count();
    if error.message().contains("duplicate key") {
        return (line + 1, "a key is given twice".to_owned());
    }
    let shown: String = text.lines().nth(line).unwrap_or("").trim().chars().take(SHOWN_MAX).collect();
    match shown.is_empty() {
        true => (line + 1, "the text ends too early".to_owned()),
        false => (line + 1, format!("not understood: {}", printable(&shown))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Keys {
        #[allow(dead_code)]
        horizon: u32,
        #[allow(dead_code)]
        overhead: Nanos,
    }

    impl Default for Keys {
        fn default() -> Self {
            Self { horizon: 62, overhead: Nanos::ZERO }
        }
    }

    #[test]
    fn a_number_is_no_time() {
        let error = typed_keys::<Keys>("overhead = 5".parse().expect("TOML")).expect_err("no unit").to_string();
        assert!(error.starts_with("overhead: 5 is a number; allowed: a time with a unit"), "{error}");
    }

    #[test]
    fn a_line_that_is_no_toml_is_shown() {
        let say = |text: &str| toml_problem(text, &text.parse::<Table>().expect_err(text));
        assert_eq!(say("seed = 1\nx = = 2\n"), (2, "not understood: x = = 2".to_owned()));
        assert_eq!(say("x = 1\nx = 2\n"), (2, "a key is given twice".to_owned()));
    }

    #[test]
    fn errors_name_the_key() {
        let fail = |text: &str| typed_keys::<Keys>(text.parse().expect("TOML")).expect_err(text).to_string();
        assert_eq!(
            fail("horizn = 3"),
            "horizn: unknown key (did you mean \"horizon\"?); allowed: \"horizon\" or \"overhead\""
        );
        assert_eq!(fail("depth = 3"), "depth: unknown key; allowed: \"horizon\" or \"overhead\"");
        assert!(fail("overhead = \"1ms\"\nhorizon = -1")
            .starts_with("horizon: -1 is out of range; allowed: a whole number from 0"));
        assert!(fail("horizon = 1\noverhead = \"5\"")
            .starts_with("overhead: \"5\" has no unit; allowed: a time with a unit"));
    }
}
