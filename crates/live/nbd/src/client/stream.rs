//! A connection, optionally over TLS. One thread reads while others write.

use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::ClientConnection;

use super::socket::Socket;
use super::trust;
use crate::{Address, Trust};

/// Bytes per read of the socket: a TLS record and its header.
const ENCRYPTED_BYTES: usize = (16 << 10) + 256;

#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    tls: Option<Layer>,
}

/// TLS between the socket and the protocol. No thread holds `connection` while it waits for the socket.
#[derive(Debug)]
struct Layer {
    connection: Mutex<ClientConnection>,
    /// Received bytes that are not decrypted yet; used by the reader.
    received: Mutex<Received>,
    /// Encrypted bytes to send; locked from encrypting until sent, since records are ordered.
    leaving: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct Received {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
}

/// Ignores poisoning: a panic of rustls under the lock ends the connection anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Stream {
    /// Connects. `until` is the deadline of everything until [`Stream::set_until`] changes it.
    pub fn connect(address: &Address, until: Instant) -> io::Result<Self> {
        Ok(Self { socket: Socket::connect(address, until)?, tls: None })
    }

    /// Sets the deadline of reads and writes.
    pub fn set_until(&mut self, until: Option<Instant>) {
        self.socket.set_until(until);
    }

    /// Encrypts everything from now on, after verifying the server against `trust`.
    pub fn secure(&mut self, trust: &Trust) -> io::Result<()> {
        let name = ServerName::try_from(trust.host.clone()).map_err(broken)?;
        let mut connection = ClientConnection::new(trust::config(trust).map_err(broken)?, name).map_err(broken)?;
        connection.complete_io(&mut &self.socket)?;
        let received = Received { bytes: vec![0; ENCRYPTED_BYTES].into(), begin: 0, end: 0 };
        self.tls = Some(Layer {
            connection: Mutex::new(connection),
            received: Mutex::new(received),
            leaving: Mutex::default(),
        });
        Ok(())
    }

    /// Sets the maximum time of one read and one write of the socket.
    pub fn set_time_max(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        self.socket.set_time_max(read, write)
    }

    /// Interrupts reads and writes of all threads.
    pub fn shut_down(&self) {
        self.socket.shut_down();
    }
}

impl Layer {
    fn read(&self, mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let mut received = locked(&self.received);
        loop {
            match locked(&self.connection).reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Servers may disconnect without a close notification.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            let Received { bytes, begin, end } = &mut *received;
            if begin == end {
                (*begin, *end) = (0, socket.read(bytes)?);
            }
            let mut connection = locked(&self.connection);
            *begin += connection.read_tls(&mut &bytes[*begin..*end])?;
            // TLS messages in response leave with the next request.
            connection.process_new_packets().map_err(broken)?;
        }
    }

    fn write(&self, mut socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut leaving = locked(&self.leaving);
        leaving.clear();
        let mut connection = locked(&self.connection);
        let taken = connection.writer().write(bytes)?;
        while connection.wants_write() {
            connection.write_tls(&mut *leaving)?;
        }
        drop(connection);
        socket.write_all(&leaving)?;
        Ok(taken)
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.tls {
            Some(layer) => layer.read(&self.socket, buffer),
            None => (&self.socket).read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.tls {
            Some(layer) => layer.write(&self.socket, bytes),
            None => (&self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
