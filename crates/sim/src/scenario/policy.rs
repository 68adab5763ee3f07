//! Section `[policy]`.

use headstart_policy::readahead::{BuildReadAhead, Needs, READ_AHEADS};
use headstart_policy::registry::{self, ReplacementRow};
use headstart_types::{typed_keys, KeyError};
use serde::Deserialize;
use toml::{Table, Value};

/// The policy of a level.
#[derive(Debug, Clone)]
pub struct PolicyKeys {
    /// A row of the registry.
    pub name: &'static str,
    /// A row of the registry, for policies that leave it open.
    pub replacement: &'static str,
    /// The replacement's own keys.
    pub replacement_keys: Table,
    /// Partial disclosure; `None` discloses everything.
    pub hints: Option<HintsKeys>,
    /// The policy's own keys.
    pub keys: Table,
}

impl PolicyKeys {
    /// Whether it works from disclosed references.
    #[must_use]
    pub fn needs_hints(&self) -> bool {
        let policy = registry::POLICIES.iter().find(|row| row.name == self.name);
        let replacement = registry::REPLACEMENTS.iter().find(|row| row.name == self.replacement);
        let open = policy.is_none_or(|row| row.open_replacement);
        policy.is_some_and(|row| row.hinted) || (open && replacement.is_some_and(|row| row.hinted))
    }

    /// Whether it is a read-ahead, which is asked about whole requests.
    #[must_use]
    pub fn asks(&self) -> bool {
        registry::POLICIES.iter().all(|row| row.name != self.name)
    }

    /// What it has to be told beside what a level has.
    #[must_use]
    pub fn needs(&self) -> Needs {
        READ_AHEADS.iter().find(|row| row.name == self.name).map_or(Needs::Nothing, |row| row.needs)
    }

    /// Whether it is for parallel programs only.
    #[must_use]
    pub fn parallel(&self) -> bool {
        is_parallel(self.name)
    }
}

/// Whether the policy of this name is for parallel programs only.
pub fn is_parallel(name: &str) -> bool {
    registry::POLICIES.iter().any(|row| row.name == name && row.parallel)
}

/// Whether the policy of this name is a read-ahead, which is asked about whole requests.
pub fn is_read_ahead(name: &str) -> bool {
    READ_AHEADS.iter().any(|row| row.name == name)
}

/// Partial disclosure of the references.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HintsKeys {
    /// The next so many references.
    Window(u32),
    /// Each reference with this probability, drawn from this seed.
    Fraction(f64, u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHints {
    window: Option<u32>,
    fraction: Option<f64>,
    seed: Option<u64>,
}

const DEFAULT_HINT_SEED: u64 = 1;

fn read_hints(table: Table) -> Result<HintsKeys, KeyError> {
    match typed_keys(table)? {
        RawHints { window: Some(window), fraction: None, seed: None } => Ok(HintsKeys::Window(window)),
        RawHints { window: None, fraction: Some(share), seed } if (0.0..=1.0).contains(&share) => {
            Ok(HintsKeys::Fraction(share, seed.unwrap_or(DEFAULT_HINT_SEED)))
        }
        RawHints { window: None, fraction: Some(share), .. } => {
            Err(KeyError::new("fraction", format!("{share} is out of range"), "a number from 0 to 1"))
        }
        _ => Err(KeyError::new("", "needs one way to disclose", "{window = N} or {fraction = x, seed = s}")),
    }
}

/// The replacement of read-aheads, where it is not given.
const DEFAULT_REPLACEMENT: &str = "lru";

/// A policy or a read-ahead.
struct Row {
    name: &'static str,
    asks: bool,
    hinted: bool,
    open_replacement: bool,
    default_replacement: &'static str,
    defaults: fn() -> Table,
}

impl Row {
    fn of(name: &str) -> Result<Self, KeyError> {
        if let Some(row) = registry::POLICIES.iter().find(|row| row.name == name) {
            return Ok(Self {
                name: row.name,
                asks: row.parallel,
                hinted: row.hinted,
                open_replacement: row.open_replacement,
                default_replacement: row.default_replacement,
                defaults: row.defaults,
            });
        }
        if let Some(row) = READ_AHEADS.iter().find(|row| row.name == name) {
            let open_replacement = matches!(row.build, BuildReadAhead::Apart(_));
            return Ok(Self {
                name: row.name,
                asks: true,
                hinted: false,
                open_replacement,
                default_replacement: DEFAULT_REPLACEMENT,
                defaults: row.defaults,
            });
        }
        let policies = registry::POLICIES.iter().map(|row| row.name);
        Err(KeyError::unknown("name", "policy", name, policies.chain(READ_AHEADS.iter().map(|row| row.name))))
    }
}

/// Reads the section; returns it with all defaults as a table too.
pub fn read(mut table: Table) -> Result<(PolicyKeys, Table), KeyError> {
    let mut resolved = Table::new();
    let name = text(&mut table, "name", "demand")?;
    let row = Row::of(&name)?;
    resolved.insert("name".into(), row.name.into());
    if table.contains_key("replacement") && !row.open_replacement {
        let problem = format!("{} chooses its victims itself", row.name);
        return Err(KeyError::new("replacement", problem, "no replacement, or policy demand"));
    }
    let (replacement_row, replacement_keys) = read_replacement(table.remove("replacement"), row.default_replacement)?;
    if row.asks && row.open_replacement && replacement_row.hinted {
        let problem = format!("{} knows only what is referenced, {} fetches more", replacement_row.name, row.name);
        return Err(KeyError::new("replacement", problem, "a replacement without hints"));
    }
    if row.open_replacement {
        let name = Value::from(replacement_row.name);
        let value = match replacement_keys.is_empty() {
            true => name,
            false => Table::from_iter([("name".to_owned(), name)].into_iter().chain(replacement_keys.clone())).into(),
        };
        resolved.insert("replacement".into(), value);
    }
    let hints = match table.remove("hints") {
        None => None,
        Some(Value::Table(hints)) => {
            if !row.hinted && !replacement_row.hinted {
                let problem = format!("{} with {} takes no hints", row.name, replacement_row.name);
                return Err(KeyError::new("hints", problem, "a hinted policy, or replacement = \"min\""));
            }
            let mut all = hints.clone();
            if all.contains_key("fraction") {
                all.entry("seed").or_insert(Value::Integer(DEFAULT_HINT_SEED as i64));
            }
            resolved.insert("hints".into(), all.into());
            Some(read_hints(hints).map_err(|error| error.within("hints"))?)
        }
        Some(_) => return Err(KeyError::new("hints", "is no table", "{window = N} or {fraction = x, seed = s}")),
    };
    let mut own = (row.defaults)();
    own.extend(table);
    resolved.extend(own.clone());
    let replacement = replacement_row.name;
    Ok((PolicyKeys { name: row.name, replacement, replacement_keys, hints, keys: own }, resolved))
}

/// A replacement is a name, or a table with a name and keys of its own.
fn read_replacement(value: Option<Value>, default: &str) -> Result<(&'static ReplacementRow, Table), KeyError> {
    let (name, given) = match value {
        None => (default.to_owned(), Table::new()),
        Some(Value::String(name)) => (name, Table::new()),
        Some(Value::Table(mut table)) => {
            let name = text(&mut table, "name", default).map_err(|error| error.within("replacement"))?;
            (name, table)
        }
        Some(other) => {
            let problem = format!("{other} is no replacement");
            return Err(KeyError::new("replacement", problem, "a name in quotes, or {name = \"...\", ...}"));
        }
    };
    let row = registry::replacement(&name)?;
    let mut keys = (row.defaults)();
    keys.extend(given);
    Ok((row, keys))
}

/// A thing with a name and keys, or its bare name, taken out of a table.
pub fn named_table(table: &mut Table, key: &str, default: &str) -> Result<(String, Table), KeyError> {
    match table.remove(key) {
        None => Ok((default.to_owned(), Table::new())),
        Some(Value::String(name)) => Ok((name, Table::new())),
        Some(Value::Table(mut keys)) => {
            let name = text(&mut keys, "name", default).map_err(|error| error.within(key))?;
            Ok((name, keys))
        }
        Some(other) => Err(KeyError::new(key, format!("{other} is no name"), "a name, or a table with a name")),
    }
}

/// Takes a string out of a table.
pub fn text(table: &mut Table, key: &str, default: &str) -> Result<String, KeyError> {
    match table.remove(key) {
        None => Ok(default.to_owned()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(KeyError::new(key, format!("{other} is no string"), "a name in quotes")),
    }
}
