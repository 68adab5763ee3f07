//! `linux-2.6.10` and `linux-2.6.16`, page by page. The maximum is 32 pages.

use headstart_policy::readahead::{Asked, Cached, Found, ReadAhead, Run};
use headstart_types::Nanos;

use crate::common::{named, Level};

/// The windows that reads of single blocks name, with the block that triggered them; reads that name nothing are left
/// out.
fn triggers(
    level: &mut Level,
    policy: &mut dyn ReadAhead,
    blocks: std::ops::Range<u64>,
) -> Vec<(u64, Vec<(u64, u32)>)> {
    let read = |block: u64| (block, level.read(policy, block, 1));
    blocks.map(read).filter(|(_, runs)| !runs.is_empty()).collect()
}

fn run(at: u64, first: u64, count: u32) -> (u64, Vec<(u64, u32)>) {
    (at, vec![(first, count)])
}

#[test]
fn linux_2_6_10_goes_ahead_once_the_average_run_is_beyond_the_maximum() {
    // Half the maximum at 0. 16 is the 17th hit, and the average began with 16: (17 + 16 + 1) / 2 = 17. 33: (34 + 17) /
    // 2 = 25. 48: (49 + 17) / 2 = 33 is beyond 32, so the next size is read ahead: 25 and two for each page since 33,
    // 32 at most. From then on the second page of the window that was ahead opens the next.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.10", ""));
    let found = triggers(&mut level, &mut *linux, 0..125);
    let expected = [
        run(0, 0, 16),
        run(16, 16, 17),
        run(33, 33, 25),
        run(48, 58, 32),
        run(59, 90, 32),
        run(91, 122, 32),
        run(123, 154, 32),
    ];
    assert_eq!(found, expected);
    // Opened again, at 0: as new.
    let (mut level, fresh) = (Level::new(1000), run(0, 0, 16));
    assert_eq!(triggers(&mut level, &mut *linux, 0..16), [fresh]);
}

#[test]
fn linux_2_6_10_works_through_a_large_request() {
    // 64 pages at 0: the windows of pages 0, 16 and 33, and what page 48 opens ahead.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.10", ""));
    assert_eq!(level.read(&mut *linux, 0, 64), [(0, 16), (16, 17), (33, 25), (58, 32), (90, 32)]);
}

#[test]
fn linux_2_6_10_gives_up_on_random_pages_and_comes_back() {
    // The first reads half the maximum, wherever it is. Then next sizes 14, 6, 2 less 2 each; averages (16 + 1) / 2 =
    // 8, 4, 2.
    let (mut level, mut linux) = (Level::new(10_000), named("linux-2.6.10", ""));
    let at = |level: &mut Level, linux: &mut dyn ReadAhead, block| level.read(linux, block, 1);
    let runs: Vec<_> =
        [500, 1000, 2000, 3000].into_iter().flat_map(|block| at(&mut level, &mut *linux, block)).collect();
    assert_eq!(runs, [(500, 16), (1000, 8), (2000, 4), (3000, 2)]);
    // 2 - 2: off. 32 absent pages in order after that turn it on; the next is beyond the window of 32 before them: a
    // miss, average (16 + 1) / 2.
    assert_eq!(triggers(&mut level, &mut *linux, 4000..4034), [run(4033, 4033, 8)]);
}

#[test]
fn linux_2_6_10_shrinks_on_what_is_cached_and_on_what_is_gone() {
    // The first 100 pages are there. 48 finds nothing to read ahead at 58, so the window that counts as read has 31
    // pages, not 32. It ends at 89; from there 32 pages, of which 100 is the first to be read. Then at 121.
    let (mut linux, there) = (named("linux-2.6.10", ""), Holds { cached: 100, fly: false });
    let read = |block: u64| (block, ask(&mut *linux, &there, 0, block, 1));
    let found: Vec<_> = (0..92).map(read).filter(|(_, runs)| !runs.is_empty()).collect();
    assert_eq!(found, [run(59, 89, 32), run(90, 121, 32)]);
    // Each page is evicted before its turn: 2 more and 3 less per page. 33 starts with 25; 34 to 47 leave 11, and 48
    // reads 13 ahead.
    let (mut linux, gone) = (named("linux-2.6.10", ""), Holds { cached: 0, fly: false });
    let read = |block: u64| (block, ask(&mut *linux, &gone, 0, block, 1));
    let found: Vec<_> = (0..50).map(read).filter(|(_, runs)| !runs.is_empty()).collect();
    assert_eq!(found, [run(0, 0, 16), run(16, 16, 17), run(33, 33, 25), run(48, 58, 13)]);
}

#[test]
fn linux_2_6_16_doubles_and_keeps_a_window_ahead() {
    // One page: max/4 = 8. The second opens 16 ahead, at 8; 8 is in it: 32 more. Then a window when the one ahead is
    // entered.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.16", ""));
    let found = triggers(&mut level, &mut *linux, 0..100);
    assert_eq!(
        found,
        [run(0, 0, 8), run(1, 8, 16), run(8, 24, 32), run(24, 56, 32), run(56, 88, 32), run(88, 120, 32)]
    );
    // 16 pages: more than max/4, so the maximum.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.16", ""));
    let runs: Vec<_> = (0..6).map(|part| level.read(&mut *linux, 16 * part, 16)).collect();
    assert_eq!(runs, [vec![(0, 32)], vec![(32, 32)], vec![(64, 32)], vec![], vec![(96, 32)], vec![]]);
    // The maximum and more: one ahead at once, and another each time the request is processed again.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.16", ""));
    assert_eq!(level.read(&mut *linux, 0, 64), [(0, 32), (32, 32), (64, 32)]);
}

#[test]
fn linux_2_6_16_spares_random_pages_and_begins_where_they_go_on() {
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6.16", ""));
    level.read(&mut *linux, 500, 1);
    level.read(&mut *linux, 700, 4);
    assert_eq!((level.prefetched, level.missed), (0, 5));
    // 704 goes on: 4 pages are no more than max/4.
    assert_eq!(level.read(&mut *linux, 704, 4), [(704, 8)]);
    assert_eq!(level.read(&mut *linux, 708, 4), [(712, 16)]);
}

/// A level in which blocks below `cached` are resident, and those from 1000 on are in flight.
struct Holds {
    cached: u64,
    fly: bool,
}

impl Cached for Holds {
    fn is_cached(&self, _: u32, index: u64) -> bool {
        index < self.cached || self.fly && index >= 1000
    }

    fn is_resident(&self, _: u32, index: u64) -> bool {
        index < self.cached
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        None
    }

    fn frames(&self) -> u32 {
        1000
    }
}

fn ask(policy: &mut dyn ReadAhead, holds: &Holds, file: u32, first: u64, count: u32) -> Vec<(u64, u32)> {
    let asked = Asked { file, first, count, client: 0, ends_inside: false };
    let found = |index| if holds.is_cached(file, index) { Found::Ready } else { Found::Absent };
    let found: Vec<Found> = (first..first + u64::from(count)).map(found).collect();
    let mut runs: Vec<Run> = Vec::new();
    policy.asked(Nanos::ZERO, &asked, &found, holds, &mut runs);
    runs.into_iter().map(|run| (run.first, run.count)).collect()
}

#[test]
fn linux_2_6_16_is_off_after_256_pages_that_were_cached() {
    // 16 pages at a time from 0, all there. Windows: 32 at 0, then 32 at 32, 64, ...: the eighth makes 256 pages in a
    // row, off. It is the one at 224, which the request at 192 opens; a page that is absent turns it on again.
    let (mut linux, there) = (named("linux-2.6.16", ""), Holds { cached: 400, fly: false });
    (0..13).for_each(|part| assert_eq!(ask(&mut *linux, &there, 0, 16 * part, 16), []));
    let gone = Holds { cached: 210, fly: false };
    assert_eq!(ask(&mut *linux, &gone, 0, 208, 2), []); // still off
    assert_eq!(ask(&mut *linux, &gone, 0, 210, 1), []); // absent: on again
    assert_eq!(ask(&mut *linux, &gone, 0, 211, 1), [(211, 8)]);
    // With a page in between that was read it goes on.
    let (mut linux, most) = (named("linux-2.6.16", ""), Holds { cached: 250, fly: false });
    (0..13).for_each(|part| drop(ask(&mut *linux, &most, 0, 16 * part, 16)));
    assert_eq!(ask(&mut *linux, &most, 0, 208, 16), []);
    assert_eq!(ask(&mut *linux, &most, 0, 224, 16), [(256, 32)]);
}

/// With a queue of 8, which is congested at 8: nothing in flight, and the first requests of 8 files.
fn free_and_full(name: &str) -> [Box<dyn ReadAhead>; 2] {
    let [free, mut full] = [0, 1].map(|_| named(name, "nr_requests = 8"));
    for file in 1..9 {
        assert!(!ask(&mut *full, &Holds { cached: 0, fly: false }, file, 1000, 16).is_empty(), "{name}");
    }
    [free, full]
}

#[test]
fn linux_2_6_10_reads_no_window_while_the_queue_is_congested() {
    // Reads through 40 resident pages and beyond.
    let flying = Holds { cached: 40, fly: true };
    let read = |mut policy: Box<dyn ReadAhead>| -> Vec<_> {
        (0..5).flat_map(|part| ask(&mut *policy, &flying, 0, 16 * part, 16)).collect()
    };
    let [free, full] = free_and_full("linux-2.6.10");
    assert_eq!(read(free)[..1], [(33, 25)]);
    assert_eq!(read(full), []);
}

#[test]
fn linux_2_6_16_reads_only_what_is_asked_for_while_the_queue_is_congested() {
    let flying = Holds { cached: 40, fly: true };
    let read = |mut policy: Box<dyn ReadAhead>| [0, 16, 32].map(|first| ask(&mut *policy, &flying, 0, first, 16));
    let [free, full] = free_and_full("linux-2.6.16");
    // Of the windows at 32 and 64 the second request opens the first, and the third the other.
    assert_eq!(read(free), [vec![], vec![(32, 32)], vec![(64, 32)]]);
    // The third request is in the window at 32 itself.
    assert_eq!(read(full), [vec![], vec![], vec![(32, 32)]]);
}
