//! `linux` against what real kernels fetched: recordings of `make live-study`, read by read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use headstart_policy::readahead::{CachedFile, Version};
use serde_json::Value;

/// The first read or touch of a pattern that brings other pages than the kernel's did; `None` if there is none. An
/// operation is a descriptor, an offset and a size, with the folios that the kernel added and their pages.
fn difference(info: &Value, pattern: &Value, version: Version) -> Option<String> {
    let number = |key: &str| info[key].as_u64().expect("a number");
    let mut file = CachedFile::new(version, number("size"), number("read_ahead_kb"), number("max_sectors_kb"));
    let kind = pattern.get("kind").map_or("read", |kind| kind.as_str().expect("a word"));
    let list = |key: &str| pattern[key].as_array().expect("a list").iter();
    for (at, (op, folios)) in list("ops").zip(list("added")).enumerate() {
        let [descriptor, offset, size] = numbers(op);
        let added = match kind {
            "read" => file.read(descriptor as u32, offset, size),
            // Touches have no size.
            _ if size > 1 => file.read(descriptor as u32, offset, size),
            _ => file.touch(descriptor as u32, offset, kind == "text"),
        };
        let folios = folios.as_array().expect("a list").iter().map(numbers);
        let kernel: BTreeSet<u64> = folios.flat_map(|[first, pages]| first..first + pages).collect();
        if BTreeSet::from_iter(added.iter().copied()) != kernel {
            return Some(format!("{at}, {size} at {offset}: {added:?}, the kernel {kernel:?}"));
        }
    }
    None
}

fn numbers<const N: usize>(value: &Value) -> [u64; N] {
    let mut each = value.as_array().expect("a list").iter().map(|each| each.as_u64().expect("a number"));
    std::array::from_fn(|_| each.next().expect("as many as there are"))
}

/// Number of patterns in a recording, and those in which `linux` fetches other pages, each with the first such read.
fn compare(path: &Path, version: Version) -> (usize, BTreeMap<String, String>) {
    let reader = liblzma::read::XzDecoder::new(std::fs::File::open(path).expect("it is there"));
    let recording: Value = serde_json::from_reader(reader).expect("JSON");
    let patterns = recording["patterns"].as_array().expect("a list");
    let differs =
        |each: &Value| difference(&recording["info"], each, version).map(|found| (each["name"].to_string(), found));
    (patterns.len(), patterns.iter().filter_map(differs).collect())
}

fn own_recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readahead/recorded");
    let mut files: Vec<PathBuf> =
        folder.read_dir().expect("a folder").map(|each| each.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    files
}

#[test]
fn linux_fetches_page_by_page_what_kernels_fetched() {
    for path in own_recordings() {
        let (patterns, differ) = compare(&path, Version::V6_18);
        assert!(patterns >= 10 && differ.is_empty(), "{}: {differ:#?}", path.display());
    }
}

#[test]
fn linux_fetches_what_a_kernel_of_another_machine_fetched() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/kernel/linux-6.18-ext4-128KiB.json.xz");
    if !path.exists() {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    }
    let (patterns, differ) = compare(&path, Version::V6_18);
    assert!(differ.is_empty(), "{} of {patterns}: {differ:#?}", differ.len());
    assert_eq!(patterns, 135);
    // An older kernel behaved differently, which the comparison detects.
    assert!(compare(&path, Version::V6_12).1.len() > 60);
}
