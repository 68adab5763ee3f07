//! TLS on clients' connections: the layer of rustls between a non-blocking socket and the protocol.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::certificate::described;

/// The server side of one connection, over a non-blocking socket.
#[derive(Debug)]
pub struct TlsLayer(ServerConnection);

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl TlsLayer {
    /// Before the client's first message.
    ///
    /// # Errors
    /// rustls refuses the settings.
    pub fn new(config: Arc<ServerConfig>) -> io::Result<Self> {
        ServerConnection::new(config).map(Self).map_err(broken)
    }

    /// Describes the completed handshake; `None` while it is in progress.
    #[must_use]
    pub fn described(&self) -> Option<String> {
        let version = self.0.protocol_version().filter(|_| !self.0.is_handshaking())?;
        let version = version.as_str().unwrap_or("TLS").replace('_', ".");
        let certificate = self.0.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.map_or_else(|| "no certificate".to_owned(), |found| described(found));
        Some(format!("{version}, {certificate}"))
    }

    /// Whether encrypted bytes have not been sent.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    /// Sends the encrypted bytes.
    ///
    /// # Errors
    /// The socket takes no more for now (`WouldBlock`), or fails.
    pub fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            if self.0.write_tls(socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Reads and decrypts; returns 0 at the end.
    ///
    /// # Errors
    /// There is nothing to read now (`WouldBlock`), the client violates the protocol (`InvalidData`), or the socket
    /// fails.
    pub fn read(&mut self, socket: &mut (impl Read + Write), buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Clients may disconnect without a close notification.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            let taken = self.0.read_tls(socket)?;
            let processed = self.0.process_new_packets();
            if let Err(error) = processed {
                // Sends the alert, if the client still reads.
                let _ = self.flush(socket);
                return Err(broken(error));
            }
            if taken == 0 && self.0.is_handshaking() {
                return Ok(0);
            }
        }
    }

    /// Encrypts and sends; returns the number of bytes accepted, of which some may not have been sent yet.
    ///
    /// # Errors
    /// As for [`TlsLayer::flush`]; in that case nothing of `parts` was accepted.
    pub fn write_vectored(&mut self, socket: &mut impl Write, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.0.writer().write_vectored(parts)?;
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends a close notification, as far as the socket takes it.
    pub fn end(&mut self, socket: &mut impl Write) {
        self.0.send_close_notify();
        let _ = self.flush(socket);
    }
}
