//! The ranges that orders name, each with its places in orders. Most objects have one range and most ranges have one
//! use: these take a number beside the object, the range and the use, and nothing else.

use std::collections::BTreeMap;

/// Bytes of an object: not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub object: u32,
    pub start: u64,
    pub end: u64,
}

impl Span {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// A place in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    pub order: u32,
    pub at: u64,
}

/// The number of a range, as long as it has a use.
pub type RangeId = u32;

/// Ranges by number and by place.
#[derive(Debug, Default)]
pub struct Named {
    ranges: Vec<(Span, Uses)>,
    free: Vec<RangeId>,
    /// By number of the object.
    objects: Vec<OfObject>,
}

/// Where a range is used.
#[derive(Debug)]
enum Uses {
    /// A [`Use`], whose fields share a word with the enum's tag.
    One { order: u32, at: u64 },
    /// Also of a range that is free.
    #[expect(clippy::box_collection, reason = "a vector in place would make each range larger")]
    Many(Box<Vec<Use>>),
}

impl From<Use> for Uses {
    fn from(Use { order, at }: Use) -> Self {
        Self::One { order, at }
    }
}

/// The ranges of an object.
#[derive(Debug, Default)]
enum OfObject {
    #[default]
    None,
    One(RangeId),
    Many(Box<Ranges>),
}

#[derive(Debug, Default)]
struct Ranges {
    /// By start and end.
    ids: BTreeMap<(u64, u64), RangeId>,
    /// The length of the longest range, which bounds how far back an overlapping one begins.
    longest: u64,
}

impl Ranges {
    fn insert(&mut self, span: Span, id: RangeId) {
        self.ids.insert((span.start, span.end), id);
        self.longest = self.longest.max(span.bytes());
    }
}

impl Named {
    /// Notes a use of a range, and returns the range's number.
    pub fn insert(&mut self, span: Span, used: Use) -> RangeId {
        if let Some(id) = self.find(span) {
            let uses = &mut self.ranges[id as usize].1;
            match uses {
                Uses::One { order, at } => *uses = Uses::Many(Box::new(vec![Use { order: *order, at: *at }, used])),
                Uses::Many(all) => all.push(used),
            }
            return id;
        }
        let range = (span, used.into());
        let id = match self.free.pop() {
            Some(id) => {
                self.ranges[id as usize] = range;
                id
            }
            None => {
                self.ranges.push(range);
                self.ranges.len() as RangeId - 1
            }
        };
        self.place(span, id);
        id
    }

    fn place(&mut self, span: Span, id: RangeId) {
        let object = span.object as usize;
        if self.objects.len() <= object {
            self.objects.resize_with(object + 1, OfObject::default);
        }
        match &mut self.objects[object] {
            none @ OfObject::None => *none = OfObject::One(id),
            OfObject::Many(ranges) => ranges.insert(span, id),
            one @ OfObject::One(_) => {
                let OfObject::One(first) = std::mem::take(one) else { unreachable!("it is one") };
                let mut ranges = Box::<Ranges>::default();
                ranges.insert(self.ranges[first as usize].0, first);
                ranges.insert(span, id);
                *one = OfObject::Many(ranges);
            }
        }
    }

    fn find(&self, span: Span) -> Option<RangeId> {
        match self.objects.get(span.object as usize)? {
            OfObject::None => None,
            OfObject::One(id) => (self.ranges[*id as usize].0 == span).then_some(*id),
            OfObject::Many(ranges) => ranges.ids.get(&(span.start, span.end)).copied(),
        }
    }

    /// The range of a number.
    pub fn span(&self, id: RangeId) -> Span {
        self.ranges[id as usize].0
    }

    /// The uses of a range.
    pub fn uses(&self, id: RangeId) -> impl Iterator<Item = Use> + '_ {
        let (one, many) = match &self.ranges[id as usize].1 {
            Uses::One { order, at } => (Some(Use { order: *order, at: *at }), &[][..]),
            Uses::Many(all) => (None, &all[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Forgets uses of a range, and the range with its last one.
    pub fn forget(&mut self, id: RangeId, is_gone: impl Fn(&Use) -> bool) {
        let (span, uses) = &mut self.ranges[id as usize];
        let span = *span;
        match uses {
            Uses::One { order, at } if !is_gone(&Use { order: *order, at: *at }) => return,
            Uses::One { .. } => *uses = Uses::Many(Box::default()),
            Uses::Many(all) => {
                all.retain(|each| !is_gone(each));
                match all[..] {
                    [] => {}
                    [last] => {
                        *uses = last.into();
                        return;
                    }
                    _ => return,
                }
            }
        }
        self.free.push(id);
        let object = &mut self.objects[span.object as usize];
        match object {
            OfObject::Many(ranges) if ranges.ids.len() > 1 => drop(ranges.ids.remove(&(span.start, span.end))),
            _ => *object = OfObject::None,
        }
    }

    /// Ranges that share bytes with `span`, in the order of their starts.
    pub fn overlapping(&self, span: Span) -> impl Iterator<Item = RangeId> + '_ {
        let (one, many) = match self.objects.get(span.object as usize) {
            None | Some(OfObject::None) => (None, None),
            Some(OfObject::One(id)) => (Some(*id), None),
            Some(OfObject::Many(ranges)) => {
                let from = (span.start.saturating_sub(ranges.longest), 0);
                (None, Some(ranges.ids.range(from..(span.end, 0)).map(|(_, id)| *id)))
            }
        };
        let shares = move |id: &RangeId| {
            let own = self.span(*id);
            own.start < span.end && own.end > span.start
        };
        one.into_iter().chain(many.into_iter().flatten()).filter(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Event {
        Insert(Span),
        Forget(usize),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let span = (0..3_u32, 0..12_u64, 1..6_u64).prop_map(|(object, start, length)| Span {
            object,
            start,
            end: start + length,
        });
        prop::collection::vec(
            prop_oneof![2 => span.prop_map(Event::Insert), 1 => any::<usize>().prop_map(Event::Forget)],
            1..120,
        )
    }

    proptest! {
        /// A list of all uses is the model.
        #[test]
        fn ranges_and_uses_are_those_of_a_list(events in events()) {
            let (mut named, mut model) = (Named::default(), Vec::<(Span, Use)>::new());
            for (at, event) in events.into_iter().enumerate() {
                match event {
                    Event::Insert(span) => {
                        let used = Use { order: 0, at: at as u64 };
                        let id = named.insert(span, used);
                        prop_assert_eq!(named.span(id), span);
                        model.push((span, used));
                    }
                    Event::Forget(which) if !model.is_empty() => {
                        let (span, used) = model.remove(which % model.len());
                        let id = named.find(span).expect("it has a use");
                        named.forget(id, |each| *each == used);
                    }
                    Event::Forget(_) => {}
                }
                for object in 0..3 {
                    let span = Span { object, start: at as u64 % 14, end: at as u64 % 14 + 3 };
                    let ids = named.overlapping(span);
                    let mut found: Vec<Use> = ids.flat_map(|id| named.uses(id)).collect();
                    found.sort_unstable();
                    let shares = |own: &Span| own.object == object && own.start < span.end && own.end > span.start;
                    let expected: Vec<Use> =
                        model.iter().filter(|(own, _)| shares(own)).map(|(_, used)| *used).collect();
                    prop_assert_eq!(found, expected);
                }
            }
            let ranges: std::collections::BTreeSet<Span> = model.iter().map(|(span, _)| *span).collect();
            prop_assert_eq!(named.ranges.len() - named.free.len(), ranges.len(), "ranges without a use are free");
        }
    }
}
