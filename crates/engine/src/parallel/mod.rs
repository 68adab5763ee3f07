//! Parallel programs: what their processes wait for besides blocks, and what their processors do meanwhile.
//!
//! Both hosts, the simulator and the live testbed, keep to the rules of this module: who meets whom and when
//! ([`Barrier`]), which kind of idle a processor is, for how long, and what prefetch actions do to it ([`Node`]), who
//! reads what ([`Strings`]), who uses shared structures when ([`Contention`]), and in which order processors that have
//! nothing to do are asked ([`Free`]), and what happens between two meetings ([`Intervals`]). No clock here: times are
//! arguments, and never decrease. A program goes to a host without scenarios as a [`Setup`] and comes back as an
//! [`Outcome`].
//!
//! Source: kotz-ellis, sections 4 (when to prefetch), 5.1 (three kinds of idle time, actions run to their ends), 5.2
//! (synchronization styles) and 5.3 (necessary and actual idle periods, overrun).

mod barrier;
mod buffers;
mod intervals;
mod node;
mod played;
mod shared;
mod strings;

pub use barrier::{Barrier, Interval, Meeting, Scope};
pub use buffers::{BufferPlace, Buffers};
pub use intervals::{Ended, Intervals, Parts, Sums};
pub use node::{Idle, Node, Periods};
pub use played::{ActionSetup, DiskTimes, Draws, Member, Outcome, Setup};
pub use shared::{Contention, Free, IdleOrder};
pub use strings::Strings;
