//! Pages of a listing.

use std::iter::Peekable;

use percent_encoding::{percent_decode_str, utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};

use crate::failure::Failure;
use crate::source::{Listing, Meta};
use crate::store::Store;

/// What stays as it is in a name that a client wants encoded.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, KEPT).to_string()
}

pub fn decode(name: &str) -> Option<String> {
    percent_decode_str(name).decode_utf8().ok().map(Into::into)
}

/// What a client wants listed.
pub struct Asked<'a> {
    pub prefix: &'a str,
    /// Not empty. Names are shortened to the first one after the prefix.
    pub delimiter: Option<&'a str>,
    /// Only later names.
    pub after: &'a str,
    pub entries_max: usize,
}

#[derive(Default)]
pub struct Page {
    pub objects: Vec<Meta>,
    pub prefixes: Vec<String>,
    /// The last name of this page, if others follow.
    pub next: Option<String>,
}

/// # Errors
/// The source fails or lists nothing.
pub async fn page(store: &Store, asked: &Asked<'_>) -> Result<Page, Failure> {
    let (own, prefix) = (store.source().prefix(), asked.prefix);
    if let Some(below) = own.strip_prefix(prefix).filter(|below| !below.is_empty()) {
        if asked.delimiter == Some("/") {
            // The way down to the store's objects.
            let first = below.split_inclusive('/').next().unwrap_or_default();
            let listing = Listing { objects: Vec::new(), prefixes: vec![format!("{prefix}{first}")] };
            return Ok(cut(&listing, asked));
        }
        let listing = store.list(own, false).await?;
        return Ok(cut(&listing, asked));
    }
    if !prefix.starts_with(own) {
        return Ok(Page::default());
    }
    let listing = store.list(prefix, asked.delimiter == Some("/")).await?;
    Ok(cut(&listing, asked))
}

/// One page of a listing of at least what is asked.
fn cut(listing: &Listing, asked: &Asked<'_>) -> Page {
    let after = asked.after;
    // Of what is shortened, a part may be later.
    let is_later = |name: &str| name > after || (after.starts_with(name) && after != name);
    let first = listing.objects.partition_point(|meta| meta.key.as_str() <= after);
    let objects = listing.objects[first..].iter().map(|meta| (meta.key.as_str(), Some(meta))).peekable();
    let prefixes = listing.prefixes.iter().map(|prefix| (prefix.as_str(), None)).peekable();
    let (mut page, mut last, mut entries) = (Page::default(), None, 0);
    for (name, meta) in (Merged { objects, prefixes }) {
        let rest = name.get(asked.prefix.len()..).unwrap_or_default();
        let shortened = asked.delimiter.and_then(|delimiter| {
            let end = asked.prefix.len() + rest.find(delimiter)? + delimiter.len();
            Some(&name[..end])
        });
        let entry = shortened.unwrap_or(name);
        if last == Some(entry) || (shortened.is_some() && !is_later(entry)) {
            continue;
        }
        if entries == asked.entries_max {
            page.next = last.map(str::to_owned);
            break;
        }
        match (shortened, meta) {
            (None, Some(meta)) => page.objects.push(meta.clone()),
            _ => page.prefixes.push(entry.to_owned()),
        }
        (last, entries) = (Some(entry), entries + 1);
    }
    page
}

type Entry<'a> = (&'a str, Option<&'a Meta>);

/// Both by name.
struct Merged<O: Iterator, P: Iterator> {
    objects: Peekable<O>,
    prefixes: Peekable<P>,
}

impl<'a, O: Iterator<Item = Entry<'a>>, P: Iterator<Item = Entry<'a>>> Iterator for Merged<O, P> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let is_object = match (self.objects.peek(), self.prefixes.peek()) {
            (Some(object), Some(prefix)) => object.0 < prefix.0,
            (object, _) => object.is_some(),
        };
        if is_object {
            self.objects.next()
        } else {
            self.prefixes.next()
        }
    }
}
