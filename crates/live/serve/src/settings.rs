//! The options of `headstart serve`. The parser, help, documentation, Python's keywords and errors are generated from
//! this struct.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use headstart_host::metrics::check_target;
use headstart_nbd::AccessKeys;
use headstart_trace::{Select, Selection};
use headstart_types::{as_text, keys, printable, printable_path, system_says, Bytes, KeyError};
use schemars::JsonSchema;
use toml::{Table, Value};

/// Default address for clients.
const LISTEN: &str = "127.0.0.1:10809";
/// Default maximum number of connections.
const CONNECTIONS: u32 = 256;
/// Default size of a cache.
const CACHE: &str = "64MiB";
/// The read-ahead that is chosen by measuring the backing.
pub const AUTO: &str = "auto";
/// Allowed page sizes.
const PAGES: RangeInclusive<u64> = 4096..=4 << 20;
const PAGES_ALLOWED: &str = "a power of two from 4KiB to 4MiB";
/// The keys of a scenario's level that the server uses.
const LEVEL_KEYS: [&str; 7] = ["size", "blocks", "policy", "replacement", "coordinator", "separate_prefetch", "link"];
/// Options and the keys of a level that they set.
const OF_LEVEL: [(&str, &str); 4] =
    [("cache", "size"), ("readahead", "policy"), ("replacement", "replacement"), ("coordinator", "coordinator")];

keys! {
    /// Options of a server.
    pub struct Settings {
        /// The backing of the default export: a file, a block device, mem:SIZE, or a URL; see `headstart list backings`.
        #[schemars(extend("x-argument" = true, "x-metavar" = "BACKING", "x-file" = "url"))]
        pub backing: Option<String> = None,
        /// Further exports: backings by name.
        #[schemars(with = "BTreeMap<String, String>", extend("x-names" = ["--export"], "x-metavar" = "NAME=BACKING"))]
        #[schemars(extend("x-help" = "A named export. Repeatable."))]
        pub exports: Table = Table::new(),
        /// The address that clients connect to, or unix:PATH. Default: 127.0.0.1:10809.
        #[schemars(extend("x-metavar" = "HOST:PORT"))]
        pub listen: Option<String> = None,
        /// Listen on a Unix socket; the same as --listen unix:PATH.
        #[schemars(extend("x-metavar" = "PATH", "x-file" = "any"))]
        pub socket: Option<String> = None,
        /// Size of each export's page cache. Default: 64MiB.
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub cache: Option<String> = None,
        /// Page size: a power of two from 4KiB to 4MiB.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub page: Bytes = Bytes(4096),
        /// A read-ahead of `headstart list policies`. demand: no read-ahead; auto: measure how far to read ahead.
        #[schemars(extend("x-names" = ["--readahead", "--policy"], "x-metavar" = "NAME"))]
        pub readahead: Option<String> = None,
        /// Replacement policy: a name of `headstart list replacements`. Default: lru.
        #[schemars(extend("x-metavar" = "NAME"))]
        pub replacement: Option<String> = None,
        /// Coordinator: a name of `headstart list coordinators`. Default: none.
        #[schemars(extend("x-metavar" = "NAME"))]
        pub coordinator: Option<String> = None,
        /// Use the size, policy, coordinator and link of the scenario's lowest level, with their keys.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "own"))]
        pub scenario: Option<PathBuf> = None,
        /// Keys of each export's level, as in a scenario's `[[level]]`. With `scenario`: the name of one of its levels.
        #[schemars(with = "Option<NameOrKeys>", extend("x-metavar" = "NAME"))]
        #[schemars(extend("x-help" = "With --scenario: use this level instead of the lowest."))]
        pub level: Option<Value> = None,
        /// Read files and devices with direct I/O, bypassing the kernel's page cache.
        pub direct: bool = false,
        /// Do not lock files and devices against other programs. By default they are locked as QEMU locks images.
        pub no_lock: bool = false,
        /// Maximum concurrent reads per backing. Default: 32; for mem: 2.
        #[schemars(range(min = 1, max = 1024), extend("x-metavar" = "N"))]
        pub depth: Option<u32> = None,
        /// Maximum connected clients; others wait. Default: 256.
        #[schemars(range(min = 1, max = 1_048_576), extend("x-metavar" = "N"))]
        pub connections: Option<u32> = None,
        /// Maximum memory for the caches and all clients' requests and replies. Default: the caches' size plus 256MiB.
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub memory: Option<Bytes> = None,
        /// Allow writes. They reach the backing before the client gets its reply.
        pub writable: bool = false,
        /// Record the clients' reads and writes as a trace.
        #[schemars(extend("x-metavar" = "TRACE.csv", "x-file" = "own"))]
        pub record: Option<PathBuf> = None,
        /// Prefetch the reads of this trace: one written by --record, or any trace of one device.
        #[schemars(extend("x-metavar" = "TRACE", "x-file" = "own"))]
        pub hints: Option<PathBuf> = None,
        /// With --hints: the hinted policy, a name of `headstart list policies`. Default: just-in-time.
        #[schemars(extend("x-metavar" = "NAME"))]
        pub hint_policy: Option<String> = None,
        /// Which requests of the hints are followed.
        #[schemars(extend("x-flat" = true))]
        pub select: Select = Select::default(),
        /// Keep pages that the cache evicts in this file, for this run and later ones.
        #[schemars(extend("x-metavar" = "FILE:SIZE", "x-file" = "own"))]
        pub spill: Option<String> = None,
        /// Write metrics to a file, or serve them to collectors at a local address.
        #[schemars(extend("x-names" = ["--openmetrics", "--metrics"], "x-metavar" = "FILE|HOST:PORT"))]
        pub openmetrics: Option<String> = None,
        /// Append events to a file, as lines of JSON.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "own"))]
        pub log: Option<PathBuf> = None,
        /// Who may connect, and how.
        #[schemars(extend("x-flat" = true))]
        pub access: AccessKeys = AccessKeys::default(),
        /// CA certificates (PEM). Clients must then present a certificate issued by one of these CAs.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "any"))]
        pub tls_clients: Option<PathBuf> = None,
    }
    impl check = Settings::checked;
}

/// A level of a scenario.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum NameOrKeys {
    Name(String),
    Keys(BTreeMap<String, serde_json::Value>),
}

impl Settings {
    fn checked(&self) -> Result<(), KeyError> {
        if !self.page.0.is_power_of_two() || !PAGES.contains(&self.page.0) {
            return Err(KeyError::new("page", format!("{} is no size of a page", self.page), PAGES_ALLOWED));
        }
        if self.listen.is_some() && self.socket.is_some() {
            return Err(KeyError::new("socket", "given beside --listen", "one of the two"));
        }
        if let (Some(name), None) = (&self.hint_policy, &self.hints) {
            return Err(KeyError::new("hint_policy", format!("{name} without hints"), "both, or neither"));
        }
        self.openmetrics.as_deref().map_or(Ok(()), check_target)?;
        let exports = self.exports()?;
        for (key, given, names) in
            [("hints", self.hints.is_some(), "hints name"), ("spill", self.spill.is_some(), "a file holds")]
        {
            if given && exports.len() > 1 {
                let problem = format!("there are {} exports, and {names} pages of one", exports.len());
                return Err(KeyError::new(key, problem, "one export"));
            }
        }
        let selects = [
            ("path", self.select.path != Select::default().path),
            ("pid", self.select.pid != Select::default().pid),
            ("process", self.select.process != Select::default().process),
        ];
        match selects.iter().find(|(_, given)| *given && self.hints.is_none()) {
            Some((key, _)) => Err(KeyError::new(*key, "selects requests of hints", "together with hints")),
            None => Ok(()),
        }
    }

    /// Names and backings; the first is the default export.
    ///
    /// # Errors
    /// There is no export, or a name is used twice.
    pub fn exports(&self) -> Result<Vec<(String, String)>, KeyError> {
        let mut exports: Vec<_> = self.backing.iter().map(|backing| (String::new(), backing.clone())).collect();
        for (name, backing) in &self.exports {
            let wrong =
                || KeyError::new("exports", format!("{name}: {backing}"), "a backing: a file, a device or a URL");
            exports.push((name.clone(), backing.as_str().ok_or_else(wrong)?.to_owned()));
        }
        if exports.iter().filter(|(name, _)| name.is_empty()).count() > 1 {
            return Err(KeyError::new("exports", "two exports are called \"\"", "different names"));
        }
        if exports.is_empty() {
            let allowed = "a file, a device, mem:SIZE, a URL, or exports with names";
            return Err(KeyError::new("backing", "is missing", allowed));
        }
        Ok(exports)
    }

    /// The address: `HOST:PORT`, `tcp:HOST:PORT` or `unix:PATH`.
    #[must_use]
    pub fn listen(&self) -> String {
        let socket = self.socket.as_ref().map(|path| format!("unix:{path}"));
        socket.or(self.listen.clone()).unwrap_or_else(|| LISTEN.to_owned())
    }

    /// Maximum number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.unwrap_or(CONNECTIONS) as usize
    }

    /// Selection of the requests of the hints.
    ///
    /// # Errors
    /// A pattern is empty.
    pub fn selection(&self) -> Result<Selection, KeyError> {
        self.select.clone().try_into()
    }

    /// The keys of each export's level; its policy may be [`AUTO`].
    ///
    /// # Errors
    /// The scenario cannot be read, or has no such level.
    pub fn level(&self) -> Result<Table, KeyError> {
        let mut level = match (&self.scenario, &self.level) {
            (None, Some(Value::Table(keys))) => keys.clone(),
            (None, Some(_)) => return Err(KeyError::new("level", "needs --scenario", "both or neither")),
            (None, None) => Table::from_iter([("size".into(), CACHE.into()), ("policy".into(), AUTO.into())]),
            (Some(path), name) => level_of(path, name.as_ref())?,
        };
        if self.cache.is_some() {
            level.remove("blocks");
        }
        for ((_, key), value) in
            OF_LEVEL.iter().zip([&self.cache, &self.readahead, &self.replacement, &self.coordinator])
        {
            if let Some(value) = value {
                level.insert((*key).to_owned(), value.as_str().into());
            }
        }
        Ok(level)
    }

    /// Maps an error of the level to the option that set the key.
    #[must_use]
    pub fn at_option(&self, error: KeyError) -> KeyError {
        let given = [&self.cache, &self.readahead, &self.replacement, &self.coordinator].map(Option::is_some);
        let of = |((option, key), given): (&(&str, &str), bool)| {
            (given && error.key.split('.').next() == Some(key)).then(|| (*option).to_owned())
        };
        let option = OF_LEVEL.iter().zip(given).find_map(of);
        KeyError { key: option.unwrap_or(error.key), ..error }
    }
}

/// The keys of the level `name` of a scenario, or of the lowest level, which a server models.
fn level_of(path: &Path, name: Option<&Value>) -> Result<Table, KeyError> {
    let shown = printable_path(path);
    let text =
        std::fs::read_to_string(path).map_err(|error| KeyError::new(&shown, system_says(&error), "a scenario"))?;
    let scenario: Table =
        text.parse().map_err(|error: toml::de::Error| KeyError::new(&shown, error.message(), "TOML"))?;
    let levels: Vec<&Table> =
        scenario.get("level").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table).collect();
    let section = match name {
        Some(name) => {
            let named = |(at, level): (usize, &&Table)| match level.get("name").and_then(Value::as_str) {
                Some(name) => name.to_owned(),
                None => format!("L{}", at + 1),
            };
            let names: Vec<String> = levels.iter().enumerate().map(named).collect();
            let found = names.iter().position(|each| Some(each.as_str()) == name.as_str());
            let allowed = || if names.is_empty() { "no level".to_owned() } else { names.join(", ") };
            let wrong = || KeyError::new("level", printable(&name.to_string()).into_owned(), allowed());
            levels[found.ok_or_else(wrong)?].clone()
        }
        None => match levels.last() {
            Some(level) => (*level).clone(),
            None => {
                let mut section = scenario.get("cache").and_then(Value::as_table).cloned().unwrap_or_default();
                if let Some(policy) = scenario.get("policy") {
                    section.entry("policy").or_insert_with(|| policy.clone());
                }
                section
            }
        },
    };
    // The simulator's default: a prefetch joins the request of the preceding demand.
    let mut keys = Table::from_iter([("separate_prefetch".to_owned(), false.into())]);
    keys.extend(section.into_iter().filter(|(key, _)| LEVEL_KEYS.contains(&key.as_str())));
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::read_options;

    fn settings(text: &str) -> Result<Settings, KeyError> {
        read_options(text.parse().expect("TOML"))
    }

    #[test]
    fn a_scenario_gives_its_lowest_level() {
        let path = std::env::temp_dir().join(format!("headstart-two-levels-{}.toml", std::process::id()));
        let lowest = "blocks = 30\npolicy = {name = \"ra\", degree = 4}\nreplacement = \"arc\"\n\
                      coordinator = {name = \"pfc\", queue = 0.2}\nlink = {alpha = \"6ms\"}\n";
        let text = format!("[[level]]\nblocks = 10\n[[level]]\nname = \"L2\"\nclients = 1\n{lowest}");
        std::fs::write(&path, text).expect("there is room");
        let level = |more: &str| {
            settings(&format!("backing = \"mem:1MiB\"\nscenario = \"{}\"\n{more}", path.display()))?.level()
        };
        let separate = "separate_prefetch = false\n";
        let expected: Table = format!("{lowest}{separate}").parse().expect("TOML");
        assert_eq!(level("").expect("a level"), expected);
        assert_eq!(level("level = \"L2\"").expect("a level"), expected);
        let first = format!("blocks = 10\n{separate}").parse::<Table>().expect("TOML");
        assert_eq!(level("level = \"L1\"").expect("a level"), first);
        let sized = level("level = \"L1\"\ncache = \"1MiB\"\nreadahead = \"amp\"").expect("a level");
        assert_eq!(sized, format!("{separate}size = \"1MiB\"\npolicy = \"amp\"").parse::<Table>().expect("TOML"));
        let said = level("level = \"L3\"").expect_err("there is none").to_string();
        assert_eq!(said, "level: \"L3\"; allowed: L1, L2");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn mistakes_name_the_option() {
        for (text, said) in [
            ("", "backing: is missing; allowed: a file"),
            ("backing = \"a\"\npage = \"5KiB\"", "page: 5KiB is no size of a page; allowed: a power of two from"),
            ("backing = \"a\"\ndepth = 0", "depth: 0 is out of range; allowed: a whole number from 1 to 1024"),
            ("backing = \"a\"\npid = 7", "pid: selects requests of hints; allowed: together with hints"),
            ("backing = \"a\"\nexports = {b = \"c\"}\nspill = \"f:1MiB\"", "spill: there are 2 exports"),
            ("backing = \"a\"\ncahe = \"1MiB\"", "cahe: unknown key (did you mean \"cache\"?)"),
        ] {
            let error = settings(text).map(|_| ()).expect_err(text).to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let key = settings("backing = \"a\"\nreadahead = \"linx\"").expect("settings");
        let error = key.at_option(KeyError::new("policy.name", "unknown", "linux"));
        assert_eq!(error.key, "readahead");
        assert_eq!(key.at_option(KeyError::new("size", "unknown", "linux")).key, "size");
    }
}
