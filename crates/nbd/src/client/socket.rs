//! A connected socket, TCP or Unix.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::Address;

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects within `time_max` for each address that a name has.
    pub fn connect(address: &Address, time_max: Duration) -> io::Result<Socket> {
        let stream = match address {
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Address::Tcp(host, port) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                let found = (host.as_str(), *port).to_socket_addrs()?.find_map(|address| {
                    TcpStream::connect_timeout(&address, time_max).map_err(|error| last = error).ok()
                });
                let stream = found.ok_or(last)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        stream.set_time_max(Some(time_max))?;
        Ok(stream)
    }

    /// How long one read or write may take.
    pub fn set_time_max(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(time).and(stream.set_write_timeout(time)),
            Socket::Unix(stream) => stream.set_read_timeout(time).and(stream.set_write_timeout(time)),
        }
    }

    /// Ends reads and writes of every thread.
    pub fn shut_down(&self) {
        _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).read(buffer),
            Socket::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
