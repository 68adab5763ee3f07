//! The objects that readers have named: a number each, and what is known of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::source::Meta;

#[derive(Default)]
pub struct Objects {
    numbers: FxHashMap<Arc<str>, u32>,
    all: Vec<(Arc<str>, Option<Arc<Meta>>)>,
}

impl Objects {
    /// The number of a key that has one, and what is known of it.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(u32, Arc<Meta>)> {
        let number = *self.numbers.get(key)?;
        Some((number, self.known(number)?))
    }

    /// The number of a key.
    pub fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let (key, number): (Arc<str>, u32) = (key.into(), self.all.len() as u32);
        self.numbers.insert(key.clone(), number);
        self.all.push((key, None));
        number
    }

    #[must_use]
    pub fn key(&self, number: u32) -> Arc<str> {
        self.all[number as usize].0.clone()
    }

    /// What is known of an object, once somebody has asked.
    #[must_use]
    pub fn known(&self, number: u32) -> Option<Arc<Meta>> {
        self.all[number as usize].1.clone()
    }

    /// What an answer says of an object; the first answer counts, and is returned.
    pub fn learn(&mut self, number: u32, meta: &Arc<Meta>) -> Arc<Meta> {
        self.all[number as usize].1.get_or_insert_with(|| meta.clone()).clone()
    }
}
