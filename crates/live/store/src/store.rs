//! The host of a shelf: carries out its actions on a runtime's threads, and lets readers wait.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headstart_engine::Responses;
use headstart_types::{printable, Nanos};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::arena::Place;
use crate::failure::Failure;
use crate::history::History;
use crate::memory::Memory;
use crate::named::Span;
use crate::objects::Objects;
use crate::optimum::Reads;
use crate::recording::Recording;
use crate::shelf::{Action, SegmentId, Shelf};
use crate::source::{Listing, Meta, Source};
use crate::spill::{Found, Spill};

pub(crate) type Waiter = oneshot::Sender<Result<(), Failure>>;

pub(crate) struct Inner {
    pub shelf: Shelf,
    pub objects: Objects,
    pub reads: Reads,
    /// Times of readers' requests.
    pub waits: Responses,
    /// Their sum.
    pub waited: Nanos,
    pub history: History,
    pub recording: Option<Recording>,
    /// Times of requests to the source.
    pub responses: Responses,
    waiters: FxHashMap<SegmentId, Vec<Waiter>>,
    /// File numbers of what is in the spill.
    files: FxHashMap<Span, u64>,
    /// What an earlier run has left in the spill, by key.
    pub found: FxHashMap<String, Vec<Found>>,
    listings: FxHashMap<(String, bool), Arc<Listing>>,
}

/// Counts that no lock guards.
#[derive(Default)]
pub(crate) struct Counters {
    pub gets: AtomicU64,
    pub repeated: AtomicU64,
    pub hedged: AtomicU64,
    pub hedges_won: AtomicU64,
    pub heads: AtomicU64,
    pub lists: AtomicU64,
}

/// A store: objects of a source behind one cache.
pub struct Store {
    pub(crate) source: Source,
    pub(crate) memory: Memory,
    pub(crate) counters: Counters,
    pub(crate) begun: Instant,
    /// A second request is sent for one that takes longer than nearly all.
    hedges: bool,
    spill: Option<Arc<Spill>>,
    inner: Mutex<Inner>,
    next_order: AtomicU64,
    /// What runs the jobs: a lease may end on any thread.
    runtime: tokio::runtime::Handle,
}

/// A request of the source for neighbouring segments.
struct Request {
    segments: Vec<(SegmentId, Span, Place)>,
    demand: bool,
}

enum Job {
    Fetch(Request),
    Load { segment: SegmentId, span: Span, place: Place, file: Option<u64> },
    Store { segment: SegmentId, span: Span, place: Place },
    Remove(u64),
}

impl Store {
    /// A store of `source`, in front of which is a shelf. `spill` has what was found there, by key.
    ///
    /// # Errors
    /// The system gives no memory.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[allow(clippy::disallowed_methods)] // The machine's clock: this is the host.
    pub fn try_new(
        source: Source,
        mut shelf: Shelf,
        spill: Option<(Spill, FxHashMap<String, Vec<Found>>)>,
        hedges: bool,
    ) -> std::io::Result<Arc<Self>> {
        let (spill, found) =
            spill.map_or((None, FxHashMap::default()), |(spill, found)| (Some(Arc::new(spill)), found));
        for each in found.values().flatten() {
            shelf.found(each.number, each.end - each.start);
        }
        let inner = Inner {
            shelf,
            objects: Objects::default(),
            reads: Reads::default(),
            waits: Responses::new(),
            waited: Nanos::ZERO,
            history: History::default(),
            recording: None,
            responses: Responses::new(),
            waiters: FxHashMap::default(),
            files: FxHashMap::default(),
            found,
            listings: FxHashMap::default(),
        };
        Ok(Arc::new(Self {
            source,
            memory: Memory::try_new()?,
            counters: Counters::default(),
            begun: Instant::now(),
            hedges,
            spill,
            inner: Mutex::new(inner),
            next_order: AtomicU64::new(0),
            runtime: tokio::runtime::Handle::current(),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The source.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What is known of the object `key`; asked once.
    ///
    /// # Errors
    /// There is none, or the source fails.
    pub async fn head(&self, key: &str) -> Result<Arc<Meta>, Failure> {
        Ok(self.open(key).await?.1)
    }

    pub(crate) async fn open(&self, key: &str) -> Result<(u32, Arc<Meta>), Failure> {
        if let Some(found) = self.lock().objects.find(key) {
            return Ok(found);
        }
        self.counters.heads.fetch_add(1, Ordering::Relaxed);
        let meta = Arc::new(self.source.head(key).await?);
        // What does not exist takes no number.
        let (number, meta) = {
            let mut inner = self.lock();
            let number = inner.objects.number(key);
            (number, inner.objects.learn(number, &meta))
        };
        self.claim(number, &meta);
        Ok((number, meta))
    }

    /// Takes over what the spill has of an object from an earlier run.
    fn claim(&self, object: u32, meta: &Meta) {
        let mut inner = self.lock();
        for Found { number, version, start, end } in inner.found.remove(&meta.key).unwrap_or_default() {
            let is_same = version == meta.version() && end <= meta.size;
            let span = is_same.then_some(Span { object, start, end });
            if inner.shelf.claim(number, span) {
                inner.files.extend(span.map(|span| (span, number)));
            }
        }
    }

    /// The objects whose keys begin with `prefix`; `is_flat`: up to the next slash. The source is asked once.
    ///
    /// # Errors
    /// The source fails.
    pub async fn list(&self, prefix: &str, is_flat: bool) -> Result<Arc<Listing>, Failure> {
        let asked = (prefix.to_owned(), is_flat);
        if let Some(listing) = self.lock().listings.get(&asked) {
            return Ok(listing.clone());
        }
        self.counters.lists.fetch_add(1, Ordering::Relaxed);
        let listing = Arc::new(self.source.list(prefix, is_flat).await?);
        for meta in &listing.objects {
            let (number, is_new) = {
                let mut inner = self.lock();
                let number = inner.objects.number(&meta.key);
                let meta = Arc::new(meta.clone());
                (number, Arc::ptr_eq(&inner.objects.learn(number, &meta), &meta))
            };
            if is_new {
                self.claim(number, meta);
            }
        }
        self.lock().listings.insert(asked, listing.clone());
        Ok(listing)
    }

    /// Records what is read from now on.
    pub(crate) fn record(&self, recording: Option<Recording>) {
        self.lock().recording = recording;
    }

    /// Ends the recording.
    pub(crate) fn take_recording(&self) -> Option<Recording> {
        self.lock().recording.take()
    }

    /// A number for a new order.
    pub fn order(&self) -> u32 {
        self.next_order.fetch_add(1, Ordering::Relaxed) as u32
    }

    /// Appends ranges of objects to an order; those without an end are read to the end of their object.
    ///
    /// # Errors
    /// An object does not exist, or the source fails.
    pub async fn disclose(self: &Arc<Self>, order: u32, entries: &[(String, u64, Option<u64>)]) -> Result<(), Failure> {
        let mut spans = Vec::with_capacity(entries.len());
        for (key, start, end) in entries {
            let (object, end) = match end {
                Some(end) => (self.extent(key, Some(*end)).await?.0, *end),
                None => {
                    let (object, meta) = self.sized(key).await?;
                    (object, meta.size)
                }
            };
            if *start > end {
                return Err(Failure::Invalid(format!("{}: bytes {start} to {end}", printable(key))));
            }
            if *start < end {
                spans.push(Span { object, start: *start, end });
            }
        }
        self.lock().shelf.disclose(order, &spans);
        self.act();
        Ok(())
    }

    /// Like [`Store::open`]; the first time, all sizes are taken from one listing, where there are listings.
    async fn sized(&self, key: &str) -> Result<(u32, Arc<Meta>), Failure> {
        let is_known = self.lock().objects.find(key).is_some();
        if !is_known {
            // What lists nothing is asked for each object.
            let _ = self.list(self.source.prefix(), false).await;
        }
        self.open(key).await
    }

    /// Forgets an order.
    pub fn withdraw(self: &Arc<Self>, order: u32) {
        self.lock().shelf.withdraw(order);
        self.act();
    }

    /// Entries of an order that are not read yet.
    #[must_use]
    pub fn left(&self, order: u32) -> u64 {
        self.lock().shelf.orders().left(order)
    }

    /// Starts what the shelf wants.
    pub(crate) fn act(self: &Arc<Self>) {
        let jobs = self.lock().jobs(&self.memory);
        for job in jobs {
            match job {
                Job::Fetch(request) => drop(self.runtime.spawn(self.clone().fetch(request))),
                Job::Load { segment, span, place, file } => {
                    let store = self.clone();
                    self.runtime.spawn_blocking(move || store.load(segment, span, place, file));
                }
                Job::Store { segment, span, place } => {
                    let store = self.clone();
                    self.runtime.spawn_blocking(move || store.spill(segment, span, place));
                }
                Job::Remove(file) => {
                    let spill = self.spill.clone();
                    self.runtime.spawn_blocking(move || spill.iter().for_each(|spill| spill.remove(file)));
                }
            }
        }
    }

    async fn fetch(self: Arc<Self>, request: Request) {
        let (first, last) = (request.segments[0].1, request.segments[request.segments.len() - 1].1);
        let key = self.lock().objects.key(first.object).to_owned();
        #[allow(clippy::disallowed_methods)]
        let begun = Instant::now();
        let fetched = self.get_known(&key, first.object, first.start..last.end, &request.segments).await;
        let mut inner = self.lock();
        if fetched.is_ok() {
            let took = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            inner.responses.record(took);
            inner.history.has_fetched(last.end - first.start, self.now());
        }
        for (segment, _, _) in &request.segments {
            inner.shelf.arrived(*segment, fetched.is_ok(), false);
            inner.tell(*segment, &fetched);
        }
        inner.shelf.request_ended(request.demand);
        drop(inner);
        self.act();
    }

    /// Fetches into places. The first answer for an object brings its metadata.
    async fn get_known(
        &self,
        key: &str,
        object: u32,
        range: Range<u64>,
        segments: &[(SegmentId, Span, Place)],
    ) -> Result<(), Failure> {
        let before = self.lock().objects.known(object);
        let found = self.get(key, before.as_deref(), range, segments).await?;
        let found = Arc::new(found);
        let now = self.lock().objects.learn(object, &found);
        // Two first answers may be of different versions.
        if now.is_same(&found) {
            Ok(())
        } else {
            Err(Failure::Changed(key.to_owned()))
        }
    }

    /// Time after which a second request is sent.
    pub(crate) fn hedge_after(&self) -> Option<Duration> {
        let inner = self.lock();
        let most = inner.shelf.response();
        (self.hedges && most > Nanos::ZERO).then_some(Duration::from_nanos(most.0))
    }

    fn load(self: Arc<Self>, segment: SegmentId, span: Span, place: Place, file: Option<u64>) {
        let spill = self.spill.as_ref();
        let bytes = spill.zip(file).and_then(|(spill, file)| spill.load(file, span.bytes()));
        let is_whole = bytes.is_some_and(|bytes| self.memory.write(place.offset, &bytes).is_ok());
        let mut inner = self.lock();
        if is_whole {
            inner.shelf.arrived(segment, true, true);
            inner.tell(segment, &Ok(()));
        } else {
            inner.shelf.not_spilled(segment);
        }
        drop(inner);
        self.act();
    }

    fn spill(self: Arc<Self>, segment: SegmentId, span: Span, place: Place) {
        let (key, meta) = {
            let inner = self.lock();
            (inner.objects.key(span.object).to_owned(), inner.objects.known(span.object))
        };
        let file = self.spill.as_ref().zip(meta).and_then(|(spill, meta)| {
            let number = spill.number();
            let bytes = self.memory.bytes(place.offset, span.bytes());
            spill.store(number, (&key, &meta.version()), span.start, bytes).is_ok().then_some(number)
        });
        let mut inner = self.lock();
        inner.files.extend(file.map(|file| (span, file)));
        inner.shelf.stored(segment, file.is_some());
        drop(inner);
        self.act();
    }
}

impl Inner {
    pub fn wait(&mut self, segment: SegmentId) -> oneshot::Receiver<Result<(), Failure>> {
        let (waiter, wait) = oneshot::channel();
        self.waiters.entry(segment).or_default().push(waiter);
        wait
    }

    fn tell(&mut self, segment: SegmentId, ended: &Result<(), Failure>) {
        for waiter in self.waiters.remove(&segment).unwrap_or_default() {
            // Its reader may have gone.
            let _ = waiter.send(ended.clone());
        }
    }

    fn jobs(&mut self, memory: &Memory) -> Vec<Job> {
        self.shelf.act();
        let placed =
            |shelf: &Shelf, id: SegmentId| (id, shelf.span(id), shelf.place(id).expect("it has been given one"));
        let mut jobs = Vec::new();
        for action in self.shelf.take_actions() {
            jobs.push(match action {
                Action::Fetch { segments, demand } => {
                    let segments = segments.into_iter().map(|id| placed(&self.shelf, id)).collect();
                    Job::Fetch(Request { segments, demand })
                }
                Action::Load(segment) => {
                    let (segment, span, place) = placed(&self.shelf, segment);
                    Job::Load { segment, span, place, file: self.files.get(&span).copied() }
                }
                Action::Store(segment) => {
                    let (segment, span, place) = placed(&self.shelf, segment);
                    Job::Store { segment, span, place }
                }
                Action::Remove(span) => match self.files.remove(&span) {
                    Some(file) => Job::Remove(file),
                    None => continue,
                },
                Action::RemoveFound(file) => Job::Remove(file),
                // Before anybody else gets the place.
                Action::Free(place) => {
                    memory.free(place);
                    continue;
                }
            });
        }
        jobs
    }
}
