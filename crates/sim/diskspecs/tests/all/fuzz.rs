//! The short form of the fuzz target: arbitrary and nearly valid bytes never panic, and errors are one line.

use headstart_diskspecs::fuzz_import;
use proptest::prelude::*;

use crate::toy_files::changed;

/// The toy drive as files f0 (parv), f1 (diskspecs), f2 (model) and f3 (seek) of a fuzz input.
fn toy() -> Vec<u8> {
    let parts = [
        changed("toy.parv", &[("source toy.diskspecs", "source f1")]),
        changed("toy.diskspecs", &[("source toy.model", "source f2")]),
        changed("toy.model", &[("toy.seek", "f3")]),
        changed("toy.seek", &[]),
    ];
    parts.join("\0").into_bytes()
}

fn harmless(content: &[u8]) -> bool {
    match fuzz_import(content) {
        Ok(imported) => {
            assert!(imported.sectors > 0);
            assert!(imported.warnings.iter().all(|warning| !warning.contains('\n')));
            true
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.is_empty(), "{text:?}");
            false
        }
    }
}

#[test]
fn the_toy_drive_passes() {
    assert!(harmless(&toy()));
}

/// A name without printable characters; it was copied as a space, which no profile accepts.
#[test]
fn a_name_that_cannot_be_shown_is_none() {
    let text = String::from_utf8(toy()).expect("text").replace("disksim_disk TOY", "disksim_disk \u{1}");
    let imported = fuzz_import(text.as_bytes()).expect("a drive all the same");
    assert_eq!(imported.name, "unnamed");
}

/// Pieces for nearly valid text.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "dm_disk D { Number of data surfaces = 1, Mechanical Model = source f1, Layout Model = source f2 }",
        "disksim_disk A {",
        "Model =",
        "source f1",
        "source",
        "instantiate [ a0 .. a3 ] as",
        "topology a b [",
        "Seek type = hpl",
        "dm_layout_g1_zone {",
        "slips = [ 1, 2 ]",
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "..",
        "#",
        "\n",
        "\r",
        "-1",
        "0x7fffffffffffffff",
        "-9223372036854775808",
        "1e308",
        ".",
        "\0",
        "\u{e9}",
        "\u{7f}",
    ];
    prop_oneof![
        9 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arbitrary_bytes(content in proptest::collection::vec(any::<u8>(), 0..400)) {
        harmless(&content);
    }

    #[test]
    fn nearly_right_text(pieces in proptest::collection::vec(piece(), 0..40)) {
        harmless(pieces.join(" ").as_bytes());
    }

    /// The toy drive with a piece of it replaced by something else.
    #[test]
    fn damaged_drives(at in 0.0..1.0f64, length in 0usize..12, piece in piece()) {
        let mut content = toy();
        let at = (content.len() as f64 * at) as usize;
        let end = (at + length).min(content.len());
        content.splice(at..end, piece.bytes());
        harmless(&content);
    }

    /// The toy drive with a number replaced by an unusual one.
    #[test]
    fn odd_numbers(which in any::<proptest::sample::Index>(), odd in 0usize..9) {
        let odd = ["0", "-1", "1", "9999999", "1e15", "0.5", "-0.5", "3e6", "9223372036854775807"][odd];
        let text = String::from_utf8(toy()).unwrap();
        let begins: Vec<usize> = text
            .match_indices("= ")
            .map(|(at, _)| at + 2)
            .filter(|at| text.as_bytes()[*at].is_ascii_digit())
            .collect();
        let at = begins[which.index(begins.len())];
        let length = text[at..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        harmless(format!("{}{odd}{}", &text[..at], &text[at + length..]).as_bytes());
    }
}
