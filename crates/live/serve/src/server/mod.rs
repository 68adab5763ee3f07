//! The loop around all exports: one thread for connections and decisions, and threads for each backing.
//!
//! One thread suffices: its work per request costs less than the system calls of the socket, and the machine needs no
//! locks. It only blocks on all events together.

mod acting;
mod active;
mod certificate;
mod connection;
mod limits;
mod link;
mod outgoing;
mod stopping;
mod stream;
mod tls;
mod turns;
mod upkeep;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headstart_hints::Prepared;
use headstart_nbd::{BlockSizes, Export as NbdExport, Flags, Request, PAYLOAD_BYTES_MAX};
use headstart_types::Nanos;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustc_hash::FxHashMap;
use rustls::ServerConfig;

pub use stream::{Listener, Stream};

use crate::backing::{Backing, Done, Pool};
use crate::conductor::{Conductor, Setting};
use crate::settings::Settings;
use crate::spill::Spill;
use crate::work::Work;
use active::Active;
use connection::Connection;
use limits::Taken;
use link::EmulatedLink;
use stopping::Stopping;

/// How often the observer is asked whether to continue.
const TICK: Duration = Duration::from_millis(100);
/// Threads of a backing in addition to those for reads: for writes, flushes and extent queries.
const THREADS_MORE: u32 = 4;
const EVENTS_MAX: usize = 1024;
const WAKER: Token = Token(0);
const LISTENERS: usize = 1;
const CONNECTIONS: usize = 1 << 10;

/// An export with its backing and its level.
pub struct Export {
    pub name: String,
    pub backing: Arc<dyn Backing>,
    /// Delay of replies in addition to the real network.
    pub link: headstart_engine::Link,
    pub tier: headstart_engine::Tier,
    /// Frames of the level.
    pub frames: u32,
    /// Reads expected of clients.
    pub hints: Option<Prepared>,
    /// Receives evicted pages.
    pub spill: Option<Spill>,
}

struct Served {
    conductor: Conductor,
    pool: Pool,
    link: Option<EmulatedLink>,
    dirty: bool,
}

/// The connection that gets the answer to a request.
struct PendingReply {
    connection: u64,
    request: Request,
    /// Memory that the request takes.
    cost: usize,
}

/// Observer of a server's events.
pub trait Observer {
    /// Called 10 times a second and at the end; returns whether to continue.
    fn tick(&mut self, server: &Server) -> bool;

    /// Client number `client` requests something of an export.
    fn requested(&mut self, _at: Nanos, _client: u32, _export: usize, _request: &Request) {}

    /// An event of the connection `client`, in words.
    fn happened(&mut self, _at: Nanos, _client: u64, _what: &str, _detail: &str) {}
}

pub struct Server {
    settings: Arc<Settings>,
    poll: Poll,
    listeners: Vec<Listener>,
    names: Vec<NbdExport>,
    exports: Vec<Served>,
    done: Arc<Done>,
    connections: FxHashMap<u64, Connection>,
    pending_replies: FxHashMap<u64, PendingReply>,
    next_connection: u64,
    next_request: u64,
    begun: Instant,
    now: Nanos,
    active: Active,
    /// Connections that may have something to write in this turn.
    answered: Active,
    taken: Taken,
    /// Bytes that may still be copied from the page cache in this turn, and reads postponed to the next one.
    at_once_left: usize,
    put_off: VecDeque<(usize, u64, Work)>,
    prefetches: VecDeque<(usize, u64, Work)>,
    accepted: u64,
    tls: Option<Arc<ServerConfig>>,
}

impl Server {
    /// Serves `exports`, the first of which is the default, at `listeners`. `memory_bytes` is for requests and replies, in
    /// addition to the caches.
    ///
    /// # Errors
    /// The system runs out of a resource.
    #[allow(clippy::disallowed_methods)] // The machine's clock: this is the host.
    pub fn try_new(
        exports: Vec<Export>,
        mut listeners: Vec<Listener>,
        settings: Arc<Settings>,
        memory_bytes: usize,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (at, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener, Token(LISTENERS + at), Interest::READABLE)?;
        }
        let waker = Waker::new(poll.registry(), WAKER)?;
        let done: Arc<Done> = Arc::new(Mutex::new(Vec::new()));
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            let _ = waker.wake();
        });
        let names = exports.iter().map(|export| described(export, &settings)).collect();
        let serve = |(number, export): (usize, Export)| -> io::Result<Served> {
            let Export { backing, link, tier, frames, hints, spill, .. } = export;
            let about = backing.about();
            let depth = settings.depth.unwrap_or(about.parallelism);
            let setting = Setting {
                size_bytes: about.size_bytes,
                page_bytes: settings.page.0,
                frames,
                under_way_max: depth,
                read_bytes_max: about.read_bytes_max,
                fails_in_parts: about.fails_in_parts,
            };
            let pool = Pool::try_new(&backing, (depth, THREADS_MORE), number, &done, &wake)?;
            if let Some(ring) = pool.ring_fd() {
                poll.registry().register(&mut SourceFd(&ring), WAKER, Interest::READABLE)?;
            }
            let link = EmulatedLink::try_new(link, wake.clone())?;
            let conductor = Conductor::new(setting, tier, spill, hints);
            Ok(Served { conductor, pool, link, dirty: false })
        };
        let exports = exports.into_iter().enumerate().map(serve).collect::<io::Result<_>>()?;
        Ok(Self {
            poll,
            listeners,
            names,
            exports,
            done,
            connections: FxHashMap::default(),
            pending_replies: FxHashMap::default(),
            next_connection: 0,
            next_request: 0,
            begun: Instant::now(),
            now: Nanos::ZERO,
            active: Active::default(),
            answered: Active::default(),
            taken: Taken::new(&settings, memory_bytes),
            at_once_left: 0,
            put_off: VecDeque::new(),
            prefetches: VecDeque::new(),
            accepted: 0,
            tls: None,
            settings,
        })
    }

    /// Requires clients to start TLS.
    pub fn require_tls(&mut self, config: Arc<ServerConfig>) {
        self.tls = Some(config);
    }

    /// The URIs of the exports.
    #[must_use]
    pub fn uris(&self) -> Vec<String> {
        let tls = self.tls.is_some();
        let of =
            |listener: &Listener| self.names.iter().map(|export| listener.uri(&export.name, tls)).collect::<Vec<_>>();
        self.listeners.iter().flat_map(of).collect()
    }

    /// Names and conductors of the exports.
    pub fn exports(&self) -> impl Iterator<Item = (&str, &Conductor)> {
        self.names.iter().zip(&self.exports).map(|(name, served)| (name.name.as_str(), &served.conductor))
    }

    /// Like [`Server::exports`], with the state of emulated devices.
    pub fn exports_with_devices(&self) -> impl Iterator<Item = (&str, &Conductor, Option<serde_json::Value>)> {
        let devices = self.exports.iter().map(|served| served.pool.device.as_ref().map(|state| state()));
        self.exports().zip(devices).map(|((name, conductor), device)| (name, conductor, device))
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Current number of connections, and of all so far.
    #[must_use]
    pub fn connections(&self) -> (usize, u64) {
        (self.connections.len(), self.accepted)
    }

    /// Serves until the observer stops it, then until all outstanding requests are done and stable, or cannot be
    /// ([`Conductor::unstable`]).
    ///
    /// # Errors
    /// Polling fails.
    pub fn run(&mut self, observer: &mut dyn Observer) -> io::Result<()> {
        let mut ticked = self.begun;
        let mut stopping: Option<Stopping> = None;
        let mut events = Events::with_capacity(EVENTS_MAX);
        if !observer.tick(self) {
            return Ok(());
        }
        loop {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other?,
            }
            let instant = self.tell_time();
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(at) if at < CONNECTIONS => {
                        if stopping.is_none() {
                            self.accept(at - LISTENERS, observer);
                        }
                    }
                    Token(token) => {
                        let number = (token - CONNECTIONS) as u64;
                        if let Some(connection) = self.connections.get_mut(&number) {
                            connection.is_ready(event.is_readable(), event.is_read_closed(), event.is_writable());
                            if connection.held() == 0 {
                                self.active.push_first(number);
                            } else {
                                self.active.push(number);
                            }
                        }
                    }
                }
            }
            self.work(observer);
            if instant - ticked >= TICK {
                ticked = instant;
                self.look_after(observer);
                if !observer.tick(self) && stopping.is_none() {
                    stopping = Some(Stopping::since(instant));
                    self.end();
                }
            }
            if stopping.as_mut().is_some_and(|stopping| self.stops(stopping, instant)) {
                break;
            }
        }
        observer.tick(self);
        Ok(())
    }

    #[allow(clippy::disallowed_methods)]
    fn tell_time(&mut self) -> Instant {
        let instant = Instant::now();
        let now = Nanos(u64::try_from((instant - self.begun).as_nanos()).unwrap_or(u64::MAX));
        // Each round is an instant of its own.
        self.now = now.max(Nanos(self.now.0 + 1));
        instant
    }

    fn timeout(&mut self) -> Duration {
        let timers = self.exports.iter_mut().filter_map(|served| served.conductor.next_timer());
        let wait = timers.min().map_or(TICK, |at| Duration::from_nanos(at.0.saturating_sub(self.now.0)));
        let puts_off = !self.put_off.is_empty() || !self.prefetches.is_empty();
        if self.active.is_empty()
            && self.answered.is_empty()
            && !puts_off
            && !self.exports.iter().any(|served| served.dirty)
        {
            wait.min(TICK)
        } else {
            Duration::ZERO
        }
    }

    fn is_idle(&self) -> bool {
        self.connections.values().all(Connection::is_over)
            && self.exports.iter().all(|served| served.conductor.is_idle())
    }

    /// Stops accepting connections and requests.
    fn end(&mut self) {
        self.listeners.clear();
        for (number, connection) in &mut self.connections {
            let before = connection.held();
            connection.end();
            self.taken.change(before, connection.held());
            self.active.push(*number);
        }
    }
}

/// The export as clients see it.
fn described(export: &Export, settings: &Settings) -> NbdExport {
    let both = Flags::MULTI_CONN.with(Flags::CACHE).with(Flags::FLUSH);
    let flags = if settings.writable {
        both.with(Flags::FUA).with(Flags::TRIM).with(Flags::WRITE_ZEROES).with(Flags::FAST_ZERO)
    } else {
        both.with(Flags::READ_ONLY)
    };
    NbdExport {
        name: export.name.clone(),
        description: String::new(),
        size_bytes: export.backing.about().size_bytes,
        flags,
        blocks: BlockSizes { bytes_min: 1, bytes_preferred: settings.page.0 as u32, bytes_max: PAYLOAD_BYTES_MAX },
        allocation: true,
    }
}
