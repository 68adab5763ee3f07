//! A block's parameters by name, checked for type and range, with a record of the names that were never read.

use std::collections::BTreeSet;
use std::fmt::Write;

use headstart_types::Nanos;

use crate::error::{one_line, FilePosition, ImportError};
use crate::parser::{Block, Document, Kind, Value};

/// Maximum length of an inheritance chain; real files have two.
const INHERIT_MAX: usize = 64;
/// Maximum time of a drive in ms: an hour, as in profiles.
const MILLIS_MAX: f64 = 3_600_000.0;

/// Notes collected during the import.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Warnings for the user: parameters that change times and are not modelled, unusual values.
    pub(crate) warnings: Vec<(FilePosition, String)>,
    /// Unused parts of the source, for the comment at the top of the profile.
    pub(crate) unused: Vec<String>,
}

impl Notes {
    /// Maximum number of notes of a kind.
    const MOST: usize = 100;

    pub(crate) fn warn(&mut self, at: &FilePosition, text: &str) {
        Self::add(&mut self.warnings, (at.clone(), one_line(text)), (at.clone(), "and more of that kind".to_owned()));
    }

    pub(crate) fn unused(&mut self, text: &str) {
        Self::add(&mut self.unused, one_line(text), "and more of that kind".to_owned());
    }

    fn add<T>(list: &mut Vec<T>, note: T, last: T) {
        match list.len() {
            length if length < Self::MOST => list.push(note),
            Self::MOST => list.push(last),
            _ => {}
        }
    }
}

/// The parameters of a block and of those it inherits from.
pub(crate) struct Params<'a> {
    chain: Vec<&'a Block>,
    taken: BTreeSet<String>,
}

/// A block and the blocks that its type names, nearest first. A type must be defined before its use.
pub(crate) fn chain<'a>(document: &'a Document, block: &'a Block) -> Result<Vec<&'a Block>, ImportError> {
    let own = block.name.as_ref().and_then(|name| document.by_name.get(name).copied());
    let mut bound = own.filter(|index| std::ptr::eq(&document.blocks[*index], block)).unwrap_or(document.blocks.len());
    let mut chain = vec![block];
    while let Some(index) = document.by_name.get(&chain[chain.len() - 1].kind).copied().filter(|index| *index < bound) {
        if chain.len() >= INHERIT_MAX {
            return Err(ImportError::at(&block.at, "inherits over too many blocks", format!("{INHERIT_MAX}")));
        }
        chain.push(&document.blocks[index]);
        bound = index;
    }
    Ok(chain)
}

impl<'a> Params<'a> {
    pub(crate) fn try_new(document: &'a Document, block: &'a Block) -> Result<Self, ImportError> {
        Ok(Self { chain: chain(document, block)?, taken: BTreeSet::new() })
    }

    /// The block's position.
    pub(crate) fn at(&self) -> &'a FilePosition {
        &self.chain[0].at
    }

    /// The type at the end of the chain.
    pub(crate) fn base(&self) -> &'a str {
        &self.chain[self.chain.len() - 1].kind
    }

    /// The value of a parameter, which is marked as used.
    pub(crate) fn get(&mut self, name: &str) -> Option<&'a Value> {
        let value = self.chain.iter().find_map(|block| block.params.get(name)).map(|value| &**value);
        if value.is_some() {
            self.taken.insert(name.to_owned());
        }
        value
    }

    /// The value of a parameter that has not been read before.
    pub(crate) fn get_if_unused(&mut self, name: &str) -> Option<&'a Value> {
        if self.taken.contains(name) {
            return None;
        }
        self.get(name)
    }

    /// The parameters that have not been read.
    pub(crate) fn rest(&self) -> Vec<(&'a str, &'a Value)> {
        let mut seen = self.taken.clone();
        let mut rest = Vec::new();
        for (name, value) in self.chain.iter().flat_map(|block| &block.params) {
            if seen.insert(name.clone()) {
                rest.push((name.as_str(), &**value));
            }
        }
        rest
    }

    /// The error for a required parameter.
    pub(crate) fn missing(&self, name: &str) -> ImportError {
        ImportError::at(self.at(), format!("{} lacks \"{name}\"", self.base()), format!("{name} = VALUE"))
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&mut self, name: &str, least: i64, most: i64) -> Result<Option<i64>, ImportError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value.kind {
            Kind::Whole(number) => Some(number),
            Kind::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => Some(number as i64),
            _ => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(name, value, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// A required whole number.
    pub(crate) fn need_whole(&mut self, name: &str, least: i64, most: i64) -> Result<i64, ImportError> {
        self.whole(name, least, most)?.ok_or_else(|| self.missing(name))
    }

    /// 0 or 1; absent is 0.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ImportError> {
        Ok(self.whole(name, 0, 1)?.unwrap_or(0) == 1)
    }

    /// A number within bounds.
    pub(crate) fn real(&mut self, name: &str, least: f64, most: f64) -> Result<Option<f64>, ImportError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match number(value).filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(name, value, &format!("a number from {least} to {most}"))),
        }
    }

    /// A time in ms, including zero.
    pub(crate) fn millis(&mut self, name: &str) -> Result<Option<f64>, ImportError> {
        self.real(name, 0.0, MILLIS_MAX)
    }

    /// A required time in ms.
    pub(crate) fn need_millis(&mut self, name: &str) -> Result<f64, ImportError> {
        self.millis(name)?.ok_or_else(|| self.missing(name))
    }

    /// A single word.
    pub(crate) fn word(
        &mut self,
        name: &str,
        allowed: &str,
    ) -> Result<Option<(&'a str, &'a FilePosition)>, ImportError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value { kind: Kind::Word(word), at }) => Ok(Some((word, at))),
            Some(value) => Err(wrong(name, value, allowed)),
        }
    }

    /// A list; absent is empty.
    pub(crate) fn list(&mut self, name: &str) -> Result<&'a [Value], ImportError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value { kind: Kind::List(list), .. }) => Ok(list),
            Some(value) => Err(wrong(name, value, "a list in [ ]")),
        }
    }

    /// A nested block.
    pub(crate) fn block(&mut self, name: &str) -> Result<Option<&'a Block>, ImportError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value { kind: Kind::Block(block), .. }) => Ok(Some(block)),
            Some(value) => Err(wrong(name, value, "a block in { }")),
        }
    }
}

/// The numeric value.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value.kind {
        Kind::Whole(number) => Some(number as f64),
        Kind::Real(number) => Some(number),
        _ => None,
    }
}

/// A list of whole numbers from zero.
pub(crate) fn naturals(name: &str, list: &[Value]) -> Result<Vec<u64>, ImportError> {
    let each = |value: &Value| match value.kind {
        Kind::Whole(number) if number >= 0 => Ok(number as u64),
        _ => Err(wrong(name, value, "whole numbers from 0")),
    };
    list.iter().map(each).collect()
}

/// The error for a parameter with an invalid value.
pub(crate) fn wrong(name: &str, value: &Value, allowed: &str) -> ImportError {
    ImportError::at(&value.at, format!("{name} = {}", shown(value)), allowed)
}

/// A value as messages and comments show it.
pub(crate) fn shown(value: &Value) -> String {
    match &value.kind {
        Kind::Whole(number) => number.to_string(),
        Kind::Real(number) => number.to_string(),
        Kind::Word(word) => word.clone(),
        Kind::List(list) => format!("[{} values]", list.len()),
        Kind::Block(block) => format!("{} {{ ... }}", block.kind),
        Kind::Component(component) => format!("{} [ ... ]", component.name),
        Kind::Range(prefix, first, last) => format!("{prefix}{first} .. {prefix}{last}"),
    }
}

/// Milliseconds in a profile's notation, to the nearest nanosecond.
pub(crate) fn time(millis: f64) -> String {
    format!("\"{}\"", Nanos::from_millis_f64(millis))
}

/// Warns about each parameter of a block that was never read.
pub(crate) fn leftover(params: &Params, notes: &mut Notes) {
    for (name, value) in params.rest() {
        notes.warn(&value.at, &format!("{name} = {} is not known and passed over", shown(value)));
    }
}

/// `key = [a, b, ...]` over as many lines as needed.
pub(crate) fn write_list(out: &mut String, key: &str, items: &[String]) {
    const WIDTH: usize = 110;
    let short = items.iter().map(|item| item.len() + 2).sum::<usize>() + key.len() + 5 <= WIDTH;
    if short {
        _ = writeln!(out, "{key} = [{}]", items.join(", "));
        return;
    }
    _ = write!(out, "{key} = [");
    let mut column = WIDTH;
    for item in items {
        if column + item.len() + 2 > WIDTH {
            out.push_str("\n   ");
            column = 3;
        }
        _ = write!(out, " {item},");
        column += item.len() + 2;
    }
    out.push_str("\n]\n");
}
