//! Keys that a scenario leaves out and that have no value to show in their place: their default depends on the run or on
//! another key, or there is none. What holds instead, in words.

use headstart_types::{absent_in_words, schema_of};
use toml::{Table, Value};

use super::cache::CacheSection;
use super::workload::WorkloadSection;
use super::{Input, Scenario, Writes};

impl Scenario {
    /// Keys that are absent from [`Scenario::resolved`], and what holds in their place.
    #[must_use]
    pub fn computed_defaults(&self) -> Vec<(String, String)> {
        let (cache, policy) = match self.lower.is_empty() {
            true => ("cache", "policy"),
            false => ("level[0]", "level[0].policy"),
        };
        let sections = [
            ("workload", self.unset_of_workload()),
            (cache, self.unset_of_cache()),
            (policy, self.unset_of_policy()),
            ("device", self.unset_of_device()),
        ];
        let named = |(section, keys): (&str, Vec<(String, String)>)| -> Vec<_> {
            keys.into_iter().map(|(key, words)| (format!("{section}.{key}"), words)).collect()
        };
        sections.into_iter().flat_map(named).collect()
    }

    fn unset_of_workload(&self) -> Vec<(String, String)> {
        let Some(given) = self.resolved.get("workload").and_then(Value::as_table) else { return Vec::new() };
        let mut found = match self.workload.input {
            Input::Pattern => Vec::new(),
            _ => absent_in_words(&schema_of::<WorkloadSection>(), given),
        };
        found.retain(|(key, _)| key != "placement" || !self.is_inline());
        found
    }

    fn unset_of_cache(&self) -> Vec<(String, String)> {
        let mut given = Table::new();
        if self.workload.writes == Writes::Back {
            given.insert("write_delay".to_owned(), true.into());
        }
        absent_in_words(&schema_of::<CacheSection>(), &given)
    }

    fn unset_of_policy(&self) -> Vec<(String, String)> {
        let policy = &self.policy;
        let mut found = policy.row().keys.absent(&policy.keys);
        if policy.needs_hints() && policy.hints.is_none() {
            found.push(absent("hints", "none: every reference is disclosed"));
        }
        found
    }

    fn unset_of_device(&self) -> Vec<(String, String)> {
        let device = &self.device;
        let mut found = Vec::new();
        let model = headstart_device::model(&device.model);
        if model.is_none() {
            found.push(absent("model", "its other keys are those of the profile"));
        }
        let unset = device.array.computed.iter().filter(|(key, _)| !device.array_keys.contains_key(*key));
        found.extend(unset.map(|(key, words)| (format!("array.{key}"), (*words).to_owned())));
        // Some models have a queue under that name themselves.
        let own_queue = model.is_some_and(|row| (row.defaults)().contains_key("queue_depth"));
        if device.array.is_independent() && device.commands.is_none() && !own_queue {
            found.push(absent("queue_depth", "none: a disk takes one command at a time"));
            found.push(absent("drive_scheduler", "\"sptf\" beside a queue_depth"));
        }
        let keys = self.resolved.get("device").and_then(|device| device.get("model"));
        let segments = keys.and_then(|keys| keys.get("buffer")?.get("segments"));
        if device.cache_segments.is_none() && (model.is_none() || segments.is_some()) {
            found.push(absent("cache_segments", "none: segments as the profile has them"));
        }
        if self.is_inline() && device.layout.is_none() {
            found.push(absent("layout", "none: blocks lie as array says"));
        }
        found
    }

    fn is_inline(&self) -> bool {
        matches!(self.workload.input, Input::References(_))
    }
}

fn absent(key: &str, words: &str) -> (String, String) {
    (key.to_owned(), words.to_owned())
}
