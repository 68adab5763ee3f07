//! Levels below the first: the second and later `[[level]]`.

use std::borrow::Cow;
use std::fmt;

use headstart_policy::coordinator::CoordinatorRow;
use headstart_policy::readahead::Needs;
use headstart_policy::registry::{self, Rows};
use headstart_types::{as_text, keys, read_keys, Bytes, Chosen, KeyError, Nanos, Spread};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use super::cache::{default_name, CacheSize};
use super::policy::{self, named_value, PolicyKeys};
use super::workload::WorkloadKeys;
use headstart_engine::Link;

/// Maximum number of blocks of a level.
const BLOCKS_MAX: u32 = u32::MAX - 1;

/// The keys that give a level's size.
const SIZES: &str = "one of blocks, size, footprint";

/// A level below the first.
#[derive(Debug, Clone)]
pub struct LowerKeys {
    /// The keys, with all defaults.
    pub section: LevelSection,
    /// How the blocks of all levels above are distributed to several servers; `None`: each level above has one.
    pub spread: Option<Spread>,
    /// Size of one such level; a level without blocks forwards every request.
    pub size: LowerSize,
    pub policy: PolicyKeys,
    /// The coordinator between it and the levels above.
    pub coordinator: Chosen<CoordinatorRow>,
}

impl LowerKeys {
    /// Its name, for display and for the sizes of others.
    #[must_use]
    pub fn name(&self) -> &str {
        self.section.name.as_deref().unwrap_or_default()
    }

    /// The link to the level above.
    #[must_use]
    pub fn link(&self) -> Link {
        let LinkKeys { alpha, beta } = self.section.link;
        Link { alpha, beta }
    }

    /// The section with all defaults.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::try_from(&self.section).expect("plain values");
        let below = ["separate_prefetch", "link"];
        let below = below.map(|key| (key.to_owned(), table.remove(key).expect("it has a default")));
        table.insert("policy".into(), self.policy.table().into());
        table.extend(below);
        table.insert("coordinator".into(), self.coordinator.table().into());
        table
    }
}

/// The size of a level below the first.
#[derive(Debug, Clone, PartialEq)]
pub enum LowerSize {
    /// As of a first level; `Blocks(0)` is allowed.
    Own(CacheSize),
    /// A multiple of the blocks of the level of that name.
    Ratio(String, f64),
}

/// Maximum number of levels per tier.
const CLIENTS_MAX: u32 = 10_000;

/// Maximum number of servers per tier.
const SERVERS_MAX: u32 = 10_000;

/// Stripe unit over servers: our choice, that of PVFS2's simple stripe.
const UNIT: Bytes = Bytes(64 << 10);

keys! {
    /// A level below the first. One of blocks, size and footprint gives its size.
    pub struct LevelSection {
        /// Name of the level, in results and for the sizes of levels below.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "\"L2\", \"L3\", ..."))]
        name: Option<String> = None,
        /// Number of levels of the tier above that share one level of this tier. More than one needs
        /// `workload.processes = "per-pid"` or `"dealt"`.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        pub clients: u32 = 1,
        /// Number of servers that the blocks of all levels above are divided among. Each block belongs to one server,
        /// and each server has its own devices as given in `[device]`. Only one level of a scenario may have servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = SERVERS_MAX), extend("x-absent" = "1: the levels above share one"))]
        servers: Option<u32> = None,
        /// How files are distributed over the servers, round-robin: a size such as `"64KiB"` is the stripe unit of each
        /// file; `"file"` distributes whole files.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-absent" = "\"64KiB\" beside servers"))]
        unit: Option<UnitKey> = None,
        /// Size in blocks. 0: the level forwards every request. One of blocks, size and footprint is needed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(max = BLOCKS_MAX))]
        blocks: Option<u32> = None,
        /// Size in bytes, such as `"10MiB"`, or `{level = "L1", ratio = 2}`: a multiple of the blocks of a level above.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) size: Option<SizeKey> = None,
        /// Size as a share of the distinct referenced blocks, such as 0.05.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        footprint: Option<f64> = None,
        /// A policy, with its keys. It cannot be a hinted one, because the future references of a lower level are not
        /// known.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        policy: Option<Value> = None,
        /// The replacement policy. It may also be given in `policy`.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        replacement: Option<Value> = None,
        /// Whether prefetches are sent as separate requests. Otherwise a prefetch that directly follows a demanded
        /// block joins its request, and the demand waits for both.
        pub separate_prefetch: bool = false,
        /// The link to the level above, such as `{alpha = "6ms", beta = "30us"}`: `alpha` is the time per request,
        /// `beta` the time per page of 4 KiB.
        pub link: LinkKeys = LinkKeys::default(),
        /// A name of `headstart list coordinators`. With keys: `{name = "pfc", queue = 0.1}`.
        #[serde(skip_serializing)]
        #[schemars(with = "serde_json::Value")]
        coordinator: Option<Value> = None,
    }
}

keys! {
    /// The link to the level above.
    pub struct LinkKeys {
        /// Time per request.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        alpha: Nanos = Nanos::ZERO,
        /// Time per page of 4 KiB.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "1h"))]
        beta: Nanos = Nanos::ZERO,
    }
}

keys! {
    /// A multiple of the blocks of a level above.
    pub struct RatioKeys {
        /// Name of a level above. Default: the next one.
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String> = None,
        /// Factor by which that level's number of blocks is multiplied.
        #[schemars(range(min = 0.0))]
        ratio: f64 = 1.0,
    }
}

/// The key `size` of a level.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SizeKey {
    /// In bytes.
    #[serde(serialize_with = "as_text")]
    Own(Bytes),
    /// Relative to a level above.
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
    /// A stripe unit in bytes.
    Stripe(Bytes),
    /// Whole files.
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

impl Serialize for UnitKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            UnitKey::Stripe(bytes) => serializer.collect_str(bytes),
            UnitKey::File => serializer.serialize_str("file"),
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

/// Reads the levels below the first, whose name is `first`.
pub fn read(
    levels: Vec<Value>,
    first: &str,
    workload: &WorkloadKeys,
    rows: &dyn Rows,
) -> Result<Vec<LowerKeys>, KeyError> {
    let mut names = vec![first.to_owned()];
    let mut all = Vec::with_capacity(levels.len());
    for (at, level) in levels.into_iter().enumerate() {
        let within = |error: KeyError| error.within(&format!("level[{}]", at + 1));
        let Value::Table(table) = level else {
            return Err(within(KeyError::new("", "is not a table", "a table of keys")));
        };
        let keys = read_one(table, at + 1, &names, workload.block_bytes(), rows).map_err(within)?;
        names.push(keys.name().to_owned());
        all.push(keys);
    }
    Ok(all)
}

/// Reads level `index` (counted from the application), below those named `above`.
pub fn read_one(
    table: Table,
    index: usize,
    above: &[String],
    block_bytes: u64,
    rows: &dyn Rows,
) -> Result<LowerKeys, KeyError> {
    let mut section: LevelSection = read_keys(table)?;
    let name = section.name.get_or_insert_with(|| default_name(index));
    if above.contains(name) {
        return Err(KeyError::new("name", format!("\"{name}\" is the name of another level"), "a unique name"));
    }
    let spread = section.spread(block_bytes)?;
    let size = section.size(above, block_bytes)?;
    let policy = policy_of(section.policy.take(), section.replacement.take())?;
    let policy = policy::read(policy, rows).map_err(|error| error.within("policy"))?;
    if policy.needs_hints() || policy.needs() == Needs::Future {
        let problem = "the future references of a lower level are not known";
        return Err(KeyError::new("policy", problem, "a policy and a replacement without hints"));
    }
    let (name, given) = named_value(section.coordinator.take(), "coordinator", "none")?;
    let coordinator = registry::coordinator(&name).and_then(|row| Chosen::read(row, given));
    let coordinator = coordinator.map_err(|error| error.within("coordinator"))?;
    Ok(LowerKeys { section, spread, size, policy, coordinator })
}

/// The keys of a level's policy, with the replacement that may be given next to it.
pub fn policy_of(policy: Option<Value>, replacement: Option<Value>) -> Result<Table, KeyError> {
    let mut policy = match policy {
        None => Table::new(),
        Some(Value::String(name)) => Table::from_iter([("name".to_owned(), Value::String(name))]),
        Some(Value::Table(policy)) => policy,
        Some(_) => return Err(KeyError::new("policy", "is neither a name nor a table", "a policy")),
    };
    if let Some(replacement) = replacement {
        if policy.insert("replacement".into(), replacement).is_some() {
            return Err(KeyError::new("replacement", "given together with policy.replacement", "one of the two"));
        }
    }
    Ok(policy)
}

impl LevelSection {
    /// How blocks are distributed to servers, if there are several.
    fn spread(&mut self, block_bytes: u64) -> Result<Option<Spread>, KeyError> {
        let servers = self.servers.take().unwrap_or(1);
        if servers == 1 {
            return match self.unit {
                None => Ok(None),
                Some(_) => {
                    Err(KeyError::new("unit", "there are no servers to share files", "servers in addition, at least 2"))
                }
            };
        }
        self.servers = Some(servers);
        let unit = match *self.unit.get_or_insert(UnitKey::Stripe(Bytes((UNIT.0 / block_bytes).max(1) * block_bytes))) {
            UnitKey::File => None,
            UnitKey::Stripe(unit) if unit.0 == 0 || unit.0 % block_bytes != 0 => {
                let allowed = format!("a multiple of the block size, {}, or \"file\"", Bytes(block_bytes));
                return Err(KeyError::new("unit", format!("{unit} is not a multiple of the block size"), allowed));
            }
            UnitKey::Stripe(unit) => Some(unit.0 / block_bytes),
        };
        Ok(Some(Spread { servers, unit }))
    }

    /// The level's size.
    fn size(&mut self, above: &[String], block_bytes: u64) -> Result<LowerSize, KeyError> {
        let blocks = |blocks: u64| match u32::try_from(blocks) {
            Ok(blocks) if blocks <= BLOCKS_MAX => Ok(LowerSize::Own(CacheSize::Blocks(blocks))),
            _ => Err(KeyError::new("size", format!("a cache of {blocks} blocks"), "fewer than 4294967295 blocks")),
        };
        match (self.blocks, &mut self.size, self.footprint) {
            (Some(count), None, None) => blocks(count.into()),
            (None, Some(SizeKey::Own(size)), None) => blocks(size.0 / block_bytes),
            (None, Some(SizeKey::Ratio(RatioKeys { level, ratio })), None) => {
                let level = level.get_or_insert_with(|| above[above.len() - 1].clone());
                if !above.contains(level) {
                    let names = above.iter().map(String::as_str);
                    return Err(KeyError::unknown("level", "level above", level, names).within("size"));
                }
                Ok(LowerSize::Ratio(level.clone(), *ratio))
            }
            (None, None, Some(share)) if share.is_finite() => Ok(LowerSize::Own(CacheSize::Footprint(share))),
            (None, None, Some(share)) => {
                Err(KeyError::new("footprint", format!("{share} is out of range"), "a number above 0"))
            }
            (None, None, None) => Err(KeyError::new("size", "is missing", SIZES)),
            _ => {
                let given = [("size", self.size.is_some()), ("footprint", self.footprint.is_some())];
                let key = given.iter().rfind(|(_, given)| *given).map_or("size", |(key, _)| key);
                Err(KeyError::new(key, "given together with another size", SIZES))
            }
        }
    }
}
