//! Hints from a trace: what clients read when the export, or the same image elsewhere, was served before.

use std::ops::Range;
use std::path::Path;

use headstart_hints::{Expected, Prepared};
use headstart_policy::registry::policy;
use headstart_trace::{selected, Selection};
use headstart_types::{printable_path, KeyError, Nanos};
use toml::Table;

use crate::Error;

/// The default policy for hints.
pub const POLICY: &str = "just-in-time";
/// Divisor: the part of the cache for prefetched but unused pages. The rest is for pages that are read again.
const CACHE_SHARE: u32 = 2;
/// Maximum number of pages taken from a trace; the read-ahead handles later ones.
const PAGES_MAX: u64 = 16 << 20;

/// Hints from the selected reads of a trace, for an export of `size_bytes` with `frames` pages of `page_bytes`, to be
/// followed by the policy `policy_name`.
///
/// # Errors
/// The trace cannot be read or has no reads of one export, the cache has no room, or there is no such policy.
pub fn hints(
    trace: (&Path, &Selection),
    policy_name: &str,
    (size_bytes, page_bytes, frames): (u64, u64, u32),
) -> Result<Prepared, Error> {
    let row = policy(policy_name).map_err(|error| KeyError::new("hint_policy", error.problem, error.allowed))?;
    if frames < CACHE_SHARE {
        let problem = format!("a cache of {frames} pages has no room for what they name");
        return Err(KeyError::new("hints", problem, "a larger --cache").into());
    }
    let (pages, elapsed) = reads(trace, size_bytes, page_bytes)?;
    let budget_pages = u64::from(frames / CACHE_SHARE);
    let expected = Expected { row, keys: Table::new(), pages, elapsed, page_bytes, budget_pages };
    let unfit = |error: KeyError| KeyError::new("hint_policy", error.problem, error.allowed);
    Ok(Prepared::try_new(expected).map_err(unfit)?)
}

/// The page ranges read, in trace order and within the export, and the time of the last request.
fn reads(
    (path, selection): (&Path, &Selection),
    size_bytes: u64,
    page_bytes: u64,
) -> Result<(Vec<Range<u64>>, Nanos), Error> {
    let refused =
        |problem: &str, allowed: &str| KeyError::new("hints", format!("{} {problem}", printable_path(path)), allowed);
    let mut reader = selected(headstart_trace::open(path, "auto")?, selection)?;
    if !reader.carries().addresses {
        return Err(refused("has requests without addresses", "a trace of --record, or of one device").into());
    }
    let (mut runs, mut count, mut elapsed): (Vec<Range<u64>>, u64, Nanos) = (Vec::new(), 0, Nanos::ZERO);
    let (mut file, mut batch) = (None, Vec::new());
    while count < PAGES_MAX && reader.read(&mut batch)? {
        for record in batch.iter().filter(|record| !record.write) {
            if *file.get_or_insert(record.file) != record.file {
                return Err(refused("has reads of several files or exports", "a trace of one").into());
            }
            elapsed = record.time;
            let end = record.offset.saturating_add(record.size).min(size_bytes);
            if record.offset >= end {
                continue;
            }
            let run = record.offset / page_bytes..end.div_ceil(page_bytes);
            let run = run.start..run.end.min(run.start + PAGES_MAX);
            count += run.end - run.start;
            match runs.last_mut() {
                Some(last) if last.end == run.start && run.end - last.start <= PAGES_MAX => last.end = run.end,
                _ => runs.push(run),
            }
        }
    }
    if runs.is_empty() {
        return Err(refused("has no read within the export", "a trace with reads of the export").into());
    }
    Ok((runs, elapsed))
}
