//! Options that servers share: who may connect, and how.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use headstart_types::{keys, printable, KeyError};

use crate::TlsFiles;

keys! {
    /// Who may connect to a server, and how.
    pub struct AccessKeys {
        /// Allow addresses that other machines can reach. Requires TLS or --insecure.
        pub allow_remote: bool = false,
        /// Allow unencrypted TCP where it would be refused otherwise.
        pub insecure: bool = false,
        /// The server's certificate (PEM). Clients must then use TLS.
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "any"))]
        pub tls_cert: Option<PathBuf> = None,
        /// The server's private key (PEM).
        #[schemars(extend("x-metavar" = "FILE", "x-file" = "any"))]
        pub tls_key: Option<PathBuf> = None,
    }
}

impl AccessKeys {
    /// The certificates; if set, clients must start TLS. `clients`: the CAs that must have issued clients' certificates.
    ///
    /// # Errors
    /// The certificate or the key is missing.
    pub fn tls(&self, clients: Option<&PathBuf>) -> Result<Option<TlsFiles>, KeyError> {
        let missing = |key| Err(KeyError::new(key, "is missing", "tls_cert and tls_key, or neither"));
        match (&self.tls_cert, &self.tls_key, clients) {
            (None, None, None) => Ok(None),
            (None, ..) => missing("tls_cert"),
            (_, None, _) => missing("tls_key"),
            (Some(cert), Some(key), clients) => {
                Ok(Some(TlsFiles { cert: cert.clone(), key: key.clone(), clients: clients.cloned() }))
            }
        }
    }

    /// Whether connections are not encrypted, although that is not allowed explicitly.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.tls_cert.is_none() && !self.insecure
    }

    /// Checks that other machines may reach the address of the option `key`, or cannot.
    ///
    /// # Errors
    /// They can, and it is not allowed.
    pub fn check(&self, key: &str, text: &str, address: SocketAddr) -> Result<(), KeyError> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        let problem = format!("{} can be reached from other machines", printable(text));
        if !self.allow_remote {
            return Err(KeyError::new(key, problem, "an address of this machine, or --allow-remote too"));
        }
        if self.is_plain() {
            let allowed = "--tls-cert and --tls-key too, or --insecure";
            return Err(KeyError::new(key, format!("{problem}, without encryption"), allowed));
        }
        Ok(())
    }
}

/// The address that the option `key` names; `allowed` is the form it has.
///
/// # Errors
/// It is none.
pub fn address(key: &str, text: &str, allowed: &str) -> Result<SocketAddr, KeyError> {
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| KeyError::new(key, format!("\"{}\" is no address", printable(text)), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_machines_reach_is_refused_unless_it_is_allowed() {
        let remote: SocketAddr = "0.0.0.0:9".parse().expect("an address");
        let said = |access: &AccessKeys| access.check("s3", "0.0.0.0:9", remote).map_err(|error| error.to_string());
        let mut access = AccessKeys::default();
        access.check("s3", "localhost:9", "127.0.0.1:9".parse().expect("an address")).expect("it is of this machine");
        let problem = "s3: 0.0.0.0:9 can be reached from other machines";
        assert_eq!(
            said(&access),
            Err(format!("{problem}; allowed: an address of this machine, or --allow-remote too"))
        );
        access.allow_remote = true;
        let allowed = "--tls-cert and --tls-key too, or --insecure";
        assert_eq!(said(&access), Err(format!("{problem}, without encryption; allowed: {allowed}")));
        access.insecure = true;
        assert_eq!(said(&access), Ok(()));
        access.tls_key = Some("key".into());
        assert_eq!(access.tls(None).expect_err("half of it").key, "tls_cert");
        assert!(address("s3", "nine", "HOST:PORT").is_err());
    }
}
