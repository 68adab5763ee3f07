//! What disclosed entries take beside the cache.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use headstart_host::testing::Machine;
use headstart_store::{Limits, Shelf, Source, Store};

struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ENTRIES: usize = 1_000_000;

/// Discloses so many entries as an order; returns the bytes that each takes. Nothing is fetched: the runtime's only
/// thread is this one.
fn disclose(store: &Arc<Store>, runtime: &tokio::runtime::Runtime, number: impl Fn(usize) -> usize) -> usize {
    let (order, before) = (store.order(), USED.load(Relaxed));
    for first in (0..ENTRIES).step_by(4096) {
        let named = |at| {
            let number = number(at);
            (format!("train/{:05}/{number:08}.jpg", number / 1000), 0, Some(100_000))
        };
        let entries: Vec<_> = (first..ENTRIES.min(first + 4096)).map(named).collect();
        runtime.block_on(store.disclose(order, &entries)).expect("ranges are not asked about");
    }
    (USED.load(Relaxed) - before) / ENTRIES
}

#[test]
fn an_entry_takes_little() {
    let machine = Machine::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let store = runtime.block_on(async {
        let source = Source::open(machine.path("").to_str().expect("a name")).expect("a folder");
        let shelf = Shelf::new(Limits { memory_bytes: 1 << 20, spill_bytes: 0, requests: 1 });
        Store::try_new(source, shelf, None, false).expect("memory")
    });
    let first = disclose(&store, &runtime, |at| at);
    let second = disclose(&store, &runtime, |at| at * 7919 % ENTRIES);
    let third = disclose(&store, &runtime, |at| at * 7907 % ENTRIES);
    eprintln!("{first} bytes for an entry of a new object, {second} and {third} for further ones");
    assert!(first <= 120, "{first} bytes");
    assert!(second.max(third) <= 80, "{second} and {third} bytes");
}
