//! Emulated disks, from the mount to the unmount.

use std::path::PathBuf;
use std::time::Duration;

use headstart_emulate::{Emulation, Settings};
use pyo3::prelude::*;

use crate::devices::table;
use crate::errors::{outside, to_python};

/// How often Python gets the progress, and is asked whether to go on.
const REFRESH: Duration = Duration::from_millis(100);

/// Shows `image` as the file disk.img in the folder `mount`, whose reads take what the device `profile` with `keys` (a
/// JSON object) laid over it needs for them, until it is unmounted, Ctrl-C comes, or `on_progress` stops it: that is
/// called with the statistics as JSON as soon as it is mounted and 10 times a second, and stops it by returning what is
/// true, or by an exception. Returns the statistics at the end, whether files of it were still open, and whether something
/// else was mounted on it.
#[pyfunction]
#[pyo3(signature = (profile, image, mount, *, keys="{}", scheduler="fcfs", on_progress=None))]
pub fn emulate(
    py: Python<'_>,
    profile: &str,
    image: PathBuf,
    mount: PathBuf,
    keys: &str,
    scheduler: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(String, bool, bool)> {
    let keys = table(keys).map_err(to_python)?;
    let settings = Settings { profile: profile.to_owned(), keys, scheduler: scheduler.to_owned(), image, mount };
    outside(
        py,
        || format!("emulate {settings:?}"),
        || {
            let emulation = Emulation::mount(&settings).map_err(to_python)?;
            let mut raised = None;
            while emulation.is_mounted() {
                match Python::with_gil(|py| stops(py, on_progress.as_ref(), &emulation)) {
                    Ok(false) => std::thread::sleep(REFRESH),
                    Ok(true) => break,
                    Err(exception) => {
                        raised = Some(exception);
                        break;
                    }
                }
            }
            let ended = emulation.unmount().map_err(to_python);
            match raised {
                Some(raised) => Err(raised),
                None => ended.map(|ended| (ended.statistics.to_json(), ended.was_in_use, ended.was_covered)),
            }
        },
    )?
}

/// Tells Python what has been done, and hears whether that is all.
fn stops(py: Python<'_>, on_progress: Option<&Py<PyAny>>, emulation: &Emulation) -> PyResult<bool> {
    py.check_signals()?;
    match on_progress {
        Some(on_progress) => on_progress.call1(py, (emulation.statistics().to_json(),))?.is_truthy(py),
        None => Ok(false),
    }
}
