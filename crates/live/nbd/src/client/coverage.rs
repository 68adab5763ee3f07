//! Tracks which parts of a read have arrived: chunks may come in any order, but must not overlap or leave a gap.

use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// Sorted, without adjacent parts.
    parts: Vec<Range<u64>>,
}

impl Coverage {
    /// Adds a part; false if it overlaps an earlier one.
    pub fn add(&mut self, part: Range<u64>) -> bool {
        let at = self.parts.partition_point(|known| known.end <= part.start);
        if self.parts.get(at).is_some_and(|next| next.start < part.end) {
            return false;
        }
        let joins_next = self.parts.get(at).is_some_and(|next| next.start == part.end);
        let joins_last = at > 0 && self.parts[at - 1].end == part.start;
        match (joins_last, joins_next) {
            (true, true) => self.parts[at - 1].end = self.parts.remove(at).end,
            (true, false) => self.parts[at - 1].end = part.end,
            (false, true) => self.parts[at].start = part.start,
            (false, false) => self.parts.insert(at, part),
        }
        true
    }

    /// Whether exactly `whole` has arrived.
    pub fn is(&self, whole: Range<u64>) -> bool {
        self.parts == [whole]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_chunk_closes_the_gap() {
        let mut coverage = Coverage::default();
        assert!(coverage.add(0..2) && coverage.add(4..6));
        assert!(!coverage.is(0..6));
        assert!(!coverage.add(1..3), "byte 1 came before");
        assert!(coverage.add(2..4) && coverage.is(0..6));
    }

    proptest! {
        #[test]
        fn as_a_set_of_bytes(parts in proptest::collection::vec((0_u64..40, 1_u64..8), 0..20)) {
            let (mut coverage, mut bytes) = (Coverage::default(), std::collections::BTreeSet::new());
            for (start, length) in parts {
                let part = start..start + length;
                let new = part.clone().all(|byte| !bytes.contains(&byte));
                prop_assert_eq!(coverage.add(part.clone()), new);
                if new {
                    bytes.extend(part);
                }
                prop_assert_eq!(coverage.is(0..bytes.len() as u64), bytes.iter().copied().eq(0..bytes.len() as u64) && !bytes.is_empty());
            }
        }
    }
}
