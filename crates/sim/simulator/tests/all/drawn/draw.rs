//! Random draws of simple values, and of values similar to a given one.

use headstart_policy::registry::PolicyRow;
use headstart_types::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::{Table, Value};

/// A source of draws.
pub struct Draw(ChaCha8Rng);

/// The words of keys that take one of several words.
const WORDS: [(&str, &[&str]); 12] = [
    ("when", &["always", "miss", "tagged"]),
    ("trigger", &["group", "window"]),
    ("replay", &["mirror", "released"]),
    ("seeks", &["switches", "all"]),
    ("version", &["6.12", "6.18"]),
    ("priority", &["none", "demand-first"]),
    ("window", &["last", "next"]),
    ("update", &["miss", "always"]),
    ("ahead", &["last", "next"]),
    ("large", &["average", "half"]),
    ("actions", &["both", "bypass", "readmore"]),
    ("batch_size", &["table6"]),
];

impl Draw {
    /// The draws of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// True with this probability in per cent.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// From 0 to `most`.
    pub fn upto(&mut self, most: i64) -> i64 {
        self.0.random_range(0..=most)
    }

    /// From 1 to `most`.
    pub fn count(&mut self, most: i64) -> i64 {
        self.0.random_range(1..=most)
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    /// A time, often none.
    pub fn time(&mut self) -> String {
        match self.upto(3) {
            0 => "0s".to_owned(),
            1 => self.one_of(&["1ns", "10us", "300us", "1ms", "7ms", "2s"]).to_owned(),
            _ => format!("{}us", self.count(9000)),
        }
    }

    /// A size.
    pub fn size(&mut self) -> String {
        match self.upto(2) {
            0 => self.one_of(&["1B", "512B", "4KiB", "8KiB", "12KiB", "64KiB", "1MiB"]).to_owned(),
            1 => format!("{}KiB", self.count(64)),
            _ => format!("{}B", self.count(40_000)),
        }
    }

    /// Some of the keys of `defaults`, with similar values.
    pub fn some_keys(&mut self, defaults: &Table) -> Table {
        let mut keys = Table::new();
        if self.chance(50) {
            return keys;
        }
        for (key, value) in defaults {
            if self.chance(40) {
                keys.insert(key.clone(), self.like(key, value));
            }
        }
        keys
    }

    /// Whole numbers for some of the keys without a fixed default.
    pub fn computed_keys(&mut self, row: &PolicyRow, keys: &mut Table) {
        for (key, _) in row.keys.absent(&Table::new()) {
            if self.chance(30) {
                keys.insert(key, self.number().into());
            }
        }
    }

    fn number(&mut self) -> i64 {
        match self.upto(4) {
            0 => self.upto(2),
            1 => self.count(500),
            _ => self.count(20),
        }
    }

    /// A value of the same type as `value`.
    fn like(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Integer(_) => self.number().into(),
            Value::Float(_) if self.chance(20) => self.one_of(&[0.0, 1.0, 2.0]).into(),
            Value::Float(_) => (self.count(1000) as f64 / 1000.0).into(),
            Value::Boolean(_) => self.chance(50).into(),
            Value::String(text) => match WORDS.iter().find(|(of, _)| *of == key) {
                Some((_, words)) => self.one_of(words).into(),
                None if text.parse::<Bytes>().is_ok() => self.size().into(),
                None if text.parse::<Nanos>().is_ok() => self.time().into(),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }
}
