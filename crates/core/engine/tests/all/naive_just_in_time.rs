//! `just-in-time` against a second implementation that scans the whole string at each decision and keeps all
//! measurements: equal decisions, one by one, on one disk and several, with an arm and with several requests served at
//! once.

use headstart_policy::registry::{policy, replacement, Context};
use headstart_policy::{Disclosure, Event, Fetch, Policy, View};
use headstart_types::{Block, Chosen, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::{context, disclosures, misled, run, System};
use crate::naive_hinted::{Naive, Now, Rule};

/// All measurements of a disk.
#[derive(Clone, Default)]
struct Measured {
    busy_since: u64,
    works: bool,
    is_first: bool,
    per_block: Vec<u64>,
    per_request: Vec<u64>,
    response: Vec<u64>,
    given_at: Option<usize>,
}

struct JustInTime {
    base: Naive,
    has_arm: bool,
    uniform: bool,
    frames: f64,
    nominal: f64,
    chunk: usize,
    request: u32,
    look_at: usize,
    thinks: Vec<u64>,
    disks: Vec<Measured>,
    fetches: u32,
}

fn mean(each: &[u64]) -> Option<f64> {
    let last = &each[each.len().saturating_sub(100)..];
    (!last.is_empty()).then(|| last.iter().sum::<u64>() as f64 / last.len() as f64)
}

impl JustInTime {
    fn new(said: &System, context: &Context, disclosure: &Disclosure) -> Self {
        let frames = f64::from(context.frames);
        let nominal = context.nominal_service.0 as f64;
        let request = (nominal / context.block_transfer.0 as f64).ceil().clamp(1.0, frames);
        Self {
            base: Naive::new(said, Rule::Aggressive { batch: 0 }, disclosure, 1),
            has_arm: context.concurrency == 1,
            uniform: context.uniform,
            frames,
            nominal,
            chunk: (request * said.disks as f64).clamp(frames / 64.0, frames / 16.0).max(1.0) as usize,
            request: request as u32,
            look_at: 0,
            thinks: vec![context.mean_compute.0],
            disks: vec![Measured::default(); said.disks],
            fetches: 0,
        }
    }

    fn think(&self) -> f64 {
        mean(&self.thinks).expect("the mean at least")
    }

    /// How many references ahead may be fetched.
    fn window(&self, now: &Now<'_>) -> usize {
        if f64::from(now.free) > self.frames * 0.25 {
            return usize::MAX / 2;
        }
        let furthest = match (now.free, self.base.victim(now)) {
            (0, None) => Some(0),
            (0, Some((_, next))) => next,
            _ => None,
        };
        let window = match (furthest, &self.base.disclosure) {
            (None, Disclosure::All) => self.frames * 1.5,
            (None, _) => self.frames * 0.8,
            (Some(furthest), _) => {
                let beyond = furthest.saturating_sub(now.cursor) as f64 - self.frames;
                (beyond * if self.has_arm { 0.125 } else { 0.5 }).min(self.frames * 0.8)
            }
        };
        (window as usize).max(self.chunk)
    }

    /// The last due position of a disk's missing blocks within the window, and how many it may be given.
    fn due(&self, disk: usize, end: usize, looks: bool, outstanding: u32, now: &Now<'_>) -> Option<(usize, u32)> {
        let missing = self.base.missing(now, |other| other == disk);
        let measured = &self.disks[disk];
        let head = *missing.first().filter(|head| **head <= end)?;
        let pace = mean(&measured.per_block).unwrap_or(self.nominal);
        let response = match self.has_arm {
            true => mean(&measured.per_request).unwrap_or(self.nominal),
            false => mean(&measured.response).unwrap_or(self.nominal).max(self.nominal),
        };
        let chunk = self.chunk as u32;
        let has_enough = match self.has_arm {
            true => outstanding >= 64,
            false => outstanding >= 2 * chunk && f64::from(outstanding) * pace >= 1.5 * response,
        };
        // It was given a fetch less than a chunk ago, and has enough.
        if has_enough && now.cursor < measured.given_at.unwrap_or(0) + self.chunk {
            return None;
        }
        let room = match self.has_arm {
            true => u32::MAX,
            false => (2.0 * response / pace.max(1.0)) as u32 + 2 * chunk + 1,
        };
        let room = room.saturating_sub(outstanding);
        let is_due = |position: usize, index: u32| {
            let ahead = position - now.cursor;
            let queued = f64::from(outstanding) + f64::from(index);
            ahead < self.chunk || ahead as f64 * self.think() <= 2.0 * (response + queued * pace)
        };
        if !looks && !is_due(head, 1) {
            return None;
        }
        // Block by block up to the 64th, then by words of the disk's positions, of which the last block says it for
        // all.
        let of_disk = |at: &usize| self.base.disk(*at) == disk;
        let first = (0..self.base.refs.len()).filter(|at| self.base.disk(*at) < disk).count();
        let word = |at: usize| (first + (0..at).filter(of_disk).count()) / 64;
        let (mut index, mut due) = (0, None);
        for members in missing.chunk_by(|one, next| word(*one) == word(*next)) {
            let (last, count) = (*members.last().expect("a chunk has one"), members.len() as u32);
            let whole = index >= 64 && last <= end && index + count <= room;
            if whole {
                index += count;
                due = if is_due(last, index) { Some(last) } else { due };
                continue;
            }
            for member in members {
                if *member > end || index >= room {
                    return due.map(|due| (due, room));
                }
                index += 1;
                due = if is_due(*member, index) { Some(*member) } else { due };
            }
        }
        due.map(|due| (due, room))
    }

    /// Whether one of the blocks referenced before `position` is a better victim than the currently furthest one, by
    /// more than the disk has time for.
    fn waits(&self, position: usize, now: &Now<'_>) -> bool {
        let alone = self.has_arm && self.disks.len() == 1 && matches!(self.base.disclosure, Disclosure::All);
        let Some((_, Some(victim))) = self.base.victim(now).filter(|_| alone && now.free == 0) else { return false };
        let again =
            |at: usize| (at + 1..self.base.refs.len()).find(|other| self.base.refs[*other] == self.base.refs[at]);
        let uses: Vec<_> = (now.cursor..position).map(again).collect();
        let harm = match uses.iter().flatten().max() {
            _ if uses.contains(&None) => 1.0,
            None => 0.0,
            Some(better) => better.saturating_sub(victim) as f64 / (better.saturating_sub(now.cursor)).max(1) as f64,
        };
        if harm <= 0.02 {
            return false;
        }
        let pace = mean(&self.disks[0].per_block).unwrap_or(self.nominal).max(1.0);
        let worked = self.think() * (self.thinks.len() - 1) as f64;
        let disk_has_time = 1.0 + harm <= worked / f64::from(self.fetches.max(1)) / pace;
        // No driver time is charged here, which counts as 1 ns.
        let driver_has_time = 1.0 + harm <= mean(&self.disks[0].response).unwrap_or(self.nominal);
        !(disk_has_time && driver_has_time)
    }

    fn fetch_up_to(&mut self, limit: usize, mut room: Vec<u32>, now: &mut Now<'_>) {
        let protected = (self.frames * 0.8) as usize;
        while let Some(at) = self.base.missing(now, |disk| room[disk] > 0).first().copied().filter(|at| *at <= limit) {
            let beyond = match at - now.cursor <= protected {
                true => limit.min(now.cursor + protected).max(at),
                false => usize::MAX,
            };
            let Some(frame) = self.base.frame_beyond(now, beyond) else { return };
            if self.waits(at, now) {
                return;
            }
            let disk = self.base.disk(at);
            self.base.fetch(now, self.base.refs[at] as usize, frame);
            room[disk] -= 1;
            self.disks[disk].given_at = Some(now.cursor);
            self.fetches += 1;
        }
    }

    /// Orders contiguous blocks together, runs by their earliest decision; the frames stay as they are.
    fn gather(&self, fetches: &mut [Fetch]) {
        let mut places: Vec<_> = (0..)
            .zip(fetches.iter())
            .map(|(at, fetch)| (self.base.disk_of[fetch.block.index()], fetch.block.0, at))
            .collect();
        places.sort_unstable();
        let mut runs: Vec<Vec<(u32, u32, i32)>> =
            places.chunk_by(|one, next| one.1 + 1 == next.1).map(<[_]>::to_vec).collect();
        runs.sort_by_key(|run| run.iter().map(|(_, _, at)| *at).min());
        for (fetch, (_, block, _)) in fetches.iter_mut().zip(runs.concat()) {
            fetch.block = Block(block);
        }
    }

    fn decide(&mut self, time: u64, before: &[u32], now: &mut Now<'_>) {
        let missing = self.base.missing(now, |_| true);
        if missing.is_empty() {
            return;
        }
        let first = now.fetches.len();
        let looks = now.cursor >= self.look_at;
        if looks {
            self.look_at = now.cursor + (self.chunk / 32).max(1);
        }
        let end = now.cursor + self.window(now);
        let due: Vec<_> =
            before.iter().enumerate().map(|(disk, waiting)| self.due(disk, end, looks, *waiting, now)).collect();
        if let Some(last) = due.iter().flatten().map(|(last, _)| *last).max() {
            let room = due.iter().map(|due| due.map_or(0, |(_, room)| room)).collect();
            self.fetch_up_to((last + self.chunk).min(end), room, now);
        }
        if self.base.missing(now, |_| true).first() == Some(&now.cursor) {
            if let Some(frame) = self.base.any_frame(now) {
                self.base.fetch(now, self.base.refs[now.cursor] as usize, frame);
            }
        }
        if !self.uniform {
            self.gather(&mut now.fetches[first..]);
        }
        for fetch in &now.fetches[first..] {
            let disk = &mut self.disks[self.base.disk_of[fetch.block.index()] as usize];
            if !std::mem::replace(&mut disk.works, true) {
                (disk.is_first, disk.busy_since) = (true, time);
            }
        }
    }
}

impl Policy for JustInTime {
    fn on(&mut self, time: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        match event {
            Event::Decide => {
                let mut now = self.base.now(view, fetches);
                if self.base.owes(&mut now) {
                    return;
                }
                loop {
                    let decided = now.fetches.len();
                    self.decide(time.0, view.outstanding, &mut now);
                    if now.fetches.len() == decided {
                        return;
                    }
                }
            }
            Event::Served { position, compute, .. } if position >= 1 => self.thinks.push(compute.0),
            Event::Arrived { disk, .. } => {
                let waiting = view.outstanding[disk.index()];
                let disk = &mut self.disks[disk.index()];
                let busy = time.0.saturating_sub(disk.busy_since);
                if std::mem::take(&mut disk.is_first) {
                    disk.response.push(busy);
                }
                disk.per_block.push(busy);
                disk.per_request.extend((busy > 0).then_some(busy));
                (disk.busy_since, disk.works) = (time.0, waiting > 0);
            }
            _ => {}
        }
        self.base.on(time, event, view, fetches);
    }

    fn grow(&mut self, _blocks: usize) {}

    fn gathers(&self) -> bool {
        !self.uniform
    }

    fn order_max(&self) -> u32 {
        self.request
    }
}

/// Systems with few and many frames, think times from none to more than a service, and the device's assumed properties.
fn drawn(seed: u64) -> (System, u64, u32) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (refs, blocks) = [(220, 40), (500, 200)][usize::from(seed.is_multiple_of(3))];
    let mut system = System::random(seed, refs, blocks);
    let long = rng.random_range(0..20);
    system.think_ns.iter_mut().for_each(|think| *think *= long);
    system.uniform = rng.random();
    if rng.random() {
        (system.disks, system.disk_of) = (1, vec![0; system.disk_of.len()]);
    }
    (system, rng.random_range(1..9), [1, 1, 8][rng.random_range(0..3)])
}

#[test]
fn decisions_equal_those_of_the_naive_policy() {
    let (row, lru) = (policy("just-in-time").expect("a row"), replacement("lru").expect("a row"));
    let (mut decisions, mut prefetches) = (0, 0);
    for seed in 0..200 {
        let (system, part, concurrency) = drawn(seed);
        for disclosure in disclosures(system.refs.len(), seed) {
            for said in [system.clone(), misled(&system)].into_iter().take(if seed % 4 == 0 { 2 } else { 1 }) {
                let mut context = context(&said, lru, disclosure.clone());
                context.block_transfer = Nanos((system.service_ns_max / part).max(1));
                context.concurrency = concurrency;
                let naive = JustInTime::new(&said, &context, &disclosure);
                let fast = run(&system, row.build(&Chosen::plain(row).keys, &context).expect("it builds"));
                let naive = run(&system, Box::new(naive));
                let what = format!("seed {seed}, {disclosure:?}, {part}, {concurrency}\n{:?}\n{system:?}", said.refs);
                let differ = fast.decisions.iter().zip(&naive.decisions).find(|(fast, naive)| fast != naive);
                assert_eq!(differ, None, "{what}");
                assert_eq!(fast, naive, "{what}");
                decisions += fast.decisions.len();
                prefetches += fast.counts.prefetches;
            }
        }
    }
    assert!(decisions > 50_000 && prefetches > 20_000, "{decisions} decisions compared, {prefetches} prefetches");
}
