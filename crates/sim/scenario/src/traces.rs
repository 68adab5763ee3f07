//! Traces that several runs read: decoded once, hashed once, and surveyed once for each way to divide them into blocks.
//!
//! Runs that share a trace read its records from a list in memory, which grows only as far as the first of them has
//! read; a run on a prefix of the trace decodes only that prefix. Records beyond the memory limit, and everything after
//! an error in the trace, are decoded by each run: results and errors are those of a run on its own. Memory: 56 bytes
//! per record, up to [`RECORDS_MAX`] records of all traces together; and one [`Survey`] for each way to divide a trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use headstart_layout::Contents;
use headstart_trace::{
    open_with, selected, sha256_file, watched, Carries, Record, RecordReader, Selection, TraceError, Watch,
};

use super::Error;

/// Maximum number of records kept, over all traces: 117 MB.
const RECORDS_MAX: usize = 1 << 21;

/// The result of a first pass over a trace.
#[derive(Debug, Default)]
pub struct Survey {
    pub references: u64,
    /// Sum of the recorded think times, in nanoseconds.
    pub compute: u128,
    /// Its files and blocks.
    pub contents: Contents,
    /// The reader's note at the end of the trace.
    pub note: Option<String>,
}

/// Traces that runs share ([`Scenario::traces`](super::Scenario)). The default shares nothing: each run decodes its
/// trace as it reads, in constant memory.
#[derive(Clone, Default)]
pub struct Traces {
    shared: Option<Arc<Shared>>,
    /// Called before each batch that this run reads.
    watch: Option<Watch>,
}

#[derive(Default)]
struct Shared {
    decoded: Once<Decoding, Arc<Decoded>>,
    hashes: Once<File, String>,
    surveys: Once<String, Arc<Survey>>,
    kept: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.shared.is_some() { "shared" } else { "each its own" })
    }
}

/// A file's identity, including its modification time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl File {
    /// `None` for a file that cannot be read twice, or has no modification time.
    fn of(path: &Path) -> Option<Self> {
        let is = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { path: path.to_owned(), bytes: is.len(), modified: is.modified().ok()? })
    }
}

/// What decoding depends on: the file, its format, the request size, the selection.
type Decoding = (File, String, Option<u64>, Selection);

impl Traces {
    /// An empty set, to be cloned for several runs. Traces stay in memory until the last clone is dropped.
    #[must_use]
    pub fn shared() -> Self {
        Self { shared: Some(Arc::default()), watch: None }
    }

    /// The same traces; all reading stops once `watch` returns false.
    #[must_use]
    pub fn watched(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// For a reading that shares nothing, but stops when this run does.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { shared: None, watch: self.watch.clone() }
    }

    /// Wraps `reader` so that it stops when this run does.
    #[must_use]
    pub fn watching(&self, reader: Box<dyn RecordReader>) -> Box<dyn RecordReader> {
        match &self.watch {
            Some(watch) => watched(reader, watch.clone()),
            None => reader,
        }
    }

    /// As `headstart_trace::open_with`, restricted to `selection`.
    pub fn open(
        &self,
        path: &Path,
        format: &str,
        request_bytes: Option<u64>,
        selection: &Selection,
    ) -> Result<Box<dyn RecordReader>, TraceError> {
        let open = || selected(open_with(path, format, request_bytes)?, selection);
        let own = open()?;
        let (Some(shared), Some(file)) = (&self.shared, File::of(path)) else { return Ok(self.watching(own)) };
        if shared.kept.load(Ordering::Relaxed) > RECORDS_MAX / 2 {
            shared.decoded.forget(|decoded| Arc::strong_count(decoded) == 1);
        }
        let decoded = shared.decoded.get((file, format.to_owned(), request_bytes, selection.clone()), || {
            Ok::<_, TraceError>(Arc::new(Decoded::new(open()?, shared.kept.clone())))
        })?;
        Ok(self.watching(Box::new(Reader { progress: own.progress(), own, decoded: Some(decoded), batches: 0 })))
    }

    /// SHA-256 of a file's content, as hexadecimal digits.
    pub fn sha256(&self, path: &Path) -> Result<String, TraceError> {
        match (&self.shared, File::of(path)) {
            (Some(shared), Some(file)) => shared.hashes.get(file, || sha256_file(path)),
            _ => sha256_file(path),
        }
    }

    /// The result of `make`, computed once per `key`, which holds everything that it depends on.
    pub fn survey(
        &self,
        path: Option<&Path>,
        key: impl FnOnce() -> String,
        make: impl FnOnce() -> Result<Survey, Error>,
    ) -> Result<Arc<Survey>, Error> {
        match (&self.shared, path.and_then(File::of)) {
            (Some(shared), Some(file)) => shared.surveys.get(format!("{file:?} {}", key()), || make().map(Arc::new)),
            _ => make().map(Arc::new),
        }
    }
}

/// Values that are computed once; concurrent callers wait for the first. A failure is not kept.
struct Once<K, V>(Mutex<BTreeMap<K, Arc<Mutex<Option<V>>>>>);

impl<K, V> Default for Once<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Once<K, V> {
    fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let cell = lock(&self.0).entry(key).or_default().clone();
        let mut value = lock(&cell);
        match &*value {
            Some(value) => Ok(value.clone()),
            None => Ok(value.insert(make()?).clone()),
        }
    }

    fn forget(&self, is_unused: impl Fn(&V) -> bool) {
        lock(&self.0).retain(|_, cell| !cell.try_lock().is_ok_and(|value| value.as_ref().is_none_or(&is_unused)));
    }
}

/// The data behind the lock is consistent even after a panic, since it is only ever added to.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records of a trace decoded so far.
struct Decoded {
    state: Mutex<Batches>,
    /// Records kept over all traces.
    kept: Arc<AtomicUsize>,
}

struct Batches {
    /// `None` after the end, an error, or the memory limit.
    decoder: Option<Box<dyn RecordReader>>,
    batches: Vec<Batch>,
}

/// Records of one batch, none at the end, and the decoder's progress.
#[derive(Clone)]
struct Batch {
    records: Arc<[Record]>,
    progress: (u64, u64),
}

impl Decoded {
    fn new(decoder: Box<dyn RecordReader>, kept: Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::new(Batches { decoder: Some(decoder), batches: Vec::new() }), kept }
    }

    /// Batch `at`, if all earlier ones have been requested; `None` if each run has to continue by itself.
    fn batch(&self, at: usize) -> Option<Batch> {
        let mut state = lock(&self.state);
        if at == state.batches.len() {
            let has_room = self.kept.load(Ordering::Relaxed) < RECORDS_MAX;
            let mut decoder = state.decoder.take().filter(|_| has_room)?;
            let mut records = Vec::new();
            if decoder.read(&mut records).ok()? {
                self.kept.fetch_add(records.len(), Ordering::Relaxed);
                state.batches.push(Batch { records: records.into(), progress: decoder.progress() });
                state.decoder = Some(decoder);
            } else {
                state.batches.push(Batch { records: Arc::new([]), progress: decoder.progress() });
            }
        }
        state.batches.get(at).cloned()
    }
}

impl Drop for Decoded {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let kept = state.batches.iter().map(|batch| batch.records.len()).sum();
        self.kept.fetch_sub(kept, Ordering::Relaxed);
    }
}

/// One run's reading of a shared trace. A separate reader that has read nothing answers for the trace's declarations,
/// as a run on its own would see them before its first record. Counts of what was read come from a [`Survey`].
struct Reader {
    own: Box<dyn RecordReader>,
    /// `None` once it reads by itself.
    decoded: Option<Arc<Decoded>>,
    /// Batches taken so far.
    batches: usize,
    progress: (u64, u64),
}

impl RecordReader for Reader {
    fn inner(&self) -> Option<&dyn RecordReader> {
        Some(&*self.own)
    }

    fn carries(&self) -> Carries {
        self.own.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.own.unit_bytes()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        if let Some(decoded) = &self.decoded {
            if let Some(Batch { records, progress }) = decoded.batch(self.batches) {
                into.clear();
                into.extend_from_slice(&records);
                self.batches += usize::from(!records.is_empty());
                self.progress = progress;
                return Ok(!records.is_empty());
            }
            self.decoded = None;
            for _ in 0..self.batches {
                self.own.read(into)?;
            }
        }
        let more = self.own.read(into)?;
        self.progress = self.own.progress();
        Ok(more)
    }

    fn progress(&self) -> (u64, u64) {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(traces: &Traces, path: &Path) -> Vec<Record> {
        let mut reader = traces.open(path, "auto", None, &Selection::default()).expect("a trace");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("records") {
            all.extend_from_slice(&batch);
        }
        assert!(!reader.read(&mut batch).expect("the end again"));
        all
    }

    #[test]
    fn without_room_each_reads_on_for_itself_and_what_is_unused_is_forgotten() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/traces");
        let (first, second) = (folder.join("cscope1.csv.xz"), folder.join("multi6.csv.xz"));
        let alone = [all(&Traces::default(), &first), all(&Traces::default(), &second)];
        let traces = Traces::shared();
        let kept = &traces.shared.as_ref().expect("a set").kept;
        assert_eq!(all(&traces, &first), alone[0]);
        assert_eq!(kept.load(Ordering::Relaxed), alone[0].len());
        // Room for two batches of the second, once the first is dropped.
        let elsewhere = RECORDS_MAX - headstart_trace::BATCH - 1;
        kept.fetch_add(elsewhere, Ordering::Relaxed);
        for _ in 0..2 {
            assert_eq!(all(&traces, &second), alone[1]);
        }
        assert_eq!(kept.load(Ordering::Relaxed), elsewhere + 2 * headstart_trace::BATCH);
    }
}
