//! Where a server is, as `doc/uri.md` of the reference implementation has it: `nbd://HOST[:PORT][/EXPORT]` and
//! `nbd+unix:///[EXPORT]?socket=PATH`, with `%41` for bytes that mean something else in an address.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::PORT;

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A host's name or number, and a port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A server's export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The way to the server.
    pub address: Address,
    /// The export's name; empty for the default one.
    pub export: String,
}

/// Why a text is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {problem}; allowed: nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH")]
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
    let address = match scheme {
        "nbd" if query.is_some() => return Err("nbd:// takes no parameters"),
        "nbd" => tcp(authority)?,
        "nbd+unix" => {
            let socket =
                query.and_then(|query| query.strip_prefix("socket=")).ok_or("nbd+unix:// needs ?socket=PATH")?;
            if !authority.is_empty() {
                return Err("nbd+unix:// takes no host: three slashes");
            }
            let path = String::from_utf8(decode(socket)?).map_err(|_| "the socket's path is not UTF-8")?;
            if path.is_empty() || path.contains('\0') {
                return Err("the socket's path is empty or contains a zero byte");
            }
            Address::Unix(path.into())
        }
        "nbds" | "nbds+unix" => return Err("this client has no TLS"),
        _ => return Err("not an address of an NBD server"),
    };
    Ok(Uri { address, export })
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

fn encode(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "nbd://[{host}]:{port}/")?,
            Address::Tcp(host, port) => write!(f, "nbd://{host}:{port}/")?,
            Address::Unix(_) => f.write_str("nbd+unix:///")?,
        }
        encode(f, &self.export)?;
        if let Address::Unix(path) = &self.address {
            f.write_str("?socket=")?;
            encode(f, &path.to_string_lossy())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let tcp =
            |host: &str, port, export: &str| Uri { address: Address::Tcp(host.into(), port), export: export.into() };
        let cases = [
            ("nbd://example.com", tcp("example.com", 10809, "")),
            ("nbd://example.com/", tcp("example.com", 10809, "")),
            ("nbd://example.com:7/disk", tcp("example.com", 7, "disk")),
            ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
            ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
            ("nbd://[::1]:1/a", tcp("::1", 1, "a")),
            ("nbd://[::1]", tcp("::1", 10809, "")),
            ("nbd+unix:///d?socket=/tmp/a%20b", Uri { address: Address::Unix("/tmp/a b".into()), export: "d".into() }),
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
            ("nbds://a/b", "no TLS"),
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
