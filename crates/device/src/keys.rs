//! Reading a TOML table key by key, so that every mistake names its key and says what is allowed.

use headstart_types::{Bytes, KeyError, Nanos};
use toml::{Table, Value};

/// No time of a device is longer than this: sums of them stay far from the end of 64 bits.
pub(crate) const TIME_MAX: Nanos = Nanos(3_600_000_000_000);

/// A table from which keys are taken one after another; what is left at the end is unknown.
pub(crate) struct Keys {
    table: Table,
}

impl Keys {
    pub(crate) fn new(table: Table) -> Self {
        Self { table }
    }

    /// Takes `key`, or says that it is missing.
    pub(crate) fn take(&mut self, key: &str, allowed: &str) -> Result<Value, KeyError> {
        self.table.remove(key).ok_or_else(|| KeyError::new(key, "missing", allowed))
    }

    /// A time above zero, such as "2ms".
    pub(crate) fn time(&mut self, key: &str) -> Result<Nanos, KeyError> {
        match self.time_or_zero(key)? {
            Nanos::ZERO => Err(KeyError::new(key, "must be above zero", Nanos::ALLOWED)),
            time => Ok(time),
        }
    }

    /// A time, zero included.
    pub(crate) fn time_or_zero(&mut self, key: &str) -> Result<Nanos, KeyError> {
        time_of(&self.take(key, Nanos::ALLOWED)?).map_err(|error| error.within(key))
    }

    /// A time of at most `most`, zero included.
    pub(crate) fn time_to(&mut self, key: &str, most: Nanos) -> Result<Nanos, KeyError> {
        match self.time_or_zero(key)? {
            time if time > most => Err(KeyError::new(key, format!("{time} is too long"), format!("at most {most}"))),
            time => Ok(time),
        }
    }

    /// A size of at most 1 TiB, zero included.
    pub(crate) fn size(&mut self, key: &str) -> Result<Bytes, KeyError> {
        self.size_to(key, Bytes(1 << 40))
    }

    /// A size of at most `most`, zero included.
    pub(crate) fn size_to(&mut self, key: &str, most: Bytes) -> Result<Bytes, KeyError> {
        match self.take(key, Bytes::ALLOWED)? {
            Value::String(text) => match text.parse() {
                Ok(size) if size > most => {
                    Err(KeyError::new(key, format!("{size} is too much"), format!("at most {most}")))
                }
                Ok(size) => Ok(size),
                Err(problem) => Err(KeyError::new(key, problem, Bytes::ALLOWED)),
            },
            other => Err(KeyError::new(key, format!("{other} is no size"), Bytes::ALLOWED)),
        }
    }

    /// A whole number within `least..=most`.
    pub(crate) fn whole(&mut self, key: &str, least: u64, most: u64) -> Result<u64, KeyError> {
        let allowed = format!("a whole number from {least} to {most}");
        let value = self.take(key, &allowed)?;
        match value.as_integer().and_then(|number| u64::try_from(number).ok()) {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(KeyError::new(key, format!("{value} is outside"), allowed)),
        }
    }

    /// The same, where the key is there.
    pub(crate) fn whole_if(&mut self, key: &str, least: u64, most: u64) -> Result<Option<u64>, KeyError> {
        if self.table.contains_key(key) {
            self.whole(key, least, most).map(Some)
        } else {
            Ok(None)
        }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, key: &str) -> Result<bool, KeyError> {
        let value = self.take(key, "true or false")?;
        value.as_bool().ok_or_else(|| KeyError::new(key, format!("{value} is neither"), "true or false"))
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &str, allowed: &str) -> Result<String, KeyError> {
        match self.take(key, allowed)? {
            Value::String(text) => Ok(text),
            other => Err(KeyError::new(key, format!("{other} is no text"), allowed)),
        }
    }

    /// A table of its own.
    pub(crate) fn table(&mut self, key: &str) -> Result<Keys, KeyError> {
        match self.take(key, "a table")? {
            Value::Table(table) => Ok(Keys::new(table)),
            other => Err(KeyError::new(key, format!("{other} is no table"), "a table")),
        }
    }

    /// A list of tables with at least one element.
    pub(crate) fn tables(&mut self, key: &str) -> Result<Vec<Keys>, KeyError> {
        const ALLOWED: &str = "a list of tables, at least one";
        let value = self.take(key, ALLOWED)?;
        let wrong = || KeyError::new(key, "is no list of tables", ALLOWED);
        let Value::Array(list) = value else { return Err(wrong()) };
        if list.is_empty() {
            return Err(KeyError::new(key, "is empty", ALLOWED));
        }
        let each = |item| if let Value::Table(table) = item { Ok(Keys::new(table)) } else { Err(wrong()) };
        list.into_iter().map(each).collect()
    }

    /// Two times, zero included.
    pub(crate) fn two_times(&mut self, key: &str) -> Result<[Nanos; 2], KeyError> {
        const ALLOWED: &str = "a list of two times with units";
        match self.take(key, ALLOWED)? {
            Value::Array(pair) if pair.len() == 2 => {
                let at = |index: usize| time_of(&pair[index]).map_err(|error| error.within(&format!("{key}[{index}]")));
                Ok([at(0)?, at(1)?])
            }
            other => Err(KeyError::new(key, format!("{other} is not two times"), ALLOWED)),
        }
    }

    /// Whether `key` is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// `value`, or `default` where the key is absent.
    pub(crate) fn or<T>(
        &mut self,
        key: &str,
        default: T,
        read: impl FnOnce(&mut Self, &str) -> Result<T, KeyError>,
    ) -> Result<T, KeyError> {
        if self.has(key) {
            read(self, key)
        } else {
            Ok(default)
        }
    }

    /// A list of whole numbers within `least..=most`.
    pub(crate) fn wholes(&mut self, key: &str, least: u64, most: u64) -> Result<Vec<u64>, KeyError> {
        let allowed = format!("a list of whole numbers from {least} to {most}");
        let Value::Array(list) = self.take(key, &allowed)? else {
            return Err(KeyError::new(key, "is no list", allowed));
        };
        let number = |(index, value): (usize, &Value)| match value.as_integer().and_then(|n| u64::try_from(n).ok()) {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(KeyError::new(format!("{key}[{index}]"), format!("{value} is outside"), allowed.as_str())),
        };
        list.iter().enumerate().map(number).collect()
    }

    /// A list of times in milliseconds, from 0 to an hour, rounded to nanoseconds.
    pub(crate) fn milliseconds(&mut self, key: &str) -> Result<Vec<Nanos>, KeyError> {
        const ALLOWED: &str = "a list of numbers of milliseconds, from 0 to 3600000";
        let Value::Array(list) = self.take(key, ALLOWED)? else {
            return Err(KeyError::new(key, "is no list", ALLOWED));
        };
        let time = |(index, value): (usize, &Value)| {
            let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
            match number {
                Some(ms) if (0.0..=3_600_000.0).contains(&ms) => Ok(Nanos::from_millis_f64(ms)),
                _ => Err(KeyError::new(format!("{key}[{index}]"), format!("{value} is outside"), ALLOWED)),
            }
        };
        list.iter().enumerate().map(time).collect()
    }

    /// A list of pairs of whole numbers up to `most`.
    pub(crate) fn pairs(&mut self, key: &str, most: u64) -> Result<Vec<(u64, u64)>, KeyError> {
        let allowed = format!("a list of pairs of whole numbers from 0 to {most}");
        let Value::Array(list) = self.take(key, &allowed)? else {
            return Err(KeyError::new(key, "is no list", allowed));
        };
        let number = |value: &Value| value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= most);
        let pair = |(index, value): (usize, &Value)| {
            match value.as_array().map(Vec::as_slice) {
                Some([first, second]) => number(first).zip(number(second)),
                _ => None,
            }
            .ok_or_else(|| {
                KeyError::new(format!("{key}[{index}]"), format!("{value} is no such pair"), allowed.as_str())
            })
        };
        list.iter().enumerate().map(pair).collect()
    }

    /// A time with or without a minus before it, in nanoseconds.
    pub(crate) fn signed_time(&mut self, key: &str) -> Result<i64, KeyError> {
        let value = self.take(key, Nanos::ALLOWED)?;
        let (sign, rest) = match value.as_str().and_then(|text| text.strip_prefix('-')) {
            Some(rest) => (-1, Value::String(rest.to_owned())),
            None => (1, value),
        };
        let time = time_of(&rest).map_err(|error| error.within(key))?;
        Ok(sign * time.0 as i64)
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&mut self, key: &str) -> Result<f64, KeyError> {
        const ALLOWED: &str = "a number from 0 to 1";
        let value = self.take(key, ALLOWED)?;
        match value.as_float().or_else(|| value.as_integer().map(|number| number as f64)) {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(number),
            _ => Err(KeyError::new(key, format!("{value} is outside"), ALLOWED)),
        }
    }

    /// One of `choices`, by its name.
    pub(crate) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Result<T, KeyError> {
        let names = || choices.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let text = self.text(key, &names())?;
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => Ok(*choice),
            None => Err(KeyError::new(key, format!("unknown \"{text}\""), names())),
        }
    }

    /// Nothing may be left.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), KeyError> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) if known.is_empty() => Err(KeyError::new(key, "unknown key", "no keys here")),
            Some(key) => Err(KeyError::unknown_key(key, known.iter().copied())),
        }
    }
}

/// A time of at most an hour; its error has an empty key, to be put in place by the caller.
fn time_of(value: &Value) -> Result<Nanos, KeyError> {
    match value {
        Value::String(text) => match text.parse() {
            Ok(time) if time > TIME_MAX => Err(KeyError::new("", format!("{time} is too long"), "at most 1h")),
            Ok(time) => Ok(time),
            Err(problem) => Err(KeyError::new("", problem, Nanos::ALLOWED)),
        },
        other => Err(KeyError::new("", format!("{other} is no time"), Nanos::ALLOWED)),
    }
}
