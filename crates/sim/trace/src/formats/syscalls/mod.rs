//! Common to the tracers of system calls: descriptors refer to files, and calls on them are requests.
//!
//! - Files are distinguished by path. A descriptor's offset is tracked from its opening on: reads and writes advance
//!   it, `lseek` sets it, `dup`s share it. A child has a copy of its parent's descriptor table with shared offsets, a
//!   thread shares the table (POSIX, fork(2), clone(2)).
//! - read, pread64, readv, preadv and preadv2 read; write, pwrite64, writev, pwritev and pwritev2 write; sendfile,
//!   splice and copy_file_range read from one descriptor and write to another (`transfer`); io_submit submits a list of
//!   requests (`aio`). The size is what was moved, not what was requested. Failed calls move nothing; calls that move 0
//!   bytes are skipped and counted.
//! - A write to a file that was opened for appending goes to its end, including pwrite64, as in Linux.
//! - Calls on sockets, pipes, terminals and other character devices, and on files below /proc and /sys, which are not
//!   on disk, are skipped and counted in the note.
//! - Reads through mappings and through io_uring are not calls: both are counted in the note.
//!
//! Cost and memory: logarithmic and linear in the open descriptors and files.

mod aio;
mod call;
mod descriptors;
pub(crate) mod perf;
pub(crate) mod strace;
mod transfer;

use std::collections::{BTreeMap, VecDeque};

use headstart_types::Nanos;

use call::{descriptor, leading_number, Call};
use descriptors::{Descriptors, Opened, Target};

use super::names::NamedFiles;
use crate::{FileEntry, Record};

/// The skipped calls, by reason.
#[derive(Debug, Default)]
struct LeftOut {
    /// On sockets, pipes, terminals.
    streams: u64,
    /// On files below /proc and /sys.
    pseudo: u64,
    /// On descriptors whose opening is not in the trace.
    unknown: u64,
    /// On files that were already open when the trace began; they are kept.
    inherited: u64,
    /// Mappings of files.
    mappings: u64,
    /// Calls on io_uring rings.
    rings: u64,
    /// Requests submitted by io_submit that the tracer does not show.
    hidden: u64,
    /// Lines that are not calls.
    lines: u64,
}

/// Tracks a machine's system calls.
#[derive(Debug, Default)]
struct Calls {
    descriptors: Descriptors,
    files: NamedFiles,
    /// The current ends of files, as far as known from the trace.
    ends: BTreeMap<u32, u64>,
    submitted: aio::Submitted,
    /// Requests not emitted yet.
    out: VecDeque<Record>,
    left_out: LeftOut,
    skipped: u64,
}

/// The thread of a call, its start and duration.
#[derive(Debug, Clone, Copy)]
struct Issued {
    pid: u32,
    time: Nanos,
    duration: Nanos,
}

/// The descriptor and position that a call reads or writes.
#[derive(Debug, Clone, Copy)]
struct End<'a> {
    fd: u32,
    name: Option<&'a str>,
    place: FileOffset,
}

#[derive(Debug, Clone, Copy)]
enum FileOffset {
    /// At the descriptor's offset, which moves.
    Offset,
    /// At this offset; the descriptor's offset does not move.
    At(u64),
    /// At an offset that the tracer does not show; the descriptor's offset does not move.
    Hidden,
}

/// How a tracer prints arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// By position.
    Strace,
    /// By name, omitting those that are 0.
    Perf,
}

impl Style {
    fn argument<'a>(self, call: &Call<'a>, index: usize, names: &[&str]) -> &'a str {
        match self {
            Style::Strace => call.at(index),
            Style::Perf => names.iter().find_map(|name| call.named(name)).unwrap_or("0"),
        }
    }

    /// The descriptor of a call.
    fn fd<'a>(self, call: &Call<'a>) -> Option<(u32, Option<&'a str>)> {
        descriptor(self.argument(call, 0, &["fd", "fildes"]))
    }
}

impl Calls {
    /// Processes a call; [`Calls::pop`] returns the resulting requests.
    fn take(&mut self, issued: Issued, call: &Call, style: Style) -> Result<(), String> {
        self.give_up(issued.time);
        let (write, placed) = match call.name {
            "read" | "readv" => (false, false),
            "write" | "writev" => (true, false),
            "pread64" | "pread" | "preadv" | "preadv2" => (false, true),
            "pwrite64" | "pwrite" | "pwritev" | "pwritev2" => (true, true),
            "sendfile" | "sendfile64" | "splice" | "copy_file_range" | "tee" | "vmsplice" => {
                return self.transfer(issued, call, style);
            }
            "io_submit" => return self.submit(issued, call, style),
            "io_getevents" | "io_pgetevents" | "io_getevents_time64" | "io_pgetevents_time64" => {
                self.collect(issued, call);
                return Ok(());
            }
            "io_destroy" => {
                self.destroy(call);
                return Ok(());
            }
            name => {
                self.left_out.rings += u64::from(name.starts_with("io_uring_"));
                return self.follow(issued.pid, call, style);
            }
        };
        let (Some(size), Some((fd, name))) = (call.number(), style.fd(call)) else { return Ok(()) };
        // preadv2 and pwritev2 use the descriptor's offset if given -1.
        let position = placed.then(|| leading_number(style.argument(call, 3, &["pos", "pos_l", "offset"]))).flatten();
        let place = position.map_or(FileOffset::Offset, FileOffset::At);
        let appends = call.name == "pwritev2" && (4..6).any(|index| call.at(index).contains("RWF_APPEND"));
        match self.target_of(issued.pid, End { fd, name, place })? {
            Some(Target::File(_)) if size == 0 => self.skipped += 1,
            Some(Target::File(file)) => {
                let record = self.request(issued, End { fd, name, place }, file, size, write, appends)?;
                self.give(record);
            }
            other => self.leave_out(other),
        }
        Ok(())
    }

    /// The next request, if there is one.
    fn pop(&mut self) -> Option<Record> {
        self.out.pop_front()
    }

    /// Emits a request.
    fn give(&mut self, record: Record) {
        let end = self.ends.entry(record.file).or_default();
        *end = (*end).max(record.offset + record.size);
        self.files.reaches(&record);
        self.out.push_back(record);
    }

    /// The target of a descriptor; `None` if the trace shows neither its opening nor its name.
    fn target_of(&mut self, pid: u32, end: End) -> Result<Option<Target>, String> {
        let End { fd, name, .. } = end;
        if self.descriptors.find(pid, fd).is_none() {
            let Some(name) = name else { return Ok(None) };
            let opened = self.opened(name)?;
            self.left_out.inherited += u64::from(matches!(opened.target, Target::File(_)));
            self.descriptors.open(pid, fd, opened);
        }
        let Some(opened) = self.descriptors.find(pid, fd) else { return Ok(None) };
        let Target::Unnamed(number) = opened.target else { return Ok(Some(opened.target)) };
        // The name may appear later than the opening.
        let path = name.map_or_else(|| format!("(file {number})"), ToOwned::to_owned);
        let target = self.target(&path)?;
        if let Some(opened) = self.descriptors.find(pid, fd) {
            opened.target = target;
        }
        Ok(Some(target))
    }

    /// Adds a request of `size` bytes of `file` at `end`; `appends` if the call itself writes at the end of the file.
    fn request(
        &mut self,
        issued: Issued,
        end: End,
        file: u32,
        size: u64,
        write: bool,
        appends: bool,
    ) -> Result<Record, String> {
        let Issued { pid, time, duration } = issued;
        let at_end = self.ends.get(&file).copied().unwrap_or_default();
        let mut unknown = Opened::of(Target::File(file));
        let opened = self.descriptors.find(pid, end.fd).unwrap_or(&mut unknown);
        let offset = match end.place {
            _ if write && (opened.append || appends) => at_end,
            FileOffset::At(position) => position,
            FileOffset::Offset | FileOffset::Hidden => opened.offset,
        };
        let after = offset.checked_add(size).ok_or("the end of the request is too large; allowed: below 2^64")?;
        if matches!(end.place, FileOffset::Offset) {
            opened.offset = after;
        }
        Ok(Record { time, duration, offset, size, pid, file, write, ..Record::default() })
    }

    fn leave_out(&mut self, target: Option<Target>) {
        let LeftOut { streams, pseudo, unknown, .. } = &mut self.left_out;
        *match target {
            None => unknown,
            Some(Target::Pseudo) => pseudo,
            Some(_) => streams,
        } += 1;
    }

    /// Processes a call that opens, closes, copies or moves descriptors, or creates processes.
    fn follow(&mut self, pid: u32, call: &Call, style: Style) -> Result<(), String> {
        let Some(result) = call.number() else { return Ok(()) };
        let made = u32::try_from(result).unwrap_or(u32::MAX);
        match call.name {
            "open" | "openat" | "openat2" | "creat" => self.opens(pid, call, style, made)?,
            "close" => {
                if let Some((fd, _)) = style.fd(call) {
                    self.descriptors.close(pid, fd);
                }
            }
            "dup" | "dup2" | "dup3" => {
                if let Some((fd, _)) = descriptor(style.argument(call, 0, &["fildes", "oldfd", "fd"])) {
                    self.descriptors.copy(pid, fd, made);
                }
            }
            "fcntl" | "fcntl64" if style.argument(call, 1, &["cmd"]).contains("DUPFD") => {
                if let Some((fd, _)) = style.fd(call) {
                    self.descriptors.copy(pid, fd, made);
                }
            }
            "fcntl" | "fcntl64" if style.argument(call, 1, &["cmd"]).contains("SETFL") => {
                let append = style.argument(call, 2, &["arg"]).contains("APPEND");
                let opened = style.fd(call).and_then(|(fd, _)| self.descriptors.find(pid, fd));
                if let Some(opened) = opened {
                    opened.append = append;
                }
            }
            "ftruncate" | "ftruncate64" => {
                let length = leading_number(style.argument(call, 1, &["length"]));
                self.has_size(pid, call, style, length);
            }
            "fstat" | "newfstatat" => {
                let told = (1..3).find_map(|index| call.at(index).split("st_size=").nth(1));
                if let Some((file, size)) = self.has_size(pid, call, style, told.and_then(leading_number)) {
                    self.files.has_size(file, size);
                }
            }
            "lseek" => self.moves(pid, call, style, Some(result)),
            "_llseek" => self.moves(pid, call, style, leading_number(call.at(2).trim_start_matches('['))),
            "mmap" | "mmap2" => {
                let of_file = descriptor(style.argument(call, 4, &["fd"])).is_some()
                    && (style == Style::Strace || call.named("fd").is_some());
                self.left_out.mappings += u64::from(of_file);
            }
            "pipe" | "pipe2" | "socketpair" => {
                let pair = call.at(if call.name == "socketpair" { 3 } else { 0 });
                for fd in pair.trim_matches(['[', ']']).split(", ").filter_map(descriptor) {
                    self.descriptors.open(pid, fd.0, Opened::of(Target::Stream));
                }
            }
            "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "epoll_create" | "epoll_create1"
            | "timerfd_create" | "signalfd4" | "inotify_init1" | "memfd_create" | "userfaultfd" | "perf_event_open"
            | "pidfd_open" => {
                self.descriptors.open(pid, made, Opened::of(Target::Stream));
            }
            "clone" | "clone3" | "fork" | "vfork" if result > 0 => {
                // perf does not show the flags of clone3, with which the C library creates threads.
                let thread = style == Style::Perf && call.name == "clone3";
                let shares = thread
                    || (0..4).any(|index| call.at(index).contains("CLONE_FILES") || call.at(index).contains("|FILES"));
                self.descriptors.begin(made, Some(pid), shares);
            }
            _ => {}
        }
        Ok(())
    }

    /// Follows a call that opens a file as the descriptor `made`.
    fn opens(&mut self, pid: u32, call: &Call, style: Style, made: u32) -> Result<(), String> {
        let named = descriptor(call.result).and_then(|(_, name)| name);
        let at = usize::from(call.name.starts_with("openat"));
        let path = match style {
            Style::Strace => unquoted(call.at(at)),
            Style::Perf => call.named("filename").and_then(unquoted),
        };
        let flag = |name| (at..at + 3).any(|index| call.at(index).contains(name) && !call.at(index).starts_with('"'));
        let append = flag("APPEND");
        let opened = match named.map(str::to_owned).or_else(|| Some(self.within(pid, call, style, path?))) {
            Some(path) => Opened { append, ..self.opened(&path)? },
            None => Opened { append, ..self.descriptors.unnamed() },
        };
        if let Target::File(file) = opened.target {
            if flag("TRUNC") || call.name == "creat" {
                self.ends.insert(file, 0);
            }
        }
        self.descriptors.open(pid, made, opened);
        Ok(())
    }

    /// Notes the size of the file of a call's descriptor, if both are known, and returns them.
    fn has_size(&mut self, pid: u32, call: &Call, style: Style, size: Option<u64>) -> Option<(u32, u64)> {
        let (fd, _) = style.fd(call)?;
        let Target::File(file) = self.descriptors.find(pid, fd)?.target else { return None };
        self.ends.insert(file, size?);
        Some((file, size?))
    }

    /// Notes the position of a call's descriptor.
    fn moves(&mut self, pid: u32, call: &Call, style: Style, offset: Option<u64>) {
        let opened = style.fd(call).and_then(|(fd, _)| self.descriptors.find(pid, fd));
        if let (Some(opened), Some(offset)) = (opened, offset) {
            opened.offset = offset;
        }
    }

    /// The path that a call opens; a relative path is resolved against the directory's descriptor if the call has one.
    fn within(&mut self, pid: u32, call: &Call, style: Style, path: &str) -> String {
        let directory = descriptor(style.argument(call, 0, &["dfd"]));
        let Some((fd, name)) = directory.filter(|_| call.name != "open" && !path.starts_with('/')) else {
            return path.to_owned();
        };
        let known = match self.descriptors.find(pid, fd).map(|opened| opened.target) {
            Some(Target::File(file)) => self.files.entries().get(file as usize).map(|entry| entry.path.as_str()),
            _ => None,
        };
        name.or(known).map_or_else(|| path.to_owned(), |directory| format!("{directory}/{path}"))
    }

    fn opened(&mut self, path: &str) -> Result<Opened, String> {
        self.target(path).map(Opened::of)
    }

    /// The target of a path.
    fn target(&mut self, path: &str) -> Result<Target, String> {
        const CHARACTERS: [&str; 9] = ["tty", "pts/", "null", "zero", "full", "random", "urandom", "ptmx", "console"];
        let below = |root: &str| path.strip_prefix(root);
        Ok(if below("/proc/").is_some() || below("/sys/").is_some() {
            Target::Pseudo
        } else if below("/dev/").is_some_and(|rest| CHARACTERS.iter().any(|name| rest.starts_with(name)))
            || path.contains("<char ")
            // "socket:[123]", "pipe:[123]", "TCP:[...]", "anon_inode:[eventpoll]"
            || !path.starts_with('/') && path.split_once(':').is_some_and(|(_, rest)| rest.starts_with('['))
            || path.starts_with("anon_inode:")
            || path.starts_with("/memfd:")
        {
            Target::Stream
        } else {
            // "/dev/sda<block 8:0>"
            let path = path.split_once("<block ").map_or(path, |(path, _)| path);
            Target::File(self.files.number(path.as_bytes())?)
        })
    }

    fn files(&self) -> &[FileEntry] {
        self.files.entries()
    }

    /// The note about what was skipped.
    fn note(&self, more: Option<&str>) -> Option<String> {
        let LeftOut { streams, pseudo, unknown, inherited, mappings, rings, hidden, lines } = self.left_out;
        let listed = |parts: &[(u64, &str)], between: &str| {
            let parts = parts.iter().filter(|(count, _)| *count > 0);
            parts.map(|(count, what)| what.replace('#', &count.to_string())).collect::<Vec<_>>().join(between)
        };
        let calls = [
            (streams, "# on sockets, pipes, terminals and other streams"),
            (pseudo, "# on /proc and /sys"),
            (unknown, "# on descriptors whose opening was not traced (strace -y names them)"),
        ];
        let calls = listed(&calls, ", ");
        let others = [
            (mappings, "mappings of files: #"),
            (1, "traces of system calls do not show reads through mappings: headstart record does, cached or not"),
            (rings, "calls on rings of io_uring: #; traces of system calls do not show their reads and writes"),
            (hidden, "requests of io_submit that the trace does not show: # (strace -v shows all)"),
            (inherited, "descriptors open before the trace began: #; their offsets count from their first use"),
            (lines, "skipped lines that are not system calls: #"),
        ];
        let calls = if calls.is_empty() { calls } else { format!("skipped calls: {calls}") };
        let parts = [more.unwrap_or_default().to_owned(), calls, listed(&others, "; ")];
        let note = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        (!note.is_empty()).then_some(note)
    }
}

/// The text between quotes.
fn unquoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}
