//! Locates and describes a TOML syntax error.

use crate::printable;

/// The line of `text` at which `error` occurs, from 1, and what is wrong there.
#[must_use]
pub fn toml_problem(text: &str, error: &toml::de::Error) -> (usize, String) {
    const SHOWN_MAX: usize = 60;
    let at = error.span().map_or(0, |span| span.start);
    let line = text.get(..at).unwrap_or(text).matches('\n').count();
    let shown: String = text.lines().nth(line).unwrap_or("").trim().chars().take(SHOWN_MAX).collect();
    let problem = match shown.as_str() {
        "" => "the text ends too early".to_owned(),
        _ if is_given_twice(text, line) => "a key is given twice".to_owned(),
        shown => format!("not understood: {}", printable(shown)),
    };
    (line + 1, problem)
}

/// Whether the key of line `line` occurs earlier in the same table, or its `[header]` anywhere earlier.
fn is_given_twice(text: &str, line: usize) -> bool {
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let header = |line: &str| line.trim().starts_with('[').then(|| line.trim().to_owned());
    let before: Vec<&str> = text.lines().take(line).collect();
    let Some(own) = text.lines().nth(line) else { return false };
    match (header(own), key(own)) {
        (Some(own), _) => !own.starts_with("[[") && before.iter().any(|line| header(line).as_ref() == Some(&own)),
        (None, Some(own)) => {
            let mut table = before.iter().rev().take_while(|line| header(line).is_none());
            table.any(|line| key(line).as_ref() == Some(&own))
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table;

    #[test]
    fn a_line_that_is_no_toml_is_shown() {
        let say = |text: &str| toml_problem(text, &text.parse::<Table>().expect_err(text));
        assert_eq!(say("seed = 1\nx = = 2\n"), (2, "not understood: x = = 2".to_owned()));
        assert_eq!(say("x = 1\nx = 2\n"), (2, "a key is given twice".to_owned()));
        assert_eq!(say("[a]\nx = 1\n[b]\nx = 1\n[a]\n"), (5, "a key is given twice".to_owned()));
        assert_eq!(say("[a]\nx = 1\n[b]\nx = ?\n"), (4, "not understood: x = ?".to_owned()));
    }
}
