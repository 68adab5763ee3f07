//! The events of a run, for a host that draws them. Without a journal a run only pays for a check at rare points; a
//! host requests the journal before the first instant ([`System::keep_journal`](crate::System::keep_journal)).

use headstart_types::{Block, Nanos, Outcome};

use crate::Awaited;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A process referenced blocks, from `block` on, with one lookup in its level; it may have to wait for them.
    Referenced {
        /// The process.
        process: u32,
        /// The time.
        at: Nanos,
        /// The blocks.
        blocks: Vec<Block>,
        /// The worst outcome among them.
        outcome: Outcome,
    },
    /// A process waited.
    Waited {
        /// The process.
        process: u32,
        /// When the wait began.
        since: Nanos,
        /// When the awaited blocks or processes were there; from then on only processor work delayed the process.
        over: Nanos,
        /// When the process continued.
        until: Nanos,
        /// The part of the wait that is stall or barrier time: without driver work done meanwhile, and without overrun.
        waited: Nanos,
        /// The reason for waiting.
        what: Awaited,
    },
    /// A processor performed a prefetch action.
    Acted {
        /// The process of that processor.
        process: u32,
        /// Start of the action.
        since: Nanos,
        /// End of the action.
        until: Nanos,
        /// The block that it prefetches.
        block: Block,
    },
    /// A process waited for the structures that lookups share, and held them.
    Held {
        /// The process.
        process: u32,
        /// When it requested them.
        since: Nanos,
        /// When its lookup was done.
        until: Nanos,
    },
    /// Blocks cross a link upwards.
    Crossed {
        /// The level that they leave.
        level: u32,
        /// Start of the transfer.
        since: Nanos,
        /// End of the transfer.
        until: Nanos,
        /// Number of blocks.
        blocks: u32,
    },
    /// A block was evicted from a level.
    Evicted {
        /// The time.
        at: Nanos,
        /// The block.
        block: Block,
    },
}
