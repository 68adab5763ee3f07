//! All registries in one table, for `headstart list` and the docs.

use headstart_device::{ARRAYS, MODELS, SCHEDULERS};
use headstart_engine::{Metric, METRICS};
use headstart_policy::registry::{COORDINATORS, POLICIES, REPLACEMENTS};
use headstart_trace::{FORMATS, WORKLOADS};
use headstart_types::Chosen;
use pyo3::prelude::*;
use serde_json::{json, Value};

use crate::errors::guarded;

/// The rows of every registry, as JSON: `{"policies": [{"name", "summary", "source", "keys"}], ...}`. Policies and
/// replacements also say whether they are `hinted` and what they need to know (`needs`: "nothing", the "drive"'s seeks,
/// the "future"); policies whether one request fetches adjacent blocks that they fetch together (`gathers`), whether
/// they leave replacement open, their `family` ("demand", "hinted", "parallel", "read-ahead", "predictor"), and whether
/// they need a trace with addresses (`by_position`); formats what their traces carry.
#[pyfunction]
pub fn catalog() -> PyResult<String> {
    guarded(|| "the registries".to_owned(), registries)
}

/// The JSON Schema of a scenario.
#[pyfunction]
pub fn schema() -> PyResult<String> {
    guarded(|| "the schema".to_owned(), || headstart_sim::schema().to_string())
}

/// The metrics of results that come from the counters of levels, as JSON: `[{"name", "kind", "summary", "of_result"}]`.
#[pyfunction]
pub fn metrics() -> PyResult<String> {
    let metric = |each: &Metric| json!({"name": each.name, "kind": each.kind, "summary": each.summary, "of_result": each.of_result});
    guarded(|| "the metrics".to_owned(), || METRICS.iter().map(metric).collect::<Value>().to_string())
}

fn registries() -> String {
    let row = |name: &str, summary: &str, source: &str, keys: &toml::Table| -> Value {
        json!({"name": name, "summary": summary, "source": source, "keys": keys})
    };
    let none = toml::Table::new();
    let policies: Vec<Value> = POLICIES
        .iter()
        .map(|each| {
            let mut value = row(each.name, each.summary, each.source, &each.keys.defaults());
            value["family"] = json!(each.family_name());
            value["hinted"] = json!(each.is_hinted());
            value["gathers"] = json!(each.gathers());
            value["open_replacement"] = json!(each.has_open_replacement());
            value["by_position"] = json!(each.is_by_position(&Chosen::plain(*each).keys));
            if let Some(reads_ahead) = each.reads_ahead() {
                value["needs"] = json!(reads_ahead.needs);
            }
            value
        })
        .collect();
    let coordinators: Vec<Value> =
        COORDINATORS.iter().map(|each| row(each.name, each.summary, each.source, &each.keys.defaults())).collect();
    let replacements: Vec<Value> = REPLACEMENTS
        .iter()
        .map(|each| {
            let mut value = row(each.name, each.summary, each.source, &each.keys.defaults());
            value["hinted"] = json!(each.hinted);
            value
        })
        .collect();
    let devices: Vec<Value> =
        MODELS.iter().map(|each| row(each.name, each.summary, each.source, &each.keys.defaults())).collect();
    let schedulers: Vec<Value> =
        SCHEDULERS.iter().map(|each| row(each.name, each.summary, "", &each.keys.defaults())).collect();
    let arrays: Vec<Value> = ARRAYS
        .iter()
        .map(|each| {
            let mut value = row(each.name, each.summary, each.source, &none);
            value["independent"] = json!(each.is_independent());
            value
        })
        .collect();
    let formats: Vec<Value> = FORMATS
        .iter()
        .map(|each| {
            let mut value = row(each.name, each.summary, each.source, &none);
            value["carries"] = json!(each.carries);
            value
        })
        .collect();
    let workloads: Vec<Value> =
        WORKLOADS.iter().map(|each| row(each.name, each.summary, each.source, &each.keys.defaults())).collect();
    let backings: Vec<Value> =
        headstart_serve::backing::named().map(|(form, summary)| row(form, summary, "", &none)).collect();
    json!({
        "policies": policies,
        "replacements": replacements,
        "coordinators": coordinators,
        "devices": devices,
        "arrays": arrays,
        "schedulers": schedulers,
        "formats": formats,
        "workloads": workloads,
        "backings": backings,
    })
    .to_string()
}
