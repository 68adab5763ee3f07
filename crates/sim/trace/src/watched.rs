//! A reader that calls a function before each batch and stops when it returns false, so that a pass over a long trace
//! can be interrupted.

use std::sync::Arc;

use crate::{Carries, Record, RecordReader, TraceError};

/// Called before each batch with the progress ([`RecordReader::progress`]); false stops the reading.
pub type Watch = Arc<dyn Fn((u64, u64)) -> bool + Send + Sync>;

/// Wraps `reader` so that it stops with [`TraceError::Stopped`] once `watch` returns false.
pub fn watched(reader: Box<dyn RecordReader>, watch: Watch) -> Box<dyn RecordReader> {
    Box::new(Watched { reader, watch })
}

struct Watched {
    reader: Box<dyn RecordReader>,
    watch: Watch,
}

impl RecordReader for Watched {
    fn inner(&self) -> Option<&dyn RecordReader> {
        Some(&*self.reader)
    }

    fn carries(&self) -> Carries {
        self.reader.carries()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        if !(self.watch)(self.reader.progress()) {
            return Err(TraceError::Stopped);
        }
        self.reader.read(into)
    }

    fn progress(&self) -> (u64, u64) {
        self.reader.progress()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{convert, generate, GeneratorContext, BATCH};

    #[test]
    fn a_conversion_that_is_stopped_leaves_no_file() {
        let folder = std::env::temp_dir().join(format!("headstart-watched-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let keys = "requests = 100_000\nblocks = 10".parse().expect("it is TOML");
        let generated = generate("zipf", keys, &GeneratorContext { seed: 1, block_bytes: 512 }).expect("keys it has");
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        let mut reader = watched(
            generated,
            Arc::new(move |(done, total)| {
                assert_eq!((done, total), (count.fetch_add(1, Ordering::Relaxed) * BATCH as u64, 100_000));
                done < 50_000
            }),
        );
        let result = convert(&mut *reader, "csv", &folder.join("out.csv"), 512);
        assert!(matches!(result, Err(TraceError::Stopped)), "{result:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 50_000u64.div_ceil(BATCH as u64) + 1);
        assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 0);
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
