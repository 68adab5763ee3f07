//! `tpc-h`: substitutes for queries of TPC-H on a database of 2 GB; not the queries themselves.
//!
//! li07, section 6.1: 2 GB in all, the largest file 730 MB, the smallest 432 B; each query reads parts of several
//! files, sequentially and at random. Figure 5 shows that Q2 alternates between files, each read in order, and that Q16
//! has "a mixed pattern with a large amount of random accesses". The paper does not give how much they read.
//!
//! There are three kinds: alternating queries (Q2) alternate between part, partsupp and partsupp's index, each in
//! order; mixed ones (Q16) read part in order and after each read make `random` random reads of partsupp and as many of
//! its index; scans read lineitem or orders. `alternating` and `mixed` are their shares, the rest are scans; 1.0 makes
//! all queries of one kind. A sequential read covers the file from its start up to a uniformly drawn fraction. All of
//! this is guessed, as are the other files' sizes (rows of TPC-H at scale 1 times the size of a MySQL row; indexes fill
//! up to 2 GB), the shares, the 16 KiB of a read, the time between reads (`compute`) and the `apart` bytes of other
//! files between two files.

use headstart_types::{as_text, keys, read_keys, Bytes, KeyError, KeyTable, Nanos};
use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::draw::{below, happens, share};
use super::super::generator::{Size, REQUESTS_MAX};
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, spread, FileAccesses, Server, Stage, System, CLIENTS_MAX, SOURCE};
use crate::{FileEntry, RecordReader};

pub(in super::super) const WORKLOAD: Workload = Workload {
    name: "tpc-h",
    summary: "substitutes for TPC-H queries: alternating (Q2), mixed with random reads (Q16), scans",
    source: SOURCE,
    keys: KeyTable::of::<TpcHKeys>(),
    make: open,
};

/// Names and bytes at 2 GB. The paper gives the largest, the smallest and the sum; the rest is a guess.
const FILES: [(&str, u64); 14] = [
    ("lineitem.data", 730_000_000),
    ("lineitem.index", 610_000_000),
    ("orders.data", 180_000_000),
    ("orders.index", 95_000_000),
    ("partsupp.data", 140_000_000),
    ("partsupp.index", 112_000_000),
    ("part.data", 50_000_000),
    ("part.index", 22_000_000),
    ("customer.data", 40_000_000),
    ("customer.index", 18_200_000),
    ("supplier.data", 2_000_000),
    ("supplier.index", 797_268),
    ("nation.data", 2_300),
    ("region.data", 432),
];
const TOTAL: u64 = 2_000_000_000;
const LINEITEM: u32 = 0;
const ORDERS: u32 = 2;
const PARTSUPP: u32 = 4;
const PARTSUPP_INDEX: u32 = 5;
const PART: u32 = 6;

/// More random reads per sequential read would make the queries purely random.
const RANDOM_MAX: u64 = 1 << 10;

keys! {
    /// Keys of `tpc-h`.
    struct TpcHKeys {
        /// Number of clients.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        concurrency: u64 = 1,
        /// Number of requests of all clients together, dealt out to the clients in turn.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 21,
        /// Size of the database.
        size: Size = Size::bytes(TOTAL),
        /// Share of alternating queries.
        #[schemars(range(min = 0.0, max = 1.0))]
        alternating: f64 = 0.1,
        /// Share of mixed queries. The remaining queries are scans.
        #[schemars(range(min = 0.0, max = 1.0))]
        mixed: f64 = 0.3,
        /// Number of random reads from each of two files per sequential read, in mixed queries.
        #[schemars(range(max = RANDOM_MAX))]
        random: u64 = 1,
        /// Size of each read.
        read: Size = Size::bytes(16 << 10),
        /// Space between two files on the disk, which other files occupy.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "512GiB"))]
        apart: Bytes = Bytes(1 << 30),
        /// The think time after each read or write.
        compute: Compute = Compute::Constant(Nanos(200_000)),
    }
    impl check = |keys| match keys.alternating + keys.mixed > 1.0 {
        true => {
            let problem = format!("{} and alternating = {} add up to more than 1", keys.mixed, keys.alternating);
            Err(KeyError::new("mixed", problem, "shares that add up to 1 at most"))
        }
        false => Ok(()),
    };
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: TpcHKeys = read_keys(keys)?;
    let database = Database {
        size: keys.size.0 .0,
        alternating: keys.alternating,
        mixed: keys.mixed,
        random: keys.random,
        read: keys.read.0 .0,
        apart: keys.apart.0,
    };
    Ok(System::new(keys.concurrency, keys.requests, keys.compute, context)?.boxed(database))
}

struct Database {
    size: u64,
    alternating: f64,
    mixed: f64,
    /// Random reads of each of two files per sequential read.
    random: u64,
    read: u64,
    /// Space between two files on the disk, which other files occupy.
    apart: u64,
}

impl Database {
    fn bytes(&self, file: u32) -> u64 {
        let (_, bytes) = FILES[file as usize];
        ((u128::from(bytes) * u128::from(self.size) / u128::from(TOTAL)) as u64).max(1)
    }

    /// Reads in order, from the start up to a random position.
    fn in_order(&self, file: u32, rng: &mut ChaCha8Rng) -> FileAccesses {
        FileAccesses::read(file, (0, 1 + share(rng.next_u64(), self.bytes(file))), self.read)
    }

    fn mix(&self, rng: &mut ChaCha8Rng) -> Stage {
        let part = self.in_order(PART, rng);
        let chunks = part.chunks();
        let random = |file| FileAccesses::scattered(file, self.bytes(file), self.read, chunks);
        let pairs = (0..self.random).flat_map(|_| [random(PARTSUPP_INDEX), random(PARTSUPP)]);
        Stage::new(std::iter::once(part).chain(pairs))
    }
}

impl Server for Database {
    fn files(&self) -> Vec<FileEntry> {
        spread(entries(0, (0..).zip(FILES).map(|(file, (name, _))| (name.to_owned(), self.bytes(file)))), self.apart)
    }

    fn request(&self, _number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let stage = if happens(self.alternating, rng) {
            Stage::new([PARTSUPP_INDEX, PARTSUPP, PART].map(|file| self.in_order(file, rng)))
        } else if self.alternating < 1.0 && happens(self.mixed / (1.0 - self.alternating), rng) {
            self.mix(rng)
        } else {
            Stage::new([self.in_order([LINEITEM, ORDERS][below(2, rng) as usize], rng)])
        };
        vec![stage]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn records(keys: &str) -> Vec<Record> {
        let mut reader = opened(keys).expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        all
    }

    fn opened(keys: &str) -> Result<Box<dyn RecordReader>, KeyError> {
        open(keys.parse().expect("TOML"), &GeneratorContext { seed: 1, block_bytes: 4096 })
    }

    #[test]
    fn the_files_are_as_large_as_printed() {
        let reader = opened("apart = \"0B\"").expect("keys");
        let sizes: Vec<u64> = reader.files().iter().map(|entry| entry.size_bytes).collect();
        assert_eq!(sizes.iter().sum::<u64>(), TOTAL);
        assert_eq!((sizes.iter().max(), sizes.iter().min()), (Some(&730_000_000), Some(&432)));
    }

    #[test]
    fn an_alternating_query_takes_turns_among_three_files() {
        let seen = records("requests = 1\nalternating = 1.0\nmixed = 0\nsize = \"200MB\"");
        let firsts: Vec<u32> = seen[..6].iter().map(|record| record.file).collect();
        assert_eq!(firsts, [5, 4, 6, 5, 4, 6]);
        for file in 4..=6 {
            let own = seen.iter().filter(|record| record.file == file);
            assert!(own.enumerate().all(|(turn, record)| record.offset == turn as u64 * 16384));
        }
        assert!(seen.iter().all(|record| record.think.0 == 200_000));
    }

    #[test]
    fn a_mixed_query_reads_at_random_between_reads_in_order() {
        let seen = records("requests = 1\nalternating = 0\nmixed = 1.0\nrandom = 2");
        for (turn, reads) in seen.chunks(5).enumerate() {
            let files: Vec<u32> = reads.iter().map(|record| record.file).collect();
            assert_eq!(files, [6, 5, 4, 5, 4]);
            assert_eq!(reads[0].offset, turn as u64 * 16384);
        }
        let of = |file| seen.iter().filter(move |record| record.file == file).map(|record| record.offset);
        assert!(!of(4).is_sorted() && !of(5).is_sorted());
    }

    #[test]
    fn kinds_have_their_shares() {
        let seen = records("requests = 3000\nsize = \"1MB\"\nread = \"1GB\"");
        let starts = |file: u32| seen.iter().filter(|record| record.file == file).count() as f64 / 3000.0;
        // One read for each file: lineitem and orders in scans, part in the other two, partsupp in both.
        assert!((starts(LINEITEM) + starts(ORDERS) - 0.6).abs() < 0.04);
        assert!((starts(PART) - 0.4).abs() < 0.04 && starts(PARTSUPP) == starts(PARTSUPP_INDEX));
    }

    #[test]
    fn shares_of_more_than_all_are_refused() {
        let error = opened("alternating = 0.5\nmixed = 0.6").err().expect("refused").to_string();
        assert_eq!(
            error,
            "mixed: 0.6 and alternating = 0.5 add up to more than 1; allowed: shares that add up to 1 at most"
        );
    }
}
