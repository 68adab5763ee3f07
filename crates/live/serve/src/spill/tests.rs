use std::collections::BTreeMap;
use std::path::PathBuf;

use headstart_host::testing::{calls, Machine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

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

    fn try_open(&self, slots: u64, identity: Option<&str>, writable: bool) -> Result<Spill, String> {
        let bytes = 8192 + slots * (PAGE as u64 + 32);
        let text = format!("{}:{bytes}B", self.0.display());
        Spill::open(&text, (PAGES * PAGE as u64, PAGE as u64), identity, writable).map_err(|error| error.to_string())
    }

    fn open(&self, identity: &str, writable: bool) -> Spill {
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

fn store(spill: &Spill, page: u64, version: u8) {
    if let Some(place) = spill.begin(page) {
        spill.store(place, &bytes(page, version));
    }
}

fn reads(spill: &Spill, page: u64) -> Option<Vec<u8>> {
    let mut buffer = vec![0; PAGE];
    spill.read(page, &mut buffer).then_some(buffer)
}

fn stored(spill: &Spill, version: u8) -> Vec<u64> {
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
    let spill = kept.open("a", false);
    (0..100).for_each(|page| store(&spill, page, 0));
    assert!(reads(&spill, 0).is_some());
    store(&spill, 500, 0);
    let pages = stored(&spill, 0);
    assert_eq!((pages.len(), pages.contains(&0), pages.contains(&1)), (100, true, false));
    let report = spill.report();
    assert_eq!((report.totals.stored_pages, report.totals.corrupt_pages, report.level.counts.evictions), (101, 0, 1));
    assert_eq!(spill.begin(500), None, "it is there");
}

#[test]
fn another_start_finds_what_the_one_before_has_left() {
    let kept = Kept::new("restart");
    for (writable, orderly) in [(false, true), (false, false), (true, true), (true, false)] {
        let spill = kept.open("a", writable);
        (10..50).for_each(|page| store(&spill, page, 0));
        spill.forget(20..30).expect("it can be written");
        if orderly {
            spill.close(Some("a")).expect("it can be written");
        }
        drop(spill);
        let again = kept.open("a", writable);
        assert_eq!((again.report().forgotten, again.report().totals.found_pages), (None, 30));
        assert_eq!(stored(&again, 0), (10..20).chain(30..50).collect::<Vec<_>>());
        drop(again);
        let _ = std::fs::remove_file(&kept.0);
    }
}

#[test]
fn what_may_be_stale_is_forgotten() {
    let kept = Kept::new("stale");
    let fill = |identity: &str, writable| {
        let spill = kept.open(identity, writable);
        (0..20).for_each(|page| store(&spill, page, 0));
        spill
    };
    let forgotten = |spill: &Spill| (spill.report().forgotten.unwrap_or("nothing"), spill.report().totals.found_pages);
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
    fill("a", true).close(Some("b")).expect("it can be written");
    assert_eq!(forgotten(&kept.open("b", true)), ("nothing", 20));
    assert_eq!(forgotten(&kept.open("c", true)), ("the backing has changed, or was another one", 0));
    // The machine was rebooted.
    for (writable, expected) in [(false, ("nothing", 20)), (true, ("the machine stopped while clients could write", 0))]
    {
        let spill = fill("d", writable);
        let header = Header { boot: [1; 16], ..spill.header };
        spill.file.write_all_at(&header.to_bytes(), 0).expect("it can be written");
        drop(spill);
        assert_eq!(forgotten(&kept.open("d", writable)), expected);
    }
}

#[test]
fn damage_is_noticed() {
    let kept = Kept::new("damage");
    let spill = kept.open("a", false);
    (0..100).for_each(|page| store(&spill, page, 0));
    let place = |page| spill.lock().resident(page).expect("it is there").1;
    let (layout, slots) = (spill.layout, [3, 4, 5, 6].map(place));
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
    let spill = kept.open("a", false);
    assert_eq!(stored(&spill, 0).len(), 96);
    assert_eq!(spill.report().totals.corrupt_pages, 3, "one names a page that does not exist");
    (3..7).for_each(|page| store(&spill, page, 0));
    assert_eq!(stored(&spill, 0).len(), 100);
    drop(spill);
    file.set_len(layout.file_bytes() - 1).expect("it can be cut");
    let spill = kept.open("a", false);
    assert_eq!((spill.report().forgotten, stored(&spill, 0).len()), (Some("it is too short"), 0));
    store(&spill, 9, 0);
    // The file is truncated while in use: pages that cannot be read are missing.
    file.set_len(layout.slot(0)).expect("it can be cut");
    assert_eq!((reads(&spill, 9), spill.report().totals.failed_requests), (None, 1));
    store(&spill, 9, 0);
    assert!(reads(&spill, 9).is_some());
    drop(spill);
    file.write_all_at(b"x", 50).expect("it can be written");
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
        assert!(Spill::open(text, (1 << 20, 4096), None, false).is_err(), "{text}");
    }
    let folder = format!("{}:4MiB", std::env::temp_dir().display());
    assert!(Spill::open(&folder, (1 << 20, 4096), None, false).is_err());
}

#[test]
fn a_change_while_a_page_is_stored_cancels_it() {
    let kept = Kept::new("cancel");
    let spill = kept.open("a", true);
    (0..100).for_each(|page| store(&spill, page, 0));
    // It takes the slot of page 0, whose entry is still in the table.
    let place = spill.begin(200).expect("there is room");
    let entries = || read_table(&spill.file, spill.layout).expect("it can be read").into_iter().flatten();
    assert_eq!((reads(&spill, 0), entries().filter(|entry| entry.page == 0).count()), (None, 1));
    spill.forget(0..1).expect("it can be written");
    assert_eq!(entries().filter(|entry| entry.page == 0).count(), 0);
    spill.forget(199..201).expect("it can be written");
    spill.store(place, &bytes(200, 0));
    assert_eq!((reads(&spill, 200), entries().filter(|entry| entry.page == 200).count()), (None, 0));
    store(&spill, 200, 1);
    assert_eq!(reads(&spill, 200), Some(bytes(200, 1)));
}

#[test]
fn the_serving_thread_waits_for_no_write_of_the_file() {
    let kept = Kept::new("waits");
    let spill = kept.open("a", true);
    (0..100).for_each(|page| store(&spill, page, 0));
    let place = spill.begin(200).expect("there is room");
    std::thread::scope(|scope| {
        // Another thread is writing entries.
        let writing = spill.entries();
        let others = [
            scope.spawn(|| spill.forget(1..3).expect("it can be written")),
            scope.spawn(|| spill.store(place, &bytes(200, 0))),
        ];
        assert!(spill.has_any(0..100) && spill.begin(201).is_some());
        assert_eq!(spill.report().totals.stored_pages, 100);
        drop(writing);
        others.into_iter().for_each(|other| other.join().expect("it ends"));
    });
    assert_eq!((reads(&spill, 1), reads(&spill, 200)), (None, Some(bytes(200, 0))));
}

#[test]
fn threads_that_store_read_and_change_pages_see_none_that_is_older() {
    const THREADS: u64 = 4;
    let kept = Kept::new("threads");
    let spill = kept.open("a", true);
    let one = |thread: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(thread);
        let (mut versions, mut found) = (BTreeMap::<u64, u8>::new(), 0);
        for _ in 0..10_000 {
            let page = random.random_range(0..50) * THREADS + thread;
            let version = versions.entry(page).or_default();
            match random.random_range(0..100) {
                0..50 => {
                    if let Some(read) = reads(&spill, page) {
                        found += 1;
                        assert!(read == bytes(page, *version), "page {page}");
                    }
                }
                50..90 => store(&spill, page, *version),
                _ => {
                    spill.forget(page..page + 1).expect("it can be written");
                    *version += 1;
                }
            }
        }
        (versions, found)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || one(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no page is older")).collect()
    });
    assert!(ended.iter().all(|(_, found)| *found > 100));
    // The table of the file equals the table in memory: after a restart, everything is found, and nothing older.
    let entries = read_table(&spill.file, spill.layout).expect("it can be read");
    assert!(entries == spill.lock().table);
    spill.close(Some("a")).expect("it can be written");
    drop(spill);
    let again = kept.open("a", true);
    for (versions, _) in ended {
        for (page, version) in versions {
            assert!(reads(&again, page).is_none_or(|read| read == bytes(page, version)), "page {page}");
        }
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
        let (mut storing, mut found): (Vec<(Place, u8)>, u32) = (Vec::new(), 0);
        for _ in 0..2_000 {
            let page = random.random_range(0..150);
            let version = versions.get(&page).copied().unwrap_or(0);
            match random.random_range(0..100) {
                0..40 => {
                    if let Some(read) = reads(&spill, page) {
                        found += 1;
                        assert!(read == bytes(page, version), "seed {seed}: page {page}");
                    }
                }
                40..70 => storing.extend(spill.begin(page).map(|place| (place, version))),
                70..85 if !storing.is_empty() => {
                    let (place, version) = storing.swap_remove(random.random_range(0..storing.len()));
                    spill.store(place, &bytes(place.page, version));
                }
                85..98 => {
                    let end = page + random.random_range(1..4);
                    spill.forget(page..end).expect("it can be written");
                    (page..end).for_each(|page| *versions.entry(page).or_default() += 1);
                    identity += 1;
                }
                98 => {
                    // An orderly end, or `kill -9`: without the backing's current identity everything is discarded;
                    // with it, the remaining pages must be correct, too.
                    storing.drain(..).for_each(|(place, version)| spill.store(place, &bytes(place.page, version)));
                    let now = identity.to_string();
                    if random.random() {
                        spill.close(Some(&now)).expect("it can be written");
                    } else {
                        let header = Header { identity: digest(Some(&now)), ..spill.header };
                        spill.file.write_all_at(&header.to_bytes(), 0).expect("it can be written");
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

fn spill_on(machine: &Machine) -> Result<Spill, String> {
    let text = format!("{}:430000B", machine.path("spill/file").display());
    Spill::open(&text, (PAGES * PAGE as u64, PAGE as u64), Some("a"), true).map_err(|error| error.to_string())
}

/// The number of the 40 pages that are found, each equal to the backing.
fn found(machine: &Machine, spill: &Spill) -> usize {
    let versions = versions(machine);
    let read = |page: u64| {
        let read = reads(spill, page);
        assert!(read.as_ref().is_none_or(|read| *read == bytes(page, versions[page as usize])), "page {page}");
        read.is_some()
    };
    (0..40).filter(|page| read(*page)).count()
}

/// A server's lifetime: pages are read, stored, changed and stored again.
fn serve(machine: &Machine) -> String {
    let spill = match spill_on(machine) {
        Ok(spill) => spill,
        Err(problem) => return problem,
    };
    found(machine, &spill);
    let mut now = versions(machine);
    (0..30).for_each(|page| store(&spill, page, now[page as usize]));
    if spill.forget(10..15).is_ok() {
        now[10..15].iter_mut().for_each(|version| *version += 1);
        std::fs::write(machine.path("versions"), &now).expect("there is room");
    }
    store(&spill, 12, now[12]);
    found(machine, &spill);
    spill.close(Some("a")).map_or_else(|error| format!("not closed: {error}"), |()| "closed".to_owned())
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
        let spill = spill_on(&machine).expect("a new file");
        (0..40).for_each(|page| store(&spill, page, 0));
        machine
    };
    for prepare in [&new as &dyn Fn() -> Machine, &used] {
        calls::each(test, "spill", serve, prepare, |machine, outcome| {
            let said = outcome.said.as_deref().unwrap_or("closed");
            let is_line = said.starts_with("not closed: ") || said.contains("/spill/file: ");
            assert!(said == "closed" || outcome.call.is_some() && is_line && !said.contains('\n'), "{outcome}");
            let names: Vec<_> = std::fs::read_dir(machine.path("spill")).expect("a folder").flatten().collect();
            assert!(names.len() <= 1, "{outcome}: {names:?}");
            let spill = spill_on(machine).unwrap_or_else(|problem| panic!("{outcome}: {problem}"));
            found(machine, &spill);
            (0..40).for_each(|page| store(&spill, page, versions(machine)[page as usize]));
            assert_eq!(found(machine, &spill), 40, "{outcome}");
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
