use super::*;
use crate::list::{disks_of, HintList, HintedFile, HintedRange};
use crate::machine::Setting;
use crate::trace::By;
use crate::universe::Universe;
use headstart_policy::registry::policy;
use proptest::prelude::*;
use toml::Table;

/// Records orders in sequence; reads nothing by itself.
#[derive(Default)]
struct Ordered {
    blocks: Vec<Block>,
    /// The blocks that have been read.
    read: Vec<Block>,
    halvings: u32,
    reads_max: usize,
    stopped: bool,
}

impl Queues for Ordered {
    fn disks(&self) -> usize {
        1
    }

    fn order(&mut self, _disk: usize, blocks: &mut dyn Iterator<Item = (Block, u32, u64)>) {
        self.blocks.extend(blocks.map(|(block, ..)| block));
    }

    fn cancel(&mut self, _disk: usize, _block: Block) -> bool {
        false
    }

    fn allow_holes(&mut self, _pages: u64) {}

    fn slow(&mut self, halvings: u32) {
        self.halvings = halvings;
    }

    fn limit(&mut self, reads: usize, _pages: u64) {
        self.reads_max = reads;
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

const DEVICE: u32 = 0;
const DATA: u32 = 1;
const OTHER: (u64, u64) = (9, 9);

/// A device's number is its inode number, and the device number of its files.
fn file(number: u64, is_device: bool) -> HintedFile {
    let (size, mtime_ns) = ((!is_device).then_some(1 << 30), (!is_device).then_some(0));
    HintedFile { path: format!("/{number}").into(), identity: (0, number), is_device, size, mtime_ns, came_pages: 0 }
}

/// `metadata` pages of the device, and `data` pages of a file, without an arm but with few frames at first.
fn conductor(metadata: u32, data: u32, trust: Trust) -> Conductor<Ordered> {
    let files = vec![file(0, true), file(2, false)];
    let range = |file, count| HintedRange { file, count, ..HintedRange::default() };
    let list = HintList { files, ranges: vec![range(DEVICE, metadata), range(DATA, data)], ..HintList::default() };
    let budget_bytes = 1 << 30;
    let row = policy("just-in-time").expect("it is registered");
    let plan = Plan { row, keys: Table::new(), budget_bytes, trust };
    let setting = plan.setting(&list, 1, false).expect("it works from hints");
    let (frames_min, growth) = if trust == Trust::SameCommand { (64, 8) } else { (16, 2) };
    let setting = Setting { frames_min: frames_min.min(setting.frames_max), growth, ..setting };
    let (disks, _) = disks_of(&list.files);
    let machine = Machine::try_new(&setting, Universe::new(&list, disks, &[])).expect("no keys");
    Conductor::new(machine, Ordered::default(), budget_bytes, trust)
}

/// `data` pages of a file, on a disk with an arm.
fn with_arm(data: u32, trust: Trust) -> Conductor<Ordered> {
    let ranges = vec![HintedRange { file: DATA, count: data, ..HintedRange::default() }];
    let list = HintList { files: vec![file(0, true), file(2, false)], ranges, ..HintList::default() };
    let row = policy("just-in-time").expect("it is registered");
    let plan = Plan { row, keys: Table::new(), budget_bytes: 1 << 30, trust };
    let setting = plan.setting(&list, 1, true).expect("it works from hints");
    let (disks, _) = disks_of(&list.files);
    let machine = Machine::try_new(&setting, Universe::new(&list, disks, &[])).expect("no keys");
    Conductor::new(machine, Ordered::default(), 1 << 30, trust)
}

/// One reference.
fn seen(first: u64, last: u64) -> Seen {
    Seen { file: (0, 2), first, last, by: By::Use }
}

/// References each of these pages.
fn each(conductor: &mut Conductor<Ordered>, at: u64, file: (u64, u64), pages: std::ops::Range<u64>) {
    pages.for_each(|page| conductor.referenced(Nanos(at), Seen { file, first: page, last: page, by: By::Use }));
    conductor.act(Nanos(at));
}

const OURS: (u64, u64) = (0, 2);

/// Reads everything ordered, until nothing more is ordered. Returns the number of reads.
fn read_all(conductor: &mut Conductor<Ordered>, at: u64) -> usize {
    let mut read = 0;
    loop {
        let blocks = std::mem::take(&mut conductor.queues.blocks);
        if blocks.is_empty() {
            return read;
        }
        read += blocks.len();
        conductor.queues.read.extend(&blocks);
        conductor.heard(Nanos(at), Done::Read(blocks, std::time::Duration::from_millis(1), 0));
        conductor.act(Nanos(at));
    }
}

#[test]
fn nothing_is_ordered_before_the_first_references_confirm_the_hints() {
    for trust in [Trust::Earned, Trust::SameCommand] {
        let mut conductor = conductor(10, 5000, trust);
        each(&mut conductor, 1, OURS, 0..7);
        assert_eq!(read_all(&mut conductor, 1), 0);
        each(&mut conductor, 2, OURS, 7..8);
        assert!(read_all(&mut conductor, 2) > 0, "{trust:?}");
    }
}

/// 5000 pages of a file, for a command that took `recorded_ms`, on a disk without an arm.
fn at_once(trust: Trust, recorded_ms: u64) -> Conductor<Ordered> {
    let mut conductor = conductor(0, 5000, trust).at_risk(Nanos(recorded_ms * 1_000_000), false, None);
    conductor.turn(Nanos(0));
    conductor
}

#[test]
fn hints_of_the_same_command_are_followed_at_once_without_an_arm_and_for_a_share_of_its_time() {
    assert_eq!(at_once(Trust::Earned, 100).queues.blocks.len(), 0);
    // 3 ms, of which a read of four pages takes 0.2: 29 times 7 us.
    let same = at_once(Trust::SameCommand, 100);
    assert!(!same.queues.blocks.is_empty());
    assert_eq!((same.queues.reads_max, same.queues.halvings), (14, 0));
    // After an unhinted reference, hints must make up for it.
    let mut other = at_once(Trust::SameCommand, 100);
    each(&mut other, 1, OTHER, 0..1);
    assert_eq!(other.queues.halvings, HALVINGS_MAX);
    each(&mut other, 2, OURS, 0..7);
    assert_eq!(other.queues.halvings, HALVINGS_MAX);
    each(&mut other, 3, OURS, 7..9);
    assert!(other.queues.halvings < HALVINGS_MAX);
}

/// The number of pages read each time, if 20 pages are referenced each time.
fn earned(trust: Trust) -> Vec<usize> {
    let mut conductor = conductor(0, 50_000, trust);
    each(&mut conductor, 1, OURS, 0..20);
    (1..6)
        .map(|at| {
            let read = read_all(&mut conductor, at);
            each(&mut conductor, at, OURS, 20 * at..20 * at + 20);
            read
        })
        .collect()
}

#[test]
fn frames_are_earned_by_what_is_used_and_faster_by_hints_of_the_same_command() {
    // 16 frames, then two more for each of 16 or 20 that were used, and their own.
    assert_eq!(earned(Trust::Earned), [16, 48, 60, 60, 60]);
    // Hints of the same command earn eight frames for each, and one for each page that they are right about.
    assert_eq!(earned(Trust::SameCommand), [84, 200, 200, 200, 200]);
}

#[test]
fn metadata_is_read_in_the_order_of_need_and_no_more_than_there_are_frames() {
    let mut same = conductor(3000, 5000, Trust::SameCommand);
    each(&mut same, 1, OURS, 0..20);
    // Whether it is used is not visible: as many frames of it as there are, 64 and 20 for those references, and those
    // once more.
    assert_eq!(read_all(&mut same, 1), 168);
    assert!(same.queues.read.iter().all(|block| block.0 < 3000));
    // The command itself reads hinted metadata, twice: nine frames for each page, and as many once more. Pages read
    // beside it prove nothing. Three pages that were replaced by these are in the page cache, and are not read again.
    let metadata = |page| Seen { file: (0, 0), first: page, last: page, by: By::Metadata };
    [2000, 2031, 2100, 2000].into_iter().for_each(|page| same.referenced(Nanos(2), metadata(page)));
    same.act(Nanos(2));
    assert_eq!(read_all(&mut same, 2), 36);
}

#[test]
fn metadata_that_the_command_reads_elsewhere_stops_prefetching() {
    let mut conductor = conductor(3000, 50_000, Trust::SameCommand);
    (0..40).for_each(|page| each(&mut conductor, 1, OURS, page..page + 1));
    let mut halvings = Vec::new();
    for page in [7000, 8000, 9000, 9001] {
        conductor.referenced(Nanos(2), Seen { file: (0, 0), first: page, last: page, by: By::Metadata });
        // Metadata of a device that hints do not name proves nothing.
        conductor.referenced(Nanos(2), Seen { file: (0, 5), first: page, last: page, by: By::Metadata });
        conductor.act(Nanos(2));
        halvings.push(conductor.queues.halvings);
    }
    assert_eq!(halvings, [HALVINGS_MAX; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However long the list is right, and wherever it turns wrong: useless reads are bounded by the right ones.
    #[test]
    fn wrong_from_some_page_on_costs_no_more_than_was_earned(
        right in 0u64..3000,
        metadata in 0u32..2000,
        same: bool,
        step in 1u64..40,
    ) {
        let trust = if same { Trust::SameCommand } else { Trust::Earned };
        let mut conductor = conductor(metadata, 8000, trust);
        let mut at = 1;
        for first in (0..right).step_by(step as usize) {
            at += 1;
            each(&mut conductor, at, OURS, first..(first + step).min(right));
            read_all(&mut conductor, at);
        }
        for first in (0..2000).step_by(step as usize) {
            at += 1;
            each(&mut conductor, at, OTHER, first..first + step);
            read_all(&mut conductor, at);
        }
        let read = conductor.queues.read.len() as u64;
        let (start, growth) = if same { (64, 8) } else { (16, 2) };
        // Metadata that has come counts as used once, up to the number of frames.
        prop_assert!(read <= right + 2 * (start + growth * right), "{read} pages for {right} that were right");
        prop_assert_eq!(conductor.queues.halvings, HALVINGS_MAX);
    }
}

/// A disk reads what is ordered, one block at a time, until `until` or until nothing may be read. Returns when it
/// ended.
fn read_until(conductor: &mut Conductor<Ordered>, mut now: u64, until: u64, read_ns: u64) -> u64 {
    conductor.act(Nanos(now));
    while now < until && conductor.queues.reads_max > 0 && conductor.queues.halvings < HALVINGS_MAX {
        let Some(block) = conductor.queues.blocks.pop() else { break };
        now += read_ns;
        conductor.queues.read.push(block);
        conductor.heard(Nanos(now), Done::Read(vec![block], std::time::Duration::from_nanos(read_ns), 0));
        conductor.act(Nanos(now));
    }
    now.max(until)
}

/// The command references `pages` with gaps, and the disk reads in the gaps. Returns how many of the blocks read were
/// not referenced, and the time.
fn read_in_vain(
    conductor: &mut Conductor<Ordered>,
    pages: impl Iterator<Item = ((u64, u64), u64)>,
    (gap_ns, read_ns): (u64, u64),
) -> (usize, u64) {
    let mut now = 0;
    for (file, page) in pages {
        now = read_until(conductor, now, now + gap_ns, read_ns);
        conductor.referenced(Nanos(now), Seen { file, first: page, last: page, by: By::Use });
    }
    let unused = conductor.queues.read.iter().filter(|block| !conductor.machine.is_referenced(**block)).count();
    (unused, now)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the hints turn wrong, and however long a read takes: the disk time wasted is at most a share of the
    /// command's time, plus one read.
    #[test]
    fn time_in_vain_is_a_share_of_the_commands(
        right in 0u64..600,
        wrong in 0u64..600,
        recorded_ms in 0u64..4000,
        gap_ms in 0u64..40,
        read_ms in 1u64..12,
        shuffled: bool,
        same: bool,
    ) {
        let trust = if same { Trust::SameCommand } else { Trust::Earned };
        let of_arm = with_arm(2000, trust);
        let mut conductor = of_arm.at_risk(Nanos(recorded_ms * 1_000_000), true, None);
        // Hints of the same command are right in another order, too.
        let page = |at| if shuffled { at * 7 % right.max(1) } else { at };
        let pages = (0..right).map(|at| (OURS, page(at))).chain((right..right + wrong).map(|at| (OTHER, at)));
        let (unused, now) = read_in_vain(&mut conductor, pages, (gap_ms * 1_000_000, read_ms * 1_000_000));
        let spent = (unused as u64 * read_ms) as f64;
        let time = (now / 1_000_000).max(if same { recorded_ms } else { 0 }) as f64;
        let share = if same { 0.26 } else { 0.16 };
        let most = time * share + read_ms as f64;
        prop_assert!(spent <= most, "{unused} reads of {read_ms} ms in vain in {time} ms");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The same without an arm, where hints of the same command are followed at once.
    #[test]
    fn time_in_vain_without_an_arm_is_the_share(
        right in 0u64..600,
        wrong in 1u64..600,
        recorded_ms in 20u64..4000,
        gap_us in 0u64..4000,
        read_us in 10u64..3000,
        same: bool,
    ) {
        let trust = if same { Trust::SameCommand } else { Trust::Earned };
        let mut conductor = conductor(0, 2000, trust).at_risk(Nanos(recorded_ms * 1_000_000), false, None);
        conductor.turn(Nanos(0));
        let pages = (0..right + wrong).map(|at| (if at < right { OURS } else { OTHER }, at));
        let (unused, now) = read_in_vain(&mut conductor, pages, (gap_us * 1000, read_us * 1000));
        // A read of a page costs its duration, and at most 26 times 7 us.
        let cost_us = read_us.min(26 * 7);
        let time_us = (now / 1000).max(if same { recorded_ms * 1000 } else { 0 });
        let most_us = time_us as f64 * if same { 0.13 } else { 0.03 } + cost_us as f64;
        prop_assert!((unused as u64 * cost_us) as f64 <= most_us, "{unused} reads of {cost_us} us in vain in {time_us} us");
    }
}

#[test]
fn a_command_that_goes_elsewhere_is_not_followed_until_it_comes_back() {
    let mut conductor = conductor(0, 5000, Trust::SameCommand);
    each(&mut conductor, 1, OURS, 0..1000);
    assert!(conductor.queues.halvings < HALVINGS_MAX);
    each(&mut conductor, 2, OTHER, 0..20);
    assert!(conductor.queues.halvings == HALVINGS_MAX);
    each(&mut conductor, 3, OURS, 1000..1064);
    assert!(conductor.queues.halvings < HALVINGS_MAX && conductor.stopped.is_none());
    each(&mut conductor, 4, OTHER, 20..2000);
    assert!(conductor.stopped.is_some_and(|why| why.contains("does not read")) && conductor.queues.stopped);
}

#[test]
fn hints_of_another_command_are_followed_where_the_order_is_theirs() {
    let halvings_after = |trust, steps: &[u64]| {
        let mut conductor = conductor(0, 50_000, trust);
        (0..40).for_each(|page| each(&mut conductor, 1, OURS, page..page + 1));
        steps.iter().for_each(|page| each(&mut conductor, 2, OURS, *page..*page + 1));
        conductor.queues.halvings
    };
    // Few frames: one read in eight.
    let near = halvings_after(Trust::Earned, &[300, 41, 300 + 40, 42]);
    assert_eq!(near, 3);
    // All are hinted, and far from the others.
    let jumps = [9_000, 7_000, 20_000, 30_000];
    assert_eq!(halvings_after(Trust::Earned, &jumps), HALVINGS_MAX);
    assert_eq!(halvings_after(Trust::SameCommand, &jumps), halvings_after(Trust::SameCommand, &[40]));
}

#[test]
fn pages_beyond_the_end_and_pages_again_say_nothing() {
    let mut conductor = conductor(0, 5000, Trust::SameCommand);
    each(&mut conductor, 1, OURS, 0..100);
    for _ in 0..100 {
        // Like `cat`, it reads beyond the end.
        conductor.referenced(Nanos(2), seen(0, 31));
        conductor.referenced(Nanos(2), seen(1 << 40, (1 << 40) + 31));
    }
    conductor.act(Nanos(2));
    assert!(conductor.queues.halvings < HALVINGS_MAX && conductor.stopped.is_none());
}

#[test]
fn of_a_mapped_window_count_the_pages_that_are_there() {
    let window = |first| Seen { file: (0, 2), first, last: first + 15, by: By::Mapped };
    let mut mapped = conductor(0, 5000, Trust::SameCommand);
    let used = |conductor: &Conductor<Ordered>, pages: std::ops::Range<u32>| {
        pages.filter(|page| conductor.machine.is_referenced(Block(*page))).collect::<Vec<_>>()
    };
    // Pages 2 and 3 come for the command; nothing is known of the next window: all of it was there.
    mapped.referenced(Nanos(1), Seen { file: (0, 2), first: 2, last: 3, by: By::Coming });
    mapped.referenced(Nanos(2), window(0));
    mapped.referenced(Nanos(3), window(16));
    assert_eq!(used(&mapped, 0..16), [2, 3]);
    assert_eq!(used(&mapped, 16..40), (16..32).collect::<Vec<_>>());
}
