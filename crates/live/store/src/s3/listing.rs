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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// All entries of a listing in one go: keys, and with a slash before them prefixes.
    fn naive(keys: &BTreeSet<String>, prefix: &str, delimiter: Option<&str>, after: &str) -> Vec<(bool, String)> {
        let mut entries = BTreeSet::new();
        for key in keys.iter().filter(|key| key.starts_with(prefix) && key.as_str() > after) {
            let end = delimiter.and_then(|delimiter| Some(key[prefix.len()..].find(delimiter)? + delimiter.len()));
            entries.insert(end.map_or((key.clone(), false), |end| (key[..prefix.len() + end].to_owned(), true)));
        }
        entries.into_iter().map(|(name, is_prefix)| (is_prefix, name)).collect()
    }

    fn listing(keys: &BTreeSet<String>, prefix: &str, is_flat: bool) -> Listing {
        let meta = |key: &String| Meta { key: key.clone(), size: 1, e_tag: None, modified_ms: 0 };
        if !is_flat {
            let objects = keys.iter().filter(|key| key.starts_with(prefix)).map(meta).collect();
            return Listing { objects, prefixes: Vec::new() };
        }
        let entries = naive(keys, prefix, Some("/"), "");
        let named = |wanted: bool| entries.iter().filter(move |(is_prefix, _)| *is_prefix == wanted);
        let objects = named(false).map(|(_, key)| meta(key)).collect();
        Listing { objects, prefixes: named(true).map(|(_, prefix)| prefix.clone()).collect() }
    }

    fn entries(page: &Page) -> Vec<(bool, String)> {
        let objects = page.objects.iter().map(|meta| (false, meta.key.clone()));
        let mut entries: Vec<_> = objects.chain(page.prefixes.iter().map(|prefix| (true, prefix.clone()))).collect();
        entries.sort_by(|one, other| one.1.cmp(&other.1));
        entries
    }

    proptest! {
        #[test]
        fn pages_are_the_listing(
            keys in prop::collection::btree_set("[ab/é]{1,6}", 0..30),
            prefix in "[ab/]{0,2}",
            delimiter in prop::option::of(prop_oneof![Just("/"), Just("b"), Just("/a")]),
            start_after in "[ab/]{0,4}",
            entries_max in 1..5_usize,
        ) {
            // Sources have no other keys.
            let is_path = |key: &String| key.split('/').all(|part| !part.is_empty());
            let keys: BTreeSet<String> = keys.into_iter().filter(is_path).collect();
            // What begins with the last entry of a page is left out of the next one.
            let is_entry = naive(&keys, &prefix, delimiter, "").contains(&(true, start_after.clone()));
            prop_assume!(!is_entry);
            let expected = naive(&keys, &prefix, delimiter, &start_after);
            let listing = listing(&keys, &prefix, delimiter == Some("/"));
            let (mut found, mut after) = (Vec::new(), start_after);
            loop {
                let page = cut(&listing, &Asked { prefix: &prefix, delimiter, after: &after, entries_max });
                let these = entries(&page);
                prop_assert!(these.len() <= entries_max);
                found.extend(these);
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            // Of a folder of which a part was left out, a flat listing does not say whether there is more.
            if delimiter == Some("/") {
                found.retain(|entry| expected.contains(entry));
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn names_are_decoded_as_they_were(name in "\\PC*") {
            prop_assert_eq!(decode(&encode(&name)), Some(name));
        }
    }
}
