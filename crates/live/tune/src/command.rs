//! The command `headstart tune`: its options, from which parser, help, documentation, Python's keywords and errors are
//! made, and what it does.

use std::path::PathBuf;
use std::time::Duration;

use headstart_host::{Clock, RealClock, Roots};
use headstart_types::{keys, Bytes, KeyError, Nanos};
use toml::Table;

use super::{
    forget_gone, Ended, Error, Pace, Report, Settings, Status, Tuner, Wanted, Watch, WatchSettings, DEFAULT_STATE,
};

/// What is missing where there is no profile.
const PROFILE: &str = "--profile with a name of `headstart list devices`, or with the path of a profile, which \
                       `headstart profile` measures and writes";
/// How often a watch looks at what has happened and tells of it.
const REFRESH: Duration = Duration::from_millis(100);

keys! {
    /// Options of `headstart tune`.
    pub struct Options {
        /// A disk, partition or loop device, or a path on it.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "DEVICE", "x-file" = "own"))]
        pub device: PathBuf = PathBuf::new(),
        /// The drive: a name of `headstart list devices`, or the path of a profile.
        #[schemars(extend("x-metavar" = "NAME|FILE", "x-file" = "url"))]
        pub profile: Option<String> = None,
        /// Keys of the device that override those of the profile.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        #[schemars(extend("x-names" = ["--set"], "x-metavar" = "KEY=VALUE", "x-set" = true))]
        #[schemars(extend("x-help" = "Override a key of the device: buffer.size=1MiB. Repeatable."))]
        pub keys: Table = Table::new(),
        /// Use this depth instead of the profile's.
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub depth: Option<Bytes> = None,
        /// Show the current and the proposed depth. This is the default and needs no root.
        pub dry_run: bool = false,
        /// Write the depth. It lasts until --restore or the next boot.
        pub apply: bool = false,
        /// Write the value that was set before the first --apply.
        pub restore: bool = false,
        /// Follow the drive's seeks and adjust the depth. Restores the value at the end.
        pub watch: bool = false,
        /// With --watch: stop after this time, for example "10min".
        #[schemars(extend("x-names" = ["--for"], "x-metavar" = "DURATION"))]
        pub duration: Option<Nanos> = None,
        /// With --watch: keep the status in this file, in OpenMetrics format.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "own"))]
        pub openmetrics: Option<PathBuf> = None,
        /// Allow more than 16 MiB. With --restore: restore even if another program has changed the value.
        pub force: bool = false,
        /// File that keeps the original values.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "own"))]
        pub state: PathBuf = DEFAULT_STATE.into(),
        /// Mount point of sysfs, for tests.
        #[schemars(extend("x-test" = true))]
        pub sys: Option<PathBuf> = None,
        /// Mount point of procfs, for tests.
        #[schemars(extend("x-test" = true))]
        pub proc: Option<PathBuf> = None,
        /// Mount point of tracefs, for tests.
        #[schemars(extend("x-test" = true))]
        pub tracing: Option<PathBuf> = None,
        /// Folder in place of /run, for tests.
        #[schemars(extend("x-test" = true))]
        pub run: Option<PathBuf> = None,
    }
    impl check = Options::check;
}

impl Options {
    fn check(&self) -> Result<(), KeyError> {
        let actions = [
            ("--dry-run", self.dry_run),
            ("--apply", self.apply),
            ("--restore", self.restore),
            ("--watch", self.watch),
        ];
        let mut chosen = actions.iter().filter(|(_, chosen)| *chosen).map(|(name, _)| *name);
        let action = chosen.next().unwrap_or("--dry-run");
        if let Some(other) = chosen.next() {
            let allowed = format!("one of {}", actions.map(|(name, _)| name).join(", "));
            return Err(KeyError::new(other, format!("cannot be combined with {action}"), allowed));
        }
        let refused = [
            ("--for", self.duration.is_some() && !self.watch),
            ("--openmetrics", self.openmetrics.is_some() && !self.watch),
            ("--profile", self.profile.is_some() && self.restore),
            ("--depth", self.depth.is_some() && (self.restore || self.watch)),
            ("--set", !self.keys.is_empty() && self.restore),
        ];
        match refused.iter().find(|(_, refused)| *refused) {
            Some((name, _)) => {
                let allowed = format!("{action} without it");
                Err(KeyError::new(*name, format!("cannot be combined with {action}"), allowed))
            }
            None => Ok(()),
        }
    }

    fn settings(&self) -> Settings {
        let machine = Roots::of_machine();
        let roots = Roots {
            sys: self.sys.clone().unwrap_or(machine.sys),
            proc: self.proc.clone().unwrap_or(machine.proc),
            tracing: self.tracing.clone().unwrap_or(machine.tracing),
            run: self.run.clone().unwrap_or(machine.run),
        };
        Settings { roots, device: self.device.clone(), state: self.state.clone(), force: self.force }
    }

    fn wanted(&self) -> Result<Wanted, KeyError> {
        match (&self.profile, self.depth) {
            (Some(name), None) => Ok(Wanted::Profile { name: name.clone(), keys: self.keys.clone() }),
            (None, Some(depth)) if self.keys.is_empty() => Ok(Wanted::Depth(depth)),
            (None, Some(_)) => Err(KeyError::new("set", "a depth has no keys", "--set with --profile")),
            (Some(_), Some(_)) => Err(KeyError::new("depth", "there is a profile too", "one of the two")),
            (None, None) => {
                let allowed = format!("{PROFILE}; or --depth SIZE");
                Err(KeyError::new("profile", "is missing: how deep is not known", allowed))
            }
        }
    }

    fn watch_settings(&self) -> Result<WatchSettings, KeyError> {
        let Some(profile) = self.profile.clone() else {
            return Err(KeyError::new("profile", "is missing: to follow an arm takes its seek curve", PROFILE));
        };
        let (keys, openmetrics) = (self.keys.clone(), self.openmetrics.clone());
        Ok(WatchSettings { profile, keys, pace: Pace::default(), openmetrics })
    }
}

/// Shows a device's read-ahead beside what it should be, writes that, or writes what was found before.
///
/// # Errors
/// An option, the device, or what the system says.
pub fn tune(options: &Options) -> Result<Report, Error> {
    let settings = options.settings();
    if options.restore {
        let tuner = Tuner::new(settings).or_else(|error| forget_gone(&options.settings()).and(Err(error)))?;
        return tuner.restore(options.force);
    }
    let asks_for_nothing = options.profile.is_none() && options.depth.is_none() && options.keys.is_empty();
    let wanted = if asks_for_nothing && !options.apply { None } else { Some(options.wanted()?) };
    let tuner = Tuner::new(settings)?;
    match wanted {
        Some(wanted) if options.apply => tuner.apply(&wanted),
        wanted => tuner.show(wanted.as_ref()),
    }
}

/// Follows what a device does and sets its read-ahead by that, until its time is over, the device goes, another program
/// sets the number, or `told` returns false, which gets the status at once and 10 times a second. What was found is
/// written at the end, however that comes.
///
/// # Errors
/// As of [`tune`]; there is nothing to follow.
pub fn watch(options: &Options, told: &mut dyn FnMut(&Status) -> bool) -> Result<Status, Error> {
    let settings = options.watch_settings()?;
    let mut watch = Watch::start(Tuner::new(options.settings())?, settings)?;
    let clock = RealClock::new(1, 1.0);
    clock.enter(0);
    let ended = loop {
        let now = clock.now();
        if let Some(ended) = watch.look(now)? {
            break ended;
        }
        if !told(&watch.status()) {
            break Ended::Stopped;
        }
        match options.duration {
            Some(duration) if now >= duration => break Ended::Time,
            Some(duration) => std::thread::sleep(REFRESH.min(Duration::from_nanos((duration - now).0))),
            None => std::thread::sleep(REFRESH),
        }
    };
    watch.end(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::read_keys;

    #[test]
    fn options_that_exclude_each_other() {
        for (text, said) in [
            (
                "apply = true\nwatch = true",
                "--watch: cannot be combined with --apply; allowed: one of --dry-run, --apply, ",
            ),
            ("duration = \"1h\"", "--for: cannot be combined with --dry-run; allowed: --dry-run without it"),
            ("watch = true\ndepth = \"1MiB\"", "--depth: cannot be combined with --watch; allowed: --watch without it"),
            ("restore = true\nkeys = {a = 1}", "--set: cannot be combined with --restore"),
        ] {
            let error = read_keys::<Options>(text.parse().expect("TOML")).map(|_| ()).expect_err(text).to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let watching: Options = read_keys("watch = true\nopenmetrics = \"x\"".parse().expect("TOML")).expect("fine");
        assert!(watching
            .watch_settings()
            .map(|_| ())
            .expect_err("no profile")
            .to_string()
            .starts_with("profile: is missing"));
    }
}
