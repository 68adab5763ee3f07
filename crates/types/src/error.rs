//! The error of a scenario key or a command argument: which key, what is wrong, what is allowed.

/// A user's mistake at one key of a scenario, a profile or a command.
///
/// Displayed on one line: ``policy.horizon: must not be negative; allowed: a whole number from 0``.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}; allowed: {allowed}")]
pub struct KeyError {
    /// Dotted path of the key, as the user would write it after `--set`.
    pub key: String,
    /// What is wrong with its value.
    pub problem: String,
    /// What would have been accepted.
    pub allowed: String,
}

impl KeyError {
    /// An error at `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), allowed: allowed.into() }
    }

    /// There is no `kind` of that name; `names` are those that there are.
    pub fn unknown<'a>(key: &str, kind: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        Self::new(key, format!("unknown {kind} \"{name}\""), names.collect::<Vec<_>>().join(", "))
    }

    /// The same error, seen from one table further out: `prefix.key`.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.key = if self.key.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", self.key) };
        self
    }
}
