//! Omitted keys without a value to display: their default depends on the run or on another key, or there is none.
//! Describes what applies instead.

use headstart_types::{absent_in_words, Keys};
use toml::Table;

use super::cache::CacheSection;
use super::device::DeviceSection;
use super::workload::WorkloadSection;
use super::{Input, Scenario, Writes};

impl Scenario {
    /// Keys that are absent from [`Scenario::table`], and what applies instead.
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
        let mut found = match self.workload.input {
            Input::Pattern => Vec::new(),
            _ => absent_in_words(WorkloadSection::schema(), &self.workload.table()),
        };
        found.retain(|(key, _)| key != "placement" || !self.is_inline());
        found
    }

    fn unset_of_cache(&self) -> Vec<(String, String)> {
        let mut given = Table::try_from(&self.cache.section).expect("plain values");
        if self.workload.section.writes != Writes::Back {
            given.insert("write_cluster".to_owned(), true.into());
        }
        absent_in_words(CacheSection::schema(), &given)
    }

    fn unset_of_policy(&self) -> Vec<(String, String)> {
        let policy = &self.policy;
        let mut found = policy.row().keys.absent(&policy.policy.keys.table());
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
        let unset = device.array.keys.absent(&device.array_keys).into_iter();
        found.extend(unset.map(|(key, words)| (format!("array.{key}"), words)));
        // Some models have their own queue with that key.
        let own_queue = model.is_some_and(|row| row.keys.has("queue_depth"));
        let given = device.table();
        let buffer = given.get("model").and_then(|model| model.get("buffer"));
        let segments = buffer.is_some_and(|buffer| buffer.get("segments").is_some());
        let means_something = |key: &str| match key {
            "queue_depth" | "drive_scheduler" => device.array.is_independent() && !own_queue,
            "cache_segments" => model.is_none() || segments,
            "layout" => self.is_inline(),
            _ => true,
        };
        let unset = absent_in_words(DeviceSection::schema(), &given).into_iter();
        found.extend(unset.filter(|(key, _)| means_something(key)));
        found
    }

    fn is_inline(&self) -> bool {
        matches!(self.workload.input, Input::References(_))
    }
}

fn absent(key: &str, words: &str) -> (String, String) {
    (key.to_owned(), words.to_owned())
}
