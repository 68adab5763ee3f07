//! Traces faults of mapped files within a budget.
//!
//! Faults of cached pages are traced too and may be numerous: after a second with more events than the budget, tracing
//! pauses for ten seconds.

use std::io;

use headstart_types::Nanos;

use super::events::{FaultEvent, Line, Lines};
use super::instance::Source;

/// Events per second before tracing pauses: 2.6 % of a processor at the cost per event (docs/tune.md). A disk that
/// reads 250 MB/s for faults causes half as many.
const BUDGET: u64 = 20_000;
const SECOND: Nanos = Nanos::from_millis(1_000);
/// Duration of a pause. Both values are our choice.
const PAUSE: Nanos = Nanos::from_millis(10_000);

/// Result of one look at the faults.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// Events that were overwritten before they were read.
    pub lost: u64,
    /// Whether tracing was paused meanwhile.
    pub blind: bool,
}

/// Fault events within the budget.
#[derive(Debug)]
pub(super) struct Faults<S> {
    source: S,
    lines: Lines,
    /// Start of the current second, and its events.
    since: Nanos,
    events: u64,
    paused_until: Option<Nanos>,
    /// Number of pauses.
    pub pauses: u64,
}

impl<S: Source> Faults<S> {
    pub fn new(source: S) -> Self {
        let (since, events) = (Nanos::ZERO, 0);
        Self { source, lines: Lines::default(), since, events, paused_until: None, pauses: 0 }
    }

    /// Passes the events since the last call to `each`.
    ///
    /// # Errors
    /// An error of the system.
    pub fn take(&mut self, now: Nanos, mut each: impl FnMut(FaultEvent)) -> io::Result<Taken> {
        if let Some(until) = self.paused_until {
            if now >= until {
                self.paused_until = None;
                (self.since, self.events) = (now, 0);
                self.source.set_tracing(true)?;
            }
            return Ok(Taken { lost: 0, blind: true });
        }
        let (mut events, mut lost) = (0, 0);
        let Self { source, lines, .. } = self;
        source.take(&mut |piece| {
            lines.take(piece, |line| {
                events += 1;
                match line {
                    Line::Fault(event) => each(event),
                    Line::Lost(count) => lost += count,
                    Line::Served(..) | Line::Other => {}
                }
            });
        })?;
        if now >= self.since + SECOND {
            (self.since, self.events) = (now, 0);
        }
        self.events += events + lost;
        if self.events > BUDGET {
            self.source.set_tracing(false)?;
            // Events that are still in the trace are useless.
            self.source.take(&mut |_| {})?;
            self.lines = Lines::default();
            self.paused_until = Some(now + PAUSE);
            self.pauses += 1;
        }
        Ok(Taken { lost, blind: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This many faults per look while tracing is on.
    struct Flood(usize, bool);

    impl Source for Flood {
        fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
            let lines = if self.1 { self.0 } else { 0 };
            (0..lines).for_each(|_| each(b"mm_filemap_fault: dev=7:0 ino=c ofs=4096\n"));
            Ok(())
        }

        fn set_tracing(&mut self, on: bool) -> io::Result<()> {
            self.1 = on;
            Ok(())
        }
    }

    #[test]
    fn a_flood_is_not_followed() {
        // 3,000 per tenth of a second: the seventh look exceeds 20,000; ten seconds of nothing follow, and again.
        let mut faults = Faults::new(Flood(3_000, true));
        let mut seen = Vec::new();
        for tenth in 1..=220 {
            let mut events = 0;
            let taken = faults.take(Nanos::from_millis(tenth * 100), |_| events += 1).expect("no error");
            assert_eq!((taken.lost, taken.blind), (0, events == 0));
            seen.extend((events > 0).then_some(tenth));
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 108, 109, 110, 111, 112, 113, 114, 215, 216, 217, 218, 219, 220]);
        assert_eq!(faults.pauses, 2);
        // 1,900 are always within the budget.
        let mut faults = Faults::new(Flood(1_900, true));
        for tenth in 1..=100 {
            assert!(!faults.take(Nanos::from_millis(tenth * 100), |_| {}).expect("no error").blind);
        }
    }
}
