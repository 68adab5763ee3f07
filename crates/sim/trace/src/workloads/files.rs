//! `files`: files of one size, each read from start to end by its own process.
//!
//! The workload of E. Shriver, C. Small and K. A. Smith, "Why does file system prefetching work?", USENIX 1999,
//! appendix A: sequential requests of one size, the last one cut at the end of the file, and a think time after each
//! (section 5). Records are ordered by file; use `processes = "per-pid"` to read the files concurrently.

use headstart_types::{keys, read_keys, Bytes, KeyError, KeyTable};
use toml::Table;

use super::generator::Size;
use super::{Compute, ComputeSampler, GeneratorContext, Workload};
use crate::{Carries, FileEntry, Record, RecordReader, TraceError, BATCH};

pub(super) const WORKLOAD: Workload = Workload {
    name: "files",
    summary: "files of one size, each read from start to end by its own process",
    source: "Shriver, Small and Smith, USENIX 1999, appendix A",
    keys: KeyTable::of::<FilesKeys>(),
    make: open,
};

/// Bounds the memory of the file table.
const FILES_MAX: u64 = 1 << 24;
keys! {
    /// Keys of `files`.
    struct FilesKeys {
        /// Number of files, each read by its own process.
        #[schemars(range(min = 1, max = FILES_MAX))]
        files: u32 = 1,
        /// Size of each file.
        file_size: Size = Size::bytes(64 << 10),
        /// Size of each request.
        request: Size = Size::bytes(8 << 10),
        /// The think time after each request.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let FilesKeys { files, file_size: Size(Bytes(file_bytes)), request: Size(Bytes(request_bytes)), compute } =
        read_keys(keys)?;
    let compute = compute.sampler(context.seed, 0);
    let entry = |file| FileEntry { file, size_bytes: file_bytes, path: format!("file{file}") };
    let files = (0..files).map(entry).collect();
    Ok(Box::new(Files { files, file_bytes, request_bytes, compute, done: 0 }))
}

struct Files {
    files: Vec<FileEntry>,
    file_bytes: u64,
    request_bytes: u64,
    compute: ComputeSampler,
    /// Requests so far.
    done: u64,
}

impl Files {
    fn requests_of_file(&self) -> u64 {
        self.file_bytes.div_ceil(self.request_bytes)
    }

    fn requests(&self) -> u64 {
        self.requests_of_file() * self.files.len() as u64
    }
}

impl RecordReader for Files {
    fn carries(&self) -> Carries {
        Carries { think: true, processes: true, files: true, addresses: true, ..Carries::NOTHING }
    }

    fn files(&self) -> &[FileEntry] {
        &self.files
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        let count = (self.requests() - self.done).min(BATCH as u64);
        for _ in 0..count {
            let file = (self.done / self.requests_of_file()) as u32;
            let offset = self.done % self.requests_of_file() * self.request_bytes;
            let size = self.request_bytes.min(self.file_bytes - offset);
            let think = self.compute.next_think();
            into.push(Record { offset, size, think, pid: file, file, ..Record::default() });
            self.done += 1;
        }
        Ok(count > 0)
    }

    fn progress(&self) -> (u64, u64) {
        (self.done, self.requests())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_request_of_a_file_is_cut_off_at_its_end() {
        let keys = "files = 2\nfile_size = \"20KiB\"\nrequest = \"8KiB\"\ncompute = \"1ms\"".parse().expect("TOML");
        let mut reader = open(keys, &GeneratorContext { seed: 1, block_bytes: 8192 }).expect("keys");
        let mut records = Vec::new();
        assert!(reader.read(&mut records).expect("generated"));
        let seen: Vec<_> = records.iter().map(|r| (r.file, r.pid, r.offset, r.size, r.think.0)).collect();
        let of = |file| {
            [
                (file, file, 0, 8192, 1_000_000),
                (file, file, 8192, 8192, 1_000_000),
                (file, file, 16384, 4096, 1_000_000),
            ]
        };
        assert_eq!(seen, [of(0), of(1)].concat());
        assert!(!reader.read(&mut records).expect("the end"));
        assert_eq!(reader.files()[1].size_bytes, 20_480);
    }

    #[test]
    fn sizes_need_units_and_something_in_them() {
        for (key, value) in [("file_size", "\"0B\""), ("request", "8192"), ("request", "\"8\""), ("files", "0")] {
            let keys = format!("{key} = {value}").parse().expect("TOML");
            let error = open(keys, &GeneratorContext { seed: 1, block_bytes: 8192 }).err().expect("refused");
            assert_eq!(error.key, key, "{value}");
        }
    }
}
