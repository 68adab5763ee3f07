//! What holds of every record of every format, checked in one place: times never decrease and count from the first
//! record, sizes are not zero, addresses do not overflow, a trace is not empty.

use headstart_types::Nanos;

use crate::Record;

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
    pub(crate) fn admit(&mut self, record: &mut Record, objects: bool) -> Result<(), String> {
        self.admit_time(record)?;
        extent(record, objects)
    }

    /// The part of [`Checks::admit`] that depends on the records before.
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

/// The part of [`Checks::admit`] that a record alone decides: where it lies.
#[inline]
pub(crate) fn extent(record: &Record, objects: bool) -> Result<(), String> {
    if record.size == 0 {
        return Err("the size is 0; allowed: 1 byte or more".to_owned());
    }
    if !objects && record.offset.checked_add(record.size).is_none() {
        return Err(format!("offset {} + size {} is too large; allowed: below 2^64", record.offset, record.size));
    }
    Ok(())
}

/// The problem of a trace without records.
pub(crate) const EMPTY: &str = "the trace has no records; allowed: one or more";

#[cold]
fn earlier(time_ns: u64, last_ns: u64) -> String {
    let back = Nanos(last_ns - time_ns);
    format!("the time is {back} earlier than in the record before; allowed: times that never decrease")
}
