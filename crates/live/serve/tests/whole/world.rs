//! An export, its clients and its backing on a virtual clock.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use bytes::BytesMut;
use headstart_assemble::served;
use headstart_hints::{Expected, Prepared};
use headstart_nbd::{Errno, Extent};
use headstart_policy::registry::policy;
use headstart_serve::backing::Backing;
use headstart_serve::change::Change;
use headstart_serve::conductor::{Conductor, Setting};
use headstart_serve::queue::Queue;
use headstart_serve::spill::Spill;
use headstart_serve::work::{Action, Answer, ClientRequest, Completed, Data, Op, Work};
use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::drawn::{End, Event, Kind, Plan, What};
use super::model::{content, Fate, Model, ZEROES};
use super::planted::{FaultyBacking, FaultyQueue, Planted};
use super::storage::{Broken, Storage, GRAIN, PAGE};
use super::Done;

/// Duration of a stuck call.
const STUCK: Nanos = Nanos::from_millis(60_000);
/// Longer than any request takes that is independent of a stuck call.
const PATIENCE: Nanos = Nanos::from_millis(5_000);

/// Added to the number of a request for its direct work on the backing.
const DIRECT: u64 = 1 << 32;

/// Frames that suffice for other requests.
const FRAMES_LEFT: u64 = 16;

/// A request without an answer.
struct Open {
    client: (u32, u32),
    bytes: Range<u64>,
    kind: Kind,
    at: Nanos,
    /// When it began, in the model's time.
    since: u64,
    /// Something that it touches was faulty since then.
    may_fail: bool,
    /// Acknowledged changes may have been lost when it was sent.
    has_lost: bool,
    /// No earlier request had been told of the loss.
    is_first: bool,
}

/// Work in flight, with its result if known.
struct Working {
    id: u64,
    work: Work,
    done: Option<std::io::Result<Vec<Extent>>>,
}

pub struct World<'a> {
    plan: &'a Plan,
    fault: Option<Planted>,
    random: ChaCha8Rng,
    storage: Storage,
    model: Model,
    spill: Option<PathBuf>,
    backing: Box<dyn Backing>,
    conductor: Conductor<FaultyQueue>,
    now: Nanos,
    working: BTreeMap<(Nanos, u64), Working>,
    open: BTreeMap<u64, Open>,
    /// What a planted fault withholds from the server, by request: the bytes of a write, or (empty) the failure of a
    /// change.
    withheld: BTreeMap<u64, Vec<u8>>,
    /// Answers that clients are reading, with the expected bytes.
    held: BTreeMap<(Nanos, u64), (Data, Vec<u8>)>,
    /// Number of disconnected clients by client number.
    gone: BTreeMap<u32, u32>,
    sticks: Vec<u64>,
    /// Number of coming calls that will be stuck.
    stalls: u32,
    /// With the fault `ServesAndWaits`: nothing is served until then.
    waits_until: Nanos,
    /// Time from which reads return the backing's current content, after acknowledged changes were lost.
    settled: Option<u64>,
    /// The server has noticed that acknowledged changes may be lost.
    was_over: bool,
    counted: u64,
    done: Done,
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.spill {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan, fault: Option<Planted>) -> Self {
        let storage = Storage::new(plan.size_bytes, plan.seed, plan.is_server);
        let mut world = Self {
            plan,
            fault,
            random: ChaCha8Rng::seed_from_u64(plan.seed ^ 0x5eed),
            model: Model::new(plan.size_bytes / GRAIN),
            spill: None,
            backing: Box::new(storage.clone()),
            conductor: conductor(plan, fault, None),
            storage,
            now: Nanos::ZERO,
            working: BTreeMap::new(),
            open: BTreeMap::new(),
            withheld: BTreeMap::new(),
            held: BTreeMap::new(),
            gone: BTreeMap::new(),
            sticks: Vec::new(),
            stalls: 0,
            waits_until: Nanos::ZERO,
            settled: None,
            was_over: false,
            counted: 0,
            done: Done::default(),
        };
        world.starts();
        world
    }

    /// Starts a server.
    fn starts(&mut self) {
        self.backing = Box::new(self.storage.clone());
        let spill = self.plan.spill.then(|| {
            let name = format!("headstart-whole-{}-{:?}", std::process::id(), std::thread::current().id());
            let path = std::env::temp_dir().join(name);
            // 70 slots, plus the header and the table.
            let text = format!("{}:{}B", path.display(), 8192 + 70 * (PAGE + 32));
            let identity = self.identity();
            self.spill = Some(path);
            Spill::open(&text, PAGE, identity.as_deref(), true).expect("it can be opened")
        });
        self.conductor = conductor(self.plan, self.fault, spill);
        if let Some(fault) = self.fault {
            let backing = std::mem::replace(&mut self.backing, Box::new(self.storage.clone()));
            self.backing = Box::new(FaultyBacking { backing, fault });
        }
        self.syncs();
    }

    /// A starting server makes stable what its predecessor acknowledged, or does not start until that is possible.
    fn syncs(&mut self) {
        let is_away = |storage: &Storage| storage.lock().connection == Some(false);
        let mut loses = self.storage.lock().has_lost || is_away(&self.storage);
        self.storage.reopen();
        if self.storage.flush().is_err() {
            loses |= self.storage.lock().has_lost;
            self.storage.lock().broken.clear();
            self.storage.reopen();
            self.storage.flush().expect("nothing is broken");
        }
        if loses {
            if self.plan.is_server {
                // If the upstream server forgot a failed sync, it is restarted, too: only that settles what it had only
                // in its cache.
                self.storage.crash();
            }
            self.model.loses();
        }
        let now = self.model.tick();
        self.model.flushed(now);
        (self.settled, self.was_over) = (None, false);
    }

    /// Identity of the backing and its content; a server has none.
    fn identity(&self) -> Option<String> {
        (!self.plan.is_server).then(|| format!("changed {} times", self.storage.lock().changes))
    }

    pub fn happens(&mut self, event: &Event) {
        self.passes(event.after);
        if !matches!(event.what, What::Ask { .. }) {
            let kind = match &event.what {
                What::Breaks { how, .. } => format!("{how:?}"),
                What::Restart(end) => format!("{end:?}"),
                other => format!("{other:?}").split_whitespace().next().unwrap_or_default().to_owned(),
            };
            *self.done.faults.entry(kind).or_default() += 1;
        }
        match &event.what {
            What::Ask { client, bytes, kind } => self.asks(*client, bytes, *kind),
            What::Dies { client } => *self.gone.entry(*client).or_default() += 1,
            What::Breaks { pages, how } => {
                self.storage.lock().broken.push((pages.clone(), *how));
                self.may_fail();
            }
            What::Heals => self.storage.lock().broken.clear(),
            What::Sticks { page } => self.sticks.push(*page),
            What::Stalls => self.stalls += 1,
            What::Disconnects => self.disconnects(),
            What::Restart(end) => self.restarts(*end),
        }
    }

    /// Restarts the server behind the connection.
    fn disconnects(&mut self) {
        if !self.plan.is_server {
            return;
        }
        for working in self.working.values_mut().filter(|working| working.done.is_none()) {
            if matches!(working.work, Work::Change(Change::Renew, _) | Work::Store(_) | Work::Load(_)) {
                continue;
            }
            if self.random.random() {
                // The result is lost with the connection.
                let has_lost = self.storage.lock().has_lost;
                let _ = working.work.carry_out(&*self.backing);
                self.storage.lock().has_lost = has_lost;
            }
            working.done = Some(Err(std::io::ErrorKind::ConnectionReset.into()));
        }
        self.storage.disconnect();
        self.storage.lock().may_refuse = true;
        self.open.values_mut().for_each(|open| open.may_fail = true);
        self.settled = None;
    }

    fn generation(&self, client: u32) -> u32 {
        self.gone.get(&client).copied().unwrap_or(0)
    }

    fn asks(&mut self, client: u32, bytes: &Range<u64>, kind: Kind) {
        self.counted += 1;
        self.done.requests += 1;
        let (id, length) = (self.counted, bytes.end - bytes.start);
        let grains = bytes.start / GRAIN..bytes.end / GRAIN;
        let since = self.model.tick();
        let op = match kind {
            Kind::Read => Op::Read,
            Kind::Cache => Op::Cache,
            Kind::Extents => Op::Extents,
            Kind::Flush => Op::Flush,
            Kind::Write { fua } => {
                let version = id + 2;
                self.model.begins(id, grains.clone(), version, fua);
                let mut data = grains.flat_map(|grain| content(version, grain)).collect();
                if self.fault == Some(Planted::StaleCache) {
                    let now = self.storage.lock().bytes[bytes.start as usize..bytes.end as usize].to_vec();
                    self.withheld.insert(id, std::mem::replace(&mut data, now));
                }
                Op::Write { data, fua }
            }
            Kind::Zero { fua } => {
                self.model.begins(id, grains, ZEROES, fua);
                Op::Zero { fua, no_hole: self.random.random() }
            }
            Kind::Trim { fua } => {
                self.model.begins(id, grains, ZEROES, fua);
                Op::Trim { fua }
            }
        };
        let generation = self.generation(client);
        let open = Open {
            client: (client, generation),
            bytes: bytes.clone(),
            kind,
            at: self.now,
            since,
            may_fail: false,
            has_lost: self.storage.lock().has_lost,
            is_first: !self.was_over,
        };
        self.open.insert(id, open);
        self.may_fail();
        let client = client + 100 * generation;
        self.conductor.request(ClientRequest { id, client, offset: bytes.start, length: length as u32, op });
        if self.now >= self.waits_until {
            self.instant();
        }
    }

    /// Marks the requests that touch something broken now, which may fail.
    fn may_fail(&mut self) {
        let inner = self.storage.lock();
        let alone = self.plan.fails_in_parts;
        // A request may join a read that was lost with a connection.
        let joins = |working: &Working| matches!((&working.work, &working.done), (Work::Read { .. }, Some(Err(_))));
        let joins = self.working.values().any(joins);
        for open in self.open.values_mut() {
            let is = |how| how != Broken::Syncs && open.kind.changes() == (how == Broken::Changes);
            let fails = inner.fails(open.bytes.start, open.bytes.end - open.bytes.start, is).is_some();
            // If reads do not fail in parts, they fail together with their neighbours.
            let syncs = open.kind.syncs() && inner.broken.iter().any(|(_, how)| *how == Broken::Syncs);
            // A read that meets a second loss fails.
            let again = self.conductor.unstable().is_some() && inner.connection == Some(false);
            open.may_fail |=
                again || syncs || fails || joins || !alone && !inner.broken.is_empty() && !open.kind.changes();
        }
    }

    /// Advances the clock by `time`, with everything that happens in it.
    fn passes(&mut self, time: Nanos) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
        self.is_prompt();
    }

    /// Runs the next event, if it is before `until`.
    fn step(&mut self, until: Nanos) -> bool {
        let ends = self.working.first_key_value().map(|(key, _)| key.0);
        let read = self.held.first_key_value().map(|(key, _)| key.0);
        let timer = self.conductor.next_timer().map(|at| at.max(self.now));
        let waits = (self.waits_until > self.now).then_some(self.waits_until);
        let first = ends.into_iter().chain(read).chain(timer).chain(waits).min();
        let Some(next) = first.filter(|at| *at.max(&self.waits_until) < until) else { return false };
        self.now = next.max(self.now).max(self.waits_until);
        if read == Some(next) {
            self.is_read();
        } else if ends == Some(next) {
            self.work_ends();
        } else {
            self.instant();
        }
        true
    }

    /// A client has read an answer.
    fn is_read(&mut self) {
        let Some((_, (data, bytes))) = self.held.pop_first() else { return };
        assert!(data.slices(0).flatten().eq(&bytes), "an answer has changed on its way");
        self.takes_back(data);
    }

    fn takes_back(&mut self, data: Data) {
        if self.fault != Some(Planted::LosesBuffer) {
            self.conductor.reuse(data);
        }
    }

    fn work_ends(&mut self) {
        let Some((_, working)) = self.working.pop_first() else { return };
        let Working { id, mut work, done } = working;
        let mut result = done.unwrap_or_else(|| work.carry_out(&*self.backing));
        if let (Work::Read { offset, buffers, .. }, true) = (&work, result.is_ok()) {
            let is = |how| !matches!(how, Broken::Changes | Broken::Syncs);
            let failed = self.storage.lock().fails(*offset, buffers.len() as u64 * PAGE, is);
            result = failed.map_or(result, Err);
        }
        let is_plain = matches!(&work, Work::Change(change, _) if change.bytes().is_some() && !change.is_fua());
        if self.fault == Some(Planted::KeepsFailed) && is_plain && result.is_err() {
            self.withheld.insert(id - DIRECT, Vec::new());
            result = Ok(Vec::new());
        }
        let mut buffers = work.into_buffers();
        if result.is_err() {
            // The buffers of a failed read have undefined content.
            buffers.iter_mut().for_each(|buffer: &mut BytesMut| buffer.fill(0xee));
        }
        self.conductor.completed(Completed { id, buffers, result });
        // More work may complete at the same instant.
        if self.working.first_key_value().is_none_or(|(key, _)| key.0 > self.now) {
            self.instant();
        }
    }

    fn instant(&mut self) {
        self.done.instants += 1;
        let mut actions = Vec::new();
        self.conductor.instant(self.now, &mut actions);
        for action in actions {
            match action {
                Action::Start(id, work) => self.begins(id, work),
                Action::Reply(..) if self.fault == Some(Planted::LosesAnswer) => {}
                Action::Reply(id, answer) => {
                    self.answered(id, answer);
                    if self.fault == Some(Planted::AnswersTwice) {
                        self.answered(id, Answer::Done);
                    }
                }
            }
        }
        if self.fault == Some(Planted::GivesNumbersAway) {
            let conductor = &self.conductor;
            conductor.pages().forget(|block| conductor.level().state(block).is_absent());
        }
        if let Err(broken) = self.conductor.check() {
            panic!("{broken}");
        }
        self.settles();
    }

    /// After a loss, once the work in flight at that time has completed, reads return the backing's content.
    fn settles(&mut self) {
        let changes = |work: &Work| matches!(work, Work::Change(change, _) if !matches!(change, Change::Flush));
        let is_away = self.storage.lock().connection == Some(false);
        if self.conductor.unstable().is_none() || is_away || self.settled.is_some() {
            return;
        }
        if !self.working.values().any(|working| changes(&working.work)) {
            self.settled = Some(self.model.tick());
        }
    }

    fn begins(&mut self, id: u64, mut work: Work) {
        self.counted += 1;
        if let (Some(Planted::StaleCache), Work::Change(Change::Write { data, .. }, _)) = (self.fault, &mut work) {
            *data = self.withheld.remove(&(id - DIRECT)).expect("it was kept when it was asked");
        }
        let mut takes = Nanos(self.random.random_range(1_000..2_000_000));
        if let Work::Read { offset, buffers, .. } = &work {
            self.done.reads += 1;
            let pages = offset / PAGE..offset / PAGE + buffers.len() as u64;
            assert!(pages.start * PAGE < self.plan.size_bytes, "a read beyond the end: {pages:?}");
            if let Some(at) = self.sticks.iter().position(|page| pages.contains(page)) {
                self.sticks.remove(at);
                takes = STUCK;
            }
        }
        if self.stalls > 0 && !matches!(work, Work::Change(Change::Renew, _)) {
            self.stalls -= 1;
            takes = STUCK;
        }
        if takes == STUCK && self.fault == Some(Planted::ServesAndWaits) {
            self.waits_until = self.now + STUCK;
        }
        // Work takes effect at its beginning or at its end, and fails at its end.
        let done = self.random.random::<bool>().then(|| work.carry_out(&*self.backing));
        self.working.insert((self.now + takes, self.counted), Working { id, work, done });
    }

    fn answered(&mut self, id: u64, mut answer: Answer) {
        let Some(open) = self.open.remove(&id) else { panic!("an answer to what is answered, or was not asked: {id}") };
        let is_over = self.conductor.unstable().is_some();
        if self.fault == Some(Planted::ForgetsFailedSync) && is_over && open.kind == Kind::Flush && !open.is_first {
            answer = Answer::Done;
        }
        if self.withheld.remove(&id).is_some() {
            answer = Answer::Failed(Errno::Io);
        }
        let has_failed = matches!(answer, Answer::Failed(_));
        self.done.failed += u64::from(has_failed);
        let may_refuse = {
            let inner = self.storage.lock();
            inner.may_refuse || inner.has_lost
        };
        let may_fail = open.may_fail || may_refuse && !matches!(open.kind, Kind::Read | Kind::Cache);
        assert!(!has_failed || may_fail, "{:?} of {:?} fails, and nothing is broken", open.kind, open.bytes);
        let must_fail = open.has_lost && open.kind.syncs();
        assert!(
            has_failed || !must_fail,
            "{:?} is answered though changes that were acknowledged may be lost",
            open.kind
        );
        if is_over && !self.was_over {
            self.was_over = true;
            self.model.loses();
        }
        let oldest = self.open.values().map(|open| open.since).min().unwrap_or(u64::MAX);
        let length = open.bytes.end - open.bytes.start;
        match (open.kind, answer) {
            (Kind::Read, Answer::Data(data)) => {
                let bytes = data.slices(0).collect::<Vec<_>>().concat();
                assert_eq!(bytes.len() as u64, length, "an answer has another length");
                self.done.checked_bytes += length;
                if self.settled.is_some_and(|settled| settled <= open.since) {
                    let inner = self.storage.lock();
                    let is = inner.bytes[open.bytes.start as usize..open.bytes.end as usize] == bytes[..];
                    assert!(is, "after a loss, {:?} is not what the backing has", open.bytes);
                }
                if let Err(wrong) = self.model.may_bring(open.bytes.start, &bytes, open.since) {
                    panic!("a read brings what is not there: {wrong}");
                }
                if open.client.1 < self.generation(open.client.0) {
                    return self.takes_back(data);
                }
                self.counted += 1;
                let until = self.now + Nanos(self.random.random_range(0..1_500_000));
                self.held.insert((until, self.counted), (data, bytes));
            }
            (Kind::Extents, Answer::Extents(extents)) => {
                assert_eq!(extents.iter().map(|extent| u64::from(extent.length)).sum::<u64>(), length, "extents");
            }
            (Kind::Flush, Answer::Done) => self.model.flushed(open.since),
            (Kind::Write { .. } | Kind::Zero { .. }, Answer::Done) => self.model.ends(id, Fate::Made, oldest),
            // A trim is only a hint.
            (Kind::Trim { .. }, Answer::Done) => self.model.ends(id, Fate::Either, oldest),
            (kind, Answer::Failed(_)) if kind.changes() => self.model.ends(id, Fate::Either, oldest),
            (Kind::Cache, Answer::Done) | (_, Answer::Failed(_)) => {}
            (kind, answer) => panic!("{kind:?} is answered by {answer:?}"),
        }
    }

    /// Checks that no request independent of a stuck read has waited for long.
    fn is_prompt(&mut self) {
        if !self.open.values().any(|open| open.at + PATIENCE < self.now) {
            return;
        }
        let pages = |bytes: &Range<u64>| bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        let mut stuck = Vec::new();
        for Working { work, .. } in self.working.values() {
            match work {
                Work::Read { offset, buffers, .. } => stuck.push(offset / PAGE..offset / PAGE + buffers.len() as u64),
                Work::Change(change, _) => stuck.extend(change.bytes().map(|bytes| pages(&bytes))),
                Work::Store(place) => stuck.push(place.page..place.page + 1),
                Work::Load(places) => stuck.extend(places.iter().map(|place| place.page..place.page + 1)),
                Work::Extents { .. } => {}
            }
        }
        // A stuck sync delays concurrent ones, as they may have had its error.
        let own: Vec<u64> = self.working.values().filter_map(|working| working.id.checked_sub(DIRECT)).collect();
        let syncs = self.open.iter().any(|(id, open)| open.kind.syncs() && own.contains(id));
        // Requests that wait for those, directly or indirectly.
        let waits = |(id, open): &(&u64, &Open)| own.contains(id) || syncs && open.kind.syncs();
        let (waiting, others): (Vec<_>, Vec<_>) = self.open.iter().partition(waits);
        stuck.extend(waiting.into_iter().filter(|(_, open)| open.kind.changes()).map(|(_, open)| pages(&open.bytes)));
        let mut others = others;
        loop {
            let before = others.len();
            others.retain(|(_, open)| {
                let own = pages(&open.bytes);
                let waits = stuck.iter().any(|other| other.start < own.end && own.start < other.end);
                stuck.extend(waits.then_some(own));
                !waits
            });
            if others.len() == before {
                break;
            }
        }
        // If all frames are in flight, a demand gets none.
        let frames = u64::from(self.conductor.setting().frames);
        let taken: u64 = stuck.iter().map(|pages| pages.end - pages.start).sum();
        // A read cannot start while the maximum number of reads is stuck.
        let reads =
            self.working.values().filter(|working| matches!(working.work, Work::Read { .. } | Work::Load(_))).count();
        if frames > 0 && frames < taken + FRAMES_LEFT || reads >= self.plan.depth as usize {
            others.clear();
        }
        for (_, Open { kind, bytes, at, .. }) in &others {
            let took = self.now - *at;
            assert!(took <= PATIENCE, "{kind:?} of {bytes:?} has waited {took} for none of {stuck:?}");
        }
        // Requests delayed legitimately until now start to wait now.
        let prompt: Vec<u64> = others.iter().map(|(id, _)| **id).collect();
        let waiting = self.open.iter_mut().filter(|(id, _)| !prompt.contains(id));
        waiting.for_each(|(_, open)| open.at = self.now);
    }

    /// Completes everything in flight.
    fn drains(&mut self) {
        let soon = Nanos(u64::MAX);
        while !self.working.is_empty() || !self.held.is_empty() || self.waits_until > self.now {
            self.step(soon);
        }
        if let Some((id, open)) = self.open.first_key_value() {
            panic!("no answer to {id}, {:?} of {:?}", open.kind, open.bytes);
        }
        if let Err(broken) = self.conductor.check_idle() {
            panic!("{broken}");
        }
    }

    fn restarts(&mut self, end: End) {
        if end == End::Drained {
            self.asks(99, &(0..0), Kind::Flush);
            self.drains();
            if let Some(spill) = self.conductor.spill() {
                if self.conductor.unstable().is_none() {
                    spill.close(self.identity().as_deref()).expect("it can be closed");
                }
            }
        }
        // Work in flight may or may not have taken effect.
        for (_, Working { mut work, done, .. }) in std::mem::take(&mut self.working) {
            if done.is_none() && matches!(work, Work::Change(..) | Work::Extents { .. }) && self.random.random() {
                let _ = work.carry_out(&*self.backing);
            }
        }
        self.open.clear();
        self.withheld.clear();
        self.held.clear();
        self.sticks.clear();
        self.stalls = 0;
        self.model.gives_up();
        self.conductor = conductor(self.plan, self.fault, None);
        self.backing = Box::new(self.storage.clone());
        let path = self.spill.take();
        if end == End::Crashed {
            path.iter().for_each(|path| std::fs::remove_file(path).expect("it is there"));
            self.storage.crash();
            let bytes = self.storage.lock().bytes.clone();
            if let Err(wrong) = self.model.may_be_left(&bytes) {
                panic!("what was stable is lost: {wrong}");
            }
        }
        self.starts();
    }

    /// At the end, everything is answered, and the cache equals the backing.
    pub fn ends(mut self) -> Done {
        self.storage.lock().broken.clear();
        // A lost connection is noticed when it is needed.
        self.asks(99, &(0..0), Kind::Flush);
        self.asks(99, &(0..1), Kind::Extents);
        self.drains();
        for first in (0..self.plan.size_bytes).step_by(5 * PAGE as usize) {
            self.asks(99, &(first..(first + 5 * PAGE).min(self.plan.size_bytes)), Kind::Read);
            while !self.open.is_empty() {
                assert!(self.step(Nanos(u64::MAX)), "nothing brings the answer");
            }
            let (_, (data, bytes)) = self.held.pop_last().expect("it has just come");
            let is = self.storage.lock().bytes[first as usize..first as usize + bytes.len()] == bytes[..];
            assert!(is, "the cache is not what the backing is, from byte {first} on");
            self.takes_back(data);
        }
        self.drains();
        self.restarts(End::Crashed);
        std::mem::take(&mut self.done)
    }
}

fn conductor(plan: &Plan, fault: Option<Planted>, spill: Option<Spill>) -> Conductor<FaultyQueue> {
    let keys: Table = plan.level.parse().expect("the keys are TOML");
    let level = served(keys, PAGE).expect("the keys are right");
    let setting = Setting {
        size_bytes: plan.size_bytes,
        page_bytes: PAGE,
        frames: level.frames,
        under_way_max: plan.depth,
        read_bytes_max: plan.read_pages_max * PAGE,
        fails_in_parts: plan.fails_in_parts && fault != Some(Planted::SpreadsError),
    };
    let tier = fault.into_iter().fold(level.tier, |tier, fault| fault.within(tier));
    let queue = FaultyQueue { queue: Queue::new(setting.under_way_max), fault };
    let hints = plan.hints.as_ref().and_then(|hints| {
        let expected = Expected {
            row: policy(hints.policy).expect("it is registered"),
            keys: Table::new(),
            pages: hints.pages.clone(),
            elapsed: Nanos::from_millis(plan.events.len() as u64),
            page_bytes: PAGE,
            budget_pages: hints.budget_pages,
        };
        Prepared::try_new(expected).ok()
    });
    let mut conductor = Conductor::with_queue(setting, tier, (spill, hints), queue);
    plan.numbered.into_iter().for_each(|pages| conductor.number_at_most(pages));
    conductor
}
