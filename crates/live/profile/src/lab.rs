//! State that all parts of a measurement share: the device, random places, the remaining time and the progress.

use headstart_types::{stream_seed, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::probe::ALIGNMENT;
use super::{Error, Probe, Read, Span};

/// Half-width of a 95 % confidence interval, in standard errors.
pub(super) const WIDTH: f64 = 2.0;

/// The parts of a measurement, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Detects an arm, the latency of buffer hits and the buffer's segments.
    Look,
    /// Time of a revolution.
    Rotation,
    /// Sectors per track by place, and the overhead of a read.
    Tracks,
    /// Long reads by place.
    Rates,
    /// Seeks by distance.
    Seeks,
    /// Reads by size, of a device without an arm.
    Sizes,
    /// Reads by queue depth, with an arm.
    Depths,
    /// Reads by queue depth, without an arm.
    FlatDepths,
    /// Longer reads by queue depth, without an arm.
    LongDepths,
    /// Validation with reads that nothing was fitted to.
    Check,
}

impl Phase {
    /// Name shown to users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "looking for an arm and a buffer",
            Self::Rotation => "timing the turn",
            Self::Tracks => "measuring tracks",
            Self::Rates => "reading at length",
            Self::Seeks => "seeking",
            Self::Sizes => "reading by size",
            Self::Depths | Self::FlatDepths => "reading at once",
            Self::LongDepths => "reading more at once",
            Self::Check => "checking the model",
        }
    }

    /// Share of the time at which the part should end.
    fn ends(self) -> f64 {
        match self {
            Self::Look => 0.08,
            Self::Rotation => 0.22,
            Self::Tracks => 0.42,
            Self::Rates => 0.54,
            Self::Seeks => 0.94,
            Self::Sizes => 0.50,
            Self::FlatDepths => 0.84,
            Self::Depths | Self::LongDepths => 1.0,
            Self::Check => 1.08,
        }
    }
}

/// Progress of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The current part.
    pub phase: Phase,
    /// Share of the time that has passed, 0 to 1.
    pub share: f64,
}

/// Callback with the progress after each read; returns whether to continue.
pub type Tell<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// A running measurement.
pub(super) struct Lab<'a> {
    probe: &'a mut dyn Probe,
    random: ChaCha8Rng,
    tell: Tell<'a>,
    began: Nanos,
    time: Nanos,
    phase: Phase,
    /// Number of reads so far.
    pub reads: u64,
}

impl<'a> Lab<'a> {
    pub fn new(probe: &'a mut dyn Probe, seed: u64, time: Nanos, tell: Tell<'a>) -> Self {
        let began = probe.now();
        let random = ChaCha8Rng::seed_from_u64(stream_seed(seed, "profile", 0));
        Self { probe, random, tell, began, time, phase: Phase::Look, reads: 0 }
    }

    /// Number of sectors that reads may use.
    pub fn sectors(&self) -> u64 {
        align(self.probe.sectors())
    }

    /// Number of sectors of the device.
    pub fn capacity(&self) -> u64 {
        self.probe.sectors()
    }

    /// Starts the next part.
    pub fn begin(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Time since the start of the measurement.
    pub fn elapsed(&self) -> Nanos {
        self.probe.now() - self.began
    }

    /// Time left for this part.
    pub fn left(&self) -> Nanos {
        Nanos((self.time.0 as f64 * self.phase.ends()) as u64).saturating_sub(self.elapsed())
    }

    /// Whether time is left for this part.
    pub fn has_time(&self) -> bool {
        self.left() > Nanos::ZERO
    }

    fn report(&mut self, reads: usize) -> Result<(), Error> {
        self.reads += reads as u64;
        let share = (self.elapsed().0 as f64 / self.time.0.max(1) as f64).min(1.0);
        if (self.tell)(Progress { phase: self.phase, share }) {
            Ok(())
        } else {
            Err(Error::Stopped)
        }
    }

    pub fn read(&mut self, sector: u64, sectors: u32) -> Result<Span, Error> {
        let span = self.probe.read(Read { sector, sectors })?;
        self.report(1)?;
        Ok(span)
    }

    /// Reads one block, for measurements that depend on the place and not on the size.
    pub fn read_block(&mut self, sector: u64) -> Result<Span, Error> {
        self.read(sector, ALIGNMENT)
    }

    pub fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        let time = self.probe.read_together(reads, depth)?;
        self.report(reads.len())?;
        Ok(time)
    }

    pub fn pause(&mut self, time: Nanos) {
        self.probe.pause(time);
    }

    /// A random aligned place in `from..end`; the read may extend beyond `end`.
    pub fn place(&mut self, from: u64, end: u64) -> u64 {
        let (first, last) = (from.div_ceil(ALIGNMENT.into()), end / u64::from(ALIGNMENT));
        if last <= first + 1 {
            return align(from);
        }
        self.random.random_range(first..last) * u64::from(ALIGNMENT)
    }

    /// A random aligned place for a read of `sectors`.
    pub fn anywhere(&mut self, sectors: u32) -> u64 {
        let end = self.sectors().saturating_sub(u64::from(sectors)) + u64::from(ALIGNMENT);
        self.place(0, end)
    }

    /// A uniformly random number below `end`.
    pub fn share_below(&mut self, end: f64) -> f64 {
        self.random.random_range(0.0..end)
    }

    /// Shuffles `list`.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.random.random_range(0..=last);
            list.swap(last, other);
        }
    }
}

/// Rounds down to a multiple of [`ALIGNMENT`].
pub(super) fn align(sector: u64) -> u64 {
    sector - sector % u64::from(ALIGNMENT)
}

/// The median of `values` (the upper one of two); `None` if empty.
pub(super) fn median<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}
