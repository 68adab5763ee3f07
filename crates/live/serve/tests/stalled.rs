//! An export whose upstream stalls, on real sockets: clients of another export are still answered. The test checks the
//! order of events and no times: the upstream continues only after the others have been answered.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

use headstart_nbd::client::{Client, ClientError, Completion, ConnectOptions};
use headstart_nbd::server::{Handshake, Progress, Tls};
use headstart_nbd::{Address, BlockSizes, Command, Export, Flags, Uri, REQUEST_BYTES};
use headstart_serve::{run, Settings};

const SIZE: u64 = 64 << 20;
const READ: Command = Command::Read { single_chunk: false };
/// Far longer than anything that is not stalled takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How an upstream stalls when told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It reads requests and does not reply.
    NeverReplies,
    /// It reads the header of one request and nothing more.
    TakesNothing,
    /// It closes the connection, accepts another one and sends nothing.
    NeverGreets,
    /// It closes the connection, accepts another one and sends one byte at a time.
    GreetsSlowly,
    /// It closes the connection and accepts no other.
    NeverAccepts,
}

/// An upstream with one export, all zeroes.
struct Upstream {
    port: u16,
    stalls: Arc<AtomicBool>,
    connection: Arc<Mutex<Option<TcpStream>>>,
    /// Receives when the fault has begun.
    begun: mpsc::Receiver<()>,
}

fn export() -> Export {
    let flags = Flags::FLUSH.with(Flags::MULTI_CONN);
    let blocks = BlockSizes { bytes_min: 1, bytes_preferred: 4096, bytes_max: 32 << 20 };
    Export { name: String::new(), description: String::new(), size_bytes: SIZE, flags, blocks, allocation: false }
}

/// Blocks the thread until the process ends; the test ends earlier.
fn stall(stream: TcpStream) {
    thread::park_timeout(Duration::from_secs(600));
    drop(stream);
}

fn serve_upstream(mut stream: TcpStream, stalls: &AtomicBool, fault: Fault, begin: &mpsc::Sender<()>) -> Option<()> {
    let mut out = Vec::new();
    let mut handshake = Handshake::new(Tls::Never, &mut out);
    if stalls.load(Ordering::SeqCst) {
        begin.send(()).ok()?;
        if fault == Fault::GreetsSlowly {
            for byte in &out {
                stream.write_all(&[*byte]).ok()?;
                thread::sleep(Duration::from_secs(2));
            }
        }
        stall(stream);
        return None;
    }
    stream.write_all(&out).ok()?;
    let session = loop {
        let mut input = vec![0; handshake.needed()];
        stream.read_exact(&mut input).ok()?;
        out.clear();
        let progress = handshake.advance(&input, &[export()][..], &mut out).ok()?;
        stream.write_all(&out).ok()?;
        match progress {
            Progress::Transmitting(session) => break session,
            Progress::Negotiating => {}
            _ => return None,
        }
    };
    loop {
        let mut header = [0; REQUEST_BYTES];
        stream.read_exact(&mut header).ok()?;
        if fault == Fault::TakesNothing && stalls.load(Ordering::SeqCst) {
            begin.send(()).ok()?;
            stall(stream);
            return None;
        }
        let incoming = session.check(&header).ok()?;
        let mut payload = vec![0; incoming.payload_bytes as usize];
        stream.read_exact(&mut payload).ok()?;
        if fault == Fault::NeverReplies && stalls.load(Ordering::SeqCst) {
            begin.send(()).ok()?;
            continue;
        }
        let request = incoming.request.ok()?;
        out.clear();
        match request.command {
            READ => {
                session.read_header(&request, &mut out);
                out.resize(out.len() + request.length as usize, 0);
            }
            _ => session.done(request.cookie, &mut out),
        }
        stream.write_all(&out).ok()?;
    }
}

impl Upstream {
    fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (begin, begun) = mpsc::channel();
        let (stalls, connection) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (own, last) = (stalls.clone(), connection.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if own.load(Ordering::SeqCst) && fault == Fault::NeverAccepts {
                    begin.send(()).unwrap();
                    stall(stream.unwrap());
                    return;
                }
                let stream = stream.unwrap();
                *last.lock().unwrap() = Some(stream.try_clone().unwrap());
                let (own, begin) = (own.clone(), begin.clone());
                thread::spawn(move || serve_upstream(stream, &own, fault, &begin));
            }
        });
        Self { port, stalls, connection, begun }
    }

    /// Starts to stall.
    fn stall(&self, fault: Fault) {
        self.stalls.store(true, Ordering::SeqCst);
        if matches!(fault, Fault::NeverGreets | Fault::GreetsSlowly | Fault::NeverAccepts) {
            let last = self.connection.lock().unwrap().take().expect("the server has connected");
            last.shutdown(Shutdown::Both).unwrap();
        }
    }
}

type Outcome = Result<Completion, ClientError>;

/// Sends a request; the outcome comes through the channel.
fn ask(client: &Client, command: Command, offset: u64, length: u32) -> mpsc::Receiver<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let payload = if matches!(command, Command::Write { .. }) { vec![7; length as usize] } else { Vec::new() };
    client.submit(command, offset, length, &payload, Vec::new(), move |outcome| _ = sender.send(outcome));
    receiver
}

fn others_are_answered(fault: Fault) {
    let folder = std::env::temp_dir().join(format!("headstart-stalled-{}-{fault:?}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (image, socket) = (folder.join("image"), folder.join("socket"));
    std::fs::write(&image, vec![5; 8 << 20]).unwrap();
    let upstream = Upstream::start(fault);
    let settings = Settings {
        exports: toml::Table::from_iter([
            ("stalls".to_owned(), format!("nbd://127.0.0.1:{}", upstream.port).into()),
            ("other".to_owned(), image.display().to_string().into()),
        ]),
        socket: Some(socket.display().to_string()),
        cache: Some("4MiB".to_owned()),
        readahead: Some("demand".to_owned()),
        writable: true,
        ..Settings::default()
    };
    let (ready, is_ready) = mpsc::channel();
    // Not joined, since what stalls never ends.
    thread::spawn(move || {
        let ended = run(&settings, &mut |_| {
            _ = ready.send(());
            true
        });
        panic!("the server has ended: {:?}", ended.err());
    });
    is_ready.recv().expect("the server starts");
    let connect = |export: &str| connected(&socket, export);
    let (stalled, other) = (connect("stalls"), connect("other"));
    assert!(other.read_at(0, 4096, Vec::new()).unwrap().iter().all(|byte| *byte == 5));
    stalled.read_at(0, 4096, Vec::new()).unwrap();
    upstream.stall(fault);
    // 24 MiB of writes exceed the buffers of the sockets.
    let mut outstanding: Vec<_> =
        (0..6).map(|at| ask(&stalled, Command::Write { fua: false }, at << 22, 4 << 20)).collect();
    outstanding.extend((0..6).map(|at| ask(&stalled, READ, (40 << 20) + at * 8192, 4096)));
    upstream.begun.recv_timeout(PATIENCE).expect("the fault begins");
    for round in 0..4_u64 {
        // A cached read, an uncached one, a write and a flush.
        let requests = [
            (READ, 0, 4096),
            (READ, (1 + round) << 20, 4096),
            (Command::Write { fua: false }, (2 << 20) + (round << 12), 4096),
            (Command::Flush, 0, 0),
        ];
        for (command, offset, length) in requests {
            let outcome = ask(&other, command, offset, length).recv_timeout(PATIENCE);
            assert!(matches!(outcome, Ok(Ok(_))), "{fault:?}: {command:?} of the other export: {outcome:?}");
        }
        // A new client can connect.
        connect("other").read_at(4096, 4096, Vec::new()).unwrap();
    }
    let answered = outstanding.iter().filter(|outcome| outcome.try_recv().is_ok_and(|outcome| outcome.is_ok())).count();
    assert_eq!(answered, 0, "{fault:?}: nothing of the upstream is answered");
    _ = std::fs::remove_dir_all(&folder);
}

fn connected(socket: &Path, export: &str) -> Client {
    let uri = Uri { address: Address::Unix(socket.to_path_buf()), export: export.to_owned(), tls: None };
    Client::connect(&uri, ConnectOptions::default()).unwrap()
}

#[test]
fn another_export_is_answered_while_an_upstream_never_replies() {
    others_are_answered(Fault::NeverReplies);
}

#[test]
fn another_export_is_answered_while_an_upstream_takes_nothing() {
    others_are_answered(Fault::TakesNothing);
}

#[test]
fn another_export_is_answered_while_an_upstream_never_greets() {
    others_are_answered(Fault::NeverGreets);
}

#[test]
fn another_export_is_answered_while_an_upstream_greets_slowly() {
    others_are_answered(Fault::GreetsSlowly);
}

#[test]
fn another_export_is_answered_while_an_upstream_accepts_nothing() {
    others_are_answered(Fault::NeverAccepts);
}
