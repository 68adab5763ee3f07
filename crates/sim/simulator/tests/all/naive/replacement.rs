//! Naive models of the replacement policies, with read-ahead, pins and removals: plain vectors searched from end to
//! end, written from the papers and from the rule that an arrival is not a reference. Each vector is in order of
//! insertion.

/// A model gets the same events as the library's policy.
pub trait Model {
    /// The block to evict for `incoming`, among those for which `may` holds.
    fn victim(&mut self, incoming: usize, may: &dyn Fn(usize) -> bool) -> Option<usize>;
    fn inserted(&mut self, block: usize);
    fn referenced(&mut self, block: usize);
    fn removed(&mut self, block: usize);
}

/// The model of the row `name`, with its default keys resolved to blocks. `initial` is resident, oldest first, each
/// block referenced once.
pub fn model(name: &str, frames: usize, initial: &[usize]) -> Box<dyn Model> {
    match name {
        // The referencing process is not known.
        "ru-set" => Box::new(RuSet { tossed: initial.to_vec(), ..RuSet::default() }),
        _ => started(bare(name, frames), initial),
    }
}

/// The model of `s3-fifo` with `fill_main`.
pub fn s3_fifo_that_fills_main(frames: usize, initial: &[usize]) -> Box<dyn Model> {
    started(Box::new(S3Fifo { fill_main: true, ..s3_fifo(frames) }), initial)
}

fn s3_fifo(frames: usize) -> S3Fifo {
    let share = |share: f64| (share * frames as f64) as usize;
    S3Fifo { small: share(0.1).max(1), ghosts: share(0.9), ..S3Fifo::default() }
}

/// An empty model.
fn bare(name: &str, frames: usize) -> Box<dyn Model> {
    let share = |share: f64| (share * frames as f64) as usize;
    match name {
        "lru" => Box::new(Ranked::new(|block| (block.last, 0))),
        "fifo" => Box::new(Ranked::new(|block| (block.arrival, 0))),
        // The used before the unused, the newest first.
        "mru" => Box::new(Ranked::new(|block| match block.uses {
            0 => (1, u64::MAX - block.last),
            _ => (0, u64::MAX - block.last),
        })),
        "lfu" => Box::new(Ranked::new(|block| (block.uses.max(1), block.last))),
        "clock" => Box::new(Clock::default()),
        "sieve" => Box::new(Sieve::default()),
        "arc" => Box::new(Arc { c: frames, ..Arc::default() }),
        "2q" => Box::new(TwoQ { kin: share(0.25).max(1), kout: share(0.5), ..TwoQ::default() }),
        "s3-fifo" => Box::new(s3_fifo(frames)),
        "lirs" => {
            let hir = share(0.01).max(2).min((frames - 1).max(1));
            Box::new(Lirs { lir_max: frames - hir, ..Lirs::default() })
        }
        _ => panic!("{name} has no naive model: write one"),
    }
}

fn started(mut model: Box<dyn Model>, initial: &[usize]) -> Box<dyn Model> {
    for block in initial {
        model.inserted(*block);
        model.referenced(*block);
    }
    model
}

/// Misses of the references alone, without time.
pub fn misses(name: &str, refs: &[usize], frames: usize, initial: &[usize]) -> u64 {
    let (mut model, mut held, mut misses) = (model(name, frames, initial), initial.to_vec(), 0);
    for block in refs {
        if !held.contains(block) {
            misses += 1;
            if held.len() == frames {
                let victim = model.victim(*block, &|_| true).expect("a block leaves");
                assert!(take(&mut held, victim));
            }
            held.push(*block);
            model.inserted(*block);
        }
        model.referenced(*block);
    }
    misses
}

/// Removes `block` from a list; returns whether it was there.
fn take(list: &mut Vec<usize>, block: usize) -> bool {
    let at = list.iter().position(|other| *other == block);
    at.map(|at| list.remove(at)).is_some()
}

fn first(list: &[usize], may: &dyn Fn(usize) -> bool) -> Option<usize> {
    list.iter().copied().find(|block| may(*block))
}

/// A resident block and its history since it came in.
struct Resident {
    block: usize,
    arrival: u64,
    /// The last arrival or reference.
    last: u64,
    uses: u64,
}

/// Evicts the block with the lowest rank.
struct Ranked {
    held: Vec<Resident>,
    now: u64,
    rank: fn(&Resident) -> (u64, u64),
}

impl Ranked {
    fn new(rank: fn(&Resident) -> (u64, u64)) -> Self {
        Ranked { held: vec![], now: 0, rank }
    }
}

impl Model for Ranked {
    fn victim(&mut self, _: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let victim = self.held.iter().filter(|held| may(held.block)).min_by_key(|held| (self.rank)(held))?.block;
        self.removed(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        self.now += 1;
        self.held.push(Resident { block, arrival: self.now, last: self.now, uses: 0 });
    }

    fn referenced(&mut self, block: usize) {
        self.now += 1;
        let held = self.held.iter_mut().find(|held| held.block == block).expect("it is resident");
        (held.last, held.uses) = (self.now, held.uses + 1);
    }

    fn removed(&mut self, block: usize) {
        self.held.retain(|held| held.block != block);
    }
}

/// One process with a list of one block. The first tossed leaves, or the first that was never used, or the list's.
#[derive(Default)]
struct RuSet {
    tossed: Vec<usize>,
    unused: Vec<usize>,
    latest: Option<usize>,
    /// Whether the latest is resident.
    here: bool,
}

impl Model for RuSet {
    fn victim(&mut self, _: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let held = self.latest.filter(|block| self.here && may(*block));
        let victim = first(&self.tossed, may).or_else(|| first(&self.unused, may)).or(held)?;
        self.here &= self.latest != Some(victim);
        let _ = take(&mut self.tossed, victim) || take(&mut self.unused, victim);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        if self.latest == Some(block) {
            self.here = true;
        } else {
            self.unused.push(block);
        }
    }

    fn referenced(&mut self, block: usize) {
        if self.latest != Some(block) {
            let _ = take(&mut self.tossed, block) || take(&mut self.unused, block);
            self.tossed.extend(self.latest.filter(|_| self.here));
            (self.latest, self.here) = (Some(block), true);
        }
    }

    fn removed(&mut self, block: usize) {
        if self.latest == Some(block) {
            self.latest = None;
        }
        let _ = take(&mut self.tossed, block) || take(&mut self.unused, block);
    }
}

/// The hand points at the first of the ring. Uses after the first one are marks.
#[derive(Default)]
struct Clock {
    ring: Vec<(usize, u32)>,
}

impl Model for Clock {
    fn victim(&mut self, _: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        loop {
            let at = self.ring.iter().position(|(block, _)| may(*block))?;
            let (block, uses) = self.ring.remove(at);
            if uses < 2 {
                return Some(block);
            }
            self.ring.push((block, 1));
        }
    }

    fn inserted(&mut self, block: usize) {
        self.ring.push((block, 0));
    }

    fn referenced(&mut self, block: usize) {
        self.ring.iter_mut().filter(|(other, _)| *other == block).for_each(|(_, uses)| *uses += 1);
    }

    fn removed(&mut self, block: usize) {
        self.ring.retain(|(other, _)| *other != block);
    }
}

/// The hand is an index; at or beyond the end it means the oldest.
#[derive(Default)]
struct Sieve {
    queue: Vec<(usize, u32)>,
    hand: usize,
    /// The hand ran past the new end: blocks that come in later are not under it.
    past_the_end: bool,
}

impl Model for Sieve {
    fn victim(&mut self, _: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        if !self.queue.iter().any(|(block, _)| may(*block)) {
            return None;
        }
        if self.past_the_end {
            self.hand = 0;
        }
        loop {
            self.hand %= self.queue.len();
            let (block, uses) = self.queue[self.hand];
            if may(block) && uses < 2 {
                self.queue.remove(self.hand);
                self.past_the_end = self.hand == self.queue.len();
                return Some(block);
            }
            if may(block) {
                self.queue[self.hand].1 = 1;
            }
            self.hand += 1;
        }
    }

    fn inserted(&mut self, block: usize) {
        self.queue.push((block, 0));
    }

    fn referenced(&mut self, block: usize) {
        self.queue.iter_mut().filter(|(other, _)| *other == block).for_each(|(_, uses)| *uses += 1);
    }

    fn removed(&mut self, block: usize) {
        let at = self.queue.iter().position(|(other, _)| *other == block).expect("it is resident");
        self.queue.remove(at);
        if !self.past_the_end {
            self.hand -= usize::from(at < self.hand);
            self.past_the_end = self.hand == self.queue.len();
        }
    }
}

/// How a block that has arrived and has not been referenced stood before.
#[derive(Clone, Copy, PartialEq)]
enum Past {
    Unknown,
    /// In the first ghost list, or the only one.
    Ghost,
    /// In ARC's B2.
    SecondGhost,
}

/// Blocks in flight or unreferenced, with their past.
#[derive(Default)]
struct Fresh(Vec<(usize, Past)>);

impl Fresh {
    fn take(&mut self, block: usize) -> Option<Past> {
        let at = self.0.iter().position(|(other, _)| *other == block)?;
        Some(self.0.remove(at).1)
    }
}

/// Megiddo and Modha, Figure 4; p is a fraction.
#[derive(Default)]
struct Arc {
    c: usize,
    p: f64,
    t1: Vec<usize>,
    t2: Vec<usize>,
    b1: Vec<usize>,
    b2: Vec<usize>,
    fresh: Fresh,
    in_flight: Fresh,
}

impl Arc {
    fn replace(&self, p: f64, in_b2: bool, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let prefers_t1 = !self.t1.is_empty() && {
            let t1 = self.t1.len() as f64;
            t1 > p || (in_b2 && t1 == p)
        };
        let (t1, t2) = (first(&self.t1, may), first(&self.t2, may));
        if prefers_t1 {
            t1.or(t2)
        } else {
            t2.or(t1)
        }
    }

    fn leave(&mut self, victim: usize) {
        if take(&mut self.t2, victim) {
            self.b2.push(victim);
            return;
        }
        take(&mut self.t1, victim);
        match self.fresh.take(victim) {
            Some(Past::Unknown) => {}
            Some(Past::SecondGhost) => self.b2.push(victim),
            Some(Past::Ghost) | None => self.b1.push(victim),
        }
    }
}

impl Model for Arc {
    fn victim(&mut self, x: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let (b1, b2) = (self.b1.len(), self.b2.len());
        if self.b1.contains(&x) || self.b2.contains(&x) {
            let second = self.b2.contains(&x);
            let p = match second {
                false => (self.p + if b1 >= b2 { 1.0 } else { b2 as f64 / b1 as f64 }).min(self.c as f64),
                true => (self.p - if b2 >= b1 { 1.0 } else { b1 as f64 / b2 as f64 }).max(0.0),
            };
            let victim = self.replace(p, second, may)?;
            self.p = p;
            take(if second { &mut self.b2 } else { &mut self.b1 }, x);
            self.in_flight.0.push((x, if second { Past::SecondGhost } else { Past::Ghost }));
            self.leave(victim);
            return Some(victim);
        }
        let l1 = self.t1.len() + b1;
        if l1 >= self.c && b1 == 0 {
            if let Some(victim) = first(&self.t1, may) {
                take(&mut self.t1, victim);
                self.fresh.take(victim);
                return Some(victim);
            }
        }
        let victim = self.replace(self.p, false, may)?;
        let leaves_no_ghost = self.fresh.0.contains(&(victim, Past::Unknown));
        if l1 >= self.c {
            if !leaves_no_ghost && b1 > 0 {
                self.b1.remove(0);
            }
        } else if !leaves_no_ghost && l1 + self.t2.len() + b2 >= 2 * self.c && b2 > 0 {
            self.b2.remove(0);
        }
        self.leave(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        let mut past = self.in_flight.take(block).unwrap_or(Past::Unknown);
        if take(&mut self.b1, block) {
            past = Past::Ghost;
        }
        if take(&mut self.b2, block) {
            past = Past::SecondGhost;
        }
        self.t1.push(block);
        self.fresh.0.push((block, past));
    }

    fn referenced(&mut self, block: usize) {
        let first_and_unknown = self.fresh.take(block) == Some(Past::Unknown);
        assert!(take(&mut self.t1, block) || take(&mut self.t2, block));
        if first_and_unknown {
            self.t1.push(block);
        } else {
            self.t2.push(block);
        }
    }

    fn removed(&mut self, block: usize) {
        take(&mut self.t1, block);
        take(&mut self.t2, block);
        self.fresh.take(block);
    }
}

/// Johnson and Shasha, section 2.2, the full version.
#[derive(Default)]
struct TwoQ {
    kin: usize,
    kout: usize,
    a1in: Vec<usize>,
    a1out: Vec<usize>,
    am: Vec<usize>,
    fresh: Fresh,
    in_flight: Vec<usize>,
}

impl Model for TwoQ {
    fn victim(&mut self, x: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let (a1in, am) = (first(&self.a1in, may), first(&self.am, may));
        let victim = if self.a1in.len() > self.kin { a1in.or(am) } else { am.or(a1in) }?;
        if take(&mut self.a1out, x) {
            self.in_flight.push(x);
        }
        if take(&mut self.a1in, victim) && self.fresh.take(victim) != Some(Past::Unknown) {
            self.a1out.push(victim);
        }
        take(&mut self.am, victim);
        let too_many = self.a1out.len().saturating_sub(self.kout);
        self.a1out.drain(..too_many);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        let known = take(&mut self.a1out, block) || take(&mut self.in_flight, block);
        self.a1in.push(block);
        self.fresh.0.push((block, if known { Past::Ghost } else { Past::Unknown }));
    }

    fn referenced(&mut self, block: usize) {
        let known = self.fresh.take(block) == Some(Past::Ghost);
        if (known && take(&mut self.a1in, block)) || take(&mut self.am, block) {
            self.am.push(block);
        }
    }

    fn removed(&mut self, block: usize) {
        take(&mut self.a1in, block);
        take(&mut self.am, block);
        self.fresh.take(block);
    }
}

/// Yang et al., Algorithm 1. Blocks with the number of their hits.
#[derive(Default)]
struct S3Fifo {
    small: usize,
    ghosts: usize,
    /// No block has left yet, and what S should not have goes into M.
    fill_main: bool,
    s: Vec<(usize, u32)>,
    m: Vec<(usize, u32)>,
    g: Vec<usize>,
    fresh: Fresh,
    in_flight: Vec<usize>,
}

impl S3Fifo {
    fn evict_s(&mut self, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        while let Some(at) = self.s.iter().position(|(block, _)| may(*block)) {
            let (block, hits) = self.s.remove(at);
            if hits > 1 {
                self.m.push((block, 0));
                continue;
            }
            if self.fresh.take(block) != Some(Past::Unknown) {
                self.g.push(block);
            }
            return Some(block);
        }
        None
    }

    fn evict_m(&mut self, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        while let Some(at) = self.m.iter().position(|(block, _)| may(*block)) {
            let (block, hits) = self.m.remove(at);
            if hits == 0 {
                // It may have entered M while M was being filled, without a reference since.
                self.fresh.take(block);
                return Some(block);
            }
            self.m.push((block, hits.min(3) - 1));
        }
        None
    }
}

impl Model for S3Fifo {
    fn victim(&mut self, x: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        let victim = match self.s.len() >= self.small {
            true => self.evict_s(may).or_else(|| self.evict_m(may)),
            false => self.evict_m(may).or_else(|| self.evict_s(may)).or_else(|| self.evict_m(may)),
        }?;
        self.fill_main = false;
        if take(&mut self.g, x) {
            self.in_flight.push(x);
        }
        let too_many = self.g.len().saturating_sub(self.ghosts);
        self.g.drain(..too_many);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        let known = take(&mut self.g, block) || take(&mut self.in_flight, block);
        let queue = if self.fill_main && self.s.len() >= self.small { &mut self.m } else { &mut self.s };
        queue.push((block, 0));
        self.fresh.0.push((block, if known { Past::Ghost } else { Past::Unknown }));
    }

    fn referenced(&mut self, block: usize) {
        match self.fresh.take(block) {
            Some(Past::Unknown) => {}
            Some(_) => {
                self.s.retain(|(other, _)| *other != block);
                self.m.push((block, 0));
            }
            None => {
                let held = self.s.iter_mut().chain(&mut self.m).find(|(other, _)| *other == block);
                held.expect("it is resident").1 += 1;
            }
        }
    }

    fn removed(&mut self, block: usize) {
        self.s.retain(|(other, _)| *other != block);
        self.m.retain(|(other, _)| *other != block);
        self.fresh.take(block);
    }
}

/// Jiang and Zhang, section 3.3. Stack S from its bottom, queue Q from its front.
#[derive(Default)]
struct Lirs {
    lir_max: usize,
    s: Vec<usize>,
    q: Vec<usize>,
    lir: Vec<usize>,
}

impl Lirs {
    fn prune(&mut self) {
        let bottom = self.s.iter().position(|block| self.lir.contains(block)).unwrap_or(self.s.len());
        self.s.drain(..bottom);
    }
}

impl Model for Lirs {
    fn victim(&mut self, _: usize, may: &dyn Fn(usize) -> bool) -> Option<usize> {
        if let Some(victim) = first(&self.q, may) {
            // If it is in S it stays there, not resident.
            take(&mut self.q, victim);
            return Some(victim);
        }
        let victim = self.s.iter().copied().find(|block| self.lir.contains(block) && may(*block))?;
        self.removed(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: usize) {
        self.q.push(block);
    }

    fn referenced(&mut self, block: usize) {
        if self.s.last() == Some(&block) {
            // The second of two consecutive references.
            return;
        }
        let in_s = take(&mut self.s, block);
        self.s.push(block);
        if !self.lir.contains(&block) {
            take(&mut self.q, block);
            if in_s || self.lir.len() < self.lir_max {
                self.lir.push(block);
            } else {
                self.q.push(block);
            }
        }
        self.prune();
        if self.lir.len() > self.lir_max {
            let bottom = self.s.remove(0);
            take(&mut self.lir, bottom);
            self.q.push(bottom);
            self.prune();
        }
    }

    fn removed(&mut self, block: usize) {
        take(&mut self.q, block);
        take(&mut self.s, block);
        take(&mut self.lir, block);
        self.prune();
    }
}
