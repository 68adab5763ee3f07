//! `kimbrel96-dinero` to `kimbrel96-xds`: the nine application traces of kimbrel96, rebuilt.
//!
//! Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, "A trace-driven comparison of
//! algorithms for parallel prefetching and caching", OSDI 1996, section 3.1 and Table 3. The traces are lost. Table 3
//! gives the reads, the distinct blocks of 8 KB and the sum of the think times of each: a rebuilt trace has exactly
//! these. Section 3.1 says in a sentence what each program did; how such a program reads is known from its sources and
//! manuals. What neither tells is a range, and each seed draws from it: the file of each program states its ranges.
//!
//! Think times are `1 - j + j * x` times their mean, with `x` exponential of mean 1 and `j` drawn from 0 to 1, so that
//! they range from constant to exponential. Section 4.3 says that those of cscope3 are bursty: runs near 1 ms between
//! runs around 7 ms, here within 20 %. The mean of Table 3 gives the share of slow reads; the mean length of a fast run
//! is drawn from 10 to 1000 reads.
//!
//! Section 3.2 places files as `placement = "random-groups"` does.
//!
//! Cost and memory: the whole trace, at most 30,200 reads, is made at the start.

mod glimpse;
mod ld;
mod passes;
mod postgres;
mod text_search;
mod xds;

use std::cmp::min;

use headstart_types::{stream_seed, KeyTable, Nanos};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::draw::below;
use super::{Compute, GeneratorContext, Workload};
use crate::{Carries, FileEntry, Record, RecordReader, TraceError, BATCH};

/// Section 3.1.
const BLOCK_BYTES: u64 = 8192;

/// A row of Table 3.
struct Program {
    name: &'static str,
    summary: &'static str,
    reads: u64,
    distinct: u64,
    compute: Nanos,
    bursty: bool,
    script: fn(&Program, &mut ChaCha8Rng) -> Script,
}

const PROGRAMS: [Program; 9] = [
    Program {
        name: "kimbrel96-dinero",
        summary: "a cache simulator reads one file of 986 blocks 9 times (rebuilt from Table 3)",
        reads: 8867,
        distinct: 986,
        compute: Nanos::from_millis(103_500),
        bursty: false,
        script: passes::dinero,
    },
    Program {
        name: "kimbrel96-cscope1",
        summary: "a source browser reads its cross-reference of 1073 blocks for 8 symbols (rebuilt from Table 3)",
        reads: 8673,
        distinct: 1073,
        compute: Nanos::from_millis(24_900),
        bursty: false,
        script: passes::cscope1,
    },
    Program {
        name: "kimbrel96-cscope2",
        summary: "4 text searches in an 18 MB software package (rebuilt from Table 3)",
        reads: 20_206,
        distinct: 2462,
        compute: Nanos::from_millis(37_100),
        bursty: false,
        script: text_search::cscope2,
    },
    Program {
        name: "kimbrel96-cscope3",
        summary: "4 text searches in a 10 MB package of small files, with bursty think times (rebuilt from Table 3)",
        reads: 30_200,
        distinct: 3910,
        compute: Nanos::from_millis(74_100),
        bursty: true,
        script: text_search::cscope3,
    },
    Program {
        name: "kimbrel96-glimpse",
        summary: "4 searches in 40 MB of news, index blocks read repeatedly, articles rarely (rebuilt from Table 3)",
        reads: 27_981,
        distinct: 5247,
        compute: Nanos::from_millis(38_700),
        bursty: false,
        script: glimpse::script,
    },
    Program {
        name: "kimbrel96-ld",
        summary: "a kernel is linked from 25 MB of object files: symbols first, then sections (rebuilt from Table 3)",
        reads: 5881,
        distinct: 2882,
        compute: Nanos::from_millis(8_200),
        bursty: false,
        script: ld::script,
    },
    Program {
        name: "kimbrel96-postgres-join",
        summary: "a join of 3.2 MB with an indexed 32 MB relation, hot index blocks (rebuilt from Table 3)",
        reads: 8896,
        distinct: 3793,
        compute: Nanos::from_millis(11_500),
        bursty: false,
        script: postgres::join,
    },
    Program {
        name: "kimbrel96-postgres-select",
        summary: "2 % of the tuples of a 32 MB relation, selected by an index (rebuilt from Table 3)",
        reads: 5044,
        distinct: 3085,
        compute: Nanos::from_millis(79_200),
        bursty: false,
        script: postgres::select,
    },
    Program {
        name: "kimbrel96-xds",
        summary: "25 planes at random angles through a 64 MB volume (rebuilt from Table 3)",
        reads: 10_435,
        distinct: 5392,
        compute: Nanos::from_millis(30_800),
        bursty: false,
        script: xds::script,
    },
];

/// The row of program `N`.
pub(super) const fn workload<const N: usize>() -> Workload {
    let Program { name, summary, .. } = PROGRAMS[N];
    Workload {
        name,
        summary,
        source: "Kimbrel et al., OSDI 1996, section 3.1 and Table 3",
        keys: KeyTable::NONE,
        make: |_, context| Ok(Box::new(PROGRAMS[N].trace(context))),
    }
}

/// What a program reads: files by name and number of blocks, and reads by file and block.
#[derive(Default)]
struct Script {
    files: Vec<(String, u64)>,
    reads: Vec<(u32, u32)>,
}

impl Script {
    /// Adds a file and returns its number.
    fn file(&mut self, name: impl Into<String>, blocks: u64) -> u32 {
        self.files.push((name.into(), blocks));
        self.files.len() as u32 - 1
    }

    fn read(&mut self, file: u32, block: u64) {
        self.reads.push((file, block as u32));
    }
}

impl Program {
    fn trace(&self, context: &GeneratorContext) -> Rebuilt {
        let rng = |role| ChaCha8Rng::seed_from_u64(stream_seed(context.seed, role, 0));
        let script = (self.script)(self, &mut rng(self.name));
        let weights = if self.bursty { self.bursts(&mut rng("bursts")) } else { self.jitter(context.seed) };
        let thinks = shares(&weights, self.compute.0);
        let record = |((file, block), think): ((u32, u32), u64)| Record {
            file,
            offset: u64::from(block) * BLOCK_BYTES,
            size: BLOCK_BYTES,
            think: Nanos(think),
            ..Record::default()
        };
        let entry =
            |((path, blocks), file): ((String, u64), u32)| FileEntry { file, size_bytes: blocks * BLOCK_BYTES, path };
        Rebuilt {
            files: script.files.into_iter().zip(0..).map(entry).collect(),
            records: script.reads.into_iter().zip(thinks).map(record).collect(),
            done: 0,
        }
    }

    /// Think times between constant and exponential, relative to each other.
    fn jitter(&self, seed: u64) -> Vec<u64> {
        const UNIT: u64 = 1_000_000;
        let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(seed, "jitter", 0));
        let jitter = below(UNIT + 1, &mut rng);
        let mut exponential = Compute::Exponential(Nanos(UNIT)).sampler(seed, 0);
        (0..self.reads).map(|_| (UNIT - jitter) * UNIT + jitter * exponential.next_think().0 + 1).collect()
    }

    /// Think times near 1 ms in some runs and around 7 ms in others.
    fn bursts(&self, rng: &mut ChaCha8Rng) -> Vec<u64> {
        let (fast, slow) = (1.0, 7.0);
        let mean = self.compute.0 as f64 / 1e6 / self.reads as f64;
        let slow_reads = ((mean - fast) / (slow - fast) * self.reads as f64).round() as u64;
        let fast_reads = self.reads - slow_reads;
        let runs = min(slow_reads, fast_reads / between(10, 1000, rng)).max(1);
        let lengths = split(fast_reads, runs, rng).into_iter().zip(split(slow_reads, runs, rng));
        let kinds: Vec<u64> = lengths
            .flat_map(|(fast, slow)| std::iter::repeat_n(1, fast as usize).chain(std::iter::repeat_n(7, slow as usize)))
            .collect();
        kinds.into_iter().map(|kind| kind * between(8_000, 12_000, rng)).collect()
    }
}

/// A rebuilt trace as a stream of records.
struct Rebuilt {
    files: Vec<FileEntry>,
    records: Vec<Record>,
    done: usize,
}

impl RecordReader for Rebuilt {
    fn carries(&self) -> Carries {
        Carries { think: true, files: true, addresses: true, ..Carries::default() }
    }

    fn files(&self) -> &[FileEntry] {
        &self.files
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        let end = min(self.done + BATCH, self.records.len());
        into.extend_from_slice(&self.records[self.done..end]);
        self.done = end;
        Ok(!into.is_empty())
    }

    fn progress(&self) -> (u64, u64) {
        (self.done as u64, self.records.len() as u64)
    }
}

/// A uniform number of `low..=high`.
fn between(low: u64, high: u64, rng: &mut ChaCha8Rng) -> u64 {
    low + below(high - low + 1, rng)
}

/// Divides `total` in proportion to `weights`, of which one is above 0; the parts add up to `total`.
fn shares(weights: &[u64], total: u64) -> Vec<u64> {
    let whole: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut sum = 0;
    let mut taken = 0;
    let part = |weight: &u64| {
        sum += u128::from(*weight);
        let upto = (sum * u128::from(total) / whole) as u64;
        upto - std::mem::replace(&mut taken, upto)
    };
    weights.iter().map(part).collect()
}

/// Divides `total` at random into `count` parts, at most `total`, of 1 or more: sizes of files and lengths of runs.
fn split(total: u64, count: u64, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let mut exponential = Compute::Exponential(Nanos(1_000_000)).sampler(below(u64::MAX, rng), 0);
    let weights: Vec<u64> = (0..count).map(|_| exponential.next_think().0 + 1).collect();
    shares(&weights, total - count).into_iter().map(|part| part + 1).collect()
}

/// Moves a random choice of `count` elements, in random order, to the front.
fn choose<T>(of: &mut [T], count: usize, rng: &mut ChaCha8Rng) {
    for at in 0..count {
        let other = at + below((of.len() - at) as u64, rng) as usize;
        of.swap(at, other);
    }
}

fn shuffle<T>(of: &mut [T], rng: &mut ChaCha8Rng) {
    choose(of, of.len(), rng);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::workloads::generate;

    /// Table 3: reads, distinct blocks, milliseconds of computing.
    const TABLE_3: [(&str, usize, usize, u64); 9] = [
        ("dinero", 8867, 986, 103_500),
        ("cscope1", 8673, 1073, 24_900),
        ("cscope2", 20_206, 2462, 37_100),
        ("cscope3", 30_200, 3910, 74_100),
        ("glimpse", 27_981, 5247, 38_700),
        ("ld", 5881, 2882, 8_200),
        ("postgres-join", 8896, 3793, 11_500),
        ("postgres-select", 5044, 3085, 79_200),
        ("xds", 10_435, 5392, 30_800),
    ];

    /// The files, and all records, of a program of Table 3.
    pub(super) fn drawn(program: &str, seed: u64) -> (Vec<FileEntry>, Vec<Record>) {
        let context = GeneratorContext { seed, block_bytes: 8192 };
        let name = format!("kimbrel96-{program}");
        let mut reader = generate(&name, toml::Table::new(), &context).expect("a generator");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        (reader.files().to_vec(), all)
    }

    /// File and block of each record.
    pub(super) fn places(records: &[Record]) -> Vec<(u32, u64)> {
        records.iter().map(|record| (record.file, record.offset / 8192)).collect()
    }

    #[test]
    fn every_draw_has_exactly_the_counts_of_table_3() {
        for (program, reads, distinct, compute_ms) in TABLE_3 {
            for seed in 1..=20 {
                let (files, records) = drawn(program, seed);
                let sizes: BTreeMap<u32, u64> = files.iter().map(|entry| (entry.file, entry.size_bytes)).collect();
                let seen: BTreeSet<(u32, u64)> = places(&records).into_iter().collect();
                let computed: u64 = records.iter().map(|record| record.think.0).sum();
                assert_eq!((records.len(), seen.len()), (reads, distinct), "{program}, seed {seed}");
                assert_eq!(computed, compute_ms * 1_000_000, "{program}, seed {seed}");
                for record in &records {
                    assert!(record.size == 8192 && record.offset % 8192 == 0 && record.think.0 > 0);
                    assert!(record.offset + 8192 <= sizes[&record.file], "{program}, seed {seed}: {record:?}");
                }
            }
        }
    }

    #[test]
    fn think_times_of_cscope3_come_in_runs_near_1_and_7_ms_and_others_spread_by_the_seed() {
        let (_, records) = drawn("cscope3", 3);
        let ms: Vec<f64> = records.iter().map(|record| record.think.0 as f64 / 1e6).collect();
        let near = |centre: f64| ms.iter().filter(|time| (**time / centre - 1.0).abs() < 0.22).count();
        // 74.1 s in 30,200 reads of 1 or 7 ms: (2454 - 1000) / 6000 of them are slow, 7316.7.
        assert_eq!((near(1.0), near(7.0)), (22_883, 7_317));
        let changes = ms.windows(2).filter(|pair| (pair[0] < 4.0) != (pair[1] < 4.0)).count();
        assert!(changes < 22_883 / 10 * 2, "{changes} changes: runs of 10 and more fast reads in the mean");
        let deviation = |seed| {
            let times: Vec<f64> = drawn("ld", seed).1.iter().map(|record| record.think.0 as f64).collect();
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            (times.iter().map(|time| (time / mean - 1.0).powi(2)).sum::<f64>() / times.len() as f64).sqrt()
        };
        let all: Vec<f64> = (1..=20).map(deviation).collect();
        assert!(all.iter().all(|each| *each < 1.1) && all.iter().any(|each| *each < 0.3));
        assert!(all.iter().any(|each| *each > 0.7), "{all:?}");
    }

    #[test]
    fn parts_add_up() {
        assert_eq!(shares(&[1, 1, 2], 10), [2, 3, 5]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let parts = split(1000, 300, &mut rng);
        assert_eq!((parts.len(), parts.iter().sum::<u64>()), (300, 1000));
        assert!(parts.iter().all(|part| *part >= 1));
        assert_eq!(split(3, 3, &mut rng), [1, 1, 1]);
        let mut all: Vec<u32> = (0..100).collect();
        choose(&mut all, 10, &mut rng);
        assert_ne!(all[..10], (0..10).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
