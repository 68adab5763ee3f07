//! The short form of the fuzz targets: arbitrary and nearly right bytes never panic, in any parser.

use headstart_trace::{fuzz_parse, FORMATS};
use proptest::prelude::*;

/// Pieces from which nearly right text is put together.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "time,op,pid,file,offset,size,dur_us\n",
        "file,max_offset,disk_size,path\n",
        "id,size\n",
        "lba,nsect,time_us\n",
        "\n",
        "\r\n",
        ",",
        " ",
        "\"",
        "*",
        "-",
        ".",
        "e9",
        "R",
        "W",
        "0",
        "1",
        "4096",
        "18446744073709551615",
        "1e300",
        "NaN",
        "0.5,R,1,0,4096,8192,7\n",
        "1 2 3 4\n",
        "17\n",
        "R Hit 8 4 500 100.5\n",
        " Miss ",
        "\u{feff}",
        "\u{e9}",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

fn all_parsers(content: &[u8]) {
    for format in FORMATS.iter().map(|row| row.name).chain(["file-table"]) {
        if let Err(error) = fuzz_parse(format, content) {
            let text = error.to_string();
            assert!(text.starts_with("fuzz") && !text.contains('\n'), "{text:?}");
        }
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let targets = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let targets: Vec<String> = std::fs::read_dir(targets)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    for format in FORMATS.iter().map(|row| row.name).chain(["file-table"]) {
        let call = format!("fuzz_parse(\"{format}\"");
        assert!(targets.iter().any(|target| target.contains(&call)), "{format}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(content in proptest::collection::vec(any::<u8>(), 0..500)) {
        all_parsers(&content);
    }

    #[test]
    fn nearly_right_text(pieces in proptest::collection::vec(piece(), 0..40)) {
        all_parsers(&pieces.concat());
    }

    #[test]
    fn behind_a_header(pieces in proptest::collection::vec(piece(), 0..20)) {
        all_parsers(&[b"time,op,pid,file,offset,size,dur_us\n".to_vec(), pieces.concat()].concat());
    }

    #[test]
    fn damaged_compression(mut content in proptest::collection::vec(any::<u8>(), 0..200), kind in 0usize..3) {
        let magic: &[u8] = [&b"\x1f\x8b\x08\0"[..], b"\xfd7zXZ\0\0\x04", b"\x28\xb5\x2f\xfd"][kind];
        content.splice(0..0, magic.iter().copied());
        all_parsers(&content);
    }
}
