//! Queues the machine's reads of the backing, cut into pieces. A bounded number is in flight, and prefetches may not
//! take all of it. If every queued piece can start, they start in order, like the orders of the simulator's levels;
//! otherwise demand fetches go first.

use std::collections::VecDeque;
use std::ops::Range;

use headstart_types::{Block, Nanos};

const NONE: u32 = u32::MAX;

/// Adjacent pages that are read together.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    pub blocks: Vec<Block>,
    /// The first page.
    pub first: u64,
    /// A client waits for it.
    pub demand: bool,
    /// The machine expects it in the spill file.
    pub spilled: bool,
    /// Start time; `None` while it is queued.
    pub since: Option<Nanos>,
}

impl Piece {
    /// The page after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }

    /// Splits it into parts for which `is_held` holds for all pages or for none.
    fn parts(&self, is_held: impl Fn(&Range<u64>) -> bool) -> Vec<Piece> {
        let mut parts: Vec<(bool, Piece)> = Vec::new();
        for (page, block) in (self.first..).zip(&self.blocks) {
            let held = is_held(&(page..page + 1));
            match parts.last_mut().filter(|(last, _)| *last == held) {
                Some((_, part)) => part.blocks.push(*block),
                None => parts.push((held, Piece { blocks: vec![*block], first: page, ..self.clone() })),
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }
}

/// The queue of a conductor: [`Queue`], or a wrapper that changes its behaviour, as tests do to plant faults.
pub trait ReadQueue: AsRef<Queue> + AsMut<Queue> {
    /// [`Queue::push`].
    fn push(&mut self, piece: Piece) {
        self.as_mut().push(piece);
    }

    /// [`Queue::start`].
    fn start(&mut self, now: Nanos, is_free: impl Fn(&Piece) -> bool) -> Option<u32> {
        self.as_mut().start(now, is_free)
    }

    /// [`Queue::reads_any`].
    fn reads_any(&self, first: u64, end: u64) -> bool {
        self.as_ref().reads_any(first, end)
    }
}

impl ReadQueue for Queue {}

impl AsRef<Queue> for Queue {
    fn as_ref(&self) -> &Queue {
        self
    }
}

impl AsMut<Queue> for Queue {
    fn as_mut(&mut self) -> &mut Queue {
        self
    }
}

/// Queued pieces and those in flight.
#[derive(Debug)]
pub struct Queue {
    pieces: Vec<Piece>,
    free: Vec<u32>,
    demand: VecDeque<u32>,
    prefetch: VecDeque<u32>,
    /// Sequence number of each piece.
    added: Vec<u64>,
    added_count: u64,
    /// Number of queued pieces.
    waiting: u32,
    /// The piece that holds each block.
    piece_of: Vec<u32>,
    under_way: u32,
    under_way_max: u32,
}

impl Queue {
    #[must_use]
    pub fn new(under_way_max: u32) -> Self {
        Self {
            pieces: Vec::new(),
            free: Vec::new(),
            demand: VecDeque::new(),
            prefetch: VecDeque::new(),
            added: Vec::new(),
            added_count: 0,
            waiting: 0,
            piece_of: Vec::new(),
            under_way: 0,
            under_way_max,
        }
    }

    /// Adds a piece at the end of the queue of its kind.
    pub fn push(&mut self, piece: Piece) {
        let demand = piece.demand;
        let index = self.enter(piece, self.added_count);
        self.added_count += 1;
        if demand { &mut self.demand } else { &mut self.prefetch }.push_back(index);
    }

    /// Gives a queued piece an index. `added`: its sequence number.
    fn enter(&mut self, piece: Piece, added: u64) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.pieces.push(Piece::default());
            self.added.push(0);
            self.pieces.len() as u32 - 1
        });
        self.added[index as usize] = added;
        self.waiting += 1;
        for block in &piece.blocks {
            if block.index() >= self.piece_of.len() {
                self.piece_of.resize(block.index() + 1, NONE);
            }
            self.piece_of[block.index()] = index;
        }
        self.pieces[index as usize] = piece;
        index
    }

    /// Cuts queued pieces, so that pages that are held up do not delay the other pages of a piece. The parts keep its
    /// place; a part of a demand that no client waits for (`is_wanted`) becomes a prefetch.
    pub fn split(&mut self, is_held: impl Fn(&Range<u64>) -> bool, is_wanted: impl Fn(Block) -> bool) {
        let waits = |piece: &Piece| piece.since.is_none() && piece.blocks.len() > 1;
        let cut = |(_, piece): &(u32, &Piece)| waits(piece) && is_held(&(piece.first..piece.end()));
        let held: Vec<u32> = (0..).zip(&self.pieces).filter(cut).map(|(index, _)| index).collect();
        for index in held {
            let parts = self.pieces[index as usize].parts(&is_held);
            if parts.len() == 1 {
                continue;
            }
            let (Piece { demand, .. }, added) =
                (std::mem::take(&mut self.pieces[index as usize]), self.added[index as usize]);
            self.free.push(index);
            self.waiting -= 1;
            let queue = if demand { &mut self.demand } else { &mut self.prefetch };
            let mut at = queue.iter().position(|other| *other == index).unwrap_or(0);
            queue.remove(at);
            for mut part in parts {
                part.demand = demand && part.blocks.iter().any(|block| is_wanted(*block));
                let stays = part.demand == demand;
                let index = self.enter(part, added);
                if stays {
                    if demand { &mut self.demand } else { &mut self.prefetch }.insert(at, index);
                    at += 1;
                } else {
                    self.prefetch.push_back(index);
                }
            }
        }
    }

    /// Whether `block` is in a piece.
    #[must_use]
    pub fn holds(&self, block: Block) -> bool {
        self.piece_of.get(block.index()).is_some_and(|piece| *piece != NONE)
    }

    /// A client waits for `block`: turns a queued prefetch of it into a demand.
    pub fn promote(&mut self, block: Block) {
        let Some(index) = self.piece_of.get(block.index()).copied().filter(|index| *index != NONE) else { return };
        let piece = &mut self.pieces[index as usize];
        if !piece.demand {
            piece.demand = true;
            if piece.since.is_none() {
                // Its entry among the prefetches is now stale and is skipped.
                self.demand.push_back(index);
            }
        }
    }

    /// Starts and returns the next piece for which `is_free` holds, if one may start at `now`.
    pub fn start(&mut self, now: Nanos, is_free: impl Fn(&Piece) -> bool) -> Option<u32> {
        if self.under_way >= self.under_way_max {
            return None;
        }
        let prefetch_max = self.prefetch_max();
        let next = |waiting: &mut VecDeque<u32>, demand| Self::next(waiting, &self.pieces, demand, &is_free);
        let mut demand = next(&mut self.demand, true);
        let prefetch = if self.under_way < prefetch_max { next(&mut self.prefetch, false) } else { None };
        if let (Some((_, first)), Some((_, other)), true) =
            (demand, prefetch, self.under_way + self.waiting <= prefetch_max)
        {
            if self.added[other as usize] < self.added[first as usize] {
                demand = None;
            }
        }
        let index = match (demand, prefetch) {
            (Some((at, index)), _) => {
                self.demand.remove(at);
                index
            }
            (None, Some((at, index))) => {
                self.prefetch.remove(at);
                index
            }
            (None, None) => return None,
        };
        self.pieces[index as usize].since = Some(now);
        self.under_way += 1;
        self.waiting -= 1;
        Some(index)
    }

    /// The first free piece: its position in the queue and its index.
    fn next(
        waiting: &mut VecDeque<u32>,
        pieces: &[Piece],
        demand: bool,
        is_free: &impl Fn(&Piece) -> bool,
    ) -> Option<(usize, u32)> {
        while waiting.front().is_some_and(|index| is_stale(&pieces[*index as usize], demand)) {
            waiting.pop_front();
        }
        let fits = |index: &u32| !is_stale(&pieces[*index as usize], demand) && is_free(&pieces[*index as usize]);
        let at = waiting.iter().position(fits)?;
        Some((at, waiting[at]))
    }

    #[must_use]
    pub fn piece(&self, index: u32) -> &Piece {
        &self.pieces[index as usize]
    }

    /// Removes a piece that was in flight.
    pub fn end(&mut self, index: u32) -> Piece {
        let piece = std::mem::take(&mut self.pieces[index as usize]);
        piece.blocks.iter().for_each(|block| self.piece_of[block.index()] = NONE);
        self.under_way -= 1;
        self.free.push(index);
        piece
    }

    /// Whether any page of `first..end` is being read.
    #[must_use]
    pub fn reads_any(&self, first: u64, end: u64) -> bool {
        self.under_way > 0
            && self.pieces.iter().any(|piece| piece.since.is_some() && piece.first < end && first < piece.end())
    }

    /// Checks that no queued piece could start (`is_free` included) and that no demand waits behind prefetches.
    ///
    /// # Errors
    /// The violated invariant.
    pub fn check(&self, is_free: impl Fn(&Piece) -> bool) -> Result<(), String> {
        let waits = |piece: &&Piece| piece.since.is_none() && is_free(piece);
        let demand = self.pieces().filter(|piece| piece.demand).find(waits);
        let prefetch = self.pieces().filter(|piece| !piece.demand).find(waits);
        let (under_way, prefetch_max) = (self.under_way, self.prefetch_max());
        match (demand, prefetch) {
            (Some(piece), _) if under_way < self.under_way_max => {
                Err(format!("page {} waits for one of {under_way} reads to end, and clients for it", piece.first))
            }
            (None, Some(piece)) if under_way < prefetch_max => {
                Err(format!("page {} waits to be prefetched, with {under_way} reads under way", piece.first))
            }
            _ => Ok(()),
        }
    }

    /// All pieces that are not empty.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| !piece.blocks.is_empty())
    }

    /// Maximum number of reads in flight up to which a prefetch may start.
    fn prefetch_max(&self) -> u32 {
        self.under_way_max - self.under_way_max / 4
    }

    /// Number of queued pieces, and of pieces in flight.
    #[must_use]
    pub fn lengths(&self) -> (usize, u32) {
        let waits = |index: &&u32| self.pieces[**index as usize].since.is_none();
        (self.demand.iter().filter(waits).count() + self.prefetch.iter().filter(waits).count(), self.under_way)
    }
}

/// Whether a piece is no longer in the queue of its kind.
fn is_stale(piece: &Piece, demand: bool) -> bool {
    piece.since.is_some() || piece.demand != demand || piece.blocks.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first: u32, count: u32, demand: bool) -> Piece {
        Piece { blocks: (first..first + count).map(Block).collect(), first: first.into(), demand, ..Piece::default() }
    }

    #[test]
    fn demand_goes_first_and_prefetches_leave_room() {
        let mut queue = Queue::new(4);
        (0..4).for_each(|at| queue.push(piece(at * 10, 4, false)));
        queue.push(piece(100, 1, true));
        let started = |queue: &mut Queue| queue.start(Nanos(1), |_| true).map(|index| queue.piece(index).first);
        assert_eq!([started(&mut queue), started(&mut queue), started(&mut queue)], [Some(100), Some(0), Some(10)]);
        assert_eq!(started(&mut queue), None, "the fourth is for a demand");
        // A client asks for the last prefetch: it goes first, and only once.
        queue.promote(Block(31));
        assert_eq!((started(&mut queue), started(&mut queue)), (Some(30), None));
        assert!(
            queue.reads_any(33, 40) && !queue.reads_any(34, 40) && !queue.reads_any(20, 24) && queue.holds(Block(20))
        );
        let ended = queue.end(0);
        assert_eq!((ended.first, queue.holds(Block(0))), (0, false));
        assert_eq!(queue.lengths(), (1, 3));
    }

    #[test]
    fn what_can_start_does_so_in_its_order() {
        let mut queue = Queue::new(8);
        for (at, demand) in [(0, false), (10, true), (20, false)] {
            queue.push(piece(at, 4, demand));
        }
        let started: Vec<u32> = std::iter::from_fn(|| queue.start(Nanos(1), |_| true)).collect();
        assert_eq!(started.iter().map(|index| queue.piece(*index).first).collect::<Vec<_>>(), [0, 10, 20]);
        // Six more do not fit below the share that prefetches may take: the demand goes first.
        (3..9).for_each(|at| queue.push(piece(at * 10, 4, at == 8)));
        let started = queue.start(Nanos(1), |_| true).map(|index| queue.piece(index).first);
        assert_eq!(started, Some(80));
    }

    #[test]
    fn a_piece_is_cut_around_what_is_held_up() {
        let mut queue = Queue::new(8);
        queue.push(piece(0, 8, true));
        queue.push(piece(20, 4, false));
        queue.push(piece(30, 2, true));
        let is_held = |pages: &Range<u64>| pages.start < 5 && 3 < pages.end;
        // Clients wait only for pages 1 and 30.
        queue.split(is_held, |block| [1, 30].contains(&block.0));
        let is_free = |piece: &Piece| !is_held(&(piece.first..piece.end()));
        let started = |queue: &mut Queue, is_free: &dyn Fn(&Piece) -> bool| {
            queue.start(Nanos(1), is_free).map(|index| (queue.piece(index).first, queue.piece(index).end()))
        };
        let order: Vec<_> = std::iter::from_fn(|| started(&mut queue, &is_free)).collect();
        // All free pieces can start in order; the part that no client waits for comes after the prefetches.
        assert_eq!(order, [(0, 3), (20, 24), (5, 8), (30, 32)]);
        assert_eq!(queue.lengths(), (1, 4));
        assert_eq!(started(&mut queue, &|_| true), Some((3, 5)));
        assert!(queue.holds(Block(4)) && queue.lengths() == (0, 5));
    }

    #[test]
    fn what_is_held_up_is_passed() {
        let mut queue = Queue::new(8);
        (0..3).for_each(|at| queue.push(piece(at * 10, 4, true)));
        let started = queue.start(Nanos(1), |piece| piece.first != 0);
        assert_eq!(started.map(|index| queue.piece(index).first), Some(10));
        let started = queue.start(Nanos(1), |_| true);
        assert_eq!(started.map(|index| queue.piece(index).first), Some(0));
    }
}
