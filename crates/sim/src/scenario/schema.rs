//! The JSON Schema of a scenario, made of the sections' structs and the registries' rows: for editors, and for the docs.
//!
//! Draft 7, which editors of TOML read, and without references: every table is described where it stands. What only a
//! run can know (a trace's processes, a device's size) is not in it, nor is what sections say together.

use headstart_device::{ARRAYS, MODELS, PROFILE_KEYS, SCHEDULERS};
use headstart_policy::coordinator::registry::COORDINATORS;
use headstart_policy::registry::{PolicyRow, POLICIES, REPLACEMENTS};
use headstart_trace::{patterns::PATTERNS, WORKLOADS};
use headstart_types::{defaults_of, one_of, optional, schema_of, Bytes, KeyTable, Nanos};
use serde_json::{json, Map, Value as Json};
use toml::{Table, Value};

use super::cache::CacheSection;
use super::device::{DISKS_MAX, QUEUE_DEPTH_MAX};
use super::host::HostKeys;
use super::level::CLIENTS_MAX;
use super::policy::RawHints;
use super::process::{ProcessSection, COUNT, COUNT_MAX};
use super::workload::WorkloadSection;

/// The schema of a scenario.
#[must_use]
pub fn schema() -> Json {
    let policy = policy();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario of headstart",
        "description": "What to simulate: see docs/scenario.md. headstart simulate --explain prints a scenario with every default.",
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

/// Keys whose types are those of their defaults; the keys of tables in it are open.
fn inferred(defaults: &Table) -> Map<String, Json> {
    let kind = |value: &Value| {
        let default = serde_json::to_value(value).unwrap_or_default();
        match value {
            Value::Integer(_) | Value::Float(_) => json!({"type": "number", "default": default}),
            Value::Boolean(_) => json!({"type": "boolean", "default": default}),
            Value::String(_) | Value::Datetime(_) => json!({"type": "string", "default": default}),
            Value::Array(_) => json!({"type": "array"}),
            Value::Table(table) => json!({"type": "object", "properties": inferred(table)}),
        }
    };
    defaults.iter().map(|(key, value)| (key.clone(), kind(value))).collect()
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
        keys.extend(inferred(&(row.defaults)()));
        // A trace's think times may be asked for beside a generator of its own.
        keys.insert("compute".into(), common["compute"].clone());
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
    optional(one_of(&rows, &Map::new(), default), "Which block gives way.", default.map(Json::from))
}

fn policy() -> Json {
    let hints = KeyTable::of::<RawHints>().schema();
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
    let size = json!({"anyOf": [schema_of::<Bytes>(), {
        "type": "object", "additionalProperties": false,
        "properties": {
            "level": {"type": "string", "description": "A level above; the one above if absent."},
            "ratio": {"type": "number", "minimum": 0, "default": 1.0, "description": "Of its blocks."},
        },
    }]});
    keys.insert("size".into(), optional(size, "In bytes, or a share of the blocks of a level above.", None));
    keys.shift_remove("name");
    let of_all = [
        (
            "name",
            json!({"type": "string", "description": "In the result, and for the sizes of levels below; L1, L2, ... if absent."}),
        ),
        (
            "clients",
            json!({
                "type": "integer", "minimum": 1, "maximum": CLIENTS_MAX, "default": 1,
                "description": "How many levels of the tier above share one; more than one needs several processes.",
            }),
        ),
        ("policy", policy.clone()),
        ("replacement", replacement(Some("lru"))),
        (
            "separate_prefetch",
            json!({
                "type": "boolean", "default": false,
                "description": "What the level prefetches leaves in requests of its own; else what follows a demanded block is \
                                one request with it, for which the demand waits.",
            }),
        ),
        ("link", link()),
        ("coordinator", coordinator()),
    ];
    keys.extend(of_all.map(|(key, schema)| (key.to_owned(), schema)));
    let level = object(keys, "level", &[]);
    json!({"type": "array", "items": level, "description": "Several levels: nearest the application first."})
}

fn link() -> Json {
    let cost = |words: &str| {
        let mut schema = optional(schema_of::<Nanos>(), words, Some("0s".into()));
        schema["x-max"] = "1h".into();
        schema
    };
    let keys = [("alpha", cost("For each request.")), ("beta", cost("For each page of 4 KiB."))];
    let keys = keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    optional(object(keys, "link", &[]), "To the level above.", None)
}

fn coordinator() -> Json {
    let rows: Vec<_> = COORDINATORS.iter().map(|row| (row.name, row.summary, row.keys.schema())).collect();
    optional(one_of(&rows, &Map::new(), Some("none")), "Between this level and those above.", Some("none".into()))
}

fn scheduler(words: &str, default: &str) -> Json {
    let keys = |defaults: Table| {
        let mut keys = inferred(&defaults);
        keys.entry("full_stroke").or_insert_with(|| json!({"type": "boolean"}));
        of_keys(keys)
    };
    let rows: Vec<_> = SCHEDULERS
        .iter()
        .map(|row| match row.name {
            // Its key is not written into resolved scenarios.
            "cscan" => (row.name, row.summary, keys((row.defaults)())),
            _ => (row.name, row.summary, of_keys(inferred(&(row.defaults)()))),
        })
        .collect();
    optional(one_of(&rows, &Map::new(), None), words, Some(default.into()))
}

fn device() -> Json {
    let depth =
        |words: &str| json!({"type": "integer", "minimum": 1, "maximum": QUEUE_DEPTH_MAX, "description": words});
    let arrays: Vec<_> = ARRAYS
        .iter()
        .map(|row| {
            let keys = row
                .computed
                .iter()
                .map(|(key, words)| ((*key).to_owned(), json!({"type": "integer", "description": words})));
            (row.name, row.summary, of_keys(keys.collect()))
        })
        .collect();
    let array = optional(one_of(&arrays, &Map::new(), None), "How the disks are one volume.", Some("stripe".into()));
    let common = [
        (
            "count",
            json!({"type": "integer", "minimum": 1, "maximum": DISKS_MAX, "default": 1, "description": "Disks."}),
        ),
        ("array", array),
        ("stripe_unit", optional(schema_of::<Bytes>(), "Unit of striping; a block if absent.", None)),
        ("scheduler", scheduler("The host's order of a disk's queue.", "cscan")),
        (
            "queue_depth",
            depth("Commands that the drive takes from the host and orders itself; one at a time if absent."),
        ),
        (
            "failed",
            json!({"type": "integer", "minimum": 0, "description": "Of raid5: the disk that is missing, from 0."}),
        ),
        ("drive_scheduler", scheduler("The drive's order of its commands, where there is a queue_depth.", "sptf")),
        (
            "cache_segments",
            json!({
                "anyOf": [{"type": "integer", "minimum": 1}, {"const": "streams"}],
                "description": "Segments among which a disk's buffer is divided; as the profile has it if absent.",
            }),
        ),
        (
            "layout",
            json!({
                "type": "array", "items": {"type": "array", "items": {"type": "string"}},
                "description": "Explicit placement: names of the blocks of each disk, for inline references.",
            }),
        ),
    ];
    let common = Map::from_iter(common.map(|(key, schema)| (key.to_owned(), schema)));
    let profile = |defaults: &Table| {
        let mut keys: Map<String, Json> = PROFILE_KEYS.iter().map(|key| ((*key).to_owned(), json!({}))).collect();
        keys.extend(inferred(defaults));
        keys.shift_remove("name");
        keys
    };
    let models = MODELS.iter().map(|row| {
        let defaults = (row.defaults)();
        let own = match row.name {
            "uniform" => Map::from_iter([("fetch_time".to_owned(), schema_of::<Nanos>())]),
            _ if defaults.contains_key("zones") => profile(&defaults),
            _ => inferred(&defaults),
        };
        let named = Map::from_iter([("name".to_owned(), json!({"const": row.name, "description": row.summary}))]);
        let table = object(named.into_iter().chain(own.clone()).collect(), row.name, &["name"]);
        let model = json!({"anyOf": [{"const": row.name, "description": row.summary}, table]});
        let mut keys = common.clone();
        keys.extend(own);
        keys.insert("model".into(), model);
        object(keys, row.name, if row.name == "hp97560" { &[] } else { &["model"] })
    });
    let mut own = common.clone();
    own.extend(profile(&Table::new()));
    let path = json!({"type": "string", "not": {"enum": MODELS.iter().map(|row| row.name).collect::<Vec<_>>()}});
    let named = Map::from_iter([("name".to_owned(), path.clone())]);
    let table = object(named.into_iter().chain(profile(&Table::new())).collect(), "profile", &["name"]);
    own.insert("model".into(), optional(json!({"anyOf": [path, table]}), "The path of a profile.", None));
    let choices: Vec<Json> = models.chain([object(own, "profile", &["model"])]).collect();
    let short =
        json!({"type": "string", "description": "A name of `headstart list devices`, or the path of a profile."});
    json!({"description": "The disks.", "anyOf": std::iter::once(short).chain(choices).collect::<Vec<_>>()})
}

fn process() -> Json {
    let mut keys = properties(&KeyTable::of::<ProcessSection>().schema());
    let patterns: Vec<_> =
        PATTERNS.iter().map(|row| (row.name, row.summary, of_keys(inferred(&(row.defaults)())))).collect();
    let scopes = ["process", "all", "portion", "none"];
    let barrier = json!({"anyOf": [{"enum": scopes}, {
        "type": "object", "additionalProperties": false,
        "properties": {
            "scope": {"enum": scopes, "default": "process"},
            "every": {"type": "integer", "minimum": 1, "default": 10, "description": "Reads between two meetings."},
        },
    }]});
    let words = format!("How many processes; {COUNT} if absent beside a pattern, else as many as the trace has.");
    let own = [
        ("count", json!({"type": "integer", "minimum": 1, "maximum": COUNT_MAX, "description": words})),
        ("pattern", optional(one_of(&patterns, &Map::new(), None), "What the processes read of one file.", None)),
        ("barrier", optional(barrier, "Where processes meet.", Some("none".into()))),
    ];
    keys.extend(own.map(|(key, schema)| (key.to_owned(), schema)));
    optional(object(keys, "process", &[]), "Processes as one parallel program.", None)
}
