//! Real traces, against figures that an independent reader of each file gave. Skipped loudly where they are absent.

mod common;

use common::{records, sample};
use headstart_trace::{info, open, sha256_file, Info};

fn info_of(name: &str, format: &str, block_bytes: u64) -> Option<Info> {
    let path = sample(name)?;
    assert_eq!(open(&path, format).unwrap().carries(), open(&path, "auto").unwrap().carries(), "{name}");
    let mut reader = open(&path, "auto").unwrap();
    let info = info(&mut *reader, Some(block_bytes)).unwrap();
    let (done, total) = reader.progress();
    assert_eq!(done, total, "{name}");
    Some(info)
}

#[test]
fn buffer_cache_traces() {
    let expected = [
        ("cs", 6781, 1409),
        ("2_pools", 100_000, 9939),
        ("gli", 6015, 2529),
        ("backf", 9000, 751),
        ("zigzag", 52_001, 2001),
        ("sprite", 133_996, 7075),
        ("loop", 505_500, 1011),
        ("ps", 10_448, 3083),
        ("cpp", 9047, 1223),
        ("multi1", 15_858, 2606),
        ("multi2", 26_311, 5684),
        ("multi3", 30_241, 7454),
        ("scan", 50_025, 2001),
    ];
    for (name, requests, distinct) in expected {
        let Some(info) = info_of(&format!("third-party/buffer-cache/{name}.trace.gz"), "lirs", 4096) else { return };
        assert_eq!((info.requests, info.references, info.distinct_blocks), (requests, requests, distinct), "{name}");
        assert_eq!((info.block_bytes, info.sequential_share, info.time_span_ns), (None, None, None));
    }
}

#[test]
fn page_traces() {
    let expected = [
        ("OLTP", 914_145, 914_145, 186_880, 136_340),
        ("P3", 238_578, 3_912_296, 762_543, 28_334),
        ("P6", 519_711, 12_672_123, 773_770, 65_909),
    ];
    for (name, requests, references, distinct, sequential) in expected {
        let Some(info) = info_of(&format!("third-party/buffer-cache/{name}.lis.zst"), "lis", 512) else { return };
        assert_eq!((info.requests, info.references, info.distinct_blocks), (requests, references, distinct), "{name}");
        assert_eq!(info.sequential_share, Some(f64::from(sequential) / requests as f64), "{name}");
        assert_eq!(info.bytes, 512 * u128::from(references));
    }
}

#[test]
fn object_trace() {
    let Some(info) = info_of("third-party/blocks/cloudPhysicsIO.oracleGeneral.bin", "oracleGeneral", 512) else {
        return;
    };
    assert_eq!((info.requests, info.references, info.distinct_blocks), (113_872, 113_872, 48_974));
    assert_eq!((info.time_span_ns, info.bytes, info.skipped), (Some(7_200_000_000_000), 4_368_040_448, 0));
}

#[test]
fn measured_drives() {
    // name, reads, sectors, service times in all and issue of the last request in us
    let expected = [
        ("cheetah9LP", 6594, 63_196, 42_728_946, 497_607_519),
        ("cheetah4LP", 6639, 63_688, 53_277_230, 498_684_332),
        ("barracuda", 6511, 63_328, 66_274_014, 500_570_013),
        ("atlas10k", 6569, 63_052, 38_930_600, 500_770_864),
    ];
    for (name, reads, sectors, service_us, span_us) in expected {
        let Some(info) = info_of(&format!("../disks/{name}.trace.xz"), "measured", 512) else { return };
        assert_eq!((info.requests, info.reads, info.bytes), (10_000, reads, 512 * sectors), "{name}");
        assert_eq!(info.duration_ns_mean, Some(f64::from(service_us) * 1e3 / 10_000.0), "{name}");
        assert_eq!(info.time_span_ns, Some(span_us * 1_000), "{name}");
    }
}

#[test]
fn program_traces() {
    // name, (requests, reads), (references, distinct blocks of 8 KiB), sequential, bytes, span in us, files, processes
    let expected = [
        ("cscope1", (9064, 9064), (9065, 819), 9008, 74_227_008, 984_930, 3, 1),
        ("pg_oltp", (62_788, 33_457), (63_123, 5938), 2931, 515_183_105, 16_336_834, 87, 13),
        ("multi6", (86_786, 70_817), (95_576, 25_850), 68_859, 461_739_562, 5_822_815, 1054, 49),
        ("ld", (64_584, 53_237), (67_477, 6071), 16_971, 140_264_020, 10_492_983, 3264, 1),
    ];
    for (name, requests, references, sequential, bytes, span_us, files, processes) in expected {
        let Some(info) = info_of(&format!("programs/{name}.csv.xz"), "headstart", 8192) else { return };
        assert_eq!((info.requests, info.reads), requests, "{name}");
        assert_eq!((info.references, info.distinct_blocks), references, "{name}");
        assert_eq!(info.sequential_share, Some(f64::from(sequential) / requests.0 as f64), "{name}");
        assert_eq!((info.bytes, info.time_span_ns), (bytes, Some(span_us * 1_000)), "{name}");
        assert_eq!((info.files, info.processes), (Some(files), Some(processes)), "{name}");
    }
}

#[test]
fn every_program_trace_reads_with_its_file_table() {
    let Some(directory) = sample("programs") else { return };
    let mut read = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".files.csv.xz") {
            continue;
        }
        let reader = open(&path, "auto").unwrap();
        let ends: std::collections::BTreeMap<u32, u64> =
            reader.files().iter().map(|entry| (entry.file, entry.size_bytes)).collect();
        for record in records(&path, "headstart").unwrap() {
            assert!(record.offset + record.size <= ends[&record.file], "{}: {record:?}", path.display());
        }
        read += 1;
    }
    assert!(read >= 22, "{read}");
}

#[test]
fn hash_of_a_file() {
    let path = common::file(&common::scratch("hash"), "abc", "abc");
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256_file(&path).unwrap(), known);
    assert!(sha256_file(&path.with_file_name("none")).is_err());
}
