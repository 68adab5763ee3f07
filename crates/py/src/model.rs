//! The analytic models: file systems (columns of numbers in, terms out) and competitive prefetching (JSON in and out).

use std::path::PathBuf;

use headstart_analytic::competitive::{defeat, latest_violation};
use headstart_analytic::file_system::{Column, Sheet, TERMS};
use headstart_sim::{model, Error, Scenario, Source};
use headstart_types::KeyError;
use pyo3::buffer::{PyBuffer, ReadOnlyCell};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{from_json, guarded, outside, to_python};
use crate::simulation::{described, source};

/// The terms that `model_file_system` writes per row, in order.
#[pyfunction]
pub fn model_terms() -> PyResult<Vec<&'static str>> {
    guarded(|| "the model's terms".to_owned(), || TERMS.to_vec())
}

/// The depth of competitive prefetching and its bounds. `question` and the result are JSON.
#[pyfunction]
#[pyo3(signature = (question))]
pub fn model_competitive(py: Python<'_>, question: &str) -> PyResult<String> {
    outside(
        py,
        || format!("question {question}"),
        || {
            let question = from_json("keys", question).map_err(to_python)?;
            let answer = model::competitive::competitive(&question).map_err(to_python)?;
            serde_json::to_string(&answer).map_err(to_python)
        },
    )?
}

/// Maximum number of prefetches of a stream that defeats a schedule: less than a second of work.
const STEPS_MAX: f64 = 1e8;

/// The stream that costs more than `alpha` times its optimum: its bytes, the prefetch in which it ends (from 1), and
/// its cost as a multiple of the optimum. The k-th prefetch fetches `sizes[k]` bytes; those after the last fetch as
/// much as the last.
#[pyfunction]
#[pyo3(signature = (sizes, *, alpha, switch_ns, bytes_per_second))]
#[allow(clippy::needless_pass_by_value)] // Python's list becomes ours.
pub fn model_defeat(
    py: Python<'_>,
    sizes: Vec<f64>,
    alpha: f64,
    switch_ns: f64,
    bytes_per_second: f64,
) -> PyResult<(f64, u64, f64)> {
    let amounts = [("switch_ns", switch_ns), ("bytes_per_second", bytes_per_second)];
    if let Some((key, amount)) = amounts.into_iter().find(|(_, amount)| !(*amount > 0.0 && amount.is_finite())) {
        return Err(to_python(KeyError::new(key, format!("{amount} is out of range"), "more than 0")));
    }
    let latest = latest_violation(sizes.first().copied().unwrap_or(0.0), switch_ns, bytes_per_second);
    if latest.is_finite() && latest > STEPS_MAX {
        let problem = format!("the first is so near to a switch's worth of data that it takes {latest:e} prefetches");
        return Err(to_python(KeyError::new("sizes", problem, format!("{STEPS_MAX:e} at most"))));
    }
    let size = |k: u64| sizes.get(k as usize - 1).or(sizes.last()).copied().unwrap_or(0.0);
    let what = || format!("sizes {sizes:?}, alpha {alpha}, switch_ns {switch_ns}, bytes_per_second {bytes_per_second}");
    let found = outside(py, what, || defeat(size, alpha, switch_ns, bytes_per_second))?.map_err(to_python)?;
    Ok((found.length_bytes, found.prefetch, found.ratio()))
}

/// A model's result for a scenario, as JSON.
fn answered<T: ToString + Send>(
    py: Python<'_>,
    source: &Source,
    overrides: &[String],
    answer: impl FnOnce(&Scenario) -> Result<T, Error> + Send,
) -> PyResult<String> {
    let found = outside(py, described(source, overrides), || answer(&Scenario::read(source, overrides)?))?;
    Ok(found.map_err(to_python)?.to_string())
}

/// The model's result for a scenario, as JSON: `response`, `parameters`, and with `advice` what to change.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), advice=false))]
pub fn model_scenario(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    advice: bool,
) -> PyResult<String> {
    answered(py, &source(path, json), &overrides, |scenario| model::answer(scenario, advice))
}

/// The result of the model of open arrivals for a scenario's mean request, as JSON.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new()))]
pub fn model_open(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
) -> PyResult<String> {
    answered(py, &source(path, json), &overrides, model::open_answer)
}

/// The result of the model of a recorded program for its mean request, as JSON.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new()))]
pub fn model_trace(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
) -> PyResult<String> {
    answered(py, &source(path, json), &overrides, model::traced_answer)
}

/// Rows evaluated between two checks of Python: few enough for the processor's cache.
const CHUNK: usize = 8192;

/// Writes the terms of each row to `out`, one number per term and row, term by term. `question` is JSON; `columns`
/// override its parameters, with one number, or one per row. Buffers hold C doubles.
#[pyfunction]
#[pyo3(signature = (question, columns, out))]
pub fn model_file_system(
    py: Python<'_>,
    question: &str,
    columns: Vec<(String, PyBuffer<f64>)>,
    out: PyBuffer<f64>,
) -> PyResult<()> {
    let what = || format!("question {question}");
    let rows = out.item_count() / TERMS.len();
    let columns = columns.into_iter().map(|(name, numbers)| Input::new(&name, numbers, rows));
    let columns = columns.collect::<PyResult<Vec<Input>>>()?;
    let Some(out) = out.as_mut_slice(py) else {
        return Err(PyValueError::new_err("out: is no buffer that can be written"));
    };
    let (sheet, mut seeks) = outside(py, what, || {
        let question = from_json("drive", question).map_err(to_python)?;
        model::sheet(&question).map_err(to_python)
    })??;
    let mut terms = Vec::new();
    for first in (0..rows).step_by(CHUNK) {
        let count = CHUNK.min(rows - first);
        let inputs = columns.iter().map(|input| input.numbers(py, first, count)).collect::<PyResult<Vec<Column>>>()?;
        terms.resize(count * TERMS.len(), 0.0);
        let done = outside(py, what, || sheet.evaluate(&inputs, count, &mut seeks, &mut terms))?;
        done.map_err(|(row, error)| to_python(at_element(error, first + row, rows)))?;
        for (term, values) in terms.chunks(count).enumerate() {
            let place = &out[term * rows + first..][..count];
            place.iter().zip(values).for_each(|(cell, value)| cell.set(*value));
        }
        py.check_signals()?;
    }
    Ok(())
}

/// Numbers of a parameter, in Python's memory.
struct Input {
    index: usize,
    numbers: PyBuffer<f64>,
}

impl Input {
    fn new(name: &str, numbers: PyBuffer<f64>, rows: usize) -> PyResult<Self> {
        let index = Sheet::index(name).map_err(to_python)?;
        if ![1, rows].contains(&numbers.item_count()) {
            let problem = format!("{} numbers for {rows} rows", numbers.item_count());
            return Err(to_python(KeyError::new(name, problem, "one, or one for each row")));
        }
        Ok(Self { index, numbers })
    }

    /// The numbers of `count` rows from `first` on, or the only one.
    fn numbers(&self, py: Python<'_>, first: usize, count: usize) -> PyResult<Column> {
        let Some(cells) = self.numbers.as_slice(py) else {
            return Err(PyValueError::new_err("columns: a buffer has gaps"));
        };
        let cells = if cells.len() == 1 { cells } else { &cells[first..first + count] };
        Ok((self.index, cells.iter().map(ReadOnlyCell::get).collect()))
    }
}

fn at_element(error: KeyError, element: usize, elements: usize) -> KeyError {
    if elements == 1 {
        return error;
    }
    KeyError { problem: format!("{} (element {element})", error.problem), ..error }
}
