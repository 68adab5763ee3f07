use super::*;
use crate::hints::list::HintedRange;
use crate::hints::universe::Universe;
use headstart_policy::registry::policy;

/// What has been ordered, in order; nothing is read by itself.
#[derive(Default)]
struct Ordered {
    blocks: Vec<Block>,
    paused: bool,
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

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}

const DEVICE: u32 = 0;
const DATA: u32 = 1;
const OTHER: (u64, u64) = (9, 9);

/// The number of a device is its inode, and that of its files' device.
fn file(number: u64, is_device: bool) -> HintedFile {
    let (size, mtime_ns) = ((!is_device).then_some(1 << 30), (!is_device).then_some(0));
    HintedFile { path: format!("/{number}").into(), identity: (0, number), is_device, size, mtime_ns }
}

/// Of `metadata` pages of the device, and `data` pages of a file.
fn conductor(metadata: u32, data: u32, trust: Trust) -> Conductor<Ordered> {
    let files = vec![file(0, true), file(2, false)];
    let range = |file, count| HintedRange { file, first: 0, count };
    let list = HintList { files, ranges: vec![range(DEVICE, metadata), range(DATA, data)], ..HintList::default() };
    let budget_bytes = 1 << 30;
    let row = policy("just-in-time").expect("it is registered");
    let plan = Plan { row, keys: Table::new(), budget_bytes, trust };
    let setting = plan.setting(&list, 1, true).expect("it works from hints");
    let (disks, _) = disks_of(&list.files);
    let machine = Machine::try_new(setting, Universe::new(&list, disks)).expect("no keys");
    Conductor::new(machine, Ordered::default(), budget_bytes, trust)
}

/// One reference.
fn seen(first: u64, last: u64) -> Seen {
    Seen { file: (0, 2), first, last }
}

/// A reference to each of these pages.
fn each(conductor: &mut Conductor<Ordered>, at: u64, file: (u64, u64), pages: std::ops::Range<u64>) {
    pages.for_each(|page| conductor.referenced(Nanos(at), Seen { file, first: page, last: page }));
    conductor.act(Nanos(at));
}

const OURS: (u64, u64) = (0, 2);

/// Everything that has been ordered is read, until nothing more is ordered. Returns how much was.
fn read_all(conductor: &mut Conductor<Ordered>, at: u64) -> usize {
    let mut read = 0;
    loop {
        let blocks = std::mem::take(&mut conductor.queues.blocks);
        if blocks.is_empty() {
            return read;
        }
        read += blocks.len();
        conductor.heard(Done::Read(blocks, std::time::Duration::from_millis(1), 0));
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

#[test]
fn hints_of_the_same_command_get_everything_and_others_what_they_have_earned() {
    let mut same = conductor(3000, 5000, Trust::SameCommand);
    each(&mut same, 1, OURS, 0..100);
    // All that is left of the file, and all metadata, though none of it is seen to be used.
    assert_eq!(read_all(&mut same, 1), 3000 + 4900);
    let mut other = conductor(3000, 5000, Trust::Earned);
    each(&mut other, 1, OURS, 0..100);
    let read = read_all(&mut other, 1);
    assert!((64..=256).contains(&read), "{read} pages");
    // Some of it used: more.
    let more = |at: u64| {
        each(&mut other, at, OURS, 100 * at..100 * at + 100);
        read_all(&mut other, at)
    };
    assert!((2..20).map(more).sum::<usize>() > 1000);
}

#[test]
fn metadata_is_not_given_up_because_other_references_have_come() {
    let mut conductor = conductor(500, 5000, Trust::SameCommand);
    // Far beyond what a position may be overtaken by: libraries that are mapped from the page cache.
    each(&mut conductor, 1, OURS, 0..2000);
    let metadata = conductor.queues.blocks.iter().filter(|block| block.0 < 500).count();
    assert_eq!(metadata, 500);
}

#[test]
fn a_command_that_goes_elsewhere_is_not_followed_until_it_comes_back() {
    let mut conductor = conductor(0, 5000, Trust::SameCommand);
    each(&mut conductor, 1, OURS, 0..1000);
    assert!(!conductor.queues.paused);
    each(&mut conductor, 2, OTHER, 0..20);
    assert!(conductor.queues.paused);
    each(&mut conductor, 3, OURS, 1000..1064);
    assert!(!conductor.queues.paused && conductor.stopped.is_none());
    each(&mut conductor, 4, OTHER, 20..2000);
    assert!(conductor.stopped.is_some_and(|why| why.contains("does not read")) && conductor.queues.stopped);
}

#[test]
fn pages_beyond_the_end_and_pages_again_say_nothing() {
    let mut conductor = conductor(0, 5000, Trust::SameCommand);
    each(&mut conductor, 1, OURS, 0..100);
    for _ in 0..100 {
        // As `cat` reads: more than there is.
        conductor.referenced(Nanos(2), seen(0, 31));
        conductor.referenced(Nanos(2), seen(1 << 40, (1 << 40) + 31));
    }
    conductor.act(Nanos(2));
    assert!(!conductor.queues.paused && conductor.stopped.is_none());
}
