//! Names of files and devices, numbered in order of first appearance.
//!
//! Cost: a comparison where a name repeats the one before it, otherwise a search in a tree of the distinct names.
//! Memory: the distinct names.

use std::collections::BTreeMap;

/// The names seen.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<Box<[u8]>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Names {
    /// The number of a name.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        if self.last == name && !self.numbers.is_empty() {
            return Ok(self.last_number);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let next = u32::try_from(self.numbers.len());
                let next = next.map_err(|_| format!("there are too many names; allowed: {}", u32::MAX))?;
                self.numbers.insert(name.into(), next);
                next
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }
}
