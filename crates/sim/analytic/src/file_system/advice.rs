//! Which parameter to change, and the gain according to the model.
//!
//! Each parameter is varied alone, over a short list of values; the best value of each is kept if it gains anything.
//! The last suggestion combines all of them. A gain refers to the sum of the times of a file's requests, not to one
//! request's time: larger requests take longer each.

use headstart_types::{Bytes, KeyError};

use super::equations::response;
use super::parameters::{FileSystem, Parameters, Prefetch, Scheduler};
use super::seeks::Seeks;

/// A suggested change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The settings to change.
    pub set: KeyValues,
    /// Sum of the response times of a file's requests afterwards.
    pub total_ns: f64,
    /// The reduction as a share of the time before: 0 to 1.
    pub gain: f64,
}

/// Minimum gain to report.
const LEAST_GAIN: f64 = 0.001;
/// Maximum cluster and read-ahead size to try: the largest in later file systems.
const CLUSTER_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of the application's requests to try.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// Keys of Python's `headstart.model.file_system` with their values.
pub type KeyValues = Vec<(&'static str, String)>;
type Candidate = (Parameters, KeyValues);
/// Values of one parameter to try.
type Family = fn(&Parameters) -> Vec<Candidate>;

/// By the main parameter that they change.
const FAMILIES: [(&str, Family); 7] = [
    ("prefetch_first", firsts),
    ("prefetch_limit", limits),
    ("cluster", clusters),
    ("cache_segments", segments),
    ("read_ahead", read_ahead),
    ("scheduler", clook),
    ("request", requests),
];

/// Suggested changes, best first; if it gains more, the combination of all comes last, found by varying each parameter
/// again on top of the others. Parameters in `but` are not changed.
///
/// # Errors
/// If a parameter is out of range.
pub fn advise(parameters: &Parameters, seeks: &mut Seeks, but: &[&str]) -> Result<Vec<Advice>, KeyError> {
    let before = response(parameters, seeks)?.total_ns;
    let mut alone: Vec<(Advice, Family)> = Vec::new();
    for (_, family) in FAMILIES.into_iter().filter(|(key, _)| !but.contains(key)) {
        if let Some((_, set, total_ns)) = best(family(parameters), before, seeks)? {
            alone.push((Advice { set, total_ns, gain: 1.0 - total_ns / before }, family));
        }
    }
    alone.sort_by(|(one, _), (other, _)| other.gain.total_cmp(&one.gain));
    let together = together(parameters, alone.iter().map(|(_, family)| *family), before, seeks)?;
    let most = alone.first().map_or(0.0, |(advice, _)| advice.gain);
    let more = together.filter(|together| together.gain > most + LEAST_GAIN);
    Ok(alone.into_iter().map(|(advice, _)| advice).chain(more).collect())
}

/// The change with the least time, if it gains compared to `before`.
fn best(
    candidates: Vec<Candidate>,
    before: f64,
    seeks: &mut Seeks,
) -> Result<Option<(Parameters, KeyValues, f64)>, KeyError> {
    let mut best = None;
    let mut enough = before * (1.0 - LEAST_GAIN);
    for (changed, set) in candidates {
        let total_ns = response(&changed, seeks)?.total_ns;
        // Among equals the first, which changes less.
        if total_ns < enough {
            enough = total_ns - before * LEAST_GAIN;
            best = Some((changed, set, total_ns));
        }
    }
    Ok(best)
}

fn together(
    parameters: &Parameters,
    families: impl Iterator<Item = Family>,
    before: f64,
    seeks: &mut Seeks,
) -> Result<Option<Advice>, KeyError> {
    let (mut now, mut set, mut total_ns) = (*parameters, KeyValues::new(), before);
    for family in families {
        if let Some((changed, more, less_ns)) = best(family(&now), total_ns, seeks)? {
            set.retain(|(key, _)| more.iter().all(|(other, _)| other != key));
            set.extend(more);
            (now, total_ns) = (changed, less_ns);
        }
    }
    Ok((!set.is_empty()).then_some(Advice { set, total_ns, gain: 1.0 - total_ns / before }))
}

fn sizes(least: u64, most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(least), |bytes| bytes.checked_mul(2)).take_while(move |bytes| *bytes <= most)
}

fn text(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// A larger limit, up to the cluster; for a file system without read-ahead, enables it.
fn limits(now: &Parameters) -> Vec<Candidate> {
    let FileSystem { block_bytes, cluster_bytes, prefetch, .. } = now.file_system;
    let most = cluster_bytes.min(CLUSTER_BYTES_MAX);
    match prefetch {
        Prefetch::Off => sizes(2 * block_bytes, most).map(|limit| prefetching(now, block_bytes, limit)).collect(),
        Prefetch::Doubling { first_bytes, limit_bytes } => {
            let only_limit = |limit| {
                let (changed, mut set) = prefetching(now, first_bytes, limit);
                set.remove(0);
                (changed, set)
            };
            sizes(2 * limit_bytes, most).map(only_limit).collect()
        }
    }
}

/// A larger first request, up to the limit: if limit and cluster are equal, the whole cluster at once (section 6).
fn firsts(now: &Parameters) -> Vec<Candidate> {
    let Prefetch::Doubling { first_bytes, limit_bytes } = now.file_system.prefetch else { return Vec::new() };
    let only_first = |first| {
        let (changed, mut set) = prefetching(now, first, limit_bytes);
        set.truncate(1);
        (changed, set)
    };
    sizes(2 * first_bytes, limit_bytes - 1).chain([limit_bytes]).map(only_first).collect()
}

fn prefetching(now: &Parameters, first_bytes: u64, limit_bytes: u64) -> Candidate {
    let mut changed = *now;
    changed.file_system.prefetch = Prefetch::Doubling { first_bytes, limit_bytes };
    (changed, vec![("prefetch_first", text(first_bytes)), ("prefetch_limit", text(limit_bytes))])
}

/// Larger clusters, read ahead up to their size.
fn clusters(now: &Parameters) -> Vec<Candidate> {
    let doubled = now.file_system.cluster_bytes.saturating_mul(2);
    let grown = |cluster_bytes: u64| {
        let mut changed = *now;
        changed.file_system.cluster_bytes = cluster_bytes;
        let mut set = vec![("cluster", text(cluster_bytes))];
        if let Prefetch::Doubling { first_bytes, limit_bytes } = now.file_system.prefetch {
            let limit_bytes = limit_bytes.max(cluster_bytes);
            changed.file_system.prefetch = Prefetch::Doubling { first_bytes, limit_bytes };
            set.push(("prefetch_limit", text(limit_bytes)));
        }
        (changed, set)
    };
    sizes(doubled, CLUSTER_BYTES_MAX).map(grown).collect()
}

/// As many cache segments as streams (section 6).
fn segments(now: &Parameters) -> Vec<Candidate> {
    let mut changed = *now;
    changed.disk.cache_segments = now.disk.cache_segments.max(now.work.streams);
    vec![(changed, vec![("cache_segments", changed.disk.cache_segments.to_string())])]
}

fn read_ahead(now: &Parameters) -> Vec<Candidate> {
    let mut changed = *now;
    changed.disk.read_ahead = true;
    vec![(changed, vec![("read_ahead", "true".to_owned())])]
}

/// First come, first served is never suggested: in the tables' form it seems to gain for 2 or 3 streams, because the
/// way back is then the whole cost of the queue's order; this is a weakness of that form.
fn clook(now: &Parameters) -> Vec<Candidate> {
    let mut changed = *now;
    changed.disk.scheduler = Scheduler::Clook;
    vec![(changed, vec![("scheduler", "clook".to_owned())])]
}

fn requests(now: &Parameters) -> Vec<Candidate> {
    let larger = |request_bytes: u64| {
        let mut changed = *now;
        changed.work.request_bytes = request_bytes;
        (changed, vec![("request", text(request_bytes))])
    };
    sizes(2 * now.work.request_bytes, REQUEST_BYTES_MAX.min(now.work.file_bytes)).map(larger).collect()
}
