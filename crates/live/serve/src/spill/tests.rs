use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc;

use bytes::BytesMut;
use headstart_engine::{Ask, Backend, IoRequest, Level};
use headstart_host::testing::{calls, Machine};
use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Nanos, NEVER};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::format::{Entry, ENTRY_BYTES};
use super::*;
use crate::pages::Pages;

const PAGE: usize = 4096;
const PAGES: u64 = 1_000;

/// A spill file of 100 slots, removed on drop.
struct Kept(PathBuf);

impl Kept {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headstart-spill-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn try_open(&self, slots: u64, identity: Option<&str>, writable: bool) -> Result<Opened, String> {
        let bytes = 8192 + slots * (PAGE as u64 + ENTRY_BYTES);
        Opened::open(&format!("{}:{bytes}B", self.0.display()), identity, writable)
    }

    fn open(&self, identity: &str, writable: bool) -> Opened {
        self.try_open(100, Some(identity), writable).expect("it can be opened")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn bytes(page: u64, version: u8) -> Vec<u8> {
    (0..PAGE).map(|at| (page as usize * 7 + at) as u8 ^ version).collect()
}

/// Ignores orders, which the tests carry out themselves.
struct Nowhere;

impl Backend for Nowhere {
    fn issue(&mut self, _now: Nanos, _order: IoRequest<'_>) -> u32 {
        0
    }
}

/// A spill file and its level, driven as by the machine and the conductor.
struct Opened {
    spill: Spill,
    level: Level,
    pages: Pages,
    now: Nanos,
}

impl Opened {
    fn open(text: &str, identity: Option<&str>, writable: bool) -> Result<Self, String> {
        let mut spill = Spill::open(text, PAGE as u64, identity, writable).map_err(|error| error.to_string())?;
        let pages = Pages::new(PAGES, 0, spill.slots(), &[]);
        let mut level = spill.tier(&pages).level;
        level.note_evictions();
        Ok(Self { spill, level, pages, now: Nanos::ZERO })
    }

    fn tick(&mut self) -> Nanos {
        self.now = Nanos(self.now.0 + 1);
        self.now
    }

    /// Memory evicts `page`: the work that stores it, unless it is there or on its way.
    fn begin(&mut self, page: u64, version: u8) -> Option<(u32, Place)> {
        let (block, now) = (self.pages.block(0, page).expect("there is such a page"), self.tick());
        if !self.spill.has_room() && self.level.free_frames() > 0 || !self.level.is_unknown(block) {
            return None;
        }
        let Self { spill, level, pages, .. } = self;
        level.put(now, block, pages, &mut Nowhere);
        let mut evicted = Vec::new();
        level.take_evicted(&mut evicted);
        evicted.iter().for_each(|block| spill.release(pages.place(*block).1));
        if spill.has_room() {
            return Some(spill.store(page, block, bytes(page, version)[..].into()));
        }
        level.arrived(now, block, None, pages);
        level.take_out(block);
        None
    }

    fn stored(&mut self, slot: u32, result: &io::Result<()>) {
        let (block, is_there) = self.spill.stored(slot, result.is_ok());
        let now = self.tick();
        self.level.arrived(now, block, None, &self.pages);
        if !is_there {
            self.level.take_out(block);
        }
    }

    /// The work that reads `page`, if it is there.
    fn load(&mut self, page: u64) -> Option<Place> {
        let (block, now) = (self.pages.known(0, page)?, self.tick());
        assert_eq!(self.level.state(block).is_resident(), self.spill.holds(page));
        if !self.spill.holds(page) {
            return None;
        }
        let asked = Asked { file: 0, first: page, count: 1, client: 0, ends_inside: false };
        let (blocks, position, compute) = (&[block], NEVER, Nanos::ZERO);
        let ask = Ask { id: 0, asked, blocks, write: false, quiet: false, position, compute };
        self.level.request(now, &ask, &self.pages, &mut Nowhere);
        Some(self.spill.load(page, BytesMut::zeroed(PAGE)))
    }

    fn loaded(&mut self, page: u64, result: &io::Result<()>) {
        self.spill.loaded(page..page + 1, result.as_ref().err());
        if result.is_err() && !self.spill.holds(page) {
            self.level.take_out(self.pages.known(0, page).expect("it has been read"));
        }
    }

    /// Zeroes the entries of `pages`, which then change.
    fn forget(&mut self, pages: Range<u64>) -> io::Result<()> {
        let Some(zeroing) = self.begin_forget(pages.clone()) else { return Ok(()) };
        zeroing.carry_out()?;
        self.spill.zeroed(&pages);
        Ok(())
    }

    fn begin_forget(&mut self, pages: Range<u64>) -> Option<Zeroing> {
        for page in pages.clone() {
            self.spill.release(page);
            self.pages.known(0, page).into_iter().for_each(|block| self.level.take_out(block));
        }
        self.spill.zeroing(&pages)
    }

    fn report(&self) -> SpillReport {
        self.spill.report(self.level.counts())
    }
}

fn store(kept: &mut Opened, page: u64, version: u8) {
    if let Some((slot, store)) = kept.begin(page, version) {
        kept.stored(slot, &store.store());
    }
}

fn reads(kept: &mut Opened, page: u64) -> Option<Vec<u8>> {
    let mut load = kept.load(page)?;
    let result = load.load();
    kept.loaded(page, &result);
    result.is_ok().then(|| load.buffer.to_vec())
}

fn entries(kept: &Opened) -> Vec<Option<Entry>> {
    read_table(&kept.spill.file.file, kept.spill.file.layout).expect("it can be read")
}

fn stored(spill: &mut Opened, version: u8) -> Vec<u64> {
    let there = (0..PAGES).filter(|page| {
        reads(spill, *page).is_some_and(|read| {
            assert!(read == bytes(*page, version), "page {page}");
            true
        })
    });
    there.collect()
}

#[test]
fn pages_are_read_back_and_the_oldest_go_first() {
    let kept = Kept::new("lru");
    let mut spill = kept.open("a", false);
    (0..100).for_each(|page| store(&mut spill, page, 0));
    assert!(reads(&mut spill, 0).is_some());
    store(&mut spill, 500, 0);
    let pages = stored(&mut spill, 0);
    assert_eq!((pages.len(), pages.contains(&0), pages.contains(&1)), (100, true, false));
    let report = spill.report();
    assert_eq!((report.totals.stored_pages, report.totals.corrupt_pages, report.level.counts.evictions), (101, 0, 1));
    assert!(spill.begin(500, 0).is_none(), "it is there");
}

#[test]
fn another_start_finds_what_the_one_before_has_left() {
    let kept = Kept::new("restart");
    for (writable, orderly) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut spill = kept.open("a", writable);
        (10..50).for_each(|page| store(&mut spill, page, 0));
        spill.forget(20..30).expect("it can be written");
        if orderly {
            spill.spill.close(Some("a")).expect("it can be written");
        }
        drop(spill);
        let mut again = kept.open("a", writable);
        assert_eq!((again.report().forgotten, again.report().totals.found_pages), (None, 30));
        assert_eq!(stored(&mut again, 0), (10..20).chain(30..50).collect::<Vec<_>>());
        drop(again);
        let _ = std::fs::remove_file(&kept.0);
    }
}

#[test]
fn what_may_be_stale_is_forgotten() {
    let kept = Kept::new("stale");
    let fill = |identity: &str, writable| {
        let mut spill = kept.open(identity, writable);
        (0..20).for_each(|page| store(&mut spill, page, 0));
        spill
    };
    let forgotten = |spill: &Opened| (spill.report().forgotten.unwrap_or("nothing"), spill.report().totals.found_pages);
    drop(fill("a", false));
    assert_eq!(forgotten(&kept.open("b", false)), ("the backing has changed, or was another one", 0));
    drop(fill("a", false));
    let unknown = kept.try_open(100, None, false).expect("it can be opened");
    assert_eq!(forgotten(&unknown), ("the backing does not say whether it has changed", 0));
    drop(unknown);
    drop(fill("a", false));
    let larger = kept.try_open(200, Some("a"), false).expect("it can be opened");
    assert_eq!(forgotten(&larger), ("its pages or its size were others", 0));
    drop(larger);
    // Clients have written: an orderly end records the backing's new identity, `kill -9` does not.
    fill("a", true).spill.close(Some("b")).expect("it can be written");
    assert_eq!(forgotten(&kept.open("b", true)), ("nothing", 20));
    assert_eq!(forgotten(&kept.open("c", true)), ("the backing has changed, or was another one", 0));
    // The machine was rebooted.
    for (writable, expected) in [(false, ("nothing", 20)), (true, ("the machine stopped while clients could write", 0))]
    {
        let spill = fill("d", writable);
        let header = Header { boot: [1; 16], ..spill.spill.header };
        spill.spill.file.file.write_all_at(&header.to_bytes(), 0).expect("it can be written");
        drop(spill);
        assert_eq!(forgotten(&kept.open("d", writable)), expected);
    }
}

#[test]
fn damage_is_noticed() {
    let kept = Kept::new("damage");
    let mut spill = kept.open("a", false);
    (0..100).for_each(|page| store(&mut spill, page, 0));
    let place = |page: u64| spill.spill.directory.slot_of[&page];
    let (layout, slots) = (spill.spill.file.layout, [3, 4, 5, 6].map(place));
    drop(spill);
    let file = OpenOptions::new().read(true).write(true).open(&kept.0).expect("it is there");
    let flip = |at: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("it can be read");
        file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
    };
    // A byte of a page, of a checksum and of a page's number, and a half-written page.
    flip(layout.slot(slots[0].into()) + 4095);
    flip(layout.entry(slots[1].into()) + 20);
    flip(layout.entry(slots[2].into()) + 2);
    file.write_all_at(&bytes(700, 0)[..2048], layout.slot(slots[3].into())).expect("it can be written");
    let mut spill = kept.open("a", false);
    assert_eq!(stored(&mut spill, 0).len(), 96);
    assert_eq!(spill.report().totals.corrupt_pages, 3, "one names a page that does not exist");
    (3..7).for_each(|page| store(&mut spill, page, 0));
    assert_eq!(stored(&mut spill, 0).len(), 100);
    drop(spill);
    file.set_len(layout.file_bytes() - 1).expect("it can be cut");
    let mut spill = kept.open("a", false);
    assert_eq!((spill.report().forgotten, stored(&mut spill, 0).len()), (Some("it is too short"), 0));
    store(&mut spill, 9, 0);
    // The file is truncated while in use: pages that cannot be read are missing.
    file.set_len(layout.slot(0)).expect("it can be cut");
    assert_eq!((reads(&mut spill, 9), spill.report().totals.failed_requests), (None, 1));
    store(&mut spill, 9, 0);
    assert!(reads(&mut spill, 9).is_some());
    drop(spill);
    flip(50);
    assert_eq!(kept.open("a", false).report().forgotten, Some("its header is damaged"));
}

#[test]
fn files_of_others_are_left_alone() {
    let kept = Kept::new("foreign");
    std::fs::write(&kept.0, "my thesis").expect("there is room");
    let refused = kept.try_open(100, Some("a"), false).err().expect("it is refused");
    assert!(refused.contains("is no spill file; allowed: a new file, or one that --spill made"), "{refused}");
    assert_eq!(std::fs::read(&kept.0).expect("it is there"), b"my thesis");
    std::fs::remove_file(&kept.0).expect("it is there");
    let first = kept.open("a", false);
    let refused = kept.try_open(100, Some("a"), false).err().expect("it is refused");
    assert!(refused.contains("is in use by another server"), "{refused}");
    drop(first);
    let refused = kept.try_open(63, Some("a"), false).err().expect("it is refused");
    assert!(refused.contains("has room for 63 pages of 4KiB; allowed: 64 to 268435456 pages"), "{refused}");
    for text in ["file", ":4MiB", "file:much", "/nowhere/at/all:4MiB"] {
        assert!(Spill::open(text, 4096, None, false).is_err(), "{text}");
    }
    let folder = format!("{}:4MiB", std::env::temp_dir().display());
    assert!(Spill::open(&folder, 4096, None, false).is_err());
}

#[test]
fn a_change_of_a_page_zeroes_the_entry_in_a_slot_that_has_got_another_page() {
    let kept = Kept::new("named");
    let mut spill = kept.open("a", true);
    (0..100).for_each(|page| store(&mut spill, page, 0));
    let named = |spill: &Opened, page| entries(spill).into_iter().flatten().filter(|entry| entry.page == page).count();
    // Page 200 takes the slot of page 0, whose entry is still in the table.
    let (slot, work) = spill.begin(200, 0).expect("there is room");
    assert_eq!((reads(&mut spill, 0), named(&spill, 0)), (None, 1));
    // Whether the entry of page 200 has been written or not; if it has, it may be lost.
    spill.forget(0..1).expect("it can be written");
    assert_eq!(named(&spill, 0), 0);
    spill.stored(slot, &work.store());
    assert_eq!((reads(&mut spill, 200), named(&spill, 200)), (Some(bytes(200, 0)), 1));
    let (slot, work) = spill.begin(201, 0).expect("there is room");
    let zeroing = spill.begin_forget(1..2).expect("page 1 was there");
    spill.stored(slot, &work.store());
    zeroing.carry_out().expect("it can be written");
    spill.spill.zeroed(&(1..2));
    assert_eq!((named(&spill, 1), reads(&mut spill, 201), reads(&mut spill, 201)), (0, None, None));
    store(&mut spill, 201, 1);
    assert_eq!(reads(&mut spill, 201), Some(bytes(201, 1)));
}

#[test]
fn a_second_entry_of_a_page_goes_with_it() {
    let kept = Kept::new("twice");
    let mut spill = kept.open("a", false);
    (0..3).for_each(|page| store(&mut spill, page, 0));
    let first = entries(&spill)[0];
    let file = spill.spill.file.clone();
    file.file.write_all_at(&Entry::to_bytes(first), file.layout.entry(2)).expect("it can be written");
    drop((spill, file));
    let mut spill = kept.open("a", false);
    assert_eq!((spill.report().totals.found_pages, entries(&spill).into_iter().flatten().count()), (2, 3));
    spill.forget(first.expect("a page").page..PAGES).expect("it can be written");
    assert_eq!(
        entries(&spill).into_iter().flatten().filter(|entry| entry.page == first.expect("a page").page).count(),
        0
    );
}

/// Work on the file in the order of several threads: no page is older than its last change.
#[test]
fn threads_that_store_read_and_change_pages_see_none_that_is_older() {
    enum Work {
        Store(u32, u64, Place),
        Load(u64, u8, Place),
        Zero(u64, Zeroing),
    }
    let kept = Kept::new("threads");
    let mut spill = kept.open("a", true);
    let (mut random, mut versions, mut found) = (ChaCha8Rng::seed_from_u64(1), BTreeMap::<u64, u8>::new(), 0);
    let (given, ended) = mpsc::channel::<(Work, io::Result<()>)>();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (sender, receiver) = mpsc::channel::<Work>();
                let given = given.clone();
                scope.spawn(move || {
                    for mut work in receiver {
                        let result = match &mut work {
                            Work::Store(_, _, place) => place.store(),
                            Work::Load(_, _, place) => place.load(),
                            Work::Zero(_, zeroing) => zeroing.carry_out(),
                        };
                        _ = given.send((work, result));
                    }
                });
                sender
            })
            .collect();
        // Pages that are stored, read or changing; the conductor does nothing else with them.
        let (mut busy, mut under_way) = (BTreeSet::new(), 0);
        for at in 0..40_000 {
            while under_way > 0 && (at == 39_999 || under_way > 20 || random.random()) {
                let (work, result) = ended.recv().expect("the threads go on");
                under_way -= 1;
                match work {
                    Work::Store(slot, page, _) => {
                        spill.stored(slot, &result);
                        busy.remove(&page);
                    }
                    Work::Load(page, version, load) => {
                        spill.loaded(page, &result);
                        assert!(result.is_err() || load.buffer == bytes(page, version)[..], "page {page}");
                        busy.remove(&page);
                        found += u32::from(result.is_ok());
                    }
                    Work::Zero(page, _) => {
                        result.expect("it can be written");
                        spill.spill.zeroed(&(page..page + 1));
                        *versions.entry(page).or_default() += 1;
                        busy.remove(&page);
                    }
                }
            }
            let page = random.random_range(0..200);
            if busy.contains(&page) {
                continue;
            }
            let version = versions.get(&page).copied().unwrap_or(0);
            let work = match random.random_range(0..100) {
                0..50 => spill.load(page).map(|load| Work::Load(page, version, load)),
                50..90 => spill.begin(page, version).map(|(slot, place)| Work::Store(slot, page, place)),
                _ => spill.begin_forget(page..page + 1).map(|zeroing| Work::Zero(page, zeroing)),
            };
            let Some(work) = work else { continue };
            busy.insert(page);
            under_way += 1;
            threads[random.random_range(0..4)].send(work).expect("the threads go on");
        }
    });
    assert!(found > 1_000, "{found}");
    // After a restart, nothing is older.
    spill.spill.close(Some("a")).expect("it can be written");
    drop((spill, ended));
    let mut again = kept.open("a", true);
    for (page, version) in versions {
        assert!(reads(&mut again, page).is_none_or(|read| read == bytes(page, version)), "page {page}");
    }
}

/// Pages are evicted, read back and changed at random, with restarts in between: each read returns the latest content.
#[test]
fn no_page_is_ever_older_than_the_backing() {
    for seed in 0..40 {
        let kept = Kept::new(&format!("model-{seed}"));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut versions, mut identity) = (BTreeMap::<u64, u8>::new(), 0);
        let mut spill = kept.open("0", true);
        let (mut storing, mut found): (Vec<(u32, Place)>, u32) = (Vec::new(), 0);
        for _ in 0..2_000 {
            let page = random.random_range(0..150);
            let version = versions.get(&page).copied().unwrap_or(0);
            match random.random_range(0..100) {
                0..40 => {
                    if let Some(read) = reads(&mut spill, page) {
                        found += 1;
                        assert!(read == bytes(page, version), "seed {seed}: page {page}");
                    }
                }
                40..70 => storing.extend(spill.begin(page, version)),
                70..85 if !storing.is_empty() => {
                    let (slot, store) = storing.swap_remove(random.random_range(0..storing.len()));
                    spill.stored(slot, &store.store());
                }
                85..98 => {
                    let end = page + random.random_range(1..4);
                    if spill.spill.is_storing(&(page..end)) {
                        continue;
                    }
                    spill.forget(page..end).expect("it can be written");
                    (page..end).for_each(|page| *versions.entry(page).or_default() += 1);
                    identity += 1;
                }
                98 => {
                    // An orderly end, or `kill -9`: without the backing's current identity everything is discarded;
                    // with it, the remaining pages must be correct, too.
                    storing.drain(..).for_each(|(slot, store)| spill.stored(slot, &store.store()));
                    let now = identity.to_string();
                    if random.random() {
                        spill.spill.close(Some(&now)).expect("it can be written");
                    } else {
                        let header = Header { identity: digest(Some(&now)), ..spill.spill.header };
                        spill.spill.file.file.write_all_at(&header.to_bytes(), 0).expect("it can be written");
                    }
                    drop(spill);
                    spill = kept.open(&now, true);
                    assert_eq!(spill.report().forgotten, None);
                }
                _ => {}
            }
        }
        assert!(found > 50, "seed {seed}: {found}");
    }
}

/// The versions of the backing's pages, in a separate file.
fn versions(machine: &Machine) -> Vec<u8> {
    std::fs::read(machine.path("versions")).expect("it is there")
}

fn spill_on(machine: &Machine) -> Result<Opened, String> {
    let text = format!("{}:430000B", machine.path("spill/file").display());
    Opened::open(&text, Some("a"), true)
}

/// The number of the 40 pages that are found, each equal to the backing.
fn found(machine: &Machine, spill: &mut Opened) -> usize {
    let versions = versions(machine);
    let mut read = |page: u64| {
        let read = reads(spill, page);
        assert!(read.as_ref().is_none_or(|read| *read == bytes(page, versions[page as usize])), "page {page}");
        read.is_some()
    };
    (0..40).filter(|page| read(*page)).count()
}

/// A server's lifetime: pages are read, stored, changed and stored again.
fn serve(machine: &Machine) -> String {
    let mut spill = match spill_on(machine) {
        Ok(spill) => spill,
        Err(problem) => return problem,
    };
    found(machine, &mut spill);
    let mut now = versions(machine);
    (0..30).for_each(|page| store(&mut spill, page, now[page as usize]));
    if spill.forget(10..15).is_ok() {
        now[10..15].iter_mut().for_each(|version| *version += 1);
        std::fs::write(machine.path("versions"), &now).expect("there is room");
    }
    store(&mut spill, 12, now[12]);
    found(machine, &mut spill);
    spill.spill.close(Some("a")).map_or_else(|error| format!("not closed: {error}"), |()| "closed".to_owned())
}

#[test]
fn at_every_call_that_fails_no_page_is_older_than_the_backing() {
    let test = "spill::tests::at_every_call_that_fails_no_page_is_older_than_the_backing";
    let new = || {
        let machine = Machine::new();
        std::fs::create_dir(machine.path("spill")).expect("there is room");
        std::fs::write(machine.path("versions"), [0; 40]).expect("there is room");
        machine
    };
    let used = || {
        let machine = new();
        let mut spill = spill_on(&machine).expect("a new file");
        (0..40).for_each(|page| store(&mut spill, page, 0));
        machine
    };
    for prepare in [&new as &dyn Fn() -> Machine, &used] {
        calls::each(test, "spill", serve, prepare, |machine, outcome| {
            let said = outcome.said.as_deref().unwrap_or("closed");
            let is_line = said.starts_with("not closed: ") || said.contains("/spill/file: ");
            assert!(said == "closed" || outcome.call.is_some() && is_line && !said.contains('\n'), "{outcome}");
            let names: Vec<_> = std::fs::read_dir(machine.path("spill")).expect("a folder").flatten().collect();
            assert!(names.len() <= 1, "{outcome}: {names:?}");
            let mut spill = spill_on(machine).unwrap_or_else(|problem| panic!("{outcome}: {problem}"));
            found(machine, &mut spill);
            (0..40).for_each(|page| store(&mut spill, page, versions(machine)[page as usize]));
            assert_eq!(found(machine, &mut spill), 40, "{outcome}");
        });
    }
    // A foreign file is kept, whatever fails.
    let foreign = || {
        let machine = new();
        machine.write("spill/file", "my thesis");
        machine
    };
    calls::each(test, "spill", serve, foreign, |machine, outcome| {
        let said = outcome.said.as_deref().unwrap_or("");
        assert!(!said.contains("closed") && machine.read("spill/file") == "my thesis", "{outcome}");
    });
}
