//! Traces that several runs read: decoded once, hashed once, and surveyed once for each way to cut them into blocks.
//!
//! Runs that share a trace read its records from a list in memory, which grows as far as the first of them has come; so a
//! run on a prefix of the trace decodes that prefix only. What finds no room any more, and what comes after something
//! wrong in the trace, each run decodes for itself: results and errors are those of a run that is alone.
//! Memory: 56 bytes a record, for [`RECORDS_MAX`] records of all traces together; and one [`Survey`] for each way to cut.

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

/// Records kept, of all traces together: 117 MB.
const RECORDS_MAX: usize = 1 << 21;

/// What a first pass over a trace has found.
#[derive(Debug, Default)]
pub struct Survey {
    /// References.
    pub references: u64,
    /// Sum of think times as recorded, in nanoseconds.
    pub compute: u128,
    /// Its files and blocks.
    pub contents: Contents,
    /// What the reader says of the trace once it is read.
    pub note: Option<String>,
}

/// Traces that runs share ([`Scenario::traces`](super::Scenario)). The default shares nothing: each run decodes its trace as
/// it goes, in memory that does not grow with the trace.
#[derive(Clone, Default)]
pub struct Traces {
    shared: Option<Arc<Shared>>,
    /// Asked before each batch of whatever this run reads.
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

/// A file as it is now: one that has been written since is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl File {
    /// `None` for what cannot be read twice, or does not say when it was written.
    fn of(path: &Path) -> Option<Self> {
        let is = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { path: path.to_owned(), bytes: is.len(), modified: is.modified().ok()? })
    }
}

/// What records depend on: the file, its format, the size of its requests, what of it is read.
type Decoding = (File, String, Option<u64>, Selection);

impl Traces {
    /// An empty set, for runs that are given clones of it. Traces stay in memory until the last clone is gone.
    #[must_use]
    pub fn shared() -> Self {
        Self { shared: Some(Arc::default()), watch: None }
    }

    /// The same traces, of which all that is read stops once `watch` returns false.
    #[must_use]
    pub fn watched(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// For a reading that shares nothing, and stops when this run does.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { shared: None, watch: self.watch.clone() }
    }

    /// `reader`, watched as everything that this run reads.
    #[must_use]
    pub fn watching(&self, reader: Box<dyn RecordReader>) -> Box<dyn RecordReader> {
        match &self.watch {
            Some(watch) => watched(reader, watch.clone()),
            None => reader,
        }
    }

    /// As `headstart_trace::open_with`, of which `selection` is read.
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

    /// What `make` finds out, once for each `key`, which says all that it depends on.
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

/// Values that are made once each; whoever else wants one meanwhile waits for it. A failure is not kept.
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

/// What is behind a lock is whole after a panic too: it is only ever added to.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records of a trace, as far as they have been decoded.
struct Decoded {
    state: Mutex<Batches>,
    /// Records kept of all traces.
    kept: Arc<AtomicUsize>,
}

struct Batches {
    /// `None` once it has come to its end, to something wrong, or to the end of the room.
    decoder: Option<Box<dyn RecordReader>>,
    batches: Vec<Batch>,
}

/// Records of one reading, none at the end, and how far the decoder was then.
#[derive(Clone)]
struct Batch {
    records: Arc<[Record]>,
    progress: (u64, u64),
}

impl Decoded {
    fn new(decoder: Box<dyn RecordReader>, kept: Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::new(Batches { decoder: Some(decoder), batches: Vec::new() }), kept }
    }

    /// Batch `at`, those before which have been asked for; `None` where each run has to read on for itself.
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

/// One run's reading of a shared trace. What a trace declares is said by a reader of its own, which has read nothing: as a
/// run that is alone hears it before its first record. Counts of what has been read are a [`Survey`]'s.
struct Reader {
    own: Box<dyn RecordReader>,
    /// `None` once it reads for itself.
    decoded: Option<Arc<Decoded>>,
    /// Taken so far.
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
        let (first, second) = (folder.join("cscope1.csv.xz"), folder.join("multi6.csv.xz"));
        let alone = [all(&Traces::default(), &first), all(&Traces::default(), &second)];
        let traces = Traces::shared();
        let kept = &traces.shared.as_ref().expect("a set").kept;
        assert_eq!(all(&traces, &first), alone[0]);
        assert_eq!(kept.load(Ordering::Relaxed), alone[0].len());
        // Room for two batches of the second, once the first is forgotten.
        let elsewhere = RECORDS_MAX - headstart_trace::BATCH - 1;
        kept.fetch_add(elsewhere, Ordering::Relaxed);
        for _ in 0..2 {
            assert_eq!(all(&traces, &second), alone[1]);
        }
        assert_eq!(kept.load(Ordering::Relaxed), elsewhere + 2 * headstart_trace::BATCH);
    }
}
