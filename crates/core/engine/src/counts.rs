//! The counts of a level and their form in results, in one table. Only [`crate::Level`] adds to the counters.

use schemars::JsonSchema;
use serde::Serialize;

/// A metric of a result that comes from a level's counts.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its key in the result's JSON.
    pub name: &'static str,
    /// Its type, `u64` or `f64`.
    pub kind: &'static str,
    /// Its description.
    pub summary: &'static str,
    /// Whether it is also reported for the application, not only for each level.
    pub of_result: bool,
    /// The counter, if it is one and not computed from others.
    pub counter: Option<fn(&Counts) -> u64>,
}

/// Generates counters, reports and the list of metrics from the lines of the table. A line `name: type` is a counter,
/// which is summed over levels and reported as it is; a line `name = kind: value` is only reported, computed from
/// counters.
macro_rules! counts {
    (
        result { $(#[doc = $one_doc:literal] $one:ident $(: $one_count:ty)? $(= $one_kind:ident: $one_value:expr)?,)* }
        level { $(#[doc = $two_doc:literal] $two:ident $(: $two_count:ty)? $(= $two_kind:ident: $two_value:expr)?,)* }
        sums { $(#[doc = $sum_doc:literal] $sum:ident: $sum_count:ty,)* }
    ) => {
        counts!(@counters
            $($([#[doc = $one_doc] $one: $one_count])?)*
            $($([#[doc = $two_doc] $two: $two_count])?)*
            $([#[doc = $sum_doc] $sum: $sum_count])*);

        /// The counts of a result, and of each of its levels.
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        pub struct CountsReport {
            $(#[doc = $one_doc] pub $one: counts!(@kind $($one_kind)?),)*
        }

        /// Metrics of each level about its prefetches and about the traffic to the level above.
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        pub struct LevelCountsReport {
            $(#[doc = $two_doc] pub $two: counts!(@kind $($two_kind)?),)*
        }

        impl Counts {
            /// The counts as reported in the result.
            #[must_use]
            pub fn report(&self) -> CountsReport {
                CountsReport { $($one: counts!(@value (self, 0) $one $($one_value)?),)* }
            }

            /// The counts as reported for a level with blocks of `block_bytes`.
            #[must_use]
            pub fn level_report(&self, block_bytes: u64) -> LevelCountsReport {
                LevelCountsReport { $($two: counts!(@value (self, block_bytes) $two $($two_value)?),)* }
            }
        }

        /// All metrics, in the order of results.
        pub const METRICS: &[Metric] = &[
            $(counts!(@metric $one, counts!(@said $($one_kind)?), $one_doc, true, counts!(@counter $one $($one_kind)?)),)*
            $(counts!(@metric $two, counts!(@said $($two_kind)?), $two_doc, false, counts!(@counter $two $($two_kind)?)),)*
        ];
    };
    (@counters $([#[doc = $doc:literal] $name:ident: $type:ty])*) => {
        /// Counts of one level since the start.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Counts {
            $(#[doc = $doc] pub $name: $type,)*
        }

        impl Counts {
            /// Adds another level's counts.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
    (@kind) => { u64 };
    (@kind $kind:ident) => { $kind };
    (@said) => { "u64" };
    (@said $kind:ident) => { stringify!($kind) };
    (@value ($counts:expr, $bytes:expr) $name:ident) => { $counts.$name };
    (@value ($counts:expr, $bytes:expr) $name:ident $value:expr) => {{
        let value: fn(&Counts, u64) -> _ = $value;
        value($counts, $bytes)
    }};
    (@counter $name:ident) => { Some(|counts| counts.$name) };
    (@counter $name:ident $kind:ident) => { None };
    (@metric $name:ident, $kind:expr, $summary:expr, $of_result:expr, $counter:expr) => {
        Metric {
            name: stringify!($name),
            kind: $kind,
            summary: $summary.trim_ascii(),
            of_result: $of_result,
            counter: $counter,
        }
    };
}

counts! {
    result {
        /// Blocks requested, including those still waited for; = `hits_ready` + `hits_unready` + `misses`.
        references: u64,
        /// References that found their block resident.
        hits_ready: u64,
        /// References that found their block in flight, requested at an earlier instant.
        hits_unready: u64,
        /// All other references; = `demand_fetches` + `write_misses`, with one process.
        misses: u64,
        /// Mean wait of `hits_unready` until their blocks arrived.
        hit_wait_ns_mean = u64: |counts, _| mean_ns(counts.hit_wait_ns, counts.hits_unready),
        /// = `demand_fetches` + `prefetches`.
        fetches = u64: |counts, _| counts.fetches(),
        /// Fetches of a block that a process waits for or is about to reference.
        demand_fetches: u64,
        /// Fetches of other blocks; = `prefetches_used` + `prefetches_wasted`.
        prefetches: u64,
        /// Those of `prefetches` whose block was referenced before it was evicted.
        prefetches_used: u64,
        /// Those of `prefetches_used` that were still in flight when referenced.
        prefetches_late: u64,
        /// Those of `prefetches` whose block was not referenced.
        prefetches_wasted = u64: |counts, _| counts.prefetches_wasted(),
        /// Number of evicted blocks.
        evictions: u64,
        /// Those of `references` that wrote, where writes reach the devices.
        writes: u64,
        /// Those of `misses` that wrote: the block took a frame without a fetch.
        write_misses: u64,
        /// Blocks written to devices, or to the level below.
        blocks_written: u64,
    }
    level {
        /// `prefetches_used` over `prefetches`, 0 to 1.
        accuracy = f64: |counts, _| share(counts.prefetches_used, counts.prefetches),
        /// `prefetches_used` over these plus the read misses, 0 to 1: the share of misses that prefetching avoided.
        coverage = f64: |counts, _| {
            share(counts.prefetches_used, counts.prefetches_used + counts.misses - counts.write_misses)
        },
        /// `prefetches_late` over `prefetches_used`, 0 to 1.
        lateness = f64: |counts, _| share(counts.prefetches_late, counts.prefetches_used),
        /// Mean time from a used prefetch's arrival to its first request; late prefetches count as zero.
        lead_ns_mean = u64: |counts, _| mean_ns(counts.lead_time_ns, counts.prefetches_used),
        /// Demand misses on blocks that were evicted to make room for a prefetch.
        pollution: u64,
        /// Bytes of `prefetches_wasted`.
        wasted_bytes = u64: |counts, block_bytes| counts.prefetches_wasted() * block_bytes,
        /// Service time of prefetches that were evicted unused, each with its share of its request.
        wasted_service_ns: u64,
        /// Those of `bypass_blocks` that were resident: served without the policy's knowledge.
        silent_hits: u64,
        /// Those of `references` that bypassed the policy.
        bypass_blocks: u64,
        /// Those of `demand_fetches` whose block bypassed the policy; not stored unless the policy also requested it.
        bypass_fetches: u64,
        /// Blocks that a coordinator added to requests.
        readmore_blocks: u64,
    }
    sums {
        /// Sum of the completed waits of `hits_unready`.
        hit_wait_ns: u128,
        /// Sum over used prefetches that had arrived: time from arrival to first request.
        lead_time_ns: u128,
    }
}

impl Counts {
    /// Demand fetches plus prefetches.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.demand_fetches + self.prefetches
    }

    /// Prefetches without a reference: evicted, still resident or still in flight.
    #[must_use]
    pub fn prefetches_wasted(&self) -> u64 {
        self.prefetches - self.prefetches_used
    }
}

/// The mean of `count` times with sum `sum_ns`; 0 if there are none. Each time is shorter than a run, so the mean fits.
#[must_use]
pub fn mean_ns(sum_ns: u128, count: u64) -> u64 {
    sum_ns.checked_div(u128::from(count)).unwrap_or(0) as u64
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_the_metrics_in_their_order() {
        let counts = Counts { references: 7, hits_unready: 2, hit_wait_ns: 9, prefetches: 4, ..Counts::default() };
        assert_eq!((counts.report().references, counts.report().hit_wait_ns_mean), (7, 4));
        assert_eq!(counts.level_report(8).wasted_bytes, 32);
        let mut sum = counts.clone();
        sum.add(&counts);
        assert_eq!((sum.references, sum.hit_wait_ns, sum.prefetches), (14, 18, 8));
        let shown = |metric: &&Metric| metric.of_result;
        assert_eq!(METRICS.iter().filter(shown).count(), 15);
        let last = METRICS.last().expect("there are some");
        assert_eq!(
            (last.name, last.kind, last.summary),
            ("readmore_blocks", "u64", "Blocks that a coordinator added to requests.")
        );
    }
}
