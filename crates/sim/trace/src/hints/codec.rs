//! The encoding of a recording: a line of JSON for people and tools, then columns of variable-length numbers compressed
//! with zstd, whose checksum shows whether the file is complete. Specified in docs/hints-format.md.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{About, FileKind, Read, ReadKind, RecordedFile, RecordedProcess, Recording, FILES_MAX, READS_MAX, VERSION};
use crate::convert::Pending;
use crate::{ErrorPosition, Source, TraceError};

/// The prefix of a recording; the version follows.
pub const MAGIC: &[u8] = b"headstart-hints ";
/// Maximum length of the first line.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum length of a path or name.
const TEXT_BYTES_MAX: u64 = 1 << 16;
/// Smallest and largest page size of any machine.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 512..=(1 << 24);
/// The allowed input, for error texts.
const ALLOWED: &str = "a recording of `headstart record`";

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    about: About,
    processes: u64,
    files: u64,
    reads: u64,
}

pub(super) fn write(recording: &Recording, path: &Path) -> Result<(), TraceError> {
    let (pending, file) = Pending::create(path)?;
    let mut out = BufWriter::new(file);
    encode(recording, &mut out).and_then(|()| out.flush()).map_err(|error| pending.error(error))?;
    pending.place()
}

pub(super) fn encode(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    let Recording { about, processes, files, reads } = recording;
    let count = |length: usize| length as u64;
    let header = Header {
        about: about.clone(),
        processes: count(processes.len()),
        files: count(files.len()),
        reads: count(reads.len()),
    };
    out.write_all(MAGIC)?;
    writeln!(out, "{VERSION} {}", serde_json::to_string(&header)?)?;
    let mut packed = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    packed.include_checksum(true)?;
    let mut body = Vec::new();
    for RecordedProcess { pid, name } in processes {
        put(&mut body, u64::from(*pid));
        put_text(&mut body, name.as_bytes());
    }
    for file in files {
        put(&mut body, file.kind as u64);
        put(&mut body, u64::from(file.major));
        put(&mut body, u64::from(file.minor));
        put(&mut body, file.inode);
        put(&mut body, file.size_bytes);
        put(&mut body, zigzag(file.mtime_ns));
        put_text(&mut body, file.path.as_os_str().as_bytes());
    }
    reads.iter().for_each(|read| put(&mut body, (read.kind as u64) << 1 | u64::from(read.hit)));
    let mut last_ns = 0;
    for read in reads {
        put(&mut body, read.time_ns.checked_sub(last_ns).expect("reads are in order of time"));
        last_ns = read.time_ns;
    }
    reads.iter().for_each(|read| put(&mut body, read.wait_ns));
    for read in reads {
        assert!((read.process as usize) < processes.len(), "a read's process is in the table");
        put(&mut body, u64::from(read.process));
    }
    let mut last_file = 0;
    for read in reads {
        assert!((read.file as usize) < files.len(), "a read's file is in the table");
        put(&mut body, zigzag(i64::from(read.file) - last_file));
        last_file = i64::from(read.file);
    }
    let mut ends = vec![0u64; files.len()];
    for read in reads {
        let end = &mut ends[read.file as usize];
        put(&mut body, zigzag(read.start.wrapping_sub(*end) as i64));
        *end = read.end();
    }
    for read in reads {
        put(&mut body, u64::from(read.pages).checked_sub(1).expect("a read has pages"));
    }
    packed.write_all(&body)?;
    packed.finish()?.flush()
}

pub(super) fn decode(source: Source) -> Result<Recording, TraceError> {
    let path = source.name().to_owned();
    let bad = |problem: String| TraceError::Bad { file: path.clone(), place: ErrorPosition::File, problem };
    if !source.head().starts_with(MAGIC) {
        return Err(bad(format!("is not a recording; allowed: {ALLOWED}")));
    }
    let mut input = BufReader::new(Input { source, failed: None });
    let line = first_line(&mut input).map_err(|problem| input.get_mut().problem(&path, problem))?;
    let line = &line[MAGIC.len()..];
    let (version, json) = line.split_once(' ').unwrap_or((line, ""));
    if version != VERSION.to_string() {
        return Err(bad(format!("the version is {version}; allowed: {VERSION}")));
    }
    let header: Header = serde_json::from_str(json)
        .map_err(|error| bad(format!("the first line is damaged ({error}); allowed: {ALLOWED}")))?;
    check(&header).map_err(bad)?;
    let mut body = Body {
        input: match zstd::stream::read::Decoder::with_buffer(&mut input) {
            Ok(decoder) => BufReader::new(decoder.single_frame()),
            Err(error) => return Err(bad(format!("is damaged ({error}); allowed: {ALLOWED}"))),
        },
    };
    let decoded = body.recording(header);
    drop(body);
    let decoded = decoded.and_then(|recording| ended(&mut input).map(|()| recording));
    decoded.map_err(|problem| input.get_mut().problem(&path, problem))
}

fn check(header: &Header) -> Result<(), String> {
    let Header { about, processes, files, reads } = header;
    if !PAGE_BYTES.contains(&about.page_bytes) || !about.page_bytes.is_power_of_two() {
        return Err(format!("page_bytes is {}; allowed: a power of two from 512 to 16777216", about.page_bytes));
    }
    for (name, count, most) in
        [("processes", processes, FILES_MAX), ("files", files, FILES_MAX), ("reads", reads, READS_MAX)]
    {
        if *count > most {
            return Err(format!("{name} is {count}; allowed: up to {most}"));
        }
    }
    Ok(())
}

/// Makes a [`Source`] readable through the standard library's traits. Its own errors, which name the file, are kept.
struct Input {
    source: Source,
    failed: Option<TraceError>,
}

impl Input {
    /// The error of the source if it failed, otherwise `problem`.
    fn problem(&mut self, path: &Path, problem: String) -> TraceError {
        let bad = || TraceError::Bad { file: path.to_owned(), place: ErrorPosition::File, problem };
        self.failed.take().unwrap_or_else(bad)
    }
}

impl io::Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.source.read(into).map_err(|error| {
            self.failed = Some(error);
            io::ErrorKind::Other.into()
        })
    }
}

fn first_line(input: &mut impl BufRead) -> Result<String, String> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    if line.pop() != Some(b'\n') {
        return Err(format!("is truncated; allowed: {ALLOWED}"));
    }
    String::from_utf8(line).map_err(|_| format!("the first line is damaged (not UTF-8); allowed: {ALLOWED}"))
}

/// Checks that the input ends here. This also verifies the frame's checksum.
fn ended(input: &mut impl BufRead) -> Result<(), String> {
    match input.fill_buf() {
        Ok([]) => Ok(()),
        Ok(_) => Err(format!("there are bytes after the reads; allowed: {ALLOWED}")),
        Err(error) => Err(damaged(&error)),
    }
}

/// The numbers after the first line.
struct Body<R> {
    input: R,
}

impl<R: BufRead> Body<R> {
    fn recording(&mut self, header: Header) -> Result<Recording, String> {
        let mut processes = Vec::new();
        for _ in 0..header.processes {
            let pid = self.small("pid")?;
            let name = self.text()?;
            processes.push(RecordedProcess { pid, name: String::from_utf8_lossy(&name).into_owned() });
        }
        let mut files = Vec::new();
        for _ in 0..header.files {
            files.push(self.file()?);
        }
        let reads = self.reads(header.reads, &header.about, processes.len(), files.len())?;
        ended(&mut self.input)?;
        Ok(Recording { about: header.about, processes, files, reads })
    }

    fn file(&mut self) -> Result<RecordedFile, String> {
        let kind = self.number()?;
        let kind = usize::try_from(kind).ok().and_then(|kind| FileKind::ALL.get(kind)).copied();
        Ok(RecordedFile {
            kind: kind.ok_or_else(|| wrong("a file's kind"))?,
            major: self.small("a device")?,
            minor: self.small("a device")?,
            inode: self.number()?,
            size_bytes: self.number()?,
            mtime_ns: unzigzag(self.number()?),
            path: OsStr::from_bytes(&self.text()?).into(),
        })
    }

    fn reads(&mut self, count: u64, about: &About, processes: usize, files: usize) -> Result<Vec<Read>, String> {
        let mut reads = Vec::new();
        for _ in 0..count {
            let flags = self.number()?;
            let kind = usize::try_from(flags >> 1).ok().and_then(|kind| ReadKind::ALL.get(kind)).copied();
            let kind = kind.ok_or_else(|| wrong("a read's kind"))?;
            reads.push(Read {
                time_ns: 0,
                wait_ns: 0,
                start: 0,
                pages: 0,
                process: 0,
                file: 0,
                kind,
                hit: flags & 1 == 1,
            });
        }
        let mut last_ns = 0u64;
        for read in &mut reads {
            last_ns = last_ns.checked_add(self.number()?).ok_or_else(|| wrong("a time"))?;
            read.time_ns = last_ns;
        }
        for read in &mut reads {
            read.wait_ns = self.number()?;
        }
        for read in &mut reads {
            read.process = self.small("a process")?;
            index(read.process, processes, "process")?;
        }
        let mut last_file = 0i64;
        for read in &mut reads {
            last_file = last_file.checked_add(unzigzag(self.number()?)).ok_or_else(|| wrong("a file"))?;
            read.file = u32::try_from(last_file).map_err(|_| wrong("a file"))?;
            index(read.file, files, "file")?;
        }
        // The number of pages is only known after all starts.
        let mut steps = Vec::new();
        for _ in 0..reads.len() {
            steps.push(unzigzag(self.number()?));
        }
        let mut ends = vec![0u64; files];
        let pages_max = u64::MAX / about.page_bytes;
        for (read, step) in reads.iter_mut().zip(steps) {
            let end = &mut ends[read.file as usize];
            read.start = end.wrapping_add_signed(step);
            read.pages = self.small("a read's length")?.checked_add(1).ok_or_else(|| wrong("a read's length"))?;
            *end = read
                .start
                .checked_add(read.pages.into())
                .filter(|end| *end < pages_max)
                .ok_or_else(|| wrong("a page"))?;
        }
        Ok(reads)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.input.read_exact(&mut byte).map_err(|error| damaged(&error))?;
            let bits = u64::from(byte[0] & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(wrong("a number"))
    }

    fn small(&mut self, what: &str) -> Result<u32, String> {
        u32::try_from(self.number()?).map_err(|_| wrong(what))
    }

    fn text(&mut self) -> Result<Vec<u8>, String> {
        let length = self.number()?;
        if length > TEXT_BYTES_MAX {
            return Err(wrong("the length of a path"));
        }
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes).map_err(|error| damaged(&error))?;
        Ok(bytes)
    }
}

fn index(at: u32, rows: usize, what: &str) -> Result<(), String> {
    if (at as usize) < rows {
        return Ok(());
    }
    Err(format!("a read refers to {what} {at} of {rows}; allowed: {ALLOWED}"))
}

fn wrong(what: &str) -> String {
    format!("is damaged: {what} is out of range; allowed: {ALLOWED}")
}

fn damaged(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("is truncated; allowed: {ALLOWED}"),
        _ => format!("is damaged ({error}); allowed: {ALLOWED}"),
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Maps numbers of small magnitude, positive or negative, to small numbers.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
