//! The live host: real threads and a real clock under the policies, the level and the rules of the simulator.
//!
//! Beside `headstart-sim` on `headstart-engine`: what is decided is decided by the same code in both. So far there is
//! [`rapid`], the testbed of parallel programs.

mod clock;
pub mod rapid;

pub use clock::{Clock, Lateness, RealClock, SteppedClock};
