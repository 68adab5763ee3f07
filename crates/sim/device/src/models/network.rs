//! A network that transfers share in equal parts, none faster than its own connection (processor sharing; Kleinrock,
//! Queueing Systems II, 1976, section 4.4).
//!
//! Cost: a step per transfer, and one per transfer that begins meanwhile, for each that begins or ends.

use headstart_types::Nanos;

/// Parts of a byte that a transfer moves in a nanosecond at one byte a second: divisions by the number of transfers lose
/// less than a byte an hour.
const PARTS: u128 = 1 << 20;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[derive(Debug, Clone)]
pub(super) struct Network {
    /// Bytes a second of a connection.
    own: u64,
    /// Bytes a second of all.
    pub shared: u64,
    transfers: Vec<Transfer>,
    /// The instant up to which what is left of transfers is known.
    at: Nanos,
    /// Transfers begun.
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Transfer {
    number: u64,
    /// When its first byte moves.
    begins: Nanos,
    left: u128,
}

impl Network {
    pub(super) fn new(own: u64, shared: u64) -> Self {
        Self { own, shared, transfers: Vec::new(), at: Nanos::ZERO, count: 0 }
    }

    /// Parts that each of `active` transfers moves in a nanosecond.
    fn rate(&self, active: usize) -> u128 {
        (u128::from(self.own) * PARTS).min(u128::from(self.shared) * PARTS / active.max(1) as u128)
    }

    /// A transfer of `bytes` is known at `now` and begins at `begins`.
    pub(super) fn begin(&mut self, now: Nanos, begins: Nanos, bytes: u64) {
        self.advance(now);
        let left = u128::from(bytes) * NANOS_PER_SECOND * PARTS;
        self.transfers.push(Transfer { number: self.count, begins, left });
        self.count += 1;
    }

    /// The transfer that ends first has ended.
    pub(super) fn ended(&mut self, now: Nanos) {
        let first = self.first_end();
        self.advance(now);
        self.transfers.retain(|transfer| first.is_none_or(|(number, _)| number != transfer.number));
    }

    /// Moves bytes until `now`, before which no transfer ends.
    fn advance(&mut self, now: Nanos) {
        while self.at < now {
            let active = self.transfers.iter().filter(|transfer| transfer.begins <= self.at).count();
            let later = self.transfers.iter().map(|transfer| transfer.begins).filter(|begins| *begins > self.at);
            let until = later.min().map_or(now, |begins| begins.min(now));
            let moved = self.rate(active) * u128::from((until - self.at).0);
            for transfer in self.transfers.iter_mut().filter(|transfer| transfer.begins <= self.at) {
                transfer.left = transfer.left.saturating_sub(moved);
            }
            self.at = until;
        }
    }

    /// Which transfer ends first if no other comes, and when; of several the one that began to be known first.
    pub(super) fn first_end(&self) -> Option<(u64, Nanos)> {
        let is_active = |transfer: &&Transfer| transfer.begins <= self.at;
        let mut later: Vec<&Transfer> = self.transfers.iter().filter(|transfer| !is_active(transfer)).collect();
        later.sort_unstable_by_key(|transfer| std::cmp::Reverse((transfer.begins, transfer.number)));
        let mut active = self.transfers.len() - later.len();
        // What all active transfers move from now on: the first to end is the one with the least left beside that.
        let (mut at, mut moved) = (self.at, 0);
        let mut first = self.transfers.iter().filter(is_active).map(|each| (each.left, each.number)).min();
        loop {
            let rate = self.rate(active);
            let end = first.map(|(left, number)| {
                let takes = (left - moved).div_ceil(rate);
                (number, Nanos(u64::try_from(u128::from(at.0) + takes).unwrap_or(u64::MAX)))
            });
            let next = later.last().map(|transfer| transfer.begins);
            match (end, next) {
                (Some(end), next) if next.is_none_or(|begins| end.1 <= begins) => return Some(end),
                (_, None) => return None,
                (_, Some(begins)) => {
                    moved += if active > 0 { rate * u128::from((begins - at).0) } else { 0 };
                    at = begins;
                    while let Some(transfer) = later.pop_if(|transfer| transfer.begins == begins) {
                        let with = (transfer.left + moved, transfer.number);
                        first = Some(first.map_or(with, |first| first.min(with)));
                        active += 1;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// When each of `transfers` (known at, begins at, bytes) ends; known in ascending order.
    fn ends(mut network: Network, transfers: &[(u64, u64, u64)]) -> Vec<u64> {
        let (mut ends, mut waiting) = (vec![0; transfers.len()], transfers.iter());
        let mut next = waiting.next();
        loop {
            match (network.first_end(), next) {
                (Some((number, end)), next) if next.is_none_or(|(known, ..)| end.0 <= *known) => {
                    network.ended(end);
                    ends[number as usize] = end.0;
                }
                (_, Some((known, begins, bytes))) => {
                    network.begin(Nanos(*known), Nanos(*begins), *bytes);
                    next = waiting.next();
                }
                (_, None) => return ends,
            }
        }
    }

    /// The same by fluid steps from one change to the next, with all transfers known from the start.
    fn naive(own: f64, shared: f64, transfers: &[(u64, u64, u64)]) -> Vec<f64> {
        let mut left: Vec<f64> = transfers.iter().map(|(_, _, bytes)| *bytes as f64 * 1e9).collect();
        let (mut ends, mut now) = (vec![f64::MAX; left.len()], 0.0);
        while ends.contains(&f64::MAX) {
            let is_active = |at: usize| transfers[at].1 as f64 <= now && ends[at] == f64::MAX;
            let active: Vec<usize> = (0..left.len()).filter(|at| is_active(*at)).collect();
            let rate = own.min(shared / active.len().max(1) as f64);
            let begins = transfers.iter().map(|(_, begins, _)| *begins as f64).filter(|begins| *begins > now);
            let until = active.iter().map(|at| now + left[*at] / rate).chain(begins).fold(f64::MAX, f64::min);
            for at in active {
                left[at] -= (until - now) * rate;
                if left[at] < 1e-3 * rate {
                    ends[at] = until;
                }
            }
            now = until;
        }
        ends
    }

    #[test]
    fn equal_parts_by_hand() {
        const S: u64 = 1_000_000_000;
        // Alone for 0.5 s; then both at half the rate until the first has its 1000 bytes; then the second alone.
        let found = ends(Network::new(1_000_000, 1_000), &[(0, 0, 1_000), (S / 2, S / 2, 1_000)]);
        assert_eq!(found, [3 * S / 2, 2 * S]);
        // Its first byte comes 1 s after it is known: until then the first is alone, and ends then.
        assert_eq!(ends(Network::new(1_000_000, 1_000), &[(0, 0, 1_000), (0, S, 1_000)]), [S, 2 * S]);
        // A connection's own rate leaves a part of the network idle.
        assert_eq!(ends(Network::new(400, 1_000), &[(0, 0, 400), (0, 0, 400)]), [S, S]);
        let four = [(0, 0, 250); 4];
        assert_eq!(ends(Network::new(400, 1_000), &four), [S; 4]);
    }

    proptest! {
        #[test]
        fn ends_are_those_of_a_fluid(
            own in 1_000_u64..1_000_000_000,
            shared in 1_000_u64..1_000_000_000,
            transfers in prop::collection::vec((0_u64..2_000_000_000, 0_u64..1_000_000_000, 1_u64..10_000_000), 1..20),
        ) {
            let mut transfers: Vec<_> = transfers.into_iter().map(|(known, more, bytes)| (known, known + more, bytes)).collect();
            transfers.sort_unstable();
            let found = ends(Network::new(own, shared), &transfers);
            for (found, expected) in found.into_iter().zip(naive(own as f64, shared as f64, &transfers)) {
                prop_assert!((found as f64 - expected).abs() <= 1e3 + 1e-6 * expected, "{found}, not {expected}");
            }
        }
    }
}
