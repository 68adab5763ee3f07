//! Levels below the first: `[[level]]` from the second on.

use std::borrow::Cow;
use std::fmt;

use headstart_policy::coordinator::registry as coordinators;
use headstart_policy::readahead::Needs;
use headstart_policy::registry::Rows;
use headstart_types::{as_text, keys, read_keys, Bytes, KeyError, Nanos, Spread};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::cache::{default_name, CacheSize};
use super::policy::{self, named_value, PolicyKeys};
use super::workload::WorkloadKeys;
use headstart_engine::Link;

/// The most blocks of a level.
const BLOCKS_MAX: u32 = u32::MAX - 1;

/// Ways to say how large a level is.
const SIZES: &str = "one of blocks, size, footprint";

/// A level below the first.
#[derive(Debug, Clone)]
pub struct LowerKeys {
    /// Its name, for the reader and for sizes of others.
    pub name: String,
    /// How many levels of the tier above share one of it.
    pub clients: u32,
    /// How the blocks of all above are dealt out to several of it; `None`: a level above stands on one.
    pub spread: Option<Spread>,
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
const CLIENTS_MAX: u32 = 10_000;

/// Servers of one tier at most.
const SERVERS_MAX: u32 = 10_000;

/// Unit of striping over servers: our choice, that of PVFS2's simple stripe.
const UNIT: Bytes = Bytes(64 << 10);

keys! {
    /// A level below the first. One of blocks, size and footprint says how large it is.
    pub struct LevelSection {
        /// In the result, and for the sizes of levels below.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "\"L2\", \"L3\", ..."))]
        name: Option<String> = None,
        /// How many levels of the tier above share one; more than one needs `workload.processes = "per-pid"` or `"dealt"`.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        clients: u32 = 1,
        /// How many of it all levels above share out their blocks to: each block belongs to one server, and each server has
        /// devices of its own, all that `[device]` says. One level of a scenario may be of servers.
        #[serde(skip_serializing)]
        #[schemars(range(min = 1, max = SERVERS_MAX), extend("x-absent" = "1: the levels above stand on one"))]
        servers: Option<u32> = None,
        /// How servers share files: a size such as `"64KiB"`, of which each in turn gets so much of a file, or `"file"`, each
        /// in turn gets a file.
        #[serde(skip_serializing)]
        #[schemars(extend("x-absent" = "\"64KiB\" beside servers"))]
        unit: Option<UnitKey> = None,
        /// Its size in blocks; 0: the level passes everything on. One of blocks, size and footprint is needed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(max = BLOCKS_MAX))]
        blocks: Option<u32> = None,
        /// `"10MiB"`, or `{level = "L1", ratio = 2}`: of the blocks of a level above.
        #[serde(skip_serializing)]
        size: Option<SizeKey> = None,
        /// Its size as a share of the distinct blocks, such as 0.05.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        footprint: Option<f64> = None,
        /// A policy without hints, with its keys: the future of a lower level is not known.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        policy: Option<Value> = None,
        /// Beside `policy`, or in it.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        replacement: Option<Value> = None,
        /// Prefetches leave in requests of their own; otherwise a prefetch that follows a demanded block joins its request,
        /// and the demand waits for both.
        separate_prefetch: bool = false,
        /// `{alpha = "6ms", beta = "30us"}`, to the level above: `alpha` for each request, `beta` for each page of 4 KiB.
        link: LinkKeys = LinkKeys::default(),
        /// A name of `headstart list coordinators`, or `{name = "pfc", queue = 0.1}` with its keys.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        coordinator: Option<Value> = None,
    }
}

keys! {
    /// To the level above.
    pub struct LinkKeys {
        /// For each request.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        alpha: Nanos = Nanos::ZERO,
        /// For each page of 4 KiB.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        beta: Nanos = Nanos::ZERO,
    }
}

keys! {
    /// A share of the blocks of a level above.
    pub struct RatioKeys {
        /// A level above; the one above if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String> = None,
        /// Of its blocks.
        #[schemars(range(min = 0.0))]
        ratio: f64 = 1.0,
    }
}

/// The key `size` of a level.
#[derive(Debug, Clone)]
pub enum SizeKey {
    /// In bytes.
    Own(Bytes),
    /// As a share.
    Ratio(RatioKeys),
}

impl<'de> Deserialize<'de> for SizeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeOrTable;

        impl<'de> Visitor<'de> for SizeOrTable {
            type Value = SizeKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"10MiB\", or {level = \"L1\", ratio = 0.1}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SizeKey, E> {
                Bytes::deserialize(text.into_deserializer()).map(SizeKey::Own)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SizeKey, A::Error> {
                let keys = RatioKeys::deserialize(MapAccessDeserializer::new(map))?;
                match keys.ratio >= 0.0 && keys.ratio.is_finite() {
                    true => Ok(SizeKey::Ratio(keys)),
                    false => Err(A::Error::invalid_value(Unexpected::Float(keys.ratio), &"a ratio from 0")),
                }
            }
        }

        deserializer.deserialize_any(SizeOrTable)
    }
}

/// The key `unit` of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKey {
    /// A stripe in bytes.
    Stripe(Bytes),
    /// A whole file.
    File,
}

impl<'de> Deserialize<'de> for UnitKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "file" => Ok(UnitKey::File),
            _ => text
                .parse()
                .map(UnitKey::Stripe)
                .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"a size such as \"64KiB\", or \"file\"")),
        }
    }
}

impl JsonSchema for UnitKey {
    fn schema_name() -> Cow<'static, str> {
        "UnitKey".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let stripe = generator.subschema_for::<Bytes>();
        json_schema!({"anyOf": [{"const": "file"}, stripe]})
    }
}

impl JsonSchema for SizeKey {
    fn schema_name() -> Cow<'static, str> {
        "SizeKey".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (own, ratio) = (generator.subschema_for::<Bytes>(), generator.subschema_for::<RatioKeys>());
        json_schema!({"anyOf": [own, ratio]})
    }
}

/// Reads the levels below the first, whose name is `first`; returns them with all defaults as tables too.
pub fn read(
    levels: Vec<Value>,
    first: &str,
    workload: &WorkloadKeys,
    rows: &dyn Rows,
) -> Result<Vec<(LowerKeys, Table)>, KeyError> {
    let mut names = vec![first.to_owned()];
    let mut all = Vec::with_capacity(levels.len());
    for (at, level) in levels.into_iter().enumerate() {
        let within = |error: KeyError| error.within(&format!("level[{}]", at + 1));
        let Value::Table(table) = level else {
            return Err(within(KeyError::new("", "is no table", "a table of keys")));
        };
        let (keys, resolved) = read_one(table, at + 1, &names, workload.block_bytes(), rows).map_err(within)?;
        names.push(keys.name.clone());
        all.push((keys, resolved));
    }
    Ok(all)
}

/// Reads the level that is number `index` from the application, below those named `above`.
pub fn read_one(
    table: Table,
    index: usize,
    above: &[String],
    block_bytes: u64,
    rows: &dyn Rows,
) -> Result<(LowerKeys, Table), KeyError> {
    let raw: LevelSection = read_keys(table)?;
    let name = raw.name.clone().unwrap_or_else(|| default_name(index));
    if above.contains(&name) {
        return Err(KeyError::new("name", format!("\"{name}\" is the name of another level"), "a name of its own"));
    }
    let spread = raw.spread(block_bytes)?;
    let (size, (size_key, size_value)) = raw.size(above, block_bytes)?;
    let policy = policy_of(raw.policy.clone(), raw.replacement.clone())?;
    let (policy, policy_table) = policy::read(policy, rows).map_err(|error| error.within("policy"))?;
    if policy.needs_hints() || policy.needs() == Needs::Future {
        let problem = "the future of a lower level is not known";
        return Err(KeyError::new("policy", problem, "a policy and a replacement without hints"));
    }
    let (coordinator, given) = named_value(raw.coordinator.clone(), "coordinator", "none")?;
    let row = coordinators::coordinator(&coordinator).map_err(|error| error.within("coordinator"))?;
    let coordinator: Table = row.keys.defaults().into_iter().chain(given).collect();
    let mut resolved = Table::from_iter([("name".to_owned(), Value::from(name.clone()))]);
    resolved.insert("clients".into(), i64::from(raw.clients).into());
    if let Some(spread) = &spread {
        let unit = spread.unit.map_or("file".to_owned(), |blocks| Bytes(blocks * block_bytes).to_string());
        resolved.insert("servers".into(), i64::from(spread.servers).into());
        resolved.insert("unit".into(), unit.into());
    }
    resolved.insert(size_key.into(), size_value);
    resolved.insert("policy".into(), policy_table.into());
    resolved.insert("separate_prefetch".into(), raw.separate_prefetch.into());
    resolved.insert("link".into(), Value::try_from(&raw.link).expect("two times"));
    let named = [("name".to_owned(), Value::from(row.name))].into_iter().chain(coordinator.clone());
    resolved.insert("coordinator".into(), Table::from_iter(named).into());
    let keys = LowerKeys {
        name,
        clients: raw.clients,
        spread,
        size,
        policy,
        separate_prefetch: raw.separate_prefetch,
        link: Link { alpha: raw.link.alpha, beta: raw.link.beta },
        coordinator: (row.name, coordinator),
    };
    Ok((keys, resolved))
}

/// The keys of a level's policy, with the replacement that may stand beside it.
pub fn policy_of(policy: Option<Value>, replacement: Option<Value>) -> Result<Table, KeyError> {
    let mut policy = match policy {
        None => Table::new(),
        Some(Value::String(name)) => Table::from_iter([("name".to_owned(), Value::String(name))]),
        Some(Value::Table(policy)) => policy,
        Some(_) => return Err(KeyError::new("policy", "is neither a name nor a table", "a policy")),
    };
    if let Some(replacement) = replacement {
        if policy.insert("replacement".into(), replacement).is_some() {
            return Err(KeyError::new("replacement", "given beside policy.replacement", "one of the two"));
        }
    }
    Ok(policy)
}

impl LevelSection {
    /// How blocks are dealt out to servers, if there are several.
    fn spread(&self, block_bytes: u64) -> Result<Option<Spread>, KeyError> {
        let servers = self.servers.unwrap_or(1);
        if servers == 1 {
            return match self.unit {
                None => Ok(None),
                Some(_) => {
                    Err(KeyError::new("unit", "there are no servers to share files", "servers beside it, from 2"))
                }
            };
        }
        let unit = match self.unit {
            Some(UnitKey::File) => None,
            Some(UnitKey::Stripe(unit)) if unit.0 == 0 || unit.0 % block_bytes != 0 => {
                let allowed = format!("a multiple of the block size, {}, or \"file\"", Bytes(block_bytes));
                return Err(KeyError::new("unit", format!("{unit} is no number of blocks"), allowed));
            }
            Some(UnitKey::Stripe(unit)) => Some(unit.0 / block_bytes),
            None => Some((UNIT.0 / block_bytes).max(1)),
        };
        Ok(Some(Spread { servers, unit }))
    }

    /// How large the level is, and the key that says so with its defaults.
    fn size(&self, above: &[String], block_bytes: u64) -> Result<(LowerSize, (&'static str, Value)), KeyError> {
        let blocks = |blocks: u64| match u32::try_from(blocks) {
            Ok(blocks) if blocks <= BLOCKS_MAX => Ok(LowerSize::Own(CacheSize::Blocks(blocks))),
            _ => Err(KeyError::new("size", format!("a cache of {blocks} blocks"), "fewer than 4294967295 blocks")),
        };
        match (self.blocks, &self.size, self.footprint) {
            (Some(count), None, None) => Ok((blocks(count.into())?, ("blocks", i64::from(count).into()))),
            (None, Some(SizeKey::Own(size)), None) => {
                Ok((blocks(size.0 / block_bytes)?, ("size", size.to_string().into())))
            }
            (None, Some(SizeKey::Ratio(RatioKeys { level, ratio })), None) => {
                let level = level.as_ref().unwrap_or(&above[above.len() - 1]);
                if !above.contains(level) {
                    let names = above.iter().map(String::as_str);
                    return Err(KeyError::unknown("level", "level above", level, names).within("size"));
                }
                let resolved = RatioKeys { level: Some(level.clone()), ratio: *ratio };
                let resolved = Value::try_from(resolved).expect("a name and a number");
                Ok((LowerSize::Ratio(level.clone(), *ratio), ("size", resolved)))
            }
            (None, None, Some(share)) if share.is_finite() => {
                Ok((LowerSize::Own(CacheSize::Footprint(share)), ("footprint", share.into())))
            }
            (None, None, Some(share)) => {
                Err(KeyError::new("footprint", format!("{share} is out of range"), "a number above 0"))
            }
            (None, None, None) => Err(KeyError::new("size", "is missing", SIZES)),
            _ => {
                let given = [("size", self.size.is_some()), ("footprint", self.footprint.is_some())];
                let key = given.iter().rfind(|(_, given)| *given).map_or("size", |(key, _)| key);
                Err(KeyError::new(key, "given beside another size", SIZES))
            }
        }
    }
}
