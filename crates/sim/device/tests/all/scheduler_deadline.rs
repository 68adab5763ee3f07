//! The deadline scheduler and its merging: by hand, and compared with a model that looks at everything that waits.

use headstart_device::{build_scheduler, Next, Promise, Queued, Request, Scheduler};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::queueing;
use crate::queueing::{ms, queued, run, scheduler, scheduler_with, Arm};

/// The next whole request with its parts' tags.
fn next(queue: &mut dyn Scheduler, now: Nanos) -> Option<(Request, Vec<u64>)> {
    let mut parts = Vec::new();
    match queue.pop(now, &Arm::default(), &mut parts) {
        Next::Serve(whole) => {
            let mut tags: Vec<u64> = parts.iter().map(|part| part.request.tag).collect();
            tags.sort_unstable();
            Some((whole.request, tags))
        }
        Next::Nothing => None,
        other => panic!("{other:?}"),
    }
}

fn reads(sectors: &[u64]) -> Vec<Request> {
    (0..).zip(sectors).map(|(tag, &sector)| Request::read(sector, 8, tag)).collect()
}

fn fill(queue: &mut dyn Scheduler, requests: &[Request]) {
    for &request in requests {
        queue.push(queued(Nanos::ZERO, request));
    }
}

/// First sectors in order of dispatch, all at `now`.
fn order(queue: &mut dyn Scheduler, now: Nanos) -> Vec<u64> {
    std::iter::from_fn(|| next(queue, now)).map(|(whole, _)| whole.sector).collect()
}

#[test]
fn back_front_and_gap_merges() {
    let mut queue = scheduler("deadline");
    // 108 goes behind 100, 92 before both. 80 touches nothing, nor does 102, which overlaps.
    fill(&mut *queue, &reads(&[100, 108, 92, 80, 102]));
    assert_eq!(queue.len(), 5);
    assert_eq!(next(&mut *queue, ms(0)), Some((Request::read(80, 8, 3), vec![])));
    assert_eq!(next(&mut *queue, ms(0)), Some((Request::read(92, 24, 0), vec![0, 1, 2])));
    assert_eq!(next(&mut *queue, ms(0)), Some((Request::read(102, 8, 4), vec![])));
    assert_eq!(queue.len(), 0);
    // 208 closes the gap; the whole is known by the part that came first.
    fill(&mut *queue, &reads(&[216, 200, 208]));
    assert_eq!(next(&mut *queue, ms(0)), Some((Request::read(200, 24, 0), vec![0, 1, 2])));
    assert_eq!(next(&mut *queue, ms(0)), None);
}

#[test]
fn what_is_not_merged() {
    let wholes = |keys: &str, requests: &[Request]| {
        let mut queue = scheduler_with("deadline", keys);
        fill(&mut *queue, requests);
        std::iter::from_fn(|| next(&mut *queue, ms(0))).map(|(whole, _)| whole.sectors).collect::<Vec<_>>()
    };
    let back = reads(&[100, 108]);
    let front = reads(&[108, 100]);
    assert_eq!(wholes("", &back), [16]);
    assert_eq!(wholes("", &front), [16]);
    assert_eq!(wholes("front_merges = false", &back), [16]);
    assert_eq!(wholes("front_merges = false", &front), [8, 8]);
    assert_eq!(wholes("merge = false", &back), [8, 8]);
    assert_eq!(wholes("merge = false", &front), [8, 8]);
    assert_eq!(wholes("max_sectors = 16", &back), [16]);
    assert_eq!(wholes("max_sectors = 15", &back), [8, 8]);
    // 24 would be too large a back merge, so that no front merge is tried.
    assert_eq!(wholes("max_sectors = 16", &reads(&[100, 92, 116, 108])), [16, 8, 8]);
    // A read and a write are never merged.
    assert_eq!(wholes("", &[Request::read(100, 8, 0), Request::write(108, 8, 1)]), [8, 8]);
    // Two writes are merged.
    assert_eq!(wholes("", &[Request::write(100, 8, 0), Request::write(108, 8, 1)]), [16]);
}

#[test]
fn writes_give_way_twice() {
    let mut queue = scheduler("deadline");
    fill(&mut *queue, &reads(&[10, 1000, 2000]));
    queue.push(queued(ms(0), Request::write(500, 8, 3)));
    // Reads first, the lowest; 1000 is not sequential, so the choice comes round: reads again. Then it is the
    // write's turn, and after that the reads start from their lowest.
    assert_eq!(order(&mut *queue, ms(0)), [10, 1000, 500, 2000]);
    let mut queue = scheduler_with("deadline", "writes_starved = 0");
    fill(&mut *queue, &reads(&[10, 1000]));
    queue.push(queued(ms(0), Request::write(500, 8, 2)));
    assert_eq!(order(&mut *queue, ms(0)), [500, 10, 1000]);
}

#[test]
fn a_batch_is_sequential_and_has_sixteen() {
    let mut queue = scheduler_with("deadline", "merge = false");
    let sectors: Vec<u64> = (0..20).map(|index| index * 8).collect();
    fill(&mut *queue, &reads(&sectors));
    queue.push(queued(ms(0), Request::write(5000, 8, 20)));
    // 16 in the batch; the 17th by the second choice of reads; then the write.
    let mut expected = sectors.clone();
    expected.insert(17, 5000);
    assert_eq!(order(&mut *queue, ms(0)), expected);
}

#[test]
fn the_expired_come_first_in_order_of_age() {
    let start = || {
        let mut queue = scheduler("deadline");
        fill(&mut *queue, &reads(&[3000, 2000, 1000]));
        queue
    };
    assert_eq!(order(&mut *start(), ms(500)), [1000, 2000, 3000]);
    // Past 500 ms, by age.
    assert_eq!(order(&mut *start(), Nanos(500_000_001)), [3000, 2000, 1000]);
    // Not within a batch: 3008 (not merged) goes on after 3000.
    let mut queue = scheduler_with("deadline", "merge = false");
    fill(&mut *queue, &reads(&[3000, 2000, 3008]));
    assert_eq!(order(&mut *queue, ms(501)), [3000, 3008, 2000]);
    // Writes have five seconds.
    for (at, expected) in [(ms(5000), [10, 90]), (ms(5001), [90, 10])] {
        let mut queue = scheduler("deadline");
        fill(&mut *queue, &[Request::write(90, 8, 0), Request::write(10, 8, 1)]);
        assert_eq!(order(&mut *queue, at), expected);
    }
}

#[test]
fn demand_first_passes_prefetches_over_unless_they_touch() {
    let prefetch = |sector, tag| Request { prefetch: true, ..Request::read(sector, 8, tag) };
    let requests =
        [prefetch(100, 0), prefetch(116, 1), Request::read(300, 8, 2), prefetch(308, 3), Request::read(200, 8, 4)];
    let mut queue = scheduler_with("deadline", "priority = 'demand-first'");
    fill(&mut *queue, &requests);
    assert_eq!(next(&mut *queue, ms(600)).unwrap().0, Request::read(300, 16, 2), "expired, and 308 comes along");
    assert_eq!(next(&mut *queue, ms(600)).unwrap().0.sector, 200);
    assert_eq!(next(&mut *queue, ms(600)).unwrap().0, prefetch(100, 0));
    // A demand read turns a contiguous prefetch into a demand read.
    queue.push(queued(ms(600), Request::read(400, 8, 5)));
    queue.push(queued(ms(600), Request::read(108, 8, 6)));
    assert_eq!(next(&mut *queue, ms(600)).unwrap().0, Request::read(108, 16, 1));
    assert_eq!(next(&mut *queue, ms(600)).unwrap().0.sector, 400);
    // By default they are equal.
    let mut queue = scheduler("deadline");
    fill(&mut *queue, &requests);
    assert_eq!(order(&mut *queue, ms(0)), [100, 116, 200, 300]);
}

#[test]
fn wrong_keys_are_refused() {
    for (keys, begins) in [
        ("batch = 0", "batch: 0 is out of range; allowed: a whole number from 1"),
        ("writes_starved = -1", "writes_starved: -1 is out of range; allowed: a whole number from 0"),
        ("read_expire = 5", "read_expire: 5 is a number"),
        ("merge = 'yes'", "merge: \"yes\" is a string; allowed: true or false"),
        ("priority = 'high'", "priority: \"high\" is unknown; allowed: \"none\", \"demand-first\""),
        ("max_sectors = 0", "max_sectors: 0 is out of range"),
        ("fifo_batch = 16", "fifo_batch: unknown key; allowed: read_expire, write_expire, batch, writes_starved"),
    ] {
        let error = build_scheduler("deadline", keys.parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(begins), "{error:?} should begin with {begins:?}");
    }
}

/// A second implementation, over a plain list.
struct Naive {
    demand_first: bool,
    sectors_max: u32,
    batch: u32,
    writes_starved: u32,
    /// Each with its parts, in order of arrival of its first.
    groups: Vec<Vec<Queued>>,
    /// The first part's sequence and lane of the group that follows what was served last.
    following: Option<(u64, u8)>,
    count: u32,
    passed_over: u32,
    head: u64,
}

fn start(group: &[Queued]) -> u64 {
    group.iter().map(|part| part.request.sector).min().unwrap()
}

fn end(group: &[Queued]) -> u64 {
    group.iter().map(|part| part.request.end()).max().unwrap()
}

fn size(group: &[Queued]) -> u32 {
    group.iter().map(|part| part.request.sectors).sum()
}

fn age(group: &[Queued]) -> u64 {
    group.iter().map(|part| part.sequence).min().unwrap()
}

impl Naive {
    fn lane(&self, group: &[Queued]) -> u8 {
        match group[0].request.write {
            true => b'w',
            false if self.demand_first && group.iter().all(|part| part.request.prefetch) => b'p',
            false => b'd',
        }
    }

    fn by_place(&self, lane: u8) -> Vec<&Vec<Queued>> {
        let mut groups: Vec<_> = self.groups.iter().filter(|group| self.lane(group) == lane).collect();
        groups.sort_by_key(|group| (start(group), age(group)));
        groups
    }

    fn after(&self, group: &[Queued]) -> Option<(u64, u8)> {
        let lane = self.lane(group);
        let place = (start(group), age(group));
        let all = self.by_place(lane);
        all.iter().find(|other| (start(other), age(other)) > place).map(|other| (age(other), lane))
    }

    fn push(&mut self, queued: Queued) {
        let Request { sector, sectors, write, .. } = queued.request;
        let earliest = |naive: &Self, fits: &dyn Fn(&[Queued]) -> bool| {
            let alike = |group: &&Vec<Queued>| group[0].request.write == write && fits(group);
            naive.groups.iter().filter(alike).map(|group| age(group)).min()
        };
        let small = |naive: &Self, which: u64, more: u32| {
            let group = naive.groups.iter().find(|group| age(group) == which).unwrap();
            size(group) + more <= naive.sectors_max
        };
        let mut pair = vec![queued];
        let backward = earliest(self, &|group| end(group) == sector);
        let forward = earliest(self, &|group| start(group) == queued.request.end());
        if let Some(former) = backward {
            if small(self, former, sectors) {
                pair.append(&mut self.remove(former, false, &queued));
                if let Some(latter) = earliest(self, &|group| start(group) == queued.request.end()) {
                    if small(self, latter, size(&pair)) {
                        pair.append(&mut self.remove(latter, true, &queued));
                    }
                }
            }
        } else if let Some(latter) = forward.filter(|which| small(self, *which, sectors)) {
            pair.append(&mut self.remove(latter, true, &queued));
        }
        // The rest of the group that was to follow still follows.
        if let Some((which, lane)) = self.following {
            if pair.iter().any(|part| part.sequence == which) {
                self.following = Some((age(&pair), lane));
            }
        }
        self.groups.push(pair);
        self.groups.sort_by_key(|group| age(group));
    }

    /// Removes a group to merge it. If it changes its place or its lane, its successor follows instead.
    fn remove(&mut self, which: u64, moves: bool, with: &Queued) -> Vec<Queued> {
        let group = self.groups.iter().find(|group| age(group) == which).unwrap().clone();
        let changes = self.lane(&group) != self.lane(&[&group[..], &[*with]].concat());
        if self.following.is_some_and(|(following, _)| following == which) && (moves || changes) {
            self.following = self.after(&group);
        }
        self.groups.retain(|group| age(group) != which);
        group
    }

    fn pop(&mut self, now: Nanos) -> Option<Vec<Queued>> {
        let follows = self.following.map(|(which, _)| which);
        let index = follows.and_then(|which| self.groups.iter().position(|group| age(group) == which));
        let mut chosen = None;
        if let Some(index) = index {
            let group = &self.groups[index];
            if start(group) != self.head {
                self.count += self.batch;
            }
            let overruled = self.lane(group) == b'p' && !self.by_place(b'd').is_empty();
            chosen = (self.count < self.batch && !overruled).then(|| age(group));
        }
        if chosen.is_none() {
            let writes = !self.by_place(b'w').is_empty();
            let reads = [b'd', b'p'].into_iter().find(|lane| !self.by_place(*lane).is_empty());
            let lane = match reads {
                Some(_) if writes && self.passed_over >= self.writes_starved => b'w',
                Some(lane) => {
                    self.passed_over += u32::from(writes);
                    lane
                }
                None if writes => b'w',
                None => return None,
            };
            if lane == b'w' {
                self.passed_over = 0;
            }
            let expire = if lane == b'w' { ms(5000) } else { ms(500) };
            let eldest = self.groups.iter().find(|group| self.lane(group) == lane).unwrap();
            let first = eldest.iter().map(|part| part.arrived).min().unwrap();
            if now > first + expire {
                self.count = 0;
                chosen = Some(age(eldest));
            } else if let Some((which, _)) = self.following.filter(|(_, following)| *following == lane) {
                chosen = Some(which);
            } else {
                self.count = 0;
                chosen = Some(age(self.by_place(lane)[0]));
            }
        }
        self.count += 1;
        let chosen = chosen?;
        let group = self.groups.iter().find(|group| age(group) == chosen).unwrap().clone();
        self.following = self.after(&group);
        self.head = end(&group);
        self.groups.retain(|group| age(group) != chosen);
        Some(group)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_and_merges_as_the_naive_model(
        steps in prop::collection::vec((0u8..5, 0u64..60, 1u32..4, 0u8..6, 0u64..200), 1..200),
        demand_first in any::<bool>(), sectors_max in 3u32..20, batch in 1u32..5, writes_starved in 0u32..4,
    ) {
        let priority = if demand_first { "demand-first" } else { "none" };
        let mut queue = scheduler_with("deadline", &format!(
            "priority = '{priority}'\nmax_sectors = {sectors_max}\nbatch = {batch}\nwrites_starved = {writes_starved}"
        ));
        let (groups, following, count, passed_over, head) = (Vec::new(), None, 0, 0, 0);
        let mut naive =
            Naive { demand_first, sectors_max, batch, writes_starved, groups, following, count, passed_over, head };
        let (mut now, mut parts) = (Nanos::ZERO, Vec::new());
        for (index, &(what, sector, sectors, kind, pause)) in steps.iter().enumerate() {
            now += ms(if what == 0 { pause } else { 0 });
            if what > 1 {
                let (write, prefetch) = (kind == 0, kind == 1 || kind == 2);
                let request = Request { write, prefetch, ..Request::read(sector, sectors, index as u64) };
                queue.push(queued(now, request));
                naive.push(queued(now, request));
            } else {
                let whole = match queue.pop(now, &Arm::default(), &mut parts) {
                    Next::Serve(whole) => Some(whole),
                    _ => None,
                };
                if let (Some(whole), true) = (whole, parts.is_empty()) {
                    parts.push(whole);
                }
                parts.sort_by_key(|part| part.sequence);
                let mut expected = naive.pop(now).unwrap_or_default();
                expected.sort_by_key(|part| part.sequence);
                prop_assert_eq!(&parts, &expected);
                parts.clear();
            }
            prop_assert_eq!(queue.len(), naive.groups.iter().map(Vec::len).sum::<usize>());
        }
    }

    /// With short expiries and an arm that is never idle, expired requests are served within the promised number.
    #[test]
    fn the_expired_are_served_within_the_promised_number(
        arrivals in queueing::arrivals(150), batch in 1u32..4, writes_starved in 1u32..4, merge in any::<bool>(),
    ) {
        let queue = || scheduler_with("deadline", &format!(
            "read_expire = '20ms'\nwrite_expire = '100ms'\nbatch = {batch}\nwrites_starved = {writes_starved}\n\
             merge = {merge}"
        ));
        let mut drive = headstart_device::Drive::new(Box::new(Arm::default()), queue());
        let done = run(&mut drive, &arrivals).done;
        let started = |each: &headstart_device::Finished| each.arrived + each.response_time - each.service_time;
        for (_, each) in &done {
            let Promise::Overtaken { after, each: factor, more } = queue().promise(&each.request) else {
                return Err(TestCaseError::fail("a promise"));
            };
            let from = each.arrived + after;
            let waiting =
                done.iter().filter(|(_, other)| other.arrived <= from && started(other) >= from).count();
            let mut before: Vec<Nanos> = done.iter().map(|(_, other)| started(other)).collect();
            before.retain(|start| *start > from && *start < started(each));
            before.dedup();
            prop_assert!(before.len() <= factor * waiting.saturating_sub(1) + more);
        }
    }
}

#[test]
fn merging_saves_positioning() {
    // Sixteen neighbours, backward, while the arm is at 100,000: 17 services become 2, and the way back is gone
    // once: 100,008 - 0 sectors.
    let mut arrivals = vec![(Nanos::ZERO, Request::read(100_000, 8, 99))];
    arrivals.extend((0..16).rev().map(|index| (ms(1), Request::read(index * 8, 8, index))));
    let mut drive = headstart_device::Drive::new(Box::new(Arm::default()), scheduler("deadline"));
    let outcome = run(&mut drive, &arrivals);
    let sums = drive.statistics(outcome.end);
    assert_eq!((sums.requests, sums.parts, sums.sectors), (2, 17, 17 * 8));
    assert_eq!(sums.seek, Nanos::from_micros(100_000 + 100_008));
    assert_eq!(drive.device().head_sector(), 128);
}
