//! What all parts of a measurement share: the device, random places, the time that is left, and how far it is.

use headstart_types::{stream_seed, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::probe::ALIGNMENT;
use super::{Error, Probe, Read, Span};

/// Standard errors of an interval that holds the truth nineteen times out of twenty.
pub(super) const WIDTH: f64 = 2.0;

/// A part of a measurement, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Is there an arm? What does a read from the buffer take, and how much does the buffer keep?
    Look,
    /// How long a turn takes.
    Rotation,
    /// Sectors of a track by place, and what a read takes beside arm and media.
    Tracks,
    /// Long reads by place.
    Rates,
    /// Seeks by distance.
    Seeks,
    /// Reads by size, of a device without an arm.
    Sizes,
    /// Reads that are outstanding at the same time.
    Depths,
    /// The same of a device without an arm.
    FlatDepths,
    /// Longer reads that are outstanding at the same time, of a device without an arm.
    LongDepths,
    /// Reads that nothing was fitted to, beside what the model says of them.
    Check,
}

impl Phase {
    /// For people.
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

    /// The share of the time that has passed when it should end.
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

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What is under way.
    pub phase: Phase,
    /// Of the time, 0 to 1.
    pub share: f64,
}

/// Told how far it is, after each read; says whether to go on.
pub type Tell<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// A measurement under way.
pub(super) struct Lab<'a> {
    probe: &'a mut dyn Probe,
    random: ChaCha8Rng,
    tell: Tell<'a>,
    began: Nanos,
    time: Nanos,
    phase: Phase,
    /// How many reads there were.
    pub reads: u64,
}

impl<'a> Lab<'a> {
    pub fn new(probe: &'a mut dyn Probe, seed: u64, time: Nanos, tell: Tell<'a>) -> Self {
        let began = probe.now();
        let random = ChaCha8Rng::seed_from_u64(stream_seed(seed, "profile", 0));
        Self { probe, random, tell, began, time, phase: Phase::Look, reads: 0 }
    }

    /// Sectors of the device, as far as reads may come to.
    pub fn sectors(&self) -> u64 {
        align(self.probe.sectors())
    }

    /// Sectors of the device, all of them.
    pub fn capacity(&self) -> u64 {
        self.probe.sectors()
    }

    /// The next part begins.
    pub fn begin(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Since the measurement began.
    pub fn elapsed(&self) -> Nanos {
        self.probe.now() - self.began
    }

    /// What is left of the time up to the end of this part.
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

    /// One read of the size that all have whose position counts, not their length.
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

    /// An aligned place in `from..end`, for a read that may go beyond it.
    pub fn place(&mut self, from: u64, end: u64) -> u64 {
        let (first, last) = (from.div_ceil(ALIGNMENT.into()), end / u64::from(ALIGNMENT));
        if last <= first + 1 {
            return align(from);
        }
        self.random.random_range(first..last) * u64::from(ALIGNMENT)
    }

    /// An aligned place for a read of `sectors`, anywhere.
    pub fn anywhere(&mut self, sectors: u32) -> u64 {
        let end = self.sectors().saturating_sub(u64::from(sectors)) + u64::from(ALIGNMENT);
        self.place(0, end)
    }

    /// A number below `end`.
    pub fn share_below(&mut self, end: f64) -> f64 {
        self.random.random_range(0.0..end)
    }

    /// Puts `list` into a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.random.random_range(0..=last);
            list.swap(last, other);
        }
    }
}

/// Down to a multiple of [`ALIGNMENT`].
pub(super) fn align(sector: u64) -> u64 {
    sector - sector % u64::from(ALIGNMENT)
}

/// The middle one of `values`, the upper of two; none of none.
pub(super) fn median<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}
