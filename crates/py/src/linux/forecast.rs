//! Simulates what hints would save.

use std::path::PathBuf;

use headstart_hints::command::hinted_policy;
use headstart_hints::forecast::{forecast as run, Error, Forecast, Settings, OPEN};
use headstart_host::Roots;
use headstart_trace::hints::Recording;
use headstart_types::{keys, Bytes};
use toml::Table;

keys! {
    /// Options of `headstart forecast`.
    pub struct Options {
        /// A recording of `headstart record`.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "FILE", "x-file" = "own"))]
        pub hints: PathBuf = PathBuf::new(),
        /// Prefetch from this recording, for example an older one or another command's. Default: FILE.
        #[schemars(extend("x-names" = ["--hints"], "x-metavar" = "FILE", "x-file" = "own"))]
        pub prefetch: Option<PathBuf> = None,
        /// Model of the device that the recorded run waited for most: a name of `headstart list devices`, or a profile.
        /// Default: chosen by the recorded waits and the system's description of the device.
        #[schemars(extend("x-metavar" = "NAME|FILE", "x-file" = "url"))]
        pub device: Option<String> = None,
        /// Keys of the device that override those of its profile.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>", extend("x-names" = []))]
        pub device_keys: Table = Table::new(),
        /// Hinted policies, separated by commas. Default: all that `headstart run` supports.
        #[schemars(extend("x-comma" = true))]
        pub policies: Vec<String> = Vec::new(),
        /// Maxima of prefetched but unused data: sizes, separated by commas. Default: from 8MiB up to the amount that
        /// the hints need.
        #[schemars(extend("x-names" = ["--budget"], "x-metavar" = "SIZES", "x-comma" = true))]
        pub budgets: Vec<Bytes> = Vec::new(),
        /// The kernel's read-ahead. Default: the device's current setting.
        #[schemars(extend("x-metavar" = "SIZE"))]
        pub read_ahead: Option<Bytes> = None,
        /// Scheduler: a name of `headstart list schedulers`. Default: according to the kernel's setting.
        #[schemars(extend("x-metavar" = "NAME"))]
        pub scheduler: Option<String> = None,
        /// Forecast `headstart run --trust`.
        #[schemars(extend("x-names" = ["--trust"]))]
        pub trusted: bool = false,
        /// Start with all data in the page cache.
        #[schemars(extend("x-names" = []))]
        pub cached: bool = false,
    }
}

/// Forecasts the command of a recording with and without prefetching. `told` receives the share done, between runs.
pub fn forecast(options: &Options, told: &mut dyn FnMut(f64) -> bool) -> Result<Forecast, String> {
    // Maps keys of a scenario to options.
    let keys = [("policy.name:", "policies:"), ("policy:", "policies:"), ("device.scheduler:", "scheduler:")];
    let said = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let option = keys.iter().find_map(|(key, option)| Some(format!("{option}{}", text.strip_prefix(key)?)));
        option.unwrap_or(text)
    };
    let recording = Recording::read(&options.hints).map_err(|error| said(&error))?;
    let prefetch = options.prefetch.as_deref().map(Recording::read).transpose().map_err(|error| said(&error))?;
    let policies = options.policies.iter().map(|name| hinted_policy(name)).collect::<Result<_, _>>();
    let settings = Settings {
        device: options.device.clone().map(|name| (name, options.device_keys.clone())),
        scheduler: options.scheduler.clone(),
        policies: policies.map_err(|error| said(&error))?,
        budgets: options.budgets.iter().map(|budget| budget.0).collect(),
        read_ahead_bytes: options.read_ahead.map(|bytes| bytes.0),
        trusted: options.trusted,
        hints: prefetch,
        cached: options.cached,
        open: OPEN,
        roots: Roots::of_machine(),
    };
    run(&recording, &settings, told).map_err(|error| match error {
        Error::Empty => format!("{}: {error}", options.hints.display()),
        Error::Hints(_) => format!("{}: {error}", options.prefetch.as_ref().unwrap_or(&options.hints).display()),
        error => said(&error),
    })
}
