//! Keys `placement` and `addresses` of `[workload]`.

use headstart_types::{one_of, KeyError, KeyTable};
use schemars::{Schema, SchemaGenerator};
use toml::{Table, Value};

use super::ffs::FfsKeys;

/// Where the blocks of files lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Placement {
    /// The trace's numbers are addresses.
    Address,
    /// Files one after another, in the order of the file table.
    TableOrder,
    /// Each file at a random start within a group of 8550 blocks (kimbrel96, section 3.2).
    RandomGroups,
    /// As laid out by a Fast File System.
    Ffs(FfsKeys),
}

impl Placement {
    const NAMES: [&str; 4] = ["address", "table-order", "random-groups", "ffs"];

    /// Reads a name, or a table with a name and keys.
    pub fn read(value: Value, block_bytes: u64) -> Result<Self, KeyError> {
        let (name, keys) = match value {
            Value::String(name) => (name, Table::new()),
            Value::Table(mut table) => match table.remove("name") {
                Some(Value::String(name)) => (name, table),
                _ => return Err(KeyError::new("placement.name", "is missing", Self::NAMES.join(", "))),
            },
            other => {
                let problem = format!("{other} is not a placement");
                return Err(KeyError::new("placement", problem, "a name, or a table with a name and its keys"));
            }
        };
        if let (true, Some((key, _))) = (name != "ffs", keys.iter().next()) {
            return Err(KeyError::unknown_key(key, ["name"].into_iter()).within("placement"));
        }
        Ok(match name.as_str() {
            "address" => Placement::Address,
            "table-order" => Placement::TableOrder,
            "random-groups" => Placement::RandomGroups,
            "ffs" => Placement::Ffs(FfsKeys::read(keys, block_bytes).map_err(|error| error.within("placement"))?),
            other => return Err(KeyError::unknown("placement", "placement", other, Self::NAMES.into_iter())),
        })
    }

    /// The scenario's value, with every default.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Placement::Address => "address".into(),
            Placement::TableOrder => "table-order".into(),
            Placement::RandomGroups => "random-groups".into(),
            Placement::Ffs(keys) => {
                let mut table = Table::from_iter([("name".to_owned(), Value::from("ffs"))]);
                table.extend(Table::try_from(keys).expect("keys are plain values"));
                table.into()
            }
        }
    }
}

/// The treatment of addresses beyond the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// An error.
    Error,
    /// If any address lies beyond it, the largest chunks with which all blocks fit; otherwise nothing.
    Auto,
    /// Only chunks with a referenced block use space, in order of their addresses.
    Compact {
        /// Blocks per chunk, at least 1; a chunk begins at a multiple of this.
        chunk_blocks: u64,
    },
}

/// Default blocks per chunk: room for the longest read-ahead of Linux 2.6 on both levels. Our choice.
pub const DEFAULT_CHUNK: u64 = 64;

/// A placement: its name, or a table with its name and keys.
pub fn placement_schema(_: &mut SchemaGenerator) -> Schema {
    let rows = Placement::NAMES.map(|name| match name {
        "ffs" => (name, "as laid out by a Fast File System", KeyTable::of::<FfsKeys>().schema()),
        "address" => (name, "the trace's numbers are addresses", KeyTable::NONE.schema()),
        "table-order" => (name, "files one after another, in the order of the file table", KeyTable::NONE.schema()),
        name => (name, "each file at a random position within a group of 8550 blocks", KeyTable::NONE.schema()),
    });
    one_of(&rows, &serde_json::Map::new(), None).try_into().expect("a schema")
}
