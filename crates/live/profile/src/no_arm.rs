//! Profile of a device without an arm: the request size and queue depth that saturate it, for `headstart tune`, and the
//! fitted model (`fit/`) as table `service`, which `headstart-device` reads for simulation.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use headstart_device::NO_ARM;
use headstart_types::{read_table, system_says, Bytes, Nanos};
use serde::Deserialize;
use toml::Table;

use super::{Error, Findings};

/// Maximum size of a profile's file.
const LARGEST_BYTES: u64 = 1 << 20;
const ALLOWED: &str = "a profile that headstart profile has written";

/// The numbers that `tune` needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArm {
    /// Always "no-arm".
    pub form: String,
    /// Name of the device.
    pub name: String,
    /// Capacity.
    pub capacity: Bytes,
    /// Median latency of a random 4 KiB read.
    pub latency: Nanos,
    /// Smallest size whose throughput, one read at a time, is within 5 % of the best.
    pub saturating_size: Bytes,
    /// Smallest number of outstanding 4 KiB reads whose throughput is within 5 % of the best.
    pub saturating_depth: usize,
    /// Maximum throughput of one read at a time.
    pub bytes_per_second: u64,
    /// Maximum number of 4 KiB reads per second.
    pub requests_per_second: u64,
    /// The model and its keys.
    #[serde(default)]
    pub service: Table,
}

impl NoArm {
    /// Reads a profile; `None` if the file has another form or does not exist.
    ///
    /// # Errors
    /// It has this form and is incomplete or invalid.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Ok(text) = text_of(path) else { return Ok(None) };
        let Ok(table) = text.parse::<Table>() else { return Ok(None) };
        if table.get("form").and_then(toml::Value::as_str) != Some(NO_ARM) {
            return Ok(None);
        }
        let found: Self = read_table(table).map_err(|error| Error::path(path, error.to_string(), ALLOWED))?;
        match found.saturating_size.0 {
            0 => Err(Error::path(path, "saturating_size is 0", ALLOWED)),
            _ => Ok(Some(found)),
        }
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(system_says(&io::ErrorKind::InvalidInput.into())));
    }
    let mut text = String::new();
    file.take(LARGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The profile's text without the table `service`.
pub(super) fn text(findings: &Findings, name: &str, is_object_store: bool) -> String {
    let how = if is_object_store { "requests for ranges of an object" } else { "direct reads of a device" };
    let size = Bytes(findings.saturating_bytes.unwrap_or(findings.capacity_bytes));
    let most = |of: fn(&super::Point) -> f64, points: &[super::Point]| points.iter().map(of).fold(0.0, f64::max) as u64;
    format!(
        "\
# Measured by headstart profile {version} through {how}: {reads} of them before this was written.
#   [M]  measured
#   [F]  fitted to what was measured, and how far off it may be: the truth is within nineteen times out of twenty
#   [G]  guess: reads from outside do not tell
form = \"{NO_ARM}\"
name = {name}
capacity = \"{capacity}\"  # [M] as it says itself
latency = \"{latency}\"  # [M] median of reads of 4 KiB anywhere
saturating_size = \"{size}\"  # [M] from this size on one read at a time transfers within 5 % of the most
saturating_depth = {depth}  # [M] from so many reads of 4 KiB at once on there are within 5 % of the most
bytes_per_second = {rate}  # [M] the most, one read at a time
requests_per_second = {requests}  # [M] the most reads of 4 KiB
",
        version = env!("CARGO_PKG_VERSION"),
        reads = findings.reads,
        name = toml::Value::String(name.to_owned()),
        capacity = Bytes(findings.capacity_bytes),
        latency = Nanos(findings.latency.far_ns),
        depth = findings.saturating_depth,
        rate = most(|point| point.bytes_per_s, &findings.by_size),
        requests = most(|point| point.requests_per_s, &findings.by_depth),
    )
}
