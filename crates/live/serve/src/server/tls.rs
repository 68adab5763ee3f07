//! TLS on clients' connections: certificates, and the layer of rustls between a non-blocking socket and the protocol.

use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstart_nbd::client::{check_private, PRIVATE};
use headstart_types::{printable_path, KeyError};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::error::Error;

use super::certificate::described;

/// Paths of certificates in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate and its chain up to the authority.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Authorities: clients need a certificate of one of them. If absent, clients need none.
    pub clients: Option<PathBuf>,
}

fn unread(key: &str, path: &Path, error: &pem::Error, what: &str) -> Error {
    let problem = match error {
        pem::Error::NoItemsFound => format!("has no {what} in it"),
        pem::Error::Io(error) => headstart_types::system_says(error),
        other => other.to_string(),
    };
    KeyError::new(key, format!("{}: {problem}", printable_path(path)), format!("a PEM file with a {what}")).into()
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    headstart_nbd::client::certificates(path).map_err(|error| unread(key, path, &error, "certificate"))
}

impl TlsFiles {
    /// Reads the files for rustls.
    ///
    /// # Errors
    /// A file cannot be read or has other content, or the key does not belong to the certificate.
    pub fn read(&self) -> Result<Arc<ServerConfig>, Error> {
        let chain = certificates("tls_cert", &self.cert)?;
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(|error| unread("tls_key", &self.key, &error, "private key"))?;
        check_private(&self.key).map_err(|problem| {
            KeyError::new("tls_key", format!("{}: {problem}", printable_path(&self.key)), PRIVATE)
        })?;
        let provider = Arc::new(ring::default_provider());
        let unfit = |key: &str, path: &Path, problem: String, allowed: &str| -> Error {
            KeyError::new(key, format!("{}: {problem}", printable_path(path)), allowed).into()
        };
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unfit("tls_cert", &self.cert, error.to_string(), "a certificate for TLS 1.2 or 1.3"))?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("tls_clients", path)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| {
                        unfit("tls_clients", path, error.to_string(), "certificates of authorities")
                    })?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let unfit = |error: rustls::server::VerifierBuilderError| {
                    unfit("tls_clients", path, error.to_string(), "certificates of authorities")
                };
                builder.with_client_cert_verifier(verifier.map_err(unfit)?)
            }
        };
        let config = builder.with_single_cert(chain, key);
        let config =
            config.map_err(|error| unfit("tls_key", &self.key, error.to_string(), "the key of the certificate"))?;
        Ok(Arc::new(config))
    }
}

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
