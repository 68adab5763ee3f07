//! URIs of servers, as in `doc/uri.md` of the reference implementation: `nbd://HOST[:PORT][/EXPORT]` and
//! `nbd+unix:///[EXPORT]?socket=PATH`, with `%41` for bytes with a special meaning; `nbds://` and `nbds+unix://` use
//! TLS, with `tls-certificates=DIR` as in libnbd.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::PORT;

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host name or IP address, and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A server's export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    pub address: Address,
    /// Name of the export; empty for the default one.
    pub export: String,
    /// How to verify the server; `None` without TLS.
    pub tls: Option<Trust>,
}

/// How to verify the server, and the client's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// A folder with `ca-cert.pem` (authorities) and, if the server requires them, `client-cert.pem` and
    /// `client-key.pem`. If `None`, the system's authorities are trusted.
    pub certificates: Option<PathBuf>,
    /// The host that the server's certificate must name.
    pub host: String,
}

/// Why a text is not a URI of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {problem}; allowed: nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH; nbds: over TLS")]
pub struct UriError {
    text: String,
    problem: &'static str,
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        parse(text).map_err(|problem| UriError { text: text.escape_debug().to_string(), problem })
    }
}

fn parse(text: &str) -> Result<Uri, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or("not an address of an NBD server")?;
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let export = decode(path)?;
    let export = String::from_utf8(export).map_err(|_| "the export's name is not UTF-8")?;
    if export.len() > 4096 || export.contains('\0') {
        return Err("the export's name is longer than 4096 bytes or contains a zero byte");
    }
    let (socket, certificates) = parameters(query)?;
    let secure = matches!(scheme, "nbds" | "nbds+unix");
    if !secure && certificates.is_some() {
        return Err("tls-certificates goes with nbds:// and nbds+unix://");
    }
    let address = match (scheme, socket) {
        ("nbd" | "nbds", Some(_)) => return Err("socket goes with nbd+unix:// and nbds+unix://"),
        ("nbd" | "nbds", None) => tcp(authority)?,
        ("nbd+unix" | "nbds+unix", None) => return Err("a socket is missing: ?socket=PATH"),
        ("nbd+unix", Some(_)) if !authority.is_empty() => return Err("nbd+unix:// takes no host: three slashes"),
        ("nbd+unix" | "nbds+unix", Some(path)) => Address::Unix(path),
        _ => return Err("not an address of an NBD server"),
    };
    let host = match &address {
        Address::Tcp(host, _) => host.clone(),
        Address::Unix(_) if authority.is_empty() => "localhost".to_owned(),
        Address::Unix(_) => authority.to_owned(),
    };
    Ok(Uri { address, export, tls: secure.then_some(Trust { certificates, host }) })
}

/// Parses the query: a socket's path, and a folder of certificates.
fn parameters(query: Option<&str>) -> Result<(Option<PathBuf>, Option<PathBuf>), &'static str> {
    let (mut socket, mut certificates) = (None, None);
    for each in query.into_iter().flat_map(|query| query.split('&')) {
        let (found, value) = match each.split_once('=') {
            Some(("socket", value)) => (&mut socket, value),
            Some(("tls-certificates", value)) => (&mut certificates, value),
            _ => return Err("a parameter other than socket=PATH and tls-certificates=DIR"),
        };
        let path = String::from_utf8(decode(value)?).map_err(|_| "a path is not UTF-8")?;
        if path.is_empty() || path.contains('\0') {
            return Err("a path is empty or contains a zero byte");
        }
        if found.replace(PathBuf::from(path)).is_some() {
            return Err("a parameter is given twice");
        }
    }
    Ok((socket, certificates))
}

fn tcp(authority: &str) -> Result<Address, &'static str> {
    if authority.contains('@') {
        return Err("a user's name has no meaning without TLS");
    }
    let port =
        |text: &str| text.parse().ok().filter(|port| *port > 0).ok_or("the port is not a number from 1 to 65535");
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or("a bracket without its other one")?;
        match rest.strip_prefix(':') {
            Some(text) => (host, port(text)?),
            None if rest.is_empty() => (host, PORT),
            None => return Err("something other than a port follows the bracket"),
        }
    } else {
        match authority.split_once(':') {
            Some((_, more)) if more.contains(':') => return Err("an IPv6 address stands in brackets"),
            Some((host, text)) => (host, port(text)?),
            None => (authority, PORT),
        }
    };
    if host.is_empty() {
        return Err("the host is missing");
    }
    Ok(Address::Tcp(host.to_owned(), port))
}

fn decode(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        bytes.push(byte.and_then(|byte| u8::from_str_radix(byte, 16).ok()).ok_or("% without two hexadecimal digits")?);
        rest = &rest[2..];
    }
    Ok(bytes)
}

/// Encodes an export's name or a socket's path for a URI: `%20` for a space.
#[must_use]
pub fn percent_encoded(text: &[u8]) -> String {
    let encoded = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~/:".contains(byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.iter().map(encoded).collect()
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.tls.is_some() { "s" } else { "" };
        match (&self.address, &self.tls) {
            (Address::Tcp(host, port), _) if host.contains(':') => write!(f, "nbd{s}://[{host}]:{port}/")?,
            (Address::Tcp(host, port), _) => write!(f, "nbd{s}://{host}:{port}/")?,
            (Address::Unix(_), None) => f.write_str("nbd+unix:///")?,
            (Address::Unix(_), Some(trust)) => write!(f, "nbds+unix://{}/", trust.host)?,
        }
        f.write_str(&percent_encoded(self.export.as_bytes()))?;
        let mut mark = "?";
        let encoded = |path: &Path| percent_encoded(path.as_os_str().as_bytes());
        if let Address::Unix(path) = &self.address {
            write!(f, "?socket={}", encoded(path))?;
            mark = "&";
        }
        if let Some(Trust { certificates: Some(path), .. }) = &self.tls {
            write!(f, "{mark}tls-certificates={}", encoded(path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let tcp = |host: &str, port, export: &str| Uri {
            address: Address::Tcp(host.into(), port),
            export: export.into(),
            tls: None,
        };
        let unix =
            |path: &str, export: &str| Uri { address: Address::Unix(path.into()), export: export.into(), tls: None };
        let trusting = |uri: Uri, host: &str, folder: Option<&str>| Uri {
            tls: Some(Trust { certificates: folder.map(PathBuf::from), host: host.into() }),
            ..uri
        };
        let cases = [
            ("nbd://example.com", tcp("example.com", 10809, "")),
            ("nbd://example.com/", tcp("example.com", 10809, "")),
            ("nbd://example.com:7/disk", tcp("example.com", 7, "disk")),
            ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
            ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
            ("nbd://[::1]:1/a", tcp("::1", 1, "a")),
            ("nbd://[::1]", tcp("::1", 10809, "")),
            ("nbd+unix:///d?socket=/tmp/a%20b", unix("/tmp/a b", "d")),
            ("nbds://a/d", trusting(tcp("a", 10809, "d"), "a", None)),
            ("nbds://[::1]:7/d?tls-certificates=/c%26d", trusting(tcp("::1", 7, "d"), "::1", Some("/c&d"))),
            ("nbds+unix:///d?socket=s", trusting(unix("s", "d"), "localhost", None)),
            ("nbds+unix://h/?tls-certificates=c&socket=s", trusting(unix("s", ""), "h", Some("c"))),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refusals() {
        for (text, part) in [
            ("disk.img", "not an address"),
            ("http://a/b", "not an address"),
            ("nbd://a/b?tls-certificates=c", "goes with nbds"),
            ("nbds://a/b?socket=c", "goes with nbd+unix"),
            ("nbds://a/b?tls-certificates=", "empty"),
            ("nbds://a/b?tls-certificates=a&tls-certificates=b", "twice"),
            ("nbds://a/b?tls-psk-file=a", "other than"),
            ("nbds+unix:///", "?socket="),
            ("nbd://", "host is missing"),
            ("nbd://a:0", "port"),
            ("nbd://a:99999", "port"),
            ("nbd://::1/", "in brackets"),
            ("nbd://a/%4", "hexadecimal"),
            ("nbd://a/%+1", "hexadecimal"),
            ("nbd://a/%00", "zero byte"),
            ("nbd://a/%ff", "UTF-8"),
            ("nbd://me@a/", "user"),
            ("nbd+unix:///", "?socket="),
            ("nbd+unix:///?socket=", "empty"),
            ("nbd+unix://a/?socket=b", "three slashes"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("; allowed: "), "{text}: {error}");
        }
    }
}
