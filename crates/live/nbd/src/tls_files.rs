//! The certificates of a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstart_types::{printable_path, KeyError};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::client::{check_private, PRIVATE};

/// Paths of certificates in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate and its chain up to the authority.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Authorities: clients need a certificate of one of them. If absent, clients need none.
    pub clients: Option<PathBuf>,
}

fn unread(key: &str, path: &Path, error: &pem::Error, what: &str) -> KeyError {
    let problem = match error {
        pem::Error::NoItemsFound => format!("has no {what} in it"),
        pem::Error::Io(error) => headstart_types::system_says(error),
        other => other.to_string(),
    };
    KeyError::new(key, format!("{}: {problem}", printable_path(path)), format!("a PEM file with a {what}"))
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, KeyError> {
    crate::client::certificates(path).map_err(|error| unread(key, path, &error, "certificate"))
}

impl TlsFiles {
    /// Reads the files for rustls.
    ///
    /// # Errors
    /// A file cannot be read or has other content, or the key does not belong to the certificate.
    pub fn read(&self) -> Result<Arc<ServerConfig>, KeyError> {
        let chain = certificates("tls_cert", &self.cert)?;
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(|error| unread("tls_key", &self.key, &error, "private key"))?;
        check_private(&self.key).map_err(|problem| {
            KeyError::new("tls_key", format!("{}: {problem}", printable_path(&self.key)), PRIVATE)
        })?;
        let provider = Arc::new(ring::default_provider());
        let unfit = |key: &str, path: &Path, problem: String, allowed: &str| {
            KeyError::new(key, format!("{}: {problem}", printable_path(path)), allowed)
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
