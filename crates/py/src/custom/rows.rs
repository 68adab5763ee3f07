//! Creates rows that build policies from the names of Python classes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use headstart_policy::readahead::{BuildReadAhead, Integrated, Needs, ReadAheadContext, ReadsAhead};
use headstart_policy::registry::{Beside, Context, Family, PolicyRow, ReplacementRow, Rows};
use headstart_policy::{Policy, ReadAhead, Replacement};
use headstart_types::{KeyError, KeyTable, TypedKeys};
use pyo3::prelude::*;
use toml::Table;

use super::call::{described, raise, Fault};
use super::policy::PyPolicy;
use super::read_ahead::{PyIntegrated, PyReadAhead};
use super::replacement::PyReplacement;

/// Policies that are Python classes: "mine.py:Mine".
pub struct PythonRows {
    /// Folder of the scenario: searched for files that are not in the working directory.
    beside: Option<PathBuf>,
}

/// A class and the name that the user wrote.
#[derive(Clone, Copy)]
struct Class {
    name: &'static str,
    class: &'static Py<PyAny>,
}

/// The row of a class, by its kind.
#[derive(Clone, Copy)]
enum Found {
    Policy(&'static PolicyRow),
    Replacement(&'static ReplacementRow),
}

/// Rows live as long as the program, one per named class, keyed by the class's address and name.
static ROWS: Mutex<BTreeMap<(usize, String), Found>> = Mutex::new(BTreeMap::new());

impl PythonRows {
    /// For a scenario in the file `path`, if any.
    pub fn new(scenario: Option<&PathBuf>) -> Self {
        Self { beside: scenario.and_then(|path| path.parent()).map(PathBuf::from) }
    }

    /// The row of `name`; `None` if it does not name a Python class.
    fn find(&self, name: &str) -> Option<Result<Found, KeyError>> {
        name.contains(".py:").then(|| Python::with_gil(|py| self.resolve(py, name).map_err(|error| refusal(py, error))))
    }

    fn resolve(&self, py: Python<'_>, name: &str) -> PyResult<Found> {
        let found = py.import("headstart.custom")?.call_method1("resolve", (name, &self.beside))?;
        let (class, kind, defaults, summary): (Py<PyAny>, String, String, String) = found.extract()?;
        let mut rows = ROWS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (class.as_ptr() as usize, name.to_owned());
        let made = rows.entry(key).or_insert_with(|| {
            let class = Class { name: leak(name), class: Box::leak(Box::new(class)) };
            class.rows(&kind, KeyTable::any(leak(&toml_of(&defaults))), leak(&summary))
        });
        Ok(*made)
    }
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// A JSON object as TOML.
fn toml_of(json: &str) -> String {
    serde_json::from_str::<Table>(json).unwrap_or_default().to_string()
}

/// An error of `resolve` or of a constructor that concerns a key; any other exception ends the run unchanged.
fn refusal(py: Python<'_>, error: PyErr) -> KeyError {
    let part = |name| error.value(py).getattr(name).and_then(|text| text.extract::<String>());
    match (part("key"), part("problem"), part("allowed")) {
        (Ok(key), Ok(problem), Ok(allowed)) => KeyError::new(key, problem, allowed),
        _ => raise(error),
    }
}

impl Rows for PythonRows {
    fn policy(&self, name: &str) -> Option<Result<&'static PolicyRow, KeyError>> {
        Some(self.find(name)?.and_then(|found| match found {
            Found::Policy(row) => Ok(row),
            Found::Replacement(_) => {
                let allowed = format!("policy = {{name = \"demand\", replacement = \"{name}\"}}");
                Err(KeyError::new("name", format!("{name} is a replacement"), allowed))
            }
        }))
    }

    fn replacement(&self, name: &str) -> Option<Result<&'static ReplacementRow, KeyError>> {
        Some(self.find(name)?.and_then(|found| match found {
            Found::Replacement(row) => Ok(row),
            Found::Policy(_) => {
                let allowed = "a class derived from headstart.Replacement alone";
                Err(KeyError::new("replacement", format!("{name} is no replacement"), allowed))
            }
        }))
    }
}

impl Class {
    /// Creates an object from keys, tells it about its cache, and wraps it with `wrap`.
    fn make<T>(
        self,
        keys: &Table,
        (frames, block_bytes): (u32, Option<u64>),
        wrap: impl FnOnce(&Bound<'_, PyAny>, &str) -> PyResult<T>,
    ) -> Result<T, KeyError> {
        let keys = serde_json::to_string(keys).map_err(|error| KeyError::new("", error.to_string(), "plain values"))?;
        Python::with_gil(|py| {
            let module = py.import("headstart.custom").unwrap_or_else(|error| raise(error));
            let made = module.call_method1("make", (self.class, keys, self.name));
            let object = made.map_err(|error| match error.value(py).hasattr("allowed") {
                Ok(true) => refusal(py, error),
                _ => raise(described(py, &format!("{}.__init__", self.name), Fault::Raised(error))),
            })?;
            let started = object.call_method1("start", (frames, block_bytes));
            let wrapped = started.map_err(|error| described(py, &format!("{}.start", self.name), Fault::Raised(error)));
            Ok(wrapped.and_then(|_| wrap(&object, self.name)).unwrap_or_else(|error| raise(error)))
        })
    }

    fn replacement(self, keys: &Table, context: &Context) -> Result<PyReplacement, KeyError> {
        let mut made = self.make(keys, (context.frames, None), PyReplacement::new)?;
        made.grow(context.disk_of.len());
        context.initial.iter().for_each(|block| made.inserted(*block));
        Ok(made)
    }

    fn policy(self, keys: &Table, context: &Context) -> Result<Box<dyn Policy>, KeyError> {
        if context.processes() > 1 {
            let problem = format!("{} plans for one process, whose references come in a known order", self.name);
            return Err(KeyError::new("name", problem, "a read-ahead, or one process"));
        }
        let hints = context.hints_of_row();
        let whole = context.whole;
        let mut made =
            self.make(keys, (context.frames, None), |object, name| PyPolicy::new(object, name, hints, whole))?;
        made.grow(context.disk_of.len());
        Ok(Box::new(made))
    }

    fn read_ahead(self, keys: &Table, context: &ReadAheadContext) -> Result<Box<dyn ReadAhead>, KeyError> {
        let cache = (context.frames, Some(context.block_bytes));
        Ok(Box::new(self.make(keys, cache, PyReadAhead::new)?))
    }

    fn integrated(self, keys: &Table, context: &ReadAheadContext) -> Result<Box<dyn Integrated>, KeyError> {
        let cache = (context.frames, Some(context.block_bytes));
        Ok(Box::new(self.make(keys, cache, PyIntegrated::new)?))
    }

    /// The row of a class of this kind; `headstart.custom` defines the kinds.
    fn rows(self, kind: &str, keys: KeyTable, summary: &'static str) -> Found {
        let policy = |default_replacement, family| {
            let row = PolicyRow { name: self.name, summary, source: "Python", keys, default_replacement, family };
            Found::Policy(Box::leak(Box::new(row)))
        };
        let (kind, predicts) = match kind.strip_prefix("predictor") {
            Some(rest) => (format!("read-ahead{rest}"), true),
            None => (kind.to_owned(), false),
        };
        let reads_ahead = |build| {
            let row = ReadsAhead { only_ahead: false, spares_random: false, needs: Needs::Nothing, build };
            if predicts {
                Family::Predictor(row, |_| false)
            } else {
                Family::ReadAhead(row)
            }
        };
        match &*kind {
            "policy" => {
                let build = move |keys: &TypedKeys, context: &Context| self.policy(keys.get(), context);
                policy(None, Family::Hinted(Box::leak(Box::new(build))))
            }
            "read-ahead" => {
                let build = move |keys: &TypedKeys, context: &ReadAheadContext| self.read_ahead(keys.get(), context);
                policy(Some("lru"), reads_ahead(BuildReadAhead::Separate(Box::leak(Box::new(build)))))
            }
            "read-ahead with replacement" => {
                let build = move |keys: &TypedKeys, context: &ReadAheadContext| self.integrated(keys.get(), context);
                policy(None, reads_ahead(BuildReadAhead::WithReplacement(Box::leak(Box::new(build)))))
            }
            _ => {
                let build = move |keys: &TypedKeys, context: &Context| {
                    self.replacement(keys.get(), context).map(|made| Box::new(made) as Box<dyn Replacement>)
                };
                let join = move |keys: &TypedKeys, context: &Context, beside: Beside| {
                    self.replacement(keys.get(), context).map(|made| beside.join(made, context.frames))
                };
                Found::Replacement(Box::leak(Box::new(ReplacementRow {
                    name: self.name,
                    summary,
                    source: "Python",
                    hinted: false,
                    keys,
                    build: Box::leak(Box::new(build)),
                    join: Box::leak(Box::new(join)),
                })))
            }
        }
    }
}

/// A class under test by the conformance suites.
pub struct Conforming {
    class: Class,
    kind: String,
    keys: Table,
}

impl PythonRows {
    /// The class `name` for the conformance suites.
    pub fn conforming(&self, name: &str) -> Result<Conforming, KeyError> {
        let (class, kind, defaults): (Py<PyAny>, String, String) = Python::with_gil(|py| {
            let found = py.import("headstart.custom")?.call_method1("resolve", (name, &self.beside))?;
            let (class, kind, defaults, _): (Py<PyAny>, String, String, String) = found.extract()?;
            Ok((class, kind, defaults))
        })
        .map_err(|error| Python::with_gil(|py| refusal(py, error)))?;
        let class = Class { name: leak(name), class: Box::leak(Box::new(class)) };
        Ok(Conforming { class, kind, keys: serde_json::from_str(&defaults).unwrap_or_default() })
    }
}

/// The suites need objects: a class that cannot be constructed is refused as in a run.
fn made<T>(made: Result<T, KeyError>) -> T {
    made.unwrap_or_else(|error| raise(crate::errors::to_python(error)))
}

impl Conforming {
    /// Whether it chooses victims.
    pub fn replaces(&self) -> bool {
        self.kind.ends_with("replacement")
    }

    pub fn reads_ahead(&self) -> bool {
        self.kind.starts_with("read-ahead")
    }

    /// Whether it chooses fetches and victims together.
    pub fn decides(&self) -> bool {
        self.kind == "policy"
    }

    pub fn replacement(&self, context: &Context) -> Box<dyn Replacement> {
        Box::new(made(self.class.replacement(&self.keys, context)))
    }

    pub fn read_ahead(&self, context: &ReadAheadContext) -> Box<dyn ReadAhead> {
        made(self.class.read_ahead(&self.keys, context))
    }

    pub fn policy(&self, context: &Context) -> Box<dyn Policy> {
        made(self.class.policy(&self.keys, context))
    }
}
