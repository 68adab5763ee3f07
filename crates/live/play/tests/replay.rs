//! Replays against a server over memory: what is sent, when, and what is counted.

#[path = "../../nbd/tests/common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use common::{all_flags, export, serve_tcp, Fault, Memory};
use headstart_nbd::client::{Client, ConnectOptions};
use headstart_nbd::{Export, Flags};
use headstart_play::{replay, survey, Addresses, Arrival, Error, Processes, Report, Settings, Writes};
use headstart_types::read_options;

const SIZE: usize = 1 << 20;

/// A trace in a file that is removed at the end.
struct Trace(PathBuf);

impl Trace {
    fn new(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("headstart-play-{}-{}.csv", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

struct Bed {
    trace: Trace,
    memory: Memory,
    settings: Settings,
}

impl Bed {
    fn new(text: &str) -> Self {
        Self::of(text, export("a", SIZE as u64, all_flags()), Fault::None)
    }

    fn of(text: &str, export: Export, fault: Fault) -> Self {
        let memory = Arc::new(Mutex::new(vec![0; export.size_bytes as usize]));
        let to = serve_tcp(export, Arc::clone(&memory), fault);
        let trace = Trace::new(text);
        let (trace_path, format) = (trace.0.clone(), "csv".to_owned());
        let settings = Settings { trace: trace_path, format, to: to.to_string(), ..Settings::default() };
        Self { trace, memory, settings }
    }

    fn run(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Report, Error> {
        assert!(self.trace.0.exists());
        let connection_count = self.settings.connections as usize;
        let options = ConnectOptions { connection_count, ..ConnectOptions::default() };
        let client = Client::connect(&self.settings.uri().unwrap(), options).unwrap();
        let survey = survey(&self.settings, client.export(), &mut || true)?;
        replay(&self.settings, &survey, &client, go_on)
    }

    fn report(&self) -> Report {
        let report = self.run(&mut |_| true).unwrap();
        let processes = report.processes.len().max(1) as u64;
        assert_eq!(report.compute_ns + report.stall_ns + report.idle_ns, report.elapsed_ns * processes);
        report
    }

    fn error(&self) -> String {
        let error = self.run(&mut |_| true).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    }
}

/// Three requests with think times of 30 ms, 40 ms and 50 ms; no request follows the last.
const THINKS: &str = "op,offset,size,think\nR,0,4096,0.03\nW,8192,8192,0.04\nR,4096,512,0.05\n";

#[test]
fn closed_with_think_times() {
    let report = Bed::new(THINKS).report();
    assert_eq!((report.requests, report.writes, report.errors), (3, 0, 0));
    assert_eq!((report.bytes_read, report.bytes_written), (4096 + 8192 + 512, 0));
    // Thinking never takes less than in the trace; any excess is due to the machine.
    assert!(report.compute_ns >= 70_000_000 && report.elapsed_ns >= report.compute_ns, "{report:?}");
    assert!(report.response_ns.max >= report.response_ns.mean && report.response_ns.mean > 0);
    assert!(report.notes[0].starts_with("1 writes of the trace were read"), "{:?}", report.notes);
}

#[test]
fn twice_the_speed_halves_thinking_and_a_constant_replaces_it() {
    let mut bed = Bed::new(THINKS);
    bed.settings.speed = 1000.0;
    let fast = bed.report();
    assert!(fast.compute_ns >= 70_000, "{fast:?}");
    bed.settings.speed = 1.0;
    bed.settings.compute = "20ms".parse().unwrap();
    assert!(bed.report().compute_ns >= 40_000_000);
}

#[test]
fn writes_are_written_read_or_left_out() {
    let mut bed = Bed::new(THINKS);
    bed.settings.speed = 1e6;
    bed.settings.writes = Writes::Skip;
    let report = bed.report();
    assert_eq!((report.requests, report.writes), (2, 0));
    assert!(!report.notes.iter().any(|note| note.contains("were read")), "{:?}", report.notes);
    assert!(bed.memory.lock().unwrap().iter().all(|byte| *byte == 0));
    bed.settings.writes = Writes::Write;
    let report = bed.report();
    assert_eq!((report.requests, report.writes, report.bytes_written), (3, 1, 8192));
    assert!(report.write_response_ns.mean > 0);
    let memory = bed.memory.lock().unwrap();
    let written: Vec<usize> =
        memory.chunks(4096).enumerate().filter(|page| page.1.iter().any(|b| *b != 0)).map(|p| p.0).collect();
    assert_eq!(written, [2, 3]);
}

#[test]
fn open_arrivals_are_sent_at_their_times() {
    let mut bed = Bed::new("time,op,offset,size\n0,R,0,4096\n0.03,R,4096,4096\n0.06,R,8192,4096\n");
    bed.settings.arrival = Arrival::Open;
    let report = bed.report();
    assert_eq!((report.requests, report.compute_ns), (3, 0));
    assert!(report.elapsed_ns >= 60_000_000, "{report:?}");
    assert!(report.idle_ns + report.stall_ns == report.elapsed_ns);
    bed.settings.speed = 10.0;
    assert!(bed.report().elapsed_ns >= 6_000_000);
}

/// A delayed request is measured from the time at which it was due.
#[test]
fn a_depth_holds_back_open_arrivals() {
    let text: String = (0..200).map(|index| format!("0,R,{},4096\n", index * 4096)).collect();
    let mut bed = Bed::new(&format!("time,op,offset,size\n{text}"));
    bed.settings.arrival = Arrival::Open;
    bed.settings.depth = Some(1);
    let report = bed.report();
    assert_eq!(report.requests, 200);
    assert!(report.notes.iter().any(|note| note.contains("others waited for a place")), "{:?}", report.notes);
    assert_eq!(report.response_ns.max, report.elapsed_ns, "the last was due at the start");
}

#[test]
fn processes_run_side_by_side() {
    let text: String = (0..60).map(|index| format!("{},{},512,0.02\n", 7 + index % 3, index * 512)).collect();
    let mut bed = Bed::new(&format!("pid,offset,size,think\n{text}"));
    bed.settings.processes = Processes::PerPid;
    bed.settings.speed = 10.0;
    bed.settings.connections = 2;
    let report = bed.report();
    assert_eq!(
        report.processes.iter().map(|process| (process.pid, process.requests)).collect::<Vec<_>>(),
        [(7, 20), (8, 20), (9, 20)]
    );
    for process in &report.processes {
        assert!(process.compute_ns >= 19 * 2_000_000 && process.elapsed_ns <= report.elapsed_ns, "{process:?}");
    }
    assert_eq!(report.connections, 2);
}

#[test]
fn a_depth_of_closed_arrivals_sends_everything_once() {
    let text: String = (0..500).map(|index| format!("{},512\n", index * 512)).collect();
    let mut bed = Bed::new(&format!("offset,size\n{text}"));
    bed.settings.depth = Some(16);
    bed.settings.limit = Some(300);
    let report = bed.report();
    assert_eq!((report.requests, report.bytes_read), (300, 300 * 512));
    assert!(report.notes.iter().any(|note| note.contains("think times are zero")), "{:?}", report.notes);
}

/// Requests longer than the server's limit are split, and unaligned ones are rounded outwards.
#[test]
fn requests_are_made_to_fit_the_server() {
    let mut small = export("a", SIZE as u64, all_flags());
    (small.blocks.bytes_min, small.blocks.bytes_max) = (512, 4096);
    let bed = Bed::of("offset,size\n100,10000\n4096,512\n", small, Fault::None);
    let report = bed.report();
    assert_eq!((report.requests, report.errors, report.bytes_read), (2, 0, 10240 + 512));
}

#[test]
fn files_lie_one_after_another() {
    let mut bed = Bed::new("file,op,offset,size\n1,W,0,5000\n2,W,0,512\n");
    bed.settings.writes = Writes::Write;
    let report = bed.report();
    assert!(report.notes.iter().any(|note| note.contains("2 files lie one after another")), "{:?}", report.notes);
    let memory = bed.memory.lock().unwrap();
    let pages: Vec<usize> =
        memory.chunks(4096).enumerate().filter(|page| page.1.iter().any(|b| *b != 0)).map(|p| p.0).collect();
    assert_eq!(pages, [0, 1, 2]);
}

#[test]
fn failed_requests_are_counted_and_told() {
    let bed = Bed::of(
        "offset,size\n0,4096\n8192,4096\n4096,4096\n12288,4096\n",
        export("a", SIZE as u64, all_flags()),
        Fault::ReadsFailFrom(8192),
    );
    let report = bed.report();
    assert_eq!((report.requests, report.errors, report.bytes_read), (4, 2, 8192));
    let expected = "2 requests failed; the first: 4KiB at byte 8192: input/output error (\"a bad sector\")";
    assert!(report.notes.iter().any(|note| note == expected), "{:?}", report.notes);
}

#[test]
fn a_lost_connection_ends_it() {
    let text: String = (0..50).map(|index| format!("{},512\n", index * 512)).collect();
    let bed = Bed::of(&format!("offset,size\n{text}"), export("a", SIZE as u64, all_flags()), Fault::ClosesAt(7));
    let error = bed.error();
    assert!(error.starts_with("nbd://127.0.0.1:") && error.ends_with("after 7 requests"), "{error}");
}

#[test]
fn the_caller_can_stop_it() {
    let bed = Bed::new("offset,size,think\n0,512,1000\n0,512,1000\n");
    assert!(matches!(bed.run(&mut |_| false), Err(Error::Stopped)));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let beyond = Bed::new("op,offset,size\nW,0,512\nR,1048064,1024\n");
    let error = beyond.error();
    assert!(error.contains("line 3") && error.contains("beyond the export's 1MiB"), "{error}");
    let mut wrapped = Bed::new("offset,size\n1048064,1024\n2097152,512\n");
    wrapped.settings.addresses = Addresses::Wrap;
    assert_eq!(wrapped.report().bytes_read, 512 + 512, "cut at the end, and from the start");
    let mut read_only = Bed::of(THINKS, export("a", SIZE as u64, Flags::READ_ONLY), Fault::None);
    read_only.settings.writes = Writes::Write;
    assert!(read_only.error().starts_with("writable: the export is read-only"));
    let mut bed = Bed::new("offset,size\n0,512\n");
    bed.settings.arrival = Arrival::Open;
    assert!(bed.error().starts_with("arrival: the trace carries no times"));
    for (options, said) in [
        ("arrival = \"open\"\ncompute = \"gaps\"", "compute: open arrivals have no think times"),
        ("compute = \"soon\"", "compute: \"soon\" has an unknown unit; allowed: \"trace\", \"gaps\", a time"),
        ("speed = 0.0", "speed: 0.0 is out of range; allowed: a number from 0.001 to 1000000"),
        ("speed = nan", "speed: nan is out of range; allowed: "),
        ("depth = 0", "depth: 0 is out of range; allowed: a whole number from 1 to 65536"),
        ("connections = 70_000", "connections: 70000 is out of range; allowed: a whole number from 1 to 65536"),
        ("writable = true\nskip_writes = true", "--writable, --skip-writes: exclude each other"),
        ("process = \"\"", "process: is empty"),
    ] {
        let read = read_options::<Settings>(options.parse().unwrap());
        let error = read.and_then(|settings| settings.selection().map(drop)).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    let mut bed = Bed::new("op,offset,size\nW,0,512\n");
    bed.settings.writes = Writes::Skip;
    assert!(bed.error().starts_with("trace: no request is left"));
}
