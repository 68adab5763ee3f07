//! The live host: real threads and a real clock under the policies, the level and the rules of the simulator.
//!
//! Beside `headstart-sim` on `headstart-engine`: what is decided is decided by the same code in both. There are
//! [`rapid`], the testbed of parallel programs, and [`emulate`], a file that answers as a simulated drive would.

mod clock;
pub mod emulate;
pub mod rapid;

pub use clock::{Clock, Lateness, RealClock, SteppedClock};
