//! A simulated drive that follows its caller's clock.
//!
//! The simulator jumps from one event to the next. Here the caller supplies the time: at each arrival, and whenever it
//! checks. By then, events may lie in the past (a thread wakes up late), but each is still processed at its own time
//! and in order: first a request completes, at the same time the next one starts, and later arrivals join the queue at
//! their time of arrival. Therefore completions depend only on arrivals, never on when the caller checked, and equal
//! the simulator's to the nanosecond.
//!
//! A platter rotates in the drive's own time. With [`ClockedDrive::from_first_arrival`], that begins with the first
//! request, as in a simulation: two runs with the same arrivals then find the platter in the same position.

use headstart_device::{Drive, Finished, Request, Started, Statistics};
use headstart_types::Nanos;

pub struct ClockedDrive {
    drive: Drive,
    /// When the scheduler wants to be asked again.
    wakes: Option<Nanos>,
    /// Everything up to this time was processed, in the drive's time.
    now: Nanos,
    /// Start of the drive's time; `None`: with the first request.
    begins: Option<Nanos>,
}

impl ClockedDrive {
    /// The caller guarantees that `drive` has had no requests.
    #[must_use]
    pub fn new(drive: Drive) -> Self {
        Self { drive, wakes: None, now: Nanos::ZERO, begins: Some(Nanos::ZERO) }
    }

    /// Like [`ClockedDrive::new`], with a time that begins with the first request.
    #[must_use]
    pub fn from_first_arrival(drive: Drive) -> Self {
        Self { begins: None, ..Self::new(drive) }
    }

    /// The drive, to query its capacity and its queue.
    #[must_use]
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The time of the next event if nothing arrives.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        Some(self.next_own()? + self.begins?)
    }

    /// The next event in the drive's time.
    fn next_own(&self) -> Option<Nanos> {
        let end = self.drive.next_end();
        [end, self.wakes].into_iter().flatten().min()
    }

    /// Processes events up to `now`, and passes completed requests to `each` in order of completion. A `now` earlier
    /// than a previous one counts as that one.
    pub fn advance(&mut self, now: Nanos, mut each: impl FnMut(Finished)) {
        let Some(begins) = self.begins else { return };
        let now = now.saturating_sub(begins);
        while let Some(event) = self.next_own().filter(|event| *event <= now) {
            self.now = event;
            if self.drive.next_end() == Some(event) {
                self.drive.finish(event, &mut |finished: Finished| {
                    each(Finished { arrived: finished.arrived + begins, ..finished });
                });
            }
            self.start();
        }
        self.now = self.now.max(now);
    }

    /// Submits `request` at `now`, after processing earlier events as in [`ClockedDrive::advance`]. The caller
    /// guarantees that the request lies within the capacity.
    pub fn submit(&mut self, now: Nanos, request: Request, each: impl FnMut(Finished)) {
        self.submit_all(now, [request], each);
    }

    /// Like [`ClockedDrive::submit`], for requests of one instant: all are in the queue before the drive starts one, so
    /// that the scheduler can merge and order them.
    pub fn submit_all(&mut self, now: Nanos, requests: impl IntoIterator<Item = Request>, each: impl FnMut(Finished)) {
        let mut requests = requests.into_iter().peekable();
        if requests.peek().is_some() {
            self.begins.get_or_insert(now);
        }
        self.advance(now, each);
        requests.for_each(|request| self.drive.submit(self.now, request));
        self.start();
    }

    /// Statistics up to `now`. The caller guarantees that completions up to then were processed.
    #[must_use]
    pub fn statistics(&self, now: Nanos) -> Statistics {
        let own = self.begins.map_or(Nanos::ZERO, |begins| now.saturating_sub(begins));
        self.drive.statistics(own.max(self.now))
    }

    fn start(&mut self) {
        self.wakes = loop {
            match self.drive.start(self.now) {
                Started::Ends(_) => {}
                Started::Wakes(at) => break Some(at),
                Started::Nothing => break None,
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_device::{build_device, build_scheduler, Uniform};

    /// Every request takes 2 ms, first come first served.
    fn two_ms() -> ClockedDrive {
        let scheduler = build_scheduler("fcfs", toml::Table::new()).expect("it is there");
        ClockedDrive::new(Drive::new(Box::new(Uniform::new(Nanos::from_millis(2))), scheduler))
    }

    fn us(time: u64) -> Nanos {
        Nanos::from_micros(time)
    }

    #[test]
    fn the_next_starts_when_the_last_ended_and_not_when_the_caller_looked() {
        let mut drive = two_ms();
        let mut ends = Vec::new();
        drive.submit(us(100), Request::read(0, 1, 0), |_| unreachable!("nothing has ended"));
        drive.submit(us(300), Request::read(8, 1, 1), |_| unreachable!("nothing has ended"));
        assert_eq!((drive.next_event(), drive.drive().outstanding()), (Some(us(2_100)), 2));
        let mut note =
            |finished: Finished| ends.push((finished.request.tag, finished.arrived + finished.response_time));
        drive.advance(us(2_099), &mut note);
        // 70 us late; then 900 us after the completion, with a third request that arrived 10 us after the drive became
        // idle.
        drive.advance(us(2_170), &mut note);
        assert_eq!(drive.next_event(), Some(us(4_100)));
        drive.submit(us(4_110), Request::read(16, 1, 2), &mut note);
        drive.advance(us(5_000), &mut note);
        drive.advance(us(9_000), &mut note);
        assert_eq!(ends, [(0, us(2_100)), (1, us(4_100)), (2, us(6_110))]);
        assert_eq!((drive.next_event(), drive.statistics(us(9_000)).busy), (None, us(6_000)));
    }

    #[test]
    fn requests_of_one_instant_are_merged_before_the_drive_starts() {
        let scheduler = build_scheduler("deadline", toml::Table::new()).expect("it is there");
        let uniform = Uniform::new(Nanos::from_millis(2));
        let mut drive = ClockedDrive::new(Drive::new(Box::new(uniform), scheduler));
        let neighbours = [Request::read(0, 8, 0), Request::read(8, 8, 1)];
        drive.submit_all(us(100), neighbours, |_| unreachable!("nothing has ended"));
        let mut ends = Vec::new();
        drive.advance(us(9_000), |finished| {
            ends.push((finished.request.tag, finished.arrived + finished.response_time))
        });
        assert_eq!(ends, [(0, us(2_100)), (1, us(2_100))]);
    }

    #[test]
    fn a_platter_turns_from_the_first_request_on() {
        let takes = |first: Nanos, from_first: bool| {
            let device = build_device("seagate-cheetah-9lp", toml::Table::new()).expect("it is there");
            let drive = Drive::new(device, build_scheduler("fcfs", toml::Table::new()).expect("it is there"));
            let mut drive = if from_first { ClockedDrive::from_first_arrival(drive) } else { ClockedDrive::new(drive) };
            drive.advance(us(10), |_| unreachable!("nothing has come"));
            drive.submit(first, Request::read(500_000, 8, 0), |_| unreachable!("nothing has ended"));
            let (event, mut end) = (drive.next_event(), None);
            drive.advance(us(90_000), |finished| end = Some(finished.arrived + finished.response_time));
            assert_eq!(event, end);
            end.expect("it has ended") - first
        };
        assert_eq!(takes(us(1_000), true), takes(us(3_300), true));
        assert_ne!(takes(us(1_000), false), takes(us(3_300), false));
    }

    #[test]
    fn an_arrival_at_the_instant_of_an_end_finds_the_drive_free() {
        let mut drive = two_ms();
        let mut ended = 0;
        drive.submit(us(0), Request::read(0, 1, 0), |_| ended += 1);
        drive.submit(us(2_000), Request::read(8, 1, 1), |_| ended += 1);
        assert_eq!((ended, drive.next_event()), (1, Some(us(4_000))));
        assert_eq!(drive.statistics(us(2_000)).queue_ns, 0);
    }

    #[test]
    fn time_never_goes_back() {
        let mut drive = two_ms();
        drive.advance(us(500), |_| ());
        drive.submit(us(400), Request::read(0, 1, 0), |_| ());
        assert_eq!(drive.next_event(), Some(us(2_500)));
    }
}
