//! The short form of the fuzz target: arbitrary and nearly valid bytes never panic, in any parser.

use headstart_trace::{fuzz_formats, fuzz_parse};
use proptest::prelude::*;

use crate::common;

/// Pieces for nearly valid text.
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
        "128166372003061629,hm,1,Read,383496192,32768,413\n",
        "0,303567,3584,w,0.5\n",
        "64,W,126703661056,4096,1577808000000046\n",
        "1538323199,12910952,128,0,1063\n",
        "1456135200.013118000,,,4,8192,4096\n",
        "15849.28847 0 6198696 8 0\n",
        "fio version 2 iolog\n",
        "fio version 3 iolog\n",
        "/f read 0 4096\n",
        "9 /f wait 100\n",
        "  8,0    3        1     0.000000000   697  ",
        " Q  WS 223490 + 8 [jbd2]\n",
        " C  RA 223490 + 8 [0]\n",
        " D   R ",
        "8,0 1 1 0.5 9 C W 18446744073709551615 + 1\n",
        "0.5 NTCreateX \"\\f\" 0x0 1 7 NT_STATUS_OK\n",
        "ReadX 7 0 4096 4096 NT_STATUS_OK\n",
        "WRITE3 \"/f\" 0 512 0 0x0\n",
        "0x",
        "ff",
        "seq,op,pid,file,offset,size\n",
        "\u{feff}",
        "\u{e9}",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

fn all_parsers(content: &[u8]) {
    for format in fuzz_formats() {
        if let Err(error) = fuzz_parse(format, content) {
            let text = error.to_string();
            assert!(text.starts_with("fuzz") && !text.contains('\n'), "{text:?}");
        }
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
    fn behind_the_first_line_of_an_iolog(version in 2..=3, pieces in proptest::collection::vec(piece(), 0..20)) {
        all_parsers(&[format!("fio version {version} iolog\n").into_bytes(), pieces.concat()].concat());
    }

    #[test]
    fn events_of_the_block_layer(fields in proptest::collection::vec((0u64..9, 0usize..6, 0u64..40, 0u64..20), 1..60)) {
        let text: String = fields
            .iter()
            .map(|(time, action, sector, sectors)| {
                let action = ["Q", "Q", "D", "C", "C", "G"][*action];
                format!("8,{} 0 1 0.{time:09} 7 {action} R {sector} + {sectors} [x]\n", sector % 2)
            })
            .collect();
        all_parsers(text.as_bytes());
    }

    #[test]
    fn commands_of_virtual_disks(records in proptest::collection::vec((any::<u32>(), 0u16..256, any::<u16>(), any::<u64>(), 0u64..99), 1..20)) {
        for version in [1, 2] {
            let content: Vec<u8> = records
                .iter()
                .flat_map(|&(serial, command, bytes, sector, time)| match version {
                    1 => common::vscsi_1(serial, command, bytes.into(), sector >> 12, time),
                    _ => common::vscsi_2(serial, command, bytes.into(), sector >> 7, [time, sector]),
                })
                .collect();
            all_parsers(&content);
        }
    }

    #[test]
    fn damaged_compression(mut content in proptest::collection::vec(any::<u8>(), 0..200), kind in 0usize..3) {
        let magic: &[u8] = [&b"\x1f\x8b\x08\0"[..], b"\xfd7zXZ\0\0\x04", b"\x28\xb5\x2f\xfd"][kind];
        content.splice(0..0, magic.iter().copied());
        all_parsers(&content);
    }
}
