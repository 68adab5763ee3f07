//! Tables of keys, as scenarios and profiles hold them, read into typed structs.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::meant;
use crate::KeyError;

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
        let problem = match problem.starts_with("unknown field") {
            // The names that are known stand in quotes.
            true => format!("unknown key{}", meant(&key, &allowed.split('"').skip(1).step_by(2).collect::<Vec<_>>())),
            false => problem.to_owned(),
        };
        let allowed = match allowed.trim_start_matches("one of ") {
            "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
            "i64" => "a whole number".to_owned(),
            "f64" => "a number".to_owned(),
            "a string" => "a text in quotes".to_owned(),
            other => other.to_owned(),
        };
        KeyError::new(key, problem, allowed)
    })
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
        assert!(error.starts_with("overhead: invalid type: integer \"5\"; allowed: a time with a unit"), "{error}");
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
            .starts_with("horizon: invalid value: integer \"-1\"; allowed: a whole number from 0"));
        assert!(fail("horizon = 1\noverhead = \"5\"")
            .starts_with("overhead: \"5\" has no unit; allowed: a time with a unit"));
    }
}
