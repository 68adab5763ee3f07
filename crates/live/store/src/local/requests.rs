//! What clients send and get. Keys are relative to the source's prefix; offsets are those of the memory's file.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The version of this protocol.
pub const PROTOCOL: u32 = 1;
/// Keys or ranges of one request.
pub const ITEMS_MAX: usize = 1 << 16;

/// A key and a range, to the end without the latter's.
pub type Item = (String, u64, Option<u64>);

/// The first frame of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    pub hello: u32,
}

/// The answer, which comes with the descriptor of the memory.
#[derive(Debug, Serialize)]
pub struct Welcome<'store> {
    pub hello: u32,
    pub version: &'static str,
    pub source: &'store str,
    pub cache_bytes: u64,
    pub spill_bytes: u64,
}

/// What a client sends: `id` is its own, and comes back with the answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The leases are held until they are released.
    Read {
        id: u64,
        items: Vec<Item>,
    },
    /// Has no answer; a lease that is not held is ignored.
    Release {
        leases: Vec<u64>,
    },
    Size {
        id: u64,
        keys: Vec<String>,
    },
    List {
        id: u64,
        prefix: String,
    },
    /// Appends to an order; `order` is the client's own number.
    Disclose {
        id: u64,
        order: u64,
        items: Vec<Item>,
    },
    Withdraw {
        id: u64,
        order: u64,
    },
    Left {
        id: u64,
        order: u64,
    },
    /// `optimum`: with what takes a pass over all reads.
    Report {
        id: u64,
        optimum: bool,
    },
}

/// What a client gets.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub id: u64,
    #[serde(flatten)]
    pub body: Body,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Body {
    /// Of each item: its parts in order (offset and length), and its lease.
    Read {
        parts: Vec<Vec<(u64, u64)>>,
        leases: Vec<u64>,
    },
    Sizes {
        sizes: Vec<u64>,
    },
    Objects {
        objects: Vec<(String, u64)>,
    },
    /// Entries of an order that are not read.
    Left {
        left: u64,
    },
    Report {
        report: serde_json::Value,
    },
    Error {
        error: Refusal,
    },
}

/// Why a request failed.
#[derive(Debug, Serialize)]
pub struct Refusal {
    kind: &'static str,
    text: String,
}

impl From<Failure> for Body {
    fn from(failure: Failure) -> Self {
        let kind = match failure {
            Failure::NotFound(_) => "not found",
            Failure::Denied(_) => "denied",
            Failure::Changed(_) => "changed",
            Failure::Invalid(_) => "invalid",
            Failure::Full(_) => "full",
            Failure::Source(_) => "source",
        };
        Self::Error { error: Refusal { kind, text: failure.to_string() } }
    }
}
