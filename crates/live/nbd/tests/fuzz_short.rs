//! Short form of the fuzz target: arbitrary and almost valid connections never panic. `HEADSTART_FUZZ_CASES=5000000`
//! runs that many of each.

use headstart_nbd::fuzz_nbd;
use proptest::prelude::*;

/// Pieces of which almost valid connections are built.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: [&[u8]; 40] = [
        b"NBDMAGIC",
        b"IHAVEOPT",
        b"\0\x03",
        b"\0\0\0\x03",
        b"\0\0\0\x01",
        b"IHAVEOPT\0\0\0\x08\0\0\0\0",
        b"IHAVEOPT\0\0\0\x05\0\0\0\0",
        b"IHAVEOPT\0\0\0\x03\0\0\0\0",
        b"IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0",
        b"IHAVEOPT\0\0\0\x06\0\0\0\x09\0\0\0\x01b\0\x01\0\x03",
        b"IHAVEOPT\0\0\0\x0a\0\0\0\x1c\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation",
        b"IHAVEOPT\0\0\0\x01\0\0\0\x01a",
        b"IHAVEOPT\0\0\0\x01\0\0\0\x01b",
        b"\x25\x60\x95\x13\0\0\0\0",
        b"\x25\x60\x95\x13\0\x01\0\x01",
        b"\x25\x60\x95\x13\0\0\0\x03\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\x25\x60\x95\x13\0\0\0\x06",
        b"\x25\x60\x95\x13\0\x08\0\x07",
        b"\0\0\0\0\0\0\0\x09",
        b"\0\0\0\0\0\0\x10\0\0\0\x10\0",
        b"\0\0\0\x08",
        b"\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x08\0\0\0\x01\0\0\0\0",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x08\x80\0\0\x01\0\0\0\0",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x0a\0\0\0\x01\0\0\0\0",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x03\0\0\0\x0c\0\0\0\0\0\0\0\0\x10\0\0\x05",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x03\0\0\0\x0e\0\x03\0\0\0\x01\0\0\x10\0\0\x10\0\0",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x01\0\0\0\0",
        b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\x80\0\0\x06\0\0\0\0",
        b"\x67\x44\x66\x98",
        b"\x67\x44\x66\x98\0\0\0\x05\0\0\0\0\0\0\0\x01",
        b"\x66\x8e\x33\xef",
        b"\x66\x8e\x33\xef\0\x01\0\x01",
        b"\x66\x8e\x33\xef\0\x01\x80\x01",
        b"\0\x01\0\0\0\0\0\0\0\x01",
        b"\0\x01\0\x05\0\0\0\0\0\0\0\x01\0\0\0\x0c\0\0\0\x01\0\0\0\x01\0\0\0\x03",
        b"\0\x01\0\x02\0\0\0\0\0\0\0\x01\0\0\0\x0c",
        b"NBDMAGICIHAVEOPT\0\x03",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

fn cases() -> u32 {
    let asked = std::env::var("HEADSTART_FUZZ_CASES");
    asked.map_or(20_000, |text| text.parse().expect("HEADSTART_FUZZ_CASES is a whole number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn arbitrary_bytes(content in proptest::collection::vec(any::<u8>(), 0..300)) {
        _ = fuzz_nbd(&content);
    }

    #[test]
    fn nearly_right_connections(
        selector in any::<u8>(), start in 0..4_usize, pieces in proptest::collection::vec(piece(), 0..30),
    ) {
        // Most begin validly, since arbitrary ones rarely get past the greeting.
        let starts: [&[u8]; 4] = [b"", b"\0\0\0\x03", b"NBDMAGICIHAVEOPT\0\x03", b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0"];
        let content = [&[selector], starts[start], &pieces.concat()].concat();
        if let Err(violation) = fuzz_nbd(&content) {
            let text = violation.to_string();
            prop_assert!(!text.is_empty() && !text.contains('\n'), "{:?}", text);
        }
    }
}

#[test]
fn a_whole_connection_is_understood() {
    let server = b"\0\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0";
    let read = b"\x25\x60\x95\x13\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\x02\0";
    assert_eq!(
        fuzz_nbd(&[server.as_slice(), read, read].concat()),
        Ok(5),
        "flags, an option, the header of GO, and two requests"
    );
}
