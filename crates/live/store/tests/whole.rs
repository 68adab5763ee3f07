//! Whole stores: readers that read, disclose, hold and give up at random, over a source and a disk that fail, beside a
//! model of the contents. HEADSTART_STORE_SECONDS=600 for ten minutes of it.

#![expect(clippy::disallowed_methods, reason = "they run for as long as they are told to")]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use headstart_store::{Failure, Limits, Shelf, Source, Spill, Store};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const OBJECTS: usize = 40;
const OBJECT_BYTES: usize = 60_000;

fn content(object: usize) -> Vec<u8> {
    (0..OBJECT_BYTES + object * 777).map(|at| (at * 31 + at / 255 + object * 7) as u8).collect()
}

/// A source that is slow, refuses, breaks off and answers too little or too much.
#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    seed: AtomicU64,
    /// Of 1000 answers.
    faults: u64,
    gets: AtomicU64,
}

impl fmt::Display for Faulty {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.gets.fetch_add(1, Relaxed);
        let mut random = ChaCha8Rng::seed_from_u64(self.seed.fetch_add(1, Relaxed));
        tokio::time::sleep(Duration::from_micros(random.random_range(0..2000))).await;
        let fault = random.random_range(0..1000) < self.faults;
        let failed = || Error::Generic { store: "faulty", source: "a broken connection".into() };
        let kind = random.random_range(0..4);
        if fault && kind == 0 {
            return Err(failed());
        }
        let answer = self.inner.get_opts(path, options).await?;
        if !fault {
            return Ok(answer);
        }
        let (meta, range) = (answer.meta.clone(), answer.range.clone());
        let (attributes, extensions) = (answer.attributes.clone(), answer.extensions.clone());
        let bytes = answer.bytes().await?;
        let half = bytes.slice(..bytes.len() / 2);
        let parts: Vec<Result<Bytes>> = match kind {
            1 => vec![Ok(half)],
            2 => vec![Ok(half), Err(failed())],
            _ => vec![Ok(bytes.clone()), Ok(bytes)],
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter(parts).boxed()),
            meta,
            range,
            attributes,
            extensions,
        })
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("headstart-store-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

async fn faulty(seed: u64, faults: u64) -> Arc<Faulty> {
    let inner = InMemory::new();
    for object in 0..OBJECTS {
        inner.put(&Path::from(format!("o/{object}")), content(object).into()).await.expect("memory");
    }
    Arc::new(Faulty { inner, seed: AtomicU64::new(seed), faults, gets: AtomicU64::new(0) })
}

fn store(source: Arc<Faulty>, memory_bytes: u64, spill: Option<(&std::path::Path, u64)>) -> Arc<Store> {
    let source = Source::of(source);
    let spill_bytes = spill.map_or(0, |(_, bytes)| bytes);
    let opened = spill.map(|(folder, _)| Spill::open(folder, source.name()).expect("a folder"));
    let shelf = Shelf::new(Limits { memory_bytes, spill_bytes, requests: 8 });
    Store::try_new(source, shelf, opened, true).expect("memory")
}

/// A reader that reads at random, checks what it gets, and holds some of it; it gives up on some reads.
async fn reader(store: Arc<Store>, seed: u64, until: Instant) -> (u64, u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut held, mut order) = (Vec::new(), None);
    let (mut reads, mut failures) = (0, 0);
    while Instant::now() < until {
        let object = random.random_range(0..OBJECTS);
        let (key, whole) = (format!("o/{object}"), content(object));
        let start = random.random_range(0..whole.len());
        let end = (start + random.random_range(1..30_000)).min(whole.len());
        match random.random_range(0..20) {
            0 => {
                let entries: Vec<_> = (0..random.random_range(1..60))
                    .map(|_| {
                        let from = random.random_range(0..OBJECT_BYTES as u64 - 1);
                        let until = (from + random.random_range(1..20_000)).min(OBJECT_BYTES as u64);
                        (format!("o/{}", random.random_range(0..OBJECTS)), from, Some(until))
                    })
                    .collect();
                let order = *order.get_or_insert_with(|| store.order());
                store.disclose(order, &entries).await.expect("they exist");
            }
            1 => order.take().into_iter().for_each(|order| store.withdraw(order)),
            2 => held.clear(),
            3 => {
                let given_up = tokio::time::timeout(
                    Duration::from_micros(random.random_range(0..3000)),
                    store.read(&key, start as u64, Some(end as u64)),
                );
                let _ = given_up.await;
            }
            _ => match store.read(&key, start as u64, Some(end as u64)).await {
                Ok(leases) => {
                    reads += 1;
                    let bytes: Vec<u8> = leases.iter().flat_map(|lease| lease.as_ref()).copied().collect();
                    assert!(bytes == whole[start..end], "{key} from {start} to {end}");
                    if random.random_range(0..10) == 0 {
                        held.push((leases, whole[start..end].to_vec()));
                    }
                    for (leases, bytes) in &held {
                        let now = leases.iter().flat_map(|lease| lease.as_ref());
                        assert!(now.eq(bytes.iter()), "what is held has changed");
                    }
                }
                Err(Failure::Source(_) | Failure::Full(_)) => {
                    held.clear();
                    failures += 1;
                }
                Err(other) => panic!("{other}"),
            },
        }
        if held.len() > 3 {
            held.remove(0);
        }
    }
    order.into_iter().for_each(|order| store.withdraw(order));
    (reads, failures)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_get_the_contents_whatever_fails() {
    let seconds = std::env::var("HEADSTART_STORE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0);
    let spill = folder("whole");
    let source = faulty(1, 60).await;
    let store = store(source, 1 << 20, Some((&spill, 1 << 20)));
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let readers: Vec<_> = (0..12).map(|seed| tokio::spawn(reader(store.clone(), seed, until))).collect();
    // Meanwhile, files of the spill are damaged or vanish.
    let mut random = ChaCha8Rng::seed_from_u64(99);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let folder = spill.join(format!("{:02x}", random.random_range(0..256)));
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let _ = if random.random_range(0..2) == 0 {
                std::fs::remove_file(file.path())
            } else {
                std::fs::OpenOptions::new().append(true).open(file.path()).and_then(|file| file.set_len(50))
            };
        }
    }
    let mut reads = 0;
    for reader in readers {
        reads += reader.await.expect("no reader panics").0;
    }
    let report = store.report(&[], 0, true);
    assert!(reads > 100, "{reads} reads");
    assert!(report.used_bytes <= 1 << 20 && report.spilled_bytes <= 1 << 20);
    assert!(report.totals.fetched_bytes > 0 && report.totals.loaded_bytes > 0, "{report:?}");
    assert!(report.repeated_requests > 0 && report.totals.prefetched_bytes > 0, "{report:?}");
    // Everybody has let go: all of it can be replaced.
    let all = store.read("o/1", 0, None).await.expect("there is room");
    assert_eq!(all.iter().map(|lease| lease.as_ref().len()).sum::<usize>(), content(1).len());
    let _ = std::fs::remove_dir_all(spill);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_store_finds_what_was_spilled_unless_it_has_changed() {
    let spill = folder("later");
    let source = faulty(2, 0).await;
    async fn read_all(store: &Arc<Store>) {
        for object in 0..OBJECTS {
            let leases = store.read(&format!("o/{object}"), 0, None).await.expect("it exists");
            let bytes: Vec<u8> = leases.iter().flat_map(|lease| lease.as_ref()).copied().collect();
            assert!(bytes.len() >= OBJECT_BYTES);
        }
    }
    let first = store(source.clone(), 256 << 10, Some((&spill, 64 << 20)));
    assert!(Spill::open(&spill, "memory").is_err(), "one store at a time");
    // What leaves the memory faster than it can be written is dropped.
    while first.report(&[], 0, false).totals.stored_bytes < 35 * OBJECT_BYTES as u64 {
        read_all(&first).await;
    }
    drop(first);
    source.inner.put(&Path::from("o/3"), vec![5; OBJECT_BYTES].into()).await.expect("memory");
    // Work of the first store may hold its folder for a moment.
    while Spill::open(&spill, "memory").is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = store(source, 256 << 10, Some((&spill, 64 << 20)));
    read_all(&second).await;
    let second = second.report(&[], 0, true);
    assert!(second.totals.spill_hit_bytes >= 25 * OBJECT_BYTES as u64, "{second:?}");
    assert!(second.totals.fetched_bytes < 15 * OBJECT_BYTES as u64, "{second:?}");
    let _ = std::fs::remove_dir_all(spill);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_fails_clearly() {
    let source = faulty(3, 0).await;
    let store = store(source.clone(), 1 << 20, None);
    store.read("o/1", 0, Some(100)).await.expect("it exists");
    source.inner.put(&Path::from("o/1"), vec![0; OBJECT_BYTES].into()).await.expect("memory");
    assert_eq!(store.read("o/1", 100, Some(200)).await.err(), Some(Failure::Changed("o/1".to_owned())));
    assert!(store.read("o/1", 0, Some(100)).await.is_ok(), "what is cached is of the first version");
    assert_eq!(store.read("o/none", 0, None).await.err(), Some(Failure::NotFound("o/none".to_owned())));
    assert!(matches!(store.read("o/2", 0, Some(1 << 30)).await.err(), Some(Failure::Invalid(_))));
    assert_eq!(store.read("o/2", 7, Some(7)).await.expect("nothing").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disclosed_order_is_there_when_it_is_read() {
    let source = faulty(4, 0).await;
    let store = store(source.clone(), 8 << 20, None);
    let order = store.order();
    let entries: Vec<_> = (0..OBJECTS).map(|object| (format!("o/{object}"), 0, None)).collect();
    store.disclose(order, &entries).await.expect("they exist");
    let wanted: u64 = (0..OBJECTS).map(|object| content(object).len() as u64).sum();
    while store.report(&[], 0, false).totals.fetched_bytes < wanted {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for object in 0..OBJECTS {
        store.read(&format!("o/{object}"), 0, None).await.expect("it is here");
    }
    let report = store.report(&[], 0, true);
    assert_eq!((report.totals.missed_bytes, report.totals.coming_bytes, report.head_requests), (0, 0, 0));
    assert_eq!((report.totals.fetched_bytes, report.optimum_bytes), (wanted, Some(wanted)));
    assert_eq!(store.left(order), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_has_become_shorter_fails() {
    let folder = folder("shorter");
    std::fs::create_dir(&folder).expect("it is new");
    std::fs::write(folder.join("a"), vec![7; 4 << 20]).expect("there is room");
    let source = Source::open(folder.to_str().expect("UTF-8")).expect("a folder");
    let shelf = Shelf::new(Limits { memory_bytes: 8 << 20, spill_bytes: 0, requests: 8 });
    let store = Store::try_new(source, shelf, None, false).expect("memory");
    store.read("a", 0, Some(10)).await.expect("it is there");
    std::fs::OpenOptions::new().write(true).open(folder.join("a")).and_then(|file| file.set_len(5)).expect("a file");
    let read = tokio::time::timeout(Duration::from_secs(20), store.read("a", 1 << 20, Some(2 << 20)));
    assert!(read.await.expect("it ends").is_err());
    let _ = std::fs::remove_dir_all(folder);
}
