//! The JSON Schema of a scenario, built from the sections' structs and the registries' rows: for editors, and for the
//! docs.
//!
//! Draft 7, which TOML editors support, without references: every table is described in place. It does not contain what
//! only a run can know (a trace's processes, a device's size), nor constraints across sections.

use headstart_device::{ProfileKeys, ARRAYS, MODELS, SCHEDULERS};
use headstart_policy::registry::{PolicyRow, COORDINATORS, POLICIES, REPLACEMENTS};
use headstart_trace::{patterns::PATTERNS, WORKLOADS};
use headstart_types::{defaults_of, one_of, optional, schema_of, KeyTable, Keys};
use serde_json::{json, Map, Value as Json};

use super::cache::CacheSection;
use super::device::DeviceSection;
use super::host::HostKeys;
use super::level::LevelSection;
use super::policy::HintsKeys;
use super::process::{BarrierSection, ProcessSection};
use super::workload::WorkloadSection;

#[must_use]
pub fn schema() -> Json {
    let policy = policy();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of headstart",
        "description": "What to simulate: see docs/scenario.md. headstart simulate --explain prints a scenario with \
        every default.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "seed": {"type": "integer", "minimum": 0, "default": 1, "description": "Of everything random."},
            "workload": workload(),
            "cache": optional(KeyTable::of::<CacheSection>().schema(), "One level: short for one [[level]].", None),
            "policy": policy.clone(),
            "level": levels(&policy),
            "device": device(),
            "host": KeyTable::of::<HostKeys>().schema(),
            "process": process(),
        },
    })
}

fn object(properties: Map<String, Json>, title: &str, required: &[&str]) -> Json {
    json!({
        "title": title, "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

fn properties(schema: &Json) -> Map<String, Json> {
    schema.get("properties").and_then(Json::as_object).cloned().unwrap_or_default()
}

fn of_keys(keys: Map<String, Json>) -> Json {
    json!({"properties": keys})
}

fn workload() -> Json {
    let section = schema_of::<WorkloadSection>();
    let mut common = properties(&section);
    for (key, value) in defaults_of::<WorkloadSection>() {
        if let Some(property) = common.get_mut(&key).and_then(Json::as_object_mut) {
            property.insert("default".into(), serde_json::to_value(value).unwrap_or_default());
        }
    }
    common.values_mut().filter_map(Json::as_object_mut).for_each(|property| drop(property.shift_remove("x-of-input")));
    let generated = WORKLOADS.iter().map(|row| {
        let mut keys = common.clone();
        keys.extend(properties(&row.keys.schema()));
        // A generator with its own think times also accepts "trace".
        let mut compute = common["compute"].clone();
        for word in ["default", "description"] {
            if let Some(own) = keys.get("compute").and_then(|own| own.get(word)) {
                compute[word] = own.clone();
            }
        }
        keys.insert("compute".into(), compute);
        keys.insert("generator".into(), json!({"const": row.name, "description": row.summary}));
        for other in ["trace", "references"] {
            keys.shift_remove(other);
        }
        object(keys, row.name, &["generator"])
    });
    let mut given = common.clone();
    given.shift_remove("generator");
    let choices: Vec<Json> = std::iter::once(object(given, "trace", &[])).chain(generated).collect();
    json!({"description": section["description"], "properties": {"generator": common["generator"]}, "anyOf": choices})
}

fn replacement(default: Option<&str>) -> Json {
    let rows: Vec<_> = REPLACEMENTS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    optional(one_of(&rows, &Map::new(), default), "Which block is evicted.", default.map(Json::from))
}

fn policy() -> Json {
    let hints = KeyTable::of::<HintsKeys>().schema();
    let keys = |row: &&PolicyRow| {
        let mut keys = properties(&row.keys.schema());
        if row.has_open_replacement() {
            keys.insert("replacement".into(), replacement(row.default_replacement));
        }
        if row.goes_by_blocks() {
            keys.insert("hints".into(), hints.clone());
        }
        (row.name, row.summary, of_keys(keys))
    };
    let rows: Vec<_> = POLICIES.iter().map(keys).collect();
    optional(one_of(&rows, &Map::new(), Some("demand")), "What to fetch and to evict, and when.", Some("demand".into()))
}

fn levels(policy: &Json) -> Json {
    let mut keys = properties(&KeyTable::of::<CacheSection>().schema());
    keys.extend(properties(&KeyTable::of::<LevelSection>().schema()));
    let of_all =
        [("policy", policy.clone()), ("replacement", replacement(Some("lru"))), ("coordinator", coordinator())];
    of_all.into_iter().for_each(|(key, schema)| describe(&mut keys, key, schema));
    let level = object(keys, "level", &[]);
    json!({"type": "array", "items": level, "description": "Several levels, nearest the application first."})
}

/// Sets the schema of a section's key to that of the named value, and keeps the key's documentation.
fn describe(keys: &mut Map<String, Json>, key: &str, schema: Json) {
    let words = keys.get(key).and_then(|own| own.get("description")).cloned();
    let mut schema = schema;
    if let (Some(words), Some(object)) = (words, schema.as_object_mut()) {
        object.insert("description".into(), words);
    }
    keys.insert(key.to_owned(), schema);
}

fn coordinator() -> Json {
    let rows: Vec<_> = COORDINATORS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    optional(one_of(&rows, &Map::new(), Some("none")), "Coordinates this level with those above.", Some("none".into()))
}

fn scheduler(default: &str) -> Json {
    let rows: Vec<_> = SCHEDULERS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    optional(one_of(&rows, &Map::new(), None), "", Some(default.into()))
}

fn array() -> Json {
    let rows: Vec<_> = ARRAYS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    optional(one_of(&rows, &Map::new(), None), "", Some("stripe".into()))
}

/// Keys that override a profile's, table by table: none of them is required.
fn laid_over(schema: &mut Json) {
    match schema {
        Json::Object(keys) => {
            keys.shift_remove("required");
            if let Some(forms) = keys.shift_remove("oneOf") {
                keys.insert("anyOf".to_owned(), forms);
            }
            keys.values_mut().for_each(laid_over);
        }
        Json::Array(list) => list.iter_mut().for_each(laid_over),
        _ => {}
    }
}

fn device() -> Json {
    let section = KeyTable::of::<DeviceSection>().schema();
    let mut common = properties(&section);
    let named = [("array", array()), ("scheduler", scheduler("cscan")), ("drive_scheduler", scheduler("sptf"))];
    named.into_iter().for_each(|(key, schema)| describe(&mut common, key, schema));
    // The keys of an array behind one controller may be given next to its name.
    for row in ARRAYS {
        properties(&row.keys.schema()).into_iter().for_each(|(key, schema)| _ = common.entry(key).or_insert(schema));
    }
    // The keys of a model, or of a profile, are given next to its name or in a table with it.
    let of_model = |name: &Json, title: &str, mut own: Map<String, Json>, required: &[&str]| {
        own.shift_remove("name");
        own.values_mut().for_each(laid_over);
        let named = Map::from_iter([("name".to_owned(), name.clone())]);
        let table = object(named.into_iter().chain(own.clone()).collect(), title, &["name"]);
        let mut keys = common.clone();
        keys.extend(own);
        let default = (title == "hp97560").then(|| title.into());
        describe(&mut keys, "model", optional(json!({"anyOf": [name, table]}), "", default));
        object(keys, title, required)
    };
    let models = MODELS.iter().map(|row| {
        let required: &[&str] = if row.name == "hp97560" { &[] } else { &["model"] };
        let name = json!({"const": row.name, "description": row.summary});
        of_model(&name, row.name, properties(&row.keys.schema()), required)
    });
    let names: Vec<_> = MODELS.iter().map(|row| row.name).collect();
    let path = json!({"type": "string", "not": {"enum": names}, "description": "The path of a profile."});
    let profile = of_model(&path, "profile", properties(ProfileKeys::schema()), &["model"]);
    let short =
        json!({"type": "string", "description": "A name of `headstart list devices`, or the path of a profile."});
    let choices: Vec<Json> = std::iter::once(short).chain(models).chain([profile]).collect();
    json!({"description": section["description"], "anyOf": choices})
}

fn process() -> Json {
    let mut keys = properties(&KeyTable::of::<ProcessSection>().schema());
    let patterns: Vec<_> = PATTERNS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    let predictors = POLICIES.iter().filter(|row| row.is_predictor());
    let predictors: Vec<_> = predictors.map(|row| (row.name, row.summary, row.keys.schema())).collect();
    let barrier = KeyTable::of::<BarrierSection>().schema();
    // A scope alone is short for a table.
    let barrier = json!({"anyOf": [barrier["properties"]["scope"], barrier]});
    let own = [
        (
            "pattern",
            optional(one_of(&patterns, &Map::new(), None), "The access pattern of the processes on one file.", None),
        ),
        (
            "predictor",
            optional(one_of(&predictors, &Map::new(), None), "The predictor of the blocks that are prefetched.", None),
        ),
        ("barrier", optional(barrier, "Where processes meet.", Some("none".into()))),
    ];
    keys.extend(own.map(|(key, schema)| (key.to_owned(), schema)));
    optional(object(keys, "process", &[]), "The processes of a parallel program.", None)
}
