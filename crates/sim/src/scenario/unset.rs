//! Keys that a scenario leaves out and that have no value to show in their place: their default depends on the run or on
//! another key, or there is none. What holds instead, in words.

use super::{Input, Scenario, Writes};

impl Scenario {
    /// Keys that are absent from [`Scenario::resolved`], and what holds in their place.
    #[must_use]
    pub fn computed_defaults(&self) -> Vec<(String, &'static str)> {
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
        let named = |(section, keys): (&str, Vec<(String, &'static str)>)| -> Vec<_> {
            keys.into_iter().map(|(key, words)| (format!("{section}.{key}"), words)).collect()
        };
        sections.into_iter().flat_map(named).collect()
    }

    fn unset_of_workload(&self) -> Vec<(String, &'static str)> {
        let workload = &self.workload;
        let mut found = Vec::new();
        if matches!(workload.input, Input::Pattern) {
            return found;
        }
        if workload.compute_total.is_none() {
            found.push(("compute_total".to_owned(), "none: think times are scaled to no sum"));
        }
        if workload.placement.is_none() && !self.is_inline() {
            let default = "\"table-order\" if the trace tells files apart, else \"address\"";
            found.push(("placement".to_owned(), default));
        }
        if self.resolved.get("workload").is_some_and(|keys| keys.get("chunk_blocks").is_none()) {
            found.push(("chunk_blocks".to_owned(), "64 where workload.addresses is \"compact-chunks\""));
        }
        if workload.limit.is_none() {
            found.push(("limit".to_owned(), "none: all requests"));
        }
        found
    }

    fn unset_of_cache(&self) -> Vec<(String, &'static str)> {
        match self.workload.writes {
            Writes::Back => Vec::new(),
            _ => vec![("write_delay".to_owned(), "\"30s\" where workload.writes is \"back\"")],
        }
    }

    fn unset_of_policy(&self) -> Vec<(String, &'static str)> {
        let policy = &self.policy;
        let row = headstart_policy::registry::POLICIES.iter().find(|row| row.name == policy.name);
        let computed = row.map_or(&[][..], |row| row.computed).iter();
        let absent = computed.filter(|(key, _)| !policy.keys.contains_key(*key));
        let mut found: Vec<_> = absent.map(|(key, words)| ((*key).to_owned(), *words)).collect();
        if policy.needs_hints() && policy.hints.is_none() {
            found.push(("hints".to_owned(), "none: every reference is disclosed"));
        }
        found
    }

    fn unset_of_device(&self) -> Vec<(String, &'static str)> {
        let device = &self.device;
        let mut found = Vec::new();
        let model = headstart_device::model(&device.model);
        if model.is_none() {
            found.push(("model".to_owned(), "its other keys are those of the profile"));
        }
        let absent = device.array.computed.iter().filter(|(key, _)| !device.array_keys.contains_key(*key));
        found.extend(absent.map(|(key, words)| (format!("array.{key}"), *words)));
        // Some models have a queue under that name themselves.
        let own_queue = model.is_some_and(|row| (row.defaults)().contains_key("queue_depth"));
        if device.array.is_independent() && device.commands.is_none() && !own_queue {
            found.push(("queue_depth".to_owned(), "none: a disk takes one command at a time"));
            found.push(("drive_scheduler".to_owned(), "\"sptf\" beside a queue_depth"));
        }
        let keys = self.resolved.get("device").and_then(|device| device.get("model"));
        let segments = keys.and_then(|keys| keys.get("buffer")?.get("segments"));
        if device.cache_segments.is_none() && (model.is_none() || segments.is_some()) {
            found.push(("cache_segments".to_owned(), "none: segments as the profile has them"));
        }
        if self.is_inline() && device.layout.is_none() {
            found.push(("layout".to_owned(), "none: blocks lie as array says"));
        }
        found
    }

    fn is_inline(&self) -> bool {
        matches!(self.workload.input, Input::References(_))
    }
}
