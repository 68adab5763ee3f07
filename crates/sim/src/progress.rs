//! What a run says of itself while it is under way.

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Share done, 0 to 1.
    pub share: f64,
    /// References served.
    pub references: u64,
}

/// Called now and then; false stops the run.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> bool;
