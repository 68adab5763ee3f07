//! The command line of a fuzzer, and its seeds. The fuzzer of the server includes this file too.

use std::time::{Duration, Instant};

/// Consecutive seeds, until a number of cases or a time is reached.
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    next: u64,
    end: u64,
    patience: Duration,
    started: Instant,
}

impl Seeds {
    /// From `--seed`, `--cases` and `--seconds`. `None`, and a line on stderr, for other arguments.
    #[expect(clippy::disallowed_methods, reason = "it says how long to go on, and decides nothing in a case")]
    pub fn asked_for() -> Option<Self> {
        let Some([seed, cases, seconds]) = arguments() else {
            let name = env!("CARGO_CRATE_NAME");
            eprintln!("usage: {name} [--seed N] [--cases N] [--seconds N] (by default: from seed 0, for 60 seconds)");
            return None;
        };
        let first = seed.unwrap_or(0);
        let end = first.saturating_add(cases.unwrap_or(u64::MAX - first));
        let patience = Duration::from_secs(seconds.unwrap_or(if cases.is_some() { u64::MAX } else { 60 }));
        Some(Self { first, next: first, end, patience, started: Instant::now() })
    }

    /// Whole seconds since the start.
    pub fn seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.next == self.end || self.started.elapsed() > self.patience {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// `--seed`, `--cases`, `--seconds`.
fn arguments() -> Option<[Option<u64>; 3]> {
    let mut given = [None; 3];
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let at = ["--seed", "--cases", "--seconds"].iter().position(|name| *name == word)?;
        given[at] = Some(words.next()?.parse().ok()?);
    }
    Some(given)
}
