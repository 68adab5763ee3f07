//! Records clients' requests as a trace, and connection events as lines of JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use headstart_host::owned::check_output;
use headstart_nbd::{Command, Request};
use headstart_types::Nanos;
use serde_json::json;

use crate::Error;

/// Records reads and writes as they come, in the trace format `csv`, with each connection as a process. With several
/// exports, each is a file, and the file table is written beside the trace.
pub struct Recording {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<io::Error>,
    /// Names of the exports, if there are several.
    files: Vec<String>,
    ends: Vec<u64>,
}

impl Recording {
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, exports: &[String]) -> Result<Self, Error> {
        let file = check_output(path).and_then(|()| File::create(path));
        let file = file.map_err(Error::io(path.display().to_string()))?;
        let files = if exports.len() > 1 { exports.to_vec() } else { Vec::new() };
        let mut recording = Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            failed: None,
            ends: vec![0; exports.len()],
            files,
        };
        let header =
            if recording.files.is_empty() { "time,op,pid,offset,size" } else { "time,op,pid,file,offset,size" };
        recording.line(header);
        Ok(recording)
    }

    fn line(&mut self, line: &str) {
        if let Err(error) = writeln!(self.out, "{line}") {
            self.failed.get_or_insert(error);
        }
    }

    /// Records a client's request.
    pub fn requested(&mut self, at: Nanos, client: u32, export: usize, request: &Request) {
        let op = match request.command {
            Command::Read { .. } => 'R',
            Command::Write { .. } => 'W',
            _ => return,
        };
        let (s, ns, pid) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000, client + 1);
        let file = if self.files.is_empty() { String::new() } else { format!("{export},") };
        self.ends[export] = self.ends[export].max(request.offset + u64::from(request.length));
        self.line(&format!("{s}.{ns:09},{op},{pid},{file}{},{}", request.offset, request.length));
    }

    /// Flushes the trace and writes the file table.
    ///
    /// # Errors
    /// The trace or the table could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let name = self.path.display().to_string();
        let written = self.failed.take().map_or_else(|| self.out.flush(), Err);
        written.map_err(Error::io(name))?;
        if self.files.is_empty() {
            return Ok(());
        }
        let table = self.path.with_extension("files.csv");
        let mut text = "file,max_offset,disk_size,path\n".to_owned();
        for (number, (name, end)) in self.files.iter().zip(&self.ends).enumerate() {
            text += &format!("{number},{end},,{name}\n");
        }
        std::fs::write(&table, text).map_err(Error::io(table.display().to_string()))
    }
}

pub struct Log {
    out: BufWriter<File>,
}

impl Log {
    /// Appends to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = check_output(path).and_then(|()| File::options().create(true).append(true).open(path));
        Ok(Self { out: BufWriter::new(file.map_err(Error::io(path.display().to_string()))?) })
    }

    /// Appends an event. If that fails, the event is lost and serving continues.
    #[allow(clippy::disallowed_methods)] // For the reader of the log.
    pub fn write(&mut self, at: Nanos, client: u64, event: &str, detail: &str) {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let client = if client == u64::MAX { None } else { Some(client) };
        let mut line = json!({"unix_ms": since_1970.as_millis() as u64, "elapsed_ns": at.0, "event": event});
        if let Some(client) = client {
            line["client"] = client.into();
        }
        if !detail.is_empty() {
            line["detail"] = detail.into();
        }
        let _ = writeln!(self.out, "{line}");
    }

    pub fn flush(&mut self) {
        let _ = self.out.flush();
    }
}
