//! Replays of traces against live servers.

use std::path::PathBuf;

use headstart_nbd::client::{Client, ConnectOptions};
use headstart_nbd::Uri;
use headstart_play::{check, replay, survey, Error, Settings};
use headstart_sim::Progress;
use headstart_types::KeyError;
use pyo3::prelude::*;

use crate::errors::{outside, to_python};
use crate::simulation::heeded;
use crate::traces::{request_bytes, selection};

/// Replays the trace at `path` against the server `to` (`nbd://HOST:PORT/EXPORT`, `nbd+unix:///EXPORT?socket=PATH`), and returns
/// what was measured as JSON. `on_progress` is called about 10 times a second with the share and the number of requests done;
/// the replay stops with the exception that it raises, and on Ctrl-C.
#[pyfunction]
#[pyo3(signature = (path, to, *, format="auto", request_size=None, arrival="closed", compute="trace", speed=1.0, depth=None,
    processes="merged", limit=None, writes="as-read", addresses="error", connections=1, seed=1, select="{}", on_progress=None))]
#[allow(clippy::too_many_arguments)] // They are the keywords of one Python function.
pub fn play_trace(
    py: Python<'_>,
    path: PathBuf,
    to: &str,
    format: &str,
    request_size: Option<&str>,
    arrival: &str,
    compute: &str,
    speed: f64,
    depth: Option<u32>,
    processes: &str,
    limit: Option<u64>,
    writes: &str,
    addresses: &str,
    connections: u32,
    seed: u64,
    select: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let key = |error: KeyError| to_python(error);
    let settings = Settings {
        trace: path,
        format: format.to_owned(),
        request_bytes: request_bytes(request_size)?,
        to: to.parse::<Uri>().map_err(to_python)?,
        arrival: arrival.parse().map_err(key)?,
        think: compute.parse().map_err(key)?,
        speed,
        depth,
        processes: processes.parse().map_err(key)?,
        limit,
        writes: writes.parse().map_err(key)?,
        addresses: addresses.parse().map_err(key)?,
        connections,
        seed,
        selection: selection(select)?,
    };
    settings.check().map_err(to_python)?;
    outside(
        py,
        || format!("play {settings:?}"),
        || {
            let report =
                heeded(on_progress.as_ref(), |error| matches!(error, Error::Stopped), |told| play(&settings, told))?;
            serde_json::to_string(&report).map_err(to_python)
        },
    )?
}

fn play(settings: &Settings, told: &mut dyn FnMut(Progress) -> bool) -> Result<headstart_play::Report, Error> {
    check(settings)?;
    let options = ConnectOptions { connection_count: settings.connections as usize, ..ConnectOptions::default() };
    let client = Client::connect(&settings.to, options).map_err(Error::Connect)?;
    let found = survey(settings, client.export(), &mut || told(Progress { share: 0.0, references: 0 }))?;
    replay(settings, &found, &client, &mut |references| {
        told(Progress { share: references as f64 / found.requests as f64, references })
    })
}
