//! What holds of every record of every format, done in one place: records stand in order of issue and their times count
//! from the first, what moves no bytes is left out, addresses do not overflow, a trace is not empty.

use headstart_types::Nanos;

use crate::order::Order;
use crate::{Record, BATCH};

/// The running state of the checks.
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
    /// Checks `record`, whose time is as recorded, and moves its time to the trace's origin.
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

    /// Whether nothing was admitted yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What a record alone decides: where it lies.
#[inline]
pub(crate) fn extent(record: &Record, objects: bool) -> Result<(), String> {
    if !objects && record.offset.checked_add(record.size).is_none() {
        return Err(format!("offset {} + size {} is too large; allowed: below 2^64", record.offset, record.size));
    }
    Ok(())
}

/// How the records of a file become those of a trace: what is empty is left out, and what stands out of order is put in
/// order of issue where there are times.
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

    /// The same for records in any order: all are held until the end.
    pub(crate) fn of_any_order(self) -> Self {
        Self { order: self.order.map(|_| Order::whole()), ..self }
    }

    /// Takes a record, its time as recorded: hands it out, or holds it back until its turn comes.
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

    /// Hands out a record that was held back and whose turn it is; false where there is none.
    #[inline]
    pub(crate) fn release(&mut self, into: &mut Vec<Record>) -> Result<bool, String> {
        let Some(mut record) = self.order.as_mut().and_then(Order::pop_ready) else { return Ok(false) };
        self.checks.admit_time(&mut record)?;
        into.push(record);
        Ok(true)
    }

    /// Hands out what is still held back, up to a full batch; at the end of the file.
    pub(crate) fn drain(&mut self, into: &mut Vec<Record>) -> Result<(), String> {
        while into.len() < BATCH {
            let Some(mut record) = self.order.as_mut().and_then(Order::pop) else { break };
            self.checks.admit_time(&mut record)?;
            into.push(record);
        }
        Ok(())
    }

    /// Whether nothing was handed out yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// Records of 0 bytes that were left out.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// What a user must know of the order.
    pub(crate) fn note(&self) -> Option<String> {
        let reordered = self.order.as_ref().is_some_and(Order::reordered);
        reordered.then(|| "some records stood out of order and were put in order of issue".to_owned())
    }
}

/// The problem of a trace without records.
pub(crate) const EMPTY: &str = "the trace has no records; allowed: one or more";

#[cold]
fn earlier(time_ns: u64, last_ns: u64) -> String {
    let back = Nanos(last_ns - time_ns);
    format!("the time is {back} earlier than in the record before; allowed: times that never decrease")
}
