//! What happens in a run, event by event, for a host that draws it. A run without a journal pays nothing for it but a look at
//! rare points: the journal is asked for before the first instant ([`System::keep_journal`](crate::System::keep_journal)).

use headstart_types::{Block, Nanos, Outcome};

use crate::Awaited;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A process has referenced blocks with one look at its level, from `block` on; it may have to wait for them.
    Referenced {
        /// The process.
        process: u32,
        /// When.
        at: Nanos,
        /// The blocks.
        blocks: Vec<Block>,
        /// How the worst of them was found.
        outcome: Outcome,
    },
    /// A process has waited.
    Waited {
        /// The process.
        process: u32,
        /// When the wait began.
        since: Nanos,
        /// When what it waited for was there: from then on only work of its processor held it up.
        over: Nanos,
        /// When the process went on.
        until: Nanos,
        /// The part of that time which is stall or barrier: without driver work done meanwhile, and without overrun.
        waited: Nanos,
        /// What for.
        what: Awaited,
    },
    /// A processor has taken on a prefetch action.
    Acted {
        /// The process whose processor it is.
        process: u32,
        /// When it began.
        since: Nanos,
        /// When it ends.
        until: Nanos,
        /// What it prefetches.
        block: Block,
    },
    /// A process has waited for the structures that look-ups share, and held them.
    Held {
        /// The process.
        process: u32,
        /// When it came.
        since: Nanos,
        /// When its look-up was done.
        until: Nanos,
    },
    /// Blocks go up a link.
    Crossed {
        /// The level that they leave.
        level: u32,
        /// When they set out.
        since: Nanos,
        /// When they are there.
        until: Nanos,
        /// How many.
        blocks: u32,
    },
    /// A block has left a level.
    Evicted {
        /// When.
        at: Nanos,
        /// The block.
        block: Block,
    },
}
