//! The anticipatory scheduler: by hand, compared with a model over plain lists, and its benefit.

use std::collections::BTreeMap;

use headstart_device::{build_device, build_scheduler, Drive, Next, Queued, Request, Scheduler, Started};
use headstart_types::Nanos;
use proptest::prelude::*;
use toml::Table;

use crate::queueing::{ms, queued, scheduler, scheduler_with, us, Arm};

fn read(process: u32, sector: u64, tag: u64) -> Request {
    Request { process: Some(process), ..Request::read(sector, 8, tag) }
}

/// A queue's answer: the sector to serve, an instant, or nothing.
#[derive(Debug, PartialEq)]
enum Answer {
    Serve(u64),
    Wait(Nanos),
    Nothing,
}
use Answer::{Serve, Wait};

/// A queue with one request at a time in service.
struct Host {
    queue: Box<dyn Scheduler>,
    serving: Option<Queued>,
    tag: u64,
}

impl Host {
    fn new(name: &str, keys: &str) -> Self {
        Self { queue: scheduler_with(name, keys), serving: None, tag: 0 }
    }

    fn push(&mut self, at: u64, request: Request) {
        self.queue.push(queued(ms(at), Request { tag: self.tag, ..request }));
        self.tag += 1;
    }

    fn pop(&mut self, at: u64) -> Answer {
        match self.queue.pop(ms(at), &Arm::default(), &mut Vec::new()) {
            Next::Serve(queued) => {
                assert!(self.serving.replace(queued).is_none());
                Serve(queued.request.sector)
            }
            Next::Wait(until) => Wait(until),
            Next::Nothing => Answer::Nothing,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, at: u64) {
        let served = self.serving.take().unwrap();
        self.queue.completed(ms(at), &served);
    }

    /// Process 1 has read sector 0 up to 10 ms; process 2 waits far away.
    fn torn(name: &str, keys: &str) -> Self {
        let mut host = Self::new(name, keys);
        host.push(0, read(1, 0, 0));
        assert_eq!(host.pop(0), Serve(0));
        host.push(1, read(2, 100_000, 1));
        host.end(10);
        host
    }
}

#[test]
fn it_waits_for_the_process_that_was_served() {
    let mut host = Host::torn("anticipatory", "");
    assert_eq!(host.pop(10), Wait(ms(16)));
    assert_eq!(host.pop(12), Wait(ms(16)));
    // Process 1 returns in time and is served; then it is waited for again.
    host.push(13, read(1, 8, 0));
    assert_eq!(host.pop(13), Serve(8));
    host.end(20);
    assert_eq!(host.pop(20), Wait(ms(26)));
    // It does not return.
    assert_eq!(host.pop(26), Serve(100_000));
    host.end(40);
    assert_eq!(host.pop(40), Answer::Nothing);
    // Nothing was queued, and half the time is over when another process's request arrives.
    host.push(43, read(1, 16, 0));
    assert_eq!(host.pop(43), Wait(ms(46)));
    // The wait is configurable and can be turned off.
    assert_eq!(Host::torn("anticipatory", "wait = '2ms'").pop(10), Wait(ms(12)));
    assert_eq!(Host::torn("anticipatory", "wait = '0ms'").pop(10), Serve(100_000));
}

#[test]
fn without_processes_it_never_waits() {
    let mut host = Host::torn("anticipatory-blind", "");
    assert_eq!(host.pop(10), Serve(100_000));
    let mut host = Host::new("anticipatory", "");
    host.push(0, Request::read(0, 8, 0));
    assert_eq!(host.pop(0), Serve(0));
    host.push(1, Request::read(100_000, 8, 1));
    host.end(10);
    assert_eq!(host.pop(10), Serve(100_000));
}

#[test]
fn what_ends_the_wait() {
    let after = |at: u64, request: Request| {
        let mut host = Host::torn("anticipatory", "");
        assert_eq!(host.pop(10), Wait(ms(16)));
        host.push(at, request);
        host.pop(at)
    };
    // Another's read 8192 sectors after the last one's end is near, one further is not; before it, half as far.
    assert_eq!(after(10, read(3, 8 + 8192, 0)), Serve(8200));
    assert_eq!(after(10, read(3, 8 + 8193, 0)), Wait(ms(16)));
    // After 2 ms of waiting, four times as far.
    assert_eq!(after(12, read(3, 8 + 4 * 8192, 0)), Serve(32_776));
    assert_eq!(after(12, read(3, 8 + 4 * 8192 + 1, 0)), Wait(ms(16)));
    // Another's write is not; the process's own is: it will not read before that is done.
    assert_eq!(after(11, Request { write: true, ..read(3, 8, 0) }), Wait(ms(16)));
    // The read still comes first: writes must wait for the end of its batch.
    assert_eq!(after(11, Request { write: true, ..read(1, 50_000, 0) }), Serve(100_000));
}

#[test]
fn who_thinks_too_long_is_not_waited_for() {
    let mut host = Host::torn("anticipatory", "");
    assert_eq!(host.pop(10), Wait(ms(16)));
    assert_eq!(host.pop(16), Serve(100_000));
    host.end(20);
    // Process 1 comes back after 15 ms: the mean is 15 ms. Process 2 is not waited for: new processes think
    // 15/8 ms, but this one's read is near its own... it is not: 100,008 to 8.
    host.push(25, read(1, 8, 0));
    assert_eq!(host.pop(25), Wait(ms(26)));
    assert_eq!(host.pop(26), Serve(8));
    host.push(26, read(2, 100_008, 0));
    host.end(30);
    // Process 1 is not waited for.
    assert_eq!(host.pop(30), Serve(100_008));
}

#[test]
fn new_processes_that_stay_away_are_not_waited_for() {
    // Each reads once, far from the others, and is waited for; after six that stayed away, no more are.
    let mut host = Host::new("anticipatory", "");
    let mut now = 0;
    for process in 0..8u32 {
        host.push(now, read(process, u64::from(process) * 20_000 % 110_000, 0));
    }
    let mut waits = 0;
    for _ in 0..8 {
        let mut answer = host.pop(now);
        if let Wait(until) = answer {
            assert_eq!(until, ms(now + 6));
            waits += 1;
            now += 6;
            answer = host.pop(now);
        }
        assert!(matches!(answer, Serve(_)), "{answer:?}");
        now += 5;
        host.end(now);
    }
    assert_eq!(waits, 6);
}

#[test]
fn the_nearest_ahead_or_half_as_far_behind() {
    let order = |sectors: &[u64], size: u32| {
        let mut host = Host::new("anticipatory-blind", "merge = false");
        for &sector in sectors {
            host.push(0, Request { sectors: size, ..read(1, sector, 0) });
        }
        let mut order = Vec::new();
        while let Serve(sector) = host.pop(0) {
            host.end(0);
            order.push(sector);
        }
        order
    };
    // The eldest begins: 5000 to 5008. Behind it 4958 lies 50 away, which counts 100: as far as 5108, which wins.
    // From 5116 back to 4959 would be 157 (314); 5400 is 284 ahead.
    assert_eq!(order(&[5000, 4958, 5108, 5400], 8), [5000, 5108, 5400, 4958]);
    assert_eq!(order(&[5000, 4959, 5108, 5400], 8), [5000, 4959, 5108, 5400]);
    // More than 2^20 sectors behind is out of reach: the lowest is next when none is ahead.
    let far = 5_000_000;
    assert_eq!(order(&[far, 1000, far - 8 - (1 << 20), 500], 8), [far, 500, 1000, far - 8 - (1 << 20)]);
    assert_eq!(order(&[far, 1000, far + 8 - (1 << 20), 500], 8), [far, far + 8 - (1 << 20), 500, 1000]);
}

#[test]
fn the_expired_are_let_through_one_at_a_time() {
    // Five reads, the eldest at the top. From 126 ms on it has expired, and comes first; then by place; and again
    // once 125 ms have gone by.
    let mut host = Host::new("anticipatory-blind", "");
    host.push(0, read(1, 0, 0));
    assert_eq!(host.pop(0), Serve(0));
    for sector in [90_000, 80_000, 20_000, 30_000, 40_000] {
        host.push(1, read(1, sector, 0));
    }
    host.end(10);
    assert_eq!(host.pop(10), Serve(20_000));
    host.end(127);
    assert_eq!(host.pop(127), Serve(90_000));
    host.end(130);
    // From 90,008: ahead nothing, behind 80,000 is within reach.
    assert_eq!(host.pop(130), Serve(80_000));
    host.end(252);
    assert_eq!(host.pop(252), Serve(30_000), "expired, and the eldest");
}

#[test]
fn wrong_keys_are_refused() {
    for name in ["anticipatory", "anticipatory-blind"] {
        for (keys, begins) in [
            ("wait = 6", "wait: 6 is a number"),
            ("antic_expire = '6ms'", "antic_expire: unknown key; allowed: wait, read_expire, write_expire"),
            ("merge = 1", "merge: 1 is a number; allowed: true or false"),
        ] {
            let error = build_scheduler(name, keys.parse().unwrap()).err().unwrap().to_string();
            assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
        }
    }
}

/// Processes that read `count` blocks of 16 sectors one after another, each from its own place on, with a pause
/// between: elapsed time and sum of seeks.
fn readers(name: &str, processes: u64, count: u64, think: Nanos) -> (Nanos, Nanos) {
    let mut drive = Drive::new(build_device("hp97560", Table::new()).unwrap(), scheduler(name));
    let mut now = Nanos::ZERO;
    // By instant: a process that reads its next, or the drive to be looked at.
    let mut calendar: BTreeMap<(Nanos, u64), Option<u64>> = BTreeMap::new();
    let mut entry = 0;
    let mut at = |calendar: &mut BTreeMap<_, _>, when: Nanos, what: Option<u64>| {
        entry += 1;
        calendar.insert((when, entry), what);
    };
    let mut left = vec![count; processes as usize];
    for process in 0..processes {
        at(&mut calendar, Nanos::ZERO, Some(process));
    }
    let mut ends: Option<Nanos> = None;
    while let Some(((when, _), what)) = calendar.pop_first() {
        now = when;
        if let Some(process) = what {
            let done = count - left[process as usize];
            let sector = process * 500_000 + done * 16;
            let request = Request { process: Some(process as u32), ..Request::read(sector, 16, process) };
            drive.submit(now, request);
        } else if ends == Some(now) {
            ends = None;
            drive.finish(now, |finished| {
                let process = finished.request.tag;
                left[process as usize] -= 1;
                if left[process as usize] > 0 {
                    at(&mut calendar, now + think, Some(process));
                }
            });
        }
        match drive.start(now) {
            Started::Ends(end) => {
                ends = Some(end);
                at(&mut calendar, end, None);
            }
            Started::Wakes(wake) => at(&mut calendar, wake, None),
            Started::Nothing => {}
        }
    }
    assert_eq!(left.iter().sum::<u64>(), 0);
    (now, drive.statistics(now).seek)
}

/// Iyer and Druschel's deceptive idleness: two sequential readers that think for 1 ms. A scheduler that waits for the
/// reader just served seldom moves the arm; one that does not wait moves it at every request; one that cannot see
/// processes does not wait.
#[test]
fn it_ends_deceptive_idleness_where_it_sees_processes() {
    let (elapsed, seek) = readers("anticipatory", 2, 500, ms(1));
    for other in ["deadline", "anticipatory-blind", "cscan", "fcfs"] {
        let (others, others_seek) = readers(other, 2, 500, ms(1));
        assert!(others.0 > 2 * elapsed.0, "{other}: {others} and {elapsed}");
        assert!(others_seek.0 > 20 * seek.0, "{other}: {others_seek} and {seek}");
    }
    // With 15 ms of think time it stops waiting, and all are equal within a twentieth.
    let (slow, others) = (readers("anticipatory", 2, 200, ms(15)).0, readers("deadline", 2, 200, ms(15)).0);
    assert!(slow.0.abs_diff(others.0) * 20 < others.0, "{slow} and {others}");
}

type Seen = (Vec<u64>, Vec<u64>, Option<Nanos>, u64);

/// A second implementation, over lists.
#[derive(Default)]
struct Naive {
    blind: bool,
    /// In order of arrival.
    queue: Vec<Queued>,
    reads_last: bool,
    last_end: [u64; 2],
    checked: [Nanos; 2],
    awaited: Option<u32>,
    since: Option<Nanos>,
    /// Waiting; or done with it.
    waiting: bool,
    over: bool,
    batch_ends: Nanos,
    changing: bool,
    fresh: bool,
    writes: i64,
    left: i64,
    idled: bool,
    in_service: usize,
    in_hand: Vec<u32>,
    /// By process: think times and distances of its reads, ends, the sector after its last.
    seen: BTreeMap<u32, Seen>,
    firsts: (Vec<u64>, Vec<u64>),
    lost: u64,
}

const READ_EXPIRE: Nanos = ms(125);
const WRITE_EXPIRE: Nanos = ms(250);

/// Weight and total of samples that decay by an eighth with each new one.
fn decayed(samples: &[u64]) -> (u64, u64) {
    samples.iter().fold((0, 0), |(weight, total), sample| ((7 * weight + 256) / 8, (7 * total + 256 * sample) / 8))
}

fn mean(samples: &[u64]) -> Option<u64> {
    let (weight, total) = decayed(samples);
    (!samples.is_empty()).then(|| (total + weight / 2) / weight)
}

impl Naive {
    fn of(&self, request: &Request) -> Option<u32> {
        if self.blind {
            Some(0)
        } else {
            request.process
        }
    }

    fn learn(&mut self, process: u32, now: Nanos, request: &Request) {
        let busy = self.queue.iter().any(|queued| self.of(&queued.request) == Some(process))
            || self.in_hand.contains(&process);
        let Some((thinks, seeks, ended, position)) = self.seen.get_mut(&process) else {
            self.seen.insert(process, (vec![], vec![], None, request.end()));
            return;
        };
        let think = ended.filter(|_| !busy).map_or(0, |ended| (now - ended).0.min(ms(20).0));
        let distance = position.abs_diff(request.sector);
        *position = request.end();
        if thinks.is_empty() {
            self.firsts.0.push(think);
            self.firsts.1.push(distance);
            self.lost = self.lost * 7 / 8;
        }
        thinks.push(think);
        let slack = if decayed(seeks).0 <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        seeks.push(distance.min(4 * mean(seeks).unwrap_or(0) + slack));
    }

    fn in_vain(&mut self, now: Nanos, process: u32, next: Option<Queued>) -> bool {
        if next.is_some_and(|next| self.of(&next.request) == Some(process)) {
            return true;
        }
        if self.since.is_some_and(|since| now - since >= ms(6)) {
            return true;
        }
        // The caller has put a new request into the queue: it is not this process's.
        if self.queue.iter().any(|queued| self.of(&queued.request) == Some(process)) {
            return true;
        }
        let known = self.seen.get(&process).cloned().unwrap_or_default();
        if let Some(next) = next.filter(|next| !next.request.write) {
            let waited =
                if self.waiting || self.over { self.since.map_or(0, |since| (now - since).0 / 1_000_000) } else { 0 };
            let (last, place, near) = (self.last_end[0] as i64, next.request.sector as i64, 8192i64 << waited);
            let usual = mean(&known.1).unwrap_or(decayed(&self.firsts.1).1 / 256);
            if (place - last <= near && last - place <= near / 2) || usual > place.abs_diff(last) {
                self.learn(process, now, &next.request);
                return true;
            }
        }
        match mean(&known.0) {
            Some(thinks) => thinks > ms(6).0,
            None => decayed(&self.firsts.0).1 / 256 > ms(6).0 || self.lost > 128,
        }
    }

    fn push(&mut self, queued: Queued) {
        let process = self.of(&queued.request);
        if let (Some(process), false) = (process, queued.request.write) {
            self.learn(process, queued.arrived, &queued.request);
        }
        self.queue.push(queued);
        if let (true, Some(awaited)) = (self.waiting, self.awaited) {
            if self.in_vain(queued.arrived, awaited, Some(queued)) {
                (self.waiting, self.over) = (false, true);
            }
        }
    }

    fn end(&mut self, now: Nanos, served: &Queued) {
        self.in_service -= 1;
        if self.fresh && !served.request.write {
            let took = (now.0 as i64 - self.batch_ends.0 as i64 + ms(125).0 as i64).max(0);
            let batch = ms(125).0 as i64;
            if took > batch && !self.idled {
                self.writes = if took > 3 * batch { self.writes / 2 } else { self.writes - 1 };
            } else if took < batch && self.left == 0 {
                self.writes = if 3 * took < batch { 2 * self.writes } else { self.writes + 1 };
            }
            self.writes = self.writes.clamp(1, 1 << 20);
            self.batch_ends = now + ms(500);
            self.fresh = false;
        }
        if let Some(process) = self.of(&served.request) {
            let index = self.in_hand.iter().position(|other| *other == process).unwrap();
            self.in_hand.remove(index);
            if !served.request.write {
                self.seen.get_mut(&process).unwrap().2 = Some(now);
            }
            if self.awaited == Some(process) {
                self.since = Some(now);
            }
        }
    }

    fn by_place(&self, write: bool) -> Option<Queued> {
        let last = self.last_end[usize::from(write)] as i64;
        let all = self.queue.iter().filter(|queued| queued.request.write == write);
        all.copied().min_by_key(|queued| {
            let place = queued.request.sector as i64;
            let cost = match place - last {
                ahead @ 0.. => 2 * ahead,
                back if -back <= 1 << 20 => -4 * back + 1,
                _ => (1 << 40) + place,
            };
            (cost, queued.sequence)
        })
    }

    fn expired(&mut self, write: bool, now: Nanos) -> Option<Queued> {
        let expire = if write { WRITE_EXPIRE } else { READ_EXPIRE };
        let checked = &mut self.checked[usize::from(write)];
        if now - *checked < expire {
            return None;
        }
        *checked = now;
        let eldest = self.queue.iter().find(|queued| queued.request.write == write)?;
        (now - eldest.arrived > expire).then_some(*eldest)
    }

    fn pop(&mut self, now: Nanos) -> Next {
        if self.waiting && self.since.is_some_and(|since| now - since >= ms(6)) {
            let process = self.awaited.unwrap();
            if self.seen.get(&process).is_none_or(|seen| seen.0.is_empty()) {
                self.lost = (7 * self.lost + 256) / 8;
            }
            (self.waiting, self.over) = (false, true);
        }
        let reads = self.queue.iter().any(|queued| !queued.request.write);
        let writes = self.queue.iter().any(|queued| queued.request.write);
        self.idled |= !self.reads_last && !reads && (self.left == 0 || !writes);
        if !reads && !writes || self.changing && self.in_service > 0 {
            return Next::Nothing;
        }
        if self.waiting {
            return self.since.map_or(Next::Nothing, |since| Next::Wait(since + ms(6)));
        }
        let over = !self.changing && !self.fresh && (now > self.batch_ends || !self.reads_last && self.left == 0);
        let mut chosen = None;
        if !(reads && writes && over) {
            let place = self.by_place(!self.reads_last);
            if self.reads_last {
                chosen = self.expired(false, now);
                if let (None, Some(process), false) = (chosen, self.awaited, self.over) {
                    if !self.in_vain(now, process, place) {
                        self.waiting = true;
                        return self.since.map_or(Next::Nothing, |since| Next::Wait(since + ms(6)));
                    }
                }
            }
            if chosen.is_none() && place.is_some() {
                if reads && !writes {
                    self.batch_ends = now + ms(500);
                }
                chosen = self.expired(!self.reads_last, now).or(place);
            }
        }
        if chosen.is_none() {
            let to_reads = reads && (!writes || !self.reads_last);
            self.changing |= to_reads != self.reads_last;
            if to_reads {
                self.checked[0] = now;
                chosen = self.queue.iter().find(|queued| !queued.request.write).copied();
            } else {
                self.fresh &= !self.reads_last;
                (self.left, self.idled) = (self.writes, false);
                chosen = self.by_place(true);
            }
            self.reads_last = to_reads;
            if self.changing && self.in_service > 0 {
                return Next::Nothing;
            }
            chosen = self.expired(!to_reads, now).or(chosen);
        }
        let chosen = chosen.unwrap();
        if self.changing {
            self.changing = false;
            self.fresh = self.reads_last;
            if !self.reads_last {
                self.batch_ends = now + ms(125);
            }
        }
        self.queue.retain(|queued| queued.sequence != chosen.sequence);
        let write = chosen.request.write;
        self.last_end[usize::from(write)] = chosen.request.end();
        let process = self.of(&chosen.request);
        self.in_hand.extend(process);
        self.awaited = process.filter(|_| !write);
        (self.since, self.waiting, self.over) = (None, false, false);
        self.in_service += 1;
        if write {
            self.left = (self.left - 1).max(0);
        }
        Next::Serve(chosen)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Up to three in the device's hands, without merging (which has its own model).
    #[test]
    fn orders_and_waits_as_the_naive_model(
        steps in prop::collection::vec((0u8..6, 0u64..1000, 0u8..5, 0u32..4, 0u64..9000, 0u8..12), 1..250),
        blind in any::<bool>(), at_once in 1usize..4,
    ) {
        let name = if blind { "anticipatory-blind" } else { "anticipatory" };
        let mut queue = scheduler_with(name, "merge = false");
        let mut naive = Naive { blind, batch_ends: ms(500), writes: 12, ..Naive::default() };
        let (mut now, mut in_service, mut last) = (Nanos::ZERO, Vec::new(), [0u64; 4]);
        for (index, &(what, place, kind, process, pause, long)) in steps.iter().enumerate() {
            now += us(if long == 0 { pause * 30 } else { pause });
            match what {
                0..=1 => {
                    // Half of the reads are sequential.
                    let sector = if kind < 2 { last[process as usize] } else { place * 3000 };
                    let request = Request { write: kind == 4, ..read(process, sector, index as u64) };
                    last[process as usize] = request.end();
                    let request = Request { process: (process < 3).then_some(process), ..request };
                    queue.push(queued(now, request));
                    naive.push(queued(now, request));
                }
                2..=3 if !in_service.is_empty() => {
                    let served: Queued = in_service.remove(0);
                    queue.completed(now, &served);
                    naive.end(now, &served);
                }
                _ => {}
            }
            while in_service.len() < at_once {
                let next = queue.pop(now, &Arm::default(), &mut Vec::new());
                prop_assert_eq!(next, naive.pop(now), "step {}", index);
                match next {
                    Next::Serve(queued) => in_service.push(queued),
                    Next::Wait(until) => {
                        prop_assert!(until > now && until <= now + ms(6) && !blind);
                        break;
                    }
                    _ => break,
                }
            }
            prop_assert_eq!(queue.len(), naive.queue.len());
        }
    }
}
