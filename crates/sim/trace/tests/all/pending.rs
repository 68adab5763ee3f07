//! Temporary files of conversions in progress are removed when the process is stopped. The test runs in a separate
//! process, because it removes those of all conversions.

use std::path::Path;

use headstart_trace::{convert, Carries, Record, RecordReader, TraceError};

use crate::common::scratch;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A trace without end until it is stopped.
struct Endless(std::sync::mpsc::Sender<()>);

impl RecordReader for Endless {
    fn carries(&self) -> Carries {
        Carries { objects: true, ..Carries::NOTHING }
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        into.push(Record { size: 1, ..Record::default() });
        // Fails once the test has ended.
        Ok(self.0.send(()).is_ok())
    }

    fn progress(&self) -> (u64, u64) {
        (0, 1)
    }
}

#[test]
fn temporary_files_can_be_removed_from_another_thread() {
    let directory = scratch("stopped");
    let (sender, began) = std::sync::mpsc::channel();
    let target = directory.join("out.csv");
    let thread = std::thread::spawn(move || convert(&mut Endless(sender), "csv", &target, 8192).is_err());
    began.recv().unwrap();
    assert_eq!(names(&directory).len(), 1);
    headstart_trace::remove_pending_files();
    assert_eq!(names(&directory), [""; 0]);
    drop(began);
    assert!(thread.join().unwrap(), "there is nothing left to put in place");
}
