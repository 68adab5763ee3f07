//! Turns a recording into a command that can be replayed: what each of its threads reads, and the time between.
//!
//! A think time is the gap between the end of a read and the start of the next, less waits. A thread that starts does
//! so a while after a read of another thread, which is taken for the fork. A thread in whose gap others have ended has
//! waited for them, which is taken for the join. A thread that goes on right after a step of another one, which was
//! waiting for disks for most of the gap, has waited for that step (a pipe, a socket, a lock). All other waits of
//! threads are part of their think times.

use std::collections::BTreeMap;

use headstart_policy::readahead::Run;
use headstart_trace::hints::{FileKind, Read, ReadKind, Recording};
use headstart_types::Nanos;

/// One call of the file system reads its metadata within this time. A guess: some thirty pages are added in it.
const TOGETHER_NS: u64 = 200_000;
/// The shortest gap in which a thread may have waited for another one: shorter gaps change little.
const GAP_MIN_NS: u64 = 5_000_000;
/// A thread that another one wakes goes on within this time. A guess: a busy machine takes longer, and a computing
/// thread may go on as soon by chance.
const WOKEN_WITHIN_NS: u64 = 1_000_000;
/// Share of the gap for which the other thread must have waited for devices.
const WAITED_SHARE: f64 = 0.5;

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A system call reads.
    Read(Run),
    /// A page of a mapped file is touched that is not mapped.
    Fault(Run),
    /// The cached ones of these pages are mapped.
    Map(Run),
    /// The file system reads for itself; whether the thread waits for it.
    Metadata(Vec<Run>, bool),
}

impl Action {
    pub fn runs(&self) -> &[Run] {
        match self {
            Self::Read(run) | Self::Fault(run) | Self::Map(run) => std::slice::from_ref(run),
            Self::Metadata(runs, _) => runs,
        }
    }
}

/// A thread's read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Steps of other threads that must have ended, beside the thread's own last step: thread, step.
    pub after: Vec<(u32, u32)>,
    /// Think time from then on.
    pub think: Nanos,
    pub action: Action,
}

/// A command that can be replayed.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// By thread, in order of the first step.
    pub threads: Vec<Vec<Step>>,
    /// From the end of the last step to the end of the command.
    pub tail: Nanos,
}

/// A recorded step.
struct Seen {
    thread: u32,
    begun_ns: u64,
    ended_ns: u64,
    action: Action,
}

impl Program {
    pub fn new(recording: &Recording) -> Self {
        let seen = steps(recording);
        let mut program = Self::default();
        let mut ties = Ties::new(&seen);
        for Seen { thread, begun_ns, ended_ns, action } in seen {
            let at = thread as usize;
            if program.threads.len() <= at {
                program.threads.resize_with(at + 1, Vec::new);
            }
            let (after, from_ns) = ties.before(thread, begun_ns);
            let step = program.threads[at].len() as u32;
            let action = as_submitted(action);
            program.threads[at].push(Step { after, think: Nanos(begun_ns.saturating_sub(from_ns)), action });
            ties.add(thread, step, (begun_ns, ended_ns));
        }
        let last_ns = ties.by_end.last_key_value().map_or(0, |((ended_ns, _), _)| *ended_ns);
        program.tail = Nanos(recording.about.elapsed_ns.saturating_sub(last_ns));
        program
    }
}

/// The progress of threads so far, which tells what a step waits for.
struct Ties {
    /// The last step of each thread, by end.
    finals: Vec<(u64, u32, u32)>,
    /// By end and thread, the step.
    by_end: BTreeMap<(u64, u32), u32>,
    /// By thread, at the end of each step: how long the thread has waited for devices in all.
    waited: Vec<Vec<(u64, u64)>>,
}

impl Ties {
    fn new(seen: &[Seen]) -> Self {
        let mut last: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        for step in seen {
            let entry = last.entry(step.thread).or_insert((0, 0));
            *entry = (step.ended_ns, entry.1 + 1);
        }
        let mut finals: Vec<(u64, u32, u32)> =
            last.iter().map(|(thread, (at_ns, steps))| (*at_ns, *thread, steps - 1)).collect();
        finals.sort_unstable();
        Self { finals, by_end: BTreeMap::new(), waited: vec![Vec::new(); last.len()] }
    }

    /// The steps that a step of `thread` comes after, beside its own last one, and the time from which the thread has
    /// thought.
    fn before(&self, thread: u32, begun_ns: u64) -> (Vec<(u32, u32)>, u64) {
        let Some(own_ns) = self.waited[thread as usize].last().map(|(ended_ns, _)| *ended_ns) else {
            let fork = self.by_end.range(..=(begun_ns, u32::MAX)).next_back();
            return fork.map_or((Vec::new(), 0), |((at_ns, of), step)| (vec![(*of, *step)], *at_ns));
        };
        let (mut after, mut from_ns) = (Vec::new(), own_ns);
        let start = self.finals.partition_point(|(at_ns, ..)| *at_ns <= own_ns);
        let joined = self.finals[start..].iter().take_while(|(at_ns, ..)| *at_ns < begun_ns);
        for (at_ns, of, step) in joined.filter(|(_, of, _)| *of != thread) {
            after.push((*of, *step));
            from_ns = from_ns.max(*at_ns);
        }
        if let Some((at_ns, of, step)) = self.woken(thread, from_ns, begun_ns) {
            after.push((of, step));
            from_ns = at_ns;
        }
        (after, from_ns)
    }

    /// What ended a gap of `thread`, if another thread did: when, which thread, which step.
    fn woken(&self, thread: u32, from_ns: u64, begun_ns: u64) -> Option<(u64, u32, u32)> {
        let gap_ns = begun_ns.saturating_sub(from_ns);
        if gap_ns < GAP_MIN_NS {
            return None;
        }
        let lately = (begun_ns - WOKEN_WITHIN_NS, 0)..=(begun_ns, u32::MAX);
        let ((at_ns, of), step) = self.by_end.range(lately).rev().find(|((_, of), _)| *of != thread)?;
        let waited_ns = self.waited_ns(*of, begun_ns).saturating_sub(self.waited_ns(*of, from_ns));
        (waited_ns as f64 >= gap_ns as f64 * WAITED_SHARE).then_some((*at_ns, *of, *step))
    }

    /// How long `thread` had waited for devices by then.
    fn waited_ns(&self, thread: u32, by_ns: u64) -> u64 {
        let all = &self.waited[thread as usize];
        let ended = all.partition_point(|(ended_ns, _)| *ended_ns <= by_ns);
        ended.checked_sub(1).map_or(0, |last| all[last].1)
    }

    fn add(&mut self, thread: u32, step: u32, (begun_ns, ended_ns): (u64, u64)) {
        let all = &mut self.waited[thread as usize];
        let before_ns = all.last().map_or(0, |last| last.1);
        all.push((ended_ns, before_ns.saturating_add(ended_ns - begun_ns)));
        self.by_end.insert((ended_ns, thread), step);
    }
}

/// The steps of all threads by time; threads are numbered by their first step.
fn steps(recording: &Recording) -> Vec<Seen> {
    let mut number_of: BTreeMap<u32, u32> = BTreeMap::new();
    let mut seen: Vec<Seen> = Vec::new();
    // By thread: its last step.
    let mut latest: Vec<usize> = Vec::new();
    for read in recording.references() {
        let next = number_of.len() as u32;
        let thread = *number_of.entry(read.process).or_insert(next);
        let ended_ns = read.time_ns.saturating_add(read.wait_ns);
        let is_metadata = recording.files[read.file as usize].kind == FileKind::Device;
        let before = latest.get(thread as usize).map(|at| &mut seen[*at]);
        if let Some(Seen { begun_ns, ended_ns: before_ns, action: Action::Metadata(pages, waits), .. }) = before {
            if is_metadata && !*waits && read.time_ns - *begun_ns <= TOGETHER_NS {
                join(pages, pages_of(read));
                (*waits, *before_ns) = (read.wait_ns > 0, ended_ns);
                continue;
            }
        }
        let action = match read.kind {
            _ if is_metadata => Action::Metadata(vec![pages_of(read)], read.wait_ns > 0),
            ReadKind::Fault => Action::Fault(pages_of(read)),
            ReadKind::Map => Action::Map(pages_of(read)),
            ReadKind::Read | ReadKind::ReadAhead => Action::Read(pages_of(read)),
        };
        if thread as usize == latest.len() {
            latest.push(seen.len());
        }
        latest[thread as usize] = seen.len();
        seen.push(Seen { thread, begun_ns: read.time_ns, ended_ns, action });
    }
    seen
}

fn pages_of(read: &Read) -> Run {
    Run { file: read.file, first: read.start, count: read.pages }
}

/// Adds pages to those that are read together: neighbours become one request.
fn join(all: &mut Vec<Run>, more: Run) {
    match all.last_mut().filter(|last| last.file == more.file) {
        Some(last) if last.end() == more.first => last.count += more.count,
        Some(last) if more.end() == last.first => (last.first, last.count) = (more.first, last.count + more.count),
        _ => all.push(more),
    }
}

/// ext4 first looks for the page of the inode that it wants, then submits the pages around it, and that page last
/// (Linux 6.18, fs/ext4/inode.c, `__ext4_get_inode_loc`).
fn as_submitted(mut action: Action) -> Action {
    if let Action::Metadata(pages, true) = &mut action {
        if pages.len() > 1 && pages[0].count == 1 {
            pages.rotate_left(1);
        }
    }
    action
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_that_is_wanted_is_read_last() {
        let pages = |first, count| Run { file: 0, first, count };
        let of = |all: &[Run], waits| as_submitted(Action::Metadata(all.to_vec(), waits));
        let group = [pages(1759, 1), pages(1728, 31), pages(1760, 1)];
        let last = Action::Metadata(vec![group[1], group[2], group[0]], true);
        assert_eq!(of(&group, true), last);
        // A single request, one without a waiter, and a run that is read from its start.
        for (all, waits) in [(&group[..1], true), (&group, false), (&[pages(8, 4), pages(20, 1)], true)] {
            assert_eq!(of(all, waits), Action::Metadata(all.to_vec(), waits));
        }
    }
}
