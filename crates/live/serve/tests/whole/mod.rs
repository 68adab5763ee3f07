//! One case of the whole-system fuzzer of the server: an export, its clients and its faulty backing on a virtual clock,
//! checked after every instant. A case that breaks an invariant is shrunk.
//!
//! Invariants:
//!
//! - each request is answered once, with bytes that are valid at that time, or with an error while something it touches
//!   is faulty;
//! - an acknowledged change persists, and also survives a stop of the machine if it was flushed or was to be stable by
//!   itself;
//! - the bytes of an answer do not change until the client has them;
//! - once acknowledged changes may be lost, no sync succeeds, and reads return the current content;
//! - a stuck call does not delay requests for other pages; demand fetches do not wait behind prefetches;
//! - the conductor's state is consistent (`Conductor::check`); at the end, no buffer is lost and the cache equals the
//!   backing.

mod drawn;
mod model;
mod planted;
mod storage;
mod world;

use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

pub use drawn::Plan;
use drawn::SIMPLER;
pub use planted::Planted;
use world::World;

/// Maximum number of attempts to shrink a case.
const ATTEMPTS_MAX: u32 = 600;

/// Statistics of a case.
#[derive(Debug, Default, Clone)]
pub struct Done {
    pub requests: u64,
    pub failed: u64,
    pub reads: u64,
    pub instants: u64,
    /// Bytes compared with the model.
    pub checked_bytes: u64,
    pub faults: BTreeMap<String, u64>,
}

impl Done {
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.reads += other.reads;
        self.instants += other.instants;
        self.checked_bytes += other.checked_bytes;
        other.faults.iter().for_each(|(kind, count)| *self.faults.entry(kind.clone()).or_default() += count);
    }
}

/// Runs a case; panics if an invariant is broken.
pub fn run(plan: &Plan, fault: Option<Planted>) -> Done {
    let mut world = World::new(plan, fault);
    plan.events.iter().for_each(|event| world.happens(event));
    world.ends()
}

/// The panic message of a case that breaks an invariant.
pub fn fault(plan: &Plan, fault: Option<Planted>) -> Option<String> {
    let said = catch_unwind(AssertUnwindSafe(|| run(plan, fault))).err()?;
    let text = said.downcast_ref::<String>().cloned();
    Some(text.or_else(|| said.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// A message without its numbers, to compare faults.
pub fn words(said: &str) -> String {
    said.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// A smaller case with the same message.
pub fn shrunk(plan: &Plan, planted: Option<Planted>) -> Plan {
    let Some(said) = fault(plan, planted) else { return plan.clone() };
    let mut attempts = ATTEMPTS_MAX;
    let mut says_so = |plan: &Plan| {
        attempts = attempts.saturating_sub(1);
        attempts > 0 && fault(plan, planted).is_some_and(|other| words(&other) == words(&said))
    };
    let mut small = plan.clone();
    for simpler in SIMPLER {
        let mut other = small.clone();
        simpler(&mut other);
        if says_so(&other) {
            small = other;
        }
    }
    // Remove events in ever smaller groups.
    let mut group = small.events.len().div_ceil(2);
    while group > 0 {
        let mut at = 0;
        while at < small.events.len() {
            let mut other = small.clone();
            other.events.drain(at..(at + group).min(small.events.len()));
            if says_so(&other) {
                small = other;
            } else {
                at += group;
            }
        }
        group /= 2;
    }
    small
}
