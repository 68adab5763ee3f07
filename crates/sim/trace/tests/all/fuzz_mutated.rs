//! Mutated inputs: a valid trace of each format with changed bytes gives records or a one-line error, in every parser.
//! 2,000 inputs per parser, or HEADSTART_FUZZ_INPUTS.
//!
//! A failure prints the parser and the number of the input, which is the seed of its mutations.

use headstart_trace::{fuzz_formats, fuzz_parse};

use crate::common::{bzip2, gzip, oracle, recording, scratch, vscsi_1, vscsi_2, xz, zstd};
use crate::mutate::run;

/// Compresses bytes.
type Pack = fn(&[u8]) -> Vec<u8>;

/// Valid content of each format, several if the format has several variants.
fn seeds(format: &str) -> Vec<Vec<u8>> {
    let text: &[&str] = match format {
        "headstart" => &["time,op,pid,file,offset,size,dur_us\n0.5,R,1,0,4096,8192,7\n0.6,W,1,3,0,512,0\n"],
        "msr" => &["128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061630,hm,0,Write,0,512,9\n"],
        "alibaba" => &["device_id,opcode,offset,length,timestamp\n64,W,126703661056,4096,1577808000000046\n64,R,0,512,1577808000000040\n"],
        "tencent" => &["1538323200,12910952,128,0,1063\n1538323199,0,8,1,1063\n"],
        "systor17" => &["Timestamp,Response,IOType,LUN,Offset,Size\n1456135200.013118000,0.001,R,4,8192,4096\n"],
        "dbench" => &["NTCreateX \"\\f\" 0x0 1 7 NT_STATUS_OK\nReadX 7 0 4096 4096 NT_STATUS_OK\nClose 7 NT_STATUS_OK\n", "seq,op,pid,file,offset,size\n1,R,0,2,0,4\n"],
        "thesios" => &["filename,file_offset,application,op_type,request_io_size_bytes,start_time,simulated_latency\nf,0,a,READ,512,1705000000.5,0.1\ng,8,a,WRITE,9,1705000001,0\n"],
        "baleen" => &["77 0 131072 1680000000.0 1 5 6 0 1 900\n78 64 100 1680000001.0 4 5 6 0 3 900\n", "7 0 1 1570000000.5 1 9 5 6\n", "op_time,block_id,io_size,io_offset,op_name,op_count,rs_shard_id\n17,a-7,13,0,getChunkData.NotInitialized,2,0\n18,a,1,2,putChunk.x,1,3\n"],
        "twitter" => &["0,ns:u:1,6,249,1,get,0\n0,\"ns:v\",7,27,18,add,86400\n1,k,3,0,1,delete,0\n"],
        "meta-kv" => &["op_time,key,key_size,op,op_count,size,cache_hits\n604,a,48,GET,2,87,1\n605,b,48,SET,1,7,0\n", "k,GET,7,2,3\nk,SET,1,1,3\n"],
        "meta-cdn" => &["timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd\n1678838400,a,1,9,19,10,-1,-1\n1678838401,b,1,5000,600,100,1000,1999\n"],
        "rocksdb" => &["1567000000000001,1024,9,4096,0,default,2,17,1,0,1,0,10,5,1,8,0,1,0,12\n1567000000000101,3,7,40,0,default,2,17,1,0,1,0,10,5,1,8,0,1,0,12,65536\n"],
        "procmon" => &["\u{feff}\"Time of Day\",\"Process Name\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\",\"Duration\"\n\"9:00:00.5 PM\",\"a\",\"12\",\"ReadFile\",\"C:\\x, y\",\"SUCCESS\",\"Offset: 4,096, Length: 65,536, Priority: Normal\",\"0.0005\"\n\"9:00:00,6\",\"a\",\"12\",\"WriteFile\",\"C:\\x\",\"SUCCESS\",\"Offset: -1, Length: 9\",\"0,0005\"\n"],
        "etw" => &[
            "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags\nEndHeader\n DiskRead, 8612, x (39), 11, 1, 0xff, 0x018f0b8000, 0x00001000, 283, 0, 0x060043\n DiskFlush, 8700, System (   4), 8, 0xff\n",
            "Event Name, Type, Event ID\n DiskIo, Read, 0, 3, 0, 0, 10, 0, 0x0, 0x04, 0x0B, 1, , , {0}, , 132100000000000000, 30, 15, 0, 0x00060043, 4096, 0, 8192, 0xF\n",
            "IO Type,Disk,Init Time (s),IO Time (\u{b5}s),Size (B),Min Offset\nRead,0,1.5,\"1,250.5\",\"65,536\",\"1,048,576\"\n",
        ],
        "dftracer" => &["[\n{\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":1,\"args\":{\"name\":\"/x\",\"value\":\"a\"}}\n{\"name\":\"open64\",\"cat\":\"POSIX\",\"pid\":1,\"ts\":5,\"dur\":1,\"args\":{\"fhash\":\"a\",\"flags\":1025}}\n{\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":1,\"ts\":6,\"dur\":1,\"args\":{\"fhash\":\"a\",\"ret\":7,\"count\":9}},\n{\"name\":\"fseek\",\"cat\":\"STDIO\",\"pid\":1,\"ts\":7,\"dur\":1,\"args\":{\"fhash\":\"a\",\"whence\":2,\"offset\":-1}}\n{\"name\":\"fwrite\",\"cat\":\"STDIO\",\"pid\":1,\"ts\":8,\"dur\":1,\"args\":{\"fhash\":\"a\",\"ret\":7,\"size\":8}}\n]\n"],
        "darshan" => &["# DXT, file_id: 1, file_name: /x\n# DXT, rank: 0, hostname: n\n X_POSIX 0 read 0 0 512 0.1 0.2 [OST: 1]\n X_MPIIO 0 write 0 0 512 0.3 0.4\n\n# DXT, file_id: 2, file_name: /y\n X_MPIIO 1 read 0 0 512 0.05 0.06\n"],
        "ftrace" => &[
            "# tracer: nop\n  a b-7    ( 6) [000] d..1  10.500000: block_rq_issue: 8,0 R 4096 () 8 + 8 none,0,0 [a]\n  <idle>-0 [000] d..1  10.6: block_rq_complete: 8,0 R () 8 + 8 none,0,0 [0]\n",
            " a  7/8 [001]  10.5:  1  block:block_bio_queue: 8,0 WS 8 + 8 [a]\n a  8 [001]  10.6: block:block_rq_complete: 8,0 WS () 8 + 8 [0]\n",
        ],
        "fiu" => &["89968195792462 4892 syslogd 904265560 8 W 6 0 531e779039c0d2a5\n89968195792463 7 a b 9 8 R 8 16\n"],
        "ibm-cos" => &["1000 REST.PUT.OBJECT 8d 1056\n1100 REST.HEAD.OBJECT 3a\n1200 REST.GET.OBJECT 8d 1056 0 1055\n"],
        "s3-log" => &["o b [27/Nov/2026:10:00:00 +0000] 1.2.3.4 r id REST.GET.OBJECT k%20 \"GET /k HTTP/1.1\" 200 - 9 9 3 2 \"-\" \"x\"\no b [27/Nov/2026:10:00:00 +0000] 1.2.3.4 r id REST.GET.OBJECT k \"GET /k HTTP/1.1\" 206 - 4 9 - 2 \"-\"\no b [27/Nov/2026:10:00:01 -0130] 1.2.3.4 r id REST.PUT.OBJECT k \"-\" 200 - - 9 3 2\n"],
        "cloudfront" => &["#Version: 1.0\n#Fields: date time sc-bytes cs-method cs-uri-stem sc-status cs-bytes time-taken sc-content-len sc-range-start sc-range-end\n2026-11-27\t10:00:05\t13\tGET\t/a%20b\t206\t9\t1.5\t10\t4\t9\n2026-11-27\t10:00:05\t13\tPUT\t/a\t200\t9\t0.1\t-\t-\t-\n"],
        "fio-lat" => &["7, 7558275, 0, 4096, 122880, 0\n7, 3993988, 1, 65536, 0, 0x4001\n8, 1, 2, 9, 9, 0\n", "7, 1, 0, 4096, 0, 0, 7000123\n"],
        "webcachesim" => &["1 0 68\n2 1 7454\n"],
        "csv" => &["lba,nsect,time_us\n1,2,3\n2,2,4\n", "id,size\n1,4096\n2,7\n", "\u{feff}\"Offset\", size,op\n\"0\",1,28\n",
            "timestamp;syscall;path;pos;len;lat (us)\n2024-05-01 12:34:56.5;pread64;/a b;0x10;4096;7\n2024-05-01T12:34:57+02:00;close;/a b;;;\n",
            "# ts off bytes\n1714566896123 0 512\n1714566896124 512 1\n",
        ],
        "offsets" => &["0\n0x1000\n# x\n4096\n"],
        "strace" => &[
            "7 04:12:13.484606 openat(AT_FDCWD, \"/a\", O_RDWR|O_APPEND) = 3 <0.000010>\n7 04:12:13.5 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n8 04:12:13.6 read(3, \"x\\\"(\"..., 99) = 99 <0.000020>\n7 04:12:13.7 <... clone resumed>) = 8 <0.2>\n8 04:12:13.8 lseek(3, -9, SEEK_END) = 90 <0.1>\n8 04:12:13.9 pread64(3, \"\", 5, 0x10) = 5 <0.1>\n7 04:12:14.0 fstat(3, {st_mode=S_IFREG|0644, st_size=100, ...}) = 0 <0.1>\n7 04:12:14.1 write(3, \"\", 9) = 9 <0.1>\n8 04:12:14.2 +++ exited with 0 +++\n",
            "     0.000000 read(3</f>, \"\", 4) = 4\n     0.000100 sendfile(1<pipe:[5]>, 3</f>, [0] => [5], 5) = 5\nstrace: Process 9 attached\n[pid     9]      0.000100 fcntl(3</f>, F_DUPFD, 0) = 4</f>\n[pid     9]      0.1 dup2(4, 5) = 5\n[pid     9]      0.1 close(4) = 0\n",
        ],
        "perf-trace" => &[
            "     0.028 ( 0.003 ms): cat/12 openat(dfd: CWD, filename: 0x21f906f0, flags: RDONLY|APPEND) = 3</a>\n     0.1 (         ): c d/12 read(fd: 3, buf: 0x1, count: 7) ...\n     0.2 ( 0.1 ms): c d/13 pread64(fd: 3</b>, count: 7, pos: 64) = 7\n     0.1 ( 0.3 ms): c d/12  ... [continued]: read())  = 7\n         ? (         ): x/9  ... [continued]: clone3()) = 0\n",
        ],
        "biosnoop" => &["TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.000004 a b 1950 xvda1 W 13092560 4096 0.1 0.74\n0.2 c 0 sdb R -1 0 0 0.1\n0.3 c 7 sdb RA 8 512 0 0.1\n"],
        "fio" => &[
            "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f wait 100 0\n/f write 4096 512\n/f trim 0 1\n/f close\n",
            "fio version 3 iolog\n2 f open\n10 f read 0 4096\n11 f sync 0 0\n12 f write 9 1\n",
        ],
        "blkparse" => &["  8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [jbd2]\n  8,0    3        2     0.000100000   697  D  WS 223490 + 8 [jbd2]\n  8,0    3        3     0.000200000     0  C  WS 223490 + 8 [0]\n"],
        "spc" => &["0,303567,3584,w,0.5\n1,0,512,R,0.6\n"],
        "disksim" => &["0.5 0 1024 8 1\n0.6 1 0 16 0\n"],
        "replayer" => &["15849.28847 0 6198656 512 0\n15850.0 0 0 4096 1\n"],
        "mqsim" => &["11413000 0 657728 16 1\n11565000 1 31244784 64 0\n"],
        "measured" => &["R Hit 8 4 500 100.5\nW Miss 16 4 900.25 1\n"],
        "lis" => &["1 2 0 4\n7 64 0 5\n"],
        "lirs" => &["0\n1\n*\n17\n\n1\n"],
        "file-table" => &["file,max_offset,disk_size,path\n0,10,20,/a/b\n1,5,,\"x,\"\"y\"\n"],
        _ => &[],
    };
    if !text.is_empty() {
        return text.iter().map(|text| text.as_bytes().to_vec()).collect();
    }
    let vscsi = |version| {
        let one = |at: u64| match version {
            1 => vscsi_1(at as u32, 0x28, 4096, at * 8, at * 10),
            _ => vscsi_2(at as u32, 0x2a, 512, at * 8, [at * 10, 7]),
        };
        (0..4).flat_map(one).collect::<Vec<u8>>()
    };
    match format {
        "vscsi" => vec![vscsi(1), vscsi(2)],
        "oracleGeneral" => vec![[oracle(0, 7, 4096, 3), oracle(1, 8, 0, -1), oracle(1, 7, 512, -1)].concat()],
        "hints" => {
            let path = scratch("fuzz-hints").join("x.hints");
            recording().write(&path).unwrap();
            vec![std::fs::read(path).unwrap()]
        }
        "u32" => vec![(0..80u32).flat_map(u32::to_le_bytes).collect()],
        other => panic!("{other} has no seed: add one"),
    }
}

/// Parses, and checks that an error is one line without control characters.
fn parse(format: &str, content: &[u8]) -> Result<(), String> {
    fuzz_parse(format, content).map(|_| ()).map_err(|error| {
        let text = error.to_string();
        assert!(text.starts_with("fuzz"), "{format}: {text:?} names no file");
        text
    })
}

#[test]
fn mutated_traces_of_every_format() {
    for format in fuzz_formats() {
        run(format, &seeds(format), |content| parse(format, content));
    }
}

#[test]
fn mutated_compressed_traces() {
    let packs: [(&str, Pack); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];
    for (name, pack) in packs {
        let packed: Vec<Vec<u8>> = seeds("lirs").iter().map(|seed| pack(seed)).collect();
        run(name, &packed, |content| parse("lirs", content));
    }
}
