//! Replays requests that were timed on a real drive, and measures the model's error.
//!
//! The replay is closed, as DiskSim's of its "validate" traces: a request is sent `gap` after the previous one
//! completed in the model. The error measure is the *demerit* of Ruemmler and Wilkes (IEEE Computer 27(3), 1994,
//! "Evaluation"): the root mean square of the horizontal distance between the two cumulative distributions of service
//! times. DiskSim computes it from histograms with linear interpolation, at 10,000 levels; here each request is a
//! level, exactly.

use headstart_types::Nanos;

use crate::{Device, Request, Service};

/// One request of a timed trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    pub write: bool,
    pub sector: u64,
    /// Number of sectors, at least 1.
    pub sectors: u32,
    /// From the end of this request to the start of the next.
    pub gap: Nanos,
}

/// Sends `requests` to `device`, each `gap` after the previous one completed, and returns their services with the time
/// from start to end. The caller guarantees that they lie within the device's capacity.
pub fn replay<'a>(
    device: &'a mut dyn Device,
    requests: impl IntoIterator<Item = Timed> + 'a,
) -> impl Iterator<Item = (Nanos, Service)> + 'a {
    let mut now = Nanos::ZERO;
    requests.into_iter().map(move |timed| {
        let Timed { write, sector, sectors, gap } = timed;
        let service = device.serve(now, &Request { write, ..Request::read(sector, sectors, 0) });
        let took = service.end - now;
        now = service.end + gap;
        (took, service)
    })
}

/// Root mean square of the horizontal distance between two distributions of times, in nanoseconds: both are sorted and
/// compared rank by rank, the shorter one stretched to the length of the longer. 0 if either is empty.
#[must_use]
pub fn rms_demerit(measured: &[Nanos], modelled: &[Nanos]) -> f64 {
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    let (measured, modelled) = (sorted(measured), sorted(modelled));
    let levels = measured.len().max(modelled.len());
    if measured.is_empty() || modelled.is_empty() {
        return 0.0;
    }
    let at = |times: &[Nanos], level: usize| times[level * times.len() / levels].0 as f64;
    let squares: f64 = (0..levels).map(|level| (at(&measured, level) - at(&modelled, level)).powi(2)).sum();
    (squares / levels as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demerit_of_distributions() {
        let times = |values: &[u64]| values.iter().map(|value| Nanos(*value)).collect::<Vec<_>>();
        // The order does not matter.
        assert_eq!(rms_demerit(&times(&[1, 2, 3]), &times(&[3, 1, 2])), 0.0);
        // Distances 1, 1, 4: sqrt((1 + 1 + 16) / 3) = sqrt(6).
        assert_eq!(rms_demerit(&times(&[1, 2, 3]), &times(&[2, 7, 3])), 6.0_f64.sqrt());
        // Half as many: each stands for two.
        assert_eq!(rms_demerit(&times(&[1, 1, 5, 5]), &times(&[2, 6])), 1.0);
        assert_eq!(rms_demerit(&[], &times(&[2])), 0.0);
    }
}
