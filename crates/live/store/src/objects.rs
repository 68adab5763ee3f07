//! The objects that readers have named: a number each, and what is known of them. Keys lie one after another in one
//! text, since there may be millions.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::source::Meta;

#[derive(Default)]
pub struct Objects {
    keys: String,
    /// Where each key ends.
    ends: Vec<usize>,
    /// Numbers by key.
    numbers: HashTable<u32>,
    known: Vec<Option<Arc<Meta>>>,
}

fn hash(key: &str) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(key)
}

impl Objects {
    /// The number of a key that has one, and what is known of it.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(u32, Arc<Meta>)> {
        let number = *self.numbers.find(hash(key), |number| self.key(*number) == key)?;
        Some((number, self.known(number)?))
    }

    /// The number of a key.
    pub fn number(&mut self, key: &str) -> u32 {
        let Self { keys, ends, numbers, .. } = &*self;
        let hash_of = hash(key);
        if let Some(number) = numbers.find(hash_of, |number| of(keys, ends, *number) == key) {
            return *number;
        }
        let number = self.ends.len() as u32;
        self.keys.push_str(key);
        self.ends.push(self.keys.len());
        self.known.push(None);
        let Self { keys, ends, numbers, .. } = self;
        numbers.insert_unique(hash_of, number, |number| hash(of(keys, ends, *number)));
        number
    }

    #[must_use]
    pub fn key(&self, number: u32) -> &str {
        of(&self.keys, &self.ends, number)
    }

    /// An object's metadata, if there was a request for it.
    #[must_use]
    pub fn known(&self, number: u32) -> Option<Arc<Meta>> {
        self.known[number as usize].clone()
    }

    /// What an answer says of an object; the first answer counts, and is returned.
    pub fn learn(&mut self, number: u32, meta: &Arc<Meta>) -> Arc<Meta> {
        self.known[number as usize].get_or_insert_with(|| meta.clone()).clone()
    }
}

/// The key of a number.
fn of<'a>(keys: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let begin = number.checked_sub(1).map_or(0, |before| ends[before]);
    &keys[begin..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_number() {
        let mut objects = Objects::default();
        let keys: Vec<String> = (0..1000).map(|each| format!("a/{each}")).chain([String::new(), "a".into()]).collect();
        for round in 0..2 {
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(objects.number(key), number as u32, "round {round}");
                assert_eq!(objects.key(number as u32), key);
            }
        }
        assert!(objects.find("a/7").is_none(), "nothing is known of it");
        let meta = Arc::new(Meta { key: "a/7".into(), size: 5, e_tag: None, modified_ms: 0 });
        assert!(Arc::ptr_eq(&objects.learn(7, &meta), &meta));
        let other = Arc::new(Meta { size: 6, ..(*meta).clone() });
        assert!(Arc::ptr_eq(&objects.learn(7, &other), &meta), "the first answer counts");
        assert_eq!(objects.find("a/7").map(|(number, _)| number), Some(7));
    }
}
