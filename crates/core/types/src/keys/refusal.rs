//! Why serde rejected a value, in structured form, so that no error text has to be parsed.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::error::meant;

/// Why a type rejected a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An unknown key, with the known ones.
    UnknownKey { key: String, known: &'static [&'static str] },
    /// A key without a default is missing.
    MissingKey(&'static str),
    /// A value that its key does not accept.
    Value { problem: String, allowed: String },
}

impl Refusal {
    pub fn value(problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Refusal::Value { problem: problem.into(), allowed: allowed.into() }
    }
}

/// Names in quotes, for the list of what an enumeration allows.
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnknownKey { key, .. } => write!(f, "{key} is unknown"),
            Refusal::MissingKey(key) => write!(f, "{key} is missing"),
            Refusal::Value { problem, allowed } => write!(f, "{problem}; allowed: {allowed}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Error for Refusal {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Refusal::value(problem.to_string(), "see `headstart simulate --explain`")
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Refusal::value(in_words(found), expected.to_string())
    }

    /// The project's own types report what is wrong as [`Unexpected::Other`].
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Other(problem) => Refusal::value(problem, expected.to_string()),
            Unexpected::Signed(number) => Refusal::value(format!("{number} is out of range"), expected.to_string()),
            Unexpected::Unsigned(number) => Refusal::value(format!("{number} is out of range"), expected.to_string()),
            Unexpected::Float(number) => Refusal::value(format!("{number} is out of range"), expected.to_string()),
            other => Refusal::value(in_words(other), expected.to_string()),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Refusal::value(format!("a list of {length}"), expected.to_string())
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Refusal::value(format!("\"{name}\" is unknown{}", meant(name, known)), quoted(known))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Refusal::UnknownKey { key: key.to_owned(), known }
    }

    fn missing_field(key: &'static str) -> Self {
        Refusal::MissingKey(key)
    }
}

/// Describes a value of the wrong type.
pub(super) fn in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("{value} is not accepted here"),
        Unexpected::Signed(number) => format!("{number} is a number"),
        Unexpected::Unsigned(number) => format!("{number} is a number"),
        Unexpected::Float(number) => format!("{number} is a number"),
        Unexpected::Str(text) => format!("\"{text}\" is a string"),
        Unexpected::Seq => "a list is not accepted here".to_owned(),
        Unexpected::Map => "a table is not accepted here".to_owned(),
        other => format!("{other} is not accepted here"),
    }
}
