//! Real traces, compared with figures from an independent reader of each file. Skipped with a note if they are missing.

use headstart_trace::{info, open, sha256_file, Info, Record, Source, FORMATS};

use crate::common;
use crate::common::{records, sample};

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
        // OLTP requests one page at a time: object numbers.
        let share = (name != "OLTP").then(|| f64::from(sequential) / requests as f64);
        assert_eq!(info.sequential_share, share, "{name}");
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

/// A record as (time in ns, write, file, offset, size).
type Seen = (u64, bool, u32, u64, u64);

fn seen(record: &Record) -> Seen {
    (record.time.0, record.write, record.file, record.offset, record.size)
}

/// Requests, reads and bytes, first and last record, compared with what awk and a short script found in the text.
fn block_trace(name: &str, format: &str, counts: (u64, u64, u128), first: Seen, last: Seen) -> Option<Info> {
    let info = info_of(&format!("third-party/{name}"), format, 4096)?;
    assert_eq!((info.requests, info.reads, info.bytes), counts, "{name}");
    assert_eq!((info.writes, info.skipped), (counts.0 - counts.1, 0), "{name}");
    let note = info.note.as_deref();
    assert!(note.is_none_or(|note| note.starts_with("ignored columns: ")), "{name}: {note:?}");
    let records = records(&sample(&format!("third-party/{name}"))?, "auto").unwrap();
    let ends = [records.first(), records.last()].map(|record| record.map(seen));
    assert_eq!(ends, [Some(first), Some(last)], "{name}");
    Some(info)
}

#[test]
fn spc_traces() {
    let first = (0, true, 0, 303_567 * 512, 3584);
    let last = (259_601_203_000, true, 8, 146_550 * 512, 512);
    let counts = (10_000, 4077, 55_279_104);
    let Some(info) = block_trace("blocks/financial1_first10k.spc.xz", "spc", counts, first, last) else { return };
    assert_eq!(info.files, Some(22));
    // The first request is at 11,413 us, the last at 60,066,625 us.
    let first = (0, false, 0, 657_728 * 512, 8192);
    let last = (60_055_212_000, false, 1, 34_371_424 * 512, 32_768);
    let counts = (24_783, 24_779, 382_117_888);
    let Some(info) = block_trace("blocks/websearch_first25k.spc.xz", "spc", counts, first, last) else { return };
    assert_eq!(info.files, Some(6));
}

#[test]
fn traces_in_the_form_of_disksim_in_blocks_and_in_bytes() {
    // 15849.28847 ms to 1482109.5416 ms.
    let first = (0, true, 0, 6_198_696 * 512, 4096);
    let last = (1_466_260_253_130, true, 0, 6_023_960 * 512, 4096);
    let counts = (56_088, 41_848, 6_389_080_064);
    block_trace("blocks/pcmark.trace.xz", "disksim", counts, first, last);
    let first = (0, false, 0, 11_562_803_200, 4096);
    let last = (1_017_077_000, false, 0, 11_544_100_864, 4096);
    let name = "blocks/msr.cut.per_10k.most_thpt_rand_iops.1006.trace.xz";
    block_trace(name, "replayer", (10_000, 8316, 130_188_288), first, last);
    let first = (0, true, 0, 200_626_176, 4096);
    let last = (242_904_693_000, true, 0, 1_023_476_224, 7680);
    let name = "blocks/msr.cut.per_10k.rw_20_80.105.trace.xz";
    block_trace(name, "replayer", (10_000, 2020, 54_810_112), first, last);
}

#[test]
fn virtual_disk_traces() {
    let counts = (113_872, 46_974, 4_205_978_112);
    let first = (0, true, 0, 42_932_745 * 512, 512);
    // 5633898368802 us to 5641098458687 us; the CSV of the same trace counts from 0, to 7200089885 us.
    let last = ((5_641_098_458_687 - 5_633_898_368_802) * 1000, true, 0, 42_936_150 * 512, 512);
    block_trace("blocks/cloudPhysicsIO.vscsi", "vscsi", counts, first, last);
    block_trace("blocks/cloudPhysicsIO_us.csv.gz", "csv", counts, first, last);
    let two = [".vscsi", "_us.csv.gz"].map(|end| sample(&format!("third-party/blocks/cloudPhysicsIO{end}")));
    let [two, csv] = two.map(|path| path.map(|path| records(&path, "auto").unwrap()));
    assert_eq!(two, csv);
}

#[test]
fn csv_traces_of_data_nodes_and_of_an_old_server() {
    let first = (0, true, 0, 488_609_953 * 512, 33 * 512);
    let last = (176_934_006_426, false, 0, 522_156_736 * 512, 4096);
    let counts = (107_614, 104_653, 29_086_558_720);
    let Some(info) = block_trace("blocks/eternity8.q.csv.xz", "csv", counts, first, last) else { return };
    assert_eq!((info.processes, info.files), (Some(578), None));
    let first = (0, false, 0, 488_386_593 * 512, 512);
    let last = (171_864_787_713, true, 0, 665_035_168 * 512, 32 * 512);
    let counts = (127_657, 125_806, 37_268_267_520);
    let Some(info) = block_trace("blocks/eternity9.q.csv.xz", "csv", counts, first, last) else { return };
    assert_eq!(info.processes, Some(495));
    let first = (0, false, 1, 270_336, 4096);
    let last = (603_064_588_892_000, true, 0, 172_552_192, 8192);
    let counts = (44_519, 13_040, 263_305_216);
    let Some(info) = block_trace("blocks/hplajw.csv.xz", "csv", counts, first, last) else { return };
    assert_eq!(info.duration_ns_mean, Some(1_116_898_644.0 * 1e3 / 44_519.0));
}

#[test]
fn file_traces() {
    let first = (0, false, 0, 0, 8);
    let last = (54_489_546_000, true, 160, 0, 11_420);
    let counts = (7201, 7200, 117_265_580_220);
    let Some(info) = block_trace("files/dlio_unet3d.csv.xz", "headstart", counts, first, last) else { return };
    assert_eq!((info.files, info.processes), (Some(161), Some(8)));
    assert_eq!(info.duration_ns_mean, Some(126_564_340.0 * 1e3 / 7201.0));
    let (first, last) = ((0, true, 2, 65_534, 1), (0, true, 145, 4, 8));
    let counts = (163_701, 124_199, 2_488_062_937);
    let Some(info) = block_trace("files/dbench_client.csv.xz", "dbench", counts, first, last) else { return };
    assert_eq!((info.files, info.processes, info.time_span_ns), (Some(113), Some(1), None));
}

#[test]
fn block_numbers() {
    let Some(info) = info_of("third-party/buffer-cache/w106.trace.xz", "u32", 4096) else { return };
    assert_eq!((info.requests, info.distinct_blocks), (5_292_456, 275_171));
}

#[test]
fn one_format_alone_recognises_each_sample_by_its_content() {
    let folders = ["programs", "third-party/blocks", "third-party/buffer-cache", "third-party/files", "../disks"];
    for folder in folders {
        let Some(directory) = sample(folder) else { return };
        let mut checked = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.contains(".files.") || folder == "../disks" && !name.ends_with(".trace.xz") {
                continue;
            }
            let source = Source::open(&path).unwrap();
            let fits = FORMATS.iter().filter(|row| (row.detect)(source.head()).is_some());
            let mut fitting: Vec<&str> = fits.map(|row| row.name).collect();
            // A format with its own header is CSV too, and its row comes first.
            if fitting.len() == 2 && matches!(fitting[0], "headstart" | "dbench") {
                fitting.retain(|name| *name != "csv");
            }
            assert_eq!(fitting.len(), 1, "{name}: {fitting:?}");
            checked += 1;
        }
        assert!(checked > 1, "{folder}");
    }
}

#[test]
fn measured_drives() {
    // name, reads, sectors, total service time and issue time of the last request in us
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
