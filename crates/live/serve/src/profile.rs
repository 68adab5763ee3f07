//! Measures an object of a store, or a file of a web server, by range requests, for the device model `object-store`.
//! The measurement itself is that of devices (`headstart_profile`).

use std::ops::Range;
use std::path::Path;

use bytes::BytesMut;
use headstart_host::{Clock, PathError, RealClock};
use headstart_profile::{check, profile_with, Error, Findings, Probe, Profile, Progress, Read, Settings, Span};
use headstart_types::{keys, Bytes, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

use crate::backing::{object, Backing, ObjectBacking};

const SECTOR_BYTES: u64 = 512;

keys! {
    /// Options of `headstart profile`. The parser, help, documentation, Python's keywords and errors are made from this
    /// struct.
    pub struct Options {
        /// A block device, a file, or an object (s3://BUCKET/KEY, https://HOST/PATH, gs:, az:). It is only read.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "PATH|DEVICE|URL", "x-file" = "url"))]
        pub device: String = String::new(),
        /// Approximate measuring time in seconds.
        #[schemars(range(min = 1.0, max = 110.0), extend("x-names" = ["--time"], "x-metavar" = "S"))]
        pub time_s: f64 = 60.0,
        /// Random seed of the places that are read.
        pub seed: u64 = 1,
        /// The device's name in the profile. Default: the name of the file.
        #[schemars(extend("x-names" = []))]
        pub name: Option<String> = None,
    }
}

/// Report of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Version of headstart.
    pub version: &'static str,
    /// The device, as given.
    pub device: String,
    /// The measured properties.
    #[serde(flatten)]
    pub findings: Findings,
    /// The profile as TOML, with the origin of each number.
    pub profile: String,
}

/// Measures a block device or a file through direct reads, or an object through range requests. `told` receives the
/// share done, 0 to 1, and the current phase; the measurement stops once it returns false.
///
/// # Errors
/// The device cannot be read or measured.
pub fn measured(options: &Options, told: &mut dyn FnMut((f64, &str)) -> bool) -> Result<Report, Error> {
    let settings = Settings { time: Nanos::from_millis((options.time_s * 1e3) as u64), seed: options.seed };
    let device = options.device.as_str();
    let file_name = || Path::new(device).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = options.name.clone().or_else(file_name).unwrap_or_default();
    let tell = |progress: Progress| told((progress.share, progress.phase.name()));
    let found = match is_object(device) {
        true => profile(device, &name, &settings, tell)?,
        false => headstart_profile::profile(Path::new(device), &name, &settings, tell)?,
    };
    let version = env!("CARGO_PKG_VERSION");
    Ok(Report { version, device: device.to_owned(), findings: found.findings, profile: found.toml })
}

const ALLOWED: &str = "an object that can be read by ranges and does not change meanwhile";

/// Whether `name` is an object of a store or a file of a web server, which [`profile`] measures.
#[must_use]
pub fn is_object(name: &str) -> bool {
    object::form(name).is_some()
}

/// Measures the object at `url`. `name` is written into the profile. `tell` is called 10 times a second and returns
/// whether to continue.
///
/// # Errors
/// There is no such object, it is too small, a read fails, or `tell` stopped the measurement.
pub fn profile(
    url: &str,
    name: &str,
    settings: &Settings,
    tell: impl FnMut(Progress) -> bool,
) -> Result<Profile, Error> {
    check(settings)?;
    let allowed = object::form(url).unwrap_or(ALLOWED);
    let object = ObjectBacking::open(url, &headstart_store::patience())
        .map_err(|problem| PathError::new(Path::new(url), problem, allowed))?;
    let clock = RealClock::new(1, 1.0);
    clock.enter(0);
    profile_with(&mut ObjectProbe { url, object, clock, connections: 1 }, Path::new(url), name, settings, tell)
}

struct ObjectProbe<'a> {
    url: &'a str,
    object: ObjectBacking,
    clock: RealClock,
    /// Maximum number of connections used at the same time so far.
    connections: usize,
}

fn range(read: Read) -> Range<u64> {
    let from = read.sector * SECTOR_BYTES;
    from..from + u64::from(read.sectors) * SECTOR_BYTES
}

impl ObjectProbe<'_> {
    fn failed(&self, problem: String) -> Error {
        PathError::new(Path::new(self.url), problem, ALLOWED).into()
    }
}

impl Probe for ObjectProbe<'_> {
    fn is_object_store(&self) -> bool {
        true
    }

    fn sectors(&self) -> u64 {
        self.object.about().size_bytes / SECTOR_BYTES
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn pause(&mut self, time: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(time.0));
    }

    fn read(&mut self, read: Read) -> Result<Span, Error> {
        let wanted = range(read);
        let mut buffer = [BytesMut::zeroed((wanted.end - wanted.start) as usize)];
        let from = self.now();
        let done = self.object.read(wanted.start, &mut buffer);
        let to = self.now();
        let what = || format!("reading {} at byte {}", Bytes(wanted.end - wanted.start), wanted.start);
        done.map(|()| Span { from, to }).map_err(|error| self.failed(format!("{}: {error}", what())))
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        let failed = |error| self.failed(format!("reading {depth} ranges at once: {error}"));
        if depth > self.connections {
            // New connections take some round trips, which must not count for later requests.
            self.object.read_ranges(&vec![0..1; depth], depth).map_err(failed)?;
        }
        let from = self.now();
        let ranges: Vec<Range<u64>> = reads.iter().copied().map(range).collect();
        self.object.read_ranges(&ranges, depth).map_err(failed)?;
        let took = self.now() - from;
        self.connections = self.connections.max(depth);
        Ok(took)
    }
}
