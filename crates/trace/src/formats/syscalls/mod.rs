//! What tracers of system calls have in common: descriptors are files, calls on them are requests.
//!
//! - Files are told apart by path. A descriptor's offset is followed from its opening on: reads and writes move it, `lseek`
//!   sets it, `dup`s share it. A child has a copy of its parent's table of descriptors with shared offsets, a thread the same
//!   table (POSIX, fork(2), clone(2)).
//! - read, pread64, readv, preadv, preadv2 and sendfile read; write, pwrite64, writev, pwritev and pwritev2 write. The size is
//!   what was moved, not what was requested. Calls that fail move nothing; calls that move 0 bytes are left out and counted.
//! - Calls on sockets, pipes, terminals and other devices of characters, and on files below /proc and /sys, which no disk holds,
//!   are left out and counted in the note.
//! - Reads through mappings are no calls: mappings of files are counted in the note.
//!
//! Cost: logarithmic in the open descriptors and the files. Memory: those.

mod call;
mod descriptors;
pub(crate) mod perf;
pub(crate) mod strace;

use headstart_types::Nanos;

use call::{descriptor, leading_number, Call};
use descriptors::{Descriptors, Opened, Target};

use super::names::NamedFiles;
use crate::{FileEntry, Record};

/// The calls that were left out, by reason.
#[derive(Debug, Default)]
struct LeftOut {
    /// On sockets, pipes, terminals.
    streams: u64,
    /// On files below /proc and /sys.
    pseudo: u64,
    /// On descriptors whose opening the trace does not show.
    unknown: u64,
    /// On files that were open before; they are kept.
    inherited: u64,
    /// Mappings of files.
    mappings: u64,
    /// Lines that are no calls.
    lines: u64,
}

/// Follows a machine's calls.
#[derive(Debug, Default)]
struct Calls {
    descriptors: Descriptors,
    files: NamedFiles,
    left_out: LeftOut,
    /// Calls that moved 0 bytes.
    skipped: u64,
}

/// How a call names its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// By their places.
    Strace,
    /// By their names, without those that are 0.
    Perf,
}

impl Style {
    fn argument<'a>(self, call: &Call<'a>, index: usize, names: &[&str]) -> &'a str {
        match self {
            Style::Strace => call.at(index),
            Style::Perf => names.iter().find_map(|name| call.named(name)).unwrap_or("0"),
        }
    }

    /// The descriptor that a call is on.
    fn fd<'a>(self, call: &Call<'a>) -> Option<(u32, Option<&'a str>)> {
        descriptor(self.argument(call, 0, &["fd", "fildes"]))
    }
}

impl Calls {
    /// Takes a call of thread `pid` that began at `time` and took `duration`; its record, if it is a request.
    fn take(
        &mut self,
        pid: u32,
        call: &Call,
        style: Style,
        time: Nanos,
        duration: Nanos,
    ) -> Result<Option<Record>, String> {
        let at = |index, names: &[&str]| style.argument(call, index, names);
        let position = |index| leading_number(at(index, &["pos", "pos_l", "offset"]));
        let (write, position) = match call.name {
            "read" | "readv" => (false, None),
            "write" | "writev" => (true, None),
            "pread64" | "pread" | "preadv" | "preadv2" => (false, position(3)),
            "pwrite64" | "pwrite" | "pwritev" | "pwritev2" => (true, position(3)),
            "sendfile" | "sendfile64" => return self.sendfile(pid, call, style, time, duration),
            _ => {
                self.follow(pid, call, style)?;
                return Ok(None);
            }
        };
        let (Some(size), Some((fd, name))) = (call.number(), style.fd(call)) else { return Ok(None) };
        self.request(pid, fd, name, position, size, write, time, duration)
    }

    #[allow(clippy::too_many_arguments)] // One call of one kind; a struct would be built once and taken apart once.
    fn request(
        &mut self,
        pid: u32,
        fd: u32,
        name: Option<&str>,
        position: Option<u64>,
        size: u64,
        write: bool,
        time: Nanos,
        duration: Nanos,
    ) -> Result<Option<Record>, String> {
        if self.descriptors.find(pid, fd).is_none() {
            let Some(name) = name else {
                self.left_out.unknown += 1;
                return Ok(None);
            };
            let opened = self.opened(name)?;
            self.left_out.inherited += u64::from(matches!(opened.target, Target::File(_)));
            self.descriptors.open(pid, fd, opened);
        }
        let Some(opened) = self.descriptors.find(pid, fd) else { return Ok(None) };
        let file = match opened.target {
            Target::File(file) => file,
            Target::Unnamed(number) => {
                // A name that turns up later than the opening.
                let path = name.map_or_else(|| format!("(file {number})"), ToOwned::to_owned);
                let target = self.target(&path)?;
                let Some(opened) = self.descriptors.find(pid, fd) else { return Ok(None) };
                opened.target = target;
                match target {
                    Target::File(file) => file,
                    _ => return Ok(self.leave_out(target)),
                }
            }
            other => return Ok(self.leave_out(other)),
        };
        if size == 0 {
            self.skipped += 1;
            return Ok(None);
        }
        let Some(opened) = self.descriptors.find(pid, fd) else { return Ok(None) };
        let offset = match position {
            Some(position) => position,
            None if write && opened.append => self.files.size_of(file),
            None => opened.offset,
        };
        let end = offset.checked_add(size).ok_or("the end of the request is too large; allowed: below 2^64")?;
        if position.is_none() {
            opened.offset = end;
        }
        let record = Record { time, duration, offset, size, pid, file, write, ..Record::default() };
        self.files.reaches(&record);
        Ok(Some(record))
    }

    fn leave_out(&mut self, target: Target) -> Option<Record> {
        match target {
            Target::Pseudo => self.left_out.pseudo += 1,
            _ => self.left_out.streams += 1,
        }
        None
    }

    /// sendfile reads from its second descriptor.
    fn sendfile(
        &mut self,
        pid: u32,
        call: &Call,
        style: Style,
        time: Nanos,
        duration: Nanos,
    ) -> Result<Option<Record>, String> {
        let source = descriptor(style.argument(call, 1, &["in_fd"]));
        let (Some(size), Some((fd, name))) = (call.number(), source) else { return Ok(None) };
        // "NULL", or "[0] => [4096]".
        let position = leading_number(style.argument(call, 2, &["offset"]).trim_start_matches('['));
        let position = position.filter(|_| style == Style::Strace);
        self.request(pid, fd, name, position, size, false, time, duration)
    }

    /// A call that opens, closes, copies or moves descriptors, or makes processes.
    fn follow(&mut self, pid: u32, call: &Call, style: Style) -> Result<(), String> {
        let Some(result) = call.number() else { return Ok(()) };
        let made = u32::try_from(result).unwrap_or(u32::MAX);
        match call.name {
            "open" | "openat" | "openat2" | "creat" => {
                let named = descriptor(call.result).and_then(|(_, name)| name);
                let at = usize::from(call.name.starts_with("openat"));
                let path = match style {
                    Style::Strace => unquoted(call.at(at)),
                    Style::Perf => call.named("filename").and_then(unquoted),
                };
                let append =
                    (at..at + 3).any(|index| call.at(index).contains("APPEND") && !call.at(index).starts_with('"'));
                let opened = match named.map(str::to_owned).or_else(|| Some(self.within(pid, call, style, path?))) {
                    Some(path) => Opened { append, ..self.opened(&path)? },
                    None => Opened { append, ..self.descriptors.unnamed() },
                };
                self.descriptors.open(pid, made, opened);
            }
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
            "lseek" | "_llseek" => {
                let result = if call.name == "lseek" {
                    Some(result)
                } else {
                    leading_number(call.at(2).trim_start_matches('['))
                };
                let opened = style.fd(call).and_then(|(fd, _)| self.descriptors.find(pid, fd));
                if let (Some(opened), Some(offset)) = (opened, result) {
                    opened.offset = offset;
                }
            }
            "fstat" | "newfstatat" => {
                let known =
                    style.fd(call).and_then(|(fd, _)| self.descriptors.find(pid, fd)).map(|opened| opened.target);
                let size = (1..3).find_map(|index| call.at(index).split("st_size=").nth(1)).and_then(leading_number);
                if let (Some(Target::File(file)), Some(size)) = (known, size) {
                    self.files.has_size(file, size);
                }
            }
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
                // perf does not show the flags of clone3, by which the C library makes threads.
                let thread = style == Style::Perf && call.name == "clone3";
                let shares = thread
                    || (0..4).any(|index| call.at(index).contains("CLONE_FILES") || call.at(index).contains("|FILES"));
                self.descriptors.begin(made, Some(pid), shares);
            }
            _ => {}
        }
        Ok(())
    }

    /// The path that a call opens: below the directory that it names by a descriptor, if it is relative to one.
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

    /// What a path leads to.
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

    /// What was left out, in words.
    fn note(&self, more: Option<&str>) -> Option<String> {
        let LeftOut { streams, pseudo, unknown, inherited, mappings, lines } = self.left_out;
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
            (mappings, "mappings of files: #; what is read through them is in no trace of system calls"),
            (inherited, "descriptors open before the trace began: #; their offsets count from their first use"),
            (lines, "lines passed over that are no system calls: #"),
        ];
        let calls = if calls.is_empty() { calls } else { format!("calls left out: {calls}") };
        let parts = [more.unwrap_or_default().to_owned(), calls, listed(&others, "; ")];
        let note = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        (!note.is_empty()).then_some(note)
    }
}

/// What stands in quotes.
fn unquoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}
