//! PFC again, from the paper alone: lists, sums over all requests so far, integers that cannot overflow.

use std::cell::Cell;
use std::collections::BTreeMap;

use headstart_policy::coordinator::{Actions, Contexts, PfcSetting, Start, Update};
use headstart_policy::readahead::{Asked, Cached};

/// How often each way through the algorithms was taken, by its name.
pub type Ways = BTreeMap<&'static str, Cell<u64>>;

pub const WAYS: [&str; 14] = [
    "size left out of the average",
    "rm_size from the average",
    "large and full",
    "ahead",
    "bypass longer",
    "bypass shorter",
    "bypass at its floor",
    "bypass hit, cache hit",
    "readmore set",
    "readmore reset",
    "readmore kept",
    "whole request bypassed",
    "range longer than its queue",
    "context forgotten",
];

type Name = (u32, i128);

#[derive(Default)]
struct Context {
    key: u32,
    /// The counted request sizes.
    sizes: Vec<i128>,
    bypass_length: i128,
    readmore_length: i128,
    bypass_queue: Vec<Name>,
    readmore_queue: Vec<Name>,
}

pub struct Naive {
    setting: PfcSetting,
    /// The `large` of the setting, as a fraction.
    large: (i128, i128),
    /// In order of the last request.
    contexts: Vec<Context>,
}

/// What must agree: plan, lengths, average, queue sizes.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub plan: (u32, u32),
    pub lengths: (i128, i128),
    pub average: (i128, usize),
    pub queued: (usize, usize),
}

fn names(file: u32, first: i128, last: i128) -> Vec<Name> {
    // No block has a number past 2^64 - 1.
    (first..=last.min(i128::from(u64::MAX))).map(|index| (file, index)).collect()
}

fn insert(queue: &mut Vec<Name>, names: &[Name], size: usize, ways: &Ways) {
    count(ways, "range longer than its queue", names.len() > size);
    for name in names {
        queue.retain(|other| other != name);
        queue.push(*name);
    }
    while queue.len() > size {
        queue.remove(0);
    }
}

/// Whether any of them is in the queue; those that are move to the end.
fn touch(queue: &mut Vec<Name>, names: &[Name]) -> bool {
    let there: Vec<Name> = names.iter().filter(|name| queue.contains(name)).copied().collect();
    queue.retain(|name| !there.contains(name));
    queue.extend(&there);
    !there.is_empty()
}

fn count(ways: &Ways, way: &str, taken: bool) {
    let way = ways.get(way).expect("listed");
    way.set(way.get() + u64::from(taken));
}

impl Naive {
    pub fn new(setting: PfcSetting, large: (i128, i128)) -> Self {
        Self { setting, large, contexts: Vec::new() }
    }

    pub fn ask(&mut self, asked: &Asked, cached: &dyn Cached, full: bool, ways: &Ways) -> Outcome {
        let key = match self.setting.context {
            Contexts::One => 0,
            Contexts::File => asked.file,
            Contexts::Client => asked.client,
        };
        let place = self.contexts.iter().position(|context| context.key == key);
        let mut context = place.map_or(Context { key, ..Context::default() }, |place| self.contexts.remove(place));
        let outcome = self.process_req(&mut context, asked, cached, full, ways);
        self.contexts.push(context);
        if self.contexts.len() > self.setting.contexts as usize {
            count(ways, "context forgotten", true);
            self.contexts.remove(0);
        }
        outcome
    }

    fn process_req(&self, c: &mut Context, asked: &Asked, cached: &dyn Cached, full: bool, ways: &Ways) -> Outcome {
        let bypass_only = self.setting.actions == Actions::Bypass;
        let readmore_only = self.setting.actions == Actions::Readmore;
        let start_u = i128::from(asked.first);
        let end_u = (start_u + i128::from(asked.count) - 1).min(i128::from(u64::MAX));
        let req_size = end_u - start_u + 1;

        let (old_sum, old_count) = (c.sizes.iter().sum::<i128>(), c.sizes.len() as i128);
        let leave_out = old_count > 0 && req_size * old_count > 2 * old_sum;
        if !leave_out {
            c.sizes.push(req_size);
        }
        let (sum, number) = (c.sizes.iter().sum::<i128>(), c.sizes.len() as i128);
        let average_up = (sum + number - 1) / number;
        let rm_size = if req_size >= average_up { req_size } else { average_up };
        count(ways, "size left out of the average", leave_out);
        count(ways, "rm_size from the average", average_up > req_size);

        self.set_param(c, (asked.file, start_u, end_u), rm_size, (sum, number), cached, full, ways);
        if bypass_only {
            c.readmore_length = 0;
        }
        if readmore_only {
            c.bypass_length = 0;
        }

        let start_pfc = (start_u + c.bypass_length).min(end_u + 1);
        let end_pfc = end_u + c.readmore_length;
        let size = self.setting.queue_blocks as usize;
        insert(&mut c.bypass_queue, &names(asked.file, start_u, start_pfc - 1), size, ways);
        if !bypass_only {
            let from = if self.setting.window == Start::Last { end_pfc } else { end_pfc + 1 };
            insert(&mut c.readmore_queue, &names(asked.file, from, end_pfc + rm_size), size, ways);
        }
        count(ways, "whole request bypassed", start_pfc > end_u);
        Outcome {
            plan: ((start_pfc - start_u) as u32, (end_pfc - end_u) as u32),
            lengths: (c.bypass_length, c.readmore_length),
            average: (sum, c.sizes.len()),
            queued: (c.bypass_queue.len(), c.readmore_queue.len()),
        }
    }

    #[allow(clippy::too_many_arguments)] // the paper's variables are global
    fn set_param(
        &self,
        c: &mut Context,
        (file, start_u, end_u): (u32, i128, i128),
        rm_size: i128,
        (sum, number): (i128, i128),
        cached: &dyn Cached,
        full: bool,
        ways: &Ways,
    ) {
        let req_size = end_u - start_u + 1;
        let in_cache = |index: i128| u64::try_from(index).is_ok_and(|index| cached.is_cached(file, index));
        // req_size > large * sum / number
        if req_size * number * self.large.1 > self.large.0 * sum && full {
            count(ways, "large and full", true);
            c.readmore_length = 0;
        }
        let from = if self.setting.ahead == Start::Last { end_u } else { end_u + 1 };
        if (from..=end_u + req_size).filter(|index| !in_cache(*index)).count() == 0 {
            count(ways, "ahead", true);
            c.bypass_length = req_size;
            c.readmore_length = 0;
            return;
        }
        let requested = names(file, start_u, end_u);
        let hit_cache = requested.iter().filter(|name| in_cache(name.1)).count() > 0;
        let hit_bypass = touch(&mut c.bypass_queue, &requested);
        let hit_readmore = touch(&mut c.readmore_queue, &requested);
        if !hit_bypass {
            c.bypass_length += 1;
        }
        if !hit_cache && hit_bypass {
            count(ways, "bypass at its floor", c.bypass_length == 0);
            c.bypass_length = (c.bypass_length - 1).max(0);
        }
        let update = !hit_cache || self.setting.update == Update::Always;
        if update {
            c.readmore_length = if hit_readmore { rm_size } else { 0 };
        }
        count(ways, "bypass longer", !hit_bypass);
        count(ways, "bypass shorter", !hit_cache && hit_bypass);
        count(ways, "bypass hit, cache hit", hit_cache && hit_bypass);
        count(ways, "readmore set", update && hit_readmore);
        count(ways, "readmore reset", update && !hit_readmore);
        count(ways, "readmore kept", !update);
    }
}
