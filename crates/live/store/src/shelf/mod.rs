//! What a store keeps, and what it fetches next: a state machine without clock and I/O. Its host tells it what readers
//! want and what has arrived, and carries out its actions.
//!
//! A *segment* is a range of an object that was read or disclosed as such: exactly the bytes that readers want are
//! fetched, since pages would add half of a page at both ends of each range. Segments of an object do not overlap; a
//! read that overlaps some takes these, and fetches what is between them. Two levels keep segments, the memory and the
//! spill (a local disk); a segment may be in both. The memory's evicted segments go to the spill.

mod ahead;
mod eviction;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timed;
mod totals;

use std::collections::{BTreeMap, VecDeque};

use headstart_policy::hinted::nearness::{near_at_first, Answers, Horizon};
use headstart_types::Nanos;

use crate::arena::{Arena, Place};
use crate::filing::Filing;
pub use crate::filing::SegmentId;
use crate::named::{Span, Use};
use crate::orders::Orders;
pub use totals::Totals;

/// The longest segment: what a request of this length takes longer for than a second one costs. A guess.
pub const SEGMENT_BYTES_MAX: u64 = 8 << 20;

/// What the host has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read neighbouring segments of one object from the source, as one request. [`Shelf::arrived`] follows for each.
    Fetch { segments: Vec<SegmentId>, demand: bool },
    /// Read a segment from the spill. [`Shelf::arrived`] follows.
    Load(SegmentId),
    /// Write a segment to the spill. [`Shelf::stored`] follows.
    Store(SegmentId),
    /// Remove a segment from the spill.
    Remove(Span),
    /// Remove a file of an earlier run from the spill.
    RemoveFound(u64),
    /// The memory of a place is not needed any more.
    Free(Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only the spill has it.
    Absent,
    /// Wanted by a reader, and there has been no room yet.
    Wanted,
    Coming,
    Here,
}

#[derive(Debug)]
struct Segment {
    span: Span,
    state: State,
    place: Option<Place>,
    /// Uses that keep it in memory: readers, and requests that wait for it.
    leases: u32,
    /// It was fetched ahead and has not been read.
    is_ahead: bool,
    /// It is being written to the spill.
    is_storing: bool,
    /// It leaves the memory once it is in the spill.
    is_leaving: bool,
    is_spilled: bool,
    /// Uses so far, up to a few.
    count: u8,
}

/// A part of what a reader wants, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub segment: SegmentId,
    pub span: Span,
    pub is_here: bool,
}

/// Limits of a shelf.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub memory_bytes: u64,
    /// 0: there is no spill.
    pub spill_bytes: u64,
    /// Requests to the source at a time, without those that readers wait for.
    pub requests: usize,
}

#[derive(Debug)]
pub struct Shelf {
    limits: Limits,
    segments: Vec<Option<Segment>>,
    free_ids: Vec<SegmentId>,
    /// By object, then by start.
    objects: Vec<BTreeMap<u64, SegmentId>>,
    orders: Orders,
    arena: Arena,
    spilled_bytes: u64,
    /// Bytes of files of an earlier run, by their numbers.
    unclaimed: BTreeMap<u64, u64>,
    in_memory: Filing,
    in_spill: Filing,
    /// Segments in the state [`State::Wanted`].
    wanted: VecDeque<SegmentId>,
    /// Segments that come, requests, and bytes being written to the spill.
    coming: usize,
    prefetches: usize,
    leaving_bytes: u64,
    /// Bytes fetched ahead and not yet read, by their places in orders.
    ahead: BTreeMap<Use, (SegmentId, u64)>,
    ahead_bytes: u64,
    answers: Answers,
    horizon: Horizon,
    actions: Vec<Action>,
    pub totals: Totals,
}

impl Shelf {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            segments: Vec::new(),
            free_ids: Vec::new(),
            objects: Vec::new(),
            orders: Orders::new(near_at_first(limits.requests), limits.memory_bytes),
            arena: Arena::default(),
            spilled_bytes: 0,
            unclaimed: BTreeMap::new(),
            in_memory: Filing::default(),
            in_spill: Filing::default(),
            wanted: VecDeque::new(),
            coming: 0,
            prefetches: 0,
            leaving_bytes: 0,
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            answers: Answers::default(),
            horizon: Horizon::default(),
            actions: Vec::new(),
            totals: Totals::default(),
        }
    }

    fn of(&self, id: SegmentId) -> &Segment {
        self.segments[id as usize].as_ref().expect("it exists")
    }

    fn of_mut(&mut self, id: SegmentId) -> &mut Segment {
        self.segments[id as usize].as_mut().expect("it exists")
    }

    /// The range of a segment.
    #[must_use]
    pub fn span(&self, id: SegmentId) -> Span {
        self.of(id).span
    }

    /// Where a segment is or will be in memory.
    #[must_use]
    pub fn place(&self, id: SegmentId) -> Option<Place> {
        self.of(id).place
    }

    /// Disclosed orders.
    #[must_use]
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Bytes of memory and of the spill.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        (self.arena.used(), self.spilled_bytes)
    }

    /// What the host has to do, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Appends to a disclosed order.
    pub fn disclose(&mut self, order: u32, spans: &[Span]) {
        self.orders.extend(order, spans);
        for span in spans {
            let held: Vec<SegmentId> = self.overlapping(*span).collect();
            held.into_iter().for_each(|id| self.file(id));
        }
    }

    /// Forgets a disclosed order.
    pub fn withdraw(&mut self, order: u32) {
        self.orders.withdraw(order);
        let ahead: Vec<Use> = self.ahead.keys().filter(|each| each.order == order).copied().collect();
        ahead.into_iter().for_each(|each| self.no_more_ahead(each));
        for id in [self.in_memory.under(order), self.in_spill.under(order)].concat() {
            self.file(id);
        }
    }

    /// A reader wants `span` at `now`: returns its parts, each of which is leased until [`Shelf::release`].
    ///
    /// # Errors
    /// It does not fit into memory.
    pub fn request(&mut self, span: Span, now: Nanos) -> Result<Vec<Part>, u64> {
        if Place::bytes_of(span.bytes()) > self.limits.memory_bytes {
            return Err(self.limits.memory_bytes);
        }
        self.totals.read_requests += 1;
        self.totals.read_bytes += span.bytes();
        let uses = self.orders.has_read(span, now);
        uses.iter().for_each(|read| self.no_more_ahead(*read));
        let mut parts = Vec::new();
        let mut at = span.start;
        let held: Vec<SegmentId> = self.overlapping(span).collect();
        for id in held {
            let own = self.of(id).span;
            self.fill(Span { start: at, end: own.start.max(at), ..span }, &mut parts);
            let part = Span { start: own.start.max(at), end: own.end.min(span.end), ..span };
            self.take(id, part, &mut parts);
            at = part.end;
        }
        self.fill(Span { start: at, ..span }, &mut parts);
        let is_late = parts.iter().any(|part| !part.is_here);
        uses.iter().for_each(|each| self.orders.was(*each, is_late));
        // What is used again later is filed by that.
        parts.iter().for_each(|part| self.file(part.segment));
        Ok(parts)
    }

    /// Leases a segment for a part of a request.
    fn take(&mut self, id: SegmentId, span: Span, parts: &mut Vec<Part>) {
        let segment = self.segments[id as usize].as_mut().expect("it exists");
        segment.leases += 1;
        segment.count = segment.count.saturating_add(1);
        segment.is_ahead = false;
        segment.is_leaving = false;
        let hit = match segment.state {
            State::Here => &mut self.totals.memory_hit_bytes,
            State::Coming | State::Wanted => &mut self.totals.coming_bytes,
            State::Absent => {
                segment.state = State::Wanted;
                self.wanted.push_back(id);
                &mut self.totals.spill_hit_bytes
            }
        };
        *hit += span.bytes();
        parts.push(Part { segment: id, span, is_here: segment.state == State::Here });
    }

    /// Adds new segments for a gap, which readers wait for.
    fn fill(&mut self, gap: Span, parts: &mut Vec<Part>) {
        let longest = SEGMENT_BYTES_MAX.min((self.limits.memory_bytes / 4).max(1));
        let mut at = gap.start;
        while at < gap.end {
            let span = Span { start: at, end: gap.end.min(at + longest), ..gap };
            let id = self.add(span, State::Wanted);
            let segment = self.of_mut(id);
            (segment.leases, segment.count) = (1, 0);
            self.wanted.push_back(id);
            self.totals.missed_bytes += span.bytes();
            parts.push(Part { segment: id, span, is_here: false });
            at = span.end;
        }
    }

    fn add(&mut self, span: Span, state: State) -> SegmentId {
        let segment = Segment {
            span,
            state,
            place: None,
            leases: 0,
            is_ahead: false,
            is_storing: false,
            is_leaving: false,
            is_spilled: false,
            count: 0,
        };
        let id = self.free_ids.pop().unwrap_or_else(|| {
            self.segments.push(None);
            self.segments.len() as SegmentId - 1
        });
        self.segments[id as usize] = Some(segment);
        if self.objects.len() <= span.object as usize {
            self.objects.resize_with(span.object as usize + 1, BTreeMap::new);
        }
        self.objects[span.object as usize].insert(span.start, id);
        id
    }

    /// Segments that share bytes with `span`, in order.
    fn overlapping(&self, span: Span) -> impl Iterator<Item = SegmentId> + '_ {
        let object = self.objects.get(span.object as usize);
        let before = object.and_then(|object| object.range(..span.start).next_back());
        let before = before.map(|(_, id)| *id).filter(move |id| self.of(*id).span.end > span.start);
        let within = object.into_iter().flat_map(move |object| object.range(span.start..span.end).map(|(_, id)| *id));
        before.into_iter().chain(within)
    }

    /// A read that was ordered has ended.
    pub fn arrived(&mut self, id: SegmentId, is_whole: bool, is_from_spill: bool) {
        self.coming -= 1;
        let bytes = self.of(id).span.bytes();
        if is_whole {
            let of_level = if is_from_spill { &mut self.totals.loaded_bytes } else { &mut self.totals.fetched_bytes };
            *of_level += bytes;
            self.of_mut(id).state = State::Here;
            self.file(id);
            return;
        }
        self.free(id);
        self.file(id);
        self.forget_if_gone(id);
    }

    /// A segment that was to be read from the spill is not there: readers who wait for it get it from the source.
    pub fn not_spilled(&mut self, id: SegmentId) {
        self.coming -= 1;
        self.lose_spilled(id);
        self.free(id);
        if self.of(id).leases > 0 {
            self.of_mut(id).state = State::Wanted;
            self.wanted.push_front(id);
        } else {
            self.forget_if_gone(id);
        }
    }

    /// A request of the source has ended, whatever became of its segments.
    pub fn request_ended(&mut self, demand: bool) {
        self.prefetches -= usize::from(!demand);
    }

    /// A reader is done with a part.
    pub fn release(&mut self, id: SegmentId) {
        let segment = self.of_mut(id);
        segment.leases -= 1;
        if segment.leases > 0 {
            return;
        }
        if segment.state == State::Wanted {
            segment.state = State::Absent;
            self.wanted.retain(|each| *each != id);
            self.forget_if_gone(id);
        } else {
            self.file(id);
            self.forget_if_gone(id);
        }
    }

    /// Whether readers wait for memory that only readers can give back.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        !self.wanted.is_empty() && self.coming == 0 && self.leaving_bytes == 0
    }

    /// Starts what can be started.
    pub fn act(&mut self) {
        while let Some(id) = self.wanted.front().copied() {
            if !self.make_room(self.of(id).span.bytes(), None) {
                return;
            }
            self.wanted.pop_front();
            self.order_one(id, true);
        }
        self.fetch_ahead();
    }

    fn order_one(&mut self, id: SegmentId, demand: bool) {
        let place = self.arena.take(self.of(id).span.bytes());
        self.coming += 1;
        let segment = self.of_mut(id);
        segment.place = Some(place);
        segment.state = State::Coming;
        if segment.is_spilled {
            self.actions.push(Action::Load(id));
        } else {
            self.prefetches += usize::from(!demand);
            self.actions.push(Action::Fetch { segments: vec![id], demand });
        }
    }

    /// An answer of the source has begun, after this time.
    pub fn begins(&mut self, took: Nanos) {
        self.answers.begins(took).into_iter().for_each(|response| self.orders.set_response(response));
    }

    /// Time within which nearly all answers of the source begin.
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.orders.response()
    }

    fn free(&mut self, id: SegmentId) {
        let segment = self.of_mut(id);
        segment.state = State::Absent;
        segment.is_ahead = false;
        if let Some(place) = segment.place.take() {
            self.arena.give_back(place);
            self.actions.push(Action::Free(place));
        }
    }

    fn forget_if_gone(&mut self, id: SegmentId) {
        let segment = self.of(id);
        if segment.state != State::Absent || segment.is_spilled || segment.is_storing || segment.leases > 0 {
            return;
        }
        let span = segment.span;
        self.objects[span.object as usize].remove(&span.start);
        self.segments[id as usize] = None;
        self.free_ids.push(id);
    }
}
