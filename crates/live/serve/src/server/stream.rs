//! Sockets of both kinds, optionally encrypted.

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

/// Send buffer of a Unix socket: a megabyte, or as much as the system allows. TCP chooses its own.
const UNIX_SEND_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub enum Listener {
    /// A network address.
    Tcp(TcpListener),
    /// A Unix socket; its file is removed at the end if it was created here.
    Unix(UnixListener, Option<SocketFile>),
}

/// The file of a socket that was created here.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: another server may have replaced the file since.
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, identity: identity(path)? })
    }

    /// Removes the file unless it was replaced. Its inode number is not reused while the listener is open.
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

#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<TlsLayer>>,
    /// The result of the handshake was reported.
    told: bool,
}

/// The transport.
#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens at a network address.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    /// Listens at a path. Replaces a socket without a listener.
    ///
    /// # Errors
    /// Another file has this path, or the folder does not exist.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let bind = || {
            // Mode 0600: only this user may connect, whatever the export allows.
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

    /// The next connection.
    ///
    /// # Errors
    /// There is none (`WouldBlock`), or it cannot be accepted.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Replies are written as a whole, so delaying them gains nothing.
                let _ = stream.set_nodelay(true);
                Ok(Socket::Tcp(stream).into())
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                // A larger buffer, since the server is woken whenever a client has emptied it.
                let _ = set_socket_send_buffer_size(&stream, UNIX_SEND_BYTES);
                Ok(Socket::Unix(stream).into())
            }
        }
    }

    /// The URI for clients; `export` is the name of an export, or empty.
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

/// Applies an expression to either kind.
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
    /// Encrypts everything from now on.
    ///
    /// # Errors
    /// rustls refuses the settings.
    pub fn secure(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        self.tls = Some(Box::new(TlsLayer::new(config)?));
        Ok(())
    }

    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The peer: an address, or a local process.
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

    /// [`TlsLayer::described`], once.
    pub fn newly_encrypted(&mut self) -> Option<String> {
        let found = self.tls.as_ref().filter(|_| !self.told)?.described();
        self.told = found.is_some();
        found
    }

    /// Whether accepted bytes have not been sent.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Sends a close notification if the connection is encrypted.
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
