//! The client over sockets: many requests in flight, several connections, faults of the server.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

use common::{all_flags, export, serve_tcp, serve_unix, Fault};
use headstart_nbd::client::{Client, ClientError, ConnectOptions};
use headstart_nbd::{Command, Errno, Extent, Flags, Uri};

const SIZE: usize = 1 << 20;
const READ: Command = Command::Read { single_chunk: false };

fn pattern() -> Vec<u8> {
    (0..SIZE).map(|index| if index / 5000 % 3 == 0 { 0 } else { (index / 7) as u8 }).collect()
}

fn connect(uri: &Uri, connection_count: usize) -> Client {
    Client::connect(uri, ConnectOptions { connection_count, ..ConnectOptions::default() }).unwrap()
}

fn server(fault: Fault) -> Uri {
    serve_tcp(export("a", SIZE as u64, all_flags()), Arc::new(Mutex::new(pattern())), fault)
}

#[test]
fn reads_writes_zeroes_and_status_over_a_socket() {
    let folder = std::env::temp_dir().join(format!("headstart-nbd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let memory = Arc::new(Mutex::new(vec![0; SIZE]));
    let uri = serve_unix(&folder.join("a socket"), export("a b", SIZE as u64, all_flags()), Arc::clone(&memory));
    let client = connect(&uri.to_string().parse().unwrap(), 3);
    assert_eq!((client.connection_count(), client.export().size_bytes), (3, SIZE as u64));
    client.write_at(4096, &[7; 8192], true).unwrap();
    client.flush().unwrap();
    assert_eq!(client.read_at(4090, 10, Vec::new()).unwrap(), [0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
    let parts = [(4096, true), (4096, false), (4096, false), (4096, true)];
    let extents = parts.map(|(length, zero)| Extent { length, hole: zero, zero });
    assert_eq!(client.block_status(0, 16384).unwrap(), extents);
    client.call(Command::WriteZeroes { fua: false, no_hole: false, fast: false }, 4096, 4096, &[], Vec::new()).unwrap();
    client.call(Command::Trim { fua: false }, 8192, 4096, &[], Vec::new()).unwrap();
    client.call(Command::Cache, 0, 4096, &[], Vec::new()).unwrap();
    assert!(memory.lock().unwrap().iter().all(|byte| *byte == 0));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A thousand concurrent reads of all sizes, with replies out of order or in pieces.
#[test]
fn many_requests_in_flight_come_back_each_with_its_own() {
    for fault in [Fault::None, Fault::Pairs, Fault::Scattered] {
        let client = connect(&server(fault), 2);
        let (expected, (sender, receiver)) = (Arc::new(pattern()), mpsc::channel());
        for index in 0..1000_usize {
            let (offset, length) = (index * 997 % (SIZE - 9000), 1 + index * 31 % 9000);
            let (expected, sender) = (Arc::clone(&expected), sender.clone());
            client.submit(READ, offset as u64, length as u32, &[], Vec::new(), move |result| {
                sender.send(result.is_ok_and(|done| done.buffer == expected[offset..offset + length])).unwrap();
            });
        }
        assert!((0..1000).all(|_| receiver.recv().unwrap()), "{fault:?}");
    }
}

/// Queued requests are sent by `send_queued` or with the next request, and not before.
#[test]
fn queued_requests_leave_together() {
    let client = connect(&server(Fault::None), 1);
    let (sender, receiver) = mpsc::channel();
    let queue = |offset: usize| {
        let sender = sender.clone();
        client.queue(READ, offset as u64, 512, Vec::new(), move |result| {
            sender.send(result.is_ok_and(|done| done.buffer == pattern()[offset..offset + 512])).unwrap();
        });
    };
    (0..10).for_each(|index| queue(index * 5000));
    assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
    client.send_queued();
    assert!((0..10).all(|_| receiver.recv().unwrap()));
    queue(700);
    assert_eq!(client.read_at(0, 512, Vec::new()).unwrap(), pattern()[..512]);
    assert!(receiver.recv().unwrap());
}

#[test]
fn an_error_fails_one_request_only() {
    let client = connect(&server(Fault::ReadsFailFrom(8192)), 1);
    let error = client.read_at(8192, 4096, Vec::new()).unwrap_err();
    assert_eq!(error, ClientError::Failed { errno: Errno::Io, message: "a bad sector".to_owned() });
    assert_eq!(client.read_at(0, 8192, Vec::new()).unwrap(), pattern()[..8192]);
    let beyond = client.read_at(SIZE as u64, 1, Vec::new()).unwrap_err();
    assert!(matches!(beyond, ClientError::Failed { errno: Errno::Inval, .. }), "{beyond}");
    assert!(!client.is_lost());
}

#[test]
fn a_lost_connection_fails_all_that_is_in_flight_and_all_that_comes() {
    let client = connect(&server(Fault::ClosesAt(10)), 1);
    let (ok, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, receiver) = mpsc::channel();
    for index in 0..50 {
        let (ok, lost, sender) = (Arc::clone(&ok), Arc::clone(&lost), sender.clone());
        client.submit(READ, index * 512, 512, &[], Vec::new(), move |result| {
            match result {
                Ok(_) => ok.fetch_add(1, Ordering::SeqCst),
                Err(ClientError::Lost(_)) => lost.fetch_add(1, Ordering::SeqCst),
                Err(other) => panic!("{other}"),
            };
            sender.send(()).unwrap();
        });
    }
    for _ in 0..50 {
        receiver.recv().unwrap();
    }
    assert_eq!(ok.load(Ordering::SeqCst) + lost.load(Ordering::SeqCst), 50);
    assert!(ok.load(Ordering::SeqCst) <= 10);
    assert!(client.is_lost());
    assert!(matches!(client.read_at(0, 512, Vec::new()), Err(ClientError::Lost(_))));
}

#[test]
fn a_server_that_breaks_the_protocol_is_left() {
    let client = connect(&server(Fault::Short), 1);
    let error = client.read_at(0, 512, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("without all of the content"), "{error}");
    assert!(client.is_lost());
}

#[test]
fn a_writable_export_without_the_promise_has_one_connection() {
    let memory = Arc::new(Mutex::new(pattern()));
    let writable = all_flags().without(Flags::MULTI_CONN);
    let uri = serve_tcp(export("a", SIZE as u64, writable), Arc::clone(&memory), Fault::None);
    assert_eq!(connect(&uri, 4).connection_count(), 1);
    let uri = serve_tcp(export("a", SIZE as u64, writable.with(Flags::READ_ONLY)), memory, Fault::None);
    assert_eq!(connect(&uri, 4).connection_count(), 4);
}

#[test]
fn no_server_or_no_export_is_an_error_of_one_line() {
    let mut uri = server(Fault::None);
    "zz".clone_into(&mut uri.export);
    let error = Client::connect(&uri, ConnectOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("the server has no export \"zz\""), "{error}");
    // A port that is never assigned: one that was free a moment ago may belong to another server now.
    let none: Uri = "nbd://127.0.0.1:1/".parse().unwrap();
    let error = Client::connect(&none, ConnectOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "cannot connect: Connection refused");
    // A server that accepts and sends nothing.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri: Uri = format!("nbd://127.0.0.1:{}/", mute.local_addr().unwrap().port()).parse().unwrap();
    let options = ConnectOptions { connect_time_max: Duration::from_millis(50), ..ConnectOptions::default() };
    let error = Client::connect(&uri, options).unwrap_err().to_string();
    assert!(error.contains("no answer in time"), "{error}");
}

/// An endless greeting, sent byte by byte, exceeds the time limit.
#[test]
fn a_slow_greeting_has_one_time_in_all() {
    let slow = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri: Uri = format!("nbd://127.0.0.1:{}/", slow.local_addr().unwrap().port()).parse().unwrap();
    std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = slow.accept().unwrap();
        for byte in b"NBDMAGICIHAVEOPT" {
            _ = stream.write_all(&[*byte]);
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    let options = ConnectOptions { connect_time_max: Duration::from_millis(300), ..ConnectOptions::default() };
    let error = Client::connect(&uri, options).unwrap_err().to_string();
    assert!(error.contains("no answer in time"), "{error}");
}

/// A Unix socket whose queue of connections is full makes `connect` wait.
#[test]
fn a_unix_server_that_accepts_nothing_is_left() {
    let path = std::env::temp_dir().join(format!("headstart-nbd-full-{}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let uri = Uri { address: headstart_nbd::Address::Unix(path.clone()), export: String::new(), tls: None };
    let options = ConnectOptions { connect_time_max: Duration::from_millis(50), ..ConnectOptions::default() };
    for _ in 0..3 {
        let error = Client::connect(&uri, options).unwrap_err().to_string();
        assert!(error.contains("no answer in time"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// A missing reply ends the connection with all requests in flight, and so does content that stops halfway.
#[test]
fn a_reply_that_does_not_come_ends_the_connection() {
    for fault in [Fault::Mute(3), Fault::Halfway] {
        let options = ConnectOptions { reply_time_max: Some(Duration::from_millis(200)), ..ConnectOptions::default() };
        let client = Client::connect(&server(fault), options).unwrap();
        let (sender, receiver) = mpsc::channel();
        for index in 0..5 {
            let sender = sender.clone();
            client
                .submit(READ, index * 512, 512, &[], Vec::new(), move |result| sender.send(result.map(drop)).unwrap());
        }
        let outcomes: Vec<_> = (0..5).map(|_| receiver.recv().unwrap()).collect();
        let late = ClientError::Lost("the server does not reply in time".to_owned());
        let answered = if fault == Fault::Halfway { 0 } else { 3 };
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), answered, "{fault:?}");
        assert!(outcomes[answered..].iter().all(|outcome| *outcome == Err(late.clone())), "{outcomes:?}");
        assert!(client.is_lost());
    }
}
