//! A replacement written in Python.

use headstart_policy::{Replacement, View};
use headstart_types::{Block, Outcome, Position};
use pyo3::prelude::*;

use super::call::{wrong, Fault, Method};

pub struct PyReplacement {
    inserted: Method,
    referenced: Method,
    candidates: Method,
    forget: Method,
    /// By block: whether the object was told of its arrival, and not yet of its eviction.
    held: Vec<bool>,
    count: usize,
}

impl PyReplacement {
    /// `object` is of the class that the user names `class`.
    pub fn new(object: &Bound<'_, PyAny>, class: &str) -> PyResult<Self> {
        let method = |name| Method::of(object, class, "Replacement", name);
        Ok(Self {
            inserted: method("inserted")?,
            referenced: method("referenced")?,
            candidates: method("candidates")?,
            forget: method("forget")?,
            held: Vec::new(),
            count: 0,
        })
    }

    fn holds(&self, block: Block) -> bool {
        self.held.get(block.index()).copied().unwrap_or(false)
    }

    fn drop_block(&mut self, block: Block, evicted: bool) {
        self.held[block.index()] = false;
        self.count -= 1;
        self.forget.tell((block.0, evicted));
    }

    /// The first block of the result that may be evicted.
    fn first(&self, answer: &Bound<'_, PyAny>, view: &View<'_>) -> Result<Option<Block>, Fault> {
        const ALLOWED: &str = "allowed: blocks in the cache, the first choice first";
        let Ok(candidates) = answer.try_iter() else {
            return wrong(format!("returned {}; {ALLOWED}", shown(answer)));
        };
        for (seen, candidate) in candidates.enumerate() {
            let candidate = candidate?;
            let block = match candidate.extract::<u32>() {
                Ok(number) => Block(number),
                Err(_) => return wrong(format!("named {}; {ALLOWED}", shown(&candidate))),
            };
            if !self.holds(block) {
                return wrong(format!("named block {}, which is not in the cache; {ALLOWED}", block.0));
            }
            if view.state(block).is_evictable() {
                return Ok(Some(block));
            }
            if seen > 2 * self.count {
                return wrong(format!("named the same blocks again and again; {ALLOWED}, each once"));
            }
        }
        Ok(None)
    }
}

/// A value for an error message, truncated.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

impl Replacement for PyReplacement {
    fn grow(&mut self, blocks: usize) {
        self.held.resize(blocks.max(self.held.len()), false);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let chosen = self.candidates.call((incoming.0,), |answer| self.first(answer, view));
        match chosen.flatten() {
            Some(block) => {
                self.drop_block(block, true);
                Some(block)
            }
            None => {
                let may_leave = |at: &usize| self.held[*at] && view.state(Block(*at as u32)).is_evictable();
                if let Some(block) = (0..self.held.len()).find(may_leave) {
                    self.candidates.refuse(&format!("named no block that may leave, though block {block} may"));
                }
                None
            }
        }
    }

    fn inserted(&mut self, block: Block) {
        self.grow(block.index() + 1);
        self.held[block.index()] = true;
        self.count += 1;
        self.inserted.tell((block.0,));
    }

    fn referenced(&mut self, _position: Position, block: Block, outcome: Outcome) {
        self.referenced.tell((block.0, outcome != Outcome::Miss));
    }

    fn removed(&mut self, block: Block) {
        if self.holds(block) {
            self.drop_block(block, false);
        }
    }
}
