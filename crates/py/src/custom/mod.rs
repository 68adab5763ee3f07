//! Policies written in Python (`headstart.Policy`, `headstart.Readahead`, `headstart.Replacement`) as the core's own traits.
//!
//! A scenario names a class as "mine.py:Mine". [`PythonRows`] finds it (`headstart.custom.resolve` imports the file) and
//! makes a row of it, whose constructor calls the class with the row's keys. One struct for each trait calls the object's
//! methods, checks what they answer, and never passes a wrong answer on: an error ends the run as an exception does in
//! Python, by unwinding to [`guarded`](crate::errors::guarded), with one line that names class and method.
//!
//! Cost: the GIL is taken for each call; calls and the time in them are counted by thread ([`cost`]).

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
