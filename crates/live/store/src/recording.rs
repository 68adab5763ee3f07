//! What readers read, as a trace; and a trace as an order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use headstart_host::owned::check_output;
use headstart_types::{printable_path, KeyError, Nanos};
use rustc_hash::FxHashMap;

use crate::error::Error;

/// A read of a trace: a key, from where, and to where.
pub type Entry = (String, u64, Option<u64>);

/// Writes reads in the order in which they began, in the trace format `csv`. Objects are files, whose names are in a
/// table beside it. How long a read took tells the reader's own time between two reads.
pub struct Recording {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<io::Error>,
    files: FxHashMap<String, (usize, u64)>,
    /// Reads from number `first` on that have begun: some of them, but not the first, may have ended.
    under_way: VecDeque<Read>,
    first: u64,
}

struct Read {
    at: Nanos,
    file: usize,
    start: u64,
    bytes: u64,
    took: Option<Nanos>,
}

impl Recording {
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = check_output(path).and_then(|()| File::create(path));
        let mut out = BufWriter::new(file.map_err(Error::io(path.display().to_string()))?);
        let failed = writeln!(out, "time,op,file,offset,size,latency").err();
        let (files, under_way) = (FxHashMap::default(), VecDeque::new());
        Ok(Self { path: path.to_owned(), out, failed, files, under_way, first: 0 })
    }

    /// A read of `bytes` of the object `key`, of `size` bytes, begins. Returns its number, for [`Recording::ended`].
    pub fn began(&mut self, at: Nanos, key: &str, start: u64, bytes: u64, size: u64) -> u64 {
        let file = match self.files.get(key) {
            Some((number, _)) => *number,
            None => {
                let number = self.files.len();
                self.files.insert(key.to_owned(), (number, size));
                number
            }
        };
        self.under_way.push_back(Read { at, file, start, bytes, took: None });
        self.first + self.under_way.len() as u64 - 1
    }

    /// A read has its bytes, or has failed.
    pub fn ended(&mut self, number: u64, now: Nanos) {
        let read = &mut self.under_way[(number - self.first) as usize];
        read.took.get_or_insert(Nanos(now.0 - read.at.0));
        while let Some(took) = self.under_way.front().and_then(|read| read.took) {
            let Some(Read { at, file, start, bytes, .. }) = self.under_way.pop_front() else { return };
            self.first += 1;
            let (at, took) = (seconds(at), seconds(took));
            if let Err(error) = writeln!(self.out, "{at},R,{file},{start},{bytes},{took}") {
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Writes the table of files, and reads that have not ended as if they ended `now`.
    ///
    /// # Errors
    /// The trace or the table could not be written.
    pub fn finish(mut self, now: Nanos) -> Result<(), Error> {
        (self.first..self.first + self.under_way.len() as u64).rev().for_each(|number| self.ended(number, now));
        let written = self.failed.take().map_or_else(|| self.out.flush(), Err);
        written.map_err(Error::io(self.path.display().to_string()))?;
        let table = self.path.with_extension("files.csv");
        let mut files: Vec<(&String, &(usize, u64))> = self.files.iter().collect();
        files.sort_by_key(|(_, (number, _))| *number);
        let mut text = "file,max_offset,disk_size,path\n".to_owned();
        for (key, (number, size)) in files {
            text += &format!("{number},{size},{size},{key}\n");
        }
        std::fs::write(&table, text).map_err(Error::io(table.display().to_string()))
    }
}

fn seconds(time: Nanos) -> String {
    format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000)
}

/// The reads of a trace that names files, in its order. Keys are the files' names.
///
/// # Errors
/// The trace cannot be read, or names no files.
pub fn entries(path: &Path) -> Result<Vec<Entry>, Error> {
    let refused = |problem: &str| {
        KeyError::new("hints", format!("{} {problem}", printable_path(path)), "a trace of --record, or one with files")
    };
    let mut reader = headstart_trace::open(path, "auto")?;
    if !reader.carries().addresses {
        return Err(refused("has requests without addresses").into());
    }
    let (mut reads, mut batch) = (Vec::new(), Vec::new());
    while reader.read(&mut batch)? {
        let of_batch = batch.iter().filter(|record| !record.write);
        reads.extend(of_batch.map(|record| (record.file, record.offset, record.offset.saturating_add(record.size))));
    }
    let names: FxHashMap<u32, &str> = reader.files().iter().map(|file| (file.file, file.path.as_str())).collect();
    if names.is_empty() || reads.is_empty() {
        return Err(refused("names no files that are read").into());
    }
    let named = |(file, start, end): (u32, u64, u64)| Some((names.get(&file)?.to_string(), start, Some(end)));
    Ok(reads.into_iter().filter_map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_an_order() {
        let path = std::env::temp_dir().join(format!("headstart-store-{}.csv", std::process::id()));
        let mut recording = Recording::create(&path).expect("it is new");
        let first = recording.began(Nanos(5), "a/b c", 10, 20, 100);
        let second = recording.began(Nanos(6), "d", 0, 7, 7);
        recording.ended(second, Nanos(7));
        recording.ended(first, Nanos(1_000_000_006));
        recording.began(Nanos(2_000_000_007), "a/b c", 30, 70, 100);
        recording.finish(Nanos(3_000_000_000)).expect("there is room");
        let text = std::fs::read_to_string(&path).expect("it is written");
        let lines = ["0.000000005,R,0,10,20,1.000000001", "0.000000006,R,1,0,7,0.000000001"];
        assert!(lines.into_iter().eq(text.lines().skip(1).take(2)), "in the order in which they began: {text}");
        assert_eq!(text.lines().last(), Some("2.000000007,R,0,30,70,0.999999993"), "it had not ended");
        let expected =
            [("a/b c".to_owned(), 10, Some(30)), ("d".to_owned(), 0, Some(7)), ("a/b c".to_owned(), 30, Some(100))];
        assert_eq!(entries(&path).expect("a trace"), expected);
        std::fs::remove_file(path.with_extension("files.csv")).expect("it is there");
        assert!(entries(&path).is_err(), "no names");
        std::fs::remove_file(&path).expect("it is there");
    }
}
