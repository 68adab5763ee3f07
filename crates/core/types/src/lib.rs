//! Types shared by every crate of headstart: time, sizes, ids, references and the error that names a key.
//!
//! This crate only parses and does arithmetic on units, so that `policy`, `trace` and `device` can depend on it and on
//! nothing else of the project.

#![warn(missing_docs)]

mod credentials;
mod drive;
mod earliest;
mod error;
mod files;
mod ids;
mod index_set;
mod keys;
mod openmetrics;
mod printable;
mod program;
mod reference;
pub mod seed;
mod size;
mod spread;
mod time;
mod units;

pub use credentials::without_credentials;
pub use drive::{DriveFacts, RateBand, SECTOR_BYTES};
pub use earliest::Earliest;
pub use error::{system_says, KeyError};
pub use files::{check_regular, open_checked, open_regular, read_bytes, read_text, TEXT_BYTES_MAX};
pub use ids::{Block, Disk, Position, NEVER};
pub use index_set::IndexSet;
pub use keys::{
    absent_in_words, as_text, as_text_if_any, defaults_of, one_of, optional, options, property_names, read_keys,
    read_options, read_table, schema_of, take_key, toml_problem, within_range, Chosen, KeySchema, KeyTable, Keys,
    NoKeys, Row, TypedKeys,
};
pub use openmetrics::{escaped, OpenMetrics};
pub use printable::{printable, printable_path};
pub use program::{Meetings, Program};
pub use reference::{Chunk, Outcome, Think};
pub use seed::stream_seed;
pub use size::Bytes;
pub use spread::Spread;
pub use time::Nanos;
pub use units::from_text;
