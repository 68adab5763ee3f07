//! Records per second of every text and binary reader on uncompressed files, and of every generator; one thread. `cargo
//! bench -p headstart-trace --bench rates`. It creates its own files.

// A benchmark measures wall-clock time; no result depends on it.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::time::Instant;

use headstart_trace::{convert, generate, open, GeneratorContext, RecordReader, WORKLOADS};

const CONTEXT: GeneratorContext = GeneratorContext { seed: 1, block_bytes: 8192 };
const RECORDS: u64 = 5_000_000;

fn rate(name: &str, mut reader: impl FnMut() -> Box<dyn RecordReader>) {
    let mut best = 0.0f64;
    for _ in 0..3 {
        let start = Instant::now();
        let (mut batch, mut count) = (Vec::new(), 0u64);
        let mut reader = reader();
        while reader.read(&mut batch).expect("a valid trace") {
            count += std::hint::black_box(&batch).len() as u64;
        }
        best = best.max(count as f64 / start.elapsed().as_secs_f64());
    }
    println!("{name:28} {:8.1} million records/s", best / 1e6);
}

fn zipf(more: &str) -> Box<dyn RecordReader> {
    let keys = format!("requests = {RECORDS}\nblocks = 1000000\n{more}").parse().expect("keys");
    generate("zipf", keys, &CONTEXT).expect("valid keys")
}

fn files(directory: &Path) {
    let oracle = directory.join("t.oracleGeneral");
    convert(&mut *zipf(""), "oracleGeneral", &oracle, 8192).expect("written");
    rate("oracleGeneral", || open(&oracle, "oracleGeneral").expect("opened"));
    let csv = directory.join("t.csv");
    convert(&mut *zipf("compute = \"exp:1ms\""), "csv", &csv, 8192).expect("written");
    rate("csv (offset,size,think)", || open(&csv, "csv").expect("opened"));
    let (mut full, mut lirs, mut lis) =
        ("time,op,pid,file,offset,size,dur_us\n".to_owned(), String::new(), String::new());
    for index in 0..RECORDS {
        let block = index * 2_654_435_761 % 1_000_003;
        let (s, us) = (index / 10_000, index % 10_000 * 100);
        full += &format!("{s}.{us:06},R,15515,{},{},4096,{}\n", index % 50, block * 4096, index % 90);
        lirs += &format!("{block}\n");
        lis += &format!("{block} 8 0 {index}\n");
    }
    for (format, content) in [("headstart", full), ("lirs", lirs), ("lis", lis)] {
        let path = directory.join(format);
        std::fs::write(&path, content).expect("written");
        rate(format, || open(&path, format).expect("opened"));
    }
}

/// The formats of block traces, with lines as their tools write them.
fn block_traces(directory: &Path) {
    let names = ["spc", "msr", "alibaba", "tencent", "systor17", "disksim", "fio", "blkparse"];
    let mut texts = names.map(|_| String::new());
    texts[6] += "fio version 3 iolog\n";
    for index in 0..RECORDS {
        let sector = index * 2_654_435_761 % 1_000_003 * 8;
        let (s, us, byte, volume) = (index / 10_000, index % 10_000 * 100, sector * 512, index % 24);
        let lines = [
            format!("{volume},{sector},4096,W,{s}.{us:06}\n"),
            format!("{},usr,{},Read,{byte},4096,41286\n", 128_166_372_003_061_629 + index, volume % 2),
            format!("{volume},R,{byte},4096,{}\n", 1_577_808_000_000_046 + index),
            format!("{},{sector},8,0,{volume}\n", 1_538_323_199 + s),
            format!("{}.{us:06}000,0.000806000,R,{volume},{byte},4096\n", 1_456_135_200 + s),
            format!("{index}.{us:06} {volume} {sector} 8 1\n"),
            format!("{index} /dev/sda read {byte} 4096\n"),
            // Queued here, and completed below while the sixteenth request after it is queued.
            format!("  8,0 {volume:4} {index:8} {s:5}.{us:06}000  9412  Q   R {sector} + 8 [cat]\n"),
        ];
        texts.iter_mut().zip(&lines).for_each(|(text, line)| *text += line);
        if index >= 16 {
            let done = (index - 16) * 2_654_435_761 % 1_000_003 * 8;
            texts[7] += &format!("  8,0 {volume:4} {index:8} {s:5}.{us:06}050     0  C   R {done} + 8 [0]\n");
        }
    }
    for (format, text) in names.into_iter().zip(texts) {
        let path = directory.join(format);
        std::fs::write(&path, text).expect("written");
        rate(format, || open(&path, format).expect("opened"));
        std::fs::remove_file(&path).expect("removed");
    }
}

fn main() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rates");
    std::fs::create_dir_all(&directory).expect("a directory");
    files(&directory);
    block_traces(&directory);
    for row in WORKLOADS {
        for compute in ["0s", "exp:1ms"] {
            let count = match row.name {
                "synth" | "sequential" => format!("blocks = 1000000\npasses = {}", RECORDS / 1_000_000),
                // Their requests consist of many records each.
                _ if !row.keys.defaults().contains_key("blocks") => String::new(),
                _ if row.keys.defaults().contains_key("reads") => format!("blocks = 1000000\nreads = {RECORDS}"),
                _ => format!("blocks = 1000000\nrequests = {RECORDS}"),
            };
            let own = row.keys.defaults().contains_key("compute");
            let text = if own { format!("{count}\ncompute = \"{compute}\"") } else { count };
            let name = format!("{} ({compute})", row.name);
            rate(&name, || generate(row.name, text.parse().expect("keys"), &CONTEXT).expect("valid keys"));
        }
    }
    let start = Instant::now();
    drop(zipf(""));
    println!("zipf: building the table of a million blocks takes {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    std::fs::remove_dir_all(&directory).expect("removed");
}
