//! Where the references of a process come from.

use std::convert::Infallible;

use headstart_types::Chunk;

/// A source of references, read as they are needed.
pub trait Supply<S>: Send {
    /// Why there are no more though there should be.
    type Error;

    /// Fills `chunk` with the next references, whose blocks are numbered in `space`; false, and none, at the end.
    ///
    /// # Errors
    /// The source is wrong there.
    fn next(&mut self, chunk: &mut Chunk, space: &S) -> Result<bool, Self::Error>;

    /// How far the reading is: (done, total), in units of the input.
    fn progress(&self) -> (u64, u64);
}

/// No source: processes whose references are all known, or taken from the strings of a program.
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

/// References to come: what is read, and where the process is in it.
pub struct Cursor<R> {
    /// The chunk under way.
    pub chunk: Chunk,
    /// Index of the next reference in it.
    pub at: usize,
    /// Where further chunks come from; `None` if the chunk is all there is.
    pub supply: Option<Box<R>>,
}

impl<R> Cursor<R> {
    /// All that there is.
    #[must_use]
    pub fn known(chunk: Chunk) -> Self {
        Self { chunk, at: 0, supply: None }
    }

    /// From a source.
    #[must_use]
    pub fn reading(supply: R) -> Self {
        Self { chunk: Chunk::empty(), at: 0, supply: Some(Box::new(supply)) }
    }

    /// Whether there is a next reference; reads on where the chunk is used up.
    ///
    /// # Errors
    /// The source is wrong there.
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

    /// How far it is: (done, total), in units of its input.
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
