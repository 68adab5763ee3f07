//! Checks common to all formats: records are in order of issue, times count from the first record, records of zero
//! bytes are skipped, addresses do not overflow, and a trace is not empty.

use headstart_types::Nanos;

use crate::order::Order;
use crate::{Record, BATCH};

#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// Recorded time of the first record, in nanoseconds.
    origin_ns: u64,
    /// Recorded time of the last record.
    last_ns: u64,
    /// Records admitted so far.
    count: u64,
}

impl Checks {
    /// Checks `record`, whose time is still as recorded, and makes its time relative to the first record.
    #[inline]
    pub(crate) fn admit_time(&mut self, record: &mut Record) -> Result<(), String> {
        let time_ns = record.time.0;
        if self.count == 0 {
            self.origin_ns = time_ns;
        } else if time_ns < self.last_ns {
            return Err(earlier(time_ns, self.last_ns));
        }
        self.last_ns = time_ns;
        record.time = Nanos(time_ns - self.origin_ns);
        self.count += 1;
        Ok(())
    }

    /// Whether no record was admitted yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Checks the address range of a single record.
#[inline]
pub(crate) fn extent(record: &Record, objects: bool) -> Result<(), String> {
    if !objects && record.offset.checked_add(record.size).is_none() {
        return Err(format!("offset {} + size {} is too large; allowed: below 2^64", record.offset, record.size));
    }
    Ok(())
}

/// Turns the records of a file into those of a trace: skips empty records, and sorts records that are out of order if
/// the trace carries times.
#[derive(Debug)]
pub(crate) struct Admission {
    objects: bool,
    checks: Checks,
    order: Option<Order>,
    skipped: u64,
}

impl Admission {
    pub(crate) fn new(has_times: bool, objects: bool) -> Self {
        Self { objects, checks: Checks::default(), order: has_times.then(Order::default), skipped: 0 }
    }

    /// Accepts records in any order; all are held until the end.
    pub(crate) fn of_any_order(self) -> Self {
        Self { order: self.order.map(|_| Order::whole()), ..self }
    }

    /// Takes a record whose time is as recorded, and either emits it or holds it back for sorting.
    #[inline]
    pub(crate) fn admit(&mut self, mut record: Record, into: &mut Vec<Record>) -> Result<(), String> {
        if record.size == 0 {
            self.skipped += 1;
            return Ok(());
        }
        extent(&record, self.objects)?;
        if let Some(order) = &mut self.order {
            return order.push(record);
        }
        self.checks.admit_time(&mut record)?;
        into.push(record);
        Ok(())
    }

    /// Emits the held-back records that are due, up to a full batch.
    pub(crate) fn release(&mut self, into: &mut Vec<Record>) -> Result<(), String> {
        let Some(order) = &mut self.order else { return Ok(()) };
        let first = into.len();
        order.release(BATCH, into);
        into[first..].iter_mut().try_for_each(|record| self.checks.admit_time(record))
    }

    /// At the end of the file: emits held-back records, up to a full batch.
    pub(crate) fn drain(&mut self, into: &mut Vec<Record>) -> Result<(), String> {
        while into.len() < BATCH {
            let Some(mut record) = self.order.as_mut().and_then(Order::pop) else { break };
            self.checks.admit_time(&mut record)?;
            into.push(record);
        }
        Ok(())
    }

    /// Whether no record was emitted yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// Records of 0 bytes that were skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// A note for the user about the order of records.
    pub(crate) fn note(&self) -> Option<String> {
        let reordered = self.order.as_ref().is_some_and(Order::reordered);
        reordered.then(|| "some records were out of order and were sorted by issue time".to_owned())
    }
}

pub(crate) const EMPTY: &str = "the trace has no records; allowed: one or more";

#[cold]
fn earlier(time_ns: u64, last_ns: u64) -> String {
    let back = Nanos(last_ns - time_ns);
    format!("the time is {back} earlier than in the previous record; allowed: times that never decrease")
}
