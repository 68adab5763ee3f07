//! The error of a scenario key or a command argument: which key, what is wrong, what is allowed.

use crate::printable;

/// A user's mistake at one key of a scenario, a profile or a command.
///
/// Displayed on one line with control characters escaped: ``policy.horizon: must not be negative; allowed: a whole
/// number from 0``.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}; allowed: {}", printable(key), printable(problem), printable(allowed))]
pub struct KeyError {
    /// Dotted path of the key, as the user would write it after `--set`.
    pub key: String,
    /// What is wrong with its value.
    pub problem: String,
    /// What is accepted instead.
    pub allowed: String,
}

impl KeyError {
    /// An error at `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), allowed: allowed.into() }
    }

    /// An unknown name for a `kind`, such as "policy"; `names` lists the known ones.
    pub fn unknown<'a>(key: &str, kind: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.collect();
        Self::new(key, format!("unknown {kind} \"{name}\"{}", meant(name, &names)), names.join(", "))
    }

    /// An unknown key; `names` lists the known ones.
    pub fn unknown_key<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.collect();
        Self::new(key, format!("unknown key{}", meant(key, &names)), names.join(", "))
    }

    /// The same error with the key's path extended by an outer table: `prefix.key`.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.key = if self.key.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", self.key) };
        self
    }
}

/// The system's error message without its number: "No such file or directory".
#[must_use]
pub fn system_says(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A suggestion such as " (did you mean \"forestall\"?)" if a known name is close, else an empty string.
pub(crate) fn meant(name: &str, names: &[&str]) -> String {
    let name = name.to_lowercase();
    // One typing error per three letters, and at most three: beyond that it is another word.
    let most = (name.chars().count() / 3).clamp(1, 3);
    let distance = |other: &&&str| strsim::osa_distance(&name, &other.to_lowercase());
    match names.iter().min_by_key(distance).filter(|nearest| distance(nearest) <= most) {
        Some(nearest) => format!(" (did you mean \"{nearest}\"?)"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_quoted_without_numbers() {
        let missing = std::fs::read("/no/such/file").expect_err("it is not there");
        assert_eq!(system_says(&missing), "No such file or directory");
        let text = std::io::Error::new(std::io::ErrorKind::InvalidData, "is no text");
        assert_eq!(system_says(&text), "is no text");
    }

    #[test]
    fn an_unknown_name_brings_the_nearest() {
        let policies = ["demand", "forestall", "obl", "ra", "amp"];
        let unknown = |name: &str| KeyError::unknown("policy.name", "policy", name, policies.into_iter()).to_string();
        let all = "allowed: demand, forestall, obl, ra, amp";
        for (name, meant) in [("forestal", "forestall"), ("demnad", "demand"), ("FORESTALL", "forestall"), ("rs", "ra")]
        {
            let expected = format!("policy.name: unknown policy \"{name}\" (did you mean \"{meant}\"?); {all}");
            assert_eq!(unknown(name), expected);
        }
        for name in ["lookahead", "", "read-ahead"] {
            assert_eq!(unknown(name), format!("policy.name: unknown policy \"{name}\"; {all}"));
        }
        assert_eq!(
            KeyError::unknown("x", "thing", "a", [].into_iter()).to_string(),
            "x: unknown thing \"a\"; allowed: "
        );
        let key = KeyError::unknown_key("lnik", ["name", "link"].into_iter()).within("level[1]").to_string();
        assert_eq!(key, "level[1].lnik: unknown key (did you mean \"link\"?); allowed: name, link");
    }
}
