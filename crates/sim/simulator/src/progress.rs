//! The progress of a run.

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Share done, 0 to 1.
    pub share: f64,
    pub references: u64,
}

/// Called periodically; false stops the run.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> bool;
