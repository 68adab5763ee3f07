//! Levels below the first: `[[level]]` from the second on.

use headstart_policy::coordinator::registry as coordinators;
use headstart_policy::readahead::Needs;
use headstart_types::{Bytes, KeyError, Nanos};
use toml::{Table, Value};

use super::cache::{default_name, CacheSize, SIZES};
use super::policy::{self, named_table, text, PolicyKeys};
use super::workload::WorkloadKeys;
use crate::limits::COST_MAX;
use headstart_engine::Link;

/// A level below the first.
#[derive(Debug, Clone)]
pub struct LowerKeys {
    /// Its name, for the reader and for sizes of others.
    pub name: String,
    /// How many levels of the tier above share one of it.
    pub clients: u32,
    /// How large one of it is; none at all passes everything on.
    pub size: LowerSize,
    /// Its policy.
    pub policy: PolicyKeys,
    /// Whether what is prefetched leaves in requests of its own, and not in that of the demand before it.
    pub separate_prefetch: bool,
    /// To the level above.
    pub link: Link,
    /// The name of the coordinator between it and the levels above, and its keys.
    pub coordinator: (&'static str, Table),
}

/// The size of a level below the first.
#[derive(Debug, Clone, PartialEq)]
pub enum LowerSize {
    /// As of a first level; `Blocks(0)` is allowed.
    Own(CacheSize),
    /// A share of the level of that name.
    Ratio(String, f64),
}

/// Levels of one tier at most.
pub(super) const CLIENTS_MAX: i64 = 10_000;

/// Keys of a level.
const KEYS: [&str; 10] = [
    "name",
    "clients",
    "blocks",
    "size",
    "footprint",
    "policy",
    "replacement",
    "separate_prefetch",
    "link",
    "coordinator",
];

/// Reads the levels below the first, whose name is `first`; returns them with all defaults as tables too.
pub fn read(levels: Vec<Value>, first: &str, workload: &WorkloadKeys) -> Result<Vec<(LowerKeys, Table)>, KeyError> {
    let mut names = vec![first.to_owned()];
    let mut all = Vec::with_capacity(levels.len());
    for (at, level) in levels.into_iter().enumerate() {
        let within = |error: KeyError| error.within(&format!("level[{}]", at + 1));
        let Value::Table(table) = level else {
            return Err(within(KeyError::new("", "is no table", "a table of keys")));
        };
        let (keys, resolved) = read_one(table, at + 1, &names, workload).map_err(within)?;
        names.push(keys.name.clone());
        all.push((keys, resolved));
    }
    Ok(all)
}

fn read_one(
    mut table: Table,
    index: usize,
    above: &[String],
    workload: &WorkloadKeys,
) -> Result<(LowerKeys, Table), KeyError> {
    let name = text(&mut table, "name", &default_name(index))?;
    if above.contains(&name) {
        return Err(KeyError::new("name", format!("\"{name}\" is the name of another level"), "a name of its own"));
    }
    let clients = match table.remove("clients") {
        None => 1,
        Some(Value::Integer(clients)) if (1..=CLIENTS_MAX).contains(&clients) => clients as u32,
        Some(other) => {
            return Err(KeyError::new("clients", format!("{other} levels"), "a whole number from 1 to 10000"))
        }
    };
    let (size, size_keys) = read_size(&mut table, above, workload.block_bytes())?;
    let (policy, policy_table) = policy::read(take_policy(&mut table)?).map_err(|error| error.within("policy"))?;
    if policy.needs_hints() || policy.needs() == Needs::Future {
        let problem = "the future of a lower level is not known";
        return Err(KeyError::new("policy", problem, "a policy and a replacement without hints"));
    }
    let separate_prefetch = match table.remove("separate_prefetch") {
        None => false,
        Some(Value::Boolean(separate)) => separate,
        Some(other) => {
            return Err(KeyError::new(
                "separate_prefetch",
                format!("{other} is neither true nor false"),
                "true or false",
            ))
        }
    };
    let (link, link_table) = read_link(table.remove("link"))?;
    let coordinator = named_table(&mut table, "coordinator", "none")?;
    let row = coordinators::coordinator(&coordinator.0).map_err(|error| error.within("coordinator"))?;
    let mut coordinator_keys = row.keys.defaults();
    coordinator_keys.extend(coordinator.1);
    if let Some((key, _)) = table.iter().next() {
        return Err(KeyError::unknown_key(key, KEYS.into_iter()));
    }
    let mut resolved = Table::from_iter([("name".to_owned(), Value::from(name.clone()))]);
    resolved.insert("clients".into(), i64::from(clients).into());
    resolved.extend(size_keys);
    resolved.insert("policy".into(), policy_table.into());
    resolved.insert("separate_prefetch".into(), separate_prefetch.into());
    resolved.insert("link".into(), link_table.into());
    let mut coordinator_table = Table::from_iter([("name".to_owned(), Value::from(row.name))]);
    coordinator_table.extend(coordinator_keys.clone());
    resolved.insert("coordinator".into(), coordinator_table.into());
    let coordinator = (row.name, coordinator_keys);
    Ok((LowerKeys { name, clients, size, policy, separate_prefetch, link, coordinator }, resolved))
}

/// Takes the policy of a level, with the replacement that may stand beside it.
pub fn take_policy(level: &mut Table) -> Result<Table, KeyError> {
    let mut policy = match level.remove("policy") {
        None => Table::new(),
        Some(Value::String(name)) => Table::from_iter([("name".to_owned(), Value::String(name))]),
        Some(Value::Table(policy)) => policy,
        Some(_) => return Err(KeyError::new("policy", "is neither a name nor a table", "a policy")),
    };
    if let Some(replacement) = level.remove("replacement") {
        if policy.insert("replacement".into(), replacement).is_some() {
            return Err(KeyError::new("replacement", "given beside policy.replacement", "one of the two"));
        }
    }
    Ok(policy)
}

fn read_size(table: &mut Table, above: &[String], block_bytes: u64) -> Result<(LowerSize, Table), KeyError> {
    const ALLOWED: &str = "one of blocks, size, footprint";
    let keys: Vec<&str> = SIZES.into_iter().filter(|key| table.contains_key(*key)).collect();
    let [key] = keys[..] else {
        let key = keys.get(1).copied().unwrap_or("size");
        let problem = if keys.is_empty() { "missing" } else { "given beside another size" };
        return Err(KeyError::new(key, problem, ALLOWED));
    };
    let value = table.remove(key).expect("it is there");
    let mut resolved = value.clone();
    let blocks = |blocks: u64| match u32::try_from(blocks) {
        Ok(blocks) if blocks < u32::MAX => Ok(LowerSize::Own(CacheSize::Blocks(blocks))),
        _ => Err(KeyError::new(key, format!("a cache of {blocks} blocks"), "fewer than 4294967295 blocks")),
    };
    let size = match (key, value) {
        ("blocks", Value::Integer(count)) if count >= 0 => blocks(count as u64)?,
        ("size", Value::String(text)) => {
            let bytes: Bytes = text.parse().map_err(|problem: String| KeyError::new(key, problem, Bytes::ALLOWED))?;
            blocks(bytes.0 / block_bytes)?
        }
        ("size", Value::Table(ratio)) => read_ratio(ratio, above).map_err(|error| error.within("size"))?,
        ("footprint", value) => match number(&value).filter(|share| *share > 0.0 && share.is_finite()) {
            Some(share) => LowerSize::Own(CacheSize::Footprint(share)),
            None => return Err(KeyError::new(key, format!("{value} is out of range"), "a number above 0")),
        },
        (_, value) => {
            let allowed = "blocks = a whole number from 0, size = \"10MiB\" or {level = \"L1\", ratio = 0.1}";
            return Err(KeyError::new(key, format!("{value} is no size"), allowed));
        }
    };
    if let (LowerSize::Ratio(level, ratio), Some(keys)) = (&size, resolved.as_table_mut()) {
        keys.entry("level").or_insert_with(|| level.clone().into());
        keys.entry("ratio").or_insert_with(|| (*ratio).into());
    }
    Ok((size, Table::from_iter([(key.to_owned(), resolved)])))
}

fn read_ratio(mut table: Table, above: &[String]) -> Result<LowerSize, KeyError> {
    let level = text(&mut table, "level", &above[above.len() - 1])?;
    if !above.contains(&level) {
        return Err(KeyError::unknown("level", "level above", &level, above.iter().map(String::as_str)));
    }
    let value = table.remove("ratio").unwrap_or(Value::Float(1.0));
    if let Some((key, _)) = table.iter().next() {
        return Err(KeyError::unknown_key(key, ["level", "ratio"].into_iter()));
    }
    match number(&value).filter(|ratio| *ratio >= 0.0 && ratio.is_finite()) {
        Some(ratio) => Ok(LowerSize::Ratio(level, ratio)),
        None => Err(KeyError::new("ratio", format!("{value} is out of range"), "a number from 0")),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn read_link(value: Option<Value>) -> Result<(Link, Table), KeyError> {
    const ALLOWED: &str = "{alpha = \"6ms\", beta = \"30us\"}";
    let mut table = match value {
        None => Table::new(),
        Some(Value::Table(table)) => table,
        Some(other) => return Err(KeyError::new("link", format!("{other} is no link"), ALLOWED)),
    };
    let mut cost = |key: &str| {
        let value = text(&mut table, key, "0ns").map_err(|error| error.within("link"))?;
        let time = value.parse::<Nanos>();
        match time.map_err(|problem| KeyError::new(format!("link.{key}"), problem, Nanos::ALLOWED))? {
            time if time > COST_MAX => Err(KeyError::new(format!("link.{key}"), "is too long", "at most 1h")),
            time => Ok(time),
        }
    };
    let link = Link { alpha: cost("alpha")?, beta: cost("beta")? };
    if let Some((key, _)) = table.iter().next() {
        return Err(KeyError::unknown_key(key, ["alpha", "beta"].into_iter()).within("link"));
    }
    let rows = [("alpha", link.alpha), ("beta", link.beta)];
    Ok((link, rows.into_iter().map(|(key, time)| (key.to_owned(), Value::from(time.to_string()))).collect()))
}
