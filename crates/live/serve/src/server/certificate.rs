//! Describes a client's certificate for the log: the subject's names and the digest, as printed by `openssl x509
//! -fingerprint -sha256`.

use headstart_types::printable;
use sha2::{Digest, Sha256};

/// Names of a subject that are shown: object identifiers (X.520, 2.5.4.x) and labels.
const NAMES: [([u8; 3], &str); 4] =
    [([0x55, 4, 3], "CN"), ([0x55, 4, 11], "OU"), ([0x55, 4, 10], "O"), ([0x55, 4, 6], "C")];
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Tag of the optional version field.
const VERSION: u8 = 0xa0;

/// Describes a certificate (DER, RFC 5280) that rustls has checked.
#[must_use]
pub fn described(certificate: &[u8]) -> String {
    let digest: Vec<String> = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect();
    let names = subject(certificate).map_or_else(Vec::new, names);
    format!(
        "certificate {}SHA-256 {}",
        names.iter().map(|name| format!("{name}, ")).collect::<String>(),
        digest.join(":")
    )
}

/// The first element of `bytes`: tag, content, and the remaining bytes.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        _ => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let all = length.iter().try_fold(0usize, |all, byte| Some(all.checked_mul(256)? + usize::from(*byte)))?;
            (all, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (_, certificate, _) = element(certificate)?;
    let (_, signed, _) = element(certificate)?;
    let (tag, _, after) = element(signed)?;
    let mut rest = if tag == VERSION { after } else { signed };
    // Serial number, algorithm, issuer and validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    element(rest).filter(|(tag, ..)| *tag == SEQUENCE).map(|(_, subject, _)| subject)
}

fn names(mut subject: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((SET, mut parts, rest)) = element(subject) {
        while let Some((SEQUENCE, part, others)) = element(parts) {
            let value = element(part).and_then(|(_, id, value)| Some((id, element(value)?.1)));
            if let Some((id, value)) = value {
                let name = NAMES.iter().find(|(each, _)| each == id).map(|(_, name)| *name);
                names.extend(name.map(|name| format!("{name}={}", printable(&String::from_utf8_lossy(value)))));
            }
            parts = others;
        }
        subject = rest;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        let length = if content.len() < 0x80 { vec![content.len() as u8] } else { vec![0x81, content.len() as u8] };
        [vec![tag], length, content].concat()
    }

    fn name(id: u8, text: &[u8]) -> Vec<u8> {
        of(SET, &[&of(SEQUENCE, &[&of(6, &[&[0x55, 4, id]]), &of(12, &[text])])])
    }

    fn certificate(version: &[u8]) -> Vec<u8> {
        let subject = of(SEQUENCE, &[&name(10, b"A store"), &name(7, b"Town"), &name(3, b"client\x1b1")]);
        let [serial, other] = [of(2, &[&[5]]), of(SEQUENCE, &[&[0; 20]])];
        let signed = of(SEQUENCE, &[version, &serial, &other, &other, &other, &subject, &other]);
        of(SEQUENCE, &[&signed, &other])
    }

    #[test]
    fn names_and_digest_by_hand() {
        for version in [of(VERSION, &[&of(2, &[&[2]])]), Vec::new()] {
            let certificate = certificate(&version);
            let said = described(&certificate);
            let (names, digest) = said.split_once("SHA-256 ").expect("a digest");
            assert_eq!(names, "certificate O=A store, CN=client\\u{1b}1, ");
            assert_eq!(digest.split(':').count(), 32);
            // A truncated certificate shows no names, or only complete ones.
            for length in 0..certificate.len() {
                assert!(described(&certificate[..length]).starts_with("certificate SHA-256 "), "{length}");
            }
        }
        assert!(described(&[0x30, 0xff]).starts_with("certificate SHA-256 "));
    }
}
