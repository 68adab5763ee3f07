//! A connected socket, TCP or Unix, with a deadline for reads and writes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{self, sockopt, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::now;
use crate::Address;

/// A silent host is probed after this time, then at this interval, and is lost after this many probes without an
/// answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_COUNT: u32 = 4;
/// Maximum time in ms that sent bytes may stay unacknowledged: as long as all probes take.
const UNACKNOWLEDGED_MS: u32 = 30_000;

#[derive(Debug)]
pub(super) struct Socket {
    stream: Kind,
    /// Deadline after which reads and writes fail, even with data pending.
    until: Option<Instant>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The time left until `until`; an error if there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

impl Socket {
    /// Connects. `until` is the deadline of everything until [`Socket::set_until`] changes it.
    pub fn connect(address: &Address, until: Instant) -> io::Result<Socket> {
        let stream = match address {
            Address::Unix(path) => Kind::Unix(connect_unix(path, until)?),
            Address::Tcp(host, port) => Kind::Tcp(connect_tcp(host, *port, until)?),
        };
        Ok(Socket { stream, until: Some(until) })
    }

    /// Sets the deadline of reads and writes.
    pub fn set_until(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// Sets the maximum time of one read and one write.
    pub fn set_time_max(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Kind::Tcp(stream) => stream.set_read_timeout(read).and(stream.set_write_timeout(write)),
            Kind::Unix(stream) => stream.set_read_timeout(read).and(stream.set_write_timeout(write)),
        }
    }

    fn limit(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = Some(left(until)?);
        self.set_time_max(left, left)
    }

    /// Interrupts reads and writes of all threads.
    pub fn shut_down(&self) {
        _ = match &self.stream {
            Kind::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Kind::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Connecting blocks, too, if the queue of a server that does not accept is full.
fn connect_unix(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(left(until)?))?;
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Tries each address of the host.
fn connect_tcp(host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A host that has disappeared sends nothing: without this, its connection would stay for hours.
fn keep_alive(stream: impl AsFd) -> io::Result<()> {
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_COUNT)?;
    Ok(sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS)?)
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        match &self.stream {
            Kind::Tcp(stream) => (&mut &*stream).read(buffer),
            Kind::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        match &self.stream {
            Kind::Tcp(stream) => (&mut &*stream).write(bytes),
            Kind::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
