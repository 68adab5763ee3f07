//! The formats of caches and object stores, on lines written by hand from each format's description.

use headstart_trace::{open, Carries, FileEntry, Record};

use crate::block_formats::{at, read, took, write};
use crate::common::{drain, file, records, scratch};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// The fields that traces of objects carry.
const OBJECTS: Carries = Carries { time: true, writes: true, objects: true, ..Carries::NOTHING };
/// The fields that traces of parts of named objects carry.
const STORE: Carries = Carries { files: true, addresses: true, objects: false, ..OBJECTS };

/// Time, write and size of each record, with the objects numbered in order of appearance.
fn objects(records: &[Record]) -> Vec<(u64, bool, u64, usize)> {
    let mut known: Vec<u64> = Vec::new();
    records
        .iter()
        .map(|record| {
            let at = known.iter().position(|id| *id == record.offset).unwrap_or(known.len());
            known.resize(known.len().max(at + 1), record.offset);
            (record.time.0, record.write, record.size, at)
        })
        .collect()
}

/// The names and sizes of a trace's files after reading it.
fn files(test: &str, content: &str) -> Vec<(String, u64)> {
    let mut reader = open(&file(&scratch(test), "trace", content), "auto").unwrap();
    drain(&mut *reader).unwrap();
    reader.files().iter().map(|FileEntry { path, size_bytes, .. }| (path.clone(), *size_bytes)).collect()
}

fn error(content: &str, format: &str) -> String {
    records(&file(&scratch("cache_error"), "trace", content), format).unwrap_err().to_string()
}

#[test]
fn twitter_hashes_keys_and_counts_key_and_value() {
    let text = "5,p:k:9,5,100,3,get,0\n5,p:k:10,6,30,4,set,86400\n6,p:k:9,5,100,3,gets,0\n\
        6,p:k:11,6,0,3,get,0\n6,p:k:9,5,0,3,delete,0\n7,p:k:10,6,8,3,incr,0\n8,p:k:9,5,1,3,cas,7\n";
    let (all, carries, unit, skipped) = read("twitter", "twitter", text);
    let expected =
        [(0, false, 105, 0), (0, true, 36, 1), (S, false, 105, 0), (2 * S, true, 14, 1), (3 * S, true, 6, 0)];
    assert_eq!(objects(&all), expected);
    // Skipped: the get that found nothing, and the delete.
    assert_eq!((carries, unit, skipped), (OBJECTS, 4096, 2));
    let error = error("5,k,5,100,3,get,0\n5,k,5,100,3,fetch,0\n", "twitter");
    assert!(error.contains("line 2: \"fetch\" in column operation is unknown; allowed: get, gets"), "{error}");
}

#[test]
fn meta_key_value_lines_stand_for_several_requests() {
    let text = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
        604,00ff,10,GET,2,90,2,0,1,2\n605,aa11,20,SET,1,80,0,60,1,2\n605,aa11,20,GET_LEASE,3,0,0,0,1,2\n\
        606,00ff,10,DELETE,1,90,0,0,1,2\n607,aa11,20,GET,1,80,1,0,1,2\n";
    let (all, carries, _, skipped) = read("meta_kv", "meta-kv", text);
    let expected = [(0, false, 100, 0), (0, false, 100, 0), (S, true, 100, 1), (3 * S, false, 100, 1)];
    assert_eq!(objects(&all), expected);
    assert_eq!((carries, skipped), (OBJECTS, 2));
    // Without a header there are no times.
    let (all, carries, ..) = read("meta_kv_old", "meta-kv", "k1,GET,7,2,3\nk2,SET,5,1,3\n");
    assert_eq!(objects(&all), [(0, false, 10, 0), (0, false, 10, 0), (0, true, 8, 1)]);
    assert_eq!(carries, Carries { time: false, ..OBJECTS });
    let error = error("key,op,size,op_count\nk,GET,1,1000001\n", "meta-kv");
    assert!(error.contains("line 2: 1000001 in column op_count is too large; allowed: up to 1000000"), "{error}");
}

#[test]
fn meta_cdn_ranges_end_where_the_response_ends() {
    let text = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,\
        SamplingRate,cache_hit,item_value,RequestHandler,cdn_content_type_id,vip_type\n\
        1678838400,a,1,1000,1100,100,-1,-1,60,1,1,x,h,1,1\n1678838401,b,1,5000,600,100,1000,1999,60,1,0,x,h,1,1\n\
        1678838402,b,1,5000,2100,100,4000,-1,60,1,0,x,h,1,1\n1678838403,a,1,1000,100,100,-1,-1,60,1,1,x,h,1,1\n";
    let (all, carries, _, skipped) = read("meta_cdn", "meta-cdn", text);
    assert_eq!(all, [at(0, 0, 0, 1000), at(S, 1, 1000, 500), at(2 * S, 1, 4000, 1000)]);
    assert_eq!((carries, skipped), (Carries { writes: false, ..STORE }, 1));
}

#[test]
fn ibm_requests_are_for_whole_objects_or_ranges() {
    let text = "1000 REST.PUT.OBJECT 8d4fcda3 1056\n1100 REST.HEAD.OBJECT 3a5f 528\n1200 REST.GET.OBJECT 8d4fcda3 1056 0 1055\n\
        1250 REST.GET.OBJECT 3a5f 528\n1300 REST.GET.OBJECT 8d4fcda3 1056 1000 4000\n1400 REST.DELETE.OBJECT 3a5f\n\
        1500 REST.COPY.OBJECT 77 900\n1600 REST.GET.OBJECT 8d4fcda3 1056 2000 2999\n";
    let (all, carries, unit, skipped) = read("ibm", "ibm-cos", text);
    let expected =
        [write(at(0, 0, 0, 1056)), at(200 * MS, 0, 0, 1056), at(250 * MS, 1, 0, 528), at(300 * MS, 0, 1000, 56)];
    assert_eq!(all, expected);
    assert_eq!((carries, unit, skipped), (STORE, 1, 4));
    assert_eq!(files("ibm_files", text)[..2], [("8d4fcda3".to_owned(), 1056), ("3a5f".to_owned(), 528)]);
    let error = error("1000 REST.GET.OBJECT 8d 7\n1001 REST.GET.OBJECT 8d x\n", "ibm-cos");
    assert!(error.contains("line 2: \"x\" in column size is not a whole number"), "{error}");
}

#[test]
fn thesios_requests_take_what_the_server_took() {
    let text =
        "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,\
        cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,\
        simulated_disk_start_time,simulated_latency\n\
        f1,0,x,1.5,COLD,REPLICATED,READ,OTHER,0,0,4096,4096,4096,1705000000.5,0.011,1705000000.6,0.02\n\
        f2,8192,x,1.5,WARM,REPLICATED,WRITE,OTHER,0,-1,512,0,512,1705000001,0,0,0.001\n\
        f1,4096,x,1.5,COLD,REPLICATED,READ,OTHER,0,1,100,0,100,1705000000.75,0,0,0.0002\n";
    let (all, carries, unit, _) = read("thesios", "thesios", text);
    let expected = [
        took(at(0, 0, 0, 4096), 20 * MS),
        took(at(250 * MS, 0, 4096, 100), 200_000),
        took(write(at(500 * MS, 1, 8192, 512)), MS),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit), (Carries { duration: true, ..STORE }, 1));
}

#[test]
fn baleen_of_each_year_and_of_cachelib() {
    // A read of one shard, a write, and a line for two reads of another shard of the same block.
    let expected = [at(0, 0, 0, 131_072), write(at(S, 1, 64, 100)), at(2 * S, 2, 0, 10), at(2 * S, 2, 0, 10)];
    let year_2023 = "77 0 131072 1680000000.0 1 5 6 0 1 900\n78 64 100 1680000001.0 4 5 6 0 1 900\n\
        77 0 10 1680000002.0 5 5 6 3 2 901\n79 0 5 1680000002.0 100 5 6 3 1 901\n";
    let (all, carries, unit, skipped) = read("baleen_2023", "baleen", year_2023);
    assert_eq!((&all[..], carries, unit, skipped), (&expected[..], STORE, 1, 1));
    let year_2021 =
        "77 0 131072 1680000000.0 1 5 6 0 1\n78 64 100 1680000001.0 4 5 6 0 1\n77 0 10 1680000002.0 5 5 6 3 2\n";
    assert_eq!(read("baleen_2021", "baleen", year_2021).0, expected);
    let csv = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
        1702511878,a-77,40,131072,0,1,2,getChunkData.NotInitialized,1,900,0\n\
        1702511879,a-78,40,100,64,1,2,putChunk.Permanent,1,900,0\n1702511880,a-77,40,10,0,1,2,getChunkData.Temp,2,901,3\n\
        1702511880,a-77,40,10,0,1,2,deleteChunk.Temp,2,901,3\n";
    let (all, _, _, skipped) = read("baleen_csv", "baleen", csv);
    assert_eq!((&all[..], skipped), (&expected[..], 1));
    assert_eq!(files("baleen_files", csv)[2], ("a-77/3".to_owned(), 10));
    // 2019 has no counts; block 77 is one file.
    let year_2019 =
        "77 0 131072 1570000000.5 2 9 5 6\n78 64 100 1570000001.0 3 9 5 6\n77 131072 10 1570000001.5 1 9 5 6\n";
    let (all, ..) = read("baleen_2019", "baleen", year_2019);
    assert_eq!(all, [at(0, 0, 0, 131_072), write(at(500 * MS, 1, 64, 100)), at(S, 0, 131_072, 10)]);
    let named = format!("# block_id io_offset io_size op_time op_name pipeline user_namespace user_name\n{year_2019}");
    assert_eq!(read("baleen_named", "baleen", named).0, all);
}

#[test]
fn rocksdb_accesses_are_of_blocks() {
    let rest = "0,default,2,17,1,0,1,0,10,1,1,8,0,1,0,12";
    let text = format!("1567000000000001,1024,9,4096,{rest}\n1567000000000101,8192,7,300,{rest}\n1567000000000051,1024,9,4096,{rest}\n");
    let (all, carries, _, _) = read("rocksdb", "rocksdb", text);
    let block = |ns: u64, id: u64, size: u64| at(ns, 0, id, size);
    assert_eq!(all, [block(0, 1024, 4096), block(50_000, 1024, 4096), block(100_000, 8192, 300)]);
    assert_eq!(carries, Carries { writes: false, ..OBJECTS });
    // Newer versions also have the block's offset.
    let (all, ..) = read("rocksdb_21", "rocksdb", format!("1567000000000001,3,9,4096,{rest},65536\n"));
    assert_eq!(all, [block(0, 3, 4096)]);
}

#[test]
fn webcachesim_times_have_no_unit() {
    let (all, carries, _, skipped) = read("webcachesim", "webcachesim", "1 0 68\n2 1 7454\n2 0 68\n9 2 0\n");
    assert_eq!(all, [at(0, 0, 0, 68), at(0, 0, 1, 7454), at(0, 0, 0, 68)]);
    assert_eq!((carries, skipped), (Carries { time: false, writes: false, ..OBJECTS }, 1));
    // With further columns the format must be named.
    let path = file(&scratch("webcachesim_more"), "t.tr", "1 18446744073709551615 5 7 7\n");
    assert_eq!(records(&path, "webcachesim").unwrap(), [at(0, 0, u64::MAX, 5)]);
    let error = error("1 2 3\n1 x 3\n", "webcachesim");
    assert!(error.contains("line 2: \"x\" in column id is not a whole number"), "{error}");
}

/// A line of S3's log.
fn s3(time: &str, operation: &str, key: &str, status_and_sizes: &str) -> String {
    format!(
        "79a59df900b949e5 bucket-1 [27/Nov/2026:{time} +0000] 192.0.2.3 arn:aws:iam::1:user/x 3E57427F3EXAMPLE {operation} {key} \
         \"GET /{key}?x=%20 HTTP/1.1\" {status_and_sizes} \"-\" \"aws cli/2 [a b]\" - s9lz= SigV4 ECDHE AuthHeader \
         bucket-1.s3.amazonaws.com TLSv1.2 - -\n"
    )
}

#[test]
fn s3_logs_give_objects_by_key() {
    let text = [
        s3("00:00:10", "REST.GET.OBJECT", "a/b%2520c", "200 - 1000 1000 30 20"),
        s3("00:00:08", "REST.HEAD.OBJECT", "a/b%2520c", "200 - - 1000 5 -"),
        s3("00:00:09", "REST.PUT.OBJECT", "d", "200 - - 700 45 2"),
        s3("00:00:11", "REST.GET.BUCKET", "-", "200 - 5000 - 9 9"),
        s3("00:00:12", "REST.GET.OBJECT", "e", "404 NoSuchKey 300 - 9 9"),
        s3("00:00:13", "REST.DELETE.OBJECT", "d", "204 - - 700 9 -"),
    ]
    .concat();
    let (all, carries, unit, skipped) = read("s3", "s3-log", &text);
    assert_eq!(all, [took(write(at(0, 1, 0, 700)), 45 * MS), took(at(S, 0, 0, 1000), 30 * MS)]);
    assert_eq!((carries, unit, skipped), (Carries { duration: true, ..STORE }, 1, 4));
    assert_eq!(files("s3_files", &text), [("bucket-1/a/b%20c".to_owned(), 1000), ("bucket-1/d".to_owned(), 700)]);
    let error = error(&text.replace("27/Nov", "27/Nob"), "s3-log");
    assert!(error.contains("line 1: \"27/Nob/2026:00:00:10 +0000\" in column time is not a time"), "{error}");
}

/// S3 does not log ranges.
#[test]
fn parts_of_objects_have_no_address_in_s3_logs() {
    let part = |time, bytes: u64| s3(time, "REST.GET.OBJECT", "k", &format!("206 - {bytes} 1000 3 2"));
    let text = [part("00:00:01", 400), part("00:00:02", 600), part("00:00:03", 400)].concat();
    let (all, carries, ..) = read("s3_parts", "s3-log", &text);
    let places: Vec<(u64, u64)> = all.iter().map(|record| (record.offset, record.size)).collect();
    assert_eq!(places, [(0, 400), (400, 600), (0, 400)]);
    assert!(carries.files && !carries.addresses && !carries.objects);
    let mut reader = open(&file(&scratch("s3_note"), "trace", &text), "auto").unwrap();
    drain(&mut *reader).unwrap();
    assert!(reader.note().unwrap().contains("S3 does not log which part of an object"));
}

#[test]
fn cloudfront_requests_began_before_they_were_logged() {
    let text =
        "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status \
        cs-bytes time-taken sc-content-len sc-range-start sc-range-end\n\
        2026-11-27\t10:00:05\tFRA\t1300\t192.0.2.1\tGET\td.cloudfront.net\t/a%20b.bin\t200\t90\t1.500\t1000\t-\t-\n\
        2026-11-27\t10:00:04\tFRA\t900\t192.0.2.1\tGET\td.cloudfront.net\t/c\t206\t90\t0.250\t600\t400\t999\n\
        2026-11-27\t10:00:06\tFRA\t300\t192.0.2.1\tHEAD\td.cloudfront.net\t/c\t200\t90\t0.001\t600\t-\t-\n\
        2026-11-27\t10:00:06\tFRA\t300\t192.0.2.1\tGET\td.cloudfront.net\t/c\t304\t90\t0.001\t-\t-\t-\n\
        2026-11-27\t10:00:07\tFRA\t300\t192.0.2.1\tPUT\td.cloudfront.net\t/up\t201\t5000\t0.500\t0\t-\t-\n\
        2026-11-27\t10:00:08\tFRA\t777\t192.0.2.1\tGET\td.cloudfront.net\t/c\t200\t90\t0.500\t-\t-\t-\n";
    let (all, carries, unit, skipped) = read("cloudfront", "cloudfront", text);
    // Begun at 3.5 s, 3.75 s, 6.5 s and 7.5 s past ten.
    let expected = [
        took(at(0, 0, 0, 1000), 1500 * MS),
        took(at(250 * MS, 1, 400, 600), 250 * MS),
        took(write(at(3 * S, 2, 0, 5000)), 500 * MS),
        took(at(4 * S, 1, 0, 777), 500 * MS),
    ];
    assert_eq!(all, expected);
    assert_eq!((carries, unit, skipped), (Carries { duration: true, ..STORE }, 1, 2));
    assert_eq!(files("cloudfront_files", text)[0].0, "/a b.bin");
    let error = error(&text.replace("1.500", "x"), "cloudfront");
    assert!(error.contains("line 3: \"x\" in column time-taken is not a number"), "{error}");
}
