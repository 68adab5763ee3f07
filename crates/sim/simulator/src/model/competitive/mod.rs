//! The questions of Python's `headstart.model.competitive`: the depth of competitive prefetching on a drive, or for
//! given numbers, by position and by concurrency, and its guarantees. The equations are in
//! `headstart_analytic::competitive`.

mod amount;
mod places;
#[cfg(test)]
mod tests;

use headstart_analytic::competitive::{
    competitive_depth, competitive_ratio, expected_seek, whole_pages, worst, Schedule,
};
use headstart_types::KeyError;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::Error;
use places::{places, Arm, Places, RateAt};

pub use amount::{Amount, Kind};

/// Default numbers of concurrent requests.
const CONCURRENCY: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Two random positions: the mean on data sheets, and equation (5) for two requests.
const TWO: u32 = 2;
/// A larger concurrency is an error.
const CONCURRENCY_MAX: u32 = 1 << 16;
/// What defines a switch.
const ALLOWED: &str = "a drive, or seek, rotation and rate together";

/// A drive or numbers, and the requested depths.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompetitiveQuestion {
    /// A model's name or a profile's path.
    pub drive: Option<String>,
    /// Keys that override the drive's.
    #[serde(default)]
    pub keys: Table,
    /// Without a drive: the average seek time.
    pub seek: Option<Amount>,
    /// Without a drive: the average rotational latency, half a revolution.
    pub rotation: Option<Amount>,
    /// Without a drive: the transfer rate.
    pub rate: Option<Amount>,
    /// Numbers of requests that the scheduler can choose from, one per row.
    pub concurrency: Option<Vec<u32>>,
    /// Size of a page.
    pub page: Amount,
    /// The first prefetch of a slow start; 0 for none.
    pub slow_start: Amount,
    /// Size of the part of the drive, from its start, that holds the data; by default all of it.
    pub dataset: Option<Amount>,
}

/// The results for competitive prefetching. Times, sizes and rates are rounded to whole numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of the first prefetch of the slow start; 0 if there is none.
    pub slow_start_bytes: u64,
    /// Bytes over which the data are spread; absent for given numbers.
    pub dataset_bytes: Option<u64>,
    /// Between two random positions.
    pub average: Switch,
    /// By number of concurrent requests; empty for given numbers, which have no seek curve.
    pub concurrency: Vec<Switch>,
    /// For the average switch and the mean rate.
    pub guarantees: Vec<Guarantee>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A switch and the resulting depths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Switch {
    /// Requests that the scheduler can choose from.
    pub requests: u32,
    /// Mean seek.
    pub seek_ns: u64,
    /// Mean rotational latency.
    pub rotation_ns: u64,
    /// Their sum.
    pub switch_ns: u64,
    /// By position.
    pub depths: Vec<Depth>,
}

/// The competitive depth at a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Depth {
    /// "outer", "mean" or "inner"; "given" for given numbers.
    pub place: &'static str,
    /// Rate of a long read there.
    pub bytes_per_s: u64,
    /// Not rounded to pages.
    pub depth_bytes: u64,
    /// In whole pages.
    pub depth_pages: u64,
}

/// The worst-case cost of a schedule relative to the optimum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guarantee {
    /// Whether the depth is rounded to pages.
    pub whole_pages: bool,
    /// The depth at which the slow start ends.
    pub depth_bytes: u64,
    /// P.
    pub slow_prefetches: u64,
    /// T.
    pub slow_bytes: u64,
    /// 2 + P: every stream costs less than this many times the optimum. Absent for rounded depths.
    pub bound: Option<f64>,
    /// The least upper bound of the ratio.
    pub worst_ratio: f64,
    /// It is approached by streams just longer than this; absent if by ever longer ones.
    pub worst_above_bytes: Option<u64>,
}

/// Answers a question.
///
/// # Errors
/// If the drive is unknown or has no moving parts, or a number is out of range, missing, or not applicable.
pub fn competitive(question: &CompetitiveQuestion) -> Result<Answer, Error> {
    let page = question.page.at_least("page", Kind::Size, 1.0)?.round();
    let slow_start = question.slow_start.at_least("slow_start", Kind::Size, 0.0)?;
    let places = asked(question)?;
    let switch = |requests: u32, seek: f64| {
        let time = seek + places.rotation_ns;
        let depth = |place: &RateAt| {
            let bytes = competitive_depth(time, place.bytes_per_second);
            Depth {
                place: place.name,
                bytes_per_s: whole(place.bytes_per_second),
                depth_bytes: whole(bytes),
                depth_pages: whole(whole_pages(bytes, page) / page),
            }
        };
        Switch {
            requests,
            seek_ns: whole(seek),
            rotation_ns: whole(places.rotation_ns),
            switch_ns: whole(time),
            depths: places.rates.iter().map(depth).collect(),
        }
    };
    let (seek, concurrency) = match &places.arm {
        Arm::Curve(curve) => {
            let counts = question.concurrency.as_deref().unwrap_or(&CONCURRENCY);
            let row = |requests: &u32| switch(*requests, expected_seek(curve, *requests));
            (expected_seek(curve, TWO), counts.iter().map(row).collect())
        }
        Arm::Mean(seek) => (*seek, Vec::new()),
    };
    let time = seek + places.rotation_ns;
    Ok(Answer {
        page_bytes: whole(page),
        slow_start_bytes: whole(slow_start),
        dataset_bytes: places.dataset_bytes.map(whole),
        average: switch(TWO, seek),
        concurrency,
        guarantees: guarantees(time, places.mean().bytes_per_second, page, slow_start),
        notes: places.note.into_iter().collect(),
    })
}

/// Without and with a slow start, at the exact depth and in whole pages.
fn guarantees(switch_ns: f64, bytes_per_second: f64, page: f64, slow_start: f64) -> Vec<Guarantee> {
    let exact = competitive_depth(switch_ns, bytes_per_second);
    let of = |first: f64, rounded: bool| {
        let depth = if rounded { whole_pages(exact, page) } else { exact };
        let schedule = Schedule::slow_start(first, depth);
        let found = worst(&schedule, switch_ns, bytes_per_second);
        Guarantee {
            whole_pages: rounded,
            depth_bytes: whole(depth),
            slow_prefetches: schedule.slow_prefetches(),
            slow_bytes: whole(schedule.slow_bytes()),
            bound: (!rounded).then(|| competitive_ratio(schedule.slow_prefetches())),
            worst_ratio: found.ratio,
            worst_above_bytes: found.above_bytes.is_finite().then(|| whole(found.above_bytes)),
        }
    };
    let starts: &[f64] = if slow_start > 0.0 { &[0.0, slow_start] } else { &[0.0] };
    starts.iter().flat_map(|first| [of(*first, false), of(*first, true)]).collect()
}

/// The drive's switch and rates, or the given numbers.
fn asked(question: &CompetitiveQuestion) -> Result<Places, Error> {
    let numbers = [("seek", &question.seek), ("rotation", &question.rotation), ("rate", &question.rate)];
    let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed).into());
    let Some(name) = &question.drive else {
        if numbers.iter().all(|(_, number)| number.is_none()) {
            return refused("drive", "is missing", ALLOWED);
        }
        if let Some((key, _)) = numbers.iter().find(|(_, number)| number.is_none()) {
            return refused(key, "is missing", ALLOWED);
        }
        let of_drives = [
            ("concurrency", question.concurrency.is_some()),
            ("dataset", question.dataset.is_some()),
            ("keys", !question.keys.is_empty()),
        ];
        if let Some((key, _)) = of_drives.iter().find(|(_, given)| *given) {
            return refused(key, "needs a drive, with its seek curve and zones", "beside a drive");
        }
        return given(question);
    };
    if let Some((key, _)) = numbers.iter().find(|(_, number)| number.is_some()) {
        return refused(key, "is given together with a drive, which has its own", ALLOWED);
    }
    if question.concurrency.iter().flatten().any(|count| !(1..=CONCURRENCY_MAX).contains(count)) {
        return refused("concurrency", "a number is out of range", &format!("1 to {CONCURRENCY_MAX}"));
    }
    let dataset = question.dataset.as_ref().map(|size| size.at_least("dataset", Kind::Size, 1.0)).transpose()?;
    places(name, &question.keys, dataset)
}

fn given(question: &CompetitiveQuestion) -> Result<Places, Error> {
    let number = |amount: &Option<Amount>, key: &str, kind: Kind, least: f64| match amount {
        Some(amount) => amount.at_least(key, kind, least),
        None => Err(KeyError::new(key, "is missing", ALLOWED)),
    };
    let seek_ns = number(&question.seek, "seek", Kind::Time, 0.0)?;
    let rotation_ns = number(&question.rotation, "rotation", Kind::Time, 0.0)?;
    let bytes_per_second = number(&question.rate, "rate", Kind::Rate, 1.0)?;
    if seek_ns + rotation_ns == 0.0 {
        return Err(KeyError::new("seek", "there is no switch to amortise", "a seek or a rotation above zero").into());
    }
    let rates = vec![RateAt { name: "given", bytes_per_second }];
    Ok(Places { arm: Arm::Mean(seek_ns), rotation_ns, rates, dataset_bytes: None, note: None })
}

fn whole(number: f64) -> u64 {
    number.round() as u64
}
