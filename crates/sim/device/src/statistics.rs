//! A drive's statistics, and the operational laws that they obey (Denning and Buzen, "The operational analysis of
//! queueing network models", Computing Surveys 10(3), 1978). The laws hold for every run measured from its start to
//! some instant, for any arrivals, order and service times.
//!
//! A drive accounts the same time twice. Per request, at its end: how long it was queued, in service, in the drive. And
//! per event, independent of requests: the number present, integrated over time. Both agree to the nanosecond if no
//! request is lost, reported twice, or given another's times. Requests still in the device at the end of a run, such as
//! a prefetch that no process waits for, are counted up to that instant. For the requests left in the queues, only the
//! queues know the arrival times; the drive's law then is that the integral lies between the times of the completed
//! requests, and these plus a whole run for each incomplete one.

use headstart_types::Nanos;

/// A drive's statistics. Sums are over completed requests, except where they extend to the instant of the query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Completed requests of the device.
    pub requests: u64,
    /// Completed requests of the host; merged ones count individually, so `parts >= requests`.
    pub parts: u64,
    /// Writes among `requests`.
    pub writes: u64,
    /// Sectors of completed requests.
    pub sectors: u64,
    /// Time with at least one request in service, up to the instant of the query.
    pub busy: Nanos,
    /// Sum of seek times.
    pub seek: Nanos,
    /// Sum of rotational waits.
    pub rotation: Nanos,
    /// Sum of transfer times.
    pub transfer: Nanos,
    /// Sum of controller overheads.
    pub overhead: Nanos,
    /// Sum of waits within the device.
    pub wait: Nanos,
    /// Sum over `parts` of waits in the queues, from submission to the start of service, in nanoseconds; for unbounded
    /// queues it exceeds 64 bits.
    pub queue_ns: u128,
    /// Sum over `requests` of service times.
    pub service: Nanos,
    /// Sum over `parts` of response times, in nanoseconds.
    pub response_ns: u128,
    /// Completed requests that began in the device's buffer.
    pub buffer_hits: u64,
    /// The integrals over time, up to the instant of the query.
    pub areas: Areas,
    /// The requests that have not ended by then.
    pub unfinished: Unfinished,
}

/// Numbers of requests integrated over time, in nanoseconds modulo 2^64 (584 years). For a number that changes in steps
/// of one, the integral is the sum of the instants at which it decreases, minus those at which it increases, plus the
/// end of the integration for each request that is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    /// The host's requests that are queued or in service.
    pub present_ns: u64,
    /// The device's requests that are in service.
    pub serving_ns: u64,
}

/// The requests that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The host's requests.
    pub parts: u32,
    /// Time since the start of service, summed over the device's requests, in nanoseconds.
    pub service_ns: u64,
}

impl Areas {
    /// A request of the host arrives.
    #[inline]
    pub(crate) fn came(&mut self, now: Nanos) {
        self.present_ns = self.present_ns.wrapping_sub(now.0);
    }

    /// A request of the device begins.
    #[inline]
    pub(crate) fn began(&mut self, now: Nanos) {
        self.serving_ns = self.serving_ns.wrapping_sub(now.0);
    }

    /// A request of the device has ended, and with it `parts` of the host's.
    #[inline]
    pub(crate) fn ended(&mut self, now: Nanos, parts: usize) {
        self.serving_ns = self.serving_ns.wrapping_add(now.0);
        self.present_ns = self.present_ns.wrapping_add(now.0.wrapping_mul(parts as u64));
    }

    /// Integrates up to `now`, with these numbers of requests left.
    pub(crate) fn up_to(self, now: Nanos, present: u32, serving: usize) -> Self {
        let left = |count: u64| now.0.wrapping_mul(count);
        Self {
            present_ns: self.present_ns.wrapping_add(left(u64::from(present))),
            serving_ns: self.serving_ns.wrapping_add(left(serving as u64)),
        }
    }
}

impl Statistics {
    /// Checks the operational laws for a run of `elapsed` on a device that serves `concurrency` requests at once.
    ///
    /// # Errors
    /// The law that does not hold, with its two sides: an accounting error.
    pub fn check(&self, elapsed: Nanos, concurrency: u32) -> Result<(), String> {
        let Self { requests, parts, queue_ns, response_ns, areas, unfinished, .. } = *self;
        let [busy, service] = [self.busy.0, self.service.0];
        let parts_of_service = self.seek + self.rotation + self.transfer + self.overhead + self.wait;
        equal("service time is the sum of its parts", parts_of_service.0, service)?;
        // Modulo 2^64: sums of responses may be longer.
        let (queue, response) = (queue_ns as u64, response_ns as u64);
        if parts == requests {
            equal("response is queueing and service", response, queue.wrapping_add(service))?;
        }
        let with_the_rest = response_ns + u128::from(unfinished.parts) * u128::from(elapsed.0);
        match u64::try_from(with_the_rest) {
            _ if unfinished.parts == 0 => equal("Little's law of the drive", areas.present_ns, response)?,
            Ok(with_the_rest) => {
                at_most("Little's law of the drive", response, areas.present_ns)?;
                at_most("Little's law of the drive", areas.present_ns, with_the_rest)?;
            }
            Err(_) => {}
        }
        equal("Little's law of the device", areas.serving_ns, service.wrapping_add(unfinished.service_ns))?;
        if concurrency == 1 {
            equal("utilisation law", busy, service + unfinished.service_ns)?;
        }
        let Some(most) = elapsed.0.checked_mul(u64::from(concurrency)) else { return Ok(()) };
        at_most("the run is no shorter than the device's demand", service, most)?;
        at_most("a device is busy while it serves", busy, areas.serving_ns)?;
        at_most(
            "a device serves at most its concurrency",
            areas.serving_ns,
            busy.saturating_mul(u64::from(concurrency)),
        )?;
        at_most("utilisation is at most 1", busy, elapsed.0)
    }
}

fn equal(law: &str, left: u64, right: u64) -> Result<(), String> {
    match left == right {
        true => Ok(()),
        false => Err(format!("{law}: {left} ns is not {right} ns")),
    }
}

fn at_most(law: &str, left: u64, right: u64) -> Result<(), String> {
    match left <= right {
        true => Ok(()),
        false => Err(format!("{law}: {left} ns is more than {right} ns")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two requests on a device that serves one at a time: 0 to 4 ns, submitted at 0, and 4 to 9, submitted at 1.
    /// Present: 1 for 1 ns, 2 for 3 and 1 for 5.
    fn right() -> Statistics {
        Statistics {
            requests: 2,
            parts: 2,
            busy: Nanos(9),
            seek: Nanos(2),
            rotation: Nanos(1),
            transfer: Nanos(3),
            overhead: Nanos(2),
            wait: Nanos(1),
            queue_ns: 3,
            service: Nanos(9),
            response_ns: 12,
            areas: Areas { present_ns: 1 + 6 + 5, serving_ns: 9 },
            ..Statistics::default()
        }
    }

    /// The same with a third request submitted at 3 and in service since 9, and a fourth submitted at 10, queried at
    /// 12.
    fn unfinished() -> Statistics {
        let areas = Areas { present_ns: 12 + 9 + 2, serving_ns: 9 + 3 };
        Statistics { busy: Nanos(12), areas, unfinished: Unfinished { parts: 2, service_ns: 3 }, ..right() }
    }

    /// The law that breaks, and the accounting error.
    type Doctored = (&'static str, fn(&mut Statistics));

    fn breaks(mut sums: Statistics, (law, doctor): Doctored) {
        doctor(&mut sums);
        let error = sums.check(Nanos(12), 1).expect_err(law);
        assert!(error.starts_with(law), "{error}");
    }

    #[test]
    fn integrals_by_hand() {
        let mut areas = Areas::default();
        areas.came(Nanos(0));
        areas.began(Nanos(0));
        areas.came(Nanos(1));
        areas.came(Nanos(3));
        areas.ended(Nanos(4), 1);
        areas.began(Nanos(4));
        assert_eq!(areas.up_to(Nanos(5), 2, 1), Areas { present_ns: 1 + 4 + 3 + 2, serving_ns: 5 });
        // The two that were left were one for the device.
        areas.ended(Nanos(9), 2);
        assert_eq!(areas.up_to(Nanos(20), 0, 0), Areas { present_ns: 4 + 8 + 6, serving_ns: 9 });
    }

    #[test]
    fn the_laws_hold_of_what_was_counted_rightly() {
        assert_eq!(right().check(Nanos(9), 1), Ok(()));
        // A run may continue after the last event.
        assert_eq!(right().check(Nanos(20), 1), Ok(()));
        assert_eq!(unfinished().check(Nanos(12), 1), Ok(()));
        assert_eq!(Statistics::default().check(Nanos(0), 1), Ok(()));
    }

    #[test]
    fn a_wrong_count_breaks_a_law() {
        let doctored: [Doctored; 9] = [
            ("service time is", |sums| sums.rotation += Nanos(1)),
            ("service time is", |sums| sums.service = Nanos(8)),
            ("response is", |sums| sums.queue_ns -= 1),
            ("response is", |sums| sums.response_ns += 1),
            // A request was given another's instants.
            ("Little's law of the drive", |sums| (sums.queue_ns, sums.response_ns) = (2, 11)),
            ("Little's law of the drive", |sums| sums.areas.present_ns += 1),
            ("Little's law of the device", |sums| sums.areas.serving_ns -= 1),
            ("utilisation law", |sums| sums.busy -= Nanos(1)),
            ("utilisation law", |sums| sums.busy += Nanos(1)),
        ];
        doctored.into_iter().for_each(|doctored| breaks(right(), doctored));
        let error = right().check(Nanos(8), 1).expect_err("it served for longer");
        assert_eq!(error, "the run is no shorter than the device's demand: 9 ns is more than 8 ns");
    }

    #[test]
    fn a_wrong_count_of_what_has_not_ended_breaks_a_law() {
        let doctored: [Doctored; 5] = [
            ("Little's law of the drive", |sums| sums.unfinished.parts = 0),
            ("Little's law of the drive", |sums| (sums.queue_ns, sums.response_ns) = (15, 24)),
            ("Little's law of the drive", |sums| sums.areas.present_ns = 12 + 2 * 12 + 1),
            ("Little's law of the device", |sums| sums.unfinished.service_ns = 0),
            ("utilisation law", |sums| (sums.busy, sums.areas.serving_ns) = (Nanos(9), 12)),
        ];
        doctored.into_iter().for_each(|doctored| breaks(unfinished(), doctored));
        let error = unfinished().check(Nanos(11), 1).expect_err("it was busy for longer");
        assert_eq!(error, "utilisation is at most 1: 12 ns is more than 11 ns");
    }

    #[test]
    fn sums_beyond_64_bits() {
        let mut sums = right();
        let more = (1 << 64) + 5;
        (sums.queue_ns, sums.response_ns) = (sums.queue_ns + more, sums.response_ns + more);
        assert!(sums.check(Nanos(12), 1).expect_err("they came to five more").starts_with("Little's law of the drive"));
        sums.areas.present_ns += 5;
        assert_eq!(sums.check(Nanos(12), 1), Ok(()));
    }

    #[test]
    fn of_a_device_that_serves_several() {
        // The same nine nanoseconds of service, up to three at once within six.
        let sums = Statistics { busy: Nanos(6), ..right() };
        assert_eq!(sums.check(Nanos(6), 3), Ok(()));
        for (busy, elapsed, law) in [
            (6, 2, "the run is no shorter than the device's demand"),
            (10, 20, "a device is busy while it serves"),
            (2, 6, "a device serves at most its concurrency"),
            (6, 5, "utilisation is at most 1"),
        ] {
            let sums = Statistics { busy: Nanos(busy), ..right() };
            let error = sums.check(Nanos(elapsed), 3).expect_err(law);
            assert!(error.starts_with(law), "{error}");
        }
    }
}
