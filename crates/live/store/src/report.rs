//! The report of a store.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use headstart_engine::Summary;
use headstart_types::OpenMetrics;
use schemars::JsonSchema;
use serde::Serialize;

use crate::history::History;
use crate::shelf::Totals;
use crate::store::Store;

/// What one more of it would save.
const MORE_BYTES: u64 = 1 << 30;

/// What a store has done so far.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this form.
    #[schemars(with = "serde_json::Value")] // Any type but a number's: it is no metric.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// Time since the start.
    pub elapsed_ns: u64,
    /// Where the objects are.
    pub source: String,
    /// Where clients can connect.
    pub urls: Vec<String>,
    /// Programs that are connected to the Unix socket.
    #[schemars(extend("x-metric" = "gauge"))]
    pub clients: usize,
    /// Size of the cache in memory.
    #[schemars(extend("x-metric" = "gauge"))]
    pub cache_bytes: u64,
    /// The part of it that is used.
    #[schemars(extend("x-metric" = "gauge"))]
    pub used_bytes: u64,
    /// Size of the spill; 0 without one.
    #[schemars(extend("x-metric" = "gauge"))]
    pub spill_bytes: u64,
    /// The part of it that is used.
    #[schemars(extend("x-metric" = "gauge"))]
    pub spilled_bytes: u64,
    /// Time from a request to the moment at which all of it was in memory.
    pub wait_ns: Summary,
    /// Sum of these times.
    pub waited_ns: u64,
    /// Counts of bytes.
    #[serde(flatten)]
    pub totals: Totals,
    /// Requests to the source for bytes.
    pub get_requests: u64,
    /// The part of them that repeated what had failed.
    pub repeated_requests: u64,
    /// The part of them that was sent because another one took long.
    pub hedged_requests: u64,
    /// The part of these that was answered first.
    pub hedged_first_requests: u64,
    /// Questions to the source about single objects.
    pub head_requests: u64,
    /// Listings of the source.
    pub list_requests: u64,
    /// Time of a request to the source.
    pub response_ns: Summary,
    /// Entries of the orders that readers disclosed.
    pub disclosed_entries: u64,
    /// Bytes of these entries.
    pub disclosed_bytes: u64,
    /// The least that a cache of this size could have fetched for what was read; null until the end, or after too many
    /// reads.
    pub optimum_bytes: Option<u64>,
    /// What a cache that is larger by 1 GiB could have saved of that.
    pub next_gib_saves_bytes: Option<u64>,
    /// Waits and bytes over time.
    pub history: History,
}

impl Store {
    /// What has been done so far; `is_last`: with the optimum, which takes a pass over all reads.
    #[must_use]
    pub fn report(self: &Arc<Self>, urls: &[String], clients: usize, is_last: bool) -> Report {
        let inner = self.lock();
        let limits = inner.shelf.limits();
        let (used_bytes, spilled_bytes) = inner.shelf.used();
        let cache = limits.memory_bytes + limits.spill_bytes;
        let least = |cache| if is_last { inner.reads.optimum(cache) } else { None };
        let optimum_bytes = least(cache);
        let next_gib_saves_bytes = optimum_bytes.zip(least(cache + MORE_BYTES)).map(|(now, more)| now - more);
        let (disclosed_entries, disclosed_bytes) = inner.shelf.orders().disclosed;
        let counters = &self.counters;
        Report {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            elapsed_ns: self.now().0,
            source: self.source.name().to_owned(),
            urls: urls.to_vec(),
            clients,
            cache_bytes: limits.memory_bytes,
            used_bytes,
            spill_bytes: limits.spill_bytes,
            spilled_bytes,
            wait_ns: inner.waits.summary(),
            waited_ns: inner.waited.0,
            totals: inner.shelf.totals.clone(),
            get_requests: counters.gets.load(Relaxed),
            repeated_requests: counters.repeated.load(Relaxed),
            hedged_requests: counters.hedged.load(Relaxed),
            hedged_first_requests: counters.hedges_won.load(Relaxed),
            head_requests: counters.heads.load(Relaxed),
            list_requests: counters.lists.load(Relaxed),
            response_ns: inner.responses.summary(),
            disclosed_entries,
            disclosed_bytes,
            optimum_bytes,
            next_gib_saves_bytes,
            history: inner.history.clone(),
        }
    }
}

impl Report {
    /// The report in the text format of OpenMetrics.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut metrics = OpenMetrics::new("headstart_store_", &[]);
        metrics.counter(
            "waited_seconds",
            "seconds",
            "Time that readers waited, the sum over all",
            self.waited_ns as f64 / 1e9,
        );
        for (name, help, times) in [
            ("wait_seconds", "From a request to the moment at which all of it was in memory", &self.wait_ns),
            ("response_seconds", "Requests to the source", &self.response_ns),
        ] {
            let quantiles = [("0.5", times.p50), ("0.9", times.p90), ("0.99", times.p99)];
            let sample = |(quantile, ns): (&str, u64)| (format!(" quantile=\"{quantile}\""), ns as f64 / 1e9);
            let samples = quantiles.map(sample);
            let samples = samples.each_ref().map(|(name, value)| (name.as_str(), *value));
            metrics.family(name, "summary", "seconds", help, &samples);
        }
        metrics.reports("", &[(String::new(), self)]);
        metrics.finish()
    }
}
