//! The options of `headstart run`: one table, from which lines are parsed here, and from which Python makes help, man
//! page and completion.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use headstart_types::{printable, KeyError};
use serde::Serialize;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing.
    Flag,
    /// One value; the last one counts.
    Value,
    /// A value each time that it is given.
    Repeated,
}

/// An option.
#[derive(Debug, Serialize)]
pub struct OptionRow {
    /// The name, with two dashes.
    pub name: &'static str,
    /// The letter, with one dash.
    pub letter: Option<&'static str>,
    /// The name of its value in help; empty for a flag.
    pub metavar: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What it takes.
    pub kind: Kind,
}

const fn value(name: &'static str, metavar: &'static str, help: &'static str) -> OptionRow {
    OptionRow { name, letter: None, metavar, help, kind: Kind::Value }
}

const fn flag(name: &'static str, help: &'static str) -> OptionRow {
    OptionRow { name, letter: None, metavar: "", help, kind: Kind::Flag }
}

/// All options but `--help`.
pub const OPTIONS: [OptionRow; 12] = [
    value("--hints", "FILE", "Recording of `headstart record` to prefetch from. Default: the recording of an earlier run of CMD."),
    value("--policy", "NAME", "A hinted policy of `headstart list policies`. Default: just-in-time."),
    OptionRow { kind: Kind::Repeated, ..value("--set", "KEY=VALUE", "Set a key of the policy. Repeatable.") },
    value("--budget", "SIZE", "Maximum of prefetched but unused data. Default: a quarter of free memory."),
    value("--device", "NAME|FILE", "The drive's profile, if Linux misreports whether it is rotational."),
    flag(
        "--trust",
        "Trust the hints: use the whole budget at once; on a disk with an arm, prefetch before CMD starts.",
    ),
    flag(
        "--cold",
        "Drop the page cache and the dentry and inode caches first. This affects all programs.",
    ),
    flag("--forget", "Without --hints: record this run and replace the earlier recording."),
    value(
        "--measure",
        "N",
        "Run CMD N times without and N times with prefetching, in random order and with dropped caches; print both medians.",
    ),
    value("--report", "FILE|-", "Write prefetch statistics as JSON to a file, or to stdout with -."),
    value("--openmetrics", "FILE", "Write the same statistics in OpenMetrics format."),
    OptionRow { letter: Some("-v"), ..flag("--verbose", "Print a one-line summary to stderr.") },
];
/// The name of the command in help.
pub const COMMAND: &str = "CMD...";

/// A parsed line: options in the order of the table, each with its values, and the command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    values: [Vec<OsString>; OPTIONS.len()],
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// `--help` or `-h`.
    pub help: bool,
}

impl Line {
    /// Parses the words after `headstart run`. Options end at `--` and at the first word that is not an option: the
    /// rest is the command.
    ///
    /// # Errors
    /// An unknown option, a missing or superfluous value, or no command.
    pub fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                line.command.extend(words.by_ref().cloned());
            } else if !bytes.starts_with(b"-") || bytes == b"-" {
                line.command.push(word.clone());
                line.command.extend(words.by_ref().cloned());
            } else if bytes == b"--help" || bytes == b"-h" {
                return Ok(Self { help: true, ..line });
            } else {
                let end = bytes.iter().position(|byte| *byte == b'=' && bytes.starts_with(b"--"));
                let (name, given) = bytes.split_at(end.unwrap_or(bytes.len()));
                let given = end.map(|_| OsStr::from_bytes(&given[1..]).to_owned());
                line.option(OsStr::from_bytes(name), given, || words.next().cloned())?;
            }
        }
        if line.command.is_empty() {
            return Err(mistake(&format!("Missing argument '{COMMAND}'")));
        }
        Ok(line)
    }

    fn option(
        &mut self,
        name: &OsStr,
        given: Option<OsString>,
        next: impl FnOnce() -> Option<OsString>,
    ) -> Result<(), String> {
        let is = |row: &OptionRow| name == row.name || row.letter.is_some_and(|letter| name == letter);
        let shown = name.to_string_lossy();
        let Some(at) = OPTIONS.iter().position(is) else {
            let names: Vec<_> = OPTIONS.iter().map(|row| row.name).collect();
            return Err(mistake(&format!("No such option: {shown}; allowed: {}", names.join(", "))));
        };
        match (OPTIONS[at].kind, given) {
            (Kind::Flag, Some(_)) => return Err(mistake(&format!("Option '{shown}' does not take a value"))),
            (Kind::Flag, None) => self.values[at] = vec![OsString::new()],
            (kind, given) => {
                let missing = || mistake(&format!("Option '{shown}' requires an argument"));
                let value = given.or_else(next).ok_or_else(missing)?;
                if kind == Kind::Value {
                    self.values[at].clear();
                }
                self.values[at].push(value);
            }
        }
        Ok(())
    }

    /// The values of an option of the table.
    ///
    /// # Panics
    /// The table has no option of that name.
    pub fn all(&self, name: &str) -> &[OsString] {
        let at = OPTIONS.iter().position(|row| row.name == name).expect("an option of the table");
        &self.values[at]
    }

    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// The value of an option.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.all(name).last().map(OsString::as_os_str)
    }

    /// The value of an option, as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>, KeyError> {
        self.value(name).map(|value| text(name, value)).transpose()
    }
}

/// `value` as text.
pub fn text<'a>(name: &str, value: &'a OsStr) -> Result<&'a str, KeyError> {
    let shown = value.as_bytes().escape_ascii();
    value.to_str().ok_or_else(|| KeyError::new(name, format!("\"{shown}\" is not UTF-8"), "text in UTF-8"))
}

fn mistake(what: &str) -> String {
    format!("headstart run: {}; see headstart run --help", printable(what))
}

/// The output of `--help` without Python.
pub fn help() -> String {
    let mut text = format!("Usage: headstart run [OPTIONS] [--] {COMMAND}\n\nRun CMD while the data that it will read are prefetched into the page cache.\n\nOptions:\n");
    for row in &OPTIONS {
        let letter = row.letter.map_or_else(|| "    ".to_owned(), |letter| format!("{letter}, "));
        let name = format!("{letter}{} {}", row.name, row.metavar);
        text += &format!("  {name:<28} {}\n", row.help);
    }
    text + "\nExample: headstart run -v -- git status\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Line, String> {
        Line::parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn lines_by_hand() {
        let line = parse("--hints=a=b --set x=1 -v --set y=2 --budget 1MiB --budget 2MiB -- -c --help").expect("fine");
        assert_eq!((line.value("--hints"), line.value("--budget")), (Some("a=b".as_ref()), Some("2MiB".as_ref())));
        assert_eq!(line.all("--set"), ["x=1", "y=2"]);
        assert!(line.has("--verbose") && !line.has("--trust"));
        assert_eq!(line.command, ["-c", "--help"]);
        assert_eq!(parse("--trust ls -v --trust").expect("fine").command, ["ls", "-v", "--trust"]);
        assert_eq!(parse("- -v").expect("a program's name").command, ["-", "-v"]);
        assert!(parse("-v -h").expect("help").help);
    }

    #[test]
    fn mistakes_are_one_line_that_says_what_is_allowed() {
        for (line, said) in [
            ("--foo x", "No such option: --foo; allowed: --hints, --policy, "),
            ("-x x", "No such option: -x; allowed: "),
            ("-vv x", "No such option: -vv; allowed: "),
            ("--hints", "Option '--hints' requires an argument; see "),
            ("--trust=1 x", "Option '--trust' does not take a value; see "),
            ("-v --", "Missing argument 'CMD...'; see "),
            ("--a\u{1b}b x", "No such option: --a\\u{1b}b; "),
        ] {
            let problem = parse(line).expect_err(line);
            assert!(problem.starts_with(&format!("headstart run: {said}")), "{problem}");
            assert!(problem.ends_with("; see headstart run --help"), "{problem}");
        }
    }

    #[test]
    fn every_option_of_the_table_is_parsed() {
        for row in &OPTIONS {
            for name in [Some(row.name), row.letter].into_iter().flatten() {
                let words = if row.kind == Kind::Flag { format!("{name} x") } else { format!("{name} 1 x") };
                assert!(parse(&words).expect("fine").has(row.name), "{name}");
            }
            assert!(help().contains(row.help));
        }
    }
}
