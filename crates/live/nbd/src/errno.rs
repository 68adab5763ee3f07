//! The errors of replies; the specification fixes their numbers on every system.

use std::fmt;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// Operation not permitted: a write to a read-only export.
    Perm,
    /// Input/output error.
    Io,
    /// Cannot allocate memory.
    NoMem,
    /// Invalid argument; also used for numbers that the specification does not name.
    Inval,
    /// No space left on device; also a write beyond the end.
    NoSpc,
    /// Value too large.
    Overflow,
    /// Operation not supported: a fast zeroing that would be slow.
    NotSup,
    /// The server is shutting down.
    Shutdown,
}

const TABLE: [(Errno, u32, &str); 8] = [
    (Errno::Perm, 1, "operation not permitted"),
    (Errno::Io, 5, "input/output error"),
    (Errno::NoMem, 12, "cannot allocate memory"),
    (Errno::Inval, 22, "invalid argument"),
    (Errno::NoSpc, 28, "no space left on device"),
    (Errno::Overflow, 75, "value too large"),
    (Errno::NotSup, 95, "operation not supported"),
    (Errno::Shutdown, 108, "the server is shutting down"),
];

impl Errno {
    fn row(self) -> (Errno, u32, &'static str) {
        *TABLE.iter().find(|row| row.0 == self).expect("every error has a row")
    }

    /// The number on the wire, never zero.
    #[must_use]
    pub fn code(self) -> u32 {
        self.row().1
    }

    /// The error of a number on the wire; `None` for zero, which is success.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Errno> {
        (code != 0).then(|| TABLE.iter().find(|row| row.1 == code).map_or(Errno::Inval, |row| row.0))
    }

    /// The protocol's closest error for a server's own I/O error.
    #[must_use]
    pub fn of(error: &io::Error) -> Errno {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Errno::Perm,
            io::ErrorKind::OutOfMemory => Errno::NoMem,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Errno::NoSpc,
            io::ErrorKind::InvalidInput => Errno::Inval,
            io::ErrorKind::Unsupported => Errno::NotSup,
            _ => Errno::Io,
        }
    }

    /// The corresponding kind of the standard library.
    #[must_use]
    pub fn io_kind(self) -> io::ErrorKind {
        match self {
            Errno::Perm => io::ErrorKind::PermissionDenied,
            Errno::NoMem => io::ErrorKind::OutOfMemory,
            Errno::Inval | Errno::Overflow => io::ErrorKind::InvalidInput,
            Errno::NoSpc => io::ErrorKind::StorageFull,
            Errno::NotSup => io::ErrorKind::Unsupported,
            Errno::Io | Errno::Shutdown => io::ErrorKind::Other,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}
