//! Filters requests by file, process id and process name.
//!
//! A pattern is a glob: `*` matches any characters including "/", `?` matches one, `[a-c]` matches one of the range. A
//! pattern of files without "/" may also match the last component of a path. The kernel truncates a process's name to
//! 15 bytes, and so do we. Cost: a small table lookup per request; each file and each name is matched once.

use std::collections::BTreeMap;

use headstart_types::{keys, KeyError, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Carries, FileEntry, ProcessEntry, Record, RecordReader, TraceError};

/// Which requests of a trace are read; an empty list is no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// Patterns of file paths, of which at least one must match.
    pub paths: Vec<String>,
    /// Process or thread ids as in the trace.
    pub pids: Vec<u32>,
    /// Patterns of process names, of which at least one must match.
    pub processes: Vec<String>,
}

impl Selection {
    /// Whether nothing is filtered out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

keys! {
    /// Selection of a trace's requests.
    pub struct Select {
        /// Globs of file paths (`"*.parquet"`, `["/data/*", "*.bin"]`). `*` also matches "/".
        #[schemars(extend("x-help" = "Only requests to files that fit: '*.parquet'; * also stands for /. Repeatable."))]
        #[schemars(extend("x-metavar" = "GLOB", "x-panel" = "Selection"))]
        pub path: OneOrMore<String> = OneOrMore::More(Vec::new()),
        /// Process or thread ids.
        #[schemars(extend("x-help" = "Only requests of this process or thread. Repeatable.", "x-panel" = "Selection"))]
        pub pid: OneOrMore<u32> = OneOrMore::More(Vec::new()),
        /// Process names, or globs of process names.
        #[schemars(extend("x-help" = "Only requests of processes of this name, or a glob. Repeatable."))]
        #[schemars(extend("x-metavar" = "NAME", "x-panel" = "Selection"))]
        pub process: OneOrMore<String> = OneOrMore::More(Vec::new()),
    }
}

/// A value, or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// A value.
    One(T),
    /// A list of values.
    More(Vec<T>),
}

impl<T> From<OneOrMore<T>> for Vec<T> {
    fn from(values: OneOrMore<T>) -> Self {
        match values {
            OneOrMore::One(value) => vec![value],
            OneOrMore::More(values) => values,
        }
    }
}

impl TryFrom<Select> for Selection {
    type Error = KeyError;

    fn try_from(Select { path, pid, process }: Select) -> Result<Self, KeyError> {
        let found = Selection { paths: path.into(), pids: pid.into(), processes: process.into() };
        for (key, patterns) in [("path", &found.paths), ("process", &found.processes)] {
            if patterns.iter().any(String::is_empty) {
                return Err(KeyError::new(key, "is empty", "a name, or a glob such as \"*.parquet\""));
            }
        }
        Ok(found)
    }
}

/// Maximum number of names listed in an error.
const LISTED: usize = 8;
/// Length in bytes to which the kernel truncates a process's name.
const NAME_BYTES: usize = 15;

/// Wraps `reader` so that it only emits the selected requests. If nothing matches, reading fails at the trace's end.
///
/// # Errors
/// If the trace does not carry what the selection refers to.
pub fn selected(reader: Box<dyn RecordReader>, selection: &Selection) -> Result<Box<dyn RecordReader>, TraceError> {
    if selection.is_all() {
        return Ok(reader);
    }
    let Carries { files, processes, .. } = reader.carries();
    let lacks = |key, what: &str, allowed: &str| Err(KeyError::new(key, what, allowed).into());
    if !selection.paths.is_empty() && !files {
        return lacks("path", "the trace does not distinguish files", "a trace with files, or no path");
    }
    if !selection.pids.is_empty() && !processes {
        return lacks("pid", "the trace carries no processes", "a trace with processes, or no pid");
    }
    if !selection.processes.is_empty() && !processes {
        return lacks(
            "process",
            "the trace carries no processes",
            "a trace with the names of processes, or no process",
        );
    }
    let mut selected = Selected {
        reader,
        selection: selection.clone(),
        of_files: BTreeMap::new(),
        of_pids: BTreeMap::new(),
        processes_seen: 0,
        files: Vec::new(),
        taken: 0,
        origin: None,
        seen: Contents::default(),
    };
    selected.learn();
    Ok(Box::new(selected))
}

struct Selected {
    reader: Box<dyn RecordReader>,
    selection: Selection,
    /// The matched files so far, by id.
    of_files: BTreeMap<u32, bool>,
    /// By process: the position from which its name matches or does not.
    of_pids: BTreeMap<u32, Vec<(u32, bool)>>,
    processes_seen: usize,
    /// The selected files.
    files: Vec<FileEntry>,
    taken: u64,
    /// Time of the first selected record.
    origin: Option<Nanos>,
    seen: Contents,
}

/// What the trace contains, for the error and the note.
#[derive(Default)]
struct Contents {
    requests: u64,
    files: BTreeMap<u32, u64>,
    pids: BTreeMap<u32, u64>,
}

impl Selected {
    /// Updates the tables with what the reader knows of files and processes by now.
    fn learn(&mut self) {
        let fits = |patterns: &[String], name: &str| patterns.iter().any(|pattern| fits_name(pattern, name));
        for ProcessEntry { pid, name, from } in &self.reader.processes()[self.processes_seen..] {
            let taken = self.selection.processes.is_empty() || fits(&self.selection.processes, name);
            self.of_pids.entry(*pid).or_default().push((*from, taken));
        }
        self.processes_seen = self.reader.processes().len();
        if !self.selection.paths.is_empty() {
            let fits = |path: &str| self.selection.paths.iter().any(|pattern| fits_path(pattern, path));
            let known = &mut self.of_files;
            for entry in self.reader.files() {
                known.entry(entry.file).or_insert_with(|| fits(&entry.path));
            }
            let taken = |entry: &&FileEntry| known.get(&entry.file) == Some(&true);
            self.files = self.reader.files().iter().filter(taken).cloned().collect();
        }
    }

    fn takes(&mut self, record: &Record) -> bool {
        let Selection { paths, pids, processes } = &self.selection;
        // A file without a name is matched by its number.
        let number = || paths.iter().any(|pattern| fits_path(pattern, &record.file.to_string()));
        (pids.is_empty() || pids.contains(&record.pid))
            && (paths.is_empty() || *self.of_files.entry(record.file).or_insert_with(number))
            && (processes.is_empty() || self.named(record))
    }

    /// Whether the process had a matching name when it issued the request.
    fn named(&self, record: &Record) -> bool {
        let names = self.of_pids.get(&record.pid).map_or(&[][..], Vec::as_slice);
        let since = names.iter().rev().find(|(from, _)| *from <= record.stands_at).or(names.first());
        since.is_some_and(|(_, taken)| *taken)
    }

    /// The error if nothing was selected; it lists what the trace contains.
    #[cold]
    fn nothing(&self) -> TraceError {
        let Selection { paths, pids, processes } = &self.selection;
        let quoted = |patterns: &[String]| {
            patterns.iter().map(|pattern| format!("\"{pattern}\"")).collect::<Vec<_>>().join(", ")
        };
        let path_of = |file: &u32| {
            let entry = self.reader.files().iter().find(|entry| entry.file == *file);
            entry.map_or_else(|| file.to_string(), |entry| entry.path.clone())
        };
        let names_of = |pid: &u32| {
            let names = self.reader.processes().iter().filter(|entry| entry.pid == *pid);
            names.map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (key, given, there): (_, _, Vec<(String, u64)>) = if !paths.is_empty() {
            let there = self.seen.files.iter().map(|(file, count)| (path_of(file), *count)).collect();
            ("path", quoted(paths), there)
        } else if !processes.is_empty() {
            let mut by_name = BTreeMap::<String, u64>::new();
            for (pid, count) in &self.seen.pids {
                *by_name.entry(names_of(pid)).or_default() += count;
            }
            ("process", quoted(processes), by_name.into_iter().collect())
        } else {
            let named = |pid: &u32| match names_of(pid) {
                names if names.is_empty() => pid.to_string(),
                names => format!("{pid} ({names})"),
            };
            let there = self.seen.pids.iter().map(|(pid, count)| (named(pid), *count)).collect();
            ("pid", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "), there)
        };
        let more = [!paths.is_empty(), !pids.is_empty(), !processes.is_empty()].iter().filter(|given| **given).count();
        let together = if more > 1 { ", together with the other conditions," } else { "" };
        let problem = format!("{given}{together} matches none of {} requests", self.seen.requests);
        KeyError::new(key, problem, listed(there)).into()
    }
}

/// The most frequent names, and how many more there are.
fn listed(mut there: Vec<(String, u64)>) -> String {
    there.retain(|(name, _)| !name.is_empty());
    if there.is_empty() {
        return "a trace that has such names".to_owned();
    }
    there.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let more = there.len().saturating_sub(LISTED);
    let names: Vec<&str> = there.iter().take(LISTED).map(|(name, _)| name.as_str()).collect();
    match more {
        0 => names.join(", "),
        _ => format!("{} and {more} more", names.join(", ")),
    }
}

impl RecordReader for Selected {
    fn inner(&self) -> Option<&dyn RecordReader> {
        Some(&*self.reader)
    }

    fn carries(&self) -> Carries {
        self.reader.carries()
    }

    fn files(&self) -> &[FileEntry] {
        if self.selection.paths.is_empty() {
            self.reader.files()
        } else {
            &self.files
        }
    }

    fn note(&self) -> Option<String> {
        let requests = self.seen.requests;
        let own = (requests > 0).then(|| format!("selected: {} of {requests} requests", self.taken));
        let parts: Vec<String> = self.reader.note().into_iter().chain(own).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        while self.reader.read(into)? {
            self.learn();
            self.seen.requests += into.len() as u64;
            if self.taken == 0 {
                for record in into.iter() {
                    *self.seen.files.entry(record.file).or_default() += 1;
                    *self.seen.pids.entry(record.pid).or_default() += 1;
                }
            }
            into.retain(|record| self.takes(record));
            self.taken += into.len() as u64;
            if let Some(first) = into.first() {
                // Times count from the first selected request.
                let origin = *self.origin.get_or_insert(first.time);
                into.iter_mut().for_each(|record| record.time -= origin);
                return Ok(true);
            }
        }
        if self.taken == 0 && self.seen.requests > 0 {
            return Err(self.nothing());
        }
        Ok(false)
    }

    fn progress(&self) -> (u64, u64) {
        self.reader.progress()
    }
}

/// Whether a pattern matches a path or, if it has no "/", the path's last component.
fn fits_path(pattern: &str, path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path);
    fits(pattern.as_bytes(), path.as_bytes()) || !pattern.contains('/') && fits(pattern.as_bytes(), last.as_bytes())
}

/// Whether a pattern matches a process's name.
fn fits_name(pattern: &str, name: &str) -> bool {
    let cut = &pattern.as_bytes()[..pattern.len().min(NAME_BYTES)];
    fits(pattern.as_bytes(), name.as_bytes()) || name.len() == NAME_BYTES && name.as_bytes() == cut
}

/// Whether a glob matches a text. Cost: at most the product of their lengths.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The last star, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match one(&pattern[at..], text[from]) {
            Some(length) => (at, from) = (at + length, from + 1),
            None if pattern.get(at) == Some(&b'*') => {
                star = Some((at, from));
                at += 1;
            }
            None => {
                let Some((begin, end)) = star else { return false };
                (at, from) = (begin + 1, end + 1);
                star = Some((begin, end + 1));
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The length of the pattern's prefix that matches the single byte `byte`; `None` if it does not match.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] if rest.iter().skip(1).any(|other| *other == b']') => {
            let end = rest.iter().skip(1).position(|other| *other == b']').map_or(0, |at| at + 1);
            let (inverted, set) = match &rest[..end] {
                [b'!' | b'^', set @ ..] if !set.is_empty() => (true, set),
                set => (false, set),
            };
            let mut left = set;
            let mut found = false;
            while let [first, others @ ..] = left {
                if let [b'-', last, others @ ..] = others {
                    found |= (*first..=*last).contains(&byte);
                    left = others;
                } else {
                    found |= *first == byte;
                    left = others;
                }
            }
            (found != inverted).then_some(end + 2)
        }
        // A star is not a single byte, even if the text contains one.
        [b'*', ..] | [] => None,
        [first, ..] => (*first == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text) in [
            ("*.parquet", "/data/a/b.parquet"),
            ("b.?in", "/data/b.bin"),
            ("/data/*/b", "/data/x/y/b"),
            ("[a-c]x*", "bx"),
            ("[!a-c]x", "dx"),
            ("a[]]", "a]"),
            ("[", "["),
            ("*", ""),
            ("a*b*c", "aXbbYc"),
        ] {
            assert!(fits_path(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("*.parquet", "a.parquet.tmp"), ("/b", "/a/b"), ("[a-c]x", "dx"), ("a", "A"), ("?", ""), ("", "a")]
        {
            assert!(!fits_path(pattern, text), "{pattern} {text}");
        }
        assert!(fits_name("a-very-long-command", "a-very-long-com") && !fits_name("a-very-long-command", "a-very"));
    }
}
