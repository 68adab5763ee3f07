use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use headstart_host::testing::Machine;
use nix::sys::socket::{recvmsg, ControlMessageOwned};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{json, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use super::frames::{append, Frames};
use super::*;
use crate::shelf::{Limits, Shelf};
use crate::source::Source;

const OBJECT_BYTES: usize = 20_000;

fn content(object: usize) -> Vec<u8> {
    (0..OBJECT_BYTES).map(|at| (at * 7 + object * 31 + at / 251) as u8).collect()
}

/// A store of `objects` in a folder, with room for `memory_bytes`.
fn store(machine: &Machine, objects: usize, memory_bytes: u64) -> Arc<Store> {
    for object in 0..objects {
        machine.write(&format!("data/{object}"), "");
        std::fs::write(machine.path(format!("data/{object}")), content(object)).expect("there is room");
    }
    let source = Source::open(machine.path("data").to_str().expect("UTF-8")).expect("a folder");
    let shelf = Shelf::new(Limits { memory_bytes, spill_bytes: 0, requests: 8 });
    Store::try_new(source, shelf, None, false).expect("memory")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

struct Client {
    stream: UnixStream,
    frames: Frames,
    memory: File,
}

impl Client {
    /// Connects to a connection of its own of the store.
    async fn new(store: &Arc<Store>) -> Self {
        let (stream, other) = UnixStream::pair().expect("sockets");
        tokio::spawn(client::attend(other, store.clone(), Present::new(Arc::default())));
        Self::greet(stream).await
    }

    #[allow(unsafe_code)]
    async fn greet(mut stream: UnixStream) -> Self {
        send(&mut stream, &json!({"hello": 1})).await;
        let mut first = [0];
        let receive = || {
            let mut space = nix::cmsg_space!(RawFd);
            let mut parts = [IoSliceMut::new(&mut first)];
            let got = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
            let descriptor = got.cmsgs()?.find_map(|each| match each {
                ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
                _ => None,
            });
            Ok(descriptor)
        };
        let descriptor = stream.async_io(Interest::READABLE, receive).await.expect("a welcome");
        // SAFETY: the kernel has just made it for this process, and nothing else uses it.
        let memory = unsafe { File::from_raw_fd(descriptor.expect("the memory")) };
        let mut rest = std::io::Cursor::new(first).chain(&mut stream);
        let mut frames = Frames::default();
        let welcome: Value = frames.next(&mut rest).await.expect("a frame").expect("a welcome");
        assert_eq!((&welcome["hello"], &welcome["version"]), (&json!(1), &json!("0.1.0")));
        Self { stream, frames, memory }
    }

    async fn send(&mut self, request: &Value) {
        send(&mut self.stream, request).await;
    }

    async fn next(&mut self) -> Value {
        self.frames.next(&mut self.stream).await.expect("a frame").expect("an answer")
    }

    async fn ask(&mut self, request: Value) -> Value {
        self.send(&request).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], request["id"]);
        answer
    }

    /// The bytes that an item of a read was answered with.
    fn bytes(&self, parts: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in parts.as_array().expect("parts") {
            let (offset, length) = (part[0].as_u64().expect("a number"), part[1].as_u64().expect("a number"));
            let mut buffer = vec![0; length as usize];
            self.memory.read_exact_at(&mut buffer, offset).expect("it is there");
            bytes.extend(buffer);
        }
        bytes
    }
}

async fn send(stream: &mut UnixStream, request: &Value) {
    let mut frame = Vec::new();
    append(&mut frame, request).expect("short");
    stream.write_all(&frame).await.expect("it is read");
}

/// Waits for something that happens soon.
async fn soon(happens: impl Fn() -> bool) {
    for _ in 0..1000 {
        if happens() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not happen");
}

#[test]
fn requests_are_answered() {
    let machine = Machine::new();
    runtime().block_on(async {
        let store = store(&machine, 3, 1 << 20);
        let mut client = Client::new(&store).await;
        let items = json!([["1", 100, 300], ["0", 0, null], ["2", 5, 5]]);
        let read = client.ask(json!({"id": 9, "op": "read", "items": items})).await;
        assert_eq!(client.bytes(&read["parts"][0]), content(1)[100..300]);
        assert_eq!(client.bytes(&read["parts"][1]), content(0));
        assert_eq!((&read["parts"][2], &read["leases"]), (&json!([]), &json!([0, 1, 2])));
        client.send(&json!({"op": "release", "leases": [0, 1, 1, 77]})).await;

        let size = json!({"id": 1, "op": "size", "keys": ["2", "1"]});
        assert_eq!(client.ask(size).await, json!({"id": 1, "sizes": [OBJECT_BYTES, OBJECT_BYTES]}));
        let list = client.ask(json!({"id": 2, "op": "list", "prefix": ""})).await;
        let objects: Vec<Value> = (0..3).map(|each| json!([each.to_string(), OBJECT_BYTES])).collect();
        assert_eq!(list, json!({"id": 2, "objects": objects}));

        let items = json!([["1", 0, 50], ["2", 0, null]]);
        client.send(&json!({"id": 3, "op": "disclose", "order": 70, "items": items})).await;
        client.send(&json!({"id": 4, "op": "left", "order": 70})).await;
        client.send(&json!({"id": 5, "op": "withdraw", "order": 70})).await;
        for (id, left) in [(3, 2), (4, 2), (5, 0)] {
            assert_eq!(client.next().await, json!({"id": id, "left": left}), "in the order of the requests");
        }
        assert_eq!(client.ask(json!({"id": 6, "op": "left", "order": 8})).await, json!({"id": 6, "left": 0}));
        assert!(client.ask(json!({"id": 7, "op": "report", "optimum": true})).await["report"].is_object());
    });
}

#[test]
fn failures_have_a_kind_and_a_line() {
    let machine = Machine::new();
    runtime().block_on(async {
        let store = store(&machine, 1, 1 << 20);
        let mut client = Client::new(&store).await;
        let too_many: Vec<_> = (0..=requests::ITEMS_MAX).map(|_| json!(["0", 0, 1])).collect();
        for (request, kind, text) in [
            (json!({"op": "read", "items": [["0", 0, 1], ["x", 0, 1]]}), "not found", "x: there is no such object"),
            (json!({"op": "size", "keys": ["../x"]}), "invalid", "../x: no key that can be read"),
            (json!({"op": "read", "items": [["0", 0, 20001]]}), "invalid", "0: bytes 0 to 20001 of 20000"),
            (
                json!({"op": "disclose", "order": 1, "items": [["x", 0, null]]}),
                "not found",
                "x: there is no such object",
            ),
            (
                json!({"op": "read", "items": too_many}),
                "invalid",
                "65537 items in one request; at most 65536 are allowed",
            ),
        ] {
            let mut request = request;
            request["id"] = json!(1);
            let answer = client.ask(request).await;
            assert_eq!(answer, json!({"id": 1, "error": {"kind": kind, "text": text}}));
        }
    });
}

#[test]
fn the_memory_cannot_be_written() {
    let machine = Machine::new();
    runtime().block_on(async {
        let client = Client::new(&store(&machine, 1, 1 << 20)).await;
        assert!(client.memory.write_all_at(b"x", 0).is_err());
        assert!(client.memory.set_len(0).is_err());
    });
}

#[test]
fn a_client_that_disconnects_gives_all_back() {
    let machine = Machine::new();
    runtime().block_on(async {
        // Room for two objects of five pages, and a rest into which no part of the third fits.
        let store = store(&machine, 3, 12 * 4096);
        let mut first = Client::new(&store).await;
        let read = first.ask(json!({"id": 1, "op": "read", "items": [["0", 0, null], ["1", 0, null]]})).await;
        assert_eq!(read["leases"], json!([0, 1]));
        first.ask(json!({"id": 2, "op": "disclose", "order": 1, "items": [["0", 0, 9]]})).await;
        // The answer of this one is not read, and there is no room for it.
        first.send(&json!({"id": 3, "op": "read", "items": [["2", 0, null]]})).await;
        let mut second = Client::new(&store).await;
        second.send(&json!({"id": 1, "op": "read", "items": [["2", 0, null]]})).await;
        let waiting = tokio::time::timeout(Duration::from_millis(300), second.next()).await;
        assert!(waiting.is_err(), "the first client has all memory");
        assert_eq!(store.lock().shelf.orders().numbers().count(), 1);
        drop(first);
        let read = second.next().await;
        assert_eq!(second.bytes(&read["parts"][0]), content(2));
        soon(|| store.lock().shelf.orders().numbers().count() == 0).await;
        drop(second);
        // What is not leased can be evicted: all objects have been in memory by now.
        let mut third = Client::new(&store).await;
        for object in 0..3 {
            let read = third.ask(json!({"id": object, "op": "read", "items": [[object.to_string(), 0, null]]})).await;
            assert_eq!(third.bytes(&read["parts"][0]), content(object));
            third.send(&json!({"op": "release", "leases": read["leases"]})).await;
        }
    });
}

#[test]
fn a_client_that_reads_no_answers_is_not_read_from() {
    let machine = Machine::new();
    runtime().block_on(async {
        let store = store(&machine, 1, 1 << 20);
        let mut client = Client::new(&store).await;
        let request = json!({"id": 1, "op": "size", "keys": vec!["0"; 10_000]});
        let send_all = async {
            for _ in 0..2000 {
                client.send(&request).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(2), send_all).await.is_err(), "100 MB of requests");
    });
}

#[test]
fn many_clients_read_what_the_objects_hold() {
    let machine = Machine::new();
    runtime().block_on(async {
        // A fifth of the objects fits.
        let store = store(&machine, 40, 40 * 4096);
        let clients = (0..8).map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut client = Client::new(&store).await;
                let mut rng = ChaCha8Rng::seed_from_u64(number);
                for id in 0..300_u64 {
                    let items: Vec<(usize, usize, usize)> = (0..rng.random_range(1..4))
                        .map(|_| {
                            let start = rng.random_range(0..OBJECT_BYTES);
                            (rng.random_range(0..40), start, rng.random_range(start..=OBJECT_BYTES.min(start + 5000)))
                        })
                        .collect();
                    let named: Vec<Value> =
                        items.iter().map(|(object, from, to)| json!([object.to_string(), from, to])).collect();
                    if id % 20 == 0 {
                        let order = json!({"id": id, "op": "disclose", "order": id % 3, "items": named});
                        client.ask(order).await;
                    }
                    let read = client.ask(json!({"id": id, "op": "read", "items": named})).await;
                    for (index, (object, from, to)) in items.into_iter().enumerate() {
                        assert_eq!(client.bytes(&read["parts"][index]), content(object)[from..to]);
                    }
                    client.send(&json!({"op": "release", "leases": read["leases"]})).await;
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("it found what it should");
        }
    });
}

#[test]
fn the_door_counts_its_clients_and_closes() {
    let machine = Machine::new();
    runtime().block_on(async {
        let store = store(&machine, 1, 1 << 20);
        let path = machine.path("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let (stop, stopped) = watch::channel(false);
        let clients = Arc::new(AtomicUsize::new(0));
        let door = tokio::spawn(serve(listener, store, clients.clone(), stopped));
        let connect = || async { Client::greet(UnixStream::connect(&path).await.expect("it listens")).await };
        let (one, mut other) = (connect().await, connect().await);
        assert_eq!(clients.load(Ordering::Relaxed), 2);
        drop(one);
        soon(|| clients.load(Ordering::Relaxed) == 1).await;
        stop.send(true).expect("it listens");
        door.await.expect("it ends");
        assert_eq!(clients.load(Ordering::Relaxed), 0);
        assert_eq!(other.stream.read(&mut [0]).await.expect("the end"), 0);
    });
}

/// Bytes that get past the first checks: frames of requests that may be wrong.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        any::<Vec<u8>>(),
        "[ -~]{0,80}".prop_map(String::into_bytes),
        r#"\{"id":[0-9]{1,25},"op":"(read|size|list|left|none)","(items|keys|order)":[\[\]",0-9]{0,9}\}"#
            .prop_map(String::into_bytes),
    ];
    let frame = text.prop_map(|text| [&(text.len() as u32).to_le_bytes()[..], &text].concat());
    let bytes = prop_oneof![any::<Vec<u8>>(), prop::collection::vec(frame, 0..4).prop_map(|frames| frames.concat())];
    (any::<bool>(), bytes).prop_map(|(greets, bytes)| {
        let mut begin = Vec::new();
        if greets {
            append(&mut begin, &json!({"hello": 1})).expect("short");
        }
        [begin, bytes].concat()
    })
}

#[test]
fn garbage_ends_its_connection_alone() {
    let machine = Machine::new();
    let runtime = runtime();
    let store = runtime.block_on(async { store(&machine, 1, 1 << 20) });
    proptest!(|(bytes in garbage())| {
        runtime.block_on(async {
            let (mut stream, other) = UnixStream::pair().expect("sockets");
            let connection = tokio::spawn(client::attend(other, store.clone(), Present::new(Arc::default())));
            // It may close before all is written.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            let mut answers = Vec::new();
            let _ = stream.read_to_end(&mut answers).await;
            let ended = tokio::time::timeout(Duration::from_secs(10), connection).await;
            let _ = ended.expect("it ends").expect("no panic");
        });
    });
    runtime.block_on(async {
        let mut client = Client::new(&store).await;
        let size = client.ask(json!({"id": 1, "op": "size", "keys": ["0"]})).await;
        assert_eq!(size["sizes"], json!([OBJECT_BYTES]));
    });
}
