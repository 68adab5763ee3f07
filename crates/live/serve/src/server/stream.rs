//! Sockets of both kinds, encrypted or not.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstart_nbd::percent_encoded;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use nix::sys::stat::{umask, Mode};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::sockopt::socket_peercred;
use rustls::ServerConfig;

use super::tls::TlsLayer;

/// What a Unix socket holds of replies: a megabyte, or as much as the system allows. TCP chooses for itself.
const UNIX_SEND_BYTES: usize = 1 << 20;

/// Where clients come to.
#[derive(Debug)]
pub enum Listener {
    /// By the network.
    Tcp(TcpListener),
    /// On this machine, through a file, which is removed at the end if it was made here.
    Unix(UnixListener, Option<SocketFile>),
}

/// A socket's file that was made here.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: another server may have put another file in its place since.
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, identity: identity(path)? })
    }

    /// Removes it, unless it is no longer the one that was made here. Its number is not used again while the listener is open.
    fn remove(&self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// A client's connection, encrypted or not.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<TlsLayer>>,
    /// What the handshake has come to has been asked for.
    told: bool,
}

/// What carries it.
#[derive(Debug)]
enum Socket {
    /// By the network.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Listener {
    /// At an address of the network.
    ///
    /// # Errors
    /// It is taken, or not this machine's.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    /// At a path. A socket that nothing listens at any more is replaced.
    ///
    /// # Errors
    /// There is something else, or no such folder.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let bind = || {
            // For this user alone, whatever is written through it: mode 0600.
            let usual = umask(Mode::from_bits_truncate(0o177));
            let listener = UnixListener::bind(path);
            umask(usual);
            listener.and_then(|listener| Ok(Self::Unix(listener, Some(SocketFile::new(path)?))))
        };
        match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                use std::os::unix::fs::FileTypeExt;
                let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
                if !is_socket || std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(error);
                }
                std::fs::remove_file(path)?;
                bind()
            }
            other => other,
        }
    }

    /// The next connection, if there is one.
    ///
    /// # Errors
    /// There is none (`WouldBlock`), or it cannot be taken.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Replies are written as wholes: waiting for more gains nothing.
                let _ = stream.set_nodelay(true);
                Ok(Socket::Tcp(stream).into())
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                // The server is woken anew whenever a client has read what a socket holds.
                let _ = set_socket_send_buffer_size(&stream, UNIX_SEND_BYTES);
                Ok(Socket::Unix(stream).into())
            }
        }
    }

    /// As clients name it; `export` is the name of an export, or empty.
    #[must_use]
    pub fn uri(&self, export: &str, tls: bool) -> String {
        let scheme = if tls { "nbds" } else { "nbd" };
        let export = percent_encoded(export.as_bytes());
        match self {
            Self::Tcp(listener) => {
                let address = listener.local_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
                format!("{scheme}://{address}/{export}")
            }
            Self::Unix(listener, file) => {
                let path = file
                    .as_ref()
                    .map(|file| file.path.clone())
                    .or_else(|| listener.local_addr().ok()?.as_pathname().map(Path::to_owned));
                let path = percent_encoded(path.unwrap_or_default().as_os_str().as_bytes());
                format!("{scheme}+unix:///{export}?socket={path}")
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, Some(file)) = self {
            file.remove();
        }
    }
}

/// Either of both, as one thing.
macro_rules! either {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Tcp($inner) => $call,
            Self::Unix($inner, ..) => $call,
        }
    };
}

macro_rules! source {
    ($kind:ty) => {
        impl Source for $kind {
            fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
                either!(self, inner => inner.register(registry, token, interests))
            }

            fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
                either!(self, inner => inner.reregister(registry, token, interests))
            }

            fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
                either!(self, inner => inner.deregister(registry))
            }
        }
    };
}

source!(Listener);
source!(Socket);

impl From<Socket> for Stream {
    fn from(socket: Socket) -> Self {
        Self { socket, tls: None, told: false }
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, inner => inner.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        either!(self, inner => inner.write(buffer))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, inner => inner.write_vectored(buffers))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// From now on everything is encrypted.
    ///
    /// # Errors
    /// The settings are refused.
    pub fn secure(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::new(config)?));
        Ok(())
    }

    /// Whether it is.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The other end: an address, or a process of this machine.
    #[must_use]
    pub fn peer(&self) -> String {
        match &self.socket {
            Socket::Tcp(socket) => socket.peer_addr().map_or_else(|_| String::new(), |address| address.to_string()),
            Socket::Unix(socket) => socket_peercred(socket).map_or_else(
                |_| String::new(),
                |peer| format!("process {}, user {}", peer.pid.as_raw_nonzero(), peer.uid.as_raw()),
            ),
        }
    }

    /// As [`TlsLayer::described`], once.
    pub fn newly_encrypted(&mut self) -> Option<String> {
        let found = self.tls.as_ref().filter(|_| !self.told)?.described();
        self.told = found.is_some();
        found
    }

    /// Whether something has been taken and not sent.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Says goodbye where the client expects it.
    pub fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.end(&mut self.socket);
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buffer)])
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write_vectored(&mut self.socket, buffers),
            None => self.socket.write_vectored(buffers),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.flush(&mut self.socket),
            None => Ok(()),
        }
    }
}
