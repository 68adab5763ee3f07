//! The source of a process's references.

use std::convert::Infallible;

use headstart_types::Chunk;

/// A source of references, read as needed.
pub trait Supply<S>: Send {
    /// Why reading failed.
    type Error;

    /// Fills `chunk` with the next references, with blocks numbered in `space`; returns false, and no references, at
    /// the end.
    ///
    /// # Errors
    /// The source has an error there.
    fn next(&mut self, chunk: &mut Chunk, space: &S) -> Result<bool, Self::Error>;

    /// The progress of reading as (done, total), in units of the input.
    fn progress(&self) -> (u64, u64);
}

/// No source, for processes whose references are all known or taken from the strings of a program.
#[derive(Debug)]
pub enum NoSupply {}

impl<S> Supply<S> for NoSupply {
    type Error = Infallible;

    fn next(&mut self, _chunk: &mut Chunk, _space: &S) -> Result<bool, Infallible> {
        match *self {}
    }

    fn progress(&self) -> (u64, u64) {
        match *self {}
    }
}

/// The remaining references of a process, and its place in them.
pub struct Cursor<R> {
    /// The current chunk.
    pub chunk: Chunk,
    /// Index of the next reference in it.
    pub at: usize,
    /// The source of further chunks; `None` if the chunk holds all references.
    pub supply: Option<Box<R>>,
}

impl<R> Cursor<R> {
    /// A cursor over a single chunk.
    #[must_use]
    pub fn known(chunk: Chunk) -> Self {
        Self { chunk, at: 0, supply: None }
    }

    /// A cursor over a source.
    #[must_use]
    pub fn reading(supply: R) -> Self {
        Self { chunk: Chunk::empty(), at: 0, supply: Some(Box::new(supply)) }
    }

    /// Whether there is a next reference; reads the next chunk if the current one is used up.
    ///
    /// # Errors
    /// The source has an error there.
    #[inline]
    pub fn has_more<S>(&mut self, space: &S) -> Result<bool, R::Error>
    where
        R: Supply<S>,
    {
        if self.at < self.chunk.blocks.len() {
            return Ok(true);
        }
        let Some(supply) = &mut self.supply else { return Ok(false) };
        self.at = 0;
        supply.next(&mut self.chunk, space)
    }

    /// The progress as (done, total), in units of its input.
    #[must_use]
    pub fn progress<S>(&self) -> (u64, u64)
    where
        R: Supply<S>,
    {
        match &self.supply {
            Some(supply) => supply.progress(),
            None => (self.at as u64, self.chunk.blocks.len() as u64),
        }
    }
}
