//! Tracks acknowledged changes of an export that are not known to be stable, and failures of the storage to keep them.
//!
//! A change is unflushed from its acknowledgement until a sync that began later has completed. A failed sync does not
//! tell which changes are stable, and the next sync cannot make up for it: after a failed write-back, Linux reports the
//! error once and then considers the pages clean, so that `fdatasync` succeeds and the data is lost. For that reason,
//! PostgreSQL and QEMU treat a failed sync as final since 2018. So does an export: until the server is restarted, each
//! later change and flush fails.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use headstart_types::{system_says, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

use crate::backing::is_loss;
use crate::work::Op;

/// Totals of unflushed changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnflushedChanges {
    /// Acknowledged changes that may be lost.
    pub unflushed_writes: u64,
    /// Bytes of these changes.
    pub unflushed_bytes: u64,
    /// First changed byte.
    pub first_byte: u64,
    /// Byte after the last changed byte.
    pub end_byte: u64,
}

impl UnflushedChanges {
    fn add(&mut self, other: &Self) {
        let is_first = self.unflushed_writes == 0;
        self.first_byte = if is_first { other.first_byte } else { self.first_byte.min(other.first_byte) };
        self.end_byte = self.end_byte.max(other.end_byte);
        self.unflushed_writes += other.unflushed_writes;
        self.unflushed_bytes += other.unflushed_bytes;
    }
}

/// Why an export accepts no more changes, and which of the acknowledged ones may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unstable {
    /// Error of the storage.
    pub reason: String,
    /// Time of the error, since the start of the server.
    pub since_ns: u64,
    /// The changes.
    #[serde(flatten)]
    pub unflushed: UnflushedChanges,
}

/// A sync without an answer: a flush, or a change that must be stable.
#[derive(Debug)]
struct Sync {
    /// Number of syncs that began before it.
    before: u64,
    /// Set when it has completed: the syncs in flight at that time that have not completed yet.
    overlapping: Option<Vec<u64>>,
}

#[derive(Debug, Default)]
pub struct Stability {
    /// Keyed by the number of syncs that had begun when the change was acknowledged.
    unflushed: BTreeMap<u64, UnflushedChanges>,
    /// Number of syncs begun.
    begun: u64,
    /// Keyed by request.
    syncs: BTreeMap<u64, Sync>,
    unstable: Option<Unstable>,
}

impl Stability {
    /// Set permanently once a change may be lost.
    #[must_use]
    pub fn unstable(&self) -> Option<&Unstable> {
        self.unstable.as_ref()
    }

    /// A change of `bytes` is acknowledged.
    pub fn acknowledged(&mut self, bytes: Range<u64>) {
        let (first_byte, end_byte) = (bytes.start, bytes.end);
        let change =
            UnflushedChanges { unflushed_writes: 1, unflushed_bytes: end_byte - first_byte, first_byte, end_byte };
        self.unflushed.entry(self.begun).or_default().add(&change);
    }

    /// The sync of `request` begins.
    pub fn sync_begins(&mut self, request: u64) {
        self.syncs.insert(request, Sync { before: self.begun, overlapping: None });
        self.begun += 1;
    }

    /// The sync of `request` has completed, successfully if `done`. Appends the requests whose syncs are now certain to
    /// `certain`: a sync is certain once all overlapping ones have completed, since the error of one may have been
    /// reported to another.
    pub fn sync_ends(&mut self, request: u64, done: bool, certain: &mut Vec<u64>) {
        let mut others: Vec<u64> = Vec::new();
        for (other, sync) in &mut self.syncs {
            match &mut sync.overlapping {
                Some(overlapping) => overlapping.retain(|one| *one != request),
                None if *other != request => others.push(*other),
                None => {}
            }
        }
        match self.syncs.get_mut(&request) {
            Some(sync) if done => sync.overlapping = Some(others),
            _ => _ = self.syncs.remove(&request),
        }
        let is_certain = |sync: &Sync| sync.overlapping.as_ref().is_some_and(Vec::is_empty);
        certain.extend(self.syncs.iter().filter(|(_, sync)| is_certain(sync)).map(|(request, _)| *request));
        let before = certain.iter().filter_map(|request| Some(self.syncs.remove(request)?.before)).max();
        if let Some(before) = before {
            self.unflushed = self.unflushed.split_off(&(before + 1));
        }
    }

    /// Removes the syncs that have completed but are not certain.
    pub fn take_uncertain(&mut self) -> Vec<u64> {
        let ended: Vec<u64> =
            self.syncs.iter().filter(|(_, sync)| sync.overlapping.is_some()).map(|(at, _)| *at).collect();
        ended.iter().for_each(|request| _ = self.syncs.remove(request));
        ended
    }

    /// Whether the failure of `op` means that acknowledged changes may be lost.
    #[must_use]
    pub fn loses(&self, op: &Op, error: &io::Error) -> bool {
        use io::ErrorKind as Kind;
        // A refused change was not attempted.
        let is_refused = !matches!(op, Op::Flush) && matches!(error.kind(), Kind::Unsupported | Kind::InvalidInput);
        // An unreachable server has not failed to sync.
        let is_away = matches!(
            error.kind(),
            Kind::NotConnected | Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::TimedOut
        );
        is_loss(error) || op.syncs() && !is_refused && !(is_away && self.unflushed.is_empty())
    }

    /// Records at `now` that acknowledged changes may be lost. Returns false if that was known.
    pub fn lose(&mut self, reason: &io::Error, now: Nanos) -> bool {
        if self.unstable.is_some() {
            return false;
        }
        let mut unflushed = UnflushedChanges::default();
        self.unflushed.values().for_each(|some| unflushed.add(some));
        self.unstable = Some(Unstable { reason: system_says(reason), since_ns: now.0, unflushed });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(stability: &mut Stability, request: u64, done: bool) -> Vec<u64> {
        let mut certain = Vec::new();
        stability.sync_ends(request, done, &mut certain);
        certain
    }

    #[test]
    fn a_sync_covers_what_was_acknowledged_before_it_began() {
        let mut stability = Stability::default();
        stability.acknowledged(4096..8192);
        stability.sync_begins(1);
        stability.acknowledged(100..300);
        assert_eq!(ends(&mut stability, 1, true), [1]);
        stability.sync_begins(2);
        stability.acknowledged(50..60);
        assert!(ends(&mut stability, 2, false).is_empty());
        assert!(stability.lose(&io::Error::other("broken"), Nanos(7)));
        assert!(!stability.lose(&io::Error::other("later"), Nanos(8)));
        let unflushed = UnflushedChanges { unflushed_writes: 2, unflushed_bytes: 210, first_byte: 50, end_byte: 300 };
        assert_eq!(stability.unstable(), Some(&Unstable { reason: "broken".to_owned(), since_ns: 7, unflushed }));
    }

    #[test]
    fn a_sync_is_certain_when_all_that_overlap_it_have_ended() {
        let mut stability = Stability::default();
        stability.acknowledged(0..10);
        (1..=3).for_each(|request| stability.sync_begins(request));
        assert!(ends(&mut stability, 2, true).is_empty());
        assert!(ends(&mut stability, 1, true).is_empty());
        stability.sync_begins(4);
        assert_eq!(stability.unflushed.len(), 1);
        // 4 began after 1 and 2 had completed.
        assert_eq!(ends(&mut stability, 3, true), [1, 2]);
        assert!(stability.unflushed.is_empty());
        stability.sync_begins(5);
        assert_eq!(ends(&mut stability, 4, true), [3]);
        assert_eq!((stability.take_uncertain(), ends(&mut stability, 5, true)), (vec![4], vec![5]));
        assert!(stability.syncs.is_empty());
    }

    #[test]
    fn which_failures_are_final() {
        let mut stability = Stability::default();
        let (away, broken) = (io::Error::from(io::ErrorKind::NotConnected), io::Error::other("broken"));
        let write = |fua| Op::Write { data: Vec::new(), fua };
        assert!(stability.loses(&Op::Flush, &broken) && stability.loses(&write(true), &broken));
        assert!(!stability.loses(&write(false), &broken) && !stability.loses(&Op::Read, &broken));
        assert!(!stability.loses(&Op::Zero { fua: true, no_hole: false }, &io::ErrorKind::Unsupported.into()));
        assert!(!stability.loses(&Op::Flush, &away), "nothing is unflushed");
        stability.acknowledged(0..1);
        assert!(stability.loses(&Op::Flush, &away));
        assert!(stability.loses(&Op::Read, &crate::backing::loss("another server")));
    }
}
