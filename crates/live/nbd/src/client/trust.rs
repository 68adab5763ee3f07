//! Certificates of a client, with the file names that libnbd uses.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::Trust;

/// All certificates of a PEM file, at least one.
///
/// # Errors
/// It cannot be read, or has other content.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let all: Vec<_> = CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?;
    if all.is_empty() {
        return Err(pem::Error::NoItemsFound);
    }
    Ok(all)
}

/// Allowed modes of a private key.
pub const PRIVATE: &str = "a key of mode 600, or of mode 640 that is root's";

/// Refuses a private key that others can read. A group may read root's, for servers that run as several users.
///
/// # Errors
/// The mode allows others to read it. A missing file is reported when it is read.
pub fn check_private(path: &Path) -> Result<(), String> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let others = if found.uid() == 0 { 0o037 } else { 0o077 };
    if found.is_file() && found.mode() & others != 0 {
        return Err(format!("others can read it (mode {:o})", found.mode() & 0o7777));
    }
    Ok(())
}

/// The rustls settings for `trust`, or the faulty file and its problem.
pub(super) fn config(trust: &Trust) -> Result<Arc<ClientConfig>, String> {
    let folder = trust.certificates.as_deref();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let builder = builder.with_root_certificates(match folder {
        Some(folder) => authorities(&folder.join("ca-cert.pem"))?,
        None => of_the_system()?,
    });
    let own = folder.map(|folder| (folder.join("client-cert.pem"), folder.join("client-key.pem")));
    let Some((cert, key)) = own.filter(|(cert, key)| cert.exists() || key.exists()) else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = certificates(&cert).map_err(|error| said(&cert, "certificate", &error))?;
    let private = PrivateKeyDer::from_pem_file(&key).map_err(|error| said(&key, "private key", &error))?;
    check_private(&key).map_err(|problem| format!("{}: {problem}; allowed: {PRIVATE}", key.display()))?;
    let config = builder.with_client_auth_cert(chain, private);
    config.map(Arc::new).map_err(|error| format!("{}: {error}", key.display()))
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path).map_err(|error| said(path, "certificate", &error))? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn of_the_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err("the system has no authorities' certificates; allowed: ?tls-certificates=DIR".to_owned());
    }
    Ok(roots)
}

fn said(path: &Path, what: &str, error: &pem::Error) -> String {
    let problem = match error {
        pem::Error::NoItemsFound => format!("has no {what} in it"),
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    format!("{}: {problem}; allowed: a PEM file with a {what}", path.display())
}
