//! Every registry in one table: what `headstart list` and the docs show.

use headstart_device::{ARRAYS, MODELS, SCHEDULERS};
use headstart_policy::coordinator::registry::COORDINATORS;
use headstart_policy::readahead::{BuildReadAhead, READ_AHEADS};
use headstart_policy::registry::{POLICIES, REPLACEMENTS};
use headstart_trace::{FORMATS, WORKLOADS};
use pyo3::prelude::*;
use serde_json::{json, Value};

use crate::errors::guarded;

/// The rows of every registry, as JSON: `{"policies": [{"name", "summary", "source", "keys"}], ...}`. Policies and
/// replacements also say whether they are `hinted`, policies whether they leave replacement open and of which `family`
/// they are ("demand", "hinted", "read-ahead"), read-aheads what they need to know (`needs`: "nothing", the "drive"'s
/// seeks, the "future"), formats what their traces carry.
#[pyfunction]
pub fn catalog() -> PyResult<String> {
    guarded(|| "the registries".to_owned(), registries)
}

fn registries() -> String {
    let row = |name: &str, summary: &str, source: &str, keys: &toml::Table| -> Value {
        json!({"name": name, "summary": summary, "source": source, "keys": keys})
    };
    let none = toml::Table::new();
    let family = |mut value: Value, family: &str, open_replacement: bool| -> Value {
        value["family"] = json!(family);
        value["hinted"] = json!(family == "hinted");
        value["open_replacement"] = json!(open_replacement);
        value
    };
    let mut policies: Vec<Value> = POLICIES
        .iter()
        .map(|each| {
            let value = row(each.name, each.summary, each.source, &(each.defaults)());
            let name = match (each.hinted, each.parallel) {
                (true, _) => "hinted",
                (_, true) => "parallel",
                _ => "demand",
            };
            family(value, name, each.open_replacement)
        })
        .collect();
    policies.extend(READ_AHEADS.iter().map(|each| {
        let value = row(each.name, each.summary, each.source, &(each.defaults)());
        let mut value = family(value, "read-ahead", matches!(each.build, BuildReadAhead::Apart(_)));
        value["needs"] = json!(each.needs);
        value
    }));
    let coordinators: Vec<Value> =
        COORDINATORS.iter().map(|each| row(each.name, each.summary, each.source, &(each.defaults)())).collect();
    let replacements: Vec<Value> = REPLACEMENTS
        .iter()
        .map(|each| {
            let mut value = row(each.name, each.summary, each.source, &(each.defaults)());
            value["hinted"] = json!(each.hinted);
            value
        })
        .collect();
    let devices: Vec<Value> =
        MODELS.iter().map(|each| row(each.name, each.summary, each.source, &(each.defaults)())).collect();
    let schedulers: Vec<Value> =
        SCHEDULERS.iter().map(|each| row(each.name, each.summary, "", &(each.defaults)())).collect();
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
        WORKLOADS.iter().map(|each| row(each.name, each.summary, each.source, &(each.defaults)())).collect();
    json!({
        "policies": policies,
        "replacements": replacements,
        "coordinators": coordinators,
        "devices": devices,
        "arrays": arrays,
        "schedulers": schedulers,
        "formats": formats,
        "workloads": workloads,
    })
    .to_string()
}
