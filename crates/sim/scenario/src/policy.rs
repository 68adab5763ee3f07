//! Section `[policy]`.

use headstart_policy::readahead::Needs;
use headstart_policy::registry::{policy_among, replacement_among, PolicyRow, ReplacementRow, Rows, POLICIES};
use headstart_types::{keys, read_keys, KeyError};
use toml::{Table, Value};

#[derive(Debug, Clone)]
pub struct PolicyKeys {
    /// Its row's name.
    pub name: &'static str,
    row: &'static PolicyRow,
    /// For policies that do not choose victims themselves.
    pub replacement: &'static ReplacementRow,
    pub replacement_keys: Table,
    /// Partial disclosure; `None` discloses everything.
    pub hints: Option<HintsKeys>,
    pub keys: Table,
}

impl PolicyKeys {
    #[must_use]
    pub fn row(&self) -> &'static PolicyRow {
        self.row
    }

    /// Whether it uses disclosed references.
    #[must_use]
    pub fn needs_hints(&self) -> bool {
        self.row.is_hinted() || (self.row.has_open_replacement() && self.replacement.hinted)
    }

    /// Whether it is a read-ahead, which acts on whole requests.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.row.reads_ahead().is_some()
    }

    /// The additional input that it needs.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.row.needs()
    }

    /// Whether it only works for parallel programs.
    #[must_use]
    pub fn parallel(&self) -> bool {
        self.row.is_parallel()
    }
}

/// Whether the policy of this name only works for parallel programs.
pub fn is_parallel(name: &str, rows: &dyn Rows) -> bool {
    policy_among(rows, name).is_ok_and(PolicyRow::is_parallel)
}

/// Partial disclosure of the references, and errors in it.
#[derive(Debug, Clone, PartialEq)]
pub struct HintsKeys {
    /// The processes that disclose their references, by number; `None`: all.
    pub processes: Option<Vec<u32>>,
    pub shown: Shown,
    /// Share of the hints that name another block.
    pub wrong: f64,
    /// Share of the hints that are displaced.
    pub reordered: f64,
    /// Maximum displacement in references.
    pub distance: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// Which references are disclosed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shown {
    /// The next references, up to this number.
    Window(u32),
    /// Each with this probability.
    Fraction(f64),
}

impl HintsKeys {
    /// Whether process `number` discloses its references.
    pub fn are_of(&self, number: usize) -> bool {
        self.processes.as_ref().is_none_or(|numbers| numbers.iter().any(|each| *each as usize == number))
    }

    /// Whether the disclosing processes disclose every reference without errors.
    pub fn are_perfect(&self) -> bool {
        self.shown == Shown::Fraction(1.0) && self.wrong == 0.0 && self.reordered == 0.0
    }
}

keys! {
    /// Partial disclosure: `{window = N}`, or `{fraction = x, seed = s}`; errors: `wrong` and `reordered`; `processes`:
    /// which of several processes give hints. Without it all references are disclosed.
    pub struct RawHints {
        /// Which of several processes give hints, by their numbers in the result, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        processes: Option<Vec<u32>> = None,
        /// Number of upcoming references that are disclosed.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u32> = None,
        /// Each reference is disclosed with this probability.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        fraction: Option<f64> = None,
        /// Share of the hints that name a block that is not referenced there.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        wrong: Option<f64> = None,
        /// Share of the hints that were exchanged with another.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        reordered: Option<f64> = None,
        /// Maximum displacement of reordered hints in references; default 16.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1_000))]
        distance: Option<u32> = None,
        /// Seed of the draws; default 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<u64> = None,
    }
}

const DEFAULT_HINT_SEED: u64 = 1;

/// Reordered hints are displaced by less than the horizon of fixed horizon (62), so that most of them are late or early
/// but not lost.
const DEFAULT_DISTANCE: u32 = 16;

/// Reads the key; also returns it as a table with all relevant defaults.
fn read_hints(table: Table) -> Result<(HintsKeys, Table), KeyError> {
    let mut resolved = table.clone();
    let RawHints { processes, window, fraction, wrong, reordered, distance, seed } = read_keys(table)?;
    let draws = fraction.is_some() || wrong.is_some() || reordered.is_some();
    let shown = match (window, fraction) {
        (Some(window), None) if draws || seed.is_none() => Shown::Window(window),
        (None, share) if draws || (processes.is_some() && seed.is_none()) => Shown::Fraction(share.unwrap_or(1.0)),
        _ => return Err(KeyError::new("", "must disclose in exactly one way", WAYS)),
    };
    if distance.is_some() && reordered.is_none() {
        return Err(KeyError::new("distance", "nothing is reordered", "reordered = x in addition, or no distance"));
    }
    if draws {
        resolved.entry("seed").or_insert(Value::Integer(DEFAULT_HINT_SEED as i64));
    }
    if reordered.is_some() {
        resolved.entry("distance").or_insert(Value::Integer(DEFAULT_DISTANCE.into()));
    }
    let keys = HintsKeys {
        processes,
        shown,
        wrong: wrong.unwrap_or(0.0),
        reordered: reordered.unwrap_or(0.0),
        distance: distance.unwrap_or(DEFAULT_DISTANCE),
        seed: seed.unwrap_or(DEFAULT_HINT_SEED),
    };
    Ok((keys, resolved))
}

const WAYS: &str =
    "{window = N} or {fraction = x, seed = s}, optionally with wrong = x and reordered = x for errors, and processes \
    = [0, 2]";

/// The replacement reported for a policy that chooses its victims itself.
const UNUSED_REPLACEMENT: &str = "lru";

/// Reads the section; also returns it as a table with all defaults.
pub fn read(mut table: Table, rows: &dyn Rows) -> Result<(PolicyKeys, Table), KeyError> {
    let mut resolved = Table::new();
    let name = text(&mut table, "name", "demand")?;
    let row = policy_among(rows, &name)?;
    resolved.insert("name".into(), row.name.into());
    if table.contains_key("replacement") && !row.has_open_replacement() {
        let problem = format!("{} chooses its victims itself", row.name);
        return Err(KeyError::new("replacement", problem, "no replacement, or policy demand"));
    }
    let default = row.default_replacement.unwrap_or(UNUSED_REPLACEMENT);
    let (replacement_row, replacement_keys) = read_replacement(table.remove("replacement"), default, rows)?;
    if !row.goes_by_blocks() && row.has_open_replacement() && replacement_row.hinted {
        let problem = format!("{} cannot be used with {}, which prefetches", replacement_row.name, row.name);
        return Err(KeyError::new("replacement", problem, "a replacement without hints"));
    }
    if row.has_open_replacement() {
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
            if !row.is_hinted() && !replacement_row.hinted {
                let problem = format!("{} with {} does not use hints", row.name, replacement_row.name);
                return Err(KeyError::new("hints", problem, "a hinted policy, or replacement = \"min\""));
            }
            let (hints, all) = read_hints(hints).map_err(|error| error.within("hints"))?;
            resolved.insert("hints".into(), all.into());
            Some(hints)
        }
        Some(_) => return Err(KeyError::new("hints", "is not a table", WAYS)),
    };
    // A host's policy determines its own keys.
    let is_ours = POLICIES.iter().any(|ours| ours.name == row.name);
    if let Some(key) = table.keys().next().filter(|_| is_ours && row.keys.is_empty()) {
        let takes = [("name", true), ("replacement", row.has_open_replacement()), ("hints", row.is_hinted())];
        return Err(KeyError::unknown_key(key, takes.iter().filter(|(_, takes)| *takes).map(|(key, _)| *key)));
    }
    let mut own = row.keys.defaults();
    own.extend(table);
    resolved.extend(own.clone());
    let replacement = replacement_row;
    Ok((PolicyKeys { name: row.name, row, replacement, replacement_keys, hints, keys: own }, resolved))
}

/// A replacement is a name, or a table with a name and keys.
fn read_replacement(
    value: Option<Value>,
    default: &str,
    rows: &dyn Rows,
) -> Result<(&'static ReplacementRow, Table), KeyError> {
    let (name, given) = match value {
        None => (default.to_owned(), Table::new()),
        Some(Value::String(name)) => (name, Table::new()),
        Some(Value::Table(mut table)) => {
            let name = text(&mut table, "name", default).map_err(|error| error.within("replacement"))?;
            (name, table)
        }
        Some(other) => {
            let problem = format!("{other} is not a replacement");
            return Err(KeyError::new("replacement", problem, "a name in quotes, or {name = \"...\", ...}"));
        }
    };
    let row = replacement_among(rows, &name)?;
    let mut keys = row.keys.defaults();
    keys.extend(given);
    Ok((row, keys))
}

/// Reads a table with a name and keys, or a bare name.
pub fn named_value(value: Option<Value>, key: &str, default: &str) -> Result<(String, Table), KeyError> {
    match value {
        None => Ok((default.to_owned(), Table::new())),
        Some(Value::String(name)) => Ok((name, Table::new())),
        Some(Value::Table(mut keys)) => {
            let name = text(&mut keys, "name", default).map_err(|error| error.within(key))?;
            Ok((name, keys))
        }
        Some(other) => Err(KeyError::new(key, format!("{other} is not a name"), "a name, or a table with a name")),
    }
}

/// Takes a string out of a table.
pub fn text(table: &mut Table, key: &str, default: &str) -> Result<String, KeyError> {
    match table.remove(key) {
        None => Ok(default.to_owned()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(KeyError::new(key, format!("{other} is not a string"), "a name in quotes")),
    }
}
