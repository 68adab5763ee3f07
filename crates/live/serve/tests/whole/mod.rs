//! One case of the whole-system fuzzer of the server: an export, its clients and its backing on a virtual clock, with their faults, looked at
//! after every instant. What breaks a rule is shrunk to a small case.
//!
//! What must hold:
//!
//! - each request is answered once, with what its bytes may be at that time, or with an error while what it touches is at fault;
//! - a change that was answered is there afterwards, and after a stop of the machine if it was flushed, or was to be stable by itself;
//! - the bytes of an answer stay what they are until the client has them;
//! - once changes that were acknowledged may be lost, no sync is answered, and reads bring what is there now;
//! - a call that is stuck delays no request for other pages; what clients wait for is not behind prefetches;
//! - what the conductor says of itself fits together (`Conductor::check`); at the end, no buffer is lost and the cache is what the backing is.

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

/// Attempts at most to make a case smaller.
const ATTEMPTS_MAX: u32 = 600;

/// What a case has done.
#[derive(Debug, Default, Clone)]
pub struct Done {
    pub requests: u64,
    pub failed: u64,
    pub reads: u64,
    pub instants: u64,
    /// Bytes that were held against the model.
    pub checked_bytes: u64,
    /// By kind.
    pub faults: BTreeMap<String, u64>,
}

impl Done {
    /// Of both.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.reads += other.reads;
        self.instants += other.instants;
        self.checked_bytes += other.checked_bytes;
        other.faults.iter().for_each(|(kind, count)| *self.faults.entry(kind.clone()).or_default() += count);
    }
}

/// Runs a case; panics where something does not hold.
pub fn run(plan: &Plan, fault: Option<Planted>) -> Done {
    let mut world = World::new(plan, fault);
    plan.events.iter().for_each(|event| world.happens(event));
    world.ends()
}

/// What a case says that breaks a rule.
pub fn fault(plan: &Plan, fault: Option<Planted>) -> Option<String> {
    let said = catch_unwind(AssertUnwindSafe(|| run(plan, fault))).err()?;
    let text = said.downcast_ref::<String>().cloned();
    Some(text.or_else(|| said.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// A message without its numbers: what tells faults apart.
pub fn words(said: &str) -> String {
    said.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// A smaller case that says the same.
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
    // Events in ever smaller groups.
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
