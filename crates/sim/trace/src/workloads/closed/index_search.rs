//! `index-search`: a search engine; each query looks up its words and reads their lists alternately.
//!
//! "Index searching" of li07, section 6.1: for each keyword, a look-up in an index file of 522 MB gives the position
//! and length of its list of matching pages; the lists of a query are read alternately, each in order; 18.5 GB in all.
//! A search may end "when a desired number of matches are found" (section 3.1), so lists are read in part.
//!
//! The paper does not give the lists' lengths, the queries' words and how much of a list is read. Guesses: KB, MB and
//! GB are powers of ten; the dataset holds `lists` lists that are requested, with exponentially distributed lengths; a
//! query has 1 to `words` words with equal probability, drawn by Zipf's law with exponent `alpha` independently of the
//! list's length; it reads each list from its start up to a fraction drawn uniformly between 0 and `portion`, `read`
//! bytes at a time; a look-up reads `lookup` bytes at a random position of the index. Each list is a separate file, in
//! place of a separate open file for each list: a read-ahead stops at its end. `lists` was found by scanning 3000 to
//! 20,000: with the read-ahead `linux` and 1 to 64 clients, 392 KiB instead of 128 KiB gains 14 to 22 % with 3000 lists
//! (the paper has 10 to 28 % for its policy), 800 KiB gains 9 to 17 %; with 20,000 lists it gains at most 2 %, or
//! loses.

use headstart_types::{keys, read_keys, stream_seed, within_range, KeyError, KeyTable};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::draw::{below, even, share};
use super::super::generator::{Size, REQUESTS_MAX};
use super::super::zipf::{Ranks, ALPHA_MAX};
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, FileAccesses, Server, Stage, System, CLIENTS_MAX, FILES_MAX, SOURCE};
use crate::{FileEntry, RecordReader};

pub(in super::super) const WORKLOAD: Workload = Workload {
    name: "index-search",
    summary:
        "closed system, a search engine: index look-ups, then alternating reads of the lists (lengths are guesses)",
    source: SOURCE,
    keys: KeyTable::of::<SearchKeys>(),
    make: open,
};

/// More words than any query has.
const WORDS_MAX: u64 = 1 << 10;

keys! {
    /// Keys of `index-search`.
    struct SearchKeys {
        /// Number of clients.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        concurrency: u64 = 1,
        /// Number of requests of all clients together, dealt out to the clients in turn.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 400,
        /// Size of the index and all lists together.
        size: Size = Size::bytes(18_500_000_000),
        /// Size of the index.
        index_size: Size = Size::bytes(522_000_000),
        /// Number of lists that queries read.
        #[schemars(range(min = 1, max = FILES_MAX - 1))]
        lists: u64 = 3000,
        /// Maximum number of words in a query.
        #[schemars(range(min = 1, max = WORDS_MAX))]
        words: u64 = 4,
        /// The exponent of Zipf's law.
        #[schemars(range(min = 0.0, max = ALPHA_MAX))]
        alpha: f64 = 0.7,
        /// Largest share of a list that is read.
        #[schemars(range(min = 0.0, max = 1.0))]
        portion: f64 = 1.0,
        /// Size of a look-up in the index.
        lookup: Size = Size::bytes(4 << 10),
        /// Size of each read of a list.
        read: Size = Size::bytes(64 << 10),
        /// The think time after each read or write.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: SearchKeys = read_keys(keys)?;
    let (index, lists) = (keys.index_size.0 .0, keys.lists);
    let of_lists = keys.size.0 .0.checked_sub(index).filter(|rest| *rest >= lists).ok_or_else(|| {
        let problem = format!("leaves less than a byte for each of {lists} lists in addition to the index");
        KeyError::new("size", problem, "index_size and lists, or more")
    })?;
    within_range("words", keys.words, 1..=WORDS_MAX.min(lists))?;
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "ranks", 0));
    let search = Search {
        index,
        lists,
        mean: of_lists as f64 / lists as f64,
        words: keys.words,
        ranks: Ranks::new(lists as usize, keys.alpha, &mut rng),
        portion: keys.portion,
        lookup: keys.lookup.0 .0,
        read: keys.read.0 .0,
    };
    Ok(System::new(keys.concurrency, keys.requests, keys.compute, context)?.boxed(search))
}

struct Search {
    index: u64,
    lists: u64,
    /// Mean bytes per list.
    mean: f64,
    words: u64,
    ranks: Ranks,
    portion: f64,
    lookup: u64,
    read: u64,
}

impl Search {
    /// Bytes of list `list`.
    fn length(&self, list: u64) -> u64 {
        let uniform = ((even(list) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        ((-libm::log(uniform) * self.mean) as u64).max(1)
    }

    /// The index is file 0, list n is file n + 1.
    fn run(&self, list: u32, rng: &mut ChaCha8Rng) -> FileAccesses {
        let length = self.length(list.into());
        let most = ((length as f64 * self.portion) as u64).clamp(1, length);
        FileAccesses::read(list + 1, (0, 1 + share(rng.next_u64(), most)), self.read)
    }
}

impl Server for Search {
    fn files(&self) -> Vec<FileEntry> {
        let lists = (0..self.lists).map(|list| (format!("list{list}"), self.length(list)));
        entries(0, std::iter::once(("index".to_owned(), self.index)).chain(lists))
    }

    fn request(&self, _number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let count = 1 + below(self.words, rng) as usize;
        let mut words: Vec<u32> = (0..count).map(|_| self.ranks.draw(rng)).collect();
        words.sort_unstable();
        words.dedup();
        let lookups = Stage::new([FileAccesses::scattered(0, self.index, self.lookup, words.len() as u64)]);
        vec![lookups, Stage::new(words.into_iter().map(|word| self.run(word, rng)).collect::<Vec<_>>())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn opened(keys: &str) -> Result<Box<dyn RecordReader>, KeyError> {
        open(keys.parse().expect("TOML"), &GeneratorContext { seed: 1, block_bytes: 4096 })
    }

    #[test]
    fn the_dataset_is_as_large_as_printed() {
        let reader = opened("").expect("defaults");
        let total: u64 = reader.files().iter().map(|entry| entry.size_bytes).sum();
        assert_eq!(reader.files()[0].size_bytes, 522_000_000);
        // The lengths are drawn: the sum of 3000 has a standard deviation of 1.8 %.
        assert!((total as f64 / 18.5e9 - 1.0).abs() < 0.02, "{total}");
    }

    #[test]
    fn a_query_looks_each_word_up_and_then_alternates_between_their_lists() {
        let mut reader = opened("requests = 300").expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        let is_lookup = |record: &Record| record.file == 0;
        let queries: Vec<&[Record]> = all.chunk_by(|last, next| is_lookup(last) || !is_lookup(next)).collect();
        assert_eq!(queries.len(), 300);
        for query in &queries {
            let words = query.iter().filter(|record| is_lookup(record)).count();
            assert!((1..=4).contains(&words) && query[..words].iter().all(|record| record.size == 4096));
            let lists = &query[words..];
            let first: Vec<u32> = lists[..words].iter().map(|record| record.file).collect();
            assert!(first.is_sorted_by(|a, b| a < b) && lists[..words].iter().all(|record| record.offset == 0));
            // The lists that have not ended continue in the same order.
            for (at, record) in lists.iter().enumerate().skip(words) {
                let turn = record.offset / 65536;
                let before = lists[..at].iter().filter(|other| other.file == record.file).count() as u64;
                assert_eq!(turn, before);
                assert!(lists[..at].iter().all(|other| other.offset / 65536 <= turn), "no list is ahead by a turn");
            }
        }
        let mean = all.iter().filter(|record| is_lookup(record)).count() as f64 / 300.0;
        assert!((2.2..2.8).contains(&mean), "{mean}: 2.5, less the words that come twice");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |keys: &str| opened(keys).err().expect("refused").to_string();
        assert!(error("size = \"522MB\"").starts_with("size: leaves less than a byte for each of 3000 lists"));
        assert!(error("words = 0").starts_with("words: 0 is out of range"));
        assert!(error("portion = 2").starts_with("portion: 2 is out of range"));
        assert!(
            error("lists = 3\nwords = 4").starts_with("words: 4 is out of range; allowed: a whole number from 1 to 3")
        );
    }
}
