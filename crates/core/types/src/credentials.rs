//! Text without the passwords and signatures of the URLs in it, for errors, logs and reports, which others may read.

/// What stands in their place.
const HIDDEN: &str = "***";

/// `text` without what stands before the `@` of a URL's host, and without queries, which sign requests for object stores; the query of an
/// NBD URI says where its socket is, and stays.
#[must_use]
pub fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        shown += before;
        let end = url.find(|each: char| each.is_whitespace() || "\"'<>`|".contains(each)).unwrap_or(url.len());
        let (url, after) = url.split_at(end);
        let is_nbd = before.trim_end_matches("://").rsplit(|each: char| !is_of_scheme(each)).next();
        let is_nbd = is_nbd.is_some_and(|scheme| scheme.starts_with("nbd"));
        let host = url.find(['/', '?', '#']).unwrap_or(url.len());
        let host = match url[..host].rfind('@') {
            // The end of a user's name, of which a slash may be a part that ought to be percent-encoded.
            None if has_no_port(&url[..host]) => url.find('@').map_or(0, |user| user + 1),
            None => 0,
            Some(user) => user + 1,
        };
        if host > 0 {
            shown += HIDDEN;
            shown.push('@');
        }
        match url[host..].split_once('?').filter(|_| !is_nbd) {
            Some((place, query)) => {
                // Punctuation of the sentence.
                let sentence = query.len() - query.trim_end_matches([':', ';', ',', '.', ')']).len();
                shown += &format!("{place}?{HIDDEN}{}", &query[query.len() - sentence..]);
            }
            None => shown += &url[host..],
        }
        rest = after;
    }
    shown + rest
}

/// Whether a colon stands before something else than a port.
fn has_no_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(before, port)| {
        !before.starts_with('[') && !port.is_empty() && !port.bytes().all(|each| each.is_ascii_digit())
    })
}

fn is_of_scheme(each: char) -> bool {
    each.is_ascii_alphanumeric() || "+-.".contains(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_signatures_are_hidden_and_nothing_else() {
        for (text, shown) in [
            ("https://me:secret@host/a: cannot be read", "https://***@host/a: cannot be read"),
            ("https://token@host:8080", "https://***@host:8080"),
            ("https://h/k?X-Amz-Signature=abc&x=1: refused", "https://h/k?***: refused"),
            ("(https://h/k?sig=abc), and s3://b/k", "(https://h/k?***), and s3://b/k"),
            ("two: \"ftp://a:b@c/d\" 'http://e:f@g?h'", "two: \"ftp://***@c/d\" 'http://***@g?***'"),
            ("nbd://me:secret@host/name?x=y", "nbd://***@host/name?x=y"),
            ("nbd+unix:///a?socket=/run/s.sock", "nbd+unix:///a?socket=/run/s.sock"),
            ("https://me:se/cret@host/a", "https://***@host/a"),
            ("https://host/a@b/c", "https://host/a@b/c"),
            ("https://host:80/a@b", "https://host:80/a@b"),
            ("mail@host: no URL? none", "mail@host: no URL? none"),
            ("://", "://"),
            ("x://é@ü/ä?ö", "x://***@ü/ä?***"),
        ] {
            assert_eq!(without_credentials(text), shown, "{text}");
        }
    }
}
