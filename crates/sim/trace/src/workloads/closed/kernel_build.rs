//! `kernel-build`: a compilation of many small files, and a link at its end.
//!
//! li07, section 6.1: "compiling and linking a Linux 2.6.10 kernel", which "involves reading from and writing to many
//! small files". The paper gives no more: all numbers are guesses. Each of `requests` units reads its source and
//! `includes` headers, whole files one after another, compiles for `compile` and writes its object. Headers are drawn
//! by Zipf's law with exponent `alpha`, so that most come from the cache. At its end each client (as in `make -j`)
//! links the objects that it has made: it reads all of them and writes one file as large as their sum. Sizes are
//! uniform from 1 byte to twice their mean. On disk, sources precede headers, then objects, then the results.

use headstart_types::{keys, read_keys, stream_seed, KeyError, KeyTable, Nanos};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::draw::size_about;
use super::super::generator::{Pause, Size};
use super::super::zipf::{Ranks, ALPHA_MAX};
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, FileAccesses, Server, Stage, System, CLIENTS_MAX, FILES_MAX, SOURCE};
use crate::{FileEntry, RecordReader};

pub(in super::super) const WORKLOAD: Workload = Workload {
    name: "kernel-build",
    summary: "compilation of many small files: sources and headers are read, objects written and linked (all guessed)",
    source: SOURCE,
    keys: KeyTable::of::<BuildKeys>(),
    make: open,
};

/// More headers than any unit includes; bounds the memory of a client.
const INCLUDES_MAX: u64 = 1 << 16;
/// Maximum number of units and headers: including objects and results they stay within the limit of files.
const UNITS_MAX: u64 = FILES_MAX / 4;

// No source or header reaches 2 GiB, so sums of objects stay below 2^64.
keys! {
    /// Keys of `kernel-build`.
    struct BuildKeys {
        /// Number of clients.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        concurrency: u64 = 1,
        /// Number of compilation units of all clients together.
        #[schemars(range(min = 1, max = UNITS_MAX))]
        requests: u64 = 1000,
        /// Total number of headers.
        #[schemars(range(min = 1, max = UNITS_MAX))]
        headers: u64 = 5000,
        /// Number of headers that a unit includes.
        #[schemars(range(max = INCLUDES_MAX))]
        includes: u64 = 30,
        /// The exponent of Zipf's law.
        #[schemars(range(min = 0.0, max = ALPHA_MAX))]
        alpha: f64 = 1.0,
        /// Mean size of a source file.
        #[schemars(extend("x-max" = "2GiB"))]
        source_size: Size = Size::bytes(16 << 10),
        /// Mean size of a header file.
        #[schemars(extend("x-max" = "2GiB"))]
        header_size: Size = Size::bytes(6 << 10),
        /// Mean size of an object file.
        #[schemars(extend("x-max" = "2GiB"))]
        object_size: Size = Size::bytes(24 << 10),
        /// Time to compile a unit.
        compile: Pause = Pause(Nanos::from_millis(400)),
        /// Size of each read.
        read: Size = Size::bytes(64 << 10),
        /// The think time after each read or write.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: BuildKeys = read_keys(keys)?;
    let system = System::new(keys.concurrency, keys.requests, keys.compute, context)?;
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "ranks", 0));
    let build = Build {
        system,
        units: keys.requests,
        headers: keys.headers,
        includes: keys.includes,
        ranks: Ranks::new(keys.headers as usize, keys.alpha, &mut rng),
        source_mean: keys.source_size.0 .0,
        header_mean: keys.header_size.0 .0,
        object_mean: keys.object_size.0 .0,
        compile: keys.compile.0,
        read: keys.read.0 .0,
    };
    Ok(system.boxed(build))
}

struct Build {
    system: System,
    units: u64,
    headers: u64,
    includes: u64,
    ranks: Ranks,
    source_mean: u64,
    header_mean: u64,
    object_mean: u64,
    compile: Nanos,
    read: u64,
}

impl Build {
    /// The file and size of a source.
    fn source(&self, unit: u64) -> (u32, u64) {
        (unit as u32, size_about(self.source_mean, unit))
    }

    fn header(&self, header: u64) -> (u32, u64) {
        ((self.units + header) as u32, size_about(self.header_mean, header))
    }

    fn object(&self, unit: u64) -> (u32, u64) {
        ((self.units + self.headers + unit) as u32, size_about(self.object_mean, unit))
    }

    /// The file and size that a client links.
    fn result(&self, client: u64) -> (u32, u64) {
        let size = self.system.requests_of(client).map(|unit| self.object(unit).1).sum();
        ((2 * self.units + self.headers + client) as u32, size)
    }

    fn read_whole(&self, (file, size): (u32, u64)) -> Stage {
        Stage::new([FileAccesses::read(file, (0, size), self.read)])
    }

    fn write_whole(&self, (file, size): (u32, u64)) -> Stage {
        Stage::new([FileAccesses::write(file, size, self.read)])
    }
}

impl Server for Build {
    fn files(&self) -> Vec<FileEntry> {
        let sources = (0..self.units).map(|unit| (format!("source{unit}"), self.source(unit).1));
        let headers = (0..self.headers).map(|header| (format!("header{header}"), self.header(header).1));
        let objects = (0..self.units).map(|unit| (format!("object{unit}"), self.object(unit).1));
        let clients = 0..self.system.concurrency;
        let results = clients.map(|client| (format!("result{client}"), self.result(client).1));
        entries(0, sources.chain(headers).chain(objects).chain(results))
    }

    fn request(&self, number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let headers = (0..self.includes).map(|_| self.header(self.ranks.draw(rng).into()));
        let files: Vec<(u32, u64)> = std::iter::once(self.source(number)).chain(headers).collect();
        let mut stages: Vec<Stage> = files.into_iter().map(|file| self.read_whole(file)).collect();
        if let Some(last) = stages.pop() {
            let chunks = last.chunks();
            stages.push(last.pausing([chunks], self.compile));
        }
        stages.push(self.write_whole(self.object(number)));
        stages
    }

    fn finish(&self, client: u64) -> Vec<Stage> {
        let objects = self.system.requests_of(client).map(|unit| self.read_whole(self.object(unit)));
        objects.chain([self.write_whole(self.result(client))]).collect()
    }

    fn writes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn opened(keys: &str) -> Result<Box<dyn RecordReader>, KeyError> {
        open(keys.parse().expect("TOML"), &GeneratorContext { seed: 1, block_bytes: 4096 })
    }

    fn records(keys: &str) -> (Vec<FileEntry>, Vec<Record>) {
        let mut reader = opened(keys).expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        (reader.files().to_vec(), all)
    }

    #[test]
    fn a_unit_is_read_compiled_and_written_and_all_are_linked() {
        let (files, seen) = records("requests = 2\nheaders = 1\nincludes = 2\ncompile = \"1ms\"");
        let names: Vec<&str> = files.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["source0", "source1", "header0", "object0", "object1", "result0"]);
        let steps: Vec<_> = seen.iter().map(|record| (record.file, record.write, record.think.0)).collect();
        let unit = |unit| [(unit, false, 0), (2, false, 0), (2, false, 1_000_000), (3 + unit, true, 0)];
        let link = [(3, false, 0), (4, false, 0), (5, true, 0)];
        assert_eq!(steps, [&unit(0)[..], &unit(1), &link].concat());
        assert!(seen.iter().all(|record| (record.offset, record.size) == (0, files[record.file as usize].size_bytes)));
        assert_eq!(files[5].size_bytes, files[3].size_bytes + files[4].size_bytes);
    }

    #[test]
    fn each_of_several_clients_links_its_own_objects() {
        let (files, seen) = records("requests = 5\nconcurrency = 2\nincludes = 0\nheaders = 1");
        // 5 sources, a header, 5 objects, 2 results.
        assert_eq!(files.len(), 13);
        for (client, units) in [(0, [0u32, 2, 4].as_slice()), (1, &[1, 3])] {
            let own = seen.iter().filter(|record| record.pid == client);
            let linked = own.filter(|record| !record.write && record.file > 5).map(|record| record.file - 6);
            assert_eq!(linked.collect::<Vec<_>>(), units);
        }
        let compiled: u64 = seen.iter().map(|record| record.think.0).sum();
        assert_eq!(compiled, 5 * 400_000_000);
    }

    #[test]
    fn more_units_than_files_are_refused() {
        let error = |keys: &str| opened(keys).err().expect("refused").to_string();
        assert!(error("requests = 5000000").starts_with("requests: 5000000 is out of range; allowed: a whole number"));
        assert!(error("includes = -1").starts_with("includes: -1 is out of range"));
        assert!(error("compile = 3").starts_with("compile: 3 is a number; allowed: a time"));
    }
}
