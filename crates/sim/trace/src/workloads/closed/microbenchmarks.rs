//! `one-whole`, `one-rand`, `two-rand`, `four-64kb`: servers of 6000 files of 4 MB, whose handlers read one or several.
//!
//! One-Whole-0, One-Rand-10, Two-Rand-0 and Four-64KB-0 of li07, section 6.1. The paper gives: 6000 files of 4 MB,
//! reads of 64 KB; the portion begins at the start of the file and its length is "evenly distributed between 64 KB and
//! 4 MB"; One-Rand-10 delays for 10 ms at four random access points of a request; Two-Rand-0 alternates between two
//! files, with a portion of each; Four-64KB-0 reads one random block of 64 KB from each of four files.
//!
//! Our readings: 4 MB are 4 MiB, 64 KB 64 KiB; a portion is a whole number of reads with equal probability; a delay
//! follows a read, and the four points are drawn independently (if two coincide, their delays add up, so a request
//! always delays four times 10 ms); two or four files are distinct; the random block lies at a multiple of its size;
//! there is no time between a client's requests. All four have the keys `delay` and `delays`; the default is "0s"
//! except in one-rand.

use headstart_types::{keys, read_keys, within_range, KeyError, KeyTable, Nanos};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::draw::below;
use super::super::generator::{Pause, Size, REQUESTS_MAX};
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, FileAccesses, Server, Stage, System, CLIENTS_MAX, FILES_MAX, SOURCE};
use crate::{FileEntry, RecordReader};

/// What is read of each file.
#[derive(Debug, Clone, Copy)]
enum Part {
    Whole,
    /// A random number of reads from the start.
    Portion,
    /// One read at a random position.
    Block,
}

/// The differences between the four.
struct Kind {
    name: &'static str,
    summary: &'static str,
    /// Distinct files that a request reads alternately.
    streams: u64,
    part: Part,
    /// Defaults that differ.
    defaults: &'static str,
}

static KINDS: [Kind; 4] = [
    Kind {
        name: "one-whole",
        summary: "closed system, One-Whole-0: each request reads a random file whole",
        streams: 1,
        part: Part::Whole,
        defaults: "",
    },
    Kind {
        name: "one-rand",
        summary: "closed system, One-Rand-10: a portion of a random file from its start, four delays of 10 ms",
        streams: 1,
        part: Part::Portion,
        defaults: "delay = '10ms'",
    },
    Kind {
        name: "two-rand",
        summary: "closed system, Two-Rand-0: alternating reads of portions of two random files",
        streams: 2,
        part: Part::Portion,
        defaults: "",
    },
    Kind {
        name: "four-64kb",
        summary: "closed system, Four-64KB-0: a random block of 64 KiB from each of four random files",
        streams: 4,
        part: Part::Block,
        defaults: "",
    },
];

/// Chosen to simulate quickly; not from the paper.
const REQUESTS: u64 = 256;
/// More delays than any request has reads; bounds the memory of a client.
const DELAYS_MAX: u64 = 1 << 16;

/// The generator of microbenchmark `KIND`.
pub(in super::super) const fn workload<const KIND: usize>() -> Workload {
    let Kind { name, summary, defaults, .. } = &KINDS[KIND];
    Workload { name, summary, source: SOURCE, keys: KeyTable::of::<MicroKeys>().with(defaults), make: open::<KIND> }
}

keys! {
    /// Keys of the four microbenchmarks. Their defaults of `delay` differ.
    struct MicroKeys {
        /// Number of clients.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        concurrency: u64 = 1,
        /// Number of requests of all clients together, dealt out to the clients in turn.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = REQUESTS,
        /// Number of files on the server.
        #[schemars(range(min = 1, max = FILES_MAX))]
        files: u64 = 6000,
        /// Size of each file.
        file_size: Size = Size::bytes(4 << 20),
        /// Size of each read.
        read: Size = Size::bytes(64 << 10),
        /// Duration of each delay.
        delay: Pause = Pause(Nanos::ZERO),
        /// Number of delays per request, each after a random read.
        #[schemars(range(max = DELAYS_MAX))]
        delays: u64 = 4,
        /// The think time after each read or write.
        compute: Compute = Compute::NONE,
    }
}

fn open<const KIND: usize>(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: MicroKeys = read_keys(keys)?;
    let Kind { streams, part, .. } = KINDS[KIND];
    within_range("files", keys.files, streams..=FILES_MAX)?;
    let handler = Handler {
        streams,
        part,
        files: keys.files,
        file_bytes: keys.file_size.0 .0,
        read_bytes: keys.read.0 .0,
        delay: keys.delay.0,
        delays: keys.delays,
    };
    Ok(System::new(keys.concurrency, keys.requests, keys.compute, context)?.boxed(handler))
}

struct Handler {
    streams: u64,
    part: Part,
    files: u64,
    file_bytes: u64,
    read_bytes: u64,
    delay: Nanos,
    delays: u64,
}

impl Handler {
    /// Draws the distinct files that a request reads.
    fn pick(&self, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut picked = Vec::new();
        while picked.len() < self.streams as usize {
            let file = below(self.files, rng) as u32;
            if !picked.contains(&file) {
                picked.push(file);
            }
        }
        picked
    }

    fn run(&self, file: u32, rng: &mut ChaCha8Rng) -> FileAccesses {
        let (size, chunk) = (self.file_bytes, self.read_bytes);
        let chunks = size.div_ceil(chunk);
        let part = match self.part {
            Part::Whole => (0, size),
            Part::Portion => (0, size.min((1 + below(chunks, rng)) * chunk)),
            Part::Block => {
                let at = below(chunks, rng) * chunk;
                (at, size.min(at + chunk))
            }
        };
        FileAccesses::read(file, part, chunk)
    }
}

impl Server for Handler {
    fn files(&self) -> Vec<FileEntry> {
        entries(0, (0..self.files).map(|file| (format!("file{file}"), self.file_bytes)))
    }

    fn request(&self, _number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let files = self.pick(rng);
        let stage = Stage::new(files.into_iter().map(|file| self.run(file, rng)).collect::<Vec<_>>());
        let chunks = stage.chunks();
        let delays = if self.delay == Nanos::ZERO { 0 } else { self.delays };
        vec![stage.pausing((0..delays).map(|_| 1 + below(chunks, rng)), self.delay)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::generate;
    use crate::Record;

    fn records(name: &str, keys: &str) -> Vec<Record> {
        let context = GeneratorContext { seed: 5, block_bytes: 4096 };
        let mut reader = generate(name, keys.parse().expect("TOML"), &context).expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        all
    }

    /// Number of reads in each of a single client's consecutive requests, by a key that tells how many there are.
    fn starts(records: &[Record]) -> usize {
        records.iter().filter(|record| record.offset == 0).count()
    }

    #[test]
    fn one_whole_reads_whole_files_the_last_read_cut_off() {
        let seen = records("one-whole", "requests = 3\nfiles = 2\nfile_size = \"10KiB\"\nread = \"4KiB\"");
        let of_first: Vec<_> = seen[..3].iter().map(|record| (record.offset, record.size)).collect();
        assert_eq!(of_first, [(0, 4096), (4096, 4096), (8192, 2048)]);
        assert_eq!((seen.len(), starts(&seen)), (9, 3));
        assert!(seen.iter().all(|record| record.file < 2 && record.think.0 == 0 && !record.write));
    }

    #[test]
    fn one_rand_reads_every_length_as_often_and_delays_four_times() {
        let seen = records("one-rand", "requests = 4000");
        assert_eq!(starts(&seen), 4000);
        // 1 to 64 reads: 32.5 on average, with a standard deviation of 18.5 per request.
        let mean = seen.len() as f64 / 4000.0;
        assert!((mean - 32.5).abs() < 4.0 * 18.5 / 4000f64.sqrt(), "{mean}");
        let think: u64 = seen.iter().map(|record| record.think.0).sum();
        assert_eq!(think, 4000 * 40_000_000);
        let mut lengths = [0; 65];
        seen.chunk_by(|_, next| next.offset > 0).for_each(|request| lengths[request.len()] += 1);
        assert!(lengths[1..].iter().all(|count| (25..110).contains(count)), "{lengths:?}");
    }

    #[test]
    fn two_rand_alternates_until_one_portion_ends() {
        let seen = records("two-rand", "requests = 500");
        let mut rest = &seen[..];
        while let [first, second, ..] = rest {
            assert!(first.file != second.file && first.offset == 0 && second.offset == 0);
            let other = |at: usize| rest.get(at).is_some_and(|record| record.offset > 0);
            let count = 2 + (2..).take_while(|at| other(*at)).count();
            let of = |file| rest[..count].iter().filter(move |record| record.file == file);
            let lengths = [of(first.file).count(), of(second.file).count()];
            let turns = (0..64).flat_map(|turn| [(first.file, lengths[0] > turn), (second.file, lengths[1] > turn)]);
            let expected: Vec<u32> = turns.filter(|(_, reads)| *reads).map(|(file, _)| file).collect();
            assert_eq!(rest[..count].iter().map(|record| record.file).collect::<Vec<_>>(), expected);
            for file in [first.file, second.file] {
                assert!(of(file).enumerate().all(|(turn, record)| record.offset == turn as u64 * 65536));
            }
            rest = &rest[count..];
        }
    }

    #[test]
    fn four_64kb_reads_one_block_of_each_of_four_files() {
        let seen = records("four-64kb", "requests = 1000");
        assert_eq!(seen.len(), 4000);
        for request in seen.chunks(4) {
            let mut files: Vec<u32> = request.iter().map(|record| record.file).collect();
            files.sort_unstable();
            files.dedup();
            assert_eq!(files.len(), 4);
            assert!(request.iter().all(|record| record.offset % 65536 == 0 && record.size == 65536));
        }
        let mean = seen.iter().map(|record| record.offset / 65536).sum::<u64>() as f64 / 4000.0;
        assert!((mean - 31.5).abs() < 4.0 * 18.5 / 4000f64.sqrt(), "{mean}");
    }

    #[test]
    fn requests_are_the_same_at_every_concurrency() {
        let sorted = |keys: &str| {
            let mut seen: Vec<_> = records("two-rand", keys).iter().map(|each| (each.file, each.offset)).collect();
            seen.sort_unstable();
            seen
        };
        let alone = sorted("requests = 60");
        assert_eq!(alone, sorted("requests = 60\nconcurrency = 7"));
        assert_ne!(alone, sorted("requests = 61"));
        let pids: Vec<u32> = records("two-rand", "requests = 60\nconcurrency = 3").iter().map(|r| r.pid).collect();
        assert_eq!(pids[..6], [0, 1, 2, 0, 1, 2]);
    }
}
