//! `cp` and `diff`: file utilities, each run once in its own process.
//!
//! li07, section 6.1: cp "reads a source file chunk by chunk and copies the chunks into a destination file"; BSD diff
//! "alternately accesses two files". The files have 5 and 50 MB; 2cp50 and 2diff50 run two at once, cp50+diff50 one of
//! each: both generators have the keys `copies` and `diffs`.
//!
//! Our readings: MB are MiB; the chunk is a page, which stdio and cp read at a time because of the st_blksize of
//! contemporary file systems. Guesses: comparing and copying take no time (`compute`); the files lie in order of use,
//! with `apart` bytes of other files between them. The paper does not give their positions, which decide the result: if
//! files are adjacent, the buffer segments of our IBM drive bridge most of the distance. 1 GiB was found by scanning:
//! from 128 to 392 KiB `2diff50` then takes some 30 % less time, as in the paper; with 0 B it takes 6 % less, with 4
//! GiB 40 %.

use headstart_types::{as_text, keys, read_keys, Bytes, KeyError, KeyTable};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::generator::Size;
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, spread, FileAccesses, Server, Stage, System, SOURCE};
use crate::{FileEntry, RecordReader};

pub(in super::super) const CP: Workload = Workload {
    name: "cp",
    summary: "file utilities: copies of files, chunk by chunk, each in its own process; optionally with diffs",
    source: SOURCE,
    keys: KeyTable::of::<ToolKeys>().with("copies = 2"),
    make: open,
};

pub(in super::super) const DIFF: Workload = Workload {
    name: "diff",
    summary:
        "file utilities: comparisons of two files read alternately, each in its own process; optionally with copies",
    source: SOURCE,
    keys: KeyTable::of::<ToolKeys>().with("diffs = 2"),
    make: open,
};

/// More processes of one kind than any experiment has.
const TOOLS_MAX: u64 = 1 << 16;

keys! {
    /// Keys of `cp` and `diff`. Their defaults of `copies` and `diffs` differ.
    struct ToolKeys {
        /// Number of copies, each by its own process.
        #[schemars(range(max = TOOLS_MAX))]
        copies: u64 = 0,
        /// Number of comparisons of two files, each by its own process.
        #[schemars(range(max = TOOLS_MAX))]
        diffs: u64 = 0,
        /// Size of each file.
        size: Size = Size::bytes(50 << 20),
        /// Size of each read and write.
        chunk: Size = Size::bytes(4 << 10),
        /// Space between two files on the disk, which other files occupy.
        #[serde(serialize_with = "as_text")]
        #[schemars(extend("x-max" = "512GiB"))]
        apart: Bytes = Bytes(1 << 30),
        /// The think time after each read or write.
        compute: Compute = Compute::NONE,
    }
    impl check = |keys| match keys.copies + keys.diffs {
        0 => Err(KeyError::new("copies", "is 0, and diffs is 0 too", "one of the two above 0")),
        _ => Ok(()),
    };
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: ToolKeys = read_keys(keys)?;
    let ToolKeys { copies, diffs, size: Size(size), chunk: Size(chunk), apart, compute } = keys;
    // Each process is one request.
    let requests = copies + diffs;
    let tools = Tools { copies, diffs, size: size.0, chunk: chunk.0, apart: apart.0 };
    Ok(System { seed: context.seed, concurrency: requests, requests, compute }.boxed(tools))
}

struct Tools {
    copies: u64,
    diffs: u64,
    size: u64,
    chunk: u64,
    apart: u64,
}

impl Tools {
    /// Process n uses files 2 n and 2 n + 1.
    fn name(&self, file: u64) -> String {
        let (process, which) = (file / 2, file % 2);
        match process.checked_sub(self.copies) {
            None => format!("cp{process}/{}", ["source", "destination"][which as usize]),
            Some(diff) => format!("diff{diff}/{}", ["left", "right"][which as usize]),
        }
    }
}

impl Server for Tools {
    fn files(&self) -> Vec<FileEntry> {
        let used = 2 * (self.copies + self.diffs);
        spread(entries(0, (0..used).map(|file| (self.name(file), self.size))), self.apart)
    }

    fn request(&self, number: u64, _rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let file = 2 * number as u32;
        let first = FileAccesses::read(file, (0, self.size), self.chunk);
        let second = match number < self.copies {
            true => FileAccesses::write(file + 1, self.size, self.chunk),
            false => FileAccesses::read(file + 1, (0, self.size), self.chunk),
        };
        vec![Stage::new([first, second])]
    }

    fn writes(&self) -> bool {
        self.copies > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(row: &Workload, keys: &str) -> Result<Box<dyn RecordReader>, KeyError> {
        row.open(keys.parse().expect("TOML"), &GeneratorContext { seed: 1, block_bytes: 4096 })
    }

    #[test]
    fn a_copy_reads_and_writes_and_a_diff_reads_and_reads() {
        let mut reader = opened(&CP, "copies = 1\ndiffs = 1\nsize = \"10KiB\"\napart = \"1MiB\"").expect("keys");
        let mut records = Vec::new();
        assert!(reader.read(&mut records).expect("generated"));
        let of = |pid| {
            let own = records.iter().filter(move |record| record.pid == pid);
            own.map(|record| (record.file, record.write, record.offset, record.size)).collect::<Vec<_>>()
        };
        let chunks = |(first, second): (u32, u32), write| {
            let each = [(0, 4096), (4096, 4096), (8192, 2048)];
            each.into_iter()
                .flat_map(|(at, size)| [(first, false, at, size), (second, write, at, size)])
                .collect::<Vec<_>>()
        };
        assert_eq!((of(0), of(1)), (chunks((0, 1), true), chunks((2, 3), false)));
        assert_eq!(records.iter().map(|record| record.pid).collect::<Vec<_>>(), [0, 1].repeat(6));
        let table: Vec<_> = reader.files().iter().map(|entry| (entry.path.as_str(), entry.size_bytes)).collect();
        let (small, large) = (10 * 1024, 1 << 20);
        let paths = ["cp0/source", "other1", "cp0/destination", "other2", "diff0/left", "other3", "diff0/right"];
        let sizes = [small, large, small, large, small, large, small];
        assert_eq!(table, paths.into_iter().zip(sizes).collect::<Vec<_>>());
        assert!(reader.carries().writes);
    }

    #[test]
    fn two_of_each_by_default_and_none_is_refused() {
        let count = |row| opened(row, "size = \"1MiB\"").expect("keys").progress().1;
        assert_eq!((count(&CP), count(&DIFF)), (2, 2));
        assert!(!opened(&DIFF, "").expect("keys").carries().writes);
        let error = |row, keys: &str| opened(row, keys).err().expect("refused").to_string();
        assert_eq!(error(&CP, "copies = 0"), "copies: is 0, and diffs is 0 too; allowed: one of the two above 0");
        assert!(
            error(&DIFF, "size = \"0B\"").starts_with("size: 0B is out of range; allowed: a size from 1B to 512GiB")
        );
        assert!(error(&DIFF, "requests = 3").starts_with("requests: unknown key"));
        assert!(error(&DIFF, "apart = \"1\"").starts_with("apart: \"1\" has no unit"));
    }
}
