//! Invariants of a level, checked from outside; see [`System::check`](crate::System::check).

use headstart_policy::BlockState;
use headstart_types::Block;

use super::Level;

/// Returns an error with the text of `what` unless `invariant` holds.
pub(crate) fn holds(invariant: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if invariant {
        return Ok(());
    }
    Err(what())
}

impl Level {
    /// Checks that the level's own numbers are consistent.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut held = 0u64;
        let mut unused = 0u64;
        let mut on_their_way = vec![0u64; self.outstanding.len()];
        for (at, state) in self.blocks.iter().enumerate() {
            let is = |state: &BlockState| (state.is_resident(), state.is_in_flight(), state.is_passing());
            let in_one_state = matches!(is(state), (false, false, _) | (true, false, false) | (false, true, false));
            holds(in_one_state, || format!("block {at} is in more than one state: {state:?}"))?;
            held += u64::from(!state.is_absent());
            unused += u64::from(state.is_unused_prefetch());
            holds(!state.is_unused_prefetch() || !state.is_absent(), || format!("block {at} is absent and unused"))?;
            if state.is_in_flight() || state.is_passing() {
                on_their_way[self.disk_of[at].index()] += 1;
            }
        }
        let (frames, free) = (u64::from(self.frames), u64::from(self.free));
        holds(held <= frames, || format!("{held} blocks are in {frames} frames"))?;
        holds(held + free == frames, || format!("{held} blocks and {free} free frames are not {frames} frames"))?;
        for (disk, (blocks, outstanding)) in on_their_way.iter().zip(&self.outstanding).enumerate() {
            let fits = *blocks <= u64::from(*outstanding);
            holds(fits, || format!("{blocks} blocks in flight, but {outstanding} fetches outstanding on disk {disk}"))?;
        }
        let counts = &self.ledger.counts;
        let looked_up = counts.hits_ready + counts.hits_unready + counts.misses;
        holds(counts.references == looked_up, || format!("{} references, {looked_up} look-ups", counts.references))?;
        let (used, prefetches) = (counts.prefetches_used, counts.prefetches);
        let kept = used + unused;
        holds(kept <= prefetches, || format!("{used} prefetches used and {unused} kept are more than {prefetches}"))?;
        holds(counts.prefetches_late <= used, || "more prefetches are late than used".to_owned())?;
        let fetched = counts.demand_fetches + counts.write_misses;
        holds(fetched <= counts.misses, || format!("{fetched} demand fetches, {} misses", counts.misses))
    }

    /// Checks that no request waits and nothing is in flight.
    ///
    /// # Errors
    /// What remains.
    pub fn check_empty(&self) -> Result<(), String> {
        holds(self.requests.is_empty(), || "a request has not been answered".to_owned())?;
        let lost = (0..).zip(&self.blocks).find(|(_, state)| state.is_in_flight() || state.is_passing());
        holds(lost.is_none(), || format!("the fetch of {:?} was lost", lost.map(|(at, _)| Block(at))))?;
        let outstanding: u32 = self.outstanding.iter().sum();
        holds(outstanding == 0, || format!("{outstanding} orders have not ended"))
    }
}

/// A fault planted on purpose, to test that a fuzzer finds it.
#[cfg(feature = "sabotage")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// A frame is freed twice.
    FreesTwice,
    /// A frame is never freed.
    LosesFrame,
    /// The level holds a block without a frame.
    HoldsTooMuch,
    /// The frame of a fetch in flight is given away.
    ForgetsFetch,
    /// An order counts as ended before it has ended.
    EndsEarly,
    /// An order never ends.
    KeepsOrder,
    /// A reference is counted without a lookup.
    CountsTwice,
    /// A lookup happens without a reference of a process.
    AnswersNobody,
    /// A prefetch is used twice.
    UsesTwice,
    /// A waiting request is lost.
    LosesRequest,
    /// A process has time that belongs to no category.
    LosesTime,
}

#[cfg(feature = "sabotage")]
impl Sabotage {
    /// All kinds of fault.
    pub const ALL: [Sabotage; 11] = [
        Sabotage::FreesTwice,
        Sabotage::LosesFrame,
        Sabotage::HoldsTooMuch,
        Sabotage::ForgetsFetch,
        Sabotage::EndsEarly,
        Sabotage::KeepsOrder,
        Sabotage::CountsTwice,
        Sabotage::AnswersNobody,
        Sabotage::UsesTwice,
        Sabotage::LosesRequest,
        Sabotage::LosesTime,
    ];
}

#[cfg(feature = "sabotage")]
impl Level {
    /// Plants a fault, if that is possible now; returns whether it was.
    pub fn plant(&mut self, sabotage: Sabotage) -> bool {
        let in_flight = self.blocks.iter().position(|state| state.is_in_flight());
        let absent = self.blocks.iter().position(|state| state.is_absent() && !state.is_passing());
        match (sabotage, in_flight, absent) {
            (Sabotage::FreesTwice, ..) => self.free += 1,
            (Sabotage::LosesFrame, ..) if self.free > 0 => self.free -= 1,
            (Sabotage::HoldsTooMuch, _, Some(absent)) => self.blocks[absent] = BlockState::resident(),
            (Sabotage::ForgetsFetch, Some(block), _) => {
                self.blocks[block] = BlockState::ABSENT;
                self.free += 1;
            }
            (Sabotage::EndsEarly, Some(block), _) => self.outstanding[self.disk_of[block].index()] = 0,
            (Sabotage::KeepsOrder, ..) => self.outstanding[0] += 1,
            (Sabotage::CountsTwice, ..) => self.ledger.counts.references += 1,
            (Sabotage::AnswersNobody, ..) => {
                self.ledger.counts.references += 1;
                self.ledger.counts.hits_ready += 1;
            }
            (Sabotage::UsesTwice, ..) => self.ledger.counts.prefetches_used += self.ledger.counts.prefetches + 1,
            (Sabotage::LosesRequest, ..) if !self.requests.is_empty() => self.requests.waiting = Default::default(),
            _ => return false,
        }
        true
    }
}
