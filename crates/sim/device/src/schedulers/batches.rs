//! The anticipatory scheduler's timed batches of reads and writes.
//!
//! While both wait, reads have the device for `read_batch` from the end of their first, then writes for `write_batch`.
//! A batch of writes also has a maximum number, adapted to what that time recently allowed: doubled or halved if it was
//! off by more than a factor of three, else changed by one. A batch begins when the device has finished the other
//! kind's requests. After Linux 2.6.18's as-iosched.c.

use headstart_types::Nanos;

use super::merging::{READS, WRITES};

/// Initial number of writes per batch: one per 10 ms. (In Linux a tenth of the time in ticks, here of 1 ms.)
const WRITE_SHARE: Nanos = Nanos::from_millis(10);

/// Keeps the number of writes reasonable.
const WRITES_MAX: u32 = 1 << 20;

/// The current batch.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    read_batch: Nanos,
    write_batch: Nanos,
    /// The lane of the batch.
    pub lane: usize,
    ends: Nanos,
    /// Whether the lane has changed and the device must first finish the other kind's requests.
    changing: bool,
    /// Whether no read of a batch of reads has ended: its time has not begun.
    fresh: bool,
    /// Maximum number of writes per batch, and those left in this one.
    writes: u32,
    writes_left: u32,
    /// Whether the batch of writes ran out of writes or had no competition: its duration is then not used.
    idled: bool,
    in_service: u32,
}

impl Batches {
    pub(super) fn new(read_batch: Nanos, write_batch: Nanos) -> Self {
        let writes = (write_batch.0 / WRITE_SHARE.0).clamp(2, WRITES_MAX.into()) as u32;
        let (changing, fresh, idled) = (false, false, false);
        let (lane, ends) = (WRITES, read_batch);
        Self { read_batch, write_batch, lane, ends, changing, fresh, writes, writes_left: 0, idled, in_service: 0 }
    }

    /// Called before each choice; tells whether reads and writes wait.
    pub(super) fn look(&mut self, reads: bool, writes: bool) {
        if self.lane == WRITES && !reads && (self.writes_left == 0 || !writes) {
            self.idled = true;
        }
    }

    /// Whether a new batch has to wait for the old one's last request.
    pub(super) fn must_wait(&self) -> bool {
        self.changing && self.in_service > 0
    }

    /// Whether the batch is over if the other kind waits.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        if self.changing || self.fresh {
            return false;
        }
        now > self.ends || self.lane == WRITES && self.writes_left == 0
    }

    /// Restarts the time of a batch of reads without competition.
    pub(super) fn extend(&mut self, now: Nanos) {
        self.ends = now + self.read_batch;
    }

    /// Starts a batch of the next lane that has requests.
    pub(super) fn turn(&mut self, reads: bool, writes: bool) {
        if reads && !(writes && self.lane == READS) {
            self.changing |= self.lane == WRITES;
            self.lane = READS;
            return;
        }
        if self.lane == READS {
            self.changing = true;
            self.fresh = false;
        }
        self.lane = WRITES;
        self.writes_left = self.writes;
        self.idled = false;
    }

    /// A request is dispatched. The caller guarantees that it need not wait.
    pub(super) fn dispatched(&mut self, now: Nanos, write: bool) {
        if self.changing {
            self.changing = false;
            self.fresh = self.lane == READS;
            if self.lane == WRITES {
                self.ends = now + self.write_batch;
            }
        }
        self.writes_left = self.writes_left.saturating_sub(u32::from(write));
        self.in_service += 1;
    }

    /// A request has completed.
    pub(super) fn completed(&mut self, now: Nanos, write: bool) {
        self.in_service -= 1;
        if self.fresh && !write {
            self.fit(now);
            self.extend(now);
            self.fresh = false;
        }
    }

    /// Called when the first read after a batch of writes completes: adapts the number of writes to their duration.
    fn fit(&mut self, now: Nanos) {
        let batch = self.write_batch;
        let took = (now + batch).saturating_sub(self.ends);
        if took > batch && !self.idled {
            self.writes = if took > batch * 3 { self.writes / 2 } else { self.writes - 1 };
        } else if took < batch && self.writes_left == 0 {
            self.writes = if batch > took * 3 { self.writes * 2 } else { self.writes + 1 };
        }
        self.writes = self.writes.clamp(1, WRITES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// The number of writes after a batch of writes from 1 s on, with reads waiting, and a read that ends after `took`.
    fn writes_after(took: u64, served: u32, idled: bool) -> u32 {
        let mut batches = Batches::new(MS(500), MS(125));
        batches.lane = READS;
        batches.turn(true, true);
        batches.dispatched(MS(1000), true);
        batches.completed(MS(1001), true);
        for _ in 1..served {
            batches.dispatched(MS(1001), true);
            batches.completed(MS(1001), true);
        }
        batches.look(!idled, false);
        batches.turn(true, false);
        batches.dispatched(MS(1002), false);
        batches.completed(MS(1000 + took), false);
        batches.writes
    }

    #[test]
    fn the_number_of_writes_follows_their_time() {
        // 12 at first, for 125 ms.
        assert_eq!(writes_after(125, 12, false), 12);
        assert_eq!(writes_after(126, 12, false), 11);
        assert_eq!(writes_after(375, 12, false), 11);
        assert_eq!(writes_after(376, 12, false), 6);
        assert_eq!(writes_after(376, 12, true), 12, "uncontended");
        assert_eq!(writes_after(124, 12, false), 13);
        assert_eq!(writes_after(42, 12, false), 13);
        assert_eq!(writes_after(41, 12, false), 24);
        assert_eq!(writes_after(41, 11, false), 12, "one was left");
    }

    #[test]
    fn reads_and_writes_take_turns() {
        let mut batches = Batches::new(MS(500), MS(125));
        batches.turn(true, true);
        assert_eq!(batches.lane, READS);
        batches.dispatched(MS(0), false);
        assert!(!batches.is_over(MS(9999)), "its time begins with the end of the first");
        batches.completed(MS(10), false);
        assert!(!batches.is_over(MS(510)) && batches.is_over(MS(511)));
        batches.dispatched(MS(510), false);
        batches.turn(true, true);
        assert!(batches.lane == WRITES && batches.must_wait(), "a read is in service");
        batches.completed(MS(520), false);
        assert!(!batches.must_wait() && !batches.is_over(MS(520)));
        batches.dispatched(MS(520), true);
        assert!(!batches.is_over(MS(645)) && batches.is_over(MS(646)));
    }

    #[test]
    fn reads_that_end_in_a_batch_of_writes_do_not_time_it() {
        let mut batches = Batches::new(MS(500), MS(125));
        batches.turn(true, false);
        batches.dispatched(MS(0), false);
        batches.turn(false, true);
        assert!(batches.must_wait());
        batches.completed(MS(2000), false);
        assert_eq!(batches.writes, 12);
    }
}
