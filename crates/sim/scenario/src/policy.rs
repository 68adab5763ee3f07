//! Section `[policy]`.

use headstart_policy::readahead::Needs;
use headstart_policy::registry::{policy_among, replacement_among, PolicyRow, ReplacementRow, Rows, POLICIES};
use headstart_types::{keys, read_keys, Chosen, KeyError};
use serde::{Serialize, Serializer};
use toml::{Table, Value};

#[derive(Debug, Clone)]
pub struct PolicyKeys {
    /// The policy and its keys.
    pub policy: Chosen<PolicyRow>,
    /// For policies that do not choose victims themselves.
    pub replacement: Chosen<ReplacementRow>,
    /// Partial disclosure; `None` discloses everything.
    pub hints: Option<HintsKeys>,
}

impl PolicyKeys {
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    #[must_use]
    pub fn row(&self) -> &'static PolicyRow {
        self.policy.row
    }

    /// Whether it uses disclosed references.
    #[must_use]
    pub fn needs_hints(&self) -> bool {
        self.row().is_hinted() || (self.row().has_open_replacement() && self.replacement.row.hinted)
    }

    /// Whether it is a read-ahead, which acts on whole requests.
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.row().reads_ahead().is_some()
    }

    /// The additional input that it needs.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.row().needs()
    }

    /// Whether it only works for parallel programs.
    #[must_use]
    pub fn parallel(&self) -> bool {
        self.row().is_parallel()
    }

    /// The section with all defaults. The keys of a policy for parallel programs are those of `[process]`.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::from_iter([("name".to_owned(), Value::from(self.name()))]);
        if self.row().has_open_replacement() {
            let with_keys = self.replacement.table();
            let bare = with_keys.len() == 1;
            table.insert("replacement".into(), if bare { self.replacement.name().into() } else { with_keys.into() });
        }
        if let Some(hints) = &self.hints {
            table.insert("hints".into(), Value::try_from(hints).expect("plain values"));
        }
        if !self.parallel() {
            table.extend(self.policy.keys.table());
        }
        table
    }
}

impl Serialize for PolicyKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().serialize(serializer)
    }
}

/// Whether the policy of this name only works for parallel programs.
pub fn is_parallel(name: &str, rows: &dyn Rows) -> bool {
    policy_among(rows, name).is_ok_and(PolicyRow::is_parallel)
}

keys! {
    /// Hints that are incomplete (`{window = N}`, or `{fraction = x, seed = s}`) or contain errors (`wrong` and
    /// `reordered`). `processes` selects the processes that give hints. Without this key, all references are disclosed.
    #[derive(PartialEq)]
    pub struct HintsKeys {
        /// The processes that give hints, by their numbers in the result, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub processes: Option<Vec<u32>> = None,
        /// Number of upcoming references that are disclosed.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub window: Option<u32> = None,
        /// Probability with which each reference is disclosed.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub fraction: Option<f64> = None,
        /// Share of the hints that name a block other than the referenced one.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub wrong: Option<f64> = None,
        /// Share of the hints that are exchanged with another hint.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub reordered: Option<f64> = None,
        /// Maximum displacement of reordered hints, in references. Default: 16.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1_000))]
        pub distance: Option<u32> = None,
        /// Seed of the random draws. Default: 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub seed: Option<u64> = None,
    }
}

const DEFAULT_HINT_SEED: u64 = 1;

/// Reordered hints are displaced by less than the horizon of fixed horizon (62), so that most of them are late or early
/// but not lost.
const DEFAULT_DISTANCE: u32 = 16;

impl HintsKeys {
    /// Whether process `number` discloses its references.
    pub fn are_of(&self, number: usize) -> bool {
        self.processes.as_ref().is_none_or(|numbers| numbers.iter().any(|each| *each as usize == number))
    }

    /// Share of the references that are disclosed.
    pub fn share(&self) -> f64 {
        self.fraction.unwrap_or(1.0)
    }

    /// Shares of the hints that are wrong, and that are displaced.
    pub fn errors(&self) -> (f64, f64) {
        (self.wrong.unwrap_or(0.0), self.reordered.unwrap_or(0.0))
    }

    /// Seed of the draws.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(DEFAULT_HINT_SEED)
    }

    /// Whether the disclosing processes disclose every reference without errors.
    pub fn are_perfect(&self) -> bool {
        self.window.is_none() && self.share() == 1.0 && self.errors() == (0.0, 0.0)
    }

    /// Reads the keys, with the defaults of those that are drawn from.
    fn read(table: Table) -> Result<Self, KeyError> {
        let mut keys: Self = read_keys(table)?;
        let draws = keys.fraction.is_some() || keys.wrong.is_some() || keys.reordered.is_some();
        let discloses = draws || (keys.seed.is_none() && (keys.window.is_some() || keys.processes.is_some()));
        if !discloses || (keys.window.is_some() && keys.fraction.is_some()) {
            return Err(KeyError::new("", "must disclose in exactly one way", WAYS));
        }
        if keys.distance.is_some() && keys.reordered.is_none() {
            return Err(KeyError::new("distance", "nothing is reordered", "reordered = x in addition, or no distance"));
        }
        if draws {
            keys.seed.get_or_insert(DEFAULT_HINT_SEED);
        }
        if keys.reordered.is_some() {
            keys.distance.get_or_insert(DEFAULT_DISTANCE);
        }
        Ok(keys)
    }
}

const WAYS: &str =
    "{window = N} or {fraction = x, seed = s}, optionally with wrong = x and reordered = x for errors, and processes \
    = [0, 2]";

/// The replacement reported for a policy that chooses its victims itself.
const UNUSED_REPLACEMENT: &str = "lru";

/// Reads the section.
pub fn read(mut table: Table, rows: &dyn Rows) -> Result<PolicyKeys, KeyError> {
    let name = text(&mut table, "name", "demand")?;
    let row = policy_among(rows, &name)?;
    if table.contains_key("replacement") && !row.has_open_replacement() {
        let problem = format!("{} chooses its victims itself", row.name);
        return Err(KeyError::new("replacement", problem, "no replacement, or policy demand"));
    }
    let default = row.default_replacement.unwrap_or(UNUSED_REPLACEMENT);
    let replacement = read_replacement(table.remove("replacement"), default, rows)?;
    if !row.goes_by_blocks() && row.has_open_replacement() && replacement.row.hinted {
        let problem = format!("{} cannot be used with {}, which prefetches", replacement.name(), row.name);
        return Err(KeyError::new("replacement", problem, "a replacement without hints"));
    }
    let hints = match table.remove("hints") {
        None => None,
        Some(Value::Table(hints)) => {
            if !row.is_hinted() && !replacement.row.hinted {
                let problem = format!("{} with {} does not use hints", row.name, replacement.name());
                return Err(KeyError::new("hints", problem, "a hinted policy, or replacement = \"min\""));
            }
            Some(HintsKeys::read(hints).map_err(|error| error.within("hints"))?)
        }
        Some(_) => return Err(KeyError::new("hints", "is not a table", WAYS)),
    };
    // A host's policy determines its own keys.
    let is_ours = POLICIES.iter().any(|ours| ours.name == row.name);
    if let Some(key) = table.keys().next().filter(|_| is_ours && row.keys.is_empty()) {
        let takes = [("name", true), ("replacement", row.has_open_replacement()), ("hints", row.is_hinted())];
        return Err(KeyError::unknown_key(key, takes.iter().filter(|(_, takes)| *takes).map(|(key, _)| *key)));
    }
    Ok(PolicyKeys { policy: Chosen::read(row, table)?, replacement, hints })
}

/// A replacement is a name, or a table with a name and keys.
fn read_replacement(value: Option<Value>, default: &str, rows: &dyn Rows) -> Result<Chosen<ReplacementRow>, KeyError> {
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
    Chosen::read(replacement_among(rows, &name)?, given).map_err(|error| error.within("replacement"))
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
