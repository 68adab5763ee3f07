//! Parallel programs: what their processes wait for besides blocks, and what their processors do meanwhile.
//!
//! Both hosts, the simulator and the live testbed, keep to the rules of this module: who meets whom and when
//! ([`Barrier`]), which kind of idle a processor is, for how long, and what prefetch actions do to it ([`Node`]). No
//! clock here: times are arguments, and never decrease.
//!
//! Source: kotz-ellis, sections 4 (when to prefetch), 5.1 (three kinds of idle time, actions run to their ends), 5.2
//! (synchronization styles) and 5.3 (necessary and actual idle periods, overrun).

mod barrier;
mod node;

pub use barrier::{Barrier, Interval, Meeting, Scope};
pub use node::{Idle, Node, Periods};
