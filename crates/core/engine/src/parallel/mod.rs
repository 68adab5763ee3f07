//! Parallel programs: what their processes wait for besides blocks, and what their processors do meanwhile.
//!
//! The simulator and the live testbed both follow the rules of this module: who synchronises with whom and when
//! ([`Barrier`]), which kind of idle a processor is, for how long, and how prefetch actions affect it ([`Node`]), which
//! process reads what ([`Strings`]), who uses shared structures when ([`Contention`]), in which order idle processors
//! are offered actions ([`Free`]), and what happens between two synchronisations ([`Intervals`]). There is no clock
//! here: times are arguments, and never decrease. A host without scenarios takes a program as a [`Setup`] and returns
//! a [`Played`].
//!
//! Source: kotz-ellis, sections 4 (when to prefetch), 5.1 (three kinds of idle time, actions run to completion), 5.2
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
pub use intervals::{Ended, Intervals, Sums, TimeSpent};
pub use node::{Idle, Node, Periods};
pub use played::{ActionSetup, DiskTimes, Draws, Member, Played, Setup};
pub use shared::{Contention, Free, IdleOrder};
pub use strings::Strings;
