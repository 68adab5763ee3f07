//! The objects that readers have named: a number each, and what is known of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::sync::OnceCell;

use crate::source::Meta;

/// What is known of an object, once somebody has asked.
pub type Known = Arc<OnceCell<Arc<Meta>>>;

#[derive(Default)]
pub struct Objects {
    numbers: FxHashMap<Arc<str>, u32>,
    all: Vec<(Arc<str>, Known)>,
}

impl Objects {
    /// The number of a key that has one, and what is known of it.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(u32, Known)> {
        self.numbers.get(key).map(|number| (*number, self.known(*number)))
    }

    /// The number of a key.
    pub fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let (key, number): (Arc<str>, u32) = (key.into(), self.all.len() as u32);
        self.numbers.insert(key.clone(), number);
        self.all.push((key, Known::default()));
        number
    }

    #[must_use]
    pub fn key(&self, number: u32) -> Arc<str> {
        self.all[number as usize].0.clone()
    }

    #[must_use]
    pub fn known(&self, number: u32) -> Known {
        self.all[number as usize].1.clone()
    }
}
