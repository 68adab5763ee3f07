//! One connection. All of it is one task, so that nothing of a client outlives its connection: its reads are cancelled,
//! its leases released and its orders withdrawn when the task ends, however it does.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::stream::{self, FuturesUnordered, Stream};
use futures_util::{StreamExt, TryStreamExt};
use rustc_hash::FxHashMap;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::frames::{append, Frames};
use super::requests::{Answer, Body, Greeting, Item, Request, Welcome, ITEMS_MAX, PROTOCOL};
use super::{send_with, Present};
use crate::failure::Failure;
use crate::reading::Lease;
use crate::store::Store;

/// Requests of a connection at a time: more are not read from its socket.
const UNDER_WAY_MAX: usize = 256;
/// Objects of one request that the source is asked about at a time.
const SIZES_AT_ONCE: usize = 64;

/// The result of a request. Leases get their numbers when they are sent.
enum Outcome {
    Read(Vec<Vec<Lease>>),
    Other(Body),
}

type Done = (u64, Result<Outcome, Failure>);

/// Attends to a client until it disconnects.
///
/// # Errors
/// The connection fails, or the client sends what is no request.
pub async fn attend(mut stream: UnixStream, store: Arc<Store>, present: Present) -> io::Result<()> {
    let mut frames = Frames::default();
    match frames.next::<Greeting>(&mut stream).await? {
        Some(Greeting { hello: PROTOCOL }) => {}
        _ => return Ok(()),
    }
    let limits = store.lock().shelf.limits();
    let welcome = Welcome {
        hello: PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        source: store.source().name(),
        cache_bytes: limits.memory_bytes,
        spill_bytes: limits.spill_bytes,
    };
    let mut out = Vec::new();
    append(&mut out, &welcome)?;
    send_with(&stream, &out, &store.memory.for_readers()?).await?;
    out.clear();

    let (mut from, mut to) = stream.split();
    let (order, ordered) = mpsc::unbounded_channel();
    let mut ordered = pin!(in_turn(store.clone(), ordered));
    let mut others = FuturesUnordered::new();
    let mut held = Held::default();
    let mut under_way = 0;
    loop {
        let done = tokio::select! {
            Some(done) = others.next() => done,
            Some(done) = ordered.next() => done,
            request = frames.next::<Request>(&mut from), if under_way < UNDER_WAY_MAX => {
                match request? {
                    None => return Ok(()),
                    Some(Request::Release { leases }) => {
                        held.release(&leases);
                        continue;
                    }
                    Some(request @ (Request::Disclose { .. } | Request::Withdraw { .. } | Request::Left { .. })) => {
                        // It ends with this task.
                        let _ = order.send(request);
                    }
                    Some(request) => others.push(answer(store.clone(), &present, request)),
                }
                under_way += 1;
                continue;
            }
        };
        under_way -= 1;
        held.append(&mut out, done)?;
        to.write_all(&out).await?;
        out.clear();
    }
}

/// Answers a request that has nothing to do with others.
async fn answer(store: Arc<Store>, present: &Present, request: Request) -> Done {
    match request {
        Request::Read { id, items } => (id, read(&store, &items).await.map(Outcome::Read)),
        Request::Size { id, keys } => (id, sizes(&store, &keys).await.map(Outcome::Other)),
        Request::List { id, prefix } => (id, list(&store, &prefix).await.map(Outcome::Other)),
        Request::Report { id, optimum } => {
            let report = serde_json::to_value(store.report(&[], present.count(), optimum));
            let failed = |error: serde_json::Error| Failure::Source(error.to_string());
            (id, report.map(|report| Outcome::Other(Body::Report { report })).map_err(failed))
        }
        Request::Release { .. } | Request::Disclose { .. } | Request::Withdraw { .. } | Request::Left { .. } => {
            unreachable!("they are not passed on to here")
        }
    }
}

fn check(count: usize) -> Result<(), Failure> {
    let problem = || Failure::Invalid(format!("{count} items in one request; at most {ITEMS_MAX} are allowed"));
    (count <= ITEMS_MAX).then_some(()).ok_or_else(problem)
}

fn whole_key(store: &Store, key: &str) -> String {
    format!("{}{key}", store.source().prefix())
}

async fn read(store: &Arc<Store>, items: &[Item]) -> Result<Vec<Vec<Lease>>, Failure> {
    check(items.len())?;
    let read = |(key, start, end): &Item| {
        let (key, start, end) = (whole_key(store, key), *start, *end);
        async move { store.read(&key, start, end).await }
    };
    try_join_all(items.iter().map(read)).await
}

async fn sizes(store: &Arc<Store>, keys: &[String]) -> Result<Body, Failure> {
    check(keys.len())?;
    let size = |key: &String| {
        let key = whole_key(store, key);
        async move { store.head(&key).await.map(|meta| meta.size) }
    };
    let sizes = stream::iter(keys.iter().map(size)).buffered(SIZES_AT_ONCE).try_collect().await?;
    Ok(Body::Sizes { sizes })
}

async fn list(store: &Arc<Store>, prefix: &str) -> Result<Body, Failure> {
    let listing = store.list(&whole_key(store, prefix), false).await?;
    let outer = store.source().prefix().len();
    let objects = listing.objects.iter().map(|each| (each.key[outer..].to_owned(), each.size)).collect();
    Ok(Body::Objects { objects })
}

/// The orders of a client, by its own numbers.
struct Orders {
    store: Arc<Store>,
    numbers: FxHashMap<u64, u32>,
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.numbers.values().for_each(|number| self.store.withdraw(*number));
    }
}

/// Answers requests about orders one after another: what is appended to an order stays in the order of the requests.
fn in_turn(store: Arc<Store>, requests: mpsc::UnboundedReceiver<Request>) -> impl Stream<Item = Done> {
    let orders = Orders { store, numbers: FxHashMap::default() };
    stream::unfold((requests, orders), |(mut requests, mut orders)| async move {
        let done = orders.answer(requests.recv().await?).await;
        Some((done, (requests, orders)))
    })
}

impl Orders {
    async fn answer(&mut self, request: Request) -> Done {
        let (id, order) = match request {
            Request::Disclose { id, order, items } => {
                if let Err(failure) = self.disclose(order, items).await {
                    return (id, Err(failure));
                }
                (id, order)
            }
            Request::Withdraw { id, order } => {
                if let Some(number) = self.numbers.remove(&order) {
                    self.store.withdraw(number);
                }
                (id, order)
            }
            Request::Left { id, order } => (id, order),
            _ => unreachable!("only requests about orders come here"),
        };
        let left = self.numbers.get(&order).map_or(0, |number| self.store.left(*number));
        (id, Ok(Outcome::Other(Body::Left { left })))
    }

    async fn disclose(&mut self, order: u64, mut items: Vec<Item>) -> Result<(), Failure> {
        check(items.len())?;
        for (key, _, _) in &mut items {
            key.insert_str(0, self.store.source().prefix());
        }
        let number = *self.numbers.entry(order).or_insert_with(|| self.store.order());
        self.store.disclose(number, &items).await
    }
}

/// Leases of a client.
#[derive(Default)]
struct Held {
    leases: FxHashMap<u64, Vec<Lease>>,
    next: u64,
}

impl Held {
    fn release(&mut self, leases: &[u64]) {
        for lease in leases {
            self.leases.remove(lease);
        }
    }

    /// Appends the answer to `out`, and keeps its leases.
    fn append(&mut self, out: &mut Vec<u8>, (id, done): Done) -> io::Result<()> {
        let body = match done {
            Ok(Outcome::Read(items)) => {
                let parts = items.iter().map(|item| item.iter().map(Lease::range).collect()).collect();
                let first = self.next;
                self.next += items.len() as u64;
                self.leases.extend((first..).zip(items));
                Body::Read { parts, leases: (first..self.next).collect() }
            }
            Ok(Outcome::Other(body)) => body,
            Err(failure) => Body::from(failure),
        };
        let Err(error) = append(out, &Answer { id, body }) else { return Ok(()) };
        // Only a listing or the sizes of very many objects can be too long.
        append(out, &Answer { id, body: Body::from(Failure::Invalid(error.to_string())) })
    }
}
