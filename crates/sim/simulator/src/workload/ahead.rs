//! References for a run, read and numbered by a separate thread if the run itself does not number blocks.
//!
//! Only that thread knows the numbers of blocks; a run whose policy acts on numbers only needs the places of the new
//! blocks of a chunk, which come with it. Errors of the trace also arrive in order: a run ends at the same reference,
//! with the same counts, as one that reads the trace itself.

use std::panic::resume_unwind;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use headstart_engine::Supply;
use headstart_layout::{Fresh, Places};
use headstart_types::Chunk;

use super::reading::Reading;
use crate::Error;

/// Maximum number of ready chunks, of a batch of records each: enough that neither side waits for the other at every
/// chunk.
const CHUNKS: usize = 8;

/// The references of a process, for its run.
#[allow(clippy::large_enum_variant)] // A run has only one.
pub enum Supplied {
    /// Read on demand.
    Here(Reading),
    /// Read on demand until the second chunk: a trace with one chunk is read faster than a thread starts.
    First(Reading),
    /// Read by a thread.
    Ahead(Ahead),
    /// At their end, or after an error.
    Ended,
}

/// References read by a thread.
pub struct Ahead {
    filled: Receiver<Filled>,
    used: Sender<Chunk>,
    thread: Option<JoinHandle<()>>,
    progress: (u64, u64),
}

/// A chunk from the thread.
struct Filled {
    chunk: Chunk,
    /// The places of blocks that were not referenced before.
    fresh: Fresh,
    /// Whether there are more, or the error.
    more: Result<bool, Error>,
    progress: (u64, u64),
}

impl Supplied {
    /// The rest of `reading`. It may be read in advance if the run only uses block numbers.
    #[must_use]
    pub fn new(reading: Reading, in_advance: bool) -> Self {
        if in_advance {
            Supplied::First(reading)
        } else {
            Supplied::Here(reading)
        }
    }
}

impl Supply<Places> for Supplied {
    type Error = Error;

    fn next(&mut self, chunk: &mut Chunk, places: &Places) -> Result<bool, Error> {
        match self {
            Supplied::Here(reading) => reading.fill(chunk, places),
            Supplied::Ahead(ahead) => ahead.next(chunk, places),
            Supplied::Ended => Ok(false),
            Supplied::First(reading) => {
                let more = reading.fill(chunk, places)?;
                let Supplied::First(reading) = std::mem::replace(self, Supplied::Ended) else { unreachable!() };
                if more {
                    *self = Supplied::Ahead(Ahead::start(reading, places.numbers_apart()));
                }
                Ok(more)
            }
        }
    }

    fn progress(&self) -> (u64, u64) {
        match self {
            Supplied::Here(reading) | Supplied::First(reading) => reading.progress(),
            Supplied::Ahead(ahead) => ahead.progress,
            Supplied::Ended => (1, 1),
        }
    }
}

impl Ahead {
    /// `places` has the numbers of all blocks so far.
    fn start(reading: Reading, places: Places) -> Self {
        let progress = reading.progress();
        let (to_run, filled) = sync_channel(CHUNKS);
        let (used, from_run) = channel();
        let thread = thread::spawn(move || read(reading, &places, &to_run, &from_run));
        Self { filled, used, thread: Some(thread), progress }
    }

    fn next(&mut self, chunk: &mut Chunk, places: &Places) -> Result<bool, Error> {
        let Ok(filled) = self.filled.recv() else {
            // It ends with a chunk that says so, or panics.
            if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                resume_unwind(panic);
            }
            return Ok(false);
        };
        let used = std::mem::replace(chunk, filled.chunk);
        // A thread that has read everything needs no more chunks.
        let _ = self.used.send(used);
        places.add(&filled.fresh);
        self.progress = filled.progress;
        filled.more
    }
}

/// Reads until the end, an error, or until the run has ended.
fn read(mut reading: Reading, places: &Places, to_run: &SyncSender<Filled>, from_run: &Receiver<Chunk>) {
    loop {
        let mut chunk = from_run.try_recv().unwrap_or_else(|_| Chunk::empty());
        let more = reading.fill(&mut chunk, places);
        let goes_on = matches!(more, Ok(true));
        let filled = Filled { chunk, fresh: places.take_fresh(), more, progress: reading.progress() };
        if to_run.send(filled).is_err() || !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use headstart_policy::BlockMap;
    use headstart_scenario::Scenario;
    use headstart_types::Block;

    use super::*;
    use crate::workload::References;

    /// The chunks of a scenario's references, its blocks' places, and the final result.
    type Read = (Vec<Chunk>, Vec<(u32, Option<u64>)>, Result<bool, String>);

    /// Reads all references.
    fn read_all(workload: &str, in_advance: bool) -> Read {
        let text = format!("workload = {{{workload}}}\ncache = {{blocks = 10}}\npolicy = {{name = \"demand\"}}");
        let scenario = Scenario::from_table(text.parse().expect("TOML")).expect("keys");
        let disk = headstart_device::build_device("seagate-exos-x20", toml::Table::new()).expect("a model");
        let (references, places) = References::try_new(&scenario, &*disk).expect("references");
        let mut supplied = Supplied::new(references.reading, in_advance);
        let (mut chunks, mut chunk) = (Vec::new(), Chunk::empty());
        let end = loop {
            match supplied.next(&mut chunk, &places) {
                Ok(true) => chunks.push(chunk.clone()),
                end => break end.map_err(|error| error.to_string()),
            }
        };
        assert_eq!(matches!(supplied, Supplied::Ahead(_)), in_advance && chunks.len() > 1);
        let blocks = 0..places.blocks() as u32;
        let place = |block| (places.disk(Block(block)).0, places.sector(Block(block)));
        (chunks, blocks.map(place).collect(), end)
    }

    #[test]
    fn a_thread_reads_the_same() {
        for workload in [
            "generator = \"zipf\", requests = 30000, blocks = 9000, compute = \"exp:1ms\"",
            "generator = \"zipf\", requests = 30000, blocks = 9000, compute = \"0s\"",
            "generator = \"synth\", passes = 20",
            "generator = \"zipf\", requests = 10",
        ] {
            let (here, ahead) = (read_all(workload, false), read_all(workload, true));
            assert_eq!(here, ahead, "{workload}");
            assert!(here.2 == Ok(false) && !here.1.is_empty());
        }
    }

    #[test]
    fn what_is_wrong_comes_in_its_turn() {
        let path = std::env::temp_dir().join(format!("headstart-ahead-{}.csv", std::process::id()));
        let line = |at| format!("{},{}\n", at % 700 * 8192, if at == 30_000 { "many" } else { "8192" });
        let lines: String = std::iter::once("offset,size\n".to_owned()).chain((0..40_000).map(line)).collect();
        std::fs::write(&path, lines).expect("written");
        let workload = format!("trace = {path:?}, format = \"csv\"");
        let (here, ahead) = (read_all(&workload, false), read_all(&workload, true));
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(here, ahead);
        assert!(here.0.len() > 2 && here.2.is_err_and(|error| error.contains("line 30002")));
    }

    #[test]
    fn a_run_that_stops_early_leaves_no_thread() {
        let scenario = "workload = {generator = \"zipf\", requests = 1000000}\ncache = {blocks = 10}\npolicy = {name = \"demand\"}";
        let scenario = Scenario::from_table(scenario.parse().expect("TOML")).expect("keys");
        let disk = headstart_device::build_device("uniform", "fetch_time = \"1ms\"".parse().expect("TOML"));
        let (references, places) = References::try_new(&scenario, &*disk.expect("a model")).expect("references");
        let mut supplied = Supplied::new(references.reading, true);
        assert!(matches!(supplied.next(&mut Chunk::empty(), &places), Ok(true)));
        let Supplied::Ahead(mut ahead) = supplied else { panic!("reads ahead") };
        let thread = ahead.thread.take().expect("a thread");
        drop(ahead);
        thread.join().expect("it ends by itself");
    }
}
