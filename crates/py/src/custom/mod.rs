//! Policies written in Python (`headstart.Policy`, `headstart.Readahead`, `headstart.Replacement`) as the core's own traits.
//!
//! A scenario names a class as "mine.py:Mine". [`PythonRows`] finds it (`headstart.custom.resolve` imports the file)
//! and creates a row whose constructor calls the class with the row's keys. One struct per trait calls the object's
//! methods, checks their results, and never passes on a wrong one: an error ends the run like an exception in Python,
//! by unwinding to [`guarded`](crate::errors::guarded), with one line that names class and method.
//!
//! Cost: the GIL is taken for each call; the number of calls and the time spent in them are counted per thread
//! ([`cost`]).

pub mod call;
pub mod checks;
mod policy;
mod read_ahead;
mod replacement;
mod rows;
mod view;

pub use call::{start_counting, Raised};
pub use policy::PyHints;
pub use read_ahead::Request;
pub use rows::PythonRows;
pub use view::Cache;
