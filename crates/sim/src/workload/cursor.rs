//! A place in the references.

use headstart_types::Chunk;

use super::references::References;

/// References to come: what is read, and where the process is in it.
pub struct Cursor {
    /// The chunk under way.
    pub chunk: Chunk,
    /// Index of the next reference in it.
    pub at: usize,
    /// Where further chunks come from; `None` if the chunk is all there is.
    pub supply: Option<References>,
}
