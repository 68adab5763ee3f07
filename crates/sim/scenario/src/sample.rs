//! Key `workload.sample`: which extents of a trace are read.

use headstart_types::{keys, read_keys, Bytes, KeyError, KeyTable};
use schemars::{Schema, SchemaGenerator};
use toml::{Table, Value};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleKeys {
    /// Share of the extents, above 0 and at most 1.
    pub rate: f64,
    /// Seed of the hash.
    pub seed: u64,
    /// Bytes per extent; `None`: whole files.
    pub extent_bytes: Option<u64>,
}

keys! {
    /// A sample of the extents.
    struct RawSample {
        /// Share of the extents, above 0 and at most 1.
        rate: f64 = 0.1,
        /// Seed of the draw.
        seed: u64 = 1,
        /// Size of an extent, or "file".
        extent: String = "1MiB".to_owned(),
    }
}

/// The schema of the keys.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    KeyTable::of::<RawSample>().schema().clone().try_into().expect("a schema")
}

pub fn read(value: Value) -> Result<SampleKeys, KeyError> {
    let Value::Table(table) = value else {
        let problem = format!("is a {}", value.type_str());
        return Err(KeyError::new("sample", problem, "a table of keys, as in {rate = 0.1}"));
    };
    of_table(table).map_err(|error| error.within("sample"))
}

fn of_table(table: Table) -> Result<SampleKeys, KeyError> {
    let RawSample { rate, seed, extent } = read_keys(table)?;
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(KeyError::new("rate", format!("{rate} is not a share"), "a number above 0 and at most 1"));
    }
    let allowed = format!("{}; or \"file\"", Bytes::ALLOWED);
    let extent_bytes = match extent.as_str() {
        "file" => None,
        text => match text.parse::<Bytes>() {
            Ok(Bytes(0)) => return Err(KeyError::new("extent", "is 0", allowed)),
            Ok(Bytes(bytes)) => Some(bytes),
            Err(problem) => return Err(KeyError::new("extent", problem, allowed)),
        },
    };
    Ok(SampleKeys { rate, seed, extent_bytes })
}
